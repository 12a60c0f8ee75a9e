"""`verify --property` through the command line: exit codes, JSON, counter-examples that score as stated, bad input."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bncli.engine import model as records
from bncli.files.artifacts.model import dump_model, read_model
from tests.cli.conftest import Bncli

ABOVE = "the probability of malignant is never above"


@pytest.fixture
def model(bncli: Bncli) -> str:
    assert bncli("fit", "tumours.csv", "--structure", "tan", "--param", "map", "-o", "m.bnc", "-q").code == 0
    return "m.bnc"


def score(bncli: Bncli, model: str, *rows: dict[str, Any]) -> list[dict[str, str]]:
    with Path("examples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return list(csv.DictReader(io.StringIO(bncli("score", model, "examples.csv", "-q").out)))


def verdicts(bncli: Bncli, model: str, *texts: str) -> tuple[int, list[dict[str, Any]]]:
    words = [word for text in texts for word in ("--property", text)]
    ran = bncli("verify", model, *words, "--json", "-q")
    return ran.code, json.loads(ran.out)["properties"]


def test_proven(bncli: Bncli, model: str) -> None:
    code, found = verdicts(bncli, model, f"{ABOVE} 1", "outline never decides alone")
    assert code == 0
    assert found == [
        {"property": f"{ABOVE} 1", "holds": True, "counter_example": None},
        {"property": "outline never decides alone", "holds": True, "counter_example": None},
    ]
    ran = bncli("verify", model, "--property", f"{ABOVE} 1")
    assert "proven      " + ABOVE in ran.err
    assert "verified" in ran.err


def test_an_average_whose_last_models_have_next_to_no_weight(bncli: Bncli) -> None:
    """Scoring leaves out models with weights below 1e-17, and so do bounds."""
    assert bncli("fit", "tumours.csv", "--structure", "kikuchi", "-q", "-o", "k.bnc").code == 0
    path = read_model("k.bnc").predictor
    assert isinstance(path, records.Path)
    steps = tuple(step._replace(weight=0.0 if i else 1.0) for i, step in enumerate(path.steps))
    few = replace(path, steps=(*steps[:-1], steps[-1]._replace(weight=1e-30)))
    Path("k.bnc").write_bytes(dump_model(replace(read_model("k.bnc"), predictor=few, self_test=None)))
    code, found = verdicts(bncli, "k.bnc", f"{ABOVE} 1")
    assert (code, found[0]["holds"]) == (0, True)


def test_a_bound_is_refuted_by_a_row(bncli: Bncli, model: str) -> None:
    code, (found,) = verdicts(bncli, model, f"{ABOVE} 0.5 where outline = smooth and worst_area = 300")
    assert code == 3
    assert found["holds"] is False
    example = found["counter_example"]
    assert example["outline"] == "smooth"
    (row,) = score(bncli, model, example)
    assert float(row["p_malignant"]) > 0.5
    assert float(row["p_malignant"]) == pytest.approx(found["p"]["malignant"], abs=1e-12)


def test_the_greatest_probability_is_the_threshold_of_the_property(bncli: Bncli, model: str) -> None:
    _, (found,) = verdicts(bncli, model, f"{ABOVE} 0.001 where outline = smooth")
    highest = found["p"]["malignant"]
    assert verdicts(bncli, model, f"{ABOVE} {highest + 1e-9:.12f} where outline = smooth")[0] == 0
    assert verdicts(bncli, model, f"{ABOVE} {highest - 1e-9:.12f} where outline = smooth")[0] == 3


@pytest.mark.parametrize(
    "text",
    ["the probability of malignant never falls as worst_area rises", "no single change flips a prediction above 0.9"],
)
def test_a_change_is_shown_by_two_rows(bncli: Bncli, model: str, text: str) -> None:
    code, (found,) = verdicts(bncli, model, text)
    assert code == 3
    first, second = score(bncli, model, found["counter_example"], found["counter_example"] | found["changed"])
    assert len(found["changed"]) == 1
    for row, p in ((first, found["p"]), (second, found["p_changed"])):
        assert float(row["p_malignant"]) == pytest.approx(p["malignant"], abs=1e-12)
    if "flips" in text:
        assert first["prediction"] != second["prediction"]
        assert max(found["p"].values()) > 0.9
    else:
        assert found["p_changed"]["malignant"] < found["p"]["malignant"]


def test_a_value_that_decides_alone(bncli: Bncli) -> None:
    lines = ["x,z,y", *["a,0,no"] * 40, *["b,1,yes"] * 40, "b,0,yes", "a,1,no"]
    Path("d.csv").write_text("\n".join(lines) + "\n")
    fit = ("fit", "d.csv", "--categorical", "z", "--structure", "nb", "--param", "map", "--smoothing", "laplace:0.1")
    assert bncli(*fit, "-o", "d.bnc", "-q").code == 0
    code, (found,) = verdicts(bncli, "d.bnc", "x never decides alone")
    assert code == 3
    assert found == found | {"holds": False, "counter_example": {"x": "a"}, "decision": "no"}


def test_when_the_time_runs_out_nothing_is_claimed(bncli: Bncli, model: str) -> None:
    ran = bncli("verify", model, "--property", f"{ABOVE} 0.5", "--property-seconds", "0", "--json")
    assert json.loads(ran.out)["properties"] == [{"property": f"{ABOVE} 0.5", "holds": None, "counter_example": None}]
    assert ran.code == 1
    assert "raise --property-seconds" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("it is good", "the forms are: the probability of LABEL is never above|below P"),
        ("the probability of malign is never above 0.5", "malign"),
        (f"{ABOVE} 1.5", "'1.5' is not a probability"),
        (f"{ABOVE} 0.5 where outlin = smooth", "did you mean 'outline'?"),
        (f"{ABOVE} 0.5 where outline = round", "'outline' has no value 'round'"),
        (
            f"{ABOVE} 0.5 where outline = smooth and outline = jagged",
            "gives two values of the column 'outline'",
        ),
        (f"{ABOVE} 0.5 where outline =", "no level for missing values of 'outline'"),
        (f"{ABOVE} 0.5 where outline", "is not a condition"),
        ("diagnosis never decides alone", "is the class"),
        ("the probability of malignant never falls as outline rises", "categorical"),
        ("no single change flips a prediction above all", "'all' is not a probability"),
    ],
)
def test_bad_input_is_one_line(bncli: Bncli, model: str, text: str, said: str) -> None:
    ran = bncli("verify", model, "--property", text)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.slow
def test_a_model_with_too_large_tables(bncli: Bncli, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.engine.prediction.least_scores.MOST_ENTRIES", 10)
    assert bncli("verify", model, "--property", "outline never decides alone").code == 0
    monkeypatch.setattr("bncli.engine.prediction.least_scores.ALWAYS_INPUTS", 10)
    ran = bncli("verify", model, "--property", f"{ABOVE} 0.5")
    assert (ran.code, "table entries, more than 10;" in ran.err, "--max-order" in ran.err) == (3, True, True)
    assert bncli("fit", "tumours.csv", "--structure", "auto", "--effort", "1", "-q", "-o", "auto.bnc").code == 0
    ran = bncli("verify", "auto.bnc", "--property", "the probability of benign is never above 0.5")
    assert (ran.code, "--structure interactions or tan" in ran.err, ran.err.count("\n")) == (3, True, 1)
    ran = bncli("verify", model, "--property", "it is good")
    assert (ran.code, "the forms are" in ran.err) == (2, True)


def test_columns_that_the_model_does_not_use(bncli: Bncli) -> None:
    fit = ("fit", "tumours.csv", "--structure", "nb", "--ignore", "symmetry", "--param", "map", "-o", "m.bnc", "-q")
    assert bncli(*fit).code == 0
    ran = bncli("verify", "m.bnc", "--property", "symmetry never decides alone")
    assert ran.code == 2
    assert "symmetry" in ran.err
    assert bncli("verify", "m.bnc", "--property-seconds", "3").code == 2
