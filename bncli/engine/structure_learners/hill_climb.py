"""Hill climbing: change naive Bayes arc by arc until no single change improves the network.

A move adds, deletes or reverses one arc between two attributes; the class stays a parent of every attribute. With
s(i | P) the score of attribute i with the class and the attributes P as parents, the gains are

    add j -> i:      s(i | P_i + j) - s(i | P_i)
    delete j -> i:   s(i | P_i - j) - s(i | P_i)
    reverse j -> i:  s(i | P_i - j) - s(i | P_i) + s(j | P_j + i) - s(j | P_j)

The legal move of highest gain is made until no gain exceeds 1e-9 nats. A legal move closes no cycle, leaves every
attribute at most `max_parents` attribute parents and, with `perfect`, any two parents of a common child joined, so that
a logistic regression can represent the network. Greedy additions to naive Bayes are what Feelders & Ivanovs (2006, PGM)
used; for the search, see Heckerman, Geiger & Chickering (1995, Machine Learning 20).

Conventions: a gain is a difference of scores, so it is rounded to the 12th digit of the largest absolute score of an
attribute in naive Bayes (or of 1 nat, if that is larger). If gains tie, an addition comes before a deletion before a
reversal, then the parent of higher I(X_i; Y), then the child of higher I(X_i; Y), then the attribute that comes first
in the schema: most scores gain the same from both directions of a first arc, and the order of columns should not
decide. Parents are listed by decreasing I(X_i; X_j | Y). Under `--missing-policy marginalize`, the search treats
missing values as one more level. Cost: all pairs are counted at the start; then one sweep over the rows serves all
candidates of one child (`bncli.engine.counting.table_batches`), and a move takes about one sweep for each child that
it changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.table_batches import n_cells, tables_with_one_more
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.kernels.information import SIGNIFICANT_DIGITS, conditional_mutual_information, rounded
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.scores import FamilyScore, parse_score
from bncli.engine.structures.structure import Dag
from bncli.errors import UsageError
from bncli.watch import Move, MoveKind, Progress, Watch, silent

ChildAndParents = tuple[int, frozenset[int]]
LEAST_GAIN = 1e-9
"""A move must gain more than this, in nats."""
MANY_ROWS = 1 << 16
"""With at least this many rows, counting costs more than handling tables, so pairs of super-attributes are counted."""
MAX_CELLS = 1 << 24
"""The maximum number of cells in a family's table (128 MiB)."""


def learn(
    counts: Counts,
    *,
    structure_score: str,
    max_parents: int,
    perfect: bool,
    constraints: ArcConstraints | None = None,
    watch: Watch = silent,
) -> Dag:
    """Return a network over the informative attributes whose score no single move improves.

    With constraints, the search begins with the required arcs, and every move obeys the constraints. Raises UsageError
    if the required arcs violate `max_parents` or `perfect`.
    """
    counts = counts.with_missing_levels("hill-climb", watch)
    scores = FamilyCache(counts, parse_score(structure_score))
    informative, n = counts.data.schema.informative, len(counts.data.schema.attributes)
    if max_parents > 0:
        scores.score_pairs(watch)
    search = _Search(scores, max_parents, perfect, constraints)
    for child in informative:
        search.rescore(child)
    for done, move in enumerate(iter(search.best_move, None)):
        watch(move)
        watch(Progress(done, None, "moves"))
        search.make(move)
    # Parents are listed by decreasing conditional mutual information with their child.
    parents = [sorted(search.arcs.parents(i)) for i in range(n)]
    pairs = [(i, j) for i in range(n) for j in parents[i]]
    weights = rounded(np.array([conditional_mutual_information(t) for t in counts.tables(pairs)], np.float64))
    weight = dict(zip(pairs, weights, strict=True))
    by_weight = tuple(tuple(sorted(parents[i], key=lambda j: (-weight[i, j], j))) for i in range(n))
    options: dict[str, str | int | bool] = {
        "structure_score": structure_score,
        "max_parents": max_parents,
        "perfect": perfect,
    }
    return Dag(by_weight, informative, method="hill-climb", options=options)


class _Search:
    """The current graph, and the gains of adding and of deleting each arc, as matrices [parent, child]."""

    def __init__(
        self, scores: FamilyCache, max_parents: int, perfect: bool, constraints: ArcConstraints | None
    ) -> None:
        n = len(scores.counts.data.schema.attributes)
        if constraints is not None and constraints.max_parents is not None:
            max_parents = min(max_parents, constraints.max_parents)
        self.arcs = Arcs(n, max_parents=max_parents, perfect=perfect, constraints=constraints)
        self._scores, self._max_parents = scores, max_parents
        self._adding, self._deleting = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        largest = max([1.0, *map(abs, scores.without_parents())])
        relevant = relevance(scores.counts)
        # matrices are compared in this order, so that argmax breaks ties by relevance
        self._order = np.array(sorted(range(n), key=lambda i: (-relevant[i], i)), np.intp)
        self._decimals = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(largest))

    def rescore(self, child: int) -> None:
        """Update the gains of arcs into a child whose parents have changed."""
        parents = self.arcs.parents(child)
        present = self._scores.score(child, parents)
        self._adding[:, child] = -np.inf
        self._deleting[:, child] = -np.inf
        # columns have -inf for attributes that cannot be parents
        if len(parents) < self._max_parents:
            self._adding[:, child] = self._scores.column(child, parents) - present
        for j in parents:
            self._deleting[j, child] = self._scores.score(child, parents - {j}) - present

    def best_move(self) -> Move | None:
        """Return the legal move of highest gain, or None if none gains more than LEAST_GAIN."""
        arcs, best = self.arcs, None
        gains = {"add": self._adding, "delete": self._deleting, "reverse": self._deleting + self._adding.T}
        for kind, allowed in arcs.allowed_moves().items() if arcs.present.size else ():
            legal = np.where(allowed, gains[kind], -np.inf).round(self._decimals)[np.ix_(self._order, self._order)]
            parent, child = divmod(int(np.argmax(legal)), len(legal))  # argmax takes the first of equals
            if legal[parent, child] > (best.gain if best else LEAST_GAIN):
                best = Move(kind, int(self._order[parent]), int(self._order[child]), float(legal[parent, child]))
        return best

    def make(self, move: Move) -> None:
        """Change the graph and update the gains of the attributes whose parents changed."""
        if move.kind == "add":
            self.arcs.add(move.parent, move.child)
        else:
            self.arcs.delete(move.parent, move.child)
        if move.kind == "reverse":
            self.arcs.add(move.child, move.parent)
        for child in (move.child, move.parent)[: 2 if move.kind == "reverse" else 1]:
            self.rescore(child)


@dataclass(frozen=True)
class FamilyCache:
    """Scores, in nats, of families of informative attributes that all have the class as a parent.

    A search that considers one more parent j for an attribute i with the attribute parents P needs the score of the
    family (i, P + j) for every j: a *column*, which takes one sweep over the rows. Columns are kept, and also provide
    the scores of smaller families: (i, P - l) is in the column of (i, P - l - j), if the search has visited it. A
    family with parents whose table would have more than MAX_CELLS cells has the score -infinity, so that no search
    moves to it. Memory: n values per column; tables are discarded once they are scored.
    """

    counts: Counts
    rule: FamilyScore
    _columns: dict[ChildAndParents, Array] = field(default_factory=dict)
    _single_scores: dict[ChildAndParents, float] = field(default_factory=dict)

    def without_parents(self) -> list[float]:
        """Return the score of every informative attribute with the class as its only parent, in one pass over rows."""
        informative = self.counts.data.schema.informative
        self.counts.tables([(i,) for i in informative])
        return [self.score(i, frozenset()) for i in informative]

    def score_pairs(self, watch: Watch = silent) -> None:
        """Compute the columns of all informative attributes without parents, counting each pair once.

        If the largest table of a pair has too many cells, nothing is computed, and columns are counted when needed.
        """
        data, rule = self.counts.data, self.rule
        informative, n = data.schema.informative, len(data.schema.attributes)
        largest = sorted(informative, key=data.schema.cardinalities.__getitem__)[-2:]
        if n_cells(data, largest) > MAX_CELLS:
            return
        batches: Iterable[tuple[Index, Index, Array]]
        if data.n_rows >= MANY_ROWS:
            batches = self.counts.pair_batches(informative)
        else:
            batches = (
                (np.full(len(later), i), np.array(later), tables)
                for place, i in enumerate(informative)
                for later, tables in tables_with_one_more(data, i, (), informative[place + 1 :])
            )
        scores, done = np.full((n, n), -np.inf), 0
        for i, j, tables in batches:
            watch(Progress(done, math.comb(len(informative), 2), "pairs of attributes"))
            done += len(i)
            scores[i, j] = rule.score(tables)
            if not rule.equivalent:
                scores[j, i] = rule.score(tables.swapaxes(-2, -3))
        if rule.equivalent:
            alone = np.zeros(n)
            alone[list(informative)] = self.without_parents()
            # an equivalent score gains the same in both directions; -inf marks pairs that were not counted
            # scores[j, i] = score(i | j) - score(i) + score(j), from the direction that was counted
            scores = np.maximum(scores, (scores - alone[:, np.newaxis]).T + alone[:, np.newaxis])
        self._columns.update(((i, frozenset()), scores[i]) for i in informative)

    def score(self, child: int, parents: frozenset[int]) -> float:
        # whichever parent was added last, the score is in the column of the others
        for last in sorted(parents):
            column = self._columns.get((child, parents - {last}))
            if column is not None:
                return float(column[last])
        if (child, parents) not in self._single_scores:
            members = (child, *sorted(parents))
            if parents and n_cells(self.counts.data, members) > MAX_CELLS:
                score = -math.inf
            else:
                (table,) = self.counts.tables([members])
                score = float(self.rule.score(table.reshape(len(table), -1, table.shape[-1])))
            self._single_scores[child, parents] = score
        return self._single_scores[child, parents]

    def column(self, child: int, parents: frozenset[int]) -> Array:
        """Return the score of (child, parents + j) for every attribute j, shape (n,); -inf if j cannot be added."""
        if (child, parents) not in self._columns:
            data = self.counts.data
            base = (child, *sorted(parents))
            column = np.full(len(data.schema.attributes), -np.inf)
            candidates = [
                j for j in data.schema.informative if j not in base and n_cells(data, (*base, j)) <= MAX_CELLS
            ]
            for group, tables in tables_with_one_more(data, child, base[1:], candidates):
                column[group] = self.rule.score(tables)
            self._columns[child, parents] = column
        return self._columns[child, parents]


class Arcs:
    """The arcs of an acyclic graph over n nodes, and the changes that it allows; present[j, i]: j is a parent of i.

    No node gets more than `max_parents` parents, and with `perfect` any two attribute parents of a common child stay
    joined by an arc. The allowed changes are computed for all arcs at once, as matrices [parent, child]. With A the
    arcs and R[a, b] = there is a path from a to b:

    - adding j -> i closes a cycle if R[i, j]; reversing it does if another parent p of i has R[j, p];
    - j may become a parent of i in a perfect graph if it is joined to all |P_i| parents of i:
      sum over p of (A + A^T)[j, p] A[p, i] = |P_i|; the same holds for a reversal of i -> j, which keeps the pairs
      that are joined;
    - an arc j -> i must stay in a perfect graph if j and i have a common child: sum over c of A[j, c] A[i, c] > 0;
    - with constraints, j may become a parent of i if that arc is allowed and j may be in one table with each parent of
      i; required arcs exist from the start and stay. Raises UsageError if they violate `max_parents` or `perfect`.

    Cost of a matrix: n times the number of arcs; R is updated after an addition in O(n^2), rebuilt after a deletion.
    """

    def __init__(self, n: int, *, max_parents: int, perfect: bool, constraints: ArcConstraints | None = None) -> None:
        self._max_parents, self._perfect, self._constraints = max_parents, perfect, constraints
        self.present: Mask = np.zeros((n, n), np.bool_)
        self._reach: Mask = np.zeros((n, n), np.bool_)
        if constraints is not None and constraints.required.any():
            for parent, child in np.argwhere(constraints.required).tolist():
                self.add(parent, child)
            n_parents = self.present.sum(axis=0)
            if n_parents.max() > max_parents:
                name = constraints.names[int(n_parents.argmax())]
                what = f"--knowledge requires {n_parents.max()} parents of {name!r}, and --max-parents is {max_parents}"
                raise UsageError(what, hint="raise --max-parents")
            joined = self.present | self.present.T
            if perfect and (_sum_over_parents(joined, self.present) < n_parents - 1)[self.present].any():
                what = (
                    "--perfect joins all parents of an attribute, but --knowledge requires parents without an arc "
                    "between them"
                )
                raise UsageError(what, hint="require an arc between them too, or leave --perfect out")

    def parents(self, child: int) -> frozenset[int]:
        return frozenset(np.flatnonzero(self.present[:, child]).tolist())

    def allowed_moves(self) -> dict[MoveKind, Mask]:
        """Return the masks of arcs j -> i that may be added, deleted, and reversed to i -> j."""
        present, constraints = self.present, self._constraints
        # whether j may be a parent of i: there is room, j is allowed, and (if perfect) joined to the others
        n_parents = present.sum(axis=0)
        may_be_parent: Mask = np.broadcast_to(n_parents < self._max_parents, present.shape)
        free = present
        if constraints is not None:
            apart = _sum_over_parents(~constraints.together, present)
            may_be_parent = may_be_parent & constraints.allowed & (apart == 0)
            free = present & ~constraints.required
        deletable = free
        if self._perfect:
            may_be_parent = may_be_parent & (_sum_over_parents(present | present.T, present) == n_parents)
            # with `present` transposed the sum runs over common children
            deletable = free & (_sum_over_parents(present, present.T) == 0)
        # an arc from a node that the child i already leads to, those in column i of R', would close a cycle
        impossible = present | self._reach.T | np.eye(len(present), dtype=np.bool_)
        no_cycle = _sum_over_parents(self._reach, present) == 0
        return {
            "add": np.asarray(~impossible & may_be_parent),
            "delete": deletable.copy(),
            "reverse": np.asarray(free & no_cycle & may_be_parent.T),
        }

    def add(self, parent: int, child: int) -> None:
        # whatever led to the parent now leads to whatever the child leads to
        above, below = self._reach[:, parent].copy(), self._reach[child].copy()
        above[parent] = below[child] = True
        self._reach |= np.outer(above, below)
        self.present[parent, child] = True

    def delete(self, parent: int, child: int) -> None:
        self.present[parent, child] = False
        # Nodes below the deleted arc may still be reached along other paths, so R is rebuilt in topological order: a
        # node is reached from its parents, and from all nodes that reach them.
        parents = {i: np.flatnonzero(column) for i, column in enumerate(self.present.T)}
        reach = np.zeros_like(self.present)
        for i in TopologicalSorter({i: listed.tolist() for i, listed in parents.items()}).static_order():
            reach[:, i] = self.present[:, i] | reach[:, parents[i]].any(axis=1)
        self._reach = reach


def _sum_over_parents(matrix: Mask, present: Mask) -> Index:
    """Return S[a, i], the sum of matrix[a, p] over all parents p of i, or children of i if `present` is transposed."""
    # arcs sorted by child; starts: the first arc of each child that has any
    children, parents = np.nonzero(present.T)
    starts = np.flatnonzero(np.diff(children, prepend=-1))
    total = np.zeros(present.shape, np.intp)
    if len(starts):
        total[:, children[starts]] = np.add.reduceat(matrix[:, parents], starts, axis=1, dtype=np.intp)
    return total
