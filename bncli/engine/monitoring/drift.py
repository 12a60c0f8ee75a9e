"""How far the values of new rows are from those of training, and whether chance can tell.

With a_v and e_v the shares of value v among n new rows and N training rows that have one of the k values of training,

    PSI = sum over v of (a_v - e_v) ln(a_v / e_v)

the population stability index, symmetric Kullback-Leibler divergence (Kullback & Leibler 1951), in nats. Where both
samples come from one distribution, PSI / (1/n + 1/N) is about chi-squared with k - 1 degrees of freedom (Yurdakul
2018), so that its mean is (1/n + 1/N)(k - 1): the usual limits 0.1 and 0.25 know nothing of n. `p` is that of Pearson's
chi-squared test of homogeneity of the two samples.

A value that training never had is in no sum. Of x such values among n rows, where training had none in N, it is
C(n, x) / C(n + N, x) that chance puts all of them among the new rows (Fisher's exact test, one-sided).

Conventions: an attribute has drifted if its PSI is at least 0.1 and p below its limit, or if at least 5 % of the rows
have a value that training never had and that is as improbable. The limit is 0.01 divided by the number of tests, two an
attribute (Bonferroni), so that in at most about 1 of 100 reports on rows like those of training anything is called
drift. In PSI a value that one side lacks counts as half a row there. In the test, values of which less than one is
expected among the new rows count together. Weighted training rows count as their weights say, together for no more
than there were rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from bncli.engine.kernels.arrays import Array

ALPHA = 0.01
"""Reports on rows like those of training in which anything is called drift, at most about."""
LEAST_PSI = 0.1
"""Below it nobody needs to act, however sure it is; above 0.25 a change is called large."""
LEAST_UNKNOWN = 0.05
"""Share of rows with a value that training never had, below which nobody needs to act."""


class Drift(NamedTuple):
    """Of one attribute; None where no new row has a value of training, or training none.

    `psi_expected` is the mean of the index under no drift, `psi_limit` what it exceeds with the probability that the
    tests allow; `unknown_p` is that of so many values that training never had.
    """

    psi: float | None
    p: float | None
    psi_expected: float | None
    psi_limit: float | None
    unknown_p: float
    drifted: bool


def drift_of(counts: Array, training: Array, unknown: int, n_tests: int) -> Drift:
    """counts (k,) and training (k,) of each value, and how many new rows have a value that training never had."""
    n, n_training, level = float(counts.sum()), float(training.sum()), ALPHA / n_tests
    unknown_p = unknown_probability(unknown, n + unknown, n_training)
    is_strange = unknown >= LEAST_UNKNOWN * (n + unknown) and unknown > 0 and unknown_p <= level
    if not n or not n_training:
        return Drift(None, None, None, None, unknown_p, is_strange)
    index, p = psi(counts, training), homogeneity(counts, training)
    spread, freedom = 1 / n + 1 / n_training, len(counts) - 1
    limit = spread * float(special.chdtri(freedom, level)) if freedom else 0.0
    drifted = is_strange or (index >= LEAST_PSI and p <= level)
    return Drift(index, p, spread * freedom, limit, unknown_p, drifted)


def psi(counts: Array, training: Array) -> float:
    """The population stability index, nats; both (k,), neither all 0."""
    a, e = (np.where(one > 0, one, 0.5) / one.sum() for one in (counts, training))
    return float(((a - e) * np.log(a / e)).sum())


def homogeneity(counts: Array, training: Array) -> float:
    """The p value of Pearson's chi-squared test that two samples, counts of k values, are of one distribution.

    Where all values but one are expected less than once among the new rows, all together, that of Fisher's exact test
    that they are not more.
    """
    n, n_training = counts.sum(), training.sum()
    often = (counts + training) * n / (n + n_training)
    rows = _pooled(np.stack([counts, training]), often)
    expected = rows.sum(axis=0) * np.array([[n], [n_training]]) / (n + n_training)
    if expected.shape[1] < 2:
        rare = often < 1
        return 1.0 if rare.all() else _tail(counts[rare].sum(), training[rare].sum(), n, n_training)
    statistic = ((rows - expected) ** 2 / expected).sum()
    return float(special.chdtrc(expected.shape[1] - 1, statistic))


def _tail(rare: float, rare_in_training: float, n: float, n_training: float) -> float:
    """That chance puts as many of the rare values, or more, among the n new rows: hypergeometric."""
    total = rare + rare_in_training
    x = np.arange(rare, min(total, n) + 1)
    log_p = _log_choose(total, x) + _log_choose(n + n_training - total, n - x) - _log_choose(n + n_training, n)
    return float(min(np.exp(log_p).sum(), 1.0))


def _log_choose(n: float, k: Array | float) -> Array:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _pooled(rows: Array, expected: Array) -> Array:
    """The columns with values expected less than once as one, joined with the next rarest until that is enough."""
    order = np.argsort(expected, kind="stable")
    sums = expected[order].cumsum()
    n_rare = int(np.count_nonzero(expected < 1))
    while 0 < n_rare < len(sums) and sums[n_rare - 1] < 1:
        n_rare += 1
    kept, rare = rows[:, np.sort(order[n_rare:])], rows[:, order[:n_rare]].sum(axis=1, keepdims=True)
    return np.hstack([kept, rare]) if rare.sum() else kept


def unknown_probability(unknown: int, n: float, n_training: float) -> float:
    """That chance puts all of so many values that training lacks among the n new rows, and none among its own."""
    new, both = special.gammaln([n + 1, n + n_training + 1])
    log_p = new - special.gammaln(n - unknown + 1) - both + special.gammaln(n + n_training - unknown + 1)
    return float(np.exp(min(log_p, 0.0)))
