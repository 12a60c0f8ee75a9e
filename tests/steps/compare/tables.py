"""Small data sets on the disk, and plans that use them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.compare.trials import DataSet, Learner, RunPlan, read_data_sets
from bncli.watch import silent

NB = Learner("nb", Recipe.of(structure="nb", param="map"), "--structure nb --param map")
TAN = Learner("tan", Recipe.of(param="map"), "--param map")
IMPROBABLE = Learner("improbable", Recipe.of().replaced(missing_policy="marginalize"))
"""Fails on every fold."""


def write_table(path: Path, n: int, seed: int) -> Source:
    """n rows of a number, a word and a class that both tell something of."""
    rng = np.random.default_rng(seed)
    rows = [
        f"{rng.normal() + 2 * label:.3f},{'abc'[rng.integers(0, 1 + label)]},{'xyz'[label]}"
        for label in rng.integers(0, 3, n)
    ]
    path.write_text("\n".join(["number,word,class", *rows]) + "\n")
    return Source((str(path),))


def planned(
    sources: list[Source], learners: tuple[Learner, ...] = (NB, TAN), protocol: Protocol | None = None
) -> tuple[RunPlan, tuple[DataSet, ...]]:
    """A plan as the step makes it, and its data sets."""
    protocol = protocol or Protocol(3, 1, 0)
    entries = read_data_sets(sources, protocol, threads=1, watch=silent)
    names, read = tuple(entry.name for entry in entries), tuple(entry.source for entry in entries)
    return RunPlan(names, read, learners, protocol), entries
