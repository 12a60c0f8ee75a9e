"""Tables that are sums of effects: W = T p, T sparse and fixed; the bias, and then block after block of effects.

A block is a table over a set S of attributes that lie in a family f. With one basis of functions an attribute
(`bncli.engine.parameter_spaces.effect_bases`), its effects are the products of one function each:

    W_f[c, y] = sum over blocks S of f of s_S sum over (j_i, i in S) of p[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

Which blocks there are, and with which factors s_S, is told in `bncli.engine.parameter_spaces.effect_blocks`.

T is not made where it is large, and no sparse matrix where it is small. It is a product of one sparse matrix for each
place in a block, which turns that index of all blocks from effects into codes, and a last one that adds the tables of
blocks into those of families. A pair of attributes with 20 cuts each takes 16,000 multiplications so, where T has
160,000 entries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import Family

SMALL = 10_000
"""Entries of a sparse matrix, which a product with it passes in about the time of the call."""

DENSE = 1 << 16
"""Numbers of a T that is kept as it is: half of a second-level cache."""


@dataclass(frozen=True)
class Block:
    """The effects of the attributes at `places` of a family; scale = s_S; bases[k] is A (codes, functions) there."""

    family: int
    places: tuple[int, ...]
    scale: float
    bases: tuple[Array, ...]

    @property
    def n_effects(self) -> int:
        return math.prod(matrix.shape[1] for matrix in self.bases)

    @property
    def n_cells(self) -> int:
        return math.prod(len(matrix) for matrix in self.bases)


@dataclass(frozen=True)
class Effects:
    """T for `families`; parameter 0 is the bias, then follow the blocks in their order.

    bases[f] are those of all attributes of family f.
    """

    families: tuple[Family, ...]
    bases: tuple[tuple[Array, ...], ...]
    blocks: tuple[Block, ...]

    @property
    def n_effects(self) -> int:
        """The bias counted."""
        return self.offsets[-1]

    @property
    def n_cells(self) -> int:
        return 1 + sum(family.n_cells for family in self.families)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The first parameter of every block, and the number of all."""
        return tuple(itertools.accumulate((block.n_effects for block in self.blocks), initial=1))

    def tables(self, parameters: Array) -> Array:
        """T p: cells (any, n_cells) of parameters (any, effects), one row a class."""
        if self._matrix is not None:
            return np.asarray(parameters @ self._matrix.T)
        values = parameters.T
        for stage in self._stages:
            values = stage @ values
        return np.ascontiguousarray(values.T)

    def sums(self, cells: Array) -> Array:
        """T' of cells (any, n_cells): (any, effects)."""
        if self._matrix is not None:
            return np.asarray(cells @ self._matrix)
        values = cells.T
        for stage in self._back:
            values = stage @ values
        return np.ascontiguousarray(values.T)

    @property
    def factors(self) -> list[Any]:
        """Sparse matrices whose product is T, the last to be applied first."""
        from scipy.sparse import csr_array

        return self._stages[::-1] if self._matrix is None else [csr_array(self._matrix)]

    def masses(self, weights: Array) -> Array:
        """sum over cells c of weights[c] T[c, q]^2, for every parameter q."""
        if self._matrix is not None:
            return np.asarray(weights @ np.square(self._matrix))
        for stage in self._back:
            weights = stage.power(2) @ weights
        return weights

    def columns(self, chosen: Index) -> Iterator[tuple[int, Index, Array]]:
        """T at the parameters `chosen`, ascending, without the bias, which is in every row.

        For every block that has any: its family, which of the chosen are its own, and T (cells of the family, these).
        """
        edges = np.searchsorted(chosen, self.offsets)
        for block, offset, a, b in zip(self.blocks, self.offsets, edges[:-1], edges[1:], strict=False):
            if b > a:
                yield block.family, np.arange(a, b), self._entries(block, chosen[a:b] - offset)

    def _entries(self, block: Block, effects: Index) -> Array:
        """s_S prod over i of A_i[c_i, j_i], (cells of the family, effects)."""
        shape = self.families[block.family].shape
        if len(shape) == 1:
            return np.asarray(block.scale * block.bases[0][:, effects])
        codes = np.unravel_index(np.arange(math.prod(shape)), shape)
        functions = np.unravel_index(effects, [matrix.shape[1] for matrix in block.bases])
        out = np.full((math.prod(shape), len(effects)), block.scale)
        for place, matrix, j in zip(block.places, block.bases, functions, strict=True):
            out *= matrix[:, j][codes[place]]
        return out

    @cached_property
    def _matrix(self) -> Array | None:
        """T itself, where it is so small that a product of arrays takes less than the call of a sparse one."""
        if self.n_cells * self.n_effects > DENSE:
            return None
        matrix = np.zeros((self.n_cells, self.n_effects))
        matrix[0, 0] = 1.0
        first = list(itertools.accumulate((family.n_cells for family in self.families), initial=1))
        for block, offset in zip(self.blocks, self.offsets, strict=False):
            cells = slice(first[block.family], first[block.family + 1])
            matrix[cells, offset : offset + block.n_effects] = self._entries(block, np.arange(block.n_effects))
        return matrix

    @cached_property
    def _stages(self) -> list[Any]:
        """The sparse factors of T, the first to be applied first."""
        from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

        n_places = max((len(block.places) for block in self.blocks), default=0)
        turns = [_joined([_turn(block, place) for block in self.blocks]) for place in range(n_places)]
        parts = [csr_array((part.values, (part.rows, part.columns)), shape=part.shape) for part in turns]
        last = self._embedding()
        stages = [*parts, csr_array((last.values, (last.rows, last.columns)), shape=last.shape)]
        return _whole(stages) if sum(stage.nnz for stage in stages) <= SMALL else stages

    @cached_property
    def _back(self) -> list[Any]:
        return [stage.T for stage in reversed(self._stages)]

    def _embedding(self) -> _Entries:
        """From block tables to those of families: a cell of a family is in one cell of each of its blocks."""
        first = list(itertools.accumulate((family.n_cells for family in self.families), initial=1))
        parts = [_BIAS]
        offset = 1
        for block in self.blocks:
            shape = self.families[block.family].shape
            inside = cells = np.arange(math.prod(shape))
            if block.places != tuple(range(len(shape))):
                codes = np.unravel_index(cells, shape)
                sizes = [len(matrix) for matrix in block.bases]
                inside = np.ravel_multi_index([codes[place] for place in block.places], sizes)
            scales = np.full(len(cells), block.scale)
            parts.append(_Entries((0, 0), first[block.family] + cells, offset + inside, scales))
            offset += block.n_cells
        return _concatenated((self.n_cells, offset), parts)


def _whole(stages: Sequence[Any]) -> list[Any]:
    """T itself, if it has hardly more entries than its factors: calls, not entries, are what small products cost."""
    product = stages[0]
    for stage in stages[1:]:
        product = stage @ product
    return [product] if product.nnz <= sum(stage.nnz for stage in stages) + SMALL else list(stages)


@dataclass(frozen=True)
class _Entries:
    """A sparse matrix: the rows, columns and values of its entries."""

    shape: tuple[int, int]
    rows: Index
    columns: Index
    values: Array


_BIAS = _Entries((1, 1), np.zeros(1, np.intp), np.zeros(1, np.intp), np.ones(1))


def _turn(block: Block, place: int) -> _Entries:
    """The matrix that makes codes of the functions at one place, those before it being codes already: I x A x I.

    The identity where the block has fewer places.
    """
    if place >= len(block.places):
        cells = np.arange(block.n_cells)
        return _Entries((block.n_cells, block.n_cells), cells, cells, np.ones(block.n_cells))
    matrix = block.bases[place]
    n_codes, n_functions = matrix.shape
    if len(block.places) == 1:
        rows, columns = matrix.nonzero()
        return _Entries(matrix.shape, rows, columns, matrix[rows, columns])
    before = math.prod(len(each) for each in block.bases[:place])
    after = math.prod(each.shape[1] for each in block.bases[place + 1 :])
    codes, functions = np.nonzero(matrix)
    outer, inner = np.arange(before)[:, np.newaxis, np.newaxis], np.arange(after)
    rows = (outer * n_codes + codes[:, np.newaxis]) * after + inner
    columns = (outer * n_functions + functions[:, np.newaxis]) * after + inner
    values = np.broadcast_to(matrix[codes, functions][:, np.newaxis], rows.shape)
    shape = (before * n_codes * after, before * n_functions * after)
    return _Entries(shape, rows.ravel(), columns.ravel(), values.ravel())


def _joined(blocks: Sequence[_Entries]) -> _Entries:
    """Blocks along a diagonal, after a 1 for the bias."""
    parts = [_BIAS]
    row = column = 1
    for block in blocks:
        parts.append(_Entries((0, 0), row + block.rows, column + block.columns, block.values))
        row, column = row + block.shape[0], column + block.shape[1]
    return _concatenated((row, column), parts)


def _concatenated(shape: tuple[int, int], parts: Sequence[_Entries]) -> _Entries:
    return _Entries(
        shape,
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
