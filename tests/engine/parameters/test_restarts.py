"""Random starts: the better of two known optima is found, the best end is kept, and the usual start is one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters, Restarts
from bncli.engine.parameter_learners import em, extended
from bncli.engine.parameters.restarts import Starts, best_start, random_point
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Iteration, Note, SelectedRun, silent
from tests.datasets import dataset_of, random_dataset
from tests.incomplete_oracle import with_missing
from tests.spaces import how

HIDDEN = Dag(((), (0,)), (0,))
"""The class decides attribute 0, which is hardly ever seen, and that decides attribute 1."""


def hidden() -> Dataset:
    """20 rows a class that attribute 1 tells, 2 that it does not; 8 of next to no weight say that 0 tells nothing."""
    rows = [(2, int(y if right else 1 - y), y, 1.0) for y in (0, 1) for right in [True] * 20 + [False] * 2]
    rows += [(a, b, y, 1e-9) for a in (0, 1) for b in (0, 1) for y in (0, 1)]
    a, b, y, weights = np.array(rows).T
    data = dataset_of([a.astype(int), b.astype(int)], y.astype(int), (2, 2), 2, weights)
    return replace(data, schema=replace(data.schema, missing_policy="marginalize"))


ROWS = 44
TRIVIAL = ROWS * np.log(0.5)
"""CLL where attribute 1 tells nothing of the class: a plateau, on which the usual start lies."""
BEST = 40 * np.log(20 / 22) + 4 * np.log(2 / 22)
"""CLL where it tells all that it can."""


def conditionally(restarts: int, watch: Any = silent, **changes: Any) -> Parameters:
    settings = how(restarts=restarts, tolerance=1e-13, **changes)
    return extended.learn(Counts(hidden()), HIDDEN, smoothing="mle", settings=settings, watch=watch)


def jointly(restarts: int, watch: Any = silent) -> Parameters:
    return em.learn(
        Counts(hidden()),
        HIDDEN,
        smoothing="mle",
        tolerance=1e-13,
        max_iterations=2000,
        starts=Starts(restarts),
        watch=watch,
    )


@pytest.mark.parametrize(("learn", "of_class"), [(conditionally, 0.0), (jointly, ROWS * np.log(0.5))])
def test_of_two_known_ends_the_better_one_is_found(learn: Any, of_class: float) -> None:
    """`jointly` the labels, both as frequent, and the attribute count together: of_class nats more."""
    usual, tried = learn(0), learn(5)
    assert usual.cll == pytest.approx(TRIVIAL, abs=1e-6)
    assert tried.cll == pytest.approx(BEST, abs=1e-4)
    assert tried.restarts is not None
    assert tried.restarts.objectives[0] == pytest.approx(TRIVIAL + of_class, abs=1e-6)
    assert max(tried.restarts.objectives) == pytest.approx(BEST + of_class, abs=1e-4)
    assert max(tried.restarts.objectives) - min(tried.restarts.objectives) >= BEST - TRIVIAL - 1e-4
    assert usual.restarts is None


def test_the_watch_hears_every_run_then_which_is_kept_and_one_note() -> None:
    events: list[Event] = []
    learnt = conditionally(2, watch=events.append)
    assert learnt.restarts is not None
    runs: list[list[Iteration]] = [[]]
    for event in events:
        if isinstance(event, Iteration):
            runs = [*runs, []] if event.iteration == 0 and runs[-1] else runs
            runs[-1].append(event)
    assert len(runs) == 3
    kept = runs[learnt.restarts.best_start]
    assert (kept[-1].iteration, kept[-1].cll, kept[0].cll) == (learnt.iterations, learnt.cll, learnt.cll_start)
    assert [event for event in events if isinstance(event, SelectedRun)] == [SelectedRun(learnt.restarts.best_start)]
    (note,) = (event.text for event in events if isinstance(event, Note))
    assert note.startswith("the usual start and 2 random ones have objectives from -30.49848 to ")


def test_more_starts_do_not_change_those_before_them_and_seeds_do() -> None:
    two, five = conditionally(2).restarts, conditionally(5).restarts
    other = conditionally(2, seed=1).restarts
    assert two is not None
    assert five is not None
    assert other is not None
    assert five.objectives[:3] == two.objectives
    assert other.objectives[0] == two.objectives[0]
    assert other.objectives[1:] != two.objectives[1:]


def test_every_distribution_is_drawn_uniformly() -> None:
    """Of three values the first has the mean 1/3 and the variance 1/18 of Dirichlet(1, 1, 1)."""
    beta = random_point(30_000, seed=4, start=2).reshape(-1, 3)
    first = np.exp(beta[:, 0]) / np.exp(beta).sum(axis=1)
    assert first.mean() == pytest.approx(1 / 3, abs=0.01)
    assert first.var() == pytest.approx(1 / 18, abs=0.003)


@pytest.mark.parametrize(
    ("ends", "kept"), [((1.0, 1.0), 0), ((1.0, 2.0, 2.0), 1), ((3.0, 2.0), 0), ((-np.inf, -5.0), 1)]
)
def test_the_first_of_equals_is_kept(ends: tuple[float, ...], kept: int) -> None:
    learnt = conditionally(0, max_iterations=0)
    best = best_start(lambda start: (ends[start], replace(learnt, iterations=start)), len(ends) - 1, silent)
    assert (best.iterations, best.restarts) == (kept, Restarts(ends))
    assert best.restarts is not None
    assert best.restarts.best_start == kept


def test_with_early_stopping_rows_held_out_decide() -> None:
    data = with_missing(random_dataset(60, (3, 2), 2, seed=5), 0.2)
    fitted = [
        extended.learn(
            Counts(data),
            Dag(((), (0,)), (0, 1)),
            smoothing="m-estimate:1",
            settings=how(restarts=n, early_stop="cv", seed=3, max_iterations=30),
        )
        for n in (0, 3)
    ]
    alone, tried = fitted
    assert tried.restarts is not None
    assert tried.restarts.held_out
    assert tried.restarts.best_start == 0
    assert tried.cll == alone.cll


@pytest.mark.parametrize(
    ("objectives", "kept"),
    [((-10.0, -10.0 + 1e-12), 0), ((-10.0, -9.9, -9.9 + 1e-12), 1), ((-10.0, -11.0), 0), ((0.0, -1.0), 0)],
)
def test_what_differs_by_rounding_alone_is_one_end(objectives: tuple[float, ...], kept: int) -> None:
    assert Restarts(objectives).best_start == kept
