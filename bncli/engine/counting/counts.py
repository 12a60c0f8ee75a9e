"""Contingency tables of attribute sets with the class, counted in batches, cached, and shared by all learners of a fit.

The margins of a known table need no further pass over the rows. The tables of all pairs of attributes, which tree
learners need, are counted together (`bncli.engine.counting.table_batches`). Counts are exact integers, or sums of row
weights.

A table counts the rows in which all its attributes are observed (available cases). Internally an attribute with missing
values has one more value, "unobserved", so that the margins of a table count all rows; tables are returned without it.

Tables that were counted before may take the place of the rows (`StoredTables`). Their margins are known too; requesting
any other table, or the rows, raises BncliError.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.table_batches import BLOCK, MAX_ENTRIES, ROUND, PairBatch, pair_batches
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import MissingPolicy, Schema
from bncli.engine.kernels.arrays import Array, Index, add_counts, cell_numbers
from bncli.errors import BncliError
from bncli.watch import Note, Progress, Watch, silent

Set = tuple[int, ...]
PAIR_ENTRIES_KEPT = 1 << 24
"""The maximum number of entries of pair tables that are kept from one call of `Counts.pair_batches` (128 MiB)."""


class Prior(Protocol):
    """Prior knowledge of the parameters, as expected counts (`bncli.engine.networks.prior_network`)."""

    def expected(self, members: Sequence[int]) -> Array:
        """Return the expected counts that are added to the table of a set of attributes, (cardinalities..., K)."""

    def added_to(self, data: Dataset) -> Dataset:
        """Return the data with weighted rows added that represent the prior."""


@dataclass(frozen=True)
class Counts:
    """The contingency tables of one data set, counted when they are requested, and kept.

    `tables` counts the requested tables that are not known yet in a single pass. A `prior` is added to the results of
    `tables` and `fitted_rows`, but not of `pair_batches`.
    """

    source: Dataset | StoredTables
    prior: Prior | None = None
    _known: dict[Set, Array] = field(default_factory=dict)  # the attributes of each set ascend
    _with: dict[int, list[tuple[int, Set]]] = field(default_factory=dict)  # known sets that contain an attribute
    _pairs: list[_KeptPairs] = field(default_factory=list)

    def __post_init__(self) -> None:
        if isinstance(self.source, StoredTables):
            for s, table in self.source.tables.items():
                self._keep(s, table)

    @property
    def data(self) -> Dataset:
        """The rows; raises BncliError if only their tables are known."""
        if isinstance(self.source, StoredTables):
            raise BncliError(
                "this method needs the rows, which counts do not contain", hint="learn from the table itself"
            )
        return self.source

    @cached_property
    def fitted_rows(self) -> Dataset:
        """The rows that an optimizer fits: the data and, if there is a prior, the weighted rows that represent it."""
        return self.data if self.prior is None else self.prior.added_to(self.data)

    def with_prior(self, prior: Prior | None) -> Counts:
        """Return these counts with another prior; both share the counted tables."""
        return self if prior is self.prior else replace(self, prior=prior)

    @property
    def has_rows(self) -> bool:
        """Whether the rows are known, and not only their tables."""
        return not isinstance(self.source, StoredTables)

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def any_missing(self) -> bool:
        """Whether any row has a missing value that is marginalized."""
        return any(self.source.n_missing)

    def with_missing_levels(self, method: str, watch: Watch) -> Counts:
        """Return the counts of the same rows with missing values as one more level, or self if nothing is missing.

        A score is a sum over rows. If it were a sum over the rows in which a whole family is observed, a search would
        compare sums over fewer and fewer rows as parents are added, and favour attributes with missing values. The
        network that the search finds is still learned and used with missing values marginalized.

        If anything is missing, the returned counts have no prior. Raises BncliError if the rows are not known.
        """
        data = self.data
        if not any(data.n_missing):
            return self
        watch(Note(f"{method} treats a missing value as one more value when it compares networks"))
        attributes = tuple(
            replace(a, missing=n > 0) for a, n in zip(data.schema.attributes, data.n_missing, strict=True)
        )
        schema = replace(data.schema, attributes=attributes, missing_policy="level")
        return Counts(replace(data, schema=schema))

    def tables(self, sets: Iterable[Set]) -> list[Array]:
        """Return the table of each set of attributes, shape (cardinalities in the set's order..., K), float64.

        Raises BncliError for a table of more than MAX_ENTRIES entries, or one that stored tables do not contain.
        """
        requested = list(sets)
        missing = [s for s in dict.fromkeys(tuple(sorted(s)) for s in requested) if self._derive(s) is None]
        for s in missing:
            self._check_size(s)
        if missing and isinstance(self.source, StoredTables):
            raise self.source.unknown_table_error(missing[0])
        if missing:
            counted = self.data.reduce(_count, [(s, self._shape(s)) for s in missing])
            for s, table in zip(missing, counted, strict=True):
                self._keep(s, table.astype(np.float64).reshape(self._shape(s)))
        tables: list[Array] = []
        for s in requested:
            table = self._derive(s)
            if any(self.source.n_missing[i] for i in s):
                # drop the cells of rows in which an attribute of the set is unobserved
                observed = tuple(slice(self.source.schema.cardinalities[i]) for i in s)
                # "unobserved" is the last code of each axis; the axis of the class has no slice and stays whole
                table = np.ascontiguousarray(table[observed])  # type: ignore[index]
            tables.append(table if self.prior is None else table + self.prior.expected(s))
        return tables

    def of_prior(self, sets: Iterable[Set]) -> Counts:
        """Return the expected counts of the prior for some sets, as `Counts`."""
        assert self.prior is not None
        tables = {s: self.prior.expected(s) for s in (tuple(sorted(s)) for s in sets)}
        return Counts(StoredTables(self.schema, 0, (0,) * len(self.schema.attributes), tables))

    def class_counts(self) -> Array:
        """Return the weight of each class, shape (K,), including the expected counts of a prior."""
        return self.tables([()])[0]

    def pair_batches(self, attributes: Sequence[int], watch: Watch = silent) -> Iterator[PairBatch]:
        """Yield the table n[x_i, x_j, y] of every pair of `attributes` once, in batches of tables of equal shape.

        Raises BncliError if a table would have more than MAX_ENTRIES entries, or if stored tables do not contain it.
        """
        if isinstance(self.source, StoredTables):
            for batch in self.source.pair_batches(attributes):
                yield from self._observed_pairs(batch)
            return
        total, done = math.comb(len(attributes), 2), 0
        # if the table of the two attributes with the largest cardinalities fits, all do
        largest = sorted(attributes, key=lambda i: self.source.radices[i])[-2:]
        self._check_size(tuple(sorted(largest)))
        kept = _KeptPairs(np.full((len(self.data.codes),) * 2, -1, np.intp))
        self._pairs.append(kept)
        for batch in pair_batches(self.data, attributes):
            watch(Progress(done, total, "pairs of attributes"))
            done += len(batch.i)
            kept.add(batch)
            yield from self._observed_pairs(batch)

    def keep_pairs(self, sets: Iterable[Set]) -> None:
        """Free the tables of all pairs that `pair_batches` counted and that are not among `sets`.

        Folds whose structure is known need a few pairs only, and several folds are in memory at a time.
        """
        if not self._pairs:
            return
        wanted = _KeptPairs(np.full_like(self._pairs[0].where, -1))
        for i, j in {tuple(sorted(s)) for s in sets if len(s) == 2}:
            table = next((found for kept in self._pairs if (found := kept.find(i, j)) is not None), None)
            if table is not None:
                wanted.add(PairBatch(np.array([i]), np.array([j]), table[np.newaxis].copy()))
        self._pairs[:] = [wanted]
        for s, table in self._known.items():
            if table.base is not None:  # a view would keep its whole batch in memory
                self._known[s] = table.copy()

    def _observed_pairs(self, batch: PairBatch) -> Iterator[PairBatch]:
        """Yield the batch without "unobserved" values, in parts if pairs have missing values along different axes."""
        incomplete = np.array(self.source.n_missing) > 0
        # bit 1: the first axis has "unobserved", bit 0: the second
        kinds = 2 * incomplete[batch.i] + incomplete[batch.j]
        if not kinds.any():
            yield batch
            return
        a, b = batch.counts.shape[1:3]
        for kind in np.unique(kinds).tolist():
            alike = kinds == kind
            # "unobserved" is the last code of an axis
            tables = batch.counts[alike, : a - (kind >> 1), : b - (kind & 1)]
            yield PairBatch(batch.i[alike], batch.j[alike], np.ascontiguousarray(tables))

    def _keep(self, s: Set, table: Array) -> Array:
        if s not in self._known:
            self._known[s] = table
            for i in s:
                self._with.setdefault(i, []).append((_bits(s), s))
        return table

    def _derive(self, requested: Set) -> Array | None:
        """Return the table if it is known or is a margin of a known table, otherwise None."""
        ascending = tuple(sorted(requested))
        table = self._known.get(ascending)
        if table is None and len(ascending) == 2:
            table = self._kept_pair(ascending)
        elif table is None and len(ascending) == 1 and not isinstance(self.source, StoredTables):
            # A margin of a kept pair, of exact counts only: sums of weights depend on the order of addition.
            (i,) = ascending
            partners = (kept.partner(i) for kept in self._pairs if self.source.weights is None)
            j = next((j for j in partners if j is not None), None)
            if j is not None and self._kept_pair((min(i, j), max(i, j))) is not None:
                table = self._margin(ascending)
        if table is None:
            table = self._margin(ascending)
        if table is None or requested == ascending:
            return table
        # from ascending order to the requested one; the class stays last
        return np.ascontiguousarray(table.transpose(*(ascending.index(i) for i in requested), len(requested)))

    def _kept_pair(self, pair: Set) -> Array | None:
        for kept in self._pairs:
            table = kept.find(*pair)
            if table is not None:
                return self._keep(pair, table)
        return None

    def _margin(self, ascending: Set) -> Array | None:
        """Return the table as a margin of the smallest known set that contains this one, or None if there is none."""
        bits = _bits(ascending)
        candidates = self._with.get(ascending[0], []) if ascending else [(0, s) for s in self._known]
        within = [s for mask, s in candidates if mask & bits == bits]
        if not within:
            return None
        # the fewest attributes, not the fewest cells; min takes the first of equals
        source = min(within, key=len)
        dropped = tuple(axis for axis, i in enumerate(source) if i not in ascending)
        return self._keep(ascending, self._known[source].sum(axis=dropped))

    def _shape(self, s: Set) -> tuple[int, ...]:
        """Return the shape of a table, including the value "unobserved" of attributes with missing values."""
        return (*(self.source.radices[i] for i in s), self.source.n_labels)

    def _check_size(self, s: Set) -> None:
        """Raise BncliError if the table of a set would have more than MAX_ENTRIES entries."""
        entries = math.prod(self._shape(s))
        if entries > MAX_ENTRIES:
            names = ", ".join(repr(self.source.schema.attributes[i].name) for i in s)
            raise BncliError(
                f"a table over {names} and the class would have {entries:,} entries ({entries * 8 / 2**30:.1f} GiB)",
                hint="leave columns with many levels out (--ignore), or use a structure with fewer parents",
            )


def _bits(s: Set) -> int:
    return sum(1 << i for i in s)


def _count(block: RowBlock, sets: list[tuple[Set, tuple[int, ...]]]) -> list[NDArray[np.generic]]:
    """Return the tables of one block, flattened, for every (set, shape)."""
    dtype = np.int64 if block.weights is None else np.float64
    totals: list[NDArray[np.generic]] = [np.zeros(math.prod(shape), dtype) for _, shape in sets]
    for rows in block.slices(BLOCK):
        weights = None if block.weights is None else block.weights[rows]
        for (members, shape), total in zip(sets, totals, strict=True):
            digits = [*(block.codes[i][rows] for i in members), block.labels[rows]]
            add_counts(total, cell_numbers(digits, shape), weights)
    return totals


@dataclass
class _KeptPairs:
    """Batches of pair tables, kept up to PAIR_ENTRIES_KEPT entries; where[i, j] is the position of a pair, or -1."""

    where: Index
    batches: list[Array] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    entries: int = 0

    def add(self, batch: PairBatch) -> None:
        if self.entries + batch.counts.size > PAIR_ENTRIES_KEPT:
            return
        self.entries += batch.counts.size
        first = self.ends[-1] if self.ends else 0
        self.where[batch.i, batch.j] = np.arange(first, first + len(batch.i))
        self.batches.append(batch.counts)
        self.ends.append(first + len(batch.i))

    def partner(self, i: int) -> int | None:
        """Return the first attribute whose pair with `i` is kept, or None."""
        partners = np.flatnonzero((self.where[i] >= 0) | (self.where[:, i] >= 0))
        return int(partners[0]) if len(partners) else None

    def find(self, i: int, j: int) -> Array | None:
        """Return the table n[x_i, x_j, y] of a pair, or None if it was not kept."""
        # a pair is kept in one of its two orders; the other entry is -1
        place = int(max(self.where[i, j], self.where[j, i]))
        if place < 0:
            return None
        batch = bisect_right(self.ends, place)
        table = self.batches[batch][place - (self.ends[batch - 1] if batch else 0)]
        return table if self.where[i, j] == place else np.ascontiguousarray(table.transpose(1, 0, 2))


@dataclass(frozen=True)
class StoredTables:
    """Tables in place of rows, as in a file of counts; closed-form learners need nothing else.

    tables[s] (codes of each attribute of s..., K), float64, is the table of an ascending set s; () is the class alone.
    n_missing is the number of rows in which each attribute is unobserved, 0 if missing values are a level.
    """

    schema: Schema
    n_rows: int
    n_missing: tuple[int, ...]
    tables: Mapping[Set, Array]

    @property
    def n_labels(self) -> int:
        return len(self.schema.labels)

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """The number of codes of each attribute, including "unobserved" if that occurs, as in a `Dataset`."""
        return tuple(r + (n > 0) for r, n in zip(self.schema.cardinalities, self.n_missing, strict=True))

    def pair_batches(self, attributes: Sequence[int]) -> Iterator[PairBatch]:
        """Yield the table of every pair of `attributes` once, in batches of equal shape.

        Raises BncliError if a table is not stored.
        """
        by_shape: dict[tuple[int, int], list[Set]] = {}
        for i, j in itertools.combinations(sorted(attributes), 2):
            if (i, j) not in self.tables:
                raise self.unknown_table_error((i, j))
            by_shape.setdefault((self.radices[i], self.radices[j]), []).append((i, j))
        for (a, b), pairs in by_shape.items():
            at_a_time = max(1, ROUND // (a * b * self.n_labels))
            for first in range(0, len(pairs), at_a_time):
                batch = pairs[first : first + at_a_time]
                i, j = np.array(batch, np.intp).T
                yield PairBatch(i, j, np.stack([self.tables[pair] for pair in batch]))

    def unknown_table_error(self, members: Set) -> BncliError:
        names = ", ".join(repr(self.schema.attributes[i].name) for i in members)
        what = f"the counts have no table over {names} and the class"
        return BncliError(
            what, hint="count the rows with bncli count --structure FILE, giving the structure to be learned"
        )


def stored_tables(
    bare: Schema, n_rows: int, n_missing: Sequence[int], tables: Mapping[Set, Array], missing_policy: MissingPolicy
) -> StoredTables:
    """Adapt tables to a missing policy, and compute the frequencies of the attributes from them.

    `bare` is the schema without frequencies; its attributes have a missing level if the tables have a code for it, the
    last one. `n_missing` has the number of rows in which each attribute is missing. `tables` must include the table of
    every single attribute; the result leaves out the tables of uninformative attributes.
    """
    marginalized = missing_policy == "marginalize"
    attributes = []
    for i, (attribute, n) in enumerate(zip(bare.attributes, n_missing, strict=True)):
        frequencies = tuple(tables[(i,)].sum(axis=-1).tolist())
        if marginalized:
            lost = math.fsum(frequencies[attribute.n_values :]) if n > 0 else 0.0
            frequencies = frequencies[: attribute.n_values]
            attribute = replace(attribute, missing=False, missing_weight=lost)
        attributes.append(replace(attribute, frequencies=frequencies))
    schema = replace(bare, attributes=tuple(attributes), missing_policy=missing_policy)
    unobserved = tuple(n if marginalized and a.informative else 0 for n, a in zip(n_missing, attributes, strict=True))
    stored = StoredTables(schema, n_rows, unobserved, {})
    trimmed = {}
    for s, table in tables.items():
        if all(attributes[i].informative for i in s):
            # if missing values are marginalized, a code for them that never occurred is dropped
            shape = (*(stored.radices[i] for i in s), stored.n_labels)
            trimmed[s] = table if table.shape == shape else np.ascontiguousarray(table[tuple(map(slice, shape))])
    return replace(stored, tables=trimmed)
