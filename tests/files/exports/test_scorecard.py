"""Scorecards: points that add up to what the model says, read by a reader of their text alone."""

from __future__ import annotations

import csv
import json
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bncli.engine.model import Model
from bncli.engine.prediction.portable import make_portable, make_portable_effects
from bncli.engine.prediction.verification import probe_rows
from bncli.errors import ModelError
from bncli.files.exports.scorecard import (
    quote_if_ambiguous,
    run_scorecard,
    scorecard_text,
    split_values,
    unquote,
)
from tests.files.exports.test_programs import TARGET, nasty
from tests.strategies import models, regrouped_models
from tests.sweeps import examples


def card(model: Model, **options: Any) -> str:
    scorer = make_portable(model)
    effects = partial(make_portable_effects, model, scorer.inputs)
    return scorecard_text(scorer, TARGET._replace(options=options, effects=effects))


OF_TWO = st.one_of(models(max_labels=2), regrouped_models(max_labels=2))
"""Models of two classes, some without an attribute."""


def of_two(model: Model) -> bool:
    return len(model.schema.labels) == 2 and bool(make_portable(model).inputs)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.filter_too_much])
@given(OF_TWO, st.booleans())
def test_points_say_what_the_model_says(model: Model, as_json: bool) -> None:
    assume(of_two(model))
    for one in (model, nasty(model)):
        probes = probe_rows(one, 40, np.random.default_rng(0))
        text = card(one, digits=None, json=as_json, pdo=30.0, base=500.0, odds=2.0)
        found = np.array(run_scorecard(text, probes.rows()))
        np.testing.assert_allclose(found.T, probes.probabilities, rtol=0, atol=1e-11)


@settings(max_examples=examples(13), suppress_health_check=[HealthCheck.filter_too_much])
@given(OF_TWO, st.integers(0, 2))
def test_rounding_costs_at_most_half_a_unit_a_table(model: Model, digits: int) -> None:
    assume(of_two(model))
    probes = probe_rows(model, 40, np.random.default_rng(0))
    found = np.array(run_scorecard(card(model, digits=digits), probes.rows()))
    n_tables = len(make_portable_effects(model, make_portable(model).inputs).tables)
    bound = n_tables * 0.5 * 10.0**-digits / (20 / math.log(2))
    change = np.log(found[:, 1] / found[:, 0]) - np.log(probes.probabilities[1] / probes.probabilities[0])
    assert np.abs(change).max() <= bound * (1 + 1e-9) + 1e-9


@settings(max_examples=examples(13), suppress_health_check=[HealthCheck.filter_too_much])
@given(OF_TWO)
def test_the_rows_as_a_spreadsheet_sees_them(model: Model) -> None:
    """Whole points; every attribute has a row for missing values; the best value of every set is 0 below the best."""
    assume(of_two(model))
    lines = card(model).splitlines(keepends=True)
    *rows, last = csv.DictReader(lines)
    assert (last["attribute"], last["points"], last["below_best"]) == ("(probability)", "", "")
    sets: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        assert row["points"] == str(int(row["points"]))
        sets.setdefault(row["attribute"], []).append(row)
    names = [one.name for one in make_portable(model).inputs]
    assert [name for name in sets if " & " not in name] == names
    for name in names:
        assert sum("(missing)" in row["value"] for row in sets[name]) == 1
    for own in sets.values():
        best = max(int(row["points"]) for row in own)
        assert all(int(row["below_best"]) == best - int(row["points"]) for row in own)
    listed = json.loads(card(model, json=True))["tables"]
    points = [row["points"] for table in listed for row in table["rows"]]
    assert points == [int(row["points"]) for row in rows]


@given(st.lists(st.lists(st.text('ab |&(),"#\\\n\u2028', max_size=6), min_size=1, max_size=3), min_size=1, max_size=3))
def test_any_text_is_read_back(axes: list[list[str]]) -> None:
    written = " & ".join(" | ".join(map(quote_if_ambiguous, members)) for members in axes)
    assert [[unquote(word) for word in members] for members in split_values(written)] == axes


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.filter_too_much])
@given(models())
def test_more_or_fewer_classes_are_refused(model: Model) -> None:
    assume(len(model.schema.labels) != 2)
    with pytest.raises(ModelError, match="a scorecard needs two classes, but the model has"):
        card(model)
