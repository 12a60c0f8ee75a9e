"""Domain knowledge: constraints on arcs and tables, by the names of columns.

    forbid = [["a", "b"]]            no arc a -> b
    require = [["a", "b"]]           an arc a -> b
    before = [["a", "b"], ["c"]]     tiers: no arc from a later tier to an earlier one
    root = "a"                       no arc into a, which is the root of a tree and comes first in an order
    no_interaction = [["a", "b"]]    a and b are in no table together
    max_parents = 2                  at most 2 attribute parents of each attribute

In `forbid` and `no_interaction` the name `*` stands for every other column. The class is a parent of attributes in any
case, and constraints do not concern it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

Pair = tuple[str, str]
ANY = "*"
KEYS = ("forbid", "require", "before", "root", "no_interaction", "max_parents")
MOST_PARENTS = 1000


@dataclass(frozen=True)
class Knowledge:
    """Constraints by column names, as the module explains; pairs, and the names of a tier, are sorted and unique."""

    forbid: tuple[Pair, ...] = ()
    require: tuple[Pair, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    root: str | None = None
    no_interaction: tuple[Pair, ...] = ()
    max_parents: int | None = None

    @classmethod
    def parse(cls, value: object) -> Knowledge:
        """Return the constraints in a mapping or in JSON text; raise ValueError if they are wrong or contradictory."""
        content = value
        if isinstance(value, str):
            try:
                content = json.loads(value)
            except json.JSONDecodeError:
                raise ValueError(f"there is no file {value!r}") from None
        if not isinstance(content, Mapping):
            raise ValueError("knowledge is a table with the keys " + ", ".join(KEYS))
        for key in content:
            if key not in KEYS:
                near = get_close_matches(str(key), KEYS, n=1)
                raise ValueError(f"{key!r} is not a key; " + (f"did you mean {near[0]}?" if near else ", ".join(KEYS)))
        root, most = content.get("root"), content.get("max_parents")
        if root is not None and (not isinstance(root, str) or not root):
            raise ValueError('root must be the name of one column, as in root = "age"')
        if most is not None and (type(most) is not int or not 0 <= most <= MOST_PARENTS):
            raise ValueError(f"max_parents must be a whole number from 0 to {MOST_PARENTS}")
        tiers = content.get("before", [])
        if not isinstance(tiers, list | tuple) or not all(_is_names(tier) for tier in tiers):
            raise ValueError('before must be a list of lists of columns, as in before = [["age"], ["pulse", "fever"]]')
        known = cls(
            _pairs(content, "forbid"),
            _pairs(content, "require"),
            tuple(tuple(sorted(set(tier))) for tier in tiers),
            root,
            tuple(sorted({(min(pair), max(pair)) for pair in _pairs(content, "no_interaction")})),
            most,
        )
        known.check()
        return known

    @property
    def text(self) -> str:
        """The constraints as JSON, without empty ones; it parses to the same constraints."""
        values = {key: getattr(self, key) for key in KEYS}
        said = {key: value for key, value in values.items() if value not in (None, ())}
        return json.dumps(said, ensure_ascii=False, separators=(",", ":"))

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is named, without repetitions: first those of pairs, then those of tiers, then the root."""
        pairs = (*self.forbid, *self.require, *self.no_interaction)
        root = () if self.root is None else (self.root,)
        named = (*(name for listed in (*pairs, *self.before) for name in listed), *root)
        return tuple(name for name in dict.fromkeys(named) if name != ANY)

    def allows(self, parent: str, child: str) -> bool:
        """Return whether an arc parent -> child is allowed, regardless of other arcs."""
        if child == self.root or not self.allows_together(parent, child):
            return False
        if any(pair in self.forbid for pair in ((parent, child), (parent, ANY), (ANY, child))):
            return False
        tiers = {name: number for number, tier in enumerate(self.before) for name in tier}
        return parent not in tiers or child not in tiers or tiers[parent] <= tiers[child]

    def allows_together(self, one: str, other: str) -> bool:
        """Return whether two columns may be in one table."""
        pairs = ((min(one, other), max(one, other)), (ANY, one), (ANY, other))
        return not any(pair in self.no_interaction for pair in pairs)

    def check(self) -> None:
        """Raise ValueError for constraints that no network can satisfy."""
        tiers = [name for tier in self.before for name in tier]
        for name in tiers:
            if tiers.count(name) > 1:
                raise ValueError(f"{name!r} is in two tiers of before")
        parents: dict[str, list[str]] = {}
        for parent, child in self.require:
            if ANY in (parent, child):
                raise ValueError(
                    f"require must name both columns of an arc; only forbid and no_interaction accept {ANY!r}"
                )
            if not self.allows(parent, child):
                why = "it is the root" if child == self.root else "forbid, before or no_interaction excludes it"
                raise ValueError(f"the arc {parent} -> {child} is required, but {why}")
            parents.setdefault(child, []).append(parent)
        for child, listed in parents.items():
            if self.max_parents is not None and len(listed) > self.max_parents:
                n = f"{len(listed)} required parent{'s' if len(listed) > 1 else ''}"
                raise ValueError(f"{child!r} has {n}, and max_parents is {self.max_parents}")
            for position, one in enumerate(listed):
                for other in listed[position + 1 :]:
                    if not self.allows_together(one, other):
                        what = f"{one!r} and {other!r} are required parents of {child!r}"
                        raise ValueError(f"{what}, which puts them in one table; no_interaction forbids this")
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            raise ValueError(f"the required arcs form a cycle: {' -> '.join(reversed(error.args[1]))}") from None


def _is_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) and name and name != ANY for name in value)


def _pairs(content: Mapping[str, Any], key: str) -> tuple[Pair, ...]:
    pairs = content.get(key, [])
    is_list = isinstance(pairs, list | tuple)
    for pair in pairs if is_list else [None]:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(x, str) and x for x in pair):
            raise ValueError(f'{key} must be a list of pairs of columns, as in {key} = [["age", "pulse"]]')
        if pair[0] == pair[1]:
            raise ValueError(f"{key} names {pair[0]!r} twice in one pair")
    return tuple(sorted({(pair[0], pair[1]) for pair in pairs}))
