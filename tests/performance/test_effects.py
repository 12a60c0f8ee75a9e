"""Passes to the optimum in effects.

Thermometer coding on 20 intervals of equal frequency, lambda = 1, from zero, until the penalised objective is within
1e-6 of its best value; beside free cells on the same intervals, and beside scipy's L-BFGS-B on the same effects, each
scaled by the root of its curvature (ten pairs, at most 600 passes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners.conditional import build_space_discriminative, learn_discriminative
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Iteration
from tests.performance.conftest import Recorder
from tests.performance.objectives import SMOOTHING, Path
from tests.performance.workloads import finely_cut, structure

pytestmark = pytest.mark.performance

CASES = [
    ("adult", "nb", False, 40),
    ("adult", "tan", True, 160),
    ("vehicle", "nb", False, 60),
    ("german", "tan", True, None),
    ("spambase", "nb", False, None),
    ("letter", "nb", False, 60),
]


@pytest.mark.parametrize(("name", "word", "lower_orders", "at_most"), CASES)
def test_passes(name: str, word: str, lower_orders: bool, at_most: int | None, record: Recorder) -> None:
    data = finely_cut(name)
    dag, options = structure(data, word), {"coding": "thermometer", "lower_orders": lower_orders}
    own, cells = _own_path(Counts(data), dag, **options), _own_path(Counts(data), dag)
    plain = _plain_path(build_space_discriminative(Counts(data), dag, smoothing=SMOOTHING, **options))
    best = min(own.best, plain.best)
    detail = f"cells {cells.passes(cells.best):.0f}; scipy, diagonal {plain.passes(best):.0f}"
    what = f"{name} {word.upper()}{' with lower orders' if lower_orders else ''}, {data.n_rows:,} rows"
    record(what, own.passes(best), "passes", at_most, detail)


def _own_path(counts: Counts, dag: Dag, **options: Any) -> Path:
    steps: list[tuple[int, float]] = []

    def watch(event: Event) -> None:
        if isinstance(event, Iteration):
            steps.append((event.gradient_evaluations, event.penalty - event.cll))

    settings = OptimizerSettings("zero", 1.0, 0.0, "newton", 1e-10, 500)
    learn_discriminative(counts, dag, smoothing=SMOOTHING, settings=settings, watch=watch, **options)
    return Path(tuple(steps))


def _plain_path(space: ParameterSpace) -> Path:
    from scipy.optimize import minimize

    coordinates, likelihood = space.coordinates, space.likelihood
    n_labels = likelihood.data.n_labels
    masses = coordinates.effects.masses(likelihood.cell_weights())  # type: ignore[union-attr]
    scale = np.tile(1.0 / np.sqrt(masses / n_labels * (1 - 1 / n_labels) + 1.0), n_labels)
    steps: list[tuple[int, float]] = []

    def f(u: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        p = scale * u
        cll, d_tables = likelihood.value_and_gradient(coordinates.tables(p))
        steps.append((len(steps) + 1, float(p @ p) / 2 - cll))
        return steps[-1][1], scale * (p - coordinates.pull_back(p, d_tables))

    options = {"maxcor": 10, "maxfun": 600, "maxiter": 600, "ftol": 1e-14, "gtol": 1e-9}
    minimize(f, np.zeros(coordinates.n_parameters), jac=True, method="L-BFGS-B", options=options)
    return Path(tuple(steps))
