"""A run: everything once, in order, whoever does it; gaps; bias and variance; what is kept when it is interrupted."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.steps.compare.checkpoint import Checkpoint
from bncli.steps.compare.compare import Results, here, run_plan
from bncli.steps.compare.entries import ComparisonRun, Entry, Outcome
from bncli.steps.compare.runner import Failure, Runner, RunPlan, Task
from bncli.watch import Event, Note, Progress, Stage, Watch, silent
from tests.steps.compare.tables import IMPROBABLE, NB, TAN, planned, write_table


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunPlan, tuple[Entry, ...]]:
    """The second data set is the larger one."""
    folder = tmp_path_factory.mktemp("plan")
    sources = [write_table(folder / f"{name}.csv", n, n) for name, n in (("small", 30), ("large", 60))]
    return planned(sources, protocol=Protocol(3, 2, 5))


@pytest.fixture(scope="module")
def alone(plan: tuple[RunPlan, tuple[Entry, ...]]) -> ComparisonRun:
    """What this process finds by itself."""
    return run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=1), watch=silent)


def untimed(trial: ComparisonRun) -> list[tuple[object, ...]]:
    return [(o.data, o.learner, o.repeat, o.fold, o.rows, o.metrics, o.predicted.tolist()) for o in trial.outcomes]


def test_everything_is_there_once_and_in_order(plan: tuple[RunPlan, tuple[Entry, ...]]) -> None:
    heard: list[Event] = []
    trial = run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=1), watch=heard.append)
    expected = [
        (data, learner, repeat, fold)
        for data in ("small", "large")
        for learner in ("nb", "tan")
        for repeat in range(2)
        for fold in range(3)
    ]
    assert [(o.data, o.learner, o.repeat, o.fold) for o in trial.outcomes] == expected
    assert (trial.learners, trial.data, trial.sizes) == (("nb", "tan"), ("small", "large"), {"small": 30, "large": 60})
    assert trial.options == {"nb": "--structure nb --param map", "tan": "--param map"}
    assert trial.gaps == ()
    assert heard[:2] == [Stage("run"), Progress(0, 24)]
    assert [event.done for event in heard if isinstance(event, Progress)] == list(range(25))
    assert heard[2] == Progress(1, 24, "nb on large, fold 1")


def test_the_number_of_processes_changes_nothing(plan: tuple[RunPlan, tuple[Entry, ...]], alone: ComparisonRun) -> None:
    together = run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=2), watch=silent)
    assert untimed(alone) == untimed(together)
    assert alone.bias_variance == together.bias_variance


def test_bias_and_variance_by_hand(plan: tuple[RunPlan, tuple[Entry, ...]], alone: ComparisonRun) -> None:
    assert set(alone.bias_variance) == {(data, learner) for data in alone.data for learner in alone.learners}
    for entry in plan[1]:
        votes = np.zeros((entry.n_rows, entry.n_labels))
        for outcome in alone.outcomes:
            if (outcome.data, outcome.learner) == (entry.name, "tan"):
                fold_of = stratified_folds(entry.labels, 3, (5, outcome.repeat))
                rows = np.flatnonzero(fold_of == outcome.fold)
                votes[rows, outcome.predicted] += 0.5
        truth = np.eye(entry.n_labels)[entry.labels]
        found = alone.bias_variance[entry.name, "tan"]
        assert found.bias == pytest.approx(0.5 * np.mean(np.sum((truth - votes) ** 2, axis=1)))
        assert found.variance == pytest.approx(0.5 * np.mean(1 - np.sum(votes**2, axis=1)))


def test_one_repeat_has_no_bias_and_variance(tmp_path: Path) -> None:
    plan = planned([write_table(tmp_path / "a.csv", 30, 0)])
    assert run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=1), watch=silent).bias_variance == {}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_learner_that_fails_leaves_a_gap(tmp_path: Path, jobs: int) -> None:
    plan = planned([write_table(tmp_path / f"{name}.csv", 30, 0) for name in "ab"], (NB, IMPROBABLE), Protocol(3, 2, 0))
    trial = run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=jobs), watch=silent)
    assert [(gap.data, gap.learner) for gap in trial.gaps] == [("a", "improbable"), ("b", "improbable")]
    assert all("cannot be marginalized" in gap.reason for gap in trial.gaps)
    assert {outcome.learner for outcome in trial.outcomes} == {"nb"}
    assert len(trial.outcomes) == 12
    assert set(trial.bias_variance) == {("a", "nb"), ("b", "nb")}


def test_a_gap_has_no_outcomes_and_the_reason_of_its_first_fold(plan: tuple[RunPlan, tuple[Entry, ...]]) -> None:
    """Folds that come back in disorder: two fail, one before them is well."""
    runner = Runner(plan[0])

    def in_disorder(*_: object) -> Results:
        tan = [Task(0, 1, 0, fold) for fold in range(3)]
        bad = [(tan[2], Failure("later")), (tan[1], Failure("sooner"))]
        yield from [*bad, (tan[0], runner.run(tan[0])), (Task(0, 0, 0, 0), runner.run(Task(0, 0, 0, 0)))]

    one_repeat = replace(plan[0], protocol=Protocol(3, 1, 5))
    trial = run_plan(one_repeat, plan[1], Checkpoint(None, one_repeat, plan[1]), pool=in_disorder, watch=silent)
    assert [(gap.data, gap.learner, gap.reason) for gap in trial.gaps] == [("small", "tan", "sooner")]
    assert [(outcome.learner, outcome.fold) for outcome in trial.outcomes] == [("nb", 0)]


def resumable(
    path: str, plan: tuple[RunPlan, tuple[Entry, ...]], jobs: int = 1, watch: Watch = silent
) -> ComparisonRun:
    with closing(Checkpoint(path, *plan)) as checkpoint:
        return run_plan(*plan, checkpoint, pool=partial(here, jobs=jobs), watch=watch)


def test_what_was_found_is_not_done_again(
    plan: tuple[RunPlan, tuple[Entry, ...]], alone: ComparisonRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "kept.jsonl")
    done: list[Task] = []
    run_task = Runner.run

    def interrupted(self: Runner, task: Task) -> Outcome | Failure:
        if len(done) == 7:
            raise KeyboardInterrupt
        done.append(task)
        return run_task(self, task)

    monkeypatch.setattr(Runner, "run", interrupted)
    heard: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        resumable(path, plan, watch=heard.append)
    assert heard[-1] == Note(f"7 of 24 folds are kept in {path}; the same command goes on from there")
    again: list[Task] = []
    monkeypatch.setattr(Runner, "run", lambda self, task: (again.append(task), run_task(self, task))[1])
    heard.clear()
    resumed = resumable(path, plan, watch=heard.append)
    assert heard[0] == Note(f"7 of 24 folds are taken from {path}")
    assert (len(again), set(again) & set(done)) == (17, set())
    assert untimed(resumed) == untimed(alone)
    again.clear()
    assert untimed(resumable(path, plan, jobs=4)) == untimed(resumed)
    assert again == []


def test_without_a_file_nothing_is_said_to_be_kept(
    plan: tuple[RunPlan, tuple[Entry, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Runner, task: Task) -> Outcome | Failure:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", interrupted)
    heard: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        run_plan(*plan, Checkpoint(None, *plan), pool=partial(here, jobs=1), watch=heard.append)
    assert not any(isinstance(event, Note) for event in heard)


def test_learners_are_known_by_name_in_the_outcomes(plan: tuple[RunPlan, tuple[Entry, ...]]) -> None:
    renamed = replace(plan[0], learners=(replace(NB, name="ours"), TAN))
    trial = run_plan(renamed, plan[1], Checkpoint(None, renamed, plan[1]), pool=partial(here, jobs=1), watch=silent)
    assert [outcome.learner for outcome in trial.outcomes[:7]] == ["ours"] * 6 + ["tan"]
