"""What every arc between two attributes adds to the score of a network in which each has the class as a parent.

    gain(j -> i) = score(i | class, j) - score(i | class)

Decided here: gains are rounded to whole multiples of a quantum, the twelfth digit of the largest score or gain. The
difference of two long sums has the rounding errors of the sums; in whole multiples what is equal compares as equal
(an arc between independent attributes gains exactly 0 likelihood), and sums of gains are exact.
Cost: one counting pass over all pairs; O(n^2) memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counts import Counts
from bncli.engine.family_score import FamilyScore
from bncli.engine.kernels.information import SIGNIFICANT_DIGITS
from bncli.watch import Progress, Watch, silent

Array = NDArray[np.float64]


def arc_gains(counts: Counts, rule: FamilyScore, watch: Watch = silent) -> Array:
    """gain[j, i] of the arc j -> i in quanta, shape (n, n), whole numbers; 0 for uninformative attributes."""
    informative = counts.data.schema.informative
    alone = _scores_alone(counts, rule)
    gains = np.zeros((len(alone), len(alone)))
    total, done = len(informative) * (len(informative) - 1) // 2, 0
    for i, j, tables in counts.pair_batches(informative):
        watch(Progress(done, total, "pairs of attributes"))
        gains[j, i] = rule.score(tables) - alone[i]
        gains[i, j] = gains[j, i] if rule.equivalent else rule.score(tables.swapaxes(-3, -2)) - alone[j]
        done += len(i)
    return _in_quanta(gains, max(np.abs(alone).max(initial=0.0), np.abs(gains).max(initial=0.0)))


def _scores_alone(counts: Counts, rule: FamilyScore) -> Array:
    """score(i | class) of every attribute, 0 for uninformative ones."""
    informative = counts.data.schema.informative
    scores = np.zeros(len(counts.data.schema.attributes))
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        scores[i] = rule.score(table[:, np.newaxis, :])
    return scores


def _in_quanta(gains: Array, largest: float) -> Array:
    if largest <= 0:
        return gains
    scale = 10.0 ** min(SIGNIFICANT_DIGITS - np.ceil(np.log10(largest)), 300.0)
    return np.asarray(np.rint(gains * scale))
