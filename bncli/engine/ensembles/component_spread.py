"""The uncertainty of an ensemble, from the spread of its components (`fit --structure auto --intervals`).

A logarithmic pool has the scores S = sum over components m of w_m S_m + w_0 ln f, with f the class frequencies. Let W
be the sum of the w_m, omega_m = w_m / W, and R = sum over m of omega_m S_m. The components are treated as competing
descriptions of the same truth, each right with the probability omega_m. Their variance is that of a mixture:

    a sum over m of omega_m (V_m + (S_m - R)^2) + max(0, 1 - W)^2 R^2 + w_0^2 V_0,    a = W^2, or W if W < 1

(Hoeting, Madigan, Raftery & Volinsky 1999, Statistical Science 14: Bayesian model averaging). Covariances of classes
are of the same form. Where the class frequencies take weight from the components, W < 1, they shrink the log-odds as a
stronger prior would: it divides a variance by as much as the estimate, not by its square, and the distance to the
log-odds before is a bias. V_m, the uncertainty within a component, is

    fitted tables        the Laplace approximation with the penalty as prior (`posterior_draws`), and the square of the
                         bias of the penalty (`penalty_bias`)
    boosted trees        (F - 1)^2 / F times the variance between the members of the bag, each of which has learned
                         without one of F = 5 folds: the jackknife by groups (Efron 1982), which also contains what the
                         random draws of boosting change
    class frequencies    their posterior, Var ln f_y = psi1(n_y + 1)

The model stores deviations D of the tables from the fitted ones, in `n_draws` rows with D'D the covariance: random
combinations of the deviations above, which are orthogonal within a component. The entries within are multiplied by the
ratio of the 95 % quantiles of Student's and of the normal distribution, because the number of draws is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.ensembles.boosted_trees import Boosted, tables_of
from bncli.engine.ensembles.budget import FOLDS
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Component, ParameterUncertainty, UncertaintyMethod
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.uncertainty import penalty_bias, posterior_draws

FEWEST_DRAWS, MOST_DRAWS, MOST_NUMBERS = 8, 24, 1 << 22
"""The number of draws: as many as fit into MOST_NUMBERS numbers (32 MiB), but at least 8 and at most 24."""


class FittedComponent(NamedTuple):
    """A component, and where it comes from: an optimum `point` (P,) with a penalty, or the members of a bag.

    The class frequencies come from neither, but from the weights `class_counts` (K,) of the classes.
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
    """Return the uncertainty of the ensemble of these components, in this order.

    class_weights: the factors per class (K,) that the row weights contain.
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
    """Return random numbers (n, n_draws) whose rows have the mean square 1, and are orthogonal if n <= n_draws."""
    drawn = rng.standard_normal((n_draws, n))
    if n <= n_draws:
        drawn = np.linalg.qr(drawn)[0]
    return np.asarray(drawn.T * np.sqrt(n_draws / np.square(drawn).sum(axis=0))[:, np.newaxis])


def _member_draws(
    members: Sequence[Boosted], schema: Schema, cells: Array, n_draws: int, rng: np.random.Generator
) -> Array:
    """Return combinations (n_draws, K, n_cells) of the members' deviations from their mean, the tables `cells`."""
    drawn = np.zeros((n_draws, *cells.shape))
    # with the variance between members, sum of squares / (M - 1), this is (F - 1)^2 / F of it
    scale = (FOLDS - 1) / np.sqrt(FOLDS * (len(members) - 1))
    for i, factors in enumerate(_orthogonal_draws(len(members), n_draws, rng)):
        alone = [member if j == i else _with_zero_leaves(member) for j, member in enumerate(members)]
        # a member alone, as `tables_of` divides by the number of members, minus their mean
        deviation = len(members) * tables_of(alone, schema).cells - cells
        drawn += scale * factors[:, np.newaxis, np.newaxis] * deviation
    return drawn


def _with_zero_leaves(member: Boosted) -> Boosted:
    """Return a member with the same splits that adds nothing to the scores."""
    trees = tuple(replace(tree, values=np.zeros_like(tree.values)) for tree in member.trees)
    return replace(member, prior=np.zeros_like(member.prior), trees=trees)
