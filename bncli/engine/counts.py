"""Contingency tables of attribute sets with the class: asked for in batches, kept, shared by all learners of one fit.

The tables of all pairs of attributes are what tree learners need. Counting them pair by pair costs n(n-1)/2
increments a row. Attributes with few values are therefore packed into *super-attributes* of at most S joint values;
pairs of super-attributes are counted, and the table of two attributes is a margin of the table of their packs:

    n[a, b, y] = sum over the joint values u of a's pack with a's value a, v of b's pack with b's value b of n[u, v, y]

S is chosen by the cost model 4 ns N G(G-1)/2 + 1 ns (cells of all tables) with G packs. Counts are exact integers,
or sums of row weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bncli.engine.dataset import Dataset, Shard
from bncli.engine.kernels.cells import Index, add_counts, cell_numbers
from bncli.errors import BncliError

Table = NDArray[np.float64]
Set = tuple[int, ...]

PACK_SIZES = (1, 32, 64, 128)
BLOCK = 1 << 15
MAX_ENTRIES = 1 << 27
"""A single table with more entries (1 GiB) is refused."""
PAIR_BUDGET = 1 << 24
"""Entries of the pair tables that are counted at one time, and of those that are kept (128 MiB each)."""
OBJECT = 32
"""What a kept table costs beside its entries, in entries."""


@dataclass(frozen=True)
class Counts:
    """The tables of one data set; `tables` counts what it does not know yet in a single pass."""

    data: Dataset
    _known: dict[int, dict[Set, Table]] = field(default_factory=dict)  # by size; the sets ascending

    def tables(self, sets: Iterable[Set]) -> list[Table]:
        """For each set of attributes its counts, shape (cardinalities in the set's order..., K), float64.

        Raises BncliError for a table of more than MAX_ENTRIES entries.
        """
        wanted = list(sets)
        missing = [s for s in dict.fromkeys(tuple(sorted(s)) for s in wanted) if self._derive(s) is None]
        for s in missing:
            self._refuse_giants(s)
        if missing:
            counted = self.data.reduce(_count, [(s, self._shape(s)) for s in missing])
            for s, table in zip(missing, counted, strict=True):
                self._keep(s, table.astype(np.float64).reshape(self._shape(s)))
        return [self._derive(s) for s in wanted]  # type: ignore[misc]

    def pairs(self, attributes: Sequence[int]) -> Iterator[tuple[int, int, Table]]:
        """(i, j, n[x_i, x_j, y]) for all i before j in `attributes`; counted in rounds that fit the memory budget."""
        room = PAIR_BUDGET
        for pack_pairs, packs in self._rounds(attributes):
            counted = self.data.reduce(_count_packs, packs, pack_pairs, self.data.n_labels)
            for (p, q), table in zip(pack_pairs, counted, strict=True):
                for i, j, margin in _margins(packs[p], packs[q], table, self.data.n_labels):
                    if margin.size + OBJECT <= room:
                        room -= margin.size + OBJECT
                        self._keep((i, j), margin)
                    yield i, j, margin

    def class_counts(self) -> Table:
        """Weight of each class, shape (K,)."""
        return self.tables([()])[0]

    def _keep(self, s: Set, table: Table) -> Table:
        self._known.setdefault(len(s), {})[s] = table
        return table

    def _derive(self, wanted: Set) -> Table | None:
        """The table, if it is known or a margin of one that is."""
        ascending = tuple(sorted(wanted))
        table = self._known.get(len(wanted), {}).get(ascending)
        if table is None:
            table = self._margin(ascending)
        if table is None or wanted == ascending:
            return table
        return np.ascontiguousarray(table.transpose(*(ascending.index(i) for i in wanted), len(wanted)))

    def _margin(self, ascending: Set) -> Table | None:
        """The table as a margin of a larger one that is known."""
        for size in sorted(size for size in self._known if size > len(ascending)):
            for known, table in self._known[size].items():
                if set(ascending) <= set(known):
                    dropped = tuple(axis for axis, i in enumerate(known) if i not in ascending)
                    return self._keep(ascending, table.sum(axis=dropped))
        return None

    def _shape(self, s: Set) -> tuple[int, ...]:
        cardinalities = self.data.schema.cardinalities
        return (*(cardinalities[i] for i in s), self.data.n_labels)

    def _refuse_giants(self, s: Set) -> None:
        entries = math.prod(self._shape(s))
        if entries > MAX_ENTRIES:
            names = ", ".join(repr(self.data.schema.attributes[i].name) for i in s)
            raise BncliError(
                f"a table over {names} and the class would have {entries:,} entries ({entries * 8 / 2**30:.1f} GiB)",
                hint="leave a column with many levels out (--ignore), or use a structure with fewer parents",
            )

    def _rounds(self, attributes: Sequence[int]) -> Iterator[tuple[list[tuple[int, int]], list[Pack]]]:
        cardinalities = self.data.schema.cardinalities
        packs = _pack({i: cardinalities[i] for i in attributes}, self.data.n_rows, self.data.n_labels)
        for i, j in itertools.combinations(range(len(packs)), 2):
            self._refuse_giants((*packs[i].attributes, *packs[j].attributes))
        pairs = list(itertools.combinations_with_replacement(range(len(packs)), 2))
        pairs = [(p, q) for p, q in pairs if p != q or len(packs[p].attributes) > 1]
        start, entries = 0, 0
        for end, (p, q) in enumerate(pairs):
            size = packs[p].size * (1 if p == q else packs[q].size) * self.data.n_labels
            if end > start and entries + size > PAIR_BUDGET:
                yield pairs[start:end], packs
                start, entries = end, 0
            entries += size
        if start < len(pairs):
            yield pairs[start:], packs


def _count(shard: Shard, sets: list[tuple[Set, tuple[int, ...]]]) -> list[NDArray[np.generic]]:
    """Partial tables of one shard, flat, for every (set, shape)."""
    kind = np.int64 if shard.weights is None else np.float64
    totals: list[NDArray[np.generic]] = [np.zeros(math.prod(shape), kind) for _, shape in sets]
    for rows in shard.slices(BLOCK):
        weights = None if shard.weights is None else shard.weights[rows]
        for (members, shape), total in zip(sets, totals, strict=True):
            digits = [*(shard.codes[i][rows] for i in members), shard.labels[rows]]
            add_counts(total, cell_numbers(digits, shape), weights)
    return totals


@dataclass(frozen=True)
class Pack:
    """A super-attribute: ascending attributes, their cardinalities, and their product."""

    attributes: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _pack(cardinalities: dict[int, int], n_rows: int, n_labels: int) -> list[Pack]:
    """The cheapest packing by the cost model, first-fit decreasing for each S."""
    packings = [_first_fit(cardinalities, size) for size in PACK_SIZES]
    return min(packings, key=lambda packs: _cost(packs, n_rows, n_labels))


def _first_fit(cardinalities: dict[int, int], size: int) -> list[Pack]:
    bins: list[list[int]] = []
    for i in sorted(cardinalities, key=lambda i: (-cardinalities[i], i)):
        for members in bins:
            if math.prod(cardinalities[m] for m in members) * cardinalities[i] <= size:
                members.append(i)
                break
        else:
            bins.append([i])
    return [Pack(tuple(sorted(b)), tuple(cardinalities[m] for m in sorted(b))) for b in sorted(bins, key=min)]


def _cost(packs: list[Pack], n_rows: int, n_labels: int) -> float:
    increments = 4.0 * n_rows * len(packs) * (len(packs) - 1) / 2
    sizes = [pack.size for pack in packs]
    if math.prod(sorted(sizes)[-2:]) * n_labels > MAX_ENTRIES:
        return math.inf  # pair by pair may still fit
    cells = n_labels * (sum(sizes) ** 2 - sum(s * s for s in sizes)) / 2
    return increments + cells


def _count_packs(
    shard: Shard, packs: list[Pack], pairs: list[tuple[int, int]], n_labels: int
) -> list[NDArray[np.generic]]:
    """Partial tables n[u, y, v] of pairs of packs, flat; a pack with itself: n[u, y]."""
    kind = np.int64 if shard.weights is None else np.float64
    sizes = [packs[p].size * n_labels * (1 if p == q else packs[q].size) for p, q in pairs]
    totals: list[NDArray[np.generic]] = [np.zeros(size, kind) for size in sizes]
    for rows in shard.slices(BLOCK):
        weights = None if shard.weights is None else shard.weights[rows]
        fused = [cell_numbers([shard.codes[i][rows] for i in pack.attributes], pack.shape) for pack in packs]
        for p, group in itertools.groupby(zip(pairs, totals, strict=True), key=lambda entry: entry[0][0]):
            with_class = fused[p] * n_labels
            with_class += shard.labels[rows]
            for (_, q), total in group:
                add_counts(total, _join(with_class, fused, p, q, packs[q].size), weights)
    return totals


def _join(with_class: Index, fused: list[Index], p: int, q: int, size: int) -> Index:
    if p == q:
        return with_class
    cells = with_class * size
    cells += fused[q]
    return cells


def _margins(p: Pack, q: Pack, table: NDArray[np.generic], n_labels: int) -> Iterator[tuple[int, int, Table]]:
    """The tables n[x_i, x_j, y], i < j, of all pairs that the counted table of two packs (or of one) holds."""
    if p == q:
        cube = table.astype(np.float64).reshape(*p.shape, n_labels)
        for a, b in itertools.combinations(range(len(p.attributes)), 2):
            others = tuple(axis for axis in range(len(p.shape)) if axis not in (a, b))
            yield p.attributes[a], p.attributes[b], cube.sum(axis=others)
        return
    counted = table.astype(np.float64).reshape(p.size * n_labels, *q.shape)
    for j, half in _each(counted, 1, q):
        for i, margin in _each(half.reshape(*p.shape, n_labels, -1), 0, p):
            pair = margin.transpose(0, 2, 1)
            yield (i, j, pair) if i < j else (j, i, np.ascontiguousarray(pair.transpose(1, 0, 2)))


def _each(table: Table, first: int, pack: Pack) -> Iterator[tuple[int, Table]]:
    """For each attribute of the pack, whose axes begin at `first`, the table summed over the pack's other axes."""
    for axis, i in enumerate(pack.attributes):
        others = tuple(first + other for other in range(len(pack.shape)) if other != axis)
        yield i, table.sum(axis=others) if others else table
