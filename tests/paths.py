"""Hypothesis strategies for models that grow region by region."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Model, Parameters, Path
from bncli.engine.parameter_learners.closed_form import learn_kbma
from bncli.engine.structures.structure import Regions
from bncli.recipe import Recipe
from tests.datasets import random_dataset

Case = tuple[Dataset, Regions, Parameters, float]

RECIPE = Recipe.of(structure="kikuchi", theta=1.0).replaced(structure="file")


@st.composite
def region_lists(draw: st.DrawFn, n_attributes: int, max_size: int = 3) -> tuple[tuple[int, ...], ...]:
    """Regions none of which is inside an earlier one."""
    members = st.sets(st.integers(0, n_attributes - 1), min_size=1, max_size=max_size).map(lambda s: tuple(sorted(s)))
    kept: list[tuple[int, ...]] = []
    for region in draw(st.lists(members, max_size=7)):
        if not any(set(region) <= set(earlier) for earlier in kept):
            kept.append(region)
    return tuple(kept)


@st.composite
def learnt_paths(draw: st.DrawFn, learn: Any = learn_kbma) -> Case:
    """A few rows, regions, what was learned of them, and theta."""
    cardinalities = draw(st.lists(st.integers(2, 3), min_size=1, max_size=4))
    data = random_dataset(
        draw(st.integers(1, 40)),
        cardinalities,
        draw(st.integers(2, 4)),
        seed=draw(st.integers(0, 999)),
        weighted=draw(st.booleans()),
    )
    regions = Regions(draw(region_lists(len(cardinalities))))
    theta = draw(st.sampled_from([0.01, 1.0, 5.0]))
    return data, regions, learn(Counts(data), regions, theta=theta), theta


def model_of(data: Dataset, regions: Regions, learnt: Parameters) -> Model:
    return Model(data.schema, regions, learnt.predictor, RECIPE, data.n_rows, "0.1.0")


def path_of(learnt: Model | Parameters) -> Path:
    """What a Kikuchi model scores by."""
    assert isinstance(learnt.predictor, Path)
    return learnt.predictor


def reweighed(path: Path, weights: list[float]) -> Path:
    """The same path with other shares, which need not sum to 1."""
    total = sum(weights)
    steps = tuple(step._replace(weight=w / total) for step, w in zip(path.steps, weights, strict=True))
    return replace(path, steps=steps)


def learnt_on(
    data: Dataset, regions: tuple[tuple[int, ...], ...], learn: Any = learn_kbma, theta: float = 1.0
) -> Model:
    structure = Regions(regions)
    return model_of(data, structure, learn(Counts(data), structure, theta=theta))
