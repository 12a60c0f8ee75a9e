"""Weights of an average of models, from the probabilities that they gave to the classes of rows held out.

    maximise  sum over rows t of w_t ln sum over models m of v_m P_m(y_t | x_t),    v on the simplex

by EM from equal weights: v_m becomes the mean over rows of model m's share of the mixture. The likelihood rises at
every step and has one maximum (it is concave). Models of little weight are then dropped, and the weights of the others
found again: stacking in the manner of Breiman (1996, Machine Learning 24) with the logarithmic score.

Of a handful of rows the weights would be those that these rows happen to like. So the class frequencies are one of the
models, and there is one row more, about which they alone are right: ln v_m is added for them, which is a Dirichlet
prior. Of 25 rows that is a share they keep; of hundreds it is none.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.kernels.arrays import Array

STEPS, TOLERANCE = 2000, 1e-9
LEAST = 0.01
"""A smaller weight is none."""
IMPOSSIBLE = -100.0
"""ln P of what is as good as impossible; finite, for where no model says anything else."""


def mixture_weights(log_probabilities: Array, weights: Array | None = None) -> Array:
    """v (M,) of ln P_m(y_t | x_t), shape (M, rows); `weights` (rows,) of the rows, None: 1 each."""
    v = _em(log_probabilities, weights)
    # dropping components shifts the weights of the others, which may fall below LEAST in their turn
    while (v[v > 0] < LEAST).any():
        kept = np.flatnonzero(v >= LEAST)
        v = np.zeros(len(v))
        v[kept] = _em(log_probabilities[kept], weights)
    return v


def _em(logs: Array, weights: Array | None) -> Array:
    v = np.full(len(logs), 1.0 / len(logs))
    # each row's factor cancels in its shares, and nothing underflows for all components at once
    shares = np.exp(logs - logs.max(axis=0))
    of_rows = np.full(logs.shape[1], 1.0 / logs.shape[1]) if weights is None else weights / weights.sum()
    for _ in range(STEPS):
        grown = v * (shares @ (of_rows / (v @ shares)))
        if np.abs(grown - v).max() < TOLERANCE:
            break
        v = grown
    return np.asarray(v / v.sum())


def least_squares_weights(log_probabilities: Array, weights: Array | None = None) -> Array:
    """The same for the squared error: v minimises sum over rows of w_t (1 - sum over m of v_m P_m(y_t | x_t))^2.

    By conditional gradients (Frank & Wolfe 1956), each with the best step; the objective is convex.
    """
    errors = -np.expm1(log_probabilities)
    of_rows = np.ones(errors.shape[1]) if weights is None else weights
    gram = (errors * of_rows) @ errors.T
    v = np.full(len(gram), 1.0 / len(gram))
    for _ in range(STEPS):
        gradient = gram @ v
        towards = np.eye(len(v))[int(np.argmin(gradient))] - v
        slope, curvature = -float(gradient @ towards), float(towards @ gram @ towards)
        if slope <= TOLERANCE * float(gradient @ v) or curvature <= 0:
            break
        # a step beyond 1 would leave the simplex
        v = v + min(1.0, slope / curvature) * towards
    v[v < LEAST] = 0.0
    return np.asarray(v / v.sum())


def with_prior_row(log_probabilities: Array, weights: Array | None) -> tuple[Array, Array]:
    """The same with one row more, of weight 1, about which the last model alone is right."""
    row = np.append(np.full(len(log_probabilities) - 1, IMPOSSIBLE), 0.0)
    of_rows = np.ones(log_probabilities.shape[1]) if weights is None else weights
    return np.column_stack([log_probabilities, row]), np.append(of_rows, 1.0)


def mixture_logs(log_probabilities: Array, v: Array) -> Array:
    """ln of the average (rows,)."""
    highest = log_probabilities.max(axis=0)
    return np.asarray(highest + np.log(v @ np.exp(log_probabilities - highest)))
