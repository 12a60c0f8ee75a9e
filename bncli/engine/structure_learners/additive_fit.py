"""A quick penalised fit of tables over given families, good enough to look for interactions in its residuals.

Effects are in thermometer coding (`bncli.engine.parameters.effect_coding`), each with the penalty lambda, and start
from zero.

Conventions: lambda is 10. With 1, many cuts and few rows, the fit follows the rows so closely that its residuals hardly
show what it lacks (on eight tables, interactions chosen after a fit with 10 are better). The tolerance is loose, since
gains of interactions are sums of residuals over many rows, which the last digits of a fit do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameters.effect_coding import EffectCoordinates, effects_of, level_scales
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum
from bncli.engine.structures.structure import Family

PENALTY, TOLERANCE, MAX_ITERATIONS = 10.0, 1e-3, 60


def additive_fit(
    data: Dataset, families: Sequence[Family], penalty: float = PENALTY
) -> tuple[ConditionalLikelihood, Array]:
    """Fit tables over `families`; return the likelihood and the tables (K, n_cells), which are 0 without rows."""
    likelihood = conditional_likelihood(data, families)
    if not data.n_rows:
        return likelihood, np.zeros((data.n_labels, likelihood.n_cells))
    weights = likelihood.cell_weights()
    effects = effects_of(
        likelihood.families,
        data.schema,
        weights,
        coding="thermometer",
        lower_orders=False,
        scales=level_scales(data),
    )
    zero = partial(np.zeros, (data.n_labels, likelihood.n_cells))
    coordinates = EffectCoordinates(effects, data.n_labels, zero)
    settings = OptimizerSettings("zero", penalty, 0.0, "lbfgs", TOLERANCE, MAX_ITERATIONS)
    optimum = find_optimum(ParameterSpace(likelihood, coordinates), settings, lambda step, p: None)
    return likelihood, coordinates.tables(optimum.point)
