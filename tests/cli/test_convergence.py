"""`bncli convergence`: tables, JSON, drawings, names as they are typed, and one line for what does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli, prepare
from tests.transcripts import ROOT

IRIS = str(ROOT / "sample_data" / "iris.csv")


@pytest.fixture
def traces(bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris").mkdir()
    for param in ("weighted", "discriminative"):
        fit = f"fit {IRIS} --structure nb --param {param} --optimizer cg --penalty 1"
        prepare(bncli, f"{fit} --trace {param}.csv -o m.bnc -q")
        (tmp_path / f"{param}.csv").rename(tmp_path / "iris" / f"{param}.csv")
    return tmp_path


def test_tables_and_json_tell_the_same(bncli: Bncli, traces: Path) -> None:
    words = ("convergence", "iris/weighted.csv", "iris/discriminative.csv", "--lag", "weighted", "--at", "2")
    table, told = bncli(*words).out, json.loads(bncli(*words, "--json").out)
    assert told["schema_version"] == 1
    for trace in told["traces"]:
        (line,) = [line for line in table.splitlines() if line.strip().startswith(trace["name"]) and "-" in line][:1]
        assert line.split()[1:3] == [str(trace["iterations"]), str(trace["passes"])]
        assert line.split()[3:5] == [f"{trace['start']:.4f}", f"{trace['end']:.4f}"]
    (lag,) = told["lag"]["lags"]
    assert "\nLag behind weighted after iteration 2, in iterations, not passes\n" in bncli(*words, "--by", "passes").out
    assert f"{lag['mean']:.1f}" in table.split("Lag behind weighted after iteration 2, in iterations")[1]


def test_names_are_typed_or_those_of_the_files(bncli: Bncli, traces: Path) -> None:
    (traces / "x=y.csv").write_bytes((traces / "iris/weighted.csv").read_bytes())
    ran = bncli("convergence", "d=iris/discriminative.csv", "x=y.csv", "--json", "--svg", "c.svg")
    assert [(t["table"], t["name"]) for t in json.loads(ran.out)["traces"]] == [("iris", "d"), (traces.name, "x=y")]
    assert ">x=y</text>" in (traces / "c.svg").read_text().replace("<title>x=y</title>", "")
    assert bncli("convergence", "iris/weighted.csv", "--svg", "-").out.startswith("<svg")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["iris/nothing.csv"], 1, "no such file"),
        (["m.bnc"], 1, "this is not a CSV file, m.bnc; give a file written by bncli fit --trace"),
        (["-"], 2, "traces must be files, not the standard input; give a file written by bncli fit --trace"),
        (["iris/weighted.csv", "x=-"], 2, "traces must be files, not the standard input"),
        ([IRIS], 1, "there is no column 'iteration'"),
        (["=iris/weighted.csv"], 2, "cannot read '=iris/weighted.csv' as NAME=FILE"),
        (["iris/weighted.csv", "--at", "3"], 2, "--at has no effect without --lag"),
        (["iris/weighted.csv", "--within", "1"], 2, "--within"),
        (["a=iris/weighted.csv", "a=iris/discriminative.csv"], 2, "have the name 'a'"),
        (["iris/weighted.csv", "--histogram", "h.svg"], 2, "--histogram draws lags, but no lag was measured"),
    ],
)
def test_errors_are_one_line(bncli: Bncli, traces: Path, words: list[str], code: int, told: str) -> None:
    ran = bncli("convergence", *words)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("Error: ") or "Usage" in ran.err
    assert len([line for line in ran.err.splitlines() if line.startswith("Error")]) == 1
