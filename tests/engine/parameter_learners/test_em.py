"""Expectation maximisation: never down, the closed form where nothing is missing, a stationary point where it ends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.inference.row_blocks import incomplete_likelihood
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.parameter_learners import em
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing

TAN = Dag(((), (0,), (1,)), (0, 1, 2))
CHAIN = Dag(((), (0,), (1,), (2,)), (1, 3), (0,))
ADDING = ("mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1")
RULES = (*ADDING, "hdp")


def fit(
    data: Dataset, dag: Dag, rule: str = "m-estimate:1", tolerance: float = 1e-10, most: int = 500, watch: Any = None
) -> Parameters:
    more = {} if watch is None else {"watch": watch}
    return em.learn(Counts(data), dag, smoothing=rule, tolerance=tolerance, max_iterations=most, **more)


@given(case=incomplete_cases(), rule=st.sampled_from(RULES))
def test_the_posterior_never_falls_and_both_ends_are_told_truly(case: tuple[Dataset, Dag], rule: str) -> None:
    data, dag = case
    events: list[Any] = []
    learnt = fit(data, dag, rule, most=15, watch=events.append)
    posterior = [event.ll - event.penalty for event in events]
    assert all(after > before for before, after in itertools.pairwise(posterior))
    assert [event.iteration for event in events] == list(range(learnt.iterations + 1))
    assert all(event.cll is None for event in events)
    slow = enumeration(data, learnt.tables.families)
    start = generative_tables(Counts(data), dag, rule)
    for tables, cll, told in ((start, learnt.cll_start, events[0]), (learnt.tables, learnt.cll, events[-1])):
        cells = slow.flatten(tables)
        assert cll == pytest.approx(slow.value_and_gradient(cells)[0], rel=1e-8, abs=1e-8)
        assert told.ll == pytest.approx(slow.joint(cells)[0], rel=1e-8, abs=1e-8)


@given(case=incomplete_cases(), rule=st.sampled_from(ADDING))
def test_an_iteration_is_the_closed_form_of_expected_counts(case: tuple[Dataset, Dag], rule: str) -> None:
    """Straight from the definition, one distribution at a time."""
    data, dag = case
    learnt = fit(data, dag, rule, most=1)
    if learnt.iterations == 0:
        return
    counts, start = Counts(data), generative_tables(Counts(data), dag, rule)
    likelihood = incomplete_likelihood(data, start.families)
    expected = likelihood.tables(likelihood.joint(likelihood.flatten(start))[1])
    for family, e, got in zip(start.families, expected.weights, learnt.tables.weights, strict=True):
        seen = counts.tables([family.attributes])[0]
        e, theta = (values.reshape(seen.shape) for values in (e, np.exp(got)))
        if family.child is None:
            e, theta, seen = (np.moveaxis(values, -1, 0)[..., np.newaxis] for values in (e, theta, seen))
        elif not family.by_class:
            e, theta, seen = e.sum(-1, keepdims=True), theta[..., :1], seen.sum(-1, keepdims=True)
        for parents in np.ndindex(*e.shape[1:]):
            column = (slice(None), *parents)
            wanted = _smoothed(e[column], seen, rule)
            np.testing.assert_allclose(theta[column], wanted, rtol=1e-7, atol=1e-9)


def _smoothed(e: Any, seen: Any, rule: str) -> Any:
    """theta of one distribution; `seen` are the counts of the start, the child's axis first."""
    name, *_ = rule.partition(":")
    n = len(e)
    marginal = seen.reshape(n, -1).sum(axis=1)
    added = {
        "mle": 0.0,
        "laplace": 1.0,
        "m-estimate": 1.0 / n,
        "fgg": 5.0 * (marginal + 1 / n) / (marginal.sum() + 1),
        "bdeu": 1.0 / seen.size,
    }[name]
    total = (e + added).sum()
    return (e + added) / total if total > 1e-200 else np.full(n, 1 / n)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dag", [TAN, Dag(((), (0,), (0, 1)), (2,), (0,))], ids=["tan", "general"])
def test_without_missing_values_it_stays_at_the_closed_form(dag: Dag, rule: str) -> None:
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    learnt = fit(data, dag, rule)
    start = generative_tables(Counts(data), dag, rule)
    assert learnt.stopped_by is StoppedBy.TOLERANCE
    assert learnt.iterations <= 1
    for got, wanted in zip(learnt.tables.weights, start.weights, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)


@pytest.mark.parametrize("dag", [TAN, CHAIN], ids=["tan", "general"])
def test_it_ends_where_the_gradient_vanishes(dag: Dag) -> None:
    data = with_missing(random_dataset(200, (2, 3, 2, 2), 2), 0.3)
    events: list[Any] = []
    learnt = fit(data, dag, tolerance=1e-14, most=5000, watch=events.append)
    assert learnt.stopped_by is StoppedBy.TOLERANCE
    assert events[-1].gradient_norm < 1e-3 * events[0].gradient_norm


def test_rows_of_missing_values_alone_leave_the_start() -> None:
    data = with_missing(random_dataset(20, (2, 3, 2), 2), 1.0)
    learnt = fit(data, TAN)
    np.testing.assert_allclose(np.exp(learnt.tables.weights[1]).reshape(3, 2, 2), 1 / 3)


def test_the_cap_is_told() -> None:
    learnt = fit(with_missing(random_dataset(200, (2, 3, 2), 2), 0.5), TAN, tolerance=0.0, most=3)
    assert (learnt.stopped_by, learnt.iterations, learnt.evaluations) == (StoppedBy.MAX_ITERATIONS, 3, 4)
