"""The learners of a paper as `bncli compare --preset NAME` has them; the pages are made with their recipes."""

from __future__ import annotations

from functools import cache

from bncli.cli.learning_options import PRESETS, parse_learner
from bncli.recipe import Recipe


@cache
def preset(paper: str, seed: int = 0) -> dict[str, Recipe]:
    """Return the recipes of a preset by the names of its learners, without the name of the paper in front."""
    learners = [parse_learner(text, seed) for text in PRESETS[paper][1]]
    return {learner.name.removeprefix(f"{paper} "): learner.recipe for learner in learners}
