"""General Bayesian network by tests of independence: the class is a node like any other and may have parents.

Two nodes are taken to be independent given a set Z of others where they share no more than epsilon:

    I(A; B | Z) <= epsilon,   in bits, on weighted relative frequencies

1. *Drafting*: of the pairs that are dependent given nothing, the strongest first, those that no path joins yet get
   an edge.
2. *Thickening*: each of the other such pairs gets an edge unless some cut-set makes it independent.
3. *Thinning*: each edge whose ends another path joins goes if some cut-set makes them independent without it.
4. *Orientation*: v-structures as the cut-sets show them, then what follows, then from lower to higher index.

`structures.separation` tells how a cut-set is looked for, `bncli.engine.structure_learners.gbn` how directions are
given.

With enough rows, and where every edge is stronger than epsilon, this finds the edges of the network that the rows were
drawn from (Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137; their PowerConstructor, as a
classifier: Cheng & Greiner 1999, UAI). Relative frequencies make I(A; B | Z) too high by about
(|A| - 1)(|B| - 1)|Z| / 2N nats, until the rows are so few that no two agree on Z and it falls to 0. So with many values
there are too many edges, and a larger epsilon is better; with large cut-sets edges are missed. Under `--missing-policy
marginalize`, each I is that of the rows in which all its attributes are observed.

Conventions: the nodes are the class and the informative attributes. The class is the lowest, so that an edge with no
reason for either direction leads away from it. Thinning takes the weakest edge first; pairs that tie are taken in the
order of their lower, then their higher end. Parents are listed in falling I(X_i; X_j | Y), those of the class in
falling I(X_j; Y). Attributes far from the class keep their arcs, though P(y | x) does not depend on them. Cost: one
counting pass over all pairs; then O(m^2) passes for each dependent pair that paths through m neighbours join.

Which nodes, once known, make two nodes of an undirected graph independent: the search for a cut-set.

Two nodes that do not touch are independent given nodes that block every path between them. The sets tried are

    the neighbours of one end that lie on paths to the other end, for either end;
    the same with those neighbours' own neighbours on such paths, for either end

(Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137). A node that both ends cause must not be known, so
a set is shrunk node by node, each time by the one that leaves the lowest I(A; B | Z), until that is at most the
threshold.

Conventions: shrinking fails where every removal raises the information; small sets are tried first, of equally many
nodes that of the lower end; of removals that tie, the lowest index goes. Cost: O(m^2) questions for a set of m nodes.

From the undirected graph of a constraint-based learner to a directed one without cycles.

1. Two nodes a, b that are not joined but have a common neighbour c: where their cut-set lacks c, and c beside it
makes
   them dependent, I(a; b | cut-set, c) > threshold, they cause it together, a -> c <- b: a *v-structure*.
2. An edge whose one direction would close a cycle, or make a v-structure that the data did not show, at once or by
what
   must follow, gets the other (the rules of Meek 1995, UAI).
3. Where nothing decides, the first edge goes from its lower to its higher end; then 2 again, until all have
directions.

Conventions: the second condition of 1, since along a chain of weak edges the ends seem independent whether or not the
middle is known, and such chains are many (on random networks it halves the v-structures found and loses hardly a true
one). V-structures are taken in the order of falling I(a; b | cut-set, c) (ties: lower c, then lower ends); one that
would turn an arc or close a cycle is left out. Cost: one question for each pair with a common neighbour.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import conditional_mutual_information, mutual_information, rounded
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.structure_learners.partial_dependence import CLASS_NODE, PartialDependence
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent

Node = int
Graph = Mapping[Node, set[Node]]
"""The neighbours of every node."""
CutSet = frozenset[Node]
Information = Callable[[Node, Node, Sequence[CutSet]], list[float]]
"""I(A; B | Z) of two nodes for each of several sets Z."""
Edge = tuple[Node, Node]


class _Arcs:
    """The directions given so far; never a cycle."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parents: dict[Node, set[Node]] = {node: set() for node in graph}
        self.open = {(a, b) for a in graph for b in graph[a] if a < b}
        self._below: dict[Node, set[Node]] = {node: {node} for node in graph}

    def may_point(self, a: Node, b: Node) -> bool:
        """Return whether the edge leads from a to b, or may."""
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


class _Search:
    """The graph as it grows and shrinks, and the cut-sets of the nodes that it does not join; threshold in nats."""

    def __init__(self, strengths: dict[Edge, float], information: Information, threshold: float) -> None:
        self.strengths, self.information, self.threshold = strengths, information, threshold
        self.graph: dict[Node, set[Node]] = {node: set() for pair in strengths for node in pair}
        self.cut_sets: dict[Edge, CutSet] = {}

    def draft(self) -> list[Edge]:
        """Join the dependent pairs to a forest, the strongest first; those that a longer path joins are returned."""
        self.cut_sets = {pair: frozenset() for pair, strength in self.strengths.items() if strength <= self.threshold}
        left_out = []
        tree = {node: node for node in self.graph}
        for a, b in sorted(self.strengths.keys() - self.cut_sets, key=lambda pair: (-self.strengths[pair], pair)):
            if tree[a] == tree[b]:
                left_out.append((a, b))
            else:
                self._join(a, b)
                tree = {node: tree[a] if root == tree[b] else root for node, root in tree.items()}
        return left_out

    def thicken(self, left_out: list[Edge], watch: Watch) -> None:
        """Join each of these pairs that no cut-set separates."""
        for done, (a, b) in enumerate(left_out):
            watch(Progress(done, len(left_out), "pairs without an edge"))
            if not self._is_separated(a, b):
                self._join(a, b)

    def thin(self, watch: Watch) -> None:
        """Take away each edge that a cut-set makes needless, the weakest first."""
        edges = sorted(
            (pair for pair in self.strengths if pair[1] in self.graph[pair[0]]), key=self.strengths.__getitem__
        )
        for done, (a, b) in enumerate(edges):
            watch(Progress(done, len(edges), "edges"))
            self.graph[a].remove(b)
            self.graph[b].remove(a)
            # no other path: the edge is all that carries their dependence
            if not joined(self.graph, a, b) or not self._is_separated(a, b):
                self._join(a, b)

    def _is_separated(self, a: Node, b: Node) -> bool:
        found = cut_set(self.graph, a, b, self.information, self.threshold)
        if found is not None:
            self.cut_sets[a, b] = found
        return found is not None

    def _join(self, a: Node, b: Node) -> None:
        self.graph[a].add(b)
        self.graph[b].add(a)


def learn(counts: Counts, *, epsilon: float, watch: Watch = silent) -> Dag:
    """Return the network over the class and the informative attributes; `epsilon` in bits."""
    if any(counts.data.n_missing):
        watch(Note("gbn tests every independence on the rows that have all attributes of the test"))
    relevant = relevance(counts)
    unconditional, conditional = _pairs(counts, watch)
    # The mutual information of every pair (lower, higher), nats.
    informative = counts.data.schema.informative
    strengths = {(CLASS_NODE, i): float(relevant[i]) for i in informative}
    strengths.update(((i, j), float(unconditional[i, j])) for i in informative for j in informative if i < j)
    search = _Search(strengths, PartialDependence(counts.data).given, epsilon * math.log(2))
    search.thicken(search.draft(), watch)
    search.thin(watch)
    parents = orient(search.graph, search.cut_sets, search.information, search.threshold)

    def listed(node: Node, strengths: Array) -> tuple[Node, ...]:
        attributes = parents.get(node, set()) - {CLASS_NODE}
        return tuple(sorted(attributes, key=lambda j: (-strengths[j], j)))

    children = tuple(i for i in counts.data.schema.informative if CLASS_NODE in parents.get(i, ()))
    of_attributes = tuple(listed(i, conditional[i]) for i in range(len(relevant)))
    return Dag(of_attributes, children, listed(CLASS_NODE, relevant), "gbn", {"epsilon": epsilon})


def _pairs(counts: Counts, watch: Watch) -> tuple[Array, Array]:
    """Return I(X_i; X_j) and I(X_i; X_j | Y) of all pairs of attributes, rounded nats, (n, n)."""
    n = len(counts.data.schema.attributes)
    plain, given_class = np.zeros((n, n)), np.zeros((n, n))
    for i, j, tables in counts.pair_batches(counts.data.schema.informative, watch):
        plain[i, j] = plain[j, i] = mutual_information(tables.sum(axis=-1))
        given_class[i, j] = given_class[j, i] = conditional_mutual_information(tables)
    return rounded(plain), rounded(given_class)


def cut_set(graph: Graph, a: Node, b: Node, information: Information, threshold: float) -> CutSet | None:
    """Return nodes given which a and b share no more than `threshold`; None where the search finds none.

    The graph does not join a and b themselves. They are dependent given nothing.
    """
    for candidate in _candidates(graph, a, b):
        found = _shrink(candidate, a, b, information, threshold)
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


def _shrink(candidate: CutSet, a: Node, b: Node, information: Information, threshold: float) -> CutSet | None:
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
    """Return the nodes between a and b on paths that visit no node twice.

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
    """Return a, b and what b reaches without passing a, depth first; and the node that each was reached from."""
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
    """Return whether a path leads from a to b."""
    reached, waiting = {a}, [a]
    while waiting:
        fresh = graph[waiting.pop()] - reached
        reached |= fresh
        waiting.extend(fresh)
    return b in reached


def orient(
    graph: Graph, cut_sets: Mapping[Edge, CutSet], information: Information, threshold: float
) -> dict[Node, set[Node]]:
    """Return the parents of every node; `cut_sets` of all pairs (lower, higher) of nodes that are not joined."""
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
    """Return (a, b, c) of a -> c <- b, the strongest first."""
    found = []
    for c in sorted(graph):
        for a, b in itertools.combinations(sorted(graph[c]), 2):
            if b not in graph[a] and c not in cut_sets[a, b]:
                (shared,) = information(a, b, [cut_sets[a, b] | {c}])
                if shared > threshold:
                    found.append((-shared, c, a, b))
    return [(a, b, c) for _, c, a, b in sorted(found)]
