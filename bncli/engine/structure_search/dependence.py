"""How strongly attributes depend on the class and, given the class, on each other: what tree learners order by."""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import conditional_mutual_information, mutual_information, rounded
from bncli.watch import Watch, silent


def relevance(counts: Counts) -> Array:
    """I(X_i; Y) of every attribute of the schema, shape (n,), rounded nats; 0 for uninformative ones."""
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
