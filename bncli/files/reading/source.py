"""What to read and how (`Source`), and the row blocks in which all tables are read.

Text files and columnar files are both cut into raw blocks. Each raw block is parsed into a row block (typed arrays), on
any thread. Everything that follows (type inference, coding rows for a model) sees row blocks only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np

from bncli.engine.data.schema import Form
from bncli.engine.kernels.arrays import Mask

BLANKS = " \t"
"""Characters that are removed from both ends of every value."""
NOT_UTF8 = "not UTF-8 text"
"""The fault of a malformed row in another encoding."""
Values = Any
"""The values of N rows: an Arrow array of strings without nulls, int64, or float64 (finite, or NaN if missing).

Strings are dictionary-encoded, and numbers of narrower types, where `parse_batch` keeps the types of a file.
"""


@dataclass(frozen=True)
class Source:
    """The table to read, and the options that describe it.

    paths: the files of one table, a directory, or `-` for stdin.
    format: csv, tsv, parquet or arrow (an IPC file, an IPC stream or Feather); None = detect it from the first bytes.
    delimiter: of text files; None = detect it in the header.
    class_name: None = a column called `class`, else the last one.
    ignore, categorical, numeric: column names. A text that is not a column name is split at commas.
    weights: the column with the row weights.
    schema_file: None = NAME.schema.json beside the data file, if it exists.
    missing_tokens: None = the defaults of `MissingTokens.of`.
    on_bad_row: fail, skip, or the path of a file that receives the malformed rows.
    drop_unlabelled: leave out rows without a class.
    dates: auto; off (dates stay text); dmy or mdy (how to read dates of three numbers with the year last).
    decimal: the decimal mark, a point or a comma; None = detect it in each column.
    encoding: of text files; None = UTF-8, or the encoding of the byte-order mark.
    allow_missing_columns: treat columns that a model uses and the table lacks as missing values.
    carried: columns that are read although the model does not use them.
    use: the only columns that may be attributes; empty = all. Split at commas as `ignore`.
    positive: the label of the event, which becomes the second of two; None = the second in sorted order.
    drop_incomplete: leave out rows that lack a value of any attribute when learning.
    names: the column names of a text file without a header row.
    rows: an Arrow table in memory to score or to test a model on, in place of paths.
    group: columns whose equal values mark rows that belong together. Split at commas as `ignore`.
    time: the column by which rows are ordered. gap: the time span left out before held-out rows, such as 30d.
    window: learn only from this many of the latest blocks of rows.
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
    rows: Any = None
    group: tuple[str, ...] = ()
    time: str | None = None
    gap: str | None = None
    window: int | None = None

    @property
    def bad_rows_file(self) -> str | None:
        """The file that receives the malformed rows, or None."""
        return self.on_bad_row if self.on_bad_row not in ("fail", "skip") else None


@dataclass(frozen=True)
class MissingTokens:
    """Texts that mean a missing value, stripped of blanks: `text` in every column, `number` in columns of numbers."""

    text: tuple[str, ...]
    number: tuple[str, ...]

    @staticmethod
    def of(missing_tokens: tuple[str, ...] | None) -> MissingTokens:
        """Return the tokens of the option --missing.

        The default is the empty text and `?`, and in columns of numbers also NA, NaN and null. Tokens from the user
        replace all of these except the empty text. A token that begins with a plus is added instead.
        """
        replacing, added = [], []
        for typed in missing_tokens or ():
            token = typed.strip(BLANKS)
            if len(token) > 1 and token.startswith("+"):
                added.append(token[1:].strip(BLANKS))
            else:
                replacing.append(token)
        by_default = missing_tokens is None or (bool(added) and not replacing)
        text = ["", "?"] if by_default else ["", *replacing]
        number = [*text, "NA", "NaN", "null"] if by_default else text
        return MissingTokens(tuple(dict.fromkeys((*text, *added))), tuple(dict.fromkeys((*number, *added))))


class ValueKind(Enum):
    """The type in which the values of a column are requested."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class ColumnRequest:
    """A column to read from every row block, and its type.

    If a block of a column of numbers contains other text, the whole block comes back as text; if `strict`, only the
    rows with such text are malformed. A `weight` is strict, must be present, and is 0 or between 1e-100 and 1e100.
    With a `form`, the texts come back as the numbers in them: for a date its seconds since 1970, whichever
    part of it the form names.
    """

    name: str
    kind: ValueKind
    strict: bool = False
    weight: bool = False
    form: Form | None = None


@dataclass(frozen=True)
class BadRow:
    """A malformed row: its fault, its file, its number (counted in `unit`: line or row) and its bytes."""

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
    """Consecutive well-formed rows: values[i] belongs to the i-th request; `bad` are the malformed rows between them.

    locate: returns the location of row t of the block, as `FILE line L`.
    """

    n_rows: int
    values: tuple[Values, ...]
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]


def shorten(text: str, limit: int = 40) -> str:
    """Return the text for a message, cut after `limit` characters."""
    return text if len(text) <= limit else text[:limit] + "..."


def list_names(names: Sequence[str], limit: int = 20) -> str:
    """Return the first `limit` names for a message, '' for a column without one, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(name or "''" for name in names[:limit]) + more


def is_text(values: Values) -> bool:
    return not isinstance(values, np.ndarray)


def select_rows(values: Values, keep: Mask) -> Values:
    if not is_text(values):
        return values[keep]
    import pyarrow as pa  # not needed for a row in Python (`single_values`)

    return values.filter(pa.array(keep))
