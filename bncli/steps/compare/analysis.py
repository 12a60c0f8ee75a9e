"""Analyse the outcomes of a comparison: metrics per data set, ranks and tests over the data sets, and seconds.

Per data set:
- A learner has metrics on a data set only if all its folds have outcomes; otherwise it has a gap there. If a metric is
  undefined in some folds, its mean is taken over the others.
- Every pair of learners is compared on the folds in which both have a value, by the corrected resampled t-test (Nadeau
  & Bengio 2003). The result is the mean difference with its 95 % interval and two-sided p-value. Each learner is also
  compared with the best one by this test, at the 5 % level.
- Bias and variance have one value per data set, over all repeats, so they have no folds and no test. Costs are not
  tested either.

Over the data sets, each metric has a summary: average ranks, Friedman's test, and a comparison of every two learners.
- All tests are over the same data sets. Learners without any value are left out first, and then the data sets on which
  one of the other learners has no value.
- There is no summary if fewer than two learners or two data sets remain. In a group of data sets, one is enough.
- In a pair with the baseline, the baseline comes second; in other pairs, the learner given first comes first.
- The summary of a cost, or of a group with a single data set, has ranks, counts and ratios, but no tests.
- An infinite loss is worse than any finite loss in ranks and counts; t-tests and ratios that involve it are undefined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, count
from types import MappingProxyType
from typing import Any

import numpy as np

from bncli.engine.evaluation.significance import (
    Friedman,
    LossKind,
    cliques,
    corrected_resampled_t,
    critical_difference,
    friedman,
    geometric_mean_ratio,
    holm,
    paired_differences,
    paired_t,
    sign_test,
    signed_ranks,
    win_draw_loss,
)
from bncli.engine.kernels.arrays import Array
from bncli.errors import UsageError
from bncli.steps.compare.trials import COSTS, ComparisonResults, Outcome

HIGHER_IS_BETTER = frozenset(("accuracy", "auc", "cll", "balanced_accuracy", "mcc"))
"""The metrics for which higher is better; lower is better for all others."""
BIAS_VARIANCE = ("bias", "variance")
LEVEL = 0.05
STAGES = ("fit", "score")
_LOSS_KINDS: Mapping[str, LossKind] = {
    "rmse": "root",
    "fit_seconds": "seconds",
    "iterations": "count",
    "passes": "count",
}
_LARGEST = 1e100
"""Losses are clipped to this absolute value in ranks and counts, so that none is infinite."""


@dataclass(frozen=True)
class MetricMean:
    """A metric of one learner on one data set: mean and standard deviation over the folds.

    - std: None with fewer than two values, with infinite values, and for bias and variance.
    - best: whether no other mean is better.
    - not_worse: whether the learner is best or does not differ significantly from the best one. None for bias and
      variance; also None for a cost, or with values in fewer than two folds, unless the learner is best.
    """

    mean: float
    std: float | None
    best: bool
    not_worse: bool | None


@dataclass(frozen=True)
class Difference:
    """The difference a - b in a metric between two learners on one data set.

    mean: the mean difference over the folds in which both have a value. low, high: the bounds of its 95 % interval.
    p: the two-sided p-value. All four are None if no fold has both values, or if a value is infinite; with a single
    fold, only the mean is known.
    """

    data: str
    a: str
    b: str
    metric: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class LearnerPair:
    """A comparison of two learners over data sets; the p-values are None if nothing is tested.

    - wins, draws, losses: the numbers of data sets on which the first learner is better, equal and worse.
    - ratio: the geometric mean of the ratios of absolute values, first over second, after small values are raised to
      the floors of `geometric_mean_ratio`; None if a value is infinite.
    - sign_p and wilcoxon_p are two-sided; t_p is one-sided, for the alternative that the first is better. t_p is also
      None if a value is infinite.
    - Holm's adjustment of wilcoxon_p: holm_p over the comparisons with the baseline (None for other pairs), holm_all_p
      over all pairs.
    """

    first: str
    second: str
    wins: int
    draws: int
    losses: int
    ratio: float | None
    sign_p: float | None = None
    wilcoxon_p: float | None = None
    holm_p: float | None = None
    holm_all_p: float | None = None
    t_p: float | None = None


@dataclass(frozen=True)
class Summary:
    """One metric over the data sets on which all ranked learners have values.

    - geometric_means: of the absolute values, by learner; None if a value is infinite.
    - friedman, critical_difference: None if nothing is tested. groups: the maximal sets of learners whose average ranks
      differ by less than the critical difference, the best rank first.
    - left_out: data sets on which a ranked learner has no value. without_figures: learners without any value.
    """

    sets: tuple[str, ...]
    average_ranks: dict[str, float]
    geometric_means: dict[str, float | None]
    friedman: Friedman | None
    critical_difference: float | None
    groups: tuple[tuple[str, ...], ...]
    pairs: tuple[LearnerPair, ...]
    left_out: tuple[str, ...]
    without_figures: tuple[str, ...]

    @property
    def least_p(self) -> float | None:
        """The p-value of the sign test for a learner that wins on every data set, or None if nothing is tested."""
        return None if self.friedman is None else sign_test(len(self.sets), 0)

    @property
    def caution(self) -> str:
        """A warning about what tests over so few data sets cannot show, or "" if there are enough."""
        if self.least_p is None or self.least_p <= LEVEL:
            return ""
        enough = next(n for n in count(1) if sign_test(n, 0) <= LEVEL)
        return (
            f"With {len(self.sets)} data sets the p-value of the sign test is at least {self.least_p:g}, as is "
            "Wilcoxon's without ties: neither test can show at the 5 % level that a learner is better; that needs "
            f"{enough} data sets. Differences on a single data set can be tested with its folds."
        )

    def against(self, learner: str, baseline: str) -> LearnerPair | None:
        """Return the pair of a learner and the baseline, or None if they were not compared."""
        return next((pair for pair in self.pairs if (pair.first, pair.second) == (learner, baseline)), None)

    def as_json(self) -> dict[str, Any]:
        test = self.friedman
        return {
            "sets": list(self.sets),
            "left_out": list(self.left_out),
            "without_figures": list(self.without_figures),
            "average_ranks": self.average_ranks,
            "geometric_means": self.geometric_means,
            "friedman": test
            and {
                "chi_squared": test.chi_squared,
                "p": test.p,
                "f": test.f,
                # F is unbounded if all data sets rank alike; a p-value of 0 would then be wrong.
                "f_p": None if math.isinf(test.f) else test.f_p,
                "exact_p": test.exact_p,
            },
            "critical_difference": self.critical_difference,
            "least_p": self.least_p,
            "groups": [list(group) for group in self.groups],
            "pairs": [asdict(pair) for pair in self.pairs],
        }


@dataclass(frozen=True)
class DataSetGroup:
    """Data sets of similar size, and their summaries by metric."""

    name: str
    tables: tuple[str, ...]
    summaries: dict[str, Summary]


@dataclass(frozen=True)
class FitTimes:
    """The processor seconds per fold in each stage: means over the data sets, and ratios to the baseline.

    seconds: means over the data sets on which the learner has no gap. ratio: geometric means, over the data sets that
    the learner and the baseline have in common, of the ratios of their seconds.

    A ratio is None if the learner and the baseline have no data set in common.
    """

    seconds: dict[str, float]
    ratio: dict[str, float | None]


@dataclass(frozen=True)
class CompareReport:
    """The report on a comparison: all outcomes, and what follows from them.

    - metrics: the requested metrics and, with repeats, bias and variance.
    - means: by data set and learner, then by metric. seconds: means over folds by data set and learner, then by stage.
      A pair without an entry is a gap, and `gaps` has its reason.
    - differences: by data set, metric and pair of learners; in a pair with the baseline, the baseline comes second.
    - summaries: by metric, empty with one data set or one learner. groups: the same for groups of data sets.
    - times: by learner; a learner with gaps on all data sets has no entry.
    """

    results: ComparisonResults
    baseline: str
    metrics: tuple[str, ...]
    means: dict[tuple[str, str], dict[str, MetricMean]]
    seconds: dict[tuple[str, str], dict[str, float]]
    differences: tuple[Difference, ...]
    summaries: dict[str, Summary]
    groups: tuple[DataSetGroup, ...]
    times: dict[str, FitTimes]
    gaps: dict[tuple[str, str], str]

    def metric_mean(self, data: str, learner: str, metric: str) -> MetricMean | None:
        """Return the mean of a metric for a learner on a data set, or None if it has no value."""
        return self.means.get((data, learner), {}).get(metric)

    def as_json(self) -> dict[str, Any]:
        protocol, learners = self.results.protocol, []
        for name in self.results.learners:
            seconds = None
            if name in self.times:
                ratios = {f"{stage}_ratio": ratio for stage, ratio in self.times[name].ratio.items()}
                seconds = {**self.times[name].seconds, **ratios}
            learners.append({"name": name, "options": self.results.options.get(name), "seconds": seconds})
        data_sets = []
        for data in self.results.data:
            rows = []
            for learner in self.results.learners:
                if (data, learner) in self.means:
                    means = {metric: self.metric_mean(data, learner, metric) for metric in self.metrics}
                    values = {metric: None if mean is None else asdict(mean) for metric, mean in means.items()}
                    rows.append({"learner": learner, "seconds": self.seconds[data, learner], **values})
            data_sets.append({"name": data, "rows": self.results.sizes[data], "results": rows})
        folds = [
            {
                "data": outcome.data,
                "learner": outcome.learner,
                "repeat": outcome.repeat,
                "fold": outcome.fold,
                "rows": outcome.rows,
                **outcome.metrics,
                **outcome.costs,
                "seconds": outcome.seconds,
            }
            for outcome in self.results.outcomes
        ]
        groups = [
            {
                "name": group.name,
                "tables": list(group.tables),
                "summary": {metric: summary.as_json() for metric, summary in group.summaries.items()},
            }
            for group in self.groups
        ]
        return {
            "protocol": {"folds": protocol.folds, "repeats": protocol.repeats, "seed": protocol.seed},
            "learners": learners,
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "data": data_sets,
            "differences": [asdict(difference) for difference in self.differences],
            "gaps": [{"data": data, "learner": name, "reason": why} for (data, name), why in self.gaps.items()],
            "summary": {metric: summary.as_json() for metric, summary in self.summaries.items()},
            "groups": groups,
            "folds": folds,
        }


def metric_text(metric: str) -> str:
    """Return the name of a metric as it is given on the command line, with hyphens."""
    return metric.replace("_", "-")


def analyse(
    results: ComparisonResults,
    *,
    metrics: Sequence[str],
    baseline: str | None = None,
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> CompareReport:
    """Analyse the outcomes by these metrics; the baseline is the first learner unless another one is named.

    groups: the names of the data sets in each group, keyed by group. Raises UsageError for an unknown baseline.
    """
    baseline = results.learners[0] if baseline is None else baseline
    if baseline not in results.learners:
        raise UsageError(f"there is no learner '{baseline}'", hint=f"the learners are {', '.join(results.learners)}")
    n_folds = results.protocol.n_splits * results.protocol.repeats
    pairs = [(data, name) for data in results.data for name in results.learners]
    outcomes: dict[tuple[str, str], list[Outcome]] = {pair: [] for pair in pairs}
    for outcome in results.outcomes:
        outcomes[outcome.data, outcome.learner].append(outcome)
    complete = {pair: own for pair, own in outcomes.items() if len(own) == n_folds}
    metrics = (*metrics, *(name for name in BIAS_VARIANCE if results.bias_variance and name not in metrics))
    means: dict[tuple[str, str], dict[str, MetricMean]] = {pair: {} for pair in complete}
    for metric in metrics:
        for data in results.data:
            own = {name: complete[data, name] for name in results.learners if (data, name) in complete}
            for name, mean in _metric_means(results, data, own, metric).items():
                means[data, name][metric] = mean
    seconds = {
        pair: {stage: float(np.mean([outcome.seconds[stage] for outcome in own])) for stage in STAGES}
        for pair, own in complete.items()
    }
    reasons = {(gap.data, gap.learner): gap.reason for gap in results.gaps}
    times: dict[str, FitTimes] = {}
    for name in results.learners:
        own_data = [data for data in results.data if (data, name) in seconds]
        common = [data for data in own_data if (data, baseline) in seconds]
        mean_seconds, ratios = dict[str, float](), dict[str, float | None]()
        for stage in STAGES if own_data else ():
            mean_seconds[stage] = math.fsum(seconds[data, name][stage] for data in own_data) / len(own_data)
            first, second = ([seconds[data, learner][stage] for data in common] for learner in (name, baseline))
            ratio = geometric_mean_ratio(first, second, np.ones(len(common)), "seconds") if common else None
            ratios[stage] = ratio
        if own_data:
            times[name] = FitTimes(mean_seconds, ratios)
    return CompareReport(
        results=results,
        baseline=baseline,
        metrics=metrics,
        means=means,
        seconds=seconds,
        differences=tuple(_differences(results, complete, metrics, baseline)),
        summaries=_summaries(results, means, metrics, baseline),
        groups=tuple(
            DataSetGroup(name, data, _summaries(results, means, metrics, baseline, data))
            for name, data in groups.items()
        ),
        times=times,
        gaps={pair: reasons.get(pair, "some folds were not run") for pair in pairs if pair not in complete},
    )


def _metric_means(
    results: ComparisonResults, data: str, outcomes: Mapping[str, Sequence[Outcome]], metric: str
) -> dict[str, MetricMean]:
    """Return the means of one metric on one data set, by learner, from the outcomes of the learners without a gap."""
    if metric in BIAS_VARIANCE:
        known = {name: results.bias_variance[data, name] for name in outcomes if (data, name) in results.bias_variance}
        losses = {name: getattr(parts, metric) for name, parts in known.items()}
        best = min(losses.values(), default=0.0)
        return {name: MetricMean(loss, None, _is_equal(loss, best), None) for name, loss in losses.items()}
    sign = -1.0 if metric in HIGHER_IS_BETTER else 1.0
    values = {name: [outcome.value(metric) for outcome in own] for name, own in outcomes.items()}
    defined = {name: [value for value in own if value is not None] for name, own in values.items()}
    means = {name: float(np.mean(own)) for name, own in defined.items() if own}
    winner = min(means, key=lambda name: sign * means[name], default="")
    metric_means: dict[str, MetricMean] = {}
    for name, mean in means.items():
        has_std = len(defined[name]) > 1 and np.isfinite(defined[name]).all()
        std = float(np.std(defined[name], ddof=1)) if has_std else None
        is_best = _is_equal(sign * mean, sign * means[winner])
        not_worse = True if is_best else None
        if not is_best and metric not in COSTS:
            not_worse = _is_not_worse(values[name], values[winner], 1 / results.protocol.folds)
        metric_means[name] = MetricMean(mean, std, is_best, not_worse)
    return metric_means


def _differences(
    results: ComparisonResults,
    complete: Mapping[tuple[str, str], Sequence[Outcome]],
    metrics: Sequence[str],
    baseline: str,
) -> Iterator[Difference]:
    """Yield the difference of every pair of learners without a gap, by data set and by each metric that is tested."""
    for data in results.data:
        learners = [name for name in results.learners if (data, name) in complete]
        for metric in metrics:
            for one, other in combinations(learners, 2) if metric not in (*BIAS_VARIANCE, *COSTS) else ():
                a, b = (other, one) if one == baseline else (one, other)
                values = ([outcome.value(metric) for outcome in complete[data, name]] for name in (a, b))
                both = [(x, y) for x, y in zip(*values, strict=True) if x is not None and y is not None]
                if not both or not np.isfinite(both).all():
                    yield Difference(data, a, b, metric, None)
                    continue
                test = corrected_resampled_t(paired_differences(*zip(*both, strict=True)), 1 / results.protocol.folds)
                if test.interval is None:
                    yield Difference(data, a, b, metric, test.mean)
                else:
                    yield Difference(data, a, b, metric, test.mean, *test.interval, test.p)


def _is_equal(loss: float, best: float) -> bool:
    return math.isclose(loss, best, rel_tol=1e-12, abs_tol=0.0)


def _is_not_worse(values: Sequence[float | None], best: Sequence[float | None], test_share: float) -> bool | None:
    """Return whether a learner's values in the folds do not differ significantly from those of the best learner.

    The result is None with fewer than two folds in which both have a value, and False with an infinite value.
    test_share: the fraction of the rows in a test fold.
    """
    both = [(a, b) for a, b in zip(values, best, strict=True) if a is not None and b is not None]
    if len(both) < 2:
        return None
    if not np.isfinite(both).all():
        return False
    return corrected_resampled_t(paired_differences(*zip(*both, strict=True)), test_share).p > LEVEL


def _summaries(
    results: ComparisonResults,
    means: Mapping[tuple[str, str], Mapping[str, MetricMean]],
    metrics: Sequence[str],
    baseline: str,
    data_sets: Sequence[str] | None = None,
) -> dict[str, Summary]:
    """Return the summaries over all data sets or over a group, keyed by metric; metrics without one are left out."""
    summaries = {metric: _summarize(results, means, metric, baseline, data_sets) for metric in metrics}
    return {metric: summary for metric, summary in summaries.items() if summary is not None}


def _summarize(
    results: ComparisonResults,
    means: Mapping[tuple[str, str], Mapping[str, MetricMean]],
    metric: str,
    baseline: str,
    group: Sequence[str] | None,
) -> Summary | None:
    data_sets, least = (results.data, 2) if group is None else (group, 1)
    values = {pair: own[metric].mean for pair, own in means.items() if metric in own}
    learners = [name for name in results.learners if any((data, name) in values for data in data_sets)]
    used = [data for data in data_sets if all((data, name) in values for name in learners)]
    if len(learners) < 2 or len(used) < least:
        return None
    table = np.array([[values[data, name] for name in learners] for data in used])
    losses = np.clip(-table if metric in HIGHER_IS_BETTER else table, -_LARGEST, _LARGEST)
    columns = dict(zip(learners, losses.T, strict=True))
    rows, kind = [results.sizes[data] for data in used], _LOSS_KINDS.get(metric, "mean")
    pairs = []
    for a, b in combinations(learners, 2):
        first, second = (b, a) if a == baseline else (a, b)
        counts = win_draw_loss(-columns[first], -columns[second])
        ratio = _geometric_mean_ratio(columns[first], columns[second], rows, kind)
        pairs.append(LearnerPair(first, second, counts.wins, counts.draws, counts.losses, ratio))
    test, is_tested = friedman(losses), metric not in COSTS and len(used) > 1
    difference = critical_difference(len(learners), len(used)) if is_tested else None
    groups = () if difference is None else cliques(test.ranks, difference)
    if is_tested:
        both = [(columns[pair.first], columns[pair.second]) for pair in pairs]
        wilcoxon = [signed_ranks(x, y).p for x, y in both]
        with_baseline = [i for i, pair in enumerate(pairs) if pair.second == baseline]
        adjusted = dict(zip(with_baseline, holm([wilcoxon[i] for i in with_baseline]).tolist(), strict=True))
        pairs = [
            replace(
                pair,
                sign_p=win_draw_loss(-x, -y).p,
                wilcoxon_p=wilcoxon[i],
                holm_p=adjusted.get(i),
                holm_all_p=float(p),
                t_p=paired_t(x, y).p_lower if _is_finite(x, y) else None,
            )
            for i, (pair, (x, y), p) in enumerate(zip(pairs, both, holm(wilcoxon), strict=True))
        ]
    return Summary(
        sets=tuple(used),
        average_ranks=dict(zip(learners, test.ranks, strict=True)),
        geometric_means={
            name: _geometric_mean_ratio(own, np.ones(len(used)), rows, kind) for name, own in columns.items()
        },
        friedman=test if is_tested else None,
        critical_difference=difference,
        groups=tuple(tuple(learners[j] for j in members) for members in groups),
        pairs=tuple(pairs),
        left_out=tuple(data for data in data_sets if data not in used),
        without_figures=tuple(name for name in results.learners if name not in learners),
    )


def _geometric_mean_ratio(first: Array, second: Array, rows: Sequence[int], kind: LossKind) -> float | None:
    """Return `geometric_mean_ratio` of the absolute values, or None if a value is infinite."""
    if not _is_finite(first, second):
        return None
    return geometric_mean_ratio(np.abs(first), np.abs(second), rows, kind)


def _is_finite(*losses: Array) -> bool:
    return all(bool((np.abs(own) < _LARGEST).all()) for own in losses)
