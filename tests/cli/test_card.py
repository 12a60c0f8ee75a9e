"""`--structure card`: limits, integer points, and probabilities that follow from the printed card alone."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli as package
from tests.cli.conftest import Bncli
from tests.sweeps import first_few


def _table(path: Path, n_labels: int) -> list[list[str]]:
    """Write 400 rows whose label follows a number and a word; another number says nothing."""
    rng = np.random.default_rng(3)
    number, noise, word = rng.normal(size=400), rng.normal(size=400), rng.integers(0, 6, 400)
    score = 2 * number + (word % 2) * 2 + rng.logistic(size=400)
    labels = np.digitize(score, np.quantile(score, np.arange(1, n_labels) / n_labels))
    rows = [[f"{a:.4f}", f"{b:.4f}", f"w{c}", f"L{y}"] for a, b, c, y in zip(number, noise, word, labels, strict=True)]
    path.write_text("\n".join(",".join(row) for row in [["number", "noise", "word", "class"], *rows]) + "\n")
    return rows


def _points(entry: dict[str, Any], row: dict[str, str]) -> int | None:
    """Return the points of a line of the card if the row has its value, read as a person reads it."""
    text, value = entry["value"], row[entry["attribute"]]
    if text.startswith("("):
        low, high = (float(end) for end in text[1:-1].split(", "))
        return entry["points"] if low < float(value) <= high else None
    return entry["points"] if value in text.split(" | ") else None


@pytest.mark.parametrize("n_labels", [2, 3])
def test_rows_are_explained_by_the_groups_of_the_card(bncli: Bncli, tmp_path: Path, n_labels: int) -> None:
    """The interval of a contribution is one of the card, not a finer one with the same points."""
    _table(tmp_path / "t.csv", n_labels)
    typed = ("fit", "t.csv", "--structure", "card", "--rows", "7", "-o", "m.bnc", "-q", "--json")
    card = json.loads(bncli(*typed).out)["card"]
    groups = {entry["value"] for entry in card["points"] if entry["attribute"] == "number"}
    rows = json.loads(bncli("explain", "m.bnc", "t.csv", "--json", "-q").out)["rows"]
    told = {one["value"] for row in rows for one in row["contributions"] if one["effect"] == "number"}
    of_card = set()
    for group in groups:
        low, high = (f"{float(end):.6g}" for end in group[1:-1].split(", "))
        of_card.add(f"<={high}" if low == "-inf" else f">{low}" if high == "inf" else f"{low}..{high}")
    assert len(told) > 2
    assert told <= of_card


@pytest.mark.parametrize(("n_labels", "most"), [(2, 100), pytest.param(2, 5, marks=pytest.mark.slow), (3, 10)])
def test_the_card_alone_gives_the_scores(bncli: Bncli, tmp_path: Path, n_labels: int, most: int) -> None:
    rows, model = _table(tmp_path / "t.csv", n_labels), str(tmp_path / "m.bnc")
    limits = ("--columns", "2", "--rows", "7", "--points", str(most))
    fitted = bncli("fit", str(tmp_path / "t.csv"), "--structure", "card", *limits, "-o", model, "-q", "--json")
    assert fitted.code == 0, fitted.err
    card = json.loads(fitted.out)["card"]
    assert card["columns"] <= 2
    assert card["rows"] <= 7
    assert {entry["attribute"] for entry in card["points"]} == {"number", "word"}
    assert max(abs(entry["points"]) for entry in card["points"]) == most
    assert all(isinstance(entry["points"], int) for entry in card["points"])
    assert card["log_loss"] < math.log(n_labels)
    assert card["log_loss_unlimited"] < math.log(n_labels)
    assert all(("label" in entry) == (n_labels > 2) for entry in card["points"])
    scored = bncli("score", model, str(tmp_path / "t.csv"), "-o", str(tmp_path / "s.csv"), "-q")
    assert scored.code == 0, scored.err
    header, *lines = (line.split(",") for line in (tmp_path / "s.csv").read_text().splitlines())
    p_of = [dict(zip(header, line, strict=True)) for line in lines]
    if n_labels > 2:
        assert not card["totals"]
        return
    # log-odds are one straight line in the total, which the listed totals lie on as well
    totals, log_odds = [], []
    for row, p in zip(rows, p_of, strict=True):
        named = dict(zip(("number", "noise", "word"), row[:3], strict=True))
        own = [_points(entry, named) for entry in card["points"]]
        totals.append(sum(points for points in own if points is not None))
        log_odds.append(math.log(float(p["p_L1"]) / float(p["p_L0"])))
    slope, offset = np.polyfit(totals, log_odds, 1)
    assert slope > 0
    assert np.allclose(log_odds, offset + slope * np.array(totals), atol=1e-4)
    for one in card["totals"]:
        assert one["p"] == pytest.approx(1 / (1 + math.exp(-(offset + slope * one["total"]))), abs=1e-4)


def test_fit_prints_the_card_and_options_without_effect_are_refused(bncli: Bncli, tmp_path: Path) -> None:
    _table(tmp_path / "t.csv", 2)
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.bnc")
    printed = bncli("fit", table, "--structure", "card", "-o", model)
    assert "without the limits of the card" in printed.out + printed.err
    for typed in (("--structure", "tan", "--rows", "9"), ("--structure", "card", "--rows", "1")):
        refused = bncli("fit", table, *typed, "-o", model)
        assert refused.code == 2
        assert "Traceback" not in refused.err


def test_alternatives_are_other_columns_of_about_the_same_loss(bncli: Bncli, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    number = rng.normal(size=300)
    labels = number + rng.logistic(size=300) > 0
    rows = [f"{a:.3f},{a + 0.01 * b:.3f},{y}" for a, b, y in zip(number, rng.normal(size=300), labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.bnc")
    fitted = bncli(
        "fit", table, "--structure", "card", "--columns", "1", "--alternatives", "2", "-o", model, "--json", "-q"
    )
    assert fitted.code == 0, fitted.err
    card = json.loads(fitted.out)["card"]
    chosen = {entry["attribute"] for entry in card["points"]}
    assert [set(other["columns"]) for other in card["alternatives"]] == [{"a", "b"} - chosen]
    assert card["alternatives"][0]["log_loss"] <= 1.01 * card["log_loss"]
    plain = bncli("fit", table, "--structure", "card", "--columns", "1", "-o", str(tmp_path / "n.bnc"), "--json", "-q")
    assert json.loads(plain.out)["card"] == {**card, "alternatives": []}
    assert (tmp_path / "n.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()
    refused = bncli("fit", table, "--structure", "tan", "--alternatives", "2", "-o", model)
    assert refused.code == 2
    assert "--alternatives has no effect with --structure tan" in refused.err


@pytest.mark.usefixtures("fewer_export_rows")
def test_the_scorecard_of_a_card_has_its_points_and_totals_unless_a_scale_is_typed(
    bncli: Bncli, tmp_path: Path
) -> None:
    rows, model, scorecard = _table(tmp_path / "t.csv", 2), str(tmp_path / "m.bnc"), tmp_path / "card.csv"
    fitted = bncli("fit", str(tmp_path / "t.csv"), "--structure", "card", "-o", model, "-q", "--json")
    card = json.loads(fitted.out)["card"]
    exported = bncli("export", model, "--to", "scorecard", "-o", str(scorecard), "--json")
    assert exported.code == 0, exported.err
    assert json.loads(exported.out)["totals"] == [
        {"total": one["total"], "p": pytest.approx(one["p"], abs=1e-12)} for one in card["totals"]
    ]
    header, *lines, last = csv.reader(io.StringIO(scorecard.read_text()))
    assert header == ["attribute", "value", "points", "below_best"]
    own = [line for line in lines if not ("(missing)" in line[1] or "(unseen)" in line[1])]
    assert [line[:3] for line in own] == [[e["attribute"], e["value"], str(e["points"])] for e in card["points"]]
    # the printed table gives the probability of the score of a row
    offset, factor = (float(x) for x in re.findall(r"score - (\S+)\) / (\S+)\)\)", last[1])[0])
    scored = bncli("score", model, str(tmp_path / "t.csv"), "-q").out.splitlines()[1:]
    for row, line in list(zip(rows, scored, strict=True))[:50]:
        named = dict(zip(("number", "noise", "word"), row[:3], strict=True))
        total = sum(p for entry in card["points"] if (p := _points(entry, named)) is not None)
        assert float(line.split(",")[2]) == pytest.approx(1 / (1 + math.exp(-(total - offset) / factor)), abs=1e-9)
    # a typed scale gives other points for the same rows
    for typed in ("--pdo", "20"), ("--base", "600"), ("--odds", "50"):
        exported = bncli("export", model, "--to", "scorecard", *typed, "-o", str(scorecard), "--json")
        scaled = [line for line in csv.reader(io.StringIO(scorecard.read_text())) if "(missing)" not in line[1]]
        assert len([line for line in scaled[1:-1] if "(unseen)" not in line[1]]) == card["rows"]
        scale = 20 / math.log(2)
        for one in json.loads(exported.out)["totals"]:
            assert one["p"] == pytest.approx(1 / (1 + math.exp(-(one["total"] - 600 + scale * math.log(50)) / scale)))


@pytest.mark.usefixtures("fewer_export_rows")
def test_an_edited_card_has_no_whole_points_of_its_own(bncli: Bncli, tmp_path: Path) -> None:
    _table(tmp_path / "t.csv", 2)
    model = str(tmp_path / "m.bnc")
    assert bncli("fit", str(tmp_path / "t.csv"), "--structure", "card", "-o", model, "-q").code == 0
    edited = bncli("edit", model, "--effect", "word", "--set", "w1=0.123", "--why", "a trial", "-q")
    assert edited.code == 0, edited.err
    last = bncli("export", model, "--to", "scorecard", "-q").out.splitlines()[-1]
    assert f"/ {20 / math.log(2)!r}" in last


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_card_of_several_labels_has_a_column_of_points_for_each(bncli: Bncli, tmp_path: Path) -> None:
    _table(tmp_path / "t.csv", 3)
    model, scorecard = str(tmp_path / "m.bnc"), tmp_path / "card.csv"
    fitted = bncli("fit", str(tmp_path / "t.csv"), "--structure", "card", "--points", "10", "-o", model)
    assert "      L0      L1      L2\n" in fitted.err
    exported = bncli("export", model, "--to", "scorecard", "-o", str(scorecard))
    assert exported.code == 0, exported.err
    assert "verified" in exported.err
    lines = list(csv.reader(io.StringIO(scorecard.read_text())))
    assert lines[0] == ["attribute", "value", "points_L0", "points_L1", "points_L2"]
    assert [line[0] for line in lines[-2:]] == ["(base)", "(probability)"]
    assert all(float(x) == int(x) for line in lines[1:-2] for x in line[2:])
    as_json = tmp_path / "card.json"
    assert bncli("export", model, "--to", "scorecard", "-o", str(as_json), "-q").code == 0
    listed = [row["points"] for table in json.loads(as_json.read_text())["tables"] for row in table["rows"]]
    assert listed == [[int(x) for x in line[2:]] for line in lines[1:-2]]
    assert bncli("export", model, "--to", "scorecard", "--pdo", "20").code == 3


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize("n_labels", first_few([2, 3]))
def test_a_pair_has_rows_of_both_values_and_is_exported(bncli: Bncli, tmp_path: Path, n_labels: int) -> None:
    rng = np.random.default_rng(2)
    number, word, noise = rng.normal(size=500), rng.integers(0, 3, 500), rng.integers(0, 4, 500)
    labels = (((number > 0.5) ^ (word == 1)).astype(int) + (noise == 3) * (n_labels - 2)) % n_labels
    labels = np.where(rng.random(500) < 0.1, 0, labels)
    holes = rng.random(500) < 0.1
    lines = [
        f"{k},{'' if hole else f'{a:.3f}'},w{b},n{c},L{y}"
        for k, (hole, a, b, c, y) in enumerate(zip(holes, number, word, noise, labels, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,number,word,noise,class", *lines]) + "\n")
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.bnc")
    typed = ("--structure", "card", "--pairs", "1", "--rows", "14", "--ignore", "id")
    fitted = bncli("fit", table, *typed, "-o", model, "--json", "-q")
    assert fitted.code == 0, fitted.err
    card = json.loads(fitted.out)["card"]
    pair = [entry for entry in card["points"] if entry["attribute"] == "number & word"]
    assert pair
    assert all(entry["value"].count(" & ") == 1 for entry in pair)
    assert card["rows"] == len(card["points"]) / (1 if n_labels == 2 else n_labels) <= 14
    assert card["columns"] == len({name for e in card["points"] for name in e["attribute"].split(" & ")})
    for form in ["sql", "scorecard"] if n_labels == 2 else ["python", "onnx", "scorecard"]:
        key = ("--key", "id") if form == "sql" else ()
        exported = bncli("export", model, "--to", form, *key, "-o", str(tmp_path / f"m.{form}"))
        assert exported.code == 0, exported.err
        assert "verified" in exported.out + exported.err
    own = (tmp_path / "m.scorecard").read_text()
    for entry in pair:
        assert f'"{entry["value"]}"' in own if "," in entry["value"] else f",{entry['value']}," in own
    if n_labels == 2:
        because = ("score", model, table, "--because", "-o", str(tmp_path / "s.csv"))
        report = ("report", model, table, "-o", str(tmp_path / "r.html"))
        for command in (because, report, ("fit", table, *typed[:-2], "--group", "id", "-o", model, "-q")):
            done = bncli(*command)
            assert done.code == 0, done.err


@pytest.mark.slow
def test_a_card_keeps_directions_that_are_proven_and_shown(bncli: Bncli, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    age, dose, noise = rng.normal(50, 10, 400), rng.integers(0, 9, 400), rng.normal(size=400)
    labels = np.abs(age - 55) / 5 + dose / 3 + rng.logistic(size=400) > 3
    lines = [
        f"{k // 2},{a:.1f},{b},{c:.2f},{'sick' if y else 'fit'}"
        for k, (a, b, c, y) in enumerate(zip(age, dose, noise, labels, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,age,dose,noise,class", *lines]) + "\n")
    table, model = str(tmp_path / "t.csv"), str(tmp_path / "m.bnc")
    learnt = ("--structure", "card", "--numeric", "dose", "--group", "id")
    typed = (*learnt, "--increasing", "age", "--decreasing", "dose")
    fitted = bncli("fit", table, *typed, "--alternatives", "1", "-o", model, "--json", "-q")
    assert fitted.code == 0, fitted.err
    card = json.loads(fitted.out)["card"]
    points = [entry["points"] for entry in card["points"] if entry["attribute"] == "age"]
    assert points == sorted(points)
    assert len(points) > 1
    assert "dose" not in {entry["attribute"] for entry in card["points"]}  # the rows say the opposite
    free = json.loads(bncli("fit", table, *learnt, "-o", str(tmp_path / "n.bnc"), "--json", "-q").out)["card"]
    points = [entry["points"] for entry in free["points"] if entry["attribute"] == "age"]
    assert points != sorted(points)
    assert card["log_loss"] > free["log_loss"]
    for name, code in (("m.bnc", 0), ("n.bnc", 3)):
        proof = ("verify", str(tmp_path / name), "--property", "the probability of sick never falls as age rises")
        assert bncli(*proof).code == code
    evaluated = bncli("evaluate", table, *typed, "--folds", "2", "--json", "-q")
    assert evaluated.code == 0, evaluated.err
    options = {"structure": "card", "numeric": ["dose"], "group": "id", "increasing": ["age"], "decreasing": ["dose"]}
    package.fit(table, **options).save(tmp_path / "p.bnc")  # type: ignore[arg-type]
    assert (tmp_path / "p.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()
