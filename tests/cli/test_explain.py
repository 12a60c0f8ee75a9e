"""`bncli explain`: the effects that inspect shows, and the contributions that score writes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from .conftest import Bncli


@pytest.fixture
def model(bncli: Bncli) -> str:
    assert bncli("fit", "tumours.csv", "--structure", "tan", "--param", "map", "-q", "-o", "m.bnc").code == 0
    return "m.bnc"


def test_contributions_add_up_and_are_those_of_score(bncli: Bncli, model: str) -> None:
    rows = json.loads(bncli("explain", model, "tumours.csv", "--rows", "5-30", "--top", 3, "--json").out)["rows"]
    scored = bncli("score", model, "tumours.csv", "--row", "5-30", "--explain", 3, "--output-format", "jsonl", "-q").out
    assert [row["row"] for row in rows] == [*range(5, 31)]
    for row, line in zip(rows, map(json.loads, scored.splitlines()), strict=True):
        total = row["base"] + sum(one["log_odds"] for one in row["contributions"]) + row["rest"]
        assert row["log_odds"] == pytest.approx(total, abs=1e-9)
        assert row["log_odds"] == pytest.approx(math.log(row["p"] / (1 - row["p"])), rel=1e-6)
        assert row["prediction"] == line["prediction"]
        assert row["p"] == line[f"p_{line['prediction']}"]
        assert (row["base"], row["rest"]) == (line["base"], line["rest"])
        assert len(row["contributions"]) == 3


def test_the_text_shows_every_part_of_a_row(bncli: Bncli, model: str) -> None:
    lines = bncli("explain", model, "tumours.csv", "--rows", 17, "--top", 2).out.splitlines()
    assert lines[0].startswith("Row 17: malignant with probability 0.")
    assert lines[1].split()[:2] == ["average", "row"]
    numbers = [float(line.split("|")[0].rstrip(" █").split()[-1]) for line in lines[1:]]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.003)
    assert len(lines) == 6


def test_without_data_it_shows_the_effects_of_inspect(bncli: Bncli, model: str) -> None:
    effects = bncli("explain", model).out
    assert effects in bncli("inspect", model, "--effects").out
    one, other = (
        json.loads(bncli("explain", model, "--json").out),
        json.loads(bncli("inspect", model, "--effects", "--json").out),
    )
    assert {key: one[key] for key in ("effects", "effects_base")} == {k: other[k] for k in ("effects", "effects_base")}
    turned = bncli("explain", model, "--positive", "benign").out
    assert "Log-odds of benign" in turned


@pytest.mark.slow
def test_rows_of_every_kind_of_model_are_explained(bncli: Bncli) -> None:
    for options in (
        ("--structure", "auto", "--effort", "1"),
        ("--structure", "kikuchi"),
        ("--structure", "nb", "--penalty", "1", "--calibrate", "isotonic"),
    ):
        assert bncli("fit", "iris.csv", *options, "-q", "-o", "m.bnc").code == 0
        rows = json.loads(bncli("explain", "m.bnc", "iris.csv", "--rows", "60", "--json").out)["rows"]
        assert rows[0]["prediction"] in ("versicolor", "virginica")
        assert 0.3 < rows[0]["p"] <= 1


def test_settings_about_rows_are_ignored_where_no_rows_are_read(
    bncli: Bncli, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bncli("monitor", model, "tumours.csv", "-q", "-o", "week.json").code == 0
    commands = (
        ("explain", model),
        ("diff", model, model),
        ("monitor", "week.json"),
        ("score", model, "tumours.csv", "--labels-only"),
    )
    plain = [bncli(*words).out for words in commands]
    for setting, value in (("ON_BAD_ROW", "skip"), ("MISSING", "?"), ("ENCODING", "latin-1"), ("DIGITS", "3")):
        monkeypatch.setenv(f"BNCLI_{setting}", value)
    done = [bncli(*words) for words in commands]
    assert [one.code for one in done] == [0, 0, 0, 0], [one.err for one in done]
    assert [one.out for one in done] == plain


def test_what_makes_no_sense_is_one_line(bncli: Bncli, model: str) -> None:
    Path("less.csv").write_text("radius\n1\n")
    for words, code, what in (
        (("explain", model, "--rows", "3"), 2, "--rows has no effect without DATA"),
        (("explain", model, "--top", "3"), 2, "--top has no effect without DATA"),
        (("explain", model, "--names", "a,b"), 2, "--names has no effect without DATA"),
        (("explain", model, "--on-bad-row", "skip"), 2, "--on-bad-row has no effect without DATA"),
        (("diff", model, model, "--names", "a,b"), 2, "--names has no effect without --data"),
        (("explain", model, "tumours.csv", "--rows", "0"), 2, "numbered from 1"),
        (("explain", model, "tumours.csv", "--rows", "x"), 2, "--rows x"),
        (("explain", model, "tumours.csv", "--rows", "570"), 1, "there is no row 570: the table has 569 rows"),
        (("explain", model, "tumours.csv", "--positive", "benign"), 2, "--positive has no effect with DATA"),
        (("explain", model, "less.csv"), 3, "texture"),
        (("explain", "tumours.csv"), 3, "tumours.csv"),
        (("explain", "none.bnc"), 3, "none.bnc"),
    ):
        done = bncli(*words)
        assert (done.code, done.out) == (code, ""), words
        assert what in done.err
        assert done.err.count("\n") == 1


def test_a_nomogram_keeps_the_value_that_differs(bncli: Bncli, tmp_path: Path) -> None:
    """Sixty towns share the largest effect; without the city, the scale would be flat."""
    towns = [f"t{town},{label}" for town in range(60) for label in ["yes"] * 12 + ["no"] * 4]
    city = [*["city,yes"] * 300, *["city,no"] * 900]
    (tmp_path / "towns.csv").write_text("\n".join(["town,class", *towns, *city, ""]))
    words = ("--structure", "nb", "--param", "map", "--group-levels", "off", "-q", "-o", "t.bnc")
    assert bncli("fit", "towns.csv", *words).code == 0
    shown = bncli("explain", "t.bnc")
    assert shown.code == 0, shown.err
    assert "city 0, t0 100" in shown.out
