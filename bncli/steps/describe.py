"""A first look at a table: every column, the class, and the command line to begin with.

The command line that `describe` recommends, what it says beside it, and the schema file to edit.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.data.number_formats import NumberForm
from bncli.files.paths import check_outputs
from bncli.files.reading.column_roles import (
    DeclaredRoles,
    are_too_many_labels,
    look_like_data,
    look_measured,
    read_schema_file,
    split_names,
    write_schema_file,
)
from bncli.files.reading.column_summaries import TableSummary, summarise_table
from bncli.files.reading.source import Source
from bncli.steps.described_columns import ClassCounts, ColumnReport, describe_column, names_of, report_duplicate
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage

_MOST_LABELS = 20
"""Of a column that is proposed as the class."""
_N_NAMED = 4
_LAST = "the last column"
"""Why it is the class: nothing else says which one is."""


@dataclass(frozen=True)
class DescribeReport:
    """The columns in file order, the class among them; of_class: None where there is none that can be learnt.

    notes: what else is to be known before learning. recommended: a command line, empty where there are no rows.
    schema_file: None = not asked for.
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
    """Read the table once; writes the schema file where asked."""
    check_outputs((schema_out,), (*source.paths, source.schema_file, read_schema_file(source).place))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("read"))
    summary = summarise_table(source, threads=run.threads, watch=stopwatch)
    stopwatch(Stage("describe"))
    of_class = _class_counts(summary)
    # A column that is the same as an earlier one, or as the class, says so.
    reports = [
        _describe(name, summary, of_class, source) if name in summary.columns else _nested(name, summary)
        for name in summary.names
    ]
    first = {} if summary.class_name is None else {summary.columns[summary.class_name].digest: summary.class_name}
    told = []
    for report in reports:
        if report.name in summary.nested or not summary.n_rows:
            told.append(report)
            continue
        original = first.setdefault(summary.columns[report.name].digest, report.name)
        told.append(report if original == report.name else report_duplicate(report, original))
    columns = told
    if not summary.n_rows:
        columns = [replace(report, use=False, reason="there are no rows", advice="") for report in columns]
        notes, recommended = ["the table has a header and no rows"], ""
    else:
        notes, recommended = recommend(source, summary, of_class, columns, schema_out)
    if schema_out is not None:
        write_schema_file(schema_out, schema_of(summary, columns))
    seconds = stopwatch.seconds()
    return DescribeReport(
        summary.n_rows, summary.class_name, of_class, tuple(columns), tuple(notes), recommended, schema_out, seconds
    )


def _class_counts(summary: TableSummary) -> ClassCounts | None:
    """Return None where there is no class, or one of too many labels to be counted."""
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


def why_class(source: Source, summary: TableSummary) -> str:
    """Return why the class is the column that it is."""
    said = read_schema_file(source)
    if source.class_name is not None:
        return "--class"
    if said.class_name == summary.class_name:
        return f"as {said.place} says"
    return "by its name" if summary.class_name == "class" else _LAST


def _describe(name: str, summary: TableSummary, of_class: ClassCounts | None, source: Source) -> ColumnReport:
    roles = summary.roles
    of_column = None if name in (summary.class_name, roles.weights) else of_class
    report = describe_column(name, summary.columns[name], summary.n_rows, of_column)
    if name == summary.class_name:
        # Whether the class is one, and how much there is to know of it.
        bits, why = None if of_class is None else of_class.bits, why_class(source, summary)
        report = replace(report, bits=bits, advice="")
        if report.type == "constant":
            return replace(report, use=False, reason=f"the class, but {report.reason}")
        if of_class is not None and not are_too_many_labels(report.distinct, summary.n_rows):
            measured = "; it looks like a number" if look_measured(of_class.labels, summary.n_rows) else ""
            return replace(report, use=True, reason=f"the class ({why}){measured}")
        found = summary.columns[report.name]
        numeric = found.is_plain or isinstance(found.decision.form, NumberForm)
        what = (
            "numbers, not classes"
            if numeric
            else f"{'' if report.exact else '~'}{report.distinct:,} labels are too many"
        )
        kind = "numeric" if numeric else "identifier"
        return replace(report, type=kind, use=False, reason=f"the class, but {what}")
    if name == roles.weights:
        return replace(report, use=True, reason="weighs the rows", advice="")
    if name in summary.ignored:
        return replace(report, use=False, reason="left out, as is said", advice="")
    return report


def _nested(name: str, summary: TableSummary) -> ColumnReport:
    """Return the report of a column that is not read, for its values are structs, lists or maps."""
    reason = f"holds {summary.nested[name]} values; flatten it or --ignore {shlex.quote(name)}"
    return ColumnReport(name, "nested", 0, 0, "", None, False, reason, True, advice="ignore")


def recommend(
    source: Source,
    summary: TableSummary,
    of_class: ClassCounts | None,
    columns: Sequence[ColumnReport],
    schema_out: str | None,
) -> tuple[list[str], str]:
    """Return notes, and the `fit` line with the typed options and those that this table needs."""
    notes: list[str] = []
    if look_like_data(summary.names):
        notes.append("the column names are numbers: is the header missing? --names a,b,c gives one")
    candidates = _candidates(summary, columns)
    proposed = candidates[0] if candidates else None
    if proposed is not None:
        notes.append(f"the class may be {' or '.join(map(repr, candidates[:_N_NAMED]))}; --class NAME names it")
    elif summary.class_name is None or not _class_of(summary, columns).use:
        notes.append("no column looks like a class of a few labels; --class NAME names one")
    elif why_class(source, summary) == _LAST:
        notes.append(f"{summary.class_name!r} is taken for the class because it is last; --class NAME names another")
    if of_class is not None and of_class.unlabelled and proposed is None:
        rows = "row" if of_class.unlabelled == 1 else "rows"
        notes.append(f"the class is missing in {of_class.unlabelled:,} {rows}; --drop-unlabelled leaves them out")
    # The usual marks of missing values that keep a column from being numbers or dates.
    decisions = [column.decision for name, column in summary.columns.items() if name != summary.class_name]
    marks = list(dict.fromkeys(mark for decision in decisions if decision.without_marks for mark in decision.marks))
    if marks:
        notes.append(f"by the look of them marks of missing values: {', '.join(marks)} (--missing +TOKEN adds one)")
    flags = _reading_flags(source)
    for mark in marks:
        flags += ["--missing", f"+{mark}"]
    if schema_out is not None:
        flags += ["--schema", schema_out]
    flags += _column_flags(source, columns, proposed, written=schema_out is not None)
    if source.drop_unlabelled or (of_class is not None and of_class.unlabelled and proposed is None):
        flags += ["--drop-unlabelled"]
    output = ["-o", "model.bnc"] if source.paths == ("-",) or len(source.paths) > 1 else []
    return notes, shlex.join(["bncli", "fit", *source.paths, *flags, *output])


def _candidates(summary: TableSummary, columns: Sequence[ColumnReport]) -> list[str]:
    """In place of a class that cannot be learnt: columns of a few names, none of them missing, the last one first."""
    if summary.class_name is None or _class_of(summary, columns).use:
        return []
    fit = [c.name for c in columns if c.type == "categorical" and 2 <= c.distinct <= _MOST_LABELS and not c.missing]
    return [name for name in reversed(fit) if name != summary.roles.weights and name not in summary.ignored]


def _class_of(summary: TableSummary, columns: Sequence[ColumnReport]) -> ColumnReport:
    return next(column for column in columns if column.name == summary.class_name)


def _reading_flags(source: Source) -> list[str]:
    """Return what was typed of the file's form."""
    flags: list[str] = []
    delimiter = "tab" if source.delimiter == "\t" else source.delimiter
    dates = None if source.dates == "auto" else source.dates
    words = ("--format", "--delimiter", "--encoding", "--decimal", "--dates")
    for flag, value in zip(words, (source.format, delimiter, source.encoding, source.decimal, dates), strict=True):
        flags += [] if value is None else [flag, value]
    if source.names is not None:
        flags += ["--names", ",".join(f'"{name}"' if "," in name else name for name in source.names)]
    for token in source.missing_tokens or ():
        flags += ["--missing", token]
    if source.on_bad_row != "fail":
        flags += ["--on-bad-row", source.on_bad_row]
    if source.schema_file is not None:
        flags += ["--schema", source.schema_file]
    return flags


def _column_flags(source: Source, columns: Sequence[ColumnReport], proposed: str | None, *, written: bool) -> list[str]:
    """Return what was typed of columns, and what they call for; a schema file that was `written` holds all that."""
    class_name = source.class_name if proposed is None else proposed
    flags = [] if class_name is None else ["--class", class_name]
    if written:
        return flags if proposed is not None else []
    all_names = [column.name for column in columns]
    advised = [name for name in names_of(columns, "ignore") if not source.use or name in source.use]
    ignored = dict.fromkeys([*split_names(source.ignore, all_names), *advised])
    lists = [("--ignore", ignored), ("--categorical", source.categorical), ("--numeric", source.numeric)]
    for flag, typed in (*lists, ("--use", source.use)):
        for name in split_names([*typed], all_names):
            flags += [flag, name]
    flags += ["--drop-incomplete"] if source.drop_incomplete else []
    return flags + ([] if source.weights is None else ["--weights", source.weights])


def schema_of(summary: TableSummary, columns: Sequence[ColumnReport]) -> DeclaredRoles:
    """Return every column under the role that `fit` would give it, or that is advised.

    What is found by its form (dates, national numbers, numbers but for a mark) is left to be found again.
    """
    class_name = next(iter(_candidates(summary, columns)), summary.class_name)
    lists: dict[str, list[str]] = {"categorical": [], "numeric": [], "ignore": []}
    for column in columns:
        if column.name in (class_name, summary.roles.weights):
            continue
        if column.type == "nested":
            lists["ignore"].append(column.name)
            continue
        left_out = column.type in ("identifier", "constant") or column.advice == "ignore"
        found = summary.columns[column.name]
        if column.name in summary.ignored or (left_out and not found.decision.without_marks):
            lists["ignore"].append(column.name)
        elif not found.decision.without_marks and found.decision.form is None:
            lists[column.type].append(column.name)
    roles = {key: tuple(names) for key, names in lists.items()}
    return DeclaredRoles(None, class_name, summary.roles.weights, **roles)
