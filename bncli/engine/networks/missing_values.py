"""Missing values put into rows: every value of an attribute is removed with a probability of its own, whatever it is.

    P(x_ti is removed) = share_i,   independently of every other value, of the class and of x_ti itself

which is "missing completely at random" (Little & Rubin 1987). The class is never removed.

Conventions: each attribute draws from a random stream of its own, one uniform number a row, so that the missing values
are the same in whatever blocks the rows come, and a value missing at a small share is missing at any larger one.
Missing values that the rows have already stay. Cost: a uniform number a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.columns import MISSING, CategoricalColumn, Column, Columns
from bncli.engine.data.schema import Schema


class MissingCompletelyAtRandom:
    """Shares made ready, one for each attribute in order; `applied_to` goes on where the last rows ended."""

    def __init__(self, shares: Sequence[float], rng: np.random.Generator) -> None:
        self._shares = tuple(shares)
        self._streams = rng.spawn(len(self._shares))

    def applied_to(self, rows: Columns) -> Columns:
        """The rows with missing values."""
        members = zip(rows.as_read.items(), self._shares, self._streams, strict=True)
        attributes = {name: _removed(column, share, stream) for (name, column), share, stream in members}
        return Columns(rows.n_rows, attributes, rows.class_name, rows.label, rows.weights)


def _removed(column: Column, share: float, stream: np.random.Generator) -> Column:
    if share <= 0:
        return column
    if isinstance(column, CategoricalColumn):
        codes = column.codes.copy()
        codes[stream.random(len(codes)) < share] = MISSING
        return CategoricalColumn(codes, column.levels)
    values = column.values.astype(np.float64)
    values[stream.random(len(values)) < share] = np.nan
    return replace(column, values=values)


def missing_shares(schema: Schema) -> tuple[float, ...]:
    """How often each attribute was unobserved in the training rows; 0 where they count as a value of their own."""
    return tuple(
        a.missing_weight / (a.missing_weight + sum(a.frequencies)) if a.missing_weight else 0.0
        for a in schema.attributes
    )


def count_missing(column: Column) -> int:
    """How many values of a column are missing."""
    if isinstance(column, CategoricalColumn):
        return int(np.count_nonzero(column.codes == MISSING))
    return int(np.count_nonzero(np.isnan(column.values))) if column.values.dtype.kind == "f" else 0
