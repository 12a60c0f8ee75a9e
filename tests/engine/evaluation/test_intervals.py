"""Intervals of figures: against a bootstrap of whole tables, scipy's BCa and Wilson intervals, and known truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import log_softmax

from bncli.engine.evaluation.intervals import (
    MOST_GROUPS,
    REPLICATES,
    MetricIntervals,
    PredictedBlock,
    bca_interval,
    measure_intervals,
    overlap_variance,
    wilson_interval,
)
from bncli.engine.evaluation.metrics import METRICS, measure, measure_labels
from bncli.engine.kernels.arrays import Array, Integers

NAMES = tuple(name for name in METRICS if name != "ece")


def drawn(n_labels: int, n_rows: int, seed: int = 0, skill: float = 2.0) -> tuple[Array, Integers]:
    """Return ln P (K, N) of a calibrated model, and labels drawn from it."""
    rng = np.random.default_rng(seed)
    log_p = log_softmax(skill * rng.normal(size=(n_labels, n_rows)), axis=0)
    labels = (rng.random(n_rows) > np.exp(log_p).cumsum(axis=0)[:-1]).sum(axis=0)
    return log_p, labels


def intervals_of(log_p: Array, labels: Integers, weights: Array | None = None, **options: object) -> MetricIntervals:
    blocks = [PredictedBlock(np.arange(len(labels)), log_p)]
    reported = measure(log_p, labels, weights).by_name()
    return measure_intervals(blocks, labels, weights, reported, **options)  # type: ignore[arg-type]


def resampled(log_p: Array, labels: Integers, units: Integers, seed: int, n: int = 2000) -> dict[str, Array]:
    """Return each figure of `n` tables made of units drawn with replacement: the slow, obvious bootstrap."""
    rng = np.random.default_rng(seed)
    rows_of = [np.flatnonzero(units == unit) for unit in np.unique(units)]
    found = []
    for _ in range(n):
        rows = np.concatenate([rows_of[i] for i in rng.integers(0, len(rows_of), len(rows_of))])
        found.append(measure(log_p[:, rows], labels[rows]).by_name())
    return {name: np.array([each[name] for each in found], np.float64) for name in METRICS}


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("rows_per_unit", [1, 4])
def test_intervals_are_as_wide_as_the_figures_of_resampled_tables_vary(n_labels: int, rows_per_unit: int) -> None:
    log_p, labels = drawn(n_labels, 240)
    # the rows of a unit are alike, so that units matter
    rows = np.repeat(np.arange(240 // rows_per_unit), rows_per_unit)
    log_p, labels, units = log_p[:, rows], labels[rows], rows
    found = intervals_of(log_p, labels, units=units)
    resampled_text = "240 rows" if rows_per_unit == 1 else "60 groups"
    assert found.method == f"BCa bootstrap over {resampled_text}, 1,000 replicates"
    slow = resampled(log_p, labels, units, seed=1)
    for name in NAMES:
        ends = found.metrics[name]
        assert ends is not None, name
        estimate = measure(log_p, labels).by_name()[name]
        assert estimate is not None
        assert ends[0] < estimate < ends[1], name
        assert ends[1] - ends[0] == pytest.approx(2 * 1.96 * slow[name].std(), rel=0.12), name
        # BCa shifts the percentile interval by a fraction of its width
        percentiles = np.quantile(slow[name], (0.025, 0.975))
        assert np.abs(np.array(ends) - percentiles).max() < 0.2 * (ends[1] - ends[0]), name


def test_the_bca_interval_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=60)
    reference = stats.bootstrap((losses,), np.mean, method="BCa", n_resamples=20000, rng=rng, vectorized=True)
    replicates = losses[rng.integers(0, 60, (20000, 60))].mean(axis=1)
    jackknife = (losses.sum() - losses) / 59
    found = bca_interval(float(losses.mean()), replicates, jackknife)
    interval = reference.confidence_interval
    assert found == pytest.approx((interval.low, interval.high), rel=0.01)
    # skewed losses: the interval reaches further up than down
    assert found is not None
    assert found[1] - losses.mean() > 1.15 * (losses.mean() - found[0])


@given(st.integers(0, 50), st.integers(1, 50))
def test_shares_have_the_interval_of_wilson(hits: int, misses: int) -> None:
    n = hits + misses
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(hits / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.slow
def test_folds_have_the_figures_of_the_fold_means() -> None:
    log_p, labels = drawn(3, 301)
    fold_of = np.arange(301) % 5
    log_p[0] += np.linspace(0, 3, 5)[fold_of]  # scores of folds are not comparable: auc ranks within folds
    log_p = log_softmax(log_p, axis=0)
    blocks = [PredictedBlock(np.flatnonzero(fold_of == f), log_p[:, fold_of == f]) for f in range(5)]
    metrics = [measure(block.log_p, labels[block.rows]).by_name() for block in blocks]
    reported = {name: float(np.mean([each[name] for each in metrics])) for name in METRICS}
    found = measure_intervals(blocks, labels, None, reported)
    rng, slow = np.random.default_rng(1), []
    for _ in range(1000):
        counts = np.bincount(rng.integers(0, 301, 301), minlength=301).astype(float)
        folds = [measure(block.log_p, labels[block.rows], counts[block.rows]).by_name() for block in blocks]
        slow.append({name: np.mean([each[name] for each in folds]) for name in METRICS})
    for name in NAMES:
        ends = found.metrics[name]
        assert ends is not None, name
        assert ends[0] < reported[name] < ends[1], name
        spread = np.std([each[name] for each in slow])
        assert ends[1] - ends[0] == pytest.approx(2 * 1.96 * spread, rel=0.12), name


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_auc_of_folds_of_one_unit_varies_as_the_folds_do(n_labels: int) -> None:
    n_folds, per_class = 12, 5
    rng, n = np.random.default_rng(3), per_class * n_labels
    blocks, labels, aucs = [], np.tile(np.arange(n_labels), n_folds * per_class), []
    for fold in range(n_folds):
        scores = rng.normal(size=(n_labels, n)) + rng.uniform(0, 3) * np.eye(n_labels)[:, labels[:n]]
        blocks.append(PredictedBlock(np.arange(fold * n, (fold + 1) * n), log_softmax(scores, axis=0)))
        aucs.append(measure(blocks[-1].log_p, labels[:n]).auc)
    found = measure_intervals(blocks, labels, None, {"auc": float(np.mean(aucs))}, units=np.repeat(range(n_folds), n))
    ends = found.metrics["auc"]
    assert ends is not None
    means = np.array(aucs)[rng.integers(0, n_folds, (20_000, n_folds))].mean(axis=1)
    assert ends[1] - ends[0] == pytest.approx(2 * 1.96 * means.std(), rel=0.1)


def test_repeats_of_the_same_predictions_add_no_certainty() -> None:
    log_p, labels = drawn(2, 150)
    block = PredictedBlock(np.arange(150), log_p)
    reported = measure(log_p, labels).by_name()
    once = measure_intervals([block], labels, None, reported)
    thrice = measure_intervals([block] * 3, labels, None, reported)
    for name in NAMES:
        assert thrice.metrics[name] == pytest.approx(once.metrics[name], rel=1e-9), name


def test_weights_count_as_rows_and_units_stay_together() -> None:
    log_p, labels = drawn(2, 80)
    weights = np.where(np.arange(80) < 30, 2.0, 1.0)
    weights[5] = 0.0
    rows = np.repeat(np.arange(80), weights.astype(int))
    weighted, repeated = intervals_of(log_p, labels, weights), intervals_of(log_p[:, rows], labels[rows])
    for name in NAMES:
        assert weighted.metrics[name] == pytest.approx(repeated.metrics[name]), name
    together = intervals_of(log_p[:, rows], labels[rows], units=rows)
    wide, narrow = together.metrics["log_loss"], repeated.metrics["log_loss"]
    assert wide is not None
    assert narrow is not None
    assert wide[1] - wide[0] > 1.05 * (narrow[1] - narrow[0])


def test_many_units_are_resampled_in_groups_with_the_same_width() -> None:
    log_p, labels = drawn(2, 4 * MOST_GROUPS)
    found = intervals_of(log_p, labels)
    losses = -log_p[labels, np.arange(len(labels))]
    for name, error in (
        ("log_loss", losses.std() / math.sqrt(len(losses))),
        ("accuracy", (log_p.argmax(axis=0) == labels).std() / math.sqrt(len(losses))),
    ):
        ends = found.metrics[name]
        assert ends is not None
        assert ends[1] - ends[0] == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_labels_have_the_intervals_of_their_decisions() -> None:
    log_p, labels = drawn(2, 400)
    decisions = np.where(log_p[1] > math.log(0.8), 1, np.where(log_p[1] < math.log(0.4), 0, -1))
    block = PredictedBlock(np.arange(400), log_p, decisions)
    found = measure_intervals([block], labels, None, measure(log_p, labels).by_name())
    decided = decisions >= 0
    confusion = np.zeros((2, 2), np.intp)
    np.add.at(confusion, (labels[decided], decisions[decided]), 1)
    for own, figures in zip(found.by_label, measure_labels(confusion), strict=True):
        for name in ("precision", "recall", "f1"):
            ends, value = own[name], getattr(figures, name)
            assert ends is not None
            assert ends[0] < value < ends[1]
    selected = found.by_label[1]["selection_rate"]
    assert selected is not None
    assert selected == pytest.approx(wilson_interval(float(np.mean(decisions == 1)), 400), abs=0.01)


def test_perfect_figures_are_not_certain_and_undefined_ones_have_none() -> None:
    log_p = np.log([[0.99] * 6 + [0.01] * 3, [0.01] * 6 + [0.99] * 3])
    labels = np.array([0] * 6 + [1] * 3)
    found = intervals_of(log_p, labels)
    assert found.metrics["accuracy"] == wilson_interval(1.0, 9)
    assert found.metrics["auc"] == pytest.approx(wilson_interval(1.0, 3))
    assert found.by_label[1]["recall"] == pytest.approx(wilson_interval(1.0, 3))
    assert found.metrics["ece"] is None
    one = intervals_of(log_p[:, :1], labels[:1])
    assert one.metrics["log_loss"] is None
    assert one.metrics["auc"] is None
    assert one.method == "BCa bootstrap over 1 row, 1,000 replicates"
    lonely = intervals_of(log_p[:, :7], labels[:7])  # one row of the second class
    assert lonely.metrics["auc"] is None
    for interval in (*found.metrics.values(), *one.metrics.values(), *lonely.metrics.values()):
        assert interval is None or all(math.isfinite(end) for end in interval)


def test_the_seed_decides() -> None:
    log_p, labels = drawn(2, 100)
    assert intervals_of(log_p, labels) == intervals_of(log_p, labels)
    assert intervals_of(log_p, labels) != intervals_of(log_p, labels, seed=1)
    assert REPLICATES == 1000


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [200, 2000])
def test_intervals_cover_the_truth(n_rows: int) -> None:
    truth = measure(*drawn(2, 2_000_000, seed=10**6, skill=1.0)).by_name()
    n_trials, covered = 400, dict.fromkeys(("accuracy", "log_loss", "auc"), 0)
    for trial in range(n_trials):
        found = intervals_of(*drawn(2, n_rows, seed=trial, skill=1.0), seed=trial)
        for name in covered:
            ends, value = found.metrics[name], truth[name]
            assert ends is not None
            assert value is not None
            covered[name] += ends[0] <= value <= ends[1]
    for name, n in covered.items():
        # 93 to 97 %, and two standard errors of the simulation
        assert 0.93 - 0.022 <= n / n_trials <= 0.97 + 0.022, name


@pytest.mark.parametrize(("n_rows", "n_folds"), [(16, 4), (16, 2)])
def test_the_overlap_variance_is_what_means_of_folds_vary_by_beside_their_losses(n_rows: int, n_folds: int) -> None:
    """Each fold predicts rows by the mean of the others: the true loss of such a mean is known."""
    trials, size, rng = 100_000, 3, np.random.default_rng(0)
    rows, fold_of = rng.normal(size=(trials, n_rows, size)), np.arange(n_rows) % n_folds
    tested, training, true = np.empty((trials, n_rows)), np.zeros(trials), np.zeros(trials)
    for fold in range(n_folds):
        center = rows[:, fold_of != fold].mean(axis=1, keepdims=True)
        losses = np.square(rows - center).sum(axis=2) / 2
        tested[:, fold_of == fold] = losses[:, fold_of == fold]
        training += losses[:, fold_of == (fold + 1) % n_folds].mean(axis=1) / n_folds
        true += (size + np.square(center[:, 0]).sum(axis=1)) / 2 / n_folds
    variance = float((tested.mean(axis=1) - true).var())
    of_losses = float(tested.var(axis=1, ddof=1).mean()) / n_rows
    shared = overlap_variance(float(tested.mean()), float(training.mean()), n_rows)
    assert of_losses < 0.96 * variance
    assert of_losses + shared == pytest.approx(variance, rel=0.02)


def test_shared_training_rows_widen_every_interval_by_one_factor() -> None:
    log_p, labels = drawn(3, 200)
    groups = np.arange(200) // 2
    for units in (None, groups):
        plain = intervals_of(log_p, labels, units=units)
        losses = -log_p[labels, np.arange(200)]
        if units is not None:
            losses = np.bincount(units, losses) / 2
        factor = math.sqrt(1 + 0.001 / (losses.var() / len(losses)))
        wide = intervals_of(log_p, labels, units=units, overlap_variance=0.001)
        assert wide.overlap_variance == 0.001
        what = "200 rows" if units is None else "100 groups"
        end = f"{100 * (factor - 1):.0f} % because folds share training rows"
        assert wide.method == f"BCa bootstrap over {what}, 1,000 replicates, widened by {end}"
        reported = measure(log_p, labels).by_name()
        for name in NAMES:
            ends, value = plain.metrics[name], reported[name]
            assert ends is not None
            assert value is not None
            assert wide.metrics[name] == pytest.approx([value + factor * (end - value) for end in ends]), name
        ends, others = plain.by_label[0]["recall"], wide.by_label[0]["recall"]
        assert ends is not None
        assert others is not None
        assert others[1] - others[0] == pytest.approx(factor * (ends[1] - ends[0]))


def test_no_interval_leaves_the_range_and_certain_figures_count_fewer_rows() -> None:
    log_p, labels = drawn(2, 30)
    wide = intervals_of(log_p, labels, overlap_variance=10.0)
    assert wide.metrics["accuracy"] == (0.0, 1.0)
    assert wide.metrics["log_loss"] is not None
    assert wide.metrics["log_loss"][0] == 0.0
    log_p = np.log([[0.9, 0.8, 0.7, 0.1, 0.2, 0.3], [0.1, 0.2, 0.3, 0.9, 0.8, 0.7]])
    labels = np.repeat([0, 1], 3)
    losses = -log_p[labels, np.arange(6)]
    wide = intervals_of(log_p, labels, overlap_variance=float(losses.var()) / 6)
    assert wide.metrics["accuracy"] == pytest.approx(wilson_interval(1.0, 6 / 2))


def test_there_is_no_overlap_variance_without_a_finite_gap() -> None:
    assert overlap_variance(0.5, 0.4, 50) == pytest.approx(0.002)
    assert overlap_variance(0.4, 0.5, 50) == 0.0
    assert overlap_variance(math.inf, 0.5, 50) == 0.0


def test_folds_cannot_err_more_alike_than_one_fold_alone() -> None:
    log_p, labels = drawn(2, 90)
    reported = measure(log_p, labels).by_name()
    for n_folds, repeats in ((2, 1), (5, 1), (5, 2)):
        fold_of = np.arange(90) % n_folds
        blocks = [
            PredictedBlock(np.flatnonzero(fold_of == f), log_p[:, fold_of == f]) for f in range(n_folds)
        ] * repeats
        wide = measure_intervals(blocks, labels, None, reported, overlap_variance=1e6)
        assert wide.overlap_variance == pytest.approx((n_folds - 1) * losses_of(log_p, labels).var() / 90)
        assert f"widened by {100 * (math.sqrt(n_folds) - 1):.0f} %" in wide.method


def losses_of(log_p: Array, labels: Integers) -> Array:
    return -log_p[labels, np.arange(len(labels))]
