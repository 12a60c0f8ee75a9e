"""Each smoothing rule against its formula, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bncli.engine.parameters.smoothing import FLOOR, back_off, log_conditional, pseudo_counts
from tests import oracles

RULES = ["mle", "laplace:1", "laplace:0.5", "m-estimate:1", "m-estimate:20", "fgg:5", "fgg:0.1", "bdeu:1", "bdeu:10"]
TABLES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4),
    elements=st.one_of(st.integers(0, 3).map(float), st.floats(0.01, 1e5)),
)


@pytest.mark.parametrize("rule", RULES)
@given(counts=TABLES, data=st.data())
def test_equals_the_formula(rule: str, counts: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-counts.ndim, counts.ndim - 1))
    log_theta = log_conditional(counts, rule, axis)
    assert log_theta.shape == counts.shape
    assert np.isfinite(log_theta).all()
    first = np.moveaxis(counts, axis, 0)
    expected = oracles.smoothed(first.reshape(len(first), -1), rule)
    actual = np.moveaxis(np.exp(log_theta), axis, 0).reshape(len(first), -1)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    np.testing.assert_allclose(actual.sum(axis=0), 1.0, rtol=1e-8 if rule == "mle" else 1e-12)


def test_mle_has_a_floor_and_is_uniform_where_nothing_was_seen() -> None:
    theta = np.exp(log_conditional(np.array([[4.0, 0.0], [0.0, 0.0]]), "mle", 0))
    np.testing.assert_allclose(theta, [[1.0, 0.5], [FLOOR, 0.5]])


def test_no_counts_at_all_are_uniform_under_every_rule() -> None:
    for rule in (*RULES, "hdp"):
        np.testing.assert_allclose(np.exp(log_conditional(np.zeros((4, 2, 3)), rule, 0)), 0.25)


def test_hdp_takes_the_class_for_the_first_parent() -> None:
    """Tables have it last: the attribute parents that are listed later are forgotten sooner."""
    counts = np.random.default_rng(0).integers(0, 9, (3, 2, 4, 2)).astype(float)
    theta = np.exp(log_conditional(counts, "hdp", 0))
    for y in range(2):
        np.testing.assert_allclose(theta[..., y], back_off(counts.transpose(0, 3, 1, 2))[:, y], rtol=1e-12)
    of_the_class = np.exp(log_conditional(counts, "hdp", -1))
    np.testing.assert_allclose(of_the_class, np.moveaxis(back_off(counts.transpose(3, 0, 1, 2)), 0, -1), rtol=1e-12)
    np.testing.assert_allclose(log_conditional(counts, "hdp", 3), np.log(of_the_class), rtol=1e-12)
    np.testing.assert_allclose(log_conditional(np.array([3.0, 1.0]), "hdp", 0), np.log(back_off(np.array([3.0, 1.0]))))


@given(counts=TABLES, data=st.data())
def test_hdp_gives_probabilities(counts: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-counts.ndim, counts.ndim - 1))
    log_theta = log_conditional(counts, "hdp", axis)
    assert log_theta.shape == counts.shape
    assert np.isfinite(log_theta).all()
    np.testing.assert_allclose(np.exp(log_theta).sum(axis=axis), 1.0, rtol=1e-12)


@pytest.mark.parametrize("rule", [*RULES, "hdp"])
def test_the_input_is_left_alone(rule: str) -> None:
    counts = np.array([[1.0, 0.0], [2.0, 0.0]])
    log_conditional(counts, rule, 1)
    assert counts.tolist() == [[1.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("rule", ["laplace:1", "m-estimate:2", "fgg:5", "bdeu:3", "hdp"])
def test_pseudo_counts_are_what_a_rule_adds(rule: str, axis: int) -> None:
    counts = np.random.default_rng(1).integers(0, 9, (3, 2, 4)).astype(np.float64)
    added = pseudo_counts(counts, rule, axis)
    assert added.shape == counts.shape
    theta = (counts + added) / (counts + added).sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(theta, np.exp(log_conditional(counts, rule, axis)))
    assert not pseudo_counts(counts, "mle", axis).any()
