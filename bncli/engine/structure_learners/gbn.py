"""General Bayesian network learned by independence tests: the class is a node like any other and may have parents.

Two nodes count as independent given a set Z of others if

    I(A; B | Z) <= epsilon,   in bits, on weighted relative frequencies

1. *Drafting*: the pairs that are marginally dependent are visited, the strongest first, and get an edge if no path
   joins them yet (`find_skeleton`).
2. *Thickening*: each of the other dependent pairs gets an edge unless some cut-set makes it independent.
3. *Thinning*: each edge whose ends are joined by another path is removed if some cut-set makes them independent.
4. *Orientation*: first the v-structures that the cut-sets imply, then the directions that follow from them, then all
   other edges from lower to higher index (`orient`).

With enough rows, and if every edge is stronger than epsilon, this finds the edges of the network that the rows were
drawn from (Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137; their PowerConstructor, as a
classifier: Cheng & Greiner 1999, UAI). Relative frequencies make I(A; B | Z) too high by about (|A| - 1)(|B| - 1)|Z| /
2N nats where |S| is the number of joint values of S. Only if there are so few rows that no two agree on Z does it fall
to 0. So with many values there are too many edges, and a larger epsilon is better; with large cut-sets edges are
missed. Under `--missing-policy marginalize`, each I comes from the rows in which all its attributes are observed.

Conventions: the nodes are the class and the informative attributes. The class is the lowest node, so that an edge whose
direction nothing else decides leads away from it. Thinning takes the weakest edge first; edges that tie are taken in
the order of their lower, then their higher end. The parents of an attribute are listed by decreasing I(X_i; X_j | Y),
and the parents of the class by decreasing I(X_j; Y). Attributes far from the class keep their arcs, though P(y | x)
does not depend on them. Cost: one counting pass over all pairs; then O(m^2) passes for each dependent pair that is
joined by paths through m neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.kernels.information import conditional_mutual_information, mutual_information, rounded
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent

Node = int
Nodes = frozenset[Node]
Edge = tuple[Node, Node]
Graph = Mapping[Node, set[Node]]
"""The neighbours of every node."""
Information = Callable[[Node, Node, Sequence[Nodes]], list[float]]
"""A function that returns I(A; B | Z) of two nodes for each of several sets Z, in nats."""
CLASS_NODE = -1
"""The node of the class; all other nodes are attribute indices, so the class comes first."""
DECIMALS = 12
SMALL_TABLE = 1 << 14
"""A table of at most this many cells is counted in full; a larger one only if it has few cells per row of a block."""
CELLS_PER_ROW = 4
NUMBERS_PER_ROW = 16
"""Cell numbers may reach this multiple of the number of rows before each is replaced by a representative row."""
FEW_PLACES = 1 << 19
"""`_numbered` never replaces cell numbers below this, however few rows there are."""
MOST_PLACES = 1 << 24
"""The table that finds representative rows has at most this many entries, or NUMBERS_PER_ROW per row if more."""


def learn(counts: Counts, *, epsilon: float, constraints: ArcConstraints | None = None, watch: Watch = silent) -> Dag:
    """Return the network over the class and the informative attributes; `epsilon` is in bits.

    With constraints, attributes that may not be joined count as independent, required arcs are edges from the start
    that no test removes, and edges with only one allowed direction are directed first. Arcs of the class are not
    constrained.
    """
    data = counts.data
    if any(data.n_missing):
        watch(Note("gbn tests independence on the rows without missing values in the tested attributes"))
    informative, n = data.schema.informative, len(data.schema.attributes)
    relevant = relevance(counts)
    unconditional, conditional = np.zeros((n, n)), np.zeros((n, n))
    for i, j, tables in counts.pair_batches(informative, watch):
        unconditional[i, j] = unconditional[j, i] = mutual_information(tables.sum(axis=-1))
        conditional[i, j] = conditional[j, i] = conditional_mutual_information(tables)
    unconditional, conditional = rounded(unconditional), rounded(conditional)
    strengths = {(CLASS_NODE, i): float(relevant[i]) for i in informative}
    strengths.update(((i, j), float(unconditional[i, j])) for i in informative for j in informative if i < j)
    information, threshold = ConditionalInformation(data).between, epsilon * math.log(2)
    graph, cut_sets = find_skeleton(strengths, information, threshold, watch, constraints)
    parents = orient(graph, cut_sets, information, threshold, constraints)
    children = tuple(i for i in informative if CLASS_NODE in parents.get(i, ()))
    of_attributes = tuple(_strongest_first(parents.get(i, set()), conditional[i]) for i in range(n))
    of_class = _strongest_first(parents.get(CLASS_NODE, set()), relevant)
    return Dag(of_attributes, children, of_class, "gbn", {"epsilon": epsilon})


def _strongest_first(parents: set[Node], strengths: Array) -> tuple[Node, ...]:
    return tuple(sorted(parents - {CLASS_NODE}, key=lambda j: (-strengths[j], j)))


def find_skeleton(
    strengths: Mapping[Edge, float],
    information: Information,
    threshold: float,
    watch: Watch,
    constraints: ArcConstraints | None = None,
) -> tuple[dict[Node, set[Node]], dict[Edge, Nodes]]:
    """Return the undirected graph, and a cut-set for every pair without an edge.

    strengths[a, b] is I(A; B) of every pair a < b; it and the threshold are in nats.
    """
    graph: dict[Node, set[Node]] = {node: set() for pair in strengths for node in pair}
    cut_sets: dict[Edge, Nodes] = {pair: frozenset() for pair, s in strengths.items() if s <= threshold}
    tree_of = {node: node for node in graph}
    required: set[Edge] = set()
    if constraints is not None:
        required = {(min(arc), max(arc)) for arc in np.argwhere(constraints.required).tolist()}
        may_join = constraints.allowed | constraints.allowed.T
        cut_sets.update((pair, frozenset()) for pair in strengths if CLASS_NODE not in pair and not may_join[pair])
        for a, b in sorted(required):
            cut_sets.pop((a, b), None)
            graph[a].add(b)
            graph[b].add(a)
            # merge the tree of b into the tree of a
            tree_of = {node: tree_of[a] if tree == tree_of[b] else tree for node, tree in tree_of.items()}
    # Drafting: the dependent pairs form a forest, the strongest first.
    left_out = []
    for a, b in sorted(strengths.keys() - cut_sets - required, key=lambda pair: (-strengths[pair], pair)):
        if tree_of[a] == tree_of[b]:
            left_out.append((a, b))
        else:
            graph[a].add(b)
            graph[b].add(a)
            tree_of = {node: tree_of[a] if tree == tree_of[b] else tree for node, tree in tree_of.items()}
    # Thickening: each pair that was left out is joined if no cut-set separates it.
    for done, (a, b) in enumerate(left_out):
        watch(Progress(done, len(left_out), "pairs without an edge"))
        separator = find_cut_set(graph, a, b, information, threshold)
        if separator is None:
            graph[a].add(b)
            graph[b].add(a)
        else:
            cut_sets[a, b] = separator
    # Thinning: an edge is removed if a cut-set separates its ends, the weakest edge first.
    edges = [pair for pair in strengths if pair[1] in graph[pair[0]] and pair not in required]
    edges.sort(key=strengths.__getitem__)
    for done, (a, b) in enumerate(edges):
        watch(Progress(done, len(edges), "edges"))
        graph[a].remove(b)
        graph[b].remove(a)
        # None if there is no other path: then no set is tried, since only the edge explains the dependence of its ends
        separator = find_cut_set(graph, a, b, information, threshold)
        if separator is None:
            graph[a].add(b)
            graph[b].add(a)
        else:
            cut_sets[a, b] = separator
    return graph, cut_sets


def find_cut_set(graph: Graph, a: Node, b: Node, information: Information, threshold: float) -> Nodes | None:
    """Search for a nonempty set Z with I(A; B | Z) <= `threshold`; return it, or None if none is found.

    a and b are marginally dependent, and not adjacent in the graph. Nodes that block every path between them make them
    independent. The sets tried, in this order, are

        the neighbours of one end that lie on paths to the other end, for either end;
        these and their own neighbours on such paths, for either end

    (Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137). Conditioning on a common effect of both ends
    would make them dependent, so a set is shrunk node by node, each time by the node whose removal leaves the lowest
    I(A; B | Z), until that is at most the threshold. Shrinking fails if every removal raises the information or one
    node is left. Of the two sets of a kind, the smaller one is tried first (ties: the set at the lower end). If
    removals tie, the node with the lowest index is removed. Cost: O(m^2) evaluations of I for a set of m nodes.
    """
    between = nodes_on_paths(graph, a, b)
    near = [frozenset(graph[end] & between) for end in (a, b)]
    # the neighbours of these neighbours as well
    wide = [nodes.union(*(graph[node] & between for node in nodes)) for nodes in near]
    for candidate in dict.fromkeys((*sorted(near, key=len), *sorted(wide, key=len))):
        if not candidate:
            continue
        (shared,) = information(a, b, [candidate])
        while shared > threshold and len(candidate) > 1:
            smaller = [candidate - {node} for node in sorted(candidate)]
            answers = information(a, b, smaller)
            least = min(range(len(smaller)), key=answers.__getitem__)
            if answers[least] > shared:
                break
            candidate, shared = smaller[least], answers[least]
        if shared <= threshold:
            return candidate
    return None


def nodes_on_paths(graph: Graph, a: Node, b: Node) -> set[Node]:
    """Return the nodes between a and b on paths that visit no node twice.

    With an edge from a to b added, these are the other nodes of the biconnected component of that edge. They are found
    by one depth-first search that takes this edge first (Hopcroft & Tarjan 1973, Communications of the ACM 16).
    """
    # the search starts with the edge a - b, so that a has place 0 and b place 1
    order, came_from = [a, b], {b: a}
    path = [(b, iter(sorted(graph[b])))]
    while path:
        node, others = path[-1]
        following = next((other for other in others if other != a and other not in came_from), None)
        if following is None:
            path.pop()
        else:
            order.append(following)
            came_from[following] = node
            path.append((following, iter(sorted(graph[following]))))
    # highest[v]: the earliest place among the neighbours of v and of all nodes below it; b is joined to a
    place = {node: p for p, node in enumerate(order)}
    highest = {b: 0} | {node: min(place[other] for other in graph[node] if other in place) for node in order[2:]}
    for node in reversed(order[2:]):
        highest[came_from[node]] = min(highest[came_from[node]], highest[node])
    inside = {b}
    for node in order[2:]:
        # the part below came_from leads back above it, so node is on a path from b to a that visits no node twice
        if came_from[node] in inside and highest[node] < place[came_from[node]]:
            inside.add(node)
    return inside - {b}


def orient(
    graph: Graph,
    cut_sets: Mapping[Edge, Nodes],
    information: Information,
    threshold: float,
    constraints: ArcConstraints | None = None,
) -> dict[Node, set[Node]]:
    """Direct all edges; return the parents of every node. `cut_sets` has each pair (lower, higher) without an edge.

    1. Two nodes a, b that are not joined but have a common neighbour c form a *v-structure* a -> c <- b if their
       cut-set lacks c and c makes them dependent, I(a; b | cut-set, c) > threshold.
    2. If one direction of an edge would close a cycle or form another v-structure, at once or through further edges
       that must follow, the edge gets the other direction (the rules of Meek 1995, UAI).
    3. If no direction follows, the first edge is directed from its lower to its higher end, or the other way if that is
       not allowed; an edge for which neither direction is allowed is dropped. Then step 2 is repeated, until no edge
       without a direction is left.

    With constraints, edges that have only one allowed direction are directed before step 1. The second condition of 1
    is needed because chains of weak edges are frequent, and their ends seem independent whether or not the middle is
    known. (On random networks this condition halves the number of v-structures found and hardly loses a true one.)
    V-structures are taken by decreasing I(a; b | cut-set, c) (ties: lower c, then lower ends). One is left out if it
    would reverse an arc, close a cycle or violate the constraints. Cost: at most one evaluation of I for each pair and
    common neighbour.
    """
    v_structures = []
    for c in sorted(graph):
        for a, b in itertools.combinations(sorted(graph[c]), 2):
            if b not in graph[a] and c not in cut_sets[a, b]:
                (shared,) = information(a, b, [cut_sets[a, b] | {c}])
                if shared > threshold:
                    # negative, so that sorting takes the most informative first
                    v_structures.append((-shared, c, a, b))
    orientation = _Orientation(graph, constraints)
    if constraints is not None:
        for a, b in sorted(orientation.undirected):
            ways = [arc for arc in ((a, b), (b, a)) if a == CLASS_NODE or constraints.allowed[arc]]
            if len(ways) == 1 and orientation.may_point(*ways[0]):
                orientation.point(*ways[0])
    for _, c, a, b in sorted(v_structures):
        if orientation.may_meet(a, b, c):
            orientation.point(a, c)
            orientation.point(b, c)
    orientation.propagate()
    while orientation.undirected:
        a, b = min(orientation.undirected)
        way = next((arc for arc in ((a, b), (b, a)) if orientation.may_point(*arc)), None)
        if way is None:  # constraints allow neither direction
            orientation.undirected.remove((a, b))
        else:
            orientation.point(*way)
        orientation.propagate()
    return orientation.parents


class _Orientation:
    """The directions decided so far; they never form a cycle."""

    def __init__(self, graph: Graph, constraints: ArcConstraints | None = None) -> None:
        self.graph, self._constraints = graph, constraints
        self.parents: dict[Node, set[Node]] = {node: set() for node in graph}
        self.undirected = {(a, b) for a in graph for b in graph[a] if a < b}
        self._descendants: dict[Node, set[Node]] = {node: {node} for node in graph}

    def may_meet(self, a: Node, b: Node, c: Node) -> bool:
        """Return whether a -> c <- b closes no cycle and obeys the constraints, given the parents of c."""
        if not (self.may_point(a, c) and self.may_point(b, c)):
            return False
        limits = self._constraints
        if limits is None or CLASS_NODE in (a, b, c):
            return True
        others = self.parents[c] - {CLASS_NODE}
        return limits.together[a, b] and (limits.max_parents is None or len(others | {a, b}) <= limits.max_parents)

    def may_point(self, a: Node, b: Node) -> bool:
        """Return whether a -> b closes no cycle and obeys the constraints, given the parents that b already has."""
        if self._constraints is not None and CLASS_NODE not in (a, b):
            limits, others = self._constraints, self.parents[b] - {CLASS_NODE}
            has_room = limits.max_parents is None or len(others) < limits.max_parents
            if not (has_room and limits.allowed[a, b] and all(limits.together[a, p] for p in others)):
                return False
        return a not in self._descendants[b]

    def point(self, a: Node, b: Node) -> None:
        """Direct the edge between a and b from a to b."""
        self.undirected.discard((min(a, b), max(a, b)))
        self.parents[b].add(a)
        for descendants in self._descendants.values():
            if a in descendants:
                descendants |= self._descendants[b]

    def propagate(self) -> None:
        """Direct every edge with exactly one direction ruled out, lower edges first, until no such edge is left."""
        changed = True
        while changed:
            changed = False
            for a, b in sorted(self.undirected):
                forward_excluded, backward_excluded = self._is_excluded(a, b), self._is_excluded(b, a)
                if forward_excluded != backward_excluded:
                    self.point(*((b, a) if forward_excluded else (a, b)))
                    changed = True

    def _is_excluded(self, a: Node, b: Node) -> bool:
        """Return whether a -> b is ruled out.

        It is ruled out if it would close a cycle or is not allowed, or if b would get a new parent that is not adjacent
        to another parent of b, new or old. New parents are a and its ancestors that are joined to b, because the other
        direction would close a cycle. The condition on new parents is ignored if b -> a would close a cycle or is not
        allowed.
        """
        if not self.may_point(a, b) or not self.may_point(b, a):
            return not self.may_point(a, b)
        # a and those ancestors of it that are joined to b: they must all point to b, or a cycle would close
        new = {node for node in self.graph[b] if a in self._descendants[node]} - self.parents[b]
        return any(other not in self.graph[node] for node in new for other in (new | self.parents[b]) - {node})


NodeSum = tuple[Nodes, Nodes]
"""A set of nodes S and a set of attributes: G(S) is summed over the rows in which all these attributes are observed."""


class CellTable(NamedTuple):
    """The cells of some nodes, which are the joint values that occur, with the code of each node and the counts.

    `codes` has an array (cells,) per node, and `radices` the number of codes per node (one more than the cardinality of
    an attribute with missing values); `counts` (cells,) has the number of rows in each cell, or their total weight.
    """

    radices: dict[Node, int]
    codes: Mapping[Node, NDArray[np.integer]]
    counts: NDArray[np.generic]

    def margin(self, nodes: Nodes) -> CellTable:
        """Return the marginal table of some of the nodes."""
        radices = {node: self.radices[node] for node in sorted(nodes)}
        number_of_cell = representatives(*_numbered(self.codes, radices, len(self.counts)))
        counts = np.bincount(number_of_cell, self.counts, len(self.counts))
        present = np.flatnonzero(counts)
        codes = {node: self.codes[node][present] for node in radices}
        return CellTable(radices, codes, counts[present].astype(self.counts.dtype, copy=False))


@dataclass(frozen=True)
class ConditionalInformation:
    """The conditional mutual information I(A; B | Z) of nodes of one data set, in nats.

    With n_s the weight of the rows that have the values s on a set of nodes S,

        I(A; B | Z) = [ G(ABZ) + G(Z) - G(AZ) - G(BZ) ] / N,    G(S) = sum over observed s of n_s ln n_s

    The sets of a search overlap, so that an evaluation takes less than one new G on average. The sums are cached. So is
    the last table of cells that occur, over all nodes of the last call's new sums: the sets that follow are mostly
    subsets of these nodes, and there are fewer such cells than rows. All new sums of a call are computed by
    partitioning the cells into smaller and smaller groups (`_sums_of`).

    If missing values are marginalized, each result comes from the rows in which A, B and all of Z are observed, so a
    sum is cached per set of nodes and per set of attributes that have to be observed.

    Conventions: equal counts are added together, and weights are added in ascending order, so that the order of cells
    does not matter. Results are rounded to 12 decimals, the accuracy of a difference of such sums. Memory depends on
    the number of rows, not on the product of the cardinalities. Cost of a table that is not a margin of the last one: N
    increments if it is small, otherwise about four passes over N values for every few attributes.
    """

    data: Dataset
    _sums: dict[NodeSum, float] = field(default_factory=dict)
    _weights: dict[Nodes, float] = field(default_factory=dict)  # the weight of the rows in which nodes are observed
    _last: list[CellTable] = field(default_factory=list)  # the table of the last call

    def between(self, a: Node, b: Node, sets: Sequence[Nodes]) -> list[float]:
        """Return I(A; B | Z) in nats for every Z of `sets`, never negative; 0 if there are no rows."""
        questions: list[tuple[NodeSum, NodeSum, NodeSum, NodeSum]] = []
        for z in sets:
            observed = frozenset(i for i in (z | {a, b}) if i != CLASS_NODE and self.data.n_missing[i])
            # sets that differ by one node follow one another
            questions.append(((z, observed), (z | {a}, observed), (z | {b}, observed), (z | {a, b}, observed)))
        self._compute([node_sum for question in questions for node_sum in question])
        answers = []
        for question in questions:
            z_alone, az, bz, abz = (self._sums[node_sum] for node_sum in question)
            # without rows all sums are 0, and so is the result; rounding may leave it just below 0
            g = abz + z_alone - az - bz
            answers.append(max(round(g / (self._weights[question[0][1]] or 1.0), DECIMALS), 0.0))
        return answers

    def _compute(self, requested: Sequence[NodeSum]) -> None:
        """Compute the sums G that are not cached yet."""
        new: dict[Nodes, list[Nodes]] = {}
        for nodes, observed in dict.fromkeys(requested):
            if (nodes, observed) not in self._sums:
                new.setdefault(observed, []).append(nodes)
        if not new:
            return
        nodes = frozenset[Node]().union(*new, *itertools.chain.from_iterable(new.values()))
        if self._last and nodes <= self._last[0].codes.keys():
            table = self._last[0]
            if len(nodes) < len(table.codes):
                table = table.margin(nodes)
        else:
            table = self._count(nodes)
        self._last[:] = [table]
        for observed, sets in new.items():
            part = table
            if observed:
                rows = np.logical_and.reduce([table.codes[i] != self.data.schema.cardinalities[i] for i in observed])
                part = table._replace(
                    codes={node: codes[rows] for node, codes in table.codes.items()}, counts=table.counts[rows]
                )
            self._weights[observed] = float(part.counts.sum())
            self._sums.update(((nodes, observed), g) for nodes, g in _sums_of(part, sets))

    def _count(self, nodes: Nodes) -> CellTable:
        """Return the table of the nodes, counted over the rows."""
        data = self.data
        radices = {i: data.n_labels if i == CLASS_NODE else data.radices[i] for i in sorted(nodes)}
        n_cells = math.prod(radices.values())
        if n_cells <= max(SMALL_TABLE, CELLS_PER_ROW * data.n_rows // len(data.bounds())):
            counts = data.reduce(_count_all_cells, radices)
            present = np.flatnonzero(counts)
            codes = np.unravel_index(present, tuple(radices.values())) if radices else ()
            return CellTable(radices, dict(zip(radices, codes, strict=True)), counts[present])
        parts = data.map(_count_occurring, radices)
        if len(parts) == 1:
            return parts[0]
        joined = {node: np.concatenate([part.codes[node] for part in parts]) for node in radices}
        return CellTable(radices, joined, np.concatenate([part.counts for part in parts])).margin(nodes)


class _Groups(NamedTuple):
    """A partition of the cells of a table into groups of cells that agree on `nodes`.

    `cells` are the indices of the cells that are still being partitioned, and `numbers` their group numbers, below
    `bound`. `alone` has the counts of the groups of a single cell that were set aside, except counts of 1, whose
    n ln n is 0.
    """

    nodes: Nodes
    cells: Index
    numbers: Index
    bound: int
    alone: NDArray[np.generic]


def _sums_of(table: CellTable, sets: Sequence[Nodes], groups: _Groups | None = None) -> Iterator[tuple[Nodes, float]]:
    """Yield each of the sets of nodes with its sum G, from a table that contains all of their nodes.

    The cells are grouped by the nodes that all sets have in common. Each half of the sets then refines these groups by
    the further nodes that its sets have in common, and so on recursively, so that sets share most of the work: the m
    sets that leave out one of m nodes take about m log m refinements by a node instead of m^2. Groups of a single cell
    are set aside; with many nodes, these are most groups. `groups` is the partition so far.
    """
    if groups is None:
        n_cells = len(table.counts)
        groups = _Groups(frozenset(), np.arange(n_cells), np.zeros(n_cells, np.intp), 1, table.counts[:0])
    new = frozenset.intersection(*sets) - groups.nodes
    if new:
        codes = {node: table.codes[node][groups.cells] for node in new}
        radices = {node: table.radices[node] for node in sorted(new)}
        numbers, bound = _numbered(codes, radices, len(groups.cells), groups.numbers, groups.bound)
        if bound > len(numbers):
            numbers, bound = representatives(numbers, bound), len(numbers)
        groups = groups._replace(nodes=groups.nodes | new, numbers=numbers, bound=bound)
    if len(sets) == 1:
        counts = np.bincount(groups.numbers, table.counts[groups.cells], groups.bound)
        counts = counts.astype(table.counts.dtype, copy=False)
        yield sets[0], sum_n_log_n(np.concatenate([groups.alone, counts]))
        return
    if new:
        # groups of one cell are set aside
        several = np.bincount(groups.numbers, None, groups.bound).take(groups.numbers) > 1
        kept = np.flatnonzero(several)
        alone = table.counts[groups.cells[~several]]
        alone = np.concatenate([groups.alone, alone[alone != 1]])  # 1 ln 1 = 0
        groups = groups._replace(cells=groups.cells[kept], numbers=groups.numbers[kept], alone=alone)
    half = len(sets) // 2
    yield from _sums_of(table, sets[:half], groups)
    yield from _sums_of(table, sets[half:], groups)


def _numbered(
    codes: Mapping[Node, NDArray[np.integer]],
    radices: Mapping[Node, int],
    n: int,
    numbers: Index | None = None,
    bound: int = 1,
) -> tuple[Index, int]:
    """Return a number for each of n rows, equal for rows in the same cell, and an exclusive upper bound of the numbers.

    The cells are the joint values of the nodes in `radices`, numbered as cell = ((s_1 |S_2| + s_2) |S_3| + s_3) ...,
    with the given `numbers` of the rows (below `bound`), if any, as the leading digit. When numbers get too large for a
    table, each is replaced by the index of one of its rows (`representatives`).
    """
    numbers = np.zeros(n, np.intp) if numbers is None else numbers.copy()
    for node, radix in radices.items():
        if bound > n and bound * radix > max(NUMBERS_PER_ROW * n, FEW_PLACES):
            numbers, bound = representatives(numbers, bound), max(n, 1)
        numbers *= radix
        numbers += codes[node]
        bound *= radix
    return numbers, bound


def representatives(numbers: Index, bound: int) -> Index:
    """Return, for every row (N,), the index of one row that represents all rows with its number.

    Numbers are below `bound`. Cost: one write and one read per row in a table of `bound` entries. If that table would
    be too large, rows are sorted instead.

    >>> found = representatives(np.array([7, 2, 7, 7]), 8)
    >>> bool((found[[0, 2, 3]] == found[0]).all()), int(found[1])
    (True, 1)
    """
    if bound > max(MOST_PLACES, NUMBERS_PER_ROW * len(numbers)):
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        return first[place]
    row_of_number = np.empty(bound, np.int32)  # only entries that were written are read
    row_of_number[numbers] = np.arange(len(numbers), dtype=np.int32)
    return row_of_number.take(numbers).astype(np.intp)


def sum_n_log_n(counts: NDArray[np.generic]) -> float:
    """Return the sum of n ln n over all cells, with 0 ln 0 = 0."""
    if counts.dtype.kind in "iu":
        # the number of cells with each count, so that every logarithm is taken once
        n_cells = np.bincount(counts)
        several = np.flatnonzero(n_cells)
        several = several[several > 1]  # 1 ln 1 = 0
        return float((n_cells[several] * several * np.log(several)).sum())
    weights = np.sort(counts.astype(np.float64))
    weights = weights[(weights > 0) & (weights != 1)]
    return float((weights * np.log(weights)).sum())


def _count_all_cells(block: RowBlock, radices: dict[Node, int]) -> NDArray[np.generic]:
    numbers, n_cells = _numbered(_codes(block, radices), radices, block.n_rows)
    return np.bincount(numbers, block.weights, n_cells)


def _count_occurring(block: RowBlock, radices: dict[Node, int]) -> CellTable:
    weights = np.ones(block.n_rows, np.int64) if block.weights is None else block.weights
    return CellTable(radices, _codes(block, radices), weights).margin(frozenset(radices))


def _codes(block: RowBlock, nodes: Iterable[Node]) -> dict[Node, Codes]:
    return {node: block.labels if node == CLASS_NODE else block.codes[node] for node in nodes}
