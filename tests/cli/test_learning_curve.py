"""`evaluate --train-rows` as it is typed."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Bncli

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
        (("--train-rows", "9" * 30), 2, "is too much"),
        (("--train-rows", ""), 2, "the value is empty"),
        (("--train-rows", "20,10"), 2, "10 stands after 20: sizes must ascend"),
        (("--train-rows", "10,10"), 2, "10 stands twice"),
        (("--train-rows", "all,10"), 2, "'all' is the largest size, and stands at the end"),
        (("--train-rows", "all,all"), 2, "'all' is the largest size"),
        (("--train-rows", "121"), 2, "121 is more than the 120 rows to learn from in a fold (150 rows, 5 folds)"),
        (("--train-rows", "120,all"), 2, "120 twice, once as all"),
        (("--train-rows", "151", "--test", "iris.csv"), 2, "151 is more than the 150 rows to learn from"),
        (("--train-rows", "9", "--test", "iris.csv", "--folds", "3"), 2, "--folds has no effect with --test"),
        (("--test", "iris.csv", "--repeats", "3"), 2, "--repeats has no effect with --test"),
        (("--csv", "c.csv"), 2, "--csv has no effect without --train-rows"),
        (("--train-rows", "9", "--csv", "no/c.csv"), 1, "there is no folder"),
        (("--train-rows", "9", "--csv", "iris.csv"), 2, "it is read from"),
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
        assert f"{words[0]} has no effect with --model: nothing is learnt" in ran.err
