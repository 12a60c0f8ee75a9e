"""The penalty on the levels of categorical attributes with many levels (`bncli.engine.data.cutting`): random effects.

If the effects of an attribute's levels have the variance v, the best penalty on each is 1 / v. But one penalty on all
parameters is chosen by held-out rows, and levels may vary more or less than other effects do. So the block of such an
attribute by itself has the factor

    s_S = sqrt(R v)

(`bncli.engine.parameters.effect_coding`), which makes the penalty on its effects the penalty on all parameters times
1 / (R v). R is the penalty that is usually chosen for the coding of the numeric attributes, REFERENCE: a line has one
parameter where a curve has many steps, so its penalty is about a tenth. Levels of few rows are shrunk most.

**The variance** is that of the effects beside the other attributes: job titles may differ in the class only because
they differ in the salary. A ridge regression of the class indicators on the other attributes, in linear coding,
predicts class probabilities q_t for every row; attributes with many levels are left out. The variance is that around
q, the mean prediction of the rows of a level (`bncli.engine.kernels.information.variance_of_effects`). Two corrections
follow from the fraction

    phi = sum over the rows t and classes y of q_ty (1 - q_ty)  /  sum over t and y of q_y (1 - q_y)

- By chance, the class counts of rows with different q_t vary less than those of rows that share their mean, by the
  factor phi. Therefore the weights of a level's rows are divided by its phi (quasi-likelihood).
- An effect b on the log-odds changes the mean probability by b q_t (1 - q_t), averaged over the rows, and so by phi
  times as much as if all rows had the same q. Therefore the variance is divided by phi^2, where phi is that of all
  levels together: the sums extend over their rows.

With more than MOST_FUNCTIONS functions of the other attributes, or none, every row has the class frequencies as its
q_t.

(Measured in `tests/published/levels.md`. On 20 draws of a table of 144 job titles, `auto` had a log-loss 2 % above that
with merged levels when R was 100 for lines too and v was the variance of the levels alone.)

Cost: two passes over the rows, and a linear system of the size of the functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from bncli.engine.data.cutting import has_many_levels
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import variance_of_effects
from bncli.engine.parameters.effect_coding import basis_of, n_functions

REFERENCE = {"cells": 100.0, "thermometer": 100.0, "linear": 10.0}
"""The penalty, by coding, at which the effects of many levels are penalised by the inverse of their variance.

On the made tables of `tests/published/levels.md`, `interactions` has a log-loss up to 0.8 % lower with 100 than with 30
for steps, and `auto` differs by less than 0.3 % between 10 and 100 for lines.
"""
ROWS_AT_A_TIME = 1 << 12
"""Rows whose functions are in memory at a time."""
MOST_FUNCTIONS = 500
"""The maximum number of functions of the other attributes that the class is predicted from."""
RIDGE = 1.0
"""The penalty of the ridge regression."""
LEAST_SHARE = 0.01
"""A predicted probability is at least this fraction of the class frequency."""
LEAST_PHI = 0.25
"""The lower limit of phi: where the other attributes nearly determine the class, phi would make v arbitrarily large."""


def level_scales(data: Dataset, coding: str) -> dict[int, float]:
    """Return the scale s_S of each informative attribute with many levels, as described in the module docstring."""
    chosen = [i for i in data.schema.informative if has_many_levels(data.schema.attributes[i])]
    if not chosen:
        return {}
    shares = data.class_counts / data.total_weight
    bases = _bases(data)
    coefficients = _regression(data, bases) if bases else shares[np.newaxis]
    n_codes = [data.schema.attributes[i].cardinality for i in chosen]
    sums = data.reduce(_sums_of_levels, chosen, n_codes, bases, coefficients, LEAST_SHARE * shares)
    scales = {}
    for i, (counts, predicted, variances) in zip(chosen, sums, strict=True):
        weight = counts.sum(axis=1, keepdims=True)
        means = np.divide(predicted, weight, out=np.tile(shares, (len(counts), 1)), where=weight > 0)
        # q (1 - q), summed over classes and rows
        same = (means * (1 - means)).sum(axis=1) * weight[:, 0]
        phi = np.divide(variances, same, out=np.ones(len(counts)), where=same > 0).clip(LEAST_PHI)
        phi_of_all = max(variances.sum() / same.sum(), LEAST_PHI) if same.any() else 1.0
        v = variance_of_effects(counts / phi[:, np.newaxis], means) / phi_of_all**2
        scales[i] = math.sqrt(REFERENCE[coding] * v)
    return scales


def _bases(data: Dataset) -> dict[int, Array]:
    """Return the functions (codes + 1, functions) of each informative attribute without many levels, linearly coded.

    The last row is for values that are not observed, and is 0. With more than MOST_FUNCTIONS functions, return nothing.
    """
    others = {i: a for i, a in enumerate(data.schema.attributes) if a.informative and not has_many_levels(a)}
    if sum(n_functions(a, "linear", a.cardinality) for a in others.values()) > MOST_FUNCTIONS:
        return {}
    bases = {}
    for i, attribute in others.items():
        basis = basis_of(attribute, "linear", data.reduce(_weights_of_codes, i, attribute.cardinality))
        bases[i] = np.concatenate([basis, np.zeros((1, basis.shape[1]))])
    return bases


def _regression(data: Dataset, bases: Mapping[int, Array]) -> Array:
    """Return the coefficients (1 + functions, K) of the ridge regression, the constant first."""
    gram, products = data.reduce(_moments, bases, data.n_labels)
    penalty = np.full(len(gram), RIDGE)
    penalty[0] = 0.0  # the constant
    return np.linalg.solve(gram + np.diag(penalty), products)


def _weights_of_codes(block: RowBlock, i: int, n_codes: int) -> Array:
    return np.bincount(block.codes[i], block.weights, n_codes + 1)[:n_codes].astype(np.float64)


def _design(block: RowBlock, rows: slice, bases: Mapping[int, Array]) -> Array:
    """Return the constant and all functions of some rows of a block, (rows, 1 + functions)."""
    n = len(block.labels[rows])
    return np.concatenate([np.ones((n, 1)), *(np.take(b, block.codes[i][rows], axis=0) for i, b in bases.items())], 1)


def _moments(block: RowBlock, bases: Mapping[int, Array], n_labels: int) -> tuple[Array, Array]:
    """Return X'WX and X'WY for the design X, the weights W and the class indicators Y."""
    size = 1 + sum(basis.shape[1] for basis in bases.values())
    gram, products = np.zeros((size, size)), np.zeros((size, n_labels))
    for rows in block.slices(ROWS_AT_A_TIME):
        design = _design(block, rows, bases)
        weighted = design if block.weights is None else design * block.weights[rows, np.newaxis]
        gram += weighted.T @ design
        products += weighted.T @ np.eye(n_labels)[block.labels[rows]]
    return gram, products


def _sums_of_levels(
    block: RowBlock,
    chosen: list[int],
    n_codes: list[int],
    bases: Mapping[int, Array],
    coefficients: Array,
    least: Array,
) -> list[tuple[Array, Array, Array]]:
    """Return weighted sums over the rows of each level, for every chosen attribute.

    They are the class counts (levels, K), the sums of the predicted probabilities (levels, K), and those of their
    variances (levels,).
    """
    n_labels = len(least)
    sums = [(np.zeros((n, n_labels)), np.zeros((n, n_labels)), np.zeros(n)) for n in n_codes]
    for rows in block.slices(ROWS_AT_A_TIME):
        q = np.maximum(_design(block, rows, bases) @ coefficients, least)
        q /= q.sum(axis=1, keepdims=True)
        weights = np.ones(len(q)) if block.weights is None else block.weights[rows]
        variances = weights * (q * (1 - q)).sum(axis=1)
        q *= weights[:, np.newaxis]
        for i, n, (counts, predicted, varied) in zip(chosen, n_codes, sums, strict=True):
            codes, labels = block.codes[i][rows].astype(np.intp), block.labels[rows].astype(np.intp)
            # one code more than the attribute has: not observed
            counts += np.bincount(codes * n_labels + labels, weights, (n + 1) * n_labels).reshape(-1, n_labels)[:n]
            predicted += np.stack([np.bincount(codes, column, n + 1)[:n] for column in q.T], axis=1)
            varied += np.bincount(codes, variances, n + 1)[:n]
    return sums
