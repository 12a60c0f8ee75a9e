"""Exports of models that decide: programs and views decide as `score` does, others say what they lack."""

from __future__ import annotations

import csv
import io
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bncli.files.exports import python
from tests.cli.conftest import Bncli

NB = ("--structure", "nb", "--param", "map")
COSTS = "benign:malignant=1,malignant:benign=8"
LEFT_OUT = "how the model decides (see inspect) is not in it"


def fit(bncli: Bncli, *words: str) -> None:
    ran = bncli("fit", "tumours.csv", *NB, *words, "-o", "m.bnc", "-q")
    assert ran.code == 0, ran.err


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(Path("tumours.csv").read_text().splitlines()))


def decisions(bncli: Bncli) -> list[str | None]:
    scored = bncli("score", "m.bnc", "tumours.csv", "-q").out
    return [row["decision"] or None for row in csv.DictReader(io.StringIO(scored))]


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize(
    "words",
    [
        ("--threshold", "best:f1"),
        ("--threshold", "0.02", "--abstain-below", "0.9"),
        ("--costs", COSTS),
        ("--costs", COSTS, "--abstain-below", "0.7"),
        ("--abstain-below", "0.8"),
    ],
)
def test_programs_decide_what_score_writes(bncli: Bncli, words: tuple[str, ...]) -> None:
    fit(bncli, *words)
    expected = decisions(bncli)
    assert len(set(expected)) == 2 + ("--abstain-below" in words)
    ran = bncli("export", "m.bnc", "-o", "m.py")
    assert ran.code == 0, ran.err
    assert "Note" not in ran.err
    program = runpy.run_path("m.py")
    assert [program["decide"](row) for row in rows()] == expected
    assert bncli("export", "m.bnc", "-o", "m.sql", "--input", "t", "--key", "row").code == 0
    with closing(sqlite3.connect(":memory:")) as base:
        names = list(rows()[0])
        base.execute(f"CREATE TABLE t (row integer, {', '.join(names)})")
        marks = ", ".join("?" * (len(names) + 1))
        base.executemany(f"INSERT INTO t VALUES ({marks})", [(i, *row.values()) for i, row in enumerate(rows())])
        base.executescript(Path("m.sql").read_text())
        assert [one for (one,) in base.execute("SELECT decision FROM m_scores ORDER BY row")] == expected


@pytest.mark.usefixtures("fewer_export_rows")
def test_what_an_export_leaves_out_is_told(bncli: Bncli) -> None:
    fit(bncli, "--threshold", "0.3")
    assert LEFT_OUT in bncli("export", "m.bnc", "--to", "scorecard").err
    fit(bncli, "--sets", "0.1")
    ran = bncli("export", "m.bnc", "--to", "python")
    assert LEFT_OUT in ran.err
    assert "def decide" not in ran.out
    fit(bncli, "--sets", "0.1", "--abstain-below", "0.7")
    ran = bncli("export", "m.bnc", "--to", "python")
    assert "what is written decides, and gives no prediction sets" in ran.err
    assert "def decide" in ran.out
    fit(bncli)
    assert "decides" not in bncli("export", "m.bnc", "--to", "python").err


def test_a_program_that_decides_otherwise_is_not_kept(bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(bncli, "--threshold", "0.3")
    monkeypatch.setattr(python, "_DECIDE", python._DECIDE.replace(">=", "<"))
    ran = bncli("export", "m.bnc", "-o", "m.py")
    assert ran.code == 1
    assert "the program would decide otherwise than the model in 10," in ran.err
    assert not Path("m.py").exists()


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_key_cannot_be_called_as_the_decision(bncli: Bncli) -> None:
    fit(bncli)
    assert bncli("export", "m.bnc", "--to", "sql", "--key", "decision").code == 0
    fit(bncli, "--threshold", "0.3")
    assert (
        "the view has another column of that name" in bncli("export", "m.bnc", "--to", "sql", "--key", "decision").err
    )
