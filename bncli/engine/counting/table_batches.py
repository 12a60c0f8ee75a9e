"""Many contingency tables in one pass over the rows: of all pairs of attributes, or of families with one more parent.

*Pairs.* With m attributes, counting the tables n[x_i, x_j, y] pair by pair costs m(m-1)/2 increments per row.
Attributes with few values are therefore joined into *super-attributes* of at most S joint values; pairs of these are
counted, and the table of two attributes is a margin of the table of their super-attributes:

    n[a, b, y] = sum over the joint values u with i's value a, and v with j's value b, of n[u, v, y]

All margins of a pair of super-attributes are computed by two products with 0/1 matrices. S is chosen so that the
estimated cost is lowest, which for G super-attributes is 4 ns N G(G-1)/2 + 1 ns (cells of all tables). Counts are exact
integers, or sums of row weights. Instead of counts per class, the tables may have sums of several values per row
(`pair_sums`). For each pair, all values are summed before the next pair, so that its joint codes are computed once.

*Families.* To add a parent to a child i with the attribute parents P, a search compares candidates j. It needs the
table n[x_i, (x_P, x_j), y] of each (`tables_with_one_more`). The cells of (i, P, class) are numbered once per row; each
candidate adds one digit:

    cell_j(t) = cell(t) r_j + x_j(t),    r_j the number of values of j

Cost: about 4 ns per row and candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import (
    MANY_INCREMENTS,
    MANY_ROWS,
    SPARSE_TABLE,
    Array,
    Index,
    add_counts,
    add_joint_counts,
    cell_numbers,
)

T = TypeVar("T")
JOINT_SIZES = (1, 32, 64, 128)
"""The values of S whose costs are compared."""
BLOCK = 1 << 15
MAX_ENTRIES = 1 << 27
"""The maximum number of entries of a single table (1 GiB)."""
ROUND = 1 << 24
"""The maximum number of entries of tables counted in one pass over the rows (128 MiB), unless one table has more."""
SWEEP_BLOCK = 1 << 15
"""The minimum number of rows processed at a time; it is more for large tables, whose cells are all added each time."""
SWEEP_ROUND = 1 << 17
"""The maximum number of cells of the tables counted in one pass over the rows (1 MiB), or one per row if there are more
rows.

Fresh memory costs more than counting: with tables that stay in the cache a search is twice as fast.
"""


class PairBatch(NamedTuple):
    """Pairs of attributes (i[m], j[m]), in any order, and their tables counts[m] = n[x_i, x_j, y], all of one shape.

    If an attribute has missing values that are marginalized, its last value may be "unobserved". In batches of sums,
    the last axis has the sums of a cell instead of its counts per class.
    """

    i: Index
    j: Index
    counts: Array


@dataclass(frozen=True)
class SuperAttribute:
    """Attributes, in ascending order, whose joint value is one code; `shape` has their cardinalities."""

    attributes: tuple[int, ...]
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def margins(self) -> Array:
        """The 0/1 matrix (values of each attribute in turn, joint values): 1 if the joint value includes the value."""
        digits = np.unravel_index(np.arange(self.size), self.shape)
        # (values of the attribute, joint values) for each attribute
        return np.concatenate(
            [np.arange(radix)[:, np.newaxis] == digit for radix, digit in zip(self.shape, digits, strict=True)]
        ).astype(np.float64)

    def of_cardinality(self, cardinality: int) -> tuple[list[int], Index]:
        """Return the attributes with this cardinality, and their rows in `margins`, (attributes, values)."""
        starts = list(itertools.accumulate(self.shape, initial=0))
        axes = [axis for axis, radix in enumerate(self.shape) if radix == cardinality]
        rows = np.array([starts[axis] for axis in axes])[:, np.newaxis] + np.arange(cardinality)
        return [self.attributes[axis] for axis in axes], rows


def pair_batches(data: Dataset, attributes: Sequence[int]) -> Iterator[PairBatch]:
    """Yield the table of every pair of `attributes` once, counted in rounds of at most ROUND entries."""
    supers = super_attributes({i: data.radices[i] for i in attributes}, data.n_rows, data.n_labels)
    # for rows without weights; sparse matrices pay for their import only with many increments
    many = data.weights is None and data.n_rows * math.comb(len(supers), 2) >= MANY_INCREMENTS
    for pairs in in_rounds(_pairs(supers), lambda pair: _n_joint(supers, *pair) * data.n_labels, ROUND):
        counted = data.reduce(_count_pairs, supers, pairs, data.n_labels, many)
        # [u, y, v], with one v for the pairs of a super-attribute with itself
        shaped = [n.reshape(supers[p].size, data.n_labels, -1) for n, (p, _) in zip(counted, pairs, strict=True)]
        yield from _margins(supers, pairs, shaped)


def pair_sums(data: Dataset, attributes: Sequence[int], columns: Sequence[Array]) -> Iterator[PairBatch]:
    """Yield every pair of `attributes` once, in batches whose `counts` are sums of C values per row.

    columns[s] (C, rows of block s) has the values of the rows of block s.
    """
    n_columns = len(columns[0])
    supers = super_attributes({i: data.radices[i] for i in attributes}, data.n_rows * n_columns, n_columns)
    for pairs in in_rounds(_pairs(supers), lambda pair: _n_joint(supers, *pair) * n_columns, ROUND):
        summed = data.reduce(_sum_pairs, supers, pairs, states=columns)
        # [c, u, v]; the columns take the place of the classes in [u, c, v]
        shaped = [n.reshape(n_columns, supers[p].size, -1) for n, (p, _) in zip(summed, pairs, strict=True)]
        yield from _margins(supers, pairs, [n.transpose(1, 0, 2) for n in shaped])


def super_attributes(cardinalities: dict[int, int], n_rows: int, n_labels: int) -> list[SuperAttribute]:
    """Group attributes into super-attributes by first-fit decreasing, for each S; return the cheapest grouping."""
    best, least = list[SuperAttribute](), math.inf
    for limit in JOINT_SIZES:
        bins: list[list[int]] = []
        cells: list[int] = []
        open_bins: list[int] = []
        for i in sorted(cardinalities, key=lambda i: (-cardinalities[i], i)):
            into = next((b for b in open_bins if cells[b] * cardinalities[i] <= limit), len(bins))
            if into == len(bins):
                open_bins.append(into)
                bins.append([])
                cells.append(1)
            bins[into].append(i)
            cells[into] *= cardinalities[i]
            # no attribute has fewer than two values: a bin over half full has no room
            if 2 * cells[into] > limit:
                open_bins.remove(into)
        members = sorted((tuple(sorted(b)) for b in bins), key=min)
        supers = [SuperAttribute(own, tuple(cardinalities[m] for m in own)) for own in members]
        sizes = [packed.size for packed in supers]
        # ((sum of s)^2 - sum of s^2) / 2 is the sum over pairs of s_p s_q
        n_cells = n_labels * (sum(sizes) ** 2 - sum(s * s for s in sizes)) / 2
        cost = 4.0 * n_rows * len(supers) * (len(supers) - 1) / 2 + n_cells
        if math.prod(sorted(sizes)[-2:]) * n_labels > MAX_ENTRIES:
            cost = math.inf  # pair by pair may still fit
        if not best or cost < least:
            best, least = supers, cost
    return best


def _pairs(supers: list[SuperAttribute]) -> list[tuple[int, int]]:
    """Return all pairs of super-attributes; one that holds several attributes is also paired with itself."""
    pairs = itertools.combinations_with_replacement(range(len(supers)), 2)
    return [(p, q) for p, q in pairs if p != q or len(supers[p].attributes) > 1]


def _n_joint(supers: list[SuperAttribute], p: int, q: int) -> int:
    """Return the number of joint values of a pair of super-attributes, or of the one super-attribute if p = q."""
    return supers[p].size * (1 if p == q else supers[q].size)


def in_rounds(items: Iterable[T], cost_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield lists of consecutive items that together cost at most `limit`; a single item may cost more."""
    taken: list[T] = []
    cost = 0
    for item in items:
        if taken and cost + cost_of(item) > limit:
            yield taken
            taken, cost = [], 0
        taken.append(item)
        cost += cost_of(item)
    if taken:
        yield taken


def _count_pairs(
    block: RowBlock, supers: list[SuperAttribute], pairs: list[tuple[int, int]], n_labels: int, many: bool
) -> list[NDArray[np.generic]]:
    """Return the block's tables n[u, y, v] of pairs, flattened; n[u, y] for a super-attribute with itself.

    If there are `many` increments, rows of weight 1 are counted with sparse matrices.
    """
    dtype = np.int64 if block.weights is None else np.float64
    sizes = [_n_joint(supers, p, q) * n_labels for p, q in pairs]
    totals: list[NDArray[Any]] = [np.zeros(size, dtype) for size in sizes]
    used = sorted({k for pair in pairs for k in pair})
    for rows in block.slices(MANY_ROWS if many else BLOCK):
        weights = None if block.weights is None else block.weights[rows]
        fused: dict[int, NDArray[Any]] = {k: _fuse(block, supers[k], rows, many) for k in used}
        # pairs are ordered by p, whose cells with the class are numbered once for all q
        for p, group in itertools.groupby(zip(pairs, totals, strict=True), key=lambda entry: entry[0][0]):
            with_class = fused[p] * n_labels
            with_class += block.labels[rows]
            for (_, q), total in group:
                cells = with_class
                if p != q and many:
                    add_joint_counts(total, with_class, fused[q], supers[q].size)
                    continue
                if p != q:
                    cells = with_class * supers[q].size
                    cells += fused[q]
                add_counts(total, cells, weights)
    return totals


def _fuse(block: RowBlock, packed: SuperAttribute, rows: slice, many: bool = False) -> NDArray[Any]:
    """Return the joint values of a super-attribute, (rows,); if `many`, in 32 bits and in parts that fit the cache."""
    if not many:
        return cell_numbers([block.codes[i][rows] for i in packed.attributes], packed.shape)
    fused = np.empty(rows.stop - rows.start, np.int32)
    for start in range(rows.start, rows.stop, BLOCK):
        part = slice(start, min(start + BLOCK, rows.stop))
        codes = [block.codes[i][part] for i in packed.attributes]
        fused[start - rows.start : part.stop - rows.start] = cell_numbers(codes, packed.shape)
    return fused


def _sum_pairs(block: RowBlock, supers: list[SuperAttribute], pairs: list[tuple[int, int]]) -> list[Array]:
    """Return the block's sums s[c, u, v] of pairs, (C, cells); s[c, u] for a super-attribute with itself."""
    columns: Array = block.state
    totals = [np.zeros((len(columns), _n_joint(supers, p, q))) for p, q in pairs]
    used = sorted({k for pair in pairs for k in pair})
    for rows in block.slices(BLOCK):
        fused = {k: _fuse(block, supers[k], rows) for k in used}
        for (p, q), total in zip(pairs, totals, strict=True):
            cells = fused[p]
            if p != q:
                cells = fused[p] * supers[q].size
                cells += fused[q]
            for sums, column in zip(total, columns[:, rows], strict=True):
                add_counts(sums, cells, column)
    return totals


def _margins(
    supers: list[SuperAttribute], pairs: list[tuple[int, int]], tables: list[NDArray[Any]]
) -> Iterator[PairBatch]:
    """Yield the tables of all pairs of attributes; tables[k] is [u, y, v] of pairs[k], or [u, y, 0] if p = q."""
    # the pairs of p with others of one shape, or with itself (None), are processed together
    alike: dict[tuple[int, tuple[int, ...] | None], list[int]] = {}
    for k, (p, q) in enumerate(pairs):
        alike.setdefault((p, None if p == q else supers[q].shape), []).append(k)
    for (p, shape), pair_numbers in alike.items():
        packed = supers[p]
        # (pairs, u, y, v)
        counted = np.stack([tables[k] for k in pair_numbers]).astype(np.float64, copy=False)
        if shape is None:
            # (values, y, u) times (u, values): both attributes are in u; each pair appears twice, and i with i
            within = packed.margins[:, np.newaxis, :] * counted[0, :, :, 0].T
            for batch in _batches(packed, [packed], (within @ packed.margins.T)[np.newaxis]):
                once = batch.i < batch.j
                if once.any():
                    yield PairBatch(batch.i[once], batch.j[once], batch.counts[once])
            continue
        others = [supers[pairs[k][1]] for k in pair_numbers]
        n_labels = counted.shape[2]
        # the table of a single attribute is its own margin
        if len(shape) > 1:
            # v becomes the values of the attributes of q
            counted = counted @ others[0].margins.T
        joint = counted.reshape(len(others), packed.size, -1)
        if len(packed.attributes) > 1:
            # u becomes the values of the attributes of p
            joint = packed.margins @ joint
        yield from _batches(packed, others, joint.reshape(len(others), sum(packed.shape), n_labels, -1))


def _batches(p: SuperAttribute, others: list[SuperAttribute], joint: Array) -> Iterator[PairBatch]:
    """Yield the tables over pairs of an attribute of p and one of each of `others`, in batches of equal shape.

    joint[q, v, y, w] counts the value v of an attribute of p with label y and the value w of an attribute of others[q];
    the values of the attributes of a super-attribute follow one another.
    """
    n_others, _, n_labels, _ = joint.shape
    for a, b in itertools.product(sorted(set(p.shape)), sorted(set(others[0].shape))):
        (of_p, rows), (_, columns) = p.of_cardinality(a), others[0].of_cardinality(b)
        tables = joint
        if tables.shape[1::2] != (rows.size, columns.size):
            # the rows of the attributes with cardinalities a and b alone
            tables = joint[:, rows.reshape(-1, 1, 1), np.arange(n_labels)[:, np.newaxis], columns.ravel()]
        # from (others, p's attributes, a, y, q's attributes, b) to (others, p's attributes, q's attributes, a, b, y)
        tables = tables.reshape(n_others, len(rows), a, n_labels, -1, b).transpose(0, 1, 4, 2, 5, 3)
        i, j = np.array(of_p), np.array([q.of_cardinality(b)[0] for q in others])
        every = np.zeros(tables.shape[:3], np.intp)
        first, second = every + i[:, np.newaxis], every + j[:, np.newaxis, :]
        yield PairBatch(first.ravel(), second.ravel(), tables.reshape(-1, a, b, n_labels))


def n_cells(data: Dataset, members: Sequence[int]) -> int:
    """Return the number of cells of the table over `members` and the class, without unobserved values."""
    return math.prod(data.schema.cardinalities[i] for i in members) * data.n_labels


def tables_with_one_more(
    data: Dataset, child: int, parents: tuple[int, ...], candidates: Sequence[int]
) -> Iterator[tuple[list[int], Array]]:
    """Yield lists of candidates j of equal cardinality, with their tables n[x_i, (x_P, x_j), y].

    The tables have shape (candidates, r_i, q, K), where q is the number of values of (x_P, x_j).
    """
    cardinalities, family = data.schema.cardinalities, (child, *parents)
    # whether importing scipy.sparse pays, since a search requests one family after the other
    many = data.weights is None and data.n_rows * math.comb(len(cardinalities), 2) >= MANY_INCREMENTS
    ordered, per_value = sorted(candidates, key=lambda j: (cardinalities[j], j)), n_cells(data, family)
    for together in in_rounds(ordered, lambda j: per_value * cardinalities[j], max(SWEEP_ROUND, data.n_rows)):
        counted = zip(
            together, data.reduce(_count_columns, family, cardinalities, data.n_labels, together, many), strict=True
        )
        for r_j, alike in itertools.groupby(counted, key=lambda entry: cardinalities[entry[0]]):
            members, tables = zip(*alike, strict=True)
            # (candidates, x_i, x_P, y, x_j)
            apart = np.array(tables).reshape(len(members), cardinalities[child], -1, data.n_labels, r_j)
            class_last = np.ascontiguousarray(apart.swapaxes(-1, -2), np.float64)
            yield list(members), class_last.reshape(len(members), cardinalities[child], -1, data.n_labels)


def _count_columns(
    block: RowBlock,
    base: tuple[int, ...],
    cardinalities: tuple[int, ...],
    n_labels: int,
    candidates: list[int],
    many: bool,
) -> list[NDArray[np.generic]]:
    """Return the block's tables n[x_base, y, x_j], flattened, for every candidate j.

    If there are `many` increments, rows of weight 1 are counted with sparse matrices.
    """
    dtype = np.int64 if block.weights is None else np.float64
    shape = (*(cardinalities[i] for i in base), n_labels)
    totals: list[NDArray[Any]] = [np.zeros(math.prod(shape) * cardinalities[j], dtype) for j in candidates]
    for rows in block.slices(MANY_ROWS if many else max(SWEEP_BLOCK, min(SPARSE_TABLE, max(map(len, totals))))):
        weights = None if block.weights is None else block.weights[rows]
        cells = cell_numbers([*(block.codes[i][rows] for i in base), block.labels[rows]], shape)
        narrow = cells.astype(np.int32) if many else None
        for j, total in zip(candidates, totals, strict=True):
            if narrow is not None:
                add_joint_counts(total, narrow, block.codes[j][rows], cardinalities[j])
                continue
            joined = cells * cardinalities[j]
            joined += block.codes[j][rows]
            add_counts(total, joined, weights)
    return totals
