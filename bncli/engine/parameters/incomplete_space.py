"""The parameter space of rows with missing values: tables of a whole network, and the marginal likelihood.

The gradient in the tables comes from exact inference (`bncli.engine.inference`): expected counts. What is maximised is
the conditional log-likelihood, sum_t w_t ln P(y_t | e_t), or the joint one, sum_t w_t ln P(y_t, e_t), e_t being what is
known of row t.

Preconditioner: the diagonal of a Hessian. Were all rows complete, the joint likelihood would have

    D_q = sum over classes y and cells c of m[y, c] (dW[y, c] / dbeta_q)^2,    m[y, c] = weight of class y in cell c

and the conditional one about m[y, c] = (K - 1)/K^2 times the weight of cell c, if all classes were equally likely. Rows
without the whole family are spread evenly over its cells. What is unknown makes both likelihoods flat, or even concave
the wrong way, so there is no much better guess to be had cheaply, and none is made again along the way. Products with
the Hessian are differences of two gradients; where they show no curvature, a truncated Newton direction ends. Cost: a
product takes a pass of exact inference, the preconditioner none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Schema
from bncli.engine.inference.row_blocks import NANOSECONDS, IncompleteLikelihood, PassSize, incomplete_likelihood
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Tables
from bncli.engine.optimizers.objective import Precondition
from bncli.engine.parameters.coordinates import SharedSoftmax, Softmax
from bncli.engine.parameters.flops import Costs
from bncli.engine.parameters.generative import family_tables, generative_tables
from bncli.engine.parameters.optimization import Curvature, Likelihood
from bncli.engine.structures.structure import Structure
from bncli.watch import Note, Watch

LEAST_CURVATURE = 1e-2
"""Of the mean: entries of next to no curvature would take steps out of all proportion."""
MUCH = 1 << 24
"""Entries of a pass that are worth a note: a tenth of a second."""
DIFFERENCE = 1e-5
"""The largest change of a parameter between two gradients whose difference is taken."""


@dataclass(frozen=True)
class IncompleteSpace:
    """Softmax tables, and the conditional likelihood of incomplete rows or, if `joint`, that of class and row."""

    incomplete: IncompleteLikelihood
    coordinates: SharedSoftmax
    mass: Array
    """m of the formula, (K, n_cells)."""
    joint: bool = False

    @property
    def likelihood(self) -> Likelihood:
        return JointLikelihood(self.incomplete) if self.joint else self.incomplete

    @property
    def costs(self) -> Costs | None:
        return None

    @property
    def can_separate(self) -> bool:
        return False  # a growing factor on the tables need not keep every sum of products on its side

    def curvature(self, penalty: float) -> Curvature:
        return _Expected(self, penalty)

    def cells(self, p: Array) -> Array:
        """Return the tables of parameters that were found."""
        return self.coordinates.tables(p)

    def on(self, data: Dataset) -> Likelihood:
        other = incomplete_likelihood(data, self.incomplete.families)
        return JointLikelihood(other) if self.joint else other


@dataclass(frozen=True)
class JointLikelihood:
    """sum_t w_t ln P(y_t, e_t) as a function of tables."""

    incomplete: IncompleteLikelihood

    @property
    def data(self) -> Dataset:
        return self.incomplete.data

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        return self.incomplete.joint(cells)

    def tables(self, cells: Array) -> Tables:
        return self.incomplete.tables(cells)


@dataclass(frozen=True)
class _Expected:
    """The diagonal of the formula above, penalty added."""

    space: IncompleteSpace
    penalty: float

    def start(self, p: Array) -> Precondition:
        return self._scaled

    def refresh(self, p: Array, passes: float) -> Precondition:
        return self._scaled

    def hessian(self, p: Array) -> Callable[[Array], Array]:
        here = self._gradient(p)

        def product(v: Array) -> Array:
            # the change of the largest entry of v is DIFFERENCE; for v = 0 any step gives 0
            step = DIFFERENCE / max(float(np.abs(v).max(initial=0.0)), np.finfo(np.float64).tiny)
            return np.asarray((here - self._gradient(p + step * v)) / step + self.penalty * v)

        return product

    def _gradient(self, p: Array) -> Array:
        coordinates = self.space.coordinates
        return coordinates.pull_back(p, self.space.likelihood.value_and_gradient(coordinates.tables(p))[1])

    def _scaled(self, g: Array) -> Array:
        return np.asarray(g / self._diagonal)

    @cached_property
    def _diagonal(self) -> Array:
        """At the generative tables, wherever the optimization begins."""
        coordinates = self.space.coordinates
        curvature = coordinates.diagonal(coordinates.generative, self.space.mass)
        # entries with next to no expected counts would otherwise take huge steps
        least = max(LEAST_CURVATURE * float(curvature.mean()), float(np.finfo(np.float64).tiny))
        return np.asarray(np.maximum(curvature, least) + self.penalty)


def incomplete_space(counts: Counts, structure: Structure, smoothing: str, *, joint: bool = False) -> IncompleteSpace:
    """Start from the smoothed relative frequencies of the rows that have a node and all its parents."""
    tables = generative_tables(counts, structure, smoothing)
    likelihood = incomplete_likelihood(counts.data, tables.families)
    coordinates = SharedSoftmax(Softmax(likelihood.flatten(tables), tables.families))
    mass = likelihood.flatten(family_tables(counts, structure, partial(_completed, counts.data.total_weight)))
    n_labels = len(mass)
    mass[:, ~coordinates.by_class] /= n_labels  # counts of all classes together
    if not joint:
        mass[:] = mass.sum(axis=0) * ((n_labels - 1) / n_labels**2)
    return IncompleteSpace(likelihood, coordinates, mass, joint)


def _completed(total: float, table: Array, axis: int) -> Array:
    """Return a family's counts, with the weight of rows that lack it spread evenly."""
    return np.asarray(table + (total - table.sum()) / table.size)


def report_work(work: PassSize, schema: Schema, watch: Watch) -> None:
    """One line before a long computation: how much every pass over the rows with missing values will take."""
    if work.entries >= MUCH:
        names = [repr(schema.attributes[i].name) for i in work.widest]
        what = f"what is missing makes every pass over the rows fill {work.entries:,} table entries"
        watch(
            Note(f"{what}, about {work.entries * NANOSECONDS / 1e9:.1g} s; the widest table is over {', '.join(names)}")
        )


def conditional_value(likelihood: IncompleteLikelihood, cells: Array) -> float:
    """Return CLL from the joint probabilities, where these are at hand sooner than its gradient."""
    log_joint, data = likelihood.log_joint(cells), likelihood.data
    top = log_joint.max(axis=0)
    log_evidence = top + np.log(np.exp(log_joint - top).sum(axis=0))
    losses = log_evidence - log_joint[data.labels, np.arange(data.n_rows)]
    return 0.0 - float(losses.sum() if data.weights is None else data.weights @ losses)
