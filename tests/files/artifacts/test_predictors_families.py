"""Families of a model file that bin codes: round trips, size, and forged descriptions."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Family, Regions
from bncli.errors import ModelError
from bncli.files.artifacts import predictors
from bncli.files.artifacts.archive import npy_bytes, pack
from bncli.files.artifacts.model import dump_model
from bncli.recipe import Recipe
from tests.files.archives import forged, members, read
from tests.files.artifacts.test_model import BYTES, assert_same
from tests.many_tables import boosted_model, mixed_ensemble, random_schema
from tests.strategies import regrouped_models
from tests.sweeps import examples

SCHEMA = Schema(
    "y",
    ("n", "p"),
    (
        NumericAttribute("age", True, (9.0, 1.0, 2.0, 3.0, 1.0), (1.0, 2.0, 3.0)),
        CategoricalAttribute("colour", False, (1.0, 2.0, 3.0), ("p", "q", "r")),
    ),
)
MERGE = (0, 1, 1, 1, 2)
FAMILIES = (
    Family((0,), (5,), None),
    Family((0, 1), (3, 3), None, groupings=(MERGE, None)),
    Family((0, 1), (2, 2), None, groupings=((0, 0, 0, 0, 1), (0, 1, 0))),
)
TABLES = Tables(np.zeros(2), FAMILIES, tuple(np.arange(2.0 * f.n_cells).reshape(-1, 2) for f in FAMILIES))
REGIONS = Regions(((0,), (0, 1)), bins=(None, 2), groupings=((None, None), (MERGE, None)))
MODEL = Model(SCHEMA, REGIONS, TABLES, Recipe(), 11, "0.1.0")
MERGED = dump_model(MODEL)


def described(content: bytes) -> dict[str, Any]:
    return dict(json.loads(members(content)["model.json"]))


def test_there_and_back_is_the_same(tmp_path: Path) -> None:
    again = read(tmp_path, MERGED)
    assert_same(again, MODEL)
    assert dump_model(again) == MERGED


def test_merges_stand_only_where_there_are_any() -> None:
    assert [family.get("merges") for family in described(MERGED)["families"]] == [
        None,
        [[0, 1, 1, 1, 2], None],
        [[0, 0, 0, 0, 1], [0, 1, 0]],
    ]
    assert described(MERGED)["structure"]["bins"] == [None, 2]
    assert b"merges" not in members(BYTES)["model.json"]


@given(regrouped_models(), st.integers(0, 99))
@settings(max_examples=examples(16))
def test_any_model_comes_back_and_scores_the_same(
    tmp_path_factory: pytest.TempPathFactory, model: Model, seed: int
) -> None:
    again = read(tmp_path_factory.getbasetemp(), dump_model(model))
    assert again.tables.families == model.tables.families
    assert dump_model(again) == dump_model(model)
    scorer = compile_scorer(model)
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, model.schema.cardinalities[a] + 1, 9).astype(np.uint8) for a in scorer.used]
    found, expected = log_probabilities(compile_scorer(again), codes, 9), log_probabilities(scorer, codes, 9)
    np.testing.assert_array_equal(found, expected)


def test_equal_models_are_equal_bytes_whatever_their_numbers_are() -> None:
    numpys = tuple(np.array(MERGE, np.int64))
    family = replace(FAMILIES[1], groupings=(numpys, None))
    assert dump_model(replace(MODEL, predictor=replace(TABLES, families=(FAMILIES[0], family, FAMILIES[2])))) == MERGED


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ({}, r"expected a list, found an object, .*families\[1\]\.merges"),
        ([[0, 1, 1, 1, 2]], r"1 merges for 2 attributes, .*families\[1\]\.merges"),
        ([3, None], r"expected a list, found a number, .*merges\[0\]"),
        ([[0, 1, 1, 1, 2.5], None], "expected a whole number"),
        ([[0, 1, 1, 1, True], None], "expected a whole number"),
        ([[0, 1, 1, -1, 2], None], "out of range"),
        ([[0, 1, 1, 1, 10**30], None], "out of range"),
        ([[], None], "0 coarse codes for the 5 codes of 'age'"),
        ([[0, 1, 1, 2], None], r"4 coarse codes for the 5 codes of 'age', .*merges\[0\]"),
        ([[0, 2, 2, 2, 3], None], "numbered from 0 without gaps"),
        ([[1, 1, 1, 1, 2], None], "numbered from 0 without gaps"),
        ([[0, 1, 0, 1, 2], None], "of intervals must not decrease"),
        ([[0, 1, 1, 2, 2], None], "the missing level alone must have the last coarse code"),
        ([[1, 1, 1, 1, 0], None], "the missing level alone must have the last coarse code"),
        ([None, [0, 0, 2]], r"without gaps, .*merges\[1\]"),
        ([[0, 0, 0, 0, 1], None], r"tables/1\.npy does not have the size"),
        ([None, None], r"tables/1\.npy does not have the size"),
    ],
)
def test_forged_merges_are_refused(tmp_path: Path, merges: object, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, forged(MERGED, lambda description: description["families"][1].update(merges=merges)))
    assert "\n" not in str(caught.value)


def test_forged_bins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"bins\[0\] is 1, .*structure"):
        read(tmp_path, forged(MERGED, lambda description: description["structure"].update(bins=[1])))


@given(st.data())
@settings(max_examples=examples(66))
def test_a_sealed_description_with_other_numbers_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(members(MERGED)["model.json"])
    start = text.index(b'"families"')
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(start, start + 300))] = data.draw(st.sampled_from(b"0123456789,[]-"))
    content = pack({**members(MERGED), "model.json": bytes(text)}.items())
    try:
        model = read(tmp_path_factory.getbasetemp(), content)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert compile_scorer(model).n_labels == 2


MANY_SCHEMA = Schema(
    "y",
    ("n", "p"),
    (
        NumericAttribute("age", True, (9.0, 1.0, 2.0, 3.0, 1.0), (1.0, 2.0, 3.0)),
        CategoricalAttribute("colour", True, (1.0, 2.0, 3.0, 4.0), ("p", "q", "r")),
    ),
)
MANY_GROUPINGS = (((0, 1, 1, 1, 2), None), ((0, 0, 0, 0, 1), (0, 1, 0, 2)), (None, (0, 0, 0, 1)))
MANY_FAMILIES = tuple(
    Family.over((0, 1), MANY_SCHEMA.cardinalities, groupings=MANY_GROUPINGS[f % 3])
    for f in range(predictors.MANY_BINNED)
)
MANY_TABLES = Tables(
    np.zeros(2),
    MANY_FAMILIES,
    tuple(np.arange(2.0 * f.n_cells).reshape(-1, 2) + i for i, f in enumerate(MANY_FAMILIES)),
)
MANY_MODEL = Model(MANY_SCHEMA, Regions(((0, 1),)), MANY_TABLES, Recipe(), 11, "0.1.0")
MANY_CONTENT = dump_model(MANY_MODEL)


def test_very_many_families_come_back(tmp_path: Path) -> None:
    again = read(tmp_path, MANY_CONTENT)
    assert_same(again, MANY_MODEL)
    assert dump_model(again) == MANY_CONTENT


def test_groups_are_the_last_codes_of_intervals_and_the_codes_of_levels() -> None:
    description = described(MANY_CONTENT)
    assert description["version"] == 5
    found = [family["groups"] for family in description["families"][:3]]
    assert found == [[[0], None], [[], [0, 1, 0]], [None, [0, 0, 0]]]
    assert list(members(MANY_CONTENT)) == ["model.json", "bias.npy", "tables.npy"]
    stacked = np.load(io.BytesIO(members(MANY_CONTENT)["tables.npy"]))
    np.testing.assert_array_equal(stacked, np.concatenate(MANY_TABLES.weights))


def test_one_family_fewer_has_the_form_that_older_readers_know() -> None:
    fewer = replace(MANY_MODEL, predictor=Tables(MANY_TABLES.bias, MANY_FAMILIES[1:], MANY_TABLES.weights[1:]))
    content = dump_model(fewer)
    assert described(content)["version"] == 4
    assert described(content)["families"][0]["merges"] == [[0, 0, 0, 0, 1], [0, 1, 0, 2]]
    assert "tables/0.npy" in members(content)


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [2, 7])
def test_a_thousand_tables_cost_little_more_than_their_numbers(tmp_path: Path, n_labels: int) -> None:
    model = boosted_model(random_schema(20, n_labels), 1000)
    content = dump_model(model)
    numbers = sum(weights.nbytes for weights in model.tables.weights)
    assert len(content) < numbers + 200_000
    assert_same(read(tmp_path, content), model)


def test_an_ensemble_of_them_comes_back(tmp_path: Path) -> None:
    model = mixed_ensemble(random_schema(9, 3), 300)
    again = read(tmp_path, dump_model(model))
    assert isinstance(again.predictor, Ensemble)
    assert isinstance(model.predictor, Ensemble)
    assert dump_model(again) == dump_model(model)
    for one, other in zip(again.predictor.components, model.predictor.components, strict=True):
        assert (one.weight, one.name, one.tables.families) == (other.weight, other.name, other.tables.families)
        for a, b in zip(one.tables.weights, other.tables.weights, strict=True):
            np.testing.assert_array_equal(a, b)


@given(regrouped_models())
@settings(max_examples=examples(16))
def test_any_families_come_back(tmp_path_factory: pytest.TempPathFactory, model: Model) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictors, "MANY_BINNED", 1)
        content = dump_model(model)
        assert b'"merges"' not in members(content)["model.json"]
        again = read(tmp_path_factory.getbasetemp(), content)
        assert_same(again, model)
        assert dump_model(again) == content


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, r"expected a list, found an object, .*families\[1\]\.groups"),
        ([[0]], r"1 groups for 2 attributes, .*families\[1\]\.groups"),
        ([3, None], r"expected a list, found a number, .*groups\[0\]"),
        ([[0.5], None], "expected a whole number"),
        ([[True], None], "expected a whole number"),
        ([[-1], None], "out of range"),
        ([[10**30], None], "out of range"),
        ([[3], None], r"increase and stay below the last of 4 intervals, .*groups\[0\]"),
        ([[1, 1], None], "increase and stay below the last"),
        ([[2, 1], None], "increase and stay below the last"),
        ([[0, 1, 2, 3], None], "increase and stay below the last"),
        ([None, []], "0 coarse codes for the 3 levels of 'colour'"),
        ([None, [0, 1, 0, 2]], r"4 coarse codes for the 3 levels of 'colour', .*groups\[1\]"),
        ([None, [0, 2, 2]], "numbered from 0 without gaps"),
        ([None, [1, 1, 1]], "numbered from 0 without gaps"),
        ([None, None], r"tables\.npy does not have the size"),
        ([[0], [0, 1, 0]], r"tables\.npy does not have the size"),
    ],
)
def test_forged_groups_are_refused(tmp_path: Path, groups: object, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, forged(MANY_CONTENT, lambda description: description["families"][1].update(groups=groups)))
    assert "\n" not in str(caught.value)


def test_groups_and_merges_are_not_both_read(tmp_path: Path) -> None:
    merges = [[0, 0, 0, 0, 1], [0, 1, 0, 2]]
    with pytest.raises(ModelError, match="groups or merges, not both"):
        read(tmp_path, forged(MANY_CONTENT, lambda description: description["families"][1].update(merges=merges)))


def test_a_family_too_many_and_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"tables\.npy does not have the size"):
        read(tmp_path, forged(MANY_CONTENT, lambda d: d["families"].append(d["families"][0])))
    parts = members(MANY_CONTENT)
    shape = np.load(io.BytesIO(parts["tables.npy"])).shape
    for array, message in (
        (np.full(shape, np.nan), "finite float64 numbers"),
        (np.zeros(shape[::-1]), "not the size|of shape"),
        (np.zeros((shape[0] - 1, 2)), "does not have the size"),
    ):
        with pytest.raises(ModelError, match=message):
            read(tmp_path, pack({**parts, "tables.npy": npy_bytes(array)}.items()))
    with pytest.raises(ModelError, match="members are not those"):
        read(tmp_path, pack({"model.json": parts["model.json"], "bias.npy": parts["bias.npy"]}.items()))


@given(st.data())
@settings(max_examples=examples(33))
def test_a_sealed_compact_description_with_other_numbers_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(members(MANY_CONTENT)["model.json"])
    start = text.index(b'"families"')
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(start, start + 300))] = data.draw(st.sampled_from(b"0123456789,[]-"))
    try:
        model = read(tmp_path_factory.getbasetemp(), pack({**members(MANY_CONTENT), "model.json": bytes(text)}.items()))
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert compile_scorer(model).n_labels == 2


def test_few_numbers_that_stand_for_too_many_codes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictors, "MOST_CODES", 1000)
    with pytest.raises(ModelError, match="all groupings together have more than 1,000 codes"):
        read(tmp_path, MANY_CONTENT)
