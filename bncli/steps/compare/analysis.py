"""From the outcomes of single folds to a report: means with their spread, the best on every data set, summaries.

Conventions:
- A learner has figures on a data set only when all its folds are there; else it is a gap. A figure that is not defined
  on some folds is the mean over the others.
- Of the best learner on a data set and another one, the folds that both have are compared by the corrected resampled
  t-test (Nadeau & Bengio 2003), two-sided at 5 %.
- Bias and variance have one figure a data set, of all repeats together: no folds, no test. Costs are not tested either.

What a comparison concludes: figures on every data set, ranks and tests over all of them, and the seconds they took.

`as_json` has them under stable keys; tables, LaTeX and drawings are made from the same records. A figure is None where
it is not defined, and so is what would follow from it.

One metric over all data sets: average ranks, Friedman's test, and every pair of learners beside each other.

Conventions:
- Learners that have a figure nowhere are left out, then the data sets where any of the others has none: all tests are
  over the same data sets. With fewer than two learners or data sets left there is no summary; in a group of data sets
  one is enough.
- A pair with the baseline has the baseline as its second; of other pairs the learner typed first comes first.
- Costs are not tested, and one data set alone, in a group, is not either: ranks, counts and ratios stand alone.
- An infinite loss is worse than any other in ranks and counts; the t-test and the ratio over it are not defined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from bncli.engine.evaluation.ranking import Friedman, cliques, critical_difference, friedman
from bncli.engine.evaluation.significance import (
    LossKind,
    corrected_resampled_t,
    geometric_mean_ratio,
    holm,
    paired_differences,
    paired_t,
    signed_ranks,
    win_draw_loss,
)
from bncli.engine.kernels.arrays import Array
from bncli.errors import UsageError
from bncli.steps.compare.entries import COSTS, ComparisonRun, Groups, Outcome

HIGHER_IS_BETTER = frozenset(("accuracy", "auc", "cll", "balanced_accuracy", "mcc"))
"""Of all other figures less is better."""


@dataclass(frozen=True)
class ComparedFigure:
    """One learner on one data set by one metric: mean and standard deviation over the folds.

    best: no other learner's mean is better. not_worse: it is best, or its folds do not tell it from the best (None
    where the folds have no figures to test).
    """

    mean: float
    std: float | None
    best: bool
    not_worse: bool | None


@dataclass(frozen=True)
class LearnerPair:
    """Two learners over data sets: how often the first is better, equal, worse, and p-values (None: not tested).

    ratio is the geometric mean of the first's figures over the second's (of their sizes: cll is negative). sign_p and
    wilcoxon_p are two-sided; t_p is for "the first is better". Holm's adjustment of wilcoxon_p: holm_p over the
    comparisons with the baseline (None for other pairs), holm_all_p over all pairs.
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
    """One metric over the data sets on which all the learners ranked have figures.

    friedman and critical_difference are None where nothing is tested. groups: learners whose average ranks lie within
    the critical difference, from the best rank on. left_out: data sets where a learner is missing; without_figures:
    learners that have no figure anywhere.
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

    def against(self, learner: str, baseline: str) -> LearnerPair | None:
        """Return the pair of a learner and the baseline."""
        return next((pair for pair in self.pairs if (pair.first, pair.second) == (learner, baseline)), None)

    def as_json(self) -> dict[str, Any]:
        test = self.friedman
        return {
            "sets": list(self.sets),
            "left_out": list(self.left_out),
            "without_figures": list(self.without_figures),
            "average_ranks": self.average_ranks,
            "geometric_means": self.geometric_means,
            "friedman": test and {"chi_squared": test.chi_squared, "p": test.p, "f": test.f, "f_p": test.f_p},
            "critical_difference": self.critical_difference,
            "groups": [list(group) for group in self.groups],
            "pairs": [asdict(pair) for pair in self.pairs],
        }


@dataclass(frozen=True)
class DataSetGroup:
    """Data sets of like size, and the summaries over them alone, by metric."""

    name: str
    tables: tuple[str, ...]
    summaries: dict[str, Summary]

    def as_json(self) -> dict[str, Any]:
        summaries = {metric: summary.as_json() for metric, summary in self.summaries.items()}
        return {"name": self.name, "tables": list(self.tables), "summary": summaries}


@dataclass(frozen=True)
class FitTimes:
    """Processor seconds per fold to fit and to score: means, and geometric mean ratios to the baseline's."""

    seconds: dict[str, float]
    ratio: dict[str, float | None]


@dataclass(frozen=True)
class CompareReport:
    """Everything that was run, and what follows from it.

    figures and seconds are by data set and learner, and a pair without an entry is a gap; summaries are by metric, and
    empty with one data set or one learner; groups, where asked for, have summaries of their own. metrics are those
    asked for and, with repeats, bias and variance.
    """

    trial: ComparisonRun
    baseline: str
    metrics: tuple[str, ...]
    figures: dict[tuple[str, str], dict[str, ComparedFigure]]
    seconds: dict[tuple[str, str], dict[str, float]]
    summaries: dict[str, Summary]
    groups: tuple[DataSetGroup, ...]
    paces: dict[str, FitTimes]
    gaps: dict[tuple[str, str], str]

    def figure(self, data: str, learner: str, metric: str) -> ComparedFigure | None:
        """Return one figure; None where there is none."""
        return self.figures.get((data, learner), {}).get(metric)

    def as_json(self) -> dict[str, Any]:
        trial = self.trial
        protocol = trial.protocol
        folds = [
            {
                "data": one.data,
                "learner": one.learner,
                "repeat": one.repeat,
                "fold": one.fold,
                "rows": one.rows,
                **one.metrics,
                **one.costs,
                "seconds": one.seconds,
            }
            for one in trial.outcomes
        ]
        return {
            "protocol": {"folds": protocol.folds, "repeats": protocol.repeats, "seed": protocol.seed},
            "learners": [self._learner_json(name) for name in trial.learners],
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "data": [self._set_json(name) for name in trial.data],
            "gaps": [{"data": data, "learner": name, "reason": why} for (data, name), why in self.gaps.items()],
            "summary": {metric: summary.as_json() for metric, summary in self.summaries.items()},
            "groups": [group.as_json() for group in self.groups],
            "folds": folds,
        }

    def _learner_json(self, name: str) -> dict[str, Any]:
        pace = self.paces.get(name)
        seconds = {**pace.seconds, **{f"{stage}_ratio": ratio for stage, ratio in pace.ratio.items()}} if pace else None
        return {"name": name, "options": self.trial.options.get(name), "seconds": seconds}

    def _set_json(self, data: str) -> dict[str, Any]:
        results = [
            {
                "learner": learner,
                "seconds": self.seconds[data, learner],
                **{metric: _figure_json(self.figures[data, learner], metric) for metric in self.metrics},
            }
            for learner in self.trial.learners
            if (data, learner) in self.figures
        ]
        return {"name": data, "rows": self.trial.sizes[data], "results": results}


_BEYOND_ALL = 1e100
_KINDS: Mapping[str, LossKind] = {"rmse": "root", "fit_seconds": "seconds", "iterations": "count", "passes": "count"}
LEVEL = 0.05
BIAS_VARIANCE = ("bias", "variance")
STAGES = ("fit", "score")
_SAME = 1e-12
Folds = Mapping[tuple[str, str], Sequence[Outcome]]


def metric_text(metric: str) -> str:
    """Return a metric as it is typed and shown."""
    return metric.replace("_", "-")


def summarise(
    trial: ComparisonRun,
    figures: Mapping[tuple[str, str], Mapping[str, ComparedFigure]],
    metric: str,
    baseline: str,
    among: Sequence[str] | None = None,
) -> Summary | None:
    """Return the summary of figures by data set and learner, then metric; None where there are too few of either.

    `among` are the data sets of a group; None: all.
    """
    data_sets, least = (trial.data, 2) if among is None else (among, 1)
    means = {pair: here[metric].mean for pair, here in figures.items() if metric in here}
    learners = [name for name in trial.learners if any((data, name) in means for data in data_sets)]
    sets = [data for data in data_sets if all((data, name) in means for name in learners)]
    if len(learners) < 2 or len(sets) < least:
        return None
    table = np.array([[means[data, name] for name in learners] for data in sets])
    losses = np.clip(-table if metric in HIGHER_IS_BETTER else table, -_BEYOND_ALL, _BEYOND_ALL)
    columns = dict(zip(learners, losses.T, strict=True))
    rows, kind = [trial.sizes[data] for data in sets], _KINDS.get(metric, "mean")
    pairs = [_pair((b, a) if a == baseline else (a, b), columns, rows, kind) for a, b in combinations(learners, 2)]
    test, tested = friedman(losses), metric not in COSTS and len(sets) > 1
    difference = critical_difference(len(learners), len(sets)) if tested else None
    groups = () if difference is None else cliques(test.ranks, difference)
    return Summary(
        sets=tuple(sets),
        average_ranks=dict(zip(learners, test.ranks, strict=True)),
        geometric_means={
            name: _summary_ratio(losses, np.ones(len(sets)), rows, kind) for name, losses in columns.items()
        },
        friedman=test if tested else None,
        critical_difference=difference,
        groups=tuple(tuple(learners[j] for j in group) for group in groups),
        pairs=_tested(pairs, columns, baseline) if tested else tuple(pairs),
        left_out=tuple(data for data in data_sets if data not in sets),
        without_figures=tuple(name for name in trial.learners if name not in learners),
    )


def _pair(names: tuple[str, str], columns: Mapping[str, Array], rows: Sequence[int], kind: LossKind) -> LearnerPair:
    """Return what counts and ratios say of two learners, before any test."""
    first, second = names
    a, b = columns[first], columns[second]
    counts = win_draw_loss(-a, -b)
    return LearnerPair(first, second, counts.wins, counts.draws, counts.losses, _summary_ratio(a, b, rows, kind))


def _summary_ratio(first: Array, second: Array, rows: Sequence[int], kind: LossKind) -> float | None:
    """Return the geometric mean ratio of the figures themselves, of which only their size counts.

    None where one has none.
    """
    if not _finite(first, second):
        return None
    return geometric_mean_ratio(np.abs(first), np.abs(second), rows, kind)


def _finite(*losses: Array) -> bool:
    return all(bool((np.abs(one) < _BEYOND_ALL).all()) for one in losses)


def _tested(pairs: Sequence[LearnerPair], columns: Mapping[str, Array], baseline: str) -> tuple[LearnerPair, ...]:
    """Return the pairs with their p-values, adjusted together."""
    losses = [(columns[pair.first], columns[pair.second]) for pair in pairs]
    wilcoxon = [signed_ranks(a, b).p for a, b in losses]
    against = [i for i, pair in enumerate(pairs) if pair.second == baseline]
    by_baseline = dict(zip(against, holm([wilcoxon[i] for i in against]).tolist(), strict=True))
    return tuple(
        replace(
            pair,
            sign_p=win_draw_loss(-a, -b).p,
            wilcoxon_p=wilcoxon[i],
            holm_p=by_baseline.get(i),
            holm_all_p=float(adjusted),
            t_p=paired_t(a, b).p_lower if _finite(a, b) else None,
        )
        for i, (pair, (a, b), adjusted) in enumerate(zip(pairs, losses, holm(wilcoxon), strict=True))
    )


def analyse(
    trial: ComparisonRun, *, metrics: Sequence[str], baseline: str | None = None, groups: Groups = MappingProxyType({})
) -> CompareReport:
    """Return the report of a trial by these metrics; the baseline is the first learner unless another one is named."""
    chosen = trial.learners[0] if baseline is None else baseline
    if chosen not in trial.learners:
        raise UsageError(f"there is no learner '{chosen}'", hint=f"the learners are {', '.join(trial.learners)}")
    folds = _whole(trial)
    shown = (*metrics, *(name for name in BIAS_VARIANCE if trial.bias_variance and name not in metrics))
    figures: dict[tuple[str, str], dict[str, ComparedFigure]] = {pair: {} for pair in folds}
    for metric in shown:
        for pair, figure in _figures(trial, folds, metric).items():
            figures[pair][metric] = figure
    seconds = {
        pair: {stage: float(np.mean([one.seconds[stage] for one in ones])) for stage in STAGES}
        for pair, ones in folds.items()
    }

    def summaries(among: Sequence[str] | None = None) -> dict[str, Summary]:
        found = {metric: summarise(trial, figures, metric, chosen, among) for metric in shown}
        return {metric: summary for metric, summary in found.items() if summary is not None}

    return CompareReport(
        trial,
        chosen,
        shown,
        figures,
        seconds,
        summaries(),
        tuple(DataSetGroup(name, tables, summaries(tables)) for name, tables in groups.items()),
        _paces(trial, seconds, chosen),
        _gaps(trial, folds),
    )


def _whole(trial: ComparisonRun) -> Folds:
    """Return the outcomes by data set and learner, where all folds are there."""
    wanted = trial.protocol.folds * trial.protocol.repeats
    folds: dict[tuple[str, str], list[Outcome]] = {(data, name): [] for data in trial.data for name in trial.learners}
    for outcome in trial.outcomes:
        folds[outcome.data, outcome.learner].append(outcome)
    return {pair: ones for pair, ones in folds.items() if len(ones) == wanted}


def _figures(trial: ComparisonRun, folds: Folds, metric: str) -> dict[tuple[str, str], ComparedFigure]:
    """Return the figures by one metric, wherever they are defined."""
    found: dict[tuple[str, str], ComparedFigure] = {}
    for data in trial.data:
        here = {name: folds[data, name] for name in trial.learners if (data, name) in folds}
        if metric in BIAS_VARIANCE:
            marked = _undivided(trial, data, metric)
        else:
            values = {name: [one.figure(metric) for one in ones] for name, ones in here.items()}
            marked = _marked(values, metric, 1 / trial.protocol.folds)
        found |= {(data, name): figure for name, figure in marked.items() if name in here}
    return found


def _undivided(trial: ComparisonRun, data: str, metric: str) -> dict[str, ComparedFigure]:
    """Bias or variance of the learners on one data set."""
    pairs = {name: trial.bias_variance.get((data, name)) for name in trial.learners}
    values = {name: float(getattr(parts, metric)) for name, parts in pairs.items() if parts is not None}
    best = min(values.values(), default=0.0)
    return {name: ComparedFigure(value, None, _as_good(value, best), None) for name, value in values.items()}


def _as_good(loss: float, best: float) -> bool:
    return math.isclose(loss, best, rel_tol=_SAME, abs_tol=0.0)


def _marked(values: Mapping[str, Sequence[float | None]], metric: str, share: float) -> dict[str, ComparedFigure]:
    """Figures on one data set out of those of the folds, in one order for all learners; share: of rows tested."""
    sign = -1.0 if metric in HIGHER_IS_BETTER else 1.0
    defined = {name: [value for value in ones if value is not None] for name, ones in values.items()}
    means = {name: float(np.mean(ones)) for name, ones in defined.items() if ones}
    if not means:
        return {}
    winner = min(means, key=lambda name: sign * means[name])
    figures: dict[str, ComparedFigure] = {}
    for name, mean in means.items():
        best = _as_good(sign * mean, sign * means[winner])
        tested = best or (None if metric in COSTS else _without_difference(values[name], values[winner], share))
        figures[name] = ComparedFigure(mean, _spread(defined[name]), best, tested)
    return figures


def _without_difference(values: Sequence[float | None], best: Sequence[float | None], share: float) -> bool | None:
    """Return whether the test finds no difference.

    None with fewer than two folds to compare. An infinite loss is one.
    """
    both = [(a, b) for a, b in zip(values, best, strict=True) if a is not None and b is not None]
    if len(both) < 2:
        return None
    if not np.isfinite(both).all():
        return False
    return corrected_resampled_t(paired_differences(*zip(*both, strict=True)), share).p > LEVEL


def _spread(values: Sequence[float]) -> float | None:
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(np.std(values, ddof=1))


def _paces(
    trial: ComparisonRun, seconds: Mapping[tuple[str, str], Mapping[str, float]], baseline: str
) -> dict[str, FitTimes]:
    """Return how fast each learner is; ratios are over the data sets that it and the baseline have in common."""
    paces: dict[str, FitTimes] = {}
    for name in trial.learners:
        mine = [data for data in trial.data if (data, name) in seconds]
        common = [data for data in mine if (data, baseline) in seconds]
        if mine:
            means = {stage: math.fsum(seconds[data, name][stage] for data in mine) / len(mine) for stage in STAGES}
            paces[name] = FitTimes(
                means, {stage: _analysis_ratio(seconds, common, name, baseline, stage) for stage in STAGES}
            )
    return paces


def _analysis_ratio(
    seconds: Mapping[tuple[str, str], Mapping[str, float]], common: Sequence[str], name: str, baseline: str, stage: str
) -> float | None:
    if not common:
        return None
    first, second = ([seconds[data, learner][stage] for data in common] for learner in (name, baseline))
    return geometric_mean_ratio(first, second, np.ones(len(common)), "seconds")


def _gaps(trial: ComparisonRun, folds: Folds) -> dict[tuple[str, str], str]:
    """Return why there are no figures, by data set and learner."""
    gaps = {(data, name): "not all folds were run" for data in trial.data for name in trial.learners}
    gaps |= {(gap.data, gap.learner): gap.reason for gap in trial.gaps}
    return {pair: why for pair, why in gaps.items() if pair not in folds}


def _figure_json(figures: Mapping[str, ComparedFigure], metric: str) -> dict[str, Any] | None:
    return asdict(figures[metric]) if metric in figures else None
