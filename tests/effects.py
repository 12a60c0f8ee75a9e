"""Effects from their definition, one cell and one effect at a time, and coded rows of numeric attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.prediction.contributions import value_names
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset

Array = NDArray[np.float64]


def numeric(attribute: Attribute, *, missing: bool) -> NumericAttribute:
    """A numeric attribute with as many codes; the last one is the missing level, if there is one."""
    n_cuts = attribute.cardinality - missing - 1
    return NumericAttribute(attribute.name, missing, attribute.frequencies, tuple(float(c) for c in range(n_cuts)))


def mixed_dataset(data: Dataset, kinds: Sequence[str]) -> Dataset:
    """The same codes with attributes of these kinds: `categorical`, `numeric`, or `missing`: numeric with gaps."""
    attributes = tuple(
        a if kind == "categorical" else numeric(a, missing=kind == "missing")
        for a, kind in zip(data.schema.attributes, kinds, strict=True)
    )
    return replace(data, schema=replace(data.schema, attributes=attributes))


@st.composite
def mixed_datasets(draw: st.DrawFn, max_rows: int = 30, max_attributes: int = 4) -> Dataset:
    """Rows of attributes of all kinds, one of a single code or two among them sometimes."""
    cardinalities = draw(st.lists(st.integers(1, 5), min_size=1, max_size=max_attributes))
    kinds = draw(st.lists(st.sampled_from(["categorical", "numeric", "missing"]), min_size=5, max_size=5))
    n_rows, seed = draw(st.integers(1, max_rows)), draw(st.integers(0, 999))
    data = random_dataset(n_rows, cardinalities, draw(st.integers(2, 4)), seed=seed, weighted=draw(st.booleans()))
    kinds = ["numeric" if n == 1 and kind == "missing" else kind for n, kind in zip(cardinalities, kinds, strict=False)]
    return mixed_dataset(data, kinds)


def functions_of(attribute: Attribute, n_codes: int, coding: str, code: int) -> list[float]:
    """What the basis of an attribute says of a code, straight from the definition, not turned."""
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return [float(code == value) for value in range(n_codes)]
    n_intervals = n_codes - attribute.missing
    is_missing = code == n_intervals
    steps = [0.0 if is_missing else 0.5 if code > cut else -0.5 for cut in range(n_intervals - 1)]
    return [*steps, float(is_missing)] if attribute.missing else steps


def dense(families: Sequence[Family], data: Dataset, coding: str, *, lower_orders: bool) -> Array:
    """T (n_cells, effects), not turned: the bias, then each set of attributes once, in its finest family."""
    n_cells = 1 + sum(family.n_cells for family in families)
    columns = [np.eye(n_cells)[0]]
    for f, places in _sets(families, lower_orders=lower_orders):
        family, first = families[f], 1 + sum(each.n_cells for each in families[:f])
        sizes = [
            range(len(functions_of(data.schema.attributes[family.attributes[j]], family.shape[j], coding, 0)))
            for j in places
        ]
        for effect in itertools.product(*sizes):
            column = np.zeros(n_cells)
            for number, codes in enumerate(np.ndindex(family.shape)):
                value = math.sqrt(0.5 ** (len(places) - 1)) if lower_orders else 1.0
                for j, which in zip(places, effect, strict=True):
                    attribute = data.schema.attributes[family.attributes[j]]
                    value *= functions_of(attribute, family.shape[j], coding, codes[j])[which]
                column[first + number] = value
            columns.append(column)
    return np.array(columns).T


def _sets(families: Sequence[Family], *, lower_orders: bool) -> list[tuple[int, tuple[int, ...]]]:
    if not lower_orders:
        return [(f, tuple(range(len(family.shape)))) for f, family in enumerate(families)]
    found: dict[frozenset[int], list[tuple[int, int, tuple[int, ...]]]] = {}
    for f, family in enumerate(families):
        for size in range(1, len(family.shape) + 1):
            for places in itertools.combinations(range(len(family.shape)), size):
                members = frozenset(family.attributes[j] for j in places)
                found.setdefault(members, []).append((-math.prod(family.shape[j] for j in places), f, places))
    return [min(each, key=lambda one: one[:2])[1:] for each in found.values()]


def intervals_of(attribute: Attribute, text: str) -> range:
    """Return the codes of the neighbouring intervals that a text such as `1..4` joins; it must join some."""
    assert isinstance(attribute, NumericAttribute)
    names = value_names(attribute)[: attribute.n_values]
    starts = [name.removeprefix(">").split("..")[0] if not name.startswith("<=") else "" for name in names]
    ends = [name.removeprefix("<=").split("..")[-1] if not name.startswith(">") else "" for name in names]
    for first in range(len(names)):
        for last in range(first, len(names)):
            low, high = starts[first], ends[last]
            joined = f"{low}..{high}" if low and high else f">{low}" if low else f"<={high}" if high else "any"
            if joined == text:
                return range(first, last + 1)
    raise AssertionError(text)
