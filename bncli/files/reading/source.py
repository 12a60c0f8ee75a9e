"""What to read and how (`Source`), and the row blocks in which all tables are read.

Text files and columnar files are both divided into raw blocks. Each raw block is parsed into a row block (typed
arrays), in any thread. All later steps (type inference, encoding rows for a model) see only row blocks.
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
"""The fault of a malformed row that is not UTF-8."""
Values = Any
"""The values of N rows: an Arrow array of strings without nulls, or a NumPy array of int64 or float64, NaN if missing.

Where `parse_batch` keeps the types of a file, strings may be dictionary-encoded, and numbers may have narrower types.
"""


@dataclass(frozen=True)
class Source:
    """The table to read, and the options that describe it.

    paths: the files of one table, a directory, or `-` for stdin.
    format: csv, tsv, parquet or arrow (an IPC file, an IPC stream or Feather); None detects it from the first bytes.
    delimiter: the delimiter of text files; None detects it in the header.
    class_name: the class column; None means the column `class` if there is one, otherwise the last usable column.
    ignore, categorical, numeric: column names. A string that is not a column name is split at commas.
    weights: the column with the row weights.
    schema_file: the schema file; None means NAME.schema.json beside a single data file, if it exists.
    missing_tokens: strings that mean a missing value; None means the defaults of `MissingTokens.of`.
    on_bad_row: fail, skip, or the path of a file that receives the malformed rows.
    drop_unlabelled: leave out rows without a class.
    dates: auto; off (dates stay text); dmy or mdy (how to read dates of three numbers with the year last).
    decimal: the decimal mark, a point or a comma; None detects it in each column.
    encoding: the encoding of text files; None means the encoding of the byte-order mark, or UTF-8 without a mark.
    allow_missing_columns: treat columns that a model uses and the table lacks as missing values.
    carried: columns that are read although the model does not use them.
    use: the only columns that may be attributes, or () for all; split at commas like `ignore`.
    positive: the label of the event, which becomes the second of two; None keeps the sorted order.
    drop_incomplete: when learning, leave out rows that lack the value of any attribute.
    names: the column names of a text file without a header row.
    rows: an Arrow table in memory to score or to test a model on, instead of files.
    group: columns in which equal values mark rows that belong together; split at commas like `ignore`.
    time: the column by which rows are ordered.
    gap: the time span left out before held-out rows, such as 30d, or 30 if the time column holds numbers.
    window: how many of the latest blocks of rows to learn from; None means all rows.
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
    """Strings that mean a missing value, stripped of blanks: `text` in text columns, `number` in columns of numbers."""

    text: tuple[str, ...]
    number: tuple[str, ...]

    @staticmethod
    def of(missing_tokens: tuple[str, ...] | None) -> MissingTokens:
        """Return the tokens of the option --missing.

        The default is the empty string and `?`, and in columns of numbers also NA, NaN and null. Tokens from the user
        replace all of these except the empty string. A token that begins with a plus is added to the others instead.
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

    If numbers are requested and a block contains other strings, all its values are returned as strings; if `strict`,
    the rows with such strings are malformed instead. A `weight` is strict, must be present, and is 0 or between 1e-100
    and 1e100. With a `form`, the strings are returned as numbers: for a DateForm, as seconds since 1970 (or since
    midnight for times of day), regardless of the part that the form names.
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
    """Consecutive well-formed rows: values[i] belongs to the i-th request; `bad` has the malformed rows among them.

    locate: a function that returns the location of row t of the block, such as `FILE line L`.
    """

    n_rows: int
    values: tuple[Values, ...]
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]


def shorten(text: str, limit: int = 40) -> str:
    """Truncate a string for a message to `limit` characters, and append "..." if it is longer."""
    return text if len(text) <= limit else text[:limit] + "..."


def list_names(names: Sequence[str], limit: int = 20) -> str:
    """Format the first `limit` names for a message, with '' for an empty name, and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(name or "''" for name in names[:limit]) + more


def is_text(values: Values) -> bool:
    return not isinstance(values, np.ndarray)


def select_rows(values: Values, keep: Mask) -> Values:
    if not is_text(values):
        return values[keep]
    import pyarrow as pa  # not needed for a row in Python (`single_values`)

    return values.filter(pa.array(keep))
