"""The learning options of one fit as one frozen value: what a model records of how it was made.

Never paths, threads or times: the same recipe on the same rows gives the same bytes. An option that has no effect
with the chosen methods is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """Methods and their options; the catalogue says which options a method takes.

    smoothing is `NAME` or `NAME:NUMBER`, with the number always written out except for `mle`. init is resolved: the
    word typed or the default that follows from the penalty. seed draws the folds by which a penalty `cv` is chosen.
    """

    discretize: str = "mdl"
    bins: int | None = None
    structure: str = "tan"
    k: int | None = None
    param: str = "weighted"
    smoothing: str | None = "m-estimate:1"
    level: int | None = 4
    init: str | None = "zero"
    penalty: float | Literal["cv"] | None = "cv"
    penalty_center: float | None = 0.0
    optimizer: str | None = "newton"
    tolerance: float | None = 1e-10
    max_iterations: int | None = 500
    seed: int | None = 0

    def with_cuts(self, method: str, options: Mapping[str, int]) -> Recipe:
        """This recipe for cuts that are given, made by `method` with `options`."""
        return replace(self, discretize=method, bins=options.get("bins"))

    def with_structure(self, method: str, options: Mapping[str, int | float | str | bool]) -> Recipe:
        """This recipe for a structure that is given, made by `method` with `options`."""
        k = options.get("k")
        return replace(self, structure=method, k=None if k is None else int(k))
