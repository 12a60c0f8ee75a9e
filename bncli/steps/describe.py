"""A first look at a table: every column, the class, and the command line to begin with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.data.forms import NumberForm
from bncli.files.paths import check_outputs
from bncli.files.reading.assembly import are_measured, are_too_many_labels
from bncli.files.reading.roles import read_schema_file, write_schema_file
from bncli.files.reading.summary import Summary, summarise
from bncli.files.table import Source
from bncli.steps.describing.columns import ColumnReport, describe_column, told_same
from bncli.steps.describing.information import ClassCounts
from bncli.steps.describing.recommendation import recommend, schema_of
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage


@dataclass(frozen=True)
class DescribeReport:
    """The columns in file order, the class among them; of_class: None where there is none that can be learnt.

    notes: what else is to be known before learning. recommended: a command line. schema_file: None = not asked for.
    """

    rows: int
    class_name: str | None
    of_class: ClassCounts | None
    columns: tuple[ColumnReport, ...]
    notes: tuple[str, ...]
    recommended: str
    schema_file: str | None
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        known = self.of_class
        labels = [] if known is None else zip(known.labels, known.rows, strict=True)
        return {
            "rows": self.rows,
            "class": self.class_name,
            "class_bits": None if known is None else known.bits,
            "labels": [{"label": label, "rows": rows} for label, rows in labels],
            "unlabelled": None if known is None else known.unlabelled,
            "columns": [column.as_json() for column in self.columns],
            "notes": list(self.notes),
            "recommended": self.recommended,
            "schema": self.schema_file,
            "seconds": self.seconds,
        }


def describe(source: Source, *, schema_out: str | None = None, run: Run = Run()) -> DescribeReport:
    """Reads the table once; writes the schema file where asked."""
    check_outputs((schema_out,), (*source.paths, source.schema_file, read_schema_file(source).place))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("read"))
    summary = summarise(source, threads=run.threads, watch=stopwatch)
    stopwatch(Stage("describe"))
    of_class = _class_counts(summary)
    columns = _without_copies([_describe(name, summary, of_class) for name in summary.columns], summary)
    notes, recommended = recommend(source, summary, of_class, columns, schema_out)
    if schema_out is not None:
        write_schema_file(schema_out, schema_of(summary, columns))
    seconds = stopwatch.seconds()
    return DescribeReport(
        summary.n_rows, summary.class_name, of_class, tuple(columns), tuple(notes), recommended, schema_out, seconds
    )


def _class_counts(summary: Summary) -> ClassCounts | None:
    """None where there is no class, or one of too many labels to be counted."""
    if summary.class_name is None or summary.labels is None:
        return None
    counted = summary.columns[summary.class_name].counted
    weights = counted.by_class.sum(axis=0)[: len(summary.labels.codes)]
    codes = np.where(weights > 0, summary.labels.codes, -1)
    used = np.unique(codes[codes >= 0])
    codes = np.where(codes >= 0, np.searchsorted(used, codes), -1)
    # each value of the class lies in one class, its own
    code_of_value = codes[counted.by_class.argmax(axis=1)] if len(counted.rows) else codes[:0]
    rows = np.bincount(code_of_value + 1, counted.rows, len(used) + 1).astype(np.int64)
    totals = np.bincount(codes + 1, weights, len(used) + 1)[1:].astype(np.float64)
    labels = tuple(summary.labels.levels[i] for i in used)
    return ClassCounts(summary.class_name, labels, totals, codes, tuple(rows[1:].tolist()), int(rows[0]))


def _describe(name: str, summary: Summary, of_class: ClassCounts | None) -> ColumnReport:
    roles = summary.roles
    of_column = None if name in (summary.class_name, roles.weights) else of_class
    report = describe_column(name, summary.columns[name], summary.n_rows, of_column)
    if name == summary.class_name:
        return _of_the_class(report, summary, of_class)
    if name == roles.weights:
        return replace(report, use=True, reason="weighs the rows", advice="")
    if name in summary.ignored:
        return replace(report, use=False, reason="left out, as is said", advice="")
    return report


def _of_the_class(report: ColumnReport, summary: Summary, of_class: ClassCounts | None) -> ColumnReport:
    """Whether the class is one, and how much there is to know of it."""
    bits = None if of_class is None else of_class.bits
    report = replace(report, bits=bits, advice="")
    if report.type == "constant":
        return replace(report, use=False, reason=f"the class, but {report.reason}")
    if of_class is not None and not are_too_many_labels(report.distinct, summary.n_rows):
        measured = "; it looks like a number" if are_measured(of_class.labels, summary.n_rows) else ""
        return replace(report, use=True, reason=f"the class{measured}")
    found = summary.columns[report.name]
    numeric = found.plain or isinstance(found.finding.form, NumberForm)
    what = (
        "numbers, not classes" if numeric else f"{'' if report.exact else '~'}{report.distinct:,} labels are too many"
    )
    kind = "numeric" if numeric else "identifier"
    return replace(report, type=kind, use=False, reason=f"the class, but {what}")


def _without_copies(reports: list[ColumnReport], summary: Summary) -> list[ColumnReport]:
    """A column that is the same as an earlier one, or as the class, says so."""
    first = {} if summary.class_name is None else {summary.columns[summary.class_name].digest: summary.class_name}
    told = []
    for report in reports:
        original = first.setdefault(summary.columns[report.name].digest, report.name)
        told.append(report if original == report.name else told_same(report, original))
    return told
