"""Decisions through the command line and from Python: learned, stored, written, evaluated."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bncli as package
from bncli.files.artifacts.model import dump_model, read_model
from bncli.files.pictures.page import percent
from tests.cli.conftest import Bncli

NB = ("--structure", "nb", "--param", "map")
COSTS = "benign:malignant=1,malignant:benign=8"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def fit(bncli: Bncli, *words: str, data: str = "tumours.csv") -> dict[str, Any]:
    ran = bncli("fit", data, *NB, *words, "-o", "m.bnc", "--json", "-q")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def write_tumours(path: str, keep: Any) -> None:
    heading, *lines = Path("tumours.csv").read_text().splitlines()
    Path(path).write_text("\n".join([heading, *(line for i, line in enumerate(lines) if keep(i, line))]) + "\n")


def test_costs_of_a_file_and_typed_are_the_same_rule(bncli: Bncli) -> None:
    Path("costs.csv").write_text("true,malignant,benign\nbenign,1,0\nmalignant,0,8\n")
    fit(bncli, "--costs", "costs.csv")
    of_file = Path("m.bnc").read_bytes()
    fit(bncli, "--costs", "benign:benign=0,malignant:malignant=0," + COSTS)
    assert Path("m.bnc").read_bytes() == of_file
    found = rows(bncli("score", "m.bnc", "tumours.csv", "-q").out)
    for row in found:
        benign, malignant = float(row["p_benign"]), float(row["p_malignant"])
        assert row["decision"] == ("benign" if 8 * malignant <= benign else "malignant")
        assert float(row["expected_cost"]) == pytest.approx(min(8 * malignant, benign))
    assert any(row["decision"] != row["prediction"] for row in found)
    fit(bncli)
    plain = rows(bncli("score", "m.bnc", "tumours.csv", "-q").out)
    kept = ("prediction", "p_benign", "p_malignant")
    assert [{key: row[key] for key in kept} for row in found] == plain, "costs change no probability"
    assert rows(bncli("score", "m.bnc", "tumours.csv", "-q", "--costs", "costs.csv").out) == found


@pytest.mark.parametrize(
    "content",
    [
        ",benign,malignant\nbenign,,1\nmalignant,8,\n",  # right decisions left out
        "benign,malignant\nbenign,0,1\nmalignant,8,0\n",  # nothing above the labels
        '\ufeff"",malignant,benign\r\n\r\nmalignant,0,8\r\nbenign,1,0\r\n',
    ],
)
def test_tables_of_costs_as_people_write_them(bncli: Bncli, content: str) -> None:
    fit(bncli)
    Path("costs.csv").write_text(content, encoding="utf-8", newline="")
    of_file, typed = (bncli("score", "m.bnc", "tumours.csv", "-q", "--costs", said) for said in ("costs.csv", COSTS))
    assert (of_file.code, of_file.out) == (0, typed.out)


def test_costs_between_three_classes(bncli: Bncli) -> None:
    costs = "setosa:versicolor=1,setosa:virginica=1,versicolor:setosa=1,versicolor:virginica=20," \
            "virginica:setosa=1,virginica:versicolor=1"  # fmt: skip
    bncli("fit", "iris.csv", *NB, "-o", "m.bnc")
    for row in rows(bncli("score", "m.bnc", "iris.csv", "-q", "--costs", costs).out):
        p = {label: float(row[f"p_{label}"]) for label in ("setosa", "versicolor", "virginica")}
        paid = {"setosa": 1 - p["setosa"], "versicolor": 1 - p["versicolor"]}
        paid["virginica"] = p["setosa"] + 20 * p["versicolor"]
        assert paid[row["decision"]] == pytest.approx(min(paid.values()), abs=1e-12)


def test_a_threshold_is_chosen_by_rows_held_out(bncli: Bncli) -> None:
    """By the same five folds as those of an evaluation with this seed, whose predictions are tried one by one."""
    found = fit(bncli, "--threshold", "best:f1")["decisions"]["threshold"]
    bncli("evaluate", "tumours.csv", *NB, "--predictions", "p.csv", "-q")
    p = np.array([float(row["p_malignant"]) for row in rows(Path("p.csv").read_text())])
    positive = np.array([line.endswith("malignant") for line in Path("tumours.csv").read_text().splitlines()[1:]])

    def f1(t: float) -> float:
        return float(2 * (positive & (p >= t)).sum() / (positive.sum() + (p >= t).sum()))

    assert f1(found["value"]) == pytest.approx(max(map(f1, p)), abs=1e-12)
    assert found["chosen"] == "best:f1"
    scored = rows(bncli("score", "m.bnc", "tumours.csv", "-q").out)
    assert all((row["decision"] == "malignant") == (float(row["p_malignant"]) >= found["value"]) for row in scored)
    again = rows(bncli("score", "m.bnc", "tumours.csv", "-q", "--threshold", "recall=0.99").out)
    assert sum(row["decision"] == "malignant" for row in again) > sum(row["decision"] == "malignant" for row in scored)
    typed = rows(bncli("score", "m.bnc", "tumours.csv", "-q", "--threshold", "0.5").out)
    assert all(row["decision"] == row["prediction"] for row in typed)


def test_a_threshold_that_no_row_reaches_is_told(bncli: Bncli) -> None:
    fit(bncli)
    p = [float(row["p_malignant"]) for row in rows(bncli("score", "m.bnc", "tumours.csv", "-q").out)]
    write_tumours("low.csv", lambda i, _: p[i] < 0.9)
    highest = max(one for one in p if one < 0.9)
    ran = bncli("score", "m.bnc", "low.csv", "--threshold", "0.95", "--labels-only")
    told = f"no row reaches the threshold 0.95: the highest p_malignant is {highest:.6g}, so no row is decided as"
    assert told in " ".join(ran.err.split())
    assert {row["decision"] for row in rows(ran.out)} == {"benign"}
    model = package.load("m.bnc")
    with pytest.warns(UserWarning, match="no row reaches") as warned:
        model.decide("low.csv", threshold=0.95)
    assert [str(one.message) for one in warned] == [f"{told} 'malignant'"]
    model.decide("low.csv", threshold=0.5)
    with pytest.warns(UserWarning, match="no row reaches"):
        model.decide("tumours.csv", threshold=0.5, prior={"benign": 1 - 1e-12, "malignant": 1e-12})
    Path("none.csv").write_text(Path("low.csv").read_text().splitlines()[0] + "\n")
    for words in (("low.csv", "--threshold", "0.5"), ("low.csv",), ("none.csv", "--threshold", "0.95")):
        assert "no row reaches" not in bncli("score", "m.bnc", *words).err


def test_a_threshold_costs_the_model_nothing_and_sets_a_fifth_of_the_rows(bncli: Bncli) -> None:
    from dataclasses import replace

    fit(bncli)
    plain = read_model("m.bnc")
    fit(bncli, "--threshold", "best:mcc")
    assert dump_model(replace(read_model("m.bnc"), rule=None, recipe=plain.recipe)) == dump_model(plain)
    fit(bncli, "--sets", "0.1")
    model = read_model("m.bnc")
    assert model.n_rows == 455
    assert model.rule is not None
    assert model.rule.held_out is not None
    assert sum(map(len, model.rule.held_out.probabilities)) == 114


@pytest.mark.parametrize("by", ["all", "class"])
def test_sets_cover_rows_that_nobody_has_seen(bncli: Bncli, by: str) -> None:
    write_tumours("train.csv", lambda i, _: i % 2)
    write_tumours("new.csv", lambda i, _: not i % 2)
    fit(bncli, "--sets", "0.2", "--sets-by", by, data="train.csv")
    scored = rows(bncli("score", "m.bnc", "new.csv", "-q").out)
    true = [line.rsplit(",", 1)[1] for line in Path("new.csv").read_text().splitlines()[1:]]
    covered = np.mean([label in row["set"].split("|") for label, row in zip(true, scored, strict=True)])
    assert 0.65 < covered < 0.95
    report = json.loads(bncli("evaluate", "new.csv", "--model", "m.bnc", "--json", "-q").out)
    assert report["coverage"] == pytest.approx(covered)
    sizes = [len(row["set"].split("|")) if row["set"] else 0 for row in scored]
    assert report["set_size"] == pytest.approx(np.mean(sizes))
    wider = rows(bncli("score", "m.bnc", "new.csv", "-q", "--sets", "0.05", "--sets-by", "all").out)
    assert sum(len(row["set"]) for row in wider) > sum(len(row["set"]) for row in scored)


def test_without_a_decision_the_field_is_empty(bncli: Bncli) -> None:
    fit(bncli, "--abstain-below", "0.9")
    for form in ("csv", "jsonl", "parquet", "arrow"):
        assert bncli("score", "m.bnc", "tumours.csv", "-q", "-o", f"s.{form}").code == 0
    found = rows(Path("s.csv").read_text())
    for row in found:
        sure = max(float(row["p_benign"]), float(row["p_malignant"])) >= 0.9
        assert row["decision"] == (row["prediction"] if sure else "")
    expected = [row["decision"] or None for row in found]
    assert None in expected
    assert [json.loads(line)["decision"] for line in Path("s.jsonl").read_text().splitlines()] == expected
    assert pq.read_table("s.parquet")["decision"].to_pylist() == expected


def test_digits_round_costs_too(bncli: Bncli) -> None:
    fit(bncli, "--costs", COSTS, "--abstain-below", "0.6")
    for form in ("csv", "parquet"):
        bncli("score", "m.bnc", "tumours.csv", "-q", "-o", f"s.{form}", "--digits", "2")
    texts = [row["expected_cost"] for row in rows(Path("s.csv").read_text())]
    assert all(len(text.partition(".")[2]) <= 2 for text in texts)
    assert [float(text) for text in texts] == pq.read_table("s.parquet")["expected_cost"].to_pylist()


def test_an_evaluation_decides_inside_its_folds(bncli: Bncli) -> None:
    words = ("evaluate", "tumours.csv", *NB, "--json", "-q")
    plain = json.loads(bncli(*words).out)
    found = json.loads(bncli(*words, "--costs", COSTS, "--abstain-below", "0.8").out)
    of_decisions = {"confusion", "confusion_of", "per_class", "thresholds", "folds", "std"}
    kept = plain.keys() - of_decisions - {"seconds"}
    same = {key: found[key] for key in kept} == {key: plain[key] for key in kept}
    assert same, "what is decided changes no figure of the probabilities"
    assert found["cost"] == pytest.approx(np.mean([fold["cost"] for fold in found["folds"]]))
    assert set(found["std"]) - set(plain["std"]) == {"cost", "abstention", "decided_accuracy"}
    assert 0 < found["abstention"] < 0.3
    bncli("evaluate", "tumours.csv", *NB, "--predictions", "p.csv", "-q")
    p = np.array([float(row["p_malignant"]) for row in rows(Path("p.csv").read_text())])
    positive = np.array([line.endswith("malignant") for line in Path("tumours.csv").read_text().splitlines()[1:]])
    lines = found["thresholds"]
    assert len(lines) == 101
    assert len(plain["thresholds"]) == 101
    at = lines[30]
    told = p >= at["threshold"]
    assert at["recall"] == pytest.approx(told[positive].mean())
    assert at["cost"] == pytest.approx((8 * (positive & ~told).sum() + (~positive & told).sum()) / 569)
    text = bncli(
        "evaluate", "tumours.csv", *NB, "-q", "--sets", "0.2", "--sets-by", "class", "--threshold", "top=40%"
    ).out
    for shown in ("Decisions", "coverage of malignant", "set-size", "Thresholds on p_malignant", "threshold"):
        assert shown in text
    assert "thresholds" not in json.loads(bncli("evaluate", "iris.csv", *NB, "--json", "-q").out)


def test_confusion_and_costs_are_those_of_the_decisions(bncli: Bncli) -> None:
    """By hand, from the probabilities of the rows."""
    words = ("evaluate", "tumours.csv", *NB, "-q")
    assert bncli(*words, "--predictions", "p.csv").code == 0
    p = np.array([float(row["p_malignant"]) for row in rows(Path("p.csv").read_text())])
    true = np.array([line.endswith("malignant") for line in Path("tumours.csv").read_text().splitlines()[1:]])
    ran = bncli(*words, "--costs", COSTS, "--abstain-below", "0.7", "--json", "--report", "r.html")
    found = json.loads(ran.out)
    is_decided, decided = np.maximum(p, 1 - p) >= 0.7, 8 * p > 1 - p
    table = [[int((is_decided & (true == t) & (decided == d)).sum()) for d in (False, True)] for t in (False, True)]
    undecided = [int((~is_decided & (true == t)).sum()) for t in (False, True)]
    assert (found["confusion"], found["undecided"]) == (table, undecided)
    assert found["confusion_of"] == "decisions"
    assert found["per_class"][1]["recall"] == pytest.approx(table[1][1] / sum(table[1]))
    always = [{"label": "benign", "cost": 8 * true.mean()}, {"label": "malignant", "cost": (~true).mean()}]
    assert found["constant_costs"] == [pytest.approx(one) for one in always]
    costs = [np.where(true, 8.0 * (p < t / 100), 1.0 * (p >= t / 100)).mean() for t in range(101)]
    best = int(np.argmin(costs))
    assert found["best_threshold"] == pytest.approx({"threshold": best / 100, "cost": costs[best]})
    page = Path("r.html").read_text()
    wrong = 1 - (table[0][0] + table[1][1]) / is_decided.sum()
    assert f"Error rate {percent(wrong)} on" in page
    assert "always predicting malignant costs" in page
    text = bncli(*words, "--costs", COSTS, "--abstain-below", "0.7").out
    # benign:malignant=1 and malignant:benign=8: malignant costs less from P on where 8 P = 1 - P
    rule = f"(the label with the lowest expected cost: malignant if its probability is above {1 / 9:.4g}; no label"
    for shown in (
        rule,
        "cost, always benign",
        "cost, best threshold",
        "a column per decision of the rule",
        "no decision",
    ):
        assert shown in text


def test_without_a_rule_the_confusion_is_that_of_the_most_probable_label(bncli: Bncli) -> None:
    found = json.loads(bncli("evaluate", "tumours.csv", *NB, "-q", "--sets", "0.2", "--json").out)
    assert found["confusion_of"] == "most probable label"
    assert np.trace(found["confusion"]) / 569 == pytest.approx(found["accuracy"], abs=1e-3)
    assert found.keys().isdisjoint({"undecided", "constant_costs", "best_threshold"})


def test_the_test_table_is_decided_too(bncli: Bncli) -> None:
    write_tumours("train.csv", lambda i, _: i % 2)
    write_tumours("new.csv", lambda i, _: not i % 2)
    words = (*NB, "--threshold", "best:f1", "--json", "-q")
    found = json.loads(bncli("evaluate", "train.csv", "--test", "new.csv", *words).out)
    told = fit(bncli, "--threshold", "best:f1", data="train.csv")["decisions"]["threshold"]["value"]
    assert found["threshold"] == told
    scored = rows(bncli("score", "m.bnc", "new.csv", "-q").out)
    true = [line.rsplit(",", 1)[1] for line in Path("new.csv").read_text().splitlines()[1:]]
    right = np.mean([row["decision"] == label for row, label in zip(scored, true, strict=True)])
    assert found["decided_accuracy"] == pytest.approx(right)


def test_row_weights_are_rows_so_many_times(bncli: Bncli) -> None:
    heading, *lines = Path("tumours.csv").read_text().splitlines()
    Path("w.csv").write_text("\n".join([f"w,{heading}", *(f"{1 + i % 3},{line}" for i, line in enumerate(lines))]))
    fit(bncli, "--sets", "0.1", "--weights", "w", data="w.csv")
    model = read_model("m.bnc")
    assert model.rule is not None
    assert model.rule.held_out is not None
    assert model.rule.held_out.weights is not None
    assert {w for one in model.rule.held_out.weights for w in one} == {1.0, 2.0, 3.0}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--costs benign:malignant=1", "of deciding 'benign' when 'malignant' is true"),
        ("--costs benign:mal=1,malignant:benign=1", "names 'mal'"),
        ("--costs benign:malignant=-1,malignant:benign=1", "the cost of 'benign:malignant' is not"),
        (
            "--costs missing.csv",
            "'missing.csv' is not of the form TRUE:DECISION=COST, such as yes:no=5, and there is no file 'missing.csv'",
        ),
        (f"--costs {COSTS} --threshold 0.5", "--costs and --threshold both define the decisions"),
        ("--threshold 1.5", "'1.5' is neither a probability nor one of"),
        ("--threshold best:auc", "'best:auc' is neither"),
        ("--threshold top=0.01%", "no threshold reaches top=0.01% on the held-out rows"),
        ("--sets 0", "above 0"),
        ("--sets 1", "below 1"),
        ("--sets 0.001", "need 999 held-out rows, but there are 114"),
        ("--sets-by class", "--sets-by has no effect without --sets"),
        ("--abstain-below 1", "below 1"),
    ],
)
def test_bad_input_is_named(bncli: Bncli, words: str, message: str) -> None:
    ran = bncli("fit", "tumours.csv", *NB, *words.split())
    assert ran.code in (1, 2)
    assert message in " ".join(ran.err.split()), ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("true,benign,malignant\nbenign,0,1\n", "does not give the cost of deciding 'benign' when 'malignant'"),
        ("true,benign,malignant\nbenign,0,1\nmalignant,,0\n", "'benign' when 'malignant' is true has no cost"),
        ("true,benign,malignant\nbenign,0,1\nmalignant,-3,0\n", "'benign' when 'malignant' is true costs '-3'"),
        ("true,benign,malignant\nbenign,0,1\nmalignant,3\n", "1 cost for 2 decisions, costs.csv, line 3"),
        ("true,benign,malignant\nbenign,0,1\nbenign,3,1\n", "is given twice"),
        ("true,benign,review\nbenign,0,1\nmalignant,3,1\n", "names 'review'"),
        ("", "the file is not a table of costs"),
        (
            ";benign;malignant\nbenign;0;1\nmalignant;3;0\n",
            "not a table of costs, costs.csv; use commas between fields",
        ),
        (",benign,malignant\nbenign,0,\nmalignant,3,0\n", "the decision 'malignant' when 'benign' is true has no cost"),
    ],
)
def test_tables_of_costs_that_are_none(bncli: Bncli, content: str, message: str) -> None:
    Path("costs.csv").write_text(content)
    ran = bncli("fit", "tumours.csv", *NB, "--costs", "costs.csv")
    assert ran.code in (1, 2)
    assert message in " ".join(ran.err.split()), ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sets 0.1", "no held-out rows for prediction sets; fit it with --sets ALPHA"),
        ("--threshold best:f1", "has no held-out rows from which to choose the threshold best:f1"),
        ("--sets-by class", "--sets-by has no effect without --sets"),
        ("--costs benign:malignant=1", "of deciding 'benign' when 'malignant' is true"),
    ],
)
def test_what_a_model_cannot_decide(bncli: Bncli, words: str, message: str) -> None:
    fit(bncli)
    ran = bncli("score", "m.bnc", "tumours.csv", *words.split())
    assert ran.code in (1, 2, 3)
    assert message in " ".join(ran.err.split()), ran.err
    assert ran.out == ""


def test_a_prior_takes_back_what_rows_held_out_promise(bncli: Bncli) -> None:
    fit(bncli, "--threshold", "best:f1")
    ran = bncli("score", "m.bnc", "tumours.csv", "--prior", "benign=0.5,malignant=0.5")
    assert "the threshold was chosen for the class frequencies of training, not for those of --prior" in ran.err
    assert "the threshold was chosen" not in bncli("score", "m.bnc", "tumours.csv").err


def test_from_python(bncli: Bncli) -> None:
    quiet = {"structure": "nb", "param": "map", "progress": lambda event: None}
    costs = {"benign": {"malignant": 1}, "malignant": {"benign": 8}}
    model = package.fit("tumours.csv", costs=costs, abstain_below=0.7, **quiet)
    fit(bncli, "--costs", COSTS, "--abstain-below", "0.7")
    model.save("p.bnc")
    assert Path("p.bnc").read_bytes() == Path("m.bnc").read_bytes()
    decided, scored = model.decide("tumours.csv"), rows(bncli("score", "m.bnc", "tumours.csv", "-q").out)
    assert [label or "" for label in decided.labels] == [row["decision"] for row in scored]
    np.testing.assert_allclose(decided.expected_costs, [float(row["expected_cost"]) for row in scored], rtol=1e-12)
    assert decided.sets is None
    typed = model.decide("tumours.csv", threshold=0.5, abstain_below=None)
    assert typed.expected_costs is None
    with pytest.raises(TypeError, match="no option 'cost'"):
        model.decide("tumours.csv", cost=costs)
    with pytest.raises(package.UsageError if hasattr(package, "UsageError") else Exception, match="no decision rule"):
        package.fit("tumours.csv", **quiet).decide("tumours.csv")
    sets = package.fit("tumours.csv", sets=0.1, **quiet).decide("tumours.csv").sets
    assert sets is not None
    assert {len(one) for one in sets} <= {0, 1, 2}
    assert all(set(one) <= {"benign", "malignant"} for one in sets)


def test_a_calibration_takes_out_what_rows_held_out_gave(bncli: Bncli) -> None:
    fit(bncli, "--threshold", "best:f1", "--sets", "0.1", "--abstain-below", "0.7")
    ran = bncli("calibrate", "m.bnc", "tumours.csv", "-o", "c.bnc")
    assert ran.code == 0, ran.err
    assert "were chosen for the old probabilities" in " ".join(ran.err.split())
    rule = read_model("c.bnc").rule
    assert rule is not None
    assert (rule.abstain_below, rule.threshold, rule.sets, rule.held_out) == (0.7, None, None, None)
    fit(bncli, "--costs", COSTS)
    bncli("calibrate", "m.bnc", "tumours.csv", "-o", "c.bnc")
    assert read_model("c.bnc").rule == read_model("m.bnc").rule


@pytest.mark.parametrize("words", ["--costs benign:malignant=1,malignant:benign=8", "--threshold 0.3", "--sets 0.1"])
def test_a_comparison_is_of_probabilities(bncli: Bncli, words: str) -> None:
    ran = bncli("compare", "tumours.csv", "--learner", f"a=--structure nb {words}", "--learner", "b=")
    assert (ran.code, ran.out) == (2, "")
    assert "has no effect in a comparison, because only probabilities are compared" in " ".join(ran.err.split())


@pytest.mark.parametrize("words", ["--sets 0.1", "--threshold best:f1", "--class-weights balanced"])
def test_a_cluster_holds_no_rows_out(bncli: Bncli, words: str) -> None:
    bncli("encode", "tumours.csv", "-o", "t.codes", "-q")
    ran = bncli("fit", "t.codes", *NB, *words.split(), "--cluster", "local:1")
    assert (ran.code, ran.out) == (2, "")
    assert "which stay on the workers" in " ".join(ran.err.split()), ran.err


def test_rows_of_codes_are_held_out_too(bncli: Bncli) -> None:
    bncli("encode", "tumours.csv", "-o", "t.codes", "-q")
    found = fit(bncli, "--sets", "0.2", "--threshold", "best:f1", data="t.codes")
    assert found["rows"] == 455
    assert found["decisions"]["threshold"]["chosen"] == "best:f1"


@pytest.mark.parametrize("words", [(), ("--class-weights", "balanced")])
def test_cuts_and_structure_by_hand_go_with_decisions(bncli: Bncli, words: tuple[str, ...]) -> None:
    bncli("discretize", "tumours.csv", "--cuts-out", "c.json", "-q")
    ran = bncli("fit", "tumours.csv", "--cuts", "c.json", *NB, "--threshold", "recall=0.9", *words, "-o", "m.bnc")
    assert ran.code == 0, ran.err
    assert "decides     malignant if its probability is at least" in ran.err


def test_damaged_rules_are_refused() -> None:
    from bncli.errors import ModelError
    from bncli.files.artifacts.model import read_rule, rule_json
    from bncli.files.json_documents import Node

    whole: dict[str, Any] = {
        "threshold": {"value": 0.3, "chosen": "best:f1"},
        "abstain_below": 0.5,
        "sets": {"alpha": 0.1, "by": "class"},
        "held_out": {"split": True, "probabilities": [[0.1, 0.2], [0.3]], "weights": [[1.0, 2.0], [1.0]]},
    }
    assert rule_json(read_rule(Node(whole, "m.bnc", "decisions", ModelError), ("a", "b"))) == whole
    for change, message in (
        ({"costs": [[0, 1], [1, 0]]}, "a threshold needs two labels and excludes costs"),
        ({"threshold": {"value": 2, "chosen": ""}}, "between 0 and 1"),
        ({"threshold": 0.3}, "expected an object"),
        ({"abstain_below": -1}, "between 0 and 1"),
        ({"sets": {"alpha": 0, "by": "all"}}, "an alpha between 0 and 1"),
        ({"sets": {"alpha": 0.1, "by": "none"}}, "by 'all' or 'class'"),
        (
            {"held_out": {"split": True, "probabilities": [[0.2, 0.1], [0.3]]}},
            "probabilities must be between 0 and 1, in increasing order",
        ),
        (
            {"held_out": {"split": True, "probabilities": [[0.2, 1.1], [0.3]]}},
            "probabilities must be between 0 and 1, in increasing order",
        ),
        ({"held_out": {"split": True, "probabilities": [[0.2]]}}, "expected 2 lists"),
        ({"held_out": {"split": True, "probabilities": [[0.2], []], "weights": [[1.0], [1.0]]}}, "as many weights"),
        ({"held_out": {"split": 1, "probabilities": [[0.2], []]}}, "expected true or false"),
        ({"more": 1}, "unknown key 'more'"),
    ):
        with pytest.raises(ModelError, match=message):
            read_rule(Node(whole | change, "m.bnc", "decisions", ModelError), ("a", "b"))
    for costs in ([[0, 1]], [[0, 1], [1]], [[0, -1], [1, 0]], 3):
        with pytest.raises(ModelError):
            read_rule(Node({"costs": costs}, "m.bnc", "decisions", ModelError), ("a", "b"))
