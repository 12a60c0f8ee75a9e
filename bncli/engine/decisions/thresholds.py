"""Thresholds on the probability p of the second of two labels: decide for it where p >= t.

On rows held out, with a step at every p that occurs, in falling order, and sums over the rows above each step

    TP(t) = weight of rows of the second label with p >= t,   FP(t) = that of the others,   P, N = all of either
    recall = TP / P,  precision = TP / (TP + FP),  f1 = 2 TP / (P + TP + FP),  balanced accuracy = (TP/P + 1 - FP/N) / 2
    mcc = (TP (N - FP) - FP (P - TP)) / sqrt((TP + FP)(P + N - TP - FP) P N)

`best:NAME` takes the step with the highest figure, the highest of equal ones; `recall=R` the highest step that reaches
R; `precision=R` the lowest that does; `top=X%` the lowest above which lie at most X per cent of the rows.

Conventions: figures 0 / 0 count as 0. Differences in the last digits (1e-12) do not make a figure higher.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.decision_rule import HeldOutScores, Threshold
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError

MOST_LINES = 101
_SAME = 1e-12


class Steps(NamedTuple):
    """thresholds (S,), falling; weights of the rows of the second label and of the others at or above each, (S,)."""

    thresholds: Array
    true_positives: Array
    false_positives: Array
    positives: float
    negatives: float


def steps_of(p: Array, positive: Mask, weights: Array | None = None) -> Steps:
    """From p (N,), whether rows are of the second label, and their weights (None: 1)."""
    weights = np.ones(len(p)) if weights is None else weights
    values, place = np.unique(-p, return_inverse=True)
    hits = np.bincount(place, weights * positive, len(values))
    misses = np.bincount(place, weights * ~positive, len(values))
    return Steps(-values, hits.cumsum(), misses.cumsum(), float(hits.sum()), float(misses.sum()))


def steps_held_out(scores: HeldOutScores) -> Steps:
    """Those of rows held out, whose own label's probability is kept."""
    others, own = (np.array(one) for one in scores.probabilities)
    p = np.concatenate([1 - others, own])
    weights = None if scores.weights is None else np.concatenate([np.array(one) for one in scores.weights])
    return steps_of(p, np.arange(len(p)) >= len(others), weights)


def figures(steps: Steps) -> dict[str, Array]:
    """Every figure by its name, (S,)."""
    tp, fp, p, n = steps.true_positives, steps.false_positives, steps.positives, steps.negatives
    told = tp + fp
    return {
        "selected": _ratio(told, p + n),
        "precision": _ratio(tp, told),
        "recall": _ratio(tp, p),
        "false_positive_rate": _ratio(fp, n),
        "f1": _ratio(2 * tp, p + told),
        "mcc": _ratio(tp * (n - fp) - fp * (p - tp), np.sqrt(told * (p + n - told) * p * n)),
        "balanced_accuracy": (_ratio(tp, p) + 1 - _ratio(fp, n)) / 2,
    }


def _ratio(part: Array, whole: Array | float) -> Array:
    whole = np.broadcast_to(whole, part.shape)
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def choose(criterion: str, steps: Steps) -> Threshold:
    """The threshold by `best:NAME`, `recall=R`, `precision=R` or `top=X%`; BncliError where no row reaches it."""
    found = figures(steps)
    if not steps.positives or not steps.negatives:
        what = f"--threshold {criterion} needs rows of both labels among those held out"
        raise BncliError(what, hint="there are too few rows of one of them")
    if criterion.startswith("best:"):
        figure = found[criterion.removeprefix("best:").replace("-", "_")]
        return _at(steps, int(np.argmax(figure >= figure.max() - _SAME)), criterion)
    name, _, number = criterion.partition("=")
    if name == "top":
        share = float(number.removesuffix("%")) / 100
        fitting = np.flatnonzero(found["selected"] <= share + _SAME)
        reached = f"the highest probability is that of {100 * float(found['selected'][0]):.3g} % of the rows"
    else:
        fitting = np.flatnonzero(found[name] >= float(number) - _SAME)
        reached = f"the highest {name} is {float(found[name].max()):.4g}"
    if not len(fitting):
        raise BncliError(f"no threshold has {criterion} on the rows held out: {reached}", hint="ask for less")
    return _at(steps, int(fitting[0] if name == "recall" else fitting[-1]), criterion)


def _at(steps: Steps, step: int, criterion: str) -> Threshold:
    """Half way to the next lower probability that occurs, so that no rounding takes a row away."""
    lower = steps.thresholds[step + 1] if step + 1 < len(steps.thresholds) else 0.0
    return Threshold(float(steps.thresholds[step] + lower) / 2, criterion)


def table(p: Array, positive: Mask, weights: Array | None, costs: Any = None) -> list[dict[str, float]]:
    """A line a threshold 0, 0.01, ..., 1: its figures, with costs[true][decision] the mean cost a row too."""
    steps = steps_of(p, positive, weights)
    grid = np.arange(MOST_LINES) / (MOST_LINES - 1)
    last = np.searchsorted(-steps.thresholds, -grid, side="right")
    tp, fp = (np.append(0.0, one)[last] for one in (steps.true_positives, steps.false_positives))
    lines = figures(steps._replace(thresholds=grid, true_positives=tp, false_positives=fp))
    if costs is not None:
        (right_no, false_yes), (false_no, right_yes) = costs
        n, m = steps.negatives, steps.positives
        total = false_yes * fp + right_no * (n - fp) + right_yes * tp + false_no * (m - tp)
        lines["cost"] = _ratio(total, n + m)
    columns = {"threshold": grid, **lines}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in rows]
