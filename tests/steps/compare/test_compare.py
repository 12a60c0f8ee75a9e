"""The command: checks before the work, its report and its files; running a plan, gaps, and resuming."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.steps.compare import compare as module
from bncli.steps.compare.analysis import CompareReport
from bncli.steps.compare.compare import (
    Checkpoint,
    CompareOutputs,
    ComparisonSettings,
    Results,
    compare,
    run_here,
    run_plan,
)
from bncli.steps.compare.trials import ComparisonResults, DataSet, Failure, Outcome, Runner, RunPlan, Task
from bncli.steps.evaluate.evaluate import evaluate
from bncli.watch import Event, Note, Progress, Run, Stage, Watch, silent
from tests.steps.compare.tables import IMPROBABLE, NB, TAN, planned, write_table


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    return [write_table(tmp_path / f"{name}.csv", 40 + 6 * seed, seed) for seed, name in enumerate("abc")]


def test_the_figures_are_those_of_evaluate(sources: list[Source]) -> None:
    report = compare(
        sources, [NB, TAN], Protocol(4, 2, 7), settings=ComparisonSettings(metrics=["rmse", "auc", "rmse"])
    )
    assert report.metrics[:2] == ("rmse", "auc")
    for source, data in zip(sources, "abc", strict=True):
        for learner in (NB, TAN):
            alone = evaluate(source, learner.recipe, Protocol(4, 2, 7))
            for metric in ("rmse", "auc"):
                figure = report.metric_mean(data, learner.name, metric)
                assert figure is not None
                assert alone.std is not None
                assert (figure.mean, figure.std) == pytest.approx((alone.metrics[metric], alone.std[metric]))


def test_all_outputs(sources: list[Source], tmp_path: Path) -> None:
    paths = {name: str(tmp_path / f"out.{name}") for name in ("csv", "latex", "diagram", "scatter")}
    report = compare(sources, [NB, TAN], Protocol(2, 1, 0), outputs=CompareOutputs(**paths))
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 * 2
    assert all((tmp_path / f"out.{name}").stat().st_size for name in paths)
    values = json.loads(json.dumps(report.as_json()))
    assert values["protocol"] == {"folds": 2, "repeats": 1, "seed": 0}
    assert [one["name"] for one in values["data"]] == ["a", "b", "c"]
    folds = [fold["error"] for fold in values["folds"] if (fold["data"], fold["learner"]) == ("a", "nb")]
    assert values["data"][0]["results"][0]["error"]["mean"] == pytest.approx(fmean(folds))


def test_it_is_shown_before_it_is_written(sources: list[Source], tmp_path: Path) -> None:
    """The diagram cannot be drawn: only one learner has figures."""
    shown: list[CompareReport] = []
    path = tmp_path / "d.svg"
    with pytest.raises(BncliError, match="average ranks"):
        compare(
            sources[:2],
            [NB, IMPROBABLE],
            Protocol(2, 1, 0),
            outputs=CompareOutputs(diagram=str(path), show=shown.append),
        )
    assert len(shown) == 1
    assert not path.exists()


def test_gaps_are_in_the_report(sources: list[Source]) -> None:
    report = compare(sources, [NB, IMPROBABLE, TAN], Protocol(2, 1, 0))
    assert set(report.gaps) == {(data, "improbable") for data in "abc"}
    assert set(report.means) == {(data, learner) for data in "abc" for learner in ("nb", "tan")}
    nothing = compare(sources, [IMPROBABLE], Protocol(2, 1, 0))
    assert nothing.means == {}
    assert len(nothing.gaps) == 3


@pytest.mark.slow
def test_a_run_goes_on_with_processes(sources: list[Source], tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    first = compare(sources, [NB, TAN], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * 2 * 3
    path.write_text("".join(lines[:-5]) + lines[-5][:9])
    again = compare(sources, [NB, TAN], Protocol(3, 1, 0), run=Run(2), outputs=CompareOutputs(resume=str(path)))
    assert again.means == first.means
    assert len(path.read_text().splitlines()) == len(lines)
    with pytest.raises(BncliError, match="a run with different learners"):
        compare(sources, [TAN, NB], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))
    Path(sources[1].paths[0]).write_text(Path(sources[1].paths[0]).read_text().replace(",a,", ",b,", 1))
    with pytest.raises(BncliError, match="a run with different data"):
        compare(sources, [NB, TAN], Protocol(3, 1, 0), outputs=CompareOutputs(resume=str(path)))


def test_wrong_words_are_found_before_a_table_is_read(
    sources: list[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(module, "read_data_sets", never)
    here = str(tmp_path)
    with pytest.raises(UsageError, match="no metric 'logloss'; did you mean log-loss"):
        compare(sources, [NB], settings=ComparisonSettings(metrics=["error", "logloss"]))
    with pytest.raises(UsageError, match="no learner 'tam'; did you mean tan"):
        compare(sources, [NB, TAN], settings=ComparisonSettings(baseline="tam"))
    with pytest.raises(UsageError, match="two learners are called 'nb'"):
        compare(sources, [NB, NB])
    with pytest.raises(UsageError, match="every process would write the file"):
        compare([Source(sources[0].paths, on_bad_row="bad.csv")], [NB])
    with pytest.raises(BncliError, match="there is no folder"):
        compare(sources, [NB], outputs=CompareOutputs(latex=f"{here}/no/x.tex"))
    with pytest.raises(UsageError, match=r"the input .* is the same file"):
        compare(sources, [NB, TAN], outputs=CompareOutputs(resume=sources[2].paths[0]))
    with pytest.raises(UsageError, match=r"the output .* is the same file"):
        compare(sources, [NB, TAN], outputs=CompareOutputs(csv=f"{here}/x", resume=f"{here}/x"))
    with pytest.raises(UsageError, match="--diagram"):
        compare(sources[:1], [NB, TAN], outputs=CompareOutputs(diagram=f"{here}/x.svg"))


def test_what_the_watch_hears(sources: list[Source]) -> None:
    heard: list[Event] = []
    compare(sources[:1], [NB], Protocol(2, 1, 0), run=Run(watch=heard.append))
    assert [event.name for event in heard if isinstance(event, Stage)] == ["read", "run", "analyse"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunPlan, tuple[DataSet, ...]]:
    """The second data set is the larger one."""
    folder = tmp_path_factory.mktemp("plan")
    sources = [write_table(folder / f"{name}.csv", n, n) for name, n in (("small", 30), ("large", 60))]
    return planned(sources, protocol=Protocol(3, 2, 5))


@pytest.fixture(scope="module")
def in_one_process(plan: tuple[RunPlan, tuple[DataSet, ...]]) -> ComparisonResults:
    """What this process finds by itself."""
    return run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=1), watch=silent)


def untimed(trial: ComparisonResults) -> list[tuple[object, ...]]:
    return [(o.data, o.learner, o.repeat, o.fold, o.rows, o.metrics, o.predicted.tolist()) for o in trial.outcomes]


def test_everything_is_there_once_and_in_order(plan: tuple[RunPlan, tuple[DataSet, ...]]) -> None:
    heard: list[Event] = []
    trial = run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=1), watch=heard.append)
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


def test_the_number_of_processes_changes_nothing(
    plan: tuple[RunPlan, tuple[DataSet, ...]], in_one_process: ComparisonResults
) -> None:
    together = run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=2), watch=silent)
    assert untimed(in_one_process) == untimed(together)
    assert in_one_process.bias_variance == together.bias_variance


def test_bias_and_variance_by_hand(
    plan: tuple[RunPlan, tuple[DataSet, ...]], in_one_process: ComparisonResults
) -> None:
    assert set(in_one_process.bias_variance) == {
        (data, learner) for data in in_one_process.data for learner in in_one_process.learners
    }
    for entry in plan[1]:
        votes = np.zeros((entry.n_rows, entry.n_labels))
        for outcome in in_one_process.outcomes:
            if (outcome.data, outcome.learner) == (entry.name, "tan"):
                fold_of = stratified_folds(entry.labels, 3, (5, outcome.repeat))
                rows = np.flatnonzero(fold_of == outcome.fold)
                votes[rows, outcome.predicted] += 0.5
        truth = np.eye(entry.n_labels)[entry.labels]
        found = in_one_process.bias_variance[entry.name, "tan"]
        assert found.bias == pytest.approx(0.5 * np.mean(np.sum((truth - votes) ** 2, axis=1)))
        assert found.variance == pytest.approx(0.5 * np.mean(1 - np.sum(votes**2, axis=1)))


def test_one_repeat_has_no_bias_and_variance(tmp_path: Path) -> None:
    plan = planned([write_table(tmp_path / "a.csv", 30, 0)])
    assert run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=1), watch=silent).bias_variance == {}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_learner_that_fails_leaves_a_gap(tmp_path: Path, jobs: int) -> None:
    plan = planned([write_table(tmp_path / f"{name}.csv", 30, 0) for name in "ab"], (NB, IMPROBABLE), Protocol(3, 2, 0))
    trial = run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=jobs), watch=silent)
    assert [(gap.data, gap.learner) for gap in trial.gaps] == [("a", "improbable"), ("b", "improbable")]
    assert all("cannot be marginalized" in gap.reason for gap in trial.gaps)
    assert {outcome.learner for outcome in trial.outcomes} == {"nb"}
    assert len(trial.outcomes) == 12
    assert set(trial.bias_variance) == {("a", "nb"), ("b", "nb")}


def test_a_gap_has_no_outcomes_and_the_reason_of_its_first_fold(plan: tuple[RunPlan, tuple[DataSet, ...]]) -> None:
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
    path: str, plan: tuple[RunPlan, tuple[DataSet, ...]], jobs: int = 1, watch: Watch = silent
) -> ComparisonResults:
    with closing(Checkpoint(path, *plan)) as checkpoint:
        return run_plan(*plan, checkpoint, pool=partial(run_here, jobs=jobs), watch=watch)


def test_what_was_found_is_not_done_again(
    plan: tuple[RunPlan, tuple[DataSet, ...]],
    in_one_process: ComparisonResults,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
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
    assert heard[-1] == Note(f"7 of 24 folds are stored in {path}; repeat the command to continue from there")
    again: list[Task] = []
    monkeypatch.setattr(Runner, "run", lambda self, task: (again.append(task), run_task(self, task))[1])
    heard.clear()
    resumed = resumable(path, plan, watch=heard.append)
    assert heard[0] == Note(f"7 of 24 folds were read from {path}")
    assert (len(again), set(again) & set(done)) == (17, set())
    assert untimed(resumed) == untimed(in_one_process)
    again.clear()
    assert untimed(resumable(path, plan, jobs=4)) == untimed(resumed)
    assert again == []


def test_without_a_file_nothing_is_said_to_be_kept(
    plan: tuple[RunPlan, tuple[DataSet, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Runner, task: Task) -> Outcome | Failure:
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", interrupted)
    heard: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        run_plan(*plan, Checkpoint(None, *plan), pool=partial(run_here, jobs=1), watch=heard.append)
    assert not any(isinstance(event, Note) for event in heard)


def test_learners_are_known_by_name_in_the_outcomes(plan: tuple[RunPlan, tuple[DataSet, ...]]) -> None:
    renamed = replace(plan[0], learners=(replace(NB, name="ours"), TAN))
    trial = run_plan(renamed, plan[1], Checkpoint(None, renamed, plan[1]), pool=partial(run_here, jobs=1), watch=silent)
    assert [outcome.learner for outcome in trial.outcomes[:7]] == ["ours"] * 6 + ["tan"]
