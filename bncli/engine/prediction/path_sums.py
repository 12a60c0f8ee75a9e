"""Sums of submodels over the cells of a region that contains them all, and submodels with something summed out.

    D[v, y] = sum over terms (c, R) of c ln P(v_R, y)
    ln P(v_R without a, y) = ln sum over values u of a of P(v_R with a = u, y)

Submodels of overlapping regions are consistent, so what is left after summing out is the submodel of the smaller
region. An expanded submodel has one value more along each axis, "unobserved": the entry with that axis summed out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.logspace import log_sum
from bncli.engine.structures.region_graph import Region

Term = tuple[int, Region, Array]
"""A factor c, attributes R in the order of the region around them, and an array (values of each ..., K)."""


def sum_over(region: Region, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """D, shape (*shape, K); every R is a part of `region` and one of them is all of it."""
    total: Array | None = None
    for factor, members, table in terms:
        sizes = dict(zip(members, table.shape[:-1], strict=True))
        part = table.reshape(*(sizes.get(i, 1) for i in region), -1)
        if total is None:
            total = np.zeros((*shape, part.shape[-1]))
        total += factor * part
    assert total is not None
    return total


def log_margin(table: Array, axes: Collection[int]) -> Array:
    """ln of the sum of exp over these axes, which go."""
    if not axes:
        return table
    summed = tuple(axes)
    return np.asarray(np.squeeze(log_sum(table, summed), summed))


def expand(table: Array) -> Array:
    """(n_1, n_2, ..., K) -> (n_1 + 1, n_2 + 1, ..., K): the last code of every axis stands for "unobserved"."""
    for axis in range(table.ndim - 1):
        table = np.concatenate([table, np.expand_dims(log_margin(table, (axis,)), axis)], axis=axis)
    return table
