"""Scores of a family: how well its parents explain a child. A network's score is the sum over its families.

Every score takes counts of shape (..., r, q, K): batch axes, the child's r values, one flat axis of the q
configurations of its attribute parents (q = 1 without any), and the K classes, since the class is a parent too, and
returns one value per element of the batch, in nats; higher is better. Rows may be weighted, so counts need not be
integers. In the formulas, N is the sum of the counts, k a value of the child, j a configuration, c a class, and G the
gamma function.

A score is called equivalent if an arc gains the same in both directions:

    score(i | class, j) - score(i | class) = score(j | class, i) - score(j | class)

**The approximate conditional log-likelihood** (aCLL) was proposed by Carvalho, Adao & Mateus 2013, Entropy 15. With
U_c = P(x, c), ln P(c | x) = ln U_c - ln (sum over c' of U_c'). The second term couples all parameters. If it is
replaced by its best linear fit in the logarithms,

    ln (sum over c of U_c)  ~  beta sum over c of ln U_c + gamma,        beta = Cov(A, B) / Var(B),
    A = ln (sum over c of U_c),    B = sum over c of ln U_c,    gamma = E[A] - beta E[B]

a weighted sum of the ln U_c is left, so that, up to a constant, the conditional log-likelihood becomes a sum over
families:

    aCLL = sum over families, k, j, c of M_kjc ln theta_kjc
    M_kjc = (1 - beta) N_kjc - beta (sum over c' != c of N_kjc') = N_kjc - beta (sum over all c' of N_kjc')

A cell supports its class (M > 0) if the fraction of its rows in that class exceeds beta. With N' pseudo-counts, aCLL is
highest, among all theta_kjc >= N' / (sum over k of N+_kjc), at

    theta_kjc = N+_kjc / (sum over k of N+_kjc),      N+_kjc = max(M_kjc, N')

(theorem 3.8 and equation 28, where the minus in M is misprinted as a plus). beta and gamma depend on the assumed
distribution of the U_c:

- `dirichlet_approximation`: (U_1, ..., U_K, rest) ~ Dir(1, ..., 1, N). With psi the digamma function, psi' its
  derivative,

      beta  = (psi'(K) - psi'(K + N)) / (psi'(1) - K psi'(K + N))
      gamma = psi(K) - psi(K + N) - beta K (psi(1) - psi(K + N))

- `uniform_approximation`: independent and uniform on [0, 1] (beta is the same on any [0, p]). Frullani's integral
  ln s = int_0^inf (exp(-z) - exp(-s z)) / z dz turns the moments into integrals of one variable,

      beta  = int_0^inf phi(z)^(K-1) [Ein(z) - 1 + exp(-z)] / z^2 dz,      phi(z) = (1 - exp(-z)) / z
      gamma = int_0^inf [exp(-z) - phi(z)^K] / z dz + K beta,              Ein(z) = int_0^z (1 - exp(-t)) / t dt

  With z = exp(x) both become integrals over all x of a smooth function that vanishes on either side; the trapezoidal
  rule is then exact up to rounding. The paper gives closed forms for K = 2 and 3 and simulates the others.

- `prior_approximation`: any Dirichlet distribution in closed form, and others by simulation (algorithms 1 and 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array, log_sum
from bncli.errors import BncliError

LOG_GAMMAS = 1 << 16
"""ln G(n) of smaller whole numbers n is looked up."""
STEP = 1.0 / 32.0
"""The step of the trapezoidal rule, in ln z."""
RANGE = 45.0
"""The integrals run over z from exp(-RANGE) to exp(RANGE); beyond, the integrands are below rounding errors."""


class FamilyScore(NamedTuple):
    """A score function, whether the score is equivalent, and the further arguments of the function after the counts."""

    function: Callable[..., Array]
    equivalent: bool
    arguments: tuple[float | str, ...] = ()

    def score(self, counts: Array) -> Array:
        """Return scores (...) in nats from counts (..., r, q, K)."""
        return self.function(counts, *self.arguments)


def log_likelihood(counts: Array) -> Array:
    """Return the maximum log-likelihood of the child, attained at the relative frequencies; at most 0.

        ll = sum over k, j, c of N_kjc ln (N_kjc / N_jc)

    An empty cell adds 0. The score never falls when a parent is added, so on its own it suits structures of a fixed
    size, such as trees. Source: Chow & Liu 1968, IEEE Transactions on Information Theory 14.

    >>> counts = np.array([[[3.0], [0.0]], [[1.0], [2.0]]])  # two values, two configurations, one class
    >>> round(math.exp(log_likelihood(counts)), 9)  # (3/4)^3 (1/4) 1^2
    0.10546875
    """
    totals = counts.sum(axis=-3, keepdims=True)
    ratios = counts / np.where(totals > 0, totals, 1.0)
    ratios += ratios == 0  # ln 1 = 0 adds nothing; a masked logarithm would take six times as long
    np.log(ratios, out=ratios)
    ratios *= counts
    return np.asarray(ratios.sum(axis=(-3, -2, -1)))


def aic(counts: Array) -> Array:
    """Return Akaike's information criterion: ll - (r - 1) q K.

    Parameters of configurations without rows are counted too.
    Source: Akaike 1974, IEEE Transactions on Automatic Control 19.
    """
    return log_likelihood(counts) - free_parameters(counts)


def bic(counts: Array) -> Array:
    """Return the Bayesian information criterion: ll - (ln N) / 2 * (r - 1) q K.

    Parameters of configurations without rows are counted too, so the penalty depends only on the cardinalities and N.
    A total weight N below 1 counts as 1, so that the penalty is never negative.
    Source: Schwarz 1978, Annals of Statistics 6.
    """
    n = np.maximum(counts.sum(axis=(-3, -2, -1)), 1.0)
    return np.asarray(log_likelihood(counts) - 0.5 * np.log(n) * free_parameters(counts))


def k2(counts: Array) -> Array:
    """Return the log marginal likelihood under a uniform prior over the child's distributions.

        k2 = sum over j, c of { ln G(r) - ln G(N_jc + r) + sum over k of ln G(N_kjc + 1) }

    Uniform priors in different families are not consistent with each other, so the score is not equivalent.
    Source: Cooper & Herskovits 1992, Machine Learning 9.
    """
    return log_marginal_likelihood(counts, 1.0)


def bdeu(counts: Array, strength: float) -> Array:
    """Return the log marginal likelihood under a uniform Dirichlet prior that is worth S = `strength` > 0 rows.

        bdeu = sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }
        a = S / (r q K)

    The priors of all families follow from one prior over rows, so the score is equivalent.
    Source: Heckerman, Geiger & Chickering 1995, Machine Learning 20.
    """
    return log_marginal_likelihood(counts, strength / math.prod(counts.shape[-3:]))


def acll(counts: Array, pseudo_counts: float, prior: str | None = None) -> Array:
    """Return the approximate conditional log-likelihood (aCLL).

    Unlike the conditional log-likelihood itself, it is a sum over families, so that the best tree can be found
    exactly. It is not equivalent. `pseudo_counts` is N' > 0. `prior` is the distribution of P(row, class), as
    `prior_approximation` reads it; None means Dirichlet(1, ..., 1, N).
    """
    n_labels = counts.shape[-1]
    if prior is None:
        beta = dirichlet_approximation(n_labels, counts.sum(axis=(-3, -2, -1))).beta
    else:
        beta = prior_approximation(prior, n_labels).beta
    return acll_scores(counts, beta, pseudo_counts)


def acll_uniform(counts: Array, pseudo_counts: float) -> Array:
    """Return the approximate conditional log-likelihood if all P(row, class) are independent and uniform on [0, 1]."""
    return acll_scores(counts, uniform_approximation(counts.shape[-1]).beta, pseudo_counts)


FAMILY_SCORES: dict[str, FamilyScore] = {
    "ll": FamilyScore(log_likelihood, equivalent=True),
    "bic": FamilyScore(bic, equivalent=True),
    "aic": FamilyScore(aic, equivalent=True),
    "k2": FamilyScore(k2, equivalent=False),
    "bdeu": FamilyScore(bdeu, equivalent=True),
    "acll": FamilyScore(acll, equivalent=False),
    "acll-uniform": FamilyScore(acll_uniform, equivalent=False),
}
"""The scores, keyed by their names in `--structure-score`; the catalogue lists the same names."""


def parse_score(rule: str) -> FamilyScore:
    """Parse `NAME`, `NAME:NUMBER` or `NAME:NUMBER/PRIOR`; return the score with the number and prior as arguments."""
    name, _, numbers = rule.partition(":")
    number, _, prior = numbers.partition("/")
    arguments: list[float | str] = [float(number)] if number else []
    if prior:
        arguments.append(prior)
    return FAMILY_SCORES[name]._replace(arguments=tuple(arguments))


def free_parameters(counts: Array) -> int:
    """Return (r - 1) q K, the number of free probabilities of the child.

    >>> free_parameters(np.zeros((3, 4, 2)))
    16
    """
    r: int = counts.shape[-3]
    return (r - 1) * math.prod(counts.shape[-2:])


def log_marginal_likelihood(counts: Array, prior: float) -> Array:
    """Return the log marginal likelihood under Dirichlet priors with a = `prior` > 0 in every cell.

        sum over j, c of { ln G(r a) - ln G(N_jc + r a) + sum over k of [ ln G(N_kjc + a) - ln G(a) ] }

    A configuration without rows adds 0. Source: Cooper & Herskovits 1992, Machine Learning 9.

    >>> heads_and_tails = np.array([[[3.0]], [[5.0]]])
    >>> round(math.exp(-log_marginal_likelihood(heads_and_tails, 1.0)))  # (3 + 5 + 1)! / (3! 5!)
    504
    """
    cells, rows = _growth(counts, prior), _growth(counts.sum(axis=-3), counts.shape[-3] * prior)
    return np.asarray(cells.sum(axis=(-3, -2, -1)) - rows.sum(axis=(-2, -1)))


def _growth(counts: Array, a: float) -> Array:
    """Return ln G(N + a) - ln G(a) for every count N, which is 0 for the many cells without rows of a large table."""
    from scipy.special import gammaln  # takes longer to load than most structures to learn: only where it is used

    flat = counts.ravel()
    places = np.flatnonzero(flat)
    x = flat[places] + a
    whole = x.astype(np.intp)
    if a == int(a) and len(x) and whole.max() < LOG_GAMMAS and (whole == x).all():
        # a look-up takes a tenth of the time
        grown = _log_gammas()[whole]
    else:
        grown = gammaln(x)
    values = np.zeros(flat.shape)
    values[places] = grown - gammaln(a)
    return values.reshape(counts.shape)


@cache
def _log_gammas() -> Array:
    """Return ln G(n) for n = 0, 1, ..., LOG_GAMMAS - 1; the first is infinite, and never used."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(float(LOG_GAMMAS))))


class LinearApproximation(NamedTuple):
    """The slope beta and the intercept gamma (in nats) of the linear fit; arrays of any shape."""

    beta: Array
    gamma: Array


def dirichlet_approximation(n_labels: int, n: ArrayLike) -> LinearApproximation:
    """Return beta and gamma, of the shape of n, for K = `n_labels` >= 2 classes and N = `n` >= 0 rows (or weights).

    >>> dirichlet_approximation(2, [10.0, 1000.0]).beta.round(6).tolist()
    [0.379322, 0.391942]
    """
    from scipy.special import polygamma, psi

    k, rows = float(n_labels), np.asarray(n, np.float64)
    trigamma = polygamma(1, k + rows)
    beta = (polygamma(1, k) - trigamma) / (polygamma(1, 1.0) - k * trigamma)
    gamma = psi(k) - psi(k + rows) - beta * k * (psi(1.0) - psi(k + rows))
    return LinearApproximation(np.asarray(beta), np.asarray(gamma))


@cache
def prior_approximation(prior: str, n_labels: int) -> LinearApproximation:
    """Return beta and gamma for `n_labels` classes under a prior in the string form of `option_kinds.ClassPairPrior`.

    Raises BncliError if the number of its parameters does not fit the number of classes.
    """
    shape, *simulation = prior.split(":")
    independent = shape.startswith("beta,")
    parameters = np.array([float(number) for number in shape.removeprefix("beta,").split(",")])
    if not independent:
        if len(parameters) == 2:
            parameters = np.append(np.full(n_labels, parameters[0]), parameters[1])
        if len(parameters) != n_labels + 1:
            what = f"the class pair prior {shape} has {len(parameters)} numbers, but there are {n_labels} classes"
            raise BncliError(
                what, hint=f"give two numbers A,B, or {n_labels + 1} numbers: one per class and one for the rest"
            )
    if not simulation:
        # Dir(a_1, ..., a_K, b) in closed form: the sum S of U_1, ..., U_K is Beta(a_+, b), independent of all U_c / S.
        # Var(A) = psi'(a_+) - psi'(a_+ + b), Cov(A, B) = K Var(A), Var(B) = sum over c of psi'(a_c) - K^2 psi'(a_+ + b)
        from scipy.special import polygamma, psi

        k, sum_of_classes, sum_of_all = len(parameters) - 1, parameters[:-1].sum(), parameters.sum()
        remainder = polygamma(1, sum_of_all)
        beta = k * (polygamma(1, sum_of_classes) - remainder) / (polygamma(1, parameters[:-1]).sum() - k**2 * remainder)
        gamma = psi(sum_of_classes) - psi(sum_of_all) - beta * (psi(parameters[:-1]).sum() - k * psi(sum_of_all))
        return LinearApproximation(np.asarray(beta), np.asarray(gamma))
    n_draws, seed = map(int, (*simulation, "0")[:2])
    rng = np.random.default_rng([seed, n_labels])
    # Logarithms of gamma variates stay finite however small these are: G(a) is distributed as G(a + 1) U^(1 / a), U
    # uniform.
    size = (n_draws, n_labels, 2) if independent else (n_draws, len(parameters))
    log_gammas = np.log(rng.standard_gamma(parameters + 1.0, size)) - rng.standard_exponential(size) / parameters
    log_shares = log_gammas - log_sum(log_gammas, -1)
    # A beta variate is the share of one of two gamma variates; a Dirichlet vector (algorithm 2) is used without its
    # rest.
    log_u = log_shares[..., 0] if independent else log_shares[:, :n_labels]
    # Algorithm 1: the least-squares line of A on B.
    a, b = log_sum(log_u, 1)[:, 0], log_u.sum(axis=1)
    slope = np.mean((a - a.mean()) * (b - b.mean())) / b.var()
    return LinearApproximation(np.asarray(slope), np.asarray(a.mean() - slope * b.mean()))


@cache
def uniform_approximation(n_labels: int) -> LinearApproximation:
    """Return beta and gamma for `n_labels` >= 1 independent uniform U_c. Cost: a sum of 2,881 terms."""
    from scipy.special import exp1

    z = np.exp(np.arange(-RANGE, RANGE + STEP / 2, STEP))
    phi = -np.expm1(-z) / z
    # Ein(z) - 1 + exp(-z), below 1 by its series, where the difference would lose its digits
    large, small = np.maximum(z, 1.0), np.minimum(z, 1.0)
    ein = exp1(large) + np.log(large) + np.euler_gamma
    term, series = np.ones(z.shape), np.zeros(z.shape)
    for m in range(1, 20):
        term = term * -small / m
        series += term * (1.0 - 1.0 / m)
    bracket = np.where(z < 1.0, series, ein + np.expm1(-large))
    beta = STEP * (phi ** (n_labels - 1) * bracket / z).sum()
    gamma = STEP * (np.exp(-z) - phi**n_labels).sum() + n_labels * beta
    return LinearApproximation(np.asarray(beta), np.asarray(gamma))


def class_contrasts(counts: Array, beta: Array) -> Array:
    """Return M, in the shape of the counts (..., K); it may be negative. `beta` broadcasts against the counts.

    >>> class_contrasts(np.array([[6.0, 2.0], [0.0, 4.0]]), np.array(0.25)).tolist()  # one cell per row
    [[4.0, 0.0], [-1.0, 3.0]]
    """
    return np.asarray(counts - beta * counts.sum(axis=-1, keepdims=True))


def log_theta(contrasts: Array, pseudo_counts: float, axis: int) -> Array:
    """Return ln theta for contrasts M (..., K), normalised over the child's `axis`; finite because N' > 0."""
    floored = np.maximum(contrasts, pseudo_counts)
    return np.asarray(np.log(floored / floored.sum(axis=axis, keepdims=True)))


def acll_scores(counts: Array, beta: Array, pseudo_counts: float) -> Array:
    """Return each family's term of aCLL at the best theta, (...) in nats, from counts (..., r, q, K) and beta (...)."""
    contrasts = class_contrasts(counts, beta[..., np.newaxis, np.newaxis, np.newaxis])
    return np.asarray((contrasts * log_theta(contrasts, pseudo_counts, axis=-3)).sum(axis=(-3, -2, -1)))
