"""The conditional log-likelihood of tables, and its gradient: one pass over the rows.

    CLL = sum over rows t of w_t ln P(y_t | x_t)
    dCLL / dW_f[c, y] = sum over rows t with cell_f(t) = c of w_t (1[y_t = y] - P(y | x_t))

All tables are held as one array W of shape (K, n_cells), class-major: cell 0 is the bias, then family after family.
The kernel is chosen by K: score differences for two classes, look-ups for up to TAKE_CLASSES, sparse products beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.fusion import WIDE_BYTES, FusedCodes, Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels import passes, products
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family

Kernel = Callable[..., Any]

TAKE_CLASSES = 10


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
        # the sparse products of many classes take about half as long a class
        if self.data.n_labels > TAKE_CLASSES:
            per_class /= 2
        return 1e5 + self.data.n_rows * (self.data.n_labels - 1) * per_class

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        cll, totals = self.data.reduce(_PASSES[self._range], self._operand(cells), states=self.states)
        return cll, self._result(totals)

    def hessian(self, cells: Array) -> Callable[[Array], Array]:
        """V -> HV, both (K, n_cells), with H the Hessian of -CLL at `cells`. Keeps K numbers a row (K > 2)."""
        points = self.data.keep(_POINTS[self._range], self._operand(cells), states=self.states)
        return partial(self._product, list(zip(self.states, points, strict=True)))

    def _product(self, states: Sequence[Any], cells: Array) -> Array:
        return self._result(self.data.reduce(_PRODUCTS[self._range], self._operand(cells), states=states))

    @property
    def _range(self) -> int:
        """The kernels to take: 0 for two classes, 1 for some, or one alone, 2 for many."""
        return (self.data.n_labels != 2) + (self.data.n_labels > TAKE_CLASSES)

    def _operand(self, cells: Array) -> Any:
        """What the kernels look numbers up in."""
        if self._range == 0:
            # P(y | x) of two classes depends on the difference of their scores alone
            return [table[0] for table in self.fusion.expand(cells[1:] - cells[:1])]
        tables = self.fusion.expand(cells)
        return tables if self._range == 1 else np.ascontiguousarray(np.concatenate(tables, axis=1).T)

    def _result(self, totals: Any) -> Array:
        """What the kernels summed, as cells (K, n_cells)."""
        if self._range == 0:
            difference = self.fusion.gather([total[np.newaxis] for total in totals])
            return np.concatenate([-difference, difference])
        if self._range == 1:
            return self.fusion.gather(totals)
        # rows are the stacked configurations of all groups, as the sparse matrix wants them
        edges = np.cumsum([len(members) for members in self.fusion.members])[:-1]
        return self.fusion.gather(np.split(np.ascontiguousarray(totals.T), edges, axis=1))

    def cell_weights(self) -> Array:
        """Weight of the rows in each cell, shape (n_cells,)."""
        totals = self.data.reduce(_configuration_weights, self.fusion.members, states=self.fusion.codes)
        return np.asarray(self.fusion.gather([total[np.newaxis] for total in totals])[0])

    def flatten(self, tables: Tables) -> Array:
        """Tables as one array of shape (K, n_cells)."""
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)

    def tables(self, cells: Array) -> Tables:
        """The inverse of `flatten`."""
        edges = np.cumsum([1, *(family.n_cells for family in self.families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return Tables(bias[:, 0].copy(), self.families, tuple(np.ascontiguousarray(w.T) for w in weights))


def conditional_likelihood(data: Dataset, families: Sequence[Family]) -> ConditionalLikelihood:
    """Fuse the rows of `data` for passes over `families`. Memory: one code a row and group; never an N x M matrix."""
    fusion = fuse(*with_regrouped_columns(data, families), _max_configurations(data.n_labels, data.n_rows))
    states: list[Any]
    if data.n_labels == 2:
        # widened slice by slice where a float a row would be too much
        kind = np.float64 if data.n_rows * 8 <= WIDE_BYTES else np.int8
        states = data.keep(_signs, kind, states=fusion.codes)
    elif data.n_labels <= TAKE_CLASSES:
        states = data.keep(_labels, states=fusion.codes)
    else:
        states = data.keep(_one_hot, [len(m) for m in fusion.members], states=fusion.codes)
    return ConditionalLikelihood(data, tuple(families), fusion, states)


def _max_configurations(n_labels: int, n_rows: int) -> int:
    """So many that the K tables of a group stay in a second-level cache of 1 MiB, and cost less to fill than to use."""
    in_cache = 4096 if n_labels == 2 else 2048 if n_labels <= TAKE_CLASSES else 512
    return min(in_cache, max(256, n_rows // 8))


def _signs(block: RowBlock, kind: type[np.generic]) -> tuple[FusedCodes, NDArray[Any]]:
    return block.state, np.where(block.labels == 1, 1, -1).astype(kind)


def _labels(block: RowBlock) -> tuple[FusedCodes, Index]:
    return block.state, block.labels.astype(np.intp)


def _one_hot(block: RowBlock, sizes: Sequence[int]) -> list[tuple[Any, Any, Index]]:
    """Row blocks of the sparse matrix of the groups' configurations, each with its transpose and its labels."""
    from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

    offsets = np.cumsum([0, *sizes])
    ones = np.ones(passes.SPARSE_BLOCK * len(sizes))
    blocks = []
    for rows in block.slices(passes.SPARSE_BLOCK):
        n_rows = rows.stop - rows.start
        columns = np.stack([c[rows] + o for c, o in zip(block.state, offsets[:-1], strict=True)], axis=1)
        starts = np.arange(0, columns.size + 1, len(sizes), dtype=np.int32)
        parts = (ones[: columns.size], columns.ravel().astype(np.int32), starts)
        matrix = csr_array(parts, shape=(n_rows, int(offsets[-1])))
        blocks.append((matrix, matrix.T, block.labels[rows].astype(np.intp)))
    return blocks


def _pass_of_two(block: RowBlock, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, signs = block.state
    return passes.two_classes(codes, signs, block.weights, tables)


def _pass_of_some(block: RowBlock, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, labels = block.state
    return passes.some_classes(codes, labels, block.weights, tables)


def _pass_of_many(block: RowBlock, table: Array) -> tuple[float, Array]:
    return passes.many_classes(block.state, block.weights, table)


def _point_of_two(block: RowBlock, tables: Sequence[Array]) -> Array:
    return products.spread_of_two(block.state[0], block.weights, tables)


def _point_of_some(block: RowBlock, tables: Sequence[Array]) -> Array:
    return products.probabilities_of_some(block.state[0], tables)


def _point_of_many(block: RowBlock, table: Array) -> list[Array]:
    return products.probabilities_of_many(block.state, table)


def _product_of_two(block: RowBlock, tables: Sequence[Array]) -> list[Array]:
    (codes, _signs), spread = block.state
    return products.of_two(codes, spread, tables)


def _product_of_some(block: RowBlock, tables: Sequence[Array]) -> list[Array]:
    (codes, _labels), p = block.state
    return products.of_some(codes, p, block.weights, tables)


def _product_of_many(block: RowBlock, table: Array) -> Array:
    blocks, p = block.state
    return products.of_many(blocks, p, block.weights, table)


_PASSES: tuple[Kernel, ...] = (_pass_of_two, _pass_of_some, _pass_of_many)
_POINTS: tuple[Kernel, ...] = (_point_of_two, _point_of_some, _point_of_many)
_PRODUCTS: tuple[Kernel, ...] = (_product_of_two, _product_of_some, _product_of_many)


def _configuration_weights(block: RowBlock, members: Sequence[Index]) -> list[Array]:
    return [
        np.bincount(codes, block.weights, len(m)).astype(np.float64)
        for codes, m in zip(block.state, members, strict=True)
    ]
