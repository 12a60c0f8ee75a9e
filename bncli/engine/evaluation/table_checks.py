"""Check a table for problems that make held-out metrics too good: rows that belong together, leaks, drift over time.

- `repeated-rows`: many rows have a copy or a near copy.

  *Near copies* are found by distances. The distance between two rows in a numeric attribute is four times the
  difference of their ranks, divided by the number of rows, but at most 1; in a categorical attribute it is 0 or 1.
  Their distance d is the mean over the attributes. Of the numeric attributes with more than FEW_VALUES values, the
  quarter in which the two rows differ most is left out, so that a date or a score may differ. Let d_1 <= d_2 <= ... be
  the distances of a row from all others. The row has near copies if for some j <= MOST_COPIES

      (d_(j+1) + e) / (d_j + e) > GAP,    e = mean over attributes of (chance that two rows tie) / number of attributes,
                                          but at least 0.0001

  In a table of independent rows neighbours become more distant step by step, so such gaps are rare. If no numeric
  attribute has more than FEW_VALUES values, rows may be equal by chance: then j must also be at least three times the
  number of rows that would equal this one if the attributes were independent.

  *Equal rows*, which agree in every attribute, are also copies in tables that have such a numeric attribute. They must
  be at least three times as many as expected by chance, and at least the fraction COPIED of the rows must have them.

  *Noisier copies* are found by their labels. Let kappa_1 be the agreement of labels with the nearest row, by the mean
  distance over all attributes, and kappa_F the agreement with the neighbours F + 1 to 2 F, where F is 10 or, in large
  classes, 20. Both are corrected for chance, as defined below. The finding needs

      kappa_1 >= SAME_LABEL,    kappa_F <= FADED kappa_1

  Rows of small classes do not count, because neighbours that far away must be of other classes. In tables of
  independent rows labels change slowly with the distance, unless the rows form a design and a rule determines the
  labels. So the nearest rows must also be nearer than in a table with every column shuffled, by more than a tenth and
  by more than three standard errors.
- `grouped-rows`: a column of names or integers whose rows with the same value have the same label far more often than
  rows with neighbouring values. With A the probability that two rows with the same value have the same label, and C
  the probability for any two rows, the agreement is (A - C) / (1 - C), as in Cohen's kappa.
- `leak`: an attribute that almost determines the class. It explains at least the fraction LEAK of the class entropy,
  estimated by predicting each row from the other rows with the same value (for numbers, in the same of 32 intervals
  with about the same number of rows), or, if rows belong to units, from the rows of other units.
- `drift`: the class frequencies, or many attributes, change along a date.
- `too-good`: nothing else was found, the held-out log-loss is near 0, and no attribute explains more than half of the
  entropy. Rules over attributes of few values can be learned without error (tic-tac-toe), so either a tenth of the rows
  must have near copies, or at least half of the attributes must have many values.

The thresholds were chosen such that about 60 public data sets with independent rows have no finding (except `mushroom`,
where an attribute nearly determines the class), and tables with such defects have one (tests/table_defects.py).

Conventions:
- At most 2 x MOST_ROWS rows are compared. They are rows with similar values in the attributes with the most values,
  since a random sample of rows would hold few copies.
- Encoded tables are not checked. Row weights are ignored.

Cost: two sorts of the values of each attribute, and N_QUERIES x MOST_ROWS distances.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import (
    CategoricalColumn,
    CodedColumn,
    Column,
    Columns,
    KnownCuts,
    NumericColumn,
    is_constant,
)
from bncli.engine.data.schema import DateForm
from bncli.engine.data.splits import units_of_several_rows
from bncli.engine.discretizers.mdl import cuts_of_ordered
from bncli.engine.evaluation.value_ranks import RankedValues, order_numbers, rank_values
from bncli.engine.kernels.arrays import Array, Index, Integers

N_QUERIES = 100
MOST_ROWS = 10_000
MOST_ATTRIBUTES = 40
FEW_VALUES = 20
MOST_COPIES = 100
GAP = 4.5
COPIED = 0.25
"""A finding is reported if at least this fraction of the rows has near copies."""
SAME_LABEL, FADED, NEARER = 0.45, 0.25, 0.9
LEAST_QUERIES = 40
"""With fewer usable queries, the labels of neighbours are not informative enough."""
LEAK = 0.85
LEAST_ROWS = 40
_SLIGHTLY_COPIED = 0.1
_INTERVALS = 32
_BLOCK = 1 << 16
_ROWS_PER_THREAD = 1 << 14
"""Tables of fewer rows are checked in the calling thread, and their columns are not sorted with the classes."""


@dataclass(frozen=True)
class Finding:
    """A problem of a table that makes held-out metrics misleading; `option` is the option that would help.

    `rows` is the number of rows concerned, which is estimated for `repeated-rows`.
    """

    kind: str
    columns: tuple[str, ...]
    rows: int
    message: str
    option: str

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "rows": self.rows,
            "message": self.message,
            "option": self.option,
        }


@dataclass(frozen=True)
class TableCheck:
    """The findings of a table, and the values that `too_good` needs.

    - copied: fraction of the rows that have near copies
    - many_values: whether at least half of the attributes have more than FEW_VALUES values
    - best_attribute, explained: the attribute that explains the largest fraction of the class entropy, and the fraction
    - running_numbers: the numeric attributes with a different integer in every row, in a range of at most two integers
      per row; they may be sequential identifiers
    """

    findings: tuple[Finding, ...]
    n_rows: int
    copied: float
    many_values: bool
    best_attribute: str
    explained: float
    running_numbers: tuple[str, ...] = ()


class _ColumnFacts(NamedTuple):
    """Facts about a column: its number of distinct values, and how its values relate to the class.

    agreement: the agreement of labels among rows with the same value. explained: the fraction of the class entropy that
    the values explain.
    """

    n_values: int
    agreement: float
    explained: float


def check_table(
    table: Columns, left_out: Mapping[str, Column], threads: int = 1, *, known_cuts: KnownCuts | None = None
) -> TableCheck | None:
    """Check a table with labels; return None if it is encoded, has no labels or has fewer than LEAST_ROWS rows.

    - left_out: further columns of the same rows, which are not used for learning but may identify rows that belong
      together
    - known_cuts: receives the MDL cuts of columns that the checks sort, unless rows have weights
    """
    label, n_rows, by = table.label, table.n_rows, table.split_by
    if label is None or n_rows < LEAST_ROWS or any(isinstance(c, CodedColumn) for c in table.attributes.values()):
        return None
    n_labels, labels, units_of_rows = len(label.levels), label.codes, units_of_several_rows(by)
    columns_as_read = table.as_read
    columns = {**left_out, **columns_as_read}
    is_grouped = by is not None and by.units is not None
    known = dict[str, RankedValues]()
    is_short = n_rows < _ROWS_PER_THREAD or units_of_rows is not None  # or rows are compared by units

    def examine(name: str) -> _ColumnFacts:
        column, agreement, explained = columns[name], 0.0, 0.0
        may_group = not is_grouped and _may_group(column)
        if is_constant(column) or not (may_group or name in columns_as_read):
            return _ColumnFacts(1, 0.0, 0.0)
        in_order = may_group or is_short or _examine_in_order(table, name, known, known_cuts)
        if isinstance(in_order, _ColumnFacts):
            return in_order
        ranked = rank_values(column, labels, n_labels)
        if may_group:
            agreement = _agreement_within(ranked, labels, n_labels)
        if name in columns_as_read:
            explained = _explained(ranked, column, labels, n_labels, units_of_rows)
            if ranked.is_small:
                known[name] = ranked
        return _ColumnFacts(ranked.n_values, agreement, explained)

    with ThreadPoolExecutor(threads) if threads > 1 and n_rows >= _ROWS_PER_THREAD else nullcontext() as pool:
        facts = dict(zip(columns, (map if pool is None else pool.map)(examine, columns), strict=True))
    n_values = {name: facts[name].n_values for name in columns_as_read}
    findings, copied, units = list[Finding](), 0.0, ""
    if not is_grouped:
        units = max(columns, key=lambda name: facts[name].agreement, default="")
        if units and facts[units].agreement > 0:
            n_units = int(np.count_nonzero(rank_values(columns[units]).sizes))
            option = f"--group {shlex.quote(units)}"
            message = (
                f'rows with the same "{units}" ({n_units:,} values) mostly have the same label; if they belong '
                f"together, add {option}"
            )
            findings.append(Finding("grouped-rows", (units,), n_rows, message, option))
        else:
            units = ""
        rows = _similar_rows(columns_as_read, n_values, n_rows)
        found = find_copies(columns_as_read, n_values, rows, labels, known)
        copied = len(found.copies) / max(len(found.queries), 1)
        if copied >= COPIED or (found.are_noisy and not units):
            grouping = {name: column for name, column in columns.items() if _may_group(column)}
            name = units or (_column_of_copies(grouping, rows, found.copies) if copied >= COPIED else "")
            option = f"--group {shlex.quote(name) if name else 'COLUMN'}"
            what = f"{_percent(copied)} of the rows have duplicates or near-duplicates; if these belong together"
            if copied < COPIED:
                what = (
                    f"{_percent(found.near.agreement)} of the rows have the same label as the most similar row, but "
                    f"only {_percent(found.far.agreement)} the same as slightly less similar rows, which suggests "
                    "near-duplicates; if they belong together"
                )
            share = max(copied, found.near.kappa if found.are_noisy else 0.0)
            of_copies = (name,) if name else ()
            findings.append(Finding("repeated-rows", of_copies, round(share * n_rows), f"{what}, add {option}", option))
    explained = {name: facts[name].explained for name, column in columns_as_read.items() if not is_constant(column)}
    for name, share in explained.items():
        if share >= LEAK and name != units:
            option = f"--ignore {shlex.quote(name)}"
            message = (
                f'"{name}" alone explains {_percent(share)} of the class; if it is known only after the class, '
                f"add {option}"
            )
            findings.append(Finding("leak", (name,), n_rows, message, option))
    if by is None or by.times is None:
        findings += _drifts(table, labels)
    best = max(explained, key=lambda name: explained[name], default="")
    n_fine = sum(n > FEW_VALUES for n in n_values.values())
    running = tuple(
        name
        for name, column in columns_as_read.items()
        if isinstance(column, NumericColumn)
        and n_values[name] == n_rows
        and _may_group(column)
        and float(column.values.max()) - float(column.values.min()) < 2 * n_rows  # false if a value is missing
    )
    best_explained = explained.get(best, 0.0)
    return TableCheck(tuple(findings), n_rows, copied, 2 * n_fine >= len(n_values), best, best_explained, running)


def _examine_in_order(
    table: Columns, name: str, known: dict[str, RankedValues], known_cuts: KnownCuts | None
) -> _ColumnFacts | None:
    """Return the facts about a numeric column, from sorting it with the classes; store its cuts, and ranks if small.

    Return None for a categorical column, and where `order_numbers` returns None.
    """
    column, label = table.attributes[name], table.label
    assert label is not None
    if not isinstance(column, NumericColumn):
        return None
    found = order_numbers(column, label.codes, len(label.levels))
    if found is None:
        return None
    if known_cuts is not None and table.weights is None:
        known_cuts.cuts[name] = column, cuts_of_ordered(found.column, len(label.levels))
    ranked = found.repeated(column.values)
    if ranked is not None:
        known[name] = ranked
    return _ColumnFacts(found.n_values, 0.0, _share_explained(found.interval_counts(_INTERVALS)))


def too_good(check: TableCheck, log_loss: float | None, base_log_loss: float | None) -> Finding | None:
    """Return the finding that a held-out log-loss is too good to be true, or None.

    None is also returned if the check has findings, an attribute explains more than half of the class entropy, or a
    log-loss is unknown.
    """
    if check.findings or log_loss is None or not base_log_loss or check.explained > 0.5:
        return None
    most = 0.1 if check.copied >= _SLIGHTLY_COPIED else 0.03 if check.many_values else 0.0
    if not most or log_loss > most * base_log_loss:
        return None
    message = (
        f"the held-out log-loss {log_loss:.3g} looks too good to be true (class frequencies: {base_log_loss:.3g}; the "
        f'best attribute, "{check.best_attribute}", explains {_percent(check.explained)} of the class); if rows belong '
        "together, add --group COLUMN"
    )
    return Finding("too-good", (check.best_attribute,), check.n_rows, message, "--group COLUMN")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count_pairs(first: Integers, second: Integers, n_first: int, n_second: int) -> NDArray[np.int64]:
    """Return the number of rows with each pair of codes, (n_first, n_second)."""
    counts = np.zeros(n_first * n_second, np.int64)
    for start in range(0, len(first), block := max(_BLOCK, len(counts))):
        cells = first[start : start + block].astype(np.intp)
        cells *= n_second
        cells += second[start : start + block]
        counts += np.bincount(cells, minlength=len(counts))
    return counts.reshape(n_first, n_second)


def _may_group(column: Column) -> bool:
    """Return whether the values are names or integers, which may identify units, and not parts of dates."""
    if isinstance(column, CategoricalColumn):
        return True
    if isinstance(column.form, DateForm):
        return False
    values = column.values
    # the first few values decide most columns
    samples = (values[:64], values)
    return values.dtype.kind in "iu" or all((np.isnan(each) | (each == np.floor(each))).all() for each in samples)


def _agreement_within(ranked: RankedValues, labels: Integers, n_labels: int) -> float:
    """Return the agreement of labels among rows with the same value, or 0 if it does not indicate units.

    Units are many and small, and labels agree within them clearly more often than by chance and than between rows with
    neighbouring values.
    """
    n_rows, sizes = len(labels), ranked.sizes
    n_values = np.count_nonzero(sizes)
    # units are many and small, and most rows share theirs with others
    if n_values < 20 or sizes.max() > max(0.05 * n_rows, 10) or sizes[sizes > 1].sum() < 0.5 * n_rows:
        return 0.0
    counts = ranked.pairs
    if counts is None:
        counts = _count_pairs(ranked.ranks(), labels, len(sizes), n_labels)
    counts, sizes = counts[sizes > 0].astype(np.float64), sizes[sizes > 0].astype(np.float64)
    shares = counts.sum(axis=0) / n_rows
    chance = float(np.square(shares).sum())
    several = sizes > 1
    same = (counts * (counts - 1)).sum(axis=1)[several] / (sizes * (sizes - 1))[several]
    within = float(np.average(same, weights=sizes[several]))
    products = sizes[1:] * sizes[:-1]
    between = float(np.average((counts[1:] * counts[:-1]).sum(axis=1) / products, weights=np.sqrt(products)))
    n_pairs = float((sizes * (sizes - 1)).sum()) / 2
    pairs = float((counts * (counts - 1)).sum()) / 2 / n_pairs
    if chance >= 1 or pairs - chance < 6 * np.sqrt(chance * (1 - chance) / n_pairs):
        return 0.0
    agreement, smooth = (within - chance) / (1 - chance), (between - chance) / (1 - chance)
    return agreement if agreement >= 0.2 and agreement - max(smooth, 0.0) >= 0.15 else 0.0


def _similar_rows(columns: Mapping[str, Column], n_values: Mapping[str, int], n_rows: int) -> Index:
    """Return at most 2 x MOST_ROWS ascending row indices, of rows with similar values in the most varied attributes."""
    rng = np.random.Generator(np.random.PCG64(0))
    rows = np.arange(n_rows)
    for name in sorted(columns, key=lambda each: -n_values[each]):
        if len(rows) <= MOST_ROWS:
            break
        if n_values[name] >= n_rows:  # a column with a different value in every row gives no evidence of copies
            continue
        ranked = rank_values(columns[name])
        sizes = ranked.sizes if len(rows) == n_rows else np.bincount(ranked.ranks(rows))
        begin = int(rng.integers(0, len(rows) - MOST_ROWS))
        # the values of rows `begin` and `begin` + MOST_ROWS - 1 in ascending order
        low, high = np.searchsorted(np.cumsum(sizes), [begin, begin + MOST_ROWS - 1], side="right")
        values = np.arange(len(ranked.sizes))
        is_between = ranked.groups_of_rows((values >= low).astype(np.uint8) + (values > high)) == 1
        rows = rows[is_between[rows]]
    return rows if len(rows) <= 2 * MOST_ROWS else np.sort(rng.permutation(rows)[:MOST_ROWS])


class LabelAgreement(NamedTuple):
    """The probability that a row and certain neighbours have the same label, and Cohen's kappa of this agreement."""

    agreement: float
    kappa: float


class Neighbours(NamedTuple):
    """The rows that were searched for near copies, and their nearest neighbours.

    - queries: the rows that were tried, as positions in the rows given
    - copies: each query that has near copies, with the positions of the copies
    - near, far: the agreement of labels with the nearest row, and with neighbours a little further away
    - are_noisy: whether this agreement shows that the nearest rows are noisy copies
    """

    queries: Index
    copies: list[tuple[int, Index]]
    near: LabelAgreement = LabelAgreement(0.0, 0.0)
    far: LabelAgreement = LabelAgreement(0.0, 0.0)
    are_noisy: bool = False


def find_copies(
    attributes: Mapping[str, Column],
    n_values: Mapping[str, int],
    rows: Index,
    labels: Integers,
    known: Mapping[str, RankedValues] = MappingProxyType({}),
) -> Neighbours:
    """Search for near copies of N_QUERIES of the rows, and compare their labels with the labels of their neighbours.

    - rows: the indices of the rows to compare
    - n_values: the number of distinct values of each attribute, where missing values count as one
    - known: the ranks of some attributes, keyed by name
    """
    rng = np.random.Generator(np.random.PCG64((0, 1)))
    names = [
        name
        for name, column in attributes.items()
        # not a column of whole numbers with a different value in every row
        if isinstance(column, CategoricalColumn) or n_values[name] < len(labels) or not _may_group(column)
    ]
    if len(names) > MOST_ATTRIBUTES:
        names = [names[i] for i in np.sort(rng.permutation(len(names))[:MOST_ATTRIBUTES])]
    n_rows, n = len(rows), len(names)
    queries = np.sort(rng.permutation(n_rows)[:N_QUERIES])
    if n < 2 or n_rows < LEAST_ROWS:
        return Neighbours(queries, [])
    own_labels = np.unique(labels[rows], return_inverse=True)[1]
    in_class = np.bincount(own_labels)
    agreements = list[tuple[float, float, float]]()  # with the nearest row, with those further away, by chance
    counted, nearest_distances = list[int](), list[float]()
    ties, coarse, fine = 0.0, list[Array](), list[Array]()
    expected = np.full(n_rows, float(n_rows))
    for name in names:
        column = attributes[name]
        numbers, share, chance_of_tie = _compared(column, known.get(name) or rank_values(column), rows)
        ties += chance_of_tie
        expected *= share
        is_fine = isinstance(column, NumericColumn) and n_values[name] > FEW_VALUES
        (fine if is_fine else coarse).append(numbers)
    table = np.stack([*coarse, *fine]).astype(np.float32)
    n_coarse, n_kept = len(coarse), len(fine) - len(fine) // 4
    blur = ties / n / (n_coarse + n_kept)
    most = min(MOST_COPIES, n_rows // 4)
    found, equal = list[tuple[int, Index]](), list[tuple[int, Index]]()
    n_at_once = max(1, 400_000 // table.size)
    for block in np.split(queries, range(n_at_once, len(queries), n_at_once)):
        own, own_class = np.arange(len(block)), in_class[own_labels[block]]
        distances = np.minimum(np.abs(table[:, None, :] - table[:, block, None]), 1)  # attributes x queries x rows
        whole = distances.sum(axis=0)
        is_equal = whole == 0
        for i in np.flatnonzero(is_equal.sum(axis=1) - 1 >= np.maximum(1.0, 3 * expected[block])).tolist():
            same_rows = np.flatnonzero(is_equal[i])
            equal.append((int(block[i]), same_rows[same_rows != block[i]]))
        whole[own, block] = np.inf
        for first, usable in ((10, (own_class >= 160) & (own_class < 320)), (20, own_class >= 320)):
            if usable.any():
                nearest, steps = _nearest(whole[usable], 2 * first)
                tied = steps <= steps[:, :1] + 1e-6
                same = own_labels[nearest] == own_labels[block[usable], None]
                counted += block[usable].tolist()
                nearest_distances += steps[:, 0].tolist()
                near_share = (same & tied).sum(axis=1) / tied.sum(axis=1)
                chance_of_label = own_class[usable] / n_rows
                agreements += zip(near_share, same[:, first : 2 * first].mean(axis=1), chance_of_label, strict=True)
        kept = distances[n_coarse:]
        if n_kept < len(fine):
            kept = np.partition(kept, n_kept - 1, axis=0)[:n_kept]
        distance = (distances[:n_coarse].sum(axis=0) + kept.sum(axis=0)) / (n_coarse + n_kept)
        distance[own, block] = np.inf
        nearest, steps = _nearest(distance, most)
        steps = steps + max(blur, 1e-4)
        gaps = steps[:, 1:] / steps[:, :-1]
        j = gaps.argmax(axis=1)
        enough = np.ones(len(block), bool) if fine else j + 1 >= 3 * expected[block]
        for i in np.flatnonzero((gaps[own, j] > GAP) & enough).tolist():
            found.append((int(block[i]), nearest[i, : j[i] + 1]))
    if fine and len(equal) >= COPIED * len(queries) and len(equal) > len(found):
        found = equal
    if len(agreements) < LEAST_QUERIES:
        return Neighbours(queries, found)
    near, far, chance = (float(value) for value in np.mean(agreements, axis=0))
    kappas = ((share - chance) / (1 - chance) if chance < 1 else 0.0 for share in (near, far))
    agreement = [LabelAgreement(*each) for each in zip((near, far), kappas, strict=True)]
    are_noisy = agreement[0].kappa >= SAME_LABEL and agreement[1].kappa <= FADED * agreement[0].kappa
    if are_noisy:
        shuffled = np.stack([values[rng.permutation(n_rows)] for values in table])
        by_chance = [np.minimum(np.abs(shuffled - table[:, [query]]), 1).sum(axis=0).min() for query in counted]
        nearer = np.array(by_chance) - nearest_distances
        least = max((1 - NEARER) * float(np.mean(by_chance)), 3 * float(nearer.std()) / math.sqrt(len(nearer)))
        are_noisy = float(nearer.mean()) > least
    return Neighbours(queries, found, agreement[0], agreement[1], are_noisy)


def _compared(column: Column, ranked: RankedValues, rows: Index) -> tuple[Array, Array, float]:
    """Return, for each of `rows`, a number and the fraction of all rows with its value; and the chance of a tie.

    The distance between two rows in this attribute is the difference of their numbers, but at most 1. The last result
    is the probability that two random rows have the same value.
    """
    n_rows = len(column.codes if isinstance(column, CategoricalColumn) else column.values)
    before, upto = ranked.positions(rows)
    # levels may lack rows, so that their number says nothing about ties
    is_distinct = isinstance(column, NumericColumn) and ranked.n_values == n_rows
    chance_of_tie = 1 / n_rows if is_distinct else float(np.square(ranked.sizes / n_rows).sum())
    if isinstance(column, CategoricalColumn):
        own = 1000 * ranked.ranks(rows).astype(np.float64)  # any two values are at least 1 apart
    else:
        own = 2 * ((before + upto) / n_rows)  # four times the middle of the rows with the value
        if column.values.dtype.kind == "f":
            own[np.isnan(column.values[rows])] = 1000
    return own, (upto - before) / n_rows, chance_of_tie


def _nearest(distances: Array, most: int) -> tuple[Index, Array]:
    """Return the `most + 1` nearest rows of each query, nearest first, and their distances.

    distances is (queries, rows); both results are (queries, most + 1).
    """
    nearest = np.argpartition(distances, most, axis=1)[:, : most + 1]
    steps = np.take_along_axis(distances, nearest, axis=1)
    order = np.argsort(steps, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1), np.take_along_axis(steps, order, axis=1)


def _column_of_copies(grouping: Mapping[str, Column], rows: Index, copies: Sequence[tuple[int, Index]]) -> str:
    """Return the column in which copies, and hardly any other rows, have the same value, or "" if there is none."""
    best, most = "", 0.8
    for name, column in grouping.items():
        own = rank_values(column).ranks(rows)
        same = np.mean([np.mean(own[near] == own[query]) for query, near in copies])
        # not a column that many other rows share too
        sizes = np.bincount(own)
        others = np.mean([len(near) / max(sizes[own[query]] - 1, 1) for query, near in copies])
        if min(same, others) > most:
            best, most = name, float(min(same, others))
    return best


def _explained(
    ranked: RankedValues, column: Column, labels: Integers, n_labels: int, units: Index | None = None
) -> float:
    """Return the fraction of the class entropy that an attribute explains; each row is predicted from other rows.

    With units (N,), each row is predicted from the rows of other units. The fraction may be negative.
    """
    n_rows = len(labels)
    counts = ranked.pairs if units is None else None
    if counts is None:
        is_number = isinstance(column, NumericColumn)
        codes, last = ranked.intervals(_INTERVALS) if is_number else (ranked.ranks(), ranked.n_values - 1)
        counts = _count_pairs(codes, labels, last + 1, n_labels)
    elif isinstance(column, NumericColumn):
        intervals, of_value = np.zeros((_INTERVALS, n_labels), np.int64), ranked.intervals_of_values(_INTERVALS)
        starts = np.flatnonzero(np.diff(of_value, prepend=-1))
        intervals[of_value[starts]] = np.add.reduceat(counts, starts, axis=0)
        counts = intervals[: of_value[-1] + 1]
    if units is None:
        return _share_explained(counts)
    table, shares = counts.astype(np.float64), counts.sum(axis=0) / n_rows
    entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    if not entropy > 0:
        return 0.0
    # the other rows with the same value, and one more row with the class frequencies
    of_unit = np.unique(codes * np.int64(units.max() + 1) + units, return_inverse=True)[1]
    _, of_label, n_own = np.unique(of_unit * n_labels + labels, return_inverse=True, return_counts=True)
    others = table[codes, labels] - n_own[of_label]
    sizes_of_others = table.sum(axis=1)[codes] - np.bincount(of_unit)[of_unit]
    loss = -float(np.log((others + shares[labels]) / (sizes_of_others + 1)).sum()) / n_rows
    return 1 - loss / entropy


def _share_explained(counts: NDArray[np.int64]) -> float:
    """Return the fraction of the class entropy that values explain, from the row counts per value and class, (n, K)."""
    table, n_rows = counts.astype(np.float64), int(counts.sum())
    shares = table.sum(axis=0) / n_rows
    entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    if not entropy > 0:
        return 0.0
    predicted = (np.maximum(table - 1, 0) + shares) / table.sum(axis=1, keepdims=True).clip(1)
    loss = -float((table * np.log(np.where(table > 0, predicted, 1))).sum()) / n_rows
    return 1 - loss / entropy


def _drifts(table: Columns, labels: Integers) -> list[Finding]:
    """Return a finding for each date column along which the class frequencies or many attributes change."""
    findings, columns_as_read = list[Finding](), table.as_read
    for column in columns_as_read.values():
        if not (isinstance(column, NumericColumn) and isinstance(column.form, DateForm) and column.form.part == "days"):
            continue
        date = column.form.source
        period = _coarse(column, 4)
        if period.min() == period.max():
            continue
        changed = [
            other
            for other, own in columns_as_read.items()
            if not (isinstance(form := getattr(own, "form", None), DateForm) and form.source == date)
            and _cramers_v(period, _coarse(own, 5)) >= 0.3
        ]
        n_others = sum(getattr(getattr(c, "form", None), "source", None) != date for c in columns_as_read.values())
        of_class = _cramers_v(period, labels) >= 0.2
        if of_class or len(changed) >= max(2, 0.3 * n_others):
            what = "the class frequencies change" if of_class else f"{len(changed)} attributes change"
            option = f"--time {shlex.quote(date)}"
            message = f'{what} over time ("{date}"); add {option} to test on rows that follow the training rows'
            findings.append(Finding("drift", (date,), table.n_rows, message, option))
    return findings


def _coarse(column: Column, n_groups: int) -> Integers:
    """Divide the values into at most `n_groups` groups of adjacent values with about the same number of rows.

    Return the group of each row, (N,).
    """
    ranked = rank_values(column)
    middles = (np.cumsum(ranked.sizes) - ranked.sizes / 2) / ranked.sizes.sum()
    return ranked.groups_of_rows(np.minimum((middles * n_groups).astype(np.int64), n_groups - 1))


def _cramers_v(first: Integers, second: Integers) -> float:
    """Return Cramer's V of two columns of codes, corrected for chance (Bergsma 2013), from 0 to 1."""
    counts = _count_pairs(first, second, int(first.max()) + 1, int(second.max()) + 1)
    table = counts[counts.any(axis=1)][:, counts.any(axis=0)] / len(first)
    shape, n = table.shape, len(first)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    phi = float(((table - expected) ** 2 / expected).sum()) - (shape[0] - 1) * (shape[1] - 1) / (n - 1)
    least = min(size - (size - 1) ** 2 / (n - 1) for size in shape) - 1
    return float(np.sqrt(max(phi, 0.0) / least)) if least > 0 else 0.0
