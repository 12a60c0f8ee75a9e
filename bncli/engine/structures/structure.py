"""Structures: which attributes are looked up together. A structure answers `families()`; a scorer needs no more.

Perfect graphs: every two parents of a common child are joined by an arc.

P(target | all other nodes) depends on the graph's *canonical form* alone: the target, its children, its parents and its
children's parents, with the target's parents married, that is, joined two by two. Where this form is perfect, the
distributions of the target are those of a log-linear model over the complete sets of the form (directions dropped),
hence of a logistic regression (Roos, Wettig, Grünwald, Myllymäki & Tirri 2005, Machine Learning 59). Naive Bayes,
trees, forests and k-dependence networks with k = 1 are perfect below their class; others need not be.

A graph is a mapping from nodes to their parents, without cycles; a node that is only a parent may be left out.
Conventions: between married nodes the arc points as the order of the whole graph does. Cost: the arcs, and the pairs of
parents.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from bncli.engine.structures.region_graph import maximal

Node = TypeVar("Node", bound=Hashable)


class UnmarriedParents(NamedTuple, Generic[Node]):
    """Two parents of `child` that no arc joins."""

    child: Node
    one: Node
    other: Node


Member = TypeVar("Member")
Entry = TypeVar("Entry", bound=Hashable)
CLASS = None
"""The class as a node among attribute indices."""
Grouping = tuple[int, ...]
"""The coarse code of every code of an attribute; each coarse code from 0 on occurs."""
BinnedAttribute = tuple[int, Grouping | None]
"""An attribute with the grouping of its codes, None where they are as cut."""
Groupings = tuple[tuple[Grouping | None, ...], ...]
"""groupings[k][i]: of attribute i in regions of k + 1 attributes, the last for larger ones; None: as cut."""


@dataclass(frozen=True)
class Family:
    """A set of attributes scored by one table, the child first (None: no child), then its parents in their order.

    The cell of a row is the mixed-radix number of its codes, the first attribute the most significant digit:

        cell = (x_0 * shape_1 + x_1) * shape_2 + x_2 ...

    `by_class` is False where the table holds the same numbers for every class: the child lacks the class as a parent.

    A family may have an attribute in a coarser binning: a grouping joins codes to coarser ones: x_i above is then
    grouping[code], and `shape` counts the coarse codes. `groupings` has a grouping or None for each of the attributes
    in their order; it is empty where the family regroups nothing. See `bncli.engine.structures.binning`.
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
        """Return the family over these attributes.

        Its shape follows from the cardinalities and from what it groupings.
        """
        seen = zip(attributes, groupings or (None,) * len(attributes), strict=True)
        shape = tuple(cardinalities[a] if grouping is None else max(grouping) + 1 for a, grouping in seen)
        return cls(attributes, shape, child, by_class, groupings if any(groupings) else ())

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def binned_attributes(self) -> tuple[BinnedAttribute, ...]:
        """Each of its attributes with its grouping."""
        return tuple(zip(self.attributes, self.groupings or (None,) * len(self.attributes), strict=True))


@dataclass(frozen=True)
class Dag:
    """A directed acyclic graph over the class and the attributes.

    `parents[i]`: the attribute parents of attribute i, in their listed order (the class left out).
    `class_children`: the attributes that have the class as a parent, ascending. `class_parents`: the attribute
    parents of the class itself. An attribute in none of them is not part of the network.
    `method` and `options` say how the structure came about; they are written to its file.
    """

    parents: tuple[tuple[int, ...], ...]
    class_children: tuple[int, ...]
    class_parents: tuple[int, ...] = ()
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)

    def families(self, cardinalities: tuple[int, ...], *, whole: bool = False) -> tuple[Family, ...]:
        """Return one family per child of the class, in attribute order, then the class's own parents if it has any.

        A node that is neither the class nor its child has a factor without the class in it: it cancels in P(y | x)
        where all of x is known. `whole` adds these (`by_class` False, in attribute order, before the class's parents):
        with them, the tables say P(y, x), and what is unknown of x can be marginalized.
        """
        members: list[tuple[tuple[int, ...], int | None, bool]]
        members = [((i, *self.parents[i]), i, True) for i in self.class_children]
        if whole:
            others = (i for i in self.nodes if i not in self.class_children)
            members += [((i, *self.parents[i]), i, False) for i in others]
        if self.class_parents:
            members.append((self.class_parents, None, True))
        return tuple(Family.over(m, cardinalities, child, by) for m, child, by in members)

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
        """Number of arcs between attributes."""
        return sum(map(len, self.parents))

    def canonical(self) -> Dag:
        """Return the graph that P(y | x) depends on, the class's parents married.

        Attributes outside it have no parents.
        """
        form = canonical_form(self._by_node(), CLASS)
        inside = (form.get(i, ()) for i in range(len(self.parents)))
        parents = tuple(tuple(node for node in listed if node is not CLASS) for listed in inside)
        return replace(self, parents=parents)

    @property
    def unmarried(self) -> UnmarriedParents[int | None] | None:
        """Two parents of a common child that the canonical form does not join; None where it is perfect."""
        return first_unmarried(self._by_node(), CLASS)

    def _by_node(self) -> dict[int | None, tuple[int | None, ...]]:
        children = set(self.class_children)
        nodes: dict[int | None, tuple[int | None, ...]] = {CLASS: self.class_parents}
        for i, listed in enumerate(self.parents):
            nodes[i] = (CLASS, *listed) if i in children else listed
        return nodes


@dataclass(frozen=True)
class SearchTrace:
    """The steps of a search for regions: element s belongs to the model of the first s regions, 0 to the class alone.

    Degrees of freedom; log-likelihood of the classes given the attributes and log posterior, nats; map_step is the step
    of highest posterior. bootstrap_log_loss, where it was asked for, is what the step would lose on new rows, nats.
    """

    df: tuple[int, ...]
    log_likelihood: tuple[float, ...]
    log_posterior: tuple[float, ...]
    map_step: int
    bootstrap_log_loss: tuple[float, ...] = ()


@dataclass(frozen=True)
class Regions:
    """Sets of attributes that are looked up together with the class, in the order in which they were added.

    A region is a tuple of attribute indices, ascending, the class left out; none is inside an earlier one. `trace` is
    what the search says of every step; without it all regions are the model. `method` and `options` as in `Dag`.

    bins[k]: the most intervals that an attribute has in a region of k + 1 attributes, the last for larger ones; None or
    no entry at all: as it was cut. `groupings` are those that follow for the schema at hand, one entry for one of
    `bins`. gains[r] is the candidate gain of region r when it was chosen, nats; empty where it is not known.

    binnings[r][j], where there are any, is the grouping of attribute j of region r, which has cuts of its own (None: as
    it was cut); `bins` say nothing then.
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
        """The regions of the step of highest posterior, without those that another one of them contains."""
        return tuple(self.regions[position] for position in self._chosen)

    @property
    def _chosen(self) -> list[int]:
        steps = len(self.regions) if self.trace is None else self.trace.map_step
        return outermost(self.regions[:steps], self.bins, self.binnings)

    def families(self, cardinalities: tuple[int, ...], *, whole: bool = False) -> tuple[Family, ...]:
        """Return one family, without a child, per chosen region.

        There are no tables without the class, `whole` or not.
        """
        return tuple(self._family(position, cardinalities) for position in self._chosen)

    def _family(self, position: int, cardinalities: tuple[int, ...]) -> Family:
        region = self.regions[position]
        if self.binnings:
            return Family.over(region, cardinalities, groupings=self.binnings[position])
        by_attribute = of_size(self.groupings, len(region)) or (None,) * len(cardinalities)
        return Family.over(region, cardinalities, groupings=tuple(by_attribute[a] for a in region))

    @property
    def is_regrouped(self) -> bool:
        """Whether some attribute is in a coarser binning than it is cut."""
        return any(map(any, self.groupings)) or any(map(any, self.binnings))

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes of all regions, ascending."""
        return tuple(sorted(set(itertools.chain.from_iterable(self.regions))))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The same."""
        return self.attributes


Structure = Dag | Regions


def canonical_form(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> dict[Node, tuple[Node, ...]]:
    """Return the canonical form for P(target | the others); the new parents of a node follow those that it had."""
    from graphlib import TopologicalSorter

    form = _blanket(parents, target)
    spouses = set(form.get(target, ()))
    in_order = [node for node in TopologicalSorter(parents).static_order() if node in spouses]
    for place, node in enumerate(in_order):
        own = form.get(node, ())
        form[node] = (*own, *(earlier for earlier in in_order[:place] if earlier not in own))
    return form


def _blanket(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> dict[Node, tuple[Node, ...]]:
    """Return the target's Markov blanket with the target, and the arcs inside it."""
    children = [node for node, listed in parents.items() if target in listed]
    members = {target, *parents.get(target, ()), *children}
    members.update(node for child in children for node in parents[child])
    return {node: tuple(p for p in listed if p in members) for node, listed in parents.items() if node in members}


def first_unmarried(parents: Mapping[Node, tuple[Node, ...]], target: Node) -> UnmarriedParents[Node] | None:
    """Return the first two parents of a common child that the canonical form leaves apart; None where it is perfect.

    Children and parents in the order of the mapping.

    >>> first_unmarried({"x": ("class",), "z": ("class",), "y": ("class", "x", "z")}, "class")
    UnmarriedParents(child='y', one='x', other='z')
    """
    form = _blanket(parents, target)
    spouses = set(form.get(target, ()))
    known = {node: frozenset(listed) for node, listed in form.items()}
    for child, listed in form.items():
        for one, other in itertools.combinations(listed, 2) if child != target else ():
            joined = one in known.get(other, ()) or other in known.get(one, ())
            if not joined and not (one in spouses and other in spouses):
                return UnmarriedParents(child, one, other)
    return None


def outermost(
    regions: Sequence[tuple[Member, ...]], bins: tuple[int | None, ...], cuts: Sequence[tuple[Entry, ...]] = ()
) -> list[int]:
    """Return the positions of the regions that no other one contains, ascending, each once."""
    seen = as_seen(regions, bins, cuts)
    kept = set(map(frozenset, maximal(seen)))
    first = {region: position for position, region in reversed(list(enumerate(map(frozenset, seen))))}
    return sorted(first[region] for region in kept)


def as_seen(
    regions: Sequence[tuple[Member, ...]], bins: tuple[int | None, ...], cuts: Sequence[tuple[Entry, ...]] = ()
) -> list[tuple[tuple[Member, Hashable], ...]]:
    """Return each region with how it sees its members: one that sees them otherwise than a larger one is no part of it.

    Members are seen in the bins of the region's size; where regions have cuts of their own, a table over more
    attributes hardly has those of a smaller one: a region is then part of none but its equal.
    """
    if not cuts:
        return [tuple((member, of_size(bins, len(region))) for member in region) for region in regions]
    own = [frozenset(zip(region, some, strict=True)) for region, some in zip(regions, cuts, strict=False)]
    return [tuple((member, seen) for member in region) for region, seen in zip(regions, own, strict=True)]


def of_size(entries: Sequence[Entry], size: int) -> Entry | None:
    """Return the entry for regions of `size` attributes, the last for larger ones; None where there are no entries."""
    return entries[min(size, len(entries)) - 1] if entries else None
