"""The conditional log-likelihood of tables, and its gradient: one pass over the rows.

    CLL = sum over rows t of w_t ln P(y_t | x_t)
    dCLL / dW_f[c, y] = sum over rows t with cell_f(t) = c of w_t (1[y_t = y] - P(y | x_t))

All tables are held as one array W of shape (K, n_cells), class-major: cell 0 is the bias, then family after family.
The kernel is chosen by K: score differences for two classes, look-ups for up to TAKE_CLASSES, sparse products beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.dataset import Dataset, Shard
from bncli.engine.fusion import Codes, Fusion, fuse
from bncli.engine.kernels import passes
from bncli.engine.model import Tables
from bncli.engine.structure import Family

Array = NDArray[np.float64]

TAKE_CLASSES = 10


@dataclass(frozen=True)
class ConditionalLikelihood:
    """Rows fused for repeated passes; `states` holds what the kernel needs of each shard beside its weights."""

    data: Dataset
    families: tuple[Family, ...]
    fusion: Fusion
    states: list[Any]

    @property
    def n_cells(self) -> int:
        return self.fusion.n_cells

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        if self.data.n_labels == 2:
            cll, totals = self._reduce(_two_classes, [t[0] for t in self.fusion.expand(cells[1:] - cells[:1])])
            difference = self.fusion.gather([total[np.newaxis] for total in totals])
            return cll, np.concatenate([-difference, difference])
        tables = self.fusion.expand(cells)
        if self.data.n_labels <= TAKE_CLASSES:
            cll, totals = self._reduce(_some_classes, tables)
            return cll, self.fusion.gather(totals)
        cll, total = self._reduce(_many_classes, np.ascontiguousarray(np.concatenate(tables, axis=1).T))
        edges = np.cumsum([table.shape[1] for table in tables])[:-1]
        return cll, self.fusion.gather(np.split(np.ascontiguousarray(total.T), edges, axis=1))

    def _reduce(self, kernel: Any, tables: Any) -> Any:
        return self.data.reduce(kernel, tables, states=self.states)

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
    fusion = fuse(data, families, _max_configurations(data.n_labels))
    states: list[Any]
    if data.n_labels == 2:
        states = data.map(_signs, states=fusion.codes)
    elif data.n_labels <= TAKE_CLASSES:
        states = data.map(_labels, states=fusion.codes)
    else:
        states = data.map(_one_hot, [len(m) for m in fusion.members], states=fusion.codes)
    return ConditionalLikelihood(data, tuple(families), fusion, states)


def _max_configurations(n_labels: int) -> int:
    """So many that the K tables of a group stay in a second-level cache of 1 MiB."""
    if n_labels == 2:
        return 4096
    return 2048 if n_labels <= TAKE_CLASSES else 512


def _signs(shard: Shard) -> tuple[Codes, Array]:
    return shard.state, np.where(shard.labels == 1, 1.0, -1.0)


def _labels(shard: Shard) -> tuple[Codes, NDArray[np.intp]]:
    return shard.state, shard.labels.astype(np.intp)


def _one_hot(shard: Shard, sizes: Sequence[int]) -> list[tuple[Any, Any, NDArray[np.intp]]]:
    """Row blocks of the sparse matrix of the groups' configurations, each with its transpose and its labels."""
    from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

    offsets = np.cumsum([0, *sizes])
    ones = np.ones(passes.SPARSE_BLOCK * len(sizes))
    blocks = []
    for rows in shard.slices(passes.SPARSE_BLOCK):
        n_rows = rows.stop - rows.start
        columns = np.stack([c[rows] + o for c, o in zip(shard.state, offsets[:-1], strict=True)], axis=1)
        starts = np.arange(0, columns.size + 1, len(sizes), dtype=np.int32)
        parts = (ones[: columns.size], columns.ravel().astype(np.int32), starts)
        matrix = csr_array(parts, shape=(n_rows, int(offsets[-1])))
        blocks.append((matrix, matrix.T, shard.labels[rows].astype(np.intp)))
    return blocks


def _two_classes(shard: Shard, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, signs = shard.state
    return passes.two_classes(codes, signs, shard.weights, tables)


def _some_classes(shard: Shard, tables: Sequence[Array]) -> tuple[float, list[Array]]:
    codes, labels = shard.state
    return passes.some_classes(codes, labels, shard.weights, tables)


def _many_classes(shard: Shard, table: Array) -> tuple[float, Array]:
    return passes.many_classes(shard.state, shard.weights, table)


def _configuration_weights(shard: Shard, members: Sequence[NDArray[np.intp]]) -> list[Array]:
    return [
        np.bincount(codes, shard.weights, len(m)).astype(np.float64)
        for codes, m in zip(shard.state, members, strict=True)
    ]
