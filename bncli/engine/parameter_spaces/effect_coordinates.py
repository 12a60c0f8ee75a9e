"""Effects as the free parameters of an optimization: p = (K, effects) flat, every class with effects of its own.

The generative start is the projection of the generative tables on what effects can say. Along every axis a table is
written in the constant and the functions of that attribute's basis,

    W[c, y] = sum over subsets S of the family, (j_i, i in S) of v[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

where indicators need no constant and get 0 for it. What belongs to S goes to the block of S, of whatever family, and
what belongs to the empty set to the bias. Conventions: what no block carries is left out. So nothing is lost with
lower orders, in families of one attribute, and where no attribute has steps; but tables over two attributes whose only
effects are products of steps lose what each attribute says by itself, and so do sets that another family bins more
finely.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.parameter_spaces.effect_bases import coefficients
from bncli.engine.parameter_spaces.effects import Block, Effects
from bncli.engine.structures.structure import BinnedAttribute


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


def _projected(effects: Effects, tables: Array) -> Array:
    """Parameters (any, effects) of tables (any, n_cells); cost: that of making tables, a loop over blocks."""
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


def _add(
    out: Array,
    effects: Effects,
    homes: dict[frozenset[BinnedAttribute], tuple[Block, int]],
    members: tuple[BinnedAttribute, ...],
    term: Array,
) -> None:
    """Adds v of the set `members`, (any, functions of each of them), to the parameters of its block, if it has one."""
    if not members:
        out[:, 0] += term
        return
    if frozenset(members) not in homes:
        return
    block, offset = homes[frozenset(members)]
    binned = effects.families[block.family].binned_attributes
    axes = [1 + members.index(binned[place]) for place in block.places]
    out[:, offset : offset + block.n_effects] += term.transpose(0, *axes).reshape(len(out), -1) / block.scale


def _key(effects: Effects, block: Block) -> frozenset[BinnedAttribute]:
    binned = effects.families[block.family].binned_attributes
    return frozenset(binned[place] for place in block.places)
