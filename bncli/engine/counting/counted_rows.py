"""Contingency tables of rows that are counted part by part, and their sums: exact whatever the parts and their order.

A part is coded by cuts that all parts share. What they cannot know of each other is settled when they are added: an
attribute has a code for missing values (its last) as soon as one part lacks a value of it, and the labels are those of
all parts. A table over attributes that have one code alone is that over the others, so nothing is stored for them.

Counts are whole numbers, int64, of at most 2^53, so that float64 holds them exactly when a model is learnt. Sums with a
`decay` F, in the order of time,

    n = F (F (n_1) + n_2) + n_3 ...

are float64 and depend on that order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts, Set, StoredTables, stored_tables
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Cuts, MissingPolicy, ReadingRules, Schema
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

MOST = 2**53
"""Float64 holds every whole number up to here."""
Numbers = NDArray[Any]
Wanted = tuple[Set, ...] | None
"""The sets of attributes that are counted with the class; None: all pairs."""


@dataclass(frozen=True)
class CountsLayout:
    """The tables one after the other in one array: the class, each attribute, then the wanted sets, by size and order.

    radices: codes of each attribute; those with one code take no part.
    """

    radices: tuple[int, ...]
    n_labels: int
    wanted: Wanted

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        """Every table that is there, once."""
        several = [i for i, radix in enumerate(self.radices) if radix > 1]
        alone = ((), *((i,) for i in several))
        if self.wanted is None:
            return (*alone, *itertools.combinations(several, 2))
        reduced = {self.reduced(s) for s in self.wanted}.difference(alone)
        return (*alone, *sorted(reduced, key=lambda s: (len(s), s)))

    def reduced(self, s: Set) -> Set:
        """Return the set without the attributes that have one code: its table holds the same numbers."""
        return tuple(i for i in s if self.radices[i] > 1)

    def shape(self, s: Set) -> tuple[int, ...]:
        return (*(self.radices[i] for i in s), self.n_labels)

    @cached_property
    def starts(self) -> dict[Set, int]:
        """Where each table begins."""
        sizes = [math.prod(self.shape(s)) for s in self.sets]
        return dict(zip(self.sets, itertools.accumulate(sizes, initial=0), strict=False))

    @cached_property
    def n_entries(self) -> int:
        if self.wanted is None:  # without listing the pairs: a file may ask for any number of them
            several = [radix for radix in self.radices if radix > 1]
            return self.n_labels * (1 + sum(several) + (sum(several) ** 2 - sum(r * r for r in several)) // 2)
        return sum(math.prod(self.shape(s)) for s in self.sets)

    def table(self, numbers: Numbers, s: Set) -> Numbers:
        """Return the table of a set that is there: a view."""
        shape, first = self.shape(s), self.starts[s]
        return numbers[first : first + math.prod(shape)].reshape(shape)


@dataclass(frozen=True)
class CountsPart:
    """Rows that went into the counts: their fingerprint, how many they were, and what each counts for."""

    fingerprint: str
    n_rows: int
    weight: float = 1.0


@dataclass(frozen=True)
class CountedRows:
    """The tables of some rows, coded by `cuts`, whose attributes have `missing` set where there is a code for that.

    numbers: of the layout. n_missing: rows in which each attribute is missing. missing_tokens: of a `Schema`.
    """

    cuts: Cuts
    labels: tuple[str, ...]
    wanted: Wanted
    n_rows: int
    n_missing: tuple[int, ...]
    numbers: Numbers
    missing_tokens: tuple[str, ...] | None = None
    parts: tuple[CountsPart, ...] = ()

    @cached_property
    def layout(self) -> CountsLayout:
        return CountsLayout(tuple(a.cardinality for a in self.cuts.attributes), len(self.labels), self.wanted)

    @property
    def is_decayed(self) -> bool:
        """Whether earlier parts count for less, so that these are no whole numbers."""
        return self.numbers.dtype.kind == "f"

    @property
    def class_counts(self) -> Numbers:
        """The weight of the rows of each class, shape (K,)."""
        return self.layout.table(self.numbers, ())

    def stored(self, policy: MissingPolicy, reading: ReadingRules) -> StoredTables:
        """Return what learners ask for; BncliError where there are no rows."""
        if self.n_rows == 0:
            what = "there are no rows behind these counts"
            raise BncliError(what, hint="count a table that has some, and merge its counts")
        cuts = self.cuts
        bare = Schema(
            cuts.class_name,
            self.labels,
            cuts.attributes,
            reading.missing_tokens,
            reading.unseen,
            label_frequencies=tuple(self.class_counts.astype(np.float64).tolist()),
        )
        tables = {s: self.layout.table(self.numbers, s).astype(np.float64) for s in self.layout.sets}
        alone = {(i,): tables[()][np.newaxis] for i, radix in enumerate(self.layout.radices) if radix == 1}
        return stored_tables(bare, self.n_rows, self.n_missing, tables | alone, policy)


def no_rows(cuts: Cuts, wanted: Wanted) -> CountedRows:
    """Return the counts of nothing."""
    layout = CountsLayout(tuple(a.cardinality for a in cuts.attributes), 0, wanted)
    return CountedRows(cuts, (), wanted, 0, (0,) * len(cuts.attributes), np.zeros(layout.n_entries, np.int64))


def count_rows(data: Dataset, cuts: Cuts, wanted: Wanted) -> CountedRows:
    """Return the counts of coded rows, whose weights are whole numbers.

    The code of a missing value is the last possible.
    """
    n_missing = tuple(
        int(np.count_nonzero(codes == a.n_values)) for codes, a in zip(data.codes, cuts.attributes, strict=True)
    )
    pairs = zip(cuts.attributes, n_missing, strict=True)
    attributes = tuple(replace(a, missing=a.missing or n > 0) for a, n in pairs)
    data = replace(data, schema=replace(data.schema, attributes=attributes))
    layout = CountsLayout(data.schema.cardinalities, data.n_labels, wanted)
    numbers = np.zeros(layout.n_entries, np.int64)
    for s, table in _tables(Counts(data), layout):
        layout.table(numbers, s)[...] = table
    return CountedRows(
        replace(cuts, attributes=attributes), data.schema.labels, wanted, data.n_rows, n_missing, numbers
    )


def _tables(counts: Counts, layout: CountsLayout) -> Iterator[tuple[Set, Array]]:
    sets = layout.sets
    if layout.wanted is None:
        several = [s[0] for s in sets if len(s) == 1]
        sets = ((), *((i,) for i in several))
        for batch in counts.pair_batches(several):
            for i, j, table in zip(batch.i.tolist(), batch.j.tolist(), batch.counts, strict=True):
                yield ((i, j), table) if i < j else ((j, i), table.swapaxes(0, 1))
    yield from zip(sets, counts.tables(sets), strict=True)


def relabelled(one: CountedRows, labels: tuple[str, ...]) -> CountedRows:
    """Return the counts with other labels, in their order: new ones were never seen, what is left out is forgotten."""
    return replace(one, labels=labels, numbers=_spread(one, one.layout.radices, labels))


def _spread(one: CountedRows, radices: tuple[int, ...], labels: tuple[str, ...]) -> Numbers:
    """Return the numbers where these codes (at least its own) and labels have them."""
    own = one.layout
    if own.radices == radices and one.labels == labels:
        return one.numbers
    wide = CountsLayout(radices, len(labels), one.wanted)
    numbers = np.zeros(wide.n_entries, one.numbers.dtype)
    kept = [k for k, label in enumerate(one.labels) if label in labels]
    place = [labels.index(one.labels[k]) for k in kept]
    for s in wide.sets:
        seen = tuple(own.radices[i] for i in s)
        table = own.table(one.numbers, own.reduced(s)).reshape(*seen, own.n_labels)
        wide.table(numbers, s)[tuple(map(slice, seen))][..., place] = table[..., kept]
    return numbers


def added(counted: Sequence[CountedRows], labels: tuple[str, ...], decay: float | None = None) -> CountedRows:
    """Return the sum of counts under the same cuts; `labels` has those of all, in the order to be.

    decay: what everything before counts for at each further one, in (0, 1); None: all count alike, and the order of
    `counted` has no effect, but for rounding where one of them is decayed. BncliError where the numbers grow too large.
    """
    first = counted[0]
    missing = [any(flags) for flags in zip(*([a.missing for a in one.cuts.attributes] for one in counted), strict=True)]
    attributes = tuple(replace(a, missing=m) for a, m in zip(first.cuts.attributes, missing, strict=True))
    radices = tuple(a.cardinality for a in attributes)
    if sum(float(one.class_counts.sum()) for one in counted) > MOST:
        raise BncliError(f"the counts together exceed {MOST:,}, beyond which they would not be exact")
    total = _spread(first, radices, labels)
    for one in counted[1:]:
        numbers = _spread(one, radices, labels)
        total = total + numbers if decay is None else decay * total + numbers
    return CountedRows(
        replace(first.cuts, attributes=attributes),
        labels,
        first.wanted,
        sum(one.n_rows for one in counted),
        tuple(map(sum, zip(*(one.n_missing for one in counted), strict=True))),
        total,
        first.missing_tokens,
        _all_parts(counted, decay),
    )


def _all_parts(counted: Sequence[CountedRows], decay: float | None) -> tuple[CountsPart, ...]:
    """Return those of all, in an order of their own."""
    factors = [1.0 if decay is None else decay**age for age in range(len(counted))][::-1]
    weighed = (replace(p, weight=p.weight * f) for one, f in zip(counted, factors, strict=True) for p in one.parts)
    return tuple(sorted(weighed, key=lambda part: (part.fingerprint, part.n_rows, part.weight)))
