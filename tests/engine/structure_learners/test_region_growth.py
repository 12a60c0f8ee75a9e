"""Grids and regions with cuts of their own: against enumeration, loops over rows, and properties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structure_learners import region_growth as module
from bncli.engine.structure_learners.region_growth import GrownRegion, grow_regions
from bncli.engine.structures.structure import Family
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.engine.structure_learners.test_interaction_gains import gains_of, probabilities

Array = NDArray[np.float64]
Starts = tuple[tuple[int, ...], ...]
Problem = tuple[Array, tuple[Axis, ...], float]


def worth(sums: Array, starts: Starts, penalty: float, price: float = 1.0) -> float:
    """Cell by cell, class by class, code by code."""
    total, n_classes = 0.0, len(sums) // 2
    groups = [
        [range(first, last) for first, last in itertools.pairwise((*s, n))]
        for s, n in zip(starts, sums.shape[1:], strict=True)
    ]
    for cell in itertools.product(*groups):
        for y in range(n_classes):
            g = sum(sums[(y, *codes)] for codes in itertools.product(*cell))
            h = sum(sums[(n_classes + y, *codes)] for codes in itertools.product(*cell))
            total += (g * g - price * h) / (2 * (h + penalty))
    return total


def refinements(starts: Starts, axes: Sequence[Axis]) -> list[Starts]:
    """Every grid with one cut more."""
    return [
        (*starts[:j], tuple(sorted((*starts[j], code))), *starts[j + 1 :])
        for j, axis in enumerate(axes)
        for code in range(1, axis.n_ordered)
        if code not in starts[j]
    ]


def slowly_grown(sums: Array, axes: Sequence[Axis], penalty: float, most: int, least: float) -> Starts:
    uncut: Starts = tuple(tuple(axis.uncut) for axis in axes)
    firsts = [[(c,) for c in range(1, axis.n_ordered)] or [()] for axis in axes]
    begun = [
        tuple(tuple(sorted(s + c)) for s, c in zip(uncut, some, strict=True)) for some in itertools.product(*firsts)
    ]
    starts = max(begun, key=lambda one: round(worth(sums, one, penalty), 9))
    while True:
        larger = [one for one in refinements(starts, axes) if np.prod([len(s) for s in one]) <= most]
        best = max(larger, key=lambda one: round(worth(sums, one, penalty), 9), default=starts)
        if not worth(sums, best, penalty) > worth(sums, starts, penalty) + max(least, 1e-9):
            return starts
        starts = best


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Sums of one to three attributes of few codes: all intervals, some of them levels, or intervals and a missing
    level; some cells without rows."""
    axes = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 5))
        axes.append(Axis(n, draw(st.sampled_from([0, n, n - 1]))))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    shape = (draw(st.integers(1, 3)), *(axis.n_codes for axis in axes))
    h = rng.gamma(1.0, 3.0, shape) * (rng.random(shape[1:]) < 0.8)
    sums = np.concatenate([rng.normal(0, 2, shape) * np.sqrt(h), h])
    return sums, tuple(axes), draw(st.sampled_from([0.5, 1.0, 10.0]))


@given(problems(), st.integers(1, 40), st.sampled_from([0.0, 0.3, 2.0]))
def test_every_cut_tried_in_turn(problem: Problem, most: int, least: float) -> None:
    sums, axes, penalty = problem
    grid = Grid(sums, axes, penalty)
    grid.grow(most, least)
    assert tuple(map(tuple, grid.starts)) == slowly_grown(sums, axes, penalty, most, least)
    assert grid.value == pytest.approx(worth(sums, tuple(map(tuple, grid.starts)), penalty))


@given(problems())
def test_without_a_price_a_refinement_loses_nothing_but_what_the_penalty_takes(
    problem: Problem,
) -> None:
    """(a + b)^2 / (c + d) <= a^2 / c + b^2 / d: so no refinement has a negative gain where nothing is corrected."""
    sums, axes, *_ = problem
    starts: Starts = tuple(tuple(axis.uncut) for axis in axes)
    for finer in refinements(starts, axes):
        assert worth(sums, finer, 1e-9, 0.0) >= worth(sums, starts, 1e-9, 0.0) - 1e-6


@given(problems())
def test_what_a_cut_is_worth_is_what_it_makes_of_the_grid(problem: Problem) -> None:
    sums, axes, penalty = problem
    grid = Grid(sums, axes, penalty)
    for j, axis in enumerate(axes):
        best, same, code = grid.best_cut(j)
        assert same == j
        if axis.n_ordered < 2:
            assert best == -np.inf
            continue
        grid.starts[j] = sorted([*grid.starts[j], code])
        assert grid.value == pytest.approx(best, abs=1e-9)


def test_two_cuts_at_once_find_what_neither_attribute_says_alone() -> None:
    """Opposite corners: every margin of g is 0, so that a cut through one attribute gains nothing by itself."""
    g = np.where(np.equal.outer(np.arange(8) < 2, np.arange(8) < 6), 1.0, -1.0)
    g -= g.mean(axis=0) + g.mean(axis=1)[:, np.newaxis] - g.mean()
    grid = Grid(np.stack([10 * g, np.full((8, 8), 5.0)]), (Axis(8, 8), Axis(8, 8)))
    grid.grow(64)
    assert grid.starts == [[0, 2], [0, 6]]


def test_no_more_cells_than_asked_for() -> None:
    rng = np.random.default_rng(0)
    sums = np.concatenate([rng.normal(0, 50, (1, 12, 12)), np.full((1, 12, 12), 4.0)])
    grid = Grid(sums, (Axis(12, 12), Axis(12, 12)))
    grid.grow(30)
    assert 20 < len(grid.starts[0]) * len(grid.starts[1]) <= 30


def grown(data: Dataset, sets: list[tuple[int, ...]]) -> list[GrownRegion]:
    """Beside single attributes whose tables are anything."""
    families = [Family(s, (data.schema.cardinalities[s[0]],), None) for s in ((i,) for i in data.schema.informative)]
    likelihood = conditional_likelihood(data, families)
    cells = np.random.default_rng(0).normal(size=(data.n_labels, likelihood.n_cells))
    return grow_regions(likelihood, cells, sets, 40)


@given(mixed_datasets())
def test_gains_are_those_of_the_cells_row_by_row(data: Dataset) -> None:
    informative = data.schema.informative
    sets = [tuple(informative[: n + 1]) for n in range(min(3, len(informative)))]
    gains = gains_of(data, [(i,) for i in informative])
    found = grow_regions(gains.likelihood, gains.cells, sets, 40)
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)
    assert {one.attributes for one in found} == set(sets)
    for one in found:
        sums: dict[tuple[tuple[int, ...], int], list[float]] = {}
        for t in range(data.n_rows):
            codes = [int(data.codes[i][t]) for i in one.attributes]
            cell = tuple(c if m is None else m[c] for c, m in zip(codes, one.groupings, strict=True))
            weight = 1.0 if data.weights is None else float(data.weights[t])
            for y, p in enumerate(probabilities(gains, t)):
                pair = sums.setdefault((cell, y), [0.0, 0.0])
                pair[0] += weight * (float(data.labels[t] == y) - p)
                pair[1] += weight * p * (1 - p)
        assert one.gain == pytest.approx(sum((g * g - h) / (2 * (h + 1.0)) for g, h in sums.values()), abs=1e-9)


def rows(n_rows: int = 600) -> Dataset:
    return mixed_dataset(random_dataset(n_rows, (12, 9, 3, 6), 3), ["numeric", "missing", "categorical", "numeric"])


SETS: list[tuple[int, ...]] = [(0,), (0, 1), (0, 2), (1, 3), (0, 1, 3), (1, 2, 3)]


def test_twice_is_weight_two_and_order_is_nothing() -> None:
    data = rows()
    twice = grown(data.take(np.repeat(np.arange(600), 2)), SETS)
    heavy = grown(replace(data, weights=np.full(600, 2.0)), SETS)
    shuffled = grown(data.take(np.random.default_rng(1).permutation(600)), SETS)
    for one, other in ((twice, heavy), (grown(data, SETS), shuffled)):
        assert [(r.attributes, r.groupings) for r in one] == [(r.attributes, r.groupings) for r in other]
        np.testing.assert_allclose([r.gain for r in one], [r.gain for r in other], rtol=1e-9, atol=1e-9)


def test_threads_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 100)
    data = rows()
    found = grown(data, SETS)
    assert grown(replace(data, threads=3), SETS) == found
    monkeypatch.setattr(module, "SUMS_AT_A_TIME", 1)
    assert grown(data, SETS) == found


def test_groupings_join_neighbours_and_leave_levels_and_the_missing_level_apart() -> None:
    data = rows()
    for one in grown(data, SETS):
        for i, grouping in zip(one.attributes, one.groupings, strict=True):
            attribute = data.schema.attributes[i]
            if grouping is None:
                continue
            assert i != 2
            assert set(np.diff(grouping)) <= {0, 1}
            assert len(grouping) == attribute.cardinality
            assert not attribute.missing or grouping[-1] > grouping[-2]
            assert grouping[attribute.n_values - 1] > 0  # every numeric attribute is cut


def test_a_region_of_many_codes_is_seen_through_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    monkeypatch.setattr(module, "MAX_SUMS", 6 * 9)
    monkeypatch.setattr(module, "FEWEST_BINS", 3)
    attributes = tuple(replace(a, frequencies=(600 / a.cardinality,) * a.cardinality) for a in data.schema.attributes)
    coarse = grown(replace(data, schema=replace(data.schema, attributes=attributes)), [(0, 3)])
    assert all(grouping is not None and max(grouping) < 3 for grouping in coarse[0].groupings)


def test_as_many_cells_as_the_rows_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_CELLS", 6)
    for rows_per_cell, most in ((100, 6), (60, 10)):
        monkeypatch.setattr(module, "ROWS_PER_CELL", rows_per_cell)
        found = grown(rows(), [(0, 3)])[0].groupings
        assert 4 <= math.prod(max(grouping) + 1 for grouping in found if grouping) <= most
