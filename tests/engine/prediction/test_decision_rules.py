"""Decision rules: costs, thresholds, abstention and prediction sets, compared with slow methods and other packages."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, precision_recall_curve, roc_curve

from bncli.catalogue.option_kinds import Costs, ThresholdRule
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import DecisionRule, HeldOutScores, PredictionSets, Threshold
from bncli.engine.prediction.decision_rules import (
    ABSTAINED,
    TABLE_LINES,
    Decider,
    DecisionOptions,
    ThresholdSteps,
    check_options,
    choose_threshold,
    cost_matrix,
    held_out_steps,
    make_rule,
    set_thresholds,
    threshold_metrics,
    threshold_table,
)
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


def test_a_probability_equal_to_a_threshold_is_enough() -> None:
    """This holds for a threshold and for the bound of abstention."""
    half = np.log([[0.5], [0.5]])
    assert Decider.of(DecisionRule(threshold=Threshold(0.5)), ("a", "b")).decide(half).codes.tolist() == [1]
    assert Decider.of(DecisionRule(abstain_below=0.5), ("a", "b")).decide(half).codes.tolist() == [0]
    assert Decider.of(DecisionRule(abstain_below=np.nextafter(0.5, 1)), ("a", "b")).decide(half).codes.tolist() == [
        ABSTAINED
    ]


@pytest.mark.parametrize("rule", ["costs", "threshold", "abstain", "plain"])
def test_margins_are_distances_to_another_decision(rule: str) -> None:
    p = np.array([[0.7, 0.2, 0.55, 0.35], [0.3, 0.8, 0.45, 0.65]])
    costs = ((0.0, 1.0), (4.0, 0.0))
    rules = {
        "costs": DecisionRule(costs=costs),
        "threshold": DecisionRule(threshold=Threshold(0.6, "")),
        "abstain": DecisionRule(abstain_below=0.6),
        "plain": DecisionRule(),
    }
    expected = {
        # expected costs of the two decisions: 4 P(second) and P(first), relative to the largest cost
        "costs": [abs(4 * b - a) / 4 for a, b in p.T],
        "threshold": [abs(b - 0.6) for _, b in p.T],
        "abstain": [min(abs(a - b), abs(max(a, b) - 0.6)) for a, b in p.T],
        "plain": [abs(a - b) for a, b in p.T],
    }
    assert Decider.of(rules[rule], ("n", "y")).margins(p).tolist() == pytest.approx(expected[rule])


def slow_sets(p: np.ndarray, conformity: list[float], alpha: float) -> np.ndarray:
    """Return sets by the textbook: the quantile of 1 - P with the correction for a finite sample."""
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
    near = np.abs(p - np.unique(decider.set_thresholds)[0]) < 1e-9
    assert ((members == slow_sets(p, conformity, alpha)) | near).all()


def test_sets_by_class_have_a_threshold_each() -> None:
    kept = HeldOutScores(((0.1, 0.2, 0.9), (0.3, 0.4, 0.5), (0.6, 0.7, 0.8)), None, split=True)
    assert set_thresholds(PredictionSets(0.25, by_class=True), kept, LABELS).tolist() == [0.1, 0.3, 0.6]
    assert set_thresholds(PredictionSets(0.5, by_class=True), kept, LABELS).tolist() == [0.2, 0.4, 0.7]
    assert set_thresholds(PredictionSets(0.5), kept, LABELS).tolist() == [0.5] * 3


def test_a_weight_is_a_number_of_equal_rows() -> None:
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(30))
    weights = rng.integers(1, 4, 30)
    repeated = HeldOutScores((tuple(np.repeat(p, weights).tolist()),), None, split=True)
    weighted = HeldOutScores((tuple(p.tolist()),), (tuple(weights.astype(float).tolist()),), split=True)
    for alpha in (0.05, 0.1, 0.3, 0.5, 0.9):
        assert set_thresholds(PredictionSets(alpha), weighted, ("a",)) == set_thresholds(
            PredictionSets(alpha), repeated, ("a",)
        )


@pytest.mark.parametrize("by_class", [False, True])
def test_the_true_label_is_missed_with_the_given_probability(by_class: bool) -> None:
    """This is the mean over many samples of held-out rows; its standard deviation is about 0.002."""
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
        (PredictionSets(0.1), "alpha 0.1 need 9 held-out rows, but there are 5; use a larger alpha"),
        (PredictionSets(0.3, by_class=True), "alpha 0.3 need 3 held-out rows of the label 'b', but there are 2"),
        (PredictionSets(0.2, by_class=True), "alpha 0.2 need 4 held-out rows of the label 'a', but there are 3"),
    ],
)
def test_too_few_held_out_rows_are_an_error(sets: PredictionSets, message: str) -> None:
    kept = HeldOutScores(((0.1, 0.2, 0.9), (0.3, 0.4)), None, split=True)
    with pytest.raises(BncliError, match=re.escape(message)):
        set_thresholds(sets, kept, ("a", "b"))


@pytest.mark.parametrize(
    ("wanted", "labels", "message"),
    [
        (DecisionOptions(threshold="0.3"), LABELS, "--threshold needs a class with two labels, but 'class' has 3"),
        (
            DecisionOptions(threshold="best:f1"),
            ("a", "b"),
            "has no held-out rows from which to choose the threshold best:f1",
        ),
        (DecisionOptions(costs="a:b=1"), ("a", "b"), "does not give the cost of deciding 'a' when 'b' is true"),
        (
            DecisionOptions(costs="a:b=1,b:d=1"),
            ("a", "b"),
            "names 'd', which is not a label of the class 'class'",
        ),
        (DecisionOptions(costs="a:b=1,b:a=-1"), ("a", "b"), "the cost -1 for deciding 'a' when 'b' is true"),
        (DecisionOptions(costs="a:b=0,b:a=0"), ("a", "b"), "all costs in --costs are 0"),
        (DecisionOptions(costs="x:x:x=1,x:x=1"), ("x", "x:x"), "can be read in two ways"),
    ],
)
def test_options_that_do_not_fit_are_errors(wanted: DecisionOptions, labels: tuple[str, ...], message: str) -> None:
    with pytest.raises(BncliError, match=re.escape(message)):
        make_rule(wanted, labels, "class")


def test_sets_need_rows_that_the_model_has_not_seen() -> None:
    rule = make_rule(
        DecisionOptions(sets=0.1),
        ("a", "b"),
        "class",
        DecisionRule(held_out=HeldOutScores(((0.5,), (0.5,)), None, False)),
    )
    assert rule is not None
    with pytest.raises(BncliError, match=r"no held-out rows for prediction sets; fit it with --sets"):
        Decider.of(rule, ("a", "b"))
    kept = HeldOutScores(((0.5,) * 20, (0.5,) * 20), None, split=True)
    with pytest.raises(BncliError, match=r"'a\|b' contains a"):
        Decider.of(DecisionRule(sets=PredictionSets(0.1), held_out=kept), ("a|b", "c"))


@pytest.mark.parametrize(
    ("wanted", "needed"),
    [
        (DecisionOptions(), False),
        (DecisionOptions(threshold="0.3"), False),
        (DecisionOptions(threshold="best:f1"), True),
        (DecisionOptions(sets=0.1), True),
        (DecisionOptions(costs="a=b:1", abstain_below=0.6), False),
    ],
)
def test_sets_and_thresholds_by_a_criterion_need_held_out_rows(wanted: DecisionOptions, needed: bool) -> None:
    assert wanted.need_held_out_rows == needed


def test_options_replace_the_stored_rule() -> None:
    kept = HeldOutScores(((0.2, 0.9), (0.4, 0.7)), None, split=True)
    stored = DecisionRule(threshold=Threshold(0.3, "best:f1"), sets=PredictionSets(0.1, by_class=True), held_out=kept)
    assert make_rule(DecisionOptions(), ("a", "b"), "class", stored) == stored
    costs = make_rule(DecisionOptions(costs="a:b=1,b:a=2"), ("a", "b"), "class", stored)
    assert costs == DecisionRule(costs=((0.0, 1.0), (2.0, 0.0)), sets=stored.sets, held_out=kept)
    assert make_rule(DecisionOptions(sets=0.4), ("a", "b"), "class", stored).sets == PredictionSets(0.4, by_class=True)  # type: ignore[union-attr]
    again = make_rule(DecisionOptions(threshold="recall=1"), ("a", "b"), "class", stored)
    assert again is not None
    assert again.threshold == Threshold(pytest.approx((0.4 + 0.1) / 2), "recall=1")


def test_costs_are_parsed() -> None:
    kind = Costs()
    text = "a:b=1,b:a=5"
    for value in (" b:a = 5.0, a:b=1", {("a", "b"): 1, ("b", "a"): 5.0}, {"a": {"b": 1}, "b": {"a": 5}}):
        assert kind.parse(value) == text
    assert cost_matrix(text, ("a", "b"), "class") == ((0.0, 1.0), (5.0, 0.0))
    assert cost_matrix("a:a=1,a:b:c=2,b:c:a=3", ("a", "b:c"), "class") == ((1.0, 2.0), (3.0, 0.0))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a=1", "'a' is not of the form TRUE:DECISION"),
        ("a:b=-1", "the cost of 'a:b' is not"),
        ("a:b", "is not of the form TRUE:DECISION=COST"),
    ],
)
def test_wrong_costs_are_errors(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Costs().parse(value)


@pytest.mark.parametrize("text", ["0.3", "0", "1", "best:f1", "best:mcc", "recall=0.9", "precision=0.8", "top=5%"])
def test_thresholds_are_parsed(text: str) -> None:
    assert ThresholdRule().parse(text) == text
    assert ThresholdRule().parse(ThresholdRule().parse(f" {text} ")) == text


@pytest.mark.parametrize(
    "text", ["1.1", "-0.1", "best:auc", "recall=0", "recall=2", "recall=90%", "top=5", "top=101%", ""]
)
def test_wrong_thresholds_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match=r"recall"):
        ThresholdRule().parse(text)


rows = st.lists(st.tuples(st.integers(0, 20), st.booleans(), st.integers(1, 3)), min_size=2, max_size=40)
SKLEARN = {"best:f1": f1_score, "best:mcc": matthews_corrcoef, "best:balanced-accuracy": balanced_accuracy_score}


def parted(found: list[tuple[int, bool, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p, positive, weights = zip(*found, strict=True)
    return np.array(p) / 20, np.array(positive), np.array(weights, np.float64)


def decided(p: np.ndarray, threshold: float) -> np.ndarray:
    return p >= threshold


@pytest.mark.parametrize("criterion", SKLEARN)
@given(rows)
def test_the_best_threshold_by_metrics_of_scikit_learn(criterion: str, found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    figure: Any = SKLEARN[criterion]
    extra = {"zero_division": 0.0} if criterion == "best:f1" else {}
    tried = [figure(positive, decided(p, t), sample_weight=weights, **extra) for t in np.unique(p)]
    chosen = choose_threshold(criterion, ThresholdSteps.of(p, positive, weights))
    assert chosen.chosen == criterion
    reached = figure(positive, decided(p, chosen.value), sample_weight=weights, **extra)
    assert reached == pytest.approx(max(tried), abs=1e-9)
    higher = [t for t, value in zip(np.unique(p), tried, strict=True) if value > max(tried) - 1e-13]
    assert (decided(p, chosen.value) == decided(p, max(higher))).all(), "the highest of equal ones"


@given(rows, st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_recall_precision_and_top_by_trying_every_threshold(found: list[tuple[int, bool, int]], wanted: float) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    steps = ThresholdSteps.of(p, positive, weights)
    chosen = choose_threshold(f"recall={wanted}", steps).value
    recalls = {t: weights[decided(p, t) & positive].sum() / weights[positive].sum() for t in np.unique(p)}
    best = max(t for t, recall in recalls.items() if recall >= wanted - 1e-12)
    assert (decided(p, chosen) == decided(p, best)).all()
    precisions = {t: weights[decided(p, t) & positive].sum() / weights[decided(p, t)].sum() for t in np.unique(p)}
    fitting = [t for t, precision in precisions.items() if precision >= wanted - 1e-12]
    if fitting:
        assert (decided(p, choose_threshold(f"precision={wanted}", steps).value) == decided(p, min(fitting))).all()
    else:
        with pytest.raises(BncliError, match=f"{max(precisions.values()):.4g}"):
            choose_threshold(f"precision={wanted}", steps)
    shares = {t: weights[decided(p, t)].sum() / weights.sum() for t in np.unique(p)}
    fitting = [t for t, share in shares.items() if share <= wanted + 1e-12]
    if fitting:
        assert (decided(p, choose_threshold(f"top={100 * wanted:g}%", steps).value) == decided(p, min(fitting))).all()


@given(rows)
def test_curves_of_scikit_learn(found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    steps = ThresholdSteps.of(p, positive, weights)
    precision, recall, thresholds = precision_recall_curve(positive, p, sample_weight=weights)
    np.testing.assert_allclose(threshold_metrics(steps)["precision"], precision[:-1][::-1], atol=1e-12)
    np.testing.assert_allclose(threshold_metrics(steps)["recall"], recall[:-1][::-1], atol=1e-12)
    np.testing.assert_array_equal(steps.thresholds, thresholds[::-1])
    balanced = [balanced_accuracy_score(positive, p >= t, sample_weight=weights) for t in steps.thresholds]
    np.testing.assert_allclose(threshold_metrics(steps)["balanced_accuracy"], balanced, atol=1e-12)
    rates, _, _ = roc_curve(positive, p, sample_weight=weights, drop_intermediate=False)
    np.testing.assert_allclose(threshold_metrics(steps)["false_positive_rate"], rates[1:], atol=1e-12)


def test_weights_whose_sums_differ_in_the_last_digit() -> None:
    """Weights summed step by step, as 0.1 + 0.2 + 0.3, may exceed their total: 0 / 0 is still 0."""
    thresholds, tp, fp = np.array([0.9, 0.5, 0.2]), np.array([0.3, 0.3, 0.1 + 0.2 + 0.3]), np.array([0.0, 0.25, 0.25])
    steps = ThresholdSteps(thresholds, tp, fp, 0.6, 0.25)
    assert tp[-1] + fp[-1] > steps.positives + steps.negatives
    found, chosen = threshold_metrics(steps), choose_threshold("best:mcc", steps)
    assert all(np.isfinite(figure).all() for figure in found.values())
    assert found["mcc"][-1] == 0
    assert chosen.value == pytest.approx(0.7)


def test_steps_of_held_out_rows_follow_from_their_true_labels() -> None:
    scores = HeldOutScores(((0.2, 0.9), (0.4, 0.7, 1.0)), None, split=False)
    steps = held_out_steps(scores)
    np.testing.assert_allclose(steps.thresholds, [1.0, 0.8, 0.7, 0.4, 0.1])
    assert steps.true_positives.tolist() == [1, 1, 2, 3, 3]
    assert steps.false_positives.tolist() == [0, 1, 1, 1, 2]
    weighted = HeldOutScores(scores.probabilities, ((2.0, 1.0), (1.0, 3.0, 1.0)), split=False)
    assert held_out_steps(weighted).false_positives.tolist() == [0, 2, 2, 2, 3]


def test_rounding_moves_no_row_across_the_threshold() -> None:
    own = 1 - 1e-9
    chosen = choose_threshold("top=50%", held_out_steps(HeldOutScores(((own,), (0.3,)), None, split=False)))
    assert chosen.value < 0.3 < own


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        ("precision=0.9", "no threshold reaches precision=0.9 on the held-out rows: the highest precision is 0.5"),
        (
            "top=1%",
            "no threshold reaches top=1% on the held-out rows: 50 % of the rows have the highest probability",
        ),
    ],
)
def test_a_criterion_that_no_threshold_reaches_is_an_error(criterion: str, message: str) -> None:
    steps = ThresholdSteps.of(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, False, True, False]))
    with pytest.raises(BncliError, match=re.escape(message)):
        choose_threshold(criterion, steps)


def test_rows_of_one_label_are_an_error() -> None:
    with pytest.raises(BncliError, match="needs held-out rows of both labels"):
        choose_threshold("best:f1", ThresholdSteps.of(np.array([0.5, 0.1]), np.array([True, True])))


@given(rows)
def test_the_table_has_the_metrics_of_each_threshold(found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    costs = ((0.0, 2.0), (7.0, 1.0))
    lines = threshold_table(p, positive, weights, costs)
    assert len(lines) == TABLE_LINES
    for line in lines[::10]:
        told = p >= line["threshold"]
        assert line["selected"] == pytest.approx(np.average(told, weights=weights))
        paid = np.where(positive, np.where(told, 1.0, 7.0), np.where(told, 2.0, 0.0))
        assert line["cost"] == pytest.approx(np.average(paid, weights=weights))
        if 0 < positive.sum() < len(p):
            assert line["mcc"] == pytest.approx(matthews_corrcoef(positive, told, sample_weight=weights), abs=1e-9)
    assert "cost" not in threshold_table(p, positive, None)[0]


class GivenProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose rows are its predicted probabilities."""

    def __init__(self) -> None:
        self.classes_ = np.arange(len(LABELS))

    def fit(self, rows: Any, labels: Any) -> GivenProbabilities:
        """Learn nothing."""
        return self

    def predict_proba(self, rows: Array) -> Array:
        """Return the rows."""
        return rows

    def predict(self, rows: Array) -> Index:
        """Return the most probable labels."""
        return np.asarray(rows.argmax(axis=1))


def by_mapie(p: Array, labels: Index, new: Array, alpha: float) -> Mask:
    """Return whether each label is in the set of each new row, (rows, K)."""
    mapie = pytest.importorskip("mapie.classification", reason="the extra `peers` is not installed")
    classifier = mapie.SplitConformalClassifier(
        GivenProbabilities(), confidence_level=1 - alpha, conformity_score="lac"
    )
    classifier.conformalize(p, labels)
    return np.asarray(classifier.predict_set(new)[1][:, :, 0])


def ours(p: Array, labels: Index, new: Array, sets: PredictionSets) -> Mask:
    """Return the same from the held-out scores that a model keeps."""
    own = [np.sort(p[labels == c, c]) for c in range(len(LABELS))]
    held_out = HeldOutScores(tuple(tuple(one.tolist()) for one in own), None, True)
    members = Decider.of(DecisionRule(sets=sets, held_out=held_out), LABELS).decide(np.log(new).T).members
    assert members is not None
    return members.T


def drawn(n_rows: int) -> tuple[Array, Index, Array]:
    """Return probabilities of held-out rows, their labels, and probabilities of 300 new rows."""
    rng = np.random.default_rng(n_rows)
    p, new = (rng.dirichlet([0.8, 1.0, 1.5], n) for n in (n_rows, 300))
    return p, np.array([rng.choice(3, p=row) for row in p]), new


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("n_rows", [60, 199, 500])
def test_sets_are_those_of_mapie(alpha: float, n_rows: int) -> None:
    p, labels, new = drawn(n_rows)
    found = ours(p, labels, new, PredictionSets(alpha))
    np.testing.assert_array_equal(found, by_mapie(p, labels, new, alpha))
    assert len(np.unique(found.sum(axis=1))) > 1, "sets of one size would agree too easily"


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("n_rows", [199, 500])
def test_sets_by_class_are_those_of_the_rows_of_each_class(alpha: float, n_rows: int) -> None:
    p, labels, new = drawn(n_rows)
    by_class = ours(p, labels, new, PredictionSets(alpha, by_class=True))
    for c in range(len(LABELS)):
        own = labels == c
        with pytest.warns(UserWarning, match="less labels"):
            theirs = by_mapie(p[own], labels[own], new, alpha)
        np.testing.assert_array_equal(by_class[:, c], theirs[:, c])
    assert not np.array_equal(by_class, ours(p, labels, new, PredictionSets(alpha)))


def test_a_threshold_is_refused_for_three_labels_before_anything_is_learned() -> None:
    with pytest.raises(BncliError, match="--threshold needs a class with two labels, but 'y' has 3"):
        check_options(DecisionOptions(threshold="0.3"), LABELS, "y")
    check_options(DecisionOptions(threshold="0.3"), LABELS[:2], "y")
    check_options(DecisionOptions(abstain_below=0.5), LABELS, "y")
