"""What a user can say of DATA, as one frozen value: which files, how to read them, what the columns are.

A row block: some consecutive rows of a table as typed arrays, whatever file they came from.

Text files and columnar files alike are cut into raw blocks that are parsed one by one, on any thread, into row blocks;
all that follows (learning types, coding rows for a model) sees row blocks only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import pyarrow as pa

from bncli.engine.data.number_formats import Form
from bncli.engine.kernels.arrays import Mask

BLANKS = " \t"
"""The characters that are not part of a value at either end of it."""


@dataclass(frozen=True)
class Source:
    """What to read and how.

    paths: the files of one table, a directory, or `-` for stdin. format: csv, tsv, parquet or arrow (an IPC file, an
    IPC stream or Feather), None = by the first bytes. class_name: None = a column called `class`, else the last one.
    schema_file: None = NAME.schema.json beside the data file, if there is one. missing_tokens: None = the defaults of
    `Tokens.of`. on_bad_row: fail, skip, or the path of a file that collects the malformed rows.
    dates: auto; off, dates stay text; dmy or mdy, how to read a date of three numbers with the year last. decimal: the
    decimal mark, a point or a comma, None = found in each column. encoding: of text, None = UTF-8 or as a mark says.
    allow_missing_columns: columns that a model uses and these rows lack are unknown, and no error.
    carried: columns that are read beside the others, those to be ignored or unknown to a model included.
    use: the only columns that may be attributes, none = all. Where a list of columns holds a text that is no column, it
    is taken for several, with commas between them.
    positive: the label that counts as the event, which comes second of the two; None = the second in sorted order.
    drop_incomplete: rows that lack a value of any attribute are left out of learning.
    names: those of the columns of a text file without a header row.
    """

    paths: tuple[str, ...]
    format: str | None = None
    delimiter: str | None = None
    class_name: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    weights: str | None = None
    schema_file: str | None = None
    missing_tokens: tuple[str, ...] | None = None
    on_bad_row: str = "fail"
    drop_unlabelled: bool = False
    dates: str = "auto"
    decimal: str | None = None
    encoding: str | None = None
    allow_missing_columns: bool = False
    carried: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    positive: str | None = None
    drop_incomplete: bool = False
    names: tuple[str, ...] | None = None

    @property
    def bad_rows_file(self) -> str | None:
        """The file that collects malformed rows, if there is to be one."""
        return self.on_bad_row if self.on_bad_row not in ("fail", "skip") else None


@dataclass(frozen=True)
class MissingTokens:
    """The texts, blanks around them stripped, of missing values: `text` in any column, `number` among numbers."""

    text: tuple[str, ...]
    number: tuple[str, ...]

    @staticmethod
    def of(missing_tokens: tuple[str, ...] | None) -> MissingTokens:
        """Return the empty text and `?`, and among numbers NA, NaN, null.

        Or the empty text and what the user says instead.

        A token with a plus before it is one more, beside those or beside what is said instead of them.
        """
        said = [token.strip(BLANKS) for token in missing_tokens or ()]
        instead = [token for token in said if not _is_more(token)]
        more = [token[1:].strip(BLANKS) for token in said if _is_more(token)]
        by_default = missing_tokens is None or (bool(more) and not instead)
        text = ["", "?"] if by_default else ["", *instead]
        number = [*text, "NA", "NaN", "null"] if by_default else text
        return MissingTokens(tuple(dict.fromkeys((*text, *more))), tuple(dict.fromkeys((*number, *more))))


Values = Any
"""Of N rows: an Arrow array of strings without nulls, int64 numbers, or finite float64 numbers, NaN where missing."""
NOT_UTF8 = "not UTF-8 text"
"""What is wrong with a row that is in another encoding."""


class ValueKind(Enum):
    """How the values of a column are asked for."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class ColumnRequest:
    """A column asked of every row block.

    A column of numbers in which a row block has other text comes back as text; if `strict`, the rows with such text are
    malformed instead. A weight is strict and must be present, and 0 or between 1e-100 and 1e100. What is asked for as
    text of a `form` comes as the numbers that the form makes of it: of a date its seconds since 1970, whatever part is
    meant.
    """

    name: str
    kind: ValueKind
    strict: bool = False
    weight: bool = False
    form: Form | None = None


@dataclass(frozen=True)
class BadRow:
    """A malformed row: what is wrong with it, its file, its number (of the `unit`: line or row), its bytes."""

    what: str
    path: str
    number: int
    raw: bytes
    unit: str = "line"

    @property
    def where(self) -> str:
        return f"{self.path} {self.unit} {self.number}"


@dataclass(frozen=True)
class RowBlock:
    """Rows in file order; values[i] belongs to the i-th Want. `locate` tells where a row stands: `FILE line L`."""

    n_rows: int
    values: tuple[Values, ...]
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]


def is_text(values: Values) -> bool:
    return not isinstance(values, np.ndarray)


def select(values: Values, rows: Mask) -> Values:
    """Return the rows that the mask keeps."""
    return values.filter(pa.array(rows)) if is_text(values) else values[rows]


def _is_more(token: str) -> bool:
    return len(token) > 1 and token.startswith("+")
