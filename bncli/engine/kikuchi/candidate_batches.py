"""Batches of candidates that share all attributes but the last, and what each would add to the likelihood.

With p[t, y] = P(y | x_t) as it is, the log-likelihood of the classes gains by a table D over a candidate's cells

    gain = sum over cells and y of n[cell, y] d[cell, y]  -  sum_t w_t ln z_t
    z_t  = p[t, 0] + sum over y > 0 of p[t, y] exp(d[cell_t, y]),    d[cell, y] = D[cell, y] - D[cell, 0]

The first sum needs no row. z is an average of exp(d), so it lies between bounds that the table tells: where |d| is at
most 80 the product of eight z's neither overflows nor underflows, and one logarithm serves eight rows. Steeper tables
are added up in logs.

The tables of a batch lie side by side, [cell of the shared attributes, value of a last attribute]: with B the values of
all its last attributes together and b_k where those of attribute k begin,

    place = cell_t(shared) B + b_k + x_tk

is one addition a row and candidate. Cost: about 2 + 2 (K - 1) ns a row and candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.cells import add_counts, cell_numbers

STEEPEST = 80.0
"""Differences of scores, nats, up to which eight z's may be multiplied."""
TOGETHER = 8
WORK = 1 << 15
"""Rows times candidates that are worked on at once: fewer cost more in calls, more do not fit the cache."""
CODES = 1 << 19
"""Rows times attributes whose codes are at hand at once (4 MiB)."""


@dataclass(frozen=True)
class CandidateGroup:
    """Candidates (*shared, k) for k in lasts, ascending, and which they are among all; values each attribute has."""

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
        """b_k of every last attribute."""
        return np.asarray(np.cumsum(self.last_radices) - self.last_radices)


@dataclass(frozen=True)
class Batch:
    """A group with its tables: exp(d), or d where `steep`, (K - 1, cells); sums[g] = sum of n d over cells and y.

    slots: the candidates, by their place in the group, that are to be scored.
    """

    group: CandidateGroup
    tables: Array
    sums: Array
    steep: bool
    slots: Index


def count(
    block: RowBlock, groups: Sequence[CandidateGroup], offsets: Index, n_labels: int
) -> list[NDArray[np.generic]]:
    """Return n[place, y] of every group, flat; offsets[i]: where the values of attribute i begin among those of all."""
    kind = np.int64 if block.weights is None else np.float64
    totals: list[NDArray[np.generic]] = [np.zeros(group.n_cells * n_labels, kind) for group in groups]
    for rows, values in _row_slices(block, offsets):
        labels = block.labels[rows].astype(np.intp)
        weights = None if block.weights is None else block.weights[rows]
        for group, total in zip(groups, totals, strict=True):
            shared = _shared(block, rows, group)
            for slots in _slot_slices(np.arange(len(group.lasts)), len(labels)):
                places = _places(values, offsets, group, slots, shared)
                places *= n_labels
                places += labels
                repeated = None if weights is None else np.tile(weights, len(places))
                add_counts(total, places.ravel(), repeated)
    return totals


def _row_slices(block: RowBlock, offsets: Index) -> Iterator[tuple[slice, Index]]:
    """Yield rows, and the number among all values of each attribute's, (attributes, rows)."""
    size = max(CODES // max(len(block.codes), 1) & -TOGETHER, 512)
    for rows in block.slices(size):
        values = np.empty((len(block.codes), rows.stop - rows.start), np.intp)
        for i, codes in enumerate(block.codes):
            np.add(codes[rows], offsets[i], out=values[i])
        yield rows, values


def _shared(block: RowBlock, rows: slice, group: CandidateGroup) -> Index | int:
    """cell_t(shared) B of the rows."""
    if not group.shared:
        return 0
    return cell_numbers([block.codes[i][rows] for i in group.shared], group.radices) * group.width


def _slot_slices(slots: Index, n_rows: int) -> Iterator[Index]:
    """Return about so many candidates as are worked on at once, in slices of one size."""
    n_slices = max(1, round(len(slots) * n_rows / WORK))
    step = -(-len(slots) // n_slices)
    return (slots[start : start + step] for start in range(0, len(slots), step))


def _places(values: Index, offsets: Index, group: CandidateGroup, slots: Index, shared: Index | int) -> Index:
    """Return the places of the rows in the tables of these candidates, (candidates, rows)."""
    lasts = group.lasts[slots]
    shift = group.starts[slots] - offsets[lasts]
    first, last = int(lasts[0]), int(lasts[-1])
    if last - first + 1 == len(lasts) and shift[0] == shift[-1]:  # neighbours in the schema and in the tables
        return np.asarray(values[first : last + 1] + (shared + shift[0]))
    places = values[lasts] + shift[:, np.newaxis]
    places += shared
    return np.asarray(places)


def sum_logs(block: RowBlock, batches: Sequence[Batch], offsets: Index) -> Array:
    """sum_t w_t ln z_t of every candidate, batch after batch; the row block's state are the scores S, (K, rows)."""
    totals = np.zeros(sum(len(batch.slots) for batch in batches))
    for rows, values in _row_slices(block, offsets):
        logs = log_probabilities(block.state[:, rows])
        p = np.exp(logs)
        weights = None if block.weights is None else block.weights[rows]
        at = 0
        for batch in batches:
            shared = _shared(block, rows, batch.group)
            for slots in _slot_slices(batch.slots, p.shape[1]):
                places = _places(values, offsets, batch.group, slots, shared)
                if batch.steep:
                    sums = _sum(_log_averages(batch.tables, places, logs), weights)
                else:
                    # z, (candidates, rows).
                    tables = batch.tables
                    z = np.empty(places.shape)
                    np.take(tables[0], places, out=z, mode="clip")
                    z *= p[1]
                    z += p[0]
                    if len(tables) > 1:
                        term = np.empty(places.shape)
                        for table, of_class in zip(tables[1:], p[2:], strict=True):
                            np.take(table, places, out=term, mode="clip")
                            term *= of_class
                            z += term
                    sums = _sum_logs(z, weights)
                totals[at : at + len(places)] += sums
                at += len(places)
    return totals


def _sum(logs: Array, weights: Array | None) -> Array:
    return np.asarray(logs.sum(axis=1) if weights is None else logs @ weights)


def _log_averages(tables: Array, places: Index, logs: Array) -> Array:
    """Return ln z, term by term."""
    total = np.broadcast_to(logs[0], places.shape).copy()
    for table, of_class in zip(tables, logs[1:], strict=True):
        np.logaddexp(total, table[places] + of_class, out=total)
    return total


def _sum_logs(z: Array, weights: Array | None) -> Array:
    if weights is not None:
        return np.asarray(np.log(z, out=z) @ weights)
    whole = z.shape[1] // TOGETHER
    products = np.multiply.reduce(z[:, : whole * TOGETHER].reshape(len(z), TOGETHER, whole), axis=1)
    sums = np.log(products, out=products).sum(axis=1)
    if whole * TOGETHER < z.shape[1]:
        sums += np.log(z[:, whole * TOGETHER :]).sum(axis=1)
    return np.asarray(sums)


def log_probabilities(scores: Array) -> Array:
    """Return ln softmax over the classes, (K, rows)."""
    shifted = scores - scores.max(axis=0)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=0)))


def tabulate(group: CandidateGroup, counted: NDArray[np.generic], changes: Array, total: float, theta: float) -> Batch:
    """Return the tables of a group from its counts.

    Changes (candidates, subsets) as `Candidates.changes` numbers them.
    """
    n_labels = counted.size // group.n_cells
    n = counted.astype(np.float64).reshape(*group.radices, group.width, n_labels)
    added = _additions(group, n, changes, total, theta)
    d = added[..., 1:] - added[..., :1]
    by_value = (n[..., 1:] * d).reshape(-1, group.width, n_labels - 1).sum(axis=(0, 2))
    sums = np.add.reduceat(by_value, group.starts)
    tables = np.ascontiguousarray(d.reshape(-1, n_labels - 1).T)
    steep = bool(np.abs(tables).max(initial=0.0) > STEEPEST)
    return Batch(group, tables if steep else np.exp(tables, out=tables), sums, steep, np.arange(len(sums)))


def _additions(group: CandidateGroup, n: Array, changes: Array, total: float, theta: float) -> Array:
    """D of all candidates side by side: sum over subsets R of dc_R ln P(v_R), every submodel a margin of its own."""
    cells = np.repeat(group.last_radices, group.last_radices) * float(math.prod(group.radices) * n.shape[-1])
    joint = (n + (theta / cells)[:, np.newaxis]) / (total + theta)
    by_value = np.repeat(changes, group.last_radices, axis=0)[..., np.newaxis]
    added = np.zeros(n.shape)
    half = 1 << len(group.shared)
    for subset in range(half):
        dropped = tuple(p for p in range(len(group.shared)) if not subset >> p & 1)
        with_last, without = by_value[:, half + subset], by_value[:, subset]
        margin = joint.sum(axis=dropped, keepdims=True)
        if with_last.any():
            added += with_last * np.log(margin)
        if without.any():
            first = margin[..., : group.last_radices[0], :].sum(axis=-2, keepdims=True)
            added += without * np.log(first)
    return added
