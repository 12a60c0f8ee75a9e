"""The uncertainty of fitted tables, from which scoring computes intervals of probabilities (`fit --intervals`).

**Closed form** (`map`). Each distribution of the network has a Dirichlet posterior whose parameters are the smoothed
counts, alpha = N + pseudo-counts. So the entries are independent between families and classes, with

    Var ln theta_k = psi1(alpha_k) - psi1(sum over k' of alpha_k'),    psi1 the trigamma function.

For distributions over the classes, the second term cancels in differences of classes, and is left out. If missing
values are marginalized, a row can contain several values of one distribution, so the second term is stored too:
Cov(ln theta_k, ln theta_l) = -psi1(sum of alpha) for k other than l. Pseudo-counts below LEAST_PSEUDO_COUNT count as
that number here. Pseudo-counts of `fgg` and `hdp`, which depend on the rows, are treated as known.

**Discriminative parameters** (`weighted`, `discriminative`, `extended`, `lr`, `lr-roos`). The posterior is a
Laplace approximation with the penalty as prior: the parameters p are normally distributed around the optimum, with the
inverse Hessian of the penalised objective as covariance,

    Sigma = (J' H J + lambda I)^-1,    H = sum over rows t of w_t (diag P_t - P_t P_t') x x_t x_t',    W = J p.

H is the Hessian of -CLL in the tables W (x_t: indicators of the row's cells), and J the derivative of the tables. The
model stores deviations D of the entries' differences from the first class, with D'D = J Sigma J'. Components that
cancel in every row (a number that one table gains and the bias loses) are removed first, because under a small penalty
they would dominate all others. Generative probabilities inside `weighted` tables are treated as known.

If the deviations would have more than MOST_NUMBERS elements, the entries are treated as independent, with the variances

    v_cy = s / (lambda / (J J')_cy + sum over the rows of the cell of w_t P_ty (1 - P_ty)).

The scale s is chosen so that the mean variance of the scores of training rows is right: the mean over rows and classes
of the variance of S_ty - mean over c of S_tc. Its value under Sigma is estimated by PROBES draws (`posterior_draws`).

**Class weights** v_y are factors of the row weights, w_t = u_t v_{y_t}, and are treated as known. They do not count
as rows: the counts of Dirichlet distributions are divided by them, and the covariance of the parameters is the sandwich
(Huber 1967; White 1982, Econometrica 50), with the covariance of the weighted gradient that the model implies,

    Sigma (J' G J + m lambda I) Sigma,    G = sum over rows of u_t E v_y^2 (e_y - P_t)(e_y - P_t)' x x_t x_t'

where the labels y of a row have probabilities proportional to P_ty / v_y, e_y is the indicator of y, and m is the mean
of the factors over the rows, so that the same factor in all weights and the penalty changes nothing.

**The prior.** The penalty that predicts best is larger than the inverse variance of the parameters: it also makes up
for predictions by the optimum alone, which are more extreme than posterior means. With few rows, intervals based on it
would be too narrow. So with at most FEW_ROWS rows the posterior is averaged over penalties around the chosen one,
lambda times each of FACTORS, with weights proportional to the likelihood of held-out rows (five folds, or one with many
parameters) under the posterior predictive distribution

    P(y | x_t) = E softmax_y S_t,    S_t normal under the Laplace approximation

(moderated outputs, MacKay 1992; weights by held-out likelihood: Geisser & Eddy 1979, JASA 74). The covariance of the
mixture is the weighted mean of the covariances. Two kinds of deviations are added to it: the distance of each optimum
from the tables of the model, which includes any shrinkage after the optimization, and the bias of the chosen penalty to
first order, since parameters may be further from their center c than expected under the prior:

    sqrt(weight) (J p_lambda' - W),    lambda J Sigma (p - c)

None of this is done if the entries are treated as independent. If the rows are too few to compare penalties, the strong
penalty that is used is no estimate of the spread of the parameters: their prior is then standard normal, lambda =
UNIT_PENALTY.

Sources: MacKay 1992, "A practical Bayesian framework for backpropagation networks", Neural Computation 4, and
"The evidence framework applied to classification networks", Neural Computation 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from bncli.catalogue import PARAMETERS
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.splits import count_units
from bncli.engine.kernels.arrays import Array, cell_numbers, log_softmax
from bncli.engine.model import Parameters, ParameterUncertainty, UncertaintyMethod
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.generative import family_tables, pseudo_counts
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum_from
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family, Structure
from bncli.errors import UsageError
from bncli.recipe import Recipe

LEAST_PSEUDO_COUNT = 0.8
"""The minimum pseudo-count of a value in posteriors. Without rows, ln theta has a long lower tail, and a normal
approximation is too wide on the upper side. With this minimum, the intervals have their nominal level on simulated
networks (tests/published)."""
MOST_NUMBERS = 1 << 22
"""The maximum number of elements of stored deviations (32 MiB)."""
NUMBERS_PER_SLICE = 1 << 20
FEW_ROWS = 5_000
"""With at most this many rows, the intervals average over penalties; with more, that hardly changes them."""
MANY_PARAMETERS = 1_500
"""With at least this many parameters, one fold is held out instead of five."""
FACTORS = (3.0, 1.0, 1 / 3, 0.1)
UNIT_PENALTY = 1.0
"""The penalty assumed for intervals if the rows are too few to choose one."""
JITTER = 1e-6
"""The fraction of the standard deviation that is added to keep a covariance positive definite."""
LEAST_WEIGHT = 0.02
"""Penalties with less than this fraction of the total weight are left out."""
PREDICTIVE_DRAWS = 300
PROBES = 16
PRECONDITIONER_COST = 3.0
"""The cost of a preconditioner, in evaluations."""
CG_STEPS = 200
CG_TOLERANCE, DRAW_TOLERANCE = 1e-3, 1e-2
"""Relative residuals at which conjugate gradients stop, in general and for random draws, whose errors are larger."""
WITH_INTERVALS = ("map", "weighted", "discriminative", "extended", "lr", "lr-roos")
"""Parameter learners for which intervals of probabilities are available."""


def refuse_intervals(recipe: Recipe) -> None:
    """Raise UsageError if intervals of probabilities are not available for models of this recipe."""
    what = hint = ""
    if recipe.param == "auto":
        return
    if recipe.param not in WITH_INTERVALS:
        what = f"--intervals: there is no posterior of the parameters {recipe.param!r}"
        hint = f"use --param {', '.join(WITH_INTERVALS)}, or --structure auto"
    elif recipe.param == "map" and recipe.smoothing == "mle":
        what = "--intervals: with --smoothing mle, values without rows have no posterior"
        hint = "use --smoothing m-estimate"
    elif recipe.missing_policy == "marginalize" and recipe.param != "map":
        what = f"--intervals: with marginalized missing values, {recipe.param!r} has no posterior"
        hint = "use --param map, or --missing-policy level"
    elif recipe.early_stop not in (None, "none"):
        what, hint = "--intervals: with --early-stop, the parameters are not an optimum", "use --early-stop none"
    elif recipe.penalty == 0:
        what = "--intervals: without a penalty the parameters have no prior, and may have no finite variance"
        hint = "use a --penalty above 0, or cv"
    if what:
        raise UsageError(what, hint=hint)


def posterior_variances(
    counts: Counts, structure: Structure, smoothing: str, class_weights: Array | None = None
) -> ParameterUncertainty:
    """Return the variances of the table entries under the Dirichlet posteriors of `--param map`.

    If missing values are marginalized, the covariances described in the module docstring, with reversed sign,
    are appended as further columns.
    """
    from scipy.special import polygamma

    of_shared_rows = 1.0 if class_weights is None else _mean_factor(counts.data, class_weights)

    def alphas(table: Array, axis: int) -> Array:
        # counts as they are without class weights, since variances depend on the number of rows
        if table.shape[-1] == 1:  # rows of all classes
            table = table / of_shared_rows
        elif class_weights is not None:
            table = table / class_weights
        return np.asarray(table + np.maximum(pseudo_counts(table, smoothing, axis), LEAST_PSEUDO_COUNT))

    def variances(table: Array, axis: int) -> Array:
        alpha = alphas(table, axis)
        # the class's own distribution, as bias or as a table over its parents
        of_class = axis == -1 or table.ndim == 1
        total = 0.0 if of_class else polygamma(1, alpha.sum(axis=axis, keepdims=True))
        return np.asarray(polygamma(1, alpha) - total)

    def totals(table: Array, axis: int) -> Array:
        sums = alphas(table, axis).sum(axis=axis, keepdims=True)
        return np.broadcast_to(polygamma(1, sums), table.shape)

    entries = family_tables(counts, structure, variances).cells
    if counts.schema.marginalizes:
        entries = np.concatenate([entries, family_tables(counts, structure, totals).cells], axis=1)
    return ParameterUncertainty(UncertaintyMethod.POSTERIOR, entries)


def laplace(
    counts: Counts,
    structure: Structure,
    recipe: Recipe,
    parameters: Parameters,
    settings: OptimizerSettings,
    folds: Sequence[tuple[Counts, Dataset]],
    class_weights: Array | None = None,
) -> ParameterUncertainty:
    """Return the Laplace approximation at the optimum of the parameters.

    It consists of deviations or, if these or the covariance would be too large, of variances of independent entries.

    settings: the settings of the optimization. folds: rows to learn from and held-out rows, which determine the weights
    of the penalties; with more than FEW_ROWS rows, the list may be empty. class_weights: the factors per class (K,)
    that the row weights contain.
    """
    options = recipe.options(PARAMETERS.method(recipe.param))
    build_space = PARAMETERS.load(recipe.param, "build_space")
    space: ParameterSpace = build_space(counts, structure, **options)
    point, penalty, center = parameters.point, settings.penalty, settings.penalty_center
    assert point is not None
    # memory: deviations (R, K - 1, n_cells) with R at most the number of parameters and of entries, and Sigma (P, P)
    own, of_model = space.coordinates.tables(point), parameters.tables.cells
    n_labels, n_cells = own.shape
    n_deviations = (n_labels - 1) * n_cells
    if min(n_deviations, len(point)) * n_deviations > MOST_NUMBERS or len(point) ** 2 > 4 * MOST_NUMBERS:
        variances = laplace_variances(space, point, penalty, recipe.seed or 0, class_weights)
        # As in ridge regression, a stronger prior divides a variance by as much as the estimate.
        shrinkage = None if parameters.penalty_cv is None else parameters.penalty_cv.shrinkage
        factor = 1.0 if shrinkage is None else shrinkage.factor
        return ParameterUncertainty(UncertaintyMethod.LAPLACE_DIAGONAL, factor * variances)
    spaces = [(build_space(fold, structure, **options), held_out) for fold, held_out in folds]
    covariance, deviations = np.zeros((len(point), len(point))), [penalty_bias(space, point, penalty, center)]
    chosen = parameters.penalty_cv
    is_unfounded = recipe.penalty == "cv" and chosen is not None and len(chosen.tried) <= 1
    factors = [(UNIT_PENALTY / penalty, 1.0)] if is_unfounded else weigh_penalties(spaces, settings, class_weights)
    for factor, weight in factors:
        optimum = point
        if factor != 1.0:
            optimum = find_optimum_from(space, replace(settings, penalty=factor * penalty), point).point
        covariance += weight * posterior_covariance(space, optimum, factor * penalty, class_weights)
        # the spread of the optima around the model's tables, as one deviation per penalty
        distance = space.coordinates.tables(optimum) - of_model
        deviations.append(math.sqrt(weight) * (distance[1:] - distance[:1])[np.newaxis])
    moved = [each for each in deviations if each.any()]
    return ParameterUncertainty(
        UncertaintyMethod.LAPLACE, np.concatenate([deviations_of(space, point, covariance), *moved])
    )


def weigh_penalties(
    folds: Sequence[tuple[ParameterSpace, Dataset]], settings: OptimizerSettings, class_weights: Array | None = None
) -> list[tuple[float, float]]:
    """Return factors of the penalty and their weights, which sum to 1; without folds, only the factor 1."""
    if not folds:
        return [(1.0, 1.0)]
    log_likelihoods = np.zeros(len(FACTORS))
    for space, held_out in folds:
        optimum = np.full(space.coordinates.n_parameters, settings.penalty_center)
        for i, factor in enumerate(FACTORS):
            own = replace(settings, penalty=factor * settings.penalty)
            optimum = find_optimum_from(space, own, optimum).point
            log_likelihoods[i] += predictive_log_likelihood(space, optimum, own.penalty, held_out, class_weights)
    n_rows = sum(held_out.n_rows for _, held_out in folds)
    per_row = sum(count_units(held_out.n_rows, held_out.split_by) for _, held_out in folds) / n_rows
    if class_weights is not None:  # class weights are divided by their mean over the rows
        per_row /= _mean_factor(folds[0][0].likelihood.data, class_weights)
    # rows of one unit are not independent, so the likelihood counts units
    weights = np.exp((log_likelihoods - log_likelihoods.max()) * per_row)
    weights = np.where(weights >= LEAST_WEIGHT * weights.sum(), weights, 0.0)
    return [
        (factor, weight / weights.sum()) for factor, weight in zip(FACTORS, weights.tolist(), strict=True) if weight
    ]


def predictive_log_likelihood(
    space: ParameterSpace, point: Array, penalty: float, data: Dataset, class_weights: Array | None = None
) -> float:
    """Return the sum over rows of w_t ln E P(y_t | x_t), with scores drawn from the Laplace approximation."""
    cells, deviations = space.coordinates.tables(point), laplace_deviations(space, point, penalty, class_weights)
    families = space.likelihood.families
    regrouped, fused = with_regrouped_columns(data, families)
    scores = np.concatenate(regrouped.map(_row_sums, fused, cells), axis=1)
    covariances = np.concatenate(regrouped.map(_row_covariances, fused, deviations))
    # per row, S = scores + root z with the same z for all rows: common random numbers
    roots = np.linalg.cholesky(covariances + JITTER**2 * np.eye(len(cells) - 1))
    normal = np.random.default_rng(0).standard_normal((len(cells) - 1, PREDICTIVE_DRAWS))
    drawn = np.repeat(scores[:, :, np.newaxis], PREDICTIVE_DRAWS, axis=2)
    # (rows, K - 1, draws) to (K - 1, rows, draws); differences from the first class, which stays
    drawn[1:] += (roots @ normal).transpose(1, 0, 2)
    log_p = log_softmax(drawn, axis=0)[data.labels, np.arange(data.n_rows)]
    predictive = np.logaddexp.reduce(log_p, axis=1) - math.log(PREDICTIVE_DRAWS)
    return float(predictive.sum() if data.weights is None else data.weights @ predictive)


def laplace_deviations(
    space: ParameterSpace, point: Array, penalty: float, class_weights: Array | None = None
) -> Array:
    """Return D (R, K - 1, n_cells), where D'D is the covariance of the entries' differences from the first class."""
    return deviations_of(space, point, posterior_covariance(space, point, penalty, class_weights))


def posterior_covariance(
    space: ParameterSpace, point: Array, penalty: float, class_weights: Array | None = None
) -> Array:
    """Return (J' H J + lambda I)^-1, or the sandwich around it with class weights (K,); shape (P, P)."""
    from scipy.linalg import cho_factor, cho_solve

    n_labels, n_cells = space.coordinates.tables(point).shape
    # rows of class y are y * n_cells .. (y + 1) * n_cells - 1
    derivative = _derivative(space, point)
    of_class = [derivative[y * n_cells : (y + 1) * n_cells] for y in range(n_labels)]

    def penalised(factors: Array | None) -> Array:
        total = penalty * _mean_factor(space.likelihood.data, factors) * np.eye(len(point))
        for a, b, product in _curvature(space, point, factors):
            part = of_class[a].T @ (product @ of_class[b])
            total += part
            # the block (b, a) is the transpose of (a, b)
            if a != b:
                total += part.T
        return total

    hessian = penalised(None)
    root = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    inverse = cho_solve(root, np.eye(len(point)), overwrite_b=True, check_finite=False)
    if class_weights is not None:
        inverse = inverse @ penalised(class_weights) @ inverse
    return np.asarray((inverse + inverse.T) / 2)


def deviations_of(space: ParameterSpace, point: Array, covariance: Array) -> Array:
    """Return deviations D (R, K - 1, n_cells) for parameters with the given covariance (P, P) around `point`."""
    from scipy.linalg import cholesky

    n_labels, n_cells = space.coordinates.tables(point).shape
    derivative = _derivative(space, point)
    of_class = [derivative[y * n_cells : (y + 1) * n_cells] for y in range(n_labels)]
    # (K - 1, n_cells, P)
    differences = np.stack([(each - of_class[0]).toarray() for each in of_class[1:]])
    # what a table gains in all cells and the bias loses changes no score
    edges = np.cumsum([1, *(family.n_cells for family in space.likelihood.families)]).tolist()
    for start, stop in pairwise(edges):
        means = differences[:, start:stop].mean(axis=1, keepdims=True)
        differences[:, start:stop] -= means
        differences[:, :1] += means
    # Rounding could leave a variance of 0 or less beside those of parameters that the rows do not determine.
    least = JITTER**2 * float(covariance.diagonal().max())
    root = cholesky(covariance + least * np.eye(len(point)), overwrite_a=True, check_finite=False)
    # root'root is the covariance, so D = root J' with J of the differences: D'D = J Sigma J'
    deviations = root @ differences.reshape(-1, len(point)).T
    # D = Q R has D'D = R'R, and R has no more rows than columns
    if len(deviations) > deviations.shape[1]:
        deviations = np.asarray(np.linalg.qr(deviations, mode="r"))
    return np.asarray(deviations.reshape(-1, n_labels - 1, n_cells))


def penalty_bias(space: ParameterSpace, point: Array, penalty: float, center: float) -> Array:
    """Return lambda J Sigma (p - c) as deviations of the differences from the first class, (1, K - 1, n_cells)."""
    product, precondition = space.hessian(point, penalty), space.preconditioner(point, PRECONDITIONER_COST, penalty)
    bias = _solve(product, precondition, penalty * (point - center))
    coordinates = space.coordinates
    cells = coordinates.push(point, bias) if isinstance(coordinates, Softmax) else coordinates.tables(bias)
    return np.asarray(cells[1:] - cells[:1])[np.newaxis]


def _mean_factor(data: Dataset, class_weights: Array | None) -> float:
    """Return the mean of the class weights over the rows, or 1 if there are no class weights."""
    return 1.0 if class_weights is None else data.total_weight / float((data.class_counts / class_weights).sum())


def _derivative(space: ParameterSpace, point: Array) -> Any:
    """Return J, the derivative of the tables at a point, as a sparse matrix (K n_cells, P)."""
    from scipy.sparse import csr_array

    coordinates = space.coordinates
    if isinstance(coordinates, Softmax):
        return csr_array(np.stack([coordinates.push(point, unit).ravel() for unit in np.eye(len(point))], axis=1))
    # the last one is applied first
    matrix = coordinates.matrices[-1]  # type: ignore[attr-defined]
    for earlier in coordinates.matrices[-2::-1]:  # type: ignore[attr-defined]
        matrix = earlier @ matrix
    return csr_array(matrix)


def _curvature(
    space: ParameterSpace, point: Array, class_weights: Array | None = None
) -> Iterator[tuple[int, int, Array]]:
    """Yield a, b and the block of H between the cells of two classes a <= b, (n_cells, n_cells).

    With class weights (K,) these are blocks of the covariance of the gradient.
    """
    likelihood = space.likelihood
    families = likelihood.families
    cells = space.coordinates.tables(point)
    data, fused = with_regrouped_columns(likelihood.data, families)
    states = data.map(_probabilities, fused, cells)
    n_labels = len(cells)
    for a in range(n_labels):
        for b in range(a, n_labels):
            yield a, b, data.reduce(_class_products, fused, cells.shape[1], a, b, class_weights, states=states)


def _row_sums(block: RowBlock, families: Sequence[Family], cells: Array) -> Array:
    """Return the sum of `cells` (..., n_cells) over the cells of each row, shape (..., rows)."""
    sums = np.empty((*cells.shape[:-1], block.n_rows))
    for rows in block.slices(max(1, NUMBERS_PER_SLICE // (cells[..., 0].size * (len(families) + 1)))):
        sums[..., rows] = cells[..., _cells_of_rows(block, rows, families)].sum(axis=-1)
    return sums


def _row_covariances(block: RowBlock, families: Sequence[Family], deviations: Array) -> Array:
    """Return the covariances (rows, K - 1, K - 1) of score differences, given `deviations` D (R, K - 1, n_cells)."""
    n = deviations.shape[1]
    covariances = np.empty((block.n_rows, n, n))
    for rows in block.slices(max(1, NUMBERS_PER_SLICE // (deviations[..., 0].size * (len(families) + 1)))):
        of_rows = deviations[..., _cells_of_rows(block, rows, families)].sum(axis=-1)
        # D'D of each row t: sum over deviations r of D[r, a, t] D[r, b, t]
        covariances[rows] = np.einsum("rat,rbt->tab", of_rows, of_rows)
    return covariances


def _probabilities(block: RowBlock, families: Sequence[Family], cells: Array) -> Array:
    """Return P(y | x_t) under these tables, (K, rows)."""
    return np.exp(log_softmax(_row_sums(block, families, cells), axis=0))


def _class_products(
    block: RowBlock, families: Sequence[Family], n_cells: int, a: int, b: int, class_weights: Array | None
) -> Array:
    """Return sum over rows of w_t P_ta (1[a = b] - P_tb) x_t x_t', (n_cells, n_cells).

    With class weights v it is the sum of u_t E v_y^2 (1[y = a] - P_ta) (1[y = b] - P_tb) x_t x_t', where the labels y
    have probabilities proportional to P_ty / v_y.
    """
    from scipy.sparse import csr_array

    p, weights = block.state, block.weights
    if class_weights is None:
        factors = p[a] * ((a == b) - p[b])
    else:
        v, unweighted = class_weights, 1.0 / class_weights
        # With q_y = P_y / v_y / Z, the sum over y of q_y v_y^2 (1[y = a] - P_a) (1[y = b] - P_b), expanded.
        factors = p[a] * ((a == b) * v[a] - p[b] * (v[a] + v[b] - v @ p)) / (unweighted @ p)
        weights = unweighted[block.labels] * (1.0 if weights is None else weights)
    factors = factors if weights is None else factors * weights
    total = np.zeros((n_cells, n_cells))
    for rows in block.slices():
        indicators = _cells_of_rows(block, rows, families)
        ones = np.ones(indicators.size)
        # CSR: row t has the entries of its cells, 1 + families each
        starts = np.arange(0, indicators.size + 1, indicators.shape[1])
        matrix = csr_array((ones, indicators.ravel(), starts), shape=(len(indicators), n_cells))
        weighted = csr_array((np.repeat(factors[rows], indicators.shape[1]), indicators.ravel(), starts), matrix.shape)
        total += (matrix.T @ weighted).toarray()
    return total


def _cells_of_rows(block: RowBlock, rows: slice, families: Sequence[Family]) -> Any:
    """Return the cells of each row, (rows, 1 + families): the bias, then one per family."""
    columns = [np.zeros(rows.stop - rows.start, np.intp)]
    first = 1
    for family in families:
        columns.append(first + cell_numbers([block.codes[a][rows] for a in family.attributes], family.shape))
        first += family.n_cells
    return np.stack(columns, axis=1)


def laplace_variances(
    space: ParameterSpace, point: Array, penalty: float, seed: int, class_weights: Array | None = None
) -> Array:
    """Return variances (K, n_cells) of independent entries, scaled so that the mean variance of scores is right."""
    likelihood, data = space.likelihood, space.likelihood.data
    cells = space.coordinates.tables(point)
    regrouped, fused = with_regrouped_columns(data, likelihood.families)
    p = np.concatenate(regrouped.map(_probabilities, fused, cells), axis=1)
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    curvature = likelihood.sums(weights * p * (1.0 - p))
    coordinates = space.coordinates
    # (J J')_cy / lambda, (K, n_cells)
    if isinstance(coordinates, Softmax):
        prior = coordinates.squared_derivatives(point) / penalty
    else:
        squares = _derivative(space, point).power(2).sum(axis=1)
        prior = np.asarray(squares).reshape(cells.shape) / penalty
    # 1 / (1 / prior + curvature), without dividing by a prior variance of 0
    variances = np.where(prior > 0, prior / (1.0 + prior * curvature), 0.0)
    # sum over classes of the variance of S_y - mean S is (1 - 1/K) times that of S_y, for independent entries
    own = float((likelihood.cell_weights() * variances).sum()) * (1.0 - 1.0 / len(cells)) / data.total_weight
    drawn = 0.0
    for draw in posterior_draws(space, point, penalty, PROBES, np.random.default_rng(seed), class_weights):
        scores = np.concatenate(regrouped.map(_row_sums, fused, draw), axis=1)
        drawn += float(weights @ np.square(scores - scores.mean(axis=0)).sum(axis=0)) / PROBES / data.total_weight
    return np.asarray(variances * (drawn / own if own > 0 else 1.0))


def posterior_draws(
    space: ParameterSpace,
    point: Array,
    penalty: float,
    n_draws: int,
    rng: np.random.Generator,
    class_weights: Array | None = None,
) -> Array:
    """Return deviations (n_draws, K, n_cells) of the tables, drawn from the Laplace approximation at an optimum.

    With e_t the difference between a label drawn from P_t and P_t, and z standard normal, the deviation of p

        Sigma (J' sum over rows t of sqrt(w_t) e_t x_t' + sqrt(lambda) z)

    has the covariance Sigma (Papandreou & Yuille 2010, NeurIPS: perturb and optimize). With class weights v, labels are
    drawn with probabilities proportional to P_ty / v_y, the term of a row is sqrt(u_t) v_y e_t, and lambda is
    multiplied by m.
    """
    likelihood, coordinates = space.likelihood, space.coordinates
    data = likelihood.data
    regrouped, fused = with_regrouped_columns(data, likelihood.families)
    p = np.concatenate(regrouped.map(_probabilities, fused, coordinates.tables(point)), axis=1)
    weights, every = np.ones(data.n_rows) if data.weights is None else data.weights, np.arange(data.n_rows)
    # inverse of the distribution function: the label is the number of cumulated probabilities below a uniform number
    below = p.cumsum(axis=0)
    if class_weights is not None:
        weights = weights / class_weights[data.labels]
        below = (p / class_weights[:, np.newaxis]).cumsum(axis=0)
        below /= below[-1]
    product, precondition = space.hessian(point, penalty), space.preconditioner(point, PRECONDITIONER_COST, penalty)
    draws = []
    for _ in range(n_draws):
        labels = np.minimum((rng.random(data.n_rows) > below).sum(axis=0), len(p) - 1)
        residuals = -p
        residuals[labels, every] += 1.0
        scale = np.sqrt(weights) if class_weights is None else np.sqrt(weights) * class_weights[labels]
        push = coordinates.pull_back(point, likelihood.sums(scale * residuals))
        push += math.sqrt(penalty * _mean_factor(data, class_weights)) * rng.standard_normal(len(point))
        moved = _solve(product, precondition, push, DRAW_TOLERANCE)
        draws.append(coordinates.push(point, moved) if isinstance(coordinates, Softmax) else coordinates.tables(moved))
    return np.stack(draws)


def _solve(
    product: Callable[[Array], Array], precondition: Callable[[Array], Array], b: Array, tolerance: float = CG_TOLERANCE
) -> Array:
    """Solve A x = b by preconditioned conjugate gradients (Hestenes & Stiefel 1952); `product` multiplies by A."""
    x, residual = np.zeros_like(b), b.copy()
    direction = z = precondition(residual)
    fall, enough = float(residual @ z), tolerance * math.sqrt(float(b @ b))
    for _ in range(CG_STEPS):
        if math.sqrt(float(residual @ residual)) <= enough:
            break
        along = product(direction)
        step = fall / float(direction @ along)
        x, residual = x + step * direction, residual - step * along
        z = precondition(residual)
        before, fall = fall, float(residual @ z)
        direction = z + fall / before * direction
    return x
