"""Network parameters in closed form, as quick as counting: `--param map`, `acll` and `acll-uniform`.

map            smoothed relative frequencies (`bncli.engine.parameters.smoothing`)
acll           the highest approximate conditional log-likelihood (`bncli.engine.structures.acll_approximation`), with
               joint probabilities distributed as Dirichlet(1, ..., 1, N), or by another prior
acll-uniform   the same, with independent uniform joint probabilities

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
    """Return the smoothed relative frequencies; their conditional log-likelihood takes one pass more."""
    return closed_form(counts, generative_tables(counts, structure, smoothing))


def learn_acll(
    counts: Counts,
    structure: Structure,
    *,
    pseudo_counts: float,
    class_pair_prior: str | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return the parameters with contrasts of at least `pseudo_counts` N' > 0 in every cell.

    `class_pair_prior` replaces the Dirichlet prior (`prior_approximation`).
    """
    k, n = len(counts.schema.labels), counts.class_counts().sum()
    line = dirichlet_approximation(k, n) if class_pair_prior is None else prior_approximation(class_pair_prior, k)
    return closed_form(counts, acll_tables(counts, structure, line.beta, pseudo_counts))


def learn_acll_uniform(
    counts: Counts, structure: Structure, *, pseudo_counts: float, watch: Watch = silent
) -> Parameters:
    """Return the parameters with contrasts of at least `pseudo_counts` N' > 0 in every cell."""
    beta = uniform_approximation(len(counts.schema.labels)).beta
    return closed_form(counts, acll_tables(counts, structure, beta, pseudo_counts))
