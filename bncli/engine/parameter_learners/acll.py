"""Parameters of the highest approximate conditional log-likelihood, the joint probabilities Dirichlet(1, ..., 1, N).

In closed form, as quick as counting (see `bncli.engine.contrast`), with beta for the N training rows by the first rule
of `bncli.engine.approximation`. Source: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8.
"""

from __future__ import annotations

from bncli.engine import acll_parameters
from bncli.engine.approximation import dirichlet
from bncli.engine.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.structure import Structure
from bncli.watch import Watch, silent


def learn(counts: Counts, structure: Structure, *, pseudo_counts: float, watch: Watch = silent) -> Parameters:
    """`pseudo_counts` N' > 0 is the least that a cell counts; one pass more for the conditional log-likelihood."""
    line = dirichlet(counts.data.n_labels, counts.class_counts().sum())
    return acll_parameters.learn(counts, structure, line.beta, pseudo_counts)
