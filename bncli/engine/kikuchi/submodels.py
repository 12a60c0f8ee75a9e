"""Submodels: the smoothed relative frequencies of a region and the class.

    P(v_R) = (n[v_R] + theta / |cells of R|) / (N + theta)

The cells are those of the region's attributes with the class, N is the total weight of the rows. One theta, spread
evenly, for all regions keeps submodels consistent: the margin of a submodel is the submodel of the margin (Jakulin &
Rish 2006, section 6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.structures.region_graph import Region


def log_submodels(counts: Counts, regions: Iterable[Region], theta: float) -> list[Array]:
    """ln P(v_R) of each region, shape (cardinalities in the region's order..., K); counted in one pass.

    Raises BncliError for a table of too many entries.
    """
    total = counts.data.total_weight
    return [np.log(submodel(table, total, theta)) for table in counts.tables(regions)]


def submodel(table: Array, total: float, theta: float) -> Array:
    """P(v_R) of the region's counts, all with its class."""
    return (table + theta / table.size) / (total + theta)


def addition(table: Array, region: Region, changes: Mapping[Region, int], total: float, theta: float) -> Array:
    """What a region adds to the scores of its own cells: sum over subsets R of dc_R ln P(v_R), shape (cells, K).

    `table` counts the region; the submodels of its subsets are margins of its own.
    """
    joint = submodel(table, total, theta)
    added = np.zeros(joint.shape)
    for subset, change in changes.items():
        dropped = tuple(axis for axis, i in enumerate(region) if i not in subset)
        added += change * np.log(joint.sum(axis=dropped, keepdims=True))
    return added.reshape(-1, table.shape[-1])
