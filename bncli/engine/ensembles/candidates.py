"""The models that are tried: which tables each has, found on the rows that it learns from.

    singles        main effects: every attribute by itself, finely cut
    boosted        a bag of boosted trees (`bncli.engine.ensembles.boosted_candidate`)
    lines          linear effects: every numeric attribute a straight line over all its intervals
    tree           and the pairs of a tree (`--structure tan`)
    all pairs      and every pair
    pairs          and the pairs of highest gain (`--structure interactions`)
    triples        and the triples of highest gain
    quadruples     and sets of four, where the attributes are categories
    sharp singles  MDL-binned main effects: cut by Fayyad & Irani's rule, tables of free entries
    sharp tree     a tree on those bins, with lower orders

Linear effects have linear coding, the MDL-binned ones free cells, all others thermometer coding
(`bncli.engine.parameters.effect_coding`). A candidate that has the same
tables as an earlier one is left out.

Larger sets are found on the residuals of the fit of the candidate below. On tables without noise small penalties are
best, and the residuals of such a fit on the rows that it has learnt from are next to nothing; so a fit with a penalty
below that of `additive_fit` is not asked, but an additive fit. (Measured, held-out losses of pairs: soybean_large 0.211
to 0.167, zoo 0.140 to 0.083, anneal 0.034 to 0.030, tic_tac_toe 0.009 to 0.016; of its triples 0.042 to 0.003.)

Conventions: how finely sets of several attributes bin them, and how many sets there are, is said by
`bncli.engine.ensembles.candidates`. All pairs are tried up to ALL_PAIRS attributes. Where the best penalty of pairs
lies a decade or more above that of single attributes, later candidates penalise larger sets so much more.

How large a model's tables may grow with the rows: intervals an attribute, and sets of every size.

A table over k attributes, each binned to b intervals, has b^k cells. With CELL_ROWS rows a cell its entries are well
determined, and the time of a pass is that of the rows. So of many rows

    b = the largest with b^k <= rows / CELL_ROWS,   at least BINS[k], at most FINEST[k]

and up to FEW_ROWS rows BINS[k] whatever the rows: penalties and the ensemble guard what is finer than it should be. The
sets of a size, too, are more the more rows there are: SETS[k] an attribute, times (rows / FEW_ROWS)^GROWTH.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import NamedTuple

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Schema, direction_of
from bncli.engine.ensembles import grids
from bncli.engine.kernels.arrays import Array
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structure_learners import tan
from bncli.engine.structure_learners.additive_fit import PENALTY, additive_fit
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structures.regrouping import group_intervals_by_size, refine
from bncli.engine.structures.structure import Dag, Family, Groupings, Regions, Structure

FEW_ROWS, CELL_ROWS = 3_000, 100
BINS = {2: 8, 3: 4, 4: 4}
"""Intervals by the size of a set."""
FINEST = {2: 20, 3: 8, 4: 6}
SETS = {2: 3, 3: 2, 4: 2}
"""Sets of a size for each attribute that there is."""
GROWTH = 0.25


@dataclass(frozen=True)
class Capacity:
    """bins[k - 1]: intervals of an attribute in a table over k (the last: and more); sets of a size, for each one."""

    bins: tuple[int | None, ...] = (None, BINS[2], BINS[3])
    pairs: int = SETS[2]
    triples: int = SETS[3]
    quadruples: int = SETS[4]


def capacity(n_rows: int) -> Capacity:
    """Return what so many rows can bear."""
    if n_rows <= FEW_ROWS:
        return Capacity()
    growth = (n_rows / FEW_ROWS) ** GROWTH
    pairs, triples, quadruples = (int(SETS[k] * growth) for k in (2, 3, 4))
    return Capacity((None, *(_bins(n_rows, k) for k in (2, 3, 4))), pairs, triples, quadruples)


def _bins(n_rows: int, k: int) -> int:
    affordable = int((n_rows / CELL_ROWS) ** (1 / k))
    return min(FINEST[k], max(BINS[k], affordable))


ALL_PAIRS = 20
_ORDER = (
    *("singles", "boosted", "lines", "tree", "pairs", "sharp singles", "sharp tree"),
    *("all pairs", "triples", "quadruples"),
)
CONFLICT = 9.0
"""Best penalties that lie a decade apart tell that pairs and single attributes want different ones."""
BELOW = {"pairs": "singles", "triples": "pairs", "quadruples": "triples"}
"""The candidate on whose residuals the larger sets are chosen; all pairs in place of some, if they are better."""


@dataclass(frozen=True)
class Candidate:
    """Tables over `families`, and how their entries are made of parameters; `structure` says it to a reader."""

    name: str
    structure: Structure
    families: tuple[Family, ...]
    coding: str = "thermometer"
    lower_orders: bool = False
    beyond: float = 1.0
    """A factor of the penalty on sets of several attributes."""

    def has_tables_of(self, other: Candidate) -> bool:
        """Return whether the two are one model."""
        alike = self.coding == other.coding and self.lower_orders == other.lower_orders
        return alike and set(self.families) == set(other.families)


class Fit(NamedTuple):
    """A fitted candidate: its rows, fused, and its tables (K, n_cells)."""

    likelihood: ConditionalLikelihood
    cells: Array


@dataclass(frozen=True)
class Rows:
    """The rows that candidates are found on, those that were found, those that were fitted, and what builds on what."""

    data: Dataset
    found: dict[str, Candidate] = field(default_factory=dict)
    fits: dict[str, Fit] = field(default_factory=dict)
    below: dict[str, str] = field(default_factory=lambda: dict(BELOW))
    capacity: Capacity = field(default_factory=Capacity)
    penalties: dict[str, float] = field(default_factory=dict)
    """The best ones."""

    @cached_property
    def singles(self) -> grids.Binnings:
        """How a table over one attribute sees it."""
        return grids.singles(self.data, self.sharp)

    @cached_property
    def sharp(self) -> grids.Binnings:
        """By the rule of Fayyad & Irani."""
        return grids.mdl_binnings(self.data)

    @property
    def beyond(self) -> float:
        """How much more than by the usual factors pairs have to be penalised than single attributes."""
        if not {"singles", "pairs"} <= self.penalties.keys():
            return 1.0
        ratio = self.penalties["pairs"] / self.penalties["singles"]
        return ratio if ratio >= CONFLICT else 1.0


def candidate(rows: Rows, name: str) -> Candidate:
    """Return the candidate of this name on these rows."""
    if name not in rows.found:
        _FINDERS[name](rows)
    return rows.found[name]


def names(data: Dataset) -> tuple[str, ...]:
    """Return those that these attributes can have, the likely best first."""
    n, attributes = len(data.schema.informative), data.schema.attributes
    numeric = any(not isinstance(attributes[i], CategoricalAttribute) for i in data.schema.informative)
    least = {"tree": 2, "pairs": 2, "all pairs": 3, "triples": 3, "quadruples": 4, "sharp tree": 2}
    wanted = [name for name in _ORDER if n >= least.get(name, 0)]
    # without numbers there is nothing to cut sharply
    impossible = {"quadruples"} if numeric else {"sharp singles", "lines", "sharp tree"}
    if n > ALL_PAIRS:
        impossible.add("all pairs")
    return tuple(name for name in wanted if name not in impossible)


def _main_effects(rows: Rows) -> None:
    _keep_regions(rows, "singles", [(i,) for i in rows.data.schema.informative])


def _linear_effects(rows: Rows) -> None:
    schema = rows.data.schema
    structure = Regions(tuple((i,) for i in schema.informative), method="auto")
    rows.found["lines"] = Candidate("lines", structure, structure.families(schema.cardinalities), coding="linear")


def _all_pairs(rows: Rows) -> None:
    informative = rows.data.schema.informative
    singles = [(i,) for i in informative]
    _keep_regions(rows, "all pairs", [*singles, *itertools.combinations(informative, 2)])


def _tree(rows: Rows) -> None:
    informative = rows.data.schema.informative
    dag = tan.learn(Counts(grids.regrouped(rows.data, grids.few(rows.data, 8))))
    pairs = [tuple(sorted((i, *dag.parents[i]))) for i in informative if dag.parents[i]]
    _keep_regions(rows, "tree", [*((i,) for i in informative), *pairs])


def _pairs(rows: Rows) -> None:
    _extend(rows, "pairs", 5)


def _triples(rows: Rows) -> None:
    _extend(rows, "triples", 4)


def _quadruples(rows: Rows) -> None:
    _extend(rows, "quadruples", 4)


def _extend(rows: Rows, name: str, bins: int) -> None:
    """Return the regions of the previous candidate and the larger ones with the highest gains on its residuals."""
    below = candidate(rows, rows.below[name])
    gains = Gains(*_fit_of(rows, below), rows.data.schema.informative, bins)
    regions = below.structure.regions if isinstance(below.structure, Regions) else ()
    size = max(map(len, regions))
    ranked = gains.of_pairs() if size == 1 else gains.of_extensions([r for r in regions if len(r) == size])
    most = getattr(rows.capacity, name) * len(rows.data.schema.informative)
    _keep_regions(rows, name, [*regions, *(one.attributes for one in ranked[:most])])


def _fit_of(rows: Rows, below: Candidate) -> Fit:
    """Return one whose residuals tell what it lacks.

    The best one, unless its penalty is below that of `additive_fit`.
    """
    fit = rows.fits.get(below.name)
    if fit is not None and rows.penalties.get(below.name, PENALTY) >= PENALTY:
        return fit
    return Fit(*additive_fit(rows.data, below.families))


def _mdl_main_effects(rows: Rows) -> None:
    data = _mdl_binned(rows)
    informative = data.schema.informative
    dag = Dag(((),) * len(data.codes), informative, method="nb")
    _keep_dag(rows, "sharp singles", dag, data)


def _mdl_tree(rows: Rows) -> None:
    data = _mdl_binned(rows)
    _keep_dag(rows, "sharp tree", tan.learn(Counts(data)), data)


def _mdl_binned(rows: Rows) -> Dataset:
    return grids.regrouped(rows.data, rows.sharp)


def _keep_regions(rows: Rows, name: str, regions: Sequence[tuple[int, ...]]) -> None:
    schema = rows.data.schema
    bins = (grids.FINE, *rows.capacity.bins[1:])
    larger = group_intervals_by_size(schema.attributes, bins[1:])
    groupings = (_with_steps(schema, rows.singles, larger), *larger)
    structure = Regions(tuple(regions), method="auto", bins=bins, groupings=groupings)
    families = structure.families(schema.cardinalities)
    lower_orders = len(regions) > len(schema.informative)
    rows.found[name] = Candidate(name, structure, families, lower_orders=lower_orders, beyond=rows.beyond)


def _with_steps(schema: Schema, singles: grids.Binnings, larger: Groupings) -> grids.Binnings:
    """Add cuts to an attribute with a direction wherever larger sets cut it, so that it can offset them."""
    return tuple(
        reduce(refine, (one[i] for one in larger), own) if direction_of(schema, i) else own
        for i, own in enumerate(singles)
    )


def _keep_dag(rows: Rows, name: str, dag: Dag, seen: Dataset) -> None:
    families = grids.regrouped_families(dag.families(seen.schema.cardinalities), rows.sharp)
    rows.found[name] = Candidate(name, dag, families, coding="cells", lower_orders=True)


_FINDERS: dict[str, Callable[[Rows], None]] = {
    "singles": _main_effects,
    "tree": _tree,
    "lines": _linear_effects,
    "all pairs": _all_pairs,
    "pairs": _pairs,
    "triples": _triples,
    "quadruples": _quadruples,
    "sharp singles": _mdl_main_effects,
    "sharp tree": _mdl_tree,
}
