"""Tables, the input of the engine: columns by name, as they were read or already coded. Also, class weights.

Class weights: the weight of a row is multiplied by the factor v of its class before anything is learned.

    w_t' = w_t v_{y_t}        balanced: v_k = n / (K n_k),    n_k = sum of w_t over the rows of class k

K is the number of classes that have rows, and n the sum of all n_k. A model learned with class weights predicts as if
the classes had the weighted frequencies; `bncli.engine.prediction.scoring` converts its predictions to other
frequencies. An integer v has the same effect as v copies of each row of the class.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue.option_kinds import parse_label_numbers
from bncli.engine.data.schema import Attribute, Form
from bncli.engine.data.splits import SplitBy
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.errors import UsageError

MISSING = -1
"""The code of a missing value in a categorical column."""
UNSEEN = -2
"""The code of a value that is not among the column's levels (only if the levels are fixed by a model)."""
ROWS_AT_A_TIME = 1 << 16
"""Codes are counted in slices of this many rows, since counting takes 8 bytes per row."""
BALANCED = "balanced"


@dataclass(frozen=True)
class NumericColumn:
    """The numeric value of each row, (N,): float64, or a narrower type that represents all values; NaN means missing.

    `form` is the form in which the values were written, or None for plain numbers.
    """

    values: NDArray[np.generic]
    form: Form | None = None

    def take(self, rows: Index) -> NumericColumn:
        return NumericColumn(self.values[rows], self.form)


@dataclass(frozen=True)
class CategoricalColumn:
    """The level in each row, as a position in `levels`: signed integers (N,), negative for MISSING and UNSEEN."""

    codes: NDArray[np.signedinteger]
    levels: tuple[str, ...]

    def take(self, rows: Index) -> CategoricalColumn:
        return CategoricalColumn(self.codes[rows], self.levels)


Column = NumericColumn | CategoricalColumn
"""A column as it was read."""


def is_constant(column: Column | CodedColumn | None) -> TypeGuard[CategoricalColumn]:
    """Return whether a column is categorical with a single level, which every row has.

    Wide tables may have very many of these columns.
    """
    return isinstance(column, CategoricalColumn) and len(column.levels) == 1 and not column.codes.any()


@dataclass(frozen=True)
class CodedColumn:
    """A column that is already encoded; `attribute` has the cuts or levels, without frequencies.

    The code of a missing value is the number of values, even if no row has it.
    """

    codes: ChunkedColumn
    attribute: Attribute

    def take(self, rows: Index) -> CodedColumn:
        return CodedColumn(ChunkedColumn((self.codes.joined()[rows],)), self.attribute)


@dataclass(frozen=True)
class ChunkedColumn:
    """A column of codes in parts: the record batches of a memory-mapped file, or blocks that were read one by one.

    The parts, (rows,) each, are in row order and of one type. Rows are copied only if a range spans several parts.
    `release` is called after each pass over a mapped file: it gives back the pages of a large file, which count as
    memory of the process until then, and raises BncliError if the file has become shorter.
    """

    parts: tuple[Codes, ...]
    release: Callable[[], None] | None = None

    def __len__(self) -> int:
        return self._edges[-1]

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(map(len, self.parts), initial=0))

    def joined(self) -> Codes:
        """Return the codes of all rows, (N,): a copy unless there is only one part."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def rows(self, start: int, stop: int) -> Codes:
        """Return the codes of rows start .. stop - 1: a view if they lie in one part, otherwise a copy."""
        bounded = zip(self.parts, itertools.pairwise(self._edges), strict=True)
        pieces = [part[max(start - a, 0) : stop - a] for part, (a, b) in bounded if a < stop and start < b]
        if not pieces:
            return self.parts[0][:0]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def count(self, n: int, weights: Array | None = None) -> Array:
        """Return the number of rows with each code, or their total weight if `weights` (N,) are given.

        The result has an element for every code that occurs, and at least `n` elements.
        """
        if weights is not None:
            return np.bincount(self.joined(), weights, n).astype(np.float64)
        counted = self._counted.astype(np.float64)
        return np.append(counted, np.zeros(max(0, n - len(counted))))

    @cached_property
    def _counted(self) -> NDArray[np.int64]:
        """The number of rows with each code up to the largest one that occurs."""
        counted = np.zeros(0, np.int64)
        for part in self.parts:
            for start in range(0, len(part), ROWS_AT_A_TIME):
                counts = np.bincount(part[start : start + ROWS_AT_A_TIME], minlength=len(counted))
                counted = np.append(counted, np.zeros(len(counts) - len(counted), np.int64)) + counts
        return counted


class ColumnsJoinedOnDemand(Sequence[Codes]):
    """A sequence of the codes of several columns, each joined from its parts to one array when it is accessed.

    The joined arrays are not kept.
    """

    def __init__(self, columns: Sequence[ChunkedColumn]) -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def release(self) -> None:
        """Give back the pages of mapped files, by calling each `release` once, even if several columns share it."""
        for release in {column.release for column in self.columns}:
            if release is not None:
                release()

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        if isinstance(i, slice):
            return tuple(self[j] for j in range(len(self))[i])
        joined = self.columns[i].joined()
        self.release()
        return joined


@dataclass(frozen=True)
class Origin:
    """Facts about the table from which coded columns were made.

    - missing_tokens: as in `Schema`
    - sample: raw rows for choosing a penalty, drawn with `seed`, or all rows in order if `seed` is None; None if no raw
      rows were kept
    - file: whether the codes were read from a file, with cuts learned elsewhere
    - sampled_rows: as in `Cuts`
    """

    missing_tokens: tuple[str, ...] | None = None
    sample: Columns | None = None
    seed: int | None = None
    file: bool = False
    sampled_rows: int | None = None

    def drawn(self, seed: int) -> Columns | None:
        """Return `sample` if it consists of all rows or was drawn with this seed, otherwise None."""
        return self.sample if self.seed in (None, seed) else None

    def take(self, rows: Index) -> Origin:
        has_all_rows = self.sample is not None and self.seed is None
        sample = self.sample.take(rows) if has_all_rows and self.sample is not None else None
        return Origin(self.missing_tokens, sample, file=self.file, sampled_rows=self.sampled_rows)


@dataclass(frozen=True)
class KnownCuts:
    """Cuts that a discretizer with default options found for some numeric columns, keyed by column name.

    They are valid only for these very column objects and this label column, and for rows without weights.
    """

    discretizer: str
    label: CategoricalColumn
    cuts: dict[str, tuple[NumericColumn, tuple[float, ...]]]

    def of(self, columns: Columns, name: str) -> tuple[float, ...] | None:
        """Return the cuts of the column `name`, or None if they are not known for the rows of `columns`."""
        column, cuts = self.cuts.get(name, (None, ()))
        is_same = columns.weights is None and columns.label is self.label and columns.attributes.get(name) is column
        return cuts if is_same and column is not None else None


@dataclass(frozen=True)
class Columns:
    """A table, or a batch of its rows: attributes by name in file order, the class, the row weights.

    `label` is None if the rows have no class column (scoring); `weights` is None if every row weighs 1. `origin` is
    None unless columns are coded. `split_by` is None if each row is a unit and the rows have no order in time.
    `known_cuts` holds cuts that were found before, so that they need not be computed again. The levels of a column are
    in numeric order if all are numbers, and in the order of code points otherwise; `--positive` may swap two labels.
    """

    n_rows: int
    attributes: Mapping[str, Column | CodedColumn]
    class_name: str
    label: CategoricalColumn | None
    weights: Array | None = None
    origin: Origin | None = None
    split_by: SplitBy | None = None
    known_cuts: KnownCuts | None = None

    @property
    def as_read(self) -> Mapping[str, Column]:
        """The attributes whose columns are not coded."""
        return {name: column for name, column in self.attributes.items() if not isinstance(column, CodedColumn)}

    def take(self, rows: Index) -> Columns:
        """Return the given rows, in the given order, without `known_cuts`; the class keeps all its labels."""
        return Columns(
            len(rows),
            {name: column.take(rows) for name, column in self.attributes.items()},
            self.class_name,
            None if self.label is None else self.label.take(rows),
            None if self.weights is None else self.weights[rows],
            None if self.origin is None else self.origin.take(rows),
            None if self.split_by is None else self.split_by.take(rows),
        )


def parse_class_weights(words: str | None, columns: Columns) -> Array | None:
    """Parse `balanced` or `label=number,...`, and return the factor of each label, (K,).

    The factor is 1 for a label that is not named or, with `balanced`, that has no rows. Returns None if `words` is None
    or there is no class column. Raises UsageError for a label that the class does not have, and ValueError for a string
    of another form.
    """
    if words is None or columns.label is None:
        return None
    labels = columns.label.levels
    if words == BALANCED:
        counts = np.bincount(columns.label.codes, columns.weights, len(labels)).astype(np.float64)
        present = counts > 0
        shares = counts.sum() / (present.sum() * np.where(present, counts, 1.0))
        return np.asarray(np.where(present, shares, 1.0))
    numbers = parse_label_numbers(words)
    for label in numbers:
        if label not in labels:
            raise unknown_label_error(label, labels, "--class-weights", columns.class_name)
    return np.array([numbers.get(label, 1.0) for label in labels])


def unknown_label_error(label: str, labels: tuple[str, ...], option: str, class_name: str) -> UsageError:
    """Build the error for an option that names a label which the class does not have."""
    known = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    what = f"{option} names {label!r}, which is not a label of the class {class_name!r}"
    return UsageError(what, hint=f"its labels are {known}")


def apply_class_weights(columns: Columns, class_weights: Array) -> Columns:
    """Return the columns with the weight of each row multiplied by the factor of its class, from `class_weights` (K,).

    The weights in the sample of raw rows that `origin` keeps are multiplied in the same way.
    """
    assert columns.label is not None
    weights = class_weights[columns.label.codes]
    weights = weights if columns.weights is None else weights * columns.weights
    origin = columns.origin
    if origin is not None and origin.sample is not None:
        sample = origin.sample
        assert sample.label is not None
        by_label = dict(zip(columns.label.levels, class_weights.tolist(), strict=True))
        of_sample = np.array([by_label.get(label, 1.0) for label in sample.label.levels])
        origin = replace(origin, sample=apply_class_weights(sample, of_sample))
    return replace(columns, weights=weights, origin=origin)
