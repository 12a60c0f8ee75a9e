"""Passes to the optimum, over all the real tables of at least 1,000 rows (but derived ones) and three structures.

Until the objective is within 1e-6 of its best value; a Hessian product counts as one pass, and what preconditioners
cost as their CPU time over that of one pass; in the means a run that does not arrive within 500 counts as 500. Each
problem beside scipy's L-BFGS-B with ten pairs: on the same objective from zero; and, without penalty, on the weights of
the generative log probabilities from 1, as published by Zaidi et al. 2017. The full table is `passes.csv`, which
BNCLI_UPDATE=1 writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners.conditional import build_space_discriminative, build_space_weighted
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, optimize
from bncli.engine.parameters.preconditioner import Whitening
from bncli.engine.parameters.weighted_samples import Growth
from bncli.engine.structure_learners import kdb, nb, tan
from bncli.watch import Event, Iteration
from tests.performance import passes
from tests.performance.conftest import Recorder
from tests.performance.objectives import GAP, SMOOTHING
from tests.performance.passes import CAP, MANY_ROWS, PENALTIES, Line
from tests.performance.workloads import real
from tests.published.pages import UPDATING

pytestmark = pytest.mark.performance

Array = NDArray[np.float64]

SETS = (
    *("adult", "car", "chess_krkp", "cmc", "connect_4", "covertype", "flare", "german", "led7", "letter", "mushroom"),
    *("nursery", "optdigits", "satimage", "segment", "shuttle", "spambase", "splice", "titanic", "waveform_5000"),
)
ROWS = {"connect_4": 20_000, "covertype": 20_000}
"""As many as are taken of the largest."""
STRUCTURES: dict[str, Callable[[Counts], Any]] = {
    "NB": nb.learn,
    "TAN": tan.learn,
    "KDB-1": lambda c: kdb.learn(c, k=1),
}
LEAST_ROWS = {0: "all", MANY_ROWS: f"over {MANY_ROWS:,} rows"}
PEERS = {1.0: "plain L-BFGS, lambda 1", 0.0: "L-BFGS on weights as published, no penalty"}
MISSED = {
    1.0: "the preconditioners take longer than the passes that are left",
    0.0: "without a penalty the optimum often lies at infinity: a third fewer passes, and preconditioners on top",
}


@dataclass(frozen=True)
class Point:
    """Along a run: passes made, passes that preconditioners cost, the objective."""

    passes: float
    setup: float
    value: float


def problems() -> Iterator[tuple[str, str, Counts, Any]]:
    for name in SETS:
        counts = Counts(real(name, ROWS.get(name)))
        for word, learn in STRUCTURES.items():
            yield name, word, counts, learn(counts)


def pass_seconds(space: ParameterSpace) -> float:
    tables = space.coordinates.tables(np.random.default_rng(0).normal(0.0, 0.1, space.coordinates.n_parameters))
    seconds = []
    for _ in range(9):
        began = time.process_time()
        space.likelihood.value_and_gradient(tables)
        seconds.append(time.process_time() - began)
    return median(seconds)


class SetupClock:
    """CPU seconds spent on preconditioners."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        for name in ("start", "refresh"):
            patch.setattr(Whitening, name, self._timed(getattr(Whitening, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.process_time() - began

        return timed


def own_run(space: ParameterSpace, penalty: float, clock: SetupClock) -> list[Point]:
    """The product's default optimiser from zero."""
    points, one_pass = [], pass_seconds(space)
    clock.seconds = 0.0

    def watch(event: Event) -> None:
        if isinstance(event, Iteration):
            points.append(Point(event.gradient_evaluations, clock.seconds / one_pass, event.penalty - event.cll))

    optimize(space, OptimizerSettings("zero", penalty, 0.0, "newton", 1e-11, CAP, growth=Growth()), watch)
    return points


def peer_run(space: ParameterSpace, penalty: float, start: Array) -> list[Point]:
    from scipy.optimize import minimize

    points: list[Point] = []

    def f(p: Array) -> tuple[float, Array]:
        cll, gradient = space.likelihood.value_and_gradient(space.coordinates.tables(p))
        points.append(Point(len(points) + 1, 0.0, penalty / 2 * float(p @ p) - cll))
        return points[-1].value, penalty * p - space.coordinates.pull_back(p, gradient)

    options = {"maxcor": 10, "maxfun": CAP, "maxiter": CAP, "ftol": 1e-15, "gtol": 1e-10}
    minimize(f, start, jac=True, method="L-BFGS-B", options=options)
    return points


def arrival(points: list[Point], target: float) -> Point:
    return next((p for p in points if p.value <= target), Point(CAP, 0.0, math.inf))


@cache
def survey(penalty: float, clock: SetupClock) -> list[Line]:
    lines = []
    for name, word, counts, dag in problems():
        free = build_space_discriminative(counts, dag, smoothing=SMOOTHING)
        own = own_run(free, penalty, clock)
        if penalty > 0:
            peer = peer_run(free, penalty, np.zeros(free.coordinates.n_parameters))
        else:
            weights = build_space_weighted(counts, dag, smoothing=SMOOTHING, level=4)
            peer = peer_run(weights, 0.0, np.ones(weights.coordinates.n_parameters))
        best = min(p.value for p in (*own, *peer))
        separable = penalty == 0 and best < math.log(2)
        target = math.log(2) if separable else best * (1 + GAP)
        mine, theirs = arrival(own, target), arrival(peer, target)
        n_parameters = free.coordinates.n_parameters
        rows = counts.data.n_rows
        lines.append(Line(name, word, rows, n_parameters, penalty, mine.passes, mine.setup, theirs.passes))
    return lines


@pytest.fixture(scope="module")
def clock() -> Iterator[SetupClock]:
    with pytest.MonkeyPatch.context() as patch:
        yield SetupClock(patch)


@pytest.fixture(scope="module", autouse=True)
def keep(clock: SetupClock) -> Iterator[None]:
    yield
    if UPDATING:
        passes.write([line for penalty in PENALTIES for line in survey(penalty, clock)])


@pytest.mark.parametrize(("least", "name"), LEAST_ROWS.items())
@pytest.mark.parametrize(("penalty", "at_most"), [(1.0, 0.2), (0.0, 1 / 3)])
def test_total_against_lbfgs(
    penalty: float, at_most: float, least: int, name: str, clock: SetupClock, record: Recorder
) -> None:
    ratio, detail = passes.ratio(survey(penalty, clock), penalty, least)
    record(f"{PEERS[penalty]}, {name}", ratio, "x its passes", at_most, detail, missed=MISSED[penalty])


@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_every_problem_arrives(penalty: float, clock: SetupClock, record: Recorder) -> None:
    missing, n_problems, detail = passes.arrivals(survey(penalty, clock), penalty)
    record(f"lambda {penalty:g}: problems that do not arrive", missing, f"of {n_problems}", 0, detail)
