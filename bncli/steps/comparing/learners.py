"""Who takes part in a comparison: a name and the learning options behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe


@dataclass(frozen=True)
class Learner:
    """A recipe with a name; `options` is what was typed for it, `cuts` and `structure` are files that stand in."""

    name: str
    recipe: Recipe
    options: str = ""
    cuts: str | None = None
    structure: str | None = None

    def identity(self) -> dict[str, Any]:
        """All that its results depend on, as JSON values: the content of files, not their names."""
        files = {"cuts": _digest(self.cuts), "structure": _digest(self.structure)}
        return {"name": self.name, "recipe": self.recipe.as_dict(), **files}


def _digest(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BncliError(f"cannot read: {(error.strerror or str(error)).lower()}", where=path) from error


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
