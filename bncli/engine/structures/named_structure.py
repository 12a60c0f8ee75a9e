"""Structures by column names, as files hold them; `resolve` gives one by indices of a schema, `name_structure` back.

A structure is a graph (`NamedDag`) or a list of regions (`NamedRegions`); both check themselves when they are made.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.structures.binning import cuts_at, grouping_at, groupings_of
from bncli.engine.structures.region_graph import inside_earlier
from bncli.engine.structures.structure import (
    Dag,
    Grouping,
    Regions,
    SearchTrace,
    Structure,
    UnmarriedParents,
    as_seen,
    first_unmarried,
    outermost,
)
from bncli.errors import BncliError


@dataclass(frozen=True)
class NamedDag:
    """A directed acyclic graph by column names, as a structure file holds it; every parent list may name the class.

    A name that occurs only as somebody's parent is a node without parents. `class_name` is None where the file does not
    say which node is the class; whoever resolves the graph does. `where` is the file, for errors. `arcs` is "cv" where
    nobody asked for this method, so that held-out rows may choose among the arcs. Raises BncliError when a parent is
    listed twice or the graph has a cycle.
    """

    class_name: str | None
    parents: Mapping[str, tuple[str, ...]]
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    where: str = field(default="", compare=False)
    arcs: str = "all"

    def __post_init__(self) -> None:
        for child, parents in self.parents.items():
            if len(set(parents)) < len(parents):
                twice = next(parent for i, parent in enumerate(parents) if parent in parents[:i])
                self._fail(f"'{child}' lists its parent '{twice}' twice", hint="name every parent once")
        cycle = _find_cycle(self.parents)
        if cycle:
            path = " -> ".join(cycle if len(cycle) < 12 else [*cycle[:9], "...", cycle[-1]])
            self._fail(f"the structure has a cycle: {path}", hint="remove one of these arcs")

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every name once: those with a list of parents, then those that occur only in one."""
        listed = itertools.chain.from_iterable(self.parents.values())
        return tuple(dict.fromkeys(itertools.chain(self.parents, listed)))

    @property
    def unmarried(self) -> UnmarriedParents[str] | None:
        """Two parents of a common child that the canonical form does not join; None where it is perfect.

        Without a class the question has no meaning.
        """
        assert self.class_name is not None
        return first_unmarried(self.parents, self.class_name)

    def resolve(self, schema: Schema) -> Dag:
        """Return the same graph by attribute index. Uninformative attributes drop out of it.

        Raises BncliError when the class or an attribute is not in the schema.
        """
        self._check_class(schema.class_name)
        index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
        _check_attributes((name for name in self.nodes if name != schema.class_name), index, self.where)
        informative = set(schema.informative)

        def indices(child: str) -> tuple[int, ...]:
            listed = (index[name] for name in self.parents.get(child, ()) if name != schema.class_name)
            return tuple(i for i in listed if i in informative)

        parents = tuple(indices(a.name) if i in informative else () for i, a in enumerate(schema.attributes))
        children = [index[child] for child, listed in self.parents.items() if schema.class_name in listed]
        class_children = tuple(sorted(informative.intersection(children)))
        return Dag(parents, class_children, indices(schema.class_name), self.method, dict(self.options))

    def _check_class(self, name: str) -> None:
        if self.class_name is None and name not in self.nodes:
            shown = ", ".join(self.nodes[:5]) + (", ..." if len(self.nodes) > 5 else "")
            hint = f"name the right column with --class; the nodes are {shown}"
            self._fail(f"the class '{name}' is no node of the structure", hint=hint)
        if self.class_name is not None:
            _refuse_class(self.class_name, name, self.where)

    def _fail(self, what: str, *, hint: str) -> NoReturn:
        raise BncliError(what, where=self.where, hint=hint)


MAX_REGION = 16
"""So many attributes may a region have: it has 2 to the power of so many subsets."""


@dataclass(frozen=True)
class NamedRegions:
    """Sets of attributes that are looked up together with the class, by column names, in the order they were added.

    `trace` says what a search found of every step (`SearchTrace`); without it all regions are the model, and one inside
    an earlier one says nothing. `where` is the file, for errors. Raises BncliError for a region that is empty, too
    large, names an attribute twice or the class, for statistics of other steps than these, and, where there are
    statistics, for a region inside an earlier one, which is no step. `bins` and `gains` as in `Regions`.

    cuts[r], where there are any, has for every attribute of region r the cuts that it has there, or None: all of them.
    """

    class_name: str
    regions: tuple[tuple[str, ...], ...]
    trace: SearchTrace | None = None
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    where: str = field(default="", compare=False)
    bins: tuple[int | None, ...] = ()
    gains: tuple[float, ...] = ()
    cuts: tuple[tuple[tuple[float, ...] | None, ...], ...] = ()

    def __post_init__(self) -> None:
        self._check_bins()
        self._check_gains()
        self._check_cuts()
        for position, region in enumerate(self.regions):
            key = f"regions[{position}]"
            if not region:
                self._fail(
                    f"{key} is empty", hint="name at least one attribute; the class alone is always part of a model"
                )
            if len(region) > MAX_REGION:
                self._fail(f"{key} has {len(region)} attributes", hint=f"give a region at most {MAX_REGION}")
            if self.class_name in region:
                self._fail(
                    f"{key} names the class '{self.class_name}'", hint="leave it out: it is part of every region"
                )
            if len(set(region)) < len(region):
                twice = next(name for i, name in enumerate(region) if name in region[:i])
                self._fail(f"{key} names '{twice}' twice", hint="name every attribute once")
        if self.trace is not None:
            self._check_trace(self.trace)

    @property
    def chosen(self) -> tuple[tuple[str, ...], ...]:
        """The regions of the best step, or all, without those that another one of them contains."""
        return tuple(self.regions[position] for position in self.chosen_positions)

    @property
    def chosen_positions(self) -> list[int]:
        """Where these stand among all regions, ascending."""
        steps = len(self.regions) if self.trace is None else self.trace.map_step
        return outermost(self.regions[:steps], self.bins, self.cuts)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The name of every attribute once, as they occur."""
        return tuple(dict.fromkeys(itertools.chain.from_iterable(self.regions)))

    def resolve(self, schema: Schema) -> Regions:
        """Return the regions by attribute index, without those inside an earlier one.

        Uninformative attributes drop out; where that changes a region, the statistics say nothing of what is
        left, and are dropped too.

        Raises BncliError when the class or an attribute is not in the schema.
        """
        _refuse_class(self.class_name, schema.class_name, self.where)
        index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
        _check_attributes(self.nodes, index, self.where)
        informative = set(schema.informative)
        whole = [tuple(sorted(index[name] for name in region)) for region in self.regions]
        some = [tuple(i for i in region if i in informative) for region in whole]
        views = self._binnings(schema, index, some)
        kept = [position for position, region in enumerate(some) if region]
        seen = as_seen([some[p] for p in kept], self.bins, [views[p] for p in kept] if views else ())
        inside = {kept[place] for place in inside_earlier(seen)}
        kept = [position for position in kept if position not in inside]
        trace, gains = (self.trace, self.gains) if some == whole else (None, ())
        return Regions(
            tuple(some[position] for position in kept),
            trace,
            self.method,
            dict(self.options),
            self.bins,
            groupings_of(schema.attributes, self.bins),
            tuple(gains[position] for position in kept) if gains else (),
            tuple(views[position] for position in kept) if views else (),
        )

    def _binnings(
        self, schema: Schema, index: Mapping[str, int], some: Sequence[tuple[int, ...]]
    ) -> list[tuple[Grouping | None, ...]]:
        """For each region the groupings of those of its attributes that are left."""
        found = []
        for position, (names, cuts) in enumerate(zip(self.regions, self.cuts, strict=False)):
            of = {index[name]: cuts_of for name, cuts_of in zip(names, cuts, strict=True)}
            key = f"cuts[{position}]"
            found.append(tuple(self._grouping(key, schema.attributes[i], of[i]) for i in some[position]))
        return found

    def _grouping(self, key: str, attribute: Attribute, cuts: tuple[float, ...] | None) -> Grouping | None:
        if cuts is None:
            return None
        if not isinstance(attribute, NumericAttribute):
            self._fail(f"{key} cuts '{attribute.name}', which is no numeric column", hint="leave it out of the cuts")
        strange = sorted(set(cuts) - set(attribute.cuts))
        if strange:
            what = f"{key} cuts '{attribute.name}' at {strange[0]!r}, where it is not cut into intervals"
            self._fail(what, hint="cut the data as for this structure: with the cuts file that it was learnt with")
        return grouping_at(attribute, cuts)

    def _check_bins(self) -> None:
        for position, most in enumerate(self.bins):
            if most is not None and most < 2:
                self._fail(f"bins[{position}] is {most}", hint="an attribute needs 2 intervals or more")
        if len(self.bins) > MAX_REGION:
            self._fail(f"bins has {len(self.bins)} entries", hint=f"give at most {MAX_REGION}, one a size of region")

    def _check_gains(self) -> None:
        if self.gains and len(self.gains) != len(self.regions):
            what = f"gains has {len(self.gains)} values for {len(self.regions)} regions"
            self._fail(what, hint="give one for each region, or leave gains out")
        for position, gain in enumerate(self.gains):
            if not math.isfinite(gain):
                self._fail(f"gains[{position}] is {gain}", hint="give a number of nats")

    def _check_cuts(self) -> None:
        if self.cuts and len(self.cuts) != len(self.regions):
            what = f"cuts has {len(self.cuts)} entries for {len(self.regions)} regions"
            self._fail(what, hint="give one for each region, or leave cuts out")
        for position, (region, listed) in enumerate(zip(self.regions, self.cuts, strict=False)):
            for name, cuts in zip(region, listed, strict=True):
                if cuts is not None and not all(map(math.isfinite, cuts)):
                    self._fail(f"cuts[{position}] of '{name}' has a cut that is no number", hint="give numbers")
                if cuts is not None and any(right <= left for left, right in itertools.pairwise(cuts)):
                    self._fail(f"the cuts[{position}] of '{name}' do not ascend", hint="give each once, in order")

    def _check_trace(self, trace: SearchTrace) -> None:
        n_steps = len(self.regions) + 1
        for key in ("df", "log_likelihood", "log_posterior", "bootstrap_log_loss"):
            values = getattr(trace, key)
            if len(values) != n_steps and (values or key != "bootstrap_log_loss"):
                what = f"{key} has {len(values)} values for {len(self.regions)} regions"
                self._fail(what, hint="give one for the class alone, then one for each region")
        if not 0 <= trace.map_step < n_steps:
            what = f"map_step is {trace.map_step}"
            self._fail(what, hint=f"the steps are 0 to {n_steps - 1}: so many regions are in the best model")
        for position in inside_earlier(as_seen(self.regions, self.bins, self.cuts))[:1]:
            hint = "leave it out, or leave out df, log_likelihood, log_posterior and map_step"
            self._fail(f"regions[{position}] is inside an earlier region, so it is no step", hint=hint)

    def _fail(self, what: str, *, hint: str) -> NoReturn:
        raise BncliError(what, where=self.where, hint=hint)


NamedStructure = NamedDag | NamedRegions


def name_structure(structure: Structure, schema: Schema) -> NamedStructure:
    """Return the same structure by column names."""
    return name_dag(structure, schema) if isinstance(structure, Dag) else _name_regions(structure, schema)


def _name_regions(regions: Regions, schema: Schema) -> NamedRegions:
    """Return each region in schema order."""
    names = [attribute.name for attribute in schema.attributes]
    cuts = tuple(
        tuple(
            None if grouping is None else cuts_at(schema.attributes[i], grouping)
            for i, grouping in zip(*one, strict=True)
        )
        for one in zip(regions.regions, regions.binnings, strict=False)
    )
    named = tuple(tuple(names[i] for i in region) for region in regions.regions)
    options = dict(regions.options)
    found = (regions.trace, regions.method, options)
    return NamedRegions(schema.class_name, named, *found, bins=regions.bins, gains=regions.gains, cuts=cuts)


def name_dag(dag: Dag, schema: Schema) -> NamedDag:
    """Return the graph by column names: the class first, attributes in schema order, unused ones left out."""
    names = [attribute.name for attribute in schema.attributes]
    children = set(dag.class_children)
    parents = {}
    for i in dag.nodes:
        by_class = (schema.class_name,) if i in children else ()
        parents[names[i]] = by_class + tuple(names[j] for j in dag.parents[i])
    if dag.class_parents:
        parents[schema.class_name] = tuple(names[j] for j in dag.class_parents)
    return NamedDag(schema.class_name, parents, dag.method, dict(dag.options))


def _find_cycle(parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return a directed cycle along the arcs (first name = last name), or an empty list. Depth first, iterative."""
    finished: set[str] = set()
    for start in parents:
        path = {start: iter(parents[start])} if start not in finished else {}
        while path:
            node = next(reversed(path))
            parent = next(path[node], None)
            if parent is None:
                finished.add(node)
                del path[node]
            elif parent in path:
                upward = list(path)[list(path).index(parent) :]
                return [parent, *reversed(upward)]
            elif parent not in finished:
                path[parent] = iter(parents.get(parent, ()))
    return []


def _refuse_class(own: str, asked: str, where: str) -> None:
    """Raise BncliError where the structure is for another class."""
    if own != asked:
        what = f"the structure is for the class '{own}', not for '{asked}'"
        hint = f"name the right column with --class {own}, or mend the structure"
        raise BncliError(what, where=where, hint=hint)


def _check_attributes(names: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise BncliError for the first name that is no attribute; the nearest one that is may be meant."""
    for name in names:
        if name not in known:
            import difflib

            nearest = difflib.get_close_matches(name, known, n=1)
            nothing = "the data has no such attribute, or it was left out"
            hint = f"did you mean '{nearest[0]}'?" if nearest else nothing
            raise BncliError(f"the structure names an unknown attribute '{name}'", where=where, hint=hint)
