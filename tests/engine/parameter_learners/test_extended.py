"""Extended parameters on rows with missing values: they begin where relative frequencies do, and rise."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters
from bncli.engine.parameter_learners import extended, map
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.penalty_cv import GRID
from bncli.engine.structures.structure import Dag
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing
from tests.spaces import choose_penalty, how

TAN = Dag(((), (0,), (1,)), (0, 1, 2))
HIDDEN_MIDDLE = Dag(((), (0,), (1,)), (2,), (0,))
OPTIMIZERS = ("lbfgs", "newton", "bfgs", "cg", "cgb")


def fit(data: Dataset, dag: Dag, watch: Any = None, **changes: Any) -> Parameters:
    more = {} if watch is None else {"watch": watch}
    return extended.learn(Counts(data), dag, smoothing="m-estimate:1", settings=how(**changes), **more)


@given(case=incomplete_cases(), optimizer=st.sampled_from(OPTIMIZERS), penalty=st.sampled_from([0.0, 1.0]))
def test_the_objective_never_falls_and_both_ends_are_told_truly(
    case: tuple[Dataset, Dag], optimizer: str, penalty: float
) -> None:
    data, dag = case
    events: list[Any] = []
    learnt = fit(data, dag, events.append, optimizer=optimizer, penalty=penalty, max_iterations=8, tolerance=1e-8)
    objective = [event.cll - event.penalty for event in events]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(objective))
    slow = enumeration(data, learnt.tables.families)
    start = generative_tables(Counts(data), dag, "m-estimate:1")
    for tables, cll in ((start, learnt.cll_start), (learnt.tables, learnt.cll)):
        assert cll == pytest.approx(slow.value_and_gradient(slow.flatten(tables))[0], rel=1e-8, abs=1e-8)
    for family, w in zip(learnt.tables.families, learnt.tables.weights, strict=True):
        assert family.by_class or not np.ptp(w, axis=1).any()


@pytest.mark.parametrize("dag", [TAN, HIDDEN_MIDDLE], ids=["tan", "general"])
def test_the_first_likelihood_is_that_of_map(dag: Dag) -> None:
    data = with_missing(random_dataset(80, (3, 2, 3), 3), 0.3)
    assert fit(data, dag, max_iterations=0).cll_start == pytest.approx(
        map.learn(Counts(data), dag, smoothing="m-estimate:1").cll, rel=1e-12
    )


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_without_missing_values_it_is_what_it_is_under_the_other_policy(penalty: float) -> None:
    complete = dense_dataset((2, 3, 2), 2, copies=5)
    one = fit(complete, TAN, penalty=penalty)
    other = fit(with_missing(complete, 0.0), TAN, penalty=penalty)
    assert one.cll == pytest.approx(other.cll, rel=1e-7)
    assert one.n_parameters == other.n_parameters


def test_a_part_of_the_network_that_tells_nothing_stays() -> None:
    """Attribute 1 lies below attribute 0, which is always known: nothing to be learnt of it for the class."""
    complete = random_dataset(80, (3, 2), 2)
    data = with_missing(complete, 0.0)
    dag = Dag(((), (0,)), (0,))
    learnt = fit(data, dag, max_iterations=20)
    start = generative_tables(Counts(data), dag, "m-estimate:1")
    np.testing.assert_allclose(learnt.tables.weights[1], start.weights[1], atol=1e-12)
    assert learnt.cll > learnt.cll_start


def test_a_penalty_can_be_chosen_with_missing_values() -> None:
    """At the largest penalty, where next to nothing is learnt, the loss told is about ln K."""
    data = with_missing(random_dataset(60, (3, 2, 3), 3), 0.3)
    space_of = partial(extended.space, structure=TAN, smoothing="m-estimate:1")
    chosen = choose_penalty(data, space_of, center=0.0, seed=0)
    assert chosen.penalty in GRID
    assert chosen.tried[0].log_loss == pytest.approx(np.log(3), rel=0.1)
    assert chosen.penalty < GRID[0]
