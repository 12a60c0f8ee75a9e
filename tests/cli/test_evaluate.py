"""Evaluation on the command line: `--model` with typed decisions, and `--train-rows`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli as package
from bncli.errors import UsageError
from bncli.files.pictures.page import percent
from tests.cli.conftest import Bncli

NB = ("--structure", "nb", "--param", "map")
COSTS = "benign:malignant=1,malignant:benign=8"


def fit(bncli: Bncli, *words: str) -> None:
    ran = bncli("fit", "tumours.csv", *NB, *words, "-o", "m.bnc", "-q")
    assert ran.code == 0, ran.err


def evaluated(bncli: Bncli, *words: str) -> dict[str, Any]:
    ran = bncli("evaluate", "--model", "m.bnc", "tumours.csv", *words, "--json", "-q")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def scored(bncli: Bncli, *words: str) -> tuple[list[str], list[dict[str, str]]]:
    """The true labels, and the rows as `score` writes them."""
    true = [line.rsplit(",", 1)[1] for line in Path("tumours.csv").read_text().splitlines()[1:]]
    return true, list(csv.DictReader(io.StringIO(bncli("score", "m.bnc", "tumours.csv", "-q", *words).out)))


@pytest.mark.parametrize("stored", [(), ("--threshold", "0.9")])
def test_what_is_typed_decides_in_place_of_the_model(bncli: Bncli, stored: tuple[str, ...]) -> None:
    """The figures are those of the columns that `score` writes with the same words."""
    fit(bncli, *stored)
    words = ("--costs", COSTS, "--abstain-below", "0.8")
    found = evaluated(bncli, *words)
    true, rows = scored(bncli, *words)
    there = [(label, row["decision"]) for label, row in zip(true, rows, strict=True) if row["decision"]]
    price = {("benign", "malignant"): 1, ("malignant", "benign"): 8}
    assert 0 < len(there) < len(rows)
    assert found["cost"] == pytest.approx(np.mean([price.get(pair, 0) for pair in there]))
    assert found["abstention"] == pytest.approx(1 - len(there) / len(rows))
    assert found["decided_accuracy"] == pytest.approx(np.mean([label == decision for label, decision in there]))
    assert "threshold" not in found
    plain = evaluated(bncli)
    assert plain["log_loss"] == found["log_loss"]
    assert ("threshold" in plain) == bool(stored)


def test_rows_held_out_serve_another_threshold_and_other_sets(bncli: Bncli) -> None:
    fit(bncli, "--sets", "0.1", "--threshold", "best:f1")
    found = evaluated(bncli, "--sets", "0.3", "--threshold", "recall=0.99")
    true, rows = scored(bncli, "--sets", "0.3", "--threshold", "recall=0.99")
    assert found["threshold"] < evaluated(bncli)["threshold"]
    covered = [label in row["set"].split("|") for label, row in zip(true, rows, strict=True)]
    assert found["coverage"] == pytest.approx(np.mean(covered))
    assert found["coverage"] < evaluated(bncli)["coverage"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sets 0.1", "no held-out rows for prediction sets"),
        ("--threshold best:f1", "has no held-out rows from which to choose the threshold best:f1"),
        ("--sets-by class", "--sets-by has no effect without --sets"),
        ("--threshold 0.3 --costs " + COSTS, "--costs and --threshold both define the decisions"),
        ("--structure nb --threshold 0.3", "--structure has no effect with --model"),
    ],
)
def test_what_cannot_be_decided_is_refused(bncli: Bncli, words: str, message: str) -> None:
    fit(bncli)
    ran = bncli("evaluate", "--model", "m.bnc", "tumours.csv", *words.split())
    assert ran.code in (1, 2, 3)
    assert message in " ".join(ran.err.split()), ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ({}, ""),
        ({"by": "size"}, "--by size"),
        ({"reliability": True, "abstain_below": None}, "--reliability"),
        (
            {"costs": {"benign": {"malignant": 1}, "malignant": {"benign": 8}}, "abstain_below": 0.8},
            f"--costs {COSTS} --abstain-below 0.8",
        ),
    ],
)
def test_a_model_is_evaluated_from_python(bncli: Bncli, said: dict[str, Any], typed: str) -> None:
    fit(bncli, "--threshold", "0.9")
    found, expected = package.load("m.bnc").evaluate("tumours.csv", **said), evaluated(bncli, *typed.split())
    for key in ("seconds", "schema_version"):
        found.pop(key, None), expected.pop(key)
    assert json.loads(json.dumps(found)) == expected


def test_words_that_say_nothing_of_decisions_are_refused(bncli: Bncli) -> None:
    fit(bncli)
    model = package.load("m.bnc")
    with pytest.raises(TypeError, match="no option 'cost'"):
        model.evaluate("tumours.csv", cost=COSTS)
    with pytest.raises(UsageError, match="both define the decisions"):
        model.evaluate("tumours.csv", costs=COSTS, threshold=0.3)


def test_reliability_is_told_in_python_too(bncli: Bncli) -> None:
    found = package.evaluate("tumours.csv", structure="nb", param="map", folds=3, reliability=True)
    ran = bncli("evaluate", "tumours.csv", *NB, "--folds", "3", "--reliability", "--json", "-q")
    expected = json.loads(ran.out)
    for key in ("reliability", "brier_parts", "ece_equal_mass"):
        assert json.loads(json.dumps(found[key])) == expected[key]


def rates_of(found: dict[str, Any], value: str) -> dict[str, float]:
    """The shares told of the group of this value."""
    (group,) = [one for one in found["groups"] if one["value"] == value]
    (rates,) = group["rates"]
    return {name: rate["share"] for name, rate in rates.items() if isinstance(rate, dict)}


@pytest.mark.parametrize(
    "rule", [("--costs", COSTS), ("--threshold", "0.02"), ("--abstain-below", "0.9"), ("--costs", COSTS, "--stored")]
)
def test_rates_of_groups_are_those_of_the_decisions(bncli: Bncli, rule: tuple[str, ...]) -> None:
    """Against the column `decision` that `score` writes."""
    lines = Path("tumours.csv").read_text().splitlines()
    side = ["side", *("left" if i % 3 else "right" for i in range(len(lines) - 1))]
    Path("tumours.csv").write_text("\n".join(f"{s},{line}" for s, line in zip(side, lines, strict=True)) + "\n")
    is_stored, words = "--stored" in rule, tuple(word for word in rule if word != "--stored")
    fit(bncli, "--ignore", "side", *(words if is_stored else ()))
    words = () if is_stored else words
    found, plain = evaluated(bncli, "--by", "side", *words), evaluated(bncli, "--by", "side", "--threshold", "0.5")
    true, rows = scored(bncli, *words)
    for value in ("left", "right"):
        own = [(y, row["decision"]) for y, row, s in zip(true, rows, side[1:], strict=True) if s == value]
        chosen = {kind: [d == "malignant" for y, d in own if kind in ("all", y)] for kind in ("all", *set(true))}
        expected = {
            "selection_rate": np.mean(chosen["all"]),
            "true_positive_rate": np.mean(chosen["malignant"]),
            "false_positive_rate": np.mean(chosen["benign"]),
        }
        assert rates_of(found, value) == pytest.approx(expected)
        assert rates_of(plain, value) != pytest.approx(expected)
        (group,) = [one for one in found["groups"] if one["value"] == value]
        decided = [y == d for y, d in own if d]
        assert group["decided_accuracy"] == pytest.approx(np.mean(decided))
        assert ("cost" in group, "abstention" in group) == ("--costs" in rule, "--abstain-below" in rule)
        if "--abstain-below" in rule:
            assert group["abstention"] == pytest.approx(1 - len(decided) / len(own))
    gaps = {rate: [rates_of(found, value)[rate] for value in ("left", "right")] for rate in expected}
    for rate, shares in gaps.items():
        assert found["fairness"][0][rate]["difference"] == pytest.approx(max(shares) - min(shares))


def test_rates_under_cross_validation_are_those_of_the_folds_decisions(bncli: Bncli) -> None:
    words = ("evaluate", "tumours.csv", *NB, "--repeats", "2", "--by", "size", "-q")
    ran = bncli(*words, "--costs", COSTS, "--predictions", "p.csv", "--json", "--report", "e.html")
    found = json.loads(ran.out)
    with open("p.csv") as file:
        likely = [float(row["p_malignant"]) for row in csv.DictReader(file)]
    selected = np.mean([p * 8 > 1 - p for p in likely])
    weights = [group["weight"] for group in found["groups"]]
    rates = [group["rates"][0]["selection_rate"]["share"] for group in found["groups"]]
    assert np.average(rates, weights=weights) == pytest.approx(selected)
    assert selected != pytest.approx(np.mean([p > 0.5 for p in likely]))
    page = Path("e.html").read_text()
    assert "Decision rule of the models of the folds" in page
    assert "error rate of the rule" in page
    told = percent(1 - found["groups"][0]["decided_accuracy"])
    assert f">{told}<" in page.partition("error rate of the rule")[2]
    table = page.partition("error rate of the rule")[2].partition("</table>")[0]
    assert all(f">{heading}<" in table for heading in ("decided malignant", "true positive rate"))
    assert all(f">{percent(rate)}<" in table for rate in rates)
    fit(bncli, "--costs", COSTS)
    assert bncli("evaluate", "tumours.csv", "--model", "m.bnc", "-q", "--report", "m.html").code == 0
    assert "Decision rule of the model: it predicts the class with the lowest" in Path("m.html").read_text()
    assert "Rates of decisions across the groups" in " ".join(bncli(*words, "--costs", COSTS).out.split())
    assert "Rates of decisions" not in bncli(*words).out


PLAIN = ("evaluate", "iris.csv", "--structure", "nb", "--param", "map")


def test_the_table_shows_the_figures_of_the_json(bncli: Bncli) -> None:
    report = json.loads(bncli(*PLAIN, "--train-rows", " 9, 20 ,all", "--json").out)
    assert [point["rows"] for point in report["learning_curve"]] == [9, 20, 120]
    assert report["learning_curve"][-1]["std"] == report["std"]
    shown = [line.split() for line in bncli(*PLAIN, "--train-rows", "9,20,all").out.splitlines()]
    for point in report["learning_curve"]:
        names = ("error", "log_loss", "auc")
        told = [f"{figures[name]:.4f}" for name in names for figures in (point, point["std"])]
        assert [str(point["rows"]), *told] in shown
    assert "learning_curve" not in json.loads(bncli(*PLAIN, "--json").out)


def test_a_test_table_has_a_spread_only_where_samples_are_drawn_anew(bncli: Bncli) -> None:
    once = json.loads(bncli(*PLAIN, "--test", "iris.csv", "--train-rows", "30,all", "--json").out)["learning_curve"]
    assert set(once[0]["std"].values()) == {None}
    words = ("--train-rows", "30", "--repeats", "3", "--csv", "-", "-q", "--json")
    curve, report = bncli(*PLAIN, "--test", "iris.csv", *words).out.split("\n{")
    (point,) = json.loads("{" + report)["learning_curve"]
    assert point["std"]["log_loss"] > 0
    assert len(curve.splitlines()) == 4


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["table", "json"])
@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("--train-rows", "0"), 2, "'0' is not a whole number of at least 1"),
        (("--train-rows", "-5"), 2, "'-5' is not a whole number"),
        (("--train-rows", "ten"), 2, "'ten' is not a whole number"),
        (("--train-rows", "10,,20"), 2, "'' is not a whole number"),
        (("--train-rows", "1e2"), 2, "'1e2' is not a whole number"),
        (("--train-rows", "9" * 30), 2, "is too large"),
        (("--train-rows", ""), 2, "the value is empty"),
        (("--train-rows", "20,10"), 2, "10 is listed after 20: sizes must be increasing"),
        (("--train-rows", "10,10"), 2, "10 is listed twice"),
        (("--train-rows", "all,10"), 2, "'all' is the largest size, so it must come last"),
        (("--train-rows", "all,all"), 2, "'all' is the largest size"),
        (("--train-rows", "121"), 2, "121 is more than the 120 rows to learn from in a fold (150 rows, 5 folds)"),
        (("--train-rows", "120,all"), 2, "120 twice, once as all"),
        (("--train-rows", "151", "--test", "iris.csv"), 2, "151 is more than the 150 rows to learn from"),
        (("--train-rows", "9", "--test", "iris.csv", "--folds", "3"), 2, "--folds has no effect with --test"),
        (("--test", "iris.csv", "--repeats", "3"), 2, "--repeats has no effect with --test"),
        (("--csv", "c.csv"), 2, "--csv writes the learning curve, so it needs --train-rows"),
        (("--train-rows", "9", "--csv", "no/c.csv"), 1, "there is no folder"),
        (("--train-rows", "9", "--csv", "iris.csv"), 2, "is the same file"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_said_in_a_line(
    bncli: Bncli, words: tuple[str, ...], code: int, fault: str, as_json: tuple[str, ...]
) -> None:
    ran = bncli(*PLAIN, *words, *as_json)
    assert ran.code == code
    assert ran.out == ""
    errors = [line for line in ran.err.splitlines() if not line.startswith(("Usage:", "Try "))]
    assert len(errors) == 1
    assert fault in errors[0]


def test_a_model_has_no_learning_curve(bncli: Bncli) -> None:
    bncli("fit", "iris.csv", "--param", "map", "-o", "m.bnc")
    for words in (("--train-rows", "9"), ("--csv", "c.csv")):
        ran = bncli("evaluate", "iris.csv", "--model", "m.bnc", *words)
        assert ran.code == 2
        assert f"{words[0]} has no effect with --model: nothing is learned" in ran.err


def test_two_classes_have_figures_of_their_event(bncli: Bncli, tmp_path: Path) -> None:
    typed = ("evaluate", "tumours.csv", "--structure", "nb", "--param", "map", "--folds", "2", "-q")
    ran = bncli(*typed, "--gains", "--net-benefit", "--report", str(tmp_path / "r.html"), "--json")
    report = json.loads(ran.out)
    assert report["gini"] == pytest.approx(2 * report["auc"] - 1)
    assert report["ci"]["gini"] == pytest.approx([2 * end - 1 for end in report["ci"]["auc"]])
    assert report["capture_10"] == report["gains"][0]["captured"]
    assert len(report["gains"]) == 10
    assert [line["threshold"] for line in report["net_benefit"]] == [t / 100 for t in range(1, 100)]
    roc = report["curves"]["roc"][1]
    gaps = [t - f for t, f in zip(roc["true_positive_rate"], roc["false_positive_rate"], strict=True)]
    assert report["ks"] == pytest.approx(max(gaps), abs=0.01)
    page = (tmp_path / "r.html").read_text()
    assert "calibration slope" in page
    assert "Net benefit" in page
    plain = json.loads(bncli(*typed, "--json").out)
    assert plain.keys() == report.keys() - {"gains", "net_benefit"}
    shown = bncli(*typed, "--gains", "--net-benefit").out
    assert "Gains (event: malignant)" in shown
    assert "Net benefit per row" in shown


@pytest.mark.parametrize("option", ["--gains", "--net-benefit"])
def test_tables_of_two_classes_are_refused_for_others(bncli: Bncli, option: str) -> None:
    ran = bncli("evaluate", "iris.csv", "--structure", "nb", option)
    assert ran.code == 2
    assert (
        ran.err == f"Error: {option} needs a class with two labels, but the class of this table has 3; leave it out\n"
    )


def test_verbose_shows_the_folds_and_the_seconds(bncli: Bncli) -> None:
    """The figures of the folds are those of the JSON; a model on a test table has seconds alone."""
    folds = json.loads(bncli("evaluate", "tumours.csv", *NB, "--json").out)["folds"]
    brief, full = (bncli("evaluate", "tumours.csv", *NB, "-q", *words).out for words in ((), ("-v",)))
    assert "seconds" not in brief
    assert "seconds, fit" in full
    table = full[full.index("Folds") :].splitlines()[4 : 4 + len(folds)]
    for line, fold in zip(table, folds, strict=True):
        figures = (f"{fold[name]:.4f}" for name in ("error", "log_loss", "auc"))
        assert line.split()[:6] == ["1", str(fold["fold"] + 1), str(fold["rows"]), *figures]
    fit(bncli)
    tested = bncli("evaluate", "--model", "m.bnc", "tumours.csv", "-q", "-v").out
    assert "seconds, score" in tested
    assert "Folds" not in tested
