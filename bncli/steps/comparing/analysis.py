"""From the outcomes of single folds to a report: means with their spread, the best on every data set, summaries.

Conventions:
- A learner has figures on a data set only when all its folds are there; else it is a gap. A figure that is not defined
  on some folds is the mean over the others.
- Of the best learner on a data set and another one, the folds that both have are compared by the corrected resampled
  t-test (Nadeau & Bengio 2003), two-sided at 5 %.
- Bias and variance have one figure a data set, of all repeats together: no folds, no test. Costs are not tested either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from bncli.engine.evaluation.ratios import geometric_mean_ratio
from bncli.engine.evaluation.significance import corrected_resampled_t, paired_differences
from bncli.errors import UsageError
from bncli.steps.comparing.groups import Groups
from bncli.steps.comparing.outcomes import COSTS, Outcome, Trial
from bncli.steps.comparing.report import HIGHER_IS_BETTER, CompareReport, Figure, Group, Pace, Summary
from bncli.steps.comparing.summary import summarise

LEVEL = 0.05
BIAS_VARIANCE = ("bias", "variance")
STAGES = ("fit", "score")
_SAME = 1e-12

Folds = Mapping[tuple[str, str], Sequence[Outcome]]


def analyse(
    trial: Trial, *, metrics: Sequence[str], baseline: str | None = None, groups: Groups = MappingProxyType({})
) -> CompareReport:
    """The report of a trial by these metrics; the baseline is the first learner unless another one is named."""
    chosen = trial.learners[0] if baseline is None else baseline
    if chosen not in trial.learners:
        raise UsageError(f"there is no learner '{chosen}'", hint=f"the learners are {', '.join(trial.learners)}")
    folds = _whole(trial)
    shown = (*metrics, *(name for name in BIAS_VARIANCE if trial.bias_variance and name not in metrics))
    figures: dict[tuple[str, str], dict[str, Figure]] = {pair: {} for pair in folds}
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
        tuple(Group(name, tables, summaries(tables)) for name, tables in groups.items()),
        _paces(trial, seconds, chosen),
        _gaps(trial, folds),
    )


def _gaps(trial: Trial, folds: Folds) -> dict[tuple[str, str], str]:
    """Why there are no figures, by data set and learner."""
    gaps = {(data, name): "not all folds were run" for data in trial.data for name in trial.learners}
    gaps |= {(gap.data, gap.learner): gap.reason for gap in trial.gaps}
    return {pair: why for pair, why in gaps.items() if pair not in folds}


def _whole(trial: Trial) -> Folds:
    """The outcomes by data set and learner, where all folds are there."""
    wanted = trial.protocol.folds * trial.protocol.repeats
    folds: dict[tuple[str, str], list[Outcome]] = {(data, name): [] for data in trial.data for name in trial.learners}
    for outcome in trial.outcomes:
        folds[outcome.data, outcome.learner].append(outcome)
    return {pair: ones for pair, ones in folds.items() if len(ones) == wanted}


def _figures(trial: Trial, folds: Folds, metric: str) -> dict[tuple[str, str], Figure]:
    """The figures by one metric, wherever they are defined."""
    found: dict[tuple[str, str], Figure] = {}
    for data in trial.data:
        here = {name: folds[data, name] for name in trial.learners if (data, name) in folds}
        if metric in BIAS_VARIANCE:
            marked = _undivided(trial, data, metric)
        else:
            values = {name: [one.figure(metric) for one in ones] for name, ones in here.items()}
            marked = _marked(values, metric, 1 / trial.protocol.folds)
        found |= {(data, name): figure for name, figure in marked.items() if name in here}
    return found


def _undivided(trial: Trial, data: str, metric: str) -> dict[str, Figure]:
    """Bias or variance of the learners on one data set."""
    pairs = {name: trial.bias_variance.get((data, name)) for name in trial.learners}
    values = {name: float(getattr(parts, metric)) for name, parts in pairs.items() if parts is not None}
    best = min(values.values(), default=0.0)
    return {name: Figure(value, None, _as_good(value, best), None) for name, value in values.items()}


def _marked(values: Mapping[str, Sequence[float | None]], metric: str, share: float) -> dict[str, Figure]:
    """Figures on one data set out of those of the folds, in one order for all learners; share: of rows tested."""
    sign = -1.0 if metric in HIGHER_IS_BETTER else 1.0
    defined = {name: [value for value in ones if value is not None] for name, ones in values.items()}
    means = {name: float(np.mean(ones)) for name, ones in defined.items() if ones}
    if not means:
        return {}
    winner = min(means, key=lambda name: sign * means[name])
    figures: dict[str, Figure] = {}
    for name, mean in means.items():
        best = _as_good(sign * mean, sign * means[winner])
        tested = best or (None if metric in COSTS else _not_told_apart(values[name], values[winner], share))
        figures[name] = Figure(mean, _spread(defined[name]), best, tested)
    return figures


def _as_good(loss: float, best: float) -> bool:
    return math.isclose(loss, best, rel_tol=_SAME, abs_tol=0.0)


def _not_told_apart(values: Sequence[float | None], best: Sequence[float | None], share: float) -> bool | None:
    """Whether the test finds no difference; None with fewer than two folds to compare. An infinite loss is one."""
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


def _paces(trial: Trial, seconds: Mapping[tuple[str, str], Mapping[str, float]], baseline: str) -> dict[str, Pace]:
    """How fast each learner is; ratios are over the data sets that it and the baseline have in common."""
    paces: dict[str, Pace] = {}
    for name in trial.learners:
        mine = [data for data in trial.data if (data, name) in seconds]
        common = [data for data in mine if (data, baseline) in seconds]
        if mine:
            means = {stage: math.fsum(seconds[data, name][stage] for data in mine) / len(mine) for stage in STAGES}
            paces[name] = Pace(means, {stage: _ratio(seconds, common, name, baseline, stage) for stage in STAGES})
    return paces


def _ratio(
    seconds: Mapping[tuple[str, str], Mapping[str, float]], common: Sequence[str], name: str, baseline: str, stage: str
) -> float | None:
    if not common:
        return None
    first, second = ([seconds[data, learner][stage] for data in common] for learner in (name, baseline))
    return geometric_mean_ratio(first, second, np.ones(len(common)), "seconds")
