"""The gain of adding tables over sets of attributes to a fitted model, from sums of the model's residuals.

With P the fitted probabilities, a new table over a set of attributes would start from 0, with the gradient g and the
curvature h in each of its cells,

    g[c, y] = sum over rows t in cell c of w_t (1[y_t = y] - P(y | x_t))
    h[c, y] = sum over rows t in cell c of w_t P(y | x_t) (1 - P(y | x_t))

and one Newton step with the penalty lambda gains g^2 / (2 (h + lambda)) in each. By chance alone, g^2 = h on average,
or less, because the model is fitted already: functions of the class and of single attributes, which are part of a table
over a pair, have no residuals left. The functions on a table over attributes with r_i values form a space with as many
dimensions as the table has cells. Each dimension belongs to one subset S of the attributes. `new` is the fraction of
the dimensions whose subset no family of the model contains:

    gain = sum over cells c and classes y of (g^2 - new h) / (2 (h + lambda))
    new = sum over subsets S in no family of prod over i in S of (r_i - 1)  /  prod over all i of r_i

in nats, positive if the set explains more than chance would. Numeric attributes are binned to a few intervals. Cells
without rows add nothing. With two classes, only one is summed, and its sums count twice.

Conventions: a row of weight w counts as w equal rows. Gains are rounded to 12 digits, and ties go to the set that comes
first. Sets whose table would have more than MAX_CELLS cells are not candidates. Cost: residuals once per row, then one
weighted count per row, class, g and h, and pair of super-attributes (`counting.table_batches`) or set and
super-attribute.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import JointCodes, extend, no_attributes
from bncli.engine.counting.table_batches import BLOCK, ROUND, SuperAttribute, pair_sums, super_attributes
from bncli.engine.data.dataset import Dataset, RowBlock, code_dtype
from bncli.engine.kernels.arrays import SPARSE_TABLE, Array, Codes, Index, add_counts, cell_numbers
from bncli.engine.kernels.information import rounded
from bncli.engine.kernels.passes import residuals
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structures.regrouping import group_intervals, with_regrouped_columns
from bncli.engine.structures.structure import Family
from bncli.watch import Progress, Watch, silent

AttributeSet = tuple[int, ...]
MAX_CELLS = 1 << 12
"""The maximum number of cells in a candidate's table."""
WIDE = 128
"""Attributes with more codes than this are not packed into super-attributes; only codes that occur are counted."""
NUMBERS_AT_A_TIME = 1 << 24
"""The maximum number of residuals and curvatures in memory at a time (128 MiB), unless those of one class are more."""


class Interaction(NamedTuple):
    """A set of attributes, ascending, and its gain in nats."""

    attributes: AttributeSet
    gain: float


@dataclass(frozen=True)
class Gains:
    """The gains of adding tables over sets of `attributes` to a model with the tables `cells`.

    Numeric attributes are binned to at most `bins` intervals, or not at all if it is None. `cells` (K, n_cells) may
    have been fitted on other rows than the likelihood has. Sets whose table would have more than MAX_CELLS cells are
    not candidates. Lists contain all candidates, even with a negative gain, in descending order of gain.
    """

    likelihood: ConditionalLikelihood
    cells: Array
    attributes: tuple[int, ...]
    bins: int | None
    penalty: float = 1.0
    watch: Watch = silent

    def of_pairs(self) -> list[Interaction]:
        """Return all pairs of the attributes that are candidates, with their gains."""
        binned = _bin_rows(self.likelihood.data, self.attributes, self.bins)
        narrow = [i for i in self.attributes if binned.radices[i] <= WIDE]
        wide = [(i,) for i in self.attributes if binned.radices[i] > WIDE]
        total: dict[AttributeSet, float] = defaultdict(float)
        for columns in self._residual_columns():
            done, n_pairs = 0, math.comb(len(narrow), 2)
            for batch in pair_sums(binned.data, [binned.column[i] for i in narrow], columns):
                self.watch(Progress(done, n_pairs, "pairs of attributes"))
                done += len(batch.i)
                if math.prod(batch.counts.shape[1:3]) > MAX_CELLS:
                    continue
                pairs = [
                    tuple(sorted((binned.attribute[a], binned.attribute[b])))
                    for a, b in zip(batch.i.tolist(), batch.j.tolist(), strict=True)
                ]
                # from (pairs, a, b, 2 C) to (2 C, pairs, cells)
                sums = np.moveaxis(batch.counts, -1, 0).reshape(len(columns[0]), len(pairs), -1)
                gains = self._expected_gains(
                    sums, np.array([self._share_of_new_dimensions(binned, pair) for pair in pairs])
                )
                for pair, gain in zip(pairs, gains.tolist(), strict=True):
                    total[pair] += gain
            self._add_extensions(total, binned, wide, columns)
        return _rank(total)

    def of_extensions(self, sets: Sequence[AttributeSet]) -> list[Interaction]:
        """Return all candidates that extend one of `sets` by one attribute, with their gains; () extends to singles."""
        binned = _bin_rows(self.likelihood.data, self.attributes, self.bins)
        total: dict[AttributeSet, float] = defaultdict(float)
        for columns in self._residual_columns():
            self._add_extensions(total, binned, sets, columns)
        return _rank(total)

    def _residual_columns(self) -> Iterator[list[Array]]:
        """Yield, for C classes at a time, an array (2 C, rows) per block: w (1[y_t = y] - P), then w P (1 - P)."""
        data, fusion = self.likelihood.data, self.likelihood.fusion
        # of two classes the residuals of one are the negatives of the other's
        classes = np.arange(int(data.n_labels == 2), data.n_labels)
        tables = fusion.expand(self.cells)
        at_a_time = max(1, NUMBERS_AT_A_TIME // (2 * max(1, data.n_rows)))
        for start in range(0, len(classes), at_a_time):
            yield data.map(_residuals, tables, classes[start : start + at_a_time], states=fusion.codes)

    def _add_extensions(
        self,
        total: dict[AttributeSet, float],
        binned: _BinnedRows,
        sets: Sequence[AttributeSet],
        columns: list[Array],
    ) -> None:
        """Add the gains of all sets that extend one of `sets` by an attribute to `total`, counting each only once."""
        extensions = Extensions(binned.data, tuple(binned.column[i] for i in self.attributes), columns)
        counted_sets: set[AttributeSet] = set()
        for done, members in enumerate(sets):
            self.watch(Progress(done, len(sets), f"regions of {len(members) + 1} attributes"))
            room = MAX_CELLS // math.prod(binned.radices[i] for i in members)
            # each larger set with the attribute that it adds
            extended = {tuple(sorted((*members, i))): i for i in self.attributes if i not in members}
            added = [
                binned.column[i] for s, i in extended.items() if s not in counted_sets and binned.radices[i] <= room
            ]
            # including sets that are too large, since they are so whichever subset they extend
            counted_sets.update(extended)
            for column, sums in extensions.sums([binned.column[i] for i in members], added):
                larger = tuple(sorted((*members, binned.attribute[column])))
                new = np.array([self._share_of_new_dimensions(binned, larger)])
                total[larger] += float(self._expected_gains(sums[:, np.newaxis], new)[0])

    def _expected_gains(self, sums: Array, new: Array) -> Array:
        """Return the gains (sets,); `sums` (2 C, sets, cells) has g of C classes, then h, and `new` is (sets,)."""
        g, h = sums[: len(sums) // 2], sums[len(sums) // 2 :]
        # (sets,), twice the gain: summed over classes and cells
        share = ((g * g - new[:, np.newaxis] * h) / (h + self.penalty)).sum(axis=(0, 2))
        # two classes: the one that is summed counts twice
        return np.asarray(share if self.likelihood.data.n_labels == 2 else share / 2)

    def _share_of_new_dimensions(self, binned: _BinnedRows, members: AttributeSet) -> float:
        """Return `new`: the fraction of the dimensions of a table over `members` that no family of the model has."""
        radices = {i: binned.radices[i] for i in members}
        subsets = (s for size in range(len(members) + 1) for s in itertools.combinations(members, size))
        # dimensions of the functions of exactly the attributes of s, in sets that no family contains
        fresh = sum(math.prod(radices[i] - 1 for i in s) for s in subsets if s not in self._fitted)
        return fresh / math.prod(radices.values())

    @cached_property
    def _fitted(self) -> set[AttributeSet]:
        """All sets of attributes (ascending) that a family of the model contains, including the empty set."""
        families = (sorted(family.attributes) for family in self.likelihood.families)
        inside = (itertools.combinations(f, size) for f in families for size in range(len(f) + 1))
        return {(), *itertools.chain.from_iterable(inside)}


class _BinnedRows(NamedTuple):
    """The rows, with a binned column for each attribute.

    Per attribute, `column` has the index of its binned column and `radices` the number of codes in that column.
    `attribute` is the inverse of `column`.
    """

    data: Dataset
    column: Mapping[int, int]
    radices: Mapping[int, int]
    attribute: Mapping[int, int]


def _bin_rows(data: Dataset, attributes: Sequence[int], bins: int | None) -> _BinnedRows:
    schema, families = data.schema, []
    for i in attributes:
        grouping = None if bins is None else group_intervals(schema.attributes[i], bins)
        families.append(Family.over((i,), schema.cardinalities, groupings=(grouping,)))
    binned, plain = with_regrouped_columns(data, families)
    column = {i: family.attributes[0] for i, family in zip(attributes, plain, strict=True)}
    radices = {i: binned.radices[c] for i, c in column.items()}
    return _BinnedRows(binned, column, radices, {c: i for i, c in column.items()})


def _residuals(block: RowBlock, tables: Sequence[Array], classes: Index) -> Array:
    out = np.empty((2 * len(classes), block.n_rows))
    for rows in block.slices():
        out[:, rows] = slopes_and_curvatures(block, rows, tables, classes)
    return out


def slopes_and_curvatures(block: RowBlock, rows: slice, tables: Sequence[Array], classes: Index) -> Array:
    """Return an array (2 C, rows) for a slice of rows and the C `classes`: w (1[y_t = y] - P), then w P (1 - P).

    The scores are sums over `tables`, each indexed by its array of codes (rows,) in the state of the block.
    """
    scores = np.zeros((len(tables[0]), rows.stop - rows.start))
    for table, codes in zip(tables, block.state, strict=True):
        scores += np.take(table, codes[rows], axis=1, mode="clip")
    # weights come later, since the curvature needs the absolute residual of an unweighted row
    residuals(scores, block.labels[rows], None)
    g = scores[classes]
    # the absolute residual is 1 - P for the row's own class and P for another: either gives P (1 - P)
    off = np.abs(g)
    weights = 1.0 if block.weights is None else block.weights[rows]
    return np.concatenate([g * weights, off * (1.0 - off) * weights])


def _rank(total: dict[AttributeSet, float]) -> list[Interaction]:
    sets = sorted(total)
    gains = rounded(np.array([total[members] for members in sets], np.float64)).tolist()
    ranked = [Interaction(members, gain) for members, gain in zip(sets, gains, strict=True)]
    return sorted(ranked, key=lambda interaction: -interaction.gain)


@dataclass(frozen=True)
class Extensions:
    """Sums of per-row values over the cells of a set of attributes extended by one more attribute.

        S[c, u, x] = sum over rows t with the set in cell u and the attribute at x of columns[c, t]

    columns[s] (C, rows of block s) are the values that are summed. The added attributes are packed into
    super-attributes as for pairs (`counting.table_batches`): the cell of a set and the joint value of a few attributes
    form one code, and one sum over it serves all of these attributes. If that code has too many values, attributes are
    added one at a time, and only cells that occur are numbered (`counting.fused_codes`), so that the cost depends on
    the number of rows and not on the number of values.
    """

    data: Dataset
    attributes: tuple[int, ...]
    columns: Sequence[Array]

    def sums(self, members: Sequence[int], added: Iterable[int]) -> Iterator[tuple[int, Array]]:
        """Yield each attribute of `added`, none of which is in `members`, in any order, with its S as (C, cells)."""
        base = no_attributes(self.data)
        for i in members:
            base, _ = extend(self.data, base, i)
        new = set(added)
        places = [p for p, packed in enumerate(self._supers) if new.intersection(packed.attributes)]
        dense = [p for p in places if base.size * self._supers[p].size <= SPARSE_TABLE]
        for p, total in self._dense(base, dense):
            packed = self._supers[p]
            shaped = total.reshape(*total.shape[:2], *packed.shape)
            for place, i in enumerate(packed.attributes):
                if i in new:
                    # axes are (C, cells of the set, one per packed attribute): sum over the others
                    others = tuple(2 + k for k in range(len(packed.shape)) if k != place)
                    yield i, shaped.sum(axis=others).reshape(len(total), -1)
        for p in sorted(set(places) - set(dense)):
            for i in sorted(new.intersection(self._supers[p].attributes)):
                joint, _ = extend(self.data, base, i)
                states = list(zip(joint.codes, self.columns, strict=True))
                yield i, np.asarray(self.data.reduce(_sum_cells, joint.size, states=states))

    def _dense(self, base: JointCodes, places: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Yield the position of each super-attribute and its S[c, u, v], summed in rounds of about ROUND entries."""
        n_columns = len(self.columns[0])
        entries = [n_columns * base.size * self._supers[p].size for p in places]
        # consecutive super-attributes with about ROUND entries in total
        rounds = np.cumsum(entries, dtype=np.intp) // ROUND
        for current in np.unique(rounds).tolist():
            together = [p for p, r in zip(places, rounds.tolist(), strict=True) if r == current]
            sizes = [self._supers[p].size for p in together]
            codes = [[fused[p] for p in together] for fused in self._fused]
            states = list(zip(base.codes, codes, self.columns, strict=True))
            summed = self.data.reduce(_sum_dense, base.size, sizes, states=states)
            for p, total in zip(together, summed, strict=True):
                yield p, total.reshape(n_columns, base.size, -1)

    @cached_property
    def _supers(self) -> list[SuperAttribute]:
        n_columns = len(self.columns[0])
        radices = {i: self.data.radices[i] for i in self.attributes}
        return super_attributes(radices, self.data.n_rows * n_columns, n_columns)

    @cached_property
    def _fused(self) -> list[list[Codes]]:
        """The joint codes of the rows, [s][p] for block s and super-attribute p, in the narrowest unsigned type."""
        return self.data.map(_fuse, self._supers)


def _fuse(block: RowBlock, supers: Sequence[SuperAttribute]) -> list[Codes]:
    fused = [np.empty(block.n_rows, code_dtype(packed.size)) for packed in supers]
    for rows in block.slices(BLOCK):
        for codes, packed in zip(fused, supers, strict=True):
            codes[rows] = cell_numbers([block.codes[i][rows] for i in packed.attributes], packed.shape)
    return fused


def _sum_dense(block: RowBlock, base_size: int, sizes: Sequence[int]) -> list[Array]:
    """Return the block's sums S[c, (u, v)] of every super-attribute."""
    base, joined, columns = block.state
    totals = [np.zeros((len(columns), base_size * size)) for size in sizes]
    for rows in block.slices(BLOCK):
        cell = base[rows].astype(np.intp)
        for codes, size, total in zip(joined, sizes, totals, strict=True):
            joint = cell * size
            joint += codes[rows]
            for sums, column in zip(total, columns[:, rows], strict=True):
                add_counts(sums, joint, column)
    return totals


def _sum_cells(block: RowBlock, size: int) -> Array:
    codes, columns = block.state
    total = np.zeros((len(columns), size))
    for rows in block.slices(BLOCK):
        cells = codes[rows].astype(np.intp)
        for sums, column in zip(total, columns[:, rows], strict=True):
            add_counts(sums, cells, column)
    return total
