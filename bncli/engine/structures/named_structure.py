"""Structures that refer to columns by name, as in files, and their conversion to and from attribute indices.

A structure is a graph (`NamedDag`) or a list of regions (`NamedRegions`); both are validated when they are created.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.engine.structures.regrouping import group_intervals_by_size, regroup_attribute
from bncli.engine.structures.structure import (
    Dag,
    Grouping,
    Regions,
    SearchTrace,
    Structure,
    UnmarriedParents,
    binned_members,
    first_unmarried,
    inside_earlier,
    outermost_positions,
)
from bncli.errors import BncliError


@dataclass(frozen=True)
class NamedDag:
    """A directed acyclic graph over column names, as in a structure file; every list of parents may contain the class.

    A name that occurs only as a parent is a node without parents. `class_name` is None if the file does not name the
    node of the class; then the schema given to `resolve` does. `where` is the file, for error messages. `arcs` is "cv"
    if held-out rows may choose among the arcs, because the user did not choose the method; "all" keeps all arcs.

    Raises BncliError if a parent is listed twice or the graph has a cycle.
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
                what = f"'{child}' lists its parent '{twice}' twice"
                raise BncliError(what, where=self.where, hint="list every parent once")
        cycle = _find_cycle(self.parents)
        if cycle:
            path = " -> ".join(cycle if len(cycle) < 12 else [*cycle[:9], "...", cycle[-1]])
            what = f"the structure has a cycle: {path}"
            raise BncliError(what, where=self.where, hint="remove one of these arcs")

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every name once: those with a list of parents, then those that occur only as parents."""
        return tuple(dict.fromkeys(itertools.chain(self.parents, *self.parents.values())))

    @property
    def unmarried(self) -> UnmarriedParents[str] | None:
        """Two parents of a common child that no arc joins in the canonical form, or None if that form is perfect.

        `class_name` must not be None.
        """
        assert self.class_name is not None
        return first_unmarried(self.parents, self.class_name)

    def resolve(self, schema: Schema) -> Dag:
        """Return the same graph over attribute indices, without uninformative attributes.

        Raises BncliError if the graph has another class than the schema, or a node that the schema lacks. If the graph
        does not name its class, the schema's class must be a node.
        """
        name = schema.class_name
        if self.class_name is not None:
            _check_class(self.class_name, name, self.where)
        elif name not in self.nodes:
            listed = ", ".join(self.nodes[:5]) + (", ..." if len(self.nodes) > 5 else "")
            hint = f"choose one with --class; the nodes are {listed}"
            raise BncliError(f"the class '{name}' is not a node of the structure", where=self.where, hint=hint)
        index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
        _check_attributes((node for node in self.nodes if node != name), index, self.where)
        informative = set(schema.informative)
        parents: dict[int, tuple[int, ...]] = {}
        class_parents: tuple[int, ...] = ()
        class_children = []
        for child, listed_parents in self.parents.items():
            indices = tuple(index[parent] for parent in listed_parents if parent != name)
            indices = tuple(i for i in indices if i in informative)
            if child == name:
                class_parents = indices
            elif index[child] in informative:
                parents[index[child]] = indices
                if name in listed_parents:
                    class_children.append(index[child])
        by_index = tuple(parents.get(i, ()) for i in range(len(schema.attributes)))
        return Dag(by_index, tuple(sorted(class_children)), class_parents, self.method, dict(self.options))


MAX_REGION = 16
"""The maximum number of attributes in a region; a region of m attributes has 2^m subsets."""


@dataclass(frozen=True)
class NamedRegions:
    """Sets of attributes that share a table with the class, by column names, in the order in which they were added.

    `trace` describes every step of the search (`SearchTrace`). Without it the model consists of all regions, and a
    region inside another one has no effect. `where` is the file, for error messages. `bins` and `gains` are as in
    `Regions`. cuts[r] has the cuts of every attribute of region r, or None for an attribute that keeps all its cuts.

    Raises BncliError for a region that is empty, too large, or names an attribute twice or the class; for invalid bins,
    gains or cuts; for a trace, gains or cuts that do not fit the regions; and, if there is a trace, for a region inside
    an earlier one.
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
        # only the first problem is reported
        for what, hint in itertools.chain(self._wrong_annotations(), self._wrong_regions(), self._wrong_trace()):
            raise BncliError(what, where=self.where, hint=hint)

    def _wrong_annotations(self) -> Iterable[tuple[str, str]]:
        """Yield every problem with bins, gains and cuts, with a hint."""
        for position, most in enumerate(self.bins):
            if most is not None and most < 2:
                yield f"bins[{position}] is {most}", "an attribute needs at least 2 intervals"
        if len(self.bins) > MAX_REGION:
            yield f"bins has {len(self.bins)} entries", f"give at most {MAX_REGION}, one per size of region"
        n_regions = len(self.regions)
        if self.gains and len(self.gains) != n_regions:
            what = f"gains has {len(self.gains)} values for {n_regions} regions"
            yield what, "give one for each region, or leave gains out"
        for position, gain in enumerate(self.gains):
            if not math.isfinite(gain):
                yield f"gains[{position}] is {gain}", "give a finite number of nats"
        if self.cuts and len(self.cuts) != n_regions:
            what = f"cuts must have {n_regions} entries, one per region, but has {len(self.cuts)}"
            yield what, "give one for each region, or leave cuts out"
        for position, (region, listed) in enumerate(zip(self.regions, self.cuts, strict=False)):
            for name, cuts in zip(region, listed, strict=True):
                if cuts is not None and not all(map(math.isfinite, cuts)):
                    yield f"cuts[{position}] of '{name}' has a cut that is not a finite number", "give finite numbers"
                if cuts is not None and any(right <= left for left, right in itertools.pairwise(cuts)):
                    yield f"cuts[{position}] of '{name}' are not increasing", "list each cut once, in increasing order"

    def _wrong_regions(self) -> Iterable[tuple[str, str]]:
        for position, region in enumerate(self.regions):
            key = f"regions[{position}]"
            if not region:
                yield f"{key} is empty", "list at least one attribute; the class alone is always part of a model"
            if len(region) > MAX_REGION:
                yield f"{key} has {len(region)} attributes", f"give a region at most {MAX_REGION} attributes"
            if self.class_name in region:
                yield f"{key} names the class '{self.class_name}'", "leave the class out: it is part of every region"
            if len(set(region)) < len(region):
                twice = next(name for i, name in enumerate(region) if name in region[:i])
                yield f"{key} names '{twice}' twice", "list every attribute once"

    def _wrong_trace(self) -> Iterable[tuple[str, str]]:
        if self.trace is None:
            return
        n_steps = len(self.regions) + 1
        for key in ("df", "log_likelihood", "log_posterior", "bootstrap_log_loss"):
            values = getattr(self.trace, key)
            if len(values) != n_steps and (values or key != "bootstrap_log_loss"):
                what = f"{key} has {len(values)} values for {len(self.regions)} regions"
                yield what, "give one for the class alone, then one for each region"
        if not 0 <= self.trace.map_step < n_steps:
            hint = f"it must be the number of regions in the best model, from 0 to {n_steps - 1}"
            yield f"map_step is {self.trace.map_step}", hint
        for position in inside_earlier(binned_members(self.regions, self.bins, self.cuts)):
            hint = "leave out this region, or df, log_likelihood, log_posterior and map_step"
            yield f"regions[{position}] is inside an earlier region, so it is not a step", hint

    @property
    def chosen(self) -> tuple[tuple[str, ...], ...]:
        """The regions of the best step, or all regions without a trace, except those that another of them contains."""
        return tuple(self.regions[position] for position in self.chosen_positions)

    @property
    def chosen_positions(self) -> list[int]:
        """The positions of the chosen regions among all regions, ascending."""
        n_steps = len(self.regions) if self.trace is None else self.trace.map_step
        return outermost_positions(self.regions[:n_steps], self.bins, self.cuts)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The name of every attribute once, in the order of first use."""
        return tuple(dict.fromkeys(itertools.chain.from_iterable(self.regions)))

    def resolve(self, schema: Schema) -> Regions:
        """Return the regions over attribute indices, without uninformative attributes or regions inside earlier ones.

        A region without informative attributes is left out. If a region loses an attribute, the trace and the gains no
        longer apply and are dropped. Raises BncliError if the class is not the schema's, if an attribute is not in the
        schema, or if cuts are given for a categorical attribute or are not cuts of the attribute.
        """
        _check_class(self.class_name, schema.class_name, self.where)
        index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
        _check_attributes(self.nodes, index, self.where)
        informative = set(schema.informative)
        listed = [tuple(sorted(index[name] for name in region)) for region in self.regions]
        reduced = [tuple(i for i in region if i in informative) for region in listed]
        binnings: list[tuple[Grouping | None, ...]] = []
        for position, (names, cuts) in enumerate(zip(self.regions, self.cuts, strict=False)):
            cuts_of = {index[name]: own for name, own in zip(names, cuts, strict=True)}
            binnings.append(tuple(self._grouping(schema, position, i, cuts_of[i]) for i in reduced[position]))
        left = [position for position, region in enumerate(reduced) if region]
        members = binned_members([reduced[p] for p in left], self.bins, [binnings[p] for p in left] if binnings else ())
        inside = {left[place] for place in inside_earlier(members)}
        left = [position for position in left if position not in inside]
        trace, gains = (self.trace, self.gains) if reduced == listed else (None, ())
        return Regions(
            tuple(reduced[position] for position in left),
            trace,
            self.method,
            dict(self.options),
            self.bins,
            group_intervals_by_size(schema.attributes, self.bins),
            tuple(gains[position] for position in left) if gains else (),
            tuple(binnings[position] for position in left) if binnings else (),
        )

    def _grouping(self, schema: Schema, position: int, i: int, cuts: tuple[float, ...] | None) -> Grouping | None:
        """Return the grouping of attribute i that keeps only `cuts` in a region, or None if it keeps all cuts.

        Raises BncliError if the attribute is not numeric or does not have one of the cuts.
        """
        if cuts is None:
            return None
        attribute = schema.attributes[i]
        if not isinstance(attribute, NumericAttribute):
            what = f"cuts[{position}] cuts '{attribute.name}', which is not a numeric column"
            raise BncliError(what, where=self.where, hint="leave it out of the cuts")
        unknown = sorted(set(cuts) - set(attribute.cuts))
        if unknown:
            what = (
                f"cuts[{position}] cuts '{attribute.name}' at {unknown[0]!r}, which is not a cut of this attribute "
                f"in the table"
            )
            hint = "use the cuts file that the structure was learned with"
            raise BncliError(what, where=self.where, hint=hint)
        if len(cuts) == len(attribute.cuts):
            return None
        groups = np.concatenate([[0], np.cumsum(np.isin(attribute.cuts, cuts))]).tolist()
        return (*groups, groups[-1] + 1) if attribute.missing else tuple(groups)


NamedStructure = NamedDag | NamedRegions


def name_structure(structure: Structure, schema: Schema) -> NamedStructure:
    """Return the same structure with column names instead of attribute indices."""
    if isinstance(structure, Dag):
        return name_dag(structure, schema)
    cuts = []
    for region, groupings in zip(structure.regions, structure.binnings, strict=False):
        cuts_of_region: list[tuple[float, ...] | None] = []
        for i, grouping in zip(region, groupings, strict=True):
            left = None if grouping is None else regroup_attribute(schema.attributes[i], grouping)
            cuts_of_region.append(left.cuts if isinstance(left, NumericAttribute) else None)
        cuts.append(tuple(cuts_of_region))
    return NamedRegions(
        schema.class_name,
        tuple(tuple(schema.attributes[i].name for i in region) for region in structure.regions),
        structure.trace,
        structure.method,
        dict(structure.options),
        bins=structure.bins,
        gains=structure.gains,
        cuts=tuple(cuts),
    )


def name_dag(dag: Dag, schema: Schema) -> NamedDag:
    """Return the graph over column names: nodes in schema order (the class last), without unconnected attributes."""
    names = [attribute.name for attribute in schema.attributes]
    children = set(dag.class_children)
    parents = {}
    for i in dag.nodes:
        by_class = (schema.class_name,) if i in children else ()
        parents[names[i]] = by_class + tuple(names[j] for j in dag.parents[i])
    if dag.class_parents:
        parents[schema.class_name] = tuple(names[j] for j in dag.class_parents)
    return NamedDag(schema.class_name, parents, dag.method, dict(dag.options))


def _find_cycle(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a directed cycle, with its first name repeated at the end, or an empty list (depth-first search)."""
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


def _check_class(own: str, requested: str, where: str) -> None:
    """Raise BncliError if the structure's class is not the requested one."""
    if own != requested:
        what = f"the structure is for the class '{own}', not for '{requested}'"
        hint = f"add --class {own}, or correct the structure"
        raise BncliError(what, where=where, hint=hint)


def _check_attributes(names: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise BncliError for the first name that is not an attribute, suggesting a similar attribute if there is one."""
    for name in names:
        if name not in known:
            import difflib

            nearest = difflib.get_close_matches(name, known, n=1)
            nothing = "the table has no such attribute, or it was left out"
            hint = f"did you mean '{nearest[0]}'?" if nearest else nothing
            raise BncliError(f"the structure names an unknown attribute '{name}'", where=where, hint=hint)
