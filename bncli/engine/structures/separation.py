"""Which nodes, once known, make two nodes of an undirected graph independent: the search for a cut-set.

Two nodes that do not touch are independent given nodes that block every path between them. The sets tried are

    the neighbours of one end that lie on paths to the other end, for either end;
    the same with those neighbours' own neighbours on such paths, for either end

(Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137). A node that both ends cause must not be known,
so a set is shrunk node by node, each time by the one that leaves the lowest I(A; B | Z), until that is at most the
threshold.

Conventions: shrinking fails where every removal raises the information; small sets are tried first, of equally many
nodes that of the lower end; of removals that tie, the lowest index goes. Cost: O(m^2) questions for a set of m nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

Node = int
Graph = Mapping[Node, set[Node]]
"""The neighbours of every node."""
CutSet = frozenset[Node]
Information = Callable[[Node, Node, Sequence[CutSet]], list[float]]
"""I(A; B | Z) of two nodes for each of several sets Z."""


def cut_set(graph: Graph, a: Node, b: Node, information: Information, threshold: float) -> CutSet | None:
    """Nodes given which a and b share no more than `threshold`; None where the search finds none.

    The graph does not join a and b themselves. They are dependent given nothing.
    """
    for candidate in _candidates(graph, a, b):
        found = _shrunk(candidate, a, b, information, threshold)
        if found is not None:
            return found
    return None


def _candidates(graph: Graph, a: Node, b: Node) -> Iterator[CutSet]:
    between = on_paths(graph, a, b)
    near = [frozenset(graph[end] & between) for end in (a, b)]
    wide = [s.union(*(graph[node] & between for node in s)) for s in near]
    tried: set[CutSet] = {frozenset()}
    for sets in (near, wide):
        for candidate in sorted(sets, key=len):
            if candidate not in tried:
                yield candidate
            tried.add(candidate)


def _shrunk(candidate: CutSet, a: Node, b: Node, information: Information, threshold: float) -> CutSet | None:
    (shared,) = information(a, b, [candidate])
    while shared > threshold and len(candidate) > 1:
        smaller = [candidate - {node} for node in sorted(candidate)]
        answers = information(a, b, smaller)
        least = min(range(len(smaller)), key=answers.__getitem__)
        if answers[least] > shared:
            break
        candidate, shared = smaller[least], answers[least]
    return candidate if shared <= threshold else None


def on_paths(graph: Graph, a: Node, b: Node) -> set[Node]:
    """The nodes between a and b on paths that visit no node twice.

    With an edge from a to b added, these are the other nodes of that edge's biconnected component, found by one depth-
    first walk that takes this edge first (Hopcroft & Tarjan 1973, Communications of the ACM 16).
    """
    order, above = _walk(graph, a, b)
    place = {node: p for p, node in enumerate(order)}
    highest = {b: 0} | {node: min(place[other] for other in graph[node] if other in place) for node in order[2:]}
    for node in reversed(order[2:]):
        highest[above[node]] = min(highest[above[node]], highest[node])
    inside = {b}
    for node in order[2:]:
        if above[node] in inside and highest[node] < place[above[node]]:
            inside.add(node)
    return inside - {b}


def _walk(graph: Graph, a: Node, b: Node) -> tuple[list[Node], dict[Node, Node]]:
    """a, b and what b reaches without passing a, depth first; and the node that each was reached from."""
    order, above = [a, b], {b: a}
    path = [(b, iter(sorted(graph[b])))]
    while path:
        node, others = path[-1]
        following = next((other for other in others if other != a and other not in above), None)
        if following is None:
            path.pop()
        else:
            order.append(following)
            above[following] = node
            path.append((following, iter(sorted(graph[following]))))
    return order, above


def joined(graph: Graph, a: Node, b: Node) -> bool:
    """Whether a path leads from a to b."""
    reached, waiting = {a}, [a]
    while waiting:
        fresh = graph[waiting.pop()] - reached
        reached |= fresh
        waiting.extend(fresh)
    return b in reached
