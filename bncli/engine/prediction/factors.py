"""Factors: what a compiled scorer looks up in the tables of a model and adds to the scores of rows.

Scores (R, rows) have one row per class, or for two classes one row, the difference S[t, 1] - S[t, 0]. An attribute that
is unknown in a row has the code "unobserved", one past its last. The kinds of factor are:

- A `Factor` is a table with entries for this code.
- A `WideFactor` is a table that these entries would make too large (k binary parents have 2^k cells, and 3^k with the
  code). It keeps the plain table, and the few rows with unknown attributes are averaged, one pattern of unknown
  attributes at a time: entry = sum over the values v of the unknown attributes of prod q(v) W[known, v, y]. This is 0
  if the family's own attribute is unknown. Cost of such a row: the number of its completions.
- `PackedTables` are many small tables that are looked up together.
- A `SharedFactor` is used if several models are scored together. It wraps one of the other factors and names the score
  rows of the models that have it. A family that several models have is looked up once, in a table with the score rows
  of all of them.

Packing. With a thousand tables over up to six attributes each, and groupings that differ between tables, computing cell
numbers would take most of the time. A cell number is a sum with one term per attribute. So one look-up by an
attribute's code can add to the cell numbers of many tables at once. For this, a 64-bit word has lanes of 8 or 16 bits:

    word[t] = sum over attributes a of look_up_a[code_a(t)],    S[t] += sum over lanes l of E_l[lane l of word[t]]

A lane holds the joint cell number of several tables that have few joint cells; E_l is the sum of their entries. Rows in
which nothing is unknown use words without entries for "unobserved"; the others use other words, so that the score of a
row does not depend on the other rows of its block. Cost per row and table: 1 or 2 ns, and 1 ns per score row. Memory:
the joint tables, usually with at most MOST_JOINT entries each, and temporary arrays for a block of rows, whose size
does not depend on the number of tables.

An average over a path of models (`engine.model.Path`) is scored in stages, and its factors are tables over the cells
of regions.

Stages. Probabilities are computed only for steps with a positive weight. A stage is such a step together with the steps
of weight 0 just before it. Many of the changes of a stage cancel. If a region with a remaining change is part of
another one, its change is added to the table of the larger region, its host. So a single model is one stage with a
table for each region that is not part of another. Weights below LEAST_WEIGHT count as 0, which changes no probability
by more than rounding does.

Tables. All changes inside a region are added up in one table over its cells,

    D[v, y] = sum over changes (R, c) of c ln P(v_R, y)

Each submodel is marginalized over the attributes that are unknown in a row:

    ln P(v_R without a, y) = ln sum over values u of a of P(v_R with a = u, y)

Submodels of overlapping regions are consistent, so the result is the submodel of the smaller region. These entries are
part of the table (`expand_submodel`), unless they would make it too large: then a `RegionFactor` keeps the plain table,
and marginalizes for each pattern of unknown attributes that occurs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index, log_sum
from bncli.engine.model import Path, Tables
from bncli.engine.structures.regrouping import regrouped_attributes, relative_frequencies
from bncli.engine.structures.structure import BinnedAttribute, Family, maximal

EXPANDED_ENTRIES = 1 << 20
"""A table gets entries for "unobserved" if it then has at most this many, or at most twice as many as before."""
GATHERED_ENTRIES = 1 << 18
"""The approximate maximum number of entries gathered at a time for rows of a wide factor with unknown attributes."""
MANY_TABLES = 32
"""Small tables are packed if at least this many belong to the same model, or to the same set of models."""
MOST_CELLS = 1 << 12
"""The maximum number of cells of a small table; with the code "unobserved" it must also fit into a lane."""
MOST_JOINT = 1 << 12
"""The maximum number of entries of a joint table of several tables in a 16-bit lane, so that it stays in a cache."""
BITS = (8, 16)
"""The widths of lanes in bits: a word has eight lanes for up to 256 cells, or four lanes for up to 65,536."""
KEPT_ENTRIES = 1 << 24
"""Expanded tables are kept if they have at most this many entries in total; if not, each block computes them again."""
NUMBERS_PER_SLICE = 1 << 17
"""The maximum number of values gathered at a time from packed tables."""
_WINDOW = 128
"""The number of tables from which the next table of a word is chosen."""

Scores = Array | Sequence[Array]
"""An array (R, rows), or a sequence of R arrays (rows,)."""
Averages = tuple[Array | None, ...]
"""For each attribute of a family, the relative frequencies of its values, used for averages if it is unknown.

The child of the family has None: if it is unknown, the family is left out.
"""
Regrouped = tuple[tuple[int, Index], ...]
"""Pairs (position of an attribute, array with the coarse code of each of its codes, "unobserved" last)."""
Word = NDArray[np.uint64]
LEAST_WEIGHT = 1e-17
Change = tuple[int, int]
"""The index of a family of the path, or -1 for the class alone, and the change of its counting number."""
Term = tuple[int, tuple[int, ...], Array]
"""A factor c, attributes R in the order of the region that contains them, and an array (values of each, ..., K)."""


@dataclass(frozen=True)
class Factor:
    """A table with entries for "unobserved": `tables`, shape (R, cells).

    The cell of a row is the mixed-radix number of its codes at `positions`.
    """

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """Add the entry of every row to scores (R, rows); codes[p] (rows,) are the codes at position p."""
        cells = cells_of([codes[p] for p in self.positions], self.shape)
        entries = np.empty(len(cells))
        for row, table in zip(scores, self.tables, strict=True):
            np.take(table, cells, out=entries, mode="clip")
            row += entries


@dataclass(frozen=True)
class WideFactor:
    """A table (R, cells) without entries for "unobserved"; the code shape[i] on axis i means that the value is unknown.

    averages: the frequencies by which entries are averaged over unknown values.
    """

    positions: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    averages: Averages

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """Add the entry of every row, averaged over its unknown values, to scores (R, rows).

        codes[p] (rows,): the codes at position p.
        """
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        rows = np.flatnonzero(unknown.any(axis=0))
        cells = cells_of([np.where(u, 0, digit) for u, digit in zip(unknown, digits, strict=True)], self.shape)
        for row, table in zip(scores, self.tables, strict=True):
            entries = np.take(table, cells, mode="clip")
            # averaged below, pattern by pattern
            entries[rows] = 0.0
            row += entries
        for pattern in np.unique(unknown[:, rows], axis=1).T:
            # offsets and weights of all combinations of the unknown digits, which are 0 in `cells`
            offsets, weights = np.zeros(1, dtype=np.intp), np.ones(1)
            is_left_out = False
            for i in np.flatnonzero(pattern).tolist():
                average = self.averages[i]
                if average is None:
                    is_left_out = True  # the family's own attribute is unknown
                    break
                # cell numbers of all joint values: (combinations so far, values of axis i), flattened
                stride = int(np.prod(self.shape[i + 1 :], dtype=np.intp))
                offsets = np.add.outer(offsets, stride * np.arange(self.shape[i])).ravel()
                weights = np.multiply.outer(weights, average).ravel()
            if is_left_out:
                continue
            alike = rows[(unknown[:, rows] == pattern[:, None]).all(axis=0)]
            step = max(1, GATHERED_ENTRIES // offsets.size)
            for start in range(0, alike.size, step):
                block = alike[start : start + step]
                for row, table in zip(scores, self.tables, strict=True):
                    # not a product of matrices, whose bits depend on the number of rows
                    row[block] += (table[cells[block, None] + offsets] * weights).sum(axis=1)


@dataclass(frozen=True)
class SharedFactor:
    """A factor of one or more of the models scored together; rows: the indices of their score rows among all."""

    rows: tuple[int, ...]
    factor: Factor | WideFactor | PackedTables

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add the entry of every row to scores (score rows of all models, rows)."""
        self.factor.add_to([scores[row] for row in self.rows], codes)


class SmallTable(NamedTuple):
    """A table to be packed, with entries (R, cells).

    digits[i] (codes + 1,): the digit on axis i of each code at positions[i]; the last code, "unobserved", has the digit
    shape[i]. averages: returns the averages of the family; not called before a row has unknown values.
    """

    positions: tuple[int, ...]
    digits: tuple[Index, ...]
    shape: tuple[int, ...]
    entries: Array
    averages: Callable[[], Averages]

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def expanded_size(self) -> int:
        """The number of entries of the expanded table."""
        return len(self.entries) * math.prod(n + 1 for n in self.shape)

    def expanded(self) -> SmallTable:
        """Return the table with "unobserved" as one more value on every axis."""
        entries = expand(self.entries.reshape(-1, *self.shape), self.averages())
        return self._replace(shape=entries.shape[1:], entries=entries.reshape(len(entries), -1))


class LookUps(NamedTuple):
    """Joint tables that are looked up together: each lane of a packed word holds the cell number of a row in one table.

    bits: the width of a lane. words: pairs (position, what each code adds to the word). tables: the joint table of each
    lane, (cells,), or (cells, R) with several score rows.
    """

    bits: int
    words: tuple[tuple[int, Word], ...]
    tables: tuple[Array, ...]


@dataclass(frozen=True)
class PackedTables:
    """Small tables that are looked up together; unobserved: pairs (position, the code for "unobserved" there)."""

    tables: tuple[SmallTable, ...]
    unobserved: tuple[tuple[int, int], ...]

    @cached_property
    def complete(self) -> tuple[LookUps, ...]:
        """The words for rows in which nothing is unknown."""
        return tuple(_pack(self.tables))

    def add_to(self, scores: Scores, codes: Sequence[Index]) -> None:
        """Add the entries of every row to scores (R, rows); codes[p] (rows,) are the codes at position p."""
        is_incomplete = np.zeros(len(codes[self.unobserved[0][0]]), bool)
        for p, code in self.unobserved:
            is_incomplete |= codes[p] == code
        if not is_incomplete.any():
            _add_packed_entries(self.complete, scores, codes, slice(None))
            return
        _add_packed_entries(self.complete, scores, codes, np.flatnonzero(~is_incomplete))
        for look_ups in self.kept_parts or self._pack_expanded_tables():
            _add_packed_entries(look_ups, scores, codes, np.flatnonzero(is_incomplete))

    @cached_property
    def kept_parts(self) -> tuple[tuple[LookUps, ...], ...] | None:
        """The words for rows in which something is unknown, computed on first use, or None if too large to keep."""
        is_kept = sum(table.expanded_size for table in self.tables) <= KEPT_ENTRIES
        return tuple(self._pack_expanded_tables()) if is_kept else None

    def _pack_expanded_tables(self) -> Iterator[tuple[LookUps, ...]]:
        """Pack the expanded tables; yield words for at most KEPT_ENTRIES / 8 entries, or one table, at a time."""
        part, entries = list[SmallTable](), 0
        for table in self.tables:
            if part and entries + table.expanded_size > KEPT_ENTRIES // 8:
                yield tuple(_pack(part))
                part, entries = [], 0
            part.append(table.expanded())
            entries += table.expanded_size
        yield tuple(_pack(part))


TableFactor = Factor | WideFactor | PackedTables | SharedFactor


def table_factors(
    models: Sequence[Tables], schema: Schema, used: Sequence[int]
) -> tuple[tuple[TableFactor, ...], Regrouped]:
    """Return the factors of one or several models, and the regrouped attributes that they use.

    Positions first number the attributes `used` and then the regrouped attributes, whose coarse codes are looked up
    once per block of rows. Packed tables use the ungrouped attributes, since their look-ups include the grouping.
    """
    families = _entries_by_family(models)
    # a small table fits into a lane, with the code "unobserved" too
    is_small = [
        math.prod(family.shape) <= MOST_CELLS and math.prod(n + 1 for n in family.shape) <= 1 << BITS[-1]
        for family, _, _ in families
    ]
    # `owners`: the models that have the table, whose score rows it adds to
    n_small = Counter(owners for (_, owners, _), small in zip(families, is_small, strict=True) if small)
    is_packed = [
        small and n_small[owners] >= MANY_TABLES for (_, owners, _), small in zip(families, is_small, strict=True)
    ]
    regrouped = regrouped_attributes(
        family for (family, _, _), packed in zip(families, is_packed, strict=True) if not packed
    )
    axes: list[BinnedAttribute] = [*((a, None) for a in used), *regrouped]
    position_of = {axis: place for place, axis in enumerate(axes)}
    factors: list[tuple[tuple[int, ...], Factor | WideFactor | PackedTables]] = []
    packed_tables: dict[tuple[int, ...], list[SmallTable]] = {}
    for (family, owners, entries), packed in zip(families, is_packed, strict=True):
        shape, expanded_shape = family.shape, tuple(n + 1 for n in family.shape)
        if packed:
            positions = tuple(position_of[a, None] for a in family.attributes)
            digits = tuple(
                np.array((*(grouping or range(n)), n), np.intp)
                for (_, grouping), n in zip(family.binned_attributes, shape, strict=True)
            )
            averages_of = partial(unobserved_averages, family, schema)
            packed_tables.setdefault(owners, []).append(SmallTable(positions, digits, shape, entries, averages_of))
            continue
        positions = tuple(position_of[axis] for axis in family.binned_attributes)
        averages = unobserved_averages(family, schema)
        # entries for "unobserved" are averaged now, unless they would take up too much memory
        if len(entries) * math.prod(expanded_shape) > max(EXPANDED_ENTRIES, 2 * entries.size):
            factors.append((owners, WideFactor(positions, shape, entries, averages)))
        else:
            tensor = expand(entries.reshape(-1, *shape), averages)
            factors.append((owners, Factor(positions, expanded_shape, tensor.reshape(len(entries), -1))))
    for owners, tables in packed_tables.items():
        unobserved = {
            p: len(digits) - 1 for table in tables for p, digits in zip(table.positions, table.digits, strict=True)
        }
        packing = PackedTables(tuple(tables), tuple(sorted(unobserved.items())))
        _ = packing.complete  # made here, so that a scorer is ready for complete rows wherever it is sent
        factors.append((owners, packing))
    coarse = tuple(
        (position_of[a, None], np.array((*grouping, max(grouping) + 1), np.intp)) for a, grouping in regrouped
    )
    if len(models) == 1:
        return tuple(factor for _, factor in factors), coarse
    n_rows = len(score_rows(models[0].bias[None, :]))
    # the score rows of the models follow one another
    rows_of = {m: range(m * n_rows, (m + 1) * n_rows) for m in range(len(models))}
    shared = (SharedFactor(tuple(row for m in owners for row in rows_of[m]), factor) for owners, factor in factors)
    return tuple(shared), coarse


def _entries_by_family(models: Sequence[Tables]) -> list[tuple[Family, tuple[int, ...], Array]]:
    """Return (family, indices of the models that have it, entries) for each family with the class.

    The entries have shape (score rows of these models, cells).
    """
    owned: dict[tuple[Family, int], list[tuple[int, Array]]] = {}
    for m, tables in enumerate(models):
        n_tables: Counter[Family] = Counter()  # a model may have two tables over the same attributes
        for family, weights in zip(tables.families, tables.weights, strict=True):
            if family.by_class:
                owned.setdefault((family, n_tables[family]), []).append((m, weights))
                n_tables[family] += 1
    return [
        (family, tuple(m for m, _ in pairs), np.concatenate([score_rows(weights) for _, weights in pairs]))
        for (family, _), pairs in owned.items()
    ]


def unobserved_averages(family: Family, schema: Schema) -> Averages:
    """Return each attribute's relative training frequencies, for averages if it is unobserved; None for the child."""
    return tuple(
        None if axis == 0 and family.child is not None else relative_frequencies(schema.attributes[a], grouping)
        for axis, (a, grouping) in enumerate(family.binned_attributes)
    )


def expand(tensor: Array, averages: Averages) -> Array:
    """Add entries for "unobserved" as the last code of every axis: (R, n_1, ...) becomes (R, n_1 + 1, ...)."""
    for axis, frequencies in enumerate(averages, start=1):
        if frequencies is None:
            # an unobserved child leaves its table out
            unobserved = np.zeros_like(tensor.take(0, axis))
        else:
            # with earlier axes expanded already, so that several unknown values are averaged too
            unobserved = np.tensordot(tensor, frequencies, axes=(axis, 0))
        tensor = np.concatenate([tensor, np.expand_dims(unobserved, axis)], axis=axis)
    return tensor


def score_rows(weights: Array) -> Array:
    """Return weights (cells, K) as score rows: (K, cells), or for two classes (1, cells), second minus first."""
    rows: Array = np.ascontiguousarray(weights.T)
    if len(rows) == 2:
        rows = rows[1:] - rows[:1]
    return rows


def cells_of(digits: Sequence[Index], shape: Sequence[int]) -> Index:
    """Return the mixed-radix numbers (rows,) of digits, one array (rows,) each; the first digit is most significant.

    Unlike `kernels.arrays.cell_numbers` it takes only arrays of intp, and returns a single digit without a copy.
    """
    cells = digits[0]
    for digit, n in zip(digits[1:], shape[1:], strict=True):
        cells = cells * n
        cells += digit
    return cells


def _add_packed_entries(
    look_ups: Sequence[LookUps], scores: Scores, codes: Sequence[Index], rows: slice | Index
) -> None:
    """Add the entries of the given rows to scores[:, rows], slice by slice."""
    row_numbers = np.arange(len(scores[0]))[rows]
    step = max(1, NUMBERS_PER_SLICE // len(scores))
    used = {p for look_up in look_ups for p, _ in look_up.words}
    for start in range(0, len(row_numbers), step):
        stop = min(start + step, len(row_numbers))
        part: Any = slice(start, stop) if isinstance(rows, slice) else row_numbers[start:stop]
        sums = np.zeros((stop - start, len(scores)) if len(scores) > 1 else stop - start)
        codes_of = {p: codes[p][part] for p in used}
        word, added = np.empty(len(sums), np.uint64), np.empty(len(sums), np.uint64)
        cells, entries = np.empty(len(sums), np.intp), np.empty_like(sums)
        for bits, words, tables in look_ups:
            (p, first), *others = words
            np.take(first, codes_of[p], out=word, mode="clip")
            for p, values in others:
                np.take(values, codes_of[p], out=added, mode="clip")
                word += added
            # (rows, lanes): the cell numbers in the lanes' tables
            lanes = word.view(f"u{bits // 8}").reshape(len(word), -1)
            for lane, table in enumerate(tables):
                cells[:] = lanes[:, lane]  # numpy would convert indices of another type in smaller pieces
                np.take(table, cells, axis=0, out=entries, mode="clip")
                sums += entries
        for row, total in zip(scores, np.atleast_2d(sums.T), strict=True):
            row[part] += total


def _pack(tables: Sequence[SmallTable]) -> Iterator[LookUps]:
    """Yield the words of all tables.

    With several score rows, tables of at most 256 cells use lanes of 8 bits; all others use lanes of 16 bits.
    """
    several = len(tables[0].entries) > 1
    narrow = [table for table in tables if several and table.n_cells <= 1 << BITS[0]]
    wide = [table for table in tables if not several or table.n_cells > 1 << BITS[0]]
    for bits, members in zip(BITS, (narrow, wide), strict=True):
        joint = 1 << bits if bits == BITS[0] else MOST_JOINT // len(tables[0].entries)
        for lanes in _assign_lanes(members, 64 // bits, joint):
            yield _look_ups(lanes, bits)


def _assign_lanes(tables: Sequence[SmallTable], n_lanes: int, joint: int) -> Iterator[list[list[SmallTable]]]:
    """Yield, for each word, the tables of each of its lanes, chosen so that a word needs few attributes.

    The next table is the one that adds the fewest attributes among the next _WINDOW tables in the order of their
    attributes (ties: the first). A lane has at most `joint` joint cells, unless it holds a single table.
    """
    left = iter(sorted(tables, key=lambda table: sorted(table.positions)))
    window = [(table, frozenset(table.positions)) for table in islice(left, _WINDOW)]
    lanes: list[list[SmallTable]] = []
    lane_positions: set[int] = set()
    while window:
        best = min(range(len(window)), key=lambda i: len(window[i][1] - lane_positions))
        table, positions = window.pop(best)
        window += [(following, frozenset(following.positions)) for following in islice(left, 1)]
        lane = next((lane for lane in lanes if _joint_cells(lane) * table.n_cells <= joint), None)
        if lane is not None:
            lane.append(table)
        elif len(lanes) < n_lanes:
            lanes.append([table])
        else:
            yield lanes
            lanes, lane_positions = [[table]], set()
        lane_positions |= positions
    if lanes:
        yield lanes


def _joint_cells(lane: Sequence[SmallTable]) -> int:
    return math.prod(table.n_cells for table in lane)


def _look_ups(lanes: Sequence[Sequence[SmallTable]], bits: int) -> LookUps:
    """Return the look-ups of a word whose lanes hold these tables."""
    words: dict[int, Any] = {}
    joint_tables = []
    for number, lane in enumerate(lanes):
        stride = _joint_cells(lane)
        for table in lane:
            for p, digits, n in zip(table.positions, table.digits, table.shape, strict=True):
                stride //= n
                if p not in words:
                    words[p] = np.zeros((len(digits), 64 // bits), f"u{bits // 8}")
                # The digit of "unobserved", which complete rows never have, may be too large for the lane.
                # digits of a lane sum to a cell number that fits it, so that no lane carries into the next
                words[p][:, number] += (stride * np.minimum(digits, n - 1)).astype(words[p].dtype)
        # The sums of entries over the joint cells; the first table has the most significant digit.
        total = lane[0].entries
        for table in lane[1:]:
            total = (total[:, :, None] + table.entries[:, None, :]).reshape(len(total), -1)
        joint_tables.append(np.ascontiguousarray(total[0] if len(total) == 1 else total.T))
    by_position = tuple((p, lanes_of.view(np.uint64).ravel()) for p, lanes_of in words.items())
    return LookUps(bits, by_position, tuple(joint_tables))


@dataclass(frozen=True)
class PathStage:
    """The changes of one stage.

    weight: the weight of the stage's probabilities. class_change: the change of the class alone if there is no host, 0
    otherwise. hosts: pairs (index of a host family, the changes that are added up in its table).
    """

    weight: float
    class_change: int
    hosts: tuple[tuple[int, tuple[Change, ...]], ...]


def stages_of(path: Path) -> list[PathStage]:
    """Return the stages in the order of their steps, without the steps after the last one with weight."""
    stages, changes = [], defaultdict[int, int](int)
    for step in path.steps:
        for family, change in step.changes:
            changes[family] += change
        if step.weight < LEAST_WEIGHT:
            continue
        # Every change goes to the first host that contains its region; hosts are the regions that no other contains.
        regions: dict[int, tuple[int, ...]] = {
            f: path.families[f].attributes if f >= 0 else () for f, c in changes.items() if c
        }
        largest = set(maximal(region for region in regions.values() if region))
        hosts: dict[int, list[Change]] = {f: [] for f, region in regions.items() if region in largest}
        class_change = 0
        for f, region in regions.items():
            host = next((h for h in hosts if set(region) <= set(regions[h])), None)
            if host is None:
                class_change = changes[f]
            else:
                hosts[host].append((f, changes[f]))
        stages.append(PathStage(step.weight, class_change, tuple((h, tuple(terms)) for h, terms in hosts.items())))
        changes.clear()
    return stages


class SubmodelTensors:
    """The log-probabilities of a path's submodels, plain or with entries for "unobserved".

    The methods take the index of a family, or -1 for the class alone. A plain array is (cardinality, ..., K).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expanded: dict[int, Array] = {-1: path.class_logs}

    def plain(self, f: int) -> Array:
        return self.path.class_logs if f < 0 else self.path.logs[f].reshape(*self.path.families[f].shape, -1)

    def expanded(self, f: int) -> Array:
        if f not in self._expanded:
            self._expanded[f] = expand_submodel(self.plain(f))
        return self._expanded[f]


def host_factor(
    tensors: SubmodelTensors, host: int, changes: Sequence[Change], used: Sequence[int]
) -> Factor | RegionFactor:
    """Return the factor of a host family with the given changes; `used`: the attributes of the scorer, ascending."""
    families, family = tensors.path.families, tensors.path.families[host]
    scopes = {f: families[f].attributes if f >= 0 else () for f, _ in changes}
    positions = tuple(bisect_left(used, a) for a in family.attributes)
    shape = tuple(n + 1 for n in family.shape)
    n_rows = len(score_rows(tensors.path.class_logs[None, :]))
    if n_rows * math.prod(shape) <= max(EXPANDED_ENTRIES, 2 * n_rows * family.n_cells):
        expanded = ((change, scopes[f], tensors.expanded(f)) for f, change in changes)
        return Factor(positions, shape, _region_tables(family.attributes, shape, expanded))
    plain = tuple((change, scopes[f], tensors.plain(f)) for f, change in changes)
    tables = _region_tables(family.attributes, family.shape, plain)
    return RegionFactor(positions, family.attributes, family.shape, tables, plain)


@dataclass(frozen=True)
class RegionFactor:
    """The table of a large region, `tables` (R, cells), and the `terms` that add up to it.

    The code shape[i] on axis i means that attribute region[i] is unknown.
    """

    positions: tuple[int, ...]
    region: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    terms: tuple[Term, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add the entry of every row, marginalized over its unknown attributes, to scores (R, rows)."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        patterns, pattern_of_row = np.unique(unknown, axis=1, return_inverse=True)
        for k, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(pattern_of_row.ravel() == k)
            known = [axis for axis, hidden in enumerate(pattern) if not hidden]
            tables = self.tables
            if len(known) < len(pattern):
                # the table for rows in which only these axes are known
                region = tuple(self.region[a] for a in known)
                margins = [
                    (
                        change,
                        tuple(i for i in attributes if i in region),
                        log_margin(table, [axis for axis, i in enumerate(attributes) if i not in region]),
                    )
                    for change, attributes, table in self.terms
                ]
                tables = _region_tables(region, [self.shape[a] for a in known], margins)
            cells = cells_of([digits[a][rows] for a in known], [self.shape[a] for a in known]) if known else 0
            scores[:, rows] += tables[:, cells] if known else tables


def _region_tables(region: tuple[int, ...], shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """Return the sum D of the terms as score rows (R, cells of `shape`).

    The attributes of each term are a subset of `region`, in its order.
    """
    total: Array | None = None
    for factor, attributes, table in terms:
        sizes = dict(zip(attributes, table.shape[:-1], strict=True))
        # length 1 on the axes of attributes that the term lacks
        aligned = table.reshape(*(sizes.get(i, 1) for i in region), -1)
        if total is None:
            total = np.zeros((*shape, aligned.shape[-1]))
        total += factor * aligned
    assert total is not None
    return score_rows(total.reshape(-1, total.shape[-1]))


def log_margin(table: Array, axes: Collection[int]) -> Array:
    """Marginalize a table of log-probabilities over the given axes and remove them."""
    if not axes:
        return table
    summed = tuple(axes)
    return np.asarray(np.squeeze(log_sum(table, summed), summed))


def expand_submodel(table: Array) -> Array:
    """Append the marginals as the last code, "unobserved", to every axis of a table (n_1, ..., K) except the last."""
    for axis in range(table.ndim - 1):
        table = np.concatenate([table, np.expand_dims(log_margin(table, (axis,)), axis)], axis=axis)
    return table
