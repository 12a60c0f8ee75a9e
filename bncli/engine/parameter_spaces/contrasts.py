"""Log-odds against the first class as sums of predictors: the parameter spaces in which class 0 is fixed at 0.

ln P(y | x) / P(0 | x) = sum over the predictors active in x of p[y, predictor],    y = 1, ..., K - 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.parameter_spaces.coordinates import PerCell
from bncli.engine.parameter_spaces.predictors import CellPredictors, Predictors


@dataclass(frozen=True)
class Contrasts(PerCell):
    """p (K - 1, M), flat: the predictors' parameters for the classes 1, 2, ...; `log_theta` are generative tables."""

    predictors: Predictors | CellPredictors

    @property
    def n_parameters(self) -> int:
        return (len(self.log_theta) - 1) * self.predictors.n_predictors

    @property
    def generative(self) -> Array:
        return self.predictors.parameters(self.log_theta[1:] - self.log_theta[0]).ravel()

    @property
    def sharing(self) -> Predictors | CellPredictors:
        return self.predictors

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, eye_array, kron

        n = len(self.log_theta)
        of_class = [eye_array(n, n - 1, k=-1), *(eye_array(n - 1) for _ in self.predictors.factors[1:])]
        return [csr_array(kron(y, factor)) for y, factor in zip(of_class, self.predictors.factors, strict=True)]

    def tables(self, p: Array) -> Array:
        tables = self.predictors.tables(p.reshape(-1, self.predictors.n_predictors))
        return np.concatenate([np.zeros((1, tables.shape[1])), tables])

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.predictors.sums(d_tables[1:]).ravel()
