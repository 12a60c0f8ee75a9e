"""The file of `--resume`: what goes in comes out, and nothing else is taken for it."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.errors import BncliError
from bncli.steps.compare.compare import Checkpoint
from bncli.steps.compare.trials import DataSet, Outcome, Runner, RunPlan, Task
from tests.steps.compare.tables import NB, TAN, planned, write_table

NONE: dict[str, int | None] = {"iterations": None, "passes": None}
TASKS = [Task(0, 0, 0, 0), Task(0, 1, 0, 2), Task(0, 0, 0, 1)]


@pytest.fixture
def plan(tmp_path: Path) -> tuple[RunPlan, tuple[DataSet, ...]]:
    return planned([write_table(tmp_path / "a.csv", 30, 0)])


@pytest.fixture
def path(plan: tuple[RunPlan, tuple[DataSet, ...]], tmp_path: Path) -> Path:
    """A file with three outcomes."""
    checkpoint = Checkpoint(str(tmp_path / "kept.jsonl"), *plan)
    for task in TASKS:
        outcome = Runner(plan[0]).run(task)
        assert isinstance(outcome, Outcome)
        checkpoint.add(task, outcome)
    checkpoint.close()
    return tmp_path / "kept.jsonl"


def kept_in(path: Path, plan: tuple[RunPlan, tuple[DataSet, ...]]) -> dict[Task, Outcome]:
    with closing(Checkpoint(str(path), *plan)) as checkpoint:
        return checkpoint.outcomes


def test_what_goes_in_comes_out(plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path) -> None:
    kept = kept_in(path, plan)
    assert list(kept) == TASKS
    for task, outcome in kept.items():
        again = Runner(plan[0]).run(task)
        assert isinstance(again, Outcome)
        assert outcome.metrics == again.metrics
        assert (outcome.predicted == again.predicted).all()
        assert outcome.predicted.dtype == again.predicted.dtype
        assert (outcome.data, outcome.learner, outcome.rows) == (again.data, again.learner, again.rows)
    for line in path.read_text().splitlines():
        json.loads(line)


def test_every_outcome_is_on_the_disk_at_once(plan: tuple[RunPlan, tuple[DataSet, ...]], tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    checkpoint = Checkpoint(str(path), *plan)
    assert len(path.read_bytes().splitlines()) == 1
    outcome = Outcome(
        "a",
        "nb",
        0,
        0,
        2,
        {"auc": None, "error": 0.1},
        {"fit": 0.5},
        {"iterations": None, "passes": 3},
        np.array([2, 1], np.uint8),
    )
    checkpoint.add(TASKS[0], outcome)
    assert path.read_bytes().endswith(b"}\n")
    checkpoint.close()
    read = kept_in(path, plan)[TASKS[0]]
    assert (read.metrics, read.seconds, read.predicted.tolist()) == (outcome.metrics, outcome.seconds, [2, 1])
    assert read.costs == outcome.costs


def test_half_a_line_at_the_end_is_cut_off(plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path) -> None:
    whole = path.read_bytes()
    for end in (len(whole) - 1, len(whole) - 40, whole.index(b"\n") + 1, whole.index(b"\n"), 30, 5, 0):
        path.write_bytes(whole[:end])
        checkpoint = Checkpoint(str(path), *plan)
        checkpoint.close()
        assert list(checkpoint.outcomes) == TASKS[: max(whole[:end].count(b"\n") - 1, 0)]
        kept = path.read_bytes()
        assert kept.endswith(b"\n")
        assert whole.startswith(kept)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"data": 0', '"data": 7'),
        ('"learner": 0', '"learner": -1'),
        ('"fold": 0', '"fold": 3'),
        ('"repeat": 0', '"repeat": "0"'),
        ('"rows": 10', '"rows": 11'),
        ('"predicted": "', '"predicted": "x'),
        ('"predicted": "', '"predicted": "QUJD'),
        ('"error": 0', '"error": "'),
        ('"error": 0', '"error": NaN, "old": 0'),
        ('"error": 0', '"error": 1e999, "old": 0'),
        ('"metrics"', '"figures"'),
        ("{", "["),
        ("{", ""),
        ('"rows": 10', '"rows": {}'),
    ],
)
def test_a_damaged_line_is_an_error_that_names_it(
    plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path, old: str, new: str
) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[1]
    lines[1] = lines[1].replace(old, new, 1)
    path.write_text("".join(lines))
    with pytest.raises(BncliError, match=r"the line is damaged, .*kept\.jsonl, line 2; delete this line"):
        Checkpoint(str(path), *plan)
    assert path.read_text() == "".join(lines)


def test_labels_that_do_not_exist_are_damage(plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path) -> None:
    wrong = Outcome("a", "nb", 0, 0, 2, {}, {}, NONE, np.array([0, 3], np.uint8))
    checkpoint = Checkpoint(str(path), *plan)
    checkpoint.add(TASKS[0], wrong)
    checkpoint.close()
    with pytest.raises(BncliError, match="line 5"):
        Checkpoint(str(path), *plan)


@pytest.mark.parametrize("costs", ['"costs": {"iterations": -1,', '"costs": {"iterations": 1.5,', '"coste": {'])
def test_costs_that_are_none(plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path, costs: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert '"costs": {"iterations": null,' in lines[2]
    lines[2] = lines[2].replace('"costs": {"iterations": null,', costs)
    path.write_text("".join(lines))
    with pytest.raises(BncliError, match=r"the line is damaged, .*line 3; delete this line"):
        Checkpoint(str(path), *plan)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_older_version_is_refused(
    plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path, version: int
) -> None:
    before = path.read_bytes().replace(b'"version": 3', b'"version": %d' % version)
    path.write_bytes(before)
    fault = (
        r"an older version of bncli and do not contain the costs, .*kept\.jsonl; start again with another --resume FILE"
    )
    with pytest.raises(BncliError, match=fault):
        Checkpoint(str(path), *plan)
    assert path.read_bytes() == before


def test_a_file_of_another_run_is_refused(
    plan: tuple[RunPlan, tuple[DataSet, ...]], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    (entry,) = plan[1]
    others = [
        ("--folds", replace(plan[0], protocol=Protocol(3, 1, 1)), entry),
        ("--unseen", replace(plan[0], unseen="error"), entry),
        ("different learners", replace(plan[0], learners=(TAN, NB)), entry),
        ("different learners", replace(plan[0], learners=(NB,)), entry),
        ("different data", plan[0], replace(entry, digest="")),
        ("different data", plan[0], replace(entry, name="b")),
    ]
    for what, other, data in others:
        with pytest.raises(BncliError, match=rf"a run with .*{what}.*, .*kept\.jsonl; use the options of that run"):
            Checkpoint(str(path), other, (data,))
    monkeypatch.setattr("bncli.steps.compare.compare.__version__", "0.0.0")
    with pytest.raises(BncliError, match="a different version of bncli"):
        Checkpoint(str(path), *plan)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"a,b,class\n1,2,x\n", b"something", b"{}\n", b"[1]\n", b"\x00\xff\n", b"{"])
def test_what_is_no_file_of_outcomes_stays_as_it_is(
    plan: tuple[RunPlan, tuple[DataSet, ...]], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    if content == b"{":  # may be the beginning of a first line
        Checkpoint(str(path), *plan).close()
        return
    with pytest.raises(BncliError, match=r"the file does not contain results of bncli compare, .*mine\.csv"):
        Checkpoint(str(path), *plan)
    assert path.read_bytes() == content


def test_where_nothing_can_be_kept(plan: tuple[RunPlan, tuple[DataSet, ...]], tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="cannot store results"):
        Checkpoint(str(tmp_path / "no" / "x.jsonl"), *plan)
    with pytest.raises(BncliError, match="only in a regular file, /dev/full"):
        Checkpoint("/dev/full", *plan)
    with pytest.raises(BncliError, match="only in a regular file"):
        Checkpoint(str(tmp_path), *plan)


def test_without_a_path_nothing_is_kept(plan: tuple[RunPlan, tuple[DataSet, ...]]) -> None:
    checkpoint = Checkpoint(None, *plan)
    checkpoint.add(TASKS[0], Outcome("a", "nb", 0, 0, 0, {}, {}, NONE, np.array([], np.uint8)))
    assert checkpoint.outcomes == {}
    checkpoint.close()
