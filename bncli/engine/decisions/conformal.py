"""Split conformal prediction sets: sets of labels that hold the true one as often as was asked for.

A row that was held out has the conformity P(y_t | x_t) of its own label. With n such rows, weights w and W their sum,
the set of a new row holds every label whose probability reaches the bar b,

    b = the highest conformity above or at which lie rows of weight (W + 1)(1 - alpha) or more,    w = 1: n = W

that is, the ceil((n + 1)(1 - alpha))-th largest. Where the rows held out and the new one are exchangeable, the set
misses the true label with a probability of at most alpha (Vovk, Gammerman & Shafer 2005; the score of Sadinle, Lei &
Wasserman 2019, JASA 114). By class each label has a bar of its own, from the rows of that label, and the promise holds
for the rows of each.

Conventions: a set may be empty, where no label reaches the bar. A row of whole weight w counts as w rows.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.data.decision_rule import HeldOutScores, Numbers, Sets
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

_ROUNDING = 1e-9
"""Of a number of rows: (n + 1)(1 - alpha) is whole more often than its floating-point number."""


def bars(sets: Sets, scores: HeldOutScores, labels: tuple[str, ...]) -> Array:
    """The probability that a label must reach to be in the set, (K,); BncliError for too few rows held out."""
    if not sets.by_class:
        together = tuple(p for one in scores.probabilities for p in one)
        weights = None if scores.weights is None else tuple(w for one in scores.weights for w in one)
        return np.full(len(labels), _bar(sets.alpha, together, weights, ""))
    weighing = scores.weights or (None,) * len(labels)
    rows = zip(scores.probabilities, weighing, labels, strict=True)
    return np.array([_bar(sets.alpha, p, w, f" of the label {label!r}") for p, w, label in rows])


def _bar(alpha: float, probabilities: Numbers, weights: Numbers | None, whose: str) -> float:
    order = np.argsort(-np.array(probabilities), kind="stable")
    falling = np.array(probabilities)[order]
    above = np.arange(1.0, len(falling) + 1) if weights is None else np.array(weights)[order].cumsum()
    total = float(above[-1]) if len(above) else 0.0
    needed = (total + 1) * (1 - alpha)
    reached = np.flatnonzero(above >= needed - _ROUNDING)
    if not len(reached):
        least = int(np.ceil(1 / alpha - 1 - _ROUNDING))
        what = f"sets with alpha {alpha:g} need {least:,} rows held out{whose}, and there are {total:,.6g}"
        raise BncliError(what, hint="ask for a larger alpha, or learn from more rows")
    return float(falling[reached[0]])
