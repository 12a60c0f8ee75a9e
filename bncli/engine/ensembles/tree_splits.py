"""One oblivious tree: level after level the question that gains most in all nodes together.

With a gradient g (of one of two classes, or a random projection of all) and a curvature h of every row, a question that
sends the rows of every node n to the left L or to the right R gains

    sum over nodes n of   g_Ln^2 / (h_Ln + lambda) + g_Rn^2 / (h_Rn + lambda) - g_n^2 / (h_n + lambda)

(Friedman 2001, Annals of Statistics 29; Chen & Guestrin 2016, KDD, equation 7, summed over the nodes of a level). An
interval's questions are the edges of its bins, with a missing value on either side; a category's are the beginnings of
its levels when they are ordered by g / (h + lambda), all nodes together (Fisher 1958, JASA 53).

For the questions alone, gradients and curvatures are rounded at random to whole numbers, so that both sums fit into one
double (Shi, Ke, Chen et al. 2022, NeurIPS: Quantized training of gradient boosting decision trees); of many rows
WINDOW are looked at.

Cost: for each level one weighted count a row and column, or where they are many of half of the rows, and about twenty
operations a node and bin.

The rows of a member of a bag, as they are counted: shuffled, every attribute binned anew.

Attributes are counted several at a time: the codes of a block's attributes are numbered one after the other, so that
one weighted count serves them all. A numeric attribute is binned to at most `bins` intervals of about equal weight; the
edges lie at

    (k + u) / (bins - 1),    k = 0 .. bins - 2

of the weight, moved down to a cut of the schema, with one u in [0, 1) drawn for each attribute: members of a bag differ
in where they cut. Levels of a category, and a missing level, keep their codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask

BLOCK_VALUES = 1 << 19
"""Values counted at a time, roughly: their places and weights stay in the second-level cache."""
BLOCK_PLACES = 1 << 13
"""Bins of a block: they are counted in every node."""


@dataclass(frozen=True)
class Column:
    """An informative attribute: its number, and the bin of every code of the schema.

    `ordered`: bins are intervals, but for the last where there is a `missing` level.
    """

    attribute: int
    binning: Index
    ordered: bool
    missing: bool

    @cached_property
    def n_bins(self) -> int:
        """The missing level's bin included."""
        return int(self.binning.max()) + 1


@dataclass(frozen=True)
class ColumnGroup:
    """Some columns (`first` and its neighbours), each with room for `width` bins.

    places (columns, 2 N): column * width + bin of the shuffled rows, laid twice: any window of them is a slice.
    """

    first: int
    columns: tuple[Column, ...]
    width: int
    places: Codes

    @cached_property
    def stays(self) -> Mask:
        """Whether a bin keeps its place (columns, width): intervals, categories of two levels, and room left over."""
        sizes = [0 if column.ordered or column.n_bins <= 2 else column.n_bins for column in self.columns]
        return np.asarray(np.arange(self.width) >= np.array(sizes)[:, np.newaxis])

    @cached_property
    def all_stay(self) -> bool:
        """Whether every bin keeps its place."""
        return bool(self.stays.all())

    @cached_property
    def again(self) -> tuple[int, ...]:
        """Columns whose missing level may go to either side."""
        return tuple(c for c, column in enumerate(self.columns) if column.ordered and column.missing)


@dataclass(frozen=True)
class BinnedColumns:
    """All columns, by falling number of bins, in blocks; order (N,): the row of the data at each shuffled place."""

    columns: tuple[Column, ...]
    blocks: tuple[ColumnGroup, ...]
    order: Index


LEAST_CURVATURE = 0.1
"""On either side of a question, all nodes together."""
LEAST_GAIN = 1e-9
WINDOW = 1 << 17
"""Rows, at most."""
MANY_VALUES = 1 << 16
"""Of a window: of more only the smaller of two nodes is counted, the other is what is left."""
MULTIPLIED = 64
"""Bins, at most, that are summed by a product of matrices."""
_FIELD = 26
"""Bits of a double for each of two sums; with a sign each, and all rows in one node, none overflows."""
Units = tuple[float, float]
"""What a whole number of gradient, and of curvature, stands for."""


@dataclass(frozen=True)
class BinSplit:
    """Which bins of a column go to the right."""

    column: int
    right: Mask
    gain: float


class Splits:
    """Grows trees on windows of the rows of `columns`."""

    def __init__(self, columns: BinnedColumns, penalty: float, depth: int) -> None:
        self.columns, self.penalty, self.depth = columns, penalty, depth
        self._n_rows = len(columns.order)

    def grow(self, g: Array, h: Array, start: int, rng: np.random.Generator) -> tuple[list[BinSplit], Index]:
        """Return the questions of a tree from the gradients and curvatures (n,) of a window of the shuffled rows.

        The window begins with row `start` and goes on with the first row after the last. Also the leaf of every row.
        """
        packed, units = _packed(g, h, rng)
        longest = np.tile(packed, max((len(block.columns) for block in self.columns.blocks), default=0))
        window = [block.places[:, start : start + len(g)] for block in self.columns.blocks]
        levels = [_Level(block, rows, longest) for block, rows in zip(self.columns.blocks, window, strict=True)]
        node, questions = np.zeros(self._n_rows, np.intp), list[BinSplit]()
        for _ in range(self.depth):
            best = self._best(node[: len(g)], 1 << len(questions), levels, units)
            if best is None:
                break
            questions.append(best)
            node += node
            node += self._answers(best, slice(start, start + self._n_rows))
        return questions, np.roll(node, start)

    def _best(self, node: Index, n_nodes: int, levels: Sequence[_Level], units: Units) -> BinSplit | None:
        best: BinSplit | None = None
        many = len(node) * len(self.columns.columns) > MANY_VALUES
        fewer = _Fewer.of(node, n_nodes, levels) if many and n_nodes > 1 else None
        for level in levels:
            counted = level.counted(node, n_nodes) if fewer is None else level.counted_of(fewer)
            found = _best_of(level.block, counted, units, self.penalty)
            if found.gain > LEAST_GAIN and (best is None or found.gain > best.gain):
                best = found
        return best

    def _answers(self, question: BinSplit, rows: slice) -> Mask:
        """Of these rows."""
        block = next(b for b in self.columns.blocks if 0 <= question.column - b.first < len(b.columns))
        c = question.column - block.first
        return answers(question.right, block.places[c, rows], c * block.width)


class _Fewer(NamedTuple):
    """Of every two nodes that one question has parted, the one with fewer rows: its rows, each with its number / 2.

    packed: of these rows, as often as the widest block has columns.
    """

    n: int
    is_right: Mask
    rows: Index
    parents: Index
    packed: Array

    @classmethod
    def of(cls, node: Index, n_nodes: int, levels: Sequence[_Level]) -> _Fewer:
        """Of all nodes of a level, by the node of every row."""
        sizes = np.bincount(node, minlength=n_nodes)
        right = sizes[1::2] < sizes[::2]
        fewer = np.column_stack([~right, right]).ravel()
        rows = np.flatnonzero(fewer[node])
        packed = levels[0].packed[: len(node)][rows]
        most = max(len(level.block.columns) for level in levels)
        return cls(n_nodes // 2, right, rows, node[rows] >> 1, np.tile(packed, most))


class _Level:
    """Packed sums (nodes, columns, width) over the rows of every node and bin of a block, level after level."""

    def __init__(self, block: ColumnGroup, places: Codes, packed: Array) -> None:
        self.block, self._places = block, places
        self.packed = packed[: places.size]
        self._size = len(block.columns) * block.width
        self._sums = np.zeros((1, 0))

    def counted(self, node: Index, n_nodes: int) -> Array:
        """Return all rows."""
        places: Codes | Index = self._places if n_nodes == 1 else self._places + node * self._size
        self._sums = self._count(places, n_nodes, self.packed)
        return self._by_column()

    def counted_of(self, fewer: _Fewer) -> Array:
        """Return some of the rows: the larger node has what is left of the sums of the level before."""
        places = self._places.take(fewer.rows, axis=1, mode="clip") + fewer.parents * self._size
        some = self._count(places, fewer.n, fewer.packed[: places.size])
        both = np.empty((fewer.n, 2, self._size))
        parted = np.arange(fewer.n)
        both[parted, fewer.is_right.astype(np.intp)] = some
        both[parted, 1 - fewer.is_right] = self._sums - some
        self._sums = both.reshape(-1, self._size)
        return self._by_column()

    def _count(self, places: Codes | Index, n_nodes: int, weights: Array) -> Array:
        sums = np.bincount(places.ravel(), weights, n_nodes * self._size)
        return sums.astype(np.float64, copy=False).reshape(n_nodes, -1)

    def _by_column(self) -> Array:
        return self._sums.reshape(len(self._sums), -1, self.block.width)


def columns_of(data: Dataset, bins: int, rng: np.random.Generator) -> BinnedColumns:
    """Return the informative attributes of these rows; `rng` draws the order of the rows and the edges of bins."""
    order = rng.permutation(data.n_rows)
    attributes = data.schema.attributes
    found = tuple(_column(attributes[i], i, bins, rng) for i in data.schema.informative)
    # neighbours of one width share a block
    columns = tuple(sorted((column for column in found if column.n_bins > 1), key=lambda column: -column.n_bins))
    return BinnedColumns(columns, tuple(_blocks(data, columns, order)), order)


def _column(attribute: Attribute, i: int, bins: int, rng: np.random.Generator) -> Column:
    u = float(rng.random())
    if not isinstance(attribute, NumericAttribute):
        return Column(i, np.arange(attribute.cardinality), ordered=False, missing=attribute.missing)
    ends = _sampled_ends(np.array(attribute.frequencies[: attribute.n_values]), bins, u)
    binning = np.cumsum(np.append(False, ends[:-1])).astype(np.intp)
    if attribute.missing:
        binning = np.append(binning, binning[-1] + 1)
    return Column(i, binning, ordered=True, missing=attribute.missing)


def _sampled_ends(weights: Array, bins: int, u: float) -> Mask:
    """Return whether a bin ends with each interval."""
    if len(weights) <= bins:
        return np.ones(len(weights), bool)
    shares = np.cumsum(weights) / max(weights.sum(), 1e-300)
    edges = np.floor(shares * (bins - 1) - u)
    # an interval that holds two edges or more is cut off on its other side too
    heavy = weights * (bins - 1) >= 2 * weights.sum()
    return np.asarray(np.append(np.diff(edges) > 0, True) | heavy)


def _blocks(data: Dataset, columns: tuple[Column, ...], order: Index) -> Iterator[ColumnGroup]:
    for first, stop in _spans([column.n_bins for column in columns], data.n_rows):
        some, width = columns[first:stop], columns[first].n_bins
        places = np.empty((len(some), 2 * data.n_rows), code_dtype(len(some) * width))
        for c, column in enumerate(some):
            places[c, : data.n_rows] = (column.binning + c * width)[data.codes[column.attribute][order]]
        places[:, data.n_rows :] = places[:, : data.n_rows]
        yield ColumnGroup(first, some, width, places)


def _spans(sizes: list[int], n_rows: int) -> Iterator[tuple[int, int]]:
    """Yield first and last column + 1 of every block; no column takes more than twice the room that it needs."""
    first = 0
    for c, size in enumerate(sizes):
        here = c + 1 - first
        if c > first and (
            here * n_rows > BLOCK_VALUES or here * sizes[first] > BLOCK_PLACES or 2 * size < sizes[first]
        ):
            yield first, c
            first = c
    if sizes:
        yield first, len(sizes)


def answers(right: Mask, codes: Codes, first: int = 0) -> Mask:
    """right[codes - first]: by a comparison where that is enough."""
    n = np.count_nonzero(right)
    end = len(right) - n
    return np.asarray(codes >= first + end if np.count_nonzero(right[end:]) == n else np.take(right, codes - first))


def _packed(g: Array, h: Array, rng: np.random.Generator) -> tuple[Array, Units]:
    """Return both in each number (n,), in whole units."""
    most = 2.0 ** (_FIELD - 1 - math.ceil(math.log2(len(g) + 1))) - 1
    units = tuple(max(float(np.abs(x).max(initial=0.0)), 1e-300) / most for x in (g, h))
    whole_g, whole_h = (np.floor(x / unit + rng.random(len(x))) for x, unit in zip((g, h), units, strict=True))
    return whole_g * 2.0**_FIELD + whole_h, (units[0], units[1])


def _unpacked(packed: Array, units: Units) -> tuple[Array, Array]:
    """Return sums of g and of h."""
    g = np.rint(packed * 2.0**-_FIELD)
    h = packed - g * 2.0**_FIELD
    g *= units[0]
    h *= units[1]
    return g, h


def _best_of(block: ColumnGroup, counted: Array, units: Units, penalty: float) -> BinSplit:
    """Return the block's question of the highest gain, from packed sums (nodes, columns, width)."""
    order = _order(block, counted, units, penalty)
    if order is not None:
        counted = counted[:, np.arange(len(order))[:, np.newaxis], order]
    # Along the last axis; whole numbers, so that a product of matrices, which is faster for few bins, is exact too.
    width = counted.shape[-1]
    left = np.asarray(counted.cumsum(axis=2) if width > MULTIPLIED else counted @ _triangle(width))
    total = left[:, :1, -1:].copy()
    again = block.again
    # the missing level, the last bin, on the left
    last = np.array([block.columns[c].n_bins - 1 for c in again], np.intp)
    # beyond the last question the missing level is on the left already
    asked = np.arange(block.width) < last[:, np.newaxis] - 1
    moved = np.where(asked, left[:, again] + counted[:, again, last][..., np.newaxis], 0.0) if again else None
    gains = _gains(left, total, units, penalty)
    best = int(gains.argmax())
    found = _question(block, best, float(gains.flat[best]), order)
    if moved is None:
        return found
    gains = _gains(moved, total, units, penalty)
    gains[~asked] = 0.0
    best = int(gains.argmax())
    if gains.flat[best] <= found.gain:
        return found
    c, end = divmod(best, block.width)
    right = np.arange(block.columns[again[c]].n_bins) > end
    right[-1] = False
    return BinSplit(block.first + again[c], right, float(gains.flat[best]))


def _order(block: ColumnGroup, counted: Array, units: Units, penalty: float) -> Index | None:
    """Return the bins of every column (columns, width), levels by their gradients.

    None where there are none to order.
    """
    if block.all_stay:
        return None
    g, h = _unpacked(counted.sum(axis=0), units)
    # what is alike stays in its order
    return np.argsort(np.where(block.stays, np.inf, g / (h + penalty)), axis=1, kind="stable")


@cache
def _triangle(width: int) -> Array:
    triangle = np.triu(np.ones((width, width)))
    triangle.flags.writeable = False
    return triangle


def _gains(left: Array, total: Array, units: Units, penalty: float) -> Array:
    """Return (columns, places) from packed sums.

    Left (nodes, columns, places), overwritten, and total (nodes, 1, 1).
    """
    all_g, all_h = _unpacked(total, (1.0, 1.0))
    g = left * 2.0**-_FIELD
    np.rint(g, out=g)
    left -= g * 2.0**_FIELD
    h = left
    curvature = h.sum(axis=0)
    # in place, in whole units: half of the time goes into reading and writing
    lost = penalty / units[1]
    rest = all_g - g
    g *= g
    h += lost
    g /= h
    rest *= rest
    np.subtract(all_h + 2.0 * lost, h, out=h)
    rest /= h
    g += rest
    gains = (g.sum(axis=0) - float((all_g * all_g / (all_h + lost)).sum())) * (units[0] ** 2 / units[1])
    least = LEAST_CURVATURE / units[1]
    gains[(curvature <= least) | (all_h.sum() - curvature <= least)] = 0.0
    return np.asarray(gains)


def _question(block: ColumnGroup, best: int, gain: float, order: Index | None) -> BinSplit:
    """Return the bins beyond the best place."""
    c, end = divmod(best, block.width)
    right = np.zeros(block.width, bool)
    after = np.arange(end + 1, block.width)
    right[after if order is None else order[c, after]] = True
    return BinSplit(block.first + c, right[: block.columns[c].n_bins], gain)
