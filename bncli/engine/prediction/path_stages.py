"""What scoring adds up between two softmaxes: the steps of a path gathered into stages, each region's changes into one.

A step whose weight is next to nothing needs no probabilities of its own, so its changes go to the next step that does:
a stage is a step with weight and those just before it without. Of the changes of a stage many cancel, and what is left
of a region that another one contains goes into the table of that one. So the model of a single step is a stage with one
table for every region that no other contains.

Conventions: steps of less than LEAST_WEIGHT are left out. That is less than a rounding error of any probability.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bncli.engine.model import Path
from bncli.engine.structures.region_graph import Region, maximal

LEAST_WEIGHT = 1e-17

Change = tuple[int, int]
"""Index of a family of the path, or -1 for the class alone; the change of its counting number."""


@dataclass(frozen=True)
class Stage:
    """`hosts`: family by family of the path what is added over its cells; `class_change`: what is left of the class."""

    weight: float
    class_change: int
    hosts: tuple[tuple[int, tuple[Change, ...]], ...]


def stages_of(path: Path) -> list[Stage]:
    """The stages in the order of their steps; those after the last step with weight are gone."""
    stages, changes = [], defaultdict[int, int](int)
    for step in path.steps:
        for family, change in step.changes:
            changes[family] += change
        if step.weight >= LEAST_WEIGHT:
            stages.append(_stage(path, step.weight, {f: c for f, c in changes.items() if c}))
            changes.clear()
    return stages


def _stage(path: Path, weight: float, changes: dict[int, int]) -> Stage:
    """Every change in the first family that contains it, of those that no other contains."""
    regions: dict[int, Region] = {f: path.families[f].attributes if f >= 0 else () for f in changes}
    largest = set(maximal(region for region in regions.values() if region))
    hosts: dict[int, list[Change]] = {f: [] for f, region in regions.items() if region in largest}
    homeless = 0
    for f, change in changes.items():
        home = next((h for h in hosts if set(regions[f]) <= set(regions[h])), None)
        if home is None:
            homeless = change
        else:
            hosts[home].append((f, change))
    return Stage(weight, homeless, tuple((h, tuple(terms)) for h, terms in hosts.items()))
