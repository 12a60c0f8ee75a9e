"""Costs, abstaining and prediction sets against slow and obvious ways to the same."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.catalogue.option_kinds import Costs, ThresholdRule
from bncli.engine.model import DecisionRule, HeldOutScores, PredictionSets, Threshold
from bncli.engine.prediction.decision_rules import ABSTAINED, Decider, DecisionOptions, bars, cost_matrix, rule_of
from bncli.errors import BncliError

LABELS = ("a", "b", "c")
COSTS = ((0.0, 1.0, 4.0), (2.0, 0.0, 1.0), (9.0, 3.0, 0.5))


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=9), st.floats(0.34, 0.9))
def test_the_least_expected_cost(raw: list[list[float]], bound: float) -> None:
    p = np.array([[x / sum(row) for x in row] for row in raw]).T
    decided = Decider.of(DecisionRule(costs=COSTS, abstain_below=bound), LABELS).decide(np.log(p))
    assert decided.expected_costs is not None
    for t in range(p.shape[1]):
        expected = [sum(p[y, t] * COSTS[y][d] for y in range(3)) for d in range(3)]
        assert decided.expected_costs[t] == pytest.approx(min(expected))
        if max(p[:, t]) < bound * (1 - 1e-12):
            assert decided.codes[t] == ABSTAINED
        elif max(p[:, t]) > bound * (1 + 1e-12):
            assert expected[decided.codes[t]] == pytest.approx(min(expected))


def test_without_costs_or_threshold_the_most_probable() -> None:
    p = np.log([[0.5, 0.2, 0.3], [0.5, 0.8, 0.7]])
    assert Decider.of(DecisionRule(abstain_below=0.75), ("a", "b")).decide(p).codes.tolist() == [-1, 1, -1]
    assert Decider.of(DecisionRule(threshold=Threshold(0.75)), ("a", "b")).decide(p).codes.tolist() == [0, 1, 0]
    equal = Decider.of(DecisionRule(costs=((0.0, 1.0), (1.0, 0.0))), ("a", "b")).decide(p)
    assert equal.codes.tolist() == [0, 1, 1], "costs that are alike change nothing, and a tie goes to the first"


def test_a_probability_that_just_reaches_a_bar_is_enough() -> None:
    """Of a threshold, and of the bound below which nothing is decided."""
    half = np.log([[0.5], [0.5]])
    assert Decider.of(DecisionRule(threshold=Threshold(0.5)), ("a", "b")).decide(half).codes.tolist() == [1]
    assert Decider.of(DecisionRule(abstain_below=0.5), ("a", "b")).decide(half).codes.tolist() == [0]
    assert Decider.of(DecisionRule(abstain_below=np.nextafter(0.5, 1)), ("a", "b")).decide(half).codes.tolist() == [
        ABSTAINED
    ]


def slow_sets(p: np.ndarray, conformity: list[float], alpha: float) -> np.ndarray:
    """By the textbook: the quantile of 1 - P with the correction for a finite sample."""
    scores = sorted(1 - c for c in conformity)
    k = math.ceil(round((len(scores) + 1) * (1 - alpha), 9))
    return np.array(1 - p <= scores[k - 1] + 1e-12)


@given(
    st.lists(st.integers(1, 99).map(lambda n: n / 100), min_size=20, max_size=60),
    st.sampled_from([0.05, 0.1, 0.2, 0.5]),
    st.integers(0, 2**16),
)
def test_sets_by_the_textbook(conformity: list[float], alpha: float, seed: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(3), 30).T
    cut = len(conformity) // 2
    kept = HeldOutScores((tuple(sorted(conformity[:cut])), tuple(sorted(conformity[cut:])), ()), None, split=True)
    decider = Decider.of(DecisionRule(sets=PredictionSets(alpha), held_out=kept), LABELS)
    members = decider.decide(np.log(p)).members
    near = np.abs(p - np.unique(decider.bars)[0]) < 1e-9
    assert ((members == slow_sets(p, conformity, alpha)) | near).all()


def test_sets_by_class_have_a_bar_each() -> None:
    kept = HeldOutScores(((0.1, 0.2, 0.9), (0.3, 0.4, 0.5), (0.6, 0.7, 0.8)), None, split=True)
    assert bars(PredictionSets(0.25, by_class=True), kept, LABELS).tolist() == [0.1, 0.3, 0.6]
    assert bars(PredictionSets(0.5, by_class=True), kept, LABELS).tolist() == [0.2, 0.4, 0.7]
    assert bars(PredictionSets(0.5), kept, LABELS).tolist() == [0.5] * 3


def test_a_weight_is_so_many_rows() -> None:
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(30))
    weights = rng.integers(1, 4, 30)
    repeated = HeldOutScores((tuple(np.repeat(p, weights).tolist()),), None, split=True)
    weighted = HeldOutScores((tuple(p.tolist()),), (tuple(weights.astype(float).tolist()),), split=True)
    for alpha in (0.05, 0.1, 0.3, 0.5, 0.9):
        assert bars(PredictionSets(alpha), weighted, ("a",)) == bars(PredictionSets(alpha), repeated, ("a",))


@pytest.mark.parametrize("by_class", [False, True])
def test_the_true_label_is_missed_as_often_as_said(by_class: bool) -> None:
    """Over many draws of the rows held out; the standard deviation of the mean is about 0.002."""
    rng = np.random.default_rng(1)
    alpha, missed = 0.2, []
    for _ in range(400):
        y = rng.integers(0, 2, 90)
        p_second = 1 / (1 + np.exp(-(1.5 * (y - 0.3) + rng.normal(size=90))))
        own = np.where(y == 1, p_second, 1 - p_second)
        held, new = slice(0, 49), slice(49, 90)
        kept = HeldOutScores(tuple(tuple(np.sort(own[held][y[held] == k]).tolist()) for k in (0, 1)), None, split=True)
        decider = Decider.of(DecisionRule(sets=PredictionSets(alpha, by_class), held_out=kept), ("a", "b"))
        members = decider.decide(np.log([1 - p_second[new], p_second[new]])).members
        assert members is not None
        missed.append(1 - members[y[new], np.arange(41)].mean())
    assert np.mean(missed) <= alpha + 0.006
    assert np.mean(missed) >= alpha - (0.06 if by_class else 0.03), "and not for being too large"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (PredictionSets(0.1), "alpha 0.1 need 9 rows held out, and there are 5; ask for a larger alpha"),
        (PredictionSets(0.3, by_class=True), "alpha 0.3 need 3 rows held out of the label 'b', and there are 2"),
        (PredictionSets(0.2, by_class=True), "alpha 0.2 need 4 rows held out of the label 'a', and there are 3"),
    ],
)
def test_too_few_rows_held_out_are_told(sets: PredictionSets, message: str) -> None:
    kept = HeldOutScores(((0.1, 0.2, 0.9), (0.3, 0.4)), None, split=True)
    with pytest.raises(BncliError, match=re.escape(message)):
        bars(sets, kept, ("a", "b"))


@pytest.mark.parametrize(
    ("wanted", "labels", "message"),
    [
        (DecisionOptions(threshold="0.3"), LABELS, "--threshold takes two classes, and 'class' has 3"),
        (DecisionOptions(threshold="best:f1"), ("a", "b"), "keeps no rows held out to choose a threshold best:f1 by"),
        (DecisionOptions(costs="a:b=1"), ("a", "b"), "does not say what it costs to decide for 'a' where 'b' is true"),
        (
            DecisionOptions(costs="a:b=1,b:d=1"),
            ("a", "b"),
            "names the label 'd', which the class 'class' does not have",
        ),
        (DecisionOptions(costs="a:b=1,b:a=-1"), ("a", "b"), "says -1 for deciding 'a' where 'b' is true"),
        (DecisionOptions(costs="a:b=0,b:a=0"), ("a", "b"), "says 0 for every decision"),
        (DecisionOptions(costs="x:x:x=1,x:x=1"), ("x", "x:x"), "can be read in two ways"),
    ],
)
def test_what_cannot_be_decided_is_told(wanted: DecisionOptions, labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(BncliError, match=re.escape(message)):
        rule_of(wanted, labels, "class")


def test_sets_need_rows_that_the_model_has_not_seen() -> None:
    rule = rule_of(
        DecisionOptions(sets=0.1),
        ("a", "b"),
        "class",
        DecisionRule(held_out=HeldOutScores(((0.5,), (0.5,)), None, False)),
    )
    assert rule is not None
    with pytest.raises(BncliError, match=r"no rows held out to make prediction sets by; bncli fit --sets"):
        Decider.of(rule, ("a", "b"))
    kept = HeldOutScores(((0.5,) * 20, (0.5,) * 20), None, split=True)
    with pytest.raises(BncliError, match=r"'a\|b' holds a"):
        Decider.of(DecisionRule(sets=PredictionSets(0.1), held_out=kept), ("a|b", "c"))


def test_what_is_typed_comes_before_what_is_stored() -> None:
    kept = HeldOutScores(((0.2, 0.9), (0.4, 0.7)), None, split=True)
    stored = DecisionRule(threshold=Threshold(0.3, "best:f1"), sets=PredictionSets(0.1, by_class=True), held_out=kept)
    assert rule_of(DecisionOptions(), ("a", "b"), "class", stored) == stored
    costs = rule_of(DecisionOptions(costs="a:b=1,b:a=2"), ("a", "b"), "class", stored)
    assert costs == DecisionRule(costs=((0.0, 1.0), (2.0, 0.0)), sets=stored.sets, held_out=kept)
    assert rule_of(DecisionOptions(sets=0.4), ("a", "b"), "class", stored).sets == PredictionSets(0.4, by_class=True)  # type: ignore[union-attr]
    again = rule_of(DecisionOptions(threshold="recall=1"), ("a", "b"), "class", stored)
    assert again is not None
    assert again.threshold == Threshold(pytest.approx((0.4 + 0.1) / 2), "recall=1")


def test_costs_as_they_are_typed() -> None:
    kind = Costs()
    text = "a:b=1,b:a=5"
    for value in (" b:a = 5.0, a:b=1", {("a", "b"): 1, ("b", "a"): 5.0}, {"a": {"b": 1}, "b": {"a": 5}}):
        assert kind.parse(value) == text
    assert cost_matrix(text, ("a", "b"), "class") == ((0.0, 1.0), (5.0, 0.0))
    assert cost_matrix("a:a=1,a:b:c=2,b:c:a=3", ("a", "b:c"), "class") == ((1.0, 2.0), (3.0, 0.0))


@pytest.mark.parametrize(
    ("value", "message"),
    [("a=1", "'a' is no TRUE:DECISION"), ("a:b=-1", "the cost of 'a:b' is not"), ("a:b", "is not TRUE:DECISION=COST")],
)
def test_slips_in_costs(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Costs().parse(value)


@pytest.mark.parametrize("text", ["0.3", "0", "1", "best:f1", "best:mcc", "recall=0.9", "precision=0.8", "top=5%"])
def test_thresholds_as_they_are_typed(text: str) -> None:
    assert ThresholdRule().parse(text) == text
    assert ThresholdRule().parse(ThresholdRule().parse(f" {text} ")) == text


@pytest.mark.parametrize(
    "text", ["1.1", "-0.1", "best:auc", "recall=0", "recall=2", "recall=90%", "top=5", "top=101%", ""]
)
def test_slips_in_thresholds(text: str) -> None:
    with pytest.raises(ValueError, match=r"recall"):
        ThresholdRule().parse(text)
