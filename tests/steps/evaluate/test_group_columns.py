"""evaluate --by: the groups of columns that are attributes, ignored, unknown to a model, numbers, texts and holes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli
from bncli.cli.main import run

IGNORED = ("--ignore", "id", "--ignore", "site", "--ignore", "w")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the working folder: a table of two classes with groups that are known, and a model of it."""
    rng = np.random.default_rng(3)
    lines = ["id,site,age,a,b,w,class"]
    for t in range(240):
        y = int(rng.random() < 0.5)
        site = ("north", "south", "")[t % 3]
        noise = 0.1 if site == "north" else 0.35
        a, b = (y ^ int(rng.random() < noise) for _ in range(2))
        age = "" if t % 40 == 7 else f"{20 + t % 50}"
        lines.append(f"r{t},{site},{age},{'xz'[a]},{'uv'[b]},{1 + t % 2},{['no', 'yes'][y]}")
    (tmp_path / "t.csv").write_text("\n".join([*lines, ""]))
    monkeypatch.chdir(tmp_path)
    assert (
        run(
            [
                "fit",
                "t.csv",
                "--ignore",
                "id",
                "--ignore",
                "site",
                "--ignore",
                "w",
                "--param",
                "map",
                "-q",
                "-o",
                "m.bnc",
            ]
        )
        == 0
    )
    return tmp_path


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run([*words.split(), "--json", "-q"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def error_of(rows: list[int], predictions: list[str], labels: list[str]) -> float:
    return float(np.mean([predictions[t] != labels[t] for t in rows]))


def columns(path: str) -> dict[str, list[str]]:
    with Path(path).open() as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_site(table: dict[str, list[str]]) -> dict[str | None, list[int]]:
    return {
        name or None: [t for t, site in enumerate(table["site"]) if site == name] for name in ("north", "south", "")
    }


def test_out_of_fold_predictions_are_pooled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "evaluate t.csv --ignore id --ignore site --ignore w --param map --by site --predictions p.csv"
    found = printed(words, capsys)
    plain = printed("evaluate t.csv --ignore id --ignore site --ignore w --param map", capsys)
    assert found["log_loss"] == plain["log_loss"], "an ignored column stays ignored"
    table, predictions = columns("t.csv"), columns("p.csv")["prediction"]
    slices = by_site(table)
    assert [(g["by"], g["value"], g["rows"]) for g in found["groups"]] == [
        ("site", "north", 80),
        ("site", "south", 80),
        ("site", None, 80),
    ]
    for group in found["groups"]:
        rows = slices[group["value"]]
        assert group["error"] == pytest.approx(error_of(rows, predictions, table["class"]))
        low, high = group["interval95"]["error"]
        assert low < group["error"] < high
        (rate,) = group["rates"]
        assert rate["label"] == "yes"
        assert rate["selection_rate"]["share"] == pytest.approx(np.mean([predictions[t] == "yes" for t in rows]))
    assert {one["by"] for one in found["fairness"]} == {"site"}


def test_a_model_and_a_test_table_have_the_groups_of_columns_that_they_do_not_know(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["score", "m.bnc", "t.csv", "--labels-only", "-q", "-o", "s.csv"]) == 0
    table, predictions = columns("t.csv"), columns("s.csv")["prediction"]
    tested = printed("evaluate t.csv --model m.bnc --by site", capsys)
    other = printed("evaluate t.csv --test t.csv --ignore id --ignore site --ignore w --param map --by site", capsys)
    for group in tested["groups"]:
        assert group["error"] == pytest.approx(error_of(by_site(table)[group["value"]], predictions, table["class"]))
    assert other["groups"] == tested["groups"]


def test_numbers_are_cut_as_the_model_cuts_them_else_in_quarters(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "c.json").write_text(
        json.dumps(
            {
                "format": "bncli-cuts",
                "version": 1,
                "class": "class",
                "attributes": [
                    {"name": "age", "type": "numeric", "cuts": [29.5, 45.5]},
                    {"name": "a", "type": "categorical", "levels": ["x", "z"]},
                ],
            }
        )
    )
    assert run(["fit", "t.csv", "--cuts", "c.json", "--param", "map", "-q", "-o", "cut.bnc"]) == 0
    ages = [float(age) for age in columns("t.csv")["age"] if age]
    expected = [sum(x <= 29.5 for x in ages), sum(29.5 < x <= 45.5 for x in ages), sum(x > 45.5 for x in ages), 6]
    for words in ("evaluate t.csv --model cut.bnc --by age", "evaluate t.csv --cuts c.json --param map --by age"):
        groups = printed(words, capsys)["groups"]
        assert [g["value"] for g in groups] == ["<=29.5", "29.5..45.5", ">45.5", None]
        assert [g["rows"] for g in groups] == expected
    assert run(["evaluate", "t.csv", "--model", "m.bnc", "--by", "w,age"]) == 0
    assert "Note: the groups of age are its quartiles" in capsys.readouterr().err
    groups = printed("evaluate t.csv --model m.bnc --by age", capsys)["groups"]
    assert len(groups) == 5
    assert all(45 <= group["rows"] <= 70 for group in groups[:4])


def test_weights_and_rows_that_do_not_count_stay_in_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / "t.csv").read_text().splitlines()
    lines[5] = lines[5].rpartition(",")[0] + ","  # no class
    lines[9] = ",".join([*lines[9].split(",")[:5], "0", "yes"])
    lines.insert(20, "ragged,row")
    (folder / "holes.csv").write_text("\n".join([*lines, ""]))
    said = "--weights w --drop-unlabelled --on-bad-row skip --by site"
    tested = printed(f"evaluate holes.csv --model m.bnc {said}", capsys)
    learnt = printed(f"evaluate holes.csv --ignore id --ignore site --param map {said}", capsys)
    table = columns("t.csv")
    kept = [t for t in range(240) if t not in (4, 8)]
    expected = {name: sum(float(table["w"][t]) for t in rows if t in kept) for name, rows in by_site(table).items()}
    for report in (tested, learnt):
        assert {g["value"]: g["weight"] for g in report["groups"]} == expected
        assert sum(g["rows"] for g in report["groups"]) == 238


def test_values_never_seen_are_a_group(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "t.csv").read_text().replace(",x,u,", ",q,u,", 3)
    (folder / "new.csv").write_text(text)
    groups = printed("evaluate new.csv --model m.bnc --by a", capsys)["groups"]
    assert {g["value"]: g["rows"] for g in groups}["unseen"] == 3


def test_bad_columns_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = ["v,a,class", *(f"k{i},{'xz'[i % 2]},{['no', 'yes'][i % 2]}" for i in range(10_000))]
    (folder / "wide.csv").write_text("\n".join([*wide, ""]))
    refused = {
        "evaluate t.csv --model m.bnc --by sit": "there is no column 'sit', t.csv; did you mean 'site'?",
        "evaluate t.csv --by class": "--by class: that is the class",
        "evaluate t.csv --model m.bnc --by class": "--by class: that is the class",
        "evaluate t.csv --weights w --by w": "--by w: that column contains the row weights",
        "evaluate t.csv --by id --param map": "column 'id' was not read as a single column of values",
        "evaluate t.csv --by site, --param map": "there is no column ''",
    }
    assert run(["fit", "wide.csv", "--ignore", "v", "--class", "class", "--param", "map", "-q", "-o", "wide.bnc"]) == 0
    refused["evaluate wide.csv --model wide.bnc --by v"] = (
        "column 'v' has 10,000 values, too many to report a group for each"
    )
    for words, said in refused.items():
        assert run([*words.split(), "-q"]) in (1, 2), words
        assert said in capsys.readouterr().err, words


def test_the_largest_gaps_come_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "t.csv", "--model", "m.bnc", "--by", "site", "-q"]) == 0
    told = capsys.readouterr().out
    lines = told[told.index("Groups by site, largest difference in error first") :].splitlines()
    gaps = [abs(float(next(cell for cell in line.split() if cell[0] in "+-" and len(cell) > 1))) for line in lines[4:7]]
    assert gaps == sorted(gaps, reverse=True)
    assert "Rates across the groups of site" in told
    assert "equalized odds" in told


def test_python_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ignored = ["id", "site", "w"]
    ours = bncli.evaluate("t.csv", ignore=ignored, param="map", by="site", progress=lambda _: None)
    theirs = printed("evaluate t.csv --ignore id --ignore site --ignore w --param map --by site", capsys)
    assert ours["groups"] == theirs["groups"]
    table = columns("t.csv")
    again = bncli.evaluate(table, ignore=ignored, param="map", by=["site"], progress=lambda _: None)
    assert [g["rows"] for g in again["groups"]] == [80, 80, 80]


def test_groups_without_an_auc_and_columns_without_values_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *rows = list(csv.reader((folder / "t.csv").read_text().splitlines()))
    for row in rows:
        row[1] = row[1] or ("only" if row[-1] == "yes" else "south")
        row[5] = ""
    with open("one.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    assert run(["evaluate", "one.csv", "--model", "m.bnc", "--by", "site,w"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note: ")]
    assert "Note: the AUC is undefined for site = only: all rows of the group have the same label" in notes
    assert "Note: the column 'w' is missing in every row, so there is only one group" in notes
    assert sum("the AUC" in note for note in notes) == 1
