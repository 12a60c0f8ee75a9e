"""Approximate inverses of the Hessian of a multinomial log-likelihood, from one co-occurrence matrix per class.

With C_y (cells, cells) and C = sum_y C_y, the Hessian in the tables is taken as

    H_yy' = 1[y = y'] C_y - C_y C^-1 C_y'

exact where P(y | x) depends on one family only, and at W = 0. In parameters, with J_y = dW[y]/dp[y] and penalty lambda,

    H_yy' = 1[y = y'] A_y - U_y' C^-1 U_y',    A_y = J_y' C_y J_y + lambda I,    U_y = C_y J_y

Hx = g is solved through the sum over classes t = C^-1 sum_y U_y x_y (Woodbury):

    x_y = A_y^-1 (g_y + U_y' t),    (C - sum_y U_y A_y^-1 U_y') t = sum_y U_y A_y^-1 g_y

Adding the same function to all classes changes no probability, so the second matrix lives on the penalty alone; without
one t = 0. Where all classes share C_y and J_y, t only concerns the mean over classes, whose Hessian is lambda I.
Where J_y varies with p (a jacobian is given), a common shift soon does change probabilities: t = 0 for a small penalty.

Where class 0 has no parameters (`anchored`), the sums run over the other classes, and the second matrix is at least
C_0: nothing is lost without a penalty. Where all classes share C_y, the mean over the others has the Hessian
J' C_y J / K + lambda I.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Precondition = Callable[[Array], Array]

SHIFT_FLOOR = 1e-3
"""Where J_y varies, a common shift is taken to live on a penalty above this share of the mean curvature only."""
RIDGE = 1e-6
"""Relative to the mean of the diagonal: keeps estimated matrices invertible."""
MAX_SHARED = 800
"""With more shared parameters than this, only the diagonal is used."""


@dataclass(frozen=True)
class Sample:
    """C_y over the cells `top`, (1 or K, top, top), and the diagonal of C_y over all cells, mass (1 or K, n_cells)."""

    grams: Array
    top: NDArray[np.intp]
    mass: Array


def cellwise(
    sample: Sample, scale: Array, curvature: Array, jacobian: Array | None, penalty: float, n_labels: int
) -> Precondition:
    """For one parameter per cell and class.

    scale (1 or K, n_cells) is dW/dp where that is diagonal; else `jacobian` is J_y on the top cells. curvature
    (1 or K, n_cells) is the diagonal of J_y' C_y J_y.
    """
    top = sample.top
    free = penalty if jacobian is None or penalty >= SHIFT_FLOOR * curvature.mean() else 0.0
    spread = _diagonal(curvature + penalty, sample.mass, scale, free)
    if jacobian is None:
        d = scale[:, top]
        weighted, blocks = sample.grams * d[:, np.newaxis], sample.grams * (d[:, :, np.newaxis] * d[:, np.newaxis])
    else:
        weighted = sample.grams @ jacobian
        blocks = jacobian.transpose(0, 2, 1) @ weighted
    inverses = np.stack([inverse(a, penalty) for a in blocks])
    dense = _uniform(inverses[0], free) if len(inverses) == 1 else _coupled(sample.grams, weighted, inverses, free)

    def apply(g: Array) -> Array:
        gradient = g.reshape(n_labels, -1)
        out = spread(gradient)
        out[:, top] = dense(gradient[:, top])
        return out.ravel()

    return apply


def _uniform(solver: Array, free: float) -> Precondition:
    """One block for all classes; `free` is the Hessian of their mean, 0 where that is not the penalty alone."""

    def apply(g: Array) -> Array:
        mean = g.mean(axis=0)
        return np.asarray((g - mean) @ solver + (mean / free if free > 0 else mean @ solver))

    return apply


def _coupled(grams: Array, weighted: Array, inverses: Array, free: float) -> Precondition:
    if free == 0:
        return lambda g: np.matmul(inverses, g[:, :, np.newaxis])[:, :, 0]
    return _woodbury(grams.sum(axis=0) * (len(inverses) / len(grams)), weighted, inverses)


def _woodbury(total: Array, weighted: Array, inverses: Array) -> Precondition:
    """The solution above, with total = C, weighted = U_y, inverses = A_y^-1."""
    back = inverses @ np.broadcast_to(weighted, inverses.shape).transpose(0, 2, 1)
    inner = inverse(total - (weighted @ back).sum(axis=0), 0.0)

    def apply(g: Array) -> Array:
        t = inner @ np.matmul(g[:, np.newaxis], back)[:, 0].sum(axis=0)
        return np.asarray(np.matmul(inverses, g[:, :, np.newaxis])[:, :, 0] + back @ t)

    return apply


def _diagonal(a: Array, mass: Array, scale: Array, free: float) -> Precondition:
    """The same solution for every cell by itself, a = A_y."""
    a = np.where(a > 0, a, 1.0)
    if len(a) == 1:
        return lambda g: (g - g.mean(axis=0)) / a + g.mean(axis=0) / (free if free > 0 else a)
    u = np.broadcast_to(mass * scale, a.shape) / a
    if free == 0:
        return lambda g: g / a
    inner = (np.broadcast_to(mass, a.shape) * free / a).sum(axis=0)
    inner = np.where(inner > 0, inner, 1.0)
    return lambda g: g / a + u * ((u * g).sum(axis=0) / inner)


def anchored(sample: Sample, penalty: float, n_labels: int) -> Precondition:
    """For one parameter per predictor and class but class 0, whose tables stay 0; `sample` is of predictors."""
    if n_labels == 1:
        return lambda g: g  # there is no parameter
    grams, top = sample.grams, sample.top
    spread = _anchored_diagonal(sample.mass, penalty, n_labels)
    if len(grams) == 1:
        dense = _two_curvatures(inverse(grams[0], penalty), inverse(grams[0] / n_labels, penalty))
    else:
        dense = _woodbury(grams.sum(axis=0), grams[1:], np.stack([inverse(gram, penalty) for gram in grams[1:]]))

    def apply(g: Array) -> Array:
        gradient = g.reshape(n_labels - 1, -1)
        out = spread(gradient)
        out[:, top] = dense(gradient[:, top])
        return out.ravel()

    return apply


def _two_curvatures(of_deviations: Array, of_mean: Array) -> Precondition:
    """The inverses for what differs between classes 1, 2, ... and for their mean."""

    def apply(g: Array) -> Array:
        mean = g.mean(axis=0)
        return np.asarray((g - mean) @ of_deviations + mean @ of_mean)

    return apply


def _anchored_diagonal(mass: Array, penalty: float, n_labels: int) -> Precondition:
    """The same solution for every predictor by itself."""
    if len(mass) == 1:
        deviation, mean = (np.where(a > 0, a, 1.0) for a in (mass[0] + penalty, mass[0] / n_labels + penalty))
        return lambda g: (g - g.mean(axis=0)) / deviation + g.mean(axis=0) / mean
    a = np.where(mass[1:] + penalty > 0, mass[1:] + penalty, 1.0)
    u = mass[1:] / a
    inner = mass[0] + (mass[1:] * penalty / a).sum(axis=0)
    inner = np.where(inner > 0, inner, 1.0)
    return lambda g: g / a + u * ((u * g).sum(axis=0) / inner)


def shared(sample: Sample, scale: Array, index: NDArray[np.intp], n_parameters: int, penalty: float) -> Precondition:
    """H = sum_y A_y C_y A_y' - B C^-1 B' + lambda I, B = sum_y A_y C_y, with A_y (P, cells) holding dW[y]/dp.

    W[y, c] = scale[y, c] p[index[y, c]], both (K, n_cells).
    """
    n_labels, n_cells = scale.shape
    mass = np.broadcast_to(sample.mass, scale.shape)
    curvature = (1 - 1 / n_labels) * mass * scale**2
    diagonal = np.bincount(index.ravel(), curvature.ravel(), n_parameters) + penalty
    if n_parameters > MAX_SHARED:
        reciprocal = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
        return lambda g: g * reciprocal
    grams = np.broadcast_to(sample.grams, (n_labels, *sample.grams.shape[1:]))
    hessian = np.zeros((n_parameters, n_parameters))
    both = np.zeros((n_parameters, len(sample.top)))
    for y in range(n_labels):
        a = np.zeros(both.shape)
        a[index[y, sample.top], np.arange(len(sample.top))] = scale[y, sample.top]
        hessian += a @ grams[y] @ a.T
        both += a @ grams[y]
    hessian -= both @ inverse(grams.sum(axis=0), 0.0) @ both.T
    rest = np.setdiff1d(np.arange(n_cells), sample.top)
    left_out = np.bincount(index[:, rest].ravel(), curvature[:, rest].ravel(), n_parameters)
    hessian[np.diag_indices(len(hessian))] += left_out
    solver = inverse(hessian, penalty)
    return lambda g: solver @ g


def inverse(matrix: Array, penalty: float) -> Array:
    """(matrix + (ridge + penalty) I)^-1, the ridge raised until that is positive definite; rows of zeros get 1."""
    diagonal = np.diag(matrix)
    ridge = RIDGE * max(float(diagonal.mean()), np.finfo(float).tiny)
    while True:
        raised = matrix + np.diag(np.where(diagonal + penalty > 0, ridge + penalty, 1.0))
        try:
            factor = np.linalg.inv(np.linalg.cholesky(raised))
        except np.linalg.LinAlgError:
            ridge *= 100.0
            continue
        return np.asarray(factor.T @ factor)
