"""The self-test of a model: its rows are the same every time, visit every table, and notice a table that changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import equivalent_network, name_network
from bncli.engine.prediction import verification
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.prediction.verification import (
    HIDDEN,
    LACKING,
    ROWS,
    largest_change,
    largest_difference,
    probe_rows,
    same_nodes,
    self_test_attributes,
    with_self_test,
)
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError
from tests.datasets import schema_of
from tests.engine.networks.test_network import model_of, perfect_models
from tests.missing_values import network_model
from tests.sweeps import examples

MODEL = model_of(schema_of((2, 3, 50), 3), Dag(((), (0,), (1,)), (0, 1, 2)), 1.0, 0, "weighted")


def test_equal_models_have_equal_tests() -> None:
    one, other = with_self_test(MODEL).self_test, with_self_test(MODEL).self_test
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert (one.n_rows, one.codes.shape, one.probabilities.shape) == (ROWS, (3, ROWS), (3, ROWS))


@given(perfect_models())
@settings(max_examples=examples(10))
def test_in_complete_rows_every_code_is_about_equally_frequent(model: Model) -> None:
    test = with_self_test(model).self_test
    assert test is not None
    lacking = np.arange(ROWS) % LACKING == 0
    for codes, attribute in zip(test.codes, self_test_attributes(model), strict=True):
        cardinality = model.schema.cardinalities[attribute]
        assert codes.max() <= cardinality
        assert (codes[~lacking] < cardinality).all()
        counts = np.bincount(codes[codes < cardinality], minlength=cardinality)
        assert counts.max() <= -(-ROWS // cardinality)
    scorer = compile_scorer(model)
    rows = [test.codes[self_test_attributes(model).index(i)].astype(np.uint32) for i in scorer.used]
    np.testing.assert_array_equal(np.exp(log_probabilities(scorer, rows, ROWS)), test.probabilities)


@given(table=st.integers(0, 2), seed=st.integers(0, 99))
def test_a_table_that_changed_is_noticed(table: int, seed: int) -> None:
    made = with_self_test(MODEL)
    assert made.self_test is not None
    assert largest_change(made, made.self_test) == 0
    rng = np.random.default_rng(seed)
    weights = list(MODEL.tables.weights)
    weights[table] = weights[table] + rng.normal(size=weights[table].shape) * 1e-3
    changed = replace(made, predictor=Tables(MODEL.tables.bias, MODEL.tables.families, tuple(weights)))
    assert largest_change(changed, made.self_test) > 1e-6


def test_a_model_that_marginalizes_is_tested_on_incomplete_rows() -> None:
    made = with_self_test(network_model(Dag(((), (0,), (1,)), (0, 1, 2)), (2, 3, 3), 2, 0))
    assert made.self_test is not None
    cardinalities = np.array([made.schema.cardinalities[i] for i in self_test_attributes(made)])
    assert (made.self_test.codes == cardinalities[:, None]).any()
    assert largest_change(made, made.self_test) == 0


def test_all_rows_are_complete_if_others_cannot_be_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    real = verification.predict_self_test

    def refusing(model: Model, codes: np.ndarray) -> np.ndarray:
        if (codes == np.array(model.schema.cardinalities)[:, None]).any():
            raise BncliError("too large a table")
        return real(model, codes)

    monkeypatch.setattr(verification, "predict_self_test", refusing)
    made = with_self_test(MODEL).self_test
    assert made is not None
    assert (made.codes < np.array(MODEL.schema.cardinalities)[:, None]).all()


@given(perfect_models())
@settings(max_examples=examples(10))
def test_a_network_agrees_with_the_model_that_it_was_made_from(model: Model) -> None:
    network = name_network(equivalent_network(model))
    assert largest_difference(model, network, 50, np.random.default_rng(0)) < 1e-9
    assert same_nodes(network, network)
    assert not same_nodes(network, replace(network, class_name=None))
    *others, last = network.nodes
    renamed = replace(last, states=("another state", *last.states[1:]))
    assert not same_nodes(network, replace(network, nodes=(*others, renamed)))
    flat = replace(last, probabilities=np.full(last.probabilities.shape, 1 / last.probabilities.shape[-1]))
    # an attribute changes nothing where the class is certain without it
    frequencies = next(node.probabilities for node in network.nodes if node.name == network.class_name)
    tells = np.abs(np.diff(last.probabilities, axis=0)).max(initial=0.0) > 0.3 and frequencies.min() > 1e-3
    if tells and last.parents[:1] == (network.class_name,):
        assert largest_difference(model, replace(network, nodes=(*others, flat)), 50, np.random.default_rng(0)) > 1e-6


def test_values_are_missing_in_one_probe_row_of_eight() -> None:
    probes = probe_rows(MODEL, 4_000, np.random.default_rng(0))
    hidden = np.arange(probes.n_rows) % HIDDEN == 0
    for one, values in zip(probes.inputs, probes.values, strict=True):
        lacking = np.array([value is None for value in values])
        by_chance = 1 / len(set(values))
        assert lacking[hidden].mean() == pytest.approx(0.5 + by_chance / 2, abs=0.1), one.name
        assert lacking[~hidden].mean() == pytest.approx(by_chance, abs=0.05), one.name


def test_a_model_without_attributes() -> None:
    alone = model_of(schema_of((), 2), Dag((), ()), 1.0, 0, "weighted")
    made = with_self_test(alone).self_test
    assert made is not None
    assert made.codes.shape == (0, ROWS)
    assert np.ptp(made.probabilities, axis=1).max() == 0
