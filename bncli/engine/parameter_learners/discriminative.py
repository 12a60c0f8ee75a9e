"""Discriminative parameters: every table entry is free, and the conditional likelihood is maximised.

    W_f[c, y] = beta_f,c,y

Multinomial logistic regression on the indicators of the families' cells; the penalised objective is strictly concave
(Roos, Wettig, Grünwald, Myllymäki & Tirri 2005, Machine Learning 59; called d by Zaidi et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.ascent import Ascent, ParameterSpace, ascend
from bncli.engine.counts import Counts
from bncli.engine.generative import generative_tables
from bncli.engine.likelihood import conditional_likelihood
from bncli.engine.model import Parameters
from bncli.engine.parameter_spaces.coordinates import PerCell
from bncli.engine.parameter_spaces.flops import of_free_tables
from bncli.engine.structure import Structure
from bncli.watch import Watch, silent

Array = NDArray[np.float64]


def learn(counts: Counts, structure: Structure, *, smoothing: str, ascent: Ascent, watch: Watch = silent) -> Parameters:
    """Tables of highest penalised conditional likelihood; `smoothing` makes the generative start."""
    return ascend(space(counts, structure, smoothing=smoothing), ascent, watch)


def space(counts: Counts, structure: Structure, *, smoothing: str) -> ParameterSpace:
    """Free tables."""
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    costs = of_free_tables(tables.families, counts.data.n_rows, counts.data.n_labels)
    return ParameterSpace(likelihood, _Free(likelihood.flatten(tables)), costs)


@dataclass(frozen=True)
class _Free(PerCell):
    """beta itself, flat."""

    def tables(self, p: Array) -> Array:
        return p.reshape(self.log_theta.shape)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return d_tables.ravel()
