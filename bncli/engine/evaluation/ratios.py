"""How much better on average: the geometric mean of ratios of losses over data sets.

    ratio = exp( mean over data sets i of ln (a_i / b_i) )

Below 1 the first method loses less. Halving a loss counts as much as doubling it costs, and swapping the methods gives
the inverse. A loss of 0 would decide everything alone, so none counts as less than half an error among the N_i rows:

- `mean`, a mean over rows (error, log-loss, Brier score, bias, variance): at least 0.5 / N_i;
- `root`, the square root of one (RMSE): at least sqrt(0.5 / N_i);
- `count`, a mean of whole numbers (iterations, passes over the rows): at least half a one;
- `seconds`: at least a nanosecond, for a clock may say 0 of what is quick;
- `plain`, anything that is always positive (ratios themselves): as it is.

Cost: a logarithm a figure.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

Kind = Literal["mean", "root", "count", "seconds", "plain"]


def geometric_mean_ratio(first: ArrayLike, second: ArrayLike, rows: ArrayLike, kind: Kind = "mean") -> float:
    """The geometric mean of first / second, losses and numbers of rows (n_data,); 1 for no data sets at all.

    >>> round(geometric_mean_ratio([0.1, 0.4], [0.2, 0.2], rows=[100, 100]), 12)  # half on one, twice on the other
    1.0
    """
    a, b, n = (np.asarray(values, np.float64) for values in (first, second, rows))
    if not a.shape == b.shape == n.shape or a.ndim != 1:
        raise BncliError(f"losses and rows come in lists of one length, not of shapes {a.shape}, {b.shape}, {n.shape}")
    if not (n > 0).all():
        raise BncliError("ratios are taken of losses on at least one row")
    least: dict[Kind, Array | float]
    least = {"mean": 0.5 / n, "root": np.sqrt(0.5 / n), "count": 0.5, "seconds": 1e-9, "plain": 0.0}
    return math.exp(float(np.mean(_log(a, least[kind]) - _log(b, least[kind])))) if len(a) else 1.0


def _log(losses: Array, floor: Array | float) -> Array:
    raised = np.maximum(losses, floor)
    if not (np.isfinite(raised).all() and (losses >= 0).all() and (raised > 0).all()):
        raise BncliError("ratios are taken of finite losses that are not negative")
    return np.log(raised)
