"""What is concluded on every data set: means, spread, the best and those not told apart from it, gaps, seconds."""

from __future__ import annotations

import json
import math
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bncli.errors import UsageError
from bncli.steps.compare.analysis import analyse
from tests.trials import random_trial, trial_of


def test_means_and_standard_deviations() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.3, 0.2, 0.2], ("s", "b"): [0.2, 0.4, 0.4, 0.2]}), metrics=["error"])
    figure = report.figure("s", "b", "error")
    assert figure is not None
    assert figure.mean == pytest.approx(0.3)
    assert figure.std == pytest.approx(stdev([0.2, 0.4, 0.4, 0.2]))
    assert report.metrics == ("error", "bias", "variance")


def slow_p(first: list[float], second: list[float], folds: int) -> float:
    """Nadeau and Bengio's test as they write it, two-sided."""
    d = [a - b for a, b in zip(first, second, strict=True)]
    if not any(d):
        return 1.0
    n = len(d)
    t = fmean(d) / math.sqrt((1 / n + 1 / (folds - 1)) * stdev(d) ** 2)
    return float(2 * stats.t.sf(abs(t), n - 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_who_is_not_worse_than_the_best(seed: int) -> None:
    trial = random_trial(4, 1, folds=5, seed=seed)
    report = analyse(trial, metrics=["error", "accuracy"])
    values = {
        name: [one.metrics["error"] or 0.0 for one in trial.outcomes if one.learner == name] for name in trial.learners
    }
    best = min(values, key=lambda name: fmean(values[name]))
    for name, ones in values.items():
        loss, gain = (report.figure("set 0", name, metric) for metric in ("error", "accuracy"))
        assert loss is not None
        assert gain is not None
        assert loss.best == gain.best == (name == best)
        assert loss.not_worse == gain.not_worse == (slow_p(ones, values[best], 5) > 0.05)


def test_equal_learners_are_all_best() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [0.2, 0.1 + 1e-17]}), metrics=["error"])
    figures = [report.figure("s", name, "error") for name in "ab"]
    assert [(one.best, one.not_worse) for one in figures if one] == [(True, True)] * 2


def test_a_figure_that_is_not_defined_on_some_folds() -> None:
    losses = {("s", "a"): [None, 0.2, 0.4], ("s", "b"): [0.1, None, 0.9], ("s", "c"): [None] * 3}
    report = analyse(trial_of(losses, folds=3), metrics=["error"])
    a, b, c = (report.figure("s", name, "error") for name in "abc")
    assert a is not None
    assert b is not None
    assert c is None
    assert (a.mean, b.mean) == (pytest.approx(0.3), pytest.approx(0.5))
    assert (a.best, a.not_worse, b.best, b.not_worse) == (True, True, False, None)


def test_an_infinite_loss_is_worse() -> None:
    losses = {("s", "a"): [math.inf, 0.2], ("s", "b"): [0.5, 0.6], ("s", "c"): [math.inf, 0.1]}
    report = analyse(trial_of(losses), metrics=["error"])
    a, b = report.figure("s", "a", "error"), report.figure("s", "b", "error")
    assert a is not None
    assert b is not None
    assert (a.mean, a.std, a.best, a.not_worse, b.best) == (math.inf, None, False, False, True)


def test_bias_and_variance_have_no_folds_and_no_test() -> None:
    losses = {("s", "a"): [0.1, 0.3, 0.2, 0.2], ("s", "b"): [0.2, 0.4, 0.4, 0.2]}
    report = analyse(trial_of(losses), metrics=["error", "bias"])
    assert report.metrics == ("error", "bias", "variance")
    figure = report.figure("s", "b", "bias")
    assert figure is not None
    assert (figure.mean, figure.std, figure.best, figure.not_worse) == (pytest.approx(0.225), None, False, None)
    assert analyse(trial_of({("s", "a"): [0.1, 0.2]}), metrics=["error"]).metrics == ("error",)


def test_a_learner_with_a_fold_missing_is_a_gap() -> None:
    losses = {("s", "a"): [0.1, 0.2], ("s", "b"): [0.1], ("t", "a"): [0.1, 0.2]}
    report = analyse(trial_of(losses), metrics=["error"])
    assert report.figure("s", "b", "error") is None
    assert report.gaps == {("s", "b"): "not all folds were run", ("t", "b"): "too large"}
    assert report.summaries == {}
    assert list(report.paces) == ["a"]


def test_seconds_and_their_ratios_to_the_baseline() -> None:
    losses = {(data, name): [0.1, 0.2] for data in "st" for name in "ab"}
    report = analyse(trial_of(losses, seconds={"a": 2.0, "b": 6.0}), metrics=["error"], baseline="b")
    assert report.seconds["s", "a"] == {"fit": 2.0, "score": 0.2}
    assert report.paces["a"].ratio == {"fit": pytest.approx(1 / 3), "score": pytest.approx(1 / 3)}
    assert report.paces["b"].ratio == {"fit": 1.0, "score": 1.0}
    still = analyse(trial_of(losses, seconds={"a": 0.0, "b": 0.0}), metrics=["error"])
    assert still.paces["b"].ratio == {"fit": 1.0, "score": 1.0}


def test_the_baseline_must_be_a_learner() -> None:
    with pytest.raises(UsageError, match="there is no learner 'c'; the learners are a, b"):
        analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [0.1, 0.2]}), metrics=["error"], baseline="c")


def test_json() -> None:
    trial = random_trial(3, 4, repeats=2)
    told = json.loads(
        json.dumps(analyse(trial, metrics=["rmse", "error"], baseline="learner 1").as_json(), allow_nan=False)
    )
    keys = ["protocol", "learners", "baseline", "metrics", "data", "gaps", "summary", "groups", "folds"]
    assert list(told) == keys
    assert told["protocol"] == {"folds": 5, "repeats": 2, "seed": 0}
    assert list(told["learners"][0]) == ["name", "options", "seconds"]
    assert told["learners"][0]["seconds"] == {"fit": 1.0, "score": 0.1, "fit_ratio": 1.0, "score_ratio": 1.0}
    assert told["metrics"] == list(told["summary"]) == ["rmse", "error", "bias", "variance"]
    assert list(told["data"][0]["results"][0]) == ["learner", "seconds", "rmse", "error", "bias", "variance"]
    assert list(told["data"][0]["results"][0]["error"]) == ["mean", "std", "best", "not_worse"]
    assert list(told["summary"]["error"]["friedman"]) == ["chi_squared", "p", "f", "f_p"]
    pair = [
        "first",
        "second",
        "wins",
        "draws",
        "losses",
        "ratio",
        "sign_p",
        "wilcoxon_p",
        "holm_p",
        "holm_all_p",
        "t_p",
    ]
    assert list(told["summary"]["error"]["pairs"][0]) == pair
    assert len(told["folds"]) == 3 * 4 * 10
    assert list(told["folds"][0]) == [
        "data",
        "learner",
        "repeat",
        "fold",
        "rows",
        *trial.outcomes[0].metrics,
        "iterations",
        "passes",
        "seconds",
    ]


def test_costs_are_means_over_folds_and_never_tested() -> None:
    losses = {("s", name): [0.1, 0.2] for name in ("map", "slow", "fast")}
    trial = trial_of(losses, seconds={"map": 0.25, "slow": 3.0, "fast": 1.0}, iterations={"slow": 40, "fast": 10})
    report = analyse(trial, metrics=["fit_seconds", "iterations", "passes"])
    by_seconds = [report.figure("s", name, "fit_seconds") for name in trial.learners]
    assert [(one.mean, one.best, one.not_worse) for one in by_seconds if one] == [
        (0.25, True, True),
        (3.0, False, None),
        (1.0, False, None),
    ]
    assert report.figure("s", "map", "iterations") is None
    slow, fast = (report.figure("s", name, "passes") for name in ("slow", "fast"))
    assert slow is not None
    assert fast is not None
    assert (slow.mean, slow.best, fast.mean, fast.best) == (41.0, False, 11.0, True)
    assert report.as_json()["folds"][0] | {"iterations": None, "passes": None} == report.as_json()["folds"][0]


def test_a_figure_that_is_nowhere_is_null_in_json() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [None, None]}), metrics=["error"])
    assert report.as_json()["data"][0]["results"][1]["error"] is None
