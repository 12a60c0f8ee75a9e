"""Exports on the command line: formats by word or ending, models that decide, and refusals in one line."""

from __future__ import annotations

import csv
import io
import json
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bncli.cli.export import summary_lines
from bncli.files.exports import python
from bncli.steps.export import ExportReport, Rounding
from tests.cli.conftest import Bncli

BEGINNINGS = {"bif": "network ", "xmlbif": "<?xml", "dot": "digraph ", "json": "{\n"}


@pytest.fixture
def model(bncli: Bncli) -> str:
    assert bncli("fit", "iris.csv", "--penalty", "1", "-q").code == 0
    return "iris.bnc"


@pytest.mark.parametrize("form", BEGINNINGS)
def test_every_format_to_the_standard_output(bncli: Bncli, model: str, form: str) -> None:
    ran = bncli("export", model, "--to", form)
    assert ran.code == 0
    assert ran.out.startswith(BEGINNINGS[form])
    assert ran.err.startswith(f"{form:<12}5 nodes, 7 arcs")
    assert ("difference in probability" in ran.err) == (form in ("bif", "xmlbif"))
    assert bncli("export", model, "--to", form, "-q") == (0, ran.out, "")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("x.bif", "bif"),
        ("x.XML", "xmlbif"),
        ("x.bifxml", "xmlbif"),
        ("x.gv", "dot"),
        ("x.dot", "dot"),
        ("x.json", "json"),
    ],
)
def test_the_ending_says_the_format(bncli: Bncli, tmp_path: Path, model: str, name: str, form: str) -> None:
    ran = bncli("export", model, "-o", name)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(f"written     {name}\n")
    assert (tmp_path / name).read_text().startswith(BEGINNINGS[form])


def test_the_report_as_json(bncli: Bncli, model: str) -> None:
    report = json.loads(bncli("export", model, "-o", "x.bif", "--json").out)
    assert report.pop("max_dp") < 1e-12
    assert report == {
        "schema_version": 1,
        "model": "iris.bnc",
        "format": "bif",
        "output": "x.bif",
        "nodes": 5,
        "arcs": 7,
        "probabilities": report["probabilities"],
        "rows": 10_000,
    }
    assert json.loads(bncli("export", model, "-o", "x.dot", "--json").out)["max_dp"] is None


def test_an_exported_structure_is_learnt_on(bncli: Bncli, model: str) -> None:
    for name in ("x.bif", "x.xml", "x.dot", "x.json"):
        assert bncli("export", model, "-o", name).code == 0
        assert bncli("fit", "iris.csv", "--structure", name, "--param", "map", "-o", f"{name}.bnc").code == 0
        shown = json.loads(bncli("inspect", f"{name}.bnc", "--json").out)
        assert shown["structure"] == json.loads(bncli("inspect", model, "--json").out)["structure"]


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("export", "iris.bnc"), 2, "the format cannot be determined; add --to bif|xmlbif|dot|json"),
        (("export", "iris.bnc", "-o", "x.net"), 2, "the format cannot be determined"),
        (("export", "iris.bnc", "--to", "net"), 2, "net"),
        (("export", "-", "--to", "bif"), 2, "cannot be read from the standard input"),
        (("export", "iris.bnc", "--to", "bif", "--json"), 2, "--json needs -o FILE"),
        (("export", "iris.bnc", "--to", "bif", "-o", "-", "--json"), 2, "--json needs -o FILE"),
        (("export", "iris.bnc", "--to", "bif", "-o", "iris.bnc"), 2, "is the same file"),
        (("export", "iris.bnc", "-o", "no/x.bif"), 1, "there is no folder"),
        (("export", "iris.csv", "--to", "bif"), 3, "iris.csv"),
        (("export", "none.bnc", "--to", "bif"), 3, "none.bnc"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_what_is_refused(
    bncli: Bncli, tmp_path: Path, model: str, words: tuple[str, ...], code: int, fault: str
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    ran = bncli(*words)
    assert (ran.code, ran.out) == (code, "")
    assert fault in ran.err
    assert ran.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_graph_that_is_not_perfect(bncli: Bncli) -> None:
    assert bncli("fit", "tumours.csv", "--structure", "kdb", "--k", "2", "--penalty", "1", "-q").code == 0
    ran = bncli("export", "tumours.bnc", "--to", "bif")
    assert ran.code == 3
    assert "no arc joins" in ran.err
    assert "--param map" in ran.err


def test_options_of_sql(bncli: Bncli, model: str) -> None:
    ran = bncli("export", model, "--to", "sql", "--input", "rows", "--key", "flower", "-o", "x.sql")
    assert ran.code == 0
    assert "synthetic rows: largest difference in probability" in ran.err
    assert "table entries, dialect sqlite\n" in ran.err
    ran = bncli("export", model, "-o", "y.sql", "--key", "petal_length")
    assert (ran.code, ran.out) == (3, "")
    assert "--key petal_length: the model uses that column" in ran.err
    for option in (("--dialect", "sqlite"), ("--input", "rows"), ("--key", "id")):
        ran = bncli("export", model, "--to", "python", *option)
        assert (ran.code, ran.out) == (2, "")
        assert f"{option[0]} has no effect with --to python; use it with --to sql" in ran.err


def test_sql_needs_a_key_unless_training_saw_it(bncli: Bncli) -> None:
    Path("seen.csv").write_text("id,x,class\n" + "".join(f"{i * 7 % 20},{i},{int(i > 20)}\n" for i in range(40)))
    Path("unseen.csv").write_text("x,class\n" + "".join(f"{i},{int(i > 20)}\n" for i in range(40)))
    for name in ("seen", "unseen"):
        assert bncli("fit", f"{name}.csv", "--structure", "nb", "--param", "map", "-q").code == 0
    ran = bncli("export", "unseen.bnc", "-o", "x.sql")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "needs --key COLUMN" in ran.err
    assert not Path("x.sql").exists()
    assert bncli("export", "seen.bnc", "-o", "x.sql").code == 0
    assert bncli("export", "unseen.bnc", "-o", "y.sql", "--key", "row id").code == 0
    head = Path("y.sql").read_text().split("BEGIN;")[0]
    for expected in ('the table or view "input"', '"row id", the key', '"x", numbers'):
        assert expected in head


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "onnx"), "--to onnx writes a binary file; add -o FILE"),
        (("--to", "bif", "--pdo", "3"), "--pdo has no effect with --to bif"),
        (("-o", "x.csv", "--contributions"), "--contributions has no effect with --to scorecard"),
        (("-o", "x.csv", "--odds", "0"), "--odds must be above 0"),
        (("-o", "x.csv", "--digits", "-1"), "--digits"),
    ],
)
def test_options_that_do_not_fit_are_refused(bncli: Bncli, model: str, words: tuple[str, ...], message: str) -> None:
    ran = bncli("export", model, *words)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_scorecard(bncli: Bncli, tmp_path: Path) -> None:
    assert bncli("fit", "monks1.csv", "--penalty", "1", "-q", "-o", "m.bnc").code == 0
    ran = bncli("export", "m.bnc", "-o", "x.csv", "--pdo", "40", "--base", "100", "--odds", "1")
    assert (ran.code, ran.out) == (0, "")
    assert "rounding    changes probabilities by up to " in ran.err
    text = (tmp_path / "x.csv").read_text()
    assert "(score - 100.0) / 57.7" in text
    header, *rows = csv.reader(io.StringIO(bncli("export", "m.bnc", "--to", "scorecard", "-q").out))
    assert header == ["attribute", "value", "points", "below_best"]
    assert all(float(points) + float(below) for _, _, points, below in rows[:-1] if points != "0")
    assert rows[-1][0] == "(probability)"
    assert rows[-1][2:] == ["", ""]
    report = json.loads(bncli("export", "m.bnc", "--to", "scorecard", "-o", "x.json", "--json").out)
    assert set(report["rounding"]) == {"max_dp", "log_loss"}
    card = json.loads((tmp_path / "x.json").read_text())
    assert (card["format"], card["base"], card["towards"]) == ("bncli-scorecard", 600.0, card["labels"][1])


def test_onnx_with_contributions(bncli: Bncli, tmp_path: Path, model: str) -> None:
    assert bncli("export", model, "-o", "x.onnx").err.startswith("onnx        5 nodes")
    plain = (tmp_path / "x.onnx").read_bytes()
    assert bncli("export", model, "-o", "x.onnx", "--contributions", "-q") == (0, "", "")
    assert b"contributions" in (tmp_path / "x.onnx").read_bytes()
    assert b"contributions" not in plain


@pytest.mark.parametrize(("change", "told"), [(2e-4, "+2.0e-04"), (-4e-18, "-4.0e-18")])
def test_what_rounding_costs_has_one_sign(change: float, told: str) -> None:
    report = ExportReport("m", "scorecard", None, 3, None, 9, 10_000, 0.0, "", Rounding(1e-3, change))
    assert summary_lines(report, None)[-1].endswith(f"log-loss by {told}")


NB = ("--structure", "nb", "--param", "map")
COSTS = "benign:malignant=1,malignant:benign=8"
LEFT_OUT = "but not the decision rule of the model (see bncli inspect)"


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
        pytest.param(("--costs", COSTS), marks=pytest.mark.slow),
        ("--costs", COSTS, "--abstain-below", "0.7"),
        pytest.param(("--abstain-below", "0.8"), marks=pytest.mark.slow),
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
    assert "the export makes decisions, but no prediction sets" in ran.err
    assert "def decide" in ran.out
    fit(bncli)
    assert "decides" not in bncli("export", "m.bnc", "--to", "python").err


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_program_that_decides_otherwise_is_not_kept(bncli: Bncli, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(bncli, "--threshold", "0.3")
    monkeypatch.setattr(python, "_DECIDE", python._DECIDE.replace(">=", "<"))
    ran = bncli("export", "m.bnc", "-o", "m.py")
    assert ran.code == 1
    assert "the program would decide differently from the model in 1," in ran.err
    assert not Path("m.py").exists()


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_key_cannot_be_called_as_the_decision(bncli: Bncli) -> None:
    fit(bncli)
    assert bncli("export", "m.bnc", "--to", "sql", "--key", "decision").code == 0
    fit(bncli, "--threshold", "0.3")
    assert (
        "the view has another column of that name" in bncli("export", "m.bnc", "--to", "sql", "--key", "decision").err
    )
