"""Tables in Python, as a source that is read like any file.

    a path                   the file, read as on the command line
    the Arrow C interface    data frames of pandas and Polars, tables of pyarrow, relations of DuckDB
    a mapping                names to columns: lists, or numpy arrays

- A column of categories (a dictionary in Arrow) is categorical, regardless of its values.
- The index of a data frame is not a column. Names that are not strings become strings.
- A column of Python objects is numeric if all its values are numbers, and otherwise holds text. None, NaN and the
  missing values of libraries are missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bncli.cli.options import check_decimal_mark, parse_delimiter, words_about_tables
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import temporary_folder
from bncli.files.reading.column_roles import split_names
from bncli.files.reading.single_values import CONTAINERS, is_missing_value
from bncli.files.reading.source import Source
from bncli.files.reading.table import TABLE_NAME

SPLIT_OPTIONS = ("group", "time", "gap", "window")
"""Options about rows that belong together, and about their order."""
COLUMN_OPTIONS = (
    "class_",
    "ignore",
    "categorical",
    "numeric",
    "weights",
    "missing",
    "dates",
    "decimal",
    "schema",
    "drop_unlabelled",
    "on_bad_row",
    "use",
    "positive",
    "drop_incomplete",
    *SPLIT_OPTIONS,
)
"""Options about the columns and rows of a table to learn from."""
FILE_OPTIONS = ("format", "delimiter", "encoding", "names")
"""Options about how to read a table that is a file."""
LABELLED_OPTIONS = ("class_", "weights", "missing", "drop_unlabelled", "on_bad_row", *FILE_OPTIONS)
"""Options about a labelled table for a model, whose columns the model defines."""
SCORED_OPTIONS = ("missing", "on_bad_row", *FILE_OPTIONS)
"""Options about a table to score."""
_SOURCE_FIELDS = {"class_": "class_name", "missing": "missing_tokens", "schema": "schema_file"}
_LISTS_OF_NAMES = ("ignore", "categorical", "numeric", "missing", "use", "names", "group")
_ARROW = (pa.Table, pa.RecordBatch)


def source_options(
    options: Mapping[str, Any], allowed: Sequence[str] = (*COLUMN_OPTIONS, *FILE_OPTIONS)
) -> dict[str, Any]:
    """Return options about a table as fields of `Source`.

    Raises TypeError for an option that is not `allowed`, and UsageError for an invalid value.
    """
    for key in options:
        if key not in allowed:
            raise TypeError(f"there is no option {key!r} for this table; the options are {', '.join(allowed)}")
    options = {key: value for key, value in options.items() if value is not None}
    for key in ("class_", "weights", "time"):
        if not isinstance(options.get(key, ""), str):
            what = f"{key} is of type {type(options[key]).__name__}; it should be the name of a column"
            raise UsageError(what, hint="give it as a string, such as '1'")
    fields: dict[str, Any] = {}
    for key, value in options.items():
        if key == "delimiter":
            value = parse_delimiter(str(value))
        elif key == "decimal":
            value = check_decimal_mark(str(value))
        elif key == "gap":
            value = str(value)
        elif key == "window":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"window is {value!r}; it should be a whole number of blocks, 1 or more")
        elif key in ("schema", "on_bad_row"):
            value = os.fspath(value)
        elif isinstance(value, str) and key in _LISTS_OF_NAMES:
            value = (value,)
        elif key in _LISTS_OF_NAMES:
            value = tuple(value)
            if odd := [each for each in value if not isinstance(each, str)]:
                raise UsageError(
                    f"{key} lists a value of type {type(odd[0]).__name__}; it should be a string or a list of strings"
                )
        else:
            value = check_word(key, value)
        fields[_SOURCE_FIELDS.get(key, key)] = value
    return fields


def check_word(key: str, value: Any) -> Any:
    """Return the value of an option; raise UsageError if the option takes certain words and this is not one of them."""
    words = words_about_tables().get(key)
    if words is not None and value is not None and value not in words:
        raise UsageError(f"{key} is {value!r}; it should be one of {', '.join(map(repr, words))}")
    return value


@contextmanager
def source_of(data: Any, *, in_memory: bool = False, **options: Any) -> Iterator[Source]:
    """Yield a source for a table; `options` are fields of `Source`.

    A table that is not a file is written to a temporary file, unless it is to be read `in_memory`, which saves time for
    few rows. Raises UsageError for data that is not a table, and for options of files if the data is not a file.
    """
    fields: dict[str, Any] = {}
    for key, value in options.items():
        if value is not None:
            is_list = isinstance(value, Sequence) and not isinstance(value, str)
            fields[key] = tuple(value) if is_list else value
    if isinstance(data, (str, os.PathLike)):
        yield Source((os.fspath(data),), **fields)
        return
    if unused := next((key for key in FILE_OPTIONS if key in fields), None):
        raise UsageError(f"{unused}= sets how a file is read, but the table is not a file", hint=f"leave {unused}= out")
    table = table_of(data)
    if in_memory:
        yield Source((), rows=table, **fields)
        return
    with temporary_folder() as folder:
        path = str(Path(folder, "table.arrow"))
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        source = Source((path,), **fields)
        try:
            # Columns of categories are categorical, unless an option says otherwise.
            declared = (*source.categorical, *source.numeric, *source.ignore, *source.group)
            known = {*split_names(declared, table.schema.names), source.weights, source.time}
            categories = [f.name for f in table.schema if pa.types.is_dictionary(f.type) and f.name not in known]
            yield replace(source, categorical=(*source.categorical, *categories))
        except BncliError as error:
            raise type(error)(error.what, where=error.where.replace(path, TABLE_NAME), hint=error.hint) from None


def table_of(data: Any) -> pa.Table:
    """Return data as an Arrow table of types that can be written and sorted.

    Raises UsageError for anything but a table.
    """
    names = data.schema.names if isinstance(data, _ARROW) else data if isinstance(data, Mapping) else ()
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, _ARROW):
        names = getattr(data, "columns", ())
    texts = [str(name) for name in names]
    if len({*texts}) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise UsageError(f"two columns are called {twice!r}, {TABLE_NAME}", hint="rename one of them")
    try:
        if isinstance(data, Mapping):
            table = pa.table({str(name): column_of(values, str(name)) for name, values in data.items()})
        elif hasattr(data, "__arrow_c_stream__"):
            table = _arrow_table(data)
        else:
            what = f"expected a table, found an object of type {type(data).__name__}"
            hint = "give a path, a dictionary of columns, a data frame, or another table with the Arrow C interface"
            raise UsageError(what, hint="collect it first, with .collect()" if hasattr(data, "collect") else hint)
        fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
        return table.cast(pa.schema(fields))
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(
            f"the object is not a table: {str(error).splitlines()[0]}",
            hint="give a data frame or a dictionary of columns",
        ) from error


def _arrow_table(data: Any) -> pa.Table:
    """Return an object with the Arrow C interface as an Arrow table, without the index of a pandas data frame.

    Where Arrow does not know the type of a column, the values of the column are converted one by one.
    """
    if hasattr(data, "columns") and not isinstance(data, _ARROW):
        try:
            table = pa.table(data)
        except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
            return pa.table({str(name): column_of(data[name], str(name)) for name in data.columns})
        if hasattr(data, "iloc"):
            for i, field in enumerate(table.schema):
                if _is_extension(field.type):
                    table = table.set_column(i, field.name, column_of(data[field.name], ""))
    else:
        table = pa.table(data)
    metadata = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str) and name in table.column_names]
    return table.drop_columns(index) if index else table


def _plain_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type without what Arrow cannot sort: extension types and views of strings (as Polars has)."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _plain_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return pa.dictionary(arrow_type.index_type, _plain_type(arrow_type.value_type), arrow_type.ordered)
    return pa.large_string() if pa.types.is_string_view(arrow_type) else arrow_type


def _is_extension(arrow_type: pa.DataType) -> bool:
    """Return whether a type, or the type of its categories, is an extension type, such as periods of pandas."""
    return isinstance(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type, pa.BaseExtensionType)


def column_of(values: Any, name: str) -> pa.Array:
    """Return values as an Arrow column; if Arrow refuses them, as numbers if all are numbers, otherwise as strings.

    Raises UsageError, which mentions `name`, for values that are no list or array, and for lists or dicts among them.
    """
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        what = f"column {name!r} is of type {type(values).__name__}; it should be a list or an array"
        raise UsageError(what, hint="in a table of one row, each column is a list of one value, as in {'a': [1]}")
    if not hasattr(values, "__len__"):
        values = list(values)  # an iterator can be read only once
    try:
        column = pa.array(values, from_pandas=True)
        if not _is_extension(column.type):
            return column
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError, OverflowError):
        pass
    values = list(values)
    if (container := next((value for value in values if isinstance(value, CONTAINERS)), None)) is not None:
        what = f"column {name!r} cannot be read: it contains a value of type {type(container).__name__}"
        raise UsageError(what, hint="use numbers or strings")
    values = [None if is_missing_value(value) else value for value in values]
    with suppress(TypeError, ValueError, OverflowError):
        if not any(isinstance(value, str) for value in values):
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.large_string())
