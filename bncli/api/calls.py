"""Code that all calls from Python share: tables as arguments, wording of errors, progress bars, one BLAS thread.

- In errors and notes, keyword arguments replace the flags of the command line:

      --categorical NAME keeps one           ->  categorical=NAME keeps one
      --k has no effect with --structure nb  ->  k= has no effect with structure='nb'

  A hint that needs a flag without a keyword is left out.
- Notes are issued as Python warnings. `progress=True` also draws a progress bar, on the standard error if that is a
  terminal, or in a notebook with what IPython displays (no widgets are needed). The bar disappears with the call.
- bncli has its own threads, which work on blocks of rows. Threads of the BLAS would compete with them and change the
  last bits of sums, so the BLAS gets one thread during a call, and its former number afterwards. The command line sets
  this before numpy is imported. In Python it is set by functions of the OpenBLAS in the wheels of numpy and scipy or,
  for other libraries, by threadpoolctl. With neither, probabilities may differ from those of the command line in the
  last digit.

Tables in Python become a source that is read like any file:

    a path                   the file, read as on the command line
    the Arrow C interface    data frames of pandas and Polars, tables of pyarrow, relations of DuckDB
    a mapping                names to columns: lists, or numpy arrays

- A column of categories (a dictionary in Arrow) is categorical, regardless of its values.
- The index of a data frame is not a column. Names that are not strings become strings.
- A column of Python objects that Arrow cannot convert is numeric if all its values are numbers, and otherwise holds
  strings. None, NaN and the missing values of libraries are missing.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bncli.api.arguments import check_integer
from bncli.catalogue import LEARNING
from bncli.catalogue.choices import Choice, Option
from bncli.catalogue.option_kinds import Switch
from bncli.cli.console import Console
from bncli.cli.learning_options import typed_options
from bncli.cli.options import check_decimal_mark, parse_delimiter, switches_about_tables, words_about_tables
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import temporary_folder
from bncli.files.reading.column_roles import split_names
from bncli.files.reading.single_values import CONTAINERS, is_missing_value
from bncli.files.reading.source import Source
from bncli.files.reading.table import TABLE_NAME
from bncli.watch import Event, Note, Run, Watch, silent

ProgressOption = Callable[[Event], None] | bool | None
"""The values of `progress`: a function that receives every event, True for a bar, or False or None for neither."""
_OTHER_OPTIONS = (
    "unseen",
    "seed",
    "threads",
    "test",
    "folds",
    "repeats",
    "rows",
    "by",
    "reliability",
    "allow_missing_columns",
)
_FLAG = re.compile(r"""(?<![\w'"-])--([a-z][a-z0-9-]*)(?: ('[^']*'|[\w.,:+-]*[\w+]-?))?""")
_NO_VALUE = re.compile(
    "a|above|and|are|can|cannot|columns|gives|has|holds|is|keeps|leaves|makes|must|names|needs?|of|or|out|reads|takes"
    "|was|with|would"
)
"""Words that are not taken as the value of the option before them, even if its value may be any string."""
_OPENBLAS_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_REDRAW_SECONDS = 0.1


@contextmanager
def python_call(progress: ProgressOption = None) -> Iterator[Watch]:
    """Yield the watch that `progress` selects, and limit the BLAS to one thread within the block.

    In the message of a BncliError raised in the block, keyword arguments replace flags (`error_in_keywords`).
    """
    try:
        with one_blas_thread(), _watching(progress) as watch:
            yield watch
    except BncliError as error:
        raise error_in_keywords(error) from error.__cause__


def make_run(threads: int, watch: Watch = silent) -> Run:
    """Return a `Run` with this number of threads; raise UsageError unless it is an integer of at least 1."""
    return Run(check_integer("threads", threads, 1), watch=watch)


def error_in_keywords(error: BncliError) -> BncliError:
    """Return the error with keywords in place of flags; its hint is dropped if a flag in it has no keyword."""
    hint = in_keywords(error.hint)
    hint = "" if _FLAG.search(hint) else hint
    return type(error)(in_keywords(error.what), where=in_keywords(error.where), hint=hint)


def in_keywords(text: str) -> str:
    """Return `text` with keywords in place of flags; flags without a keyword stay."""
    if "--" not in text:
        return text
    names = (*typed_options(), *COLUMN_OPTIONS, *FILE_OPTIONS, *_OTHER_OPTIONS)
    keywords = {name.rstrip("_").replace("_", "-"): name for name in names}
    text = re.sub(r"(?<=^Invalid value for )'(--[a-z-]+)'", r"\1", text)
    return _FLAG.sub(lambda match: _keyword(match, keywords), text)


def _keyword(match: re.Match[str], keywords: dict[str, str]) -> str:
    """Return a flag and the word after it as `k=2` if the word is a value of the option, otherwise as `k= word`.

    A switch becomes `k=True`, and a flag without a keyword is unchanged. These words count as values: words that the
    option accepts, numbers, names in capital letters, and anything in quotes or with a dot or comma inside. After an
    option about a table whose value may be any string, most other words count too (see _NO_VALUE).
    """
    flag, word = match[1], match[2]
    if flag not in keywords:
        return match[0]
    entry = next((option for option in LEARNING if option.flag == f"--{flag}"), None)
    accepted = words_about_tables().get(keywords[flag])
    if keywords[flag] in switches_about_tables() or (isinstance(entry, Option) and isinstance(entry.kind, Switch)):
        return f"{keywords[flag]}=True" + (f" {word}" if word else "")
    if word is None:
        return f"{keywords[flag]}="
    if re.fullmatch(r"'.*'|[A-Z_]+|[\d.]+(e-\d+)?", word):
        return f"{keywords[flag]}={word}"
    if re.search(r"\w[.,]\w", word) or (accepted is not None and word in accepted):
        is_value = True
    elif entry is None:
        takes_text = accepted is None and keywords[flag] in (*COLUMN_OPTIONS, *FILE_OPTIONS, "by")
        is_value = takes_text and _NO_VALUE.fullmatch(word) is None
    elif isinstance(entry, Choice):
        is_value = word.partition(":")[0] in entry.words
    else:
        is_value = word in getattr(entry.kind, "words", ())
    return f"{keywords[flag]}={word!r}" if is_value else f"{keywords[flag]}= {word}"


@contextmanager
def _watching(progress: ProgressOption) -> Iterator[Watch]:
    """Yield the watch that `progress` selects, and draw a bar if it is True; raise UsageError for an invalid value."""
    if progress is True:
        with Console(bar=_notebook_bar()) as console:
            yield lambda event: _warn(event) if isinstance(event, Note) else console.watch(event)
    elif callable(progress):
        yield progress
    elif not progress:
        yield _warn
    else:
        what = f"progress is of type {type(progress).__name__}; it should be True or a function that takes an event"
        raise UsageError(what, hint="leave it out to see warnings only")


def _warn(event: Event) -> None:
    if isinstance(event, Note):
        warnings.warn(in_keywords(event.text), UserWarning, stacklevel=2)


def _notebook_bar() -> NotebookBar | None:
    """Return a progress bar for the running notebook, or None outside of notebooks."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    return NotebookBar(HTML, display)


class NotebookBar:
    """A progress bar in HTML, which is redrawn in place (see `bncli.cli.console.ProgressBar`)."""

    def __init__(self, html: Callable[[str], Any], display: Callable[..., Any]) -> None:
        self._html = html
        self._display = display(html(""), display_id=True)
        self._name, self._drawn = "starting", -_REDRAW_SECONDS

    def stage(self, name: str) -> None:
        """Begin another stage."""
        self._name = name
        self._draw("<progress></progress>", "")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """Show how much of the stage is done, at most ten times per second; without a total the bar only moves."""
        if time.monotonic() >= self._drawn + _REDRAW_SECONDS:
            reached = "" if total is None else f' value="{done:g}" max="{total:g}"'
            self._draw(f"<progress{reached}></progress>", detail)

    def _draw(self, bar: str, detail: str) -> None:
        self._drawn = time.monotonic()
        self._display.update(self._html(f"{bar} {escape(self._name)} {escape(detail[:200])}"))

    def print(self, text: str) -> None:
        """Show a line in place of the bar."""
        self._draw("", text)

    def close(self) -> None:
        """Remove the bar."""
        self._display.update(self._html(""))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS to one thread within the block."""
    libraries = _blas_functions()
    before = [get_threads() for get_threads, _ in libraries]
    try:
        for (_, set_threads), threads in zip(libraries, before, strict=True):
            if threads != 1:
                set_threads(1)
        yield
    finally:
        for (_, set_threads), threads in zip(libraries, before, strict=True):
            if threads != 1:
                set_threads(threads)


@cache
def _blas_functions() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return the functions that get and set the number of threads of each BLAS, or () if none can be controlled."""
    functions = _openblas_functions()
    if functions:
        return functions
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return ()
    import scipy.linalg  # noqa: F401 - its library would be loaded later, with its own number of threads

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple((library.get_num_threads, library.set_num_threads) for library in libraries)


def _openblas_functions() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return pairs of functions that get and set the number of threads of the OpenBLAS of numpy and of scipy.

    A library has one pair per known naming scheme that it exports. Only the folders `numpy.libs` and `scipy.libs` of
    wheels are searched, so the result is empty for other installations.
    """
    import scipy

    functions = []
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parents[1] / f"{package.__name__}.libs"
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            names = (name for name in _OPENBLAS_NAMES if hasattr(library, name.format("get")))
            functions += [(getattr(library, n.format("get")), getattr(library, n.format("set"))) for n in names]
    return tuple(functions)


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
"""Options about a labelled table for a fitted model, whose schema defines the columns."""
SCORED_OPTIONS = ("missing", "on_bad_row", *FILE_OPTIONS)
"""Options about a table to score."""
_SOURCE_FIELDS = {"class_": "class_name", "missing": "missing_tokens", "schema": "schema_file"}
_LISTS_OF_NAMES = ("ignore", "categorical", "numeric", "missing", "use", "names", "group")
_ARROW = (pa.Table, pa.RecordBatch)


def source_options(
    options: Mapping[str, Any], allowed: Sequence[str] = (*COLUMN_OPTIONS, *FILE_OPTIONS)
) -> dict[str, Any]:
    """Convert options about a table to fields of `Source`; options with the value None are left out.

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
    """Return the value; raise UsageError if the option accepts only certain words and the value is not one of them."""
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
    """Convert data to an Arrow table of types that can be written and sorted.

    Raises UsageError for anything but a table, and for duplicate column names.
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
    """Convert an object with the Arrow C interface to an Arrow table, without the index of a pandas data frame.

    If Arrow cannot convert a data frame, each column is converted by `column_of`; so are columns of pandas for which
    Arrow has no standard type.
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
    """Replace types that Arrow cannot sort: extension types by their storage, string views (Polars) by strings."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _plain_type(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return pa.dictionary(arrow_type.index_type, _plain_type(arrow_type.value_type), arrow_type.ordered)
    return pa.large_string() if pa.types.is_string_view(arrow_type) else arrow_type


def _is_extension(arrow_type: pa.DataType) -> bool:
    """Return whether a type, or the type of its categories, is an extension type, such as periods of pandas."""
    return isinstance(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type, pa.BaseExtensionType)


def column_of(values: Any, name: str) -> pa.Array:
    """Convert values to an Arrow column.

    Values that Arrow refuses become numbers if all of them are numbers, and strings otherwise. Raises UsageError, which
    mentions `name`, for values that are not a list or an array, and for lists or dicts among values that Arrow refuses.
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
