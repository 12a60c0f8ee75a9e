"""An ensemble in a model file: there and back, and what is refused."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Component, Ensemble, Model, Tables, TriedCandidate
from bncli.engine.structures.structure import Family, Regions
from bncli.errors import ModelError
from bncli.files.artifacts.archive import pack
from bncli.files.artifacts.model import dump_model, read_model, write_model
from bncli.recipe import Recipe

SCHEMA = Schema(
    "class",
    ("no", "yes", "perhaps"),
    (
        NumericAttribute("age", True, (3.0, 2.0, 5.0, 1.0), (1.0, 2.0)),
        CategoricalAttribute("b", False, (4.0, 7.0), ("u", "v")),
    ),
)
COARSE = Family((0, 1), (3, 2), None, groupings=((0, 0, 1, 2), None))
FINE = Family((0,), (4,), None)


def tables_of(seed: int, *families: Family) -> Tables:
    rng = np.random.default_rng(seed)
    return Tables(rng.normal(size=3), families, tuple(rng.normal(size=(f.n_cells, 3)) for f in families))


COMPONENTS = (Component(0.7, tables_of(1, FINE, COARSE), "pairs"), Component(0.3, tables_of(2, FINE), "singles"))
TRIALS = (
    TriedCandidate("singles", 3.0, 0.5, 0.2, 0.3),
    TriedCandidate("pairs", 10.0, 0.4, 0.1, 0.7),
    TriedCandidate("tree", 1.0, 0.6, 0.3, 0.0),
)
MODEL = Model(
    SCHEMA,
    Regions(((0,), (0, 1)), bins=(None, 2)),
    Ensemble(COMPONENTS, TRIALS),
    Recipe(structure="auto", param="auto"),
    11,
    "0.1.0",
)


def written(path: Path, model: Model = MODEL) -> str:
    write_model(str(path / "m.bnc"), model)
    return str(path / "m.bnc")


def test_there_and_back(tmp_path: Path) -> None:
    found = read_model(written(tmp_path))
    assert isinstance(found.predictor, Ensemble)
    assert found.predictor.trials == TRIALS
    for one, other in zip(found.predictor.components, COMPONENTS, strict=True):
        assert (one.weight, one.name, one.tables.families) == (other.weight, other.name, other.tables.families)
        np.testing.assert_array_equal(one.tables.bias, other.tables.bias)
        for table, expected in zip(one.tables.weights, other.tables.weights, strict=True):
            np.testing.assert_array_equal(table, expected)
    assert found.tables is found.predictor.components[0].tables
    assert dump_model(found) == dump_model(MODEL)


def test_one_component_without_tables(tmp_path: Path) -> None:
    alone = replace(MODEL, predictor=Ensemble((Component(1.0, tables_of(3), "singles"),)))
    assert dump_model(read_model(written(tmp_path, alone))) == dump_model(alone)


def _set(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        inner: Any = document
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("blend", "members", 0, "weight", to=0.2),
        _set("blend", "members", 0, "weight", to=-0.7),
        _set("blend", "members", 0, "weight", to="much"),
        _set("blend", "members", 0, "families", to=3),
        _set("blend", "members", 0, "families", to=-1),
        _set("blend", "members", to=[]),
        _set("blend", "members", 1, "more", to=1),
        _set("blend", "trials", 0, "lambda", to=0.0),
        _set("blend", "trials", 0, "error", to=1.5),
        _set("blend", "trials", to=None),
        _set("blend", to={}),
        _set("penalty_cv", to={"chosen": 1.0, "tried": []}),
        lambda document: document.pop("blend"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = written(tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    document = copy.deepcopy(json.loads(parts[0][1]))
    change(document)
    Path(path).write_bytes(pack([(parts[0][0], json.dumps(document).encode()), *parts[1:]]))
    with pytest.raises(ModelError):
        read_model(path)
