"""Sensitivity of predictions to each attribute, on given rows.

Let f_v be the share of the rows in which attribute j has value v, and x_t(v) row t with v in place of its own value:

    log-loss increase = sum over v of f_v mean over t of -ln P(y_t | x_t(v))  -  mean over t of -ln P(y_t | x_t)
    mean change       = sum over v of f_v mean over t of max_y |P(y | x_t(v)) - P(y | x_t)|
    changed           = share of the rows that are decided differently for some value v with f_v > 0

The first is the expectation of the permutation importance (Breiman 2001; Fisher, Rudin & Dominici 2019, JMLR 20) over
random values of j. Cost: the rows are scored once per value of each attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Codes, Integers
from bncli.engine.prediction.scoring import Scorer, log_probabilities


class Sensitivity(NamedTuple):
    """The log-loss increase in nats, the mean change of a probability, and the share of rows decided differently."""

    log_loss_increase: float
    mean_change: float
    changed: float


def measure_sensitivities(
    scorer: Scorer,
    codes: Sequence[Codes],
    labels: Integers,
    weights: Array | None = None,
    decide: Callable[[Array], Integers] | None = None,
) -> list[Sensitivity]:
    """Return the sensitivity to every attribute of scorer.used on N > 0 rows, given codes and labels, (N,) each.

    decide: a function from ln P(y | x_t), (K, N), to the decision for each row, (N,); None for the most probable label.
    """
    decide = decide or (lambda log_p: log_p.argmax(axis=0))
    weights = np.ones(len(labels)) if weights is None else weights
    shares, rows = weights / weights.sum(), np.arange(len(labels))
    log_p = log_probabilities(scorer, codes, len(labels))
    p, decided, loss = np.exp(log_p), decide(log_p), float(shares @ -log_p[labels, rows])
    found = []
    for j, column in enumerate(codes):
        frequencies = np.bincount(column, shares)
        new_loss, change, is_changed = 0.0, 0.0, np.zeros(len(rows), np.bool_)
        for value in np.flatnonzero(frequencies > 0).tolist():
            replaced = [*codes[:j], np.full_like(column, value), *codes[j + 1 :]]
            new = log_probabilities(scorer, replaced, len(rows))
            new_loss += frequencies[value] * float(shares @ -new[labels, rows])
            change += frequencies[value] * float(shares @ np.abs(np.exp(new) - p).max(axis=0))
            is_changed |= decide(new) != decided
        found.append(Sensitivity(new_loss - loss, change, float(shares @ is_changed)))
    return found
