"""Directions of Polak & Ribiere: the formula, the restarts, the first trial step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.optimizers.descent_loop import Conjugate
from bncli.engine.optimizers.line_search import Probe
from tests.problems import quadratic


def probe(gradient: list[float]) -> Probe:
    g = np.array(gradient)
    return Probe(np.zeros(g.size), 0.0, g)


def test_the_formula_by_hand() -> None:
    """g = (1, 2, 0), then (2, 0, 1): beta = (2 - 1, -2, 1)'(2, 0, 1) / 5 = 3/5."""
    guide = Conjugate()
    assert guide.direction(np.array([1.0, 2.0, 0.0])).tolist() == [-1.0, -2.0, 0.0]
    guide.learn(probe([1.0, 2.0, 0.0]), probe([2.0, 0.0, 1.0]))
    assert not guide.fresh
    np.testing.assert_allclose(guide.direction(np.array([2.0, 0.0, 1.0])), [-2.6, -1.2, -1.0], rtol=1e-14)
    guide.forget()
    assert guide.fresh
    assert guide.direction(np.array([1.0, 2.0, 3.0])).tolist() == [-1.0, -2.0, -3.0]


def test_a_negative_beta_starts_again() -> None:
    guide = Conjugate()
    guide.direction(np.array([2.0, 0.0]))
    guide.learn(probe([2.0, 0.0]), probe([1.0, 0.0]))
    assert guide.fresh


def test_starts_again_after_as_many_iterations_as_parameters() -> None:
    guide, fresh = Conjugate(), []
    for i in range(7):
        guide.direction(np.array([1.0, 2.0, 3.0]))
        guide.learn(probe([1.0, 2.0, 3.0]), probe([2.0, 3.0, 4.0 + i]))
        fresh.append(guide.fresh)
    assert fresh == [False, False, True, False, False, True, False]


def test_the_first_trial_step() -> None:
    guide = Conjugate()
    assert guide.first_step == 1.0
    guide.stepped(0.04)
    assert guide.first_step == pytest.approx(0.068)
    guide.stepped(0.9)
    assert guide.first_step == 1.0
    guide.stepped(0.04)
    guide.forget()
    assert guide.first_step == 1.0


def test_with_exact_steps_directions_are_conjugate() -> None:
    function, a = quadratic(6, 3, 50.0)
    guide, here = Conjugate(), Probe(np.zeros(6), *function(np.zeros(6)))
    directions: list[NDArray[np.float64]] = []
    for _ in range(6):
        d = guide.direction(here.gradient).copy()
        step = -float(d @ here.gradient) / float(d @ a @ d)
        point = here.point + step * d
        there = Probe(point, *function(point))
        guide.learn(here, there)
        directions.append(d / np.linalg.norm(d))
        here = there
    conjugacy = np.array(directions) @ a @ np.array(directions).T
    np.testing.assert_allclose(conjugacy - np.diag(np.diag(conjugacy)), 0.0, atol=1e-6)
    assert here.value == pytest.approx(1.0, abs=1e-9)
