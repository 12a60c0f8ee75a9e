"""Candidate gains: what every candidate would add to the log-likelihood of the model as it is.

Tables of candidates stay as they are until the model covers a subset of theirs, so they are kept, up to a budget, and
a step costs one look-up per row and candidate (`bncli.engine.kikuchi.candidate_batches`), or, where upper bounds are
cheap, one for each candidate that may be the best (`bncli.engine.kikuchi.upper_bounds`). Candidates whose tables are
not kept are counted again. Work is done in rounds of bounded memory and time; between rounds the caller may stop it.

The candidates of one size: every region of so many attributes, and which of its subsets the model already covers.

All that a step needs of a candidate A follows from the coverage of its subsets, kept as one row of flags. A subset is a
number whose bit p says that it has the p-th attribute of A. With u_Q = 1 where Q in A is not covered, adding A changes
counting numbers and degrees of freedom by

    dc_R = sum over Q in A, R in Q, of u_Q (-1)^|Q - R|
    ddf = (K - 1) sum over Q in A of u_Q prod over i in Q of (|X_i| - 1)

(see `bncli.engine.structures.region_graph`; the second is that of conditional degrees of freedom, others have other
terms: `bncli.engine.kikuchi.search_trace`). Both are products of arrays over all candidates at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.kikuchi.candidate_batches import Batch, CandidateGroup, count, sum_logs, tabulate
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.kikuchi.upper_bounds import Contrasts, UpperBounds, upper_bounds
from bncli.engine.structures.region_graph import Region


class Candidates:
    """sets (M, size), in lexicographic order; covered and df (M, 2^size), by the numbers of subsets.

    df: what a subset adds to the degrees of freedom when it becomes covered.
    """

    def __init__(self, sets: Index, df: Array) -> None:
        self.sets, self.size, self._df = sets, sets.shape[1], df
        self.covered = np.zeros((len(sets), 1 << self.size), bool)
        self.covered[:, 0] = True

    def cover(self, sets: Iterable[Region]) -> Index:
        """Mark what the model now covers; the candidates to which that is new."""
        touched = np.zeros(len(self.sets), bool)
        for covered in sets:
            for positions in itertools.combinations(range(self.size), len(covered)) if covered else ():
                # The candidates with these attributes at these positions.
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
        """Return what every candidate adds to the degrees of freedom."""
        return np.asarray(np.where(self.covered, 0.0, self._df).sum(axis=1))

    def changes(self, which: Index) -> Array:
        """Return dc of these candidates, (len(which), 2^size), by the numbers of subsets."""
        return (~self.covered[which]).astype(np.float64) @ _signs(self.size)


T = TypeVar("T")
Proceed = Callable[[int, int], bool]
KEPT = 1 << 25
"""Entries of the tables that are kept (256 MiB)."""
GROUP = 1 << 15
"""Entries of the tables of a group, unless a single candidate has more (256 KiB: they stay in cache)."""
ROUND = 1 << 22
"""Entries of the tables that are counted in one pass over the rows (32 MiB)."""
LOOKUPS = 1 << 30
"""Rows times candidates times classes of a round."""
FIRST = 16
"""So many candidates that were the best when last tried are tried before it is asked which others might be better."""
BEFOREHAND = 32
"""Look-ups for each set of unusual values after which it is worth preparing bounds."""


class CandidateGains:
    """Candidates of one size, with the tables that are known of them."""

    def __init__(self, growing: GrowingModel, candidates: Candidates) -> None:
        self.candidates, self._model, self._data = candidates, growing, growing.data
        self._offsets = np.cumsum((0, *self._data.schema.cardinalities[:-1]), dtype=np.intp)
        self._kept: dict[int, Batch] = {}
        self._bounds: UpperBounds | None = None
        self._last = np.full(len(candidates.sets), -np.inf)  # what each gained when it was last tried
        self._looked_up = 0  # rows times candidates
        self._contrasts: dict[int, Contrasts] = {}
        self._holder = np.full(len(candidates.sets), -1, np.intp)  # the kept batch that has its table, or -1
        self._entries = self._made = 0
        candidates.cover(growing.covered)

    def cover(self, sets: Iterable[Region]) -> None:
        """Record that the model now covers these sets."""
        self._holder[self.candidates.cover(sets)] = -1
        for key in set(self._kept) - set(self._holder.tolist()):
            self._entries -= self._kept.pop(key).tables.size
            if key in self._contrasts:
                self._entries -= self._contrasts.pop(key).size

    def highest(self, wanted: Index, added: Array, within: float, proceed: Proceed) -> Array | None:
        """Return the gains of these candidates, or None if `proceed` returns False.

        A gain is minus infinity for candidates whose gain + added is lower by more than `within` than the
        highest.
        """
        bounding = self._bounding() if len(wanted) > FIRST else None
        if bounding is None:
            return self.gains(wanted, proceed)
        last = self._last[wanted] + added
        bounds = self._upper_bounds(bounding)[wanted] + added
        found = np.full(len(wanted), -np.inf)
        waiting = np.ones(len(wanted), bool)
        trying = (bounds == np.inf) | (last >= np.partition(last, -FIRST)[-FIRST])
        while trying.any():
            gains = self.gains(wanted[trying], proceed)
            if gains is None:
                return None
            found[trying] = gains
            waiting &= ~trying
            trying = waiting & (bounds >= (found + added).max() - within)
        return found

    def _bounding(self) -> UpperBounds | None:
        """Return bounds, where they pay and enough was looked up without them."""
        if not self._looked_up:
            self._bounds = upper_bounds(self._data, self.candidates.sets)
        enough = self._bounds is not None and self._looked_up >= BEFOREHAND * self._bounds.n_row_sets
        return self._bounds if enough else None

    def _upper_bounds(self, of: UpperBounds) -> Array:
        """Return what every candidate gains at most; infinite where its table is not kept."""
        bounds = np.full(len(self._holder), np.inf)
        assert self._model.scores is not None
        moments = of.moments(self._model.scores)
        for key, batch in self._kept.items():
            if key not in self._contrasts:
                self._contrasts[key] = of.contrasts(batch)
                self._entries += self._contrasts[key].size
            which = batch.group.which
            held = self._holder[which] == key
            bounds[which[held]] = self._contrasts[key].bounds(moments)[held]
        return bounds

    def gains(self, wanted: Index, proceed: Proceed) -> Array | None:
        """Return the gains of these candidates; None where `proceed`, told how many of how many are done, says no."""
        found = np.zeros(len(self._holder))
        done = 0
        for batches in self._rounds(wanted):
            if not proceed(done, len(wanted)):
                return None
            logs = self._data.reduce(sum_logs, batches, self._offsets, states=self._model.scores)
            which = np.concatenate([batch.group.which[batch.slots] for batch in batches])
            found[which] = np.concatenate([batch.sums[batch.slots] for batch in batches]) - logs
            done += len(which)
        self._looked_up += len(wanted) * self._data.n_rows
        self._last[wanted] = found[wanted]
        return found[wanted]

    def _rounds(self, wanted: Index) -> Iterator[list[Batch]]:
        """Yield the candidates in batches: those with known tables first, then those whose tables must be counted."""
        row = self._data.n_rows * self._data.n_labels
        unknown = wanted[self._holder[wanted] < 0]
        yield from _cut(self._known(wanted), lambda batch: len(batch.slots) * row, LOOKUPS)
        for groups in _cut(self._grouped(unknown), lambda group: group.n_cells * self._data.n_labels, ROUND):
            counted = self._data.reduce(count, groups, self._offsets, self._data.n_labels)
            batches = [self._tabulate(group, table) for group, table in zip(groups, counted, strict=True)]
            del counted
            yield from _cut(batches, lambda batch: len(batch.slots) * row, LOOKUPS)

    def _known(self, wanted: Index) -> Iterator[Batch]:
        """Yield the wanted candidates whose tables are kept."""
        asked = np.zeros(len(self._holder), bool)
        asked[wanted] = True
        for key, batch in self._kept.items():
            which = batch.group.which
            scored = asked[which] & (self._holder[which] == key)
            if scored.all():
                yield batch
            elif scored.any():
                yield replace(batch, slots=np.flatnonzero(scored))

    def _grouped(self, wanted: Index) -> Iterator[CandidateGroup]:
        """Yield these candidates, ascending, grouped by all attributes except the last; groups have a size limit."""
        sets = self.candidates.sets[wanted]
        cardinalities = np.array(self._data.schema.cardinalities, np.intp)
        radices = cardinalities[sets]
        cells = radices.prod(axis=1) * self._data.n_labels
        breaks = np.flatnonzero((sets[1:, :-1] != sets[:-1, :-1]).any(axis=1)) + 1
        for start, end in itertools.pairwise((0, *breaks.tolist(), len(wanted)) if len(wanted) else ()):
            total = np.cumsum(cells[start:end])
            cuts = np.flatnonzero(np.diff(total // GROUP)) + 1
            for first, last in itertools.pairwise((start, *(start + cuts).tolist(), end)):
                shared = tuple(sets[first, :-1].tolist())
                shape = tuple(radices[first, :-1].tolist())
                here = slice(first, last)
                yield CandidateGroup(shared, sets[here, -1], wanted[here], shape, radices[here, -1])

    def _tabulate(self, group: CandidateGroup, counted: NDArray[np.generic]) -> Batch:
        """Return the tables of a group, kept where the budget allows."""
        changes = self.candidates.changes(group.which)
        batch = tabulate(group, counted, changes, self._data.total_weight, self._model.theta)
        if self._entries + batch.tables.size <= KEPT:
            self._entries += batch.tables.size
            self._kept[self._made] = batch
            self._holder[group.which] = self._made
            self._made += 1
        return batch


def all_sets(attributes: Sequence[int], size: int) -> Index:
    """Return every set of `size` attributes, in lexicographic order."""
    flat = itertools.chain.from_iterable(itertools.combinations(attributes, size))
    return np.fromiter(flat, np.intp, math.comb(len(attributes), size) * size).reshape(-1, size)


def strongest_sets(ranked: Sequence[int], size: int, most: int) -> Index:
    """At most `most` sets of `size` attributes, in lexicographic order; ranked: the attributes, the strongest first.

    Sets whose weakest attribute is strongest are taken first, of equals those whose second weakest is, and so on. None
    where fewer attributes than that are ranked.
    """
    if len(ranked) < size:
        return np.empty((0, size), np.intp)
    n = size
    while n < len(ranked) and math.comb(n, size) < most:
        n += 1
    places = all_sets(range(n), size)
    places = places[np.lexsort(places.T)][:most]
    sets = np.sort(np.array(ranked, np.intp)[places], axis=1)
    return sets[np.lexsort(sets.T[::-1])]


def _signs(size: int) -> Array:
    """Return (-1)^|Q - R| of all subsets Q (rows) and R in Q (columns), elsewhere 0."""
    one = np.array([[1.0, 0.0], [-1.0, 1.0]])
    signs = np.ones((1, 1))
    for _ in range(size):
        signs = np.kron(one, signs)
    return signs


def _cut(items: Iterable[T], cost_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """List of consecutive items that cost no more than the limit together, or have one item."""
    taken: list[T] = []
    cost = 0
    for item in items:
        if taken and cost + cost_of(item) > limit:
            yield taken
            taken, cost = [], 0
        taken.append(item)
        cost += cost_of(item)
    if taken:
        yield taken
