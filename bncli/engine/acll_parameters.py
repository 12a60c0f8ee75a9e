"""The tables of a network whose parameters maximise the approximate conditional log-likelihood, in closed form.

    S[t, y] = ln theta(y | pi(y)) + sum over children i of the class of ln theta_i(x_i | pi(i), y)

with theta as in `bncli.engine.contrast`: the contrasts of the counts, at least N', made to sum to 1. The factors of
all other nodes do not contain the class and cancel in P(y | x).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.approximation import Array
from bncli.engine.contrast import log_theta
from bncli.engine.counts import Counts
from bncli.engine.likelihood import conditional_likelihood
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.structure import Structure


def learn(counts: Counts, structure: Structure, beta: Array, pseudo_counts: float) -> Parameters:
    """The tables; one counting pass for what is not known yet, and one pass more for their likelihood."""
    tables = acll_tables(counts, structure, beta, pseudo_counts)
    likelihood = conditional_likelihood(counts.data, tables.families)
    cll, _ = likelihood.value_and_gradient(likelihood.flatten(tables))
    return Parameters(tables, tables.n_parameters, cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def acll_tables(counts: Counts, structure: Structure, beta: Array, pseudo_counts: float) -> Tables:
    """ln theta of every family, and of the class, whose table over its parents, if it has any, takes its place."""
    families = structure.families(counts.data.schema.cardinalities)
    weights = tuple(
        log_theta(table, beta, pseudo_counts, axis=-1 if family.child is None else 0).reshape(family.n_cells, -1)
        for family, table in zip(families, counts.tables([f.attributes for f in families]), strict=True)
    )
    prior = log_theta(counts.class_counts(), beta, pseudo_counts, axis=0)
    return Tables(np.zeros_like(prior) if structure.class_parents else prior, families, weights)
