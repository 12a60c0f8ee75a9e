"""Splits of rows into training and held-out rows, and samples of rows: the one place where rows are split.

**Units.** A unit is a set of rows that belong together, such as the visits of a patient. Rows of one unit are never on
both sides of a split, and a sample takes whole units unless they are very large. Without groups each row is a unit.

Stratified folds of single rows: the rows of each class are shuffled, the classes laid end to end, and the rows dealt to
the folds in turn:

    fold of the m-th row = m mod F

so two folds differ by at most one row of any class, and by at most one row in all. Stratified folds of units
(StratifiedGroupKFold of scikit-learn): the units are shuffled and sorted by decreasing standard deviation of their
class counts. Each goes to the fold for which

    sum over classes c of the standard deviation over folds f of n[f, c] / n[c]

becomes smallest, where n[f, c] is the number of rows of class c in fold f, and n[c] is their number in all folds (ties:
the fold with fewer rows, then the first). If each unit is one row, the folds for single rows are used.

**Time.** The rows are divided into blocks of about equal size, with rows of equal times in one block. A block is held
out, and the rows of earlier blocks are training rows. Rows within a gap before the first time of the block are left
out. Rows of the block are held out only if their unit has no training row. To choose a setting within training rows,
the last of these rows are held out once; if few of them belong to units without training rows, all of them are held
out, and the training rows of their units are left out instead.

**Samples.** A stratified sample takes rows at regular distances, after ordering all rows by class and shuffling them
within classes.

Nested samples are prefixes of one order of the rows, in which the m-th of the n_c rows of class c has the position

    (m + 1/2) / n_c,    m = 0 .. n_c - 1

so that n rows are apportioned to the classes by the method of Sainte-Laguë (Webster). For a sample of units, nested or
not, the units are put in this order, each with its most frequent label; the sample is the longest prefix that has at
most n rows, or the first unit alone if that has more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Integers, distinct
from bncli.errors import BncliError, UsageError

Seed = int | Sequence[int]
RowSplit = tuple[Index, Index]
"""The indices of the training rows and of the held-out rows, both ascending."""
LEAST_UNITS = 5
"""The minimum number of units in a sample of whole units, so that each of five folds can hold out one."""
BLOCKS = 5
"""The default number of blocks in time order."""
FEW_HELD_OUT = 0.25
"""If at most this fraction of the last rows belongs to new units, all units of these rows are left out of training."""


@dataclass(frozen=True)
class SplitBy:
    """The units of rows and their order in time, which splits respect.

    - units: the identifier of each row's unit, (N,), or None if each row is a unit
    - times: the time of each row, (N,), in seconds or in the unit of a numeric column, or None if rows have no order
    - gap: training rows are earlier than every row of the held-out block by more than this, in the unit of `times`
    - columns: the names of the group columns, followed by the name of the time column
    - is_date: whether times are seconds since 1970
    """

    units: Integers | None = None
    times: Array | None = None
    gap: float = 0.0
    columns: tuple[str, ...] = ()
    is_date: bool = False

    @property
    def group_columns(self) -> tuple[str, ...]:
        return self.columns if self.times is None else self.columns[:-1]

    def take(self, rows: Index) -> SplitBy:
        units, times = self.units, self.times
        return replace(self, units=None if units is None else units[rows], times=None if times is None else times[rows])


SPLIT_KINDS = ("rows", "group", "time", "group+time")


class SplitRecord(NamedTuple):
    """How rows were split: one of SPLIT_KINDS, the columns used, and the number of units."""

    kind: str
    columns: tuple[str, ...]
    units: int


def record_split(n_rows: int, by: SplitBy | None) -> SplitRecord:
    """Return a record of how `n_rows` rows are split."""
    if by is None:
        return SplitRecord("rows", (), n_rows)
    kinds = [*(["group"] if by.units is not None else []), *(["time"] if by.times is not None else [])]
    return SplitRecord("+".join(kinds), by.columns, count_units(n_rows, by))


def count_units(n_rows: int, by: SplitBy | None) -> int:
    """Return the number of units among the rows."""
    return n_rows if by is None or by.units is None else len(distinct(by.units))


def stratified_folds(labels: Integers, n_folds: int, seed: Seed, by: SplitBy | None = None) -> Index:
    """Assign a fold 0..n_folds-1 to every row, (N,), by its label (N,) and its unit.

    Raises BncliError for fewer than 2 folds, and for more folds than units.
    """
    if n_folds < 2:
        raise BncliError(f"cross-validation needs at least 2 folds, not {n_folds}")
    units = units_of_several_rows(by)
    if by is not None and units is not None:
        if n_folds > (n_units := int(units.max()) + 1):
            names = ", ".join(map(repr, by.group_columns)) or "the table"
            what = f"{n_folds} folds need at least {n_folds} groups of rows, but {names} has only {n_units}"
            raise BncliError(what, hint=f"use --folds {n_units}" if n_units > 1 else "group by another column")
        return _folds_of_units(labels, units, n_folds, seed)
    if n_folds > len(labels):
        raise BncliError(
            f"{n_folds} folds need at least {n_folds} rows, but the table has only {len(labels)}", hint="lower --folds"
        )
    folds = np.empty(len(labels), np.intp)
    folds[_shuffled_by_class(labels, seed)] = np.arange(len(labels)) % n_folds
    return folds


def inner_splits(labels: Integers, n_folds: int, seed: Seed, by: SplitBy | None = None) -> list[RowSplit]:
    """Split training rows to choose a setting, or to fit a calibration map, on held-out rows.

    If the rows have times, return a single split, which holds out about the last 1 / n_folds of the rows. Otherwise
    return the splits of `n_folds` stratified folds, or of one fold per unit if there are fewer units. The list is empty
    if no row can be held out, or if no training row would be left.
    """
    if by is not None and by.times is not None:
        block_of = _cut_by_time(by.times, [len(labels) - len(labels) // n_folds])
        others, rows = _before_block(by, block_of, 1, None, give_up_training_units=True)
        return [(others, rows)] if len(others) and len(rows) else []
    n_folds = min(n_folds, count_units(len(labels), by))
    return [] if n_folds < 2 else splits_of_folds(stratified_folds(labels, n_folds, seed, by))


def splits_of_folds(fold_of: Index) -> list[RowSplit]:
    """Return one split per fold, in order, which holds out the rows of that fold; fold_of is (N,)."""
    n_folds = int(fold_of.max()) + 1
    return [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_folds)]


def time_splits(by: SplitBy, n_blocks: int, window: int | None = None) -> list[RowSplit]:
    """Divide the rows into blocks in time order; return one split for each block after the first, which it holds out.

    Rows of the block are not held out if their unit has a training row. window: the number of blocks before the
    held-out one to learn from, or None for all. Raises BncliError for fewer than 2 blocks, if too many rows have equal
    times, or if a split has no training rows or no held-out rows, and UsageError for a window that leaves out no block.
    """
    assert by.times is not None
    n = len(by.times)
    if n_blocks < 2:
        raise BncliError(f"a split by time needs at least 2 blocks, not {n_blocks}")
    if window is not None:
        _refuse_wide(window, n_blocks)
    # cuts move to changes of time, so two of them may coincide
    block_of = _cut_by_time(by.times, [n * block // n_blocks for block in range(1, n_blocks)])
    n_different = int(block_of.max(initial=0)) + 1
    if n_different == 1:
        raise BncliError("all rows have the same time, so they cannot be split by time")
    if n_different < n_blocks:
        what = f"many rows have the same time, so there are only {n_different} blocks, not {n_blocks}"
        raise BncliError(what, hint=f"use --folds {n_different}")
    splits = []
    for block in range(1, n_blocks):
        others, rows = _before_block(by, block_of, block, window)
        if not len(others):
            what = f"no training rows are left before block {block + 1} of {n_blocks}"
            raise BncliError(what, hint="shorten --gap or lower --folds")
        if not len(rows):
            what = f"block {block + 1} of {n_blocks} contains no new group of rows"
            raise BncliError(what, hint="lower --folds, or leave out --group or --time")
        splits.append((others, rows))
    return splits


def latest_rows(by: SplitBy, window: int) -> Index:
    """Return the indices, ascending, of the rows in the last `window` of BLOCKS blocks in time order.

    There are none if all rows have the same time. Raises UsageError for a window of BLOCKS or more blocks.
    """
    assert by.times is not None
    _refuse_wide(window, BLOCKS)
    n = len(by.times)
    return np.flatnonzero(_cut_by_time(by.times, [n - n * window // BLOCKS]) == 1)


def _refuse_wide(window: int, n_blocks: int) -> None:
    """Raise UsageError for a window that leaves out no block."""
    if window >= n_blocks:
        what = f"--window {window} has no effect, since there are only {n_blocks} blocks"
        raise UsageError(what, hint=f"give at most {n_blocks - 1}, or leave --window out")


def _before_block(
    by: SplitBy, block_of: Index, block: int, window: int | None, *, give_up_training_units: bool = False
) -> RowSplit:
    """Return the training rows before a block, and the held-out rows of the block; either may be empty.

    give_up_training_units: if at most the fraction FEW_HELD_OUT of the block's rows belongs to new units, hold out the
    whole block, and leave its units out of the training rows instead.
    """
    assert by.times is not None
    rows = np.flatnonzero(block_of == block)
    is_before = block_of < block
    if window is not None:
        is_before &= block_of >= block - window
    if by.gap and len(rows):
        is_before &= by.times < by.times[rows].min() - by.gap
    others = np.flatnonzero(is_before)
    if by.units is None:
        return others, rows
    is_new = ~np.isin(by.units[rows], by.units[others])
    if give_up_training_units and len(rows) and is_new.mean() <= FEW_HELD_OUT:
        return others[~np.isin(by.units[others], by.units[rows])], rows
    return others, rows[is_new]


def stratified_sample(labels: Integers, n_rows: int, seed: Seed, by: SplitBy | None = None) -> Index:
    """Draw at most `n_rows` rows, and return their indices, ascending.

    Every class keeps its proportion, within one row for single rows and roughly for units. Whole units are drawn,
    unless the sample would have fewer than LEAST_UNITS units although there are more, or more than `n_rows` rows; then
    single rows are drawn from all units.
    """
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    units = units_of_several_rows(by)
    if units is not None:
        whole = next(_samples_of_units(labels, units, [n_rows], seed))
        if len(whole) <= n_rows and len(distinct(units[whole])) >= min(LEAST_UNITS, int(units.max()) + 1):
            return whole
    # in integers, so that rounding cannot take a row twice
    evenly = np.arange(n_rows) * len(labels) // n_rows
    return np.sort(_shuffled_by_class(labels, seed)[evenly])


def nested_samples(labels: Integers, sizes: Sequence[int], seed: Seed, by: SplitBy | None = None) -> Iterator[Index]:
    """Yield a stratified sample of each size, as ascending row indices; larger samples contain smaller ones.

    With units of several rows, a sample has whole units: at most `size` rows, but at least one unit.
    """
    units = units_of_several_rows(by)
    if units is not None:
        yield from _samples_of_units(labels, units, sizes, seed)
    elif sizes:
        order = nested_order(labels, seed)
        yield from (np.sort(order[:size]) for size in sizes)


def nested_order(labels: Integers, seed: Seed) -> Index:
    """Return the indices of all rows in a random order, in which every prefix is a stratified sample."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    own = labels[shuffled]
    by_class = np.argsort(own, kind="stable")
    sizes = np.bincount(own)
    # m, the rank of each row among the shuffled rows of its class
    ranks = np.empty(len(labels))
    ranks[by_class] = np.arange(len(labels)) - (np.cumsum(sizes) - sizes)[own[by_class]]
    # stable: rows with the same position stay in random order
    return shuffled[np.argsort((ranks + 0.5) / sizes[own], kind="stable")]


def units_of_several_rows(by: SplitBy | None) -> Index | None:
    """Return the unit of each row, (N,), numbered from 0, or None if each row is a unit of its own."""
    if by is None or by.units is None or len(distinct(by.units)) == len(by.units):
        return None
    return np.unique(by.units, return_inverse=True)[1]


def _shuffled_by_class(labels: Integers, seed: Seed) -> Index:
    """Return the indices of all rows, ordered by class and shuffled within each class."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]


def _class_counts(labels: Integers, units: Index) -> tuple[Index, Index, Index]:
    """Return unit, label and number of rows for every pair of unit and label that occurs, sorted by unit and label."""
    n_labels = int(labels.max()) + 1
    pairs, counts = np.unique(units * n_labels + labels, return_counts=True)
    return pairs // n_labels, pairs % n_labels, counts


def _folds_of_units(labels: Integers, units: Index, n_folds: int, seed: Seed) -> Index:
    """Assign a fold to every row, such that units stay together and every class is spread over the folds."""
    n_units = int(units.max()) + 1
    owner, label, counts = _class_counts(labels, units)
    n_classes = len(distinct(labels))
    sizes = np.bincount(owner, counts)
    # the square of the standard deviation times n_classes ** 2, in integers, so that equal units tie
    spread = n_classes * np.bincount(owner, counts * counts) - sizes * sizes
    shuffled = np.random.default_rng(seed).permutation(n_units)
    order = shuffled[np.argsort(-spread[shuffled], kind="stable")]
    # Lists and not arrays: units have few labels, and a fold is found in microseconds.
    # n[unit, c] / n[c] of every pair of unit and class
    share = (counts / np.bincount(labels)[label]).tolist()
    first = np.searchsorted(owner, np.arange(n_units + 1)).tolist()
    classes, rows = label.tolist(), sizes.tolist()
    n_labels = int(labels.max()) + 1
    shares = [[0.0] * n_folds for _ in range(n_labels)]
    totals, squares, n_rows = [0.0] * n_labels, [0.0] * n_labels, [0] * n_folds
    fold_of = np.empty(n_units, np.intp)
    for unit in order.tolist():
        start, stop = first[unit], first[unit + 1]
        # Other classes do not depend on the fold, and the deviation of a single class rises with its count in the fold.
        deviations = shares[classes[start]]
        if stop - start > 1:
            deviations = [0.0] * n_folds
            for i in range(start, stop):
                c, s = classes[i], share[i]
                # variance over the folds if fold f gets s: (sum of squares + s^2 + 2 s held_f) / F - (mean + s / F)^2
                known, slope = (squares[c] + s * s) / n_folds - ((totals[c] + s) / n_folds) ** 2, 2 * s / n_folds
                own = [math.sqrt(v) if (v := known + slope * held) > 0 else 0.0 for held in shares[c]]
                deviations = list(map(add, deviations, own))
        most, best = min(deviations) + 1e-12, -1
        for fold, deviation in enumerate(deviations):
            if deviation <= most and (best < 0 or n_rows[fold] < n_rows[best]):
                best = fold
        for i in range(start, stop):
            c, s = classes[i], share[i]
            # the running sums for that formula
            squares[c] += s * s + 2 * shares[c][best] * s
            totals[c] += s
            shares[c][best] += s
        n_rows[best] += rows[unit]
        fold_of[unit] = best
    return fold_of[units]


def _samples_of_units(labels: Integers, units: Index, sizes: Sequence[int], seed: Seed) -> Iterator[Index]:
    """Yield, for each size, the rows of the longest prefix of one order of units with at most `size` rows.

    The prefix has at least one unit, even if that unit has more rows.
    """
    owner, label, counts = _class_counts(labels, units)
    # the last of each unit's labels by rising number of rows, and of equal ones the lowest
    by_count = np.lexsort((-label, counts, owner))
    last = np.append(np.flatnonzero(np.diff(owner)), len(owner) - 1)
    order = nested_order(label[by_count[last]], seed)
    # the number of rows in the first 1, 2, ... units of the order
    rows_in_all = np.cumsum(np.bincount(units)[order])
    for size in sizes:
        n_units = max(1, int(np.searchsorted(rows_in_all, size, side="right")))
        yield np.flatnonzero(np.isin(units, order[:n_units]))


def _cut_by_time(times: Array, positions: Sequence[int]) -> Index:
    """Cut the rows in time order, at the changes of time nearest to `positions`; return the block of each row, (N,)."""
    ascending = np.sort(times)
    # where the time changes: only there may a block end
    starts = np.flatnonzero(np.diff(ascending)) + 1
    if not len(starts):
        return np.zeros(len(times), np.intp)
    nearest = {int(starts[np.argmin(np.abs(starts - position))]) for position in positions}
    # the block of a row is the number of block starts at or before its time
    return np.searchsorted(ascending[sorted(nearest)], times, side="right")
