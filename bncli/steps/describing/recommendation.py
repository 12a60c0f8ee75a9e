"""The command line that `describe` recommends, what it says beside it, and the schema file to edit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bncli.files.reading.roles import Said
from bncli.files.reading.summary import Summary
from bncli.files.table import Source
from bncli.steps.describing.columns import ColumnReport, names_of
from bncli.steps.describing.information import ClassCounts

_MOST_LABELS = 20
"""Of a column that is proposed as the class."""
_N_NAMED = 4


def recommend(
    source: Source,
    summary: Summary,
    of_class: ClassCounts | None,
    columns: Sequence[ColumnReport],
    schema_out: str | None,
) -> tuple[list[str], str]:
    """Notes, and the `fit` line with what was typed and what this table calls for."""
    notes: list[str] = []
    candidates = _candidates(summary, columns)
    proposed = candidates[0] if candidates else None
    if proposed is not None:
        notes.append(f"the class may be {' or '.join(map(repr, candidates[:_N_NAMED]))}; --class NAME names it")
    elif summary.class_name is None or not _class_of(summary, columns).use:
        notes.append("no column looks like a class of a few labels; --class NAME names one")
    if of_class is not None and of_class.unlabelled and proposed is None:
        rows = "row" if of_class.unlabelled == 1 else "rows"
        notes.append(f"the class is missing in {of_class.unlabelled:,} {rows}; --drop-unlabelled leaves them out")
    marks = _marks(summary)
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


def _class_of(summary: Summary, columns: Sequence[ColumnReport]) -> ColumnReport:
    return next(column for column in columns if column.name == summary.class_name)


def _candidates(summary: Summary, columns: Sequence[ColumnReport]) -> list[str]:
    """In place of a class that cannot be learnt: columns of a few names, none of them missing, the last one first."""
    if summary.class_name is None or _class_of(summary, columns).use:
        return []
    fit = [c.name for c in columns if c.type == "categorical" and 2 <= c.distinct <= _MOST_LABELS and not c.missing]
    return [name for name in reversed(fit) if name != summary.roles.weights and name not in summary.ignored]


def _marks(summary: Summary) -> list[str]:
    """The usual marks of missing values that keep a column from being numbers or dates."""
    findings = [column.finding for name, column in summary.columns.items() if name != summary.class_name]
    return list(dict.fromkeys(mark for finding in findings if finding.meant for mark in finding.marks))


def _reading_flags(source: Source) -> list[str]:
    """What was typed of the file's form."""
    flags: list[str] = []
    delimiter = "tab" if source.delimiter == "\t" else source.delimiter
    dates = None if source.dates == "auto" else source.dates
    words = ("--format", "--delimiter", "--encoding", "--decimal", "--dates")
    for flag, value in zip(words, (source.format, delimiter, source.encoding, source.decimal, dates), strict=True):
        flags += [] if value is None else [flag, value]
    for token in source.missing_tokens or ():
        flags += ["--missing", token]
    if source.on_bad_row != "fail":
        flags += ["--on-bad-row", source.on_bad_row]
    if source.schema_file is not None:
        flags += ["--schema", source.schema_file]
    return flags


def _column_flags(source: Source, columns: Sequence[ColumnReport], proposed: str | None, *, written: bool) -> list[str]:
    """What was typed of columns, and what they call for; a schema file that was `written` holds all that."""
    class_name = source.class_name if proposed is None else proposed
    flags = [] if class_name is None else ["--class", class_name]
    if written:
        return flags if proposed is not None else []
    ignored = dict.fromkeys([*source.ignore, *names_of(columns, "ignore")])
    said = (("--ignore", ignored), ("--categorical", source.categorical), ("--numeric", source.numeric))
    for flag, names in said:
        for name in names:
            flags += [flag, name]
    return flags + ([] if source.weights is None else ["--weights", source.weights])


def schema_of(summary: Summary, columns: Sequence[ColumnReport]) -> Said:
    """Every column under the role that `fit` would give it, or that is advised.

    What is found by its form (dates, national numbers, numbers but for a mark) is left to be found again.
    """
    class_name = next(iter(_candidates(summary, columns)), summary.class_name)
    lists: dict[str, list[str]] = {"categorical": [], "numeric": [], "ignore": []}
    for column in columns:
        if column.name in (class_name, summary.roles.weights):
            continue
        left_out = column.type in ("identifier", "constant") or column.advice == "ignore"
        found = summary.columns[column.name]
        if column.name in summary.ignored or (left_out and not found.finding.meant):
            lists["ignore"].append(column.name)
        elif not found.finding.meant and found.finding.form is None:
            lists[column.type].append(column.name)
    roles = {key: tuple(names) for key, names in lists.items()}
    return Said(None, class_name, summary.roles.weights, **roles)
