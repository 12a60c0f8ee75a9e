"""Constraints on the arcs and tables of a structure over attribute indices, from the file given with `--knowledge`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from bncli.catalogue.option_kinds import ANY, Knowledge
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Mask
from bncli.engine.structures.structure import Dag, Structure
from bncli.errors import BncliError, UsageError


@dataclass(frozen=True)
class ArcConstraints:
    """Constraints on a structure over n attributes; all matrices have shape (n, n).

    - allowed[j, i]: an arc j -> i may exist; required[j, i]: it must exist
    - together[i, j]: i and j may be in one table; symmetric
    - earlier[j, i]: j comes before i in every order of the attributes, because of a required arc, a tier or the root
    - max_parents: the maximum number of attribute parents of an attribute, or None for any number
    - names: the names of the attributes, for messages
    """

    allowed: Mask
    required: Mask
    together: Mask
    earlier: Mask
    max_parents: int | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, knowledge: Knowledge, schema: Schema) -> ArcConstraints:
        """Return the constraints on the attributes of the schema.

        An arc from or to an attribute with a single code is not required, since structures leave such attributes out.
        Raises UsageError for a name that is not an attribute.
        """
        names = tuple(attribute.name for attribute in schema.attributes)
        for name in knowledge.names:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else "add --categorical NAME to use a column that was left out as an identifier"
                )
                what = "not an attribute of the table"
                if name == schema.class_name:
                    what, hint = "the class", "constraints apply only to attributes; the class is a parent of each"
                raise UsageError(f"--knowledge names {name!r}, which is {what}", hint=hint)
        n, place = len(names), {name: slice(i, i + 1) for i, name in enumerate(names)}
        place[ANY] = slice(0, n)
        together, allowed = np.ones((n, n), np.bool_), np.ones((n, n), np.bool_)
        for one, other in knowledge.no_interaction:
            together[place[one], place[other]] = together[place[other], place[one]] = False
        np.fill_diagonal(together, True)
        for parent, child in knowledge.forbid:
            allowed[place[parent], place[child]] = False
        required, earlier = np.zeros((n, n), np.bool_), np.zeros((n, n), np.bool_)
        for parent, child in knowledge.require:
            is_used = all(schema.attributes[place[name].start].informative for name in (parent, child))
            required[place[parent], place[child]] = is_used
        earlier |= required
        for first, second in itertools.combinations(knowledge.before, 2):
            for parent, child in itertools.product(first, second):
                earlier[place[parent], place[child]] = True
                allowed[place[child], place[parent]] = False
        if knowledge.root is not None:
            earlier[place[knowledge.root]] = True
            earlier[place[knowledge.root], place[knowledge.root]] = False
            allowed[:, place[knowledge.root]] = False
        allowed &= together & ~np.eye(n, dtype=np.bool_)
        return cls(allowed, required, together, earlier, knowledge.max_parents, names)

    def order(self, preferred: Sequence[int]) -> tuple[int, ...]:
        """Return the attributes in the preferred order, each moved behind the attributes that must come before it.

        Raises UsageError if the constraints form a cycle.
        """
        left, placed = list(preferred), []
        while left:
            free = (i for i in left if not any(self.earlier[j, i] for j in left))
            i = next(free, None)
            if i is None:
                names = ", ".join(self.names[j] for j in left[:5])
                raise UsageError(f"the arcs, tiers and root of --knowledge form a cycle through {names}")
            placed.append(i)
            left.remove(i)
        return tuple(placed)

    def parents_among(self, child: int, candidates: Sequence[int], most: int) -> tuple[int, ...]:
        """Return parents from `candidates`, in order: the required ones, then those that constraints allow beside them.

        There are at most `most` parents, and at most max_parents. Raises UsageError if more of them are required.
        """
        most = most if self.max_parents is None else min(most, self.max_parents)
        chosen = [j for j in candidates if self.required[j, child]]
        if len(chosen) > most:
            what = (
                f"--knowledge requires {len(chosen)} parents of {self.names[child]!r}, but at most {most} are learned"
            )
            raise UsageError(what, hint="raise --k, or require fewer parents")
        for j in candidates:
            may_join = self.allowed[j, child] and all(self.together[j, p] for p in chosen)
            if len(chosen) < most and j not in chosen and may_join:
                chosen.append(j)
        return tuple(chosen)

    def allows_region(self, region: Sequence[int]) -> bool:
        """Return whether the attributes may form a region, which is a table without arcs.

        A region has no directions, so two attributes may not share one if an arc between them is forbidden in either
        direction. It has at most max_parents + 1 attributes. Required arcs are not checked.
        """
        if self.max_parents is not None and len(region) > self.max_parents + 1:
            return False
        pairs = itertools.combinations(region, 2)
        return all(self.together[i, j] and self.allowed[i, j] and self.allowed[j, i] for i, j in pairs)

    def is_obeyed(self, structure: Structure) -> bool:
        if not isinstance(structure, Dag):
            return all(map(self.allows_region, structure.regions))
        arcs = np.zeros_like(self.required)
        for i, parents in enumerate(structure.parents):
            arcs[list(parents), i] = True
            together = all(self.together[a, b] for a, b in itertools.combinations(parents, 2))
            if not together or (self.max_parents is not None and len(parents) > self.max_parents):
                return False
        return not (arcs & ~self.allowed).any() and not (self.required & ~arcs).any()

    def check(self, structure: Structure) -> None:
        """Raise BncliError unless the structure obeys all constraints (for regions: all but required arcs)."""
        if not self.is_obeyed(structure):
            what = f"--structure {structure.method} found no structure that obeys all of --knowledge"
            raise BncliError(what, hint="use --structure tan, kdb or hill-climb, or require fewer arcs")
