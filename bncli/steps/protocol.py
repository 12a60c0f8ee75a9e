"""Cross-validation as it was asked for, the same for one learner and for several that are compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Protocol:
    """How rows are dealt: stratified folds, the repeats dealt anew, and the seed of both."""

    folds: int
    repeats: int
    seed: int

    def __str__(self) -> str:
        times = f"{self.repeats} x " if self.repeats > 1 else ""
        return f"{times}{self.folds}-fold cross-validation, stratified, seed {self.seed}"
