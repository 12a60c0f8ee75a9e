"""What every arc between two attributes adds to the score of a network in which each has the class as a parent.

    gain(j -> i) = score(i | class, j) - score(i | class)

Where rows have missing values, both scores are those of the rows in which i and j are observed.

Conventions: gains are rounded to whole multiples of a quantum, the twelfth digit of the largest score or gain. The
difference of two long sums has the rounding errors of the sums; in whole multiples what is equal compares as equal
(an arc between independent attributes gains exactly 0 likelihood), and sums of gains are exact.
Cost: one counting pass over all pairs; O(n^2) memory.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import SIGNIFICANT_DIGITS
from bncli.engine.structure_search.family_score import FamilyScore
from bncli.watch import Watch, silent


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
    return _in_quanta(gains, max(np.abs(alone).max(initial=0.0), np.abs(gains).max(initial=0.0)))


def _margin_score(tables: Array, rule: FamilyScore) -> Array:
    """The first attribute's score with the class alone, from the tables of pairs."""
    return rule.score(tables.sum(axis=-2, keepdims=True))


def _scores_alone(counts: Counts, rule: FamilyScore) -> Array:
    """score(i | class) of every attribute, 0 for uninformative ones."""
    informative = counts.schema.informative
    scores = np.zeros(len(counts.schema.attributes))
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        scores[i] = rule.score(table[:, np.newaxis, :])
    return scores


def _in_quanta(gains: Array, largest: float) -> Array:
    if largest <= 0:
        return gains
    # 10^300 is still a number, however small the gains
    scale = 10.0 ** min(SIGNIFICANT_DIGITS - np.ceil(np.log10(largest)), 300.0)
    return np.asarray(np.rint(gains * scale))
