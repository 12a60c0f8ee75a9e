"""Tables of a Bayesian network in closed form: each distribution is made from the counts of its family alone.

    S[t, y] = ln P(y | pi(y)) + sum over children i of the class of ln theta_i(x_i | pi(i), y)

The factors of all other nodes do not contain the class and cancel in P(y | x), unless missing values are marginalized.
In that case these nodes have tables too: the counts summed over the class, with the same column for every class. If the
class has attribute parents, its distribution is a table over them and the bias is 0. Each table is made from the rows
that have its whole family (available cases).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array, cell_numbers
from bncli.engine.kernels.passes import class_differences, log_likelihood
from bncli.engine.kikuchi.model_paths import region_tables
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.smoothing import log_conditional
from bncli.engine.structures.scores import class_contrasts, log_theta
from bncli.engine.structures.structure import Dag, Family, Regions, Structure
from bncli.errors import BncliError

ROWS_PER_SLICE = 1 << 13
"""Rows of a slice of the log-likelihood, few enough for their scores and the numbers looked up to stay in cache."""
LogTheta = Callable[[Array, int], Array]
"""Maps counts (..., K) and the child's axis to ln theta, of the same shape, normalised over that axis."""
THETA = 1.0
"""The default number of prior rows that are spread over the cells of a region."""


def generative_tables(counts: Counts, structure: Structure, rule: str) -> Tables:
    """Return tables of relative frequencies, smoothed by `rule` (see `bncli.engine.parameters.smoothing`)."""
    return family_tables(counts, structure, lambda table, axis: log_conditional(table, rule, axis))


def acll_tables(counts: Counts, structure: Structure, beta: Array, pseudo_counts: float) -> Tables:
    """Return the tables of highest approximate conditional log-likelihood.

    theta of each family is proportional to the class contrasts of its counts, or `pseudo_counts` where these are
    smaller (`bncli.engine.structures.scores`).
    """
    return family_tables(
        counts, structure, lambda table, axis: log_theta(class_contrasts(table, beta), pseudo_counts, axis)
    )


def family_tables(counts: Counts, structure: Structure, log_theta: LogTheta) -> Tables:
    """Return the tables ln theta of every family that scoring needs, after at most one counting pass."""
    schema = counts.schema
    structure = only_network(structure)
    families = structure.families(schema.cardinalities, all_factors=schema.marginalizes)
    weights = []
    for family, table in zip(families, counts.tables([family.attributes for family in families]), strict=True):
        if family.by_class:
            # the child is the first axis; a table over the class's parents is normalised over the classes, the last one
            weights.append(log_theta(table, -1 if family.child is None else 0).reshape(family.n_cells, -1))
        else:
            shared = log_theta(table.sum(axis=-1, keepdims=True), 0).reshape(family.n_cells, 1)
            weights.append(np.repeat(shared, table.shape[-1], axis=1))
    prior = log_theta(counts.class_counts(), 0)
    return Tables(np.zeros_like(prior) if structure.class_parents else prior, families, tuple(weights))


def only_network(structure: Structure) -> Dag:
    """Return the structure, or raise BncliError for regions, which are not a Bayesian network."""
    if isinstance(structure, Regions):
        what = "parameters of a Bayesian network cannot be learned for regions"
        raise BncliError(what, hint="use --param kbma, kmap or discriminative")
    return structure


def generative_start(counts: Counts, structure: Structure, smoothing: str | None, theta: float | None) -> Tables:
    """Return the tables of the generative model of a network, which needs `smoothing`, or of regions (`theta`).

    Raises BncliError for regions with attributes in coarser binnings, which have no generative model.
    """
    if is_regrouped(structure):
        what = "regions with two binnings of one attribute have no generative model as a starting point"
        raise BncliError(what, hint="use --init zero")
    if isinstance(structure, Regions):
        return region_tables(counts, structure, THETA if theta is None else theta)
    assert smoothing is not None
    return generative_tables(counts, structure, smoothing)


def is_regrouped(structure: Structure) -> bool:
    """Return whether the structure consists of regions with some attribute in a coarser binning."""
    return isinstance(structure, Regions) and structure.is_regrouped


def closed_form(counts: Counts, tables: Tables) -> Parameters:
    """Return tables that need no optimization as `Parameters`, with their conditional log-likelihood.

    The likelihood takes one pass over the rows; it is NaN if only counts are known.
    """
    if not counts.has_rows:
        cll = math.nan
    elif counts.any_missing:
        from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood  # complete rows do not need it

        cll = IncompleteLikelihood(counts.data, tables.families).value_and_gradient(tables.cells)[0]
    else:
        parts = [class_differences(table) for table in (tables.bias[:, np.newaxis], *(w.T for w in tables.weights))]
        cll = float(counts.data.reduce(_log_likelihood, tables.families, parts))
    return Parameters(tables, tables.n_parameters, cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def _log_likelihood(block: RowBlock, families: Sequence[Family], parts: Sequence[Sequence[Array]]) -> float:
    """Return the CLL of the rows of one block, without fusing them, which would cost several passes."""
    cll = 0.0
    for rows in block.slices(ROWS_PER_SLICE):
        labels = block.labels[rows]
        cells = [np.zeros(len(labels), np.intp)]
        cells += [cell_numbers([block.codes[a][rows] for a in family.attributes], family.shape) for family in families]
        cll += log_likelihood(cells, labels, None if block.weights is None else block.weights[rows], parts)
    return cll
