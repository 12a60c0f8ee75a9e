"""Sums over the cells of a set of attributes and one more, for many such sets and all attributes that may join them.

    S[c, u, x] = sum over rows t with the set in cell u and the attribute at x of columns[c, t]

Candidates are joined to super-attributes as for pairs (`counting.table_batches`): the cells of a set together with the
joint values of a few attributes are one code, and one sum over it answers for all of them. Where that code has too many
values, one attribute after the other joins, and only cells that occur are numbered
(`bncli.engine.counting.joint_codes`): many values cost no more than the rows that have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bncli.engine.counting.joint_codes import JointCodes, extend, no_attributes
from bncli.engine.counting.table_batches import BLOCK, ROUND, SuperAttribute, super_attributes
from bncli.engine.data.dataset import Dataset, RowBlock, code_dtype
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.kernels.cells import SPARSE_TABLE, add_counts, cell_numbers


@dataclass(frozen=True)
class Extensions:
    """The attributes that may join a set, and C numbers of every row to be summed: columns[s] (C, rows of block s)."""

    data: Dataset
    attributes: tuple[int, ...]
    columns: Sequence[Array]

    def sums(self, members: Sequence[int], wanted: Iterable[int]) -> Iterator[tuple[int, Array]]:
        """For every wanted attribute, which is none of `members`, in any order: it, and S (C, cells)."""
        base = self._joint(members)
        wanted = set(wanted)
        asked = [p for p, one in enumerate(self._supers) if wanted.intersection(one.attributes)]
        dense = [p for p in asked if base.size * self._supers[p].size <= SPARSE_TABLE]
        for p, total in self._dense(base, dense):
            yield from ((i, table) for i, table in _margins(self._supers[p], total) if i in wanted)
        for p in sorted(set(asked) - set(dense)):
            for i in sorted(wanted.intersection(self._supers[p].attributes)):
                yield i, self._sparse(base, i)

    def _joint(self, members: Sequence[int]) -> JointCodes:
        joint = no_attributes(self.data)
        for i in members:
            joint, _ = extend(self.data, joint, i)
        return joint

    def _dense(self, base: JointCodes, places: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """(place of a super-attribute, S[c, u, v]), as many at a time as fit the memory for sums."""
        n_columns = len(self.columns[0])
        entries = [n_columns * base.size * self._supers[p].size for p in places]
        rounds = np.cumsum(entries, dtype=np.intp) // ROUND
        for turn in np.unique(rounds).tolist():
            now = [p for p, r in zip(places, rounds.tolist(), strict=True) if r == turn]
            sizes = [self._supers[p].size for p in now]
            codes = [[fused[p] for p in now] for fused in self._fused]
            states = list(zip(base.codes, codes, self.columns, strict=True))
            summed = self.data.reduce(_sum_dense, base.size, sizes, states=states)
            for p, total in zip(now, summed, strict=True):
                yield p, total.reshape(n_columns, base.size, -1)

    def _sparse(self, base: JointCodes, attribute: int) -> Array:
        """S (C, cells that occur)."""
        joint, _ = extend(self.data, base, attribute)
        states = list(zip(joint.codes, self.columns, strict=True))
        return np.asarray(self.data.reduce(_sum_cells, joint.size, states=states))

    @cached_property
    def _supers(self) -> list[SuperAttribute]:
        n_columns = len(self.columns[0])
        return super_attributes(
            {i: self.data.radices[i] for i in self.attributes}, self.data.n_rows * n_columns, n_columns
        )

    @cached_property
    def _fused(self) -> list[list[Codes]]:
        """[s][p]: the code of super-attribute p in every row of block s, in the narrowest type."""
        return self.data.map(_fuse, self._supers)


def _margins(of: SuperAttribute, total: Array) -> Iterator[tuple[int, Array]]:
    """Every attribute of the super-attribute with S[c, (u, x)], from S[c, u, v]."""
    shaped = total.reshape(*total.shape[:2], *of.shape)
    for place, i in enumerate(of.attributes):
        others = tuple(2 + k for k in range(len(of.shape)) if k != place)
        yield i, shaped.sum(axis=others).reshape(len(total), -1)


def _fuse(block: RowBlock, supers: Sequence[SuperAttribute]) -> list[Codes]:
    fused = [np.empty(block.n_rows, code_dtype(one.size)) for one in supers]
    for rows in block.slices(BLOCK):
        for codes, one in zip(fused, supers, strict=True):
            codes[rows] = cell_numbers([block.codes[i][rows] for i in one.attributes], one.shape)
    return fused


def _sum_dense(block: RowBlock, base_size: int, sizes: Sequence[int]) -> list[Array]:
    """Partial S[c, (u, v)] of every super-attribute."""
    base, joined, columns = block.state
    totals = [np.zeros((len(columns), base_size * size)) for size in sizes]
    for rows in block.slices(BLOCK):
        cell = base[rows].astype(np.intp)
        for codes, size, total in zip(joined, sizes, totals, strict=True):
            joint = cell * size
            joint += codes[rows]
            _add(total, joint, columns[:, rows])
    return totals


def _sum_cells(block: RowBlock, size: int) -> Array:
    codes, columns = block.state
    total = np.zeros((len(columns), size))
    for rows in block.slices(BLOCK):
        _add(total, codes[rows].astype(np.intp), columns[:, rows])
    return total


def _add(total: Array, cells: Index, columns: Array) -> None:
    for sums, column in zip(total, columns, strict=True):
        add_counts(sums, cells, column)
