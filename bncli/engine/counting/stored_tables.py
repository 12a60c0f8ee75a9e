"""Contingency tables that stand for rows which are not there: what a file of counts holds.

Learners in closed form ask for nothing else: the schema, the number of rows, and the tables over the sets of attributes
that their structure needs. A table that is not held is a margin of one that is, or it is not to be had.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bncli.engine.counting.table_batches import ROUND, PairBatch
from bncli.engine.data.schema import Attribute, MissingPolicy, Schema
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

Set = tuple[int, ...]


@dataclass(frozen=True)
class StoredTables:
    """tables[s] (codes of each attribute of s..., K), float64: s ascending; the class alone is the set ().

    n_rows counts the rows. n_missing: in how many each attribute is unobserved, 0 where that counts as a value.
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
        """Codes of each attribute that occur: as those of a `Dataset`."""
        return tuple(r + (n > 0) for r, n in zip(self.schema.cardinalities, self.n_missing, strict=True))

    def pair_batches(self, attributes: Sequence[int]) -> Iterator[PairBatch]:
        """Every pair of `attributes` once, those of one shape together; BncliError for one that is not held."""
        alike: dict[tuple[int, int], list[Set]] = {}
        for i, j in itertools.combinations(sorted(attributes), 2):
            if (i, j) not in self.tables:
                raise self.unknown((i, j))
            alike.setdefault((self.radices[i], self.radices[j]), []).append((i, j))
        for (a, b), pairs in alike.items():
            at_once = max(1, ROUND // (a * b * self.n_labels))
            for first in range(0, len(pairs), at_once):
                some = pairs[first : first + at_once]
                i, j = np.array(some, np.intp).T
                yield PairBatch(i, j, np.stack([self.tables[pair] for pair in some]))

    def unknown(self, members: Set) -> BncliError:
        """The error for a table that is not held."""
        names = ", ".join(repr(self.schema.attributes[i].name) for i in members)
        what = f"the counts hold no table over {names} and the class"
        return BncliError(what, hint="count the rows with --structure FILE, the structure that is to be learnt")


def stored_tables(
    bare: Schema, n_rows: int, n_missing: Sequence[int], tables: Mapping[Set, Array], missing_policy: MissingPolicy
) -> StoredTables:
    """The tables under the policy, with the frequencies that they tell.

    `bare`: its attributes have a missing level where the tables have a code for it, the last; no frequencies are known.
    n_missing: rows in which each attribute is missing. The table of every attribute and that of the class are there.
    """
    marginalized = missing_policy == "marginalize"
    attributes = []
    for i, (attribute, n) in enumerate(zip(bare.attributes, n_missing, strict=True)):
        attributes.append(_counted(attribute, tables[(i,)].sum(axis=-1), marginalized=marginalized, any_missing=n > 0))
    schema = replace(bare, attributes=tuple(attributes), missing_policy=missing_policy)
    unobserved = tuple(n if marginalized and a.informative else 0 for n, a in zip(n_missing, attributes, strict=True))
    bared = StoredTables(schema, n_rows, unobserved, {})
    kept = {s: t for s, t in tables.items() if all(attributes[i].informative for i in s)}
    # a code for missing values that never came is left off where they are marginalized
    return replace(
        bared, tables={s: _cut(t, (*(bared.radices[i] for i in s), bared.n_labels)) for s, t in kept.items()}
    )


def _counted(attribute: Attribute, weights: Array, *, marginalized: bool, any_missing: bool) -> Attribute:
    """The attribute with its frequencies; of one that has no missing level, what is missing apart."""
    frequencies = tuple(weights.tolist())
    if not marginalized:
        return replace(attribute, frequencies=frequencies)
    seen = frequencies[: attribute.n_values]
    lost = math.fsum(frequencies[attribute.n_values :]) if any_missing else 0.0
    return replace(attribute, missing=False, frequencies=seen, missing_weight=lost)


def _cut(table: Array, shape: tuple[int, ...]) -> Array:
    return table if table.shape == shape else np.ascontiguousarray(table[tuple(map(slice, shape))])
