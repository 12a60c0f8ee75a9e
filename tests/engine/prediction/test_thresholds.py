"""Thresholds against trying every one of them, and against scikit-learn."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, precision_recall_curve, roc_curve

from bncli.engine.model import HeldOutScores
from bncli.engine.prediction.decision_rules import MOST_LINES, Steps, choose, figures, steps_held_out, steps_of, table
from bncli.errors import BncliError

rows = st.lists(st.tuples(st.integers(0, 20), st.booleans(), st.integers(1, 3)), min_size=2, max_size=40)
SKLEARN = {"best:f1": f1_score, "best:mcc": matthews_corrcoef, "best:balanced-accuracy": balanced_accuracy_score}


def parted(found: list[tuple[int, bool, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p, positive, weights = zip(*found, strict=True)
    return np.array(p) / 20, np.array(positive), np.array(weights, np.float64)


def decided(p: np.ndarray, threshold: float) -> np.ndarray:
    return p >= threshold


@pytest.mark.parametrize("criterion", SKLEARN)
@given(rows)
def test_the_best_of_all_by_scikit_learn(criterion: str, found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    figure: Any = SKLEARN[criterion]
    extra = {"zero_division": 0.0} if criterion == "best:f1" else {}
    tried = [figure(positive, decided(p, t), sample_weight=weights, **extra) for t in np.unique(p)]
    chosen = choose(criterion, steps_of(p, positive, weights))
    assert chosen.chosen == criterion
    reached = figure(positive, decided(p, chosen.value), sample_weight=weights, **extra)
    assert reached == pytest.approx(max(tried), abs=1e-9)
    higher = [t for t, value in zip(np.unique(p), tried, strict=True) if value > max(tried) - 1e-13]
    assert (decided(p, chosen.value) == decided(p, max(higher))).all(), "the highest of equal ones"


@given(rows, st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_recall_precision_and_top_by_trying(found: list[tuple[int, bool, int]], wanted: float) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    steps = steps_of(p, positive, weights)
    chosen = choose(f"recall={wanted}", steps).value
    recalls = {t: weights[decided(p, t) & positive].sum() / weights[positive].sum() for t in np.unique(p)}
    best = max(t for t, recall in recalls.items() if recall >= wanted - 1e-12)
    assert (decided(p, chosen) == decided(p, best)).all()
    precisions = {t: weights[decided(p, t) & positive].sum() / weights[decided(p, t)].sum() for t in np.unique(p)}
    fitting = [t for t, precision in precisions.items() if precision >= wanted - 1e-12]
    if fitting:
        assert (decided(p, choose(f"precision={wanted}", steps).value) == decided(p, min(fitting))).all()
    else:
        with pytest.raises(BncliError, match=f"{max(precisions.values()):.4g}"):
            choose(f"precision={wanted}", steps)
    shares = {t: weights[decided(p, t)].sum() / weights.sum() for t in np.unique(p)}
    fitting = [t for t, share in shares.items() if share <= wanted + 1e-12]
    if fitting:
        assert (decided(p, choose(f"top={100 * wanted:g}%", steps).value) == decided(p, min(fitting))).all()


@given(rows)
def test_curves_of_scikit_learn(found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    assume(0 < positive.sum() < len(positive))
    steps = steps_of(p, positive, weights)
    precision, recall, thresholds = precision_recall_curve(positive, p, sample_weight=weights)
    np.testing.assert_allclose(figures(steps)["precision"], precision[:-1][::-1], atol=1e-12)
    np.testing.assert_allclose(figures(steps)["recall"], recall[:-1][::-1], atol=1e-12)
    np.testing.assert_array_equal(steps.thresholds, thresholds[::-1])
    rates, _, _ = roc_curve(positive, p, sample_weight=weights, drop_intermediate=False)
    np.testing.assert_allclose(figures(steps)["false_positive_rate"], rates[1:], atol=1e-12)


def test_weights_whose_sums_differ_in_the_last_digit() -> None:
    """Summed up step by step, as 0.1 + 0.2 + 0.3, weights may be more than all at once: 0 / 0 is 0 for these too."""
    thresholds, tp, fp = np.array([0.9, 0.5, 0.2]), np.array([0.3, 0.3, 0.1 + 0.2 + 0.3]), np.array([0.0, 0.25, 0.25])
    steps = Steps(thresholds, tp, fp, 0.6, 0.25)
    assert tp[-1] + fp[-1] > steps.positives + steps.negatives
    found, chosen = figures(steps), choose("best:mcc", steps)
    assert all(np.isfinite(figure).all() for figure in found.values())
    assert found["mcc"][-1] == 0
    assert chosen.value == pytest.approx(0.7)


def test_rows_held_out_are_kept_by_what_their_own_label_got() -> None:
    scores = HeldOutScores(((0.2, 0.9), (0.4, 0.7, 1.0)), None, split=False)
    steps = steps_held_out(scores)
    np.testing.assert_allclose(steps.thresholds, [1.0, 0.8, 0.7, 0.4, 0.1])
    assert steps.true_positives.tolist() == [1, 1, 2, 3, 3]
    assert steps.false_positives.tolist() == [0, 1, 1, 1, 2]
    weighted = HeldOutScores(scores.probabilities, ((2.0, 1.0), (1.0, 3.0, 1.0)), split=False)
    assert steps_held_out(weighted).false_positives.tolist() == [0, 2, 2, 2, 3]


def test_rounding_takes_no_row_away() -> None:
    own = 1 - 1e-9
    chosen = choose("top=50%", steps_held_out(HeldOutScores(((own,), (0.3,)), None, split=False)))
    assert chosen.value < 0.3 < own


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        ("precision=0.9", "no threshold has precision=0.9 on the rows held out: the highest precision is 0.5"),
        ("top=1%", "no threshold has top=1% on the rows held out: the highest probability is that of 50 % of the rows"),
    ],
)
def test_what_no_row_reaches_is_named(criterion: str, message: str) -> None:
    steps = steps_of(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, False, True, False]))
    with pytest.raises(BncliError, match=re.escape(message)):
        choose(criterion, steps)


def test_one_label_alone_is_nothing_to_choose_by() -> None:
    with pytest.raises(BncliError, match="needs rows of both labels"):
        choose("best:f1", steps_of(np.array([0.5, 0.1]), np.array([True, True])))


@given(rows)
def test_the_table_is_that_of_each_threshold(found: list[tuple[int, bool, int]]) -> None:
    p, positive, weights = parted(found)
    costs = ((0.0, 2.0), (7.0, 1.0))
    lines = table(p, positive, weights, costs)
    assert len(lines) == MOST_LINES
    for line in lines[::10]:
        told = p >= line["threshold"]
        assert line["selected"] == pytest.approx(np.average(told, weights=weights))
        paid = np.where(positive, np.where(told, 1.0, 7.0), np.where(told, 2.0, 0.0))
        assert line["cost"] == pytest.approx(np.average(paid, weights=weights))
        if 0 < positive.sum() < len(p):
            assert line["mcc"] == pytest.approx(matthews_corrcoef(positive, told, sample_weight=weights), abs=1e-9)
    assert "cost" not in table(p, positive, None)[0]
