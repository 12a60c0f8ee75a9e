"""Tree-augmented naive Bayes: each attribute has the class and at most one other attribute as parents.

The tree is the maximum-weight spanning tree over the attributes; with the score `cmi` an edge weighs the conditional
mutual information of its ends given the class, in nats, on weighted relative frequencies:

    I(X_i; X_j | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b | y) / (P(a | y) P(b | y)) ]

Among all trees this one maximises the likelihood (Friedman, Geiger & Goldszmidt 1997, Machine Learning 29). With a
score of families an arc j -> i weighs what it gains, score(i | class, j) - score(i | class). Where the score is
equivalent both directions weigh the same and the spanning tree is the best; where it is not, the best directed tree
over all roots is found instead. A forest need not span: it has only the edges that gain.

Conventions: the root of a tree without directions is its attribute with the highest I(X_i; Y); every tie goes to the
attribute that comes first in the schema. Cost: one counting pass over all pairs; O(n^2) time and memory for weights.

Maximum branchings: the directed trees, arcs away from their roots, of the highest total weight.

Every node takes its heaviest incoming arc. If these make a cycle, the cycle is drawn together into one node, whose
incoming arcs weigh what they gain over the arc of the cycle that they would replace,

    w'(u -> cycle) = max over v in the cycle of w(u -> v) - w(the arc of the cycle into v)

and the search goes on in the smaller graph; its solution opens each cycle at the one place where an arc enters it (Chu
& Liu 1965, Scientia Sinica 14; Edmonds 1967, Journal of Research of the National Bureau of Standards 71B). Nodes are
visited backwards along a growing path, so that every node is drawn together at most once (Gabow, Galil, Spencer &
Tarjan 1986, Combinatorica 6). Where a tree begins is decided by a virtual root with an arc to every node.

Conventions: of equally heavy arcs the one with the lower tail is taken, of equally good roots the lower. These ties are
exact only where sums and differences of weights are, as of whole numbers. Cost: O(n^2) time and memory.

Maximum-weight spanning trees and forests of undirected graphs, and how their edges are given a direction.

Prim's algorithm (1957, Bell System Technical Journal 36) on a dense table of weights. Conventions: edges of equal
weight are taken in the order of their lower, then their higher end; that order makes the tree unique. The edges of
positive weight in it are the spanning forest of highest weight. Cost: O(n^2).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.structure_learners.arc_scores import arc_gains, conditional_dependence, family_score, relevance
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent


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
        """Return the parent of every node, n for the virtual root; an arc into a cycle replaces one of its own."""
        for cycle in reversed(range(self.n, len(self.inside))):
            arc = self.arcs[cycle]
            v = arc[1]
            while self.inside[v] != cycle:
                v = self.inside[v]
            self.arcs[v] = arc
        return [tail for tail, _ in self.arcs[: self.n]]


def learn(counts: Counts, *, structure_score: str = "cmi", forest: bool = False, watch: Watch = silent) -> Dag:
    """Return the best tree, or forest, over the informative attributes, with the class as a parent of each."""
    schema = counts.schema
    parents: list[tuple[int, ...]] = [()] * len(schema.attributes)
    if schema.informative:
        for child, parent in _arcs(counts, structure_score, forest, watch).items():
            parents[child] = (parent,)
    options: dict[str, str | bool] = {"structure_score": structure_score, "forest": forest}
    return Dag(tuple(parents), schema.informative, method="tan", options=options)


def _arcs(counts: Counts, structure_score: str, forest: bool, watch: Watch) -> dict[int, int]:
    """Return the parent of every attribute that has one."""
    if structure_score == "cmi":
        return _undirected(counts, conditional_dependence(counts, watch), forest)
    rule = family_score(structure_score)
    gains = arc_gains(counts, rule, watch)
    return _undirected(counts, gains, forest) if rule.equivalent else _directed(counts, gains, forest)


def _undirected(counts: Counts, weights: Array, forest: bool) -> dict[int, int]:
    nodes = counts.schema.informative
    edges = (spanning_forest if forest else spanning_tree)(weights, nodes)
    scores = relevance(counts)
    # the schema's order decides between equally relevant roots
    return directed_away(edges, sorted(nodes, key=lambda i: (-scores[i], i)))


def _directed(counts: Counts, gains: Array, forest: bool) -> dict[int, int]:
    nodes = counts.schema.informative
    parents = best_branching(gains[np.ix_(nodes, nodes)], forest=forest)
    return {nodes[v]: nodes[u] for v, u in enumerate(parents) if u is not None}


def best_branching(weights: Array, *, forest: bool) -> list[int | None]:
    """Return the parent of every node, None for a root; weights[u, v] of the arc u -> v, finite, the diagonal ignored.

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


def spanning_tree(weights: Array, nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Edges (i, j), i < j, of the maximum-weight spanning tree over `nodes`; weights (n, n) symmetric.

    >>> weights = np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    >>> spanning_tree(weights, (0, 1, 2))
    [(0, 1), (1, 2)]
    """
    w = weights[np.ix_(nodes, nodes)]
    n = len(nodes)
    outside = np.arange(1, n)
    joins = np.zeros(n, np.intp)  # the node of the tree that the best edge of an outside node comes from
    tree = []
    while len(outside):
        low, high = np.minimum(outside, joins[outside]), np.maximum(outside, joins[outside])
        best = np.lexsort((high, low, -w[outside, joins[outside]]))[0]
        new = outside[best]
        tree.append((nodes[low[best]], nodes[high[best]]))
        outside = np.delete(outside, best)
        joins[outside] = np.where(_is_better(w, outside, new, joins[outside]), new, joins[outside])
    return tree


def _is_better(w: Array, nodes: Index, new: int, old: Index) -> Mask:
    """Return whether the edge from each node to `new` comes before its edge to `old`.

    Heavier, or as heavy and lower.
    """
    ends = [(np.minimum(nodes, other), np.maximum(nodes, other)) for other in (new, old)]
    (low, high), (old_low, old_high) = ends
    lower = (low < old_low) | ((low == old_low) & (high < old_high))
    return np.asarray((w[nodes, new] > w[nodes, old]) | ((w[nodes, new] == w[nodes, old]) & lower))


def spanning_forest(weights: Array, nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the edges of positive weight of the maximum-weight spanning tree: no forest over `nodes` weighs more."""
    return [(i, j) for i, j in spanning_tree(weights, nodes) if weights[i, j] > 0]


def directed_away(edges: Iterable[tuple[int, int]], roots: Iterable[int]) -> dict[int, int]:
    """Return the parent of every node but the roots when all edges of a forest point away from them.

    The root of each tree is its first node in `roots`; nodes of trees that have none of them stay out.

    >>> directed_away([(0, 1), (1, 2)], roots=[1])
    {0: 1, 2: 1}
    """
    neighbours: dict[int, list[int]] = {}
    for i, j in edges:
        neighbours.setdefault(i, []).append(j)
        neighbours.setdefault(j, []).append(i)
    parent: dict[int, int] = {}
    for root in roots:
        reached = [] if root in parent else [root]
        for node in reached:
            for other in neighbours.get(node, ()):
                if other != parent.get(node):
                    parent[other] = node
                    reached.append(other)
    return parent
