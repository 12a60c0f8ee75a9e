"""Tree-augmented naive Bayes: each attribute has the class and at most one other attribute as parents.

The tree is the maximum-weight spanning tree over the attributes; an edge weighs the conditional
mutual information of its ends given the class, in nats, on weighted relative frequencies:

    I(X_i; X_j | Y) = sum over a, b, y of P(a, b, y) ln [ P(a, b | y) / (P(a | y) P(b | y)) ]

Among all trees this one maximises the likelihood (Friedman, Geiger & Goldszmidt 1997, Machine Learning 29).

Decided here: the root is the attribute with the highest I(X_i; Y); edges of equal weight are taken in the order of
their lower, then their higher end, so every tie goes to the attribute that comes first in the schema. That order
makes the tree unique, and Prim's algorithm finds it (1957, Bell System Technical Journal 36).
Cost: one counting pass over all pairs; O(n^2) time and memory for the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counts import Counts
from bncli.engine.dependence import conditional_dependence, relevance
from bncli.engine.structure import Dag
from bncli.watch import Watch, silent

Index = NDArray[np.intp]


def learn(counts: Counts, *, watch: Watch = silent) -> Dag:
    """The tree of highest likelihood over the informative attributes, with the class as a parent of each."""
    schema = counts.data.schema
    parents: list[tuple[int, ...]] = [()] * len(schema.attributes)
    if schema.informative:
        edges = spanning_tree(conditional_dependence(counts, watch), schema.informative)
        scores = relevance(counts)
        root = max(schema.informative, key=lambda i: (scores[i], -i))
        for child, parent in directed_away(edges, root).items():
            parents[child] = (parent,)
    return Dag(tuple(parents), schema.informative, method="tan")


def spanning_tree(weights: NDArray[np.float64], nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Edges (i, j), i < j, of the maximum-weight spanning tree over `nodes`; weights (n, n) symmetric."""
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


def _is_better(w: NDArray[np.float64], nodes: Index, new: int, old: Index) -> NDArray[np.bool_]:
    """Whether the edge from each node to `new` comes before its edge to `old`: heavier, or as heavy and lower."""
    ends = [(np.minimum(nodes, other), np.maximum(nodes, other)) for other in (new, old)]
    (low, high), (old_low, old_high) = ends
    lower = (low < old_low) | ((low == old_low) & (high < old_high))
    return np.asarray((w[nodes, new] > w[nodes, old]) | ((w[nodes, new] == w[nodes, old]) & lower))


def directed_away(edges: list[tuple[int, int]], root: int) -> dict[int, int]:
    """The parent of every node but the root when all edges point away from the root."""
    neighbours: dict[int, list[int]] = {root: []}
    for i, j in edges:
        neighbours.setdefault(i, []).append(j)
        neighbours.setdefault(j, []).append(i)
    parent: dict[int, int] = {}
    reached = [root]
    for node in reached:
        for other in neighbours[node]:
            if other != root and other not in parent:
                parent[other] = node
                reached.append(other)
    return parent
