"""General Bayesian network by tests of independence: the class is a node like any other and may have parents.

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
classifier: Cheng & Greiner 1999, UAI). Relative frequencies make I(A; B | Z) too high by about
(|A| - 1)(|B| - 1)|Z| / 2N nats, until there are so few rows that no two agree on Z and it falls to 0. So with many
values there are too many edges, and a larger epsilon is better; with large cut-sets edges are missed. Under
`--missing-policy marginalize`, each I comes from the rows in which all its attributes are observed.

Conventions: the nodes are the class and the informative attributes. The class is the lowest node, so that an edge whose
direction nothing else decides leads away from it. Thinning takes the weakest edge first; pairs that tie are taken in
the order of their lower, then their higher end. Parents are listed by decreasing I(X_i; X_j | Y), those of the class by
decreasing I(X_j; Y). Attributes far from the class keep their arcs, though P(y | x) does not depend on them. Cost: one
counting pass over all pairs; then O(m^2) passes for each dependent pair that paths through m neighbours join.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.table_batches import in_rounds
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
"""I(A; B | Z) of two nodes for each of several sets Z, in nats."""
CLASS_NODE = -1
"""The class, in graphs whose other nodes are attribute indices; it comes before all of them."""
DECIMALS = 12
SMALL_TABLE = 1 << 14
"""A table of at most this many cells is counted in full; a larger one only if it has few cells per row of a block."""
CELLS_PER_ROW = 4
ROUND = 1 << 22
"""The most entries of the tables that are counted in one pass over the rows (32 MiB)."""
NUMBERS_PER_ROW = 16
"""Cell numbers may reach this multiple of the number of rows before they are replaced by representative rows."""
MOST_PLACES = 1 << 24
"""The most entries of the table that finds representative rows; for larger numbers, rows are sorted instead."""


def learn(counts: Counts, *, epsilon: float, constraints: ArcConstraints | None = None, watch: Watch = silent) -> Dag:
    """Return the network over the class and the informative attributes; `epsilon` is in bits.

    With constraints, attributes that may not be joined count as independent, required arcs are edges from the start
    and stay, and edges with only one allowed direction are directed first. Arcs of the class are not constrained.
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
            # merge the tree of b into that of a
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
        # without another path, only the edge explains the dependence of its ends
        separator = find_cut_set(graph, a, b, information, threshold) if are_connected(graph, a, b) else None
        if separator is None:
            graph[a].add(b)
            graph[b].add(a)
        else:
            cut_sets[a, b] = separator
    return graph, cut_sets


def find_cut_set(graph: Graph, a: Node, b: Node, information: Information, threshold: float) -> Nodes | None:
    """Search for a set Z with I(A; B | Z) <= `threshold`, and return it, or None if none is found.

    a and b are marginally dependent, and not adjacent in the graph. Nodes that block every path between them make them
    independent. The sets tried are

        the neighbours of one end that lie on paths to the other end, for either end;
        these and their own neighbours on such paths, for either end

    (Cheng, Greiner, Kelly, Bell & Liu 2002, Artificial Intelligence 137). Conditioning on a common effect of both ends
    would make them dependent, so a set is shrunk node by node, each time by the node whose removal leaves the lowest
    I(A; B | Z), until that is at most the threshold. Shrinking fails if every removal raises the information. Small
    sets are tried first (ties: that of the lower end); if removals tie, the node with the lowest index goes. Cost:
    O(m^2) evaluations of I for a set of m nodes.
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


def are_connected(graph: Graph, a: Node, b: Node) -> bool:
    """Return whether a path leads from a to b."""
    reached, waiting = {a}, [a]
    while waiting:
        fresh = graph[waiting.pop()] - reached
        reached |= fresh
        waiting.extend(fresh)
    return b in reached


def orient(
    graph: Graph,
    cut_sets: Mapping[Edge, Nodes],
    information: Information,
    threshold: float,
    constraints: ArcConstraints | None = None,
) -> dict[Node, set[Node]]:
    """Direct all edges; return the parents of every node. `cut_sets` has every pair (lower, higher) without an edge.

    1. Two nodes a, b that are not joined but have a common neighbour c form a *v-structure* a -> c <- b if their
       cut-set lacks c and c makes them dependent, I(a; b | cut-set, c) > threshold.
    2. If one direction of an edge would close a cycle or form another v-structure, at once or through further edges
       that must follow, the edge gets the other direction (the rules of Meek 1995, UAI).
    3. If no direction follows, the first edge is directed from its lower to its higher end; then 2 again, until all
       edges have directions.

    The second condition of 1 is needed because the ends of a chain of weak edges seem independent whether or not the
    middle is known, and such chains are frequent (on random networks the condition halves the number of v-structures
    found and hardly loses a true one). V-structures are taken by decreasing I(a; b | cut-set, c) (ties: lower c, then
    lower ends); those that would reverse an arc or close a cycle are left out. Cost: one evaluation of I for each pair
    with a common neighbour.
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
        if orientation.may_point(a, c) and orientation.may_point(b, c):
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
        """Direct every edge for which exactly one direction is ruled out, lower edges first, until none is left."""
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
        direction would close a cycle. If b -> a would close a cycle or is not allowed, a -> b is not ruled out.
        """
        if not self.may_point(a, b) or not self.may_point(b, a):
            return not self.may_point(a, b)
        # a and those ancestors of it that are joined to b: they must all point to b, or a cycle would close
        new = {node for node in self.graph[b] if a in self._descendants[node]} - self.parents[b]
        return any(other not in self.graph[node] for node in new for other in (new | self.parents[b]) - {node})


class Cells(NamedTuple):
    """The cells of the joint values of some nodes, with their cardinalities in the same order.

    `observed` has pairs (attribute, cardinality); rows in which one of these attributes is unobserved are not counted.
    """

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    observed: tuple[tuple[Node, int], ...]

    @property
    def bound(self) -> int:
        return math.prod(self.shape)


NodeSum = tuple[Nodes, Nodes]
"""A set of nodes S, whose sum G(S) runs over the rows in which all attributes of the second set are observed."""


@dataclass(frozen=True)
class ConditionalInformation:
    """The computation of I(A; B | Z) of two nodes given any set of others, in nats, from one data set.

    With n_s the weight of the rows that have the values s on a set of nodes S,

        I(A; B | Z) = [ G(ABZ) + G(Z) - G(AZ) - G(BZ) ] / N,    G(S) = sum over observed s of n_s ln n_s

    The sets of a search overlap, so that an evaluation takes less than one new G on average. The sums are kept, the
    tables are not. If S has few cells, its table is counted in full; otherwise only the cells that occur are counted,
    so that memory depends on the number of rows and not on the product of the cardinalities. Cells are numbered digit
    by digit,

        cell = ((s_1 |S_2| + s_2) |S_3| + s_3) ...

    and when the numbers get too large for a table, each cell is represented by one of its rows (`representatives`). The
    four sets of an evaluation begin with the same Z, which is numbered once; A and B come last.

    If missing values are marginalized, each result comes from the rows in which A, B and all of Z are observed, so a
    sum belongs to a set and to the attributes that have to be observed.

    Conventions: sums run over the number of cells with each count, so that the order of cells does not matter, or over
    the weights in ascending order. Results are rounded to 12 decimals, the accuracy of a difference of such sums. Cost
    of a new G: N increments if the table is small, else about four passes over N numbers for A or B and for every few
    attributes of Z that are new; all that a call needs is counted together.
    """

    data: Dataset
    _sums: dict[NodeSum, float] = field(default_factory=dict)
    _weights: dict[Nodes, float] = field(default_factory=dict)  # the weight of the rows in which nodes are observed

    def between(self, a: Node, b: Node, sets: Sequence[Nodes]) -> list[float]:
        """Return I(A; B | Z) for every Z of `sets`, never negative; 0 without rows."""
        questions: list[tuple[NodeSum, NodeSum, NodeSum, NodeSum]] = []
        for z in sets:
            observed = frozenset(i for i in (z | {a, b}) if i != CLASS_NODE and self.data.n_missing[i])
            questions.append(((z | {a, b}, observed), (z, observed), (z | {a}, observed), (z | {b}, observed)))
            if observed not in self._weights:
                all_rows = Cells((), (), self._with_cardinalities(sorted(observed)))
                self._weights[observed] = float(self.data.reduce(_count_all_cells, [all_rows])[0][0])
        self._count([node_sum for question in questions for node_sum in question], (a, b))
        answers = []
        for question in questions:
            abz, z_alone, az, bz = (self._sums[node_sum] for node_sum in question)
            # without rows all sums are 0, and so is the result; rounding may leave it just below 0
            g = abz + z_alone - az - bz
            answers.append(max(round(g / (self._weights[question[0][1]] or 1.0), DECIMALS), 0.0))
        return answers

    def _count(self, requested: Sequence[NodeSum], last: tuple[Node, ...]) -> None:
        """Compute the sums G that are not known yet; the nodes `last` become the last digits of cell numbers."""
        data, cells = self.data, dict[NodeSum, Cells]()
        for node_sum in requested:
            if node_sum not in self._sums:
                # A and B last, so that the sets of one evaluation share the numbers of Z
                nodes = tuple(sorted(node_sum[0], key=lambda node: (node in last, node)))
                shape = tuple(cardinality for _, cardinality in self._with_cardinalities(nodes))
                cells[node_sum] = Cells(nodes, shape, self._with_cardinalities(sorted(node_sum[1])))
        limit = max(SMALL_TABLE, CELLS_PER_ROW * data.n_rows // len(data.bounds()))
        for small in in_rounds([s for s in cells if cells[s].bound <= limit], lambda s: limit, ROUND):
            tables = data.reduce(_count_all_cells, [cells[s] for s in small])
            self._sums.update((s, sum_n_log_n(table)) for s, table in zip(small, tables, strict=True))
        for large in in_rounds([s for s in cells if cells[s].bound > limit], lambda s: max(data.n_rows, 1), ROUND):
            single_block = len(data.bounds()) == 1  # then no cells of other blocks need be joined
            blocks = data.map(_count_occurring, [cells[s] for s in large], single_block)
            for s, *parts in zip(large, *blocks, strict=True):
                counts = parts[0][1]
                if not single_block:
                    nodes = cells[s].nodes
                    codes = [np.concatenate([part[0][place] for part in parts]) for place in range(len(nodes))]
                    rows = _RowNumbers(dict(zip(nodes, codes, strict=True)), len(codes[0]))
                    # cells of all blocks as if they were rows, to join those that occur in several blocks
                    joined = representatives(*rows.of(cells[s]))
                    counts = np.bincount(joined, np.concatenate([part[1] for part in parts]))
                    counts = counts[counts > 0]
                self._sums[s] = sum_n_log_n(counts)

    def _with_cardinalities(self, nodes: Iterable[Node]) -> tuple[tuple[Node, int], ...]:
        data = self.data
        return tuple((i, data.n_labels if i == CLASS_NODE else data.schema.cardinalities[i]) for i in nodes)


class _RowNumbers:
    """The cell numbers of the rows; those of the node sequences in `reused` are kept, for longer sequences."""

    def __init__(self, codes: dict[Node, Codes], n_rows: int, reused: Collection[tuple[Node, ...]] = ()) -> None:
        self._codes = {node: of_node.astype(np.intp) for node, of_node in codes.items()}
        self._n_rows, self._reused = n_rows, reused
        self._known: dict[tuple[Node, ...], tuple[Index, int]] = {}

    def of(self, cells: Cells) -> tuple[Index, int]:
        """Return the number of every row's cell, and an exclusive upper bound of these numbers."""
        # the longest prefix of the nodes whose numbers are known
        first = max((n for n in range(1, len(cells.nodes) + 1) if cells.nodes[:n] in self._known), default=0)
        numbers, bound = self._known[cells.nodes[:first]] if first else (np.zeros(self._n_rows, np.intp), 1)
        for place in range(first, len(cells.nodes)):
            node, radix = cells.nodes[place], cells.shape[place]
            # one more digit would make the table of `representatives` too large: replace numbers by row numbers first
            if bound > self._n_rows and bound * radix > NUMBERS_PER_ROW * self._n_rows:
                numbers, bound = representatives(numbers, bound), max(self._n_rows, 1)
                self._known[cells.nodes[:place]] = numbers, bound
            numbers = numbers * radix
            numbers += self._codes[node]
            bound *= radix
        if cells.nodes in self._reused:
            self._known[cells.nodes] = numbers, bound
        return numbers, bound


def representatives(numbers: Index, bound: int) -> Index:
    """Return for every row (N,) the one row that represents all rows with the same number; numbers are below `bound`.

    Cost: one write and one read per row in a table of `bound` entries. If that table would be too large, rows are
    sorted, and ranks are returned instead of rows.

    >>> found = representatives(np.array([7, 2, 7, 7]), 8)
    >>> bool((found[[0, 2, 3]] == found[0]).all()), int(found[1])
    (True, 1)
    """
    if bound > max(MOST_PLACES, NUMBERS_PER_ROW * len(numbers)):
        return np.unique(numbers, return_inverse=True)[1]
    row_of_number = np.empty(bound, np.int32)  # only entries that were written are read
    row_of_number[numbers] = np.arange(len(numbers), dtype=np.int32)
    return row_of_number.take(numbers).astype(np.intp)


def sum_n_log_n(counts: NDArray[np.generic]) -> float:
    """Return the sum over cells of n ln n, with 0 ln 0 = 0."""
    if counts.dtype.kind in "iu":
        # the number of cells with each count, so that every logarithm is taken once
        n_cells = np.bincount(counts)
        several = np.flatnonzero(n_cells)
        several = several[several > 1]  # 1 ln 1 = 0
        return float((n_cells[several] * several * np.log(several)).sum())
    weights = np.sort(counts.astype(np.float64))
    weights = weights[(weights > 0) & (weights != 1)]
    return float((weights * np.log(weights)).sum())


def _count_all_cells(block: RowBlock, requested: list[Cells]) -> list[NDArray[np.generic]]:
    tables: list[NDArray[np.generic]] = []
    for cells in requested:
        codes, n_rows, weights = _observed_rows(block, cells, cells.nodes)
        tables.append(np.bincount(_RowNumbers(codes, n_rows).of(cells)[0], weights, cells.bound))
    return tables


def _observed_rows(block: RowBlock, cells: Cells, nodes: Iterable[Node]) -> tuple[dict[Node, Codes], int, Array | None]:
    """Return the nodes' codes, the number and the weights of the rows in which `cells.observed` are observed."""
    codes = {node: block.labels if node == CLASS_NODE else block.codes[node] for node in nodes}
    if not cells.observed:
        return codes, block.n_rows, block.weights
    rows = np.flatnonzero(np.logical_and.reduce([block.codes[i] != n for i, n in cells.observed]))
    weights = None if block.weights is None else block.weights[rows]
    return {node: of_node[rows] for node, of_node in codes.items()}, len(rows), weights


def _count_occurring(
    block: RowBlock, requested: list[Cells], single_block: bool
) -> list[tuple[list[Codes], NDArray[np.generic]]]:
    """Count the cells that occur; return the nodes' codes in them (none for a single block), and the counts."""
    nodes = sorted({node for cells in requested for node in cells.nodes})
    occurring: dict[Cells, tuple[list[Codes], NDArray[np.generic]]] = {}
    for observed in dict.fromkeys(cells.observed for cells in requested):
        # shortest first, since longer sets begin with shorter ones
        alike = sorted((cells for cells in requested if cells.observed == observed), key=lambda cells: len(cells.nodes))
        codes, n_rows, weights = _observed_rows(block, alike[0], nodes)
        rows = _RowNumbers(codes, n_rows, {cells.nodes for cells in alike})
        for cells in alike:
            counts = np.bincount(representatives(*rows.of(cells)), weights, n_rows)
            if single_block:
                occurring[cells] = [], counts
            else:
                present = np.flatnonzero(counts)
                occurring[cells] = [codes[node][present] for node in cells.nodes], counts[present]
    return [occurring[cells] for cells in requested]
