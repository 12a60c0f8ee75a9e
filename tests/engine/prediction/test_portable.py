"""A model as tables and nothing else says what the scorer says, of every kind of value."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.calibration import Calibration, Isotonic, Knots, PerClass, Temperature
from bncli.engine.model import Component, Ensemble, Model, Pool
from bncli.engine.prediction import portable
from bncli.engine.prediction.portable import Input, make_portable, make_portable_effects
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.verification import ProbeRows, probe_rows
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from tests.datasets import schema_of
from tests.engine.networks.test_network import model_of as weighted_model
from tests.missing_values import network_model
from tests.paths import Case, learnt_paths, model_of
from tests.portable_oracle import portable_probabilities
from tests.strategies import models, regrouped_models


def difference(model: Model) -> float:
    scorer = make_portable(model)
    probes = probe_rows(model, 50, np.random.default_rng(0))
    places = {one.name: p for p, one in enumerate(probes.inputs)}
    shown = [(one, probes.values[places[one.name]]) for one in scorer.inputs]
    p = portable_probabilities(scorer, [np.array([one.code(value) for value in values]) for one, values in shown])
    return float(np.abs(p - probes.probabilities).max())


@given(st.one_of(models(), regrouped_models()))
def test_tables(model: Model) -> None:
    assert difference(model) < 1e-12


@given(learnt_paths())
def test_a_path(case: Case) -> None:
    assert difference(model_of(*case[:3])) < 1e-12


@given(models(), st.sampled_from(Pool), st.data())
def test_an_ensemble(model: Model, pool: Pool, data: st.DataObject) -> None:
    tables = model.tables
    other = replace(tables, bias=-tables.bias, weights=tuple(entries[::-1].copy() for entries in tables.weights))
    weight = data.draw(st.sampled_from([0.25, 0.5]))
    components = (Component(1 - weight, tables, "a"), Component(weight, other, "b"))
    assert difference(replace(model, predictor=Ensemble(components, (), pool))) < 1e-12


KNOTS = (Knots((0.2, 0.5, 0.9), (0.1, 0.4, 0.8)), Knots((0.3, 0.4), (0.2, 0.9)), Knots((0.1, 0.6), (0.3, 0.35)))


@given(models(max_labels=3), st.sampled_from(["temperature", "per-class", "isotonic"]))
def test_calibration(model: Model, method: str) -> None:
    n = len(model.schema.labels)
    maps = {
        "temperature": Temperature(2.5),
        "per-class": PerClass((0.5, 2.0, 0.7)[:n], (0.3, -0.2, 0.1)[:n]),
        "isotonic": Isotonic(KNOTS[: 1 if n == 2 else n]),
    }
    assert difference(replace(model, calibration=Calibration(maps[method], 10, 1.0, 1.0))) < 1e-12


@given(models())
def test_every_value_is_among_the_rows(model: Model) -> None:
    probes: ProbeRows = probe_rows(model, 1, np.random.default_rng(1))
    for one, values in zip(probes.inputs, probes.values, strict=True):
        shown = set(values)
        assert None in shown
        coded = {one.code(value) for value in values}
        assert coded == {*range(one.missing + 1), *([] if one.codes is None else [one.unobserved])}
        assert shown >= {*(one.codes or ()), *(one.cuts or ()), *np.nextafter(one.cuts or (), np.inf).tolist()}
    assert probes.rows()[0].keys() == {model.schema.attributes[i].name for i in compile_scorer(model).used}


def test_marginalized_over_a_network_is_refused() -> None:
    with pytest.raises(ModelError, match="not a sum of tables"):
        make_portable(network_model(Dag(((), (0,)), (0, 1)), (2, 3), 2, 0))


def test_naive_bayes_that_leaves_missing_values_out() -> None:
    assert difference(network_model(Dag(((), ()), (0, 1)), (2, 3), 2, 0)) < 1e-12


def test_a_model_of_exactly_the_most_entries_and_cells_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    model = weighted_model(schema_of((2, 3, 4), 3), Dag(((), (0,), (1,)), (0, 1, 2)), 1.0, 0, "weighted")
    inputs = [Input.of(attribute) for attribute in model.schema.attributes]
    # The code "unobserved" is one more than the values of an attribute.
    cells = sum(math.prod(sizes) for sizes in ((3,), (4,), (5,), (3, 4), (4, 5)))
    entries = sum(table.expanded_size for table in make_portable(model).tables)
    monkeypatch.setattr(portable, "MOST_CELLS", cells)
    monkeypatch.setattr(portable, "MOST_ENTRIES", entries)
    make_portable(model)
    assert sum(table.entries[0].size for table in make_portable_effects(model, inputs).tables) == cells
    monkeypatch.setattr(portable, "MOST_CELLS", cells - 1)
    with pytest.raises(ModelError, match=f"too large to be written: {cells} cells"):
        make_portable_effects(model, inputs)
    monkeypatch.setattr(portable, "MOST_ENTRIES", entries - 1)
    with pytest.raises(ModelError, match=f"too large to be written as a program: {entries} table entries"):
        make_portable(model)
