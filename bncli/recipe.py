"""The learning options of one fit as one frozen value: what a model records of how it was made.

Never paths or threads: the same recipe on the same rows gives the same bytes, unless it limits the seconds. An option
that has no effect with the chosen methods is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bncli.errors import BncliError


@dataclass(frozen=True)
class Recipe:
    """Methods and their options; the catalogue says which options a method takes.

    smoothing is `NAME` or `NAME:NUMBER`, with the number always written out where the rule has one, and so is
    structure_score, where the number of `acll` and `acll-uniform` is that of --pseudo-counts. init is resolved: the
    word typed or the default that follows from the penalty. seed draws the folds by which a penalty
    `cv` is chosen, and the number of iterations where early_stop is `cv`. missing_policy is None in models that were
    learnt before there was a choice: `level`.
    """

    discretize: str = "mdl"
    bins: int | None = None
    structure: str = "tan"
    k: int | None = None
    structure_score: str | None = "cmi"
    forest: bool | None = False
    max_parents: int | None = None
    perfect: bool | None = None
    loss: str | None = None
    epsilon: float | None = None
    max_order: int | None = None
    theta: float | None = None
    max_seconds: float | None = None
    max_candidates: int | None = None
    param: str = "weighted"
    smoothing: str | None = "m-estimate:1"
    pseudo_counts: float | None = None
    level: int | None = 4
    coding: str | None = None
    lower_orders: bool | None = None
    metric: str | None = None
    time_limit: float | None = None
    init: str | None = "zero"
    penalty: float | Literal["cv"] | None = "cv"
    penalty_center: float | None = 0.0
    optimizer: str | None = "newton"
    tolerance: float | None = 1e-10
    max_iterations: int | None = 500
    seed: int | None = 0
    missing_policy: str | None = "level"
    early_stop: str | None = None

    def closed(self, param: str = "map") -> Recipe:
        """This recipe with parameters in closed form: the options of an ascent have no effect."""
        ascent = (
            "level",
            "coding",
            "lower_orders",
            "init",
            "penalty",
            "penalty_center",
            "optimizer",
            "tolerance",
            "max_iterations",
        )
        unset: dict[str, Any] = dict.fromkeys((*ascent, "seed", "early_stop"))
        return replace(self, param=param, **unset)

    def with_cuts(self, method: str, options: Mapping[str, int]) -> Recipe:
        """This recipe for cuts that are given, made by `method` with `options`."""
        return replace(self, discretize=method, bins=options.get("bins"))

    def with_structure(self, method: str, options: Mapping[str, int | float | str | bool]) -> Recipe:
        """This recipe for a structure that is given, made by `method` with `options`; a theta that is set stays.

        Raises BncliError for an option that has not the type it should have; unknown ones are left out.
        """
        values = {name: _checked(name, options.get(name), kind) for name, kind in STRUCTURE_OPTIONS.items()}
        if self.theta is not None:
            values["theta"] = self.theta
        return replace(self, structure=method, **values)


STRUCTURE_OPTIONS: dict[str, type] = {
    "k": int,
    "structure_score": str,
    "forest": bool,
    "max_parents": int,
    "perfect": bool,
    "loss": str,
    "epsilon": float,
    "max_order": int,
    "theta": float,
    "max_seconds": float,
    "max_candidates": int,
}
"""The fields that say how a structure was learnt."""


def _checked(name: str, value: Any, kind: type) -> Any:
    if value is None:
        return None
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise BncliError(
            f"the structure's option {name!r} is {value!r}", hint=f"it should be of the type {kind.__name__}"
        )
    return value
