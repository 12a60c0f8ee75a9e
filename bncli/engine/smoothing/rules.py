"""From counts to conditional probabilities: the smoothing rules typed after --smoothing.

With N_jkc the weight of rows with child value k, parent configuration j and class c, and N_jc its sum over k,

    theta_jkc = (N_jkc + a prior_k) / (N_jc + a)

    mle             a = 0; an unseen parent configuration is uniform; theta is floored at 1e-10
    laplace:A       a = A |X|, prior uniform: A is added to every count
    m-estimate:M    a = M, prior uniform (Zaidi et al. 2017)
    fgg:M           a = M, prior_k = (N_k + 1/|X|) / (N + 1) (Friedman, Geiger & Goldszmidt 1997)
    bdeu:S          S / (number of entries of the table) is added to every count
    hdp             each distribution leans on the one with one parent fewer, as much as the rows say (see `hdp`)

The class's own distribution follows the same rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.smoothing.hdp import back_off, lent

FLOOR = 1e-10


def log_conditional(counts: Array, rule: str, axis: int) -> Array:
    """ln theta, same shape as `counts`, normalised over `axis`, the child's; all other axes are its parents.

    `rule` is `mle`, `hdp` or `NAME:NUMBER` as in the module's table. The last axis is the class: the child itself or
    the first of its parents; the other parents stand as they are listed. Finite everywhere.

    >>> counts = np.array([[3.0, 0.0], [1.0, 0.0]])  # two values, two classes; the second class was never met
    >>> np.exp(log_conditional(counts, "laplace:1", axis=0)).round(9).tolist()
    [[0.666666667, 0.5], [0.333333333, 0.5]]
    """
    if rule == "hdp":
        theta = _by_parents(counts, axis, back_off)
    else:
        theta = _smoothed(np.moveaxis(counts, axis, 0) if axis else counts, rule)
    logs: Array = np.log(np.maximum(theta, FLOOR) if rule == "mle" else theta)
    return np.moveaxis(logs, 0, axis) if axis else logs


def pseudo_counts(counts: Array, rule: str, axis: int) -> Array:
    """What `rule` adds to each count, a prior_k, same shape as `counts`; `axis` is the child's, as above.

    >>> pseudo_counts(np.array([[3.0, 0.0], [1.0, 0.0]]), "m-estimate:1", axis=0).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if rule == "hdp":
        return np.moveaxis(_by_parents(counts, axis, lent), 0, axis)
    added = _pseudo_counts(np.moveaxis(counts, axis, 0), rule)
    return np.moveaxis(np.broadcast_to(added, np.moveaxis(counts, axis, 0).shape), 0, axis)


def _by_parents(counts: Array, axis: int, of: Callable[[Array], Array]) -> Array:
    """`of` counts whose axes are the child and its parents, the class first of these; the child's axis comes first."""
    if axis % counts.ndim == counts.ndim - 1:
        return of(np.moveaxis(counts, -1, 0))
    class_second = np.moveaxis(np.moveaxis(counts, axis, 0), -1, 1)
    return np.moveaxis(of(class_second), 1, -1)


def _smoothed(counts: Array, rule: str) -> Array:
    """theta by a rule that adds to the counts, the child's axis first."""
    pseudo = _pseudo_counts(counts, rule)
    total = (counts + pseudo).sum(axis=0)
    theta = np.full(counts.shape, 1.0 / len(counts))
    np.divide(counts + pseudo, total, out=theta, where=total > 0)
    return theta


def _pseudo_counts(counts: Array, rule: str) -> Array | float:
    """What the rule adds to each count, the child's axis first."""
    name, _, number = rule.partition(":")
    if name == "mle":
        return 0.0
    strength = float(number)
    if name == "laplace":
        return strength
    if name == "m-estimate":
        return strength / len(counts)
    if name == "bdeu":
        return strength / counts.size
    marginal = counts.reshape(len(counts), -1).sum(axis=1)
    prior = (marginal + 1.0 / len(counts)) / (marginal.sum() + 1.0)
    return np.asarray(strength * prior).reshape(-1, *(1,) * (counts.ndim - 1))
