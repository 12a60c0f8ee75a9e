"""From the undirected graph of a constraint-based learner to a directed one without cycles.

1. Two nodes a, b that are not joined but have a common neighbour c: where their cut-set lacks c, and c beside it makes
   them dependent, I(a; b | cut-set, c) > threshold, they cause it together, a -> c <- b: a *v-structure*.
2. An edge whose one direction would close a cycle, or make a v-structure that the data did not show, at once or by what
   must follow, gets the other (the rules of Meek 1995, UAI).
3. Where nothing decides, the first edge goes from its lower to its higher end; then 2 again, until all have directions.

Conventions: the second condition of 1, since along a chain of weak edges the ends seem independent whether or not the
middle is known, and such chains are many (on random networks it halves the v-structures found and loses hardly a true
one). V-structures are taken in the order of falling I(a; b | cut-set, c) (ties: lower c, then lower ends); one that
would turn an arc or close a cycle is left out. Cost: one question for each pair with a common neighbour.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bncli.engine.structures.separation import CutSet, Graph, Information, Node

Edge = tuple[Node, Node]


def orient(
    graph: Graph, cut_sets: Mapping[Edge, CutSet], information: Information, threshold: float
) -> dict[Node, set[Node]]:
    """The parents of every node; `cut_sets` of all pairs (lower, higher) of nodes that are not joined."""
    arcs = _Arcs(graph)
    for a, b, c in _v_structures(graph, cut_sets, information, threshold):
        if arcs.may_point(a, c) and arcs.may_point(b, c):
            arcs.point(a, c)
            arcs.point(b, c)
    arcs.follow()
    while arcs.open:
        arcs.point(*min(arcs.open))
        arcs.follow()
    return arcs.parents


def _v_structures(
    graph: Graph, cut_sets: Mapping[Edge, CutSet], information: Information, threshold: float
) -> list[tuple[Node, Node, Node]]:
    """(a, b, c) of a -> c <- b, the strongest first."""
    found = []
    for c in sorted(graph):
        for a, b in itertools.combinations(sorted(graph[c]), 2):
            if b not in graph[a] and c not in cut_sets[a, b]:
                (shared,) = information(a, b, [cut_sets[a, b] | {c}])
                if shared > threshold:
                    found.append((-shared, c, a, b))
    return [(a, b, c) for _, c, a, b in sorted(found)]


class _Arcs:
    """The directions given so far; never a cycle."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parents: dict[Node, set[Node]] = {node: set() for node in graph}
        self.open = {(a, b) for a in graph for b in graph[a] if a < b}
        self._below: dict[Node, set[Node]] = {node: {node} for node in graph}

    def may_point(self, a: Node, b: Node) -> bool:
        """Whether the edge leads from a to b, or may."""
        return a not in self._below[b]

    def point(self, a: Node, b: Node) -> None:
        """Give the edge of a and b the direction from a to b."""
        self.open.discard((min(a, b), max(a, b)))
        self.parents[b].add(a)
        for below in self._below.values():
            if a in below:
                below |= self._below[b]

    def follow(self) -> None:
        """Give directions to all edges that have no choice, lower ones first, until all that are open have one."""
        decided = True
        while decided:
            decided = False
            for a, b in sorted(self.open):
                one, other = self._is_refused(a, b), self._is_refused(b, a)
                if one != other:
                    self.point(*((b, a) if one else (a, b)))
                    decided = True

    def _is_refused(self, a: Node, b: Node) -> bool:
        """Whether a -> b would close a cycle, or give b two parents that are not joined and were not both so before.

        What lies above a and is joined to b becomes a parent of b, too, since the other way would close a cycle.
        A cycle weighs more: where the other direction would close one, this direction is not refused.
        """
        if not self.may_point(a, b) or not self.may_point(b, a):
            return not self.may_point(a, b)
        new = {node for node in self.graph[b] if a in self._below[node]} - self.parents[b]
        return any(other not in self.graph[node] for node in new for other in (new | self.parents[b]) - {node})
