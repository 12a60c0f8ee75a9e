"""Weighted parameters: the generative log probabilities, each multiplied by a weight that is learnt discriminatively.

    W_f[c, y] = w_q(f, c, y) ln theta_f[c, y],    b[y] = w_y ln theta[y]

with theta fixed. What shares a weight is the level (Zaidi et al. 2017, Machine Learning 106):

    1  all of a family                     one weight per attribute
    2  cells with the same child value     one per attribute value
    3  the same, per class                 one per attribute value and class
    4  nothing                             one per cell and class: as rich as free tables

The class's own term has a weight per class at every level; so has the table over the class's attribute parents at
levels 1 to 3. w = 1 is the generative model, w = 0 the uniform distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters
from bncli.engine.parameters.coordinates import PerCell, Sharing
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, optimize
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    level: int,
    settings: OptimizerSettings,
    watch: Watch = silent,
) -> Parameters:
    """Return tables of highest penalised conditional likelihood among the weightings of the generative ones."""
    return optimize(space(counts, structure, smoothing=smoothing, level=level), settings, watch)


def space(counts: Counts, structure: Structure, *, smoothing: str, level: int) -> ParameterSpace:
    """Weightings of the generative tables."""
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    log_theta = likelihood.flatten(tables)
    if level == 4:
        return ParameterSpace.directed(likelihood, _Weights(log_theta))
    n_labels = len(log_theta)
    classes = np.arange(n_labels)[:, np.newaxis]
    index, used = [classes], n_labels
    for family in tables.families:
        if family.child is None:
            index.append(used + np.broadcast_to(classes, (n_labels, family.n_cells)))
            used += n_labels
            continue
        n_values = family.shape[0] if level > 1 else 1
        values = np.arange(family.n_cells) // (family.n_cells // n_values)
        index.append(
            used + (values + n_values * classes if level == 3 else np.broadcast_to(values, (n_labels, family.n_cells)))
        )
        used += n_values * (n_labels if level == 3 else 1)
    return ParameterSpace.directed(
        likelihood, _SharedWeights(log_theta, Sharing(log_theta, np.concatenate(index, axis=1), used))
    )


@dataclass(frozen=True)
class _Weights(PerCell):
    """w, flat, one per table entry."""

    @property
    def generative(self) -> Array:
        return np.ones(self.n_parameters)

    @property
    def scale(self) -> Array:
        return self.log_theta

    def tables(self, p: Array) -> Array:
        return self.log_theta * p.reshape(self.log_theta.shape)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return (self.log_theta * d_tables).ravel()


@dataclass(frozen=True)
class _SharedWeights(_Weights):
    """w, flat, one for all the entries that share it."""

    shared: Sharing

    @property
    def sharing(self) -> Sharing:
        return self.shared

    @property
    def n_parameters(self) -> int:
        return self.shared.n_parameters

    @property
    def factors(self) -> list[Any]:
        return self.shared.factors

    def tables(self, p: Array) -> Array:
        return self.shared.tables(p)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.shared.pull_back(d_tables)
