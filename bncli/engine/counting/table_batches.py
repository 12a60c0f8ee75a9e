"""The tables n[x_i, x_j, y] of all pairs of attributes, in batches of one shape.

Counting them pair by pair costs n(n-1)/2 increments a row. Attributes with few values are therefore joined to
*super-attributes* of at most S joint values; pairs of these are counted, and the table of two attributes is a
margin of the table of their super-attributes:

    n[a, b, y] = sum over the joint values u with i's value a, and v with j's value b, of n[u, v, y]

All margins of two are two products with matrices of zeros and ones. S is chosen by the cost model
4 ns N G(G-1)/2 + 1 ns (cells of all tables) with G super-attributes. Counts are exact integers, or sums of row weights.

In place of counts by class the tables may hold sums of any numbers of the rows, all of them summed for a pair of them
before the next: its joint codes are made once.

The tables of families that differ in one parent, counted together in one sweep over the rows.

For a child i with the attribute parents P and every candidate j the table n[x_i, (x_P, x_j), y] is wanted. The cells of
(i, P, class) are numbered once a row; each candidate adds one digit to that number:

    cell_j(t) = cell(t) r_j + x_j(t),    r_j the number of values of j

Cost: about 4 ns a row and candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import (
    MANY_INCREMENTS,
    MANY_ROWS,
    SPARSE_TABLE,
    add_counts,
    add_joint_counts,
    cell_numbers,
)

JOINT_SIZES = (1, 32, 64, 128)
BLOCK = 1 << 15
MAX_ENTRIES = 1 << 27
"""A single table with more entries (1 GiB) is never made."""
ROUND = 1 << 24
"""Entries of the tables that are counted in one pass over the rows (128 MiB)."""


class PairBatch(NamedTuple):
    """Pairs of attributes (i[m], j[m]), in any order, and counts[m] = n[x_i, x_j, y]; all of one shape.

    Where rows have missing values the last value of an attribute is "unobserved". Of sums, the last axis are those of a
    cell.
    """

    i: Index
    j: Index
    counts: Array


@dataclass(frozen=True)
class SuperAttribute:
    """A super-attribute: ascending attributes, their cardinalities, and their product."""

    attributes: tuple[int, ...]
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def margins(self) -> Array:
        """Zeros and ones (values of all attributes in turn, joint values): which joint values have which value."""
        digits = np.unravel_index(np.arange(self.size), self.shape)
        return np.concatenate(
            [np.arange(radix)[:, np.newaxis] == digit for radix, digit in zip(self.shape, digits, strict=True)]
        ).astype(np.float64)

    def having(self, cardinality: int) -> list[int]:
        """Return the attributes with so many values."""
        return [i for i, radix in zip(self.attributes, self.shape, strict=True) if radix == cardinality]

    def rows(self, cardinality: int) -> Index:
        """Where `margins` has the values of these attributes, shape (attributes, values)."""
        starts = itertools.accumulate(self.shape, initial=0)
        chosen = [start for start, radix in zip(starts, self.shape, strict=False) if radix == cardinality]
        return np.array(chosen)[:, np.newaxis] + np.arange(cardinality)


SWEEP_BLOCK = 1 << 15
"""Rows that are numbered at a time; more where a table has more cells, which are all added for every block."""
SWEEP_ROUND = 1 << 17
"""Cells of the tables (1 MiB) that are counted in one pass over the rows, or one a row if there are more rows.

Fresh memory costs more than counting: with tables that stay in the cache a search is twice as fast.
"""


def pair_batches(data: Dataset, attributes: Sequence[int]) -> Iterator[PairBatch]:
    """Yield every pair of `attributes` once, counted in rounds that fit the memory budget."""
    supers = super_attributes({i: data.radices[i] for i in attributes}, data.n_rows, data.n_labels)
    many = data.weights is None and data.n_rows * math.comb(len(supers), 2) >= MANY_INCREMENTS
    kernel = _count_pairs_of_many if many else _count_pairs
    for pairs in _pair_rounds(supers, data.n_labels):
        counted = data.reduce(kernel, supers, pairs, data.n_labels)
        shaped = [n.reshape(supers[p].size, data.n_labels, -1) for n, (p, _) in zip(counted, pairs, strict=True)]
        yield from _margins(supers, pairs, shaped)


def _count_pairs_of_many(
    block: RowBlock, supers: list[SuperAttribute], pairs: list[tuple[int, int]], n_labels: int
) -> list[NDArray[np.int64]]:
    """Return the same of rows that weigh 1, by sparse matrices."""
    totals = [np.zeros(supers[p].size * n_labels * (1 if p == q else supers[q].size), np.int64) for p, q in pairs]
    used = sorted({k for pair in pairs for k in pair})
    for rows in block.slices(MANY_ROWS):
        fused = {k: _fused(block, supers[k], rows) for k in used}
        for p, group in itertools.groupby(zip(pairs, totals, strict=True), key=lambda entry: entry[0][0]):
            with_class = fused[p] * np.int32(n_labels)
            with_class += block.labels[rows]
            for (_, q), total in group:
                if p == q:
                    add_counts(total, with_class, None)
                else:
                    add_joint_counts(total, with_class, fused[q], supers[q].size)
    return totals


def _fused(block: RowBlock, one: SuperAttribute, rows: slice) -> NDArray[np.int32]:
    """Return the joint values of a super-attribute, (rows,)."""
    fused = np.empty(rows.stop - rows.start, np.int32)
    for start in range(rows.start, rows.stop, BLOCK):
        some = slice(start, min(start + BLOCK, rows.stop))
        fused[start - rows.start : some.stop - rows.start] = cell_numbers(
            [block.codes[i][some] for i in one.attributes], one.shape
        )
    return fused


def _count_pairs(
    block: RowBlock, supers: list[SuperAttribute], pairs: list[tuple[int, int]], n_labels: int
) -> list[NDArray[np.generic]]:
    """Return partial tables n[u, y, v] of pairs, flat; of one with itself: n[u, y]."""
    kind = np.int64 if block.weights is None else np.float64
    sizes = [supers[p].size * n_labels * (1 if p == q else supers[q].size) for p, q in pairs]
    totals: list[NDArray[np.generic]] = [np.zeros(size, kind) for size in sizes]
    used = sorted({k for pair in pairs for k in pair})
    for rows in block.slices(BLOCK):
        weights = None if block.weights is None else block.weights[rows]
        fused = {k: cell_numbers([block.codes[i][rows] for i in supers[k].attributes], supers[k].shape) for k in used}
        for p, group in itertools.groupby(zip(pairs, totals, strict=True), key=lambda entry: entry[0][0]):
            with_class = fused[p] * n_labels
            with_class += block.labels[rows]
            for (_, q), total in group:
                add_counts(total, with_class if p == q else _join(with_class, fused[q], supers[q].size), weights)
    return totals


def _join(code: Index, other: Index, size: int) -> Index:
    cells = code * size
    cells += other
    return cells


def _pair_rounds(supers: list[SuperAttribute], n_labels: int) -> Iterator[list[tuple[int, int]]]:
    """Pairs of super-attributes, and of one that holds several attributes with itself, that are counted in one pass."""
    pairs: list[tuple[int, int]] = []
    entries = 0
    for p, q in itertools.combinations_with_replacement(range(len(supers)), 2):
        # one attribute has no pair with itself
        if p == q and len(supers[p].attributes) == 1:
            continue
        size = supers[p].size * (1 if p == q else supers[q].size) * n_labels
        if pairs and entries + size > ROUND:
            yield pairs
            pairs, entries = [], 0
        pairs.append((p, q))
        entries += size
    if pairs:
        yield pairs


def _margins(
    supers: list[SuperAttribute], pairs: list[tuple[int, int]], tables: list[NDArray[Any]]
) -> Iterator[PairBatch]:
    """Yield all pairs of attributes, from tables[k] [u, y, v] of a pair; of one with itself [u, y, 0]."""
    for p, alike in _alike(supers, pairs):
        stacked = np.stack([tables[k] for k in alike]).astype(np.float64, copy=False)
        if pairs[alike[0]] == (p, p):
            yield from _within(supers[p], stacked[0, :, :, 0])
        else:
            yield from _across(supers[p], [supers[pairs[k][1]] for k in alike], stacked)


def _alike(supers: list[SuperAttribute], pairs: list[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Return (p, places among `pairs` of those of p with others of one shape, or with itself)."""
    groups: dict[tuple[int, tuple[int, ...] | None], list[int]] = {}
    for place, (p, q) in enumerate(pairs):
        groups.setdefault((p, None if p == q else supers[q].shape), []).append(place)
    return ((p, places) for (p, _), places in groups.items())


def _within(p: SuperAttribute, counted: Array) -> Iterator[PairBatch]:
    """Yield the pairs inside a super-attribute, from n[u, y]; each once."""
    of_p = p.margins
    both = of_p[:, np.newaxis, :] * counted.T
    for batch in _batches(p, [p], (both @ of_p.T)[np.newaxis]):
        once = batch.i < batch.j
        if once.any():
            yield PairBatch(batch.i[once], batch.j[once], batch.counts[once])


def _batches(p: SuperAttribute, others: list[SuperAttribute], joint: Array) -> Iterator[PairBatch]:
    """Yield the tables in joint[q, values of all of p, y, values of all of q], those of one shape together."""
    n_others, _, n_labels, _ = joint.shape
    for a, b in itertools.product(sorted(set(p.shape)), sorted(set(others[0].shape))):
        rows, columns = p.rows(a), others[0].rows(b)
        tables = joint
        if tables.shape[1::2] != (rows.size, columns.size):
            tables = joint[:, rows.reshape(-1, 1, 1), np.arange(n_labels)[:, np.newaxis], columns.ravel()]
        tables = tables.reshape(n_others, len(rows), a, n_labels, -1, b).transpose(0, 1, 4, 2, 5, 3)
        i, j = np.array(p.having(a)), np.array([q.having(b) for q in others])
        every = np.zeros(tables.shape[:3], np.intp)
        first, second = every + i[:, np.newaxis], every + j[:, np.newaxis, :]
        yield PairBatch(first.ravel(), second.ravel(), tables.reshape(-1, a, b, n_labels))


def _across(p: SuperAttribute, others: list[SuperAttribute], counted: Array) -> Iterator[PairBatch]:
    """Return the pairs between p and others q of one shape, from n[q, u, y, v].

    Of one attribute the margins are known.
    """
    n_labels = counted.shape[2]
    if len(others[0].attributes) > 1:
        counted = counted @ others[0].margins.T
    joint = counted.reshape(len(others), p.size, -1)
    if len(p.attributes) > 1:
        joint = p.margins @ joint
    return _batches(p, others, joint.reshape(len(others), sum(p.shape), n_labels, -1))


def pair_sums(data: Dataset, attributes: Sequence[int], columns: Sequence[Array]) -> Iterator[PairBatch]:
    """Yield the same with sums over rows of columns[s] (C, rows of block s) as `counts`."""
    n_columns = len(columns[0])
    supers = super_attributes({i: data.radices[i] for i in attributes}, data.n_rows * n_columns, n_columns)
    for pairs in _pair_rounds(supers, n_columns):
        summed = data.reduce(_sum, supers, pairs, states=columns)
        shaped = [n.reshape(n_columns, supers[p].size, -1) for n, (p, _) in zip(summed, pairs, strict=True)]
        yield from _margins(supers, pairs, [n.transpose(1, 0, 2) for n in shaped])


def _sum(block: RowBlock, supers: list[SuperAttribute], pairs: list[tuple[int, int]]) -> list[Array]:
    """Return partial sums s[c, u, v] of pairs, (C, cells); of one with itself: s[c, u]."""
    columns: Array = block.state
    sizes = [supers[p].size * (1 if p == q else supers[q].size) for p, q in pairs]
    totals = [np.zeros((len(columns), size)) for size in sizes]
    used = sorted({k for pair in pairs for k in pair})
    for rows in block.slices(BLOCK):
        fused = {k: cell_numbers([block.codes[i][rows] for i in supers[k].attributes], supers[k].shape) for k in used}
        for (p, q), total in zip(pairs, totals, strict=True):
            cells = fused[p] if p == q else _join(fused[p], fused[q], supers[q].size)
            for sums, column in zip(total, columns[:, rows], strict=True):
                add_counts(sums, cells, column)
    return totals


def super_attributes(cardinalities: dict[int, int], n_rows: int, n_labels: int) -> list[SuperAttribute]:
    """Return the cheapest grouping by the cost model, first-fit decreasing for each S."""
    ways = [_first_fit(cardinalities, size) for size in JOINT_SIZES]
    return min(ways, key=lambda supers: _cost(supers, n_rows, n_labels))


def _first_fit(cardinalities: dict[int, int], size: int) -> list[SuperAttribute]:
    bins: list[list[int]] = []
    cells: list[int] = []
    open_bins: list[int] = []
    for i in sorted(cardinalities, key=lambda i: (-cardinalities[i], i)):
        into = next((b for b in open_bins if cells[b] * cardinalities[i] <= size), len(bins))
        if into == len(bins):
            open_bins.append(into)
            bins.append([])
            cells.append(1)
        bins[into].append(i)
        cells[into] *= cardinalities[i]
        # no attribute has fewer than two values: a bin over half full takes none
        if 2 * cells[into] > size:
            open_bins.remove(into)
    return [SuperAttribute(tuple(sorted(b)), tuple(cardinalities[m] for m in sorted(b))) for b in sorted(bins, key=min)]


def _cost(supers: list[SuperAttribute], n_rows: int, n_labels: int) -> float:
    increments = 4.0 * n_rows * len(supers) * (len(supers) - 1) / 2
    sizes = [one.size for one in supers]
    if math.prod(sorted(sizes)[-2:]) * n_labels > MAX_ENTRIES:
        return math.inf  # pair by pair may still fit
    cells = n_labels * (sum(sizes) ** 2 - sum(s * s for s in sizes)) / 2
    return increments + cells


def n_cells(data: Dataset, members: Sequence[int]) -> int:
    """Return cells of the table over `members` and the class."""
    return math.prod(data.schema.cardinalities[i] for i in members) * data.n_labels


def tables_with_one_more(
    data: Dataset, child: int, parents: tuple[int, ...], candidates: Sequence[int]
) -> Iterator[tuple[list[int], Array]]:
    """Candidates with as many values each, and their tables n[x_i, (x_P, x_j), y], shape (candidates, r_i, q, K)."""
    cardinalities, family = data.schema.cardinalities, (child, *parents)
    # a search asks for one family after the other
    many = data.weights is None and data.n_rows * math.comb(len(cardinalities), 2) >= MANY_INCREMENTS
    kernel = _count_columns_of_many if many else _count_columns
    for together in _column_rounds(candidates, cardinalities, n_cells(data, family), max(SWEEP_ROUND, data.n_rows)):
        counted = zip(together, data.reduce(kernel, family, cardinalities, data.n_labels, together), strict=True)
        for r_j, alike in itertools.groupby(counted, key=lambda entry: cardinalities[entry[0]]):
            members, tables = zip(*alike, strict=True)
            apart = np.array(tables).reshape(len(members), cardinalities[child], -1, data.n_labels, r_j)
            tables_of_y = np.ascontiguousarray(apart.swapaxes(-1, -2), np.float64)
            yield list(members), tables_of_y.reshape(len(members), cardinalities[child], -1, data.n_labels)


def _count_columns_of_many(
    block: RowBlock, base: tuple[int, ...], cardinalities: tuple[int, ...], n_labels: int, candidates: list[int]
) -> list[NDArray[np.int64]]:
    """Return the same of rows that weigh 1, by sparse matrices."""
    shape = (*(cardinalities[i] for i in base), n_labels)
    totals = [np.zeros(math.prod(shape) * cardinalities[j], np.int64) for j in candidates]
    for rows in block.slices(MANY_ROWS):
        cells = cell_numbers([*(block.codes[i][rows] for i in base), block.labels[rows]], shape).astype(np.int32)
        for j, total in zip(candidates, totals, strict=True):
            add_joint_counts(total, cells, block.codes[j][rows], cardinalities[j])
    return totals


def _count_columns(
    block: RowBlock, base: tuple[int, ...], cardinalities: tuple[int, ...], n_labels: int, candidates: list[int]
) -> list[NDArray[np.generic]]:
    """Return partial tables n[x_base, y, x_j] of one block, flat, for every candidate."""
    kind = np.int64 if block.weights is None else np.float64
    shape = (*(cardinalities[i] for i in base), n_labels)
    totals: list[NDArray[np.generic]] = [np.zeros(math.prod(shape) * cardinalities[j], kind) for j in candidates]
    for rows in block.slices(max(SWEEP_BLOCK, min(SPARSE_TABLE, max(map(len, totals))))):
        weights = None if block.weights is None else block.weights[rows]
        cells = cell_numbers([*(block.codes[i][rows] for i in base), block.labels[rows]], shape)
        for j, total in zip(candidates, totals, strict=True):
            joined = cells * cardinalities[j]
            joined += block.codes[j][rows]
            add_counts(total, joined, weights)
    return totals


def _column_rounds(
    candidates: Sequence[int], cardinalities: tuple[int, ...], base: int, at_most: int
) -> Iterator[list[int]]:
    """Yield the candidates by their number of values, as many at a time as their tables allow."""
    together: list[int] = []
    values = 0
    for j in sorted(candidates, key=lambda j: (cardinalities[j], j)):
        values += cardinalities[j]
        if together and base * values > at_most:
            yield together
            together, values = [], cardinalities[j]
        together.append(j)
    if together:
        yield together
