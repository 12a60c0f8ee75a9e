"""Effects that say what given tables say, as far as effects can.

Along every axis a table is written in the constant and the functions of that attribute's basis,

    W[c, y] = sum over subsets S of the family, (j_i, i in S) of v[y, S, (j_i)] prod over i in S of A_i[c_i, j_i]

where indicators need no constant and get 0 for it. What belongs to S goes to the block of S, of whatever family, and
what belongs to the empty set to the bias. Conventions: what no block carries is left out. So nothing is lost with
lower orders, in families of one attribute, and where no attribute has steps; but tables over two attributes whose only
effects are products of steps lose what each attribute says by itself, and so do sets that another family sees more
finely.
"""

from __future__ import annotations

import itertools

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.parameter_spaces.effect_bases import coefficients
from bncli.engine.parameter_spaces.effects import Block, Effects
from bncli.engine.structures.structure import BinnedAttribute


def projected(effects: Effects, tables: Array) -> Array:
    """Parameters (any, effects) of tables (any, n_cells); cost: that of making tables, a loop over blocks."""
    out = np.zeros((len(tables), effects.n_effects))
    out[:, 0] = tables[:, 0]
    homes = {_key(effects, block): (block, effects.offsets[b]) for b, block in enumerate(effects.blocks)}
    edge = 1
    for family, bases in zip(effects.families, effects.bases, strict=True):
        parts = tables[:, edge : edge + family.n_cells].reshape(len(tables), *family.shape)
        edge += family.n_cells
        for axis, functions in enumerate(bases, start=1):
            parts = np.moveaxis(np.tensordot(parts, coefficients(functions), (axis, 1)), -1, axis)
        for said in itertools.product((False, True), repeat=len(bases)):
            inside = (slice(None), *(slice(1, None) if s else 0 for s in said))
            members = tuple(binned for binned, s in zip(family.binned_attributes, said, strict=True) if s)
            _add(out, effects, homes, members, parts[inside])
    return out


def _add(
    out: Array,
    effects: Effects,
    homes: dict[frozenset[BinnedAttribute], tuple[Block, int]],
    members: tuple[BinnedAttribute, ...],
    part: Array,
) -> None:
    """Adds v of the set `members`, (any, functions of each of them), to the parameters of its block, if it has one."""
    if not members:
        out[:, 0] += part
        return
    if frozenset(members) not in homes:
        return
    block, offset = homes[frozenset(members)]
    seen = effects.families[block.family].binned_attributes
    axes = [1 + members.index(seen[place]) for place in block.places]
    out[:, offset : offset + block.n_effects] += part.transpose(0, *axes).reshape(len(out), -1) / block.scale


def _key(effects: Effects, block: Block) -> frozenset[BinnedAttribute]:
    seen = effects.families[block.family].binned_attributes
    return frozenset(seen[place] for place in block.places)
