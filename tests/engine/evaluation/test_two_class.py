"""Figures of two classes beside those of other packages (recorded), and beside slow definitions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from bncli.engine.evaluation.two_class import TwoClassFigures, measure_bins, measure_two_classes
from bncli.engine.kernels.arrays import Array

RECORDED = json.loads(Path(__file__).with_name("two_class_figures.json").read_text())


def figures(p: list[float], labels: list[int], weights: Array | None = None) -> TwoClassFigures:
    column = np.array(p)
    return measure_two_classes(np.log(np.stack((1 - column, column))), np.array(labels), weights)


@pytest.mark.parametrize("recorded", RECORDED["bins"])
def test_bins_are_those_of_optbinning(recorded: dict[str, list[float]]) -> None:
    iv, bins = measure_bins(np.array(recorded["counts"]))
    assert iv == pytest.approx(recorded["total"], abs=1e-9)
    assert [entry.woe for entry in bins] == pytest.approx(recorded["woe"], abs=1e-9)
    assert [entry.iv for entry in bins] == pytest.approx(recorded["iv"], abs=1e-9)


def test_a_bin_without_events_has_no_evidence() -> None:
    iv, (pure, mixed) = measure_bins(np.array([[4, 0], [4, 8]]))
    assert (pure.rows, pure.events, pure.event_rate, pure.woe, pure.iv) == (4, 0, 0.0, None, None)
    assert mixed.woe == pytest.approx(math.log((8 / 8) / (4 / 8)))
    assert iv == pytest.approx((1 - 0.5) * math.log(2))


@pytest.mark.parametrize("recorded", RECORDED["predictions"])
def test_figures_are_those_of_other_packages(recorded: dict[str, list[float]]) -> None:
    found = figures(recorded["p"], [int(label) for label in recorded["labels"]])
    assert found.ks == pytest.approx(recorded["ks"], abs=1e-12)
    assert found.calibration_slope == pytest.approx(recorded["slope"], abs=1e-9)
    assert found.calibration_intercept == pytest.approx(recorded["intercept"], abs=1e-9)
    assert found.intervals["calibration_intercept"] == pytest.approx(recorded["intervals"][0], abs=1e-9)
    assert found.intervals["calibration_slope"] == pytest.approx(recorded["intervals"][1], abs=1e-9)
    large = (found.calibration_in_the_large, *found.intervals["calibration_in_the_large"])
    assert large == pytest.approx(recorded["large"], abs=1e-9)
    assert [line.all for line in found.net_benefit] == pytest.approx(recorded["net_benefit_all"], abs=1e-9)
    # whether exp(ln p) reaches a threshold that equals p would be chance
    for line, benefit in zip(found.net_benefit, recorded["net_benefit"], strict=True):
        if line.threshold not in recorded["p"]:
            assert line.model == pytest.approx(benefit, abs=1e-9)


# Probabilities that are no thresholds: whether a rounded one reaches a threshold would be chance.
rows = st.lists(st.tuples(st.integers(1, 19), st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=40)


@given(rows)
def test_weights_are_repeated_rows(drawn: list[tuple[int, int, int]]) -> None:
    repeated = [((2 * p + 1) / 40, label) for p, label, weight in drawn for _ in range(weight)]
    if not 0 < sum(label for _, label in repeated) < len(repeated):
        return
    weights = np.array([float(weight) for *_, weight in drawn])
    weighted = figures([(2 * p + 1) / 40 for p, *_ in drawn], [label for _, label, _ in drawn], weights)
    plain = figures([p for p, _ in repeated], [label for _, label in repeated])
    assert weighted.ks == pytest.approx(plain.ks)
    if plain.calibration_slope is None:
        assert weighted.calibration_slope is None
    else:
        assert weighted.calibration_slope == pytest.approx(plain.calibration_slope, rel=1e-6, abs=1e-9)
    if plain.intervals["calibration_in_the_large"] is not None:
        large = (weighted.calibration_in_the_large, *weighted.intervals["calibration_in_the_large"])
        assert large == pytest.approx((plain.calibration_in_the_large, *plain.intervals["calibration_in_the_large"]))
    for mine, others in ((weighted.gains, plain.gains), (weighted.net_benefit, plain.net_benefit)):
        flat = [np.array([[*line[:4], *np.ravel(line[4:])] for line in lines]) for lines in (mine, others)]
        assert flat[0] == pytest.approx(flat[1], abs=1e-9)


@given(rows)
def test_tables_are_those_of_the_definitions(drawn: list[tuple[int, int, int]]) -> None:
    p, labels = np.array([(2 * p + 1) / 40 for p, *_ in drawn]), np.array([label for _, label, _ in drawn])
    found, n = figures(p.tolist(), labels.tolist()), len(p)
    for line in found.net_benefit:
        chosen, odds = p >= line.threshold, line.threshold / (1 - line.threshold)
        expected = (labels[chosen].sum() - odds * (1 - labels[chosen]).sum()) / n
        assert line.model == pytest.approx(expected)
        assert line.all == pytest.approx((labels.sum() - odds * (1 - labels).sum()) / n)
        assert line.none == 0
        parts = np.where(chosen, np.where(labels == 1, 1.0, -odds), 0.0)
        half = 1.959963984540054 * parts.std() / math.sqrt(n)
        assert line.ci == pytest.approx((expected - half, expected + half), abs=1e-7)
    if not found.gains:
        assert labels.min() == labels.max()
        return
    for line in found.gains:
        # each row in ten parts, so that a tenth of the rows is a whole number of parts; ties share alike
        captured = 0.0
        for own, label in zip(p, labels, strict=True):
            above, equal = (p > own).sum(), (p == own).sum()
            captured += label * min(max((line.share * n - above) / equal, 0.0), 1.0)
        assert line.captured == pytest.approx(captured / labels.sum())
        assert line.lift == pytest.approx(line.captured / line.share)
    assert sum(line.events for line in found.gains) == pytest.approx(labels.sum())
    assert found.capture_10 == found.gains[0].captured


def test_the_slope_is_that_of_an_unpenalised_logistic_regression() -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 300)
    labels = (rng.random(300) < p**2).astype(int)
    log_odds = np.log(p / (1 - p))[:, np.newaxis]
    fitted = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(log_odds, labels)
    found = figures(p.tolist(), labels.tolist())
    assert found.calibration_slope == pytest.approx(fitted.coef_[0, 0], rel=1e-6)
    assert found.calibration_intercept == pytest.approx(fitted.intercept_[0], rel=1e-6)


def test_what_is_undefined_is_none() -> None:
    assert figures([0.2, 0.3], [0, 0])[:7] == (None, None, None, None, None, {}, ())
    separated = figures([0.2, 0.3, 0.8], [0, 0, 1])
    assert (separated.ks, separated.calibration_slope, separated.intervals["calibration_slope"]) == (1.0, None, None)
    assert figures([0.5, 0.5, 0.5], [0, 1, 1]).calibration_slope is None
