"""Probabilities from a network for rows with missing values: ln P(y, e) and ln P(e) of the observed values e.

    P(y, e) = sum over all values u of the unobserved attributes of P(y, e, u)

The factor of an unobserved attribute without children sums to 1 and is left out. Only rows in which an attribute with
children is unobserved need inference (`engine.inference`); all others are scored by table look-ups. For naive Bayes
look-ups always suffice.

`log_joint` is for models that marginalize missing values. A `JointModel` computes ln P(x, y) and ln P(x) for any model
that is a network:

    ln P(x, y) = ln P(y | pi(y)) + sum over attributes i that the model uses of ln theta_i(x_i | pi(i), y)

Parameters that were learned for P(y | x) alone do not determine P(x).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index, cell_numbers
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import network_of
from bncli.engine.structures.structure import Family

ROWS_PER_BLOCK = 1 << 16
"""The maximum number of rows that go through inference at a time."""
LOOK_UP_ROWS = 1 << 14
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class NetworkTables:
    """The log-probabilities of a network.

    needed: the attributes, ascending, that are parents of another node; rows that lack one of them need inference.
    """

    schema: Schema
    tables: Tables
    needed: tuple[int, ...]

    @classmethod
    def of(cls, tables: Tables, schema: Schema) -> NetworkTables:
        needed = {a for family in tables.families for a in family.attributes[family.child is not None :]}
        return cls(schema, tables, tuple(sorted(needed)))


def network_to_marginalize(tables: Tables, schema: Schema) -> NetworkTables | None:
    """Return the network by which missing values are marginalized.

    Returns None if the schema does not marginalize missing values, or if doing so never requires inference.
    """
    network = NetworkTables.of(tables, schema) if schema.marginalizes else None
    return network if network is not None and network.needed else None


def incomplete_rows(network: NetworkTables, codes: Mapping[int, Codes]) -> Index:
    """Return the indices of the rows, ascending, that lack a needed attribute.

    codes[i] (N,): the codes of schema attribute i.
    """
    cardinalities = network.schema.cardinalities
    return np.flatnonzero(np.logical_or.reduce([codes[i] == cardinalities[i] for i in network.needed]))


def log_joint(network: NetworkTables, codes: Mapping[int, Codes], rows: Index) -> Array:
    """Compute ln P(y, e_t), shape (K, rows), by inference, where e_t are the observed values of row t.

    codes[i] (N,): the codes of schema attribute i. rows: the indices of the rows for which it is computed. Raises
    BncliError if inference would need tables that are too large.
    """
    from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood

    blocks = []
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        block = rows[start : start + ROWS_PER_BLOCK]
        nothing: Codes = np.broadcast_to(np.zeros(1, np.uint8), len(block))
        columns = [codes[i][block] if i in codes else nothing for i in range(len(network.schema.attributes))]
        likelihood = IncompleteLikelihood(Dataset(network.schema, tuple(columns), nothing), network.tables.families)
        blocks.append(likelihood.log_joint(network.tables.cells))
    return np.concatenate(blocks, axis=1)


class ExpectedCells(NamedTuple):
    """The possible cells of one family in rows with the same missing attributes, and the probability of each cell.

    rows (N,): the indices of the rows. cells (N, P, C): the cell numbers for P completions of the parents and C of the
    child. p (K, N, P, C): the probabilities of the cells given the class and the observed values.
    """

    family: int
    rows: Index
    cells: Index
    p: Array


def expected_cells(network: NetworkTables, codes: Mapping[int, Codes], log_p: Array) -> Iterator[ExpectedCells]:
    """Yield the possible cells of every family on which ln P(y, e_t) depends, with their probabilities.

        P(cell c of f | e_t, y) = P(y, e_t, u) / P(y, e_t),    u: the values of c that e_t does not contain

    codes[i] (N,): the codes of schema attribute i. log_p (K, N): ln P(y, e_t). Cost: inference in one row per
    possible cell.
    """
    from bncli.engine.inference.program import supporting

    cardinalities, n_rows = network.schema.cardinalities, log_p.shape[1]
    hidden = {a: codes[a] == cardinalities[a] for family in network.tables.families for a in family.attributes}
    needed = supporting(network.tables.families, hidden, n_rows)
    for f, (family, is_needed) in enumerate(zip(network.tables.families, needed, strict=True)):
        # (attributes of the family, rows): which are unknown; rows of one pattern are completed alike
        patterns = np.stack([hidden[a] for a in family.attributes])
        for pattern in np.unique(patterns[:, is_needed], axis=1).T:
            rows = np.flatnonzero(is_needed & (patterns == pattern[:, np.newaxis]).all(axis=0))
            unknown = [a for a, is_hidden in zip(family.attributes, pattern, strict=True) if is_hidden]
            sizes = [cardinalities[a] for a in unknown]
            n_values = math.prod(sizes)
            # all joint values of the unknown attributes, the first as the slowest digit
            values = dict(zip(unknown, np.indices(sizes).reshape(len(sizes), n_values), strict=True))
            n_of_child = cardinalities[family.child] if family.child in unknown else 1
            step = max(1, ROWS_PER_BLOCK // n_values)
            for block in np.split(rows, range(step, len(rows), step)):
                # each row is repeated n_values times, once with each joint value
                completed = {a: np.repeat(column[block], n_values) for a, column in codes.items()}
                completed |= {a: np.tile(value, len(block)).astype(codes[a].dtype) for a, value in values.items()}
                cells = cell_numbers([completed[a] for a in family.attributes], family.shape)
                p = np.ones((len(log_p), len(cells)))
                if unknown:
                    with_values = log_joint(network, completed, np.arange(len(cells)))
                    p = np.exp(with_values - np.repeat(log_p[:, block], n_values, axis=1))
                shape = (len(block), n_of_child, n_values // n_of_child)  # the child is the first of the family
                yield ExpectedCells(
                    f, block, np.swapaxes(cells.reshape(shape), 1, 2), np.swapaxes(p.reshape(len(p), *shape), 2, 3)
                )


class JointModel:
    """A network that computes ln P(y, x) of rows; `used`: the indices of the attributes whose codes are given.

    Raises ModelError if the model is not a network or is calibrated.
    """

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        network = network_of(model)
        self._used, self._cardinalities = tuple(used), model.schema.cardinalities
        # the log probabilities of every used attribute and of the class
        graph, n_labels = network.structure, len(network.schema.labels)
        families, weights = [], []
        for i in used:
            by_class = i in graph.class_children
            family = Family.over((i, *graph.parents[i]), self._cardinalities, i, by_class)
            logs = np.log(np.maximum(network.theta[i], _TINY)).reshape(family.n_cells, -1)
            families.append(family)
            weights.append(logs if by_class else np.repeat(logs, n_labels, axis=1))
        bias = np.log(np.maximum(network.theta_class, _TINY))
        if graph.class_parents:
            families.append(Family.over(graph.class_parents, self._cardinalities))
            weights.append(bias.reshape(-1, n_labels))
            bias = np.zeros(n_labels)
        self._network = NetworkTables.of(Tables(bias, tuple(families), tuple(weights)), model.schema)

    def log_joint(self, codes: Sequence[Codes]) -> Array:
        """Return ln P(y, e_t), shape (K, N), where e_t are the observed values of row t.

        codes: (N,) for each attribute used; a code equal to the cardinality means that the value is unknown.
        """
        by_attribute = dict(zip(self._used, codes, strict=True))
        n_rows = len(codes[0]) if codes else 0
        result = np.empty((len(self._network.tables.bias), n_rows))
        tables = self._network.tables
        for start in range(0, n_rows, LOOK_UP_ROWS):
            # look-ups are correct for rows in which every attribute with children is observed
            block = {a: column[start : start + LOOK_UP_ROWS] for a, column in by_attribute.items()}
            total = np.repeat(tables.bias[:, None], min(LOOK_UP_ROWS, n_rows - start), axis=1)
            for family, table in zip(tables.families, tables.weights, strict=True):
                # any code in place of an unknown one: the entry is replaced, or the row goes through inference
                known = [np.minimum(block[a], self._cardinalities[a] - 1) for a in family.attributes]
                entries = table[cell_numbers(known, family.shape)].T
                if family.child is not None:
                    entries = np.where(block[family.child] == self._cardinalities[family.child], 0.0, entries)
                total += entries
            result[:, start : start + LOOK_UP_ROWS] = total
        if self._network.needed:
            rows = incomplete_rows(self._network, by_attribute)
            if len(rows):
                result[:, rows] = log_joint(self._network, by_attribute, rows)
        return result

    def log_p(self, codes: Sequence[Codes]) -> Array:
        """Return ln P(e_t), shape (N,), where e_t are the observed values of row t; codes as in `log_joint`."""
        return np.asarray(np.logaddexp.reduce(self.log_joint(codes), axis=0))
