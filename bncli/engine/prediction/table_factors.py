"""The look-ups of one model's tables, or of several models' at once: a table a factor, or many small ones packed.

A family that several models have is looked up once, in a table with the score rows of all of them. Small tables that
are many (`packed_tables`) see an attribute as cut, and each has its grouping in its own look-ups; the others share the
coarse codes of a regrouped attribute, which are found once a block of rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables
from bncli.engine.prediction.factors import Averages, Factor, WideFactor, expand
from bncli.engine.prediction.packed_tables import PackedTables, SmallTable, is_small
from bncli.engine.prediction.softmax import score_rows
from bncli.engine.structures.binning import frequencies_of
from bncli.engine.structures.regrouping import regrouped_attributes
from bncli.engine.structures.structure import BinnedAttribute, Family

EXPANDED_ENTRIES = 1 << 20
"""A table is expanded when the result holds at most so many entries, or at most twice as many as before."""
MANY_TABLES = 32
"""So many small tables of a model are looked up together."""


@dataclass(frozen=True)
class SharedFactor:
    """Tables that only some of several models have: the score rows of `factor` are `rows` of all rows."""

    rows: tuple[int, ...]
    factor: Factor | WideFactor | PackedTables

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """scores (rows of all models, rows) += the entries of every row; its cell is found once."""
        self.factor.add_to([scores[row] for row in self.rows], codes)


TableFactor = Factor | WideFactor | PackedTables | SharedFactor
Regrouped = tuple[tuple[int, Index], ...]
"""(Position of an attribute, coarse code of every code, "unobserved" the last): positions count on from `used`."""


def table_factors(
    models: Sequence[Tables], schema: Schema, used: Sequence[int]
) -> tuple[tuple[TableFactor, ...], Regrouped]:
    """The factors, over the attributes `used` and then these regrouped ones, with the score rows of all models."""
    alone, together = _many_apart(_owned_tables(models))
    regrouped = regrouped_attributes(owned.family for owned in alone)
    places = {axis: place for place, axis in enumerate([*((a, None) for a in used), *regrouped])}
    n_rows = len(score_rows(models[0].bias[None, :]))
    factors = [
        *((owned.owners, _factor(owned, schema, places)) for owned in alone),
        *(
            (owners, PackedTables.of([_small(one, schema, places) for one in some]))
            for owners, some in together.items()
        ),
    ]
    shared = (factor if len(models) == 1 else _shared(factor, owners, n_rows) for owners, factor in factors)
    coarse = ((places[a, None], np.array((*grouping, max(grouping) + 1), np.intp)) for a, grouping in regrouped)
    return tuple(shared), tuple(coarse)


def _shared(factor: Factor | WideFactor | PackedTables, owners: Sequence[int], n_rows: int) -> SharedFactor:
    """The factor at the score rows of the models that have it, `n_rows` each."""
    return SharedFactor(tuple(row for m in owners for row in range(m * n_rows, (m + 1) * n_rows)), factor)


class _OwnedTable(NamedTuple):
    """A family, the models that have it, ascending, and what their tables say of it, (R of all of them, cells)."""

    family: Family
    owners: tuple[int, ...]
    entries: Array

    @classmethod
    def of(cls, family: Family, tables: Sequence[tuple[int, Array]]) -> _OwnedTable:
        return cls(family, tuple(m for m, _ in tables), np.concatenate([score_rows(weights) for _, weights in tables]))


def _owned_tables(models: Sequence[Tables]) -> list[_OwnedTable]:
    """Every family that has the class in its table, once for all models that have it."""
    having: dict[tuple[Family, int], list[tuple[int, Array]]] = {}
    for m, tables in enumerate(models):
        met: Counter[Family] = Counter()  # a model may have two tables over the same attributes
        for family, weights in zip(tables.families, tables.weights, strict=True):
            if family.by_class:
                having.setdefault((family, met[family]), []).append((m, weights))
                met[family] += 1
    return [_OwnedTable.of(family, owned) for (family, _), owned in having.items()]


def _many_apart(owned: Sequence[_OwnedTable]) -> tuple[list[_OwnedTable], dict[tuple[int, ...], list[_OwnedTable]]]:
    """Tables to look up one by one, and, by their owners, small ones that are many."""
    small: dict[tuple[int, ...], list[_OwnedTable]] = {}
    for one in owned:
        if is_small(one.family.shape):
            small.setdefault(one.owners, []).append(one)
    many = {owners: some for owners, some in small.items() if len(some) >= MANY_TABLES}
    return [one for one in owned if one.owners not in many or not is_small(one.family.shape)], many


def _small(owned: _OwnedTable, schema: Schema, places: Mapping[BinnedAttribute, int]) -> SmallTable:
    """A table to be packed, over attributes as they were cut."""
    family = owned.family
    seen = zip(family.binned_attributes, family.shape, strict=True)
    digits = tuple(np.array((*(grouping or range(n)), n), np.intp) for (_, grouping), n in seen)
    positions = tuple(places[a, None] for a in family.attributes)
    return SmallTable(positions, digits, family.shape, owned.entries, partial(_averages, family, schema))


def _factor(owned: _OwnedTable, schema: Schema, places: Mapping[BinnedAttribute, int]) -> Factor | WideFactor:
    """A table of its own, over regrouped attributes."""
    family, tables = owned.family, owned.entries
    positions = tuple(places[axis] for axis in family.binned_attributes)
    averages = _averages(family, schema)
    shape = tuple(n + 1 for n in family.shape)
    # expanding multiplies wide tables; those average over unknowns while they score
    if len(tables) * math.prod(shape) > max(EXPANDED_ENTRIES, 2 * tables.size):
        return WideFactor(positions, family.shape, tables, averages)
    tensor = expand(tables.reshape(-1, *family.shape), averages)
    return Factor(positions, shape, tensor.reshape(len(tables), -1))


def _averages(family: Family, schema: Schema) -> Averages:
    """What is averaged with where an attribute is unobserved; nothing for the family's own attribute."""
    return tuple(
        None if axis == 0 and family.child is not None else frequencies_of(schema.attributes[a], grouping)
        for axis, (a, grouping) in enumerate(family.binned_attributes)
    )
