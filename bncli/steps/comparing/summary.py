"""One metric over all data sets: average ranks, Friedman's test, and every pair of learners beside each other.

Conventions:
- Learners that have a figure nowhere are left out, then the data sets where any of the others has none: all tests are
  over the same data sets. With fewer than two learners or data sets left there is no summary; in a group of data sets
  one is enough.
- A pair with the baseline has the baseline as its second; of other pairs the learner typed first comes first.
- Costs are not tested, and one data set alone, in a group, is not either: ranks, counts and ratios stand alone.
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
from bncli.steps.comparing.outcomes import COSTS, Trial
from bncli.steps.comparing.report import HIGHER_IS_BETTER, Figure, Pair, Summary

_BEYOND_ALL = 1e100


def summarise(
    trial: Trial,
    figures: Mapping[tuple[str, str], Mapping[str, Figure]],
    metric: str,
    baseline: str,
    among: Sequence[str] | None = None,
) -> Summary | None:
    """The summary of figures by data set and learner, then metric; None where there are too few of either.

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
        geometric_means={name: _ratio(losses, np.ones(len(sets)), rows, kind) for name, losses in columns.items()},
        friedman=test if tested else None,
        critical_difference=difference,
        groups=tuple(tuple(learners[j] for j in group) for group in groups),
        pairs=_tested(pairs, columns, baseline) if tested else tuple(pairs),
        left_out=tuple(data for data in data_sets if data not in sets),
        without_figures=tuple(name for name in trial.learners if name not in learners),
    )


_KINDS: Mapping[str, Kind] = {"rmse": "root", "fit_seconds": "seconds", "iterations": "count", "passes": "count"}


def _pair(names: tuple[str, str], columns: Mapping[str, Array], rows: Sequence[int], kind: Kind) -> Pair:
    """What counts and ratios say of two learners, before any test."""
    first, second = names
    a, b = columns[first], columns[second]
    counts = win_draw_loss(-a, -b)
    return Pair(first, second, counts.wins, counts.draws, counts.losses, _ratio(a, b, rows, kind))


def _ratio(first: Array, second: Array, rows: Sequence[int], kind: Kind) -> float | None:
    """The geometric mean ratio of the figures themselves, of which only their size counts; None where one has none."""
    if not _finite(first, second):
        return None
    return geometric_mean_ratio(np.abs(first), np.abs(second), rows, kind)


def _finite(*losses: Array) -> bool:
    return all(bool((np.abs(one) < _BEYOND_ALL).all()) for one in losses)


def _tested(pairs: Sequence[Pair], columns: Mapping[str, Array], baseline: str) -> tuple[Pair, ...]:
    """The pairs with their p-values, adjusted together."""
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
