"""Tree-augmented naive Bayes (TAN): each attribute has the class and at most one other attribute as parents.

The tree is the maximum-weight spanning tree over the attributes. With the score `cmi`, the weight of an edge is the
conditional mutual information of its ends given the class, in nats, on weighted relative frequencies:

    I(X_i; X_j | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b | y) / (P(a | y) P(b | y)) ]

This tree maximises the likelihood among all trees (Friedman, Geiger & Goldszmidt 1997, Machine Learning 29). With
another score, the weight of an arc j -> i is its gain, score(i | class, j) - score(i | class). If the score is
equivalent, both directions have the same weight and the spanning tree is the best tree; if not, the best directed tree
over all roots is found instead (`best_branching`). A forest need not span: it has only edges of positive weight.

Conventions: the root of an undirected tree is its attribute with the highest I(X_i; Y). Every tie goes to the attribute
that comes first in the schema. Cost: one counting pass over all pairs; O(n^2) time and memory for the weights.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array, Mask
from bncli.engine.kernels.information import SIGNIFICANT_DIGITS
from bncli.engine.structure_learners.dependence import arc_gains, conditional_dependence, relevance
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.scores import parse_score
from bncli.engine.structures.structure import Dag
from bncli.errors import UsageError
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    *,
    structure_score: str = "cmi",
    forest: bool = False,
    constraints: ArcConstraints | None = None,
    watch: Watch = silent,
) -> Dag:
    """Return the best tree, or forest, over the informative attributes, each of which also has the class as a parent.

    With constraints, it is the best tree that obeys them, or as few trees as possible if no single tree does. Raises
    UsageError if they require more than one parent of an attribute.
    """
    nodes = counts.schema.informative
    score = None if structure_score == "cmi" else parse_score(structure_score)
    parent_of: dict[int, int] = {}
    if nodes:
        weights = conditional_dependence(counts, watch) if score is None else arc_gains(counts, score, watch)
        if score is None or score.equivalent:
            edges = spanning_tree(weights, nodes, forest=forest)
            scores = relevance(counts)
            # ties between roots go to the attribute that comes first in the schema
            parent_of = directed_away(edges, sorted(nodes, key=lambda i: (-scores[i], i)))
        else:
            branching = best_branching(weights[np.ix_(nodes, nodes)], forest=forest)
            parent_of = {nodes[v]: nodes[u] for v, u in enumerate(branching) if u is not None}
        if constraints is not None:
            parent_of = _constrained_tree(parent_of, weights, counts, constraints, forest=forest)
    parents = tuple((parent_of[i],) if i in parent_of else () for i in range(len(counts.schema.attributes)))
    options: dict[str, str | bool] = {"structure_score": structure_score, "forest": forest}
    return Dag(parents, nodes, method="tan", options=options)


def _constrained_tree(
    unconstrained: dict[int, int], weights: Array, counts: Counts, constraints: ArcConstraints, *, forest: bool
) -> dict[int, int]:
    """Return the parent of each child in the best directed trees that obey the constraints.

    These are the unconstrained trees if they obey the constraints. Nodes are sorted by decreasing I(X_i; Y), so that
    among equally good roots the one with the highest is taken. Weights are rounded to the twelfth significant digit of
    the largest and scaled to integers, so that their sums are exact. Raises UsageError if an attribute has more than
    one required parent.
    """
    n = len(constraints.names)
    parents = tuple((unconstrained[i],) if i in unconstrained else () for i in range(n))
    if constraints.is_obeyed(Dag(parents, tuple(range(n)))):
        return unconstrained
    relevant = relevance(counts)
    order = sorted(counts.schema.informative, key=lambda i: (-relevant[i], i))
    # node v of the search is order[v]
    sub_matrix = np.ix_(order, order)
    allowed, required = constraints.allowed[sub_matrix], constraints.required[sub_matrix]
    if constraints.max_parents == 0:
        allowed = np.zeros_like(allowed)
    for v, n_required in enumerate(required.sum(axis=0)):
        if n_required > 1:
            what = f"--knowledge requires {n_required} parents of {constraints.names[order[v]]!r}, but tan allows one"
            raise UsageError(what, hint="use --structure kdb or hill-climb")
    has_required: Mask = np.asarray(required.any(axis=0))
    # a node with a required parent has no other choice
    allowed = np.where(has_required, required, allowed)
    largest = np.abs(weights[sub_matrix]).max(initial=0.0)
    scale = 10.0 ** min(SIGNIFICANT_DIGITS - np.ceil(np.log10(largest)), 300.0) if largest > 0 else 1.0
    limited = np.where(allowed, np.rint(weights[sub_matrix] * scale), -np.inf)
    branching = best_branching(limited, forest=forest, rooted=np.logical_not(has_required))
    return {order[v]: order[u] for v, u in enumerate(branching) if u is not None}


def spanning_tree(weights: Array, nodes: tuple[int, ...], *, forest: bool = False) -> list[tuple[int, int]]:
    """Return the edges (i, j), i < j, of the maximum-weight spanning tree over `nodes`; weights (n, n) symmetric.

    Prim's algorithm (1957, Bell System Technical Journal 36) on a dense table of weights. Edges of equal weight are
    taken in the order of their lower, then their higher end, which makes the tree unique. With `forest`, only the edges
    of positive weight are returned; no forest weighs more. Cost: O(n^2).

    >>> weights = np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    >>> spanning_tree(weights, (0, 1, 2))
    [(0, 1), (1, 2)]
    """
    w = weights[np.ix_(nodes, nodes)]
    n = len(nodes)
    # the tree starts with node 0; which node does not matter
    outside = np.arange(1, n)
    nearest = np.zeros(n, np.intp)  # the end inside the tree of the best edge to each node outside it
    tree = []
    while len(outside):
        old = nearest[outside]
        low, high = np.minimum(outside, old), np.maximum(outside, old)
        # heaviest first (ties: lower, then higher end)
        best = np.lexsort((high, low, -w[outside, old]))[0]
        new = outside[best]
        tree.append((nodes[low[best]], nodes[high[best]]))
        outside = np.delete(outside, best)
        # The edge to the new node replaces the old one if it is heavier, or as heavy and lower.
        old = nearest[outside]
        low, high = np.minimum(outside, new), np.maximum(outside, new)
        old_low, old_high = np.minimum(outside, old), np.maximum(outside, old)
        lower = (low < old_low) | ((low == old_low) & (high < old_high))
        better = (w[outside, new] > w[outside, old]) | ((w[outside, new] == w[outside, old]) & lower)
        nearest[outside] = np.where(better, new, old)
    return [(i, j) for i, j in tree if weights[i, j] > 0] if forest else tree


def directed_away(edges: Iterable[tuple[int, int]], roots: Iterable[int]) -> dict[int, int]:
    """Direct all edges of a forest away from its roots; return the parent of every node except the roots.

    The root of each tree is its first node in `roots`; trees without such a node are left out.

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
        # breadth-first: `reached` grows while it is read
        for node in reached:
            for other in neighbours.get(node, ()):
                if other != parent.get(node):
                    parent[other] = node
                    reached.append(other)
    return parent


def best_branching(weights: Array, *, forest: bool, rooted: Mask | None = None) -> list[int | None]:
    """Return the parent of every node, None for a root, in the directed trees of highest total weight.

    weights[u, v] is the weight of the arc u -> v, -inf if it is not allowed; the diagonal is ignored. `rooted` is True
    for nodes that may be roots (all by default); every other node needs an allowed incoming arc. With `forest` there
    may be any number of trees, and an arc into a node that may be a root has positive weight or is left out; otherwise
    there are as few trees as the arcs allow, one if all are allowed.

    Every node takes its heaviest incoming arc. If these arcs form a cycle, the cycle is contracted to one node. The
    weight of an arc into it is its gain over the arc of the cycle that it would replace,

        w'(u -> cycle) = max over v in the cycle of w(u -> v) - w(the arc of the cycle into v)

    and the search continues in the smaller graph. Its solution opens each cycle where an arc enters it (Chu & Liu 1965,
    Scientia Sinica 14; Edmonds 1967, Journal of Research of the National Bureau of Standards 71B). Nodes are visited
    backwards along a growing path, so that every node is contracted at most once (Gabow, Galil, Spencer & Tarjan 1986,
    Combinatorica 6). A virtual root with an arc to every node represents the choice of roots.

    Ties between arcs go to the lower tail, ties between roots to the lower node. Ties are recognised only if sums and
    differences of weights are exact, as with integers. Cost: O(n^2) time and memory.

    >>> weights = np.array([[0.0, 6.0, 1.0], [5.0, 0.0, 2.0], [9.0, 1.0, 0.0]])  # 0 and 1 would choose each other
    >>> best_branching(weights, forest=False)
    [2, 0, None]
    """
    n = len(weights)
    graph = _ContractedGraph(weights, forest)
    if rooted is not None:
        graph.weight[n, ~rooted] = -np.inf
    attached = np.zeros(n + 1, np.bool_)
    attached[n] = True
    for start in range(n):
        path = [] if attached[start] else [start]
        while path:
            tail = graph.take_best_arc(path[-1])
            # the path leads to the virtual root: its arcs are final
            if attached[tail]:
                attached[path] = True
                path = []
            elif tail in path:
                place = path.index(tail)
                attached[path[place:]] = True  # these slots are now empty, except the one that holds the cycle
                path = [*path[:place], graph.contract(path[place:])]
                attached[path[-1]] = False
            else:
                path.append(tail)
    return [None if tail == n else tail for tail in graph.parents()]


class _ContractedGraph:
    """A graph of nodes and contracted cycles, each in a slot of the tables; a cycle takes the slot of a member.

    weight, tail and head [u, v] describe the best arc from a node in slot u to a node in slot v. Row n is the virtual
    root. `name` has the node in each slot, or the cycle; cycles have the numbers n, n + 1, ....
    """

    def __init__(self, weights: Array, forest: bool) -> None:
        n = len(weights)
        self.n, self.forest = n, forest
        self.weight = np.vstack([weights, np.zeros(n)])
        np.fill_diagonal(self.weight, -np.inf)
        self.tail, self.head = (np.array(grid) for grid in np.indices((n + 1, n)))
        self.name = list(range(n))
        self.inside: list[int] = [-1] * n  # for each name, the cycle into which it was contracted
        self.arcs: list[tuple[int, int]] = [(n, v) for v in range(n)]  # for each name, the arc (tail, head) into it
        self.taken = np.zeros(n)  # for each slot, the weight of that arc

    def take_best_arc(self, v: int) -> int:
        """Take the heaviest arc into slot v, and return the slot that it comes from."""
        weights = self.weight[: self.n, v]
        # the virtual root is the last resort, except in a forest, where it wins unless another arc is heavier
        heaviest = weights.max()
        if heaviest == -np.inf or (self.forest and self.weight[self.n, v] >= heaviest):
            u = self.n
        else:
            equal = np.flatnonzero(weights == heaviest)
            u = int(equal[self.tail[equal, v].argmin()])
        self.arcs[self.name[v]] = (int(self.tail[u, v]), int(self.head[u, v]))
        self.taken[v] = self.weight[u, v]
        return u

    def contract(self, cycle: list[int]) -> int:
        """Contract the slots of a cycle into the first one, and return that slot."""
        members, slot = np.array(cycle), cycle[0]
        # the members are now inside a cycle, which takes the next number
        for v in cycle:
            self.inside[self.name[v]] = len(self.inside)
        self.name[slot] = len(self.inside)
        self.inside.append(-1)
        self.arcs.append((self.n, slot))
        # From each slot, the arc into the cycle is the one that gains most over the cycle's own (ties: the lower head).
        gains = self.weight[:, members] - self.taken[members]
        best_in = gains.max(axis=1)
        heads = np.where(gains == best_in[:, np.newaxis], self.head[:, members], self.n)
        at = (np.arange(self.n + 1), members[heads.argmin(axis=1)])
        arcs_in = (best_in, self.tail[at], self.head[at])
        # To each slot, the arc out of the cycle is the heaviest (ties: the lower tail).
        best_out = self.weight[members].max(axis=0)
        tails = np.where(self.weight[members] == best_out, self.tail[members], self.n)
        at = (members[tails.argmin(axis=0)], np.arange(self.n))
        arcs_out = (best_out, self.tail[at], self.head[at])
        for table, column, row in zip((self.weight, self.tail, self.head), arcs_in, arcs_out, strict=True):
            table[:, slot], table[slot] = column, row
        self.weight[members[1:]] = -np.inf
        self.weight[:, members[1:]] = -np.inf
        self.weight[slot, slot] = -np.inf
        return slot

    def parents(self) -> list[int]:
        """Return the parent of each node; n is the virtual root.

        Each contracted cycle is expanded: the arc that enters it replaces the arc of the cycle into the same node.
        """
        # cycles from the last contracted to the first, since an inner one may be part of an outer one
        for cycle in reversed(range(self.n, len(self.inside))):
            arc = self.arcs[cycle]
            v = arc[1]
            # the member of this cycle, a node or an inner cycle, that contains the head of the arc
            while self.inside[v] != cycle:
                v = self.inside[v]
            self.arcs[v] = arc
        return [tail for tail, _ in self.arcs[: self.n]]
