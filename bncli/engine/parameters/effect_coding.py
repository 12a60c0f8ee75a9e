"""Tables that are sums of effects: W = T p, T sparse and fixed; the bias, and then block after block of effects.

A block is a table over a set S of attributes that lie in a family f. With one basis of functions an attribute
(`bncli.engine.parameters.effect_coding`), its effects are the products of one function each:

    W_f[c, y] = sum over blocks S of f of s_S sum over (j_i, i in S) of p[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

Which blocks there are, and with which factors s_S, is told in `bncli.engine.parameters.effect_coding`.

T is not made where it is large, and no sparse matrix where it is small. It is a product of one sparse matrix for each
place in a block, which turns that index of all blocks from effects into codes, and a last one that adds the tables of
blocks into those of families. A pair of attributes with 20 cuts each takes 16,000 multiplications so, where T has
160,000 entries.

What a family may say of one attribute: a basis of functions of its codes.

`cells`: the indicator of every code. `thermometer`: for a numeric attribute with the cuts c_1 < ... < c_m one step a
cut, and the indicator of the missing level, where there is one, whose own code lies on no side of any cut:

    b_j(x) = +1/2 above c_j, -1/2 below,    0 where x is missing

`linear`: a numeric attribute has one effect, the middle of the interval, standardised on the training rows (an outer
interval reaches as far as its neighbour), and the indicator of the missing level: a straight line in the log-odds.

A sum of steps is any function of the intervals up to a constant, and a penalty on their heights pulls neighbouring
intervals together, so that cuts may be as fine as one likes. An attribute that is not numeric has its indicators.

Steps resemble each other, and equations in them are hard to solve. So the basis is turned: with A = B U, U orthogonal
so that the functions A_j are uncorrelated on the training rows,

    B v = A z,  v = U z,  |v|^2 = |z|^2,    sum over codes c of w_c A_ci A_cj = 0 for i != j

the penalty is the same, and most of the curvature is in the first few of the z (smooth functions of the attribute come
first). A rescaled basis is not needed: an order's weight in the penalty is a factor of the whole table. Where it is the
span of all rows that is searched, which no turn changes, the steps may stay as they are.

Which sets of attributes have effects of their own, and how a penalty weighs on them.

Every family has a block of effects over all its attributes. With *lower orders* every non-empty subset of a family's
attributes has one as well, each set once in all. A penalty on the parameters then weighs on sets of 1, 2, 3, ...
attributes as 1 : 2 : 4 : ..., by the factors of the blocks,

    s_S = 2^(-(|S| - 1) / 2)

so that what a single attribute can say is not said by a pair. Without lower orders all factors are 1. Where sets of
several attributes want a larger penalty still, theirs is `beyond` times that.

Conventions: a set that lies in several families belongs to the one with the finest binning of its attributes (see
`structures.regrouping`), among these to the first. So an attribute never has a second, coarser curve beside its own.

Effects as the free parameters of an optimization: p = (K, effects) flat, every class with effects of its own.

The generative start is the projection of the generative tables on what effects can say. Along every axis a table is
written in the constant and the functions of that attribute's basis,

    W[c, y] = sum over subsets S of the family, (j_i, i in S) of v[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

where indicators need no constant and get 0 for it. What belongs to S goes to the block of S, of whatever family, and
what belongs to the empty set to the bias. Conventions: what no block carries is left out. So nothing is lost with lower
orders, in families of one attribute, and where no attribute has steps; but tables over two attributes whose only
effects are products of steps lose what each attribute says by itself, and so do sets that another family bins more
finely.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import BinnedAttribute, Family

SMALL = 10_000
"""Entries of a sparse matrix, which a product with it passes in about the time of the call."""
DENSE = 1 << 16
"""Numbers of a T that is kept as it is: half of a second-level cache."""


@dataclass(frozen=True)
class EffectBlock:
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
    blocks: tuple[EffectBlock, ...]

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
        """Return T p: cells (any, n_cells) of parameters (any, effects), one row per class."""
        if self._matrix is not None:
            return np.asarray(parameters @ self._matrix.T)
        values = parameters.T
        for stage in self._stages:
            values = stage @ values
        return np.ascontiguousarray(values.T)

    def sums(self, cells: Array) -> Array:
        """Return T' of cells (any, n_cells): (any, effects)."""
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
        """Return sum over cells c of weights[c] T[c, q]^2, for every parameter q."""
        if self._matrix is not None:
            return np.asarray(weights @ np.square(self._matrix))
        for stage in self._back:
            weights = stage.power(2) @ weights
        return weights

    def columns(self, chosen: Index) -> Iterator[tuple[int, Index, Array]]:
        """Yield T at the parameters `chosen`, ascending, without the bias, which is in every row.

        For every block that has any: its family, which of the chosen are its own, and T (cells of the family, these).
        """
        edges = np.searchsorted(chosen, self.offsets)
        for block, offset, a, b in zip(self.blocks, self.offsets, edges[:-1], edges[1:], strict=False):
            if b > a:
                yield block.family, np.arange(a, b), self._entries(block, chosen[a:b] - offset)

    def _entries(self, block: EffectBlock, effects: Index) -> Array:
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


@dataclass(frozen=True)
class _Entries:
    """A sparse matrix: the rows, columns and values of its entries."""

    shape: tuple[int, int]
    rows: Index
    columns: Index
    values: Array


_BIAS = _Entries((1, 1), np.zeros(1, np.intp), np.zeros(1, np.intp), np.ones(1))


@dataclass(frozen=True)
class EffectCoordinates:
    """`generative_cells` makes the generative tables (K, n_cells), only where the optimization starts from them."""

    effects: Effects
    n_labels: int
    generative_cells: Callable[[], Array]

    @property
    def n_parameters(self) -> int:
        return self.n_labels * self.effects.n_effects

    @property
    def generative(self) -> Array:
        return _projected(self.effects, self.generative_cells()).ravel()

    def tables(self, p: Array) -> Array:
        return self.effects.tables(p.reshape(self.n_labels, -1))

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.effects.sums(d_tables).ravel()

    def push(self, p: Array, v: Array) -> Array:
        return self.tables(v)

    @property
    def factors(self) -> list[Any]:
        from scipy.sparse import csr_array, eye_array, kron

        return [csr_array(kron(eye_array(self.n_labels), factor)) for factor in self.effects.factors]

    @property
    def sharing(self) -> Effects:
        return self.effects

    @property
    def is_scaled(self) -> bool:
        return True

    @property
    def scale(self) -> Array:
        return np.ones((1, self.effects.n_effects))

    def curvature(self, p: Array, mass: Array) -> Array:
        return mass

    def jacobian(self, p: Array, cells: Index) -> Array:
        return np.eye(len(cells))[np.newaxis]


def basis(attribute: Attribute, coding: str, weights: Array, *, turned: bool = True) -> Array:
    """Return a (codes, effects) of an attribute as it is seen; weights (codes,) of the rows that have each code.

    `coding` is `cells`, `thermometer` (which is `turned` or not) or `linear` (which takes no groupings: one code an
    interval). A numeric attribute without cuts has no effect but that of being missing.
    """
    n_codes = len(weights)
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return np.eye(n_codes)
    if coding == "linear":
        return line(attribute.cuts, weights, missing=attribute.missing)
    steps = thermometer(n_codes - attribute.missing, missing=attribute.missing)
    return _turned(steps, weights) if turned else steps


def _turned(matrix: Array, weights: Array) -> Array:
    """Return B U, the functions of most weighted squares first."""
    if matrix.shape[1] < 2:
        return matrix
    _, axes = np.linalg.eigh(matrix.T @ (weights[:, np.newaxis] * matrix))
    return np.asarray(matrix @ axes[:, ::-1])


def n_functions(attribute: Attribute, coding: str, n_codes: int) -> int:
    """Return how many effects `basis` has."""
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return n_codes
    return n_codes - 1 if coding == "thermometer" else (n_codes - attribute.missing > 1) + attribute.missing


@lru_cache
def thermometer(n_intervals: int, *, missing: bool) -> Array:
    """B (codes, effects): the steps, one a cut, and the indicator of the missing level, the last code. Read-only."""
    codes, cuts = np.arange(n_intervals)[:, np.newaxis], np.arange(n_intervals - 1)
    steps = np.where(codes > cuts, 0.5, -0.5)
    if missing:
        steps = np.block([[steps, np.zeros((n_intervals, 1))], [np.zeros((1, n_intervals - 1)), np.ones((1, 1))]])
    steps.flags.writeable = False
    return steps


def line(cuts: Sequence[float], weights: Array, *, missing: bool) -> Array:
    """Return a (codes, effects): the middles of the intervals, of mean 0 and variance 1 on the rows.

    The missing level.
    """
    edges = np.asarray(cuts, np.float64)
    n = len(edges) + 1
    functions = np.zeros((n + missing, (n > 1) + missing))
    if n > 1:
        width = np.diff(edges) if n > 2 else np.ones(1)
        middles = np.concatenate([[edges[0] - width[0] / 2], (edges[:-1] + edges[1:]) / 2, [edges[-1] + width[-1] / 2]])
        total = weights[:n].sum() or 1.0
        middles -= weights[:n] @ middles / total
        spread = np.sqrt(weights[:n] @ middles**2 / total)
        functions[:n, 0] = middles / spread if spread > 0 else middles
    if missing:
        functions[n, -1] = 1.0
    return functions


def coefficients(functions: Array) -> Array:
    """Return (1 + effects, codes): what a function of the codes is made of, the constant first, then the effects A.

    Indicators need no constant, it gets 0; with steps it is what they leave.
    """
    n_codes, n_effects = functions.shape
    if n_effects == n_codes:
        return np.concatenate([np.zeros((1, n_codes)), np.linalg.inv(functions)])
    return np.asarray(np.linalg.inv(np.column_stack([np.ones(n_codes), functions])))


def effects_of(
    families: Sequence[Family],
    schema: Schema,
    weights: Array,
    *,
    coding: str,
    lower_orders: bool,
    beyond: float = 1.0,
    turned: Callable[[int], bool] = lambda n_effects: True,
) -> Effects:
    """Return the effects of tables over `families`; weights (n_cells,) of the rows in each cell, the bias first.

    `turned` says of the number of all effects whether a basis of steps is turned.
    """
    if lower_orders:
        sets = list(_all_sets(families, beyond))
    else:
        sets = [(f, tuple(range(len(family.shape))), 1.0) for f, family in enumerate(families)]
    turns = turned(_n_effects(families, schema, coding, sets))
    bases = _bases(families, schema, weights, coding, turned=turns)
    blocks = tuple(EffectBlock(f, places, scale, tuple(bases[f][j] for j in places)) for f, places, scale in sets)
    return Effects(tuple(families), bases, blocks)


def _all_sets(families: Sequence[Family], beyond: float) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Yield (family, places, s_S) of every set of attributes in any family.

    By the families in order, small sets first.
    """
    owners: dict[frozenset[int], tuple[int, int]] = {}
    subsets = [[frozenset(family.attributes[j] for j in places) for places in _subsets(family)] for family in families]
    for f, (family, sets) in enumerate(zip(families, subsets, strict=True)):
        for places, members in zip(_subsets(family), sets, strict=True):
            fineness = math.prod(family.shape[j] for j in places)
            if members not in owners or owners[members][1] < fineness:
                owners[members] = (f, fineness)
    for f, (family, sets) in enumerate(zip(families, subsets, strict=True)):
        for places, members in zip(_subsets(family), sets, strict=True):
            if owners[members][0] == f:
                several = 1.0 if len(places) == 1 else beyond
                yield f, places, 2.0 ** (-(len(places) - 1) / 2) / math.sqrt(several)


def _subsets(family: Family) -> Iterator[tuple[int, ...]]:
    n = len(family.shape)
    return itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(1, n + 1))


def _n_effects(
    families: Sequence[Family], schema: Schema, coding: str, sets: Sequence[tuple[int, tuple[int, ...], float]]
) -> int:
    """Return the bias counted."""
    sizes = [
        [n_functions(schema.attributes[a], coding, n) for a, n in zip(family.attributes, family.shape, strict=True)]
        for family in families
    ]
    return 1 + sum(math.prod(sizes[f][j] for j in places) for f, places, _ in sets)


def _bases(
    families: Sequence[Family], schema: Schema, weights: Array, coding: str, *, turned: bool
) -> tuple[tuple[Array, ...], ...]:
    """Return the basis of every attribute of every family: from the weights of its codes in the first family."""
    known: dict[BinnedAttribute, Array] = {}
    edge = 1
    for family in families:
        table = weights[edge : edge + family.n_cells].reshape(family.shape)
        edge += family.n_cells
        for place, binned in enumerate(family.binned_attributes):
            if binned not in known:
                others = tuple(j for j in range(len(family.shape)) if j != place)
                of_codes = table.sum(axis=others) if others else table
                known[binned] = basis(schema.attributes[binned[0]], coding, of_codes, turned=turned)
    return tuple(tuple(known[binned] for binned in family.binned_attributes) for family in families)


def _whole(stages: Sequence[Any]) -> list[Any]:
    """Return T itself, if it has hardly more entries than its factors.

    Calls, not entries, are what small products cost.
    """
    product = stages[0]
    for stage in stages[1:]:
        product = stage @ product
    return [product] if product.nnz <= sum(stage.nnz for stage in stages) + SMALL else list(stages)


def _turn(block: EffectBlock, place: int) -> _Entries:
    """Return the matrix that makes codes of the functions at one place, those before it being codes already: I x A x I.

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
    """Return blocks along a diagonal, after a 1 for the bias."""
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


def _projected(effects: Effects, tables: Array) -> Array:
    """Return parameters (any, effects) of tables (any, n_cells); cost: that of making tables, a loop over blocks."""
    out = np.zeros((len(tables), effects.n_effects))
    out[:, 0] = tables[:, 0]
    homes = {_key(effects, block): (block, effects.offsets[b]) for b, block in enumerate(effects.blocks)}
    edge = 1
    for family, bases in zip(effects.families, effects.bases, strict=True):
        terms = tables[:, edge : edge + family.n_cells].reshape(len(tables), *family.shape)
        edge += family.n_cells
        for axis, functions in enumerate(bases, start=1):
            terms = np.moveaxis(np.tensordot(terms, coefficients(functions), (axis, 1)), -1, axis)
        for said in itertools.product((False, True), repeat=len(bases)):
            inside = (slice(None), *(slice(1, None) if s else 0 for s in said))
            members = tuple(binned for binned, s in zip(family.binned_attributes, said, strict=True) if s)
            _add(out, effects, homes, members, terms[inside])
    return out


def _key(effects: Effects, block: EffectBlock) -> frozenset[BinnedAttribute]:
    binned = effects.families[block.family].binned_attributes
    return frozenset(binned[place] for place in block.places)


def _add(
    out: Array,
    effects: Effects,
    homes: dict[frozenset[BinnedAttribute], tuple[EffectBlock, int]],
    members: tuple[BinnedAttribute, ...],
    term: Array,
) -> None:
    """Add v of the set `members`, (any, functions of each of them), to the parameters of its block, if it has one."""
    if not members:
        out[:, 0] += term
        return
    if frozenset(members) not in homes:
        return
    block, offset = homes[frozenset(members)]
    binned = effects.families[block.family].binned_attributes
    axes = [1 + members.index(binned[place]) for place in block.places]
    out[:, offset : offset + block.n_effects] += term.transpose(0, *axes).reshape(len(out), -1) / block.scale
