"""Many small tables looked up together: the cell numbers of several of them in one 64-bit word.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.prediction.factors import Averages, expand

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


def is_small(shape: Sequence[int]) -> bool:
    """Whether a table of this shape can be packed, with the code "unobserved" too."""
    return math.prod(shape) <= MOST_CELLS and math.prod(n + 1 for n in shape) <= 1 << BITS[-1]


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
        """The packing of these tables, ready for rows that lack nothing."""
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
        """scores (R, rows) += the entries of every row; codes[p] (rows,) are the codes at position p."""
        lacking = np.zeros(len(codes[self.unobserved[0][0]]), bool)
        for p, code in self.unobserved:
            lacking |= codes[p] == code
        if not lacking.any():
            _add(self.complete, scores, codes, slice(None))
            return
        _add(self.complete, scores, codes, np.flatnonzero(~lacking))
        for look_ups in self._incomplete():
            _add(look_ups, scores, codes, np.flatnonzero(lacking))

    def _incomplete(self) -> Iterable[tuple[LookUps, ...]]:
        """For rows in which something is not observed, part by part; large ones are made whenever such rows come."""
        return self._kept if sum(map(_expanded_size, self.tables)) <= KEPT_ENTRIES else self._parts()

    @cached_property
    def _kept(self) -> tuple[tuple[LookUps, ...], ...]:
        """Made when the first row comes that needs them."""
        return tuple(self._parts())

    def _parts(self) -> Iterator[tuple[LookUps, ...]]:
        """Expanded tables of at most KEPT_ENTRIES / 8 entries at a time, packed."""
        part, entries = list[SmallTable](), 0
        for table in self.tables:
            size = _expanded_size(table)
            if part and entries + size > KEPT_ENTRIES // 8:
                yield tuple(_packed(part))
                part, entries = [], 0
            part.append(table.expanded())
            entries += size
        yield tuple(_packed(part))


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
    """sums (rows,) or (rows, R) += the entries of every row."""
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
    """Words of all tables; where cells have several entries, small tables fit lanes of 8 bits, twice as many."""
    several = len(tables[0].entries) > 1
    narrow = [table for table in tables if several and table.n_cells <= 1 << BITS[0]]
    wide = [table for table in tables if not several or table.n_cells > 1 << BITS[0]]
    for bits, some in zip(BITS, (narrow, wide), strict=True):
        joint = 1 << bits if bits == BITS[0] else MOST_JOINT // len(tables[0].entries)
        for lanes in _shared_out(some, 64 // bits, joint):
            yield _look_ups(lanes, bits)


def _shared_out(tables: Sequence[SmallTable], n_lanes: int, joint: int) -> Iterator[list[list[SmallTable]]]:
    """Tables by word and lane, so that the tables of a word need few attributes: next the one that adds fewest.

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
    """The word that has these tables in its lanes."""
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
    """The sums of entries over the joint cells, the first table's the most significant; (cells,) or (cells, R)."""
    total = lane[0].entries
    for table in lane[1:]:
        total = (total[:, :, None] + table.entries[:, None, :]).reshape(len(total), -1)
    return np.ascontiguousarray(total[0] if len(total) == 1 else total.T)
