"""Which sets of attributes have effects of their own, and how a penalty weighs on them.

Every family has a block of effects over all its attributes. With *lower orders* every non-empty subset of a family's
attributes has one as well, each set once in all. A penalty on the parameters then weighs on sets of 1, 2, 3, ...
attributes as 1 : 2 : 4 : ..., by the factors of the blocks,

    s_S = 2^(-(|S| - 1) / 2)

so that what a single attribute can say is not said by a pair. Without lower orders all factors are 1. Where sets of
several attributes want a larger penalty still, theirs is `beyond` times that.

Conventions: a set that lies in several families belongs to the one with the finest binning of its attributes (see
`structures.binning`), among these to the first. So an attribute never
has a second, coarser curve beside its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameter_spaces.effect_bases import basis, n_functions
from bncli.engine.parameter_spaces.effects import Block, Effects
from bncli.engine.structures.structure import BinnedAttribute, Family


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
    """The effects of tables over `families`; weights (n_cells,) of the rows in each cell, the bias first.

    `turned` says of the number of all effects whether a basis of steps is turned.
    """
    if lower_orders:
        sets = list(_all_sets(families, beyond))
    else:
        sets = [(f, tuple(range(len(family.shape))), 1.0) for f, family in enumerate(families)]
    turns = turned(_n_effects(families, schema, coding, sets))
    bases = _bases(families, schema, weights, coding, turned=turns)
    blocks = tuple(Block(f, places, scale, tuple(bases[f][j] for j in places)) for f, places, scale in sets)
    return Effects(tuple(families), bases, blocks)


def _n_effects(
    families: Sequence[Family], schema: Schema, coding: str, sets: Sequence[tuple[int, tuple[int, ...], float]]
) -> int:
    """The bias counted."""
    sizes = [
        [n_functions(schema.attributes[a], coding, n) for a, n in zip(family.attributes, family.shape, strict=True)]
        for family in families
    ]
    return 1 + sum(math.prod(sizes[f][j] for j in places) for f, places, _ in sets)


def _bases(
    families: Sequence[Family], schema: Schema, weights: Array, coding: str, *, turned: bool
) -> tuple[tuple[Array, ...], ...]:
    """The basis of every attribute of every family: from the weights of its codes in the first family."""
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


def _all_sets(families: Sequence[Family], beyond: float) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """(family, places, s_S) of every set of attributes in any family: by the families in order, small sets first."""
    owners: dict[frozenset[int], tuple[int, int]] = {}
    subsets = [[_set(family, places) for places in _subsets(family)] for family in families]
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


def _set(family: Family, places: tuple[int, ...]) -> frozenset[int]:
    return frozenset(family.attributes[j] for j in places)
