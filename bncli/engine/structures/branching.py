"""Maximum branchings: the directed trees, arcs away from their roots, of the highest total weight.

Every node takes its heaviest incoming arc. If these make a cycle, the cycle is drawn together into one node, whose
incoming arcs weigh what they gain over the arc of the cycle that they would replace,

    w'(u -> cycle) = max over v in the cycle of w(u -> v) - w(the arc of the cycle into v)

and the search goes on in the smaller graph; its solution opens each cycle at the one place where an arc enters it
(Chu & Liu 1965, Scientia Sinica 14; Edmonds 1967, Journal of Research of the National Bureau of Standards 71B).
Nodes are visited backwards along a growing path, so that every node is drawn together at most once (Gabow, Galil,
Spencer & Tarjan 1986, Combinatorica 6). Where a tree begins is decided by a virtual root with an arc to every node.

Conventions: of equally heavy arcs the one with the lower tail is taken, of equally good roots the lower. These ties
are exact only where sums and differences of weights are, as of whole numbers. Cost: O(n^2) time and memory.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array, Index


def best_branching(weights: Array, *, forest: bool) -> list[int | None]:
    """The parent of every node, None for a root; weights[u, v] of the arc u -> v, finite, the diagonal ignored.

    With `forest` any number of trees, and an arc only where it adds weight; else one tree over all nodes.

    >>> weights = np.array([[0.0, 6.0, 1.0], [5.0, 0.0, 2.0], [9.0, 1.0, 0.0]])  # 0 and 1 would choose each other
    >>> best_branching(weights, forest=False)
    [2, 0, None]
    """
    n = len(weights)
    graph = _Graph(weights, forest)
    attached = np.zeros(n + 1, np.bool_)
    attached[n] = True
    for start in range(n):
        path = [] if attached[start] else [start]
        while path:
            tail = graph.take_best(path[-1])
            if attached[tail]:
                attached[path] = True
                path = []
            elif tail in path:
                place = path.index(tail)
                attached[path[place:]] = True  # their places are empty from now on, but for the one that is kept
                path = [*path[:place], graph.draw_together(path[place:])]
                attached[path[-1]] = False
            else:
                path.append(tail)
    return [None if tail == n else tail for tail in graph.expanded()]


class _Graph:
    """A graph of nodes and cycles drawn together, each in a place of the tables; a cycle keeps the place of a member.

    weight, tail, head [u, v]: of the best arc from a node inside u to a node inside v. Row n is the virtual root.
    """

    def __init__(self, weights: Array, forest: bool) -> None:
        n = len(weights)
        self.n, self.forest = n, forest
        self.weight = np.vstack([weights, np.zeros(n)])
        np.fill_diagonal(self.weight, -np.inf)
        self.tail, self.head = (np.array(grid) for grid in np.indices((n + 1, n)))
        self.name = list(range(n))  # of what is in a place: a node's own number; cycles are numbered from n
        self.inside: list[int] = [-1] * n  # by name, the cycle that it was drawn into
        self.arcs: list[tuple[int, int]] = [(n, v) for v in range(n)]  # by name, the arc (tail, head) taken into it
        self.taken = np.zeros(n)  # by place, the weight of that arc

    def take_best(self, v: int) -> int:
        """Take the heaviest arc into v; the place that it comes from."""
        arcs = self.weight[: self.n, v]
        heaviest = arcs.max()
        if heaviest == -np.inf or (self.forest and self.weight[self.n, v] >= heaviest):
            u = self.n
        else:
            equal = np.flatnonzero(arcs == heaviest)
            u = int(equal[self.tail[equal, v].argmin()])
        self.arcs[self.name[v]] = (int(self.tail[u, v]), int(self.head[u, v]))
        self.taken[v] = self.weight[u, v]
        return u

    def draw_together(self, cycle: list[int]) -> int:
        """Put the cycle in place of its first member; that place."""
        members, place = np.array(cycle), cycle[0]
        for v in cycle:
            self.inside[self.name[v]] = len(self.inside)
        self.name[place] = len(self.inside)
        self.inside.append(-1)
        self.arcs.append((self.n, place))
        into, out = self._arcs_into(members), self._arcs_out_of(members)
        tables = (self.weight, self.tail, self.head)
        for table, column, row in zip(tables, into, out, strict=True):
            table[:, place], table[place] = column, row
        self.weight[members[1:]] = -np.inf
        self.weight[:, members[1:]] = -np.inf
        self.weight[place, place] = -np.inf
        return place

    def _arcs_into(self, members: Index) -> tuple[Array, Index, Index]:
        """From each place the arc that gains most over the cycle's own; the lower head, if two gain as much."""
        gains = self.weight[:, members] - self.taken[members]
        best = gains.max(axis=1)
        heads = np.where(gains == best[:, np.newaxis], self.head[:, members], self.n)
        at = members[heads.argmin(axis=1)]
        rows = np.arange(self.n + 1)
        return best, self.tail[rows, at], self.head[rows, at]

    def _arcs_out_of(self, members: Index) -> tuple[Array, Index, Index]:
        """To each place the heaviest arc; the lower tail, if two are as heavy."""
        best = self.weight[members].max(axis=0)
        tails = np.where(self.weight[members] == best, self.tail[members], self.n)
        at = members[tails.argmin(axis=0)]
        columns = np.arange(self.n)
        return best, self.tail[at, columns], self.head[at, columns]

    def expanded(self) -> list[int]:
        """The parent of every node, n for the virtual root: the arc into a cycle replaces one of the cycle's own."""
        for cycle in reversed(range(self.n, len(self.inside))):
            arc = self.arcs[cycle]
            v = arc[1]
            while self.inside[v] != cycle:
                v = self.inside[v]
            self.arcs[v] = arc
        return [tail for tail, _ in self.arcs[: self.n]]
