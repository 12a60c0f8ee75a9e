"""Score tables of candidates that share all attributes but the last, and what each would add to the log-likelihood.

With p[t, y] = P(y | x_t) from the current model, a table D over the cells of a candidate adds to the log-likelihood of
the classes

    gain = sum over cells and y of n[cell, y] d[cell, y]  -  sum_t w_t ln z_t
    z_t  = p[t, 0] + sum over y > 0 of p[t, y] exp(d[cell_t, y]),    d[cell, y] = D[cell, y] - D[cell, 0]

The first sum needs only counts. z is an average of exp(d), so the table bounds it: if |d| is at most 80, the product of
eight z's neither overflows nor underflows, and one logarithm serves eight rows. Steeper tables are summed with
logarithms.

The tables of a batch are in one array [cell of the shared attributes, value of a last attribute]: with B the number of
values of all its last attributes together and b_k the first value of attribute k,

    cell = cell_t(shared) B + b_k + x_tk

takes one addition per row and candidate. Cost: about 2 + 2 (K - 1) ns per row and candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Index, add_counts, cell_numbers, log_softmax

STEEPEST = 80.0
"""The largest |d|, in nats, for which eight z's may be multiplied."""
ROWS_PER_LOGARITHM = 8
LOOKUPS_AT_A_TIME = 1 << 15
"""Rows times candidates at a time: with fewer, calls cost more; more do not fit the cache."""
CODES_AT_A_TIME = 1 << 19
"""Codes (rows times attributes) held at a time (4 MiB)."""


@dataclass(frozen=True)
class CandidateGroup:
    """Candidates (*shared, k) for k in lasts, ascending; `which` are their numbers among all candidates.

    radices and last_radices are the numbers of values of the shared attributes and of the last ones.
    """

    shared: tuple[int, ...]
    lasts: Index
    which: Index
    radices: tuple[int, ...]
    last_radices: Index

    @cached_property
    def width(self) -> int:
        """B, the number of values of the last attributes."""
        return int(self.last_radices.sum())

    @property
    def n_cells(self) -> int:
        return math.prod(self.radices) * self.width

    @cached_property
    def starts(self) -> Index:
        """The first value b_k of every last attribute."""
        return np.asarray(np.cumsum(self.last_radices) - self.last_radices)


@dataclass(frozen=True)
class Batch:
    """The tables of a group of candidates, (K - 1, cells): exp(d), or d itself if `steep`.

    d(v, y) is the change of the log-odds of label y against the first label. sums[g] is the sum of n d over the cells
    and labels of candidate g. `slots` are the positions in the group of the candidates that are to be scored.
    """

    group: CandidateGroup
    tables: Array
    sums: Array
    steep: bool
    slots: Index


def tabulate(group: CandidateGroup, counted: NDArray[np.generic], changes: Array, total: float, theta: float) -> Batch:
    """Return the tables of a group, computed from its counts; `total` is the weight of all rows.

    `changes` (candidates, subsets) are the changes of counting numbers, with subsets numbered as in `Candidates`. All
    submodels are margins of the candidate's own: D = sum over subsets R of dc_R ln P(v_R).
    """
    n_labels = counted.size // group.n_cells
    n = counted.astype(np.float64).reshape(*group.radices, group.width, n_labels)
    # for each value of a last attribute, the number of cells of its candidate, the class included
    cells = np.repeat(group.last_radices, group.last_radices) * float(math.prod(group.radices) * n_labels)
    joint = (n + (theta / cells)[:, np.newaxis]) / (total + theta)
    # (width, subsets, 1): the changes of the candidate that a value belongs to
    by_value = np.repeat(changes, group.last_radices, axis=0)[..., np.newaxis]
    added = np.zeros(n.shape)
    half = 1 << len(group.shared)
    for subset in range(half):
        # the subsets of the shared attributes, with and without the last one
        dropped = tuple(p for p in range(len(group.shared)) if not subset >> p & 1)
        with_last, without = by_value[:, half + subset], by_value[:, subset]
        margin = joint.sum(axis=dropped, keepdims=True)
        if with_last.any():
            added += with_last * np.log(margin)
        if without.any():
            # the margin without the last attribute is the same for all candidates: that of the first
            first = margin[..., : group.last_radices[0], :].sum(axis=-2, keepdims=True)
            added += without * np.log(first)
    d = added[..., 1:] - added[..., :1]
    # sum over shared cells and labels, then over the values of each candidate's last attribute
    n_d = (n[..., 1:] * d).reshape(-1, group.width, n_labels - 1).sum(axis=(0, 2))
    sums = np.add.reduceat(n_d, group.starts)
    tables = np.ascontiguousarray(d.reshape(-1, n_labels - 1).T)
    steep = bool(np.abs(tables).max(initial=0.0) > STEEPEST)
    return Batch(group, tables if steep else np.exp(tables, out=tables), sums, steep, np.arange(len(sums)))


def count(
    block: RowBlock, groups: Sequence[CandidateGroup], offsets: Index, n_labels: int
) -> list[NDArray[np.generic]]:
    """Return the counts n[cell, y] of every group, flattened; offsets[i]: number of values of attributes 0..i-1."""
    dtype = np.int64 if block.weights is None else np.float64
    totals: list[NDArray[np.generic]] = [np.zeros(group.n_cells * n_labels, dtype) for group in groups]
    for rows, values in _row_slices(block, offsets):
        labels = block.labels[rows].astype(np.intp)
        weights = None if block.weights is None else block.weights[rows]
        for group, total in zip(groups, totals, strict=True):
            for cells in _cells_of_rows(block, rows, values, offsets, group, np.arange(len(group.lasts))):
                cells *= n_labels
                cells += labels
                repeated = None if weights is None else np.tile(weights, len(cells))
                add_counts(total, cells.ravel(), repeated)
    return totals


def sum_logs(block: RowBlock, batches: Sequence[Batch], offsets: Index) -> Array:
    """Return sum_t w_t ln z_t of every candidate, batch by batch; the state of the block is the scores S (K, rows)."""
    totals = np.zeros(sum(len(batch.slots) for batch in batches))
    for rows, values in _row_slices(block, offsets):
        # (K, rows) of the current model, shared by all candidates
        logs = log_softmax(block.state[:, rows], 0)
        p = np.exp(logs)
        weights = None if block.weights is None else block.weights[rows]
        at = 0
        for batch in batches:
            for cells in _cells_of_rows(block, rows, values, offsets, batch.group, batch.slots):
                summed = (
                    _sum_log_z_in_logs(batch, cells, logs, weights)
                    if batch.steep
                    else _sum_log_z(batch, cells, p, weights)
                )
                totals[at : at + len(cells)] += summed
                at += len(cells)
    return totals


def _sum_log_z(batch: Batch, cells: Index, p: Array, weights: Array | None) -> Array:
    """Return the sum of w ln z for each candidate, from cells (candidates, rows) and p = P(y | x), (K, rows)."""
    z: Array = np.empty(cells.shape)
    # z = p_0 + sum over y > 0 of p_y exp(d_y), (candidates, rows)
    np.take(batch.tables[0], cells, out=z, mode="clip")
    z *= p[1]
    z += p[0]
    if len(batch.tables) > 1:
        term = np.empty(cells.shape)
        for table, of_class in zip(batch.tables[1:], p[2:], strict=True):
            np.take(table, cells, out=term, mode="clip")
            term *= of_class
            z += term
    if weights is not None:
        return np.asarray(np.log(z, out=z) @ weights)
    # one logarithm for a product of several rows
    n_full_columns = z.shape[1] // ROWS_PER_LOGARITHM
    factors = z[:, : n_full_columns * ROWS_PER_LOGARITHM].reshape(len(z), ROWS_PER_LOGARITHM, n_full_columns)
    products = np.multiply.reduce(factors, axis=1)
    sums = np.log(products, out=products).sum(axis=1)
    if n_full_columns * ROWS_PER_LOGARITHM < z.shape[1]:
        sums += np.log(z[:, n_full_columns * ROWS_PER_LOGARITHM :]).sum(axis=1)
    return np.asarray(sums)


def _sum_log_z_in_logs(batch: Batch, cells: Index, logs: Array, weights: Array | None) -> Array:
    """Return the same as `_sum_log_z` for steep tables, computed with logarithms, from ln p (K, rows)."""
    total = np.broadcast_to(logs[0], cells.shape).copy()
    for table, of_class in zip(batch.tables, logs[1:], strict=True):
        np.logaddexp(total, table[cells] + of_class, out=total)
    return np.asarray(total.sum(axis=1) if weights is None else total @ weights)


def _row_slices(block: RowBlock, offsets: Index) -> Iterator[tuple[slice, Index]]:
    """Yield slices of rows, and their values (attributes, rows), numbered consecutively over all attributes."""
    # a multiple of ROWS_PER_LOGARITHM, so that only the last slice has a remainder
    size = max(CODES_AT_A_TIME // max(len(block.codes), 1) & -ROWS_PER_LOGARITHM, 512)
    for rows in block.slices(size):
        values = np.empty((len(block.codes), rows.stop - rows.start), np.intp)
        for i, codes in enumerate(block.codes):
            np.add(codes[rows], offsets[i], out=values[i])
        yield rows, values


def _cells_of_rows(
    block: RowBlock, rows: slice, values: Index, offsets: Index, group: CandidateGroup, slots: Index
) -> Iterator[Index]:
    """Yield the cells of the rows in the tables of the candidates in `slots`, (candidates, rows).

    The candidates come in parts of equal size, with about LOOKUPS_AT_A_TIME look-ups each.
    """
    shared: Index | int = 0
    if group.shared:
        # cell_t(shared) B of the rows
        shared = cell_numbers([block.codes[i][rows] for i in group.shared], group.radices) * group.width
    n_parts = max(1, round(len(slots) * (rows.stop - rows.start) / LOOKUPS_AT_A_TIME))
    step = -(-len(slots) // n_parts)
    for start in range(0, len(slots), step):
        part = slots[start : start + step]
        lasts = group.lasts[part]
        # from numbers over all attributes of the schema to numbers over the last attributes of the group
        shift = group.starts[part] - offsets[lasts]
        first, last = int(lasts[0]), int(lasts[-1])
        # for neighbours in the schema and in the tables, a slice serves instead of a look-up
        if last - first + 1 == len(lasts) and shift[0] == shift[-1]:
            yield values[first : last + 1] + (shared + shift[0])
        else:
            cells = values[lasts] + shift[:, np.newaxis]
            cells += shared
            yield cells
