"""The score of a child's family by the rule that a recipe writes: `bic`, `bdeu:1`, `acll:5`, `acll:5/1,1000`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bncli.catalogue import SCORES
from bncli.engine.kernels.arrays import Array


@dataclass(frozen=True)
class FamilyScore:
    """`score`: counts (..., r, q, K) to (...), nats, higher is better; `equivalent`: see `bncli.engine.scores`."""

    score: Callable[[Array], Array]
    equivalent: bool


def family_score(rule: str) -> FamilyScore:
    """The score named `NAME`, `NAME:NUMBER` or `NAME:NUMBER/PRIOR`; the name is a module of `bncli.engine.scores`."""
    name, _, numbers = rule.partition(":")
    number, _, prior = numbers.partition("/")
    module = importlib.import_module(SCORES.module_of(name))
    options: dict[str, Any] = ({"number": float(number)} if number else {}) | ({"prior": prior} if prior else {})
    return FamilyScore(partial(module.family_scores, **options), module.EQUIVALENT)
