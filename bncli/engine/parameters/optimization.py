"""Maximise a penalised likelihood in any parameter space with any optimizer, from one start or from several.

    maximise  CLL(W(p)) - lambda/2 sum_q (p_q - center)^2

The penalty is relative to the summed CLL and applies to all parameters, including the class term. The optimizer
minimises the negative of this objective.

**Tolerance.** By chance alone, the optimum for N rows is about P / 2 nats of log-likelihood away from the best
parameters, where P is the number of free parameters. There is no use in coming much nearer to the optimum than that. So
the tolerance `auto` is

    ERROR_SHARE (P / 2) / (N H),    H = entropy of the class, in nats

within the bounds TOLERANCE; N H is the total loss of predicting the class frequencies. Without a penalty (the optimum
may then be infinite along some directions), under monotonicity constraints, or with fewer than MANY_ROWS rows
(MANY_ROWS_OF_EFFECTS, if tables are coded as effects), it is the lower bound. (Measured against the lower bound: on
100,000 rows with 32,000 parameters, a fit takes a third of the passes; for interactions on 8 tables of 1,000 to 10,000
rows, fits take 54 to 97 % of the time. In all cases the log-loss of other rows differs by less than 0.1 %.)

**Random starts.** If the parameters are log probabilities of a network, or if values are missing, the likelihood has
several local maxima (or plateaus on which an optimizer gives up), and the start decides which one is found. A random
start draws every distribution of the network uniformly, from Dirichlet(1, ..., 1):

    beta_q = ln e_q,    e_q ~ Exp(1) independent for every free parameter q,    theta = softmax beta

Start 0 is the usual one. Start s > 0 is drawn by its own generator, seeded with (seed, s), so that neither more starts
nor other random draws change it. The start with the best optimum is kept (ties, up to rounding: the first). The starts
are optimized one after the other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from bncli.catalogue import OPTIMIZERS
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Optimum, Parameters, Restarts, Tables
from bncli.engine.optimizers import growing_samples
from bncli.engine.optimizers.growing_samples import SampleObjective
from bncli.engine.optimizers.objective import (
    FIRST_GAP,
    HISTORY,
    Objective,
    Precondition,
    Report,
    Step,
    add_counts,
    continue_reports,
)
from bncli.engine.parameters.coordinates import Coordinates, EntryCoordinates, LinearCoordinates, Softmax
from bncli.engine.parameters.costs import Flops
from bncli.engine.parameters.effect_coding import EffectCoordinates
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.monotone import Monotone, monotone_of
from bncli.engine.parameters.preconditioner import Whitening, is_factored, whitening
from bncli.engine.parameters.weighted_samples import Growth, weighted_samples
from bncli.engine.structures.structure import Family
from bncli.watch import Iteration, Note, Progress, SelectedRun, Watch

TOLERANCE, ERROR_SHARE = (1e-10, 1e-4), 1e-3
"""The bounds of the tolerance `auto`, and the fraction of the statistical error that it allows."""
MANY_ROWS, MANY_ROWS_OF_EFFECTS = 10_000, 1_000
"""With fewer rows, the tolerance `auto` is its lower bound, because such fits take little time; effects take more."""
ROUNDS = 10
"""The factor by which an optimization under monotonicity constraints may exceed the maximum number of iterations."""
NEAR_COST = 3.0
"""The cost of the preconditioner at a known point, in evaluations; between 1 and 12 it makes little difference."""
DIRECTED_COST = 30.0
"""The same for a fit under monotonicity constraints, which takes many more evaluations."""
FACTORED_GAP, FACTORED_HISTORY = 2, 8
"""The number of evaluations before the first refresh of a preconditioner that costs one pass, and the number of pairs
that L-BFGS then stores: older pairs soon lose their meaning, and each pair takes 24 bytes per parameter."""
FEW_PRODUCTS_ROWS, FEW_PRODUCTS_PENALTY = 12_000, 0.1
"""With more rows and at least this penalty, the conjugate gradients for a Newton direction of effects also end when
their last steps lower the quadratic model by no more than the tolerance. (Measured on twelve tables: fits take as
little as a third of the time, for the same log-loss of other rows. With a penalty of 0.01 on almost separable rows, the
log-loss was 1.5 % higher.)"""
SINGLE_TOLERANCE = 1e-5
"""If the tolerance is at least this, passes over many classes use single precision, which takes half the time."""
FIRST_PENALTY, FIRST_ITERATIONS = 30.0, 4
"""The penalty with which an optimization with many classes begins, and the number of iterations with this penalty."""
LEAST = float(np.finfo(np.float64).tiny)
"""The value that replaces an exponential variate of 0, whose logarithm would not be finite."""


class Likelihood(Protocol):
    """A log-likelihood of rows as a function of tables, which are one array (K, n_cells)."""

    @property
    def data(self) -> Dataset: ...

    @property
    def families(self) -> tuple[Family, ...]: ...

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]: ...


@dataclass(frozen=True)
class Space(ABC):
    """A likelihood in some coordinates, to be optimized; `flops` is the cost model for the trace, if there is one.

    `can_separate`: whether the likelihood has no finite optimum if some tables classify all rows correctly.
    """

    likelihood: Likelihood
    coordinates: Coordinates
    flops: Flops | None = None
    can_separate: bool = True

    @abstractmethod
    def first_preconditioner(self, p: Array, penalty: float) -> Precondition:
        """Return an approximation of the inverse Hessian at the start p."""

    @abstractmethod
    def preconditioner(self, p: Array, cost: float, penalty: float) -> Precondition:
        """Return an approximation of the inverse Hessian at p, at the cost of about `cost` evaluations."""

    @abstractmethod
    def hessian(self, p: Array, penalty: float) -> Callable[[Array], Array]:
        """Return a function that multiplies by the Hessian at p, or by an approximation."""

    def cells(self, p: Array) -> Array:
        """Return the tables (K, n_cells) of a model with the parameters p (P,)."""
        return self.coordinates.tables(p)

    @abstractmethod
    def on(self, data: Dataset) -> Likelihood:
        """Return the likelihood of the same families for other rows."""


@dataclass(frozen=True)
class ParameterSpace(Space):
    """A parameter space for complete rows; `monotone` holds the monotonicity constraints, or None if there are none."""

    likelihood: ConditionalLikelihood
    coordinates: Coordinates
    monotone: Monotone | None = None

    @classmethod
    def directed(
        cls, likelihood: ConditionalLikelihood, coordinates: LinearCoordinates, flops: Flops | None = None
    ) -> ParameterSpace:
        """Return a space with the monotonicity constraints in the schema of the rows; its tables are linear in p."""
        return cls(likelihood, coordinates, flops, monotone=monotone_of(likelihood, coordinates))

    @property
    def is_factored(self) -> bool:
        return is_factored(self.likelihood, self.coordinates)

    @cached_property
    def condensed(self) -> ParameterSpace | None:
        """The space of the condensed likelihood, without monotonicity constraints.

        It is None if condensing leaves the likelihood as it is, or if the coordinates are not `EntryCoordinates`.
        """
        coordinates, likelihood = self.coordinates, self.likelihood
        if not isinstance(coordinates, EntryCoordinates):
            return None
        condensed = likelihood.condensed
        if condensed.cells is not None:
            coordinates = coordinates.of_cells(condensed.cells)
        return (
            None if condensed is likelihood else ParameterSpace(condensed, coordinates, can_separate=self.can_separate)
        )

    @cached_property
    def whitening(self) -> Whitening:
        return whitening(self.likelihood, self.coordinates)

    def first_preconditioner(self, p: Array, penalty: float) -> Precondition:
        return self.whitening.start(p, penalty)

    def preconditioner(self, p: Array, cost: float, penalty: float) -> Precondition:
        return self.whitening.refresh(p, cost, penalty)

    def hessian(self, p: Array, penalty: float) -> Callable[[Array], Array]:
        """Return a function that multiplies by J'HJ + lambda I, where J is the derivative of the tables.

        The curvature of the map from p to tables, which only `Softmax` has, is left out.
        """
        coordinates = self.coordinates
        table_product = self.likelihood.hessian(coordinates.tables(p))

        def product(v: Array) -> Array:
            moved = coordinates.push(p, v) if isinstance(coordinates, Softmax) else coordinates.tables(v)
            return penalty * v + coordinates.pull_back(p, table_product(moved))

        return product

    def cells(self, p: Array) -> Array:
        """Return the tables (K, n_cells) at p, changed just enough to satisfy the monotonicity constraints, if any.

        At an optimum, only rounding errors violate the constraints.
        """
        tables = self.coordinates.tables(p)
        return tables if self.monotone is None else self.monotone.directions.repaired(tables)

    def on(self, data: Dataset) -> ConditionalLikelihood:
        return conditional_likelihood(data, self.likelihood.families)


@dataclass(frozen=True)
class OptimizerSettings:
    """The settings of an optimization: initial point, penalty, optimizer and stopping rules.

    - init: the initial point of start 0, `zero` or `generative`; other starts are random
    - tolerance: None means the tolerance `auto` that the module describes
    - seed: for the folds of early_stop `cv`, and for the random starts
    - restarts: the number of random starts in addition to the usual one; start: the number of the current start
    - negligible: tolerances are relative to the objective per unit of weight, in nats, or to this value if that is
      larger
    - options: additional arguments of the optimizer
    - growth: the rules for the samples with which the optimization begins; None uses all rows from the first pass on
    - near_cost: the cost of the preconditioner at a known point, in evaluations
    - near: tables (K, n_cells) of the same families near which the optimum is expected, such as tables fitted to most
      of the rows; an optimization of effects starts there
    """

    init: str
    penalty: float
    penalty_center: float
    optimizer: str
    tolerance: float | None
    max_iterations: int
    early_stop: str = "none"
    seed: int = 0
    restarts: int = 0
    start: int = 0
    negligible: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    growth: Growth | None = None
    near_cost: float = NEAR_COST
    near: Array | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Problem:
    """A parameter space and the settings of an optimization, which together define an objective to be minimised."""

    space: Space
    settings: OptimizerSettings

    @property
    def objective(self) -> Objective:
        space, penalty = self.space, self.settings.penalty
        is_factored = isinstance(space, ParameterSpace) and space.is_factored
        return Objective(
            self.value_and_gradient,
            # made at the first use, because some optimizers never use it
            lambda g: self._first_preconditioner(g),
            partial(space.hessian, penalty=penalty),
            partial(space.preconditioner, penalty=penalty),
            self.is_separable,
            self.settings.negligible * space.likelihood.data.total_weight,
            FACTORED_GAP if is_factored else FIRST_GAP,
            FACTORED_HISTORY if is_factored else HISTORY,
            isinstance(space.coordinates, EffectCoordinates)
            and space.likelihood.data.n_rows > FEW_PRODUCTS_ROWS
            and penalty >= FEW_PRODUCTS_PENALTY,
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

    def is_separable(self, value: float) -> bool:
        """Return whether the total loss `value` is so low that every row must be classified correctly.

        Then the loss of every row is below its weight times ln 2, and multiplying the tables by a growing factor drives
        the CLL to 0. With a penalty, or if `can_separate` is False, the result is False.
        """
        weights = self.space.likelihood.data.weights
        lightest = 1.0 if weights is None else float(weights.min())
        # a row classified wrongly has a loss of at least its weight times ln 2
        return self.space.can_separate and self.settings.penalty == 0 and value < lightest * math.log(2)

    @cached_property
    def _first_preconditioner(self) -> Precondition:
        return self.space.first_preconditioner(self.start, self.settings.penalty)


def optimize(space: Space, settings: OptimizerSettings, watch: Watch) -> Parameters:
    """Optimize, and return the best parameters found.

    Without monotonicity constraints, their penalised objective is never worse than at the start. With `restarts`,
    return the best parameters of all starts.
    """
    if not settings.restarts:
        return _optimize(space, settings, watch)[1]
    return best_start(lambda start: _optimize(space, replace(settings, start=start), watch), settings.restarts, watch)


def _optimize(space: Space, settings: OptimizerSettings, watch: Watch) -> tuple[float, Parameters]:
    """Optimize from one start; return the penalised objective (higher is better) at the end, and the parameters."""
    cll_path: list[float] = []

    def report(step: Step, p: Array) -> None:
        penalty = _penalty(settings, p)
        cll_path.append(penalty - step.value)
        flops = None
        if space.flops is not None:
            flops = space.flops.spent(settings.optimizer, step.iteration, step.evaluations)
        spent = (step.evaluations, step.gradient_evaluations)
        watch(Iteration(step.iteration, cll_path[-1], penalty, step.gradient_norm, step.step, *spent, flops))

    optimum = find_optimum(space, settings, report)
    parameters = Parameters(
        Tables.of_cells(space.cells(optimum.point), space.likelihood.families),
        space.coordinates.n_parameters,
        cll_path[0],
        cll_path[-1],
        optimum.iterations,
        optimum.evaluations,
        optimum.stopped_by,
        products=optimum.products,
        point=optimum.point,
    )
    return 0.0 - optimum.value, parameters


def _penalty(settings: OptimizerSettings, p: Array) -> float:
    return settings.penalty / 2 * float(np.add.reduce(np.square(p - settings.penalty_center)))


def find_optimum(space: Space, settings: OptimizerSettings, report: Report) -> Optimum:
    """Optimize from the start that the settings define; `report` receives every iteration, including the start.

    If a condensed space is optimized, the points that `report` receives lack the parameters of cells without rows.
    """
    settings = with_tolerance(space, settings)
    start = Problem(space, settings).start
    condensed = _condensed(space, settings, start)
    optimum = _free_optimum(condensed or space, settings, report)
    if condensed is not None:
        optimum = replace(optimum, point=_with_all_cells(start, condensed, optimum.point))
    problem = Problem(_in_precision(space, settings), replace(settings, near_cost=DIRECTED_COST))
    return _keep_directions(problem, optimum, report)


def _free_optimum(space: Space, settings: OptimizerSettings, report: Report) -> Optimum:
    """Return the optimum without monotonicity constraints; the settings define the start, or tables to start near."""
    space = _in_precision(space, settings)
    problem = Problem(space, settings)
    if settings.near is not None and isinstance(space.coordinates, EffectCoordinates):
        return _minimise_near(problem, space.coordinates.point_of(settings.near), report)
    if _begins_with_larger_penalty(problem):
        return _minimise_twice(problem, report)
    samples = _samples(problem, _sample_sizes(space, settings), None)
    return _minimise(problem.objective, problem.start, samples, settings, report)


def find_optimum_from(space: Space, settings: OptimizerSettings, point: Array) -> Optimum:
    """Optimize from `point`, near which the optimum is expected."""
    settings = with_tolerance(space, settings)
    condensed = _condensed(space, settings, point)
    if condensed is None:
        optimum = _free_optimum_from(space, settings, point)
    else:
        optimum = _free_optimum_from(condensed, settings, _of_cells(point, condensed))
        optimum = replace(optimum, point=_with_all_cells(point, condensed, optimum.point))
    return _keep_directions(Problem(_in_precision(space, settings), settings), optimum, lambda step, p: None)


def _free_optimum_from(space: Space, settings: OptimizerSettings, point: Array) -> Optimum:
    """Return the optimum without monotonicity constraints, starting from `point`."""
    problem = Problem(_in_precision(space, settings), settings)
    # from there the largest sample alone is enough
    sizes = _sample_sizes(problem.space, settings)[-1:]
    # with a sample, its own objective has the preconditioner made at the point
    objective = problem.objective if sizes else _near(problem, point)
    return _minimise(objective, point, _samples(problem, sizes, point), settings, lambda step, p: None)


def _condensed(space: Space, settings: OptimizerSettings, start: Array) -> ParameterSpace | None:
    """Return the condensed space if optimizing it takes the same steps with less work; otherwise return None.

    This requires that the parameters of cells without rows have no gradient at `start`, so that they never change.
    """
    # samples and random starts depend on all rows and all parameters
    if not isinstance(space, ParameterSpace) or settings.start or _sample_sizes(space, settings):
        return None
    condensed = space.condensed
    if condensed is None or condensed.likelihood.cells is None or settings.penalty == 0:
        return condensed
    has_rows = np.zeros(space.likelihood.n_cells, bool)
    has_rows[condensed.likelihood.cells] = True
    others = start.reshape(space.likelihood.data.n_labels, -1)[:, ~has_rows]
    return condensed if (others == settings.penalty_center).all() else None


def _of_cells(point: Array, condensed: ParameterSpace) -> Array:
    """Return the parameters of the condensed space's cells, given the parameters of all cells."""
    cells = condensed.likelihood.cells
    return point if cells is None else point.reshape(condensed.likelihood.data.n_labels, -1)[:, cells].ravel()


def _with_all_cells(point: Array, condensed: ParameterSpace, optimum: Array) -> Array:
    """Return `point` with the parameters of the condensed space's cells replaced by `optimum`."""
    cells, n_labels = condensed.likelihood.cells, condensed.likelihood.data.n_labels
    if cells is None:
        return optimum
    out = point.copy()
    out.reshape(n_labels, -1)[:, cells] = optimum.reshape(n_labels, -1)
    return out


def _minimise_near(problem: Problem, point: Array, report: Report) -> Optimum:
    """Minimise from a point that was fitted to other rows with the same penalty, without monotonicity constraints.

    The optimum of a sample would be worse than such a point, so the sample serves only for its curvature.
    """
    settings = problem.settings
    samples = _samples(problem, _sample_sizes(problem.space, settings)[-1:], None)
    if samples is None:
        return _minimise(_near(problem, point), point, None, settings, report)
    assert settings.tolerance is not None
    return growing_samples.descend_near(
        problem.objective,
        point,
        next(samples),
        method=OPTIMIZERS.load(settings.optimizer, "minimise"),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
        report=report,
    )


def _in_precision(space: Space, settings: OptimizerSettings) -> Space:
    """Return the space, with single-precision passes if there are many classes and the tolerance allows it."""
    assert settings.tolerance is not None
    if isinstance(space, ParameterSpace) and space.is_factored and settings.tolerance >= SINGLE_TOLERANCE:
        return replace(space, likelihood=replace(space.likelihood, single=True))
    return space


def _begins_with_larger_penalty(problem: Problem) -> bool:
    """Return whether the optimization begins with FIRST_PENALTY.

    It does with many classes and a smaller penalty, if the tables start at 0 and `growth` is set. From zero tables, a
    first step under a small penalty is so long that the curvature at the start is no guide to the curvature at the
    optimum.
    """
    space, settings = problem.space, problem.settings
    is_factored = isinstance(space, ParameterSpace) and space.is_factored
    return is_factored and settings.growth is not None and settings.init == "zero" and settings.penalty < FIRST_PENALTY


def _minimise_twice(problem: Problem, report: Report) -> Optimum:
    """Take up to FIRST_ITERATIONS iterations with FIRST_PENALTY, then minimise the objective from there."""
    settings = problem.settings
    first = replace(settings, penalty=FIRST_PENALTY, max_iterations=min(FIRST_ITERATIONS, settings.max_iterations))

    def report_objective(step: Step, p: Array) -> None:
        # the iterations of the first part are reported as values of the final objective
        report(replace(step, value=step.value + _penalty(settings, p) - _penalty(first, p)), p)

    start = Problem(problem.space, first)
    earlier = _minimise(start.objective, start.start, None, first, report_objective)
    rest = replace(settings, max_iterations=settings.max_iterations - earlier.iterations)
    objective = _near(problem, earlier.point)
    return add_counts(earlier, _minimise(objective, earlier.point, None, rest, continue_reports(earlier, report)))


def with_tolerance(space: Space, settings: OptimizerSettings) -> OptimizerSettings:
    """Return the settings with a tolerance: their own or, if it is None, the tolerance `auto`."""
    if settings.tolerance is not None:
        return settings
    data, tolerance = space.likelihood.data, TOLERANCE[0]
    is_directed = isinstance(space, ParameterSpace) and space.monotone is not None
    has_effects = isinstance(space, ParameterSpace) and isinstance(space.coordinates, EffectCoordinates)
    many = MANY_ROWS_OF_EFFECTS if has_effects else MANY_ROWS
    if data.n_rows >= many and settings.penalty > 0 and not is_directed:
        shares = data.class_counts[data.class_counts > 0] / data.total_weight
        # N H, the loss of the class frequencies
        base = 0.0 - data.total_weight * float(shares @ np.log(shares))
        # adding the same to all classes changes no probability, so these parameters do not count
        error = space.coordinates.n_parameters * (data.n_labels - 1) / data.n_labels / 2
        tolerance = min(max(ERROR_SHARE * error / base, tolerance), TOLERANCE[1]) if base > 0 else tolerance
    return replace(settings, tolerance=tolerance)


def _sample_sizes(space: Space, settings: OptimizerSettings) -> tuple[int, ...]:
    """Return the sizes of the samples with which to begin, or () to use all rows from the first pass on.

    There are no samples without a penalty, because a sample may have no finite optimum, and none for incomplete rows,
    because their weights cannot be computed from cells. A condensed likelihood is used only if there are no samples.
    """
    if settings.growth is None or settings.penalty == 0 or not isinstance(space, ParameterSpace):
        return ()
    data = space.likelihood.data
    if space.likelihood.cells is not None:
        return ()
    # adding the same to all classes changes no probability
    n_free = space.coordinates.n_parameters * (data.n_labels - 1) // data.n_labels
    return settings.growth.sizes(data.n_rows, n_free)


def _samples(problem: Problem, sizes: Sequence[int], near: Array | None) -> Iterator[SampleObjective] | None:
    if not sizes:
        return None
    space = problem.space
    assert isinstance(space, ParameterSpace)
    return (_sample(problem, space, rows, near) for rows in weighted_samples(space.likelihood, sizes))


def _sample(problem: Problem, space: ParameterSpace, rows: Dataset, near: Array | None) -> SampleObjective:
    data = space.likelihood.data
    sampled = Problem(replace(space, likelihood=space.on(rows), flops=None), problem.settings)
    objective = sampled.objective if near is None else _near(sampled, near)
    # P / 2n nats per row, times the weight of all rows
    error = data.total_weight * space.coordinates.n_parameters / (2 * rows.n_rows)
    return SampleObjective(objective, rows.n_rows / data.n_rows, error)


def _near(problem: Problem, point: Array) -> Objective:
    """Return the objective with a preconditioner made at a point near the optimum."""
    settings = problem.settings
    precondition = problem.space.preconditioner(point, settings.near_cost, settings.penalty)
    return replace(problem.objective, precondition=precondition)


def _minimise(
    objective: Objective,
    start: Array,
    samples: Iterator[SampleObjective] | None,
    settings: OptimizerSettings,
    report: Report,
) -> Optimum:
    minimise: Callable[..., Optimum] = OPTIMIZERS.load(settings.optimizer, "minimise")
    stop: dict[str, Any] = {"tolerance": settings.tolerance, "max_iterations": settings.max_iterations}
    if samples is None:
        return minimise(objective, start, report=report, **stop, **settings.options)
    return growing_samples.descend(objective, start, samples, method=minimise, report=report, **stop)


def _keep_directions(problem: Problem, free: Optimum, report: Report) -> Optimum:
    """Return the optimum under the monotonicity constraints, given the optimum `free` without them."""
    space, settings = problem.space, problem.settings
    monotone = space.monotone if isinstance(space, ParameterSpace) else None
    if monotone is None or monotone.keeps(free.point):
        return free
    assert settings.tolerance is not None
    constrained = monotone.optimum(
        _near(problem, free.point),
        free.point,
        settings.penalty,
        method=partial(OPTIMIZERS.load(settings.optimizer, "minimise"), **settings.options),
        report=continue_reports(free, report),
        tolerance=settings.tolerance,
        max_iterations=ROUNDS * settings.max_iterations,
    )
    return add_counts(free, constrained)


class Starts(NamedTuple):
    """The number of random starts in addition to the usual one, and their seed."""

    random: int = 0
    seed: int = 0


def random_point(n_parameters: int, seed: int, start: int) -> Array:
    """Draw beta (P,) for a random start: the logarithms of independent exponential variates."""
    rng = np.random.default_rng([seed, start])
    return np.log(np.maximum(rng.standard_exponential(n_parameters), LEAST))


def best_start(
    attempt: Callable[[int], tuple[float, Parameters]], restarts: int, watch: Watch, *, held_out: bool = False
) -> Parameters:
    """Try the usual start and `restarts` random ones; return the best parameters, with the objectives of all starts.

    `attempt(start)` returns the objective that a start reaches (higher is better), and the parameters. `held_out`:
    whether the objectives are likelihoods of held-out rows. The watch receives the progress, then the number of the
    start that is kept, and a note that compares the starts.
    """
    objective, best = attempt(0)
    objectives = [objective]
    for start in range(1, restarts + 1):
        watch(Progress(start, restarts + 1, f"start {start + 1} of {restarts + 1}"))
        objective, parameters = attempt(start)
        objectives.append(objective)
        best = parameters if Restarts(tuple(objectives)).best_start == start else best
    restarted = Restarts(tuple(objectives), held_out)
    number = restarted.best_start
    watch(SelectedRun(number))
    starts = f"the default start and {restarts:,} random one{'' if restarts == 1 else 's'}"
    what = "held-out likelihoods" if held_out else "objectives"
    gain = objectives[number] - objectives[0]
    which = f"random start {number}, {gain:.4g} above the default one," if number else "the default one"
    spread = f"from {min(objectives):.7g} to {max(objectives):.7g} nats"
    watch(Note(f"{starts} reached {what} {spread}; {which} is kept"))
    return replace(best, restarts=restarted)
