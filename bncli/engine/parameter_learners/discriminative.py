"""Discriminative parameters: every table entry is free, and the conditional likelihood is maximised.

    W_f[c, y] = beta_f,c,y

Multinomial logistic regression on the indicators of the families' cells; the penalised objective is strictly concave
(Roos, Wettig, Grünwald, Myllymäki & Tirri 2005, Machine Learning 59; called d by Zaidi et al. 2017).

Families are those of a network, or regions looked up together with the class, one table for each that no other
contains. On regions the generative start is the Kikuchi-Bayes model, and what is learnt its maximum-entropy relative.

Tables may also be sums of effects, which the penalty then weighs in place of the entries: with the coding `thermometer`
a numeric attribute has one step a cut (`bncli.engine.parameters.effect_coding`), and with lower orders every
subset of a family's attributes has a table of its own (`bncli.engine.parameters.effect_coding`). The bias is
penalised like the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters
from bncli.engine.parameters.coordinates import PerCell
from bncli.engine.parameters.effect_coding import EffectCoordinates, effects_of
from bncli.engine.parameters.flops import of_free_tables
from bncli.engine.parameters.generative import generative_start, is_regrouped
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, optimize
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


class Options(TypedDict, total=False):
    """The options of the space; `smoothing` or `theta` makes the generative start."""

    smoothing: str | None
    theta: float | None
    coding: str
    lower_orders: bool


@dataclass(frozen=True)
class _Free(PerCell):
    """beta itself, flat."""

    def tables(self, p: Array) -> Array:
        return p.reshape(self.log_theta.shape)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return d_tables.ravel()


def learn(
    counts: Counts,
    structure: Structure,
    *,
    settings: OptimizerSettings,
    watch: Watch = silent,
    **options: Unpack[Options],
) -> Parameters:
    """Return tables of highest penalised conditional likelihood."""
    return optimize(space(counts, structure, **options), settings, watch)


def space(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str | None = None,
    theta: float | None = None,
    coding: str = "cells",
    lower_orders: bool = False,
) -> ParameterSpace:
    """Free tables: those of a network's families, which need `smoothing`, or of regions, which may have a `theta`."""
    if coding != "cells" or lower_orders or is_regrouped(structure):
        return _effects(counts, structure, smoothing, theta, coding, lower_orders)
    tables = generative_start(counts, structure, smoothing, theta)
    likelihood = conditional_likelihood(counts.data, tables.families)
    costs = of_free_tables(tables.families, counts.data.n_rows, counts.data.n_labels)
    return ParameterSpace.directed(likelihood, _Free(likelihood.flatten(tables)), costs)


def _effects(
    counts: Counts, structure: Structure, smoothing: str | None, theta: float | None, coding: str, lower_orders: bool
) -> ParameterSpace:
    """Return tables that are sums of effects; the generative ones are made where the optimization starts from them."""
    data = counts.data
    likelihood = conditional_likelihood(data, structure.families(data.schema.cardinalities))
    weights = likelihood.cell_weights()
    effects = effects_of(likelihood.families, data.schema, weights, coding=coding, lower_orders=lower_orders)

    def cells() -> Array:
        return likelihood.flatten(generative_start(counts, structure, smoothing, theta))

    return ParameterSpace.directed(likelihood, EffectCoordinates(effects, data.n_labels, cells))
