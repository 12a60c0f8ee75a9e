"""Adaptive probabilistic networks: they rise, they meet EM, and the MLE where nothing is missing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameter_learners import apn, em
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.structures.structure import Dag
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing
from tests.spaces import how

TAN = Dag(((), (0,), (1,)), (0, 1, 2))
GENERAL = Dag(((), (0,), (0, 1)), (2,), (0,))


def fit(data: Dataset, dag: Dag, watch: Any = None, **changes: Any) -> Any:
    more = {} if watch is None else {"watch": watch}
    return apn.learn(
        Counts(data), dag, smoothing="m-estimate:1", settings=how(**{"optimizer": "cg", **changes}), **more
    )


@given(case=incomplete_cases(), optimizer=st.sampled_from(["cg", "cgb", "lbfgs"]))
def test_the_likelihood_never_falls_and_both_ends_are_told_truly(case: tuple[Dataset, Dag], optimizer: str) -> None:
    data, dag = case
    events: list[Any] = []
    learnt = fit(data, dag, events.append, optimizer=optimizer, max_iterations=8)
    lls = [event.ll for event in events]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(lls))
    assert all(event.cll is None and event.penalty == 0.0 for event in events)
    slow = enumeration(data, learnt.tables.families)
    start = generative_tables(Counts(data), dag, "m-estimate:1")
    for tables, cll, ll in ((start, learnt.cll_start, lls[0]), (learnt.tables, learnt.cll, lls[-1])):
        cells = slow.flatten(tables)
        assert cll == pytest.approx(slow.value_and_gradient(cells)[0], rel=1e-8, abs=1e-8)
        assert ll == pytest.approx(slow.joint(cells)[0], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("dag", [TAN, GENERAL], ids=["tan", "general"])
def test_without_missing_values_the_maximum_is_the_relative_frequencies(dag: Dag) -> None:
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    learnt = fit(data, dag, tolerance=1e-13)
    exact = generative_tables(Counts(data), dag, "mle")
    for got, wanted in zip(learnt.tables.weights, exact.weights, strict=True):
        np.testing.assert_allclose(np.exp(got), np.exp(wanted), atol=1e-4)


@pytest.mark.parametrize("dag", [TAN, GENERAL], ids=["tan", "general"])
@pytest.mark.parametrize("optimizer", ["cg", "lbfgs"])
def test_it_meets_unsmoothed_expectation_maximisation(dag: Dag, optimizer: str) -> None:
    data = with_missing(random_dataset(400, (2, 3, 2), 2), 0.2)
    ours: list[Any] = []
    theirs: list[Any] = []
    fit(data, dag, ours.append, optimizer=optimizer, tolerance=1e-13)
    em.learn(Counts(data), dag, smoothing="mle", tolerance=1e-14, max_iterations=3000, watch=theirs.append)
    assert ours[-1].ll == pytest.approx(theirs[-1].ll, rel=1e-6)


def test_start_and_penalty_are_its_own() -> None:
    data = with_missing(random_dataset(50, (2, 3, 2), 2), 0.2)
    asked = [
        fit(data, TAN, init=init, penalty=penalty, max_iterations=3)
        for init, penalty in (("None", 9.0), ("generative", 0.0))
    ]
    assert len({one.tables.weights[0].tobytes() for one in asked}) == 1
