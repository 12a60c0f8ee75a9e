"""`bncli compare` as it is typed."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bncli.cli import compare as module
from tests.cli.conftest import Bncli

WORDS = ("--learner", "--structure nb --param map", "--learner", "tree=--param map", "--folds", "3")


def untimed(values: Any) -> Any:
    """JSON values without anything that depends on the clock."""
    if isinstance(values, dict):
        return {key: untimed(value) for key, value in values.items() if key != "seconds"}
    return [untimed(value) for value in values] if isinstance(values, list) else values


def test_the_plain_line(bncli: Bncli) -> None:
    ran = bncli("compare", "iris.csv", "--folds", "2", "--jobs", "1")
    assert (ran.code, ran.err) == (0, "")
    assert "150 rows; 2-fold cross-validation, stratified, seed 0" in ran.out
    assert all(name in ran.out for name in ("nb map", "tan weighted", "log-loss"))


def test_json_and_files(bncli: Bncli, tmp_path: Path) -> None:
    files = ("--csv", "o.csv", "--latex", "o.tex", "--diagram", "d.svg", "--scatter", "s.svg")
    ran = bncli("compare", "iris.csv", "tumours.csv", *WORDS, "--jobs", "1", "--json", *files, "--metric", "log-loss")
    assert ran.code == 0
    values = json.loads(ran.out)
    assert values["schema_version"] == 1
    assert values["metrics"] == ["log_loss"]
    assert values["baseline"] == "nb map"
    assert untimed(values["learners"]) == [
        {"name": "nb map", "options": "--structure nb --param map"},
        {"name": "tree", "options": "--param map"},
    ]
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    assert [float(row["log_loss"]) for row in rows] == [fold["log_loss"] for fold in values["folds"]]
    assert all((tmp_path / name).exists() for name in ("o.tex", "d.svg", "s.svg"))


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(bncli: Bncli) -> None:
    one, two = (
        untimed(json.loads(bncli("compare", "iris.csv", "tumours.csv", *WORDS, "--jobs", jobs, "--json", "-q").out))
        for jobs in (1, 2)
    )
    assert one == two


def test_costs_and_groups(bncli: Bncli, tmp_path: Path) -> None:
    """The iterations are those that fit tells, and the groups hold the tables that their names say."""
    words = ("--learner", "a=--structure nb --penalty 1", "--learner", "b=--param map", "--folds", "2", "--jobs", "1")
    costs = ("--metric", "iterations", "--metric", "fit-seconds", "--groups", "rows:200", "--scatter", "s.svg")
    ran = bncli("compare", "iris.csv", "tumours.csv", "monks1.csv", *words, *costs, "--json", "--csv", "o.csv", "-q")
    assert ran.code == 1
    assert "no data set has iterations for both a and another learner, s.svg" in ran.err
    report = json.loads(ran.out)
    assert [(group["name"], group["tables"]) for group in report["groups"]] == [
        ("rows<200", ["iris"]),
        ("rows>=200", ["tumours", "monks1"]),
    ]
    assert [group["summary"]["fit_seconds"]["sets"] for group in report["groups"]] == [["iris"], ["tumours", "monks1"]]
    assert "iterations" not in report["summary"]
    assert report["data"][0]["results"][1]["iterations"] is None
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    for row, fold in zip(rows, report["folds"], strict=True):
        assert float(row["fit_seconds"]) == fold["seconds"]["fit"] > 0
        assert [row["iterations"], row["passes"]] == [str(fold[name] or "") for name in ("iterations", "passes")]
        assert (fold["passes"] or 0) >= (fold["iterations"] or 0)
        assert (fold["learner"] == "a") == (fold["iterations"] is not None)


def test_table_options_hold_for_every_table(bncli: Bncli) -> None:
    words = ("--class", "petal_width", "--ignore", "class", "--categorical", "petal_width", "--metric", "error")
    report = json.loads(bncli("compare", "iris.csv", *WORDS, *words, "--json", "--jobs", "1").out)
    assert report["data"][0]["results"][0]["error"]["mean"] > 0.2
    # A schema beside the data holds for its own table alone.
    report = json.loads(bncli("compare", "monks1.csv", "iris.csv", *WORDS, "--json", "--jobs", "1", "-q").out)
    assert [data["rows"] for data in report["data"]] == [432, 150]


def test_a_learner_that_fails_is_told_at_the_end(bncli: Bncli) -> None:
    words = ("--structure", "kdb", "--k", "2", "--param", "lr")
    ran = bncli(
        "compare", "tumours.csv", "--learner", "--param map", "--learner", f"bad={' '.join(words)}", "--jobs", "1"
    )
    assert ran.code == 1
    assert "tan map" in ran.out
    last = ran.err.splitlines()[-1]
    assert last.startswith("Error: learner 'bad' failed on tumours: ")
    assert "perfect" in last
    as_json = bncli("compare", "tumours.csv", "--learner", f"bad={' '.join(words)}", "--jobs", "1", "--json")
    assert as_json.code == 1
    assert json.loads(as_json.out)["gaps"][0]["learner"] == "bad"


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("iris.csv", "--metric", "logloss"), 2, "there is no metric 'logloss'; did you mean log-loss?"),
        (("iris.csv", "--baseline", "nbmap"), 2, "there is no learner 'nbmap'; did you mean nb map?"),
        (("iris.csv", "--learner", "", "--learner", ""), 2, "'' is not a learner"),
        (("iris.csv", "--learner", "a=", "--learner", "a="), 2, "two learners are called 'a'"),
        (("iris.csv", "--learner", "a=--structur nb"), 2, "in --learner 'a=--structur nb'"),
        (("iris.csv", "--preset", "best"), 2, "'best' is not one of 'fast', 'all-methods', 'zaidi'"),
        (("iris.csv", "gone.csv"), 1, "no such file, gone.csv"),
        (("iris.csv", "nb", "tan"), 1, 'no such file, nb; to compare this structure, type --learner "--structure nb"'),
        (("iris.csv", "broken.csv"), 1, "malformed row: expected 2 fields, found 1, broken.csv line 3"),
        (("iris.csv", "single.csv"), 1, "has only one value"),
        (("iris.csv", "-"), 2, "the standard input can be read only once"),
        (("iris.csv", "./iris.csv"), 2, "the same data set is given twice"),
        (("iris.csv", "--folds", "151"), 1, "151 folds need at least 151 rows, but the table has only 150, iris.csv"),
        (("iris.csv", "--folds", "1"), 2, "--folds"),
        (("iris.csv", "--csv", "no/x.csv"), 1, "there is no folder"),
        (("iris.csv", "--resume", "."), 1, "folder"),
        (("iris.csv", "--resume", "-"), 2, "--resume cannot use the standard output"),
        (("iris.csv", "--resume", "iris.csv"), 2, "the input 'iris.csv' is the same file"),
        (("iris.csv", "--resume", "single.csv"), 1, "the file does not contain results of bncli compare, single.csv"),
        (("iris.csv", "--resume", "x", "--csv", "x"), 2, "the output 'x' is the same file"),
        (("iris.csv", "--on-bad-row", "bad.csv"), 2, "use --on-bad-row fail or skip"),
        (("iris.csv", "--diagram", "x.svg"), 2, "give more DATA"),
        (("iris.csv", "tumours.csv", "--metric", "passes", "--diagram", "x.svg"), 2, "use --scatter for costs"),
        (("iris.csv", "--metric", "seconds"), 2, "there is no metric 'seconds'; did you mean fit-seconds?"),
        (("iris.csv", "--groups", "rows:100"), 2, "--groups groups data sets by number of rows, but there is only one"),
        (
            ("iris.csv", "tumours.csv", "--groups", "100"),
            2,
            "--groups 100 does not define groups; give numbers of rows",
        ),
        (("iris.csv", "tumours.csv", "--groups", "rows:"), 2, "--groups rows: does not define groups"),
        (("iris.csv", "tumours.csv", "--groups", "rows:1e3"), 2, "in --groups rows:1e3, '1e3' is not a whole number"),
        (("iris.csv", "tumours.csv", "--groups", "rows:0"), 2, "'0' is not a whole number of at least 1"),
        (("iris.csv", "tumours.csv", "--groups", "rows:200,160"), 2, "in --groups are not increasing: 200, 160"),
        (("iris.csv", "tumours.csv", *("--groups", "rows:200") * 2), 2, "in --groups are not increasing: 200, 200"),
        (("iris.csv", "tumours.csv", "--groups", "rows:10000"), 2, "no table has 10,000 rows or more: iris has 150"),
        (("iris.csv", "--class", "klass"), 2, "there is no column 'klass', iris.csv; did you mean 'class'?"),
        (("iris.csv", "--jobs", "0"), 2, "--jobs"),
        ((), 2, "DATA"),
    ],
)
def test_what_is_wrong_is_said_before_the_work(
    bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, fault: str
) -> None:
    from bncli.steps.compare import compare

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(compare, "run_plan", never)
    (tmp_path / "broken.csv").write_text("a,class\n1,x\n2\n")
    (tmp_path / "single.csv").write_text("a,class\n" + "1,x\n" * 9)
    ran = bncli("compare", *words)
    assert (ran.code, ran.out) == (code, "")
    assert fault in ran.err.splitlines()[-1]


def test_a_damaged_file_and_one_of_another_run(bncli: Bncli, tmp_path: Path) -> None:
    words = ("compare", "iris.csv", *WORDS, "--resume", "kept.jsonl", "--jobs", "1")
    assert bncli(*words).code == 0
    ran = bncli(*words)
    assert (ran.code, ran.err) == (0, "Note: 6 of 6 folds were read from kept.jsonl\n")
    other = bncli(*words, "--seed", "1")
    assert other.code == 1
    assert "a run with different --folds, --repeats or --seed, kept.jsonl" in other.err
    lines = (tmp_path / "kept.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "kept.jsonl").write_text("".join([lines[0], lines[1][:50] + "\n", *lines[2:]]))
    damaged = bncli(*words)
    assert damaged.code == 1
    assert "the line is damaged, kept.jsonl, line 2" in damaged.err


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_what_is_kept(bncli: Bncli, tmp_path: Path, number: signal.Signals, code: int) -> None:
    """As from a terminal: the program and its processes, one line on stderr, nobody left behind."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whoever started the tests has this signal ignored, and so does the program then")
    words = ["compare", "iris.csv", "--folds", "2", "--repeats", "500", "--jobs", "2", "--resume", "kept.jsonl"]
    root = str(Path(module.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-m", "bncli", *words, "--learner", "--structure nb --param map"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": root},
    ) as process:
        kept = tmp_path / "kept.jsonl"
        while process.poll() is None and not (kept.exists() and kept.read_bytes().count(b"\n") > 5):
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, b"")
    n = kept.read_bytes().count(b"\n") - 1
    assert (
        err.decode()
        == f"Note: {n} of 1,000 folds are stored in kept.jsonl; repeat the command to continue from there\n"
    )
