"""What is told of models of regions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bncli.engine.structures.named_structure import NamedRegions
from bncli.engine.structures.structure import SearchTrace
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.structure import write_structure
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.inputs import read_supplied
from bncli.steps.model_views import (
    NamedStep,
    RegionsReport,
    regions_report,
    report_of_search,
    steps_of_path,
    steps_of_search,
)
from tests.paths import path_of

MONKS = Source((str(Path(__file__).parents[2] / "sample_data" / "monks1.csv"),), categorical=("a1", "a2", "a5"))
KBMA = Recipe.of(structure="kikuchi", theta=1.0)
FOUND = NamedRegions(
    "y",
    (("a",), ("b",), ("b", "a")),
    SearchTrace((1, 2, 3, 4), (-9.0, -7.0, -6.0, -5.0), (-10.0, -9.0, -9.0, -math.inf), 1),
)


def fitted(folder: Path, param: str) -> str:
    regions = NamedRegions("class", (("a5",), ("a1",), ("a2",), ("a2", "a1")))
    write_structure(str(folder / "r.json"), regions)
    settings: dict[str, Any] = (
        {"optimizer": "lbfgs", "penalty": 1.0, "max_iterations": 99} if param == "discriminative" else {}
    )
    recipe = Recipe.of(structure="kikuchi", param=param, **settings)
    fit(MONKS, recipe, supplied=read_supplied(None, str(folder / "r.json")), output=str(folder / "m.bnc"))
    return str(folder / "m.bnc")


def test_steps_of_a_search_are_weighed_by_posterior() -> None:
    steps = steps_of_search(FOUND)
    assert steps is not None
    assert [step.region for step in steps] == [(), ("a",), ("b",), ("b", "a")]
    total = math.exp(-1.0) + 2
    assert [step.weight for step in steps] == pytest.approx([math.exp(-1.0) / total, 1 / total, 1 / total, 0.0])
    assert steps[3].as_json() == {
        "region": ["b", "a"], "df": 4, "log_likelihood": -5.0, "log_posterior": None, "weight": 0.0,
    }  # fmt: skip
    assert steps_of_search(replace(FOUND, trace=None)) is None


def test_regions_are_counted_by_order() -> None:
    assert report_of_search(FOUND) == RegionsReport({"2": 1}, 3, 1, pytest.approx(1 / (2 + math.exp(-1.0))))
    assert report_of_search(replace(FOUND, trace=None)) == RegionsReport({"3": 1})


def test_steps_of_a_model(tmp_path: Path) -> None:
    model = read_model(fitted(tmp_path, "kbma"))
    steps = steps_of_path(path_of(model), model.schema)
    assert [step.region for step in steps] == [(), ("a5",), ("a1",), ("a2",), ("a1", "a2")]
    assert math.fsum(step.weight for step in steps) == pytest.approx(1.0)
    assert steps[0] == NamedStep((), *path_of(model).steps[0][2:])
    assert regions_report(model) == RegionsReport({"2": 1, "3": 1}, 4, 4, steps[4].weight)


def test_without_a_path_only_the_regions_are_told(tmp_path: Path) -> None:
    assert regions_report(read_model(fitted(tmp_path, "discriminative"))) == RegionsReport({"2": 1, "3": 1})


def test_a_network_has_none(tmp_path: Path) -> None:
    fit(MONKS, Recipe.of(param="map"), output=str(tmp_path / "m.bnc"))
    assert regions_report(read_model(str(tmp_path / "m.bnc"))) is None
