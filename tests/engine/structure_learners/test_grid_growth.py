"""Growth against every cut tried in turn with sums spelt out; laws of refinements; what is cut at all."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.structure_learners.region_growth import Axis, Grid

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


def slowly_grown(sums: Array, axes: Sequence[Axis], penalty: float, most: int) -> Starts:
    uncut: Starts = tuple(tuple(axis.uncut) for axis in axes)
    firsts = [[(c,) for c in range(1, axis.n_ordered)] or [()] for axis in axes]
    begun = [
        tuple(tuple(sorted(s + c)) for s, c in zip(uncut, some, strict=True)) for some in itertools.product(*firsts)
    ]
    starts = max(begun, key=lambda one: round(worth(sums, one, penalty), 9))
    while True:
        larger = [one for one in refinements(starts, axes) if np.prod([len(s) for s in one]) <= most]
        best = max(larger, key=lambda one: round(worth(sums, one, penalty), 9), default=starts)
        if not worth(sums, best, penalty) > worth(sums, starts, penalty) + 1e-9:
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


@given(problems(), st.integers(1, 40))
def test_every_cut_tried_in_turn(problem: Problem, most: int) -> None:
    sums, axes, penalty = problem
    grid = Grid(sums, axes, penalty)
    grid.grow(most)
    assert tuple(map(tuple, grid.starts)) == slowly_grown(sums, axes, penalty, most)
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
