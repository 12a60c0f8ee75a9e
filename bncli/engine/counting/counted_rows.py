"""Contingency tables of rows that are counted in parts, and their exact sums, which do not depend on the parts' order.

All parts are encoded with the same cuts. When they are merged, all get the same labels. An attribute gets a code for
missing values, as its last code, if it has one in any part. Attributes with a single code are left out of every table,
since they do not change it.

Counts are int64 and sum to at most 2^53, so that float64 represents them exactly when a model is learned. Sums with a
`decay` F, in time order,

    n = F (F (n_1) + n_2) + n_3 ...

are float64 and depend on that order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts, Set, StoredTables, stored_tables
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Cuts, MissingPolicy, ReadingRules, Schema
from bncli.errors import BncliError

LARGEST_COUNT = 2**53
"""Float64 represents every integer up to this one."""
Numbers = NDArray[Any]
RequestedSets = tuple[Set, ...] | None
"""The sets of attributes that are counted with the class; None means all pairs."""


@dataclass(frozen=True)
class CountsLayout:
    """The positions of the tables in one flat array: the class, each attribute, then the requested sets by size.

    radices: the number of codes of each attribute; attributes with one code are left out of all sets.
    """

    radices: tuple[int, ...]
    n_labels: int
    requested: RequestedSets

    @cached_property
    def sets(self) -> tuple[Set, ...]:
        """Every set that has a table, in the order of the tables."""
        several = [i for i, radix in enumerate(self.radices) if radix > 1]
        single = ((), *((i,) for i in several))
        if self.requested is None:
            return (*single, *itertools.combinations(several, 2))
        reduced = {self.reduced(s) for s in self.requested}.difference(single)
        return (*single, *sorted(reduced, key=lambda s: (len(s), s)))

    def reduced(self, s: Set) -> Set:
        """Return the set without the attributes that have one code; its table has the same counts."""
        return tuple(i for i in s if self.radices[i] > 1)

    def shape(self, s: Set) -> tuple[int, ...]:
        return (*(self.radices[i] for i in s), self.n_labels)

    @cached_property
    def starts(self) -> dict[Set, int]:
        """The position of each table in the array."""
        sizes = [math.prod(self.shape(s)) for s in self.sets]
        return dict(zip(self.sets, itertools.accumulate(sizes, initial=0), strict=False))

    @cached_property
    def n_entries(self) -> int:
        if self.requested is None:  # the pairs are not listed, because a damaged file may claim any number of them
            several = [radix for radix in self.radices if radix > 1]
            # the class, the attributes, and the pairs: sum over i < j of r_i r_j = ((sum of r)^2 - sum of r^2) / 2
            return self.n_labels * (1 + sum(several) + (sum(several) ** 2 - sum(r * r for r in several)) // 2)
        return sum(math.prod(self.shape(s)) for s in self.sets)

    def table(self, numbers: Numbers, s: Set) -> Numbers:
        """Return the table of one of the `sets` as a view of the flat array `numbers`."""
        shape, first = self.shape(s), self.starts[s]
        return numbers[first : first + math.prod(shape)].reshape(shape)


@dataclass(frozen=True)
class CountsPart:
    """One table whose rows were counted: its fingerprint, its number of rows, and the weight of each row."""

    fingerprint: str
    n_rows: int
    weight: float = 1.0


@dataclass(frozen=True)
class CountedRows:
    """The contingency tables of rows encoded with `cuts`; an attribute has `missing` set if missing values have a code.

    - requested: the sets of attributes that were counted, or None for all pairs
    - n_missing: the number of rows in which each attribute is missing
    - numbers: the counts of all tables in one flat array, placed by `layout`
    - missing_tokens: as in `Schema`
    - parts: the tables whose rows were counted
    """

    cuts: Cuts
    labels: tuple[str, ...]
    requested: RequestedSets
    n_rows: int
    n_missing: tuple[int, ...]
    numbers: Numbers
    missing_tokens: tuple[str, ...] | None = None
    parts: tuple[CountsPart, ...] = ()

    @cached_property
    def layout(self) -> CountsLayout:
        return CountsLayout(tuple(a.cardinality for a in self.cuts.attributes), len(self.labels), self.requested)

    @property
    def is_decayed(self) -> bool:
        """Whether earlier parts were multiplied by a decay, so that the counts are float64 and need not be integers."""
        return self.numbers.dtype.kind == "f"

    @property
    def class_counts(self) -> Numbers:
        """The weight of the rows of each class, shape (K,)."""
        return self.layout.table(self.numbers, ())

    def stored(self, policy: MissingPolicy, reading: ReadingRules) -> StoredTables:
        """Return the tables in the form that learners use; raise BncliError if there are no rows."""
        if self.n_rows == 0:
            what = "these counts come from tables without rows"
            raise BncliError(what, hint="count a table with rows, and merge its counts")
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
        with_one_code = {(i,): tables[()][np.newaxis] for i, radix in enumerate(self.layout.radices) if radix == 1}
        return stored_tables(bare, self.n_rows, self.n_missing, tables | with_one_code, policy)


def empty_counts(cuts: Cuts, requested: RequestedSets) -> CountedRows:
    layout = CountsLayout(tuple(a.cardinality for a in cuts.attributes), 0, requested)
    return CountedRows(cuts, (), requested, 0, (0,) * len(cuts.attributes), np.zeros(layout.n_entries, np.int64))


def count_rows(data: Dataset, cuts: Cuts, requested: RequestedSets) -> CountedRows:
    """Count encoded rows, whose weights are integers; the code of a missing value is the last one."""
    n_missing = tuple(
        int(np.count_nonzero(codes == a.n_values)) for codes, a in zip(data.codes, cuts.attributes, strict=True)
    )
    pairs = zip(cuts.attributes, n_missing, strict=True)
    attributes = tuple(replace(a, missing=a.missing or n > 0) for a, n in pairs)
    data = replace(data, schema=replace(data.schema, attributes=attributes))
    layout = CountsLayout(data.schema.cardinalities, data.n_labels, requested)
    numbers = np.zeros(layout.n_entries, np.int64)
    counts, sets = Counts(data), layout.sets
    if requested is None:
        several = [s[0] for s in sets if len(s) == 1]
        # all pairs are counted together; batches may list a pair in either order
        for batch in counts.pair_batches(several):
            for i, j, table in zip(batch.i.tolist(), batch.j.tolist(), batch.counts, strict=True):
                pair, ordered = ((i, j), table) if i < j else ((j, i), table.swapaxes(0, 1))
                layout.table(numbers, pair)[...] = ordered
        sets = ((), *((i,) for i in several))
    for s, table in zip(sets, counts.tables(sets), strict=True):
        layout.table(numbers, s)[...] = table
    return CountedRows(
        replace(cuts, attributes=attributes), data.schema.labels, requested, data.n_rows, n_missing, numbers
    )


def relabel(counted: CountedRows, labels: tuple[str, ...]) -> CountedRows:
    """Return the counts for these labels, in this order; new labels get zero counts, labels not listed are dropped."""
    return replace(counted, labels=labels, numbers=_rearrange(counted, counted.layout.radices, labels))


def _rearrange(counted: CountedRows, radices: tuple[int, ...], labels: tuple[str, ...]) -> Numbers:
    """Return the counts in the layout for the given labels, and for radices no smaller than those of `counted`."""
    own = counted.layout
    if own.radices == radices and counted.labels == labels:
        return counted.numbers
    layout = CountsLayout(radices, len(labels), counted.requested)
    numbers = np.zeros(layout.n_entries, counted.numbers.dtype)
    # labels that both layouts have, by their positions in each
    shared = [k for k, label in enumerate(counted.labels) if label in labels]
    place = [labels.index(counted.labels[k]) for k in shared]
    for s in layout.sets:
        shape = tuple(own.radices[i] for i in s)
        # attributes with one code in the own layout are not axes of its table: reshape gives them length 1
        table = own.table(counted.numbers, own.reduced(s)).reshape(*shape, own.n_labels)
        # codes that only the new layout has, those for missing values, come last and stay 0
        layout.table(numbers, s)[tuple(map(slice, shape))][..., place] = table[..., shared]
    return numbers


def merge_counts(counted: Sequence[CountedRows], labels: tuple[str, ...], decay: float | None = None) -> CountedRows:
    """Return the sum of counts made with the same cuts, for the given labels.

    `decay` is the factor in (0, 1) by which the sum so far is multiplied before the next counts are added. If it is
    None, all have the same weight, and the order of `counted` has no effect, except for rounding if one of them is
    decayed. Raises BncliError if the sum without decay exceeds LARGEST_COUNT.
    """
    first = counted[0]
    missing = [any(flags) for flags in zip(*([a.missing for a in c.cuts.attributes] for c in counted), strict=True)]
    attributes = tuple(replace(a, missing=m) for a, m in zip(first.cuts.attributes, missing, strict=True))
    radices = tuple(a.cardinality for a in attributes)
    if sum(float(c.class_counts.sum()) for c in counted) > LARGEST_COUNT:
        raise BncliError(f"the sum of the counts exceeds {LARGEST_COUNT:,}, above which counts are not exact")
    total = _rearrange(first, radices, labels)
    for c in counted[1:]:
        numbers = _rearrange(c, radices, labels)
        total = total + numbers if decay is None else decay * total + numbers
    parts = []
    # the last counts have had no decay, those before them one factor each
    for age, c in enumerate(reversed(counted)):
        factor = 1.0 if decay is None else decay**age
        parts += [replace(part, weight=part.weight * factor) for part in c.parts]
    return CountedRows(
        replace(first.cuts, attributes=attributes),
        labels,
        first.requested,
        sum(c.n_rows for c in counted),
        tuple(map(sum, zip(*(c.n_missing for c in counted), strict=True))),
        total,
        first.missing_tokens,
        # sorted, so that the order of `counted` does not matter
        tuple(sorted(parts, key=lambda part: (part.fingerprint, part.n_rows, part.weight))),
    )
