"""Structures: which attributes are looked up together. A structure answers `families()`; a scorer needs no more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NoReturn

from bncli.engine.graphs.perfection import Unmarried, canonical_form, first_unmarried
from bncli.engine.schema import Schema
from bncli.errors import BncliError

CLASS = None
"""The class as a node among attribute indices."""


@dataclass(frozen=True)
class Family:
    """A set of attributes scored by one table, the child first (None: no child), then its parents in their order.

    The cell of a row is the mixed-radix number of its codes, the first attribute the most significant digit:

        cell = (x_0 * shape_1 + x_1) * shape_2 + x_2 ...

    `by_class` is False where the table holds the same numbers for every class: the child lacks the class as a parent.
    """

    attributes: tuple[int, ...]
    shape: tuple[int, ...]
    child: int | None
    by_class: bool = True

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)


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
        """One family per child of the class, in attribute order, then the class's own parents if it has any.

        A node that is neither the class nor its child has a factor without the class in it: it cancels in P(y | x)
        where all of x is known. `whole` adds these (`by_class` False, in attribute order, before the class's parents):
        with them, the tables say P(y, x), and what is unknown of x can be summed out.
        """
        members: list[tuple[tuple[int, ...], int | None, bool]]
        members = [((i, *self.parents[i]), i, True) for i in self.class_children]
        if whole:
            others = (i for i in self.nodes if i not in self.class_children)
            members += [((i, *self.parents[i]), i, False) for i in others]
        if self.class_parents:
            members.append((self.class_parents, None, True))
        return tuple(Family(m, tuple(cardinalities[a] for a in m), child, by) for m, child, by in members)

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

    def canonical(self) -> Dag:
        """The graph that P(y | x) depends on, the class's parents married; attributes outside it have no parents."""
        form = canonical_form(self._by_node(), CLASS)
        inside = (form.get(i, ()) for i in range(len(self.parents)))
        parents = tuple(tuple(node for node in listed if node is not CLASS) for listed in inside)
        return replace(self, parents=parents)

    @property
    def unmarried(self) -> Unmarried[int | None] | None:
        """Two parents of a common child that the canonical form does not join; None where it is perfect."""
        return first_unmarried(self._by_node(), CLASS)

    @property
    def is_perfect(self) -> bool:
        """Whether every two parents of a common child, the class among them, are joined in the canonical form."""
        return self.unmarried is None

    def _by_node(self) -> dict[int | None, tuple[int | None, ...]]:
        children = set(self.class_children)
        nodes: dict[int | None, tuple[int | None, ...]] = {CLASS: self.class_parents}
        for i, listed in enumerate(self.parents):
            nodes[i] = (CLASS, *listed) if i in children else listed
        return nodes


Structure = Dag


@dataclass(frozen=True)
class NamedDag:
    """A directed acyclic graph by column names, as a structure file holds it; every parent list may name the class.

    A name that occurs only as somebody's parent is a node without parents. `class_name` is None where the file does not
    say which node is the class; whoever resolves the graph does. `where` is the file, for errors. Raises BncliError
    when a parent is listed twice or the graph has a cycle.
    """

    class_name: str | None
    parents: Mapping[str, tuple[str, ...]]
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    where: str = field(default="", compare=False)

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
    def unmarried(self) -> Unmarried[str] | None:
        """Two parents of a common child that the canonical form does not join; None where it is perfect.

        Without a class the question has no meaning.
        """
        assert self.class_name is not None
        return first_unmarried(self.parents, self.class_name)

    def resolve(self, schema: Schema) -> Dag:
        """The same graph by attribute index. Uninformative attributes drop out of it.

        Raises BncliError when the class or an attribute is not in the schema.
        """
        self._check_class(schema.class_name)
        index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
        self._check_names(index, schema.class_name)
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
        if self.class_name not in (None, name):
            what = f"the structure is for the class '{self.class_name}', not for '{name}'"
            self._fail(what, hint=f"name the right column with --class {self.class_name}, or mend the structure")

    def _check_names(self, index: Mapping[str, int], class_name: str) -> None:
        for name in self.nodes:
            if name not in index and name != class_name:
                import difflib

                nearest = difflib.get_close_matches(name, index, n=1)
                nothing = "the data has no such attribute, or it was left out"
                hint = f"did you mean '{nearest[0]}'?" if nearest else nothing
                self._fail(f"the structure names an unknown attribute '{name}'", hint=hint)

    def _fail(self, what: str, *, hint: str) -> NoReturn:
        raise BncliError(what, where=self.where, hint=hint)


def _find_cycle(parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """A directed cycle along the arcs (first name = last name), or an empty list. Depth first, without recursion."""
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


def name_dag(dag: Dag, schema: Schema) -> NamedDag:
    """The same graph by column names: the class listed first, attributes in schema order, those outside it left out."""
    names = [attribute.name for attribute in schema.attributes]
    children = set(dag.class_children)
    parents = {}
    for i in dag.nodes:
        by_class = (schema.class_name,) if i in children else ()
        parents[names[i]] = by_class + tuple(names[j] for j in dag.parents[i])
    if dag.class_parents:
        parents[schema.class_name] = tuple(names[j] for j in dag.class_parents)
    return NamedDag(schema.class_name, parents, dag.method, dict(dag.options))
