"""Hill climbing: from naive Bayes, arc by arc to the network that a score likes best among its neighbours.

A move adds, deletes or reverses one arc between two attributes; the class stays a parent of every attribute. With
s(i | P) the score of attribute i with the class and the attributes P as parents, the gains are

    add j -> i:      s(i | P_i + j) - s(i | P_i)
    delete j -> i:   s(i | P_i - j) - s(i | P_i)
    reverse j -> i:  s(i | P_i - j) - s(i | P_i) + s(j | P_j + i) - s(j | P_j)

The legal move of highest gain is made until no gain exceeds 1e-9 nats. Legal: no cycle, at most `max_parents`
attribute parents, and with `perfect` only graphs in which every two parents of a common child are joined, which a
logistic regression can stand for. Greedy additions to naive Bayes are what Feelders & Ivanovs (2006, PGM) used;
the search is that of Heckerman, Geiger & Chickering (1995, Machine Learning 20).

Conventions: a gain is a difference of scores, so it is rounded to the 12th digit of the largest family score of the
start. Of equal gains, an addition comes before a deletion before a reversal, then the parent of higher I(X_i; Y), then
the child of higher I(X_i; Y), and of equals the attribute that comes first in the schema: most scores like both
directions of a first arc as much, and the order of columns should not choose. Parents are listed in falling
I(X_i; X_j | Y). Under `--missing-policy marginalize`, the search takes a missing value for one more level
(`bncli.engine.structure_search.missing_levels`). Cost: a sweep over the rows for all candidates of one child
(`bncli.engine.counting.sweep`), n sweeps at the start and one for each child that a move changes.
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array, Mask
from bncli.engine.kernels.information import SIGNIFICANT_DIGITS, conditional_mutual_information, rounded
from bncli.engine.structure_search.dependence import relevance
from bncli.engine.structure_search.family_cache import FamilyCache
from bncli.engine.structure_search.family_score import family_score
from bncli.engine.structure_search.missing_levels import with_missing_levels
from bncli.engine.structures.arcs import Arcs
from bncli.engine.structures.structure import Dag
from bncli.watch import Move, MoveKind, Progress, Watch, silent

LEAST_GAIN = 1e-9
"""A move gains more than so many nats."""


def learn(counts: Counts, *, structure_score: str, max_parents: int, perfect: bool, watch: Watch = silent) -> Dag:
    """The network over the informative attributes at which no single move gains."""
    counts = with_missing_levels(counts, "hill-climb", watch)
    scores = FamilyCache(counts, family_score(structure_score))
    informative = counts.data.schema.informative
    if max_parents > 0:
        scores.score_pairs(watch)
    search = _Search(scores, max_parents, perfect)
    for child in informative:
        search.rescore(child)
    for done, move in enumerate(iter(search.best, None)):
        watch(move)
        watch(Progress(done, None, "moves"))
        for child in search.make(move):
            search.rescore(child)
    options: dict[str, str | int | bool] = {
        "structure_score": structure_score,
        "max_parents": max_parents,
        "perfect": perfect,
    }
    return Dag(_in_order(counts, search.arcs), informative, method="hill-climb", options=options)


class _Search:
    """The graph on its way, and for every child the gain of one parent more or less: gain[parent, child]."""

    def __init__(self, scores: FamilyCache, max_parents: int, perfect: bool) -> None:
        n = len(scores.counts.data.schema.attributes)
        self.arcs = Arcs(n, max_parents=max_parents, perfect=perfect)
        self._scores, self._max_parents = scores, max_parents
        self._adding, self._deleting = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        largest = max([1.0, *map(abs, scores.without_parents())])
        relevant = relevance(scores.counts)
        self._order = np.array(sorted(range(n), key=lambda i: (-relevant[i], i)), np.intp)
        self._decimals = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(largest))

    def rescore(self, child: int) -> None:
        """The gains at a child whose parents are new."""
        parents = self.arcs.parents(child)
        present = self._scores.score(child, parents)
        self._adding[:, child] = -np.inf
        self._deleting[:, child] = -np.inf
        if len(parents) < self._max_parents:
            self._adding[:, child] = self._scores.column(child, parents) - present
        for j in parents:
            self._deleting[j, child] = self._scores.score(child, parents - {j}) - present

    def best(self) -> Move | None:
        """The legal move of highest gain, if it is worth making."""
        arcs, best = self.arcs, None
        choices: tuple[tuple[MoveKind, Mask, Array], ...] = (
            ("add", arcs.may_add(), self._adding),
            ("delete", arcs.may_delete(), self._deleting),
            ("reverse", arcs.may_reverse(), self._deleting + self._adding.T),
        )
        for kind, allowed, gains in choices if arcs.present.size else ():
            legal = np.where(allowed, gains, -np.inf).round(self._decimals)[np.ix_(self._order, self._order)]
            parent, child = divmod(int(np.argmax(legal)), len(legal))  # the first of equals
            if legal[parent, child] > (best.gain if best else LEAST_GAIN):
                best = Move(kind, int(self._order[parent]), int(self._order[child]), float(legal[parent, child]))
        return best

    def make(self, move: Move) -> tuple[int, ...]:
        """Changes the graph; returns the attributes whose parents changed."""
        change = {"add": self.arcs.add, "delete": self.arcs.delete, "reverse": self.arcs.reverse}[move.kind]
        change(move.parent, move.child)
        return (move.child, move.parent) if move.kind == "reverse" else (move.child,)


def _in_order(counts: Counts, arcs: Arcs) -> tuple[tuple[int, ...], ...]:
    """The parents of every attribute, in falling conditional mutual information with it."""
    pairs = [(i, j) for i in range(len(arcs.present)) for j in sorted(arcs.parents(i))]
    tables = counts.tables(pairs)
    weights = rounded(np.array([conditional_mutual_information(table) for table in tables], np.float64))
    weight = dict(zip(pairs, weights, strict=True))
    return tuple(tuple(sorted(arcs.parents(i), key=lambda j: (-weight[i, j], j))) for i in range(len(arcs.present)))
