"""What a comparison concludes: figures on every data set, ranks and tests over all of them, and the seconds they took.

`as_json` has them under stable keys; tables, LaTeX and drawings are made from the same records. A figure is None where
it is not defined, and so is what would follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bncli.engine.evaluation.ranking import Friedman
from bncli.steps.comparing.outcomes import Trial

HIGHER_IS_BETTER = frozenset(("accuracy", "auc", "cll", "balanced_accuracy", "mcc"))
"""Of all other figures less is better."""


def told(metric: str) -> str:
    """A metric as it is typed and shown."""
    return metric.replace("_", "-")


@dataclass(frozen=True)
class Figure:
    """One learner on one data set by one metric: mean and standard deviation over the folds.

    best: no other learner's mean is better. not_worse: it is best, or its folds do not tell it from the best (None
    where the folds have no figures to test).
    """

    mean: float
    std: float | None
    best: bool
    not_worse: bool | None


@dataclass(frozen=True)
class Pair:
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
    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...]
    without_figures: tuple[str, ...]

    def against(self, learner: str, baseline: str) -> Pair | None:
        """The pair of a learner and the baseline."""
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
class Group:
    """Data sets of like size, and the summaries over them alone, by metric."""

    name: str
    tables: tuple[str, ...]
    summaries: dict[str, Summary]

    def as_json(self) -> dict[str, Any]:
        summaries = {metric: summary.as_json() for metric, summary in self.summaries.items()}
        return {"name": self.name, "tables": list(self.tables), "summary": summaries}


@dataclass(frozen=True)
class Pace:
    """Processor seconds a fold to fit and to score, means over the data sets; and geometric means of ratios to the
    baseline's.
    """

    seconds: dict[str, float]
    ratio: dict[str, float | None]


@dataclass(frozen=True)
class CompareReport:
    """Everything that was run, and what follows from it.

    figures and seconds are by data set and learner, and a pair without an entry is a gap; summaries are by metric, and
    empty with one data set or one learner; groups, where asked for, have summaries of their own. metrics are those
    asked for and, with repeats, bias and variance.
    """

    trial: Trial
    baseline: str
    metrics: tuple[str, ...]
    figures: dict[tuple[str, str], dict[str, Figure]]
    seconds: dict[tuple[str, str], dict[str, float]]
    summaries: dict[str, Summary]
    groups: tuple[Group, ...]
    paces: dict[str, Pace]
    gaps: dict[tuple[str, str], str]

    def figure(self, data: str, learner: str, metric: str) -> Figure | None:
        """One figure; None where there is none."""
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


def _figure_json(figures: Mapping[str, Figure], metric: str) -> dict[str, Any] | None:
    return asdict(figures[metric]) if metric in figures else None
