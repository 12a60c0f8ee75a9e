"""Free parameters and the tables they stand for: all that tells one discriminative parameter space from another.

A space gives the tables W (K, n_cells) of a parameter vector p (P,), and the transpose of that map's derivative:

    dCLL / dp_q = sum over y, c of dW[y, c] / dp_q  dCLL / dW[y, c]

Most spaces have one parameter per table entry, p = (K, n_cells) flat; where entries share parameters, `sharing` says
how: each follows one parameter (`Sharing`), or is the sum of those of its predictors, class 0 staying at 0, with
p = (K - 1, M) flat (`Predictors`, `CellPredictors`), or a sum of effects, with p = (K, effects) flat (`Effects`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.parameter_spaces.effects import Effects
from bncli.engine.parameter_spaces.predictors import CellPredictors, Predictors


@dataclass(frozen=True)
class Sharing:
    """W[y, c] = scale[y, c] p[index[y, c]], both arrays (K, n_cells): every entry follows one of P parameters."""

    scale: Array
    index: Index
    n_parameters: int

    def tables(self, p: Array) -> Array:
        return self.scale * p[self.index]

    @property
    def factors(self) -> list[Any]:
        """A sparse matrix (K n_cells, P) that makes tables of p."""
        from scipy.sparse import csr_array

        entries = (self.scale.ravel(), (np.arange(self.index.size), self.index.ravel()))
        return [csr_array(entries, shape=(self.index.size, self.n_parameters))]

    def pull_back(self, d_tables: Array) -> Array:
        sums = np.bincount(self.index.ravel(), (self.scale * d_tables).ravel(), self.n_parameters)
        return sums.astype(np.float64)


class Parameterisation(Protocol):
    """What every optimization needs of a parameter space."""

    @property
    def n_parameters(self) -> int: ...

    @property
    def generative(self) -> Array:
        """The parameters whose tables score like the generative model, shape (P,)."""
        ...

    def tables(self, p: Array) -> Array:
        """W (K, n_cells) of p (P,)."""
        ...

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        """dCLL/dp (P,) from dCLL/dW (K, n_cells), at p."""
        ...


class Coordinates(Parameterisation, Protocol):
    """A parameter space with all that the preconditioners for complete rows need of it."""

    def push(self, p: Array, v: Array) -> Array:
        """The derivative of the tables (K, n_cells) at p along v (P,)."""
        ...

    @property
    def sharing(self) -> Sharing | Predictors | CellPredictors | Effects | None:
        """How entries share parameters; None for one parameter per entry."""
        ...

    @property
    def is_scaled(self) -> bool:
        """Whether every entry follows its own parameter alone, so that `scale` is the whole derivative."""
        ...

    @property
    def scale(self) -> Array:
        """dW[y, c]/dp[y, c], (1 or K, n_cells), one row where all classes have the same; unused where entries share.

        Ones for effects: one for each of them.
        """
        ...

    def curvature(self, p: Array, mass: Array) -> Array:
        """sum over c' of mass[y, c'] (dW[y, c']/dp[y, c])^2, shapes (1 or K, n_cells); used where not `is_scaled`."""
        ...

    def jacobian(self, p: Array, cells: Index) -> Array:
        """dW[y, c]/dp[y, c'] for c, c' in `cells`, at p, shape (1 or K, cells, cells); used where not `is_scaled`.

        What a parameter adds to all classes alike is left out: it changes no probability.
        """
        ...


class Linear(Coordinates, Protocol):
    """A parameter space whose tables are linear in p, as directions need it."""

    @property
    def factors(self) -> list[Any]:
        """Sparse matrices whose product (K n_cells, P) makes tables of p, the last to be applied first."""
        ...


@dataclass(frozen=True)
class PerCell:
    """What spaces with one parameter per table entry share; `log_theta` (K, n_cells) are the generative tables."""

    log_theta: Array

    @property
    def n_parameters(self) -> int:
        return self.log_theta.size

    @property
    def generative(self) -> Array:
        return self.log_theta.ravel()

    @property
    def sharing(self) -> Sharing | Predictors | CellPredictors | None:
        return None

    def tables(self, p: Array) -> Array:
        return self.scale * p.reshape(self.log_theta.shape)

    def push(self, p: Array, v: Array) -> Array:
        return self.tables(v)

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, diags_array

        return [csr_array(diags_array(np.broadcast_to(self.scale, self.log_theta.shape).ravel()))]

    @property
    def is_scaled(self) -> bool:
        return True

    @property
    def scale(self) -> Array:
        return np.ones((1, self.log_theta.shape[1]))

    def curvature(self, p: Array, mass: Array) -> Array:
        return mass * self.scale**2

    def jacobian(self, p: Array, cells: Index) -> Array:
        return np.asarray(self.scale[:, cells, np.newaxis] * np.eye(len(cells)))
