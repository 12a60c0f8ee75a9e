"""What is said of one column: its type, its values, what `fit` will do with it and why.

How much a column tells of the class.

The information is the plug-in mutual information with the class, in bits, over the rows whose class is known and by
their weights; missing is a value of its own, as in learning by default. Numbers of more than 20 different values are
cut first, by the default discretizer. Where only a sample of the values was kept, numbers are cut on the sample, and
for names the sum over values is estimated:

    I = sum over x of s_x  sum over y of  P(x, y) log2 [ P(x, y) / (P(x) P(y)) ]        s_x: the values x stands for
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import PoolingRule, learn_dataset
from bncli.engine.data.number_formats import DateForm
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.kernels.information import mutual_information
from bncli.files.reading.column_summaries import ColumnSummary
from bncli.recipe import Recipe

FEW_VALUES = 20
"""Numbers of so many different values are counted as they are."""


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
        """Return the weight of each kept value in each label, shape (n, K)."""
        table = np.zeros((len(summary.counted.rows), len(self.labels)))
        for counted, label in enumerate(self.codes):
            if label >= 0:
                table[:, label] += summary.counted.by_class[:, counted]
        return table


class DiscretizedAttribute(NamedTuple):
    """An attribute as learning by default cuts or pools it; its information in bits."""

    attribute: Attribute
    bits: float


_LEAK = 0.99
"""Of the class's entropy."""
_N_COMMON = 5
_ABOUT_MARKS = "values that may mean missing"
_PLURAL = {"numeric": "numbers", "categorical": "names", "date": "dates"}


@dataclass(frozen=True)
class ColumnReport:
    """A column; `exact`: whether `distinct`, `median`, `commonest` and `bits` are counted, and not estimated.

    bits: None where there is no class to tell of. use: whether `fit` will use the column. smallest, median, largest: of
    numbers, or of dates as text. commonest: values and their rows. same_as: a column before it with the same values in
    every row. advice: what the recommended line does to it.
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
    smallest: float | str | None = None
    median: float | str | None = None
    largest: float | str | None = None
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


def learn_from(summary: ColumnSummary, of_class: ClassCounts) -> dict[str, DiscretizedAttribute]:
    """Return the attributes that the column becomes, learnt from its kept values as rows of their weight."""
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    if not len(value):
        return {}
    weights = (table * summary.counted.scale[:, np.newaxis])[value, label]
    if not summary.counted.exact:  # what is learnt must pay on what was kept
        weights *= table.sum() / weights.sum()
    columns = {name: column.take(value) for name, column in summary.decision.attributes.items()}
    cells = Columns(len(value), columns, "", CategoricalColumn(label, of_class.labels), weights)
    data = learn_dataset(cells, group_levels=_default_rule() if summary.counted.exact else "off")
    return {
        attribute.name: DiscretizedAttribute(attribute, _bits(codes, label, weights, len(of_class.labels)))
        for attribute, codes in zip(data.schema.attributes, data.codes, strict=True)
    }


@cache
def _default_rule() -> PoolingRule:
    """Return what learning does by default with names of many values."""
    rule: PoolingRule = Recipe.of().group_levels
    return rule


def _bits(values: NDArray[Any], labels: NDArray[Any], weights: Array, n_labels: int) -> float:
    """Return the mutual information of values and labels, both in codes."""
    if not len(values):
        return 0.0
    n_values = int(values.max()) + 1
    cells = values.astype(np.int64) * n_labels + labels
    table = np.bincount(cells, weights, n_values * n_labels).astype(np.float64).reshape(n_values, n_labels)
    return float(mutual_information(table)) / math.log(2)


def information(
    summary: ColumnSummary, of_class: ClassCounts, learnt: Mapping[str, DiscretizedAttribute] | None
) -> float:
    """Of names and few numbers that of the values, else of the cuts, of a date that of its best part."""
    if isinstance(summary.column, CategoricalColumn):
        return _bits_of_names(summary, of_class)
    if not summary.is_date and summary.n_distinct <= FEW_VALUES:
        table = of_class.table(summary)
        value, label = np.nonzero(table)
        assert isinstance(summary.column, NumericColumn)
        codes = np.unique(summary.column.values.astype(np.float64)[value], return_inverse=True)[1]
        return _bits(codes, label, table[value, label], len(of_class.labels))
    return max((found.bits for found in (learnt or {}).values()), default=0.0)


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


def describe_column(name: str, summary: ColumnSummary, n_rows: int, of_class: ClassCounts | None) -> ColumnReport:
    """Return a column that may be an attribute."""
    report = _numbers(name, summary) if isinstance(summary.column, NumericColumn) else _names(name, summary)
    learnt = None if of_class is None or len(of_class.labels) < 2 else learn_from(summary, of_class)
    if of_class is not None:
        report = replace(report, bits=information(summary, of_class, learnt))
    return replace(report, **_verdict(report, summary, n_rows, learnt, of_class))


def _numbers(name: str, summary: ColumnSummary) -> ColumnReport:
    """Return numbers, or the seconds of dates."""
    assert isinstance(summary.column, NumericColumn)
    values = summary.column.values.astype(np.float64)
    rows, scale = summary.counted.rows, summary.counted.scale
    present = ~np.isnan(values)
    median = weighted_median(values[present], (rows * scale)[present])
    low, high = (None if math.isnan(value) else value for value in (summary.low, summary.high))
    form = summary.decision.form
    shown = [date_text(v, form) if isinstance(form, DateForm) and v is not None else v for v in (low, median, high)]
    kind = "date" if summary.is_date else "numeric"
    missing = int(rows[~present].sum())
    report = ColumnReport(
        name, kind, summary.n_distinct, missing, summary.example, None, True, "", summary.counted.exact
    )
    return replace(report, smallest=shown[0], median=shown[1], largest=shown[2])


def _names(name: str, summary: ColumnSummary) -> ColumnReport:
    assert isinstance(summary.column, CategoricalColumn)
    codes, levels = summary.column.codes, summary.column.levels
    rows = summary.counted.rows
    present = codes >= 0
    by_level = np.bincount(codes[present], rows[present], len(levels))
    order = np.argsort(-by_level, kind="stable")[:_N_COMMON]
    common = tuple((levels[i], int(by_level[i])) for i in order)
    missing = int(rows[~present].sum())
    distinct = summary.n_distinct
    kind = "constant" if distinct <= 1 else "categorical"
    report = ColumnReport(name, kind, distinct, missing, summary.example, None, True, "", summary.counted.exact)
    return replace(report, commonest=common)


def _verdict(
    report: ColumnReport,
    summary: ColumnSummary,
    n_rows: int,
    learnt: Mapping[str, DiscretizedAttribute] | None,
    of_class: ClassCounts | None,
) -> dict[str, Any]:
    """Type, use, reason and advice."""
    # What `fit` would say of the column.
    decision = summary.decision
    notes = [_without_name(note, report.name) for note in decision.notes if not note.startswith(_ABOUT_MARKS)]
    if decision.without_marks:
        marks = ", ".join(decision.marks)
        would_be = f"but for {marks} they would be {decision.without_marks}"
        notes.append(would_be if decision.attributes else f"marks: {marks}")
    if report.type == "constant":
        tells = report.missing > 0 and report.distinct == 1
        what = "one value only" if report.distinct else "no value at all"
        return {"use": tells, "reason": f"{what}{', or missing' if tells else ''}"}
    if not summary.decision.attributes:
        kind = "date" if report.type == "date" else "identifier"
        return {"type": kind, "use": False, "reason": "; ".join(notes)}
    tells = learnt is None or any(found.attribute.informative for found in learnt.values())
    if is_running_number(report, n_rows):
        return {"use": tells, "reason": "whole numbers, another in every row: an identifier?", "advice": "ignore"}
    if not tells:
        why = "no cut of them tells" if report.type != "categorical" else "they do not tell enough"
        kind = notes.pop(0) if report.type == "date" and notes else _PLURAL[report.type]
        notes.insert(0, f"{kind}, and {why} of the class")
    elif not notes or report.type != "date":
        notes.insert(0, _PLURAL[report.type] + _made(learnt))
    return {"use": tells, "reason": "; ".join([*notes, *_leak(report, of_class)])}


def _without_name(note: str, name: str) -> str:
    """Return a note about a single column, where its name is known."""
    for start, instead in ((f"column '{name}': ", ""), (f"date column {name} was ", "dates, ")):
        if note.startswith(start):
            return instead + note.removeprefix(start)
    note = note.removeprefix("left out as ").replace(f" in {name} (", " (")
    return note.replace(f": {name} (", " (").removesuffix(f": {name}")


def _made(learnt: Mapping[str, DiscretizedAttribute] | None) -> str:
    """Into how many intervals or groups learning brings a column of numbers or names."""
    for found in (learnt or {}).values():
        if isinstance(found.attribute, NumericAttribute) and found.attribute.cuts:
            return f", cut at {len(found.attribute.cuts)} point{'s' if len(found.attribute.cuts) > 1 else ''}"
        if isinstance(found.attribute, CategoricalAttribute) and found.attribute.groups:
            n = len(found.attribute.groups)
            return f", pooled into {n} group{'s' if n > 1 else ''}"
    return ""


def _leak(report: ColumnReport, of_class: ClassCounts | None) -> list[str]:
    """Return whether the column alone tells the class, as one does that is known only afterwards."""
    if of_class is None or report.bits is None or not of_class.bits or report.bits < _LEAK * of_class.bits:
        return []
    return ["it alone tells the class: is it known beforehand?"]


def date_text(seconds: float, form: DateForm) -> str:
    """Return the date in ISO form, with the time of the day where there is one; of times of the day that alone."""
    text = str(np.datetime64(int(seconds), "s"))
    return text.partition("T")[2] if form.order == "time" else text.removesuffix("T00:00:00")


def weighted_median(values: Array, weights: Array) -> float | None:
    """Return the middle value, or midway between the two in the middle, where value i stands weights[i] times."""
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    total = ends[-1]
    low = values[order][np.searchsorted(ends, np.ceil(total / 2) - 1, side="right")]
    high = values[order][min(np.searchsorted(ends, np.floor(total / 2), side="right"), len(order) - 1)]
    return float(low / 2 + high / 2) + 0.0


def is_running_number(report: ColumnReport, n_rows: int) -> bool:
    """Return whether nearly every whole number from the smallest to the largest is there, in one row each."""
    low, high = report.smallest, report.largest
    if not isinstance(low, float) or not isinstance(high, float) or report.missing or n_rows <= FEW_VALUES:
        return False
    # an estimated number of values may be off by a few hundredths
    each = report.distinct == n_rows if report.exact else abs(report.distinct - n_rows) < 0.05 * n_rows
    return low.is_integer() and high.is_integer() and each and high - low < 2 * n_rows


def report_duplicate(report: ColumnReport, first: str) -> ColumnReport:
    """Return the report of a column that is the same as an earlier one."""
    reason = f"the same as '{first}' in every row"
    return replace(
        report, same_as=first, reason=reason, advice="" if report.type in ("identifier", "constant") else "ignore"
    )


def names_of(reports: Sequence[ColumnReport], advice: str) -> list[str]:
    """Return the columns of which the advice is given."""
    return [report.name for report in reports if report.advice == advice]
