"""The conditional log-likelihood of tables, and its gradient: one pass over the rows.

    CLL = sum over rows t of w_t ln P(y_t | x_t)
    dCLL / dW_f[c, y] = sum over rows t with cell_f(t) = c of w_t (1[y_t = y] - P(y | x_t))

All tables are held as one array W of shape (K, n_cells), class-major: cell 0 is the bias, then family after family.
Kernels are for two classes or more, by look-ups for few rows and classes or by sparse products for many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.fused_codes import FusedCodes, Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels import passes
from bncli.engine.kernels import passes as products
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.kernels.passes import SOME_CLASSES, Indicators
from bncli.engine.model import Tables
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family

FEW_ROWS = 1 << 14
"""Rows up to which a fit by look-ups takes no longer than importing scipy.sparse."""
KEPT_BYTES = 200 << 20
"""Sparse matrices are kept up to this size in all, and made anew in every pass beyond it."""


@dataclass(frozen=True)
class ConditionalLikelihood:
    """Rows fused for repeated passes; `states` holds what the kernel needs of each block beside its weights.

    `data` and `families` are those that were asked for, with groupings; the codes of regrouped ones live in `fusion`
    alone.
    """

    data: Dataset
    families: tuple[Family, ...]
    fusion: Fusion
    states: list[Any]

    @property
    def n_cells(self) -> int:
        return self.fusion.n_cells

    @property
    def pass_work(self) -> float:
        """Nanoseconds, roughly, of one `value_and_gradient`."""
        per_class = 8.0 + 2.0 * len(self.fusion.members)
        # products of many classes take about half as long a class as look-ups
        if self.data.n_labels > SOME_CLASSES:
            per_class /= 2
        return 1e5 + self.data.n_rows * (self.data.n_labels - 1) * per_class

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """Return CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        cll, totals = self.data.reduce(self._kernels.value_and_gradient, self._operand(cells), states=self.states)
        return cll, self._result(totals)

    def hessian(self, cells: Array) -> Callable[[Array], Array]:
        """V -> HV, both (K, n_cells), with H the Hessian of -CLL at `cells`. Keeps K numbers a row (K > 2)."""
        points = self.data.keep(self._kernels.point, self._operand(cells), states=self.states)
        return partial(self._product, list(zip(self.states, points, strict=True)))

    def _product(self, states: Sequence[Any], cells: Array) -> Array:
        return self._result(self.data.reduce(self._kernels.product, self._operand(cells), states=states))

    @property
    def _kernels(self) -> _Kernels:
        return _kernels(self.data)

    def _operand(self, cells: Array) -> Any:
        """Return the tables that the kernels read: one per group or one for all; differences except for `_SOME`.

        P(y | x) depends on differences of scores alone.
        """
        kernels = self._kernels
        if kernels is _SOME:
            return self.fusion.expand(cells)
        if kernels is _TWO:
            return [table[0] for table in self.fusion.expand(cells[1:] - cells[:1])]
        differences = cells[1] - cells[0] if kernels is _SPARSE_TWO else np.ascontiguousarray((cells[1:] - cells[0]).T)
        return self.fusion.activations @ differences

    def _result(self, totals: Any) -> Array:
        """Return what the kernels summed, as cells (K, n_cells)."""
        if self._kernels is _SOME:
            return self.fusion.gather(totals)
        if self._kernels is _TWO:
            differences = self.fusion.gather([total[np.newaxis] for total in totals])
        else:
            differences = np.atleast_2d((self.fusion.activations.T @ totals).T)
        return np.concatenate([-differences.sum(axis=0, keepdims=True), differences])

    def sums(self, of_rows: Array) -> Array:
        """Return sums over the rows in each cell of numbers (any, N), (any, n_cells)."""
        states = [(codes, of_rows[:, a:b]) for codes, (a, b) in zip(self.fusion.codes, self.data.bounds(), strict=True)]
        return self.fusion.gather(self.data.reduce(_configuration_sums, self.fusion.members, states=states))

    def cell_weights(self) -> Array:
        """Return weight of the rows in each cell, shape (n_cells,)."""
        totals = self.data.reduce(_configuration_weights, self.fusion.members, states=self.fusion.codes)
        return np.asarray(self.fusion.gather([total[np.newaxis] for total in totals])[0])

    def flatten(self, tables: Tables) -> Array:
        """Return tables as one array of shape (K, n_cells)."""
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)

    def tables(self, cells: Array) -> Tables:
        """Return the inverse of `flatten`."""
        edges = np.cumsum([1, *(family.n_cells for family in self.families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return Tables(bias[:, 0].copy(), self.families, tuple(np.ascontiguousarray(w.T) for w in weights))


def conditional_likelihood(data: Dataset, families: Sequence[Family]) -> ConditionalLikelihood:
    """Fuse the rows of `data` for passes over `families`. Memory: one code per row and group; never an N x M matrix."""
    kernels = _kernels(data)
    sparse = kernels in (_SPARSE_TWO, _SPARSE)
    regrouped, fused = with_regrouped_columns(data, families)
    fusion = fuse(regrouped, fused, _max_configurations(data.n_labels, data.n_rows), interleaved=sparse)
    sizes = [len(members) for members in fusion.members]
    keep = data.n_rows * len(sizes) * np.dtype(np.int32).itemsize <= KEPT_BYTES
    at_a_time = passes.SPARSE_BLOCK if data.n_labels <= SOME_CLASSES else passes.MANY_CLASSES_BLOCK
    states = data.keep(kernels.state, *((sizes, at_a_time, keep) if sparse else ()), states=fusion.codes)
    return ConditionalLikelihood(data, tuple(families), fusion, states)


def _max_configurations(n_labels: int, n_rows: int) -> int:
    """So many that the K tables of a group stay in a second-level cache of 1 MiB, and cost less to fill than to use."""
    in_cache = 8192 if n_labels == 2 else 2048 if n_labels <= SOME_CLASSES else 512
    return min(in_cache, max(256, n_rows // 8))


class _Kernels(NamedTuple):
    """Functions of a row block: its state; CLL and gradient; the point of a Hessian; the product with that.

    The three last take what numbers are looked up in, too; the state is made of the block's fused codes.
    """

    state: Callable[..., Any]
    value_and_gradient: Callable[..., tuple[float, Any]]
    point: Callable[..., Any]
    product: Callable[..., Any]


def _kernels(data: Dataset) -> _Kernels:
    if data.n_labels > SOME_CLASSES or data.n_rows > FEW_ROWS:
        return _SPARSE_TWO if data.n_labels == 2 else _SPARSE
    return _TWO if data.n_labels == 2 else _SOME


def _signs(block: RowBlock) -> tuple[FusedCodes, Array]:
    return block.state, np.where(block.labels == 1, 1.0, -1.0)


def _labels(block: RowBlock) -> tuple[FusedCodes, Index]:
    return block.state, block.labels.astype(np.intp)


def _sparse_signs(block: RowBlock, *shape: Any) -> tuple[Indicators, NDArray[np.integer]]:
    return Indicators(block.state.T, *shape), np.where(block.labels == 1, 1, -1).astype(np.int8)


def _sparse_labels(block: RowBlock, *shape: Any) -> tuple[Indicators, Codes]:
    return Indicators(block.state.T, *shape), block.labels


def _pass_of_two(block: RowBlock, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, signs = block.state
    return passes.two_classes(codes, signs, block.weights, tables)


def _pass_of_some(block: RowBlock, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, labels = block.state
    return passes.some_classes(codes, labels, block.weights, tables)


def _sparse_pass_of_two(block: RowBlock, table: Array) -> tuple[float, Array]:
    z, signs = block.state
    return passes.sparse_two_classes(z, signs, block.weights, table)


def _sparse_pass(block: RowBlock, table: Array) -> tuple[float, Array]:
    z, labels = block.state
    return passes.sparse_classes(z, labels, block.weights, table)


def _point_of_two(block: RowBlock, tables: Sequence[Array]) -> Array:
    return products.spread_of_two(block.state[0], block.weights, tables)


def _point_of_some(block: RowBlock, tables: Sequence[Array]) -> Array:
    return products.probabilities_of_some(block.state[0], tables)


def _sparse_point_of_two(block: RowBlock, table: Array) -> Array:
    return products.sparse_spread_of_two(block.state[0], block.weights, table)


def _sparse_point(block: RowBlock, table: Array) -> list[Array]:
    return products.sparse_probabilities(block.state[0], table)


def _product_of_two(block: RowBlock, tables: Sequence[Array]) -> list[Array]:
    (codes, _signs), spread = block.state
    return products.of_two(codes, spread, tables)


def _product_of_some(block: RowBlock, tables: Sequence[Array]) -> list[Array]:
    (codes, _labels), p = block.state
    return products.of_some(codes, p, block.weights, tables)


def _sparse_product_of_two(block: RowBlock, table: Array) -> Array:
    (z, _signs), spread = block.state
    return products.sparse_of_two(z, spread, table)


def _sparse_product(block: RowBlock, table: Array) -> Array:
    (z, _labels), p = block.state
    return products.sparse_of(z, p, block.weights, table)


_TWO = _Kernels(_signs, _pass_of_two, _point_of_two, _product_of_two)
_SOME = _Kernels(_labels, _pass_of_some, _point_of_some, _product_of_some)
_SPARSE_TWO = _Kernels(_sparse_signs, _sparse_pass_of_two, _sparse_point_of_two, _sparse_product_of_two)
_SPARSE = _Kernels(_sparse_labels, _sparse_pass, _sparse_point, _sparse_product)


def _configuration_sums(block: RowBlock, members: Sequence[Index]) -> list[Array]:
    codes, of_rows = block.state
    return [np.stack([np.bincount(c, row, len(m)) for row in of_rows]) for c, m in zip(codes, members, strict=True)]


def _configuration_weights(block: RowBlock, members: Sequence[Index]) -> list[Array]:
    return [
        np.bincount(codes, block.weights, len(m)).astype(np.float64)
        for codes, m in zip(block.state, members, strict=True)
    ]
