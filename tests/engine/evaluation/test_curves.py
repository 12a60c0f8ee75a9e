"""Curves and calibration against scikit-learn and direct counts; the shape of thinned curves."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax

from bncli.engine.evaluation.curves import (
    BINS,
    Curve,
    gains,
    label_curves,
    measure_calibration,
    thin,
    threshold_table,
)
from bncli.engine.evaluation.metrics import measure
from tests.sweeps import examples

metrics = pytest.importorskip("sklearn.metrics")
calibration = pytest.importorskip("sklearn.calibration")

cases = given(st.integers(0, 9999), st.integers(1, 40), st.integers(2, 4), st.booleans(), st.booleans())


def random_case(
    seed: int, n: int, k: int, coarse: bool, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """P(c | x_t) (K, N), coarse ones with many ties; labels that may be absent; weights, some of them 0."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 4, (k, n)).astype(np.float64) if coarse else rng.random((k, n)) + 0.01
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.5)))
    scores[labels, np.arange(n)] *= 1.5
    weights = rng.integers(0, 4, n) / 2 if weighted else None
    if weights is not None:
        weights[0] = 1.0
    return scores / scores.sum(axis=0), labels, weights


def on_line(curve: Curve, xs: np.ndarray, ys: np.ndarray) -> float:
    """How far the farthest of these points is from the line through the curve's points."""
    ends = np.stack([curve.x, curve.y], axis=1)
    worst = 0.0
    for point in np.stack([xs, ys], axis=1):
        nearest = math.inf
        for a, b in pairwise(ends):
            length = ((b - a) ** 2).sum()
            t = np.clip((point - a) @ (b - a) / length, 0, 1) if length > 0 else 0.0
            nearest = min(nearest, float(np.hypot(*(point - a - t * (b - a)))))
        worst = max(worst, nearest)
    return worst


def check(curve: Curve, thresholds: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> None:
    """The points are among the expected ones, in their order, thresholds too, and no other is off their line."""
    expected = list(zip(thresholds.tolist(), xs.tolist(), ys.tolist(), strict=True))
    assert math.isnan(curve.thresholds[0])
    at = 0
    for point in list(zip(curve.thresholds.tolist(), curve.x.tolist(), curve.y.tolist(), strict=True))[1:]:
        at = next(i for i in range(at + 1, len(expected)) if np.allclose(expected[i], point, rtol=1e-9, atol=1e-9))
    assert at == len(expected) - 1
    assert on_line(curve, xs, ys) < 1e-9


@cases
def test_roc_equals_scikit_learn(seed: int, n: int, k: int, coarse: bool, weighted: bool) -> None:
    p, labels, weights = random_case(seed, n, k, coarse, weighted)
    w = np.ones(n) if weights is None else weights
    for c, curves in enumerate(label_curves(np.log(p), labels, weights)):
        own = labels == c
        if w[own].sum() == 0 or w[~own].sum() == 0:
            assert curves.roc is None
            continue
        assert curves.roc is not None
        x, y, thresholds = metrics.roc_curve(own, p[c], sample_weight=w, drop_intermediate=False)
        check(curves.roc, thresholds, x, y)
        assert (curves.roc.x[0], curves.roc.y[0]) == (0, 0)
        assert curves.roc.area == pytest.approx(metrics.roc_auc_score(own, p[c], sample_weight=w))


@cases
def test_precision_recall_equals_scikit_learn(seed: int, n: int, k: int, coarse: bool, weighted: bool) -> None:
    p, labels, weights = random_case(seed, n, k, coarse, weighted)
    w = np.ones(n) if weights is None else weights
    for c, curves in enumerate(label_curves(np.log(p), labels, weights)):
        own = labels == c
        if w[own].sum() == 0:
            assert curves.precision_recall is None
            continue
        assert curves.precision_recall is not None
        there = w > 0
        precision, recall, thresholds = metrics.precision_recall_curve(own[there], p[c, there], sample_weight=w[there])
        check(curves.precision_recall, np.append(math.inf, thresholds[::-1]), recall[::-1], precision[::-1])
        expected = metrics.average_precision_score(own[there], p[c, there], sample_weight=w[there])
        assert curves.precision_recall.area == pytest.approx(expected)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n", [11, 101, 3001])
def test_reliability_equals_scikit_learn(n: int, coarse: bool) -> None:
    """With a row more than a multiple of the bins, both choices of a quantile are the same row."""
    p, labels, _ = random_case(n, n, 3, coarse, False)
    for c, curves in enumerate(label_curves(np.log(p), labels)):
        observed, predicted = calibration.calibration_curve(labels == c, p[c], n_bins=BINS, strategy="quantile")
        if not coarse:  # of equal probabilities scikit-learn interpolates between the quantiles, and may part them
            assert curves.reliability.observed == pytest.approx(observed)
            assert curves.reliability.predicted == pytest.approx(predicted)
        assert curves.reliability.support.sum() == n


@cases
def test_reliability_by_hand(seed: int, n: int, k: int, coarse: bool, weighted: bool) -> None:
    p, labels, weights = random_case(seed, n, k, coarse, weighted)
    w = np.ones(n) if weights is None else weights
    p = np.exp(np.log(p))
    for c, curves in enumerate(label_curves(np.log(p), labels, weights)):
        ps = np.exp(np.log(p[c]))
        edges = [min(v for v in ps[w > 0] if w[ps <= v].sum() * BINS >= b * w.sum()) for b in range(1, BINS)]
        bins = np.array([sum(v > edge for edge in edges) for v in ps])
        used = [b for b in range(BINS) if w[bins == b].sum() > 0]
        found = curves.reliability
        assert found.support.tolist() == [w[bins == b].sum() for b in used]
        assert found.predicted == pytest.approx([np.average(ps[bins == b], weights=w[bins == b]) for b in used])
        own = labels == c
        assert found.observed == pytest.approx([np.average(own[bins == b], weights=w[bins == b]) for b in used])
        assert (np.diff(found.predicted) > 0).all()


@cases
def test_weight_two_is_a_row_twice_and_weight_zero_none(
    seed: int, n: int, k: int, coarse: bool, weighted: bool
) -> None:
    p, labels, _ = random_case(seed, n, k, coarse, False)
    counts = np.random.default_rng(seed).integers(0, 3, n)
    counts[0] = 2
    once = label_curves(np.log(p), labels, counts.astype(np.float64))
    again = label_curves(np.repeat(np.log(p), counts, axis=1), np.repeat(labels, counts))
    for a, b in zip(once, again, strict=True):
        for name in ("roc", "precision_recall"):
            one, other = getattr(a, name), getattr(b, name)
            assert (one is None) == (other is None)
            if one is not None:
                assert one.area == pytest.approx(other.area)
                assert (one.x.tolist(), one.y.tolist()) == (other.x.tolist(), other.y.tolist())
        assert a.reliability.support.tolist() == b.reliability.support.tolist()
        assert a.reliability.observed == pytest.approx(b.reliability.observed)


def test_the_area_of_two_labels_is_the_auc_of_the_report() -> None:
    p, labels, weights = random_case(2, 200, 2, True, True)
    areas = [curves.roc.area for curves in label_curves(np.log(p), labels, weights) if curves.roc is not None]
    assert areas == [pytest.approx(measure(np.log(p), labels, weights).auc)] * 2


def test_one_row() -> None:
    first, second = label_curves(np.log([[0.75], [0.25]]), np.array([0]))
    assert first.roc is None
    assert second.precision_recall is None
    assert first.precision_recall is not None
    assert (first.precision_recall.x.tolist(), first.precision_recall.y.tolist()) == ([0.0, 1.0], [1.0, 1.0])
    assert [values.tolist() for values in second.reliability] == [[0.25], [0.0], [1.0]]


def test_impossible_labels_share_a_point() -> None:
    """Probabilities of 0, as relative frequencies give them: ln P is -inf."""
    p = np.array([[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 1.0, 0.5]])
    with np.errstate(divide="ignore"):
        first, _ = label_curves(np.log(p), np.array([0, 1, 0, 1]))
    assert first.roc is not None
    assert first.roc.thresholds[1:].tolist() == [1.0, 0.5, 0.0]
    assert (first.roc.x.tolist(), first.roc.y.tolist()) == ([0, 0, 0.5, 1], [0, 0.5, 0.5, 1])
    assert first.reliability.support.sum() == 4


def test_probabilities_that_round_to_one_are_still_ranked() -> None:
    margins = np.array([40.0, 50.0, 60.0, 70.0])
    log_p = np.array([-margins, -np.log1p(np.exp(-margins))])
    curves = label_curves(log_p, np.array([0, 0, 1, 1]))
    assert [one.roc.area for one in curves if one.roc is not None] == [1.0, 1.0]


@pytest.mark.parametrize(("k", "most"), [(2, 100), (20, 100), (40, 50), (100, 20), (200, 20)])
def test_a_curve_has_a_hundred_points_and_all_labels_two_thousand_but_each_twenty(k: int, most: int) -> None:
    p, labels, weights = random_case(500, 500, 2, False, True)
    log_p = np.concatenate([np.log(p), np.full((k - 2, 500), -9.0)])
    for one in label_curves(log_p, labels, weights)[:2]:
        assert one.roc is not None
        assert len(one.roc.x) == most


@pytest.mark.slow
@pytest.mark.parametrize("n", [500, 30000])
@pytest.mark.parametrize(("k", "most"), [(2, 100), (40, 50)])
def test_long_curves_are_thinned_and_keep_their_shape(n: int, k: int, most: int) -> None:
    p, labels, weights = random_case(n, n, 2, False, True)
    log_p = np.concatenate([np.log(p), np.full((k - 2, n), -9.0)])
    curves = label_curves(log_p, labels, weights)
    assert len(curves) == k
    w = np.ones(n) if weights is None else weights
    for c in (0, 1):
        for curve in (curves[c].roc, curves[c].precision_recall):
            assert curve is not None
            assert len(curve.x) <= most
        roc = curves[c].roc
        assert roc is not None
        x, y, _ = metrics.roc_curve(labels == c, p[c], sample_weight=w)
        some = np.random.default_rng(0).integers(0, len(x), 100)
        assert on_line(roc, x[some], y[some]) < (0.01 if k == 2 else 0.03)
        assert abs(np.trapezoid(roc.y, roc.x) - roc.area) < 0.01
    # all the points that there may be: their sum is bounded too
    assert sum(len(curve.roc.x) for curve in curves if curve.roc is not None) <= 2000


@given(st.integers(0, 9999), st.integers(2, 3000), st.integers(2, 50))
def test_thinning(seed: int, n: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.random(n).round(2)), rng.random(n).round(2)
    kept = thin(x, y, most)
    assert (kept[0], kept[-1]) == (0, n - 1)
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= most


def test_what_lies_on_a_line_is_left_out() -> None:
    x = np.linspace(0, 1, 50)
    assert thin(x, x / 2, 100).tolist() == [0, 49]
    assert thin(x, np.minimum(x, 0.5), 100).tolist() in ([0, 24, 49], [0, 24, 25, 49])


LABELS = ("a", "b", "c")


@pytest.mark.parametrize("n_labels", [2, 3])
def test_calibration_bins_are_those_of_scikit_learn(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    log_p, true = log_softmax(rng.normal(size=(n_labels, 1000)), axis=0), rng.integers(0, n_labels, 1000)
    found = measure_calibration(LABELS[:n_labels], log_p, true)
    assert {one.label for one in found.bins} == ({"b"} if n_labels == 2 else set(LABELS))
    for c in [1] if n_labels == 2 else range(n_labels):
        p = np.exp(log_p[c])
        own = [one for one in found.bins if one.label == LABELS[c]]
        share, mean = calibration.calibration_curve(true == c, p, n_bins=10, strategy="quantile")
        assert [one.frequency for one in own] == pytest.approx(share, abs=0.011)  # a row more or less at the edges
        assert [one.mean_p for one in own] == pytest.approx(mean, abs=2e-3)
        for one in own:
            inside = (p >= one.low) & (p <= one.high)
            assert one.rows == inside.sum()
            assert one.frequency == pytest.approx(np.mean(true[inside] == c))
            assert one.mean_p == pytest.approx(p[inside].mean())
            wilson = stats.binomtest(int((true[inside] == c).sum()), int(one.rows)).proportion_ci(method="wilson")
            assert (one.low95, one.high95) == pytest.approx((wilson.low, wilson.high))


def test_brier_parts_are_exact_if_every_bin_holds_one_probability() -> None:
    p = np.repeat([0.1, 0.4, 0.8], [40, 30, 30])
    true = np.concatenate([np.arange(40) < 8, np.arange(30) < 15, np.arange(30) < 21]).astype(int)
    log_p = np.log([1 - p, p])
    found = measure_calibration(LABELS[:2], log_p, true)
    parts, brier = found.brier_parts, 2 * metrics.brier_score_loss(true, p)
    assert parts.within_bins == pytest.approx(0, abs=1e-12)
    assert parts.reliability == pytest.approx(2 * (0.4 * 0.1**2 + 0.3 * 0.1**2 + 0.3 * 0.1**2))
    assert parts.uncertainty == pytest.approx(2 * 0.44 * 0.56)
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(brier)
    expected = 0.4 * abs(0.9 - 32 / 40) + 0.3 * abs(0.6 - 0.5) + 0.3 * abs(0.8 - 0.7)
    assert found.ece_equal_mass == pytest.approx(expected)


def test_calibration_weights_count_as_rows_and_the_parts_sum_to_the_brier_score() -> None:
    rng = np.random.default_rng(1)
    log_p, true = log_softmax(rng.normal(size=(3, 90)), axis=0), rng.integers(0, 3, 90)
    weights = np.where(np.arange(90) < 30, 2.0, 1.0)
    twice = np.concatenate([np.arange(90), np.arange(30)])
    one = measure_calibration(LABELS, log_p, true, weights)
    other = measure_calibration(LABELS, log_p[:, twice], true[twice])
    assert one.brier_parts == pytest.approx(other.brier_parts)
    assert one.ece_equal_mass == pytest.approx(other.ece_equal_mass)
    assert [b.frequency for b in one.bins] == pytest.approx([b.frequency for b in other.bins])
    r, s, u, w = one.brier_parts
    assert r - s + u + w == pytest.approx(measure(log_p, true, weights).brier)


ROWS = st.lists(st.tuples(st.integers(0, 1000), st.booleans(), st.integers(1, 3)), min_size=1, max_size=40)


@settings(max_examples=examples(20), deadline=None)
@given(ROWS)
def test_a_threshold_counts_the_rows_at_or_above_it(rows: list[tuple[int, bool, int]]) -> None:
    log_p = np.log(np.array([max(p, 1) / 1003 for p, _, _ in rows]))  # never next to a threshold
    own, weights = np.array([o for _, o, _ in rows]), np.array([float(w) for _, _, w in rows])
    table = threshold_table(log_p, own, weights)
    for threshold, found, alarms in zip(table.thresholds, table.found, table.false_alarms, strict=True):
        above = np.exp(log_p) >= threshold
        assert (found, alarms) == (weights[above & own].sum(), weights[above & ~own].sum())
    assert (table.positives, table.negatives) == (weights[own].sum(), weights[~own].sum())


def test_gains_are_recall_over_the_share_of_rows_selected() -> None:
    rng = np.random.default_rng(0)
    p = rng.permutation(60) / 61 + 0.005
    labels = (rng.random(60) < p).astype(np.int64)
    curve = label_curves(np.log(np.stack([1 - p, p])), labels)[1].roc
    assert curve is not None
    selected, found = gains(curve, float(labels.mean()))
    for threshold, share_selected, recall in zip(curve.thresholds[1:], selected[1:], found[1:], strict=True):
        above = p >= threshold - 1e-12
        assert share_selected == pytest.approx(above.mean())
        assert recall == pytest.approx(labels[above].sum() / labels.sum())
