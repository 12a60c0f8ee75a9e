"""What sets of attributes would add to a fitted model: gains of all candidates from sums of its residuals.

With P the fitted probabilities, a table over a set of attributes that joins the model would start from 0 with the
gradient g and the curvature h in each of its cells,

    g[c, y] = sum over rows t in cell c of w_t (1[y_t = y] - P(y | x_t))
    h[c, y] = sum over rows t in cell c of w_t P(y | x_t) (1 - P(y | x_t))

and one Newton step against the penalty lambda gains g^2 / (2 (h + lambda)) in each. Chance alone gives g^2 = h on the
average, less what the model has been fitted to: the function of the class and of single attributes in a table over a
pair leave no residuals any more. A table over attributes of r_i values has as many dimensions as cells, shared out
among its subsets; the share of those that no family of the model has is new:

    gain = sum over cells c and classes y of (g^2 - new h) / (2 (h + lambda))
    new = sum over subsets S in no family of prod over i in S of (r_i - 1)  /  prod over all i of r_i

nats, positive where the set says more than chance would. Numeric attributes are binned to a few intervals. Cells
that no row reaches add nothing. Of two classes one is summed and counted twice.

Conventions: a weight stands for so many equal rows. Gains are rounded to 12 digits, and ties go to the set that comes
first. Sets whose table would have more than MAX_CELLS cells are no candidates. Cost: residuals once a row, then one
weighted count a row, class, g and h, and pair of super-attributes (`counting.table_batches`) or set and pack
(`bncli.engine.structure_learners.interaction_gains`).

Sums over the cells of a set of attributes and one more, for many such sets and all attributes that may join them.

    S[c, u, x] = sum over rows t with the set in cell u and the attribute at x of columns[c, t]

Candidates are joined to super-attributes as for pairs (`counting.table_batches`): the cells of a set together with the
joint values of a few attributes are one code, and one sum over it answers for all of them. Where that code has too many
values, one attribute after the other joins, and only cells that occur are numbered
(`bncli.engine.counting.fused_codes`): many values cost no more than the rows that have them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import JointCodes, extend, no_attributes
from bncli.engine.counting.table_batches import BLOCK, ROUND, SuperAttribute, pair_sums, super_attributes
from bncli.engine.data.dataset import Dataset, RowBlock, code_dtype
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.kernels.cells import SPARSE_TABLE, add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import residuals
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.regrouping import group_intervals, with_regrouped_columns
from bncli.engine.structures.structure import Family
from bncli.watch import Progress, Watch, silent


@dataclass(frozen=True)
class Extensions:
    """The attributes that may join a set, and C numbers of every row to be summed: columns[s] (C, rows of block s)."""

    data: Dataset
    attributes: tuple[int, ...]
    columns: Sequence[Array]

    def sums(self, members: Sequence[int], wanted: Iterable[int]) -> Iterator[tuple[int, Array]]:
        """For every wanted attribute, which is none of `members`, in any order: it, and S (C, cells)."""
        base = self._joint(members)
        wanted = set(wanted)
        asked = [p for p, one in enumerate(self._supers) if wanted.intersection(one.attributes)]
        dense = [p for p in asked if base.size * self._supers[p].size <= SPARSE_TABLE]
        for p, total in self._dense(base, dense):
            yield from ((i, table) for i, table in _margins(self._supers[p], total) if i in wanted)
        for p in sorted(set(asked) - set(dense)):
            for i in sorted(wanted.intersection(self._supers[p].attributes)):
                yield i, self._sparse(base, i)

    def _joint(self, members: Sequence[int]) -> JointCodes:
        joint = no_attributes(self.data)
        for i in members:
            joint, _ = extend(self.data, joint, i)
        return joint

    def _dense(self, base: JointCodes, places: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Yield (place of a super-attribute, S[c, u, v]), as many at a time as fit the memory for sums."""
        n_columns = len(self.columns[0])
        entries = [n_columns * base.size * self._supers[p].size for p in places]
        rounds = np.cumsum(entries, dtype=np.intp) // ROUND
        for turn in np.unique(rounds).tolist():
            now = [p for p, r in zip(places, rounds.tolist(), strict=True) if r == turn]
            sizes = [self._supers[p].size for p in now]
            codes = [[fused[p] for p in now] for fused in self._fused]
            states = list(zip(base.codes, codes, self.columns, strict=True))
            summed = self.data.reduce(_sum_dense, base.size, sizes, states=states)
            for p, total in zip(now, summed, strict=True):
                yield p, total.reshape(n_columns, base.size, -1)

    def _sparse(self, base: JointCodes, attribute: int) -> Array:
        """Return S (C, cells that occur)."""
        joint, _ = extend(self.data, base, attribute)
        states = list(zip(joint.codes, self.columns, strict=True))
        return np.asarray(self.data.reduce(_sum_cells, joint.size, states=states))

    @cached_property
    def _supers(self) -> list[SuperAttribute]:
        n_columns = len(self.columns[0])
        return super_attributes(
            {i: self.data.radices[i] for i in self.attributes}, self.data.n_rows * n_columns, n_columns
        )

    @cached_property
    def _fused(self) -> list[list[Codes]]:
        """[s][p]: the code of super-attribute p in every row of block s, in the narrowest type."""
        return self.data.map(_fuse, self._supers)


Set = tuple[int, ...]
MAX_CELLS = 1 << 12
"""Of the table of a candidate."""
WIDE = 128
"""Attributes with more codes are not packed; only what occurs of them is counted."""
KEPT = 1 << 24
"""Numbers of rows and classes that are kept at a time (128 MiB)."""


class Interaction(NamedTuple):
    """A set of attributes, ascending, and its gain in nats."""

    attributes: Set
    gain: float


@dataclass(frozen=True)
class Gains:
    """Candidates over `attributes`, binned to at most `bins` intervals, beside the tables `cells` (K, n_cells).

    The rows are those of the likelihood; the tables may have been fitted on others. Every list that comes back has
    all candidates, whatever they gain, the largest gain first.
    """

    likelihood: ConditionalLikelihood
    cells: Array
    attributes: tuple[int, ...]
    bins: int | None
    penalty: float = 1.0
    watch: Watch = silent

    def of_pairs(self) -> list[Interaction]:
        """Return all pairs of the attributes."""
        binned = _BinnedRows.of(self.likelihood.data, self.attributes, self.bins)
        narrow = [i for i in self.attributes if binned.radix(i) <= WIDE]
        wide = [i for i in self.attributes if binned.radix(i) > WIDE]
        total: dict[Set, float] = {}
        for columns in self._columns():
            self._add_narrow_pairs(total, binned, narrow, columns)
            self._add_extensions(total, binned, [(i,) for i in wide], columns)
        return _ranked(total)

    def of_extensions(self, sets: Sequence[Set]) -> list[Interaction]:
        """Return all sets that have one attribute more than one of `sets`.

        The empty set is extended to single attributes.
        """
        binned = _BinnedRows.of(self.likelihood.data, self.attributes, self.bins)
        total: dict[Set, float] = {}
        for columns in self._columns():
            self._add_extensions(total, binned, sets, columns)
        return _ranked(total)

    def _columns(self) -> Iterator[list[Array]]:
        """For a few classes at a time, by block: residuals and spreads w P (1 - P) of every row, (2 classes, rows)."""
        n_labels = self.likelihood.data.n_labels
        # of two classes the residuals of one are the negatives of the other's
        classes = np.arange(int(n_labels == 2), n_labels)
        tables = self.likelihood.fusion.expand(self.cells)
        # two numbers a row and class are kept: as many classes as the memory allows
        at_a_time = max(1, KEPT // (2 * max(1, self.likelihood.data.n_rows)))
        for start in range(0, len(classes), at_a_time):
            some = classes[start : start + at_a_time]
            yield self.likelihood.data.map(_residuals, tables, some, states=self.likelihood.fusion.codes)

    def _add_narrow_pairs(
        self, total: dict[Set, float], binned: _BinnedRows, attributes: Sequence[int], columns: list[Array]
    ) -> None:
        done, n_pairs = 0, math.comb(len(attributes), 2)
        for batch in pair_sums(binned.data, [binned.column[i] for i in attributes], columns):
            self.watch(Progress(done, n_pairs, "pairs of attributes"))
            done += len(batch.i)
            if math.prod(batch.counts.shape[1:3]) > MAX_CELLS:
                continue
            pairs = [binned.original(i, j) for i, j in zip(batch.i.tolist(), batch.j.tolist(), strict=True)]
            sums = np.moveaxis(batch.counts, -1, 0).reshape(len(columns[0]), len(pairs), -1)
            gains = self._gains(sums, np.array([self._new(binned, pair) for pair in pairs]))
            for pair, gain in zip(pairs, gains.tolist(), strict=True):
                _interaction_gains_add(total, pair, gain)

    def _add_extensions(
        self, total: dict[Set, float], binned: _BinnedRows, sets: Sequence[Set], columns: list[Array]
    ) -> None:
        """Each set once, whichever of its subsets it extends."""
        extensions = Extensions(binned.data, tuple(binned.column[i] for i in self.attributes), columns)
        met: set[Set] = set()
        for done, members in enumerate(sets):
            self.watch(Progress(done, len(sets), f"regions of {len(members) + 1} attributes"))
            room = MAX_CELLS // math.prod(binned.radix(i) for i in members)
            grown = {tuple(sorted((*members, i))): i for i in self.attributes if i not in members}
            wanted = [i for larger, i in grown.items() if larger not in met and binned.radix(i) <= room]
            # too large ones included: no other subset makes them smaller
            met.update(grown)
            have, want = ([binned.column[i] for i in listed] for listed in (members, wanted))
            for column, sums in extensions.sums(have, want):
                larger = tuple(sorted((*members, *binned.original(column))))
                _interaction_gains_add(
                    total, larger, float(self._gains(sums[:, np.newaxis], np.array([self._new(binned, larger)]))[0])
                )

    def _gains(self, sums: Array, new: Array) -> Array:
        """Return (sets,) from g and then h of the classes along the first axis (2 classes, sets, cells).

        New (sets,).
        """
        g, h = sums[: len(sums) // 2], sums[len(sums) // 2 :]
        share = ((g * g - new[:, np.newaxis] * h) / (h + self.penalty)).sum(axis=(0, 2))
        return np.asarray(share if self.likelihood.data.n_labels == 2 else share / 2)

    def _new(self, binned: _BinnedRows, members: Set) -> float:
        """Return the share of the dimensions of a table over `members` that no family of the model has."""
        radices = {i: binned.radix(i) for i in members}
        subsets = (s for size in range(len(members) + 1) for s in itertools.combinations(members, size))
        fresh = sum(math.prod(radices[i] - 1 for i in s) for s in subsets if s not in self._fitted)
        return fresh / math.prod(radices.values())

    @cached_property
    def _fitted(self) -> set[Set]:
        """Every set of attributes, ascending, inside a family of the model; the empty one, the class, always is."""
        families = (sorted(family.attributes) for family in self.likelihood.families)
        inside = (itertools.combinations(f, size) for f in families for size in range(len(f) + 1))
        return {(), *itertools.chain.from_iterable(inside)}


@dataclass(frozen=True)
class _BinnedRows:
    """The rows with attributes as candidates bin them: column[i] is the number of attribute i there."""

    data: Dataset
    column: dict[int, int]

    @classmethod
    def of(cls, data: Dataset, attributes: Sequence[int], bins: int | None) -> _BinnedRows:
        schema = data.schema
        groupings = [None if bins is None else group_intervals(schema.attributes[i], bins) for i in attributes]
        families = [
            Family.over((i,), schema.cardinalities, groupings=(grouping,))
            for i, grouping in zip(attributes, groupings, strict=True)
        ]
        extended, plain = with_regrouped_columns(data, families)
        return cls(extended, {i: family.attributes[0] for i, family in zip(attributes, plain, strict=True)})

    def radix(self, i: int) -> int:
        return self.data.radices[self.column[i]]

    def original(self, *columns: int) -> Set:
        """Return the attributes behind some columns, ascending."""
        return tuple(sorted(self._behind[column] for column in columns))

    @cached_property
    def _behind(self) -> dict[int, int]:
        return {column: i for i, column in self.column.items()}


def _margins(of: SuperAttribute, total: Array) -> Iterator[tuple[int, Array]]:
    """Yield every attribute of the super-attribute with S[c, (u, x)], from S[c, u, v]."""
    shaped = total.reshape(*total.shape[:2], *of.shape)
    for place, i in enumerate(of.attributes):
        others = tuple(2 + k for k in range(len(of.shape)) if k != place)
        yield i, shaped.sum(axis=others).reshape(len(total), -1)


def _fuse(block: RowBlock, supers: Sequence[SuperAttribute]) -> list[Codes]:
    fused = [np.empty(block.n_rows, code_dtype(one.size)) for one in supers]
    for rows in block.slices(BLOCK):
        for codes, one in zip(fused, supers, strict=True):
            codes[rows] = cell_numbers([block.codes[i][rows] for i in one.attributes], one.shape)
    return fused


def _sum_dense(block: RowBlock, base_size: int, sizes: Sequence[int]) -> list[Array]:
    """Return partial S[c, (u, v)] of every super-attribute."""
    base, joined, columns = block.state
    totals = [np.zeros((len(columns), base_size * size)) for size in sizes]
    for rows in block.slices(BLOCK):
        cell = base[rows].astype(np.intp)
        for codes, size, total in zip(joined, sizes, totals, strict=True):
            joint = cell * size
            joint += codes[rows]
            _extensions_add(total, joint, columns[:, rows])
    return totals


def _extensions_add(total: Array, cells: Index, columns: Array) -> None:
    for sums, column in zip(total, columns, strict=True):
        add_counts(sums, cells, column)


def _sum_cells(block: RowBlock, size: int) -> Array:
    codes, columns = block.state
    total = np.zeros((len(columns), size))
    for rows in block.slices(BLOCK):
        _extensions_add(total, codes[rows].astype(np.intp), columns[:, rows])
    return total


def _residuals(block: RowBlock, tables: Sequence[Array], classes: Index) -> Array:
    out = np.empty((2 * len(classes), block.n_rows))
    for rows in block.slices():
        scores = np.zeros((len(tables[0]), rows.stop - rows.start))
        for table, codes in zip(tables, block.state, strict=True):
            scores += np.take(table, codes[rows], axis=1, mode="clip")
        residuals(scores, block.labels[rows], None)
        off = np.abs(scores[classes])  # 1 - P of the row's own class, P of another: P (1 - P) from either
        weights = 1.0 if block.weights is None else block.weights[rows]
        out[: len(classes), rows] = scores[classes] * weights
        out[len(classes) :, rows] = off * (1.0 - off) * weights
    return out


def _interaction_gains_add(total: dict[Set, float], members: Set, gain: float) -> None:
    total[members] = total.get(members, 0.0) + gain


def _ranked(total: dict[Set, float]) -> list[Interaction]:
    sets = sorted(total)
    gains = rounded(np.array([total[members] for members in sets], np.float64)).tolist()
    found = [Interaction(members, gain) for members, gain in zip(sets, gains, strict=True)]
    return sorted(found, key=lambda one: -one.gain)
