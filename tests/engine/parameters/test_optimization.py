"""The optimization: objective and costs reported, starts, optimizers, penalty and its centre, threads, separability."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import StoppedBy
from bncli.engine.optimizers import quasi_newton
from bncli.engine.parameters.flops import of_free_tables, of_networks
from bncli.engine.parameters.nested_samples import Growth
from bncli.engine.parameters.optimization import ParameterSpace, find_optimum_from
from bncli.engine.structures.structure import Dag
from bncli.watch import Iteration
from tests.datasets import random_dataset
from tests.spaces import SPACES, catch, fit, how
from tests.sweeps import every_value

TAN = Dag(((), (0,), (0,)), (0, 1, 2))
every_space = pytest.mark.parametrize("name", SPACES)


@every_space
@pytest.mark.parametrize(("init", "center"), [("zero", 0.0), ("generative", 0.0), ("zero", 1.0)])
def test_the_trace_tells_likelihood_and_penalty_apart(name: str, init: str, center: float) -> None:
    data = random_dataset(100, (3, 2, 4), 3)
    caught = catch(name, data, TAN)
    start = np.zeros(caught.space.n_parameters) if init == "zero" else caught.space.generative
    events: list[Any] = []
    learnt = fit(name, data, TAN, watch=events.append, init=init, penalty=0.7, penalty_center=center)
    first = events[0]
    assert isinstance(first, Iteration)
    assert first.iteration == 0
    assert first.cll == pytest.approx(caught.cll(start), rel=1e-12)
    assert first.penalty == pytest.approx(0.35 * np.square(start - center).sum(), rel=1e-12)
    assert [event.iteration for event in events] == list(range(learnt.iterations + 1))
    assert events[-1].cll_evaluations == learnt.evaluations
    assert learnt.n_parameters == caught.space.n_parameters
    assert learnt.cll == events[-1].cll


@every_space
def test_both_starts_reach_the_same_penalised_optimum(name: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    reached = [fit(name, data, TAN, penalty=0.5, init=init) for init in ("zero", "generative")]
    assert reached[0].cll == pytest.approx(reached[1].cll, rel=1e-5)
    np.testing.assert_allclose(reached[0].tables.bias, reached[1].tables.bias, atol=1e-2)
    for one, other in zip(reached[0].tables.weights, reached[1].tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-2)


@every_space
def test_weight_two_is_the_row_twice(name: str) -> None:
    data = random_dataset(80, (3, 2, 4), 3)
    times = np.random.default_rng(0).integers(1, 4, 80)
    repeated = data.take(np.repeat(np.arange(80), times))
    weighted = replace(data, weights=times.astype(float))
    one, other = (fit(name, d, TAN, penalty=1.0, max_iterations=5) for d in (repeated, weighted))
    assert one.cll_start == pytest.approx(other.cll_start, rel=1e-9)
    one, other = (fit(name, d, TAN, penalty=1.0) for d in (repeated, weighted))
    assert one.cll == pytest.approx(other.cll, rel=1e-6)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "how_many_and_by"), every_value([*SPACES], [*itertools.product((2, 3, 12), ("newton", "lbfgs"))])
)
def test_threads_do_not_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, name: str, how_many_and_by: tuple[int, str]
) -> None:
    n_labels, optimizer = how_many_and_by
    monkeypatch.setattr(quasi_newton, "NEWTON_FROM", 4)
    outcomes = []
    for threads in (1, 2, 3):
        data = random_dataset(4_000, (3, 2, 4), n_labels, weighted=True, threads=threads)
        learnt = fit(name, data, TAN, penalty=1.0, tolerance=1e-6, max_iterations=12, optimizer=optimizer)
        outcomes.append((learnt.cll, learnt.tables.bias.tobytes(), *(w.tobytes() for w in learnt.tables.weights)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


GROWTH = Growth(many_rows=1_000, rows_per_parameter=4, least_largest=1_000, least=500)


@pytest.mark.parametrize(("name", "weighted"), every_value([*SPACES], [False, True]))
def test_samples_lead_to_the_optimum_of_all_rows(name: str, weighted: bool) -> None:
    data = random_dataset(8_000, (3, 2, 4), 3, weighted=weighted)
    labels = data.labels.copy()
    labels[labels == 2] = 1
    labels[:3] = 2
    data = replace(data, labels=labels)
    events: list[Any] = []
    changed: dict[str, Any] = {"penalty": 1.0, "tolerance": 1e-11, "init": "zero"}
    grown = fit(name, data, TAN, growth=GROWTH, watch=events.append, **changed)
    whole = fit(name, data, TAN, optimizer="newton", **changed)
    assert grown.cll_start == whole.cll_start == events[0].cll
    assert events[0].cll_evaluations == 1
    # a step of samples is a first iteration that costs parts of passes, and no line search of all rows
    assert events[1].cll_evaluations > 2
    assert grown.cll == pytest.approx(whole.cll, rel=1e-6)
    assert events[-1].gradient_norm < 1e-3 * events[0].gradient_norm
    np.testing.assert_allclose(grown.tables.bias, whole.tables.bias, atol=2e-3)
    for one, other in zip(grown.tables.weights, whole.tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


@pytest.mark.usefixtures("small_blocks")
@every_space
def test_threads_do_not_change_a_bit_of_what_samples_lead_to(name: str) -> None:
    outcomes = []
    for threads in (1, 2):
        data = random_dataset(8_000, (3, 2, 4), 3, weighted=True, threads=threads)
        learnt = fit(name, data, TAN, penalty=1.0, tolerance=1e-8, growth=GROWTH)
        outcomes.append((learnt.cll, learnt.tables.bias.tobytes(), *(w.tobytes() for w in learnt.tables.weights)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", ["discriminative", "discriminative with lower orders", "weighted 4"])
def test_samples_lead_from_a_place_nearby_to_the_optimum_of_all_rows(name: str) -> None:
    data = random_dataset(8_000, (3, 2, 4), 3)
    caught = catch(name, data, TAN)
    space = ParameterSpace(caught.likelihood, caught.space)
    settings = how(init="zero", penalty=1.0, tolerance=1e-11)
    whole = find_optimum_from(space, settings, np.full(caught.space.n_parameters, 0.1))
    grown = find_optimum_from(space, replace(settings, growth=GROWTH), whole.point + 0.01)
    assert grown.value == pytest.approx(whole.value, rel=1e-9)
    assert grown.evaluations + grown.products < whole.evaluations
    np.testing.assert_allclose(grown.point, whole.point, atol=2e-3)


def test_without_a_penalty_or_with_few_rows_all_rows_are_taken_from_the_first_pass_on() -> None:
    data = random_dataset(2_000, (3, 2, 4), 3)
    for penalty, growth in ((0.0, GROWTH), (1.0, replace(GROWTH, many_rows=2_001))):
        grown = fit("discriminative", data, TAN, penalty=penalty, growth=growth)
        whole = fit("discriminative", data, TAN, penalty=penalty)
        assert (grown.cll, grown.evaluations) == (whole.cll, whole.evaluations)


@every_space
@pytest.mark.parametrize(("init", "penalty"), [("zero", 0.0), ("zero", 1.0), ("generative", 0.0)])
def test_one_class_has_nothing_to_learn(name: str, init: str, penalty: float) -> None:
    learnt = fit(name, random_dataset(20, (3, 2, 4), 1), TAN, penalty=penalty, init=init)
    assert learnt.cll == 0.0
    assert all(np.isfinite(w).all() for w in learnt.tables.weights)


@every_space
def test_no_attributes_leave_the_class_prior(name: str) -> None:
    data = random_dataset(50, (), 3)
    learnt = fit(name, data, Dag((), ()))
    counts = np.bincount(data.labels, minlength=3)
    odds = np.exp(learnt.tables.bias - learnt.tables.bias.max())
    np.testing.assert_allclose(odds / odds.sum(), counts / 50, atol=1e-4)


@every_space
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_class_without_rows_and_a_single_row(name: str, penalty: float) -> None:
    data = random_dataset(60, (3, 2, 4), 2)
    schema = random_dataset(0, (3, 2, 4), 4).schema
    for n_rows in (1, 60):
        rows = data.take(np.arange(n_rows))
        learnt = fit(name, Dataset(schema, rows.codes, rows.labels), TAN, penalty=penalty, tolerance=1e-8)
        assert (-np.inf if penalty else learnt.cll_start) <= learnt.cll <= 0
        assert all(np.isfinite(w).all() for w in learnt.tables.weights)


@pytest.mark.parametrize("weight", [1e-6, 1e6])
def test_the_scale_of_weights_does_not_make_classes_separable(weight: float) -> None:
    data = random_dataset(200, (3, 2, 4), 2)
    learnt = fit("discriminative", replace(data, weights=np.full(200, weight)), TAN, tolerance=1e-10)
    assert learnt.stopped_by is not StoppedBy.SEPARABLE
    assert learnt.cll / weight == pytest.approx(fit("discriminative", data, TAN, tolerance=1e-10).cll, rel=1e-6)


PUBLISHED = ("bfgs", "cg", "cgb")


@every_space
def test_every_optimizer_starts_from_the_cll_of_the_free_tables(name: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    starts = [fit(one, data, TAN, penalty=1.0, max_iterations=1).cll_start for one in (name, "discriminative")]
    assert starts[0] == pytest.approx(starts[1])


@pytest.mark.parametrize(("name", "optimizer"), every_value([*SPACES], PUBLISHED))
def test_every_optimizer_goes_from_the_same_cll_to_the_same_optimum(name: str, optimizer: str) -> None:
    data = random_dataset(150, (3, 2, 4), 3, weighted=True)
    expected = fit(name, data, TAN, penalty=1.0)
    learnt = fit(name, data, TAN, penalty=1.0, optimizer=optimizer, tolerance=1e-10)
    assert learnt.cll_start == expected.cll_start
    np.testing.assert_allclose(learnt.tables.bias, expected.tables.bias, atol=0.02)
    for one, other in zip(learnt.tables.weights, expected.tables.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


@pytest.mark.parametrize("optimizer", PUBLISHED)
def test_separable_classes_are_seen_by_every_optimizer(optimizer: str) -> None:
    data = random_dataset(3, (3, 2, 4), 2)
    learnt = fit("discriminative", data, TAN, init="zero", optimizer=optimizer)
    assert learnt.stopped_by is StoppedBy.SEPARABLE


@every_space
@pytest.mark.parametrize("optimizer", ["lbfgs", "newton", *PUBLISHED])
def test_what_iterations_have_cost(monkeypatch: pytest.MonkeyPatch, name: str, optimizer: str) -> None:
    monkeypatch.setattr(quasi_newton, "NEWTON_FROM", 3)
    data = random_dataset(100, (3, 2, 4), 3)
    events: list[Any] = []
    fit(name, data, TAN, watch=events.append, penalty=1.0, optimizer=optimizer, max_iterations=5)
    if optimizer == "lbfgs":
        assert all(event.gradient_evaluations == event.cll_evaluations for event in events)
    elif optimizer == "newton":
        products = [event.gradient_evaluations - event.cll_evaluations for event in events]
        assert products[0] == products[1] == 0
        assert products == sorted(products)
        assert products[-1] > 0
    else:
        assert [event.gradient_evaluations for event in events] == [1, 2, 3, 4, 5, 6]
        assert events[-1].cll_evaluations > 6
    told = [event.flops for event in events]
    if optimizer not in PUBLISHED or name.startswith("weighted") or name.endswith("lower orders"):
        assert told == [None] * len(events)
        return
    assert told[0] == 0
    assert told == sorted(set(told))
    known = {"discriminative": of_free_tables, "extended": of_networks}
    if name in known:
        costs = known[name](TAN.families((3, 2, 4)), 100, 3)
        assert told == [costs.spent(optimizer, event.iteration, event.cll_evaluations) for event in events]
