"""From finished columns to the table that the engine takes: rows that count, labels and levels checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, Cuts
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.column_builder import ColumnBuilder, distinct_levels, narrow_codes, sort_levels
from bncli.files.reading.column_meaning import find_attributes
from bncli.files.reading.column_roles import ColumnRoles, with_positive
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import MissingTokens, Source
from bncli.files.reading.table import Table
from bncli.files.reading.values import in_form
from bncli.watch import Note, Watch

_MAX_NUMBERED, _FEW_A_LABEL = 20, 50
"""More labels that are numbers, with fewer rows each, are no classes."""


def assemble(
    columns: Mapping[str, ColumnBuilder],
    n_rows: int,
    roles: ColumnRoles,
    table: Table,
    source: Source,
    *,
    given: Cuts | None,
    watch: Watch,
) -> Columns:
    """Return the columns, without identifiers, rows of weight 0 and (if the source says so) rows without a class."""
    where = table.name
    if n_rows == 0:
        raise BncliError("the table has no rows", where=where, hint="there must be rows below the header")
    label = columns[roles.class_name].label(as_text=roles.class_name in roles.categorical)
    weights = None if roles.weights is None else columns[roles.weights].numeric().values.astype(np.float64)
    keep = rows_that_count(label, weights, where, drop_unlabelled=source.drop_unlabelled)
    if given is None:
        attributes = find_attributes(columns, keep, roles, table, source, watch)
    else:
        attributes = _attributes_of_cuts(columns, keep, roles, given, where, MissingTokens.of(source.missing_tokens))
    whole = Columns(n_rows, attributes, roles.class_name, label, weights)
    if not keep.all():
        whole = _without_unused(whole.take(np.flatnonzero(keep)), attributes_too=given is None)
    if source.drop_incomplete:
        whole = _without_unused(_complete_rows(whole, where, watch), attributes_too=given is None)
    labels = () if whole.label is None else whole.label.levels
    check_labels(whole.class_name, labels, whole.n_rows, where)
    if roles.class_name not in roles.categorical:
        warn_about_numeric_labels(whole.class_name, labels, whole.n_rows, watch)
    return with_positive(whole, source.positive)


def _complete_rows(table: Columns, where: str, watch: Watch) -> Columns:
    """Return the rows that have a value of every attribute; BncliError if there is none."""
    complete = np.ones(table.n_rows, np.bool_)
    for column in table.attributes.values():
        if isinstance(column, CategoricalColumn):
            complete &= column.codes >= 0
        elif isinstance(column, NumericColumn) and column.values.dtype.kind == "f":
            complete &= ~np.isnan(column.values)
    n_dropped = table.n_rows - int(complete.sum())
    if not n_dropped:
        return table
    if n_dropped == table.n_rows:
        raise BncliError(
            "every row lacks a value", where=where, hint="--ignore a column, or leave out --drop-incomplete"
        )
    rows = f"{n_dropped:,} of {table.n_rows:,} rows lack" if n_dropped > 1 else "1 row lacks"
    watch(Note(f"{rows} a value and {'are' if n_dropped > 1 else 'is'} left out (--drop-incomplete)"))
    return table.take(np.flatnonzero(complete))


def _attributes_of_cuts(
    columns: Mapping[str, ColumnBuilder], keep: Mask, roles: ColumnRoles, given: Cuts, where: str, tokens: MissingTokens
) -> dict[str, Column]:
    """Return the columns as given cuts say; their texts are levels of the cuts."""
    # in the order in which they would be found, whatever that of the cuts is: cuts may be learnt again for folds
    found = [a for a in given.attributes if isinstance(a, CategoricalAttribute)]
    levels = {a.name: sort_levels(pa.array(list(a.code_of), pa.string())) for a in found}
    attributes: dict[str, Column] = {}
    for name in roles.attributes:
        column = columns[name]
        if name in roles.in_form:
            values = column.numeric().values
            attributes |= {a.name: in_form(values, a.form) for a in roles.in_form[name]}
        elif name in levels:
            _check_levels(column, levels[name], keep, where, tokens)
            attributes[name] = column.categorical(levels[name])
        else:
            attributes[name] = column.numeric()
    return attributes


def _check_levels(
    column: ColumnBuilder, levels: tuple[str, ...], keep: Mask, where: str, tokens: MissingTokens
) -> None:
    """Raise BncliError for a value that is not among the levels, unless only rows that are not used have it."""
    unknown = _unknown(column.texts(), levels, tokens)
    if len(unknown) and not keep.all():
        unknown = _unknown(column.texts(keep), levels, tokens)
    if len(unknown):
        value = unknown[0].as_py()
        what = f"column '{column.want.name}' has the value '{value}', which is not among its levels in the cuts"
        raise BncliError(what, where=where, hint="learn the cuts on data that holds it")


def _unknown(texts: pa.Array, levels: tuple[str, ...], tokens: MissingTokens) -> pa.Array:
    found = distinct_levels(texts, tokens.text)
    return found.filter(pc.invert(pc.is_in(found, value_set=pa.array(levels, pa.string()))))


def _without_unused(table: Columns, *, attributes_too: bool) -> Columns:
    """Return the table with only those labels, and levels, that occur in it."""
    attributes = dict(table.attributes)
    if attributes_too:
        for name, column in attributes.items():
            attributes[name] = _only_used(column) if isinstance(column, CategoricalColumn) else column
    return replace(table, attributes=attributes, label=None if table.label is None else _only_used(table.label))


def _only_used(column: CategoricalColumn) -> CategoricalColumn:
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels)) > 0
    if used.all():
        return column
    # The last element stands for the code MISSING, -1.
    renumbered = np.append(np.cumsum(used) - 1, -1)
    levels = tuple(level for level, is_used in zip(column.levels, used, strict=True) if is_used)
    return CategoricalColumn(narrow_codes(renumbered[column.codes], len(levels)), levels)


def rows_that_count(label: CategoricalColumn, weights: Array | None, where: str, *, drop_unlabelled: bool) -> Mask:
    """Return the rows of positive weight.

    One of them without a class is an error unless such rows are to be dropped.
    """
    keep = np.ones(len(label.codes), np.bool_) if weights is None else weights > 0
    if not keep.any():
        raise BncliError("every row has weight 0", where=where)
    unlabelled = keep & (label.codes < 0)
    n_unlabelled = int(unlabelled.sum())
    if n_unlabelled == keep.sum():
        raise BncliError("the class is missing in every row", where=where, hint="--class names another column")
    if n_unlabelled and not drop_unlabelled:
        rows = "row" if n_unlabelled == 1 else "rows"
        raise BncliError(f"the class is missing in {n_unlabelled} {rows}", where=where, hint="--drop-unlabelled")
    return keep & ~unlabelled


def check_labels(class_name: str, labels: tuple[str, ...], n_rows: int, where: str) -> None:
    """Raise BncliError for labels that cannot be classes. Two labels are never too many, however few the rows."""
    if len(labels) == 1:
        what = f"the class '{class_name}' has only one value, '{labels[0]}'"
        raise BncliError(what, where=where, hint="--class names another column")
    if are_too_many_labels(len(labels), n_rows):
        numbers = "it is a number, so cut it into a few intervals first, or " if _numbers(labels) is not None else ""
        what = f"the class '{class_name}' has {len(labels)} labels in {n_rows} rows"
        raise BncliError(what, where=where, hint=f"{numbers}--class names another column")


def _numbers(labels: tuple[str, ...]) -> Array | None:
    """Return what the labels write; None unless all of them are numbers."""
    values, wrong = to_numbers(pa.array(labels, pa.string()), ())
    return values if wrong is None else None


def are_too_many_labels(n_labels: int, n_rows: int) -> bool:
    """Return whether a class of so many labels is refused."""
    return n_labels > 2 and 2 * n_labels > n_rows


def warn_about_numeric_labels(class_name: str, labels: tuple[str, ...], n_rows: int, watch: Watch) -> None:
    """Warn if the labels are many numbers with few rows each or not all integers: probably measurements."""
    if are_measured(labels, n_rows):
        what = f"the class '{class_name}' looks like a number, not a class: {len(labels):,} different numbers"
        advice = "cut it into a few intervals first, or name another column with --class"
        codes = f"if they are codes: --categorical '{class_name}'"
        watch(Note(f"{what} in {n_rows:,} rows; {advice} ({codes})", warning=True))


def are_measured(labels: tuple[str, ...], n_rows: int) -> bool:
    """Return whether labels look like numbers that were measured, and not like classes."""
    numbers = _numbers(labels) if len(labels) > _MAX_NUMBERED else None
    return numbers is not None and bool(n_rows < _FEW_A_LABEL * len(labels) or (numbers != np.floor(numbers)).any())
