"""Maximum-weight spanning trees and forests of undirected graphs, and how their edges are given a direction.

Prim's algorithm (1957, Bell System Technical Journal 36) on a dense table of weights. Conventions: edges of equal
weight are taken in the order of their lower, then their higher end; that order makes the tree unique. The edges of
positive weight in it are the spanning forest of highest weight. Cost: O(n^2).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask


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
    """Whether the edge from each node to `new` comes before its edge to `old`: heavier, or as heavy and lower."""
    ends = [(np.minimum(nodes, other), np.maximum(nodes, other)) for other in (new, old)]
    (low, high), (old_low, old_high) = ends
    lower = (low < old_low) | ((low == old_low) & (high < old_high))
    return np.asarray((w[nodes, new] > w[nodes, old]) | ((w[nodes, new] == w[nodes, old]) & lower))


def spanning_forest(weights: Array, nodes: tuple[int, ...]) -> list[tuple[int, int]]:
    """The edges of positive weight of the maximum-weight spanning tree: no forest over `nodes` weighs more."""
    return [(i, j) for i, j in spanning_tree(weights, nodes) if weights[i, j] > 0]


def directed_away(edges: Iterable[tuple[int, int]], roots: Iterable[int]) -> dict[int, int]:
    """The parent of every node but the roots when all edges of a forest point away from them.

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
