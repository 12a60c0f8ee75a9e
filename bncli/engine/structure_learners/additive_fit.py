"""A quick penalised fit of tables over given families, good enough to look for interactions in its residuals.

Effects are in thermometer coding (`bncli.engine.parameters.effect_coding`), each with the penalty lambda. They start
from zero, or from a fit to some of the families.

Conventions: lambda is 10. With 1, many cuts and few rows, the fit follows the rows so closely that its residuals hardly
show what it lacks (on eight tables, interactions chosen after a fit with 10 are better). The tolerance is loose, since
gains of interactions are sums of residuals over many rows, which the last digits of a fit do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameters.effect_coding import EffectCoordinates, Effects, effects_of, level_scales
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.structures.structure import Family

PENALTY, TOLERANCE, MAX_ITERATIONS = 10.0, 1e-3, 60


class AdditiveFit(NamedTuple):
    """A fitted model: its likelihood and its tables (K, n_cells), which follow from `effects` with the values `point`.

    point: (K, n_effects). Without rows there are no effects.
    """

    likelihood: ConditionalLikelihood
    cells: Array
    effects: Effects | None
    point: Array


def additive_fit(
    data: Dataset, families: Sequence[Family], penalty: float = PENALTY, smaller: AdditiveFit | None = None
) -> AdditiveFit:
    """Fit tables over `families`; without rows they are 0.

    smaller: a fit to the same rows. If all of its families are among `families`, the fit starts from its values, which
    halves the number of passes.
    """
    likelihood = conditional_likelihood(data, families)
    if not data.n_rows:
        zeros = np.zeros((data.n_labels, likelihood.n_cells))
        return AdditiveFit(likelihood, zeros, None, zeros[:, :0])
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
    space = ParameterSpace(likelihood, coordinates)
    if smaller is None or smaller.effects is None or not {*smaller.effects.families} <= {*effects.families}:
        optimum = find_optimum(space, settings, lambda step, p: None)
    else:
        known = {
            (smaller.effects.families[block.family], block.places): smaller.point[:, first : first + block.n_effects]
            for block, first in zip(smaller.effects.blocks, smaller.effects.offsets, strict=False)
        }
        start = np.zeros((data.n_labels, effects.n_effects))
        # the bias, then every block that the smaller fit has; new blocks start at 0
        start[:, 0] = smaller.point[:, 0]
        for block, first in zip(effects.blocks, effects.offsets, strict=False):
            start[:, first : first + block.n_effects] = known.get((effects.families[block.family], block.places), 0.0)
        optimum = find_optimum_from(space, settings, start.ravel())
    point = optimum.point
    return AdditiveFit(likelihood, coordinates.tables(point), effects, point.reshape(data.n_labels, -1))
