"""Effects of a model, and models of regions, by the names of columns."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.model import Model, Tables
from bncli.engine.structures.named_structure import NamedRegions
from bncli.engine.structures.structure import Family, Regions, SearchTrace
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.artifacts.structure import write_structure
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.effects_and_regions import (
    CLASS_REFERENCE,
    NamedStep,
    RegionsReport,
    effects_csv,
    path_steps,
    regions_report,
    search_report,
    search_steps,
)
from bncli.steps.fit import fit
from bncli.steps.inspect import ModelReport, inspect
from bncli.steps.learning_inputs import read_supplied
from tests.paths import path_of
from tests.steps.test_inspect import MODEL, SCHEMA, TABLES

MONKS = Source((str(Path(__file__).parents[2] / "sample_data" / "monks1.csv"),), categorical=("a1", "a2", "a5"))
KBMA = Recipe.of(structure="kikuchi", theta=1.0)
FOUND = NamedRegions(
    "y",
    (("a",), ("b",), ("b", "a")),
    SearchTrace((1, 2, 3, 4), (-9.0, -7.0, -6.0, -5.0), (-10.0, -9.0, -9.0, -math.inf), 1),
)


def test_the_effects_of_a_model(tmp_path: Path) -> None:
    write_model(str(tmp_path / "m.bnc"), MODEL)
    report = inspect(str(tmp_path / "m.bnc"), effects=True)
    assert isinstance(report, ModelReport)
    content = report.as_json()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["class_reference"] == CLASS_REFERENCE
    assert content["averaged_models"] == 1
    assert [effect["attributes"] for effect in content["effects"]] == [["age"], ["colour"], ["age", "colour"]]
    assert [effect["shape"] for effect in content["effects"]] == [[2, 2], [3, 2], [2, 3, 2]]
    # Both tables raise "yes" by 1 in every cell, so that nothing depends on the attributes; 1 is the bias.
    assert content["effects_base"] == pytest.approx([-3.0, 3.0])
    assert not any(np.abs(effect["values"]).max() > 1e-12 for effect in content["effects"])


def test_effects_are_reported_on_request_only(tmp_path: Path) -> None:
    write_model(str(tmp_path / "m.bnc"), MODEL)
    assert not {"effects", "class_reference", "effects_base"} & inspect(str(tmp_path / "m.bnc")).as_json().keys()


def test_coarse_attributes_say_how(tmp_path: Path) -> None:
    age = NumericAttribute("age", True, (3.0, 7.0, 1.0, 2.0), (27.5, 41.0))
    schema = replace(SCHEMA, attributes=(age, SCHEMA.attributes[1]))
    families = (Family((0,), (4,), None), Family((0, 1), (3, 3), None, groupings=((0, 1, 1, 2), None)))
    weights = (np.arange(8.0).reshape(4, 2) ** 2, np.arange(18.0).reshape(9, 2) ** 2)
    write_model(
        str(tmp_path / "m.bnc"),
        Model(schema, Regions(((0, 1),)), Tables(TABLES.bias, families, weights), MODEL.recipe, 13, "0.1.0"),
    )
    effects = {
        tuple(effect["attributes"]): effect
        for effect in inspect(str(tmp_path / "m.bnc"), effects=True).as_json()["effects"]
    }
    assert effects["age",]["shape"] == [4, 2]
    assert "merges" not in effects["age",]
    pair = effects["age", "colour"]
    assert pair["shape"] == [3, 3, 2]
    assert pair["merges"] == [{"name": "age", "type": "numeric", "cuts": [27.5], "missing": True}, None]
    assert sum(effect["share"] for effect in effects.values()) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:.*alone explains:UserWarning")
def test_as_csv_every_row_of_data_adds_up_to_its_log_odds(tmp_path: Path) -> None:
    """The lines of the values of a row, and the base, make the log-odds that `predict_proba` gives it."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,class\n" + "".join(f"{i % 3},{'uv'[i % 2]},{'xyz'[i * i % 3]}\n" for i in range(60)))
    model = bncli.fit(path, structure="nb", param="map", categorical="a")
    model.save(tmp_path / "m.bnc")
    report = inspect(str(tmp_path / "m.bnc"), effects=True)
    assert isinstance(report, ModelReport)
    assert report.effects is not None
    lines = list(csv.DictReader(io.StringIO(effects_csv(report.effects, report.model.schema.labels))))
    told = {(line["attribute"], line["value"], line["label"]): float(line["log_odds"]) for line in lines}
    assert len(told) == len(lines)
    for row in ({"a": [a], "b": [b]} for a in "012" for b in "uv"):
        logs = np.log(model.predict_proba(row)[0])
        for y, label in enumerate(model.classes_):
            parts = [told.get((name, values[0], label), 0.0) for name, values in row.items()]
            odds = logs[y] - np.delete(logs, y).mean()
            assert told["", "", label] + sum(parts) == pytest.approx(odds, abs=1e-9)


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
    steps = search_steps(FOUND)
    assert steps is not None
    assert [step.region for step in steps] == [(), ("a",), ("b",), ("b", "a")]
    total = math.exp(-1.0) + 2
    assert [step.weight for step in steps] == pytest.approx([math.exp(-1.0) / total, 1 / total, 1 / total, 0.0])
    assert steps[3].as_json() == {
        "region": ["b", "a"], "df": 4, "log_likelihood": -5.0, "log_posterior": None, "weight": 0.0,
    }  # fmt: skip
    assert search_steps(replace(FOUND, trace=None)) is None


def test_regions_are_counted_by_order() -> None:
    assert search_report(FOUND) == RegionsReport({"2": 1}, 3, 1, pytest.approx(1 / (2 + math.exp(-1.0))))
    assert search_report(replace(FOUND, trace=None)) == RegionsReport({"3": 1})


def test_steps_of_a_model(tmp_path: Path) -> None:
    model = read_model(fitted(tmp_path, "kbma"))
    steps = path_steps(path_of(model), model.schema)
    assert [step.region for step in steps] == [(), ("a5",), ("a1",), ("a2",), ("a1", "a2")]
    assert math.fsum(step.weight for step in steps) == pytest.approx(1.0)
    assert steps[0] == NamedStep((), *path_of(model).steps[0][2:])
    assert regions_report(model) == RegionsReport({"2": 1, "3": 1}, 4, 4, steps[4].weight)


def test_without_a_path_only_the_regions_are_told(tmp_path: Path) -> None:
    assert regions_report(read_model(fitted(tmp_path, "discriminative"))) == RegionsReport({"2": 1, "3": 1})


def test_a_network_has_none(tmp_path: Path) -> None:
    fit(MONKS, Recipe.of(param="map"), output=str(tmp_path / "m.bnc"))
    assert regions_report(read_model(str(tmp_path / "m.bnc"))) is None
