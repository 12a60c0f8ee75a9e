"""The tables against the approximate conditional log-likelihood, summed row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import StoppedBy, Tables
from bncli.engine.parameters.generative import acll_tables, closed_form
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.strategies import dags, datasets

Array = NDArray[np.float64]
BETA = np.asarray(0.3)


def slow_acll(data: Dataset, tables: Tables, beta: float) -> float:
    """sum over rows of alpha ln U_y - beta sum over c != y of ln U_c, ln U the scores."""
    terms = []
    for t, w in enumerate(oracles.weights_of(data)):
        log_u = [float(b) for b in tables.bias]
        for family, weights in zip(tables.families, tables.weights, strict=True):
            cell = oracles.cell(family, data, t)
            log_u = [u + float(x) for u, x in zip(log_u, weights[cell], strict=True)]
        y = int(data.labels[t])
        terms.append(w * ((1 - beta) * log_u[y] - beta * math.fsum(u for c, u in enumerate(log_u) if c != y)))
    return math.fsum(terms)


def draw_log_theta(log_theta: Array, bound: Array, axis: int, rng: np.random.Generator) -> Array:
    """Other probabilities, all at least `bound`."""
    drawn = rng.gamma(0.5, size=log_theta.shape) + 1e-9
    drawn /= drawn.sum(axis=axis, keepdims=True)
    return np.asarray(np.log(bound + (1 - bound * log_theta.shape[axis]) * drawn))


@given(datasets(max_rows=30, max_attributes=3), st.data(), st.sampled_from([0.5, 5.0]))
def test_no_other_parameters_are_better(data: Dataset, draw: st.DataObject, least: float) -> None:
    """Parameters above N' / (sum of N+): that sum is N' / theta of the least cell of a column where one is clipped."""
    dag = draw.draw(dags(len(data.codes)))
    rng = np.random.default_rng(draw.draw(st.integers(0, 99)))
    tables = acll_tables(Counts(data), dag, BETA, least)
    others = []
    for family, weights in zip(tables.families, tables.weights, strict=True):
        counts = oracles.count(data, family.attributes)
        axis = -1 if family.child is None else 0
        kept = np.maximum(counts - BETA * counts.sum(axis=-1, keepdims=True), least)
        bound = least / kept.sum(axis=axis, keepdims=True)
        log_theta = weights.reshape(counts.shape)
        np.testing.assert_allclose(np.exp(log_theta).sum(axis=axis), 1.0, rtol=1e-12)
        others.append(draw_log_theta(log_theta, bound, axis, rng).reshape(weights.shape))
    best = slow_acll(data, tables, float(BETA))
    assert slow_acll(data, Tables(tables.bias, tables.families, tuple(others)), float(BETA)) <= best + 1e-9 * abs(best)


def test_the_class_by_hand_and_with_parents() -> None:
    data = dataset_of([np.array([0, 0, 0, 1])], np.array([0, 0, 1, 1]), (2,), 2)
    alone = acll_tables(Counts(data), Dag(((),), (0,)), np.asarray(0.25), 0.5)
    np.testing.assert_allclose(np.exp(alone.bias), [0.5, 0.5])
    # contrasts of x = 0: 2 - 3/4, 1 - 3/4 (raised to 1/2); of x = 1: 0 - 1/4 (raised to 1/2), 1 - 1/4
    np.testing.assert_allclose(np.exp(alone.weights[0]), [[1.25 / 1.75, 0.5 / 1.25], [0.5 / 1.75, 0.75 / 1.25]])
    caused = acll_tables(Counts(data), Dag(((),), (), (0,)), np.asarray(0.25), 0.5)
    np.testing.assert_array_equal(caused.bias, 0)
    np.testing.assert_allclose(np.exp(caused.weights[0]), [[1.25 / 1.75, 0.5 / 1.75], [0.5 / 1.25, 0.75 / 1.25]])


def test_what_is_reported() -> None:
    data = random_dataset(50, (2, 3), 3, weighted=True)
    dag = Dag(((), (0,)), (0, 1))
    learnt = closed_form(Counts(data), acll_tables(Counts(data), dag, BETA, 5.0))
    assert learnt.stopped_by is StoppedBy.CLOSED_FORM
    assert learnt.n_parameters == 3 + 2 * 3 + 6 * 3
    cells = np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)
    slow, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, cells)
    assert learnt.cll == learnt.cll_start == pytest.approx(slow, rel=1e-10)


def test_a_weight_of_two_is_the_row_twice() -> None:
    data = random_dataset(40, (3, 2), 2)
    doubled = dataset_of(data.codes, data.labels, (3, 2), 2, np.full(40, 2.0))
    twice = dataset_of([np.tile(c, 2) for c in data.codes], np.tile(data.labels, 2), (3, 2), 2)
    dag = Dag(((), (0,)), (0, 1))
    first, second = (acll_tables(Counts(d), dag, BETA, 5.0) for d in (doubled, twice))
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
