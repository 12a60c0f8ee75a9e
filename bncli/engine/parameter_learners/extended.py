"""Extended parameters: tables that stay log probabilities of a proper network while the conditional likelihood rises.

    W_f[k j, y] = beta_kjy - ln sum over k' of exp(beta_k'jy),    b[y] = beta_y - ln sum over y' of exp(beta_y')

for child value k and parent configuration j (Greiner, Su, Shen & Zhou 2005, Machine Learning 59: ELR). The table over
the class's attribute parents, if it has any, is normalised over the class. The generative start is beta = ln theta.
On perfect graphs the optimum equals that of free tables; on others, proper networks may be unable to reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.ascent import Ascent, ParameterSpace, ascend
from bncli.engine.coordinates import Index, PerCell
from bncli.engine.counts import Counts
from bncli.engine.flops import of_networks
from bncli.engine.generative import generative_tables
from bncli.engine.likelihood import conditional_likelihood
from bncli.engine.model import Parameters
from bncli.engine.structure import Family, Structure
from bncli.watch import Watch, silent

Array = NDArray[np.float64]


def learn(counts: Counts, structure: Structure, *, smoothing: str, ascent: Ascent, watch: Watch = silent) -> Parameters:
    """Network tables of highest penalised conditional likelihood."""
    return ascend(space(counts, structure, smoothing=smoothing), ascent, watch)


def space(counts: Counts, structure: Structure, *, smoothing: str) -> ParameterSpace:
    """Tables of log probabilities."""
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    costs = of_networks(tables.families, counts.data.n_rows, counts.data.n_labels)
    return ParameterSpace(likelihood, _Softmax(likelihood.flatten(tables), tables.families), costs)


@dataclass(frozen=True)
class _Softmax(PerCell):
    """beta (K, n_cells), flat."""

    families: tuple[Family, ...]

    def tables(self, p: Array) -> Array:
        beta = p.reshape(self.log_theta.shape)
        return self._blockwise(lambda b, axis: b - _log_sum(b, axis), beta)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        def through_softmax(d: Array, log_theta: Array, axis: int) -> Array:
            return np.asarray(d - np.exp(log_theta) * d.sum(axis=axis, keepdims=True))

        return self._blockwise(through_softmax, d_tables, self.tables(p)).ravel()

    def push(self, p: Array, v: Array) -> Array:
        def through_softmax(b: Array, log_theta: Array, axis: int) -> Array:
            return np.asarray(b - (np.exp(log_theta) * b).sum(axis=axis, keepdims=True))

        return self._blockwise(through_softmax, v.reshape(self.log_theta.shape), self.tables(p))

    @property
    def is_scaled(self) -> bool:
        return False

    def curvature(self, p: Array, mass: Array) -> Array:
        def through_softmax(m: Array, log_theta: Array, axis: int) -> Array:
            if axis == 0:
                return m
            theta = np.exp(log_theta)
            return np.asarray(m * (1 - theta) ** 2 + (m.sum(axis=axis, keepdims=True) - m) * theta**2)

        return self._blockwise(through_softmax, np.broadcast_to(mass, self.log_theta.shape), self.tables(p))

    def jacobian(self, p: Array, cells: Index) -> Array:
        """dW[c]/dbeta[c'] = 1[c = c'] - theta[c'] where c and c' have the same normaliser, per class.

        Entries normalised over the class are free: what their normaliser adds to all classes changes no probability.
        """
        groups = self._normalisers()[cells]
        theta = np.where(groups < 0, 0.0, np.exp(self.tables(p)[:, cells]))
        same = (groups[:, np.newaxis] == groups).astype(np.float64)
        coupled: Array = np.eye(len(cells)) - same * theta[:, np.newaxis, :]
        return coupled[:1] if bool((theta == theta[0]).all()) else coupled

    def _normalisers(self) -> Index:
        """A number for every cell: cells with the same number are normalised together (-1: over the class only).

        A bias that a table over the class's parents replaces is 0 whatever its beta: as if normalised by itself.
        """
        replaced = any(family.child is None for family in self.families)
        numbers = [np.array([0 if replaced else -1])]
        used = 1
        for family in self.families:
            n_columns = family.n_cells // family.shape[0] if family.child is not None else 0
            columns = np.arange(family.n_cells) % n_columns + used if n_columns else np.full(family.n_cells, -1)
            numbers.append(columns)
            used += n_columns
        return np.concatenate(numbers)

    def _blockwise(self, function: Callable[..., Array], *cells: Array) -> Array:
        """`function(*blocks, axis)` of each table's entries, `axis` the one over which its probabilities sum to 1."""
        out = np.zeros(self.log_theta.shape)
        if all(family.child is not None for family in self.families):  # else the class's table is its distribution
            out[:, :1] = function(*(c[:, :1] for c in cells), 0)
        start = 1
        for family in self.families:
            columns = slice(start, start + family.n_cells)
            shape = (len(out), family.shape[0] if family.child is not None else 1, -1)
            blocks = (c[:, columns].reshape(shape) for c in cells)
            result = function(*blocks, 1 if family.child is not None else 0)
            out[:, columns] = result.reshape(len(out), -1)
            start = columns.stop
        return out


def _log_sum(values: Array, axis: int) -> Array:
    """ln sum exp over `axis`, kept as an axis of length 1."""
    highest = values.max(axis=axis, keepdims=True)
    return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=axis, keepdims=True)))
