"""A task of work gives what `bncli evaluate` gives for that fold, and fails in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import Protocol, predict
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.learn import learn
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.compare import runner as module
from bncli.steps.compare.entries import Learner, Outcome
from bncli.steps.compare.runner import Failure, Runner, Task
from bncli.steps.evaluate.evaluate import evaluate
from bncli.steps.supplied_files import read_supplied
from bncli.watch import Event, Iteration, Run
from tests.steps.compare.tables import IMPROBABLE, NB, planned, write_table


def test_the_figures_are_those_of_evaluate(tmp_path: Path) -> None:
    sources = [write_table(tmp_path / f"{name}.csv", 40, seed) for seed, name in enumerate("ab")]
    weighted = Learner("weighted", Recipe.of(penalty=1.0))
    plan, _ = planned(sources, (NB, weighted), Protocol(2, 2, 3))
    runner = Runner(plan)
    for data, learner in ((0, 0), (1, 0), (0, 1)):
        report = evaluate(sources[data], plan.learners[learner].recipe, Protocol(2, 2, 3))
        assert report.folds is not None
        for fold in report.folds[::3]:
            outcome = runner.run(Task(data, learner, fold.repeat, fold.fold))
            assert isinstance(outcome, Outcome)
            assert outcome.metrics == fold.metrics
            assert tuple(outcome.metrics) == METRICS
            assert (outcome.data, outcome.learner) == ("ab"[data], plan.learners[learner].name)
            assert (outcome.repeat, outcome.fold, outcome.rows) == (fold.repeat, fold.fold, fold.rows)
            assert set(outcome.seconds) == {"fit", "score"}
            assert min(outcome.seconds.values()) > 0
            assert outcome.costs == {"iterations": None, "passes": None} or learner == 1


def test_costs_are_those_of_the_fit_of_a_fold(tmp_path: Path) -> None:
    source = write_table(tmp_path / "a.csv", 60, 0)
    newton = Recipe.of(penalty=1e-6, tolerance=0.0, max_iterations=120)
    stopped = Recipe.of(param="extended", early_stop="cv", optimizer="cg", structure="nb")
    recipes = (NB.recipe, newton, Recipe.of(structure="auto"), stopped)
    plan, (entry,) = planned([source], tuple(Learner(str(i), recipe) for i, recipe in enumerate(recipes)))
    columns = read_columns(source)
    others = np.flatnonzero(stratified_folds(entry.labels, 3, (0, 0)) != 1)
    for i, recipe in enumerate(recipes):
        outcome = Runner(plan).run(Task(0, i, 0, 1))
        assert isinstance(outcome, Outcome), outcome
        events: list[Event] = []
        fitted = learn(columns.take(others), recipe, run=Run(watch=events.append)).parameters
        if i == 0:
            assert outcome.costs == {"iterations": None, "passes": None}
        else:
            assert outcome.costs == {"iterations": fitted.iterations, "passes": fitted.passes}
        if i in (1, 3):
            told = [event for event in events if isinstance(event, Iteration)]
            assert outcome.costs["iterations"] == told[-1].iteration
            assert (outcome.costs["passes"] or 0) >= max(told[-1].cll_evaluations, told[-1].gradient_evaluations)


def test_seconds_are_those_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = planned([write_table(tmp_path / "a.csv", 30, 0)])
    turned = iter([10.0, 10.0, 12.5, 13.0, 13.0])
    monkeypatch.setattr(module.time, "thread_time", lambda: next(turned))
    outcome = Runner(plan).run(Task(0, 0, 0, 0))
    assert isinstance(outcome, Outcome)
    assert outcome.seconds == {"fit": 2.5, "score": 0.5}


def test_loading_the_code_of_a_learner_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fold is learnt twice where it is quick, and the others once."""
    plan, _ = planned([write_table(tmp_path / "a.csv", 30, 0)])
    turned = iter([0.0, 0.0, 0.5, 0.6, 0.6, 1.0, 1.0, 1.25, 1.5, 1.5, 2.0, 2.0, 2.125, 2.25, 2.25])
    monkeypatch.setattr(module.time, "thread_time", lambda: next(turned))
    runner = Runner(plan)
    outcomes = [runner.run(Task(0, 0, 0, fold)) for fold in (0, 1)]
    assert [one.seconds["fit"] for one in outcomes if isinstance(one, Outcome)] == [0.25, 0.125]
    assert next(turned, None) is None


def test_predictions_are_in_the_order_of_rows(tmp_path: Path) -> None:
    source = write_table(tmp_path / "a.csv", 30, 0)
    plan, (entry,) = planned([source])
    outcome = Runner(plan).run(Task(0, 0, 0, 1))
    columns = read_columns(source)
    rows = np.flatnonzero(stratified_folds(entry.labels, 3, (0, 0)) == 1)
    model = learn(columns.take(np.setdiff1d(np.arange(30), rows)), NB.recipe).model
    assert isinstance(outcome, Outcome)
    assert outcome.predicted.dtype == np.uint8
    assert outcome.predicted.tolist() == predict(model, columns.take(rows)).argmax(axis=0).tolist()


def test_files_stand_in_for_what_would_be_learnt(tmp_path: Path) -> None:
    source = write_table(tmp_path / "a.csv", 40, 0)
    cuts, structure = tmp_path / "cuts.json", tmp_path / "structure.json"
    attributes = [{"name": "number", "type": "numeric", "cuts": [1.0]}]
    cuts.write_text(json.dumps({"format": "bncli-cuts", "version": 1, "class": "class", "attributes": attributes}))
    graph = {"format": "bncli-structure", "version": 1, "class": "class", "parents": {"number": ["class"]}}
    structure.write_text(json.dumps(graph))
    bound = Learner("bound", NB.recipe, supplied=read_supplied(str(cuts), str(structure)))
    report = evaluate(source, NB.recipe, Protocol(3), supplied=read_supplied(str(cuts), str(structure)))
    plan, _ = planned([source], (NB, bound))
    runner = Runner(plan)
    assert isinstance(runner.run(Task(0, 0, 0, 0)), Outcome)
    outcome = runner.run(Task(0, 1, 0, 0))
    assert isinstance(outcome, Outcome)
    assert report.folds is not None
    assert outcome.metrics == report.folds[0].metrics


def test_what_fails_gives_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = planned([write_table(tmp_path / "a.csv", 30, 0)], (IMPROBABLE,))
    failure = Runner(plan).run(Task(0, 0, 0, 0))
    assert isinstance(failure, Failure)
    assert "cannot be marginalized" in failure.reason
    for error, reason in ((MemoryError(), "not enough memory"), (ZeroDivisionError("x"), "ZeroDivisionError: x")):

        def broken(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(module, "hold_out", broken)
        failure = Runner(plan).run(Task(0, 0, 0, 0))
        assert isinstance(failure, Failure)
        assert reason in failure.reason


def test_a_data_set_is_read_once_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = planned([write_table(tmp_path / f"{name}.csv", 30, 0) for name in "ab"])
    reads = []
    monkeypatch.setattr(module, "read_columns", lambda source, **given: (reads.append(source), read_columns(source))[1])
    runner = Runner(plan)
    for data, learner, fold in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 1), (0, 0, 2)):
        assert isinstance(runner.run(Task(data, learner, 0, fold)), Outcome)
    assert [Path(source.paths[0]).name for source in reads] == ["a.csv", "b.csv", "a.csv"]
