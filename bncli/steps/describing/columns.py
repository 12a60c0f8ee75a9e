"""What is said of one column: its type, its values, what it tells of the class, what `fit` will do with it and why.

The information is the plug-in mutual information with the class, in bits, over the rows whose class is known and by
their weights; missing is a value of its own, as in learning by default. Numbers of more than 20 different values are
cut first, by the default discretizer. Where only a sample of the values was kept, numbers are cut on the sample, and
for names the sum over values is estimated:

    I = sum over x of s_x  sum over y of  P(x, y) log2 [ P(x, y) / (P(x) P(y)) ]        s_x: the values x stands for
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.kernels.information import mutual_information
from bncli.files.reading.assembly import are_of_an_identifier, looks_like_codes
from bncli.files.reading.summary import ColumnSummary

FEW_VALUES = 20
"""Numbers of so many different values are counted as they are."""
_LEAK = 0.99
"""Of the class's entropy."""
_N_COMMON = 5


@dataclass(frozen=True)
class ColumnReport:
    """A column; `exact`: whether `distinct`, `median`, `commonest` and `bits` are counted, and not estimated.

    bits: None where there is no class to tell of. use: whether `fit` will use the column. commonest: values and their
    rows. same_as: a column before it with the same values in every row. advice: what the recommended line does to it.
    """

    name: str
    type: str
    distinct: int
    missing: int
    example: str
    bits: float | None
    use: bool
    reason: str
    exact: bool
    smallest: float | None = None
    median: float | None = None
    largest: float | None = None
    commonest: tuple[tuple[str, int], ...] = ()
    same_as: str | None = None
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        numbers = {"smallest": self.smallest, "median": self.median, "largest": self.largest}
        common = [{"value": value, "rows": rows} for value, rows in self.commonest]
        return {
            "name": self.name,
            "type": self.type,
            "distinct": self.distinct,
            "missing": self.missing,
            "example": self.example,
            "bits": self.bits,
            "use": self.use,
            "reason": self.reason,
            "exact": self.exact,
            **({"commonest": common} if self.smallest is None else numbers),
            **({} if self.same_as is None else {"same_as": self.same_as}),
        }


@dataclass(frozen=True)
class ClassCounts:
    """The class: its labels, the weight of each, and which label each counted class is (-1: missing)."""

    name: str
    labels: tuple[str, ...]
    weights: Array
    codes: Integers
    rows: tuple[int, ...]
    unlabelled: int

    @property
    def bits(self) -> float:
        """The entropy of the class."""
        shares = self.weights[self.weights > 0] / max(self.weights.sum(), 1e-300)
        return float(-(shares * np.log2(shares)).sum()) + 0.0

    def table(self, summary: ColumnSummary) -> Array:
        """The weight of each kept value in each label, shape (n, K)."""
        table = np.zeros((len(summary.counted.rows), len(self.labels)))
        for counted, label in enumerate(self.codes):
            if label >= 0:
                table[:, label] += summary.counted.by_class[:, counted]
        return table


def describe_column(
    name: str, summary: ColumnSummary, n_rows: int, of_class: ClassCounts | None, *, categorical: bool
) -> ColumnReport:
    """A column that may be an attribute; `categorical`: the user says that it is one of names."""
    numeric = isinstance(summary.column, NumericColumn)
    report = _numbers(name, summary) if numeric else _names(name, summary)
    if of_class is None:
        n_cuts = None
    elif numeric:
        bits, found = _bits_of_numbers(summary, of_class, report.distinct)
        report = replace(report, bits=bits)
        n_cuts = found if len(of_class.labels) > 1 else None
    else:
        n_cuts = None
        report = replace(report, bits=_bits_of_names(summary, of_class))
    return replace(report, **_verdict(report, summary, n_rows, n_cuts, of_class, categorical=categorical))


def _numbers(name: str, summary: ColumnSummary) -> ColumnReport:
    assert isinstance(summary.column, NumericColumn)
    values = summary.column.values.astype(np.float64)
    rows, scale = summary.counted.rows, summary.counted.scale
    present = ~np.isnan(values)
    exact = summary.counted.exact
    distinct = len(np.unique(values[present])) if exact else round(float(scale[present].sum()))
    median = weighted_median(values[present], (rows * scale)[present])
    missing = int(rows[~present].sum())
    low, high = (None if math.isnan(value) else value for value in (summary.low, summary.high))
    report = ColumnReport(name, "numeric", distinct, missing, summary.example, None, True, "", exact)
    return replace(report, smallest=low, median=median, largest=high)


def weighted_median(values: Array, weights: Array) -> float | None:
    """The middle value, or midway between the two in the middle, where value i stands weights[i] times."""
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    total = ends[-1]
    low = values[order][np.searchsorted(ends, np.ceil(total / 2) - 1, side="right")]
    high = values[order][min(np.searchsorted(ends, np.floor(total / 2), side="right"), len(order) - 1)]
    return float(low / 2 + high / 2) + 0.0


def _names(name: str, summary: ColumnSummary) -> ColumnReport:
    assert isinstance(summary.column, CategoricalColumn)
    codes, levels = summary.column.codes, summary.column.levels
    rows, scale = summary.counted.rows, summary.counted.scale
    present = codes >= 0
    exact = summary.counted.exact
    distinct = len(levels) if exact else round(float(scale[present].sum()))
    by_level = np.bincount(codes[present], rows[present], len(levels))
    order = np.argsort(-by_level, kind="stable")[:_N_COMMON]
    common = tuple((levels[i], int(by_level[i])) for i in order)
    missing = int(rows[~present].sum())
    kind = "constant" if distinct <= 1 else "categorical"
    report = ColumnReport(name, kind, distinct, missing, summary.example, None, True, "", exact)
    return replace(report, commonest=common)


def _bits_of_numbers(summary: ColumnSummary, of_class: ClassCounts, distinct: int) -> tuple[float, int]:
    """The information, and the number of cuts."""
    assert isinstance(summary.column, NumericColumn)
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    if not len(value):
        return 0.0, 0
    weights = (table * summary.counted.scale[:, np.newaxis])[value, label]
    if not summary.counted.exact:  # the cuts must pay on what was kept
        weights *= table.sum() / weights.sum()
    column = summary.column.take(value)
    cells = Columns(len(value), {"x": column}, "y", CategoricalColumn(label, of_class.labels), weights)
    data = learn_dataset(cells)
    (attribute,) = data.schema.attributes
    assert isinstance(attribute, NumericAttribute)
    codes = np.unique(column.values, return_inverse=True)[1] if distinct <= FEW_VALUES else data.codes[0]
    return _bits(codes, label, weights, len(of_class.labels)), len(attribute.cuts)


def _bits_of_names(summary: ColumnSummary, of_class: ClassCounts) -> float:
    assert isinstance(summary.column, CategoricalColumn)
    table = of_class.table(summary)
    if summary.counted.exact:
        value, label = np.nonzero(table)
        return _bits(summary.column.codes[value] + 1, label, table[value, label], len(of_class.labels))
    total = of_class.weights.sum()
    if not total:
        return 0.0
    independent = table.sum(axis=1, keepdims=True) * of_class.weights
    value, label = np.nonzero(table)
    terms = table[value, label] * np.log2(table[value, label] * total / independent[value, label])
    return float(np.clip((terms * summary.counted.scale[value]).sum() / total, 0.0, of_class.bits))


def _bits(values: NDArray[Any], labels: NDArray[Any], weights: Array, n_labels: int) -> float:
    """The mutual information of values and labels, both in codes."""
    if not len(values):
        return 0.0
    n_values = int(values.max()) + 1
    cells = values.astype(np.int64) * n_labels + labels
    table = np.bincount(cells, weights, n_values * n_labels).astype(np.float64).reshape(n_values, n_labels)
    return float(mutual_information(table)) / math.log(2)


def _verdict(
    report: ColumnReport,
    summary: ColumnSummary,
    n_rows: int,
    n_cuts: int | None,
    of_class: ClassCounts | None,
    *,
    categorical: bool,
) -> dict[str, Any]:
    """Type, use, reason and advice."""
    tells = report.missing > 0 and report.distinct == 1
    if report.type == "constant":
        what = "one value only" if report.distinct else "no value at all"
        return {"use": tells, "reason": f"{what}{', or missing' if tells else ''}"}
    if report.type == "categorical":
        if not categorical and are_of_an_identifier(report.distinct, n_rows):
            reason = f"an identifier: {_count(report)} names in {n_rows:,} rows; --categorical keeps it"
            return {"type": "identifier", "use": False, "reason": reason + _doubt(summary)}
        reason = f"names{_doubt(summary)}"
    elif is_running_number(report, n_rows):
        used = n_cuts != 0
        return {"use": used, "reason": "whole numbers, another in every row: an identifier?", "advice": "ignore"}
    elif n_cuts == 0 and not report.missing:
        return {"use": False, "reason": "numbers, and no cut of them tells of the class"}
    else:
        reason = "numbers" if not n_cuts else f"numbers, cut at {n_cuts} point{'s' if n_cuts > 1 else ''}"
        if looks_like_codes(summary.column):
            reason += "; if they are codes, --categorical"
    return {"reason": reason + _leak(report, of_class)}


def _count(report: ColumnReport) -> str:
    return f"{'' if report.exact else '~'}{report.distinct:,}"


def is_running_number(report: ColumnReport, n_rows: int) -> bool:
    """Whether nearly every whole number from the smallest to the largest is there, in one row each."""
    if report.smallest is None or report.largest is None or report.missing or n_rows <= FEW_VALUES:
        return False
    whole = float(report.smallest).is_integer() and float(report.largest).is_integer()
    # an estimated number of values may be off by a few hundredths
    each = report.distinct == n_rows if report.exact else abs(report.distinct - n_rows) < 0.05 * n_rows
    return whole and each and report.largest - report.smallest < 2 * n_rows


def _doubt(summary: ColumnSummary) -> str:
    """The text that keeps most values from being numbers."""
    n_present = float((summary.counted.rows * summary.counted.scale).sum())
    if summary.non_number is None or summary.n_numbers < max(20, 0.9 * n_present):
        return ""
    return f"; all but a few are numbers, but '{summary.non_number}' is not"


def _leak(report: ColumnReport, of_class: ClassCounts | None) -> str:
    """Whether the column alone tells the class, as one does that is known only afterwards."""
    if of_class is None or report.bits is None or not of_class.bits or report.bits < _LEAK * of_class.bits:
        return ""
    return "; it alone tells the class: is it known beforehand?"


def told_same(report: ColumnReport, first: str) -> ColumnReport:
    """The report of a column that is the same as an earlier one."""
    reason = f"the same as '{first}' in every row"
    return replace(
        report, same_as=first, reason=reason, advice="" if report.type in ("identifier", "constant") else "ignore"
    )


def names_of(reports: Sequence[ColumnReport], advice: str) -> list[str]:
    """The columns of which the advice is given."""
    return [report.name for report in reports if report.advice == advice]
