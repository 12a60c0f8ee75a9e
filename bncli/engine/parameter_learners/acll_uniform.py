"""Parameters of the highest approximate conditional log-likelihood, the joint probabilities independent and uniform.

In closed form, as quick as counting (see `bncli.engine.structures.acll_approximation`), with beta by the second rule of
`bncli.engine.structures.acll_approximation`. Source: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.generative import acll_tables, closed_form
from bncli.engine.structures.acll_approximation import uniform_approximation
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(counts: Counts, structure: Structure, *, pseudo_counts: float, watch: Watch = silent) -> Parameters:
    """Return `pseudo_counts` N' > 0 is the least that a cell counts.

    One pass more for the conditional log-likelihood.
    """
    beta = uniform_approximation(len(counts.schema.labels)).beta
    return closed_form(counts, acll_tables(counts, structure, beta, pseudo_counts))
