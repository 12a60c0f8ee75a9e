"""One metric over all data sets: average ranks, Friedman's test, and every pair of learners beside each other.

Conventions:
- Learners that have a figure nowhere are left out, then the data sets where any of the others has none: all tests are
  over the same data sets. With fewer than two learners or data sets left there is no summary.
- A pair with the baseline has the baseline as its second; of other pairs the learner typed first comes first.
- An infinite loss is worse than any other in ranks and counts; the t-test and the ratio over it are not defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from bncli.engine.evaluation.ranking import cliques, critical_difference, friedman
from bncli.engine.evaluation.ratios import Kind, geometric_mean_ratio
from bncli.engine.evaluation.significance import holm, paired_t, signed_ranks, win_draw_loss
from bncli.engine.kernels.arrays import Array
from bncli.steps.comparing.outcomes import Trial
from bncli.steps.comparing.report import HIGHER_IS_BETTER, Figure, Pair, Summary

_BEYOND_ALL = 1e100


def summarise(
    trial: Trial, figures: Mapping[tuple[str, str], Mapping[str, Figure]], metric: str, baseline: str
) -> Summary | None:
    """The summary of figures by data set and learner, then metric; None where there are too few of either."""
    means = {pair: here[metric].mean for pair, here in figures.items() if metric in here}
    learners = [name for name in trial.learners if any((data, name) in means for data in trial.data)]
    sets = [data for data in trial.data if all((data, name) in means for name in learners)]
    if len(learners) < 2 or len(sets) < 2:
        return None
    table = np.array([[means[data, name] for name in learners] for data in sets])
    losses = np.clip(-table if metric in HIGHER_IS_BETTER else table, -_BEYOND_ALL, _BEYOND_ALL)
    test = friedman(losses)
    difference = critical_difference(len(learners), len(sets))
    return Summary(
        sets=tuple(sets),
        average_ranks=dict(zip(learners, test.ranks, strict=True)),
        friedman=test,
        critical_difference=difference,
        groups=tuple(tuple(learners[j] for j in group) for group in cliques(test.ranks, difference)),
        pairs=_pairs(learners, losses, [trial.sizes[data] for data in sets], metric, baseline),
        left_out=tuple(data for data in trial.data if data not in sets),
        without_figures=tuple(name for name in trial.learners if name not in learners),
    )


def _pairs(learners: Sequence[str], losses: Array, rows: Sequence[int], metric: str, baseline: str) -> tuple[Pair, ...]:
    """All pairs, with their p-values adjusted together."""
    columns = dict(zip(learners, losses.T, strict=True))
    named = [(b, a) if a == baseline else (a, b) for a, b in combinations(learners, 2)]
    pairs = [_pair(first, second, columns, rows, metric) for first, second in named]
    against = [i for i, pair in enumerate(pairs) if pair.second == baseline]
    adjusted = holm([pair.wilcoxon_p for pair in pairs])
    by_baseline = dict(zip(against, holm([pairs[i].wilcoxon_p for i in against]).tolist(), strict=True))
    return tuple(
        replace(pair, holm_p=by_baseline.get(i), holm_all_p=float(adjusted[i])) for i, pair in enumerate(pairs)
    )


def _pair(first: str, second: str, columns: Mapping[str, Array], rows: Sequence[int], metric: str) -> Pair:
    a, b = columns[first], columns[second]
    counts = win_draw_loss(-a, -b)
    finite = bool((np.abs([a, b]) < _BEYOND_ALL).all())
    return Pair(
        first=first,
        second=second,
        wins=counts.wins,
        draws=counts.draws,
        losses=counts.losses,
        sign_p=counts.p,
        wilcoxon_p=signed_ranks(a, b).p,
        holm_p=None,
        holm_all_p=1.0,
        t_p=paired_t(a, b).p_lower if finite else None,
        ratio=_ratio(a, b, rows, metric) if finite else None,
    )


def _ratio(first: Array, second: Array, rows: Sequence[int], metric: str) -> float:
    """The geometric mean ratio of the figures themselves, of which only their size counts."""
    kind: Kind = "root" if metric == "rmse" else "mean"
    return geometric_mean_ratio(np.abs(first), np.abs(second), rows, kind)
