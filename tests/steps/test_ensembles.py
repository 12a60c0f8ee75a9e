"""Ensembles in reports: what is told of all components, what of the heaviest; and that no network comes of them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.schema import NumericAttribute
from bncli.engine.model import Component, Ensemble, Tables
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.export import export
from bncli.steps.fit import fit
from bncli.steps.inspect import ModelReport, inspect
from bncli.steps.learning_inputs import read_supplied
from bncli.steps.simulate import SimulateOutputs, simulate
from bncli.watch import Event, Note
from tests.engine.ensembles.rows import ensemble_of, recipe
from tests.files.artifacts.test_predictors import COMPONENTS, SCHEMA
from tests.files.artifacts.test_predictors import ENSEMBLE_MODEL as MODEL


@pytest.fixture
def path(tmp_path: Path) -> str:
    write_model(str(tmp_path / "m.bnc"), MODEL)
    return str(tmp_path / "m.bnc")


def table(folder: Path) -> Source:
    """A number that tells the class a little, and one that does not."""
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, 60)).round(3)
    with open(folder / "t.csv", "w", newline="") as file:
        labels = np.where(x + rng.normal(size=60) > 0, "y", "n")
        csv.writer(file).writerows([("x", "z", "class"), *zip(x, z, labels, strict=True)])
    return Source((str(folder / "t.csv"),))


def test_every_component_is_told_with_its_tables(path: str) -> None:
    report = inspect(path, tables=True)
    assert isinstance(report, ModelReport)
    told = report.as_json()
    assert [(m["name"], m["weight"]) for m in told["members"]] == [("pairs", 0.7), ("singles", 0.3)]
    for member, expected in zip(told["members"], COMPONENTS, strict=True):
        arrays = [np.ravel(values["values"]) for values in member["tables"]]
        for found, array in zip(arrays, [expected.tables.bias, *expected.tables.weights], strict=True):
            np.testing.assert_array_equal(found, array.ravel())
    assert told["tables"] == told["members"][0]["tables"]


def test_components_without_tables_where_these_are_not_asked_for(path: str) -> None:
    told = inspect(path).as_json()
    assert told["members"] == [{"name": "pairs", "weight": 0.7}, {"name": "singles", "weight": 0.3}]
    assert "tables" not in told


def test_used_is_what_any_component_looks_at(tmp_path: Path) -> None:
    report = fit(table(tmp_path), recipe(), output=str(tmp_path / "m.bnc"))
    components = ensemble_of(read_model(str(tmp_path / "m.bnc"))).components
    looked_at = {a for component in components for family in component.tables.families for a in family.attributes}
    assert (report.used, len(report.left_out)) == (len(looked_at), 2 - len(looked_at))


@pytest.mark.parametrize("form", ["bif", "xmlbif"])
def test_an_ensemble_is_no_network(tmp_path: Path, form: str) -> None:
    """Not even where its heaviest component hangs from one."""
    dag = Dag(((), ()), (0, 1), method="nb")
    families = dag.families(SCHEMA.cardinalities)
    tables = Tables(np.zeros(3), families, tuple(np.ones((family.n_cells, 3)) for family in families))
    ensemble = Ensemble((Component(0.7, tables, "sharp singles"), Component(0.3, COMPONENTS[1].tables, "singles")))
    write_model(str(tmp_path / "m.bnc"), replace(MODEL, structure=dag, predictor=ensemble))
    with pytest.raises(ModelError, match="the model is an ensemble"):
        export(str(tmp_path / "m.bnc"), form)
    with pytest.raises(ModelError, match="the model is an ensemble"):
        simulate(str(tmp_path / "m.bnc"), 3, outputs=SimulateOutputs(rows=str(tmp_path / "rows.csv")))


def test_the_structure_of_the_heaviest_component_is_written_and_named(path: str) -> None:
    notes: list[Event] = []
    assert '["age", "b"]' in export(path, "json", watch=notes.append).text
    assert notes == [Note("the model is an ensemble of 2 components; the file contains the structure of pairs")]


def test_regions_that_auto_made_are_a_structure_like_any_other(tmp_path: Path) -> None:
    source = table(tmp_path)
    (tmp_path / "s.json").write_text(
        '{"format": "bncli-structure", "version": 1, "class": "class", "method": "auto", "options": {}, '
        '"regions": [["x"], ["z"], ["x", "z"]], "bins": [null, 8, 4]}'
    )
    asked = Recipe(discretize="equal-frequency", bins=5, param="discriminative", coding="thermometer", penalty=1.0)
    report = fit(source, asked, supplied=read_supplied(None, str(tmp_path / "s.json")), output=str(tmp_path / "m.bnc"))
    model = read_model(str(tmp_path / "m.bnc"))
    assert (report.structure, report.param, report.penalty, report.trials) == ("auto", "discriminative", 1.0, ())
    assert isinstance(model.predictor, Tables)
    assert all(len(a.cuts) == 4 for a in model.schema.attributes if isinstance(a, NumericAttribute))
