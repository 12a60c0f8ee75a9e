"""Dates and national numbers from the table to the scores, by commands."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli

DAYS = [dt.date(2023, 1, 5) + dt.timedelta(days=11 * i) for i in range(60)]
HEADER = "signup;price;plz;class"


def lines(form: str = "%d.%m.%Y") -> list[str]:
    rows = [(day.strftime(form), f"{i // 10 + 1}.{i:03},50", (i % 7) * 1000 + 99) for i, day in enumerate(DAYS)]
    return [f"{day};€ {price};{code:05};{'ab'[i > 16]}" for i, (day, price, code) in enumerate(rows)]


def write(name: str, rows: list[str], header: str = HEADER) -> str:
    Path(name).write_text("\n".join([header, *rows, ""]))
    return name


def test_step_by_step_is_one_fit(bncli: Bncli) -> None:
    table = write("t.csv", lines())
    assert bncli("fit", table, "--structure", "tan", "--param", "map", "-o", "one.bnc").code == 0
    assert bncli("discretize", table, "--cuts-out", "cuts.json").code == 0
    steps = ("--cuts", "cuts.json", "--structure", "tan", "--param", "map", "-o", "steps.bnc")
    assert bncli("fit", table, *steps).code == 0
    assert Path("one.bnc").read_bytes() == Path("steps.bnc").read_bytes()
    cuts = json.loads(Path("cuts.json").read_text())
    forms = {attribute["name"]: attribute.get("form") for attribute in cuts["attributes"]}
    assert forms["signup.month"] == {"date": "signup", "part": "month", "order": "dmy"}
    assert forms["signup.days"] == {"date": "signup", "part": "days", "order": "dmy", "origin": "2023-01-05"}
    assert forms["price"] == {"decimal": ",", "sign": "€"}
    assert forms["plz"] is None


def test_scores_are_those_of_the_training_rows_however_dates_are_written(bncli: Bncli) -> None:
    write("t.csv", lines())
    assert bncli("fit", "t.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc").code == 0
    expected = bncli("score", "m.bnc", "t.csv")
    assert expected.code == 0
    assert bncli("score", "m.bnc", write("iso.csv", lines("%Y-%m-%d"))).out == expected.out
    explained = bncli("score", "m.bnc", "iso.csv", "--explain", 3).out
    assert "signup.days<=" in explained
    assert "signup.month" in bncli("evaluate", "t.csv", "--model", "m.bnc", "--json").out or expected.out
    shown = bncli("inspect", "m.bnc").out
    assert "numeric, month of signup" in shown
    assert "numeric, decimal comma, €" in shown
    described = json.loads(bncli("inspect", "m.bnc", "--json").out)
    assert described["attributes"][0]["form"]["date"] == "signup"


def test_messages_of_scoring_name_the_column_of_the_table(bncli: Bncli) -> None:
    write("t.csv", lines())
    bncli("fit", "t.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc")
    malformed = bncli("score", "m.bnc", write("bad.csv", ["31.02.2023;€ 1,00;00099;a"]))
    assert malformed.code == 1
    assert (
        "column 'signup' contains '31.02.2023', which is not a date with the day first, bad.csv line 2" in malformed.err
    )
    malformed = bncli("score", "m.bnc", write("bad.csv", ["28.02.2023;€ 1.00;00099;a"]))
    assert (
        "column 'price' contains '€ 1.00', which is not a number with a decimal comma, bad.csv line 2" in malformed.err
    )
    skipped = bncli("score", "m.bnc", write("bad.csv", ["x;€ 1,00;00099;a", ";?;00099;a"]), "--on-bad-row", "skip")
    assert skipped.code == 0
    assert "2 values missing (signup 1, price 1)" in skipped.err
    absent = bncli("score", "m.bnc", write("absent.csv", ["€ 1,00;00099"], "price;plz"))
    assert "the table has no column 'signup', which the model uses, absent.csv" in absent.err
    allowed = bncli("score", "m.bnc", "absent.csv", "--allow-missing-columns")
    assert "1 column absent (signup)" in allowed.err


def test_simulated_rows_can_be_scored_and_learnt_from(bncli: Bncli) -> None:
    write("t.csv", lines())
    bncli("fit", "t.csv", "--structure", "nb", "--param", "map", "-o", "m.bnc")
    bncli("discretize", "t.csv", "--cuts-out", "cuts.json")
    assert bncli("simulate", "m.bnc", "--rows", 40, "-o", "simulated.csv").code == 0
    scored = bncli("score", "m.bnc", "simulated.csv")
    assert scored.code == 0
    assert scored.out.count("\n") == 41
    cuts = ("--cuts", "cuts.json", "--structure", "nb", "--param", "map", "-o", "again.bnc")
    assert bncli("fit", "simulated.csv", *cuts).code == 0


def test_evaluate_and_compare_know_dates(bncli: Bncli) -> None:
    write("t.csv", lines())
    assert bncli("evaluate", "t.csv", "--structure", "nb", "--param", "map", "--folds", 2).code == 0
    done = bncli("compare", "t.csv", "--learner", "nb=--structure nb --param map", "--folds", 2, "--jobs", 1)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--decimal", ";"), "--decimal must be a point or a comma, not ';'"),
        (("--encoding", "klingon"), "unknown encoding 'klingon'"),
        (("--dates", "ydm"), "ydm"),
        (("--categorical", "signup.month"), "'signup.month' is a number"),
    ],
)
def test_wrong_words_are_usage_errors(bncli: Bncli, words: tuple[str, ...], message: str) -> None:
    write("t.csv", lines())
    refused = bncli("fit", "t.csv", *words)
    assert refused.code == 2
    assert message in refused.err
