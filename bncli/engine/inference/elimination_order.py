"""In which order hidden attributes are marginalized: the one that joins the least goes next.

Marginalizing an attribute joins all that it shares a table with. Greedy minimum fill: the next attribute is the one
whose neighbours lack the fewest edges among each other, an edge weighing the product of its ends' cardinalities
(Kjaerulff 1990, Triangulation of graphs). On trees this takes leaves first and joins nothing.

Conventions: of equal fills the smaller table goes first, then the lower index. Cost: O(n d^2) for n attributes with d
neighbours each, on graphs without fill.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping

Graph = dict[int, set[int]]


def elimination_order(cliques: Iterable[Collection[int]], cardinalities: Mapping[int, int]) -> list[int]:
    """The attributes of `cardinalities` in the order in which to marginalize them; those of a clique share a table."""
    graph: Graph = {node: set() for node in cardinalities}
    for clique in cliques:
        for node in clique:
            graph[node].update(other for other in clique if other != node)
    order: list[int] = []
    costs: dict[int, tuple[int, int]] = {}
    while graph:
        order.append(_cheapest(graph, costs, cardinalities))
        _eliminate(graph, costs, order[-1])
    return order


def _cheapest(graph: Graph, costs: dict[int, tuple[int, int]], cardinalities: Mapping[int, int]) -> int:
    """The next one; where one needs no fill, those whose cost is out of date wait: none can be cheaper."""
    for node in graph:
        if node not in costs and len(graph[node]) <= 1:
            costs[node] = _cost(graph, node, cardinalities)
    if all(fill for fill, _ in costs.values()):
        costs.update((node, _cost(graph, node, cardinalities)) for node in graph if node not in costs)
    return min(costs, key=lambda node: (*costs[node], node))


def _cost(graph: Graph, node: int, cardinalities: Mapping[int, int]) -> tuple[int, int]:
    """Weight of the edges that eliminating `node` adds, and the size of its table."""
    fill = sum(
        cardinalities[a] * cardinalities[b] for a, b in itertools.combinations(graph[node], 2) if b not in graph[a]
    )
    return fill, cardinalities[node] * math.prod(cardinalities[other] for other in graph[node])


def _eliminate(graph: Graph, costs: dict[int, tuple[int, int]], node: int) -> None:
    """Joins the neighbours of `node` and removes it; forgets the costs that this changes."""
    neighbours = graph.pop(node)
    costs.pop(node, None)
    changed = set(neighbours)
    for a in neighbours:
        fresh = neighbours - graph[a] - {a}
        if fresh:
            changed |= graph[a] - {node}
        graph[a] |= neighbours
        graph[a] -= {a, node}
    for other in changed:
        costs.pop(other, None)
