"""How strongly attributes depend on the class and, given the class, on each other: what tree learners order by.

The score of a child's family by the rule that a recipe writes: `bic`, `bdeu:1`, `acll:5`, `acll:5/1,1000`.

What every arc between two attributes adds to the score of a network in which each has the class as a parent.

    gain(j -> i) = score(i | class, j) - score(i | class)

Where rows have missing values, both scores are those of the rows in which i and j are observed.

Conventions: gains are rounded to whole multiples of a quantum, the twelfth digit of the largest score or gain. The
difference of two long sums has the rounding errors of the sums; in whole multiples what is equal compares as equal (an
arc between independent attributes gains exactly 0 likelihood), and sums of gains are exact. Cost: one counting pass
over all pairs; O(n^2) memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bncli.catalogue import SCORES
from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import (
    SIGNIFICANT_DIGITS,
    conditional_mutual_information,
    mutual_information,
    rounded,
)
from bncli.watch import Watch, silent


@dataclass(frozen=True)
class FamilyScore:
    """`score`: counts (..., r, q, K) to (...), nats, higher is better; `equivalent`: see `bncli.engine.scores`."""

    score: Callable[[Array], Array]
    equivalent: bool


def relevance(counts: Counts) -> Array:
    """Return I(X_i; Y) of every attribute of the schema, shape (n,), rounded nats; 0 for uninformative ones."""
    informative = counts.schema.informative
    scores = np.zeros(len(counts.schema.attributes))
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        scores[i] = mutual_information(table)
    return rounded(scores)


def conditional_dependence(counts: Counts, watch: Watch = silent) -> Array:
    """I(X_i; X_j | Y) of all pairs, symmetric, shape (n, n), nats, rounded for comparison; 0 for uninformative ones.

    Cost: one counting pass over all pairs of informative attributes; O(n^2) memory.
    """
    informative = counts.schema.informative
    n = len(counts.schema.attributes)
    scores = np.zeros((n, n))
    for i, j, tables in counts.pair_batches(informative, watch):
        scores[i, j] = scores[j, i] = conditional_mutual_information(tables)
    return rounded(scores)


def family_score(rule: str) -> FamilyScore:
    """Return the score named `NAME`, `NAME:NUMBER` or `NAME:NUMBER/PRIOR`.

    The name is a module of `bncli.engine.scores`.
    """
    name, _, numbers = rule.partition(":")
    number, _, prior = numbers.partition("/")
    module = importlib.import_module(SCORES.module_of(name))
    options: dict[str, Any] = ({"number": float(number)} if number else {}) | ({"prior": prior} if prior else {})
    return FamilyScore(partial(module.family_scores, **options), module.EQUIVALENT)


def arc_gains(counts: Counts, rule: FamilyScore, watch: Watch = silent) -> Array:
    """gain[j, i] of the arc j -> i in quanta, shape (n, n), whole numbers; 0 for uninformative attributes."""
    informative = counts.schema.informative
    alone = _scores_alone(counts, rule)
    gains = np.zeros((len(alone), len(alone)))
    any_missing = counts.any_missing
    for i, j, tables in counts.pair_batches(informative, watch):
        swapped = tables.swapaxes(-3, -2)
        gains[j, i] = rule.score(tables) - (_margin_score(tables, rule) if any_missing else alone[i])
        if rule.equivalent:
            gains[i, j] = gains[j, i]
        else:
            gains[i, j] = rule.score(swapped) - (_margin_score(swapped, rule) if any_missing else alone[j])
    largest = max(np.abs(alone).max(initial=0.0), np.abs(gains).max(initial=0.0))
    if largest <= 0:
        return gains
    # 10^300 is still a number, however small the gains
    scale = 10.0 ** min(SIGNIFICANT_DIGITS - np.ceil(np.log10(largest)), 300.0)
    return np.asarray(np.rint(gains * scale))


def _scores_alone(counts: Counts, rule: FamilyScore) -> Array:
    """score(i | class) of every attribute, 0 for uninformative ones."""
    informative = counts.schema.informative
    scores = np.zeros(len(counts.schema.attributes))
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        scores[i] = rule.score(table[:, np.newaxis, :])
    return scores


def _margin_score(tables: Array, rule: FamilyScore) -> Array:
    """Return the first attribute's score with the class alone, from the tables of pairs."""
    return rule.score(tables.sum(axis=-2, keepdims=True))
