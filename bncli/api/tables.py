"""What Python holds as a table, as a source that is read like any file.

    a path                   the file, as the command reads it
    the Arrow C interface    data frames of pandas and Polars, tables of pyarrow, relations of DuckDB
    a mapping                names to columns: lists, or arrays of numpy

Conventions: a column of categories (a dictionary, to Arrow) is categorical whatever its values are; the index of a data
frame is no column; names that are no text become text.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bncli.errors import BncliError, UsageError
from bncli.files.table import Source

NAME = "the table"
"""What errors call a table that is no file."""


COLUMNS = ("class_", "ignore", "categorical", "numeric", "weights", "missing", "dates", "drop_unlabelled")
"""What can be said of the columns of a table, besides the options of learning."""
_SOURCE_NAMES = {"class_": "class_name", "missing": "missing_tokens"}


def columns_said(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the columns, as fields of a source; TypeError for a word that says nothing of them."""
    for key in options:
        if key not in COLUMNS:
            raise TypeError(f"nothing is called {key!r} here; of columns can be said {', '.join(COLUMNS)}")
    said = {key: value for key, value in options.items() if value is not None}
    for key in ("class_", "weights"):
        if not isinstance(said.get(key, ""), str):
            what = f"{key} is a {type(said[key]).__name__}, and should be the name of a column"
            raise UsageError(what, hint="put the values into the table")
    return {_SOURCE_NAMES.get(key, key): (value,) if _is_name(key, value) else value for key, value in said.items()}


def _is_name(key: str, value: Any) -> bool:
    """One name where a list of them is wanted."""
    return isinstance(value, str) and key in ("ignore", "categorical", "numeric", "missing")


@contextmanager
def source_of(data: Any, **options: Any) -> Iterator[Source]:
    """The table with what is said of its columns (fields of Source); a file made for it is gone afterwards."""
    said = {key: _names(value) for key, value in options.items() if value is not None}
    if isinstance(data, (str, os.PathLike)):
        yield Source((os.fspath(data),), **said)
        return
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


def table_of(data: Any) -> pa.Table:
    """The data as a table of Arrow; UsageError for what is none."""
    try:
        if isinstance(data, Mapping):
            columns = {str(name): _column(str(name), values) for name, values in data.items()}
            return pa.table(columns)
        if hasattr(data, "__arrow_c_stream__"):
            return _without_index(pa.table(data))
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(f"this is no table: {str(error).splitlines()[0]}") from error
    what = f"this is no table, but a {type(data).__name__}"
    hint = "give a path, a dictionary of columns, or what has the Arrow C interface, as data frames of pandas have"
    raise UsageError(what, hint=hint)


def _column(name: str, values: Any) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError) as error:
        what = f"column {name!r} cannot be read: {str(error).splitlines()[0]}"
        raise UsageError(what, hint="a column holds numbers or texts, not both") from error


def _without_index(table: pa.Table) -> pa.Table:
    """The index of a data frame of pandas, where it came along as columns, is left out."""
    told = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = [name for name in told.get("index_columns", ()) if isinstance(name, str) and name in table.column_names]
    return table.drop_columns(index) if index else table


def _categories(table: pa.Table, source: Source) -> list[str]:
    """Columns of categories of which nothing else is said."""
    known = {*source.categorical, *source.numeric, *source.ignore, source.weights}
    return [f.name for f in table.schema if pa.types.is_dictionary(f.type) and f.name not in known]


def _names(value: Any) -> Any:
    """Lists as the tuples that a source holds."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
