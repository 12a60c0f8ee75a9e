"""What a family may say of one attribute: a basis of functions of its codes.

`cells`: the indicator of every code. `thermometer`: for a numeric attribute with the cuts c_1 < ... < c_m one step a
cut, and the indicator of the missing level, where there is one, whose own code lies on no side of any cut:

    b_j(x) = +1/2 above c_j, -1/2 below,    0 where x is missing

`linear`: a numeric attribute has one effect, the middle of the interval, standardised on the training rows (an outer
interval reaches as far as its neighbour), and the indicator of the missing level: a straight line in the log-odds.

A sum of steps is any function of the intervals up to a constant, and a penalty on their heights pulls neighbouring
intervals together, so that cuts may be as fine as one likes. An attribute that is not numeric has its indicators.

Steps resemble each other, and equations in them are hard to solve. So the basis is turned: with A = B U, U orthogonal
so that the functions A_j are uncorrelated on the training rows,

    B v = A z,  v = U z,  |v|^2 = |z|^2,    sum over codes c of w_c A_ci A_cj = 0 for i != j

the penalty is the same, and most of the curvature is in the first few of the z (smooth functions of the attribute come
first). A rescaled basis is not needed: an order's weight in the penalty is a factor of the whole table. Where it is the
span of all rows that is searched, which no turn changes, the steps may stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.engine.kernels.arrays import Array


def basis(attribute: Attribute, coding: str, weights: Array, *, turned: bool = True) -> Array:
    """A (codes, effects) of an attribute as it is seen; weights (codes,) of the rows that have each code.

    `coding` is `cells`, `thermometer` (which is `turned` or not) or `linear` (which takes no groupings: one code an
    interval). A numeric attribute without cuts has no effect but that of being missing.
    """
    n_codes = len(weights)
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return np.eye(n_codes)
    if coding == "linear":
        return line(attribute.cuts, weights, missing=attribute.missing)
    steps = thermometer(n_codes - attribute.missing, missing=attribute.missing)
    return _turned(steps, weights) if turned else steps


def n_functions(attribute: Attribute, coding: str, n_codes: int) -> int:
    """How many effects `basis` has."""
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return n_codes
    return n_codes - 1 if coding == "thermometer" else (n_codes - attribute.missing > 1) + attribute.missing


@lru_cache
def thermometer(n_intervals: int, *, missing: bool) -> Array:
    """B (codes, effects): the steps, one a cut, and the indicator of the missing level, the last code. Read-only."""
    codes, cuts = np.arange(n_intervals)[:, np.newaxis], np.arange(n_intervals - 1)
    steps = np.where(codes > cuts, 0.5, -0.5)
    if missing:
        steps = np.block([[steps, np.zeros((n_intervals, 1))], [np.zeros((1, n_intervals - 1)), np.ones((1, 1))]])
    steps.flags.writeable = False
    return steps


def line(cuts: Sequence[float], weights: Array, *, missing: bool) -> Array:
    """A (codes, effects): the middles of the intervals, of mean 0 and variance 1 on the rows; the missing level."""
    edges = np.asarray(cuts, np.float64)
    n = len(edges) + 1
    functions = np.zeros((n + missing, (n > 1) + missing))
    if n > 1:
        width = np.diff(edges) if n > 2 else np.ones(1)
        middles = np.concatenate([[edges[0] - width[0] / 2], (edges[:-1] + edges[1:]) / 2, [edges[-1] + width[-1] / 2]])
        total = weights[:n].sum() or 1.0
        middles -= weights[:n] @ middles / total
        spread = np.sqrt(weights[:n] @ middles**2 / total)
        functions[:n, 0] = middles / spread if spread > 0 else middles
    if missing:
        functions[n, -1] = 1.0
    return functions


def _turned(matrix: Array, weights: Array) -> Array:
    """B U, the functions of most weighted squares first."""
    if matrix.shape[1] < 2:
        return matrix
    _, axes = np.linalg.eigh(matrix.T @ (weights[:, np.newaxis] * matrix))
    return np.asarray(matrix @ axes[:, ::-1])


def coefficients(functions: Array) -> Array:
    """(1 + effects, codes): what a function of the codes is made of, the constant first, then the effects A.

    Indicators need no constant, it gets 0; with steps it is what they leave.
    """
    n_codes, n_effects = functions.shape
    if n_effects == n_codes:
        return np.concatenate([np.zeros((1, n_codes)), np.linalg.inv(functions)])
    return np.asarray(np.linalg.inv(np.column_stack([np.ones(n_codes), functions])))
