"""Rows that do not show all that a network depends on: log P(y | what they show), marginalized over the rest.

    P(y | e) = sum over all values u of the unobserved attributes of P(y, e, u) / sum over c of the same of P(c, e, u)

An unobserved attribute that is nobody's parent has a factor that sums to 1: leaving it out is the sum. Only where a row
lacks an attribute on which another node depends is there more to do; such rows go through
`bncli.engine.inference`, all others are scored by look-ups as ever. Naive Bayes needs nothing but look-ups.

Conventions: rows go through inference so many at a time as keeps its tables small; blocks follow from the rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Tables

ROWS_PER_BLOCK = 1 << 16


@dataclass(frozen=True)
class Network:
    """The tables of a model as log probabilities; `needed`: attributes on which another node depends, ascending."""

    schema: Schema
    tables: Tables
    needed: tuple[int, ...]


def network_to_marginalize(tables: Tables, schema: Schema) -> Network | None:
    """None where the model does not marginalize, or leaving out is all there ever is to do."""
    if not schema.marginalizes:
        return None
    needed = {a for family in tables.families for a in family.attributes[family.child is not None :]}
    return Network(schema, tables, tuple(sorted(needed))) if needed else None


def incomplete_rows(network: Network, codes: dict[int, Codes]) -> Index:
    """The rows, ascending, that lack a needed attribute; codes[i] (N,) belongs to schema attribute i."""
    cardinalities = network.schema.cardinalities
    return np.flatnonzero(np.logical_or.reduce([codes[i] == cardinalities[i] for i in network.needed]))


def log_joint(network: Network, codes: dict[int, Codes], rows: Index) -> Array:
    """ln P(y, what row t shows) of these rows, shape (K, rows)."""
    blocks = [rows[start : start + ROWS_PER_BLOCK] for start in range(0, len(rows), ROWS_PER_BLOCK)]
    return np.concatenate([_block(network, codes, block) for block in blocks], axis=1)


def _block(network: Network, codes: dict[int, Codes], rows: Index) -> Array:
    from bncli.engine.inference.incomplete import (
        incomplete_likelihood,  # loaded late: complete rows do without inference
    )

    nothing: Codes = np.broadcast_to(np.zeros(1, np.uint8), len(rows))
    columns = [codes[i][rows] if i in codes else nothing for i in range(len(network.schema.attributes))]
    likelihood = incomplete_likelihood(Dataset(network.schema, tuple(columns), nothing), network.tables.families)
    return likelihood.log_joint(likelihood.flatten(network.tables))
