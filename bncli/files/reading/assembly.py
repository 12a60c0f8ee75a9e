"""From finished columns to the table that the engine takes: rows that count, labels checked, identifiers left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, Cuts
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.growing import Growing
from bncli.files.reading.non_numeric import doubts_about
from bncli.files.reading.roles import Roles
from bncli.files.reading.row_blocks import Kind
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.vocabulary import distinct_levels, narrow_codes
from bncli.watch import Note, Watch

_MIN_IDENTIFIER_LEVELS = 20
_MAX_CODES = 10
_N_TRIED = 4096


def assemble(
    columns: Mapping[str, Growing],
    n_rows: int,
    roles: Roles,
    where: str,
    source: Source,
    *,
    given: Cuts | None,
    watch: Watch,
) -> Columns:
    """The table, without identifiers, rows of weight 0 and (if the source says so) rows without a class."""
    if n_rows == 0:
        raise BncliError("the table has no rows", where=where, hint="there must be rows below the header")
    label = columns[roles.class_name].label(as_text=roles.class_name in roles.categorical)
    weights = None if roles.weights is None else columns[roles.weights].numeric().values.astype(np.float64)
    keep = rows_that_count(label, weights, where, drop_unlabelled=source.drop_unlabelled)
    tokens = Tokens.of(source.missing_tokens)
    attributes = _attributes(columns, keep, roles, where, tokens, given, watch)
    table = Columns(n_rows, attributes, roles.class_name, label, weights)
    if not keep.all():
        table = _without_unused(table.take(np.flatnonzero(keep)), attributes_too=given is None)
    _check_labels(table, where)
    return table


def rows_that_count(label: CategoricalColumn, weights: Array | None, where: str, *, drop_unlabelled: bool) -> Mask:
    """The rows of positive weight; one of them without a class is an error unless such rows are to be dropped."""
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


def _attributes(
    columns: Mapping[str, Growing],
    keep: Mask,
    roles: Roles,
    where: str,
    tokens: Tokens,
    given: Cuts | None,
    watch: Watch,
) -> dict[str, Column]:
    fixed = {} if given is None else {a.name: a.levels for a in given.attributes if isinstance(a, CategoricalAttribute)}
    attributes: dict[str, Column] = {}
    identifiers: list[str] = []
    doubts = _doubts(columns, roles, tokens)
    for name in roles.attributes:
        column = columns[name]
        if column.want.kind is not Kind.TEXT:
            attributes[name] = column.numeric()
        elif name in fixed:
            _check_levels(column, fixed[name], keep, where, tokens)
            attributes[name] = column.categorical(fixed[name])
        elif name not in roles.categorical and _is_identifier(column, len(keep), tokens):
            identifiers.append(name)
        else:
            attributes[name] = column.categorical()
    codes = [name for name, c in attributes.items() if name not in roles.numeric and looks_like_codes(c)]
    _tell(identifiers, codes, watch)
    if not attributes:
        what = "there is no attribute left: all columns but the class look like identifiers"
        raise BncliError(what, where=where, hint="; ".join((*doubts[:1], "--categorical NAME keeps one")))
    for doubt in doubts:
        watch(Note(doubt))
    return attributes


def _doubts(columns: Mapping[str, Growing], roles: Roles, tokens: Tokens) -> list[str]:
    found = [(name, columns[name]) for name in roles.attributes]
    return [doubt for name, c in found for doubt in doubts_about(name, c.non_numeric, c.blocks, tokens)]


def _check_levels(column: Growing, levels: tuple[str, ...], keep: Mask, where: str, tokens: Tokens) -> None:
    """An error for a value that is not among the levels, unless only rows that do not count have it."""
    unknown = _unknown(column.texts(), levels, tokens)
    if len(unknown) and not keep.all():
        unknown = _unknown(column.texts(keep), levels, tokens)
    if len(unknown):
        value = unknown[0].as_py()
        what = f"column '{column.want.name}' has the value '{value}', which is not among its levels in the cuts"
        raise BncliError(what, where=where, hint="learn the cuts on data that holds it")


def _unknown(texts: pa.Array, levels: tuple[str, ...], tokens: Tokens) -> pa.Array:
    found = distinct_levels(texts, tokens.text)
    return found.filter(pc.invert(pc.is_in(found, value_set=pa.array(levels, pa.string()))))


def _is_identifier(column: Growing, n_rows: int, tokens: Tokens) -> bool:
    return are_of_an_identifier(len(distinct_levels(column.texts(), tokens.text)), n_rows)


def are_of_an_identifier(n_levels: int, n_rows: int) -> bool:
    """Whether a column of names with so many levels is left out, unless it is said to be categorical."""
    return n_levels > _MIN_IDENTIFIER_LEVELS and 2 * n_levels > n_rows


def looks_like_codes(column: Column) -> bool:
    """Integers of at most 10 different values."""
    if not isinstance(column, NumericColumn):
        return False
    values: NDArray[Any] = column.values
    return all(_few_integers(sample) for sample in (values[:_N_TRIED], values))


def _few_integers(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if (values != np.floor(values)).any():
            return False
    elif values.dtype.itemsize <= 2 and len(values):
        shifted = values.astype(np.int64) - int(values.min())
        return bool(np.count_nonzero(np.bincount(shifted)) <= _MAX_CODES)
    return len(np.unique(values)) <= _MAX_CODES


def _tell(identifiers: list[str], codes: list[str], watch: Watch) -> None:
    if identifiers:
        watch(Note(f"left out as identifiers: {', '.join(identifiers)} (--categorical NAME keeps one)"))
    if codes:
        text = f"integers of at most {_MAX_CODES} values taken as numbers: {', '.join(codes)}"
        watch(Note(f"{text} (if they are codes: --categorical NAME)"))


def _without_unused(table: Columns, *, attributes_too: bool) -> Columns:
    """The table with only those labels, and levels, that occur in it."""
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


def _check_labels(table: Columns, where: str) -> None:
    """Conventions: two labels are never too many, however few the rows."""
    assert table.label is not None
    labels = table.label.levels
    if len(labels) == 1:
        what = f"the class '{table.class_name}' has only one value, '{labels[0]}'"
        raise BncliError(what, where=where, hint="--class names another column")
    if are_too_many_labels(len(labels), table.n_rows):
        what = f"the class '{table.class_name}' has {len(labels)} labels in {table.n_rows} rows"
        raise BncliError(what, where=where, hint="--class names another column")


def are_too_many_labels(n_labels: int, n_rows: int) -> bool:
    """Whether a class of so many labels is refused."""
    return n_labels > 2 and 2 * n_labels > n_rows
