"""Raw tables as the engine takes them: one column per name, as they were read, before any cut is known.

Columns of codes that lie in parts: the record batches of a mapped file, or what was read block by block.

A part is used where it lies. Only a question that goes over the ends of parts, or for the whole column, makes a copy.
Pages of a mapped file that were read count as memory of the process until they are let go; the file's cache keeps them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.number_formats import Form
from bncli.engine.data.schema import Attribute
from bncli.engine.kernels.arrays import Array, Codes, Index

ROWS_AT_ONCE = 1 << 16
"""Codes are counted so many at a time: what counts them makes 8 bytes of each."""


@dataclass(frozen=True)
class ChunkedColumn:
    """One column: its parts (n_p,) in row order, all of one type; `let_go` of the pages if they are a mapped file's."""

    parts: tuple[Codes, ...]
    let_go: Callable[[], None] | None = None

    @staticmethod
    def of(codes: Codes) -> ChunkedColumn:
        """Return a column in one part."""
        return ChunkedColumn((codes,))

    def __len__(self) -> int:
        return self._edges[-1]

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(map(len, self.parts), initial=0))

    def whole(self) -> Codes:
        """Return all rows, (N,): a copy unless there is one part."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def rows(self, start: int, stop: int) -> Codes:
        """Consecutive rows: a view where they lie in one part."""
        joined = list(zip(self.parts, itertools.pairwise(self._edges), strict=True))
        found = [part[max(start - a, 0) : stop - a] for part, (a, b) in joined if a < stop and start < b]
        if not found:
            return self.parts[0][:0]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def count(self, n: int, weights: Array | None = None) -> Array:
        """Return the number or weight of rows with each code below n or above, (at least n,), added in row order."""
        if weights is not None:
            return np.bincount(self.whole(), weights, n).astype(np.float64)
        counted = self._counted.astype(np.float64)
        return np.append(counted, np.zeros(max(0, n - len(counted))))

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        """The rows of each code up to the largest; those of a file prove it, and are its frequencies."""
        counted = np.zeros(0, np.int64)
        for part in self.parts:
            for start in range(0, len(part), ROWS_AT_ONCE):
                found = np.bincount(part[start : start + ROWS_AT_ONCE], minlength=len(counted))
                counted = np.append(counted, np.zeros(len(found) - len(counted), np.int64)) + found
        return counted


class ColumnsJoinedOnDemand(Sequence[Codes]):
    """Columns in parts, as if they were arrays: one is joined when it is asked for, and not kept."""

    def __init__(self, columns: Sequence[ChunkedColumn]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def let_go(self) -> None:
        """Of the pages of mapped files."""
        for let_go in {column.let_go for column in self.columns}:
            if let_go is not None:
                let_go()

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        if isinstance(i, slice):
            return tuple(self[j] for j in range(len(self))[i])
        found = self.columns[i].whole()
        self.let_go()
        return found


MISSING = -1
"""Code of a missing value in a categorical column."""
UNSEEN = -2
"""Code of a value that is not among the column's levels (only when the levels are fixed by a model)."""


@dataclass(frozen=True)
class NumericColumn:
    """Numbers by row, shape (N,): float64 with NaN where missing, or a narrower dtype if no number needs more.

    `form` says how they were written; None: as plain numbers.
    """

    values: NDArray[np.generic]
    form: Form | None = None

    def take(self, rows: Index) -> NumericColumn:
        return NumericColumn(self.values[rows], self.form)


@dataclass(frozen=True)
class CategoricalColumn:
    """Codes by row into `levels`, shape (N,), signed integers; MISSING and UNSEEN are negative."""

    codes: NDArray[np.signedinteger]
    levels: tuple[str, ...]

    def take(self, rows: Index) -> CategoricalColumn:
        return CategoricalColumn(self.codes[rows], self.levels)


Column = NumericColumn | CategoricalColumn
"""A column as it was read."""


@dataclass(frozen=True)
class CodedColumn:
    """Codes (N,) that were found before: `attribute` has the cuts or levels and is not counted yet.

    A missing value has the code that follows those of the values, whether rows have any or not.
    """

    codes: ChunkedColumn
    attribute: Attribute

    def take(self, rows: Index) -> CodedColumn:
        return CodedColumn(ChunkedColumn.of(self.codes.whole()[rows]), self.attribute)


@dataclass(frozen=True)
class Origin:
    """What coded columns know of the table that they were made from.

    `sample`: rows as they were read, those that learning a penalty draws by `seed`; seed None: all rows, in their
    order. None: nothing was kept. `file`: whether the codes were in a file, by cuts of whoever made that.
    `sampled_rows`: as of `Cuts`.
    """

    missing_tokens: tuple[str, ...] | None = None
    sample: Columns | None = None
    seed: int | None = None
    file: bool = False
    sampled_rows: int | None = None

    def drawn(self, seed: int) -> Columns | None:
        """Return the rows drawn by this seed, where they are there."""
        return self.sample if self.seed in (None, seed) else None

    def take(self, rows: Index) -> Origin:
        whole = self.sample is not None and self.seed is None
        sample = self.sample.take(rows) if whole and self.sample is not None else None
        return Origin(self.missing_tokens, sample, file=self.file, sampled_rows=self.sampled_rows)


@dataclass(frozen=True)
class Columns:
    """A table or a batch of one: attributes by name in file order, the class, the row weights.

    `label` is None where the rows carry no class (scoring); `weights` is None where every row weighs 1. `origin` is
    None where columns are as they were read, and not coded.
    Levels are ordered by number when all are numbers, else by code point.
    """

    n_rows: int
    attributes: Mapping[str, Column | CodedColumn]
    class_name: str
    label: CategoricalColumn | None
    weights: Array | None = None
    origin: Origin | None = None

    @property
    def as_read(self) -> Mapping[str, Column]:
        """The attributes of a table that is not coded."""
        return {name: column for name, column in self.attributes.items() if not isinstance(column, CodedColumn)}

    def take(self, rows: Index) -> Columns:
        """Return the given rows, in the given order; the class keeps all its labels."""
        return Columns(
            len(rows),
            {name: column.take(rows) for name, column in self.attributes.items()},
            self.class_name,
            None if self.label is None else self.label.take(rows),
            None if self.weights is None else self.weights[rows],
            None if self.origin is None else self.origin.take(rows),
        )
