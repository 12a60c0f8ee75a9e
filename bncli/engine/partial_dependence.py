"""I(A; B | Z) of two nodes given any set of others: the questions that a constraint-based learner asks.

The class is a node like any attribute. With n_s the weight of the rows that agree with s on a set of nodes S,

    I(A; B | Z) = [ G(ABZ) + G(Z) - G(AZ) - G(BZ) ] / N,    G(S) = sum over observed s of n_s ln n_s

A search asks for sets that overlap, so that a question costs less than one new G. Those are kept, tables are not.
Where S has few cells its table is counted whole; otherwise only the cells that occur are, so that memory follows
the rows, not the product of the cardinalities:

    cell = ((s_1 |S_2| + s_2) |S_3| + s_3) ...

Decided here: where that number would not fit into 62 bits, its leading part is replaced by its rank among those that
occur; answers are rounded to 12 decimals, below which a difference of such sums means nothing. Cost of a new G: N
increments where the table is small, else a sort of N numbers; what a call needs is counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.dataset import Codes, Dataset, Shard
from bncli.engine.kernels.observed import Array, Cells, observed, sum_n_log_n

CLASS_NODE = -1
"""The class among attribute indices; it comes before all of them."""
DECIMALS = 12
SMALL_TABLE = 1 << 14
"""A table of no more cells is counted whole; a larger one, if it has few cells beside the rows of a shard."""
CELLS_PER_ROW = 4
ROUND = 1 << 22
"""Entries of the tables that are counted in one pass over the rows (32 MiB)."""
LARGEST_NUMBER = 1 << 62

Node = int
Nodes = frozenset[Node]
Observed = tuple[Cells, Array]


class Part(NamedTuple):
    """Digits that follow on what came before; `ranks`: then take the place among these numbers (None: as it is)."""

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    ranks: Cells | None


class Number(NamedTuple):
    """How the number of a row's cell is made, and a bound that it stays below."""

    parts: tuple[Part, ...]
    bound: int


@dataclass(frozen=True)
class PartialDependence:
    """The answers for one data set, in nats, rounded for comparison."""

    data: Dataset
    _sums: dict[Nodes, float] = field(default_factory=dict)

    def given(self, a: Node, b: Node, sets: Sequence[Nodes]) -> list[float]:
        """I(A; B | Z) for every Z of `sets`, never negative; 0 without rows."""
        families = [(z | {a, b}, z, z | {a}, z | {b}) for z in sets]
        self._count([s for family in families for s in family])
        total = self.data.total_weight or 1.0
        shared = ([self._sums[s] for s in family] for family in families)
        return [max(round((abz + z - az - bz) / total, DECIMALS), 0.0) for abz, z, az, bz in shared]

    def _count(self, wanted: Sequence[Nodes]) -> None:
        """G of every set that is not known yet."""
        numbers = {s: self._number(sorted(s)) for s in wanted if s not in self._sums}
        limit = max(SMALL_TABLE, CELLS_PER_ROW * self.data.n_rows // len(self.data.bounds()))
        for small in _rounds([s for s in numbers if numbers[s].bound <= limit], limit):
            tables = self.data.reduce(_count_whole, [numbers[s] for s in small])
            self._sums.update((s, sum_n_log_n(table)) for s, table in zip(small, tables, strict=True))
        for large in _rounds([s for s in numbers if numbers[s].bound > limit], self.data.n_rows):
            shards = self.data.map(_count_observed, [numbers[s] for s in large])
            for s, *parts in zip(large, *shards, strict=True):
                self._sums[s] = sum_n_log_n(_merged(parts))

    def _number(self, nodes: Sequence[Node]) -> Number:
        """The cell number of these nodes; passes over the rows only where it is too long."""
        number = Number((), 1)
        digits: list[Node] = []
        for node in nodes:
            radix = self._cardinality(node)
            if number.bound * radix > LARGEST_NUMBER:
                number, digits = self._ranked(number, digits), []
            digits.append(node)
            number = number._replace(bound=number.bound * radix)
        return Number((*number.parts, self._part(digits)), number.bound)

    def _ranked(self, number: Number, digits: list[Node]) -> Number:
        """The number with these digits as its rank among those that occur."""
        parts = (*number.parts, self._part(digits))
        ranks = np.unique(np.concatenate(self.data.map(_distinct, Number(parts, LARGEST_NUMBER))))
        return Number((*parts[:-1], parts[-1]._replace(ranks=ranks)), max(len(ranks), 1))

    def _part(self, digits: list[Node]) -> Part:
        return Part(tuple(digits), tuple(map(self._cardinality, digits)), None)

    def _cardinality(self, node: Node) -> int:
        return self.data.n_labels if node == CLASS_NODE else self.data.schema.cardinalities[node]


def _rounds(sets: list[Nodes], entries: int) -> Iterator[list[Nodes]]:
    """As many at a time as fit the budget, if each takes so many entries."""
    step = max(ROUND // max(entries, 1), 1)
    return (sets[start : start + step] for start in range(0, len(sets), step))


def _merged(parts: Sequence[Observed]) -> Array:
    """The counts of all shards' cells together."""
    if len(parts) == 1:
        return parts[0][1]
    cells, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return observed(cells, counts)[1]


def _count_whole(shard: Shard, numbers: list[Number]) -> list[NDArray[np.generic]]:
    return [np.bincount(_cells(shard, number), shard.weights, number.bound) for number in numbers]


def _count_observed(shard: Shard, numbers: list[Number]) -> list[Observed]:
    return [observed(_cells(shard, number), shard.weights) for number in numbers]


def _distinct(shard: Shard, number: Number) -> Cells:
    return np.unique(_cells(shard, number))


def _cells(shard: Shard, number: Number) -> Cells:
    """The cell of every row, in the narrower of two types that holds it."""
    is_short = number.bound <= 1 << 32 and len(number.parts) == 1
    cells: NDArray[Any] = np.zeros(shard.n_rows, np.uint32 if is_short else np.int64)
    for part in number.parts:
        for node, radix in zip(part.nodes, part.shape, strict=True):
            cells *= radix
            cells += _codes(shard, node)
        if part.ranks is not None:
            cells = np.searchsorted(part.ranks, cells)
    return cells


def _codes(shard: Shard, node: Node) -> Codes:
    return shard.labels if node == CLASS_NODE else shard.codes[node]
