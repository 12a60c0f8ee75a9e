"""Scores of rows with unknowns, of models that sum them out, against enumeration of all completions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.data.dataset import code_dtype
from bncli.engine.model import Model
from bncli.engine.prediction import marginalization, scoring
from bncli.engine.prediction.marginalization import incomplete_rows, network_to_marginalize
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag
from tests.missing_values import network_model, rows_with_unknowns, slow_posterior
from tests.strategies import dags


@st.composite
def network_models(draw: st.DrawFn) -> Model:
    cardinalities = tuple(draw(st.lists(st.integers(2, 3), min_size=1, max_size=5)))
    dag = draw(dags(len(cardinalities)))
    return network_model(dag, cardinalities, draw(st.integers(2, 4)), draw(st.integers(0, 999)))


def scored(model: Model, rows: list[np.ndarray], n: int) -> np.ndarray:
    scorer = compile_scorer(model)
    return log_probabilities(scorer, [rows[i] for i in scorer.used], n)


@settings(deadline=None)
@given(network_models(), st.integers(0, 99))
def test_equals_the_sum_over_all_completions(model: Model, seed: int) -> None:
    rows = rows_with_unknowns(model, 10, seed)
    expected = [slow_posterior(model, {i: int(c[t]) for i, c in enumerate(rows)}) for t in range(10)]
    np.testing.assert_allclose(scored(model, rows, 10), np.array(expected).T, rtol=1e-10, atol=1e-10)


@given(network_models())
def test_a_row_without_values_has_the_class_marginal(model: Model) -> None:
    rows = [np.full(3, n, code_dtype(n + 1)) for n in model.schema.cardinalities]
    log_p = scored(model, rows, 3)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=0), 1.0, atol=1e-12)
    if not model.structure.class_parents:
        np.testing.assert_allclose(log_p, np.repeat(model.tables.bias[:, np.newaxis], 3, axis=1), atol=1e-10)


TAN = Dag(((), (0,), (0,), (1,), (1,)), (0, 1, 2, 3, 4))


def test_naive_bayes_needs_look_ups_only() -> None:
    model = network_model(Dag(((), ()), (0, 1)), (2, 3), 2, 0)
    assert network_to_marginalize(model.tables, model.schema) is None
    assert compile_scorer(network_model(Dag(((),), (0,), ()), (3,), 2, 0)).network is None


def test_only_rows_that_lack_a_parent_need_inference() -> None:
    model = network_model(TAN, (2, 3, 2, 2, 3), 2, 1)
    network = network_to_marginalize(model.tables, model.schema)
    assert network is not None
    assert network.needed == (0, 1)
    columns = ([0, 2, 1, 1], [1, 1, 3, 2], [2, 0, 0, 2], [0] * 4, [3] * 4)
    codes = {i: np.array(column, np.uint8) for i, column in enumerate(columns)}
    assert incomplete_rows(network, codes).tolist() == [1, 2]


@pytest.mark.parametrize("block", [1, 7, 64])
def test_the_size_of_blocks_does_not_matter(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network_model(Dag(((), (0,), (0, 1), (2, 1)), (1, 2, 3), (0,)), (3, 2, 3, 2), 3, 5)
    rows = rows_with_unknowns(model, 200, 1)
    whole = scored(model, rows, 200)
    for module in (marginalization, scoring):
        monkeypatch.setattr(module, "ROWS_PER_BLOCK", block)
    np.testing.assert_allclose(scored(model, rows, 200), whole, rtol=1e-12, atol=1e-13)
    part = scored(model, [c[50:60] for c in rows], 10)
    np.testing.assert_allclose(part, whole[:, 50:60], rtol=1e-12, atol=1e-13)


def test_no_rows() -> None:
    model = network_model(TAN, (2, 3, 2, 2, 3), 2, 1)
    assert scored(model, [np.zeros(0, np.uint8)] * 5, 0).shape == (2, 0)


def test_a_distant_attribute_matters_if_its_child_is_unknown() -> None:
    """In class -> c <- b <- a, a matters only if b is unknown."""
    model = network_model(Dag(((), (0,), (1,)), (2,)), (2, 2, 2), 2, 3)
    known = scored(model, [np.array([0, 1], np.uint8), np.array([1, 1], np.uint8), np.array([0, 0], np.uint8)], 2)
    assert (known[:, 0] == known[:, 1]).all()
    hidden = scored(model, [np.array([0, 1], np.uint8), np.array([2, 2], np.uint8), np.array([0, 0], np.uint8)], 2)
    assert (hidden[:, 0] != hidden[:, 1]).all()
