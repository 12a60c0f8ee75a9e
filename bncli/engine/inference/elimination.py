"""In which order hidden attributes are marginalized: the one that joins the least goes next.

Marginalizing an attribute joins all that it shares a table with. Greedy minimum fill: the next attribute is the one
whose neighbours lack the fewest edges among each other, an edge weighing the product of its ends' cardinalities
(Kjaerulff 1990, Triangulation of graphs). On trees this takes leaves first and joins nothing.

Conventions: of equal fills the smaller table goes first, then the lower index. Cost: O(n d^2) for n attributes with d
neighbours each, on graphs without fill.

Which families of a network a row needs, given what is observed in it.

A hidden node without observed descendants is barren: it sums to 1. Beyond that, P(class | evidence) does without every
part that the evidence separates from the class. Bayes-ball (Shachter 1998, Uncertainty in Artificial Intelligence 14)
finds both at once: a ball starts at the class, and rolls

    hidden node, reached from a child:    on to its parents and its children
    hidden node, reached from a parent:   on to its children
    observed node, reached from a parent: back to its parents
    observed node, reached from a child:  stops

A node's own table is needed if the ball left it upwards. Here all rows are played at once, with one boolean a row.

Cost: a few sweeps over the arcs, about a nanosecond an arc and row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

import numpy as np

from bncli.engine.kernels.arrays import Mask
from bncli.engine.structures.structure import CLASS, Family

Graph = dict[int, set[int]]
Hidden = Mapping[int, Mask]
"""Whether each row hides an attribute, for the attributes that any row hides; the others are observed throughout."""


def elimination_order(cliques: Iterable[Collection[int]], cardinalities: Mapping[int, int]) -> list[int]:
    """Return the attributes of `cardinalities` in the order in which to marginalize them.

    Those of a clique share a table.
    """
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
    """Return the next one; where one needs no fill, those whose cost is out of date wait: none can be cheaper."""
    for node in graph:
        if node not in costs and len(graph[node]) <= 1:
            costs[node] = _cost(graph, node, cardinalities)
    if all(fill for fill, _ in costs.values()):
        costs.update((node, _cost(graph, node, cardinalities)) for node in graph if node not in costs)
    return min(costs, key=lambda node: (*costs[node], node))


def _cost(graph: Graph, node: int, cardinalities: Mapping[int, int]) -> tuple[int, int]:
    """Return weight of the edges that eliminating `node` adds, and the size of its table."""
    fill = sum(
        cardinalities[a] * cardinalities[b] for a, b in itertools.combinations(graph[node], 2) if b not in graph[a]
    )
    return fill, cardinalities[node] * math.prod(cardinalities[other] for other in graph[node])


def _eliminate(graph: Graph, costs: dict[int, tuple[int, int]], node: int) -> None:
    """Join the neighbours of `node` and removes it; forgets the costs that this changes."""
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


def supporting(families: Sequence[Family], hidden: Hidden, n_rows: int) -> list[Mask]:
    """By family: the rows in which it bears on P(class, evidence); in the others its child is barren."""
    parents = _parents(families)
    needed = {node: np.ones(n_rows, bool) for node in parents}
    for attribute, rows in hidden.items():
        needed[attribute] = ~rows
    for node in reversed(_order(parents)):
        for parent in parents[node]:
            if parent in hidden:
                needed[parent] |= needed[node]
    return [needed[family.child] for family in families]


def _parents(families: Sequence[Family]) -> dict[int | None, tuple[int | None, ...]]:
    """Return the network's arcs: the parents of every node, the class among the nodes."""
    parents: dict[int | None, tuple[int | None, ...]] = {CLASS: ()}
    for family in families:
        parents.update((attribute, ()) for attribute in family.attributes)
    for family in families:
        if family.child is None:
            parents[CLASS] = family.attributes
        else:
            parents[family.child] = (CLASS,) * family.by_class + family.attributes[1:]
    return parents


def _order(parents: Mapping[int | None, tuple[int | None, ...]]) -> list[int | None]:
    """Parents before their children."""
    return list(TopologicalSorter(parents).static_order())


def requisite(families: Sequence[Family], hidden: Hidden, n_rows: int) -> list[Mask]:
    """By family: the rows in which it bears on P(class | evidence)."""
    parents = _parents(families)
    order = _order(parents)
    children: dict[int | None, list[int | None]] = {node: [] for node in order}
    for node in order:
        for parent in parents[node]:
            children[parent].append(node)
    up, down = ({node: np.zeros(n_rows, bool) for node in order} for _ in range(2))
    up[CLASS][:] = down[CLASS][:] = True
    attributes = [node for node in order if node is not CLASS]
    before, now = -1, 0
    while now != before:
        before = now
        for node in (*reversed(attributes), *attributes):
            below = _any(up, children[node], n_rows)
            above = _any(down, parents[node], n_rows)
            if node in hidden:
                up[node] |= below & hidden[node]
                up[node] |= above & ~hidden[node]
                down[node] |= (below | above) & hidden[node]
            else:
                up[node] |= above
        now = sum(int(np.count_nonzero(rows)) for balls in (up, down) for rows in balls.values())
    return [up[family.child] for family in families]


def _any(balls: Mapping[int | None, Mask], nodes: Sequence[int | None], n_rows: int) -> Mask:
    found = np.zeros(n_rows, bool)
    for node in nodes:
        found |= balls[node]
    return found
