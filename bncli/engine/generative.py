"""Tables of a Bayesian network whose probabilities are smoothed relative frequencies.

    S[t, y] = ln P(y | pi(y)) + sum over children i of the class of ln theta_i(x_i | pi(i), y)

The factors of all other nodes do not contain the class and cancel in P(y | x). Where the class has attribute
parents, its distribution is a table over them and the bias is 0.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counts import Counts
from bncli.engine.model import Tables
from bncli.engine.smoothing import log_conditional
from bncli.engine.structure import Family, Structure


def generative_tables(counts: Counts, structure: Structure, rule: str) -> Tables:
    """Log probabilities of the network's families, smoothed by `rule`; one counting pass for what is not known yet."""
    families = structure.families(counts.data.schema.cardinalities)
    tables = counts.tables([family.attributes for family in families])
    weights = tuple(
        log_conditional(table, rule, axis=-1 if family.child is None else 0).reshape(family.n_cells, -1)
        for family, table in zip(families, tables, strict=True)
    )
    prior = log_conditional(counts.class_counts(), rule, axis=0)
    return Tables(np.zeros_like(prior) if _class_has_table(families) else prior, families, weights)


def _class_has_table(families: tuple[Family, ...]) -> bool:
    return any(family.child is None for family in families)
