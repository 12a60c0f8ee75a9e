"""Raw tables as the engine takes them: one column per name, as they were read, before any cut is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.forms import Form
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


@dataclass(frozen=True)
class Columns:
    """A table or a batch of one: attributes by name in file order, the class, the row weights.

    `label` is None where the rows carry no class (scoring); `weights` is None where every row weighs 1.
    Levels are ordered by number when all are numbers, else by code point.
    """

    n_rows: int
    attributes: Mapping[str, Column]
    class_name: str
    label: CategoricalColumn | None
    weights: Array | None = None

    def take(self, rows: Index) -> Columns:
        """The given rows, in the given order; the class keeps all its labels."""
        return Columns(
            len(rows),
            {name: column.take(rows) for name, column in self.attributes.items()},
            self.class_name,
            None if self.label is None else self.label.take(rows),
            None if self.weights is None else self.weights[rows],
        )
