"""The approximate conditional log-likelihood (aCLL) of Carvalho, Adao & Mateus 2013, Entropy 15.

With U_c = P(x, c), ln P(c | x) = ln U_c - ln (sum over c' of U_c'). The second term ties all parameters together.
Replaced by its best linear fit in the logarithms,

    ln (sum over c of U_c)  ~  beta sum over c of ln U_c + gamma,        beta = Cov(A, B) / Var(B),
    A = ln (sum over c of U_c),    B = sum over c of ln U_c,    gamma = E[A] - beta E[B]

it leaves a weighted sum of the ln U_c, so that, up to a constant, the conditional log-likelihood becomes a sum over
families:

    aCLL = sum over families, k, j, c of M_kjc ln theta_kjc
    M_kjc = (1 - beta) N_kjc - beta (sum over c' != c of N_kjc') = N_kjc - beta (sum over all c' of N_kjc')

A cell supports its class (M > 0) if the class's share of the cell exceeds beta. With N' pseudo-counts, aCLL is highest,
among all theta_kjc >= N' / (sum over k of N+_kjc), at

    theta_kjc = N+_kjc / (sum over k of N+_kjc),      N+_kjc = max(M_kjc, N')

(theorem 3.8 and equation 28, which print a plus for M's minus). beta and gamma depend on the assumed distribution of
the U_c:

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

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.kernels.arrays import Array, log_sum
from bncli.errors import BncliError

STEP = 1.0 / 32.0
RANGE = 45.0
"""Outside exp(-RANGE) .. exp(RANGE) the integrands are below rounding errors."""


class LinearApproximation(NamedTuple):
    """The slope and the intercept of the linear fit, in nats; arrays of any shape."""

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
    """Return beta and gamma for `n_labels` classes under a prior in the text form of `option_kinds.ClassPairPrior`.

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
        # Dir(a_1, ..., a_K, b) in closed form: the sum S of U_1, ..., U_K is Beta(a_+, b), independent of their shares.
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
    """Return ln theta for contrasts M (..., K), normalised over `axis`, that of the child; finite because N' > 0."""
    floored = np.maximum(contrasts, pseudo_counts)
    return np.asarray(np.log(floored / floored.sum(axis=axis, keepdims=True)))


def acll_scores(counts: Array, beta: Array, pseudo_counts: float) -> Array:
    """Return the terms of aCLL at the best theta, (...), in nats, from counts (..., r, q, K) and beta (...)."""
    contrasts = class_contrasts(counts, beta[..., np.newaxis, np.newaxis, np.newaxis])
    return np.asarray((contrasts * log_theta(contrasts, pseudo_counts, axis=-3)).sum(axis=(-3, -2, -1)))
