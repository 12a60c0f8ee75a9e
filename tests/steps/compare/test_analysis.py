"""Means and tests per data set against direct formulas; ranks and pairs over the data sets against scipy."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bncli.errors import UsageError
from bncli.steps.compare.analysis import CompareReport, Summary, analyse
from tests.sweeps import examples
from tests.trials import random_trial, trial_of


def test_means_and_standard_deviations() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.3, 0.2, 0.2], ("s", "b"): [0.2, 0.4, 0.4, 0.2]}), metrics=["error"])
    figure = report.metric_mean("s", "b", "error")
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


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 10_000))
def test_who_is_not_worse_than_the_best(seed: int) -> None:
    trial = random_trial(4, 1, folds=5, seed=seed)
    report = analyse(trial, metrics=["error", "accuracy"])
    values = {
        name: [one.metrics["error"] or 0.0 for one in trial.outcomes if one.learner == name] for name in trial.learners
    }
    best = min(values, key=lambda name: fmean(values[name]))
    for name, ones in values.items():
        loss, gain = (report.metric_mean("set 0", name, metric) for metric in ("error", "accuracy"))
        assert loss is not None
        assert gain is not None
        assert loss.best == gain.best == (name == best)
        assert loss.not_worse == gain.not_worse == (slow_p(ones, values[best], 5) > 0.05)


def test_every_pair_has_its_difference_with_the_interval_of_the_test() -> None:
    trial = random_trial(3, 2, folds=5, seed=1)
    baseline = trial.learners[0]
    report = analyse(trial, metrics=["error", "accuracy", "fit_seconds"])
    assert len(report.differences) == 2 * 2 * 3
    for found in report.differences:
        assert found.a != baseline
        outcomes = [one for one in trial.outcomes if one.data == found.data]
        a, b = (
            [one.metrics[found.metric] or 0.0 for one in outcomes if one.learner == name] for name in (found.a, found.b)
        )
        d = [x - y for x, y in zip(a, b, strict=True)]
        half = float(stats.t.ppf(0.975, len(d) - 1)) * math.sqrt((1 / len(d) + 1 / 4) * stdev(d) ** 2)
        assert found.mean == pytest.approx(fmean(d))
        assert (found.low, found.high) == (pytest.approx(fmean(d) - half), pytest.approx(fmean(d) + half))
        assert found.p == pytest.approx(slow_p(a, b, 5))


def test_differences_that_cannot_be_measured_are_null() -> None:
    losses = {("s", "a"): [math.inf, 0.2], ("s", "b"): [0.5, 0.6], ("s", "c"): [None, 0.1]}
    differences = analyse(trial_of(losses), metrics=["error"]).differences
    assert [(one.a, one.b) for one in differences] == [("b", "a"), ("c", "a"), ("b", "c")]
    assert [one.mean for one in differences] == [None, pytest.approx(-0.1), pytest.approx(0.5)]
    assert all(one.low is one.high is one.p is None for one in differences)


def test_equal_learners_are_all_best() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [0.2, 0.1 + 1e-17]}), metrics=["error"])
    figures = [report.metric_mean("s", name, "error") for name in "ab"]
    assert [(one.best, one.not_worse) for one in figures if one] == [(True, True)] * 2


def test_a_figure_that_is_not_defined_on_some_folds() -> None:
    losses = {("s", "a"): [None, 0.2, 0.4], ("s", "b"): [0.1, None, 0.9], ("s", "c"): [None] * 3}
    report = analyse(trial_of(losses, folds=3), metrics=["error"])
    a, b, c = (report.metric_mean("s", name, "error") for name in "abc")
    assert a is not None
    assert b is not None
    assert c is None
    assert (a.mean, b.mean) == (pytest.approx(0.3), pytest.approx(0.5))
    assert (a.best, a.not_worse, b.best, b.not_worse) == (True, True, False, None)


def test_an_infinite_loss_is_worse() -> None:
    losses = {("s", "a"): [math.inf, 0.2], ("s", "b"): [0.5, 0.6], ("s", "c"): [math.inf, 0.1]}
    report = analyse(trial_of(losses), metrics=["error"])
    a, b = report.metric_mean("s", "a", "error"), report.metric_mean("s", "b", "error")
    assert a is not None
    assert b is not None
    assert (a.mean, a.std, a.best, a.not_worse, b.best) == (math.inf, None, False, False, True)


def test_bias_and_variance_have_no_folds_and_no_test() -> None:
    losses = {("s", "a"): [0.1, 0.3, 0.2, 0.2], ("s", "b"): [0.2, 0.4, 0.4, 0.2]}
    report = analyse(trial_of(losses), metrics=["error", "bias"])
    assert report.metrics == ("error", "bias", "variance")
    figure = report.metric_mean("s", "b", "bias")
    assert figure is not None
    assert (figure.mean, figure.std, figure.best, figure.not_worse) == (pytest.approx(0.225), None, False, None)
    assert analyse(trial_of({("s", "a"): [0.1, 0.2]}), metrics=["error"]).metrics == ("error",)


def test_a_learner_with_a_fold_missing_is_a_gap() -> None:
    losses = {("s", "a"): [0.1, 0.2], ("s", "b"): [0.1], ("t", "a"): [0.1, 0.2]}
    report = analyse(trial_of(losses), metrics=["error"])
    assert report.metric_mean("s", "b", "error") is None
    assert report.gaps == {("s", "b"): "some folds were not run", ("t", "b"): "too large"}
    assert report.summaries == {}
    assert list(report.times) == ["a"]


def test_seconds_and_their_ratios_to_the_baseline() -> None:
    losses = {(data, name): [0.1, 0.2] for data in "st" for name in "ab"}
    report = analyse(trial_of(losses, seconds={"a": 2.0, "b": 6.0}), metrics=["error"], baseline="b")
    assert report.seconds["s", "a"] == {"fit": 2.0, "score": 0.2}
    assert report.times["a"].ratio == {"fit": pytest.approx(1 / 3), "score": pytest.approx(1 / 3)}
    assert report.times["b"].ratio == {"fit": 1.0, "score": 1.0}
    still = analyse(trial_of(losses, seconds={"a": 0.0, "b": 0.0}), metrics=["error"])
    assert still.times["b"].ratio == {"fit": 1.0, "score": 1.0}


def test_the_baseline_must_be_a_learner() -> None:
    with pytest.raises(UsageError, match="there is no learner 'c'; the learners are a, b"):
        analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [0.1, 0.2]}), metrics=["error"], baseline="c")


def test_json() -> None:
    trial = random_trial(3, 4, repeats=2)
    told = json.loads(
        json.dumps(analyse(trial, metrics=["rmse", "error"], baseline="learner 1").as_json(), allow_nan=False)
    )
    keys = ["protocol", "learners", "baseline", "metrics", "data", "differences", "gaps", "summary", "groups", "folds"]
    assert list(told) == keys
    assert told["protocol"] == {"folds": 5, "repeats": 2, "seed": 0}
    assert list(told["learners"][0]) == ["name", "options", "seconds"]
    assert told["learners"][0]["seconds"] == {"fit": 1.0, "score": 0.1, "fit_ratio": 1.0, "score_ratio": 1.0}
    assert told["metrics"] == list(told["summary"]) == ["rmse", "error", "bias", "variance"]
    assert list(told["data"][0]["results"][0]) == ["learner", "seconds", "rmse", "error", "bias", "variance"]
    assert list(told["data"][0]["results"][0]["error"]) == ["mean", "std", "best", "not_worse"]
    assert list(told["summary"]["error"]["friedman"]) == ["chi_squared", "p", "f", "f_p", "exact_p"]
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
    by_seconds = [report.metric_mean("s", name, "fit_seconds") for name in trial.learners]
    assert [(one.mean, one.best, one.not_worse) for one in by_seconds if one] == [
        (0.25, True, True),
        (3.0, False, None),
        (1.0, False, None),
    ]
    assert report.metric_mean("s", "map", "iterations") is None
    slow, fast = (report.metric_mean("s", name, "passes") for name in ("slow", "fast"))
    assert slow is not None
    assert fast is not None
    assert (slow.mean, slow.best, fast.mean, fast.best) == (41.0, False, 11.0, True)
    assert report.as_json()["folds"][0] | {"iterations": None, "passes": None} == report.as_json()["folds"][0]


def test_a_figure_that_is_nowhere_is_null_in_json() -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.2], ("s", "b"): [None, None]}), metrics=["error"])
    assert report.as_json()["data"][0]["results"][1]["error"] is None


def summary_of(report: CompareReport, metric: str = "error") -> Summary:
    return report.summaries[metric]


def means(report: CompareReport, learner: str, metric: str = "error") -> list[float]:
    figures = [report.metric_mean(data, learner, metric) for data in report.results.data]
    return [one.mean for one in figures if one]


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(2, 12))
def test_as_scipy_has_it(seed: int, n_learners: int, n_sets: int) -> None:
    report = analyse(random_trial(n_learners, n_sets, seed=seed), metrics=["error"])
    summary = summary_of(report)
    losses = np.array([means(report, name) for name in report.results.learners])
    found = stats.friedmanchisquare(*losses)
    assert summary.friedman is not None
    assert summary.friedman.chi_squared == pytest.approx(found.statistic)
    assert summary.friedman.p == pytest.approx(found.pvalue)
    ranks = stats.rankdata(losses, axis=0).mean(axis=1)
    assert list(summary.average_ranks.values()) == pytest.approx(ranks.tolist())
    for pair in summary.pairs:
        a, b = means(report, pair.first), means(report, pair.second)
        assert pair.wins == sum(x < y for x, y in zip(a, b, strict=True))
        assert pair.wins + pair.draws + pair.losses == n_sets
        assert pair.wilcoxon_p == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
        assert pair.t_p == pytest.approx(stats.ttest_rel(a, b, alternative="less").pvalue)
        assert pair.sign_p == pytest.approx(stats.binomtest(pair.wins, n_sets).pvalue)
        assert pair.ratio == pytest.approx(math.exp(np.mean(np.log(np.divide(a, b)))))


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 10_000))
def test_accuracy_says_what_error_does(seed: int) -> None:
    report = analyse(random_trial(4, 5, seed=seed), metrics=["error", "accuracy", "cll"])
    error = summary_of(report)
    for metric in ("accuracy", "cll"):
        other = summary_of(report, metric)
        assert other.groups == error.groups
        assert list(other.average_ranks.values()) == pytest.approx(list(error.average_ranks.values()))
        for one, two in zip(error.pairs, other.pairs, strict=True):
            assert (one.wins, one.draws, one.losses) == (two.wins, two.draws, two.losses)
            assert one.wilcoxon_p == pytest.approx(two.wilcoxon_p)
            assert one.t_p == pytest.approx(two.t_p)
    assert [pair.ratio for pair in summary_of(report, "cll").pairs] == [pair.ratio for pair in error.pairs]


def test_every_pair_once_and_the_baseline_second() -> None:
    report = analyse(random_trial(4, 6), metrics=["error"], baseline="learner 1")
    pairs = summary_of(report).pairs
    assert [(pair.first[-1], pair.second[-1]) for pair in pairs] == [
        ("0", "1"), ("0", "2"), ("0", "3"), ("2", "1"), ("3", "1"), ("2", "3"),
    ]  # fmt: skip
    assert [pair.holm_p is not None for pair in pairs] == [True, False, False, True, True, False]
    assert summary_of(report).against("learner 2", "learner 1") is pairs[3]
    assert summary_of(report).against("learner 1", "learner 2") is None


def test_holm_over_the_baseline_and_over_all() -> None:
    pairs = summary_of(analyse(random_trial(4, 12, seed=3), metrics=["error"])).pairs
    least = min((pair for pair in pairs if pair.holm_p is not None), key=lambda pair: pair.wilcoxon_p)
    assert least.holm_p == pytest.approx(min(1.0, 3 * least.wilcoxon_p))
    least = min(pairs, key=lambda pair: pair.wilcoxon_p)
    assert least.holm_all_p == pytest.approx(min(1.0, 6 * least.wilcoxon_p))


def test_sets_with_a_gap_and_learners_without_figures_are_left_out() -> None:
    losses = {(data, name): [0.1 + 0.01 * i, 0.2] for i, data in enumerate("stuv") for name in "ab"}
    losses |= {(data, "c"): [0.3, 0.3] for data in "sv"} | {("s", "d"): [None, None]}
    summary = summary_of(analyse(trial_of(losses), metrics=["error"]))
    assert summary.sets == ("s", "v")
    assert summary.left_out == ("t", "u")
    assert summary.without_figures == ("d",)
    assert list(summary.average_ranks) == ["a", "b", "c"]


@pytest.mark.parametrize("n_sets", range(2, 9))
def test_what_so_few_data_sets_cannot_show(n_sets: int) -> None:
    """A learner that wins everywhere, by different margins: no p-value of these tests can be smaller."""
    worse = {"a": 0.0, "b": 0.01}
    losses = {(f"s{i}", name): [0.1 * i + worse[name] * i] * 2 for i in range(1, n_sets + 1) for name in worse}
    found = summary_of(analyse(trial_of(losses), metrics=["error"]))
    (pair,) = found.pairs
    assert {pair.wins, pair.losses} == {n_sets, 0}
    assert found.least_p == pair.sign_p == pair.wilcoxon_p == 2.0 ** (1 - n_sets)
    assert bool(found.caution) == (n_sets < 6) == (found.least_p > 0.05)
    if found.caution:
        assert f"With {n_sets} data sets the p-value of the sign test is at least {found.least_p:g}" in found.caution
        assert "needs 6 data sets" in found.caution
    assert found.as_json()["least_p"] == found.least_p


@pytest.mark.parametrize(("n_learners", "n_sets"), [(1, 5), (3, 1), (1, 1)])
def test_no_summary_of_one_learner_or_one_set(n_learners: int, n_sets: int) -> None:
    assert analyse(random_trial(n_learners, n_sets), metrics=["error"]).summaries == {}


def test_learners_that_are_all_alike() -> None:
    report = analyse(trial_of({(data, name): [0.1, 0.2] for data in "stu" for name in "abc"}), metrics=["error"])
    summary = summary_of(report)
    assert summary.friedman is not None
    assert summary.friedman.p == 1.0
    assert summary.groups == (("a", "b", "c"),)
    assert {(pair.draws, pair.sign_p, pair.holm_all_p, pair.t_p, pair.ratio) for pair in summary.pairs} == {
        (3, 1.0, 1.0, 1.0, 1.0)
    }


def test_a_loss_of_zero_counts_as_half_an_error_in_the_ratio() -> None:
    losses = {(data, name): [0.0, 0.0] if name == "a" else [0.1, 0.1] for data in "st" for name in "ab"}
    report = analyse(trial_of(losses, rows=100), metrics=["error", "rmse"], baseline="b")
    assert summary_of(report).pairs[0].ratio == pytest.approx(0.005 / 0.1)
    assert summary_of(report, "rmse").pairs[0].ratio == pytest.approx((0.005 / 0.1) ** 0.5)


def test_infinite_losses_are_ranked_last() -> None:
    losses = {(data, name): [0.1, 0.2] for data in "stu" for name in "ab"} | {("s", "a"): [math.inf, 0.2]}
    losses |= {(data, "c"): [math.inf, 0.3] for data in "stu"}
    summary = summary_of(analyse(trial_of(losses), metrics=["error"]))
    assert summary.average_ranks == {
        "a": pytest.approx(5.5 / 3),
        "b": pytest.approx(4 / 3),
        "c": pytest.approx(8.5 / 3),
    }
    pairs = {(pair.first, pair.second): pair for pair in summary.pairs}
    assert (pairs["c", "a"].wins, pairs["c", "a"].draws, pairs["c", "a"].losses) == (0, 1, 2)
    assert (pairs["c", "a"].t_p, pairs["c", "a"].ratio) == (None, None)


COSTLY = {(data, name): [0.1, 0.2] for data in "stuv" for name in ("map", "slow", "fast")}


def test_costs_compare_by_ratios_and_not_by_tests() -> None:
    trial = trial_of(COSTLY, seconds={"map": 0.5, "slow": 4.0, "fast": 2.0}, iterations={"slow": 0, "fast": 10})
    report = analyse(trial, metrics=["fit_seconds", "iterations"], baseline="fast")
    seconds, iterations = (summary_of(report, metric) for metric in ("fit_seconds", "iterations"))
    assert (seconds.friedman, seconds.critical_difference, seconds.groups) == (None, None, ())
    assert seconds.average_ranks == {"map": 1.0, "slow": 3.0, "fast": 2.0}
    assert seconds.geometric_means == {
        name: pytest.approx(m) for name, m in zip(("map", "slow", "fast"), (0.5, 4, 2), strict=True)
    }
    pair = seconds.against("slow", "fast")
    assert pair is not None
    assert (pair.wins, pair.draws, pair.losses, pair.ratio) == (0, 0, 4, pytest.approx(2.0))
    assert {(one.sign_p, one.wilcoxon_p, one.holm_p, one.holm_all_p, one.t_p) for one in seconds.pairs} == {(None,) * 5}
    # Parameters in closed form take no part, and no count is less than a half.
    assert iterations.without_figures == ("map",)
    assert [(one.first, one.second, one.ratio) for one in iterations.pairs] == [("slow", "fast", pytest.approx(0.05))]


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.lists(st.integers(1, 500), min_size=3, max_size=8))
def test_a_group_is_summed_up_as_if_it_were_alone(seed: int, n_learners: int, rows: list[int]) -> None:
    trial = random_trial(n_learners, len(rows), seed=seed)
    trial = replace(trial, sizes=dict(zip(trial.data, rows, strict=True)))
    bound = sorted(rows)[len(rows) // 2]
    chosen = [data for data in trial.data if trial.sizes[data] >= bound]
    report = analyse(trial, metrics=["error"], groups={"large": tuple(chosen)})
    alone = replace(
        trial, data=tuple(chosen), outcomes=tuple(one for one in trial.outcomes if one.data in chosen), gaps=()
    )
    (group,) = report.groups
    assert group.tables == tuple(chosen)
    if len(chosen) > 1:
        assert group.summaries == analyse(alone, metrics=["error"]).summaries
    else:
        (data,) = chosen
        one = group.summaries["error"]
        assert one.friedman is None
        figures = [report.metric_mean(data, pair.first, "error") for pair in one.pairs]
        others = [report.metric_mean(data, pair.second, "error") for pair in one.pairs]
        ratios = [a.mean / b.mean for a, b in zip(figures, others, strict=True) if a and b]
        assert [pair.ratio for pair in one.pairs] == pytest.approx(ratios)
        assert {pair.wins + pair.draws + pair.losses for pair in one.pairs} == {1}
