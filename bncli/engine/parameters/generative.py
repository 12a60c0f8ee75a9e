"""Tables of a Bayesian network in closed form: each distribution is made from the counts of its family alone.

    S[t, y] = ln P(y | pi(y)) + sum over children i of the class of ln theta_i(x_i | pi(i), y)

The factors of all other nodes do not contain the class and cancel in P(y | x), unless missing values are to be
marginalized: then these nodes have tables too, the counts summed over the class, with a column alike for every class.
Where the class has attribute parents, its distribution is a table over them and the bias is 0.

Each table is made from the rows that have its whole family (available cases).

The tables of a network whose parameters maximise the approximate conditional log-likelihood, in closed form.

theta of each family is as in `acll_approximation`: the contrasts of its counts, at least N', made to sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.kernels.passes import log_likelihood, wide
from bncli.engine.kikuchi.model_paths import region_tables
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameters.smoothing import log_conditional
from bncli.engine.structures.acll_approximation import class_contrasts, log_theta
from bncli.engine.structures.structure import Dag, Family, Regions, Structure
from bncli.errors import BncliError

ROWS_PER_SLICE = 1 << 13
"""Rows whose log-likelihood is taken at a time: their scores, and the numbers looked up, stay in the cache."""
LogTheta = Callable[[Array, int], Array]
"""From counts (..., K) and the child's axis to ln theta, the same shape, normalised over that axis."""
THETA = 1.0
"""Rows spread over the cells of a region, unless told."""


def generative_tables(counts: Counts, structure: Structure, rule: str) -> Tables:
    """Return smoothed relative frequencies by `rule` (see `bncli.engine.parameters.smoothing`)."""
    return family_tables(counts, structure, lambda table, axis: log_conditional(table, rule, axis))


def family_tables(counts: Counts, structure: Structure, log_theta: LogTheta) -> Tables:
    """Return ln theta of every family that scoring needs; one counting pass for what is not known yet."""
    schema = counts.schema
    structure = only_network(structure)
    families = structure.families(schema.cardinalities, whole=schema.marginalizes)
    tables = counts.tables([family.attributes for family in families])
    weights = tuple(_weights(family, table, log_theta) for family, table in zip(families, tables, strict=True))
    prior = log_theta(counts.class_counts(), 0)
    return Tables(np.zeros_like(prior) if structure.class_parents else prior, families, weights)


def _weights(family: Family, table: Array, log_theta: LogTheta) -> Array:
    """Return ln theta of one family, (cells, K)."""
    if family.by_class:
        return log_theta(table, -1 if family.child is None else 0).reshape(family.n_cells, -1)
    alike = log_theta(table.sum(axis=-1, keepdims=True), 0).reshape(family.n_cells, 1)
    return np.repeat(alike, table.shape[-1], axis=1)


def only_network(structure: Structure) -> Dag:
    """Raise BncliError for regions, which are no Bayesian network."""
    if isinstance(structure, Regions):
        what = "these parameters are those of a Bayesian network and cannot be learnt on regions"
        raise BncliError(what, hint="use --param kbma, kmap or discriminative")
    return structure


def generative_start(counts: Counts, structure: Structure, smoothing: str | None, theta: float | None) -> Tables:
    """Return the generative model of a network, which needs `smoothing`, or of regions, which may have a `theta`."""
    if is_regrouped(structure):
        what = "regions that see an attribute both finely and coarsely have no generative model to start from"
        raise BncliError(what, hint="use --init zero")
    if isinstance(structure, Regions):
        return region_tables(counts, structure, THETA if theta is None else theta)
    assert smoothing is not None
    return generative_tables(counts, structure, smoothing)


def is_regrouped(structure: Structure) -> bool:
    """Return whether regions have some attribute in a coarser binning than it is cut."""
    return isinstance(structure, Regions) and structure.is_regrouped


def closed_form(counts: Counts, tables: Tables) -> Parameters:
    """Return what is told of tables that need no optimization.

    One pass over the rows for their conditional log-likelihood.

    That is not a number (NaN) where the rows are not there.
    """
    cll = _conditional_log_likelihood(counts, tables)
    return Parameters(tables, tables.n_parameters, cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def _conditional_log_likelihood(counts: Counts, tables: Tables) -> float:
    if not counts.has_rows:
        return math.nan
    if counts.any_missing:
        from bncli.engine.inference.row_blocks import incomplete_likelihood  # rows without missing values do without

        incomplete = incomplete_likelihood(counts.data, tables.families)
        return incomplete.value_and_gradient(incomplete.flatten(tables))[0]
    parts = [wide(table) for table in (tables.bias[:, np.newaxis], *(w.T for w in tables.weights))]
    return float(counts.data.reduce(_of_block, tables.families, parts))


def _of_block(block: RowBlock, families: Sequence[Family], parts: Sequence[Sequence[Array]]) -> float:
    """Of the rows of one block. Fusing them, as for repeated passes, costs several times as much as one pass."""
    cll = 0.0
    for rows in block.slices(ROWS_PER_SLICE):
        labels = block.labels[rows]
        cells = [np.zeros(len(labels), np.intp)]
        cells += [cell_numbers([block.codes[a][rows] for a in family.attributes], family.shape) for family in families]
        cll += log_likelihood(cells, labels, None if block.weights is None else block.weights[rows], parts)
    return cll


def acll_tables(counts: Counts, structure: Structure, beta: Array, pseudo_counts: float) -> Tables:
    """Return ln theta of every family that contains the class; one counting pass for what is not known yet."""
    return family_tables(
        counts, structure, lambda table, axis: log_theta(class_contrasts(table, beta), pseudo_counts, axis)
    )
