"""Programs in the making: slots are laid out, and operations that fill them are appended in order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bncli.engine.inference.program import UNIT, Contract, Join, Look, Place, Program, ScoreSlot, Side
from bncli.engine.kernels.arrays import Index

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


class Pair(NamedTuple):
    """A product: configurations of two stored tables that rows show together (`right` None: of one alone)."""

    scope: Scope
    left: Side
    right: Side | None
    depth: int


class BucketTable(NamedTuple):
    """A table on its way to a slot: entries to look up, or a product with its first attribute marginalized."""

    scope: Scope
    size: int
    rows: Index
    ids: Index
    content: Index | Pair


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
    operations: list[Look | Join | Contract] = field(default_factory=list)
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
        """Tables side by side: of different rows, those of one scope in one slot."""
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
            to = Place(slot, start, start + table.size)
            starts.append(start)
            start = to.last
            if isinstance(table.content, Pair):
                scope, left, right, depth = table.content
                deep = depth > MAX_DEPTH and not last
                self.operations.append(Contract(to, left, right, len(scope), deep, last))
                self._deepen(slot, 1 if deep else depth)
            else:
                self.operations.append(Look(to, self.n_cells, self.n_cells + len(table.content)))
                self.cells.append(table.content)
                self.n_cells += len(table.content)
                self._deepen(slot, 1)
        return starts

    def _deepen(self, slot: int, depth: int) -> None:
        self.depths[slot] = max(self.depths[slot], depth)

    def marginalized(self, sources: Sequence[Source]) -> list[BucketTable]:
        """All sources of a bucket joined, its attribute marginalized: the narrowest two first, the last two at once."""
        heap = [(*self._weight(source), number, source) for number, source in enumerate(sources)]
        heapq.heapify(heap)
        for number in range(len(sources), 2 * len(sources) - 2):
            both = self._join(heapq.heappop(heap)[-1], heapq.heappop(heap)[-1])
            heapq.heappush(heap, (*self._weight(both), number, both))
        left, right = (heapq.heappop(heap)[-1] if heap else [] for _ in range(2))
        tables = self._pairs(left, right)
        for table in tables:
            assert isinstance(table.content, Pair)
            self._contract(table.content, table.size)
        return tables

    def _contract(self, pair: Pair, size: int) -> None:
        """Counts what contracting a product of `size` configurations takes: copies of its sides, and its numbers."""
        self._check(pair.scope)
        self.work += self._n_entries(pair.scope) * size
        sides = [side for side in (pair.left, pair.right) if side is not None and not side.single and side.run is None]
        self._allot(size * sum(math.prod(self.shapes[side.slot][:-1]) for side in sides))

    def _n_entries(self, scope: Scope) -> int:
        return math.prod(self.cardinalities[attribute] for attribute in scope)

    def _check(self, scope: Scope) -> None:
        """Refuses a table that is too large."""
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
        """Attributes in the widest table, and entries of all."""
        return max(len(stored.scope) for stored in source), sum(
            math.prod(self.shapes[stored.slot]) for stored in source
        )

    def _join(self, left: Source, right: Source) -> Source:
        """The products in slots, one for each scope."""
        by_scope: dict[Scope, list[BucketTable]] = {}
        for table in self._pairs(left, right):
            assert isinstance(table.content, Pair)
            by_scope.setdefault(table.content.scope, []).append(table)
        return [self._joined(scope, tables) for scope, tables in by_scope.items()]

    def _joined(self, scope: Scope, tables: Sequence[BucketTable]) -> StoredTable:
        slot = self._slot(scope, sum(table.size for table in tables))
        start, ids = 0, []
        for table in tables:
            assert isinstance(table.content, Pair)
            _, left, right, depth = table.content
            to = Place(slot, start, start + table.size)
            deep = depth > MAX_DEPTH
            unit = Side(UNIT, np.zeros(table.size, np.intp), (), single=True)
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
        pair = Pair(stored.scope, _side(stored, found, stored.scope), None, self.depths[stored.slot])
        return BucketTable(stored.scope[1:], len(found), rows, ids, pair)

    def _together(self, a: StoredTable, b: StoredTable, rows: Index, a_ids: Index, b_ids: Index) -> BucketTable:
        # configurations of b: a pair is numbered like a cell, a the slower digit
        radix = self.shapes[b.slot][-1]
        found, ids = distinct(a_ids * radix + b_ids, self.shapes[a.slot][-1] * radix)
        scope = tuple(sorted({*a.scope, *b.scope}, key=self.place.__getitem__))
        a_found, b_found = np.divmod(found, radix)
        depth = self.depths[a.slot] + self.depths[b.slot]
        left, right = _side(a, a_found, scope), _side(b, b_found, scope)
        pair = Pair(scope, right, left, depth) if left.single else Pair(scope, left, right, depth)
        return BucketTable(scope[1:], len(found), rows, ids, pair)


def _side(stored: StoredTable, ids: Index, scope: Scope) -> Side:
    axes = tuple(axis for axis, attribute in enumerate(scope, 1) if attribute in stored.scope)
    first, last = int(ids[0]), int(ids[-1])
    run = slice(first, last + 1) if bool((np.diff(ids) == 1).all()) else None
    return Side(stored.slot, ids, axes, bool((ids == first).all()), run)


def distinct(numbers: Index, bound: int) -> tuple[Index, Index]:
    """The numbers that occur, ascending, and the place of each given number among them; all are below `bound`."""
    # a mark for every possible number costs more than sorting where few of them occur
    if bound > max(MARKED_ANYWAY, MARKED_PER_NUMBER * len(numbers)):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(bound, bool)
    present[numbers] = True
    found = np.flatnonzero(present)
    rank = np.zeros(bound, np.intp)
    rank[found] = np.arange(len(found))
    return found, rank[numbers]
