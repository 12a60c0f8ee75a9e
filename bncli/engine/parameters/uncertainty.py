"""The uncertainty of fitted tables, from which scoring makes intervals of probabilities (`fit --intervals`).

**Closed form** (`map`). Each distribution of the network has a Dirichlet posterior whose parameters are the smoothed
counts, alpha = N + pseudo-counts. So the entries are independent between families and classes, with

    Var ln theta_k = psi1(alpha_k) - psi1(sum over k' of alpha_k'),    psi1 the trigamma function.

For distributions over the classes, the second term cancels in differences of classes, and is left out. Pseudo-counts
below LEAST_PSEUDO_COUNT count as that number here. Pseudo-counts of `fgg` and `hdp`, which depend on the rows, are
treated as known.

**Discriminative parameters** (`weighted`, `discriminative`, `extended`, `lr`, `lr-roos`). Laplace approximation with
the penalty as prior: the posterior of the parameters p is normal around the optimum, with the inverse Hessian of the
penalised objective as covariance,

    Sigma = (J' H J + lambda I)^-1,    H = sum over rows t of w_t (diag P_t - P_t P_t') x x_t x_t',    W = J p.

H is the Hessian of -CLL in the tables W (x_t: indicators of the row's cells), and J the derivative of the tables. The
model stores deviations D of the entries' differences from the first class, with D'D = J Sigma J'. Components that
cancel in every row (a number that one table gains and the bias loses) are removed first, because under a small penalty
they would dominate all others. Generative probabilities inside `weighted` tables are treated as known.

Beyond MOST_NUMBERS numbers the entries are treated as independent instead, with the variances

    v_cy = s / (lambda / (J J')_cy + sum over the rows of the cell of w_t P_ty (1 - P_ty)).

The scale s is chosen so that the mean variance of the scores of training rows is right: the mean over rows and classes
of the variance of S_ty - mean over c of S_tc. Its value under Sigma is a trace, estimated as the mean of u' Sigma u
over PROBES random sign vectors u, each by conjugate gradients (Hutchinson 1990, Communications in Statistics 19).

**Bias.** The normal approximation covers the bias of a penalty if the true parameters are distributed like the prior.
If they are further from its center c, intervals are too narrow. So two more deviations are stored: the bias of the
optimum to first order, with p in place of the true parameters, and the relative error found on held-out rows,

    lambda J Sigma (p - c),    |a - 1| times the tables themselves,

where a is the factor by which the log-odds of held-out rows should be multiplied: the maximum of
sum of w_t ln softmax_y(a ln P(y | x_t)). Independent entries are not widened.

Sources: MacKay 1992, "A practical Bayesian framework for backpropagation networks", Neural Computation 4.
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
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.model import ParameterUncertainty, UncertaintyMethod
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.generative import family_tables
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.smoothing import pseudo_counts
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family, Structure
from bncli.errors import UsageError
from bncli.recipe import Recipe

LEAST_PSEUDO_COUNT = 0.7
"""Without rows, ln theta has a long lower tail, and a normal approximation is too wide on the upper side. With at least
this many pseudo-counts, the intervals have their nominal level on simulated networks (tests/published)."""
MOST_NUMBERS = 1 << 22
"""The most numbers of stored deviations (32 MiB)."""
NUMBERS_PER_SLICE = 1 << 20
NEWTON_STEPS, MOST_SCALE = 50, 4.0
PROBES = 16
PRECONDITIONER_COST = 3.0
"""Evaluations that a preconditioner may cost."""
CG_STEPS = 200
CG_TOLERANCE, DRAW_TOLERANCE = 1e-3, 1e-2
"""Relative residuals at which conjugate gradients stop: probes and draws are rougher than that."""
WITH_INTERVALS = ("map", "weighted", "discriminative", "extended", "lr", "lr-roos")
"""Parameter learners for which intervals of probabilities are available."""


def refuse_intervals(recipe: Recipe) -> None:
    """Raise UsageError if a model of this recipe has no intervals of probabilities."""
    what = hint = ""
    if recipe.param == "auto":
        return
    if recipe.param not in WITH_INTERVALS:
        what = f"--intervals: there is no posterior of the parameters {recipe.param!r}"
        hint = f"use --param {', '.join(WITH_INTERVALS)}, or --structure auto"
    elif recipe.param == "map" and recipe.smoothing == "mle":
        what = "--intervals: with --smoothing mle there is no posterior where a value has no rows"
        hint = "use --smoothing m-estimate"
    elif recipe.class_weights is not None:
        what = "--intervals: weighted classes do not say how many rows a probability rests on"
        hint = "leave out --class-weights and use score --prior"
    elif recipe.missing_policy == "marginalize":
        what, hint = "--intervals: not with marginalized missing values", "use --missing-policy level"
    elif recipe.early_stop not in (None, "none"):
        what, hint = "--intervals: parameters of --early-stop are no optimum", "use --early-stop none"
    elif recipe.penalty == 0:
        what = "--intervals: without a penalty the parameters have no prior, and may have no finite variance"
        hint = "use a --penalty above 0, or cv"
    if what:
        raise UsageError(what, hint=hint)


def posterior_variances(counts: Counts, structure: Structure, smoothing: str) -> ParameterUncertainty:
    """Return the variances of the table entries under the Dirichlet posteriors of `--param map`."""
    from scipy.special import polygamma

    def variances(table: Array, axis: int) -> Array:
        alpha = table + np.maximum(pseudo_counts(table, smoothing, axis), LEAST_PSEUDO_COUNT)
        of_class = axis == -1 or table.ndim == 1
        total = 0.0 if of_class else polygamma(1, alpha.sum(axis=axis, keepdims=True))
        return np.asarray(polygamma(1, alpha) - total)

    return ParameterUncertainty(UncertaintyMethod.POSTERIOR, family_tables(counts, structure, variances).cells)


def laplace(
    counts: Counts, structure: Structure, recipe: Recipe, point: Array, penalty: float, factor: float
) -> ParameterUncertainty:
    """Return the Laplace approximation at the optimum `point` (P,), with the bias of the penalty.

    The tables were shrunk by `factor` after the optimization.
    """
    options = recipe.options(PARAMETERS.method(recipe.param))
    space: ParameterSpace = PARAMETERS.load(recipe.param, "build_space")(counts, structure, **options)
    n_labels, n_cells = space.coordinates.tables(point).shape
    n_deviations = (n_labels - 1) * n_cells
    if min(n_deviations, len(point)) * n_deviations <= MOST_NUMBERS and len(point) ** 2 <= 4 * MOST_NUMBERS:
        bias = penalty_bias(space, point, penalty, float(recipe.penalty_center or 0.0))
        deviations = np.concatenate([laplace_deviations(space, point, penalty), bias])
        return ParameterUncertainty(UncertaintyMethod.LAPLACE, factor * deviations)
    variances = factor**2 * laplace_variances(space, point, penalty, recipe.seed or 0)
    return ParameterUncertainty(UncertaintyMethod.LAPLACE_DIAGONAL, variances)


def widened(uncertainty: ParameterUncertainty, cells: Array, tau: float) -> ParameterUncertainty:
    """Add a relative error tau of the tables `cells` (K, n_cells) as a whole; independent entries are not changed."""
    if uncertainty.method is not UncertaintyMethod.LAPLACE:
        return uncertainty
    return replace(
        uncertainty, entries=np.concatenate([uncertainty.entries, tau * (cells[1:] - cells[:1])[np.newaxis]])
    )


def relative_error(log_p: Array, labels: Codes, weights: Array | None) -> float:
    """Return |a - 1| for held-out rows with these ln P(y | x_t), (K, N); 0 if their likelihood does not depend on a."""
    row_weights = np.ones(len(labels)) if weights is None else weights
    a = 1.0
    for _ in range(NEWTON_STEPS):
        p = np.exp(a * log_p - np.logaddexp.reduce(a * log_p, axis=0))
        mean = (p * log_p).sum(axis=0)
        slope = float(row_weights @ (log_p[labels, np.arange(len(labels))] - mean))
        information = float(row_weights @ (p * np.square(log_p - mean)).sum(axis=0))
        if information <= 0:
            return 0.0
        step = float(np.clip(slope / information, -0.5 * a, a))
        a += step
        if abs(step) < 1e-6 or not 1 / MOST_SCALE < a < MOST_SCALE:
            break
    return abs(a - 1.0)


def laplace_deviations(space: ParameterSpace, point: Array, penalty: float) -> Array:
    """Return D (R, K - 1, n_cells), where D'D is the covariance of the entries' differences from the first class."""
    from scipy.linalg import cholesky, solve_triangular

    n_labels, n_cells = space.coordinates.tables(point).shape
    derivative = _derivative(space, point)
    of_class = [derivative[y * n_cells : (y + 1) * n_cells] for y in range(n_labels)]
    hessian = penalty * np.eye(len(point))
    for a, b, product in _curvature(space, point):
        part = of_class[a].T @ (product @ of_class[b])
        hessian += part
        if a != b:
            hessian += part.T
    root = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
    differences = np.stack([(each - of_class[0]).toarray() for each in of_class[1:]])
    for start, stop in _table_bounds(space.likelihood.families):
        means = differences[:, start:stop].mean(axis=1, keepdims=True)
        differences[:, start:stop] -= means
        differences[:, :1] += means
    flat = differences.reshape(-1, len(point)).T
    deviations = solve_triangular(root, flat, lower=True, overwrite_b=True, check_finite=False)
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


def _derivative(space: ParameterSpace, point: Array) -> Any:
    """Return J, the derivative of the tables at a point, as a sparse matrix (K n_cells, P)."""
    from scipy.sparse import csr_array

    coordinates = space.coordinates
    if isinstance(coordinates, Softmax):
        return csr_array(np.stack([coordinates.push(point, unit).ravel() for unit in np.eye(len(point))], axis=1))
    matrix = coordinates.matrices[-1]  # type: ignore[attr-defined]
    for earlier in coordinates.matrices[-2::-1]:  # type: ignore[attr-defined]
        matrix = earlier @ matrix
    return csr_array(matrix)


def _curvature(space: ParameterSpace, point: Array) -> Iterator[tuple[int, int, Array]]:
    """Yield a, b and the block of H for the classes a <= b, (n_cells, n_cells)."""
    likelihood = space.likelihood
    families = likelihood.families
    cells = space.coordinates.tables(point)
    data, fused = with_regrouped_columns(likelihood.data, families)
    states = data.map(_probabilities, fused, cells)
    n_labels = len(cells)
    for a in range(n_labels):
        for b in range(a, n_labels):
            yield a, b, data.reduce(_class_products, fused, cells.shape[1], a, b, states=states)


def _probabilities(block: RowBlock, families: Sequence[Family], cells: Array) -> Array:
    """Return P(y | x_t), (K, rows), under the tables `cells`."""
    p = np.empty((len(cells), block.n_rows))
    for rows in block.slices(max(1, NUMBERS_PER_SLICE // (len(cells) * (len(families) + 1)))):
        scores = cells[:, _cells_of_rows(block, rows, families)].sum(axis=2)
        scores = np.exp(scores - scores.max(axis=0))
        p[:, rows] = scores / scores.sum(axis=0)
    return p


def _class_products(block: RowBlock, families: Sequence[Family], n_cells: int, a: int, b: int) -> Array:
    """Return the sum over rows of w_t P_ta (1[a = b] - P_tb) x_t x_t', (n_cells, n_cells)."""
    from scipy.sparse import csr_array

    factors = block.state[a] * ((a == b) - block.state[b])
    factors = factors if block.weights is None else factors * block.weights
    total = np.zeros((n_cells, n_cells))
    for rows in block.slices():
        indicators = _cells_of_rows(block, rows, families)
        ones = np.ones(indicators.size)
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


def _table_bounds(families: Sequence[Family]) -> list[tuple[int, int]]:
    edges = np.cumsum([1, *(family.n_cells for family in families)]).tolist()
    return list(pairwise(edges))


def laplace_variances(space: ParameterSpace, point: Array, penalty: float, seed: int) -> Array:
    """Return variances (K, n_cells) of independent entries with which training rows have the right mean variance."""
    likelihood, coordinates = space.likelihood, space.coordinates
    data = likelihood.data
    cells = coordinates.tables(point)
    n_labels = len(cells)
    regrouped, fused = with_regrouped_columns(data, likelihood.families)
    p = np.concatenate(regrouped.map(_probabilities, fused, cells), axis=1)
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    curvature = likelihood.sums(weights * p * (1.0 - p))
    prior = _prior_variances(space, point) / penalty
    variances = np.where(prior > 0, prior / (1.0 + prior * curvature), 0.0)
    own = float((likelihood.cell_weights() * variances).sum()) * (1.0 - 1.0 / n_labels) / data.total_weight
    precondition, product = space.preconditioner(point, PRECONDITIONER_COST, penalty), space.hessian(point, penalty)
    rng = np.random.default_rng(seed)
    exact = 0.0
    for _ in range(PROBES):
        signs = rng.integers(0, 2, (n_labels, data.n_rows)) * 2.0 - 1.0
        signs -= signs.mean(axis=0)
        probe = coordinates.pull_back(point, likelihood.sums(np.sqrt(weights) * signs))
        exact += float(probe @ _solve(product, precondition, probe)) / PROBES / data.total_weight
    return np.asarray(variances * (exact / own if own > 0 else 1.0))


def _prior_variances(space: ParameterSpace, point: Array) -> Array:
    """Return (J J')_cy of every entry, shape (K, n_cells)."""
    coordinates = space.coordinates
    cells = coordinates.tables(point)
    if isinstance(coordinates, Softmax):
        return coordinates.curvature(point, np.ones((1, cells.shape[1])))
    return np.asarray(_derivative(space, point).power(2).sum(axis=1)).reshape(cells.shape)


def posterior_draws(
    space: ParameterSpace, point: Array, penalty: float, n_draws: int, rng: np.random.Generator
) -> Array:
    """Return deviations (n_draws, K, n_cells) of the tables, drawn from the Laplace approximation at an optimum.

    With e_t the difference between a label drawn from P_t and P_t, and z standard normal, the deviation of p

        Sigma (J' sum over rows t of sqrt(w_t) e_t x_t' + sqrt(lambda) z)

    has the covariance Sigma (Papandreou & Yuille 2010, NeurIPS: perturb and optimize). The tables are linear in p.
    """
    likelihood, coordinates = space.likelihood, space.coordinates
    data = likelihood.data
    regrouped, fused = with_regrouped_columns(data, likelihood.families)
    p = np.concatenate(regrouped.map(_probabilities, fused, coordinates.tables(point)), axis=1)
    below, every = p.cumsum(axis=0), np.arange(data.n_rows)
    scale = np.ones(data.n_rows) if data.weights is None else np.sqrt(data.weights)
    product, precondition = space.hessian(point, penalty), space.preconditioner(point, PRECONDITIONER_COST, penalty)
    draws = []
    for _ in range(n_draws):
        residuals = -p
        residuals[np.minimum((rng.random(data.n_rows) > below).sum(axis=0), len(p) - 1), every] += 1.0
        push = coordinates.pull_back(point, likelihood.sums(scale * residuals))
        push += math.sqrt(penalty) * rng.standard_normal(len(point))
        draws.append(coordinates.tables(_solve(product, precondition, push, DRAW_TOLERANCE)))
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
