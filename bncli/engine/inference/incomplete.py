"""The exact likelihood of tables on rows with missing values: what is not observed is marginalized.

    CLL = sum over rows t of w_t ln P(y_t | e_t),    LL = sum over rows t of w_t ln P(y_t, e_t)
    P(y, e_t) = sum over completions x of e_t of exp(W_0[y] + sum over families f of W_f[cell_f(x), y])

e_t are the observed codes of row t; a missing value has the code one past the last. The W are normalised log CPTs, one
for every node of the network. With r[t, y] the derivative of the value with respect to ln P(y, e_t), which is w_t
(1[y_t = y] - P(y | e_t)) for the CLL and w_t 1[y_t = y] for LL,

    d/dW_f[c, y] = sum over rows t of r[t, y] P(cell_f = c | e_t, y)

(Greiner, Su, Shen & Zhou 2005, Machine Learning 59, where W depends on free parameters: the chain rule follows.)

A family whose attributes are all observed is a look-up, fused with others as for complete rows; where that is every
family, nothing else is done. The rest is a program compiled once (`compilation`) for the families that a row needs: for
CLL, those on which P(class | e_t) depends; for LL, those that are not barren. A barren family gets no expected counts:
theta times those of its parents would be right, which changes nothing in a maximisation.

Memory: rows are worked on in so many groups that the tables of one take at most 256 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.inference import row_blocks
from bncli.engine.inference.row_blocks import CompiledBlocks, Work
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family


@dataclass(frozen=True)
class IncompleteLikelihood:
    """Rows compiled, where they are first needed, for repeated passes. Tables are one array of shape (K, n_cells)."""

    data: Dataset
    families: tuple[Family, ...]

    @property
    def n_cells(self) -> int:
        return 1 + sum(family.n_cells for family in self.families)

    @property
    def pass_work(self) -> float:
        """Nanoseconds, roughly, of one `value_and_gradient`."""
        return self._conditional.pass_work

    @property
    def work(self) -> Work:
        """What one `value_and_gradient` fills with numbers beyond look-ups; known before it is asked for."""
        return self._conditional.work

    @property
    def joint_work(self) -> Work:
        """The same of one `joint`."""
        return self._joint.work

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        return self._conditional.conditional(cells)

    def joint(self, cells: Array) -> tuple[float, Array]:
        """LL in nats, and the expected count of every cell and class, which is LL's gradient, shape (K, n_cells)."""
        return self._joint.joint(cells)

    def log_joint(self, cells: Array) -> Array:
        """ln P(y, e_t), shape (K, N)."""
        return self._joint.log_joint(cells)

    def flatten(self, tables: Tables) -> Array:
        """Tables as one array of shape (K, n_cells)."""
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)

    def tables(self, cells: Array) -> Tables:
        """The inverse of `flatten`."""
        edges = np.cumsum([1, *(family.n_cells for family in self.families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return Tables(bias[:, 0].copy(), self.families, tuple(np.ascontiguousarray(w.T) for w in weights))

    @cached_property
    def _conditional(self) -> CompiledBlocks:
        return row_blocks.compile_all(self.data, self.families, conditional=True)

    @cached_property
    def _joint(self) -> CompiledBlocks:
        return row_blocks.compile_all(self.data, self.families, conditional=False)


def incomplete_likelihood(data: Dataset, families: Sequence[Family]) -> IncompleteLikelihood:
    """For the families of a whole network (`Dag.families` with `whole`).

    BncliError, at the first pass, where the missing values of some row need too large a table.
    """
    return IncompleteLikelihood(data, tuple(families))
