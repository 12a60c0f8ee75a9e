"""The look-ups of one model's tables, or of several models' at once: a table a factor, or many small ones packed.

A family that several models have is looked up once, in a table with the score rows of all of them. Small tables that
are many (`packed_tables`) see an attribute as cut, and each has its grouping in its own look-ups; the others share the
coarse codes of a regrouped attribute, which are found once a block of rows.

Many small tables looked up together: the cell numbers of several of them in one 64-bit word.

A model of a thousand tables over up to six attributes each, every attribute in a binning of its own, would spend its
time on cell numbers. The cell of a row is a sum over the attributes of what each adds to it, so a look-up by the code
of one attribute can add to the cells of many tables at once: a word has lanes of 8 or 16 bits, and

    word[t] = sum over attributes a of look_up_a[code_a(t)],    S[t] += sum over lanes l of E_l[lane l of word[t]]

A lane numbers the joint cells of as many tables as have few of them together, E_l being the sum of their entries.

Conventions: no entry is made for the code "unobserved" where no row has it; rows that lack something are scored by
words of their own, whose tables have it as the last code of every axis (`factors.expand`). So what a row scores does
not depend on the rows beside it. Cost per row and table: 1 or 2 ns and per score row 1 ns; memory: that of the joint
tables, at most MOST_JOINT entries in each, and temporaries of a block of rows whatever the number of tables.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables
from bncli.engine.prediction.factors import Averages, Factor, WideFactor, expand, score_rows
from bncli.engine.structures.regrouping import regrouped_attributes, relative_frequencies
from bncli.engine.structures.structure import BinnedAttribute, Family

MOST_CELLS = 1 << 12
"""A table of more cells, or one that the code "unobserved" would make larger than a lane, is no small one."""
MOST_JOINT = 1 << 12
"""Entries of a joint table, whose look-ups still hit the first or second-level cache."""
BITS = (8, 16)
"""Lanes of a word: eight of up to 256 cells, or four of up to 65,536."""
KEPT_ENTRIES = 1 << 24
"""Entries of expanded tables that are kept; of more, parts are made anew for every block of rows that needs them."""
NUMBERS_PER_SLICE = 1 << 17
"""Numbers gathered at a time from the tables."""
_WINDOW = 128
"""Tables among which the next one of a word is chosen."""
Word = NDArray[np.uint64]


class SmallTable(NamedTuple):
    """entries (R, cells) of R score rows; positions and digits say what an attribute's code adds.

    digits[i] (codes + 1,): the digit of axis i of every code at positions[i], that of "unobserved", shape[i], the last.
    """

    positions: tuple[int, ...]
    digits: tuple[Index, ...]
    shape: tuple[int, ...]
    entries: Array
    averages: Callable[[], Averages]
    """Asked for when a row comes that lacks something."""

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    def expanded(self) -> SmallTable:
        """With the code "unobserved" as one more value of every axis."""
        entries = expand(self.entries.reshape(-1, *self.shape), self.averages())
        return self._replace(shape=entries.shape[1:], entries=entries.reshape(len(entries), -1))


class LookUps(NamedTuple):
    """A word: what the code at a position adds to it, and by lane the table (cells,), or (cells, R) of R score rows."""

    bits: int
    words: tuple[tuple[int, Word], ...]
    tables: tuple[Array, ...]


@dataclass(frozen=True)
class PackedTables:
    """Small tables that are looked up together; unobserved[p] is the code of "unobserved" at position p."""

    tables: tuple[SmallTable, ...]
    unobserved: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, tables: Sequence[SmallTable]) -> PackedTables:
        """Return the packing of these tables, ready for rows that lack nothing."""
        unobserved = {
            p: len(digits) - 1 for table in tables for p, digits in zip(table.positions, table.digits, strict=True)
        }
        packed = cls(tuple(tables), tuple(sorted(unobserved.items())))
        _ = packed.complete
        return packed

    @cached_property
    def complete(self) -> tuple[LookUps, ...]:
        """For rows in which all is observed."""
        return tuple(_packed(self.tables))

    def add_to(self, scores: Array | Sequence[Array], codes: Sequence[Index]) -> None:
        """Add the entries of every row to scores (R, rows); codes[p] (rows,) are the codes at position p."""
        lacking = np.zeros(len(codes[self.unobserved[0][0]]), bool)
        for p, code in self.unobserved:
            lacking |= codes[p] == code
        if not lacking.any():
            _add(self.complete, scores, codes, slice(None))
            return
        _add(self.complete, scores, codes, np.flatnonzero(~lacking))
        for look_ups in self._kept if sum(map(_expanded_size, self.tables)) <= KEPT_ENTRIES else self._parts():
            _add(look_ups, scores, codes, np.flatnonzero(lacking))

    @cached_property
    def _kept(self) -> tuple[tuple[LookUps, ...], ...]:
        """Made when the first row comes that needs them."""
        return tuple(self._parts())

    def _parts(self) -> Iterator[tuple[LookUps, ...]]:
        """Yield expanded tables of at most KEPT_ENTRIES / 8 entries at a time, packed."""
        part, entries = list[SmallTable](), 0
        for table in self.tables:
            size = _expanded_size(table)
            if part and entries + size > KEPT_ENTRIES // 8:
                yield tuple(_packed(part))
                part, entries = [], 0
            part.append(table.expanded())
            entries += size
        yield tuple(_packed(part))


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
        """Add the entries of every row to scores (rows of all models, rows); its cell is found once."""
        self.factor.add_to([scores[row] for row in self.rows], codes)


TableFactor = Factor | WideFactor | PackedTables | SharedFactor
Regrouped = tuple[tuple[int, Index], ...]
"""(Position of an attribute, coarse code of every code, "unobserved" the last): positions count on from `used`."""


class _OwnedTable(NamedTuple):
    """A family, the models that have it, ascending, and what their tables say of it, (R of all of them, cells)."""

    family: Family
    owners: tuple[int, ...]
    entries: Array

    @classmethod
    def of(cls, family: Family, tables: Sequence[tuple[int, Array]]) -> _OwnedTable:
        return cls(family, tuple(m for m, _ in tables), np.concatenate([score_rows(weights) for _, weights in tables]))


def table_factors(
    models: Sequence[Tables], schema: Schema, used: Sequence[int]
) -> tuple[tuple[TableFactor, ...], Regrouped]:
    """Return the factors over the attributes `used` and then these regrouped ones, with score rows of all models."""
    alone, together = _many_apart(_tables_by_family(models))
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
    shared = (
        factor
        if len(models) == 1
        else SharedFactor(tuple(row for m in owners for row in range(m * n_rows, (m + 1) * n_rows)), factor)
        for owners, factor in factors
    )
    coarse = ((places[a, None], np.array((*grouping, max(grouping) + 1), np.intp)) for a, grouping in regrouped)
    return tuple(shared), tuple(coarse)


def _many_apart(owned: Sequence[_OwnedTable]) -> tuple[list[_OwnedTable], dict[tuple[int, ...], list[_OwnedTable]]]:
    """Return tables to look up one by one, and, by their owners, small ones that are many."""
    small: dict[tuple[int, ...], list[_OwnedTable]] = {}
    for one in owned:
        if is_small(one.family.shape):
            small.setdefault(one.owners, []).append(one)
    many = {owners: some for owners, some in small.items() if len(some) >= MANY_TABLES}
    return [one for one in owned if one.owners not in many or not is_small(one.family.shape)], many


def _tables_by_family(models: Sequence[Tables]) -> list[_OwnedTable]:
    """Return every family that has the class in its table, once for all models that have it."""
    having: dict[tuple[Family, int], list[tuple[int, Array]]] = {}
    for m, tables in enumerate(models):
        met: Counter[Family] = Counter()  # a model may have two tables over the same attributes
        for family, weights in zip(tables.families, tables.weights, strict=True):
            if family.by_class:
                having.setdefault((family, met[family]), []).append((m, weights))
                met[family] += 1
    return [_OwnedTable.of(family, owned) for (family, _), owned in having.items()]


def _factor(owned: _OwnedTable, schema: Schema, places: Mapping[BinnedAttribute, int]) -> Factor | WideFactor:
    """Return a table of its own, over regrouped attributes."""
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
    """Return what is averaged with where an attribute is unobserved; nothing for the family's own attribute."""
    return tuple(
        None if axis == 0 and family.child is not None else relative_frequencies(schema.attributes[a], grouping)
        for axis, (a, grouping) in enumerate(family.binned_attributes)
    )


def _small(owned: _OwnedTable, schema: Schema, places: Mapping[BinnedAttribute, int]) -> SmallTable:
    """Return a table to be packed, over attributes as they were cut."""
    family = owned.family
    seen = zip(family.binned_attributes, family.shape, strict=True)
    digits = tuple(np.array((*(grouping or range(n)), n), np.intp) for (_, grouping), n in seen)
    positions = tuple(places[a, None] for a in family.attributes)
    return SmallTable(positions, digits, family.shape, owned.entries, partial(_averages, family, schema))


def is_small(shape: Sequence[int]) -> bool:
    """Return whether a table of this shape can be packed, with the code "unobserved" too."""
    return math.prod(shape) <= MOST_CELLS and math.prod(n + 1 for n in shape) <= 1 << BITS[-1]


def _expanded_size(table: SmallTable) -> int:
    return len(table.entries) * math.prod(n + 1 for n in table.shape)


def _add(
    look_ups: Sequence[LookUps], scores: Array | Sequence[Array], codes: Sequence[Index], rows: slice | Index
) -> None:
    """scores[:, rows] += the entries of these rows, slice by slice."""
    places = np.arange(len(scores[0]))[rows]
    step = max(1, NUMBERS_PER_SLICE // len(scores))
    used = {p for look_up in look_ups for p, _ in look_up.words}
    for start in range(0, len(places), step):
        stop = min(start + step, len(places))
        part: Any = slice(start, stop) if isinstance(rows, slice) else places[start:stop]
        sums = np.zeros((stop - start, len(scores)) if len(scores) > 1 else stop - start)
        _add_words(look_ups, sums, {p: codes[p][part] for p in used})
        for row, total in zip(scores, np.atleast_2d(sums.T), strict=True):
            row[part] += total


def _add_words(look_ups: Sequence[LookUps], sums: Array, codes: dict[int, Index]) -> None:
    """Add the entries of every row to sums (rows,) or (rows, R)."""
    word, added = np.empty(len(sums), np.uint64), np.empty(len(sums), np.uint64)
    cells, found = np.empty(len(sums), np.intp), np.empty_like(sums)
    for bits, words, tables in look_ups:
        (p, first), *others = words
        np.take(first, codes[p], out=word, mode="clip")
        for p, values in others:
            np.take(values, codes[p], out=added, mode="clip")
            word += added
        lanes = word.view(f"u{bits // 8}").reshape(len(word), -1)
        for lane, table in enumerate(tables):
            cells[:] = lanes[:, lane]  # indices of another type would be converted in smaller pieces
            np.take(table, cells, axis=0, out=found, mode="clip")
            sums += found


def _packed(tables: Sequence[SmallTable]) -> Iterator[LookUps]:
    """Yield words of all tables; where cells have several entries, small tables fit lanes of 8 bits, twice as many."""
    several = len(tables[0].entries) > 1
    narrow = [table for table in tables if several and table.n_cells <= 1 << BITS[0]]
    wide = [table for table in tables if not several or table.n_cells > 1 << BITS[0]]
    for bits, some in zip(BITS, (narrow, wide), strict=True):
        joint = 1 << bits if bits == BITS[0] else MOST_JOINT // len(tables[0].entries)
        for lanes in _shared_out(some, 64 // bits, joint):
            yield _look_ups(lanes, bits)


def _shared_out(tables: Sequence[SmallTable], n_lanes: int, joint: int) -> Iterator[list[list[SmallTable]]]:
    """Yield tables by word and lane, so that the tables of a word need few attributes: next the one that adds fewest.

    Ties: the first by attributes. A lane has at most `joint` cells, unless its table is alone.
    """
    left = sorted(tables, key=lambda table: sorted(table.positions))
    masks = [sum(1 << p for p in set(table.positions)) for table in left]
    lanes: list[list[SmallTable]] = []
    seen = 0
    while left:
        among = range(min(_WINDOW, len(left)))
        best = min(among, key=lambda i: (masks[i] & ~seen).bit_count())
        table, mask = left.pop(best), masks.pop(best)
        roomy = (lane for lane in lanes if _joint_cells(lane) * table.n_cells <= joint)
        lane = next(roomy, None)
        if lane is not None:
            lane.append(table)
        elif len(lanes) < n_lanes:
            lanes.append([table])
        else:
            yield lanes
            lanes, seen = [[table]], 0
        seen |= mask
    if lanes:
        yield lanes


def _joint_cells(lane: Sequence[SmallTable]) -> int:
    return math.prod(table.n_cells for table in lane)


def _look_ups(lanes: Sequence[Sequence[SmallTable]], bits: int) -> LookUps:
    """Return the word that has these tables in its lanes."""
    words: dict[int, Any] = {}
    for number, lane in enumerate(lanes):
        stride = _joint_cells(lane)
        for table in lane:
            for p, digits, n in zip(table.positions, table.digits, table.shape, strict=True):
                stride //= n
                if p not in words:
                    words[p] = np.zeros((len(digits), 64 // bits), f"u{bits // 8}")
                # complete rows never have the last code, whose digit may be too large for the lane
                words[p][:, number] += (stride * np.minimum(digits, n - 1)).astype(words[p].dtype)
    by_position = tuple((p, lanes_of.view(np.uint64).ravel()) for p, lanes_of in words.items())
    return LookUps(bits, by_position, tuple(_joint(lane) for lane in lanes))


def _joint(lane: Sequence[SmallTable]) -> Array:
    """Return the sums of entries over the joint cells, the first table's the most significant.

    (cells,) or (cells, R).
    """
    total = lane[0].entries
    for table in lane[1:]:
        total = (total[:, :, None] + table.entries[:, None, :]).reshape(len(total), -1)
    return np.ascontiguousarray(total[0] if len(total) == 1 else total.T)
