"""Points under monotone directions: every table keeps them, by a look at its cells, whatever the rows say."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, direction_of
from bncli.engine.model import Tables
from bncli.engine.parameter_learners.points import learn as learn_points
from bncli.engine.structure_learners import card
from bncli.engine.structures.structure import Regions
from tests.directions import directed_dataset


def falls(data: Dataset, tables: Tables) -> list[float]:
    """How much the log-odds of the directed label against another fall between neighbouring cells, cell by cell."""
    raised = data.schema.direction_label
    found = [0.0]
    for family, weights in zip(tables.families, tables.weights, strict=True):
        for axis, (i, grouping) in enumerate(family.binned_attributes):
            sign, n = direction_of(data.schema, i), data.schema.attributes[i].n_values
            coarse = [c if grouping is None else grouping[c] for c in range(n)]
            for low, high in itertools.pairwise(dict.fromkeys(coarse) if sign else ()):
                others = [range(size) for k, size in enumerate(family.shape) if k != axis]
                for rest in itertools.product(*others):
                    one, two = (
                        np.ravel_multi_index((*rest[:axis], code, *rest[axis:]), family.shape) for code in (low, high)
                    )
                    rise = sign * (weights[two] - weights[one])
                    found += [float(rise[y] - rise[raised]) for y in range(len(rise)) if y != raised]
    return found


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(2, 3),
    st.sampled_from([100, 4, 1, "off"]),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_every_table_keeps_its_directions(
    seed: int, labels: int, points: int | str, directions: list[int], missing: bool, learnt: bool
) -> None:
    cardinalities = [5, 4, 6 + missing]
    data = directed_dataset(
        120, cardinalities, directions, missing=(False, False, missing), labels=labels, towards=labels - 1, seed=seed
    )
    counts = Counts(data)
    typed = Regions(((0,), (1,), (2,), (0, 2)))
    structure = card.learn(counts, columns=3, rows=14, pairs=1) if learnt else typed
    tables = learn_points(counts, structure, rows=14, points=points).tables
    assert max(falls(data, tables)) <= 1e-12
    if points != "off":
        numbers = [w[:, 1] - w[:, 0] if labels == 2 else w for w in tables.weights]
        largest = max((float(np.abs(n).max()) for n in numbers), default=0.0)
        for own in numbers if largest > 0 else ():
            whole = own / largest * int(points)
            assert np.abs(whole - np.rint(whole)).max() < 1e-6


def rising(labels: int = 2, seed: int = 0) -> Dataset:
    """Rows whose last label becomes more frequent along both of two numbers; a third number is noise."""
    rng = np.random.default_rng(seed)
    data = directed_dataset(800, [4, 5, 4], [0, 0, 0], labels=labels, towards=labels - 1)
    codes = [rng.integers(0, n, 800) for n in (4, 5, 4)]
    score = 1.2 * codes[0] + 0.8 * codes[1] + rng.logistic(size=800)
    y = np.where(score > np.median(score), labels - 1, rng.integers(0, labels - 1, 800))
    return replace(data, codes=tuple(c.astype(np.uint8) for c in codes), labels=y.astype(np.uint8))


def with_directions(data: Dataset, directions: list[int]) -> Dataset:
    attributes = tuple(
        replace(attribute, direction=direction) if isinstance(attribute, NumericAttribute) else attribute
        for attribute, direction in zip(data.schema.attributes, directions, strict=True)
    )
    return replace(data, schema=replace(data.schema, attributes=attributes))


@pytest.mark.parametrize("labels", [2, 3])
def test_directions_that_the_rows_have_change_nothing(labels: int) -> None:
    found = []
    for directions in ([0, 0, 0], [1, 1, 0]):
        counts = Counts(with_directions(rising(labels), directions))
        structure = card.learn(counts, columns=3, rows=12)
        tables = learn_points(counts, structure, rows=12, points=20).tables
        found.append((structure.regions, tables.cells.tolist()))
    assert {(0,), (1,)} <= set(found[0][0])
    assert found[0] == found[1]


def test_a_direction_against_the_rows_leaves_the_column_out_or_flat() -> None:
    counts = Counts(with_directions(rising(), [-1, 1, 0]))
    assert card.learn(counts, columns=3, rows=12).regions == ((1,),)
    tables = learn_points(counts, Regions(((0,), (1,))), rows=12, points=20).tables
    assert np.ptp(tables.weights[0], axis=0).max() < 1e-12
    assert np.ptp(tables.weights[1], axis=0).max() > 0.1
