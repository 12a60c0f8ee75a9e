"""Data sets, learners and single tasks: names, digests, groups by rows, what is refused, and what a task returns."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import Protocol, predict
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.learn import learn
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.compare import trials as module
from bncli.steps.compare.trials import (
    DataSet,
    Failure,
    Learner,
    Outcome,
    Runner,
    Task,
    check_names,
    group_by_rows,
    read_data_sets,
)
from bncli.steps.evaluate.evaluate import evaluate
from bncli.steps.learning_inputs import read_supplied
from bncli.watch import Event, Iteration, Note, Progress, Run, Stage, silent
from tests.steps.compare.tables import IMPROBABLE, NB, TAN, planned, write_table


def data_sets_of(*sources: Source, folds: int = 3) -> tuple[DataSet, ...]:
    return read_data_sets(sources, Protocol(folds, 1, 0), threads=1, watch=silent)


def test_what_is_known_of_a_data_set(tmp_path: Path) -> None:
    source = write_table(tmp_path / "some.data.csv", 30, 0)
    (data_set,) = data_sets_of(source)
    truth = [line.split(",")[2] for line in (tmp_path / "some.data.csv").read_text().splitlines()[1:]]
    assert ["xyz"[code] for code in data_set.labels] == truth
    assert (data_set.name, data_set.n_rows, data_set.n_labels, data_set.cells, data_set.weights) == (
        "some",
        30,
        3,
        60,
        None,
    )
    assert data_set.source.class_name == "class"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x.csv", "b/y.csv"], ["x", "y"]),
        (["a/x.csv", "b/x.csv", "b/y.csv"], ["a/x", "b/x", "y"]),
        (["a/b/x.csv", "c/b/x.csv"], ["a/b/x", "c/b/x"]),
        (["v1.2.csv", "v1.3.csv"], ["v1.2", "v1.3"]),
    ],
)
def test_names_are_as_short_as_they_can_be(tmp_path: Path, paths: list[str], names: list[str]) -> None:
    for seed, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        write_table(tmp_path / path, 12, seed)
    assert [data_set.name for data_set in data_sets_of(*(Source((str(tmp_path / path),)) for path in paths))] == names


def test_where_no_part_of_the_path_tells_files_apart_they_are_called_by_it(tmp_path: Path) -> None:
    sources = [write_table(tmp_path / name, 12, 0) for name in ("x.csv", "x.txt")]
    assert [data_set.name for data_set in data_sets_of(*sources)] == [source.paths[0] for source in sources]


def test_the_digest_is_that_of_the_values(tmp_path: Path) -> None:
    one, same, other = (
        write_table(tmp_path / f"{name}.csv", 20, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    first, second, third = (data_set.digest for data_set in data_sets_of(one, same, other))
    assert first == second != third
    ignoring = Source(one.paths, ignore=("word",))
    weighing = Source(one.paths, weights="number", drop_unlabelled=True)
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "w.csv").write_text(text.replace("-", ""))
    assert data_sets_of(ignoring)[0].digest != first
    assert (
        data_sets_of(Source((str(tmp_path / "w.csv"),)))[0].digest
        != data_sets_of(Source((str(tmp_path / "w.csv"),), weights=weighing.weights))[0].digest
    )


def test_what_cannot_be_read_twice_or_at_all_is_refused(tmp_path: Path) -> None:
    good = write_table(tmp_path / "good.csv", 12, 0)
    with pytest.raises(UsageError, match="the standard input can be read only once"):
        data_sets_of(good, Source(("-",)))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe can be read only once"):
        data_sets_of(good, Source((str(tmp_path / "pipe"),)))
    with pytest.raises(UsageError, match="the same data set is given twice"):
        data_sets_of(good, good)
    with pytest.raises(BncliError, match=r"no such file, .*god\.csv; did you mean .*good\.csv"):
        data_sets_of(good, Source((str(tmp_path / "god.csv"),)))
    with pytest.raises(BncliError, match=r"13 folds need at least 13 rows, but the table has only 12, .*good\.csv"):
        data_sets_of(good, folds=13)
    assert len(data_sets_of(good, folds=12)) == 1  # more folds than rows of a class are no error


def test_notes_name_their_data_set_where_there_are_several(tmp_path: Path) -> None:
    first, second = (write_table(tmp_path / f"{name}.csv", 12, 0) for name in "ab")
    (tmp_path / "a.csv").write_text("code,class\n" + "".join(f"{i % 4},{'xy'[i % 2]}\n" for i in range(20)))
    heard: list[Event] = []
    read_data_sets([first, second], Protocol(2, 1, 0), threads=1, watch=heard.append)
    (note,) = [event for event in heard if isinstance(event, Note)]
    assert note.text.startswith("a: ")
    assert "code" in note.text
    assert [event for event in heard if not isinstance(event, Note)] == [
        Stage("read"),
        Progress(0, 2, "a"),
        Progress(1, 2, "b"),
        Progress(2, 2),
    ]
    heard.clear()
    read_data_sets([first], Protocol(2, 1, 0), threads=1, watch=heard.append)
    (note,) = [event for event in heard if isinstance(event, Note)]
    assert not note.text.startswith("a: ")


def test_a_warning_about_one_of_several_stays_a_warning(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("a,price\n" + "".join(f"{i % 5},{i % 90 / 2}\n" for i in range(270)))
    sources = [write_table(tmp_path / "a.csv", 30, 0), Source((str(tmp_path / "b.csv"),))]
    heard: list[Event] = []
    read_data_sets(sources, Protocol(3, 1, 0), threads=1, watch=heard.append)
    (text,) = (event.text for event in heard if isinstance(event, Note) and event.warning)
    assert text.startswith("b: the class 'price' looks like a numeric variable, not a class: ")


SIZES = {"iris": 150, "wine": 178, "adult": 48_842, "letter": 20_000, "car": 1_728}


def test_groups_by_rows() -> None:
    assert group_by_rows([], SIZES) == {}
    assert group_by_rows([20_000], SIZES) == {
        "rows<20000": ("iris", "wine", "car"),
        "rows>=20000": ("adult", "letter"),
    }
    assert group_by_rows([178, 1_000], {**SIZES, "rice": 500}) == {
        "rows<178": ("iris",),
        "178<=rows<1000": ("wine", "rice"),
        "rows>=1000": ("adult", "letter", "car"),
    }


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4, unique=True), st.lists(st.integers(0, 60), max_size=12))
def test_every_data_set_is_in_exactly_one_group(bounds: list[int], rows: list[int]) -> None:
    bounds = sorted(bounds)
    sizes = {f"t{i}": n for i, n in enumerate(rows)}
    try:
        groups = group_by_rows(bounds, sizes)
    except UsageError:
        edges = [0, *bounds, 10**9]
        filled = {sum(n >= bound for bound in bounds) for n in rows}
        assert filled != set(range(len(edges) - 1))
        return
    found = [data for tables in groups.values() for data in tables]
    assert sorted(found) == sorted(sizes)
    for number, tables in enumerate(groups.values()):
        assert {sum(sizes[data] >= bound for bound in bounds) for data in tables} == {number}


@pytest.mark.parametrize(
    ("bounds", "sizes", "fault"),
    [
        (
            [100],
            SIZES,
            r"no table has fewer than 100 rows: the numbers of rows are 150 \(iris\) to 48,842 \(adult\); change the",
        ),
        ([100_000], SIZES, r"no table has 100,000 rows or more: the numbers of rows are"),
        ([160, 170, 2_000], SIZES, r"no table has 160 rows or more and fewer than 170: the numbers of rows are"),
        ([9], {"a": 5, "b": 7}, r"no table has 9 rows or more: a has 5, b has 7"),
    ],
)
def test_a_group_without_data_sets_is_refused(bounds: list[int], sizes: dict[str, int], fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as caught:
        group_by_rows(bounds, sizes)
    assert "\n" not in str(caught.value)


def test_names_of_learners_must_differ() -> None:
    check_names([NB, TAN])
    with pytest.raises(UsageError, match="two learners are called 'nb'; leave one of them out"):
        check_names([NB, TAN, replace(NB)])
    with pytest.raises(
        UsageError, match=("two learners are called 'nb'; put a different NAME= before the options of one of them")
    ):
        check_names([NB, replace(TAN, name="nb")])
    with pytest.raises(UsageError, match="no learner"):
        check_names([])


def test_the_identity_of_a_learner_depends_on_the_contents_of_its_files(tmp_path: Path) -> None:
    for name, content in (("a", '{"a": ["y"]}'), ("b", '{"a":["y"]}'), ("c", '{"b": ["y"]}')):
        head = '{"format": "bncli-structure", "version": 1, "class": "y", "parents": '
        (tmp_path / name).write_text(f"{head}{content}}}")
    a, b, c = (Learner("x", TAN.recipe, "", read_supplied(None, str(tmp_path / name))).identity() for name in "abc")
    assert a == b != c
    assert TAN.identity() == replace(TAN, options="written otherwise").identity() != NB.identity()
    json.dumps(TAN.identity(), allow_nan=False)


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


@pytest.mark.slow
def test_costs_are_those_of_the_fit_of_a_fold(tmp_path: Path) -> None:
    source = write_table(tmp_path / "a.csv", 60, 0)
    newton = Recipe.of(penalty=1e-6, tolerance=0.0, max_iterations=120)
    stopped = Recipe.of(param="extended", early_stop="cv", optimizer="cg", structure="nb")
    recipes = (NB.recipe, newton, Recipe.of(structure="auto", effort=1), stopped)
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
    """The first fold is learned twice where it is quick, and the others once."""
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
