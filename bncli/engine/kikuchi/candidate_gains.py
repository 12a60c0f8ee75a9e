"""Candidate gains: how much each candidate region of one size would add to the log-likelihood of the current model.

Tables of candidates stay valid until the model covers another of their subsets, so they are kept, up to a budget. A
step costs one look-up per row and candidate or, if upper bounds are cheap, one per row and candidate that may be the
best. Candidates whose tables are not kept are counted again. Work is done in rounds of bounded memory and time; between
rounds the caller may stop it.

With p[t, y] = P(y | x_t) from the current model, a table D over the cells of a candidate adds to the log-likelihood of
the classes

    gain = sum over cells and y of n[cell, y] d[cell, y]  -  sum_t w_t ln z_t
    z_t  = p[t, 0] + sum over y > 0 of p[t, y] exp(d[cell_t, y]),    d[cell, y] = D[cell, y] - D[cell, 0]

The first sum needs only counts. z is an average of exp(d), so the table bounds it: if |d| is at most 80, the product of
eight z's neither overflows nor underflows, and one logarithm serves eight rows. Steeper tables are summed with
logarithms.

A batch holds the tables of candidates that share all attributes but the last. They are in one array [cell of the shared
attributes, value of a last attribute]. Let B be the number of values of all its last attributes together, and b_k the
position of the first value of attribute k among them. Then

    cell = cell_t(shared) B + b_k + x_tk

takes one addition per row and candidate. Cost: about 2 + 2 (K - 1) ns per row and candidate.

**Upper bounds** follow from sums over the rows that contain each set of unusual values. z is the mean of exp(d) under
p, so

    ln z >= E d + phi(r) Var d,    phi(r) = (exp(-r) - 1 + r) / r^2

for any r >= the range of the d of a cell, because the third cumulant of exp(s d) p is at most r times the second
(self-concordance: Bach 2010, Electronic Journal of Statistics 4). E d and Var d are sums over y and y' of p[t, y] and
p[t, y] p[t, y'] times coefficients of the cell, so an upper bound on a candidate's gain follows from the sums of these
*moments* over the rows of each cell. With more than SECOND_ORDER_CLASSES classes the term with phi is left out, so that
only the moments of first order are needed.

Call the most frequent value of each attribute its usual value, and let c be the coefficients as contrasts to the usual
values (along each axis, the slice of the usual value is subtracted from the others). Then a sum over cells and rows is

    sum over cells v of c[v] M[Q(v)],    Q(v): the values of v that are not usual
    M[Q] = sum of the moments of the rows that have all values in Q, whatever else they have

and a row adds to M once for every set of at most `size` of its unusual values: if rows have few of them, these sets are
far fewer than the candidates. In M, sets are ordered by size, and a set of values f_1 < f_2 < ... has, among the sets
of its size, the number

    C(f_1, 1) + C(f_2, 2) + ...        (combinatorial number system: Knuth, The Art of Computer Programming 4A, 7.2.1.3)

Cost of the bounds per step: for each moment, about 5 ns per set of unusual values of each row, and 2 ns per cell of all
candidates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.table_batches import in_rounds
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Mask, add_counts, cell_numbers, log_softmax
from bncli.engine.kikuchi.model_paths import Region
from bncli.engine.kikuchi.search_trace import GrowingModel

STEEPEST = 80.0
"""The largest |d|, in nats, for which eight z's may be multiplied."""
ROWS_PER_LOGARITHM = 8
LOOKUPS_AT_A_TIME = 1 << 15
"""The approximate number of look-ups (rows times candidates) per numpy call; more would not fit a cache."""
CODES_AT_A_TIME = 1 << 19
"""The approximate number of codes (rows times attributes) in memory at a time (4 MiB)."""
Proceed = Callable[[int, int], bool]
"""A function of the number of candidates done and the number of all candidates; it returns whether to continue."""
ENTRIES_KEPT = 1 << 25
"""A batch's tables are kept if all kept tables and contrasts then have at most this many entries (256 MiB)."""
ENTRIES_PER_GROUP = 1 << 15
"""The approximate maximum number of entries of a group's tables (256 KiB, to fit a cache), unless one has more."""
ENTRIES_PER_ROUND = 1 << 22
"""The maximum number of entries of tables counted in one pass over the rows (32 MiB), unless one group has more."""
LOOKUPS_PER_ROUND = 1 << 30
"""The maximum number of look-ups (rows times candidates times classes) of a round, unless one batch has more."""
FIRST_TRIED = 16
"""The number of candidates with the highest previous gains that are tried before bounds are used for the others."""
LOOKUPS_BEFORE_BOUNDS = 32
"""Bounds are used only after this many look-ups per set of unusual values, since preparing them costs time."""
MOST_ROW_SETS = 1 << 24
"""The maximum number of sets of unusual values of all rows (8 bytes each)."""
MOST_SUMS = 1 << 23
"""The maximum number of entries of M, the sums of the moments."""
LEAST_SAVING = 4
"""Bounds are used if they take at least this many times less work than looking up all candidates."""
SECOND_ORDER_CLASSES = 3
"""Up to this many classes, moments of second order are used."""
ROUNDING = 1e-9
"""A margin, relative to the largest possible sum, that is far above the rounding errors of additions."""


class Candidates:
    """The candidate regions of one size, and which of their subsets the model covers.

    sets (M, size) are in lexicographic order; covered and df are (M, 2^size), where bit p of a subset's number is set
    if the subset has the p-th attribute. df is the increase of the degrees of freedom when a subset becomes covered.
    Everything that a step needs to know about a candidate A depends on which of its subsets are covered, and is
    computed for all candidates at once by matrix products. With u_Q = 1 if Q in A is not covered, and 0 otherwise,
    adding A changes counting numbers by

        dc_R = sum over Q in A, R in Q, of u_Q (-1)^|Q - R|

    and the degrees of freedom by the sum of df over the Q that are not covered.
    """

    def __init__(self, sets: Index, df: Array) -> None:
        self.sets, self.size, self._df = sets, sets.shape[1], df
        self.covered = np.zeros((len(sets), 1 << self.size), bool)
        self.covered[:, 0] = True

    def cover(self, sets: Iterable[Region]) -> Index:
        """Mark sets as covered by the model; return the indices of the candidates that contain any nonempty one."""
        touched = np.zeros(len(self.sets), bool)
        for covered in sets:
            for positions in itertools.combinations(range(self.size), len(covered)) if covered else ():
                # the candidates with these attributes at these positions
                alike = self.sets[:, positions[0]] == covered[0]
                for position, attribute in zip(positions[1:], covered[1:], strict=True):
                    alike &= self.sets[:, position] == attribute
                having = np.flatnonzero(alike)
                self.covered[having, sum(1 << p for p in positions)] = True
                touched[having] = True
        return np.flatnonzero(touched)

    @property
    def present(self) -> Mask:
        """Whether each candidate is inside a region of the model, (M,)."""
        return self.covered[:, -1]

    def added_df(self) -> Array:
        """Return the increase of the degrees of freedom that every candidate causes, (M,)."""
        return np.asarray(np.where(self.covered, 0.0, self._df).sum(axis=1))

    def changes(self, which: Index) -> Array:
        """Return the changes dc for the candidates `which`, (len(which), 2^size), in the order of subset numbers."""
        # one Kronecker factor per attribute: Q lacks or has it (rows), R lacks or has it (columns)
        signs = np.ones((1, 1))  # (-1)^|Q - R| of all subsets Q (rows) and R in Q (columns), 0 elsewhere
        for _ in range(self.size):
            signs = np.kron(np.array([[1.0, 0.0], [-1.0, 1.0]]), signs)
        return (~self.covered[which]).astype(np.float64) @ signs


def all_sets(attributes: Sequence[int], size: int) -> Index:
    """Return all sets of `size` attributes, (sets, size), in lexicographic order."""
    flat = itertools.chain.from_iterable(itertools.combinations(attributes, size))
    return np.fromiter(flat, np.intp, math.comb(len(attributes), size) * size).reshape(-1, size)


def strongest_sets(ranked: Sequence[int], size: int, most: int) -> Index:
    """Return at most `most` sets of `size` attributes, in lexicographic order; `ranked` has the strongest first.

    Sets whose weakest attribute is strongest are taken first; ties are resolved by the second weakest attribute, and so
    on. The result is empty if fewer than `size` attributes are ranked.
    """
    if len(ranked) < size:
        return np.empty((0, size), np.intp)
    n = size
    # the n strongest attributes have enough sets
    while n < len(ranked) and math.comb(n, size) < most:
        n += 1
    sets_by_rank = all_sets(range(n), size)
    # the last column, the weakest attribute, is the primary key
    sets_by_rank = sets_by_rank[np.lexsort(sets_by_rank.T)][:most]
    sets = np.sort(np.array(ranked, np.intp)[sets_by_rank], axis=1)
    return sets[np.lexsort(sets.T[::-1])]


class CandidateGains:
    """The gains of candidates of one size, computed on request, and their tables, which are kept up to a budget."""

    def __init__(self, model: GrowingModel, candidates: Candidates) -> None:
        self.candidates, self._model, self._data = candidates, model, model.data
        self._offsets = np.cumsum((0, *self._data.schema.cardinalities[:-1]), dtype=np.intp)
        self._kept: dict[int, Batch] = {}
        self._batch_of = np.full(len(candidates.sets), -1, np.intp)  # the kept batch that has its table, or -1
        self._n_batches = self._entries = 0
        self._bounds: UpperBounds | None = None
        self._contrasts: dict[int, Contrasts] = {}
        self._last_gains = np.full(len(candidates.sets), -np.inf)
        self._looked_up = 0  # rows times candidates
        candidates.cover(model.covered)

    def cover(self, sets: Iterable[Region]) -> None:
        """Record that the model now covers these sets."""
        # the changes dc of these candidates are different now, so their kept tables are out of date
        self._batch_of[self.candidates.cover(sets)] = -1
        for key in set(self._kept) - set(self._batch_of.tolist()):
            self._entries -= self._kept.pop(key).tables.size
            if key in self._contrasts:
                self._entries -= self._contrasts.pop(key).size

    def highest(self, which: Index, added: Array, within: float, proceed: Proceed) -> Array | None:
        """Return the gains of the candidates `which`, or None if `proceed` returns False before a round.

        `added` (len(which),) is added to the gains when they are compared. The result may be -inf for candidates whose
        gain + added is more than `within` below the highest.
        """
        many = len(which) > FIRST_TRIED
        if many and not self._looked_up:
            self._bounds = upper_bounds(self._data, self.candidates.sets)
        bounding = self._bounds
        if not many or bounding is None or self._looked_up < LOOKUPS_BEFORE_BOUNDS * bounding.n_row_sets:
            return self.gains(which, proceed)
        last = self._last_gains[which] + added
        bounds = self._upper_bounds(bounding)[which] + added
        gains = np.full(len(which), -np.inf)
        waiting = np.ones(len(which), bool)
        # first those without a bound and those of highest previous gains; then only those that may still be the best
        trying = (bounds == np.inf) | (last >= np.partition(last, -FIRST_TRIED)[-FIRST_TRIED])
        while trying.any():
            tried = self.gains(which[trying], proceed)
            if tried is None:
                return None
            gains[trying] = tried
            waiting &= ~trying
            trying = waiting & (bounds >= (gains + added).max() - within)
        return gains

    def _upper_bounds(self, bounding: UpperBounds) -> Array:
        """Return an upper bound on the gain of every candidate, infinite if its table is not kept."""
        bounds = np.full(len(self._batch_of), np.inf)
        assert self._model.scores is not None
        moments = bounding.moments(self._model.scores)
        for key, batch in self._kept.items():
            if key not in self._contrasts:
                self._contrasts[key] = bounding.contrasts(batch)
                self._entries += self._contrasts[key].size
            which = batch.group.which
            held = self._batch_of[which] == key
            bounds[which[held]] = self._contrasts[key].bounds(moments)[held]
        return bounds

    def gains(self, which: Index, proceed: Proceed) -> Array | None:
        """Return the gains of the candidates `which`, or None if `proceed` returns False before a round."""
        gains = np.zeros(len(self._batch_of))
        done = 0
        for batches in self._rounds(which):
            if not proceed(done, len(which)):
                return None
            # gain = sum of n d - sum of w ln z
            logs = self._data.reduce(sum_logs, batches, self._offsets, states=self._model.scores)
            scored = np.concatenate([batch.group.which[batch.slots] for batch in batches])
            gains[scored] = np.concatenate([batch.sums[batch.slots] for batch in batches]) - logs
            done += len(scored)
        self._looked_up += len(which) * self._data.n_rows
        self._last_gains[which] = gains[which]
        return gains[which]

    def _rounds(self, which: Index) -> Iterator[list[Batch]]:
        """Yield rounds of batches: first the candidates whose tables are kept, then those that must be counted."""
        data = self._data
        per_candidate = data.n_rows * data.n_labels
        is_requested = np.zeros(len(self._batch_of), bool)
        is_requested[which] = True
        unknown = which[self._batch_of[which] < 0]
        # batches whose tables are kept; only the candidates that are requested and still valid are scored
        known = []
        for key, batch in self._kept.items():
            scored = is_requested[batch.group.which] & (self._batch_of[batch.group.which] == key)
            if scored.any():
                known.append(batch if scored.all() else replace(batch, slots=np.flatnonzero(scored)))
        yield from in_rounds(known, lambda batch: len(batch.slots) * per_candidate, LOOKUPS_PER_ROUND)
        # all others are counted first, in rounds of limited memory
        sets = self.candidates.sets[unknown]
        radices = np.array(data.schema.cardinalities, np.intp)[sets]
        entries = radices.prod(axis=1) * data.n_labels
        # groups of limited size that share all attributes but the last: `breaks` are where others change
        groups, breaks = [], np.flatnonzero((sets[1:, :-1] != sets[:-1, :-1]).any(axis=1)) + 1
        for start, end in itertools.pairwise((0, *breaks.tolist(), len(unknown)) if len(unknown) else ()):
            total = np.cumsum(entries[start:end])
            # where the running number of entries passes a multiple of ENTRIES_PER_GROUP
            splits = np.flatnonzero(np.diff(total // ENTRIES_PER_GROUP)) + 1
            for first, last in itertools.pairwise((start, *(start + splits).tolist(), end)):
                shared, shape = tuple(sets[first, :-1].tolist()), tuple(radices[first, :-1].tolist())
                here = slice(first, last)
                groups.append(CandidateGroup(shared, sets[here, -1], unknown[here], shape, radices[here, -1]))
        for together in in_rounds(groups, lambda group: group.n_cells * data.n_labels, ENTRIES_PER_ROUND):
            counted = data.reduce(count, together, self._offsets, data.n_labels)
            batches = []
            for group, table in zip(together, counted, strict=True):
                changes = self.candidates.changes(group.which)
                batch = tabulate(group, table, changes, data.total_weight, self._model.theta)
                if self._entries + batch.tables.size <= ENTRIES_KEPT:
                    self._entries += batch.tables.size
                    self._kept[self._n_batches] = batch
                    self._batch_of[group.which] = self._n_batches
                    self._n_batches += 1
                batches.append(batch)
            del counted, table
            yield from in_rounds(batches, lambda batch: len(batch.slots) * per_candidate, LOOKUPS_PER_ROUND)


@dataclass(frozen=True)
class CandidateGroup:
    """The candidates (*shared, k) for all k in `lasts`, ascending; `which` are their indices among all candidates.

    `radices` and `last_radices` have the cardinalities of the shared attributes and of the last attributes.
    """

    shared: tuple[int, ...]
    lasts: Index
    which: Index
    radices: tuple[int, ...]
    last_radices: Index

    @cached_property
    def width(self) -> int:
        """B, the total number of values of the last attributes."""
        return int(self.last_radices.sum())

    @property
    def n_cells(self) -> int:
        return math.prod(self.radices) * self.width

    @cached_property
    def starts(self) -> Index:
        """The position b_k of the first value of every last attribute."""
        return np.asarray(np.cumsum(self.last_radices) - self.last_radices)


@dataclass(frozen=True)
class Batch:
    """The tables of a group of candidates, (K - 1, cells): exp(d), or d itself if `steep`.

    d(v, y) is the change of the log-odds of label y against the first label in cell v. sums[g] is the sum of n d over
    the cells and labels of the group's candidate g. `slots` are the positions of the candidates to be scored.
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
            # the margin without the last attribute is the same for all candidates, so the first one's is used
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
    """Return the counts n[cell, y] of every group, flattened; offsets[i] is the sum of the first i cardinalities."""
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
    """Return sum_t w_t ln z_t of every candidate, batch by batch; the state of the block has the scores S (K, rows)."""
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
    """Return the same as `_sum_log_z`, but for steep tables: computed with logarithms, from ln p (K, rows)."""
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

    The candidates come in parts of equal size, except for the last, with about LOOKUPS_AT_A_TIME look-ups each.
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


def upper_bounds(data: Dataset, sets: Index) -> UpperBounds | None:
    """Prepare upper bounds for candidates (M, size), or return None if they are not worth the work."""
    members = tuple(np.unique(sets).tolist())
    cardinalities = np.array(data.schema.cardinalities, np.intp)
    size, n_values = sets.shape[1], int((cardinalities[list(members)] - 1).sum())
    n_sets = sum(math.comb(n_values, s) for s in range(size + 1))
    n_moments = data.n_labels - 1
    if data.n_labels <= SECOND_ORDER_CLASSES:
        n_moments += math.comb(data.n_labels, 2)
    if size < 2 or n_sets * n_moments > MOST_SUMS:
        return None
    # the most frequent code of each attribute
    usual = np.array([counts.argmax() for counts in data.reduce(_value_counts, data.schema.cardinalities)])
    values = number_unusual_values(members, usual, cardinalities, size)
    rows_by_number = data.reduce(_count_unusual, values)
    # rows with n unusual values have C(n, s) sets of s of them
    n_row_sets = sum(int(rows) * math.comb(n, s) for n, rows in enumerate(rows_by_number) for s in range(size + 1))
    n_lookups = len(sets) * data.n_rows * data.n_labels
    if n_row_sets > MOST_ROW_SETS or LEAST_SAVING * n_moments * (n_row_sets + n_sets) > n_lookups:
        return None
    return UpperBounds(data, values, n_row_sets)


@dataclass(frozen=True)
class UnusualValues:
    """The numbering of unusual values, and of sets of them.

    - first[i]: the number of the first unusual value of attribute i; usual[i]: the code of its usual value
    - members: the attributes whose unusual values are numbered
    - binomials[k, f] = C(f, k); offsets[s]: the number of sets of fewer than s values
    """

    first: Index
    usual: Index
    members: tuple[int, ...]
    binomials: Index
    offsets: Index

    def of_values(self, attribute: int, radix: int) -> Index:
        """Return the number of each value of an attribute with `radix` values, -1 for the usual value."""
        usual = int(self.usual[attribute])
        # consecutive, without the usual value
        numbers = self.first[attribute] + np.arange(radix) - (np.arange(radix) > usual)
        numbers[usual] = -1
        return np.asarray(numbers)

    def of_cells(self, group: CandidateGroup) -> Index:
        """Return the number of the set Q for every cell of a group, in the order of the cells."""
        size = np.zeros((), np.intp)
        numbers = np.zeros((), np.intp)
        lasts = zip(group.lasts.tolist(), group.last_radices.tolist(), strict=True)
        axes = [self.of_values(i, radix) for i, radix in zip(group.shared, group.radices, strict=True)]
        axes.append(np.concatenate([self.of_values(i, radix) for i, radix in lasts]))
        for values in axes:
            unusual = values >= 0
            # size: unusual values so far in each cell; the k-th of them adds C(f, k) to the number of the set
            size = np.add.outer(size, unusual.astype(np.intp))
            numbers = np.add.outer(numbers, np.zeros(len(values), np.intp))
            numbers += np.where(unusual, self.binomials[size, np.maximum(values, 0)], 0)
        return np.asarray((numbers + self.offsets[size]).ravel())


def number_unusual_values(members: tuple[int, ...], usual: Index, cardinalities: Index, size: int) -> UnusualValues:
    """Assign numbers to the unusual values of the attributes `members`, and to the sets of at most `size` of them."""
    n_unusual = np.zeros(len(cardinalities), np.intp)
    n_unusual[list(members)] = cardinalities[list(members)] - 1
    n_values = int(n_unusual.sum())
    binomials = np.array([[math.comb(f, k) for f in range(n_values + 1)] for k in range(size + 1)])
    offsets = np.cumsum([0, *(math.comb(n_values, s) for s in range(size + 1))])
    return UnusualValues(np.cumsum(n_unusual) - n_unusual, usual, members, binomials, offsets)


def _value_counts(block: RowBlock, cardinalities: tuple[int, ...]) -> list[Index]:
    return [np.bincount(codes, minlength=n) for codes, n in zip(block.codes, cardinalities, strict=True)]


def _count_unusual(block: RowBlock, values: UnusualValues) -> Index:
    """Return the number of rows of a block with 0, 1, 2, ... unusual values."""
    n_unusual = np.zeros(block.n_rows, np.intp)
    for i in values.members:
        n_unusual += block.codes[i] != values.usual[i]
    return np.bincount(n_unusual, minlength=len(values.members) + 1)


@dataclass(frozen=True)
class UpperBounds:
    """The bounds for one data set and size of candidates.

    n_row_sets: the number of sets of unusual values, summed over all rows.
    """

    data: Dataset
    values: UnusualValues
    n_row_sets: int

    def contrasts(self, batch: Batch) -> Contrasts:
        """Return the contrasts c of a batch, from which its bounds are computed."""
        group = batch.group
        d = batch.tables if batch.steep else np.log(batch.tables)
        if len(d) >= SECOND_ORDER_CLASSES:
            coefficients = np.array(d)
        else:
            # the range of d over all labels; d is 0 for the first label
            r = np.maximum(d.max(axis=0), 0.0) - np.minimum(d.min(axis=0), 0.0)
            phi = np.full(r.shape, 0.4999)  # for small r, where the formula would lose digits: below 1/2 - r/6
            np.divide(np.expm1(-r) + r, r * r, out=phi, where=r > 1e-4)
            # E d + phi Var d = sum of p_y (d_y + phi d_y^2) - phi sum of p_y p_z d_y d_z; each pair y < z occurs twice
            pairs = itertools.combinations_with_replacement(range(len(d)), 2)
            second = [-phi * (1 if y == z else 2) * d[y] * d[z] for y, z in pairs]
            coefficients = np.array([*(d + phi * d * d), *second])
        # a view: the coefficients become contrasts in place, one axis after the other
        c = coefficients.reshape(len(coefficients), *group.radices, group.width)
        for axis, i in enumerate(group.shared, 1):
            along = np.moveaxis(c, axis, 0)
            usual = along[self.values.usual[i]].copy()
            along -= usual
            along[self.values.usual[i]] = usual
        # along the last axis every candidate has a usual value of its own
        usual_cells = group.starts + self.values.usual[group.lasts]
        of_usual = c[..., usual_cells]
        c -= np.repeat(of_usual, group.last_radices, axis=-1)
        c[..., usual_cells] = of_usual
        slack = ROUNDING * self.data.total_weight * (1.0 + float(np.abs(c).max(initial=0.0)))
        return Contrasts(group, coefficients, self.values.of_cells(group), batch.sums + slack)

    def moments(self, scores: list[Array]) -> Array:
        """Return M, shape (moments, sets), for the scores (K, rows) of each row block."""
        states = list(zip(scores, self._row_sets, strict=True))
        return np.asarray(self.data.reduce(_sum_moments, int(self.values.offsets[-1]), states=states))

    @cached_property
    def _row_sets(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        return self.data.map(_find_row_sets, self.values)


class Contrasts(NamedTuple):
    """The contrasts c (moments, cells) of a group of candidates.

    sets: the number of each cell's set Q. sums: each candidate's sum of n d, plus a margin for rounding errors.
    """

    group: CandidateGroup
    c: Array
    sets: Index
    sums: Array

    @property
    def size(self) -> int:
        """The number of elements of `c` and `sets`."""
        return self.c.size + self.sets.size

    def bounds(self, moments: Array) -> Array:
        """Return an upper bound on the gain of every candidate of the group."""
        # sum over moments m of coefficient times moment, for each cell v, then over the cells of each last value
        by_value = np.einsum("mv,mv->v", self.c, moments[:, self.sets])
        by_value = by_value.reshape(-1, self.group.width).sum(axis=0)
        return np.asarray(self.sums - np.add.reduceat(by_value, self.group.starts))


def _find_row_sets(block: RowBlock, values: UnusualValues) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the numbers of all sets of at most `size` unusual values in each row of a block, and the row of each."""
    size = len(values.offsets) - 2
    unusual = np.array([block.codes[i] != values.usual[i] for i in values.members]).T
    per_row = unusual.sum(axis=1)
    numbers, rows = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for n in np.unique(per_row).tolist():
        # the rows with n unusual values, and the numbers of these values, ascending, (rows, n)
        here = np.flatnonzero(per_row == n)
        attributes = np.array(values.members)[np.nonzero(unusual[here])[1]].reshape(len(here), n)
        # the boolean index picks the n unusual codes of each row, row by row
        codes = np.array([block.codes[i][here] for i in values.members], np.intp).T[unusual[here]].reshape(len(here), n)
        which = values.first[attributes] + codes - (codes > values.usual[attributes])
        of_sets = []
        for n_members in range(min(size, n) + 1):
            for places in itertools.combinations(range(n), n_members):
                set_numbers = np.full(len(which), values.offsets[n_members])
                for k, place in enumerate(places, 1):
                    set_numbers += values.binomials[k, which[:, place]]
                of_sets.append(set_numbers)
        numbers.append(np.array(of_sets).astype(np.int32).ravel())
        rows.append(np.tile(here.astype(np.int32), len(of_sets)))
    return np.concatenate(numbers), np.concatenate(rows)


def _sum_moments(block: RowBlock, n_sets: int) -> Array:
    scores, (numbers, rows) = block.state
    p = np.exp(log_softmax(scores, 0))[1:]
    moments = [*p]
    if len(scores) <= SECOND_ORDER_CLASSES:
        moments += [p[y] * p[z] for y, z in itertools.combinations_with_replacement(range(len(p)), 2)]
    if block.weights is not None:
        moments = [moment * block.weights for moment in moments]
    numbers, rows = numbers.astype(np.intp), rows.astype(np.intp)
    return np.array([np.bincount(numbers, moment.take(rows), n_sets) for moment in moments])
