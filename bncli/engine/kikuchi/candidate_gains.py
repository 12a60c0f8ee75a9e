"""Candidate gains: what every candidate region of one size would add to the log-likelihood of the current model.

Tables of candidates stay valid until the model covers another of their subsets, so they are kept, up to a budget. A
step costs one look-up per row and candidate (`bncli.engine.kikuchi.candidate_tables`) or, if upper bounds are cheap,
one per row and candidate that may be the best (`bncli.engine.kikuchi.upper_bounds`). Candidates whose tables are not
kept are counted again. Work is done in rounds of bounded memory and time; between rounds the caller may stop it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.counting.table_batches import in_rounds
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.kikuchi.candidate_tables import Batch, CandidateGroup, count, sum_logs, tabulate
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.kikuchi.upper_bounds import Contrasts, UpperBounds, upper_bounds
from bncli.engine.structures.region_graph import Region

Proceed = Callable[[int, int], bool]
"""Receives the number of candidates done and their total; returns whether to continue."""
ENTRIES_KEPT = 1 << 25
"""The most entries of tables that are kept (256 MiB)."""
ENTRIES_PER_GROUP = 1 << 15
"""The most entries of the tables of a group, unless a single candidate has more (256 KiB, so that they fit a cache)."""
ENTRIES_PER_ROUND = 1 << 22
"""The most entries of tables counted in one pass over the rows (32 MiB)."""
LOOKUPS_PER_ROUND = 1 << 30
"""The most look-ups (rows times candidates times classes) of a round."""
FIRST_TRIED = 16
"""The number of candidates with the highest previous gains that are tried before bounds are used for the others."""
LOOKUPS_BEFORE_BOUNDS = 32
"""After this many look-ups per set of unusual values, it pays to prepare bounds."""


class Candidates:
    """The candidates of one size: every region of that many attributes, and which of its subsets the model covers.

    sets (M, size) are in lexicographic order; covered and df are (M, 2^size), where bit p of a subset's number is set
    if the subset has the p-th attribute. df is what a subset adds to the degrees of freedom when it becomes covered.
    All that a step needs of a candidate A depends on which of its subsets are covered, and is computed by matrix
    products for all candidates at once. With u_Q = 1 if Q in A is not covered, adding A changes counting numbers by

        dc_R = sum over Q in A, R in Q, of u_Q (-1)^|Q - R|

    and the degrees of freedom by the sum of df over the Q that are not covered.
    """

    def __init__(self, sets: Index, df: Array) -> None:
        self.sets, self.size, self._df = sets, sets.shape[1], df
        self.covered = np.zeros((len(sets), 1 << self.size), bool)
        self.covered[:, 0] = True

    def cover(self, sets: Iterable[Region]) -> Index:
        """Mark sets as covered by the model; return the candidates that contain any of them."""
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
        """Whether a region of the model contains the candidate."""
        return self.covered[:, -1]

    def added_df(self) -> Array:
        """Return the increase of the degrees of freedom that every candidate causes."""
        return np.asarray(np.where(self.covered, 0.0, self._df).sum(axis=1))

    def changes(self, which: Index) -> Array:
        """Return the changes dc for the candidates `which`, (len(which), 2^size), in the order of subset numbers."""
        # one Kronecker factor per attribute: Q lacks or has it (rows), R lacks or has it (columns)
        signs = np.ones((1, 1))  # (-1)^|Q - R| of all subsets Q (rows) and R in Q (columns), 0 elsewhere
        for _ in range(self.size):
            signs = np.kron(np.array([[1.0, 0.0], [-1.0, 1.0]]), signs)
        return (~self.covered[which]).astype(np.float64) @ signs


def all_sets(attributes: Sequence[int], size: int) -> Index:
    """Return every set of `size` attributes, in lexicographic order."""
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
        """Return the gains of the candidates `which`, or None if `proceed` returns False.

        The gain may be -inf for candidates whose gain + added is more than `within` below the highest.
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
        """Return the gains of the candidates `which`, or None if `proceed` returns False between two rounds."""
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
        """Yield batches of candidates: first those whose tables are kept, then those that must be counted."""
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
        groups = self._group(unknown)
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

    def _group(self, which: Index) -> Iterator[CandidateGroup]:
        """Yield the candidates `which`, ascending, in groups of limited size that share all attributes but the last."""
        sets = self.candidates.sets[which]
        radices = np.array(self._data.schema.cardinalities, np.intp)[sets]
        entries = radices.prod(axis=1) * self._data.n_labels
        # where attributes other than the last change
        breaks = np.flatnonzero((sets[1:, :-1] != sets[:-1, :-1]).any(axis=1)) + 1
        for start, end in itertools.pairwise((0, *breaks.tolist(), len(which)) if len(which) else ()):
            total = np.cumsum(entries[start:end])
            # where the running number of entries passes a multiple of ENTRIES_PER_GROUP
            splits = np.flatnonzero(np.diff(total // ENTRIES_PER_GROUP)) + 1
            for first, last in itertools.pairwise((start, *(start + splits).tolist(), end)):
                shared = tuple(sets[first, :-1].tolist())
                shape = tuple(radices[first, :-1].tolist())
                here = slice(first, last)
                yield CandidateGroup(shared, sets[here, -1], which[here], shape, radices[here, -1])
