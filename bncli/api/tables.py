"""What Python holds as a table, as a source that is read like any file.

    a path                   the file, as the command reads it
    the Arrow C interface    data frames of pandas and Polars, tables of pyarrow, relations of DuckDB
    a mapping                names to columns: lists, or arrays of numpy

Conventions: a column of categories (a dictionary, to Arrow) is categorical whatever its values are; the index of a data
frame is no column; names that are no text become text. A column of Python's objects is of numbers if all its values
are, else of their texts; None, NaN and what libraries have for a missing value is missing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bncli.api.messages import COLUMNS, FILES
from bncli.cli.options import decimal_of, delimiter_of, words_of_data
from bncli.errors import BncliError, UsageError
from bncli.files.reading.column_roles import split_names
from bncli.files.reading.source import Source

NAME = "the table"
"""What errors call a table that is no file."""
_ARROW = (pa.Table, pa.RecordBatch)
LABELLED = ("class_", "weights", "missing", "drop_unlabelled", "on_bad_row", *FILES)
"""What can be said of a labelled table whose columns a model knows."""
SCORED = ("missing", "on_bad_row", *FILES)
"""What can be said of rows for a model."""
_SOURCE_NAMES = {"class_": "class_name", "missing": "missing_tokens", "schema": "schema_file"}
_HOLDERS = (Mapping, list, set, tuple, np.ndarray, complex)


def source_options(options: Mapping[str, Any], words: Sequence[str] = (*COLUMNS, *FILES)) -> dict[str, Any]:
    """Return what is said of a table, as fields of a source; TypeError for a word that says nothing of it."""
    for key in options:
        if key not in words:
            raise TypeError(f"nothing is called {key!r} here; of a table can be said {', '.join(words)}")
    said = {key: value for key, value in options.items() if value is not None}
    for key in ("class_", "weights"):
        if not isinstance(said.get(key, ""), str):
            what = f"{key} is a {type(said[key]).__name__}, and should be the name of a column, a text"
            raise UsageError(what, hint="values go into the table; a column called 1 is '1'")
    return {_SOURCE_NAMES.get(key, key): _field(key, value) for key, value in said.items()}


def _field(key: str, value: Any) -> Any:
    """Return the value as a source holds it; UsageError for one that cannot be."""
    if key in ("delimiter", "decimal"):
        return (delimiter_of if key == "delimiter" else decimal_of)(str(value))
    if key in ("schema", "on_bad_row"):
        return os.fspath(value)
    return (value,) if _is_name(key, value) else one_of(key, value)


def _is_name(key: str, value: Any) -> bool:
    """Return one name where a list of them is wanted."""
    return isinstance(value, str) and key in ("ignore", "categorical", "numeric", "missing", "use", "names")


def one_of(key: str, value: Any) -> Any:
    """Return the value; UsageError where it should be one of some words and is none."""
    words = words_of_data().get(key)
    if words is not None and value is not None and value not in words:
        raise UsageError(f"{key} is {value!r}, and should be one of {', '.join(map(repr, words))}")
    return value


@contextmanager
def source_of(data: Any, **options: Any) -> Iterator[Source]:
    """Yield the table with what is said of its columns (fields of Source); a file made for it is gone afterwards."""
    said = {key: _names(value) for key, value in options.items() if value is not None}
    if isinstance(data, (str, os.PathLike)):
        yield Source((os.fspath(data),), **said)
        return
    if idle := next((key for key in FILES if key in said), None):
        raise UsageError(f"{idle}= says how a file is read, and the table is none", hint="leave it out")
    table = table_of(data)
    with tempfile.TemporaryDirectory(prefix="bncli-") as folder:
        path = str(Path(folder, "table.arrow"))
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        source = Source((path,), **said)
        try:
            yield replace(source, categorical=(*source.categorical, *_categories(table, source)))
        except BncliError as error:
            raise type(error)(error.what, where=error.where.replace(path, NAME), hint=error.hint) from None


def _names(value: Any) -> Any:
    """Return lists as the tuples that a source holds."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _categories(table: pa.Table, source: Source) -> list[str]:
    """Return columns of categories of which nothing else is said."""
    said = (*source.categorical, *source.numeric, *source.ignore)
    known = {*split_names(said, table.schema.names), source.weights}
    return [f.name for f in table.schema if pa.types.is_dictionary(f.type) and f.name not in known]


def table_of(data: Any) -> pa.Table:
    """Return the data as a table of Arrow, of types that can be written and sorted; UsageError for what is none."""
    _check_names(data)
    try:
        if isinstance(data, Mapping):
            return _plain(pa.table(_columns(data)))
        if hasattr(data, "__arrow_c_stream__"):
            return _plain(_frame(data))
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(f"this is no table: {str(error).splitlines()[0]}", hint="a table has columns") from error
    what = f"this is no table, but a {type(data).__name__}"
    hint = "give a path, a dictionary of columns, or what has the Arrow C interface, as data frames of pandas have"
    raise UsageError(what, hint="collect it first" if hasattr(data, "collect") else hint)


def _check_names(data: Any) -> None:
    names = data.schema.names if isinstance(data, _ARROW) else data if isinstance(data, Mapping) else ()
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, _ARROW):
        names = getattr(data, "columns", ())
    texts = [str(name) for name in names]
    if len({*texts}) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise UsageError(f"two columns are called {twice!r}, {NAME}", hint="rename one of them")


def _plain(table: pa.Table) -> pa.Table:
    """Texts that are views, as Polars has them, and types that others made up, as Arrow can sort and take them."""
    kinds = [_plain_kind(field.type) for field in table.schema]
    return table.cast(pa.schema([pa.field(f.name, kind) for f, kind in zip(table.schema, kinds, strict=True)]))


def _plain_kind(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_kind(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_kind(kind.value_type), kind.ordered)
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _columns(columns: Mapping[Any, Any]) -> dict[str, pa.Array]:
    return {str(name): column_of(values, str(name)) for name, values in columns.items()}


def _frame(data: Any) -> pa.Table:
    """Return a table of Arrow, or of another library; column by column where Arrow does not know one of its types."""
    if hasattr(data, "columns") and not isinstance(data, _ARROW):
        try:
            table = pa.table(data)
        except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
            return pa.table(_columns({name: data[name] for name in data.columns}))
        strange = [i for i, field in enumerate(table.schema) if _is_strange(field.type) and hasattr(data, "iloc")]
        for i in strange:
            table = table.set_column(i, table.schema.field(i).name, column_of(data[table.schema.field(i).name], ""))
    else:
        table = pa.table(data)
    return _without_index(table)


def _is_strange(kind: pa.DataType) -> bool:
    """Periods and intervals of pandas, by themselves or as categories."""
    return isinstance(kind.value_type if pa.types.is_dictionary(kind) else kind, pa.BaseExtensionType)


def _without_index(table: pa.Table) -> pa.Table:
    """Return the table without the index of a pandas data frame that came along as columns."""
    told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = [name for name in told.get("index_columns", ()) if isinstance(name, str) and name in table.column_names]
    return table.drop_columns(index) if index else table


def column_of(values: Any, name: str) -> pa.Array:
    """Return a column as Arrow reads it, else of the values' numbers or texts; UsageError where they have none."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        what = f"column {name!r} is a {type(values).__name__}, and should be a list or an array"
        raise UsageError(what, hint="a table of one row has columns of one value, as in {'a': [1]}")
    if not hasattr(values, "__len__"):
        values = list(values)  # it can be read but once
    try:
        found = pa.array(values, from_pandas=True)
        if not _is_strange(found.type):
            return found
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError, OverflowError):
        pass
    listed = list(values)
    if (wrong := next((value for value in listed if isinstance(value, _HOLDERS)), None)) is not None:
        what = f"column {name!r} cannot be read: it holds a {type(wrong).__name__}"
        raise UsageError(what, hint="a column holds numbers or texts")
    return _of_objects(listed)


def _of_objects(values: Iterable[Any]) -> pa.Array:
    """Return numbers if all values are, else their texts."""
    listed = [None if _is_missing(value) else value for value in values]
    with suppress(TypeError, ValueError, OverflowError):
        if not any(isinstance(value, str) for value in listed):
            return pa.array([None if value is None else float(value) for value in listed], pa.float64())
    return pa.array([None if value is None else str(value) for value in listed], pa.large_string())


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # NA of pandas is neither equal nor unequal to anything; an array has no one answer
        return not isinstance(value, _HOLDERS)
