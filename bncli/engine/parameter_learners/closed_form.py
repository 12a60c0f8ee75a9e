"""Network parameters in closed form: `--param map`, `acll` and `acll-uniform`.

map            smoothed relative frequencies (`bncli.engine.parameters.smoothing`)
acll           the maximum of the approximate conditional log-likelihood (`bncli.engine.structures.acll_approximation`),
               if joint probabilities follow Dirichlet(1, ..., 1, N) or another prior
acll-uniform   the same, if joint probabilities are independent and uniform

Source of the last two: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.generative import acll_tables, closed_form, generative_tables
from bncli.engine.structures.acll_approximation import (
    dirichlet_approximation,
    prior_approximation,
    uniform_approximation,
)
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn_map(counts: Counts, structure: Structure, *, smoothing: str, watch: Watch = silent) -> Parameters:
    """Return smoothed relative frequencies; computing their conditional log-likelihood takes a pass over the rows."""
    return closed_form(counts, generative_tables(counts, structure, smoothing))


def learn_acll(
    counts: Counts,
    structure: Structure,
    *,
    pseudo_counts: float,
    class_pair_prior: str | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return the parameters that maximise aCLL, with `pseudo_counts` N' > 0.

    `class_pair_prior` replaces the prior Dirichlet(1, ..., 1, N) (`prior_approximation`).
    """
    k, n = len(counts.schema.labels), counts.class_counts().sum()
    line = dirichlet_approximation(k, n) if class_pair_prior is None else prior_approximation(class_pair_prior, k)
    return closed_form(counts, acll_tables(counts, structure, line.beta, pseudo_counts))


def learn_acll_uniform(
    counts: Counts, structure: Structure, *, pseudo_counts: float, watch: Watch = silent
) -> Parameters:
    """Return the parameters that maximise aCLL under independent uniform priors, with `pseudo_counts` N' > 0."""
    beta = uniform_approximation(len(counts.schema.labels)).beta
    return closed_form(counts, acll_tables(counts, structure, beta, pseudo_counts))
