"""Dependence of attributes on the class and on each other, and the selection of attributes to search on wide tables.

Mutual informations are in nats and rounded to 12 significant digits, so that ties do not depend on the order of
summation.

Searches that compare pairs of attributes hold n x n matrices. A table of many columns is therefore narrowed before the
search: to its informative attributes and, if there are more than the method can compare, to those with the largest
I(X_i; Y) (ties: the first in the schema). The structure found is then extended to the schema. On few rows fewer
attributes are searched, because the best of many thousand arcs would be noise.

Conventions: up to WIDE attributes nothing is narrowed, so that later steps can use the tables that the search counted.
In tan, kdb and hill-climb an attribute outside the search has the class as its only parent; otherwise it is not part of
the structure. kikuchi, interactions and card limit their candidates themselves, so for them only few rows narrow the
table further.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import ColumnsJoinedOnDemand
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import (
    SIGNIFICANT_DIGITS,
    conditional_mutual_information,
    mutual_information,
    rounded,
)
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.scores import FamilyScore
from bncli.engine.structures.structure import Dag, Structure
from bncli.watch import Note, Watch, silent

WIDE = 1_000
"""Tables with more attributes than this are narrowed."""
MOST_SEARCHED = {"tan": 1_000, "kdb": 1_000, "skdb": 1_000, "hill-climb": 500, "gbn": 100}
"""The maximum number of attributes among which each method searches for arcs if the table has more than WIDE."""
FEW_SEARCHED = 250
"""No more attributes are searched than there are rows, or than this number if there are fewer rows."""
OUTSIDE = ("gbn", "skdb")
"""Methods whose network contains only attributes that were searched."""


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
    in decreasing order, so that its first k' < k parents are its parents in the k'-dependence network. Ties go to the
    attribute that comes first in the schema. Source: Sahami 1996, KDD. Cost: one counting pass over all pairs.

    With constraints, attributes that must come later are moved back in the order; required parents come first, then
    allowed ones. Raises UsageError if more than k parents of an attribute are required, or the constraints form a
    cycle.
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

    Gains are in units of the twelfth digit of the largest absolute gain or score without parents, and rounded to
    integers. Rounding errors of the sums then do not matter: equal gains compare as equal (the likelihood gain of an
    arc between independent attributes is exactly 0), and sums of gains are exact. Cost: one counting pass over all
    pairs; O(n^2) memory.
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


def narrow(counts: Counts, method: str, watch: Watch) -> tuple[Counts, tuple[int, ...]]:
    """Return counts of only the attributes that the method searches, and their indices, ascending.

    Counts of at most WIDE attributes, and stored tables without rows, are returned unchanged, with all indices. So are
    all counts if the method is naive Bayes, which does not search.
    """
    everything = tuple(range(len(counts.schema.attributes)))
    if method == "nb" or len(everything) <= WIDE or not counts.has_rows:
        return counts, everything
    searched = informative = counts.schema.informative
    most = min(MOST_SEARCHED.get(method, len(informative)), max(counts.data.n_rows, FEW_SEARCHED))
    if len(informative) > most:
        scores = relevance(counts)
        searched = tuple(sorted(sorted(informative, key=lambda i: (-scores[i], i))[:most]))
        # methods that are not listed learn regions: a region of a single attribute is one of those searched
        others = "depend on the class alone" if method in MOST_SEARCHED and method not in OUTSIDE else "are left out"
        searches = "searches for arcs" if method in MOST_SEARCHED else "searches"
        what = f"{method} {searches} among the {most:,} attributes with the most information about the class"
        watch(Note(f"{what}; the other {len(informative) - most:,} {others}"))
    data = counts.data
    codes = data.codes
    if isinstance(codes, ColumnsJoinedOnDemand):
        codes = ColumnsJoinedOnDemand([codes.columns[i] for i in searched])
    else:
        codes = tuple(codes[i] for i in searched)
    schema = replace(data.schema, attributes=tuple(data.schema.attributes[i] for i in searched))
    return Counts(Dataset(schema, codes, data.labels, data.weights, data.threads, data.split_by)), searched


def widen(structure: Structure, searched: tuple[int, ...], counts: Counts) -> Structure:
    """Extend a structure found among the attributes `searched` to the whole schema of `counts`."""
    n = len(counts.schema.attributes)
    if len(searched) == n:
        return structure
    if not isinstance(structure, Dag):
        return replace(structure, regions=tuple(tuple(searched[i] for i in region) for region in structure.regions))
    parents: list[tuple[int, ...]] = [()] * n
    for i, listed in zip(searched, structure.parents, strict=True):
        parents[i] = tuple(searched[j] for j in listed)
    children = {searched[i] for i in structure.class_children}
    if structure.method not in OUTSIDE:
        children.update(set(counts.schema.informative).difference(searched))
    return replace(
        structure,
        parents=tuple(parents),
        class_children=tuple(sorted(children)),
        class_parents=tuple(searched[i] for i in structure.class_parents),
    )
