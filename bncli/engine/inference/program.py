"""What a compiled program consists of: slots for tables, and the operations that fill them.

A slot is an array of shape (K, |x_1|, |x_2|, ..., configurations): a function of the class and of hidden attributes
x_1, x_2, ... (the slot's scope), once for each configuration of observed values that some row shows. Rows with equal
content share a configuration, so that work is done once for all of them. Three operations fill slots:

    Look       CPT entries of a family at the codes observed
    Join       out[y, x, u] = left[y, x, i(u)] right[y, x, j(u)], axes that one side lacks repeated
    Contract   out[y, x, u] = sum over x_1 of left[y, x_1, x, i(u)] right[y, x_1, x, j(u)]

Programs in the making: slots are laid out, and operations that fill them are appended in order.

From rows with missing values to a program that marginalizes them: bucket elimination on unique configurations.

Hidden attributes are marginalized in one fixed order. Every table that a row needs waits in the bucket of the first
attribute of that order that it has hidden in it; a bucket's tables are joined and its attribute is marginalized, and
what remains goes to the bucket of the next hidden attribute, or, if there is none, to the row's score (Dechter 1999,
Artificial Intelligence 113). All rows go through the buckets together, whatever they hide:

- a table carries the rows that use it, and their configuration of it; a *source* of a bucket (a family and the
message
  that stands for it where its child was marginalized before) is one table for each set of hidden attributes, its
  scope;
- two sources are joined on the pairs of configurations that rows show, renumbered; the smallest two first, so that
  row-sized tables are met as late as possible.

Cost of compiling: a few passes over the rows with missing values for every join.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bncli.engine.inference.elimination import Hidden
from bncli.engine.kernels.arrays import Index, Integers, Mask
from bncli.engine.structures.structure import Family

UNIT = 0
"""The slot of a table that is 1 everywhere, for rows that lack one side of a join."""


class SlotRange(NamedTuple):
    """Configurations first, first + 1, ..., last - 1 of a slot."""

    slot: int
    first: int
    last: int


@dataclass(frozen=True)
class CellRange:
    """Entries `first` to `last` of the program's cells, in the order of the slot."""

    to: SlotRange
    first: int
    last: int


class ProductOperand(NamedTuple):
    """Configurations ids[u] of a slot; `axes` are the axes of the product that it has, 1 for the first attribute.

    `single`: all ids are equal. `run`: they are so many consecutive ones, or None.
    """

    slot: int
    ids: Index
    axes: tuple[int, ...]
    single: bool
    run: slice | None = None


@dataclass(frozen=True)
class Join:
    """The product of two tables with `n_axes` attributes in all; divided by its largest entries if `rescale`."""

    to: SlotRange
    left: ProductOperand
    right: ProductOperand
    n_axes: int
    rescale: bool


@dataclass(frozen=True)
class Contract:
    """The product of two tables (one table where right is None), its first attribute marginalized.

    The logarithm of that if it is the `last`, for a score slot.
    """

    to: SlotRange
    left: ProductOperand
    right: ProductOperand | None
    n_axes: int
    rescale: bool
    last: bool


class ScoreSlot(NamedTuple):
    """A slot of logarithms without hidden attributes: row t of the program adds configuration codes[t] (0: nothing)."""

    slot: int
    codes: Index


@dataclass(frozen=True)
class Program:
    """shapes[s] of slot s, the class's axis left out; cells (entries that are looked up,), numbers of table cells."""

    n_rows: int
    shapes: Sequence[tuple[int, ...]]
    operations: Sequence[CellRange | Join | Contract]
    cells: Index
    score_slots: Sequence[ScoreSlot]
    work: int
    """Numbers in all slots and products, for one class."""
    widest: tuple[int, ...]
    """The attributes of the largest scope, by the number of their joint values."""


Scope = tuple[int, ...]
"""Hidden attributes, first marginalized first."""
MAX_DEPTH = 32
"""A product of more CPT entries than this is rescaled: it might get too small for a number."""
PRODUCTS = 4
"""Products that are never built may have so many times the entries of all tables: in logarithms they would be built."""
MARKED_PER_NUMBER = 16
"""Presence is marked in an array while there are at most so many possible numbers for each one given."""
MARKED_ANYWAY = 1 << 14


class TooWideError(Exception):
    """Attributes whose joint table is larger than allowed."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.scope = scope


class TooManyError(Exception):
    """All tables together are larger than allowed; fewer rows would need fewer."""


class Limits(NamedTuple):
    """The most entries, for one class, of the table of one configuration, and of all tables of a program."""

    table: int
    program: int


class StoredTable(NamedTuple):
    """Rows that hold a table of this scope in a slot, and the configuration of each."""

    scope: Scope
    slot: int
    rows: Index
    ids: Index


class TablePair(NamedTuple):
    """A product: configurations of two stored tables that rows show together (`right` None: of one alone)."""

    scope: Scope
    left: ProductOperand
    right: ProductOperand | None
    depth: int


class BucketTable(NamedTuple):
    """A table on its way to a slot: entries to look up, or a product with its first attribute marginalized."""

    scope: Scope
    size: int
    rows: Index
    ids: Index
    content: Index | TablePair


Source = list[StoredTable]


@dataclass
class Builder:
    """A program in the making."""

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

    def program(self) -> Program:
        cells = np.concatenate(self.cells) if self.cells else np.zeros(0, np.intp)
        return Program(self.n_rows, self.shapes, self.operations, cells, self.score_slots, self.work, self.widest)

    def source(self, tables: Sequence[BucketTable]) -> Source:
        """Return tables side by side: of different rows, those of one scope in one slot."""
        by_scope: dict[Scope, list[BucketTable]] = {}
        for table in tables:
            by_scope.setdefault(table.scope, []).append(table)
        stored = []
        for scope, alike in by_scope.items():
            slot = self._slot(scope, sum(table.size for table in alike))
            starts = self._fill(slot, alike, 0)
            rows = np.concatenate([table.rows for table in alike])
            ids = np.concatenate([table.ids + start for table, start in zip(alike, starts, strict=True)])
            stored.append(StoredTable(scope, slot, rows, ids))
        return stored

    def score_slot(self, tables: Sequence[BucketTable]) -> None:
        """Tables without hidden attributes; configuration 0 is for rows that have none."""
        slot = self._slot((), 1 + sum(table.size for table in tables))
        codes = np.zeros(self.n_rows, np.intp)
        for table, start in zip(tables, self._fill(slot, tables, 1, last=True), strict=True):
            codes[table.rows] = table.ids + start
        self.score_slots.append(ScoreSlot(slot, codes))

    def _slot(self, scope: Scope, size: int) -> int:
        self._check(scope)
        self._allot(self._n_entries(scope) * size)
        self.work += self._n_entries(scope) * size
        self.shapes.append((*(self.cardinalities[attribute] for attribute in scope), size))
        self.depths.append(0)
        return len(self.shapes) - 1

    def _fill(self, slot: int, tables: Sequence[BucketTable], start: int, *, last: bool = False) -> list[int]:
        """Operations that fill the slot table after table; where each starts."""
        starts = []
        for table in tables:
            to = SlotRange(slot, start, start + table.size)
            starts.append(start)
            start = to.last
            if isinstance(table.content, TablePair):
                scope, left, right, depth = table.content
                deep = depth > MAX_DEPTH and not last
                self.operations.append(Contract(to, left, right, len(scope), deep, last))
                self._deepen(slot, 1 if deep else depth)
            else:
                self.operations.append(CellRange(to, self.n_cells, self.n_cells + len(table.content)))
                self.cells.append(table.content)
                self.n_cells += len(table.content)
                self._deepen(slot, 1)
        return starts

    def _deepen(self, slot: int, depth: int) -> None:
        self.depths[slot] = max(self.depths[slot], depth)

    def marginalized(self, sources: Sequence[Source]) -> list[BucketTable]:
        """Return all sources of a bucket joined, its attribute marginalized.

        The narrowest two first, the last two at once.
        """
        heap = [(*self._weight(source), number, source) for number, source in enumerate(sources)]
        heapq.heapify(heap)
        for number in range(len(sources), 2 * len(sources) - 2):
            both = self._join(heapq.heappop(heap)[-1], heapq.heappop(heap)[-1])
            heapq.heappush(heap, (*self._weight(both), number, both))
        left, right = (heapq.heappop(heap)[-1] if heap else [] for _ in range(2))
        tables = self._pairs(left, right)
        for table in tables:
            assert isinstance(table.content, TablePair)
            # Counts what contracting a product of `size` configurations takes: copies of its sides, and its numbers.
            pair = table.content
            self._check(pair.scope)
            self.work += self._n_entries(pair.scope) * table.size
            sides = [
                side for side in (pair.left, pair.right) if side is not None and not side.single and side.run is None
            ]
            self._allot(table.size * sum(math.prod(self.shapes[side.slot][:-1]) for side in sides))
        return tables

    def _n_entries(self, scope: Scope) -> int:
        return math.prod(self.cardinalities[attribute] for attribute in scope)

    def _check(self, scope: Scope) -> None:
        """Refuse a table that is too large."""
        entries = self._n_entries(scope)
        if entries > self.limits.table:
            raise TooWideError(scope)
        if entries > self._n_entries(self.widest):
            self.widest = scope

    def _allot(self, entries: int) -> None:
        self.entries += entries
        # a single row cannot be split: it has to fit as it is
        if max(self.entries, self.work // PRODUCTS) > self.limits.program and self.n_rows > 1:
            raise TooManyError

    def _weight(self, source: Source) -> tuple[int, int]:
        """Return attributes in the widest table, and entries of all."""
        return max(len(stored.scope) for stored in source), sum(
            math.prod(self.shapes[stored.slot]) for stored in source
        )

    def _join(self, left: Source, right: Source) -> Source:
        """Return the products in slots, one for each scope."""
        by_scope: dict[Scope, list[BucketTable]] = {}
        for table in self._pairs(left, right):
            assert isinstance(table.content, TablePair)
            by_scope.setdefault(table.content.scope, []).append(table)
        return [self._joined(scope, tables) for scope, tables in by_scope.items()]

    def _joined(self, scope: Scope, tables: Sequence[BucketTable]) -> StoredTable:
        slot = self._slot(scope, sum(table.size for table in tables))
        start, ids = 0, []
        for table in tables:
            assert isinstance(table.content, TablePair)
            _, left, right, depth = table.content
            to = SlotRange(slot, start, start + table.size)
            deep = depth > MAX_DEPTH
            unit = ProductOperand(UNIT, np.zeros(table.size, np.intp), (), single=True)
            self.operations.append(Join(to, left, right or unit, len(scope), deep))
            self._deepen(slot, 1 if deep else depth)
            ids.append(table.ids + start)
            start = to.last
        return StoredTable(scope, slot, np.concatenate([table.rows for table in tables]), np.concatenate(ids))

    def _pairs(self, left: Source, right: Source) -> list[BucketTable]:
        """Rows side by side: where both have a table the pair of configurations counts, else that of one alone."""
        (left_at, left_ids), (right_at, right_ids) = self._spread(left), self._spread(right)
        pairs = left_at * (len(right) + 1) + right_at
        tables = []
        for pair in np.flatnonzero(np.bincount(pairs, minlength=1)[1:]) + 1:
            a_at, b_at = divmod(int(pair), len(right) + 1)
            a, b = left[a_at - 1] if a_at else None, right[b_at - 1] if b_at else None
            rows = np.flatnonzero(pairs == pair)
            if a is None or b is None:
                a, ids = (a, left_ids[rows]) if b is None else (b, right_ids[rows])
                assert a is not None
                tables.append(self._alone(a, rows, ids))
            else:
                tables.append(self._together(a, b, rows, left_ids[rows], right_ids[rows]))
        return tables

    def _spread(self, source: Source) -> tuple[Index, Index]:
        """By row: which table of the source it has (counted from 1; 0: none), and its configuration there."""
        at, ids = np.zeros(self.n_rows, np.intp), np.zeros(self.n_rows, np.intp)
        for number, stored in enumerate(source, 1):
            at[stored.rows] = number
            ids[stored.rows] = stored.ids
        return at, ids

    def _alone(self, stored: StoredTable, rows: Index, ids: Index) -> BucketTable:
        found, ids = distinct(ids, self.shapes[stored.slot][-1])
        pair = TablePair(stored.scope, _side(stored, found, stored.scope), None, self.depths[stored.slot])
        return BucketTable(stored.scope[1:], len(found), rows, ids, pair)

    def _together(self, a: StoredTable, b: StoredTable, rows: Index, a_ids: Index, b_ids: Index) -> BucketTable:
        # configurations of b: a pair is numbered like a cell, a the slower digit
        radix = self.shapes[b.slot][-1]
        found, ids = distinct(a_ids * radix + b_ids, self.shapes[a.slot][-1] * radix)
        scope = tuple(sorted({*a.scope, *b.scope}, key=self.place.__getitem__))
        a_found, b_found = np.divmod(found, radix)
        depth = self.depths[a.slot] + self.depths[b.slot]
        left, right = _side(a, a_found, scope), _side(b, b_found, scope)
        pair = TablePair(scope, right, left, depth) if left.single else TablePair(scope, left, right, depth)
        return BucketTable(scope[1:], len(found), rows, ids, pair)


_Inbox = dict[int | None, dict[int | None, list[BucketTable]]]
"""By bucket (None: the rows' scores) and node of origin."""


def distinct(numbers: Index, bound: int) -> tuple[Index, Index]:
    """Return the numbers that occur, ascending, and the place of each given number among them.

    All are below `bound`.
    """
    # a mark for every possible number costs more than sorting where few of them occur
    if bound > max(MARKED_ANYWAY, MARKED_PER_NUMBER * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(bound, bool)
    present[numbers] = True
    found = np.flatnonzero(present)
    rank = np.zeros(bound, np.intp)
    rank[found] = np.arange(len(found))
    return found, rank[numbers]


def compile_rows(
    families: Sequence[Family],
    needed: Sequence[Mask],
    codes: Mapping[int, Integers],
    hidden: Hidden,
    order: Sequence[int],
    limits: Limits,
) -> Program:
    """Return the program of rows given by their codes.

    Family f counts in the rows needed[f], if it hides something there.

    Raises TooWideError for a table beyond the limit, TooManyError where all tables together go beyond it and there is
    more than one row.
    """
    n_rows = len(needed[0]) if needed else 0
    place = {attribute: p for p, attribute in enumerate(order)}
    cardinalities = {a: n for family in families for a, n in zip(family.attributes, family.shape, strict=True)}
    builder = Builder(n_rows, cardinalities, place, limits)
    inbox: _Inbox = {}
    offset = 1
    for family, rows in zip(families, needed, strict=True):
        for table in _family_tables(family, offset, rows, codes, hidden, place):
            inbox.setdefault(table.scope[0], {}).setdefault(family.child, []).append(table)
        offset += family.n_cells
    for attribute in order:
        sources = [builder.source(tables) for tables in inbox.pop(attribute, {}).values()]
        for message in builder.marginalized(sources) if sources else []:
            bucket = message.scope[0] if message.scope else None
            inbox.setdefault(bucket, {}).setdefault(attribute, []).append(message)
    for tables in inbox.pop(None, {}).values():
        builder.score_slot(tables)
    return builder.program()


def _family_tables(
    family: Family,
    offset: int,
    needed: Mask,
    codes: Mapping[int, Integers],
    hidden: Hidden,
    place: Mapping[int, int],
) -> list[BucketTable]:
    """Return one table for every set of the family's attributes that some row hides.

    Its cells are numbered from `offset`.
    """
    strides = [math.prod(family.shape[axis + 1 :]) for axis in range(len(family.shape))]
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
                base += codes[attribute][rows].astype(np.intp) * strides[axis]
        found, ids = distinct(base, family.n_cells)
        cells = np.full(1, offset)
        for _, axis in sorted(inside):
            cells = np.add.outer(cells, np.arange(family.shape[axis]) * strides[axis])
        scope = tuple(family.attributes[axis] for _, axis in sorted(inside))
        tables.append(BucketTable(scope, len(found), rows, ids, np.add.outer(cells, found).ravel()))
    return tables


def _side(stored: StoredTable, ids: Index, scope: Scope) -> ProductOperand:
    axes = tuple(axis for axis, attribute in enumerate(scope, 1) if attribute in stored.scope)
    first, last = int(ids[0]), int(ids[-1])
    run = slice(first, last + 1) if bool((np.diff(ids) == 1).all()) else None
    return ProductOperand(stored.slot, ids, axes, bool((ids == first).all()), run)
