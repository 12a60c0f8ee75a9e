"""General Bayesian network by tests of independence: the class is a node like any other and may have parents.

Two nodes are taken to be independent given a set Z of others where they share no more than epsilon:

    I(A; B | Z) <= epsilon,   in bits, on weighted relative frequencies

1. *Drafting*: of the pairs that are dependent given nothing, the strongest first, those that no path joins yet get
   an edge.
2. *Thickening*: each of the other such pairs gets an edge unless some cut-set makes it independent.
3. *Thinning*: each edge whose ends another path joins goes if some cut-set makes them independent without it.
4. *Orientation*: v-structures as the cut-sets show them, then what follows, then from lower to higher index.

`structures.separation` tells how a cut-set is looked for, `bncli.engine.structures.orientation` how directions are
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
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import conditional_mutual_information, mutual_information, rounded
from bncli.engine.structure_search.dependence import relevance
from bncli.engine.structure_search.partial_dependence import CLASS_NODE, PartialDependence
from bncli.engine.structures.orientation import Edge, orient
from bncli.engine.structures.separation import CutSet, Information, Node, cut_set, joined
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent


def learn(counts: Counts, *, epsilon: float, watch: Watch = silent) -> Dag:
    """The network over the class and the informative attributes; `epsilon` in bits."""
    if any(counts.data.n_missing):
        watch(Note("gbn tests every independence on the rows that have all attributes of the test"))
    relevant = relevance(counts)
    unconditional, conditional = _pairs(counts, watch)
    strengths = _strengths(relevant, unconditional, counts.data.schema.informative)
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
    """I(X_i; X_j) and I(X_i; X_j | Y) of all pairs of attributes, rounded nats, (n, n)."""
    n = len(counts.data.schema.attributes)
    plain, given_class = np.zeros((n, n)), np.zeros((n, n))
    for i, j, tables in counts.pair_batches(counts.data.schema.informative, watch):
        plain[i, j] = plain[j, i] = mutual_information(tables.sum(axis=-1))
        given_class[i, j] = given_class[j, i] = conditional_mutual_information(tables)
    return rounded(plain), rounded(given_class)


def _strengths(relevant: Array, unconditional: Array, informative: tuple[int, ...]) -> dict[Edge, float]:
    """The mutual information of every pair (lower, higher), nats."""
    strengths = {(CLASS_NODE, i): float(relevant[i]) for i in informative}
    strengths.update(((i, j), float(unconditional[i, j])) for i in informative for j in informative if i < j)
    return strengths


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
