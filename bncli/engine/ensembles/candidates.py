"""The candidates of `--structure auto`, with the tables of each, chosen on the rows that it learns from.

    singles        main effects: one table per attribute, finely cut
    boosted        a bag of boosted trees (`bncli.engine.ensembles.boosted_bag`)
    lines          linear effects: the effect of a numeric attribute is a straight line over all its intervals
    tree           main effects and the pairs of a tree (`--structure tan`)
    all pairs      main effects and every pair, with at most ALL_PAIRS attributes
    pairs          main effects and the pairs of highest gain (`--structure interactions`)
    triples        pairs and the triples of highest gain
    quadruples     triples and sets of four attributes, if all attributes are categorical
    sharp singles  main effects cut by the method of Fayyad & Irani (1993), with free entries
    sharp tree     the pairs of a tree on these cuts, and their main effects

Linear effects have linear coding, sharp candidates free cells, all others thermometer coding
(`bncli.engine.parameters.effect_coding`).

Cuts. Candidates need different cuts. Boosted trees choose among very many cuts of equal frequency. Tables over one
attribute have many cuts, and the penalty smooths the steps; tables over several attributes have few. Sharp candidates
have the cuts of Fayyad & Irani, which suit sharp thresholds. The rows are encoded once, with the union of all these
cuts, and a table may group the codes of an attribute (`bncli.engine.structures.regrouping`). The method of Fayyad &
Irani selects among the cuts again on the rows that a candidate learns from, so that held-out rows only affect the
positions of the cuts. Rare levels of categorical attributes are pooled once, on all rows.

Larger sets. They are chosen by the residuals of the fit of a smaller candidate. On tables without noise small penalties
are best, and the residuals of such a fit on its own training rows are nearly 0. So if the best penalty is below PENALTY
of `additive_fit`, an additive fit is used instead. (This changed held-out losses of pairs from 0.211 to 0.167 on
soybean_large, 0.140 to 0.083 on zoo, 0.034 to 0.030 on anneal, 0.009 to 0.016 on tic_tac_toe; of triples, from 0.042 to
0.003 on tic_tac_toe.) If the best penalty of pairs is at least CONFLICT times the best penalty of single attributes,
later candidates multiply the penalty of sets of several attributes by this ratio.

Size. A table over k attributes with b intervals each has b^k cells. With CELL_ROWS rows per cell its entries are well
determined, and the cells hardly add to the time of a pass. So with more than FEW_ROWS rows

    b = the largest integer with b^k <= rows / CELL_ROWS,   at least LEAST_INTERVALS[k], at most MOST_INTERVALS[k]

and with fewer rows LEAST_INTERVALS[k]: penalties and the weights of the ensemble protect against tables that are too
fine. Above FEW_ROWS rows, the maximum number of sets per attribute, SETS_PER_ATTRIBUTE[k], is multiplied by
(rows / FEW_ROWS)^GROWTH.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import COLUMNS_AT_A_TIME, PoolingRule, has_many_levels, learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, ReadingRules, direction_of
from bncli.engine.discretizers import equal_frequency, mdl
from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.structure_learners import tan
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structure_learners.interactions import PENALTY, additive_fit
from bncli.engine.structures.regrouping import (
    group_intervals,
    group_intervals_by_size,
    refine,
    regroup_attribute,
    regroup_codes,
)
from bncli.engine.structures.structure import Dag, Family, Grouping, Regions, Structure
from bncli.watch import Run

FINEST, SINGLE_INTERVALS = 255, 40
"""The maximum number of intervals of equal frequency: for the codes, and for tables over one attribute (half of this
number below MANY_ROWS rows).
"""
MANY_ROWS = 1_000
"""With at least this many rows, Fayyad & Irani's cuts are included in the codes and in tables over one attribute."""
TREE_INTERVALS = 8
GAIN_INTERVALS = {"pairs": 5, "triples": 4, "quadruples": 4}
"""The maximum number of intervals per attribute with which the gains of larger sets are computed."""
FEW_ROWS, CELL_ROWS = 3_000, 100
LEAST_INTERVALS = {2: 8, 3: 4, 4: 4}
MOST_INTERVALS = {2: 20, 3: 8, 4: 6}
SETS_PER_ATTRIBUTE = {2: 3, 3: 2, 4: 2}
GROWTH = 0.25
ALL_PAIRS = 20
CONFLICT = 9.0
BUILDS_ON = {"pairs": "singles", "triples": "pairs", "quadruples": "triples"}
"""The candidate on whose residuals larger sets are chosen; `triples` build on `all pairs` if that is better."""
_LIKELY_FIRST = (
    *("singles", "boosted", "lines", "tree", "pairs", "sharp singles", "sharp tree"),
    *("all pairs", "triples", "quadruples"),
)
AttributeGroupings = tuple[Grouping | None, ...]
"""The grouping of each attribute's codes, or None for attributes that keep all codes."""


@dataclass(frozen=True)
class Candidate:
    """A candidate: tables over `families`, and how their entries are coded; `structure` is stored in the model.

    `interaction_factor` multiplies the penalty of sets of several attributes.
    """

    name: str
    structure: Structure
    families: tuple[Family, ...]
    coding: str = "thermometer"
    lower_orders: bool = False
    interaction_factor: float = 1.0

    def is_same_model(self, other: Candidate) -> bool:
        """Return whether both have the same tables and parameters, apart from the penalty."""
        alike = self.coding == other.coding and self.lower_orders == other.lower_orders
        return alike and set(self.families) == set(other.families)


class Fit(NamedTuple):
    """A fitted candidate: the likelihood of its rows, and its tables (K, n_cells)."""

    likelihood: ConditionalLikelihood
    cells: Array


@dataclass(frozen=True)
class Capacity:
    """The limits of tables: bins[k - 1] is the maximum number of intervals per attribute in a table over k attributes.

    None means no limit; the last entry also holds for larger sets. The other fields are the maximum numbers of sets per
    attribute.
    """

    bins: tuple[int | None, ...] = (None, LEAST_INTERVALS[2], LEAST_INTERVALS[3])
    pairs: int = SETS_PER_ATTRIBUTE[2]
    triples: int = SETS_PER_ATTRIBUTE[3]
    quadruples: int = SETS_PER_ATTRIBUTE[4]


def capacity_for(n_rows: int) -> Capacity:
    """Return the limits of the tables for `n_rows` rows."""
    if n_rows <= FEW_ROWS:
        return Capacity()
    bins = (min(MOST_INTERVALS[k], max(LEAST_INTERVALS[k], int((n_rows / CELL_ROWS) ** (1 / k)))) for k in (2, 3, 4))
    growth = (n_rows / FEW_ROWS) ** GROWTH
    pairs, triples, quadruples = (int(SETS_PER_ATTRIBUTE[k] * growth) for k in (2, 3, 4))
    return Capacity((None, *bins), pairs, triples, quadruples)


def candidate_names(data: Dataset) -> tuple[str, ...]:
    """Return the names of the candidates that are possible with these attributes, the most promising first."""
    n, attributes = len(data.schema.informative), data.schema.attributes
    has_numbers = any(not isinstance(attributes[i], CategoricalAttribute) for i in data.schema.informative)
    fewest_attributes = {"tree": 2, "pairs": 2, "all pairs": 3, "triples": 3, "quadruples": 4, "sharp tree": 2}
    impossible = {"quadruples"} if has_numbers else {"sharp singles", "lines", "sharp tree"}
    if n > ALL_PAIRS:
        impossible.add("all pairs")
    return tuple(name for name in _LIKELY_FIRST if n >= fewest_attributes.get(name, 0) and name not in impossible)


@dataclass(frozen=True)
class CandidateFinder:
    """Chooses the tables of candidates on some rows, and stores the candidates and their fits.

    `penalties` has the best penalty of each candidate tried so far, `fits` the fit at that penalty.
    """

    data: Dataset
    candidates: dict[str, Candidate] = field(default_factory=dict)
    fits: dict[str, Fit] = field(default_factory=dict)
    builds_on: dict[str, str] = field(default_factory=lambda: dict(BUILDS_ON))
    capacity: Capacity = field(default_factory=Capacity)
    penalties: dict[str, float] = field(default_factory=dict)

    def find(self, name: str) -> Candidate:
        """Return the candidate with this name, with tables chosen on these rows."""
        if name not in self.candidates:
            if name in ("sharp singles", "sharp tree"):
                self.candidates[name] = self._find_sharp(name)
            else:
                self.candidates[name] = self._find_regions(name)
        return self.candidates[name]

    def _find_sharp(self, name: str) -> Candidate:
        data = regroup_dataset(self.data, self.mdl_groupings)
        if name == "sharp tree":
            dag = _tan_without_many_levels(data)
        else:
            dag = Dag(((),) * len(data.codes), data.schema.informative, method="nb")
        families = []
        for family in dag.families(data.schema.cardinalities):
            # the same family over the original codes
            groupings = tuple(self.mdl_groupings[a] for a in family.attributes)
            is_grouped = any(grouping is not None for grouping in groupings)
            families.append(replace(family, groupings=groupings if is_grouped else ()))
        return Candidate(name, dag, tuple(families), coding="cells", lower_orders=True)

    def _find_regions(self, name: str) -> Candidate:
        schema = self.data.schema
        if name == "lines":
            lines = Regions(tuple((i,) for i in schema.informative), method="auto")
            return Candidate(name, lines, lines.families(schema.cardinalities), coding="linear")
        regions = self._regions(name)
        bins = (SINGLE_INTERVALS, *self.capacity.bins[1:])
        larger = group_intervals_by_size(schema.attributes, bins[1:])
        # An attribute with a monotonicity constraint has all cuts of larger sets, so its own table can offset theirs.
        singles = tuple(
            reduce(refine, (groupings[i] for groupings in larger), own) if direction_of(schema, i) else own
            for i, own in enumerate(self.single_groupings)
        )
        structure = Regions(tuple(regions), method="auto", bins=bins, groupings=(singles, *larger))
        return Candidate(
            name,
            structure,
            structure.families(schema.cardinalities),
            lower_orders=len(regions) > len(schema.informative),
            interaction_factor=self.interaction_factor,
        )

    def _regions(self, name: str) -> list[tuple[int, ...]]:
        """Return the sets of attributes of a candidate, the single attributes first."""
        informative = self.data.schema.informative
        singles: list[tuple[int, ...]] = [(i,) for i in informative]
        if name == "singles":
            return singles
        # an attribute with many levels is shrunk on its own, and takes no part in larger sets
        attributes = self.data.schema.attributes
        informative = tuple(i for i in informative if not has_many_levels(attributes[i]))
        if name == "all pairs":
            return [*singles, *itertools.combinations(informative, 2)]
        if name == "tree":
            dag = _tan_without_many_levels(regroup_dataset(self.data, equal_groupings(self.data, TREE_INTERVALS)))
            return [*singles, *(tuple(sorted((i, *dag.parents[i]))) for i in informative if dag.parents[i])]
        base = self.find(self.builds_on[name])
        fit = self.fits.get(base.name)
        if fit is None or self.penalties.get(base.name, PENALTY) < PENALTY:
            fit = Fit(*additive_fit(self.data, base.families)[:2])
        gains = Gains(*fit, informative, GAIN_INTERVALS[name])
        regions = list(base.structure.regions) if isinstance(base.structure, Regions) else []
        # only the largest sets of the base are extended
        size = max(map(len, regions))
        ranked = gains.of_pairs() if size == 1 else gains.of_extensions([r for r in regions if len(r) == size])
        most = getattr(self.capacity, name) * len(informative)
        return [*regions, *(extension.attributes for extension in ranked[:most])]

    @cached_property
    def single_groupings(self) -> AttributeGroupings:
        """The groupings of tables over one attribute."""
        if self.data.n_rows < MANY_ROWS:
            return equal_groupings(self.data, SINGLE_INTERVALS // 2)
        both = zip(equal_groupings(self.data, SINGLE_INTERVALS), self.mdl_groupings, strict=True)
        return tuple(steps if cuts is None else refine(steps, cuts) for steps, cuts in both)

    @cached_property
    def mdl_groupings(self) -> AttributeGroupings:
        """The groupings of attributes by the cuts that the method of Fayyad & Irani selects among those of the schema.

        The selection uses these rows. The grouping is None for categorical and for uninformative attributes.
        """
        without_cuts = _without_cuts(self.data)
        groupings: list[Grouping | None] = []
        for i, attribute in enumerate(self.data.schema.attributes):
            if not isinstance(attribute, NumericAttribute) or not attribute.informative:
                groupings.append(None)
                continue
            if i in without_cuts:
                groupings.append((0,) * attribute.n_values)
                continue
            codes, labels, weights = self.data.codes[i], self.data.labels, self.data.weights
            if attribute.missing:
                rows = np.flatnonzero(codes < attribute.n_values)
                codes, labels, weights = codes[rows], labels[rows], None if weights is None else weights[rows]
            cuts = mdl.cut_points(codes, labels, self.data.n_labels, weights)
            # cuts between codes: the group of a code is the number of cuts below it
            groups = np.searchsorted(cuts, np.arange(attribute.n_values)).tolist()
            groupings.append(tuple(groups) + ((groups[-1] + 1,) if attribute.missing else ()))
        return tuple(groupings)

    @property
    def interaction_factor(self) -> float:
        """The factor that multiplies the penalty of sets of several attributes.

        It is the best penalty of `pairs` divided by that of `singles`, or 1 if that ratio is below CONFLICT or unknown.
        """
        if not {"singles", "pairs"} <= self.penalties.keys():
            return 1.0
        ratio = self.penalties["pairs"] / self.penalties["singles"]
        return ratio if ratio >= CONFLICT else 1.0


def _tan_without_many_levels(data: Dataset) -> Dag:
    """Return the tree of `--structure tan`, without the arcs of attributes with many levels."""
    dag = tan.learn(Counts(data))
    few = [not has_many_levels(attribute) for attribute in data.schema.attributes]
    if all(few):
        return dag
    parents = (tuple(j for j in own if few[i] and few[j]) for i, own in enumerate(dag.parents))
    return replace(dag, parents=tuple(parents))


def fine_dataset(columns: Columns, reading_rules: ReadingRules, run: Run, group_levels: PoolingRule = "off") -> Dataset:
    """Encode the rows with the union of all cuts that candidates need.

    Rare levels of categorical columns are pooled by the rule `group_levels`.
    """
    cut = _fine_cuts if columns.n_rows >= MANY_ROWS else partial(equal_frequency.cut_points, bins=FINEST)
    return learn_dataset(
        columns, discretize=cut, group_levels=group_levels, shrinks=True, reading=reading_rules, run=run
    )


def _fine_cuts(values: NDArray[np.generic], labels: Codes, n_labels: int, weights: Array | None) -> tuple[float, ...]:
    steps = equal_frequency.cut_points(values, labels, n_labels, weights, bins=FINEST)
    return tuple(sorted({*steps, *mdl.cut_points(values, labels, n_labels, weights)}))


def equal_groupings(data: Dataset, bins: int) -> AttributeGroupings:
    """Return each attribute's grouping into at most `bins` intervals of about equal weight; None keeps all codes."""
    return tuple(group_intervals(attribute, bins) for attribute in data.schema.attributes)


def _without_cuts(data: Dataset) -> frozenset[int]:
    """Return the numeric attributes without missing values that certainly have no MDL cut.

    With more than `mdl.FEW_ROWS` rows, or with weighted rows, nothing is tested and the result is empty.
    """
    if data.weights is not None or data.n_rows > mdl.FEW_ROWS:
        return frozenset()
    attributes = data.schema.attributes
    complete = [
        i for i in data.schema.informative if isinstance(attributes[i], NumericAttribute) and not attributes[i].missing
    ]
    without_cuts: list[int] = []
    for first in range(0, len(complete), COLUMNS_AT_A_TIME):
        batch = complete[first : first + COLUMNS_AT_A_TIME]
        values = np.stack([data.codes[i] for i in batch])
        without_cuts += itertools.compress(batch, mdl.uncut(values, data.labels, data.n_labels))
    return frozenset(without_cuts)


def regroup_dataset(data: Dataset, groupings: AttributeGroupings) -> Dataset:
    """Return the data with the codes of every attribute grouped; attributes with the grouping None are unchanged."""
    grouped = list(zip(data.schema.attributes, data.codes, groupings, strict=True))
    attributes = tuple(a if grouping is None else regroup_attribute(a, grouping) for a, _, grouping in grouped)
    codes = tuple(c if grouping is None else regroup_codes(c, grouping) for _, c, grouping in grouped)
    return replace(data, schema=replace(data.schema, attributes=attributes), codes=codes)
