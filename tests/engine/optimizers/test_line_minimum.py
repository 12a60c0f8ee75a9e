"""Brent's line minimum against scipy's, trial by trial; brackets; directions without a minimum."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from bncli.engine.optimizers.line_search import PRECISION, Bracket, Probe, TrialStep, bracket, brent, line_minimum
from tests.problems import counted, multinomial, rosenbrock

CURVES: dict[str, Callable[[float], float]] = {
    "parabola": lambda a: (a - 1.3) ** 2,
    "quartic": lambda a: (a - 1.3) ** 4 - 0.1 * a,
    "steep wall": lambda a: math.exp(5 * a) - 30 * a,
    "logistic": lambda a: math.log1p(math.exp(-a)) + 0.05 * a * a,
    "corner": lambda a: abs(a - 0.7),
    "wavy": lambda a: -a - 0.02 * math.sin(9 * a) + 0.5 * a * a,
}
"""All fall from 0 and rise before 4."""


def trial(curve: Callable[[float], float], step: float) -> TrialStep:
    return TrialStep(step, curve(step))


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("middle", [0.2, 0.5])
def test_the_same_trials_as_scipy(name: str, middle: float) -> None:
    curve, steps = CURVES[name], list[float]()
    peers = list[float]()

    def line(step: float) -> TrialStep:
        steps.append(step)
        return trial(curve, step)

    def scalar(step: float) -> float:
        peers.append(float(step))
        return curve(step)

    around = Bracket(*(trial(curve, step) for step in (0.0, middle, 4.0)))
    best = brent(line, around)
    peer = optimize.brent(scalar, brack=(0.0, middle, 4.0), tol=PRECISION)
    assert best.step == pytest.approx(peer, rel=2 * PRECISION)
    inside = peers[3:]  # scipy first tries the bracket itself; its golden section has seven digits
    assert len(steps) == pytest.approx(len(inside), abs=1)
    np.testing.assert_allclose(steps[:3], inside[:3], rtol=1e-6)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 30.0])
def test_brackets(name: str, first: float) -> None:
    curve = CURVES[name]
    slope = (curve(1e-7) - curve(0.0)) / 1e-7
    around = bracket(lambda step: trial(curve, step), curve(0.0), slope, first)
    assert around is not None
    assert 0 <= around.left.step < around.middle.step < around.right.step
    assert around.middle.value <= min(around.left.value, around.right.value)
    assert around.middle.value < curve(0.0)


@given(st.integers(0, 999), st.sampled_from([1e-4, 1e-2, 1.0, 50.0]))
def test_the_minimum_along_a_direction(seed: int, first: float) -> None:
    function, calls = counted(multinomial(seed, 0.5, n=30, m=2))
    start = Probe(np.zeros(6), *function(np.zeros(6)))
    direction = -start.gradient
    found, step, tries = line_minimum(function, start, direction, float(direction @ start.gradient), first)
    assert found is not None
    assert tries == len(calls) - 1
    np.testing.assert_array_equal(found.point, step * direction)
    assert (found.value, found.gradient.tolist()) == (function(found.point)[0], function(found.point)[1].tolist())
    peer = optimize.minimize_scalar(lambda a: function(a * direction)[0], bracket=(0.0, step), tol=1e-10)
    assert found.value <= peer.fun + 1e-6 * abs(peer.fun)
    assert found.value == min(function(x)[0] for x in calls[: 1 + tries])


def test_a_wall_of_infinity_and_of_nothing() -> None:
    for bad in (math.inf, math.nan):
        found, step, _ = line_minimum(
            lambda x, bad=bad: (bad if x[0] > 0.3 else float((x[0] - 0.2) ** 2), x),
            Probe(np.zeros(1), 0.04, -np.ones(1)),
            np.ones(1),
            -0.4,
        )
        assert found is not None
        assert step == pytest.approx(0.2, rel=2 * PRECISION)


def test_an_unbounded_descent_ends_with_the_farthest_point() -> None:
    start = Probe(np.zeros(1), 0.0, -np.ones(1))
    found, step, tries = line_minimum(lambda x: (-float(x[0]), -np.ones(1)), start, np.ones(1), -1.0)
    assert found is not None
    assert found.value == -step < -1e12
    assert tries < 70


@pytest.mark.parametrize("value", [1.0, math.inf, math.nan])
def test_nowhere_lower_gives_nothing(value: float) -> None:
    start = Probe(np.zeros(1), 0.0, -np.ones(1))
    found, step, tries = line_minimum(lambda x: (value, -np.ones(1)), start, np.ones(1), -1.0)
    assert (found, step) == (None, 0.0)
    assert tries < 70


def test_a_valley_takes_about_ten_trials() -> None:
    value, gradient = rosenbrock(np.array([-1.2, 1.0]))
    start = Probe(np.array([-1.2, 1.0]), value, gradient)
    found, _, tries = line_minimum(rosenbrock, start, -gradient, -float(gradient @ gradient))
    assert found is not None
    assert tries < 25
