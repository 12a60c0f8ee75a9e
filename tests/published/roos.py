"""LR_Roos: a parameter for every cell and class, those of class 0 fixed to 0 (Roos et al. 2005, Machine Learning 59).

    ln P(y | x) / P(0 | x) = p[y, 0] + sum over families f of p[y, cell_f(x)],    y = 1, ..., K - 1

The distributions are those of free tables (`discriminative`), with fewer parameters; Feelders & Ivanovs 2006 compare
this mapping with their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.parameter_learners import discriminative
from bncli.engine.parameter_spaces.coordinates import PerCell
from bncli.engine.structures.structure import Structure
from bncli.engine.training.optimization import ParameterSpace

Array = NDArray[np.float64]


def space(counts: Counts, structure: Structure, *, smoothing: str) -> ParameterSpace:
    """Free tables but for class 0; the costs in flops are the same."""
    free = discriminative.space(counts, structure, smoothing=smoothing)
    return replace(free, coordinates=_Contrasts(free.coordinates.tables(free.coordinates.generative)))


@dataclass(frozen=True)
class _Contrasts(PerCell):
    """p (K - 1, n_cells), flat."""

    @property
    def n_parameters(self) -> int:
        return int(self.log_theta[1:].size)

    @property
    def generative(self) -> Array:
        return np.asarray((self.log_theta[1:] - self.log_theta[0]).ravel())

    def tables(self, p: Array) -> Array:
        n_labels, n_cells = self.log_theta.shape
        return np.concatenate([np.zeros((1, n_cells)), p.reshape(n_labels - 1, n_cells)])

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return d_tables[1:].ravel()
