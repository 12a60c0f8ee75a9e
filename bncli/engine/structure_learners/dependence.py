"""How strongly attributes depend on the class and on each other, and what an arc adds to a network's score.

Mutual informations are in nats and rounded to 12 digits, so that ties do not depend on the order of summation.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import (
    SIGNIFICANT_DIGITS,
    conditional_mutual_information,
    mutual_information,
    rounded,
)
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.scores import FamilyScore
from bncli.watch import Watch, silent


def relevance(counts: Counts) -> Array:
    """Return I(X_i; Y) of every attribute of the schema, shape (n,); 0 for uninformative ones."""
    informative = counts.schema.informative
    scores = np.zeros(len(counts.schema.attributes))
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        scores[i] = mutual_information(table)
    return rounded(scores)


def conditional_dependence(counts: Counts, watch: Watch = silent) -> Array:
    """Return I(X_i; X_j | Y) of all pairs, symmetric, shape (n, n); 0 for uninformative attributes.

    Cost: one counting pass over all pairs of informative attributes; O(n^2) memory.
    """
    n = len(counts.schema.attributes)
    scores = np.zeros((n, n))
    for i, j, tables in counts.pair_batches(counts.schema.informative, watch):
        scores[i, j] = scores[j, i] = conditional_mutual_information(tables)
    return rounded(scores)


def k_dependence_parents(
    counts: Counts, k: int, watch: Watch = silent, constraints: ArcConstraints | None = None
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the informative attributes by decreasing I(X_i; Y), and the parents of every attribute of the schema.

    An attribute's parents are the min(k, number of earlier ones) earlier attributes with the largest I(X_i; X_j | Y),
    in decreasing order, so that its first k' < k parents are those in the k'-dependence network. Ties go to the
    attribute that comes first in the schema. Source: Sahami 1996, KDD. Cost: one counting pass over all pairs.

    With constraints, attributes that must come later are moved back in the order; required parents come first, then
    allowed ones.
    """
    scores = relevance(counts)
    order = tuple(sorted(counts.schema.informative, key=lambda i: (-scores[i], i)))
    if constraints is not None:
        order = constraints.order(order)
    parents: list[tuple[int, ...]] = [()] * len(counts.schema.attributes)
    dependence = conditional_dependence(counts, watch)
    for rank, i in enumerate(order):
        candidates = sorted(order[:rank], key=lambda j: (-dependence[i, j], j))
        parents[i] = tuple(candidates[:k]) if constraints is None else constraints.parents_among(i, candidates, k)
    return order, tuple(parents)


def arc_gains(counts: Counts, rule: FamilyScore, watch: Watch = silent) -> Array:
    """Return the gain in score of each arc, in a network in which every attribute has the class as a parent.

        gain(j -> i) = score(i | class, j) - score(i | class)

    The result is gain[j, i], shape (n, n); 0 for uninformative attributes. If rows have missing values, both scores
    come from the rows in which i and j are observed.

    Gains are in units of the twelfth digit of the largest score or gain, and rounded to whole numbers. Rounding errors
    of the sums then do not matter: equal gains compare as equal (the likelihood gain of an arc between independent
    attributes is exactly 0), and sums of gains are exact.
    Cost: one counting pass over all pairs; O(n^2) memory.
    """
    informative = counts.schema.informative
    n = len(counts.schema.attributes)
    without_parents = np.zeros(n)
    for i, table in zip(informative, counts.tables([(i,) for i in informative]), strict=True):
        without_parents[i] = rule.score(table[:, np.newaxis, :])
    gains = np.zeros((n, n))
    for first, second, tables in counts.pair_batches(informative, watch):
        # tables [x_i, x_j, y] have the first attribute as the child; swapped, the second
        for parent, child, table in ((second, first, tables), (first, second, tables.swapaxes(-3, -2))):
            # the other direction has just been scored
            if rule.equivalent and parent is first:
                gains[parent, child] = gains[child, parent]
            elif counts.any_missing:
                # without the parent, on the same rows: those in which both are observed
                gains[parent, child] = rule.score(table) - rule.score(table.sum(axis=-2, keepdims=True))
            else:
                gains[parent, child] = rule.score(table) - without_parents[child]
    largest = max(np.abs(without_parents).max(initial=0.0), np.abs(gains).max(initial=0.0))
    if largest <= 0:
        return gains
    # 10^300 is still a finite number, however small the gains are
    scale = 10.0 ** min(SIGNIFICANT_DIGITS - np.ceil(np.log10(largest)), 300.0)
    return np.asarray(np.rint(gains * scale))
