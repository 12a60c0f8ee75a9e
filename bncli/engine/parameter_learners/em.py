"""Expectation maximisation: the most likely probabilities given rows with missing values, by counting what is expected.

    E_kj = sum over rows t of w_t P(child = k, parents = j | e_t, y_t)
    theta_kj = (E_kj + a_kj) / sum over k' of (E_k'j + a_k'j)

e_t is what is known of row t. Counts are expected at the theta of the iteration before, by exact inference; the class
belongs to j where it is a parent; a are the pseudo-counts of the smoothing rule. Then

    ln posterior = sum over rows t of w_t ln P(y_t, e_t) + sum over families, k and j of a_kj ln theta_kj

never falls (Dempster, Laird & Rubin 1977, Journal of the Royal Statistical Society B 39; Lauritzen 1995, Computational
Statistics & Data Analysis 19). It converges to a local maximum; the start, smoothed relative frequencies of the rows
that have a node and all its parents, decides to which. Without missing values that is the maximum already.

Conventions: a row counts nothing for a family of which it knows neither the child nor anything below it (such counts
would only repeat the theta that they come from); rules whose pseudo-counts follow from the data (`fgg`, `hdp`) keep
those of the start; a distribution without any counts is uniform; `mle` keeps its floor of 1e-10. An iteration that does
not raise the posterior, be it by rounding or the floor, is not made.

Each iteration is told with LL, the first sum, and as penalty the second one's negative. Stops when an iteration adds no
more to ln posterior than the tolerance as a share of it, or at the cap. Cost: a pass of exact inference an iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.inference.row_blocks import IncompleteLikelihood, incomplete_likelihood
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.parameters.coordinates import SharedSoftmax, Softmax
from bncli.engine.parameters.generative import family_tables, generative_tables
from bncli.engine.parameters.incomplete_space import conditional_value, report_work
from bncli.engine.parameters.restarts import Starts, best_start, random_point
from bncli.engine.parameters.smoothing import FLOOR, pseudo_counts
from bncli.engine.structures.structure import Structure
from bncli.watch import Iteration, Watch, silent

_LEAST = float(np.finfo(np.float64).tiny)
"""Stands for a count of 0 where a logarithm is taken; where all are 0, the distribution is uniform."""


@dataclass(frozen=True)
class _Point:
    """Tables `cells` (K, n_cells), what they are worth, and the counts expected there, pseudo-counts added."""

    cells: Array
    ll: float
    log_prior: float
    counts: Array
    gradient_norm: float

    @property
    def log_posterior(self) -> float:
        return self.ll + self.log_prior


@dataclass(frozen=True)
class _Expectation:
    """One iteration in halves. `pseudo` (K, n_cells) are the pseudo-counts of every entry."""

    likelihood: IncompleteLikelihood
    coordinates: SharedSoftmax
    pseudo: Array

    def at(self, cells: Array) -> _Point:
        """Return the expected counts at `cells`."""
        ll, expected = self.likelihood.joint(cells)
        counts = np.maximum(expected, 0.0) + self._prior_counts
        log_prior = float((self._prior_counts * cells).sum())
        beta = np.log(np.maximum(self.coordinates.gathered(np.exp(cells)), _LEAST))
        gradient = self.coordinates.pull_back(beta, counts)
        return _Point(cells, ll, log_prior, counts, math.sqrt(float(gradient @ gradient)))

    def maximised(self, here: _Point) -> Array:
        """Return the tables that make the most of the counts."""
        beta = np.log(np.maximum(self.coordinates.gathered(here.counts), _LEAST))
        cells = self.coordinates.tables(beta)
        return np.where(self.pseudo > 0, cells, np.maximum(cells, math.log(FLOOR)))

    @cached_property
    def _prior_counts(self) -> Array:
        """The pseudo-counts, those of a table that all classes share once."""
        once = self.pseudo.copy()
        once[1:, ~self.coordinates.by_class] = 0.0
        return once


def learn(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    tolerance: float,
    max_iterations: int,
    starts: Starts = Starts(),
    watch: Watch = silent,
) -> Parameters:
    """Return probabilities of highest posterior near the start; ln posterior rises with every iteration told.

    With random starts, the best end of all.
    """
    tables = generative_tables(counts, structure, smoothing)
    likelihood = incomplete_likelihood(counts.data, tables.families)
    report_work(likelihood.joint_work, counts.data.schema, watch)
    usual = likelihood.flatten(tables)
    prior = family_tables(counts, structure, lambda table, axis: pseudo_counts(table, smoothing, axis))
    coordinates = SharedSoftmax(Softmax(usual, tables.families))
    expectation = _Expectation(likelihood, coordinates, likelihood.flatten(prior))

    def attempt(number: int) -> tuple[float, Parameters]:
        start = coordinates.tables(random_point(coordinates.n_parameters, starts.seed, number)) if number else usual
        end, iterations, passes, stopped_by = _iterate(expectation, start, tolerance, max_iterations, watch)
        cll_start, cll = (conditional_value(likelihood, cells) for cells in (start, end.cells))
        tables, n_parameters = likelihood.tables(end.cells), coordinates.n_parameters
        return end.log_posterior, Parameters(tables, n_parameters, cll_start, cll, iterations, passes, stopped_by)

    return best_start(attempt, starts.random, watch) if starts.random else attempt(0)[1]


def _iterate(
    expectation: _Expectation, start: Array, tolerance: float, max_iterations: int, watch: Watch
) -> tuple[_Point, int, int, StoppedBy]:
    """Where it ended, iterations made, passes, and why it stopped."""
    here, iteration, passes, gain = expectation.at(start), 0, 1, math.inf
    while True:
        watch(_report_iteration(here, iteration, passes))
        if gain <= tolerance * abs(here.log_posterior):
            return here, iteration, passes, StoppedBy.TOLERANCE
        if iteration >= max_iterations:
            return here, iteration, passes, StoppedBy.MAX_ITERATIONS
        there = expectation.at(expectation.maximised(here))
        passes, gain = passes + 1, there.log_posterior - here.log_posterior
        if not gain > 0:  # all that is left is rounding
            return here, iteration, passes, StoppedBy.TOLERANCE
        here, iteration = there, iteration + 1


def _report_iteration(here: _Point, iteration: int, passes: int) -> Iteration:
    step = 1.0 if iteration else 0.0
    return Iteration(iteration, None, 0.0 - here.log_prior, here.gradient_norm, step, passes, passes, None, here.ll)
