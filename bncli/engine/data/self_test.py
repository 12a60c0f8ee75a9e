"""Made-up rows that a model carries, with what it said of them when it was made (`prediction.verification`)."""

from __future__ import annotations

from typing import NamedTuple

from bncli.engine.kernels.arrays import Array, Index


class SelfTest(NamedTuple):
    """codes (attributes, rows) of the attributes that the model looks at, as in the schema; P(y | x_t) (K, rows).

    The code of an unknown value is the cardinality of its attribute.
    """

    codes: Index
    probabilities: Array

    @property
    def n_rows(self) -> int:
        return len(self.probabilities.T)
