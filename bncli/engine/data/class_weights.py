"""Class weights: the weight of a row is multiplied by a number of its class before anything is learned.

    w_t' = w_t v_{y_t}        balanced: v_k = n / (K n_k),    n_k = sum of w_t over the rows of class k, n of all

K counts the classes that have rows. A model learned with class weights predicts as if the classes had the weighted
frequencies; `bncli.engine.prediction.prior` converts its predictions to other frequencies. A whole number v is the same
as v copies of each row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.catalogue.option_kinds import parse_label_numbers
from bncli.engine.data.columns import Columns
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError, UsageError

BALANCED = "balanced"


def parse_class_weights(words: str | None, columns: Columns) -> Array | None:
    """Return the factor of each label, (K,), from `balanced` or `label=number,...`; labels not named there have 1.

    Returns None without words or without a class column. Raises UsageError for a label that the class does not have.
    """
    if words is None or columns.label is None:
        return None
    labels = columns.label.levels
    if words == BALANCED:
        counts = np.bincount(columns.label.codes, columns.weights, len(labels)).astype(np.float64)
        present = counts > 0
        shares = counts.sum() / (present.sum() * np.where(present, counts, 1.0))
        return np.asarray(np.where(present, shares, 1.0))
    numbers = parse_label_numbers(words)
    for label in numbers:
        if label not in labels:
            error = unknown_label_error(label, labels, "--class-weights", columns.class_name)
            raise UsageError(error.what, hint=error.hint)
    return np.array([numbers.get(label, 1.0) for label in labels])


def unknown_label_error(label: str, labels: tuple[str, ...], option: str, class_name: str) -> BncliError:
    """Return the error for an option that names a label which the class does not have."""
    known = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    what = f"{option} names {label!r}, which is not a label of the class {class_name!r}"
    return BncliError(what, hint=f"its labels are {known}")


def apply_class_weights(columns: Columns, class_weights: Array) -> Columns:
    """Return the columns with the weight of every row multiplied by the factor of its class, from `class_weights` (K,).

    The weights in the kept sample of raw rows are multiplied likewise.
    """
    assert columns.label is not None
    weights = class_weights[columns.label.codes]
    weights = weights if columns.weights is None else weights * columns.weights
    origin = columns.origin
    if origin is not None and origin.sample is not None:
        sample = origin.sample
        assert sample.label is not None
        by_label = dict(zip(columns.label.levels, class_weights.tolist(), strict=True))
        of_sample = np.array([by_label.get(label, 1.0) for label in sample.label.levels])
        origin = replace(origin, sample=apply_class_weights(sample, of_sample))
    return replace(columns, weights=weights, origin=origin)
