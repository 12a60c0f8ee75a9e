"""Network parameters from rows with missing values, by exact inference.

The methods are `--param em` and `apn`. (`extended` uses the same parameter space.) Both methods increase the joint
likelihood of the class and the known attribute values e_t of each row t,

    LL = sum over rows t of w_t ln P(y_t, e_t),    E_kj = sum over rows t of w_t P(child = k, parents = j | e_t, y_t)

where E are the expected counts of child value k and parent configuration j, which includes the class if it is a parent.
They start from the smoothed relative frequencies of each node in the rows where it and all its parents are known, and
the start decides which local maximum they reach. Without missing values, the unsmoothed relative frequencies maximise
LL.

**em.** Expectation maximisation:

    theta_kj = (E_kj + a_kj) / sum over k' of (E_k'j + a_k'j)

The expected counts are computed at the previous theta; a are the pseudo-counts of the smoothing rule, plus the
expected counts of a prior if there is one. Then

    ln posterior = LL + sum over families, k and j of a_kj ln theta_kj

never falls (Dempster, Laird & Rubin 1977, Journal of the Royal Statistical Society B 39; Lauritzen 1995, Computational
Statistics & Data Analysis 19). Conventions: a row adds no counts to a family if the child and all its descendants are
unknown (such counts would only repeat the theta that they come from); rules whose pseudo-counts depend on the data
(`fgg`, `hdp`) keep the pseudo-counts that they have at the start; a distribution without any counts is uniform; `mle`
keeps its floor of 1e-10. An iteration that does not raise the posterior, because of rounding or the floor, is dropped.
Each iteration is reported with LL, and with the negative of the sum over families as penalty. EM stops when an
iteration raises ln posterior by no more than the tolerance times its absolute value, or at the maximum number of
iterations. Cost: a pass of exact inference per iteration.

**apn.** Adaptive probabilistic networks: gradients in softmax coordinates, theta = softmax beta,

    dLL/dbeta_kj = E_kj - theta_kj sum over k' of E_k'j

(Binder, Koller, Russell & Kanazawa 1997, Machine Learning 29; in these coordinates Greiner, Su, Shen & Zhou 2005). It
maximises LL, and does not always end in the same local maximum as `em`. Nothing is smoothed after the start. Each
iteration is reported with LL. Cost: a pass of exact inference per evaluation.

**The preconditioner** of gradient methods is the diagonal of a Hessian. If all rows were complete, the joint likelihood
would have

    D_q = sum over classes y and cells c of m[y, c] (dW[y, c] / dbeta_q)^2,    m[y, c] = weight of class y in cell c

and the conditional likelihood about m[y, c] = (K - 1)/K^2 times the weight of cell c, if all classes were equally
likely. Rows in which an attribute of the family is unknown are spread evenly over its cells. Missing values make both
likelihoods flat, or curved the wrong way, so that no cheap approximation is much better, and the preconditioner is
never refreshed. Products with the Hessian are differences of two gradients; where they show no curvature, a truncated
Newton direction ends. Cost: a product takes a pass of exact inference, the preconditioner none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Schema
from bncli.engine.inference.incomplete_likelihood import NANOSECONDS, IncompleteLikelihood, PassSize
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.optimizers.objective import Precondition, norm
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.generative import FLOOR, family_tables, generative_tables, pseudo_counts
from bncli.engine.parameters.optimization import (
    OptimizerSettings,
    Space,
    Starts,
    best_start,
    optimize,
    random_point,
)
from bncli.engine.structures.structure import Structure
from bncli.watch import Iteration, Note, Watch, silent

TINY = float(np.finfo(np.float64).tiny)
"""The value that replaces counts of 0 in logarithms, so that a distribution without counts is uniform."""
LEAST_CURVATURE = 1e-2
"""The minimum curvature as a fraction of the mean: entries with almost no curvature would otherwise take huge steps."""
TOLERANCE = 1e-10
MUCH = 1 << 24
"""A note is reported if a pass fills at least this many table entries, which takes about a tenth of a second."""
DIFFERENCE = 1e-5
"""The largest change of a parameter between the two points whose gradients are subtracted."""


def learn_em(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    tolerance: float | str,
    max_iterations: int,
    starts: Starts = Starts(),
    watch: Watch = silent,
) -> Parameters:
    """Return the network tables at the local maximum of the posterior that EM reaches from its start.

    With random starts, return the best of the maxima reached. A tolerance of "auto" means TOLERANCE.
    """
    tables = generative_tables(counts, structure, smoothing)
    likelihood = IncompleteLikelihood(counts.data, tables.families, joint=True)
    report_work(likelihood.work, counts.data.schema, watch)
    pseudo = family_tables(counts, structure, lambda table, axis: pseudo_counts(table, smoothing, axis)).cells
    if counts.prior is not None:
        of_prior = counts.of_prior(family.attributes for family in tables.families)
        pseudo = pseudo + family_tables(of_prior, structure, lambda table, _: table).cells
    coordinates = Softmax(tables.cells, tables.families)
    # in tables that all classes share, the pseudo-counts are 0 except for the first class
    prior = pseudo.copy()
    prior[1:, ~coordinates.by_class] = 0.0
    least = TOLERANCE if isinstance(tolerance, str) else tolerance

    def expect(cells: Array) -> _Expectation:
        ll, expected = likelihood.value_and_gradient(cells)
        with_prior = np.maximum(expected, 0.0) + prior
        beta = np.log(np.maximum(coordinates.gather(np.exp(cells)), TINY))
        gradient = coordinates.pull_back(beta, with_prior)
        return _Expectation(cells, ll, float((prior * cells).sum()), with_prior, norm(gradient))

    def run(start: int) -> tuple[float, Parameters]:
        """Iterate from a start, 0 for the usual one; return the log posterior at the end, and the parameters."""
        cells = coordinates.log_theta
        if start:
            cells = coordinates.tables(random_point(coordinates.n_parameters, starts.seed, start))
        current, iteration, passes, gain = expect(cells), 0, 1, math.inf
        while True:
            step, penalty = 1.0 if iteration else 0.0, 0.0 - current.log_prior
            watch(Iteration(iteration, None, penalty, current.gradient_norm, step, passes, passes, None, current.ll))
            stopped_by = StoppedBy.TOLERANCE
            if gain <= least * abs(current.log_posterior):
                break
            if iteration >= max_iterations:
                stopped_by = StoppedBy.MAX_ITERATIONS
                break
            maximised = coordinates.tables(np.log(np.maximum(coordinates.gather(current.counts), TINY)))
            floored = np.maximum(maximised, math.log(FLOOR))
            reached = expect(np.where(pseudo > 0, maximised, floored))
            passes, gain = passes + 1, reached.log_posterior - current.log_posterior
            if not gain > 0:  # only rounding is left
                break
            current, iteration = reached, iteration + 1
        cll_start, cll = (conditional_value(likelihood, each) for each in (cells, current.cells))
        fitted, done = Tables.of_cells(current.cells, coordinates.families), (iteration, passes)
        return current.log_posterior, Parameters(fitted, coordinates.n_parameters, cll_start, cll, *done, stopped_by)

    return best_start(run, starts.random, watch) if starts.random else run(0)[1]


@dataclass(frozen=True)
class _Expectation:
    """The result of an expectation step at tables `cells`; `counts` are expected counts plus pseudo-counts.

    Both arrays are (K, n_cells). `ll` and `log_prior` are in nats.
    """

    cells: Array
    ll: float
    log_prior: float
    counts: Array
    gradient_norm: float

    @property
    def log_posterior(self) -> float:
        return self.ll + self.log_prior


def learn_apn(
    counts: Counts, structure: Structure, *, smoothing: str, settings: OptimizerSettings, watch: Watch = silent
) -> Parameters:
    """Return the network tables at the local maximum of the joint likelihood that the optimizer reaches from its start.

    With random starts, return the best of the maxima reached. The penalty and the kind of start in `settings` are
    ignored.
    """
    space = incomplete_space(counts, structure, smoothing, joint=True)
    report_work(space.likelihood.work, counts.data.schema, watch)
    unpenalised = replace(settings, init="generative", penalty=0.0, penalty_center=0.0)
    parameters = optimize(
        space,
        unpenalised,
        lambda event: watch(event._replace(cll=None, ll=event.cll) if isinstance(event, Iteration) else event),
    )
    ends = (space.coordinates.log_theta, parameters.tables.cells)
    cll_start, cll = (conditional_value(space.likelihood, cells) for cells in ends)
    return replace(parameters, cll_start=cll_start, cll=cll)


def incomplete_space(counts: Counts, structure: Structure, smoothing: str, *, joint: bool = False) -> IncompleteSpace:
    """Return the parameter space for rows with missing values and the conditional likelihood or, if `joint`, LL."""
    tables = generative_tables(counts, structure, smoothing)
    data = counts.fitted_rows
    likelihood = IncompleteLikelihood(data, tables.families, joint)
    coordinates = Softmax(tables.cells, tables.families)
    total = data.total_weight
    # the weight of rows that lack a family is spread evenly over its cells
    completed = family_tables(
        counts, structure, lambda table, _: np.asarray(table + (total - table.sum()) / table.size)
    )
    mass = completed.cells
    n_labels = len(mass)
    mass[:, ~coordinates.by_class] /= n_labels  # counts of all classes together
    if not joint:
        mass[:] = mass.sum(axis=0) * ((n_labels - 1) / n_labels**2)
    return IncompleteSpace(likelihood, coordinates, can_separate=False, mass=mass)


@dataclass(frozen=True)
class IncompleteSpace(Space):
    """A parameter space of softmax tables and a likelihood of incomplete rows.

    `mass` (K, n_cells) is m of the module docstring. Separability of the classes is not detected: scaling up the tables
    need not keep the predicted class of a row, which depends on a sum of products.
    """

    likelihood: IncompleteLikelihood
    coordinates: Softmax
    mass: Array = field(kw_only=True)

    def on(self, data: Dataset) -> IncompleteLikelihood:
        return replace(self.likelihood, data=data)

    def first_preconditioner(self, p: Array, penalty: float) -> Precondition:
        # entries with almost no expected counts would otherwise take huge steps
        least = max(LEAST_CURVATURE * float(self._curvature.mean()), TINY)
        diagonal = np.asarray(np.maximum(self._curvature, least) + penalty)
        return lambda g: np.asarray(g / diagonal)

    def preconditioner(self, p: Array, cost: float, penalty: float) -> Precondition:
        return self.first_preconditioner(p, penalty)

    def hessian(self, p: Array, penalty: float) -> Callable[[Array], Array]:
        """Return a function that approximates products with the Hessian at p by differences of gradients."""
        gradient = self._gradient(p)

        def product(v: Array) -> Array:
            # the largest entry of v changes by DIFFERENCE; for v = 0 any step gives 0
            step = DIFFERENCE / max(float(np.abs(v).max(initial=0.0)), TINY)
            return np.asarray((gradient - self._gradient(p + step * v)) / step + penalty * v)

        return product

    @cached_property
    def _curvature(self) -> Array:
        """The diagonal D of the module docstring, at the generative tables wherever the optimization starts."""
        coordinates = self.coordinates
        return coordinates.gather(coordinates.curvature(coordinates.generative, self.mass))

    def _gradient(self, p: Array) -> Array:
        return self.coordinates.pull_back(p, self.likelihood.value_and_gradient(self.coordinates.tables(p))[1])


def report_work(work: PassSize, schema: Schema, watch: Watch) -> None:
    """Report the size of a pass over rows with missing values in a note, if it fills MUCH table entries or more."""
    if work.entries >= MUCH:
        names = [repr(schema.attributes[i].name) for i in work.widest]
        what = f"because of missing values, every pass over the rows fills {work.entries:,} table entries"
        seconds = f"{work.entries * NANOSECONDS / 1e9:.1g} s"
        watch(Note(f"{what} and takes about {seconds}; the widest table is over {', '.join(names)}"))


def conditional_value(likelihood: IncompleteLikelihood, cells: Array) -> float:
    """Return the CLL at tables `cells` (K, n_cells), which takes less time than CLL and gradient together."""
    log_joint, data = likelihood.log_joint(cells), likelihood.data
    top = log_joint.max(axis=0)
    log_evidence = top + np.log(np.exp(log_joint - top).sum(axis=0))
    losses = log_evidence - log_joint[data.labels, np.arange(data.n_rows)]
    return 0.0 - float(losses.sum() if data.weights is None else data.weights @ losses)
