"""The effects of a model by the names of its columns, as records and as JSON."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bncli
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.model import Model, Tables
from bncli.engine.structures.structure import Family, Regions
from bncli.files.artifacts.model import write_model
from bncli.steps.inspect import ModelReport, inspect
from bncli.steps.model_views import CLASS_REFERENCE, effects_csv
from tests.steps.test_inspect import MODEL, SCHEMA, TABLES


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


def test_only_where_asked_for(tmp_path: Path) -> None:
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


def test_as_csv_every_row_of_data_adds_up_to_its_log_odds(tmp_path: Path) -> None:
    """The lines of the values of a row, and the base, make the log-odds that `predict_proba` gives it."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,class\n" + "".join(f"{i % 3},{'uv'[i % 2]},{'xyz'[i * i % 3]}\n" for i in range(60)))
    model = bncli.fit(path, structure="nb", param="map", categorical="a")
    model.save(tmp_path / "m.bnc")
    report = inspect(str(tmp_path / "m.bnc"), effects=True)
    assert isinstance(report, ModelReport)
    assert report.effects is not None
    lines = list(csv.DictReader(io.StringIO(effects_csv(report.effects, report.labels))))
    told = {(line["attribute"], line["value"], line["label"]): float(line["log_odds"]) for line in lines}
    assert len(told) == len(lines)
    for row in ({"a": [a], "b": [b]} for a in "012" for b in "uv"):
        logs = np.log(model.predict_proba(row)[0])
        for y, label in enumerate(model.classes_):
            parts = [told.get((name, values[0], label), 0.0) for name, values in row.items()]
            odds = logs[y] - np.delete(logs, y).mean()
            assert told["", "", label] + sum(parts) == pytest.approx(odds, abs=1e-9)
