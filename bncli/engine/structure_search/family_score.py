"""The score of a child's family by the rule that a user writes: `bic`, `bdeu:1`, `acll:5`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bncli.catalogue import SCORES
from bncli.engine.kernels.arrays import Array


@dataclass(frozen=True)
class FamilyScore:
    """`score`: counts (..., r, q, K) to (...), nats, higher is better; `equivalent`: see `bncli.engine.scores`."""

    score: Callable[[Array], Array]
    equivalent: bool


def family_score(rule: str) -> FamilyScore:
    """The score named `NAME` or `NAME:NUMBER`; the name is a module of `bncli.engine.scores`."""
    name, _, number = rule.partition(":")
    module = importlib.import_module(SCORES.module_of(name))
    score = partial(module.family_scores, number=float(number)) if number else module.family_scores
    return FamilyScore(score, module.EQUIVALENT)
