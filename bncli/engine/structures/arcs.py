"""A directed acyclic graph that a greedy search changes arc by arc, and the changes that it allows.

Three changes: an arc is added, deleted, or reversed. Which of them keep the graph acyclic, and which keep it perfect
(every two parents of a common child are joined; here by an arc, the class being everybody's parent), is answered for
all arcs at once, as matrices [parent, child]. With A the arcs and R[a, b] = there is a way from a to b:

- adding j -> i makes a cycle where R[i, j]; reversing it where another parent p of i has R[j, p];
- j may become a parent of i in a perfect graph where it is joined to all |P_i| parents of i:
  sum over p of (A + A^T)[j, p] A[p, i] = |P_i|; a reversal of i -> j asks the same, the joints staying;
- an arc j -> i must stay in a perfect graph where j and i have a common child: sum over c of A[j, c] A[i, c] > 0.

Cost of an answer: n times the number of arcs; R is mended after an addition in O(n^2), rebuilt after other changes.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Index, Mask


class Arcs:
    """The arcs over n nodes, and what may be changed; `present[j, i]` says whether j is a parent of i.

    Nobody gets more than `max_parents`, and with `perfect` the graph stays perfect.
    """

    def __init__(self, n: int, *, max_parents: int, perfect: bool) -> None:
        self._max_parents, self._perfect = max_parents, perfect
        self.present: Mask = np.zeros((n, n), np.bool_)
        self._reach: Mask = np.zeros((n, n), np.bool_)

    def parents(self, child: int) -> frozenset[int]:
        return frozenset(np.flatnonzero(self.present[:, child]).tolist())

    def may_add(self) -> Mask:
        """Arcs j -> i that may be added."""
        # an arc to where the child already leads would close a cycle
        impossible = self.present | self._reach.T | np.eye(len(self.present), dtype=np.bool_)
        return np.asarray(~impossible & self._takes())

    def may_delete(self) -> Mask:
        """Arcs j -> i that may be deleted."""
        if not self._perfect:
            return self.present.copy()
        return np.asarray(self.present & (_over_parents(self.present, self.present.T) == 0))

    def may_reverse(self) -> Mask:
        """Arcs j -> i that may become i -> j."""
        return np.asarray(self.present & (_over_parents(self._reach, self.present) == 0) & self._takes().T)

    def _takes(self) -> Mask:
        """Whether i has room for one more parent and, in a perfect graph, j is joined to all that it has."""
        n_parents = self.present.sum(axis=0)
        room = np.broadcast_to(n_parents < self._max_parents, self.present.shape)
        if not self._perfect:
            return room
        joined = self.present | self.present.T
        return np.asarray(room & (_over_parents(joined, self.present) == n_parents))

    def add(self, parent: int, child: int) -> None:
        above, below = self._reach[:, parent].copy(), self._reach[child].copy()
        above[parent] = below[child] = True
        self._reach |= np.outer(above, below)
        self.present[parent, child] = True

    def delete(self, parent: int, child: int) -> None:
        self.present[parent, child] = False
        # what a deleted arc led to may still be reached along other ways: only a new count can tell
        self._reach = _reachable(self.present)

    def reverse(self, parent: int, child: int) -> None:
        self.delete(parent, child)
        self.add(child, parent)


def _over_parents(matrix: Mask, present: Mask) -> Index:
    """sum over the parents p of i of matrix[a, p], shape [a, i]; with `present` transposed: over the children of i."""
    children, parents = np.nonzero(present.T)
    starts = np.flatnonzero(np.diff(children, prepend=-1))
    total = np.zeros(present.shape, np.intp)
    if len(starts):
        total[:, children[starts]] = np.add.reduceat(matrix[:, parents], starts, axis=1, dtype=np.intp)
    return total


def _reachable(present: Mask) -> Mask:
    """R of an acyclic graph: each node, its parents first, is reached from them and from where they are reached."""
    from graphlib import TopologicalSorter

    listed = {i: np.flatnonzero(column) for i, column in enumerate(present.T)}
    reach = np.zeros_like(present)
    for i in TopologicalSorter({i: parents.tolist() for i, parents in listed.items()}).static_order():
        reach[:, i] = present[:, i] | reach[:, listed[i]].any(axis=1)
    return reach
