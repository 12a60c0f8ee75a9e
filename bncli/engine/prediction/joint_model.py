"""The probability that a network gives to a row, whatever it does not show.

    ln P(x, y) = ln P(y | pi(y)) + sum over attributes i that the model uses of ln theta_i(x_i | pi(i), y)

A value that is not there, or that training never had, is marginalized: ln P of what the row shows. Only a network has
it: parameters that were learnt for P(y | x) alone say nothing of P(x).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import Network, network_of
from bncli.engine.prediction.scoring import Network as Marginalized
from bncli.engine.prediction.scoring import log_joint
from bncli.engine.structures.structure import Family

_LEAST = float(np.finfo(np.float64).tiny)
_ROWS = 1 << 14


class JointModel:
    """ln P(y, x) of rows; ModelError where the model is no network. `used`: the schema's attributes of the codes."""

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        network = network_of(model)
        self._used, self._cardinalities = tuple(used), model.schema.cardinalities
        self._tables = _whole_tables(network, used)
        needed = {a for family in self._tables.families for a in family.attributes[family.child is not None :]}
        self._marginalized = Marginalized(model.schema, self._tables, tuple(sorted(needed)))

    def log_joint(self, codes: Sequence[Codes]) -> Array:
        """Return ln P(y, what row t shows), shape (K, N).

        Codes (N,) of each used attribute, its cardinality = unknown.
        """
        by_attribute = dict(zip(self._used, codes, strict=True))
        n_rows = len(codes[0]) if codes else 0
        result = np.empty((len(self._tables.bias), n_rows))
        for start in range(0, n_rows, _ROWS):
            block = slice(start, start + _ROWS)
            result[:, block] = self._looked_up({a: column[block] for a, column in by_attribute.items()})
        # Rows that lack what another node depends on.
        needed = self._marginalized.needed
        unknown = [by_attribute[a] == self._cardinalities[a] for a in needed]
        rows = np.flatnonzero(np.logical_or.reduce(unknown)) if unknown else np.empty(0, np.intp)
        if len(rows):
            result[:, rows] = log_joint(self._marginalized, by_attribute, rows)
        return result

    def log_p(self, codes: Sequence[Codes]) -> Array:
        """Return ln P(what row t shows), nats, shape (N,)."""
        return np.asarray(np.logaddexp.reduce(self.log_joint(codes), axis=0))

    def _looked_up(self, codes: Mapping[int, Codes]) -> Array:
        """Right for rows that show all that another node depends on; a factor that is nobody's parent sums to 1."""
        n_rows = len(next(iter(codes.values())))
        total = np.repeat(self._tables.bias[:, None], n_rows, axis=1)
        for family, table in zip(self._tables.families, self._tables.weights, strict=True):
            known = [np.minimum(codes[a], self._cardinalities[a] - 1) for a in family.attributes]
            entries = table[cell_numbers(known, family.shape)].T
            if family.child is not None:
                entries = np.where(codes[family.child] == self._cardinalities[family.child], 0.0, entries)
            total += entries
        return total


def _whole_tables(network: Network, used: Sequence[int]) -> Tables:
    """Return the log probabilities of every used attribute and of the class."""
    graph, cardinalities, n_labels = network.structure, network.schema.cardinalities, len(network.schema.labels)
    families, weights = [], []
    for i in used:
        by_class = i in graph.class_children
        family = Family.over((i, *graph.parents[i]), cardinalities, i, by_class)
        logs = np.log(np.maximum(network.theta[i], _LEAST)).reshape(family.n_cells, -1)
        families.append(family)
        weights.append(logs if by_class else np.repeat(logs, n_labels, axis=1))
    of_class = np.log(np.maximum(network.theta_class, _LEAST))
    if not graph.class_parents:
        return Tables(of_class, tuple(families), tuple(weights))
    families.append(Family.over(graph.class_parents, cardinalities))
    weights.append(of_class.reshape(-1, n_labels))
    return Tables(np.zeros(n_labels), tuple(families), tuple(weights))
