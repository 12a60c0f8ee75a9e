"""The pool of an ensemble: the weights of its components, and its uncertainty from their spread.

The weights come from the class probabilities that the models predicted for held-out rows. The weights of a logarithmic
pool

    P_w(y | x)  proportional to  exp(sum over models m of w_m ln P_m(y | x)),    w >= 0

maximise

    sum over rows t of r_t ln P_w(y_t | x_t)  -  s / 2 * sum over models m of (w_m - v_m)^2

by L-BFGS-B, with row weights r. This is a logistic regression on the log-probabilities of the models, concave in w.
(For the metric `rmse`, squared errors replace the log-loss, and the problem is not concave.) The weights need not sum
to 1: a sum above 1 makes underconfident models more confident, a sum below 1 makes overconfident ones less so. The
centre v is the vector of weights of the linear pool, which maximise

    sum over rows t of r_t ln sum over models m of v_m P_m(y_t | x_t),    v on the simplex

by L-BFGS-B from equal weights. The multiplier of the constraint sum over m of v_m = 1 is the sum of r, so a linear term
replaces the constraint. (EM, which sets v_m to the mean posterior probability of model m over the rows, is slower: it
had not converged after 2,000 steps, which took a twentieth of the time of a fit to few rows.) Models with little weight
are dropped, and the weights of the others are optimised again. This is stacking in the manner of Breiman (1996, Machine
Learning 24). For the two kinds of pools, see Genest & Zidek (1986, Statistical Science 1).

The strength s is STRENGTH, or STRENGTH_OF_MANY with at least MANY held-out rows. The larger strength changes little on
tables with noise. On tables without noise it keeps the pool from being overconfident: there, only a few rows are
uncertain, and these also decided when the trees stopped. (Its log-loss relative to that of STRENGTH was 0.97 and 0.67
on two folds of shuttle, 0.98 on a table simulated from a tree, and 0.998 to 1.000 on six tables with noise.)

**The uncertainty** (`fit --structure auto --intervals`) is the variance of the scores of the pool. A logarithmic pool
has the scores S = sum over components m of w_m S_m + w_0 ln f, with f the class frequencies. Let W be the sum of the
w_m, omega_m = w_m / W, and R = sum over m of omega_m S_m. The components are treated as competing descriptions of the
same truth, each right with the probability omega_m. Their variance is the variance of a mixture:

    a sum over m of omega_m (V_m + (S_m - R)^2) + max(0, 1 - W)^2 R^2 + w_0^2 V_0,    a = W^2, or W if W < 1

(Hoeting, Madigan, Raftery & Volinsky 1999, Statistical Science 14: Bayesian model averaging). Covariances of classes
have the same form. Where the class frequencies take weight from the components, W < 1, they shrink the log-odds as a
stronger prior would, which multiplies the variance by the same factor as the estimate, not by its square; the change
of the log-odds is a bias. V_m, the variance within a component, is

    fitted tables        the Laplace approximation with the penalty as prior (`posterior_draws`), and the square of the
                         bias of the penalty (`penalty_bias`)
    boosted trees        (F - 1)^2 / F times the variance between the members of the bag, each of which has learned
                         without one of F = 5 folds: the jackknife by groups (Efron 1982), which also contains what the
                         random draws of boosting change
    class frequencies    their posterior, Var ln f_y = psi1(n_y + 1)

The model stores a matrix D with `n_draws` rows, so that D'D approximates the covariance. Each row is a random
combination of the deviations above from the fitted tables. The deviations within fitted tables and class frequencies
are multiplied by the ratio of the 95 % quantiles of Student's and of the normal distribution, because the number of
draws is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from bncli.engine.data.schema import Schema
from bncli.engine.ensembles.boosted_trees import Boosted, tables_of
from bncli.engine.ensembles.budget import FOLDS
from bncli.engine.kernels.arrays import Array, Integers, log_softmax
from bncli.engine.model import Component, ParameterUncertainty, UncertaintyMethod
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.uncertainty import penalty_bias, posterior_draws

STRENGTH, STRENGTH_OF_MANY = 1.0, 10.0
"""The strength s of the penalty towards the weights of the linear pool, in nats."""
MANY = 1_000
LEAST, LEAST_OF_MANY = 0.01, 0.05
"""Weights below this are set to 0; the limit is higher with MANY held-out rows, as refitting is expensive then."""
MOST = 1e3
TOLERANCE = 1e-7
"""The tolerance of the gradient for the weights of the linear pool, in nats per row."""
LEAST_MIXTURE = 1e-300
"""The lower bound of a mixture's probability while its weights are optimised, to keep its logarithm finite."""
HALF_ROWS = 20.0
"""The number of held-out rows (or units) for which half of the weight moves to the class frequencies."""
FEWEST_DRAWS, MOST_DRAWS, MOST_NUMBERS = 8, 24, 1 << 22
"""The minimum and the maximum number of draws; between them, as many as fit in MOST_NUMBERS values (32 MiB)."""


def pool_weights(
    log_p: Sequence[Array] | Array, labels: Integers, weights: Array | None = None, metric: str = ""
) -> Array:
    """Return the weights w (M,) of a logarithmic pool; at least one is positive, and small ones are set to 0.

    `log_p` has ln P_m(y | x_t), M arrays (K, rows); `labels` (rows,) are the true labels, `weights` (rows,) the row
    weights (None: all 1). With the metric `rmse`, the loss is the sum over rows of r_t (1 - P_w(y_t | x_t))^2 instead
    of the log-loss.
    """
    of_models = np.asarray(log_p)
    of_true_labels = of_models[:, labels, np.arange(len(labels))]
    row_weights = np.ones(len(labels)) if weights is None else weights
    models, least = np.arange(len(of_models)), LEAST_OF_MANY if len(labels) >= MANY else LEAST
    while True:
        centre = linear_pool_weights(of_true_labels[models], weights)
        fitted = _fit_weights(of_models[models], labels, row_weights, centre, metric)
        is_heavy = fitted >= least
        if is_heavy.all() or not is_heavy.any():
            break
        models = models[is_heavy]
    w = np.zeros(len(of_models))
    # If no model helps, the one with the largest linear weight is kept, since an ensemble needs a component.
    w[models] = fitted if is_heavy.all() else np.where(centre == centre.max(), least, 0.0)
    return w


def _fit_weights(log_p: Array, labels: Integers, row_weights: Array, centre: Array, metric: str) -> Array:
    rows = np.arange(len(labels))
    of_true_labels = log_p[:, labels, rows]
    strength = STRENGTH_OF_MANY if len(labels) >= MANY else STRENGTH

    def objective(w: Array) -> tuple[float, Array]:
        pooled = pool_log_probabilities(log_p, w)
        # d ln P_w(y_t | x_t) / d w_m: ln P_m(y_t | x_t) minus its mean over the classes under the pool
        slopes = of_true_labels - np.einsum("kt,mkt->mt", np.exp(pooled), log_p)
        log_p_true = pooled[labels, rows]
        pull = w - centre
        if metric == "rmse":
            # 1 - P without cancellation
            error = -np.expm1(log_p_true)
            value = float(row_weights @ error**2)
            gradient = slopes @ (-2.0 * row_weights * error * np.exp(log_p_true))
        else:
            value, gradient = -float(row_weights @ log_p_true), -(slopes @ row_weights)
        return value + 0.5 * strength * float(pull @ pull), gradient + strength * pull

    return np.asarray(minimize(objective, centre, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)] * len(centre)).x)


def pool_log_probabilities(log_p: Sequence[Array] | Array, w: Array) -> Array:
    """Return ln P_w(y | x_t), (K, rows), from ln P_m(y | x_t), M arrays (K, rows), and the weights w (M,)."""
    # P_w is proportional to the product over m of P_m^w_m
    return log_softmax(np.tensordot(w, np.asarray(log_p), axes=1), axis=0)


def linear_pool_weights(log_p_true: Array, weights: Array | None = None) -> Array:
    """Return the weights v (M,) of a linear pool, from ln P_m(y_t | x_t) (M, rows) and row weights (None: all 1)."""
    # A factor per row does not change the optimum. This one keeps all models of a row from underflowing at once.
    shares = np.exp(log_p_true - log_p_true.max(axis=0))
    row_weights = np.full(shares.shape[1], 1.0 / shares.shape[1]) if weights is None else weights / weights.sum()

    def objective(v: Array) -> tuple[float, Array]:
        mixed = np.maximum(v @ shares, LEAST_MIXTURE)
        # The sum of v is the constraint times its multiplier, 1; at the optimum it is 1.
        return float(v.sum() - row_weights @ np.log(mixed)), 1.0 - shares @ (row_weights / mixed)

    start = np.full(len(shares), 1.0 / len(shares))
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"gtol": TOLERANCE, "ftol": TOLERANCE**2},
    )
    return np.asarray(result.x / result.x.sum())


def shrink_to_frequencies(w: Array, n_rows: float) -> Array:
    """Return the weights (M,), with some weight moved to the last model, the class frequencies, if there are few rows.

    With few held-out rows the weights overfit. So all weights are multiplied by 1 - f, and the weight of the class
    frequencies is then increased by

        f = 1 / (1 + (n_rows / HALF_ROWS)^2)

    An f below LEAST counts as 0. This was chosen on samples of 25 and 70 rows from 14 tables, for which it changes the
    log-loss by -2 % and +0.3 %, respectively.
    """
    share = 1.0 / (1.0 + (n_rows / HALF_ROWS) ** 2)
    if share < LEAST:
        return w
    return np.append((1 - share) * w[:-1], (1 - share) * w[-1] + share)


class FittedComponent(NamedTuple):
    """A component, and its origin: an optimum `point` (P,) in `space` with a penalty, or the members of a bag.

    For the class frequencies, the origin is the total weight `class_counts` (K,) of each class instead.
    """

    component: Component
    space: ParameterSpace | None = None
    point: Array | None = None
    penalty: float = 0.0
    members: tuple[Boosted, ...] = ()
    class_counts: Array | None = None


def spread(
    fitted: Sequence[FittedComponent], schema: Schema, seed: int, class_weights: Array | None = None
) -> ParameterUncertainty:
    """Return the uncertainty of the ensemble of these components, with the tables in the order of the components.

    `class_weights` (K,) are the factors per class by which the row weights were multiplied.
    """
    from scipy.special import polygamma
    from scipy.stats import norm, t

    weights = [0.0 if each.class_counts is not None else each.component.weight for each in fitted]
    total = sum(weights)
    # sqrt(a) and max(0, 1 - W) of the module's docstring
    scale, shrunk = (total, 0.0) if total >= 1 else (np.sqrt(total), 1.0 - total)
    n_cells = 1 + sum(family.n_cells for each in fitted for family in each.component.tables.families)
    numbers = (len(schema.labels) - 1) * n_cells
    n_draws = min(MOST_DRAWS, max(FEWEST_DRAWS, MOST_NUMBERS // numbers))
    rng = np.random.default_rng((seed, 6))
    # one row of factors per kind of deviation, orthogonal so that products of different kinds cancel in D'D
    of_shrinkage, *rows = _orthogonal_draws(1 + 2 * len(fitted), n_draws, rng)
    between, of_biases = rows[: len(fitted)], rows[len(fitted) :]
    shares = [weight / total if total else 0.0 for weight in weights]
    # sum over m of sqrt(omega_m) own_m: what R has to be multiplied by
    of_mean = sum(np.sqrt(share) * own for share, own in zip(shares, between, strict=True))
    few = t.ppf(0.95, n_draws) / norm.ppf(0.95)
    bias, tables = np.zeros((n_draws, len(schema.labels))), []
    for each, share, own, of_bias in zip(fitted, shares, between, of_biases, strict=True):
        cells = each.component.tables.cells
        if each.class_counts is not None:
            counts = each.class_counts if class_weights is None else each.class_counts / class_weights
            spreads = few * each.component.weight * np.sqrt(polygamma(1, counts + 1.0))
            bias += spreads * rng.standard_normal((n_draws, len(cells)))
            continue
        # summed over m: scale * sum of sqrt(omega_m) own_m (S_m - R) + shrunk * of_shrinkage * R
        factors = scale * (np.sqrt(share) * own - share * of_mean) + shrunk * share * of_shrinkage
        drawn = factors[:, np.newaxis, np.newaxis] * cells
        if each.space is not None and each.point is not None:
            within = few * posterior_draws(each.space, each.point, each.penalty, n_draws, rng, class_weights)
            moved = penalty_bias(each.space, each.point, each.penalty, 0.0)
            within[:, 1:] += of_bias[:, np.newaxis, np.newaxis] * moved
            drawn += scale * np.sqrt(share) * within
        elif len(each.members) > 1:
            drawn += scale * np.sqrt(share) * _member_draws(each.members, schema, cells, n_draws, rng)
        bias += drawn[:, :, 0]
        tables.append(drawn[:, :, 1:])
    deviations = np.concatenate([bias[:, :, np.newaxis], *tables], axis=2) / np.sqrt(n_draws)
    return ParameterUncertainty(UncertaintyMethod.SPREAD, deviations[:, 1:] - deviations[:, :1])


def _orthogonal_draws(n: int, n_draws: int, rng: np.random.Generator) -> Array:
    """Return random values (n, n_draws) whose rows have mean square 1, and are orthogonal if n <= n_draws."""
    drawn = rng.standard_normal((n_draws, n))
    if n <= n_draws:
        drawn = np.linalg.qr(drawn)[0]
    return np.asarray(drawn.T * np.sqrt(n_draws / np.square(drawn).sum(axis=0))[:, np.newaxis])


def _member_draws(
    members: Sequence[Boosted], schema: Schema, cells: Array, n_draws: int, rng: np.random.Generator
) -> Array:
    """Return random combinations (n_draws, K, n_cells) of the members' deviations from their mean, `cells`."""
    drawn = np.zeros((n_draws, *cells.shape))
    # with the variance between members, sum of squares / (M - 1), this is (F - 1)^2 / F of it
    scale = (FOLDS - 1) / np.sqrt(FOLDS * (len(members) - 1))
    # members with the same splits that add nothing to the scores
    empty = []
    for member in members:
        trees = tuple(replace(tree, values=np.zeros_like(tree.values)) for tree in member.trees)
        empty.append(replace(member, prior=np.zeros_like(member.prior), trees=trees))
    for i, factors in enumerate(_orthogonal_draws(len(members), n_draws, rng)):
        alone = [*empty[:i], members[i], *empty[i + 1 :]]
        # a member alone, as `tables_of` divides by the number of members, minus their mean
        deviation = len(members) * tables_of(alone, schema).cells - cells
        drawn += scale * factors[:, np.newaxis, np.newaxis] * deviation
    return drawn
