"""Families in a model file that join codes: there and back, and what a forger may not do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Family, Regions
from bncli.errors import ModelError
from bncli.files.artifacts.archive import pack
from bncli.files.artifacts.model import dump_model
from bncli.recipe import Recipe
from tests.files.archives import forged, members, read
from tests.files.artifacts.test_model import BYTES, assert_same
from tests.strategies import regrouped_models

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
@settings(max_examples=50)
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
        ([[0, 2, 2, 2, 3], None], "count from 0, each of them used"),
        ([[1, 1, 1, 1, 2], None], "count from 0, each of them used"),
        ([[0, 1, 0, 1, 2], None], "of intervals do not fall"),
        ([[0, 1, 1, 2, 2], None], "the missing level has the last coarse code to itself"),
        ([[1, 1, 1, 1, 0], None], "the missing level has the last coarse code to itself"),
        ([None, [0, 0, 2]], r"each of them used, .*merges\[1\]"),
        ([[0, 0, 0, 0, 1], None], r"tables/1\.npy has not the size"),
        ([None, None], r"tables/1\.npy has not the size"),
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
@settings(max_examples=200)
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
