"""Class weights: the weight of a row is multiplied by a number of its class before anything is learnt.

    w_t' = w_t v_{y_t}        balanced: v_k = n / (K n_k),    n_k = sum of w_t over the rows of class k, n of all

K counts the classes that have rows. So learning sees other class frequencies than those of the data, and what is learnt
gives probabilities under these; `engine/decisions/prior.py` leads back. A weight that is a whole number is a row so
many times over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.catalogue.option_kinds import parse_label_numbers
from bncli.engine.data.columns import Columns
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError, UsageError

BALANCED = "balanced"


def class_weights_of(words: str | None, columns: Columns) -> Array | None:
    """Return the number of each label (K,), from `balanced` or `label=number,...`; a label that is not named has 1.

    None where nothing is asked for. UsageError for a label that the class does not have.
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
            error = unknown_label(label, labels, "--class-weights", columns.class_name)
            raise UsageError(error.what, hint=error.hint)
    return np.array([numbers.get(label, 1.0) for label in labels])


def unknown_label(label: str, labels: tuple[str, ...], option: str, class_name: str) -> BncliError:
    """Return an error about a label that an option names and the class does not have."""
    known = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    what = f"{option} names the label {label!r}, which the class {class_name!r} does not have"
    return BncliError(what, hint=f"it has {known}")


def reweighted(columns: Columns, class_weights: Array) -> Columns:
    """Return the rows with weights times those of their classes; so too the rows that they keep as they were read."""
    assert columns.label is not None
    weights = class_weights[columns.label.codes]
    weights = weights if columns.weights is None else weights * columns.weights
    origin = columns.origin
    if origin is not None and origin.sample is not None:
        sample = origin.sample
        assert sample.label is not None
        by_label = dict(zip(columns.label.levels, class_weights.tolist(), strict=True))
        own = np.array([by_label.get(label, 1.0) for label in sample.label.levels])
        origin = replace(origin, sample=reweighted(sample, own))
    return replace(columns, weights=weights, origin=origin)
