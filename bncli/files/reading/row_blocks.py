"""A row block: some consecutive rows of a table as typed arrays, whatever file they came from.

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

from bncli.engine.data.forms import Form
from bncli.engine.kernels.arrays import Mask

Values = Any
"""Of N rows: an Arrow array of strings without nulls, int64 numbers, or finite float64 numbers, NaN where missing."""


NOT_UTF8 = "not UTF-8 text"
"""What is wrong with a row that is in another encoding."""


class Kind(Enum):
    """How the values of a column are asked for."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class Want:
    """A column asked of every row block.

    A column of numbers in which a row block has other text comes back as text; if `strict`, the rows with such text are
    malformed instead. A weight is strict and must be present, and 0 or between 1e-100 and 1e100. What is asked for as
    text of a `form` comes as the numbers that the form makes of it: of a date its seconds since 1970, whatever part is
    meant.
    """

    name: str
    kind: Kind
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
    """The rows that the mask keeps."""
    return values.filter(pa.array(rows)) if is_text(values) else values[rows]
