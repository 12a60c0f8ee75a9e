"""Any model as an average of sums of tables: what there is to explain.

    P(y | x) = sum over models s of w_s softmax_y S_s[x, y],    S_s = sum over parts p of numbers[s, p] G_p

A part is a constant and cubes of contrasts (`explanation.contrasts`). A model without an average has one part,
a blend one for each member. A path of Kikuchi-Bayes models has one for the class alone and one a region; there
`numbers` are the counting numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.explanation.contrasts import Cube, contrasts, cube_of, ordered_cube
from bncli.engine.explanation.purification import MOST_ATTRIBUTES, Score
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model, Path, Tables
from bncli.engine.prediction.path_stages import LEAST_WEIGHT
from bncli.engine.prediction.region_factors import Cubes
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError


@dataclass(frozen=True)
class Mixture:
    """weights (S,) sum to 1; numbers (S, P); parts: P scores."""

    weights: Array
    numbers: Array
    parts: tuple[Score, ...]

    def averaged(self) -> Score:
        """The average of the models' scores by their weights; not the score of their averaged probabilities."""
        shares = self.weights @ self.numbers
        constant = np.sum([share * part.constant for share, part in zip(shares, self.parts, strict=True)], axis=0)
        cubes = (
            Cube(cube.attributes, cube.merges, share * cube.values)
            for share, part in zip(shares, self.parts, strict=True)
            for cube in part.cubes
        )
        return Score(np.asarray(constant), tuple(cubes))


def mixture_of(model: Model) -> Mixture:
    """What scores: the path or the blend where there is one, else the tables."""
    if model.path is not None:
        return mixture_of_path(model.path)
    if model.blend is not None:
        return mixture_of_tables([(member.weight, member.tables) for member in model.blend], model.schema)
    return mixture_of_tables([(1.0, model.tables)], model.schema)


def mixture_of_tables(members: Sequence[tuple[float, Tables]], schema: Schema) -> Mixture:
    """Models with their weights, each a part."""
    parts = tuple(_score(tables, schema) for _, tables in members)
    weights = np.array([weight for weight, _ in members])
    return Mixture(weights / weights.sum(), np.eye(len(parts)), parts)


def _score(tables: Tables, schema: Schema) -> Score:
    """Families without the class in them are the same for all classes and gone."""
    families = zip(tables.families, tables.weights, strict=True)
    cubes = tuple(cube_of(_checked(family), weights, schema) for family, weights in families if family.by_class)
    return Score(contrasts(tables.bias), cubes)


def _checked(family: Family) -> Family:
    """The family, unless it has too many terms."""
    if len(family.attributes) > MOST_ATTRIBUTES:
        what = f"the effects inside a table over {len(family.attributes)} attributes cannot be told apart"
        raise BncliError(what, hint=f"learn a model with tables over at most {MOST_ATTRIBUTES} attributes")
    return family


def mixture_of_path(path: Path) -> Mixture:
    """The steps with weight; a region is a part if one of them counts it."""
    rows: list[Array] = []
    weights: list[float] = []
    numbers = np.zeros(len(path.families) + 1)
    for step in path.steps:
        for family, change in step.changes:
            numbers[family] += change  # -1, the class alone, is the last
        if step.weight >= LEAST_WEIGHT:
            rows.append(numbers.copy())
            weights.append(step.weight)
    table = np.array(rows)
    counted = [f for f in range(len(path.families)) if table[:, f].any()]
    cubes = Cubes(path)
    parts = [_region(path, cubes, f) for f in counted]
    alone = Score(contrasts(path.class_logs), ())
    return Mixture(np.array(weights) / sum(weights), table[:, [*counted, -1]], (*parts, alone))


def _region(path: Path, cubes: Cubes, f: int) -> Score:
    family = _checked(path.families[f])
    values = contrasts(cubes.expanded(f))
    return Score(np.zeros(values.shape[-1]), (ordered_cube(family.attributes, (None,) * len(family.shape), values),))
