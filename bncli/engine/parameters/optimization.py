"""Penalised conditional likelihood, maximised in any parameter space by any optimiser.

    maximise  CLL(W(p)) - lambda/2 sum_q (p_q - centre)^2

against the summed CLL, on all parameters, the class term included. The optimiser minimises the negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from bncli.catalogue import OPTIMIZERS
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, Parameters, Tables
from bncli.engine.optimizers import growing_samples as growing
from bncli.engine.optimizers.growing_samples import SampleObjective
from bncli.engine.optimizers.objective import Objective, Precondition, Report, Step, add_counts, continue_reports
from bncli.engine.parameters.coordinates import Coordinates, Linear, Parameterisation
from bncli.engine.parameters.flops import Costs
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.monotone import Monotone, monotone_of
from bncli.engine.parameters.nested_samples import Growth, nested_samples
from bncli.engine.parameters.preconditioner import Whitening, whitening
from bncli.engine.parameters.restarts import best_start, random_point
from bncli.watch import Iteration, Watch

Product = Callable[[Array], Array]
ROUNDS = 10
"""Of iterations that are allowed, for an optimum under directions."""
NEAR_COST = 3.0
"""Evaluations that the preconditioner of a known point may cost; between 1 and 12 it makes little difference."""
DIRECTED_COST = 30.0
"""The same of the last fit under directions, where there are many times as many evaluations."""


class Likelihood(Protocol):
    """A log-likelihood of rows as a function of tables, kept as one array (K, n_cells)."""

    @property
    def data(self) -> Dataset: ...

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]: ...

    def tables(self, cells: Array) -> Tables: ...


class Curvature(Protocol):
    """What is known of the Hessian of an objective, penalty included."""

    def start(self, p: Array) -> Precondition:
        """Return a guess of the inverse Hessian at p, the start."""
        ...

    def refresh(self, p: Array, passes: float) -> Precondition:
        """Return the guess at another point, at the cost of about so many evaluations."""
        ...

    def hessian(self, p: Array) -> Product:
        """Multiplies by the Hessian at p, or by a stand-in."""
        ...


class Space(Protocol):
    """What is optimized: rows, what the parameters mean, and the cost model in flops (for the trace only)."""

    @property
    def likelihood(self) -> Likelihood: ...

    @property
    def coordinates(self) -> Parameterisation: ...

    @property
    def costs(self) -> Costs | None: ...

    @property
    def can_separate(self) -> bool:
        """Whether rows that are all classified right, by far enough, tell that there is no finite optimum."""
        ...

    def curvature(self, penalty: float) -> Curvature: ...

    def cells(self, p: Array) -> Array:
        """Return the tables (K, n_cells) of parameters that were found."""
        ...

    def on(self, data: Dataset) -> Likelihood:
        """Return the likelihood of other rows."""
        ...


@dataclass(frozen=True)
class ParameterSpace:
    """The parameter space of complete rows; `monotone` is what the directions of attributes ask of the optimum."""

    likelihood: ConditionalLikelihood
    coordinates: Coordinates
    costs: Costs | None = None
    monotone: Monotone | None = None

    @classmethod
    def directed(
        cls, likelihood: ConditionalLikelihood, coordinates: Linear, costs: Costs | None = None
    ) -> ParameterSpace:
        """Return the space whose optimum keeps the directions that the rows' schema has.

        Tables have to be linear in it.
        """
        return cls(likelihood, coordinates, costs, monotone_of(likelihood, coordinates))

    @property
    def can_separate(self) -> bool:
        return True

    def curvature(self, penalty: float) -> Curvature:
        return _Whitened(self, penalty)

    @cached_property
    def whitening(self) -> Whitening:
        """What the preconditioners for all penalties share."""
        return whitening(self.likelihood, self.coordinates, 0.0)

    @property
    def free(self) -> ParameterSpace:
        """The same without directions."""
        return self if self.monotone is None else self._without_directions

    @cached_property
    def _without_directions(self) -> ParameterSpace:
        return replace(self, monotone=None)

    def cells(self, p: Array) -> Array:
        """Return the tables (K, n_cells) of parameters that were found, falls by rounding taken off."""
        tables = self.coordinates.tables(p)
        return tables if self.monotone is None else self.monotone.directions.repaired(tables)

    def on(self, data: Dataset) -> ConditionalLikelihood:
        return conditional_likelihood(data, self.likelihood.families)


@dataclass(frozen=True)
class _Whitened:
    """The exact Hessian and the preconditioners of complete rows, made when first asked for: some never are."""

    of: ParameterSpace
    penalty: float

    def start(self, p: Array) -> Precondition:
        return self._whitening.start(p)

    def refresh(self, p: Array, passes: float) -> Precondition:
        return self._whitening.refresh(p, passes)

    def hessian(self, p: Array) -> Product:
        """J'HJ + lambda I, J the derivative of the tables: what bends them (in `extended` only) is left out."""
        space = self.of.coordinates
        of_tables = self.of.likelihood.hessian(space.tables(p))

        def product(v: Array) -> Array:
            return self.penalty * v + space.pull_back(p, of_tables(space.push(p, v)))

        return product

    @cached_property
    def _whitening(self) -> Whitening:
        return self.of.whitening.under(self.penalty)


@dataclass(frozen=True)
class OptimizerSettings:
    """How to optimize: start (`zero` or `generative`), penalty lambda and its centre, optimiser, stopping rules.

    `seed` draws the folds by which early_stop `cv` chooses, and random starts (see `bncli.engine.parameters.restarts`):
    so many `restarts` beside the usual start. Losses a unit of weight below `negligible` (nats) count as so much in the
    stopping rules. `start` is the number of the one in hand. `options` are the optimiser's.
    `growth`: how samples of many rows lead to the neighbourhood of the optimum; None: all rows from the first pass on.
    `near_cost`: evaluations that the preconditioner of a known point may cost.
    """

    init: str
    penalty: float
    penalty_center: float
    optimizer: str
    tolerance: float
    max_iterations: int
    early_stop: str = "none"
    seed: int = 0
    restarts: int = 0
    start: int = 0
    negligible: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    growth: Growth | None = None
    near_cost: float = NEAR_COST


@dataclass(frozen=True)
class _Problem:
    """The objective to be minimised. Preconditioners are made when first asked for: some optimisers never do."""

    space: Space
    settings: OptimizerSettings

    @property
    def objective(self) -> Objective:
        curvature = self.curvature
        return Objective(
            self.value_and_gradient,
            self.precondition,
            curvature.hessian,
            curvature.refresh,
            self.separable,
            self.settings.negligible * self.space.likelihood.data.total_weight,
        )

    @property
    def start(self) -> Array:
        coordinates, settings = self.space.coordinates, self.settings
        if settings.start:
            return random_point(coordinates.n_parameters, settings.seed, settings.start)
        return coordinates.generative if settings.init == "generative" else np.zeros(coordinates.n_parameters)

    def value_and_gradient(self, p: Array) -> tuple[float, Array]:
        coordinates = self.space.coordinates
        value, d_tables = self.space.likelihood.value_and_gradient(coordinates.tables(p))
        gradient = self.settings.penalty * (p - self.settings.penalty_center) - coordinates.pull_back(p, d_tables)
        return _penalty(self.settings, p) - value, gradient

    def separable(self, value: float) -> bool:
        """Return whether every row's loss is below its weight times ln 2: then every row is classified correctly.

        Multiplying the tables by a growing factor then drives the CLL to 0.
        """
        weights = self.space.likelihood.data.weights
        lightest = 1.0 if weights is None else float(weights.min())
        return self.space.can_separate and self.settings.penalty == 0 and value < lightest * math.log(2)

    def precondition(self, g: Array) -> Array:
        return self._at_start(g)

    @cached_property
    def curvature(self) -> Curvature:
        return self.space.curvature(self.settings.penalty)

    @cached_property
    def _at_start(self) -> Precondition:
        return self.curvature.start(self.start)


def optimize(space: Space, settings: OptimizerSettings, watch: Watch) -> Parameters:
    """Return the tables of the best parameters found from the start.

    Never worse than the start in the penalised objective.

    With `restarts`, the best end of all starts.
    """
    if not settings.restarts:
        return _optimize(space, settings, watch)[1]
    return best_start(lambda start: _optimize(space, replace(settings, start=start), watch), settings.restarts, watch)


def _optimize(space: Space, settings: OptimizerSettings, watch: Watch) -> tuple[float, Parameters]:
    """Return the penalised objective, to be maximised, at the end of one run, and the parameters there."""
    cll_path: list[float] = []

    def report(step: Step, p: Array) -> None:
        penalty = _penalty(settings, p)
        cll_path.append(penalty - step.value)
        watch(_report_optimum(step, cll_path[-1], penalty, settings.optimizer, space.costs))

    optimum = find_optimum(space, settings, report)
    learnt = Parameters(
        space.likelihood.tables(space.cells(optimum.point)),
        space.coordinates.n_parameters,
        cll_path[0],
        cll_path[-1],
        optimum.iterations,
        optimum.evaluations,
        optimum.stopped_by,
        products=optimum.products,
    )
    return 0.0 - optimum.value, learnt


def _penalty(settings: OptimizerSettings, p: Array) -> float:
    return settings.penalty / 2 * float(np.add.reduce(np.square(p - settings.penalty_center)))


def _report_optimum(step: Step, cll: float, penalty: float, optimizer: str, costs: Costs | None) -> Iteration:
    flops = None if costs is None else costs.spent(optimizer, step.iteration, step.evaluations)
    spent = (step.evaluations, step.gradient_evaluations)
    return Iteration(step.iteration, cll, penalty, step.gradient_norm, step.step, *spent, flops)


def find_optimum(space: Space, settings: OptimizerSettings, report: Report) -> Optimum:
    """Return the best parameters found from the start; `report` hears of every iteration, the start included."""
    problem = _Problem(space, settings)
    samples = _samples(space, settings)
    if samples is None:
        found = _minimise(problem.objective, problem.start, settings, report)
    else:
        found = _minimise_on_growing_samples(problem.objective, problem.start, samples, settings, report)
    return _directed(_Problem(space, replace(settings, near_cost=DIRECTED_COST)), found, report)


def _samples(space: Space, settings: OptimizerSettings, near: Array | None = None) -> Iterator[SampleObjective] | None:
    """Return the samples through which to grow; None where all rows are to be taken from the first pass on.

    `near`: where the optimum is expected, which leaves the largest of them alone. Without a penalty a sample may have
    no finite optimum; and what incomplete rows weigh is not told by their cells.
    """
    if settings.growth is None or settings.penalty == 0 or not isinstance(space, ParameterSpace):
        return None
    data = space.likelihood.data
    # what is added to all classes alike changes no probability
    n_free = space.coordinates.n_parameters * (data.n_labels - 1) // data.n_labels
    sizes = settings.growth.sizes(data.n_rows, n_free)
    if not sizes:
        return None
    return _sampled(space, settings, sizes, None) if near is None else _sampled(space, settings, sizes[-1:], near)


def _sampled(
    space: ParameterSpace, settings: OptimizerSettings, sizes: Sequence[int], near: Array | None
) -> Iterator[SampleObjective]:
    whole = space.likelihood.data
    for rows in nested_samples(space.likelihood, sizes):
        problem = _Problem(replace(space, likelihood=space.on(rows), costs=None), settings)
        objective = problem.objective if near is None else _near(problem, near)
        # P / 2n nats a row, of as many as all rows stand for
        error = whole.total_weight * space.coordinates.n_parameters / (2 * rows.n_rows)
        yield SampleObjective(objective, rows.n_rows / whole.n_rows, error)


def _near(problem: _Problem, point: Array) -> Objective:
    return replace(problem.objective, precondition=problem.curvature.refresh(point, problem.settings.near_cost))


def _minimise(objective: Objective, start: Array, settings: OptimizerSettings, report: Report) -> Optimum:
    limits = {"tolerance": settings.tolerance, "max_iterations": settings.max_iterations}
    found: Optimum = OPTIMIZERS.load(settings.optimizer, "minimise")(
        objective, start, report=report, **limits, **settings.options
    )
    return found


def _minimise_on_growing_samples(
    objective: Objective, start: Array, samples: Iterator[SampleObjective], settings: OptimizerSettings, report: Report
) -> Optimum:
    return growing.descend(
        objective,
        start,
        samples,
        method=OPTIMIZERS.load(settings.optimizer, "minimise"),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
        report=report,
    )


def _directed(problem: _Problem, free: Optimum, report: Report) -> Optimum:
    """Return the optimum under the directions of attributes, from the free one, which it is where that keeps them."""
    monotone = problem.space.monotone if isinstance(problem.space, ParameterSpace) else None
    if monotone is None or monotone.keeps(free.point):
        return free

    return add_counts(free, _constrained(problem, monotone, free.point, continue_reports(free, report)))


def _constrained(problem: _Problem, monotone: Monotone, point: Array, report: Report) -> Optimum:
    """Return the optimum under the directions, near `point`."""
    settings = problem.settings
    method = partial(OPTIMIZERS.load(settings.optimizer, "minimise"), **settings.options)
    # rounds are many: so many iterations as are allowed for one optimum are allowed for ten
    stop = {"tolerance": settings.tolerance, "max_iterations": ROUNDS * settings.max_iterations}
    return monotone.optimum(_near(problem, point), point, settings.penalty, method=method, report=report, **stop)


def find_optimum_from(space: Space, settings: OptimizerSettings, point: Array) -> Optimum:
    """Return the best parameters found from `point`, near which they are expected.

    `settings` tell all but the start.
    """
    problem = _Problem(space, settings)
    samples = _samples(space, settings, near=point)
    if samples is not None:
        found = _minimise_on_growing_samples(problem.objective, point, samples, settings, _silent)
    else:
        found = _minimise(_near(problem, point), point, settings, _silent)
    return _directed(problem, found, _silent)


def _silent(step: Step, p: Array) -> None:
    pass
