"""I(A; B | Z) of two nodes given any set of others: the questions that a constraint-based learner asks.

The class is a node like any attribute. With n_s the weight of the rows that agree with s on a set of nodes S,

    I(A; B | Z) = [ G(ABZ) + G(Z) - G(AZ) - G(BZ) ] / N,    G(S) = sum over observed s of n_s ln n_s

A search asks for sets that overlap, so that a question costs less than one new G. Those are kept, tables are not.
Where S has few cells its table is counted whole; otherwise the cells that occur are told apart by a row that lies in
each, so that memory follows the rows, not the product of the cardinalities. Cells are numbered digit by digit,

    cell = ((s_1 |S_2| + s_2) |S_3| + s_3) ...

and where a number gets too long for a table of all, every row writes itself into its number's place; who is found there
stands for the cell from then on. The four sets of a question begin with the same Z, numbered once; A and B come last.

Where missing values are to be marginalized, each answer comes from the rows in which A, B and all of Z are observed,
so that a sum belongs to a set and to the attributes that have to be observed.

Conventions: sums are taken over how many cells have each count, so that the order of cells does not matter, or over the
weights in ascending order; answers are rounded to 12 decimals, below which a difference of such sums means nothing.
Cost of a new G: N increments where the table is small, else about four passes over N numbers for A or B and for every
few attributes of Z that are new; what a call needs is counted together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Codes, Index

CLASS_NODE = -1
"""The class among attribute indices; it comes before all of them."""
DECIMALS = 12
SMALL_TABLE = 1 << 14
"""A table of no more cells is counted whole; a larger one, if it has few cells beside the rows of a block."""
CELLS_PER_ROW = 4
ROUND = 1 << 22
"""Entries of the tables that are counted in one pass over the rows (32 MiB)."""
NUMBERS_PER_ROW = 16
"""Numbers of cells get so many times the number of rows long before rows stand for them."""
PLACES = 1 << 24
"""Places for rows to write themselves into, at most; longer numbers are sorted."""
Node = int
Nodes = frozenset[Node]


class Cells(NamedTuple):
    """The cells of these nodes, in this order, with so many values each.

    Rows where an attribute i of `observed` pairs (i, cardinality of i) is unobserved lie in none.
    """

    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    observed: tuple[tuple[Node, int], ...]

    @property
    def bound(self) -> int:
        return math.prod(self.shape)


class Occurring(NamedTuple):
    """Rows, or their weight, in every cell that occurs; the codes of every node there (none if they are `alone`)."""

    codes: list[Codes]
    counts: NDArray[np.generic]


class PartialTest(NamedTuple):
    """G(S) in the rows in which all of `observed`, attributes with missing values, are observed."""

    nodes: Nodes
    observed: Nodes


@dataclass(frozen=True)
class PartialDependence:
    """The answers for one data set, in nats, rounded for comparison."""

    data: Dataset
    _sums: dict[PartialTest, float] = field(default_factory=dict)
    _weights: dict[Nodes, float] = field(default_factory=dict)  # of the rows in which these are observed

    def given(self, a: Node, b: Node, sets: Sequence[Nodes]) -> list[float]:
        """Return I(A; B | Z) for every Z of `sets`, never negative; 0 without rows."""
        rows = [frozenset(i for i in (z | {a, b}) if i != CLASS_NODE and self.data.n_missing[i]) for z in sets]
        members = ((z | {a, b}, z, z | {a}, z | {b}) for z in sets)
        families = [tuple(PartialTest(s, seen) for s in four) for four, seen in zip(members, rows, strict=True)]
        self._count([question for family in families for question in family], (a, b))
        self._weigh(rows)
        shared = ([self._sums[question] for question in family] for family in families)
        sums = [abz + z - az - bz for abz, z, az, bz in shared]
        # no rows: every sum is 0, and so is the answer; rounding may leave it just below 0
        return [max(round(g / (self._weights[seen] or 1.0), DECIMALS), 0.0) for g, seen in zip(sums, rows, strict=True)]

    def _weigh(self, wanted: Sequence[Nodes]) -> None:
        """Return the weight of the rows in which these are observed."""
        for observed_nodes in wanted:
            if observed_nodes not in self._weights:
                all_rows = Cells((), (), self._observed(observed_nodes))
                self._weights[observed_nodes] = float(self.data.reduce(_count_whole, [all_rows])[0][0])

    def _observed(self, nodes: Nodes) -> tuple[tuple[Node, int], ...]:
        return tuple((i, self._cardinality(i)) for i in sorted(nodes))

    def _count(self, wanted: Sequence[PartialTest], last: tuple[Node, ...]) -> None:
        """G of every question that is not answered yet."""
        cells = {question: self._cells(question, last) for question in wanted if question not in self._sums}
        limit = max(SMALL_TABLE, CELLS_PER_ROW * self.data.n_rows // len(self.data.bounds()))
        for small in _rounds([q for q in cells if cells[q].bound <= limit], limit):
            tables = self.data.reduce(_count_whole, [cells[q] for q in small])
            self._sums.update((q, sum_n_log_n(table)) for q, table in zip(small, tables, strict=True))
        for large in _rounds([q for q in cells if cells[q].bound > limit], self.data.n_rows):
            alone = len(self.data.bounds()) == 1  # nothing to join them with
            blocks = self.data.map(_count_occurring, [cells[q] for q in large], alone)
            for q, *parts in zip(large, *blocks, strict=True):
                self._sums[q] = sum_n_log_n(_joined(parts, cells[q]))

    def _cells(self, question: PartialTest, last: tuple[Node, ...]) -> Cells:
        nodes = sorted(question.nodes, key=lambda node: (node in last, node))
        return Cells(tuple(nodes), tuple(map(self._cardinality, nodes)), self._observed(question.observed))

    def _cardinality(self, node: Node) -> int:
        return self.data.n_labels if node == CLASS_NODE else self.data.schema.cardinalities[node]


class _Rows:
    """Rows by the codes of their nodes; the numbers of sets asked for are kept for those that begin with them."""

    def __init__(self, codes: dict[Node, Codes], n_rows: int, asked: Collection[tuple[Node, ...]] = ()) -> None:
        self._codes = {node: of_node.astype(np.intp) for node, of_node in codes.items()}
        self._n_rows, self._asked = n_rows, asked
        self._known: dict[tuple[Node, ...], tuple[Index, int]] = {}

    def of_cells(self, cells: Cells) -> Index:
        """For every row per row of the same cell, the same for all of them."""
        return standing_for(*self.numbers(cells))

    def numbers(self, cells: Cells) -> tuple[Index, int]:
        """Return numbers of the rows' cells, and a bound that they stay below."""
        first = max((n for n in range(1, len(cells.nodes) + 1) if cells.nodes[:n] in self._known), default=0)
        numbers, bound = self._known[cells.nodes[:first]] if first else (np.zeros(self._n_rows, np.intp), 1)
        for place in range(first, len(cells.nodes)):
            node, radix = cells.nodes[place], cells.shape[place]
            if bound > self._n_rows and bound * radix > NUMBERS_PER_ROW * self._n_rows:
                numbers, bound = standing_for(numbers, bound), max(self._n_rows, 1)
                self._known[cells.nodes[:place]] = numbers, bound
            numbers = numbers * radix
            numbers += self._codes[node]
            bound *= radix
        if cells.nodes in self._asked:
            self._known[cells.nodes] = numbers, bound
        return numbers, bound


def standing_for(numbers: Index, bound: int) -> Index:
    """For every row per row of the same number, the same for all of them; numbers are below `bound`.

    Cost: one write and one read in a table of `bound`; a sort where that would be too large.

    >>> found = standing_for(np.array([7, 2, 7, 7]), 8)
    >>> bool((found[[0, 2, 3]] == found[0]).all()), int(found[1])
    (True, 1)
    """
    if bound > max(PLACES, NUMBERS_PER_ROW * len(numbers)):
        return np.unique(numbers, return_inverse=True)[1]
    places = np.empty(bound, np.int32)  # never read where nobody wrote
    places[numbers] = np.arange(len(numbers), dtype=np.int32)
    return places.take(numbers).astype(np.intp)


def sum_n_log_n(counts: NDArray[np.generic]) -> float:
    """Return sum over cells of n ln n, 0 for n = 0."""
    if counts.dtype.kind in "iu":
        cells = np.bincount(counts)
        several = np.flatnonzero(cells)
        several = several[several > 1]  # 1 ln 1 = 0
        return float((cells[several] * several * np.log(several)).sum())
    weights = np.sort(counts.astype(np.float64))
    weights = weights[(weights > 0) & (weights != 1)]
    return float((weights * np.log(weights)).sum())


def _rounds(sets: list[PartialTest], entries: int) -> Iterator[list[PartialTest]]:
    """As many at a time as fit the budget, if each takes so many entries."""
    step = max(ROUND // max(entries, 1), 1)
    return (sets[start : start + step] for start in range(0, len(sets), step))


def _joined(parts: Sequence[Occurring], cells: Cells) -> NDArray[np.generic]:
    """Return the counts of all row blocks' cells together."""
    if len(parts) == 1:
        return parts[0].counts
    codes = [np.concatenate([part.codes[place] for part in parts]) for place in range(len(cells.nodes))]
    rows = _Rows(dict(zip(cells.nodes, codes, strict=True)), len(codes[0]))
    counts = np.bincount(rows.of_cells(cells), np.concatenate([part.counts for part in parts]))
    return counts[counts > 0]


def _count_whole(block: RowBlock, wanted: list[Cells]) -> list[NDArray[np.generic]]:
    found: list[NDArray[np.generic]] = []
    for cells in wanted:
        chosen = _complete_rows(block, cells)
        codes, n_rows, weights = _chosen(block, chosen, cells.nodes)
        found.append(np.bincount(_Rows(codes, n_rows).numbers(cells)[0], weights, cells.bound))
    return found


def _complete_rows(block: RowBlock, cells: Cells) -> Index | None:
    """Return the rows in which everything is observed that has to be; None for all of them."""
    if not cells.observed:
        return None
    return np.flatnonzero(np.logical_and.reduce([block.codes[i] != n for i, n in cells.observed]))


def _chosen(block: RowBlock, rows: Index | None, nodes: Iterable[Node]) -> tuple[dict[Node, Codes], int, Array | None]:
    """Return codes of the nodes in these rows, how many rows they are, and their weights."""
    codes = {node: block.labels if node == CLASS_NODE else block.codes[node] for node in nodes}
    if rows is None:
        return codes, block.n_rows, block.weights
    weights = None if block.weights is None else block.weights[rows]
    return {node: of_node[rows] for node, of_node in codes.items()}, len(rows), weights


def _count_occurring(block: RowBlock, wanted: list[Cells], alone: bool) -> list[Occurring]:
    """Count sets of one kind of rows, shortest first, since they share their beginnings."""
    nodes = sorted({node for cells in wanted for node in cells.nodes})
    found: dict[Cells, Occurring] = {}
    for observed in {cells.observed: None for cells in wanted}:
        alike = sorted((cells for cells in wanted if cells.observed == observed), key=lambda cells: len(cells.nodes))
        codes, n_rows, weights = _chosen(block, _complete_rows(block, alike[0]), nodes)
        rows = _Rows(codes, n_rows, {cells.nodes for cells in alike})
        for cells in alike:
            counts = np.bincount(rows.of_cells(cells), weights, n_rows)
            if alone:
                found[cells] = Occurring([], counts)
            else:
                standing = np.flatnonzero(counts)
                found[cells] = Occurring([codes[node][standing] for node in cells.nodes], counts[standing])
    return [found[cells] for cells in wanted]
