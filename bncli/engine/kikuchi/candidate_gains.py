"""Candidate gains: what every candidate would add to the log-likelihood of the model as it is.

Tables of candidates stay as they are until the model covers a subset of theirs, so they are kept, up to a budget, and
a step costs one look-up a row and candidate (`bncli.engine.kikuchi.batches`), or, where upper bounds are cheap, one for
each candidate that may be the best (`bncli.engine.kikuchi.upper_bounds`). Candidates whose tables are not kept are
counted again. Work is done in rounds of bounded memory and time; between rounds the caller may stop it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kikuchi.batches import Batch, Group, count, sum_logs, tabulate
from bncli.engine.kikuchi.candidates import Candidates
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.kikuchi.upper_bounds import Contrasts, UpperBounds, upper_bounds
from bncli.engine.structures.region_graph import Region

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
        candidates.cover(growing.coverage)

    def cover(self, sets: Iterable[Region]) -> None:
        """The model now covers these sets."""
        self._holder[self.candidates.cover(sets)] = -1
        for key in set(self._kept) - set(self._holder.tolist()):
            self._entries -= self._kept.pop(key).tables.size
            if key in self._contrasts:
                self._entries -= self._contrasts.pop(key).size

    def highest(self, wanted: Index, added: Array, within: float, proceed: Proceed) -> Array | None:
        """The gains of these candidates, minus infinity for some whose gain + added is lower by more than `within` than
        the highest; None where `proceed` says no."""
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
        """Bounds, where they pay and enough was looked up without them."""
        if not self._looked_up:
            self._bounds = upper_bounds(self._data, self.candidates.sets)
        enough = self._bounds is not None and self._looked_up >= BEFOREHAND * self._bounds.n_row_sets
        return self._bounds if enough else None

    def _upper_bounds(self, of: UpperBounds) -> Array:
        """What every candidate gains at most; infinite where its table is not kept."""
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
        """The gains of these candidates; None where `proceed`, told how many of how many are done, says no."""
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
        """The candidates in batches: first those whose tables are known, then the others, whose tables are made."""
        row = self._data.n_rows * self._data.n_labels
        unknown = wanted[self._holder[wanted] < 0]
        yield from _cut(self._known(wanted), lambda batch: len(batch.slots) * row, LOOKUPS)
        for groups in _cut(self._grouped(unknown), lambda group: group.n_cells * self._data.n_labels, ROUND):
            counted = self._data.reduce(count, groups, self._offsets, self._data.n_labels)
            batches = [self._tabulate(group, table) for group, table in zip(groups, counted, strict=True)]
            del counted
            yield from _cut(batches, lambda batch: len(batch.slots) * row, LOOKUPS)

    def _known(self, wanted: Index) -> Iterator[Batch]:
        """The wanted candidates whose tables are kept."""
        asked = np.zeros(len(self._holder), bool)
        asked[wanted] = True
        for key, batch in self._kept.items():
            which = batch.group.which
            scored = asked[which] & (self._holder[which] == key)
            if scored.all():
                yield batch
            elif scored.any():
                yield replace(batch, slots=np.flatnonzero(scored))

    def _grouped(self, wanted: Index) -> Iterator[Group]:
        """These candidates, ascending, grouped by all attributes but the last, under the limit of a group."""
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
                yield Group(shared, sets[here, -1], wanted[here], shape, radices[here, -1])

    def _tabulate(self, group: Group, counted: NDArray[np.generic]) -> Batch:
        """The tables of a group, kept where the budget allows."""
        changes = self.candidates.changes(group.which)
        batch = tabulate(group, counted, changes, self._data.total_weight, self._model.theta)
        if self._entries + batch.tables.size <= KEPT:
            self._entries += batch.tables.size
            self._kept[self._made] = batch
            self._holder[group.which] = self._made
            self._made += 1
        return batch


def _cut(items: Iterable[T], cost_of: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Lists of consecutive items that cost no more than the limit together, or have one item."""
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
