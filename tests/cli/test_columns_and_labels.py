"""What is said of columns, rows and labels: lists with commas, columns to use, complete rows, the event, no header."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from bncli.files.reading import training_rows
from tests.cli.conftest import Bncli, Ran

NB = ("--structure", "nb", "--param", "map", "-q")


def attributes(bncli: Bncli, *words: str) -> list[str]:
    """The attributes that a fit has."""
    ran = bncli("fit", *words, *NB, "-o", "m.bnc")
    assert ran.code == 0, ran.err
    return [one["name"] for one in json.loads(bncli("inspect", "m.bnc", "--json").out)["attributes"]]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# Columns


def test_lists_with_commas(bncli: Bncli) -> None:
    assert attributes(bncli, "iris.csv", "--ignore", "sepal_length, sepal_width") == ["petal_length", "petal_width"]
    once = attributes(bncli, "iris.csv", "--categorical", "petal_width,sepal_width")
    model = Path("m.bnc").read_bytes()
    again = attributes(bncli, "iris.csv", "--categorical", "petal_width", "--categorical", "sepal_width")
    assert (once, model) == (again, Path("m.bnc").read_bytes())
    kept = rows_of(bncli("score", "m.bnc", "iris.csv", "--keep", "class,petal_width", "-q").out)
    assert list(kept[0])[:2] == ["class", "petal_width"]
    assert "there is no column 'sepal'" in bncli("fit", "iris.csv", "--ignore", "petal_width,sepal").err
    assert "there is no column 'id'" in bncli("score", "m.bnc", "iris.csv", "--keep", "class,id").err


def test_a_name_with_a_comma_is_one_column(bncli: Bncli) -> None:
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{'uv'[i % 7 < 3]}\n" for i in range(60))
    Path("t.csv").write_text(f'"a,b",a,b,class\n{rows}')
    assert attributes(bncli, "t.csv", "--ignore", "a,b") == ["a", "b"]
    assert attributes(bncli, "t.csv", "--ignore", "a", "--ignore", "b") == ["a,b"]
    kept = rows_of(bncli("score", "m.bnc", "t.csv", "--keep", "a,b", "-q").out)
    assert next(iter(kept[0])) == "a,b"


def test_columns_to_use(bncli: Bncli) -> None:
    petals = ["petal_length", "petal_width"]
    assert attributes(bncli, "iris.csv", "--use", "petal_width,petal_length") == petals
    model = Path("m.bnc").read_bytes()
    assert attributes(bncli, "iris.csv", "--use", "petal_width", "--use", "petal_length,class") == petals
    assert attributes(bncli, "iris.csv", "--ignore", "sepal_length,sepal_width") == petals
    assert Path("m.bnc").read_bytes() == model
    assert "no column 'petal'" in bncli("fit", "iris.csv", "--use", "petal").err
    assert ("both with --use and as a column to ignore") in bncli(
        "fit", "iris.csv", "--use", "petal_width", "--ignore", "petal_width"
    ).err
    ran = bncli("evaluate", "iris.csv", "--model", "m.bnc", "--use", "petal_width")
    assert (ran.code, "--use has no effect with --model" in ran.err) == (2, True)
    ran = bncli("evaluate", "iris.csv", "--use", "petal_width", *NB, "--by", "sepal_width", "--json", "--folds", "3")
    assert {one["by"] for one in json.loads(ran.out)["groups"]} == {"sepal_width"}


def test_parts_of_dates_to_use(bncli: Bncli) -> None:
    lines = [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02},{i % 5},{'uv'[i % 12 < 5]}" for i in range(90)]
    Path("d.csv").write_text("\n".join(["when,x,class", *lines, ""]))
    assert attributes(bncli, "d.csv", "--use", "when.month,x") == ["when.month", "x"]
    assert attributes(bncli, "d.csv", "--use", "when") == ["when.month", "when.day", "when.weekday", "when.days"]


# Rows


@pytest.mark.parametrize("budget", [1 << 30, 2000], ids=["one round", "two rounds"])
def test_incomplete_rows_are_dropped(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(training_rows, "BUDGET", budget)
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 1 << 20)
    rows = [
        [str(i % 7), "" if i % 10 == 3 else "pqr"[i % 3], "" if i == 6 else f"{i % 11}.5", "uv"[i % 7 < 3]]
        for i in range(400)
    ]
    header = "a,b,c,class"
    Path("t.csv").write_text("\n".join([header, *map(",".join, rows), ""]))
    complete = [row for row in rows if all(row)]
    Path("complete.csv").write_text("\n".join([header, *map(",".join, complete), ""]))
    ran = bncli("fit", "t.csv", "--drop-incomplete", "--structure", "tan", "--param", "map", "-o", "m.bnc")
    assert f"rows        {len(complete)}\n" in ran.err
    if budget > 2000:
        assert "Note: 41 of 400 rows lack a value and are left out (--drop-incomplete)" in ran.err
    assert bncli("fit", "complete.csv", "--structure", "tan", "--param", "map", "-q", "-o", "c.bnc").code == 0
    if budget > 2000:
        assert Path("m.bnc").read_bytes() == Path("c.bnc").read_bytes()
    assert bncli("encode", "t.csv", "--drop-incomplete", "-q", "-o", "t.codes").code == 0
    assert bncli("fit", "t.codes", "--structure", "tan", "--param", "map", "-q", "-o", "k.bnc").code == 0
    assert Path("k.bnc").read_bytes() == Path("m.bnc").read_bytes()
    assert "--drop-incomplete has no effect on t.codes" in bncli("fit", "t.codes", "--drop-incomplete").err
    cuts = ("discretize", "complete.csv", "--cuts-out", "cuts.json", "-q")
    assert bncli(*cuts).code == 0
    for name, more in (("t", ["--drop-incomplete"]), ("complete", [])):
        assert bncli("count", f"{name}.csv", *more, "--cuts", "cuts.json", "-o", f"{name}.counts", "-q").code == 0
        assert bncli("fit", "--from-counts", f"{name}.counts", *NB, "-o", f"{name}.bnc").code == 0
    assert Path("t.bnc").read_bytes() == Path("complete.bnc").read_bytes()


def test_no_complete_row(bncli: Bncli) -> None:
    Path("t.csv").write_text("a,b,class\n1,,u\n,2,v\n3,,u\n,4,v\n5,,u\n,6,v\n")
    ran = bncli("fit", "t.csv", "--drop-incomplete")
    assert (ran.code, "every row has a missing value" in ran.err) == (1, True)


def test_a_table_without_a_header(bncli: Bncli) -> None:
    header, *lines = Path("tumours.csv").read_text().splitlines()
    Path("bare.csv").write_text("\n".join([*lines, ""]))
    plain = attributes(bncli, "tumours.csv", "--class", "diagnosis")
    model = Path("m.bnc").read_bytes()
    assert attributes(bncli, "bare.csv", "--names", header) == plain
    assert Path("m.bnc").read_bytes() == model
    scored = bncli("score", "m.bnc", "bare.csv", "--names", header, "-q").out
    assert scored == bncli("score", "m.bnc", "tumours.csv", "-q").out
    ran = bncli("fit", "bare.csv", "--names", "a,b")
    assert (ran.code, "the first row has 8 fields, but --names gives 2, bare.csv line 1" in ran.err) == (2, True)
    assert "is the header missing? Add --names a,b,c to give one" in bncli("describe", "bare.csv", "--json").out
    Path("twice.csv").write_text("t,t,x\n1,2,3\n")
    assert "'t' appears twice" in bncli("describe", "twice.csv").err
    assert "is the header missing? Add --names a,b,c to give one" in bncli("describe", "twice.csv").err
    report = json.loads(
        bncli("describe", "bare.csv", "--names", '"radius, mean",' + header.split(",", 1)[1], "--json").out
    )
    assert report["columns"][0]["name"] == "radius, mean"
    assert bncli(*shlex.split(report["recommended"])[1:], *NB, "-o", "m.bnc").code == 0
    assert "an empty name" in bncli("fit", "bare.csv", "--names", "a,,b").err


def test_rows_to_score(bncli: Bncli) -> None:
    assert attributes(bncli, "iris.csv")
    whole = bncli("score", "m.bnc", "iris.csv", "-q", "--keep", "class", "--explain", "2").out.splitlines()
    for row, first, last in (("1", 1, 1), ("150", 150, 150), ("99-102", 99, 102), ("140-900", 140, 150)):
        ran = bncli("score", "m.bnc", "iris.csv", "-q", "--row", row, "--keep", "class", "--explain", "2")
        assert ran.out.splitlines() == [whole[0], *whole[first : last + 1]]
    report = json.loads(bncli("score", "m.bnc", "iris.csv", "--row", "3-5", "-o", "s.csv", "--json", "-q").out)
    assert report["rows"] == 3
    ran = bncli("score", "m.bnc", "iris.csv", "--row", "151")
    assert (ran.code, "there is no row 151: the table has 150 rows" in ran.err) == (1, True)
    for wrong in ("0", "5-3", "x", "3-", "-3", "1-2-3"):
        assert bncli("score", "m.bnc", "iris.csv", "--row", wrong).code == 2


# Labels


@pytest.fixture
def other_way(bncli: Bncli) -> Ran:
    """Two models of one table: a.bnc as labels are sorted, b.bnc with the other event."""
    words = ("tumours.csv", "--structure", "tan", "--penalty", "1", "-q")
    assert bncli("fit", *words, "-o", "a.bnc").code == 0
    ran = bncli("fit", *words, "--positive", "benign", "-o", "b.bnc")
    assert ran.code == 0
    return ran


@pytest.mark.usefixtures("other_way")
def test_the_event_changes_no_probability(bncli: Bncli) -> None:
    plain = rows_of(bncli("score", "a.bnc", "tumours.csv", "-q").out)
    for words in (("b.bnc",), ("a.bnc", "--positive", "benign")):
        other = rows_of(bncli("score", *words, "tumours.csv", "-q").out)
        assert list(other[0]) == ["prediction", "p_malignant", "p_benign"]
        for column in ("p_malignant", "p_benign"):
            found, before = ([float(row[column]) for row in rows] for rows in (other, plain))
            assert np.allclose(found, before, rtol=1e-6)
    back = bncli("score", "b.bnc", "tumours.csv", "--positive", "malignant", "-q").out
    assert list(rows_of(back)[0]) == ["prediction", "p_benign", "p_malignant"]


@pytest.mark.usefixtures("other_way", "fewer_export_rows")
def test_what_is_said_of_the_event(bncli: Bncli) -> None:
    """Thresholds, points, effects, rates of groups, the page."""
    chosen = [row["prediction"] for row in rows_of(bncli("score", "a.bnc", "tumours.csv", "-q").out)]
    for words in (("b.bnc",), ("a.bnc", "--positive", "benign")):
        decided = rows_of(bncli("score", *words, "tumours.csv", "--threshold", "0.999", "-q").out)
        benign = [row["decision"] == "benign" for row in decided]
        assert benign == [float(row["p_benign"]) >= 0.999 for row in decided]
        assert 0 < sum(benign) < chosen.count("benign")
        model = words[0]
        more = words[1:]
        assert '""diagnosis"" = ""benign""' in bncli("export", model, "--to", "scorecard", *more, "-q").out
        report = json.loads(bncli("evaluate", "tumours.csv", "--model", model, *more, "--json", "-q").out)
        assert [one["label"] for one in report["per_class"]] == ["malignant", "benign"]
        assert bncli("report", model, *more, "--data", "tumours.csv", "-o", "r.html", "-q").code == 0
        assert "benign against malignant" in Path("r.html").read_text()
    inspected = json.loads(bncli("inspect", "b.bnc", "--json").out)
    assert inspected["labels"] == ["malignant", "benign"]
    ran = bncli("evaluate", "tumours.csv", *NB, "--folds", "3", "--positive", "benign", "--json")
    assert [one["label"] for one in json.loads(ran.out)["per_class"]] == ["malignant", "benign"]


def test_what_cannot_be_the_event(bncli: Bncli) -> None:
    assert attributes(bncli, "iris.csv")
    for words in (
        ("fit", "iris.csv"),
        ("score", "m.bnc", "iris.csv"),
        ("report", "m.bnc"),
        ("export", "m.bnc", "--to", "dot"),
    ):
        ran = bncli(*words, "--positive", "setosa")
        assert (ran.code, "needs a class with two labels, but 'class' has 3" in ran.err) == (2, True)
        ran = bncli(*words, "--positive", "rose")
        assert (ran.code, "'class' has no such label; its labels are 'setosa'" in ran.err) == (2, True)


def test_a_column_without_a_name_is_shown_as_two_quotes(bncli: Bncli) -> None:
    Path("t.csv").write_text(",a,class\n" + "".join(f"i{i},{'uv'[i % 3 == 0]},{'xy'[i % 3 == 0]}\n" for i in range(60)))
    assert (
        "left out as identifiers: '' ("
        in bncli("fit", "t.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc").err
    )
    assert "leaves out '': identifiers" in bncli("describe", "t.csv").out
