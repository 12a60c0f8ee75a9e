"""The rows of a member of a bag, as they are counted: shuffled, every attribute binned anew.

Attributes are counted several at a time: the codes of a block's attributes are numbered one after the other, so that
one weighted count serves them all. A numeric attribute is binned to at most `bins` intervals of about equal weight; the
edges lie at

    (k + u) / (bins - 1),    k = 0 .. bins - 2

of the weight, moved down to a cut of the schema, with one u in [0, 1) drawn for each attribute: members of a bag
differ in where they cut. Levels of a category, and a missing level, keep their codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

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
class Block:
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
    blocks: tuple[Block, ...]
    order: Index


def columns_of(data: Dataset, bins: int, rng: np.random.Generator) -> BinnedColumns:
    """The informative attributes of these rows; `rng` draws the order of the rows and the edges of bins."""
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
    ends = _drawn_ends(np.array(attribute.frequencies[: attribute.n_values]), bins, u)
    binning = np.cumsum(np.append(False, ends[:-1])).astype(np.intp)
    if attribute.missing:
        binning = np.append(binning, binning[-1] + 1)
    return Column(i, binning, ordered=True, missing=attribute.missing)


def _drawn_ends(weights: Array, bins: int, u: float) -> Mask:
    """Whether a bin ends with each interval."""
    if len(weights) <= bins:
        return np.ones(len(weights), bool)
    shares = np.cumsum(weights) / max(weights.sum(), 1e-300)
    edges = np.floor(shares * (bins - 1) - u)
    # an interval that holds two edges or more is cut off on its other side too
    heavy = weights * (bins - 1) >= 2 * weights.sum()
    return np.asarray(np.append(np.diff(edges) > 0, True) | heavy)


def _blocks(data: Dataset, columns: tuple[Column, ...], order: Index) -> Iterator[Block]:
    for first, stop in _spans([column.n_bins for column in columns], data.n_rows):
        some, width = columns[first:stop], columns[first].n_bins
        places = np.empty((len(some), 2 * data.n_rows), code_dtype(len(some) * width))
        for c, column in enumerate(some):
            places[c, : data.n_rows] = (column.binning + c * width)[data.codes[column.attribute][order]]
        places[:, data.n_rows :] = places[:, : data.n_rows]
        yield Block(first, some, width, places)


def _spans(sizes: list[int], n_rows: int) -> Iterator[tuple[int, int]]:
    """First and last column + 1 of every block; no column takes more than twice the room that it needs."""
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
