"""Paths and ensembles in a model file: round trips, and descriptions and arrays that are damaged or forged."""

from __future__ import annotations

import copy
import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Component, Ensemble, Model, Predictor, Tables, TriedCandidate
from bncli.engine.parameter_learners.closed_form import learn_kmap
from bncli.engine.prediction.purification import mixture_of
from bncli.engine.prediction.scoring import compile_predictor
from bncli.engine.structures.structure import Dag, Family, Regions
from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.archive import npy_bytes, pack
from bncli.files.artifacts.model import dump_model, read_model, write_model
from bncli.files.artifacts.predictors import predictor_json
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.files.archives import damaged, damaged_inside, forged, members, read
from tests.files.artifacts.test_model import MODEL
from tests.paths import Case, learnt_on, learnt_paths, model_of, path_of
from tests.sweeps import examples

REGIONS = ((0,), (1,), (0, 1), (1, 2))
PATH_MODEL = learnt_on(random_dataset(60, (2, 3, 2), 3), REGIONS)
PATH_BYTES = dump_model(PATH_MODEL)


def assert_same(one: Model, other: Model) -> None:
    assert (one.schema, one.structure, one.recipe, one.n_rows) == (
        other.schema,
        other.structure,
        other.recipe,
        other.n_rows,
    )
    assert one.tables.families == other.tables.families
    assert (path_of(one).steps, path_of(one).families) == (path_of(other).steps, path_of(other).families)
    mine = (one.tables.bias, *one.tables.weights, path_of(one).class_logs, *path_of(one).logs)
    theirs = (other.tables.bias, *other.tables.weights, path_of(other).class_logs, *path_of(other).logs)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@given(learnt_paths())
def test_paths_come_back(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    """A step that the prior forbids, with minus infinity for its log posterior, among them."""
    data, regions, learnt, _ = case
    model = model_of(data, regions, learnt)
    again = read(tmp_path_factory.getbasetemp(), dump_model(model))
    assert_same(again, model)
    assert dump_model(again) == dump_model(model)


def test_a_single_step_with_all_the_weight(tmp_path: Path) -> None:
    model = learnt_on(random_dataset(60, (2, 3, 2), 2), REGIONS, learn_kmap)
    assert_same(read(tmp_path, dump_model(model)), model)


def test_a_path_has_a_table_for_each_region_and_none_twice() -> None:
    with zipfile.ZipFile(io.BytesIO(PATH_BYTES)) as archive:
        described = json.loads(archive.read("model.json"))
        names = archive.namelist()
    assert names == ["model.json", "bias.npy", *(f"tables/{f}.npy" for f in range(len(path_of(PATH_MODEL).families)))]
    steps = described["path"]["steps"]
    assert [step["region"] for step in steps] == [[], ["a0"], ["a1"], ["a0", "a1"], ["a1", "a2"]]
    assert steps[0]["changes"] == [[-1, 1]]
    assert math.fsum(step["weight"] for step in steps) == pytest.approx(1.0)
    assert described["version"] == 4


def test_every_cut_off_path_is_refused(tmp_path: Path) -> None:
    for length in range(0, len(PATH_BYTES), 7):
        with pytest.raises(ModelError):
            read(tmp_path, PATH_BYTES[:length])


@given(damaged(PATH_BYTES))
@settings(max_examples=examples(66))
def test_any_damaged_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    if content != PATH_BYTES:
        with pytest.raises(ModelError) as caught:
            read(tmp_path_factory.getbasetemp(), content)
        assert "\n" not in str(caught.value)


@given(damaged_inside(PATH_BYTES))
@settings(max_examples=examples(66))
def test_a_sealed_archive_with_damaged_insides_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """A forger can seal anything; the file is then a model (a change that no check can know) or a ModelError."""
    try:
        model = read(tmp_path_factory.getbasetemp(), content)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert all(np.isfinite(w).all() for w in model.tables.weights)


def steps_of(description: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = description["path"]["steps"]
    return steps


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(path=3), "expected an object, found a number, .*path"),
        (lambda d: d.update(path={}), "the key 'steps' is missing, .*path"),
        (lambda d: d["path"].update(more=1), "unknown key 'more'"),
        (lambda d: d["path"].update(steps=[]), "weights of the steps do not sum to 1, .*path.steps"),
        (lambda d: steps_of(d).pop(), r"weights of the steps do not sum to 1|members"),
        (lambda d: steps_of(d)[1].update(weight=2.0), "weights of the steps do not sum to 1"),
        (lambda d: steps_of(d)[1].update(weight=-0.5), r"a weight cannot be negative, .*path.steps\[1\].weight"),
        (lambda d: steps_of(d)[1].update(weight=None), "expected a number, found null"),
        (lambda d: steps_of(d)[1].update(region=["nobody"]), r"attributes of the schema, .*steps\[1\].region"),
        (lambda d: steps_of(d)[1].update(region=["a1"]), "only families inside its region"),
        (lambda d: steps_of(d)[1].update(region=["a0", "a0"]), "'a0' is listed twice"),
        (lambda d: steps_of(d)[1].update(changes=[[0]]), r"a change must be a family number.*changes\[0\]"),
        (lambda d: steps_of(d)[1].update(changes=[[99, 1]]), "a change must be a family number"),
        (lambda d: steps_of(d)[1].update(changes=[[-2, 1]]), "a change must be a family number"),
        (lambda d: steps_of(d)[1].update(changes=[[0, 10**9]]), "a change must be a family number"),
        (lambda d: steps_of(d)[1].update(changes=[[0, -(10**9)]]), "the number is out of range"),
        (lambda d: steps_of(d)[1].update(changes=[[0, 1.5]]), "expected a whole number"),
        (lambda d: steps_of(d)[1].update(df=-1), r"out of range, .*steps\[1\].df"),
        (lambda d: steps_of(d)[1].update(log_likelihood=None), "expected a number, found null"),
        (lambda d: steps_of(d)[1].pop("log_posterior"), "the key 'log_posterior' is missing"),
        (lambda d: d["families"][0].update(child="a0"), "a table of a path must have no child"),
        (lambda d: d["families"][2]["attributes"].reverse(), "the order of attributes of the schema"),
        (lambda d: d["families"].pop(), "a change must be a family number"),
        (
            lambda d: d.pop("path") and d["schema"].update(missing_policy="marginalize"),
            "missing values cannot be marginalized",
        ),
        (
            lambda d: d.update(structure={"class": "class", "parents": {"a0": ["class"]}}),
            "cannot have steps of regions",
        ),
    ],
)
def test_a_forged_path_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, forged(PATH_BYTES, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0.5, -20_000.0, -1.0])
def test_tables_that_are_no_probabilities_are_refused(tmp_path: Path, value: float) -> None:
    content = {**members(PATH_BYTES), "tables/0.npy": npy_bytes(np.full((2, 3), value))}
    with pytest.raises(ModelError, match=r"tables/0\.npy does not consist of logarithms of probabilities"):
        read(tmp_path, pack(content.items()))


def test_numbers_that_are_none_are_not_written() -> None:
    path = replace(path_of(PATH_MODEL), class_logs=np.full(3, np.nan))
    with pytest.raises(BncliError, match="not finite"):
        dump_model(replace(PATH_MODEL, predictor=path))


def test_regions_with_free_tables_have_no_path(tmp_path: Path) -> None:
    model = replace(PATH_MODEL, predictor=PATH_MODEL.tables)
    again = read(tmp_path, dump_model(model))
    assert isinstance(again.predictor, Tables)
    assert again.tables.families == model.tables.families
    assert not isinstance(again.structure, Dag)


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
ENSEMBLE_MODEL = Model(
    SCHEMA,
    Regions(((0,), (0, 1)), bins=(None, 2)),
    Ensemble(COMPONENTS, TRIALS),
    Recipe(structure="auto", param="auto"),
    11,
    "0.1.0",
)


def written(path: Path, model: Model = ENSEMBLE_MODEL) -> str:
    write_model(str(path / "m.bnc"), model)
    return str(path / "m.bnc")


def test_an_ensemble_comes_back(tmp_path: Path) -> None:
    found = read_model(written(tmp_path))
    assert isinstance(found.predictor, Ensemble)
    assert found.predictor.trials == TRIALS
    for one, other in zip(found.predictor.components, COMPONENTS, strict=True):
        assert (one.weight, one.name, one.tables.families) == (other.weight, other.name, other.tables.families)
        np.testing.assert_array_equal(one.tables.bias, other.tables.bias)
        for table, expected in zip(one.tables.weights, other.tables.weights, strict=True):
            np.testing.assert_array_equal(table, expected)
    assert found.tables is found.predictor.components[0].tables
    assert dump_model(found) == dump_model(ENSEMBLE_MODEL)


def test_one_component_without_tables(tmp_path: Path) -> None:
    alone = replace(ENSEMBLE_MODEL, predictor=Ensemble((Component(1.0, tables_of(3), "singles"),)))
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


def test_every_kind_of_predictor_is_compiled_explained_and_stored() -> None:
    models = (MODEL, PATH_MODEL, ENSEMBLE_MODEL)
    assert {type(model.predictor) for model in models} == set(get_args(Predictor))
    for model in models:
        assert compile_predictor(model.predictor, model.schema) is not None
        assert mixture_of(model.predictor, model.schema) is not None


def test_the_keys_of_old_files_stay() -> None:
    models = (MODEL, PATH_MODEL, ENSEMBLE_MODEL)
    assert [list(predictor_json(model.predictor, model.schema)) for model in models] == [[], ["path"], ["blend"]]
