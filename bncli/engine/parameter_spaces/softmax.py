"""Log probabilities of a network from free numbers: every distribution is the softmax of its own betas.

    ln theta_kj = beta_kj - ln sum over k' of exp(beta_k'j)

for child value k and parent configuration j, the class among the parents where it is one; the class's own distribution
likewise, over the classes. The way back, for any function f of the tables W = ln theta:

    df/dbeta_kj = df/dW_kj - theta_kj sum over k' of df/dW_k'j

With f the (conditional) log-likelihood, df/dW are (differences of) expected counts, and this is the gradient of
Greiner, Su, Shen & Zhou 2005 (Machine Learning 59, proposition 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.kernels.logspace import log_sum
from bncli.engine.parameter_spaces.coordinates import PerCell
from bncli.engine.structures.structure import Family


@dataclass(frozen=True)
class Softmax(PerCell):
    """beta (K, n_cells), flat: every class has its own, of every family."""

    families: tuple[Family, ...]

    def tables(self, p: Array) -> Array:
        beta = p.reshape(self.log_theta.shape)
        return self._blockwise(lambda b, axis: b - log_sum(b, axis), beta)

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


@dataclass(frozen=True)
class SharedSoftmax:
    """Families whose child does not have the class as a parent have one beta a cell, the others one a class and cell.

    beta flat: (K, cells of the bias and of families with the class), then (cells of families without).
    """

    softmax: Softmax

    @property
    def n_parameters(self) -> int:
        return len(self.generative)

    @cached_property
    def generative(self) -> Array:
        log_theta = self.softmax.log_theta
        return np.concatenate([log_theta[:, self.by_class].ravel(), log_theta[0, ~self.by_class]])

    def tables(self, p: Array) -> Array:
        return self.softmax.tables(self._spread(p))

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.gathered(self.softmax.pull_back(self._spread(p), d_tables))

    def diagonal(self, p: Array, mass: Array) -> Array:
        """sum over entries (y, c) of mass[y, c] (dW[y, c]/dp_q)^2 for every q, mass (K, n_cells)."""
        return self.gathered(self.softmax.curvature(self._spread(p), mass))

    @cached_property
    def by_class(self) -> Mask:
        """Cells that every class has its own beta of."""
        families = self.softmax.families
        return np.repeat([True, *(f.by_class for f in families)], [1, *(f.n_cells for f in families)])

    def _spread(self, p: Array) -> Array:
        """Every entry's beta, flat."""
        beta = np.empty(self.softmax.log_theta.shape)
        own = len(beta) * int(np.count_nonzero(self.by_class))
        beta[:, self.by_class] = p[:own].reshape(len(beta), -1)
        beta[:, ~self.by_class] = p[own:]
        return beta.ravel()

    def gathered(self, entries: Array) -> Array:
        """The sum over the entries that a beta stands for; the transpose of `_spread`."""
        by_entry = entries.reshape(self.softmax.log_theta.shape)
        return np.concatenate([by_entry[:, self.by_class].ravel(), by_entry[:, ~self.by_class].sum(axis=0)])
