"""Compile programs that marginalize missing values: the tables that rows need, elimination order, operations.

**Programs.** A slot is an array of shape (K, |x_1|, |x_2|, ..., configurations): a function of the class and of hidden
(missing) attributes x_1, x_2, ... (the slot's *scope*), for each configuration of observed values that occurs in some
row. Rows with equal tables share a configuration, so that work is done once for all of them. Three operations fill
slots:

    CellRange  CPT entries of a family at the observed codes
    Join       out[y, x, u] = left[y, x, i(u)] right[y, x, j(u)], repeated along axes that one side lacks
    Contract   out[y, x, u] = sum over x_1 of left[y, x_1, x, i(u)] right[y, x_1, x, j(u)]

**Compilation** is bucket elimination on unique configurations. Hidden attributes are marginalized in one fixed order.
Every table that a row needs is put into the bucket of its first hidden attribute in that order. The tables of a bucket
are joined and its attribute is marginalized; the result, a *message*, goes to the bucket of its first hidden attribute
or, if it has none, to the score of the row (Dechter 1999, Artificial Intelligence 113). All rows go through the buckets
together, whatever attributes are hidden in them:

- a table is stored with the rows that use it, and the configuration of each row;
- a *source* of a bucket has one table for each scope. All of them come from one node: from its family or, in rows in
  which the node has already been marginalized, from the message that replaces the family;
- two sources are joined on the pairs of configurations that occur in rows, renumbered; the two narrowest sources are
  joined first, so that tables as large as the number of rows come as late as possible.

Cost of compiling: a few passes over the rows with missing values for every join.

**Order.** Marginalizing an attribute joins all attributes with which it shares a table. By greedy minimum fill, the
next attribute is the one whose elimination adds the edges of least total weight among its neighbours, where the weight
of an edge is the product of the cardinalities of its endpoints (Kjaerulff 1990, Triangulation of graphs). On trees this
eliminates leaves first and adds no edges. Ties go to the smaller table, then to the lower index. Cost: O(n^2) for n
attributes, and O(d^2) whenever the weight of the added edges is computed for an attribute with d neighbours.

**Needed families.** A hidden node without observed descendants is barren: its table sums to 1. Moreover, P(class |
evidence) does not depend on the parts of the network that the evidence separates from the class. Bayes-ball (Shachter
1998, Uncertainty in Artificial Intelligence 14) finds both at once: a ball starts at the class, and moves

    hidden node, reached from a child:    on to its parents and its children
    hidden node, reached from a parent:   on to its children
    observed node, reached from a parent: back to its parents
    observed node, reached from a child:  stops

The table of a node is needed if the ball leaves the node upwards. All rows are processed at once, with one Boolean per
node, direction and row. Cost: a few sweeps over the arcs, about a nanosecond per arc and row.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Index, Integers, Mask
from bncli.engine.structures.structure import CLASS, Family

UNIT = 0
"""The slot whose table is 1 everywhere, for rows that lack one side of a join."""
MAX_DEPTH = 32
"""A product of more CPT entries than this is rescaled, because it might underflow, unless it fills a score slot."""
PRODUCTS = 4
"""The factor by which the work, including products that are not stored, may exceed the program's limit of entries."""
MARKED_PER_NUMBER = 16
"""Distinct numbers are found by marking an array if it has at most this many elements per given number."""
MARKED_ANYWAY = 1 << 14
"""Up to this array size, distinct numbers are always found by marking."""

Scope = tuple[int, ...]
"""Hidden attributes, in the order in which they are marginalized."""
Hidden = Mapping[int, Mask]
"""For each attribute that is hidden in some row, whether it is hidden in each row, (rows,)."""


class SlotRange(NamedTuple):
    """The configurations first, first + 1, ..., last - 1 of a slot."""

    slot: int
    first: int
    last: int


class ProductOperand(NamedTuple):
    """One side of a product: configuration u of the product uses configuration ids[u] of a slot.

    axes: the axes of the product that the slot has, where 1 is the first attribute. single: whether all ids are equal.
    run: the ids as a slice if they are consecutive, or None.
    """

    slot: int
    ids: Index
    axes: tuple[int, ...]
    single: bool
    run: slice | None = None


@dataclass(frozen=True)
class CellRange:
    """The operation that fills a range of a slot with the entries at `Program.cells[first:last]`, in C order."""

    to: SlotRange
    first: int
    last: int


@dataclass(frozen=True)
class Join:
    """The operation that multiplies two tables, which have `n_axes` distinct attributes in total.

    rescale: whether the product of each class and configuration is then divided by its largest entry.
    """

    to: SlotRange
    left: ProductOperand
    right: ProductOperand
    n_axes: int
    rescale: bool


@dataclass(frozen=True)
class Contract:
    """The operation that multiplies two tables (or takes one if right is None) and marginalizes the first attribute.

    last: whether it fills a score slot, so that the logarithm of the result is stored. rescale: as for `Join`.
    """

    to: SlotRange
    left: ProductOperand
    right: ProductOperand | None
    n_axes: int
    rescale: bool
    last: bool


class ScoreSlot(NamedTuple):
    """A slot of logarithms without hidden attributes; its configuration codes[t] is added to the score of row t.

    Configuration 0 has the value 0, for rows to which the slot adds nothing.
    """

    slot: int
    codes: Index


@dataclass(frozen=True)
class Program:
    """The operations that compute the scores of some rows.

    shapes[s]: the shape of slot s without the axis of the class. cells: the numbers of the table cells that are looked
    up. work: the number of entries of all slots and products, per class. widest: the scope with the largest number of
    joint values.
    """

    n_rows: int
    shapes: Sequence[tuple[int, ...]]
    operations: Sequence[CellRange | Join | Contract]
    cells: Index
    score_slots: Sequence[ScoreSlot]
    work: int
    widest: Scope


class TooWideError(Exception):
    """Raised when the joint table of the attributes `scope` exceeds the limit."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.scope = scope


class TooManyError(Exception):
    """Raised when all tables together exceed the limit, so that fewer rows must be compiled together."""


class Limits(NamedTuple):
    """The maximum numbers of entries, per class, of the table of one configuration and of all tables of a program."""

    table: int
    program: int


def compile_rows(
    families: Sequence[Family],
    needed: Sequence[Mask],
    codes: Mapping[int, Integers],
    hidden: Hidden,
    order: Sequence[int],
    limits: Limits,
) -> Program:
    """Compile a program for rows with these codes.

    needed[f] (rows,): whether a row needs family f. The program covers the family in the rows that need it and in which
    some of its attributes are hidden. codes: maps each attribute to its codes (rows,). order: the elimination order.
    Raises TooWideError if a table exceeds the limit, and TooManyError if all tables together do and there are several
    rows.
    """
    n_rows = len(needed[0]) if needed else 0
    place = {attribute: p for p, attribute in enumerate(order)}
    cardinalities = {a: n for family in families for a, n in zip(family.attributes, family.shape, strict=True)}
    builder = _Builder(n_rows, cardinalities, place, limits)
    # tables by bucket (None: the scores of rows) and by the node from which they come
    inbox: dict[int | None, dict[int | None, list[_BucketTable]]] = {}
    offset = 1
    for family, rows in zip(families, needed, strict=True):
        for table in _family_tables(family, offset, rows, codes, hidden, place):
            inbox.setdefault(table.scope[0], {}).setdefault(family.child, []).append(table)
        offset += family.n_cells
    for attribute in order:
        sources = [builder.store(tables) for tables in inbox.pop(attribute, {}).values()]
        for message in builder.marginalize(sources) if sources else []:
            bucket = message.scope[0] if message.scope else None
            inbox.setdefault(bucket, {}).setdefault(attribute, []).append(message)
    for tables in inbox.pop(None, {}).values():
        builder.add_score_slot(tables)
    cells = np.concatenate(builder.cells) if builder.cells else np.zeros(0, np.intp)
    operations, score_slots = builder.operations, builder.score_slots
    return Program(n_rows, builder.shapes, operations, cells, score_slots, builder.work, builder.widest)


class _StoredTable(NamedTuple):
    """A slot with tables of some scope, the rows that use it, and the configuration of each row (ids)."""

    scope: Scope
    slot: int
    rows: Index
    ids: Index


_Source = list[_StoredTable]


class _TablePair(NamedTuple):
    """The product of two stored tables over the pairs of configurations that occur together.

    If `right` is None, it consists of the configurations of one table. depth: the number of CPT entries multiplied.
    """

    scope: Scope
    left: ProductOperand
    right: ProductOperand | None
    depth: int


class _BucketTable(NamedTuple):
    """A table that will be put into a slot: cells to look up, or a product whose first attribute is marginalized.

    size: the number of its configurations. ids: the configuration of each of `rows`.
    """

    scope: Scope
    size: int
    rows: Index
    ids: Index
    content: Index | _TablePair


def _family_tables(
    family: Family,
    offset: int,
    needed: Mask,
    codes: Mapping[int, Integers],
    hidden: Hidden,
    place: Mapping[int, int],
) -> list[_BucketTable]:
    """Return one table for each set of hidden attributes of the family that occurs in the rows that need it.

    Rows in which no attribute of the family is hidden have no table. offset: the number of the family's first cell.
    """
    strides = [math.prod(family.shape[axis + 1 :]) for axis in range(len(family.shape))]
    # bit i of a row's mask: the i-th attribute of the family is hidden; 0 where the row does not need the family
    masks = np.zeros(len(needed), np.int64)
    for axis, attribute in enumerate(family.attributes):
        if attribute in hidden:
            masks |= hidden[attribute].astype(np.int64) << axis
    masks[~needed] = 0
    tables = []
    for mask in np.unique(masks[masks > 0]).tolist():
        rows = np.flatnonzero(masks == mask)
        base = np.zeros(len(rows), np.intp)
        inside = []
        for axis, attribute in enumerate(family.attributes):
            if mask >> axis & 1:
                inside.append((place[attribute], axis))
            else:
                # the part of the cell's number that the observed attributes determine
                base += codes[attribute][rows].astype(np.intp) * strides[axis]
        occurring, ids = distinct(base, family.n_cells)
        # (values of the hidden attributes in marginalization order..., configurations), flattened
        cells = np.full(1, offset)
        for _, axis in sorted(inside):
            cells = np.add.outer(cells, np.arange(family.shape[axis]) * strides[axis])
        scope = tuple(family.attributes[axis] for _, axis in sorted(inside))
        entries = np.add.outer(cells, occurring).ravel()
        tables.append(_BucketTable(scope, len(occurring), rows, ids, entries))
    return tables


@dataclass
class _Builder:
    """A program under construction: slots are created, and the operations that fill them are appended in order."""

    n_rows: int
    cardinalities: Mapping[int, int]
    place: Mapping[int, int]
    limits: Limits
    shapes: list[tuple[int, ...]] = field(default_factory=lambda: [(1,)])
    depths: list[int] = field(default_factory=lambda: [0])
    operations: list[CellRange | Join | Contract] = field(default_factory=list)
    cells: list[Index] = field(default_factory=list)
    n_cells: int = 0
    entries: int = 1
    work: int = 0
    score_slots: list[ScoreSlot] = field(default_factory=list)
    widest: Scope = ()

    def store(self, tables: Sequence[_BucketTable]) -> _Source:
        """Put tables that are used by disjoint sets of rows into slots, one slot for each scope."""
        by_scope: dict[Scope, list[_BucketTable]] = {}
        for table in tables:
            by_scope.setdefault(table.scope, []).append(table)
        stored = []
        for scope, alike in by_scope.items():
            slot = self._slot(scope, sum(table.size for table in alike))
            starts = self._fill(slot, alike, 0)
            rows = np.concatenate([table.rows for table in alike])
            ids = np.concatenate([table.ids + start for table, start in zip(alike, starts, strict=True)])
            stored.append(_StoredTable(scope, slot, rows, ids))
        return stored

    def add_score_slot(self, tables: Sequence[_BucketTable]) -> None:
        """Put tables without hidden attributes into a score slot; rows without such a table use configuration 0."""
        slot = self._slot((), 1 + sum(table.size for table in tables))
        codes = np.zeros(self.n_rows, np.intp)
        for table, start in zip(tables, self._fill(slot, tables, 1, last=True), strict=True):
            codes[table.rows] = table.ids + start
        self.score_slots.append(ScoreSlot(slot, codes))

    def marginalize(self, sources: Sequence[_Source]) -> list[_BucketTable]:
        """Join the sources of a bucket, the narrowest two first, and marginalize its attribute; return the messages."""
        # the number breaks ties, so that sources themselves are never compared
        heap = [(*self._width(source), number, source) for number, source in enumerate(sources)]
        heapq.heapify(heap)
        # until two are left, whose product is contracted without being stored
        for number in range(len(sources), 2 * len(sources) - 2):
            both = self._join(heapq.heappop(heap)[-1], heapq.heappop(heap)[-1])
            heapq.heappush(heap, (*self._width(both), number, both))
        left, right = (heapq.heappop(heap)[-1] if heap else [] for _ in range(2))
        tables = self._pairs(left, right)
        for table in tables:
            assert isinstance(table.content, _TablePair)
            # the cost of a contraction includes the entries of the product, and copies of its sides
            pair = table.content
            self._check_size(pair.scope)
            self.work += self._n_entries(pair.scope) * table.size
            copied = [
                side for side in (pair.left, pair.right) if side is not None and not side.single and side.run is None
            ]
            self._allot(table.size * sum(math.prod(self.shapes[side.slot][:-1]) for side in copied))
        return tables

    def _slot(self, scope: Scope, size: int) -> int:
        """Create a slot for `size` configurations of a scope; return its index."""
        self._check_size(scope)
        self._allot(self._n_entries(scope) * size)
        self.work += self._n_entries(scope) * size
        self.shapes.append((*(self.cardinalities[attribute] for attribute in scope), size))
        self.depths.append(0)
        return len(self.shapes) - 1

    def _fill(self, slot: int, tables: Sequence[_BucketTable], start: int, *, last: bool = False) -> list[int]:
        """Append the operations that fill a slot with tables, starting at configuration `start`.

        Returns the first configuration of each table. last: whether it is a score slot.
        """
        starts = []
        for table in tables:
            to = SlotRange(slot, start, start + table.size)
            starts.append(start)
            start, depth = to.last, 1
            if isinstance(table.content, _TablePair):
                scope, left, right, depth = table.content
                rescales = depth > MAX_DEPTH and not last
                self.operations.append(Contract(to, left, right, len(scope), rescales, last))
                # after rescaling, the largest entry is 1, as for a single factor
                depth = 1 if rescales else depth
            else:
                self.operations.append(CellRange(to, self.n_cells, self.n_cells + len(table.content)))
                self.cells.append(table.content)
                self.n_cells += len(table.content)
            self.depths[slot] = max(self.depths[slot], depth)
        return starts

    def _n_entries(self, scope: Scope) -> int:
        return math.prod(self.cardinalities[attribute] for attribute in scope)

    def _check_size(self, scope: Scope) -> None:
        """Raise TooWideError if a table of this scope exceeds the limit; otherwise update the widest scope."""
        entries = self._n_entries(scope)
        if entries > self.limits.table:
            raise TooWideError(scope)
        if entries > self._n_entries(self.widest):
            self.widest = scope

    def _allot(self, entries: int) -> None:
        self.entries += entries
        # a single row cannot be split, so it is accepted in any case
        if max(self.entries, self.work // PRODUCTS) > self.limits.program and self.n_rows > 1:
            raise TooManyError

    def _width(self, source: _Source) -> tuple[int, int]:
        """Return the number of attributes of the source's widest table, and the number of entries of all its tables."""
        entries = sum(math.prod(self.shapes[stored.slot]) for stored in source)
        return max(len(stored.scope) for stored in source), entries

    def _join(self, left: _Source, right: _Source) -> _Source:
        """Join two sources: put their products into slots, one slot for each scope."""
        by_scope: dict[Scope, list[tuple[_BucketTable, _TablePair]]] = {}
        # products of one scope, from different pairs of tables, share a slot
        for table in self._pairs(left, right):
            assert isinstance(table.content, _TablePair)
            by_scope.setdefault(table.content.scope, []).append((table, table.content))
        stored = []
        for scope, tables in by_scope.items():
            slot = self._slot(scope, sum(table.size for table, _ in tables))
            start, ids = 0, []
            for table, pair in tables:
                to = SlotRange(slot, start, start + table.size)
                rescales = pair.depth > MAX_DEPTH
                # a table without a partner is multiplied by 1
                unit = ProductOperand(UNIT, np.zeros(table.size, np.intp), (), single=True)
                self.operations.append(Join(to, pair.left, pair.right or unit, len(scope), rescales))
                self.depths[slot] = max(self.depths[slot], 1 if rescales else pair.depth)
                ids.append(table.ids + start)
                start = to.last
            rows = np.concatenate([table.rows for table, _ in tables])
            stored.append(_StoredTable(scope, slot, rows, np.concatenate(ids)))
        return stored

    def _pairs(self, left: _Source, right: _Source) -> list[_BucketTable]:
        """Return the products of the pairs of configurations that occur in rows.

        For rows that use only one of the sources, the product is the table itself.
        """
        (left_at, left_ids), (right_at, right_ids) = self._by_row(left), self._by_row(right)
        # one number per pair of tables; 0, neither, is skipped below
        pairs = left_at * (len(right) + 1) + right_at
        tables = []
        for pair in np.flatnonzero(np.bincount(pairs, minlength=1)[1:]) + 1:
            a_at, b_at = divmod(int(pair), len(right) + 1)
            rows = np.flatnonzero(pairs == pair)
            if not (a_at and b_at):
                stored, ids = (left[a_at - 1], left_ids[rows]) if a_at else (right[b_at - 1], right_ids[rows])
                occurring, ids = distinct(ids, self.shapes[stored.slot][-1])
                operand = _operand(stored, occurring, stored.scope)
                product = _TablePair(stored.scope, operand, None, self.depths[stored.slot])
            else:
                a, b = left[a_at - 1], right[b_at - 1]
                # a pair is numbered like a cell, with a as the slower digit
                radix = self.shapes[b.slot][-1]
                occurring, ids = distinct(left_ids[rows] * radix + right_ids[rows], self.shapes[a.slot][-1] * radix)
                scope = tuple(sorted({*a.scope, *b.scope}, key=self.place.__getitem__))
                # the configurations of both tables, back from the number of the pair
                a_ids, b_ids = np.divmod(occurring, radix)
                first, second = _operand(a, a_ids, scope), _operand(b, b_ids, scope)
                # a matrix product needs the single configuration on the right
                if first.single:
                    first, second = second, first
                product = _TablePair(scope, first, second, self.depths[a.slot] + self.depths[b.slot])
            tables.append(_BucketTable(product.scope[1:], len(occurring), rows, ids, product))
        return tables

    def _by_row(self, source: _Source) -> tuple[Index, Index]:
        """Return the number of each row's table in the source, counted from 1 (0: none), and its configuration."""
        at, ids = np.zeros(self.n_rows, np.intp), np.zeros(self.n_rows, np.intp)
        for number, stored in enumerate(source, 1):
            at[stored.rows] = number
            ids[stored.rows] = stored.ids
        return at, ids


def _operand(stored: _StoredTable, ids: Index, scope: Scope) -> ProductOperand:
    axes = tuple(axis for axis, attribute in enumerate(scope, 1) if attribute in stored.scope)
    first, last = int(ids[0]), int(ids[-1])
    run = slice(first, last + 1) if bool((np.diff(ids) == 1).all()) else None
    return ProductOperand(stored.slot, ids, axes, bool((ids == first).all()), run)


def distinct(numbers: Index, bound: int) -> tuple[Index, Index]:
    """Return the distinct numbers, ascending, and the position of each number among them.

    All numbers must be at least 0 and below `bound`.
    """
    # marking every possible number costs more than sorting if few of them occur
    if bound > max(MARKED_ANYWAY, MARKED_PER_NUMBER * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(bound, bool)
    present[numbers] = True
    occurring = np.flatnonzero(present)
    rank = np.zeros(bound, np.intp)
    rank[occurring] = np.arange(len(occurring))
    return occurring, rank[numbers]


def elimination_order(cliques: Iterable[Collection[int]], cardinalities: Mapping[int, int]) -> list[int]:
    """Return the attributes, the keys of `cardinalities`, in elimination order.

    cliques: sets of attributes that share a table.
    """
    graph: dict[int, set[int]] = {node: set() for node in cardinalities}
    for clique in cliques:
        for node in clique:
            graph[node].update(other for other in clique if other != node)
    order: list[int] = []
    costs: dict[int, tuple[int, int]] = {}
    while graph:
        # if some node needs no fill, no other can be cheaper, so the outdated costs of others need not be updated
        for node in graph:
            if node not in costs and len(graph[node]) <= 1:
                costs[node] = _elimination_cost(graph, node, cardinalities)
        if all(fill for fill, _ in costs.values()):
            missing = [node for node in graph if node not in costs]
            costs.update((node, _elimination_cost(graph, node, cardinalities)) for node in missing)
        chosen = min(costs, key=lambda node: (*costs[node], node))
        order.append(chosen)
        # join the neighbours, and discard the costs that this changes
        neighbours = graph.pop(chosen)
        costs.pop(chosen)
        changed = set(neighbours)
        for a in neighbours:
            # a gains a neighbour, so the costs of its own neighbours change too
            if neighbours - graph[a] - {a}:
                changed |= graph[a] - {chosen}
            graph[a] |= neighbours
            graph[a] -= {a, chosen}
        for node in changed:
            costs.pop(node, None)
    return order


def _elimination_cost(graph: dict[int, set[int]], node: int, cardinalities: Mapping[int, int]) -> tuple[int, int]:
    """Return the total weight of the edges that eliminating `node` adds, and the number of cells of its joint table."""
    fill = sum(
        cardinalities[a] * cardinalities[b] for a, b in itertools.combinations(graph[node], 2) if b not in graph[a]
    )
    return fill, cardinalities[node] * math.prod(cardinalities[other] for other in graph[node])


def supporting(families: Sequence[Family], hidden: Hidden, n_rows: int) -> list[Mask]:
    """Return, for each family, whether P(class, evidence) depends on it in each row.

    If it does not, the child of the family is barren.
    """
    parents = _parents(families)
    needed = {node: np.ones(n_rows, bool) for node in parents}
    for attribute, rows in hidden.items():
        needed[attribute] = ~rows
    for node in reversed(list(TopologicalSorter(parents).static_order())):
        for parent in parents[node]:
            # a hidden node is needed where one of its children is
            if parent in hidden:
                needed[parent] |= needed[node]
    return [needed[family.child] for family in families]


def requisite(families: Sequence[Family], hidden: Hidden, n_rows: int) -> list[Mask]:
    """Return, for each family, whether P(class | evidence) depends on it in each row (Bayes-ball)."""
    parents = _parents(families)
    order = list(TopologicalSorter(parents).static_order())
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
        # balls go up and down: one sweep in each direction moves them along whole paths
        for node in (*reversed(attributes), *attributes):
            below = _any_of(up, children[node], n_rows)
            above = _any_of(down, parents[node], n_rows)
            if node in hidden:
                # the rules of the module's docstring, in the rows where the node is hidden and in the others
                up[node] |= below & hidden[node]
                up[node] |= above & ~hidden[node]
                down[node] |= (below | above) & hidden[node]
            else:
                # observed in every row: balls from parents return, balls from children stop
                up[node] |= above
        now = sum(int(np.count_nonzero(rows)) for balls in (up, down) for rows in balls.values())
    return [up[family.child] for family in families]


def _parents(families: Sequence[Family]) -> dict[int | None, tuple[int | None, ...]]:
    """Return the parents of every node of the network, including the class."""
    parents: dict[int | None, tuple[int | None, ...]] = {CLASS: ()}
    for family in families:
        parents.update((attribute, ()) for attribute in family.attributes)
    for family in families:
        if family.child is None:
            parents[CLASS] = family.attributes
        else:
            parents[family.child] = (CLASS,) * family.by_class + family.attributes[1:]
    return parents


def _any_of(balls: Mapping[int | None, Mask], nodes: Sequence[int | None], n_rows: int) -> Mask:
    reached = np.zeros(n_rows, bool)
    for node in nodes:
        reached |= balls[node]
    return reached
