"""Raw tables as the engine takes them: one column per name, as they were read, before any cut is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.forms import Form
from bncli.engine.data.parts import Parts
from bncli.engine.data.schema import Attribute
from bncli.engine.kernels.arrays import Array, Index

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

    codes: Parts
    attribute: Attribute

    def take(self, rows: Index) -> CodedColumn:
        return CodedColumn(Parts.of(self.codes.whole()[rows]), self.attribute)


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
        """The rows drawn by this seed, where they are there."""
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
        """The given rows, in the given order; the class keeps all its labels."""
        return Columns(
            len(rows),
            {name: column.take(rows) for name, column in self.attributes.items()},
            self.class_name,
            None if self.label is None else self.label.take(rows),
            None if self.weights is None else self.weights[rows],
            None if self.origin is None else self.origin.take(rows),
        )
