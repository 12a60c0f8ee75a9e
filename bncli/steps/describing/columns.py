"""What is said of one column: its type, its values, what `fit` will do with it and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.engine.data.forms import DateForm
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.files.reading.column_reader import ColumnSummary
from bncli.steps.describing.information import FEW_VALUES, ClassCounts, Learnt, information, learn_from

_LEAK = 0.99
"""Of the class's entropy."""
_N_COMMON = 5
_ABOUT_MARKS = "values that may mean missing ones"
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


def describe_column(name: str, summary: ColumnSummary, n_rows: int, of_class: ClassCounts | None) -> ColumnReport:
    """A column that may be an attribute."""
    report = _numbers(name, summary) if isinstance(summary.column, NumericColumn) else _names(name, summary)
    learnt = None if of_class is None or len(of_class.labels) < 2 else learn_from(summary, of_class)
    if of_class is not None:
        report = replace(report, bits=information(summary, of_class, learnt))
    return replace(report, **_verdict(report, summary, n_rows, learnt, of_class))


def _numbers(name: str, summary: ColumnSummary) -> ColumnReport:
    """Numbers, or the seconds of dates."""
    assert isinstance(summary.column, NumericColumn)
    values = summary.column.values.astype(np.float64)
    rows, scale = summary.counted.rows, summary.counted.scale
    present = ~np.isnan(values)
    median = weighted_median(values[present], (rows * scale)[present])
    low, high = (None if math.isnan(value) else value for value in (summary.low, summary.high))
    form = summary.finding.form
    shown = [date_text(v, form) if isinstance(form, DateForm) and v is not None else v for v in (low, median, high)]
    kind = "date" if summary.is_date else "numeric"
    missing = int(rows[~present].sum())
    report = ColumnReport(
        name, kind, summary.n_distinct, missing, summary.example, None, True, "", summary.counted.exact
    )
    return replace(report, smallest=shown[0], median=shown[1], largest=shown[2])


def date_text(seconds: float, form: DateForm) -> str:
    """The date in ISO form, with the time of the day where there is one; of times of the day that alone."""
    text = str(np.datetime64(int(seconds), "s"))
    return text.partition("T")[2] if form.order == "time" else text.removesuffix("T00:00:00")


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
    learnt: Mapping[str, Learnt] | None,
    of_class: ClassCounts | None,
) -> dict[str, Any]:
    """Type, use, reason and advice."""
    notes = _told(report, summary)
    if report.type == "constant":
        tells = report.missing > 0 and report.distinct == 1
        what = "one value only" if report.distinct else "no value at all"
        return {"use": tells, "reason": f"{what}{', or missing' if tells else ''}"}
    if not summary.finding.attributes:
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


def _told(report: ColumnReport, summary: ColumnSummary) -> list[str]:
    """What `fit` would say of the column."""
    finding = summary.finding
    notes = [_without_name(note, report.name) for note in finding.notes if not note.startswith(_ABOUT_MARKS)]
    if finding.meant:
        marks = ", ".join(finding.marks)
        notes.append(f"but for {marks} they would be {finding.meant}" if finding.attributes else f"marks: {marks}")
    return notes


def _without_name(note: str, name: str) -> str:
    """A note about a single column, where its name is known."""
    for start, instead in ((f"column '{name}': ", ""), (f"dates: {name} ", "dates "), (f"numbers: {name} ", "")):
        if note.startswith(start):
            return instead + note.removeprefix(start)
    return note.removeprefix("left out as ").replace(f": {name} (", " (")


def _made(learnt: Mapping[str, Learnt] | None) -> str:
    """Into how many intervals or groups learning brings a column of numbers or names."""
    for found in (learnt or {}).values():
        if isinstance(found.attribute, NumericAttribute) and found.attribute.cuts:
            return f", cut at {len(found.attribute.cuts)} point{'s' if len(found.attribute.cuts) > 1 else ''}"
        if isinstance(found.attribute, CategoricalAttribute) and found.attribute.groups:
            n = len(found.attribute.groups)
            return f", pooled into {n} group{'s' if n > 1 else ''}"
    return ""


def is_running_number(report: ColumnReport, n_rows: int) -> bool:
    """Whether nearly every whole number from the smallest to the largest is there, in one row each."""
    low, high = report.smallest, report.largest
    if not isinstance(low, float) or not isinstance(high, float) or report.missing or n_rows <= FEW_VALUES:
        return False
    # an estimated number of values may be off by a few hundredths
    each = report.distinct == n_rows if report.exact else abs(report.distinct - n_rows) < 0.05 * n_rows
    return low.is_integer() and high.is_integer() and each and high - low < 2 * n_rows


def _leak(report: ColumnReport, of_class: ClassCounts | None) -> list[str]:
    """Whether the column alone tells the class, as one does that is known only afterwards."""
    if of_class is None or report.bits is None or not of_class.bits or report.bits < _LEAK * of_class.bits:
        return []
    return ["it alone tells the class: is it known beforehand?"]


def told_same(report: ColumnReport, first: str) -> ColumnReport:
    """The report of a column that is the same as an earlier one."""
    reason = f"the same as '{first}' in every row"
    return replace(
        report, same_as=first, reason=reason, advice="" if report.type in ("identifier", "constant") else "ignore"
    )


def names_of(reports: Sequence[ColumnReport], advice: str) -> list[str]:
    """The columns of which the advice is given."""
    return [report.name for report in reports if report.advice == advice]
