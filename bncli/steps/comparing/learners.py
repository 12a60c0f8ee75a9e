"""Who takes part in a comparison: a name and the learning options behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bncli.errors import UsageError
from bncli.files.cuts import dump_cuts
from bncli.files.structure import dump_structure
from bncli.recipe import Recipe
from bncli.steps.supplied_files import Supplied


@dataclass(frozen=True)
class Learner:
    """A recipe with a name; `options` is what was typed for it; what is supplied stands in for methods."""

    name: str
    recipe: Recipe
    options: str = ""
    supplied: Supplied = Supplied()

    def identity(self) -> dict[str, Any]:
        """All that its results depend on, as JSON values: the content of files, not their names."""
        cuts, structure = self.supplied.cuts, self.supplied.structure
        files = {
            "cuts": None if cuts is None else _digest(dump_cuts(cuts)),
            "structure": None if structure is None else _digest(dump_structure(structure)),
        }
        return {"name": self.name, "recipe": self.recipe.as_dict(), **files}


def _digest(text: str) -> str:
    """Of a file as it is written here: layout does not matter."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_names(learners: Sequence[Learner]) -> None:
    """UsageError where two learners have one name, or there is none at all."""
    if not learners:
        raise UsageError("there is no learner to compare")
    seen: dict[str, Learner] = {}
    for learner in learners:
        if learner.name in seen:
            same = learner.recipe == seen[learner.name].recipe
            hint = "it is given twice" if same else "put NAME= before its options"
            raise UsageError(f"two learners are called {learner.name!r}", hint=hint)
        seen[learner.name] = learner
