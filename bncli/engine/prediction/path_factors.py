"""Factors of an average over a path of models (`engine.model.Path`): stages, and tables over the cells of regions.

Stages. Probabilities are computed only for steps with weight: a stage is a step with weight together with the steps
without weight just before it. Many of the changes of a stage cancel. What remains of a region that another region
contains is added to the table of that one, its host. So a single model is one stage with a table per region that no
other contains. Weights below LEAST_WEIGHT count as 0, which changes no probability by more than rounding does.

Tables. All that changes inside a region is added up in one table over its cells,

    D[v, y] = sum over changes (R, c) of c ln P(v_R, y)

Each submodel is marginalized over the attributes that are unknown in a row:

    ln P(v_R without a, y) = ln sum over values u of a of P(v_R with a = u, y)

Submodels of overlapping regions are consistent, so the result is the submodel of the smaller region. These entries are
part of the table (`expand_submodel`), unless they would make it too large: then a `RegionFactor` keeps the plain table,
and marginalizes for each pattern of unknown attributes that occurs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, log_sum
from bncli.engine.kikuchi.model_paths import Region
from bncli.engine.model import Path
from bncli.engine.prediction.factors import EXPANDED_ENTRIES, Factor, cells_of, score_rows
from bncli.engine.structures.structure import maximal

LEAST_WEIGHT = 1e-17
Change = tuple[int, int]
"""The index of a family of the path, or -1 for the class alone, and the change of its counting number."""
Term = tuple[int, Region, Array]
"""A factor c, attributes R in the order of the region that contains them, and an array (values of each ..., K)."""


@dataclass(frozen=True)
class PathStage:
    """The changes of one stage: `hosts` are pairs of a host family and the changes added up in its table.

    class_change: that of the class alone, if there is no host.
    """

    weight: float
    class_change: int
    hosts: tuple[tuple[int, tuple[Change, ...]], ...]


def stages_of(path: Path) -> list[PathStage]:
    """Return the stages in the order of their steps, without the steps after the last one with weight."""
    stages, changes = [], defaultdict[int, int](int)
    for step in path.steps:
        for family, change in step.changes:
            changes[family] += change
        if step.weight < LEAST_WEIGHT:
            continue
        # Every change goes to the first host that contains its region; hosts are the regions that no other contains.
        regions: dict[int, Region] = {f: path.families[f].attributes if f >= 0 else () for f, c in changes.items() if c}
        largest = set(maximal(region for region in regions.values() if region))
        hosts: dict[int, list[Change]] = {f: [] for f, region in regions.items() if region in largest}
        class_change = 0
        for f, region in regions.items():
            host = next((h for h in hosts if set(region) <= set(regions[h])), None)
            if host is None:
                class_change = changes[f]
            else:
                hosts[host].append((f, changes[f]))
        stages.append(PathStage(step.weight, class_change, tuple((h, tuple(terms)) for h, terms in hosts.items())))
        changes.clear()
    return stages


class SubmodelTensors:
    """The submodels of a path, plain (cardinalities ..., K) or with entries for "unobserved"; index -1: the class."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expanded: dict[int, Array] = {-1: path.class_logs}

    def plain(self, f: int) -> Array:
        return self.path.class_logs if f < 0 else self.path.logs[f].reshape(*self.path.families[f].shape, -1)

    def expanded(self, f: int) -> Array:
        if f not in self._expanded:
            self._expanded[f] = expand_submodel(self.plain(f))
        return self._expanded[f]

    def attributes(self, f: int) -> tuple[int, ...]:
        return () if f < 0 else self.path.families[f].attributes


def host_factor(
    tensors: SubmodelTensors, host: int, changes: Sequence[Change], used: Sequence[int]
) -> Factor | RegionFactor:
    """Return the factor of a host family with these changes; `used`: the attributes of the scorer, ascending."""
    family = tensors.path.families[host]
    positions = tuple(bisect_left(used, a) for a in family.attributes)
    shape = tuple(n + 1 for n in family.shape)
    n_rows = len(score_rows(tensors.path.class_logs[None, :]))
    if n_rows * math.prod(shape) <= max(EXPANDED_ENTRIES, 2 * n_rows * family.n_cells):
        expanded = ((change, tensors.attributes(f), tensors.expanded(f)) for f, change in changes)
        return Factor(positions, shape, _region_tables(family.attributes, shape, expanded))
    plain = tuple((change, tensors.attributes(f), tensors.plain(f)) for f, change in changes)
    tables = _region_tables(family.attributes, family.shape, plain)
    return RegionFactor(positions, family.attributes, family.shape, tables, plain)


@dataclass(frozen=True)
class RegionFactor:
    """The table of a large region: tables (R, cells), one per score row, and the terms of which they are the sum.

    Code shape[i] means that region[i] is unknown.
    """

    positions: tuple[int, ...]
    region: tuple[int, ...]
    shape: tuple[int, ...]
    tables: Array
    terms: tuple[Term, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add the entry of every row to scores (R, rows)."""
        digits = [codes[p] for p in self.positions]
        unknown = np.array([digit == n for digit, n in zip(digits, self.shape, strict=True)])
        patterns, pattern_of_row = np.unique(unknown, axis=1, return_inverse=True)
        for k, pattern in enumerate(patterns.T):
            rows = np.flatnonzero(pattern_of_row.ravel() == k)
            known = [axis for axis, hidden in enumerate(pattern) if not hidden]
            tables = self.tables
            if len(known) < len(pattern):
                # the table for rows in which only these axes are known
                region = tuple(self.region[a] for a in known)
                margins = [
                    (
                        change,
                        tuple(i for i in attributes if i in region),
                        log_margin(table, [axis for axis, i in enumerate(attributes) if i not in region]),
                    )
                    for change, attributes, table in self.terms
                ]
                tables = _region_tables(region, [self.shape[a] for a in known], margins)
            cells = cells_of([digits[a][rows] for a in known], [self.shape[a] for a in known]) if known else 0
            scores[:, rows] += tables[:, cells] if known else tables


def _region_tables(region: Region, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """Return the sum of the terms as score rows (R, cells of `shape`)."""
    table = sum_over(region, shape, terms)
    return score_rows(table.reshape(-1, table.shape[-1]))


def sum_over(region: Region, shape: Sequence[int], terms: Iterable[Term]) -> Array:
    """Return the sum D of the terms, (*shape, K); the attributes of each are a subset of `region`, in its order."""
    total: Array | None = None
    for factor, attributes, table in terms:
        sizes = dict(zip(attributes, table.shape[:-1], strict=True))
        # length 1 on the axes of attributes that the term lacks
        aligned = table.reshape(*(sizes.get(i, 1) for i in region), -1)
        if total is None:
            total = np.zeros((*shape, aligned.shape[-1]))
        total += factor * aligned
    assert total is not None
    return total


def log_margin(table: Array, axes: Collection[int]) -> Array:
    """Marginalize a table of log-probabilities over these axes, which are removed."""
    if not axes:
        return table
    summed = tuple(axes)
    return np.asarray(np.squeeze(log_sum(table, summed), summed))


def expand_submodel(table: Array) -> Array:
    """Add the marginals as the last code, "unobserved", of every axis: (n_1, ..., K) becomes (n_1 + 1, ..., K)."""
    for axis in range(table.ndim - 1):
        table = np.concatenate([table, np.expand_dims(log_margin(table, (axis,)), axis)], axis=axis)
    return table
