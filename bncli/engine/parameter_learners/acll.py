"""Parameters of the highest approximate conditional log-likelihood, the joint probabilities Dirichlet(1, ..., 1, N).

In closed form, as quick as counting (see `bncli.engine.structures.acll_approximation`), with beta
for the N training rows by the first rule given there. Source: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.generative import acll_tables, closed_form
from bncli.engine.structures.acll_approximation import dirichlet_approximation, prior_approximation
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    structure: Structure,
    *,
    pseudo_counts: float,
    class_pair_prior: str | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return `pseudo_counts` N' > 0 is the least that a cell counts; one pass more for the conditional log-likelihood.

    `class_pair_prior`: another distribution than the usual one (`prior_approximation`).
    """
    k, n = len(counts.schema.labels), counts.class_counts().sum()
    beta = (
        dirichlet_approximation(k, n) if class_pair_prior is None else prior_approximation(class_pair_prior, k)
    ).beta
    return closed_form(counts, acll_tables(counts, structure, beta, pseudo_counts))
