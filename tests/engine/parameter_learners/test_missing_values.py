"""Compare the space of rows with missing values with enumeration, and EM and gradients with slow code."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood, PassSize
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameter_learners.missing_values import (
    MUCH,
    IncompleteSpace,
    conditional_value,
    incomplete_space,
    learn_apn,
    learn_em,
    report_work,
)
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.optimization import find_optimum, optimize
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Note, silent
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing
from tests.spaces import how
from tests.sweeps import first_few

TAN = Dag(((), (0,), (1,)), (0, 1, 2))


def space_of(data: Dataset, dag: Dag, joint: bool = False) -> IncompleteSpace:
    return incomplete_space(Counts(data), dag, "m-estimate:1", joint=joint)


@given(case=incomplete_cases(), joint=st.booleans(), seed=st.integers(0, 99))
def test_gradients_are_slopes_of_what_enumeration_finds(case: tuple[Dataset, Dag], joint: bool, seed: int) -> None:
    data, dag = case
    space = space_of(data, dag, joint)
    slow = enumeration(data, space.likelihood.families)
    value_of = slow.joint if joint else slow.value_and_gradient
    p, direction = np.random.default_rng(seed).normal(size=(2, space.coordinates.n_parameters))
    tables = space.coordinates.tables
    value, d_tables = space.likelihood.value_and_gradient(tables(p))
    slope = oracles.slope(lambda q: value_of(tables(q))[0], p, direction, 1e-3)
    assert value == pytest.approx(value_of(tables(p))[0], rel=1e-9, abs=1e-9)
    assert space.coordinates.pull_back(p, d_tables) @ direction == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("joint", [False, True])
def test_products_are_slopes_of_the_gradient(joint: bool) -> None:
    space = space_of(with_missing(random_dataset(60, (2, 3, 2), 3), 0.3), TAN, joint)
    p, v = np.random.default_rng(1).normal(size=(2, space.coordinates.n_parameters))

    def gradient(q: Any) -> Any:
        d_tables = space.likelihood.value_and_gradient(space.coordinates.tables(q))[1]
        return 0.7 * q - space.coordinates.pull_back(q, d_tables)

    product = space.hessian(p, 0.7)
    np.testing.assert_allclose(product(v), oracles.slope(gradient, p, v, 1e-3), atol=1e-3)
    assert not product(0.0 * v).any()


def test_the_preconditioner_of_complete_rows_is_the_diagonal_of_the_hessian() -> None:
    """This holds for the joint likelihood; the distribution of the class is taken to be wide."""
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    space = incomplete_space(Counts(data), Dag(((), (0,), (1,)), (0, 2)), "mle", joint=True)
    p = space.coordinates.generative
    hessian, precondition = space.hessian(p, 0.5), space.first_preconditioner(p, 0.5)
    units = np.delete(np.eye(len(p)), [0, 1 + 2 + 6], axis=0)
    exact = np.array([unit @ hessian(unit) for unit in units])
    told = np.array([1.0 / (unit @ precondition(unit)) for unit in units])
    np.testing.assert_allclose(told, exact, rtol=1e-3)


@pytest.mark.parametrize(
    ("joint", "penalty"), [pytest.param(False, 0.0, marks=pytest.mark.slow), (True, 0.0), (False, 0.5), (True, 0.5)]
)
def test_all_optimisers_find_one_optimum(joint: bool, penalty: float) -> None:
    data = with_missing(dense_dataset((2, 2, 2), 2, copies=4), 0.2)
    space = space_of(data, TAN, joint)
    values = []
    for optimizer in ("lbfgs", "newton", "bfgs", "cg", "cgb"):
        one = find_optimum(space, how(optimizer=optimizer, penalty=penalty, tolerance=1e-11), lambda step, p: None)
        values.append(one.value)
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def test_the_same_bytes_every_time() -> None:
    data = with_missing(random_dataset(300, (3, 2, 3), 3, weighted=True), 0.25)
    runs = [optimize(space_of(data, TAN), how(max_iterations=10), silent) for _ in range(2)]
    assert len({run.tables.weights[0].tobytes() for run in runs}) == 1


def test_a_likelihood_of_other_rows() -> None:
    data = with_missing(random_dataset(30, (3, 2, 3), 3), 0.25)
    for joint in (False, True):
        space = space_of(data, TAN, joint)
        cells = space.coordinates.tables(space.coordinates.generative)
        half = data.take(np.arange(10))
        slow = enumeration(half, space.likelihood.families)
        expected = (slow.joint if joint else slow.value_and_gradient)(cells)[0]
        assert space.on(half).value_and_gradient(cells)[0] == pytest.approx(expected)


@given(case=incomplete_cases(), seed=st.integers(0, 99))
def test_the_conditional_value_from_joint_probabilities(case: tuple[Dataset, Dag], seed: int) -> None:
    space = space_of(*case)
    cells = space.coordinates.tables(np.random.default_rng(seed).normal(size=space.coordinates.n_parameters))
    slow = enumeration(case[0], space.likelihood.families).value_and_gradient(cells)[0]
    assert conditional_value(space.likelihood, cells) == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_much_work_is_told_before_it_begins() -> None:
    schema = Schema("class", ("n", "y"), tuple(CategoricalAttribute(f"a{i}", False, (), ("u", "v")) for i in range(3)))
    told: list[Event] = []
    report_work(PassSize(MUCH - 1, (0, 1)), schema, told.append)
    assert told == []
    report_work(PassSize(50_000_000, (2, 0)), schema, told.append)
    (note,) = told
    assert isinstance(note, Note)
    assert "fills 50,000,000 table entries and takes about 0." in note.text
    assert note.text.endswith("the widest table is over 'a2', 'a0'")


TAN_EM = Dag(((), (0,), (1,)), (0, 1, 2))
CHAIN = Dag(((), (0,), (1,), (2,)), (1, 3), (0,))
ADDING = ("mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1")
RULES = (*ADDING, "hdp")


def fit(
    data: Dataset, dag: Dag, rule: str = "m-estimate:1", tolerance: float = 1e-10, most: int = 500, watch: Any = None
) -> Parameters:
    more = {} if watch is None else {"watch": watch}
    return learn_em(Counts(data), dag, smoothing=rule, tolerance=tolerance, max_iterations=most, **more)


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
    """It follows the definition, one distribution at a time."""
    data, dag = case
    learnt = fit(data, dag, rule, most=1)
    if learnt.iterations == 0:
        return
    counts, start = Counts(data), generative_tables(Counts(data), dag, rule)
    likelihood = IncompleteLikelihood(data, start.families, joint=True)
    expected = Tables.of_cells(likelihood.value_and_gradient(start.cells)[1], likelihood.families)
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
    """Return theta of one distribution; `seen` are the counts of the start, the child's axis first."""
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
@pytest.mark.parametrize("dag", [TAN_EM, Dag(((), (0,), (0, 1)), (2,), (0,))], ids=["tan", "general"])
def test_without_missing_values_it_stays_at_the_closed_form(dag: Dag, rule: str) -> None:
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    learnt = fit(data, dag, rule)
    start = generative_tables(Counts(data), dag, rule)
    assert learnt.stopped_by is StoppedBy.TOLERANCE
    assert learnt.iterations <= 1
    for got, wanted in zip(learnt.tables.weights, start.weights, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)


@pytest.mark.parametrize("dag", [TAN_EM, CHAIN], ids=["tan", "general"])
def test_it_ends_where_the_gradient_vanishes(dag: Dag) -> None:
    data = with_missing(random_dataset(200, (2, 3, 2, 2), 2), 0.3)
    events: list[Any] = []
    learnt = fit(data, dag, tolerance=1e-14, most=5000, watch=events.append)
    assert learnt.stopped_by is StoppedBy.TOLERANCE
    assert events[-1].gradient_norm < 1e-3 * events[0].gradient_norm


def test_rows_of_missing_values_alone_leave_the_start() -> None:
    data = with_missing(random_dataset(20, (2, 3, 2), 2), 1.0)
    learnt = fit(data, TAN_EM)
    np.testing.assert_allclose(np.exp(learnt.tables.weights[1]).reshape(3, 2, 2), 1 / 3)


def test_the_cap_is_told() -> None:
    learnt = fit(with_missing(random_dataset(200, (2, 3, 2), 2), 0.5), TAN_EM, tolerance=0.0, most=3)
    assert (learnt.stopped_by, learnt.iterations, learnt.evaluations) == (StoppedBy.MAX_ITERATIONS, 3, 4)


TAN_APN = Dag(((), (0,), (1,)), (0, 1, 2))
GENERAL = Dag(((), (0,), (0, 1)), (2,), (0,))


def fit_apn(data: Dataset, dag: Dag, watch: Any = None, **changes: Any) -> Any:
    more = {} if watch is None else {"watch": watch}
    return learn_apn(
        Counts(data), dag, smoothing="m-estimate:1", settings=how(**{"optimizer": "cg", **changes}), **more
    )


@given(case=incomplete_cases(), optimizer=st.sampled_from(["cg", "cgb", "lbfgs"]))
def test_the_likelihood_never_falls_and_both_ends_are_told_truly(case: tuple[Dataset, Dag], optimizer: str) -> None:
    data, dag = case
    events: list[Any] = []
    learnt = fit_apn(data, dag, events.append, optimizer=optimizer, max_iterations=8)
    lls = [event.ll for event in events]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(lls))
    assert all(event.cll is None and event.penalty == 0.0 for event in events)
    slow = enumeration(data, learnt.tables.families)
    start = generative_tables(Counts(data), dag, "m-estimate:1")
    for tables, cll, ll in ((start, learnt.cll_start, lls[0]), (learnt.tables, learnt.cll, lls[-1])):
        cells = slow.flatten(tables)
        assert cll == pytest.approx(slow.value_and_gradient(cells)[0], rel=1e-8, abs=1e-8)
        assert ll == pytest.approx(slow.joint(cells)[0], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("dag", [TAN_APN, GENERAL], ids=["tan", "general"])
def test_without_missing_values_the_maximum_is_the_relative_frequencies(dag: Dag) -> None:
    data = with_missing(dense_dataset((2, 3, 2), 2), 0.0)
    learnt = fit_apn(data, dag, tolerance=1e-13)
    exact = generative_tables(Counts(data), dag, "mle")
    for got, wanted in zip(learnt.tables.weights, exact.weights, strict=True):
        np.testing.assert_allclose(np.exp(got), np.exp(wanted), atol=1e-4)


@pytest.mark.parametrize("dag", [TAN_APN, GENERAL], ids=["tan", "general"])
@pytest.mark.parametrize("optimizer", first_few(["lbfgs", "cg"]))
def test_it_meets_unsmoothed_expectation_maximisation(dag: Dag, optimizer: str) -> None:
    data = with_missing(random_dataset(400, (2, 3, 2), 2), 0.2)
    ours: list[Any] = []
    theirs: list[Any] = []
    fit_apn(data, dag, ours.append, optimizer=optimizer, tolerance=1e-13)
    learn_em(Counts(data), dag, smoothing="mle", tolerance=1e-14, max_iterations=3000, watch=theirs.append)
    assert ours[-1].ll == pytest.approx(theirs[-1].ll, rel=1e-6)


def test_start_and_penalty_are_its_own() -> None:
    data = with_missing(random_dataset(50, (2, 3, 2), 2), 0.2)
    asked = [
        fit_apn(data, TAN_APN, init=init, penalty=penalty, max_iterations=3)
        for init, penalty in (("None", 9.0), ("generative", 0.0))
    ]
    assert len({one.tables.weights[0].tobytes() for one in asked}) == 1
