"""I(A; B | Z) of two nodes given any set of others: the questions that a constraint-based learner asks.

The class is a node like any attribute. With n_s the weight of the rows that agree with s on a set of nodes S,

    I(A; B | Z) = [ G(ABZ) + G(Z) - G(AZ) - G(BZ) ] / N,    G(S) = sum over observed s of n_s ln n_s

A search asks for sets that overlap, so that a question costs less than one new G. Those are kept, tables are not.
Where S has few cells its table is counted whole; otherwise only the cells that occur are, so that memory follows
the rows, not the product of the cardinalities:

    cell = ((s_1 |S_2| + s_2) |S_3| + s_3) ...

Where missing values are to be marginalized, each answer comes from the rows in which A, B and all of Z are observed,
so that a sum belongs to a set and to the attributes that have to be observed.

Conventions: where that number would not fit into 62 bits, its leading part is replaced by its rank among those that
occur; answers are rounded to 12 decimals, below which a difference of such sums means nothing. Cost of a new G: N
increments where the table is small, else a sort of N numbers; what a call needs is counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers

CLASS_NODE = -1
"""The class among attribute indices; it comes before all of them."""
DECIMALS = 12
SMALL_TABLE = 1 << 14
"""A table of no more cells is counted whole; a larger one, if it has few cells beside the rows of a block."""
CELLS_PER_ROW = 4
ROUND = 1 << 22
"""Entries of the tables that are counted in one pass over the rows (32 MiB)."""
LARGEST_NUMBER = 1 << 62

Node = int
Nodes = frozenset[Node]
Observed = tuple[Integers, Array]


class Part(NamedTuple):
    """Digits that follow on what came before; `ranks`: then take the place among these numbers (None: as it is)."""

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    ranks: Integers | None


class Number(NamedTuple):
    """How the number of a row's cell is made, and a bound that it stays below.

    Rows where an attribute i of `observed` pairs (i, cardinality of i) is unobserved have none.
    """

    parts: tuple[Part, ...]
    bound: int
    observed: tuple[tuple[Node, int], ...]


class Question(NamedTuple):
    """G(S) in the rows in which all of `observed`, attributes with missing values, are observed."""

    nodes: Nodes
    observed: Nodes


@dataclass(frozen=True)
class PartialDependence:
    """The answers for one data set, in nats, rounded for comparison."""

    data: Dataset
    _sums: dict[Question, float] = field(default_factory=dict)
    _weights: dict[Nodes, float] = field(default_factory=dict)  # of the rows in which these are observed

    def given(self, a: Node, b: Node, sets: Sequence[Nodes]) -> list[float]:
        """I(A; B | Z) for every Z of `sets`, never negative; 0 without rows."""
        rows = [self._with_observed(z | {a, b}) for z in sets]
        members = ((z | {a, b}, z, z | {a}, z | {b}) for z in sets)
        families = [tuple(Question(s, seen) for s in four) for four, seen in zip(members, rows, strict=True)]
        self._count([question for family in families for question in family])
        self._weigh(rows)
        shared = ([self._sums[question] for question in family] for family in families)
        sums = [abz + z - az - bz for abz, z, az, bz in shared]
        # no rows: every sum is 0, and so is the answer; rounding may leave it just below 0
        return [max(round(g / (self._weights[seen] or 1.0), DECIMALS), 0.0) for g, seen in zip(sums, rows, strict=True)]

    def _with_observed(self, nodes: Nodes) -> Nodes:
        return frozenset(i for i in nodes if i != CLASS_NODE and self.data.n_missing[i])

    def _weigh(self, wanted: Sequence[Nodes]) -> None:
        """The weight of the rows in which these are observed."""
        for observed_nodes in wanted:
            if observed_nodes not in self._weights:
                number = Number((), 1, self._observed(observed_nodes))
                self._weights[observed_nodes] = float(self.data.reduce(_count_whole, [number])[0][0])

    def _observed(self, nodes: Nodes) -> tuple[tuple[Node, int], ...]:
        return tuple((i, self._cardinality(i)) for i in sorted(nodes))

    def _count(self, wanted: Sequence[Question]) -> None:
        """G of every question that is not answered yet."""
        numbers = {q: self._number(sorted(q.nodes), self._observed(q.observed)) for q in wanted if q not in self._sums}
        limit = max(SMALL_TABLE, CELLS_PER_ROW * self.data.n_rows // len(self.data.bounds()))
        for small in _rounds([s for s in numbers if numbers[s].bound <= limit], limit):
            tables = self.data.reduce(_count_whole, [numbers[s] for s in small])
            self._sums.update((s, sum_n_log_n(table)) for s, table in zip(small, tables, strict=True))
        for large in _rounds([s for s in numbers if numbers[s].bound > limit], self.data.n_rows):
            blocks = self.data.map(_count_observed, [numbers[s] for s in large])
            for s, *parts in zip(large, *blocks, strict=True):
                self._sums[s] = sum_n_log_n(_joined(parts))

    def _number(self, nodes: Sequence[Node], observed_nodes: tuple[tuple[Node, int], ...]) -> Number:
        """The cell number of these nodes; passes over the rows only where it is too long."""
        number = Number((), 1, observed_nodes)
        digits: list[Node] = []
        for node in nodes:
            radix = self._cardinality(node)
            # the next digit would overflow: what is there becomes its rank among those that occur
            if number.bound * radix > LARGEST_NUMBER:
                number, digits = self._ranked(number, digits), []
            digits.append(node)
            number = number._replace(bound=number.bound * radix)
        return number._replace(parts=(*number.parts, self._part(digits)))

    def _ranked(self, number: Number, digits: list[Node]) -> Number:
        """The number with these digits as its rank among those that occur."""
        parts = (*number.parts, self._part(digits))
        number = number._replace(parts=parts, bound=LARGEST_NUMBER)
        ranks = np.unique(np.concatenate(self.data.map(_distinct, number)))
        return number._replace(parts=(*parts[:-1], parts[-1]._replace(ranks=ranks)), bound=max(len(ranks), 1))

    def _part(self, digits: list[Node]) -> Part:
        return Part(tuple(digits), tuple(map(self._cardinality, digits)), None)

    def _cardinality(self, node: Node) -> int:
        return self.data.n_labels if node == CLASS_NODE else self.data.schema.cardinalities[node]


def _rounds(sets: list[Question], entries: int) -> Iterator[list[Question]]:
    """As many at a time as fit the budget, if each takes so many entries."""
    step = max(ROUND // max(entries, 1), 1)
    return (sets[start : start + step] for start in range(0, len(sets), step))


def _joined(parts: Sequence[Observed]) -> Array:
    """The counts of all row blocks' cells together."""
    if len(parts) == 1:
        return parts[0][1]
    cells, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return observed(cells, counts)[1]


def _count_whole(block: RowBlock, numbers: list[Number]) -> list[NDArray[np.generic]]:
    return [np.bincount(*_cells(block, number), number.bound) for number in numbers]


def _count_observed(block: RowBlock, numbers: list[Number]) -> list[Observed]:
    return [observed(*_cells(block, number)) for number in numbers]


def _distinct(block: RowBlock, number: Number) -> Integers:
    return np.unique(_cells(block, number)[0])


def _cells(block: RowBlock, number: Number) -> tuple[Integers, Array | None]:
    """The cell of every row that has one, in the narrower of two types that holds it, and the row's weight."""
    rows = _complete_rows(block, number)
    weights = block.weights if rows is None or block.weights is None else block.weights[rows]
    # ranks are looked up by numbers that may be longer than the last bound
    is_short = number.bound <= 1 << 32 and len(number.parts) == 1
    n_rows = block.n_rows if rows is None else len(rows)
    cells: NDArray[Any] = np.zeros(n_rows, np.uint32 if is_short else np.int64)
    for part in number.parts:
        for node, radix in zip(part.nodes, part.shape, strict=True):
            cells *= radix
            cells += _codes(block, node) if rows is None else _codes(block, node)[rows]
        if part.ranks is not None:
            cells = np.searchsorted(part.ranks, cells)
    return cells, weights


def _complete_rows(block: RowBlock, number: Number) -> Index | None:
    """The rows in which everything is observed that has to be; None for all of them."""
    if not number.observed:
        return None
    return np.flatnonzero(np.logical_and.reduce([block.codes[i] != n for i, n in number.observed]))


def _codes(block: RowBlock, node: Node) -> Codes:
    return block.labels if node == CLASS_NODE else block.codes[node]


def observed(cells: Integers, weights: Array | None) -> tuple[Integers, Array]:
    """The distinct cells, ascending, and the sum of the weights of each (None: how often it occurs).

    Cost: one sort of the rows' cell numbers. Numbers of 32 bits are sorted in two thirds of the time of longer ones; a
    hash table (by array operations) takes twice as long where the caches are shared.

    >>> cells, counts = observed(np.array([7, 2, 7, 7]), None)
    >>> cells.tolist(), counts.tolist()
    ([2, 7], [1.0, 3.0])
    """
    if weights is not None:
        distinct, place = np.unique(cells, return_inverse=True)
        return distinct, np.bincount(place, weights, len(distinct)).astype(np.float64)
    ascending = np.sort(cells)
    starts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(cells)])
    return ascending[starts], np.diff(starts, append=len(cells)).astype(np.float64)


def sum_n_log_n(counts: Array) -> float:
    """sum over cells of n ln n, 0 for n = 0."""
    several = counts[(counts > 0) & (counts != 1)]  # 1 ln 1 = 0
    return float((several * np.log(several)).sum())
