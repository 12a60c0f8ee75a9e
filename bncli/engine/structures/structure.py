"""Structures over attribute indices: directed acyclic graphs (`Dag`) and sets of regions (`Regions`).

A structure determines which attributes share a table. Scoring needs only its `families()`.

A graph is perfect if any two parents of a common child are joined by an arc. P(target | all other nodes) depends only
on the graph's *canonical form*: the target, its children, its parents and its children's parents, with the target's
parents married, that is, joined pairwise. If this form is perfect, the network represents the same distributions of the
target as a log-linear model over the cliques of the undirected form, hence as a logistic regression (Roos, Wettig,
Grünwald, Myllymäki & Tirri 2005, Machine Learning 59). Naive Bayes, trees, forests and k-dependence networks with
k = 1, in which the class is a parent of every attribute, are perfect; other networks need not be.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Node = TypeVar("Node", bound=Hashable)
Member = TypeVar("Member", bound=Hashable)
Entry = TypeVar("Entry", bound=Hashable)
CLASS = None
"""The node of the class, in graphs whose other nodes are attribute indices."""
Grouping = tuple[int, ...]
"""The coarse code of every code of an attribute; every coarse code from 0 to the largest occurs."""
BinnedAttribute = tuple[int, Grouping | None]
"""An attribute with the grouping of its codes, or None if they are not grouped."""
Groupings = tuple[tuple[Grouping | None, ...], ...]
"""groupings[k][i] is the grouping, or None, of attribute i in regions of k + 1 attributes.

The last entry also holds for larger regions.
"""


@dataclass(frozen=True)
class Family:
    """A list of attributes with one table: a child and its parents in order, the parents of the class, or a region.

    The cell of a row is the mixed-radix number of its codes, with the first attribute as the most significant digit:

        cell = (x_0 * shape_1 + x_1) * shape_2 + x_2 ...

    `by_class` is False if the table has the same values for every class because the class is not a parent of the
    child.

    A family may use an attribute in a coarser binning (`bncli.engine.structures.regrouping`): x_i above is then
    grouping[code], and `shape` counts the coarse codes. `groupings` has a grouping or None for each attribute, in
    order, and is empty if nothing is regrouped.
    """

    attributes: tuple[int, ...]
    shape: tuple[int, ...]
    child: int | None
    by_class: bool = True
    groupings: tuple[Grouping | None, ...] = ()

    @classmethod
    def over(
        cls,
        attributes: tuple[int, ...],
        cardinalities: Sequence[int],
        child: int | None = None,
        by_class: bool = True,
        groupings: tuple[Grouping | None, ...] = (),
    ) -> Family:
        """Return the family over `attributes`; `cardinalities` has one entry per attribute of the schema."""
        pairs = zip(attributes, groupings or (None,) * len(attributes), strict=True)
        shape = tuple(cardinalities[a] if grouping is None else max(grouping) + 1 for a, grouping in pairs)
        return cls(attributes, shape, child, by_class, groupings if any(groupings) else ())

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def binned_attributes(self) -> tuple[BinnedAttribute, ...]:
        """Each attribute of the family with its grouping."""
        return tuple(zip(self.attributes, self.groupings or (None,) * len(self.attributes), strict=True))


class UnmarriedParents(NamedTuple, Generic[Node]):
    """Two parents of `child` that no arc joins."""

    child: Node
    first: Node
    second: Node


@dataclass(frozen=True)
class Dag:
    """A directed acyclic graph over the class and the attributes.

    `parents[i]` are the attribute parents of attribute i, in their listed order, without the class. `class_children`
    are the attributes that have the class as a parent, ascending; `class_parents` are the attribute parents of the
    class itself. An attribute without an arc is not part of the network. `method` and `options` record how the
    structure was found; they are stored in structure files.
    """

    parents: tuple[tuple[int, ...], ...]
    class_children: tuple[int, ...]
    class_parents: tuple[int, ...] = ()
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)

    def families(self, cardinalities: tuple[int, ...], *, all_factors: bool = False) -> tuple[Family, ...]:
        """Return one family per child of the class, in attribute order, then the family of the class if it has parents.

        A node that is neither the class nor its child has a factor without the class, which cancels in P(y | x) if all
        of x is known. `all_factors` adds these factors (`by_class` False, in attribute order, before the family of the
        class): with them, the tables give P(y, x), and unknown attributes can be marginalized.
        """
        families = [Family.over((i, *self.parents[i]), cardinalities, i) for i in self.class_children]
        if all_factors:
            others = (i for i in self.nodes if i not in self.class_children)
            families += [Family.over((i, *self.parents[i]), cardinalities, i, by_class=False) for i in others]
        if self.class_parents:
            families.append(Family.over(self.class_parents, cardinalities))
        return tuple(families)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The attributes that are part of the network, ascending: those with an arc."""
        members = set(self.class_children) | set(self.class_parents)
        for i, listed in enumerate(self.parents):
            members.update((i, *listed) if listed else ())
        return tuple(sorted(members))

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that P(y | x) depends on, ascending."""
        members = set(self.class_children) | set(self.class_parents)
        for i in self.class_children:
            members.update(self.parents[i])
        return tuple(sorted(members))

    @property
    def n_arcs(self) -> int:
        """The number of arcs between attributes."""
        return sum(map(len, self.parents))

    @property
    def unmarried(self) -> UnmarriedParents[int | None] | None:
        """Two parents of a common child that the canonical form does not join, or None if that form is perfect."""
        children = set(self.class_children)
        nodes: dict[int | None, tuple[int | None, ...]] = {CLASS: self.class_parents}
        for i, listed in enumerate(self.parents):
            nodes[i] = (CLASS, *listed) if i in children else listed
        return first_unmarried(nodes, CLASS)


def first_unmarried(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> UnmarriedParents[Node] | None:
    """Return the first two parents of a common child that the canonical form does not join, or None if it is perfect.

    `parents` maps the nodes of an acyclic graph to their parents; a node that is only a parent may be left out.
    Children are visited in the order of the mapping, and the parents of each in their listed order.

    >>> first_unmarried({"x": ("class",), "z": ("class",), "y": ("class", "x", "z")}, "class")
    UnmarriedParents(child='y', first='x', second='z')
    """
    # the Markov blanket of the target, with the target itself
    children = [node for node, listed in parents.items() if target in listed]
    blanket = {target, *parents.get(target, ()), *children}
    blanket.update(node for child in children for node in parents[child])
    form = {node: tuple(p for p in listed if p in blanket) for node, listed in parents.items() if node in blanket}
    married = set(form.get(target, ()))
    parents_in_form = {node: frozenset(listed) for node, listed in form.items()}
    for child, listed in form.items():
        for first, second in itertools.combinations(listed, 2) if child != target else ():
            joined = first in parents_in_form.get(second, ()) or second in parents_in_form.get(first, ())
            if not joined and not (first in married and second in married):
                return UnmarriedParents(child, first, second)
    return None


@dataclass(frozen=True)
class SearchTrace:
    """The steps of a search for regions: element s describes the model of the first s regions (0: the class alone).

    Every step has degrees of freedom, the log-likelihood of the classes given the attributes and the log posterior,
    both in nats. map_step is the step of highest posterior. bootstrap_log_loss is the estimated total log-loss, in
    nats, on a new sample of the same size; it is empty if it was not computed.
    """

    df: tuple[int, ...]
    log_likelihood: tuple[float, ...]
    log_posterior: tuple[float, ...]
    map_step: int
    bootstrap_log_loss: tuple[float, ...] = ()


@dataclass(frozen=True)
class Regions:
    """Sets of attributes that share a table with the class, in the order in which they were added.

    A region is a tuple of attribute indices, ascending, without the class; none is inside an earlier region. `trace`
    describes every step of the search; without it the model consists of all regions. `method` and `options` are as in
    `Dag`.

    - bins[k] is the maximum number of intervals of an attribute in a region of k + 1 attributes; the last entry also
      holds for larger regions. None, or empty `bins`, leaves the cuts of an attribute as they are. `groupings` has,
      for each entry of `bins`, the groupings of the schema's attributes.
    - binnings[r][j] is the grouping of the j-th attribute of region r, or None if it keeps all its cuts. If `binnings`
      is not empty, `groupings` has no effect on the families.
    - gains[r] is the gain in nats that region r had as a candidate when it was chosen; `gains` is empty if unknown.
    """

    regions: tuple[tuple[int, ...], ...]
    trace: SearchTrace | None = None
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    bins: tuple[int | None, ...] = ()
    groupings: Groupings = ()
    gains: tuple[float, ...] = ()
    binnings: tuple[tuple[Grouping | None, ...], ...] = ()

    @property
    def chosen(self) -> tuple[tuple[int, ...], ...]:
        """The regions of the step of highest posterior, or all without a trace, except those inside another of them."""
        return tuple(self.regions[position] for position in self._chosen_positions)

    @property
    def _chosen_positions(self) -> list[int]:
        n_steps = len(self.regions) if self.trace is None else self.trace.map_step
        return outermost_positions(self.regions[:n_steps], self.bins, self.binnings)

    def families(self, cardinalities: tuple[int, ...], *, all_factors: bool = False) -> tuple[Family, ...]:
        """Return one family, without a child, per chosen region; `all_factors` has no effect."""
        families = []
        for position in self._chosen_positions:
            region = self.regions[position]
            if self.binnings:
                groupings = self.binnings[position]
            else:
                by_attribute = entry_for_size(self.groupings, len(region)) or (None,) * len(cardinalities)
                groupings = tuple(by_attribute[a] for a in region)
            families.append(Family.over(region, cardinalities, groupings=groupings))
        return tuple(families)

    @property
    def is_regrouped(self) -> bool:
        """Whether attributes have coarser binnings in regions of some size, or in some region."""
        return any(map(any, self.groupings)) or any(map(any, self.binnings))

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes of all regions, ascending."""
        return tuple(sorted(set(itertools.chain.from_iterable(self.regions))))

    nodes = attributes


Structure = Dag | Regions


def outermost_positions(
    regions: Sequence[tuple[Member, ...]], bins: tuple[int | None, ...], cuts: Sequence[tuple[Entry, ...]] = ()
) -> list[int]:
    """Return the positions of the regions that no other region contains, ascending.

    If several regions are equal, only the first is returned. Regions are compared by their `binned_members`.
    """
    binned = binned_members(regions, bins, cuts)
    outermost = set(map(frozenset, maximal(binned)))
    first = {region: position for position, region in reversed(list(enumerate(map(frozenset, binned))))}
    return sorted(first[region] for region in outermost)


def maximal(regions: Iterable[tuple[Member, ...]]) -> list[tuple[Member, ...]]:
    """Return the regions that no other region contains, each once, in the order given.

    >>> maximal([(0,), (0, 1), (1, 0), (2,)])
    [(0, 1), (2,)]
    """
    distinct: dict[frozenset[Member], tuple[Member, ...]] = {}
    for region in regions:
        distinct.setdefault(frozenset(region), region)
    holders: dict[Member, set[int]] = defaultdict(set)
    for position, region in enumerate(distinct.values()):
        for member in region:
            holders[member].add(position)
    outermost = []
    for region in distinct.values():
        # the regions that contain this one, itself among them, hold all its members
        containing = sorted((holders[member] for member in region), key=len)
        n_containing = len(containing[0].intersection(*containing[1:])) if region else len(distinct)
        if n_containing == 1:
            outermost.append(region)
    return outermost


def inside_earlier(regions: Sequence[tuple[Hashable, ...]]) -> list[int]:
    """Return the positions of the regions that an earlier region contains or equals, ascending; no region is empty."""
    holders: dict[Hashable, set[int]] = defaultdict(set)
    inside = []
    for position, region in enumerate(regions):
        containing = sorted((holders[member] for member in region), key=len)
        if containing[0].intersection(*containing[1:]):
            inside.append(position)
        for member in region:
            holders[member].add(position)
    return inside


def binned_members(
    regions: Sequence[tuple[Member, ...]], bins: tuple[int | None, ...], cuts: Sequence[tuple[Entry, ...]] = ()
) -> list[tuple[tuple[Member, Hashable], ...]]:
    """Return the members of each region, each paired with its binning in that region.

    A region is therefore inside another one only if both bin its members in the same way. An entry of `bins` applies to
    all regions of one size. With `cuts`, `bins` is not used, and each member is paired with all attributes and cuts of
    its region, so that a region is inside another one only if the two are equal.
    """
    if not cuts:
        return [tuple((member, entry_for_size(bins, len(region))) for member in region) for region in regions]
    own_cuts = [frozenset(zip(region, listed, strict=True)) for region, listed in zip(regions, cuts, strict=False)]
    return [tuple((member, own) for member in region) for region, own in zip(regions, own_cuts, strict=True)]


def entry_for_size(entries: Sequence[Entry], size: int) -> Entry | None:
    """Return the entry for regions of `size` attributes, the last one for larger sizes; None if there are none."""
    return entries[min(size, len(entries)) - 1] if entries else None
