"""Effect coding: tables as sums of effects (smooth curves and surfaces), a fixed sparse linear map W = T p.

**Bases.** Every attribute has a basis A of functions of its codes, which depends on the coding:

    cells         the indicator of every code
    thermometer   for a numeric attribute with the cuts c_1 < ... < c_m, one step per cut,
                      b_j(x) = +1/2 above c_j, -1/2 below,    0 where x is missing,
                  and the indicator of the missing level, if there is one (its code lies on no side of any cut)
    linear        for a numeric attribute, a straight line in the log-odds: the middle of the interval, standardised on
                  the training rows (an outer interval is taken to be as wide as its neighbour);
                  and the indicator of the missing level, if there is one

Categorical attributes have indicators under any coding. Any function of the intervals is a sum of steps, up to a
constant. A penalty on the heights of the steps pulls neighbouring intervals together, so there may be arbitrarily many
cuts.

Steps are strongly correlated, which makes equations in them ill-conditioned. So the basis is rotated: with A = B U and
U orthogonal, the functions A_j are orthogonal on the training rows,

    B v = A z,  v = U z,  |v|^2 = |z|^2,    sum over codes c of w_c A_ci A_cj = 0 for i != j

The penalty is the same, and most of the curvature is in the first few z (smooth functions of the attribute come first).
If only the span of the rows is searched (`bncli.engine.parameters.few_rows`), a rotation has no effect and is omitted.

**Blocks.** A block is a table over a set S of attributes of a family f. Its effects are the products of one function
per attribute:

    W_f[c, y] = sum over blocks S of f of s_S sum over (j_i, i in S) of p[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

Every family has a block over all its attributes. With *lower orders*, every non-empty subset of a family's attributes
has a block as well, each set only once. Then sets of 1, 2, 3, ... attributes are penalised in the proportions
1 : 2 : 4 : ..., by the factors of the blocks,

    s_S = 2^(-(|S| - 1) / 2)

so that the effect of a single attribute is not attributed to a pair. Without lower orders all factors are 1. The
penalty on sets of several attributes can be raised further, by a factor `beyond`. Conventions: a set that lies in
several families belongs to the family with the finest binning of its attributes (see `structures.regrouping`; ties: the
first). So an attribute never has a second, coarser curve besides its own.

**Many levels.** If a categorical attribute has many levels, its levels are penalised as random effects: the block of
the attribute by itself has another factor s_S, which depends on the variance of their effects
(`bncli.engine.parameters.level_effects`).

**Computation.** A small T is a dense matrix. A large T is applied as a product of sparse matrices, which are multiplied
out only if they are small. There is one matrix for each position in a block: in all blocks, it turns the index at that
position from functions into codes. A last matrix adds the tables of the blocks to the tables of the families. A pair of
attributes with 20 cuts each then takes about 17,000 multiplications, while T has 176,000 entries.

**Generative start.** The generative tables are projected onto the effects. Along every axis a table is written in the
constant and the functions of that attribute's basis,

    W[c, y] = sum over subsets S of the family, (j_i, i in S) of v[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

where the coefficient of the constant is 0 for indicators. The term of S is added to the block of S, in whatever family,
and the term of the empty set to the bias. A term without a block is dropped. So nothing is lost with lower orders, in
families of one attribute, or if no attribute has steps. But a table over two attributes whose only effects are
products of steps loses the effects of the single attributes, and the term of a set that another family bins more finely
is lost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import BinnedAttribute, Family

SMALL = 10_000
"""With this many entries of a sparse matrix, the arithmetic of a product takes about as long as the function call."""
DENSE = 1 << 16
"""The maximum number of entries of a dense T: half of a second-level cache."""

_SparseEntries = tuple[Index, Index, Array]
"""Rows, columns and values of the entries of a sparse matrix."""


@dataclass(frozen=True)
class EffectCoordinates:
    """Effects as free parameters: p is (K, effects), flattened, with separate effects for every class.

    `generative_cells()` returns the generative tables (K, n_cells); it is called only if the optimization starts from
    them.
    """

    effects: Effects
    n_labels: int
    generative_cells: Callable[[], Array]

    @property
    def n_parameters(self) -> int:
        return self.n_labels * self.effects.n_effects

    @property
    def generative(self) -> Array:
        return self.effects.project(self.generative_cells()).ravel()

    def point_of(self, tables: Array) -> Array:
        """Return the point (P,) with these tables (K, n_cells), which must be sums of effects of the same families."""
        return self.effects.project(tables).ravel()

    def tables(self, p: Array) -> Array:
        return self.effects.tables(p.reshape(self.n_labels, -1))

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.effects.sums(d_tables).ravel()

    @property
    def matrices(self) -> list[Any]:
        """The sparse matrices whose product, (K n_cells, P), is the map; the last one is applied first."""
        from scipy.sparse import csr_array, eye_array, kron

        return [csr_array(kron(eye_array(self.n_labels), matrix)) for matrix in self.effects.matrices]


@dataclass(frozen=True)
class EffectBlock:
    """The effects of a set S of attributes, which are at the positions `places` of a family.

    scale is s_S; bases[k] is the basis A (codes, functions) of the attribute at places[k].
    """

    family: int
    places: tuple[int, ...]
    scale: float
    bases: tuple[Array, ...]

    @property
    def n_effects(self) -> int:
        return math.prod(basis.shape[1] for basis in self.bases)

    @property
    def n_cells(self) -> int:
        return math.prod(len(basis) for basis in self.bases)


@dataclass(frozen=True)
class Effects:
    """The map T from effects to tables of `families`. Parameter 0 is the bias; the blocks follow in order.

    bases[f] has the bases of all attributes of family f.
    """

    families: tuple[Family, ...]
    bases: tuple[tuple[Array, ...], ...]
    blocks: tuple[EffectBlock, ...]

    @property
    def n_effects(self) -> int:
        """The number of effects, including the bias."""
        return self.offsets[-1]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The first parameter of every block, then the number of parameters."""
        return tuple(itertools.accumulate((block.n_effects for block in self.blocks), initial=1))

    @cached_property
    def first_cells(self) -> tuple[int, ...]:
        """The first cell of every family, then the number of cells."""
        return tuple(itertools.accumulate((family.n_cells for family in self.families), initial=1))

    def tables(self, parameters: Array) -> Array:
        """Apply T to parameters (k, effects), one row per class; return cells (k, n_cells)."""
        if self._dense is not None:
            return np.asarray(parameters @ self._dense.T)
        values = parameters.T
        for stage in self._stages:
            values = stage @ values
        return np.ascontiguousarray(values.T)

    def sums(self, cells: Array) -> Array:
        """Apply the transpose of T to cells (k, n_cells); return (k, effects)."""
        if self._dense is not None:
            return np.asarray(cells @ self._dense)
        values = cells.T
        for stage in self._transposed_stages:
            values = stage @ values
        return np.ascontiguousarray(values.T)

    @property
    def matrices(self) -> list[Any]:
        """Sparse matrices whose product is T; the last one is applied first."""
        from scipy.sparse import csr_array

        return self._stages[::-1] if self._dense is None else [csr_array(self._dense)]

    def masses(self, weights: Array) -> Array:
        """Return the sum over cells c of weights[c] T[c, q]^2, for every parameter q."""
        if self._dense is not None:
            return np.asarray(weights @ np.square(self._dense))
        for stage in self._transposed_stages:
            weights = stage.power(2) @ weights
        return weights

    def columns(self, chosen: Index) -> Iterator[tuple[int, Index, Array]]:
        """Yield the columns of T for the parameters `chosen`, one block after the other, without the bias.

        `chosen` is in ascending order. Each item has the family of a block, the positions of its parameters in
        `chosen`, and their columns of T, (cells of the family, parameters). Blocks without chosen parameters are
        skipped.
        """
        # the parameters chosen[a:b] are those of the block
        edges = np.searchsorted(chosen, self.offsets)
        for block, offset, a, b in zip(self.blocks, self.offsets, edges[:-1], edges[1:], strict=False):
            if b > a:
                yield block.family, np.arange(a, b), self._entries(block, chosen[a:b] - offset)

    def project(self, tables: Array) -> Array:
        """Project tables (k, n_cells) onto the effects, and return the parameters (k, effects).

        Terms without a block are dropped, as described in the module docstring.
        """
        out = np.zeros((len(tables), self.n_effects))
        out[:, 0] = tables[:, 0]
        positions = {}
        for b, block in enumerate(self.blocks):
            binned = self.families[block.family].binned_attributes
            positions[frozenset(binned[place] for place in block.places)] = b
        for family, bases, first in zip(self.families, self.bases, self.first_cells, strict=False):
            # (k, codes of each attribute); every axis of codes becomes one of the constant and the functions
            terms = tables[:, first : first + family.n_cells].reshape(len(tables), *family.shape)
            for axis, basis in enumerate(bases, start=1):
                terms = np.moveaxis(np.tensordot(terms, coefficients(basis), (axis, 1)), -1, axis)
            # the term of a subset S: index 0, the constant, on the axes outside S and the functions on those inside
            for inside in itertools.product((False, True), repeat=len(bases)):
                term = terms[(slice(None), *(slice(1, None) if is_in else 0 for is_in in inside))]
                members = list(itertools.compress(family.binned_attributes, inside))
                if not members:
                    out[:, 0] += term
                elif frozenset(members) in positions:
                    b = positions[frozenset(members)]
                    block = self.blocks[b]
                    binned = self.families[block.family].binned_attributes
                    # the family that holds the block may list the attributes in another order
                    axes = [1 + members.index(binned[place]) for place in block.places]
                    values = term.transpose(0, *axes).reshape(len(out), -1) / block.scale
                    out[:, self.offsets[b] : self.offsets[b + 1]] += values
        return out

    def _entries(self, block: EffectBlock, effects: Index) -> Array:
        """Return s_S prod over i of A_i[c_i, j_i], shape (cells of the family, effects)."""
        shape = self.families[block.family].shape
        if len(shape) == 1:
            return np.asarray(block.scale * block.bases[0][:, effects])
        # of every cell, and of every effect, the index at each place
        codes = np.unravel_index(np.arange(math.prod(shape)), shape)
        functions = np.unravel_index(effects, [basis.shape[1] for basis in block.bases])
        out = np.full((math.prod(shape), len(effects)), block.scale)
        for place, basis, j in zip(block.places, block.bases, functions, strict=True):
            out *= basis[:, j][codes[place]]
        return out

    @cached_property
    def _dense(self) -> Array | None:
        """T as an array, or None if it is so large that a dense product could take longer than sparse ones."""
        n_cells = self.first_cells[-1]
        if n_cells * self.n_effects > DENSE:
            return None
        matrix = np.zeros((n_cells, self.n_effects))
        matrix[0, 0] = 1.0
        for b, block in enumerate(self.blocks):
            cells = slice(self.first_cells[block.family], self.first_cells[block.family + 1])
            entries = self._entries(block, np.arange(block.n_effects))
            matrix[cells, self.offsets[b] : self.offsets[b + 1]] = entries
        return matrix

    @cached_property
    def _stages(self) -> list[Any]:
        """The sparse factors of T; the first one is applied first."""
        n_places = max((len(block.places) for block in self.blocks), default=0)
        stages = [self._stage(place) for place in range(n_places)]
        # a cell of a family belongs to one cell of each of its blocks
        parts, offset = [_BIAS], 1
        for block in self.blocks:
            shape = self.families[block.family].shape
            inside = cells = np.arange(math.prod(shape))
            if block.places != tuple(range(len(shape))):
                codes = np.unravel_index(cells, shape)
                # the number of the cell among the cells of the block
                inside = np.ravel_multi_index([codes[place] for place in block.places], [len(a) for a in block.bases])
            first = self.first_cells[block.family]
            parts.append((first + cells, offset + inside, np.full(len(cells), block.scale)))
            offset += block.n_cells
        stages.append(_sparse(parts, (self.first_cells[-1], offset)))
        if sum(stage.nnz for stage in stages) > SMALL:
            return stages
        # small products cost no more than their calls, so one matrix is better unless it has many more entries
        product = stages[0]
        for stage in stages[1:]:
            product = stage @ product
        return [product] if product.nnz <= sum(stage.nnz for stage in stages) + SMALL else stages

    @cached_property
    def _transposed_stages(self) -> list[Any]:
        return [stage.T for stage in reversed(self._stages)]

    def _stage(self, place: int) -> Any:
        """Return the matrix that turns the index at position `place` of all blocks from functions into codes.

        The indices before this position are already codes. For each block the matrix is the Kronecker product I x A x
        I, or the identity if the block has fewer positions; for the bias it is 1.
        """
        parts, row, column = [_BIAS], 1, 1
        for block in self.blocks:
            if place >= len(block.places):
                cells = np.arange(block.n_cells)
                parts.append((row + cells, column + cells, np.ones(block.n_cells)))
                row, column = row + block.n_cells, column + block.n_cells
                continue
            basis = block.bases[place]
            n_codes, n_functions = basis.shape
            before = math.prod(len(each) for each in block.bases[:place])
            after = math.prod(each.shape[1] for each in block.bases[place + 1 :])
            # (I x A x I)[(o, c, i), (o, j, i)] = A[c, j] for outer o and inner i: arrays (before, nonzeros, after)
            codes, functions = np.nonzero(basis)
            outer, inner = np.arange(before)[:, np.newaxis, np.newaxis], np.arange(after)
            rows = (outer * n_codes + codes[:, np.newaxis]) * after + inner
            columns = (outer * n_functions + functions[:, np.newaxis]) * after + inner
            values = np.broadcast_to(basis[codes, functions][:, np.newaxis], rows.shape)
            parts.append((row + rows.ravel(), column + columns.ravel(), values.ravel()))
            row, column = row + before * n_codes * after, column + before * n_functions * after
        return _sparse(parts, (row, column))


_BIAS: _SparseEntries = (np.zeros(1, np.intp), np.zeros(1, np.intp), np.ones(1))


def _sparse(parts: Sequence[_SparseEntries], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return csr_array((values, (rows, columns)), shape=shape)


def effects_of(
    families: Sequence[Family],
    schema: Schema,
    weights: Array,
    *,
    coding: str,
    lower_orders: bool,
    beyond: float = 1.0,
    rotated: Callable[[int], bool] = lambda n_effects: True,
    scales: Mapping[int, float] = MappingProxyType({}),
) -> Effects:
    """Return the effects of tables over `families`; weights (n_cells,) are the row weights of the cells, bias first.

    `beyond` is the factor of the penalty on sets of several attributes, with `lower_orders`. `rotated(number of
    effects)` decides whether bases of steps are rotated. `scales` holds the factors s_S of single attributes that are
    not 1, keyed by attribute.
    """
    if lower_orders:
        sets = _all_sets(families, beyond)
    else:
        sets = [(f, tuple(range(len(family.shape))), 1.0) for f, family in enumerate(families)]
    sets = [(f, p, scales.get(families[f].attributes[p[0]], s) if len(p) == 1 else s) for f, p, s in sets]
    sizes = [
        [n_functions(schema.attributes[a], coding, n) for a, n in zip(family.attributes, family.shape, strict=True)]
        for family in families
    ]
    rotates = rotated(1 + sum(math.prod(sizes[f][j] for j in places) for f, places, _ in sets))
    # the basis of a binned attribute depends on the weights of its codes in the first family that has it
    known: dict[BinnedAttribute, Array] = {}
    first = 1
    for family in families:
        table = weights[first : first + family.n_cells].reshape(family.shape)
        first += family.n_cells
        for place, binned in enumerate(family.binned_attributes):
            if binned not in known:
                others = tuple(j for j in range(len(family.shape)) if j != place)
                code_weights = table.sum(axis=others) if others else table
                known[binned] = basis_of(schema.attributes[binned[0]], coding, code_weights, rotated=rotates)
    bases = tuple(tuple(known[binned] for binned in family.binned_attributes) for family in families)
    blocks = tuple(EffectBlock(f, places, scale, tuple(bases[f][j] for j in places)) for f, places, scale in sets)
    return Effects(tuple(families), bases, blocks)


def _all_sets(families: Sequence[Family], beyond: float) -> list[tuple[int, tuple[int, ...], float]]:
    """Return (family, places, s_S) for every set of attributes in any family, in family order, small sets first."""
    owners: dict[frozenset[int], tuple[int, int]] = {}
    sets: list[tuple[int, tuple[int, ...], frozenset[int]]] = []
    for f, family in enumerate(families):
        n = len(family.shape)
        for places in itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(1, n + 1)):
            members = frozenset(family.attributes[j] for j in places)
            fineness = math.prod(family.shape[j] for j in places)
            # the finest binning owns the set; the first, if tied
            if members not in owners or owners[members][1] < fineness:
                owners[members] = (f, fineness)
            sets.append((f, places, members))
    return [
        (f, places, 2.0 ** (-(len(places) - 1) / 2) / math.sqrt(1.0 if len(places) == 1 else beyond))
        for f, places, members in sets
        if owners[members][0] == f
    ]


def basis_of(attribute: Attribute, coding: str, weights: Array, *, rotated: bool = True) -> Array:
    """Return A (codes, functions) of an attribute as a family bins it; weights (codes,) are the codes' row weights.

    `rotated` applies to the coding `thermometer`. The coding `linear` needs one code per interval. Under these two
    codings, a numeric attribute without cuts has no function except the indicator of its missing level, if any.
    """
    n_codes = len(weights)
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return np.eye(n_codes)
    if coding == "linear":
        return line(attribute.cuts, weights, missing=attribute.missing)
    steps = thermometer(n_codes - attribute.missing, missing=attribute.missing)
    if not rotated or steps.shape[1] < 2:
        return steps
    # B U; the functions with the largest sums of weighted squares come first
    # ascending eigenvalues, so the columns are reversed
    _, axes = np.linalg.eigh(steps.T @ (weights[:, np.newaxis] * steps))
    return np.asarray(steps @ axes[:, ::-1])


def n_functions(attribute: Attribute, coding: str, n_codes: int) -> int:
    """Return the number of functions of the basis that `basis_of` returns."""
    if coding == "cells" or not isinstance(attribute, NumericAttribute):
        return n_codes
    return n_codes - 1 if coding == "thermometer" else (n_codes - attribute.missing > 1) + attribute.missing


@lru_cache
def thermometer(n_intervals: int, *, missing: bool) -> Array:
    """Return B (codes, functions), read-only: one step per cut, then the indicator of the missing level."""
    codes, cuts = np.arange(n_intervals)[:, np.newaxis], np.arange(n_intervals - 1)
    steps = np.where(codes > cuts, 0.5, -0.5)
    if missing:
        steps = np.block([[steps, np.zeros((n_intervals, 1))], [np.zeros((1, n_intervals - 1)), np.ones((1, 1))]])
    steps.flags.writeable = False
    return steps


def line(cuts: Sequence[float], weights: Array, *, missing: bool) -> Array:
    """Return A (codes, functions) of the linear coding: the middle of each interval, then the missing level.

    The middles are standardised to mean 0 and variance 1 under the weights (codes,).
    """
    edges = np.asarray(cuts, np.float64)
    n = len(edges) + 1
    functions = np.zeros((n + missing, (n > 1) + missing))
    if n > 1:
        # with one cut there is no neighbour; any width does, since the middles are standardised
        width = np.diff(edges) if n > 2 else np.ones(1)
        middles = np.concatenate([[edges[0] - width[0] / 2], (edges[:-1] + edges[1:]) / 2, [edges[-1] + width[-1] / 2]])
        total = weights[:n].sum() or 1.0
        middles -= weights[:n] @ middles / total
        spread = np.sqrt(weights[:n] @ middles**2 / total)
        functions[:n, 0] = middles / spread if spread > 0 else middles
    if missing:
        functions[n, -1] = 1.0
    return functions


def coefficients(basis: Array) -> Array:
    """Return the matrix (1 + functions, codes) that maps a function of the codes to coefficients of the basis.

    The first coefficient belongs to the constant, and is 0 for indicators.
    """
    n_codes, n_functions = basis.shape
    if n_functions == n_codes:
        return np.concatenate([np.zeros((1, n_codes)), np.linalg.inv(basis)])
    # one function fewer than codes; linear coding, which may have fewer still, is never projected (its fits start at 0)
    return np.asarray(np.linalg.inv(np.column_stack([np.ones(n_codes), basis])))
