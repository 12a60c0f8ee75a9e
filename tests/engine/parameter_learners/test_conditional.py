"""Check the spaces of the conditional likelihood: tables, derivatives, optima, and early stopping."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds
from bncli.engine.kernels.information import variance_of_effects
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameter_learners.closed_form import learn_kbma, learn_map
from bncli.engine.parameter_learners.conditional import (
    FOLDS,
    best_iterations,
    build_space_discriminative,
    build_space_extended,
    build_space_lr,
    build_space_lr_roos,
    learn_discriminative,
    learn_extended,
    learn_lr_roos,
    tuning_folds,
)
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.costs import logistic_flops
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.level_effects import REFERENCE
from bncli.engine.parameters.optimization import ParameterSpace, Problem, optimize
from bncli.engine.parameters.penalty_choice import GRID
from bncli.engine.structure_learners import kdb, nb, tan
from bncli.engine.structures.structure import Dag, Family, Regions, SearchTrace
from bncli.errors import BncliError
from bncli.watch import Event, Iteration, Progress, silent
from tests import oracles
from tests.datasets import dataset_of, dense_dataset, random_dataset
from tests.effects import dense, mixed_dataset
from tests.incomplete_oracle import enumeration, incomplete_cases, with_missing
from tests.paths import path_of
from tests.spaces import RICH_SPACES, SPACES, catch, choose_penalty, fit, how, push
from tests.strategies import dags, datasets, graphs_for
from tests.sweeps import every_pair, every_value, examples

every_space = pytest.mark.parametrize("name", SPACES)
every_rich_space = pytest.mark.parametrize("name", RICH_SPACES)


@every_space
@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_pull_back_is_the_transpose_of_the_derivative(name: str, data: Dataset, draw: st.DataObject) -> None:
    space = catch(name, data, draw.draw(graphs_for(name, len(data.codes)))).space
    rng = np.random.default_rng(draw.draw(st.integers(0, 999)))
    p = rng.normal(size=space.n_parameters)
    direction = rng.normal(size=p.shape)
    d_tables = rng.normal(size=space.tables(p).shape)
    expected = float((d_tables * oracles.slope(space.tables, p, direction, 1e-3)).sum())
    assert float(space.pull_back(p, d_tables) @ direction) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_space
@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_push_is_the_derivative_of_the_tables_and_pull_back_its_transpose(
    name: str, data: Dataset, draw: st.DataObject
) -> None:
    """Both are linear in the direction, so they agree almost to rounding."""
    space = catch(name, data, draw.draw(graphs_for(name, len(data.codes)))).space
    rng = np.random.default_rng(draw.draw(st.integers(0, 999)))
    p, v, w = rng.normal(size=(3, space.n_parameters))
    pushed = push(space, p, v)
    assert pushed.shape == space.tables(p).shape
    np.testing.assert_allclose(pushed, oracles.slope(space.tables, p, v, 1e-3), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(push(space, p, v - 3 * w), pushed - 3 * push(space, p, w), rtol=1e-9, atol=1e-9)
    d_tables = rng.normal(size=pushed.shape)
    back = float(v @ space.pull_back(p, d_tables))
    assert float((pushed * d_tables).sum()) == pytest.approx(back, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("name", "n_labels", "penalty"), every_pair([*SPACES], [2, 3, 12], [0.0, 0.7]))
def test_the_hessian_of_the_problem(name: str, n_labels: int, penalty: float) -> None:
    """Compare with J'HJ + lambda I with the explicit H; if tables are linear in the parameters, also with slopes."""
    data = random_dataset(60, (3, 2, 4), n_labels, weighted=True)
    caught = catch(name, data, Dag(((), (0,), (0,)), (0, 1, 2)))
    problem = Problem(ParameterSpace(caught.likelihood, caught.space), how(penalty=penalty, penalty_center=0.4))
    p = np.random.default_rng(3).normal(size=caught.space.n_parameters)
    units = np.eye(len(p))
    found = np.stack([problem.objective.hessian(p)(unit) for unit in units], axis=1)
    j = np.stack([oracles.slope(caught.space.tables, p, unit, 1e-3).ravel() for unit in units], axis=1)
    h = oracles.hessian(caught.likelihood.families, data, caught.space.tables(p))
    np.testing.assert_allclose(found, j.T @ h @ j + penalty * units, atol=1e-8 * np.abs(h).max())
    np.testing.assert_allclose(found, found.T, atol=1e-10 * np.abs(found).max())
    assert np.linalg.eigvalsh((found + found.T) / 2).min() > penalty - 1e-9 * np.abs(found).max()
    if name != "extended":
        v = np.random.default_rng(4).normal(size=p.shape)
        slope = oracles.slope(lambda q: problem.value_and_gradient(q)[1], p, v, 1e-3)
        np.testing.assert_allclose(found @ v, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@every_space
def test_the_gradient_of_the_likelihood_is_its_slope(name: str) -> None:
    for data in (random_dataset(60, (3, 2, 4), 2, weighted=True), random_dataset(60, (3, 2, 4), 4)):
        for dag in (Dag(((), (0,), (0, 1)), (0, 1, 2)), Dag(((), (0,), ()), (1,), (0, 2))):
            caught = catch(name, data, dag)
            p = np.random.default_rng(3).normal(size=caught.space.n_parameters)
            _, d_tables = caught.likelihood.value_and_gradient(caught.space.tables(p))
            direction = np.random.default_rng(4).normal(size=p.shape)
            slope = oracles.slope(caught.cll, p, direction, 1e-3)
            assert float(caught.space.pull_back(p, d_tables) @ direction) == pytest.approx(slope, rel=1e-7)


@given(data=datasets(max_rows=20, max_attributes=4), draw=st.data())
def test_the_jacobian_is_the_derivative_at_the_cells(data: Dataset, draw: st.DataObject) -> None:
    """Cells of one class are compared up to a part common to all classes, which changes no probability."""
    space = catch("extended", data, draw.draw(graphs_for("extended", len(data.codes)))).space
    assert isinstance(space, Softmax)
    shape = space.tables(np.zeros(space.n_parameters)).shape
    p = np.random.default_rng(draw.draw(st.integers(0, 999))).normal(size=shape).ravel()
    top = draw.draw(st.lists(st.integers(0, shape[1] - 1), min_size=1, max_size=6, unique=True).map(sorted))
    jacobian = space.jacobian(p, np.array(top))
    y = draw.draw(st.integers(0, shape[0] - 1))
    stated = np.broadcast_to(jacobian, (shape[0], len(top), len(top)))[y]
    for column, c in enumerate(top):
        unit = np.zeros(shape)
        unit[y, c] = 1.0
        rest = oracles.slope(space.tables, p, unit.ravel(), 1e-3)[:, top]
        rest[y] -= stated[:, column]
        np.testing.assert_allclose(np.ptp(rest, axis=0), 0.0, atol=1e-8)


@given(data=datasets(max_rows=40, max_attributes=4), draw=st.data())
def test_from_the_generative_start_all_spaces_have_the_same_first_likelihood(
    data: Dataset, draw: st.DataObject
) -> None:
    dag = draw.draw(st.one_of(graphs_for("any", len(data.codes)), graphs_for("lr", len(data.codes))))
    rule = draw.draw(st.sampled_from(["mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1"]))
    tables = generative_tables(Counts(data), dag, rule)
    cells = tables.cells
    expected, _ = oracles.conditional_log_likelihood(tables.families, data, cells)
    for name in SPACES if (dag.unmarried is None) else set(SPACES) - {"lr"}:
        caught = catch(name, data, dag, rule)
        assert caught.cll(caught.space.generative) == pytest.approx(expected, rel=1e-8, abs=1e-8), name


def test_extended_tables_are_conditional_probabilities() -> None:
    data = random_dataset(30, (3, 2, 4), 3)
    for dag in (Dag(((), (0,), (0, 1)), (0, 1, 2)), Dag(((), (0,), ()), (1,), (0, 2))):
        caught = catch("extended", data, dag)
        p = np.random.default_rng(0).normal(size=caught.space.n_parameters)
        tables = Tables.of_cells(caught.space.tables(p), caught.likelihood.families)
        if dag.class_parents:
            assert not tables.bias.any()
        else:
            assert np.exp(tables.bias).sum() == pytest.approx(1.0)
        for family, w in zip(tables.families, tables.weights, strict=True):
            array = np.exp(w).reshape(*family.shape, 3)
            np.testing.assert_allclose(array.sum(axis=-1 if family.child is None else 0), 1.0)


@pytest.mark.parametrize("learn", [nb.learn, tan.learn, lambda c: kdb.learn(c, k=1)], ids=["nb", "tan", "kdb-1"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_one_unpenalised_optimum_from_both_starts(learn: Any, n_labels: int) -> None:
    """On perfect graphs with rows of every class in every cell, the rich spaces contain the same distributions."""
    data = dense_dataset((2, 3, 2), n_labels, copies=6)
    dag = learn(Counts(data))
    optima = [fit(name, data, dag, init=init) for name in RICH_SPACES for init in ("generative", "zero")]
    clls = [optimum.cll for optimum in optima]
    assert max(clls) - min(clls) <= 1e-6 * abs(max(clls))
    assert all(optimum.cll >= optimum.cll_start for optimum in optima)
    poorer = [fit(f"weighted {level}", data, dag).cll for level in (1, 2, 3)]
    assert poorer == sorted(poorer)
    assert max(poorer) <= max(clls) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("learn", [nb.learn, tan.learn, lambda c: kdb.learn(c, k=1)], ids=["nb", "tan", "kdb-1"])
@pytest.mark.parametrize("n_labels", [2, 12])
def test_many_rows_of_a_network_have_one_optimum_too(learn: Any, n_labels: int) -> None:
    data = random_dataset(6000, (3, 2, 3, 2), n_labels, seed=4)
    dag = learn(Counts(data))
    clls = [fit(name, data, dag).cll for name in RICH_SPACES]
    assert max(clls) - min(clls) <= 1e-6 * abs(max(clls))


@pytest.mark.slow
@every_space
@given(data=datasets(max_rows=25, max_attributes=3), draw=st.data())
def test_the_penalised_objective_never_falls_below_the_start(name: str, data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(graphs_for(name, len(data.codes)))
    init = draw.draw(st.sampled_from(["zero", "generative"]))
    penalty = draw.draw(st.sampled_from([0.0, 0.1, 1.0, 100.0]))
    events: list[Any] = []
    learnt = fit(name, data, dag, watch=events.append, init=init, penalty=penalty, tolerance=1e-8, max_iterations=60)
    objective = [event.cll - event.penalty for event in events]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(objective))
    assert (events[0].cll, events[-1].cll) == (learnt.cll_start, learnt.cll)
    cells = learnt.tables.cells
    slow, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, cells)
    assert learnt.cll == pytest.approx(slow, rel=1e-9, abs=1e-9)


GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "kdb-2": Dag(((), (0,), (1, 0), (2, 1)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0, 3)),
}


def peer_cells(learnt: Parameters, data: Dataset, penalty: float) -> np.ndarray:
    """scikit-learn minimises C loss + |beta|^2 / 2. For two classes it has one vector: W = -+ beta / 2, so that
    lambda / 2 |W|^2 = lambda / 4 |beta|^2 and C = 2 / lambda; else C = 1 / lambda."""
    z = oracles.indicators(learnt.tables.families, data)
    c = (2.0 if data.n_labels == 2 else 1.0) / penalty
    peer = LogisticRegression(C=c, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    beta = peer.fit(z, data.labels, sample_weight=data.weights).coef_
    return np.concatenate([-beta / 2, beta / 2]) if data.n_labels == 2 else beta


@pytest.mark.parametrize(("graph", "n_labels", "penalty"), every_pair([*GRAPHS], [2, 3, 12], [0.1, 1.0, 30.0]))
def test_equals_scikit_learn(graph: str, n_labels: int, penalty: float) -> None:
    data = random_dataset(250, (3, 2, 4, 2), n_labels, weighted=n_labels == 3)
    fits = [fit("discriminative", data, GRAPHS[graph], init=init, penalty=penalty) for init in ("zero", "generative")]
    peer = peer_cells(fits[0], data, penalty)
    for learnt in fits:
        cll, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, peer)
        ours = learnt.cll - penalty / 2 * np.square(learnt.tables.cells).sum()
        assert ours == pytest.approx(cll - penalty / 2 * np.square(peer).sum(), rel=1e-9)
        assert learnt.cll == pytest.approx(cll, rel=1e-6)
        np.testing.assert_allclose(learnt.tables.cells, peer, atol=1e-4)


def test_penalised_tables_sum_to_nothing_over_the_classes() -> None:
    learnt = fit("discriminative", random_dataset(200, (3, 4), 3), Dag(((), ()), (0, 1)), penalty=1.0)
    np.testing.assert_allclose(learnt.tables.cells.sum(axis=0), 0.0, atol=1e-6)


def test_cells_that_no_row_has_keep_what_start_and_penalty_leave() -> None:
    data = random_dataset(300, (3, 2), 2)
    data = Dataset(data.schema, (np.where(data.codes[0] == 2, 1, data.codes[0]), data.codes[1]), data.labels)
    unseen = 2
    zero = fit("discriminative", data, Dag(((), ()), (0, 1)), init="zero", penalty=1.0)
    assert zero.tables.weights[0][unseen].tolist() == [0.0, 0.0]
    pulled = fit("discriminative", data, Dag(((), ()), (0, 1)), init="generative", penalty=1.0)
    np.testing.assert_allclose(pulled.tables.weights[0][unseen], 0.0, atol=1e-5)


@pytest.mark.parametrize("name", RICH_SPACES)
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_separable_classes_without_penalty_end_and_say_so(name: str, n_labels: int, weighted: bool) -> None:
    """The first attribute equals the class."""
    data = random_dataset(60, (n_labels, 2), n_labels, weighted=weighted)
    data = Dataset(data.schema, (data.labels, data.codes[1]), data.labels, data.weights)
    learnt = fit(name, data, Dag(((), ()), (0, 1)), tolerance=1e-8)
    assert learnt.stopped_by is StoppedBy.SEPARABLE
    assert np.isfinite(learnt.tables.cells).all()
    assert fit(name, data, Dag(((), ()), (0, 1)), tolerance=1e-8, penalty=1.0).stopped_by is not StoppedBy.SEPARABLE


REGIONS = Regions(((0,), (0, 1), (1, 2), (0, 2), (3,)))
"""A triangle, which no network with these tables could be."""


@pytest.mark.parametrize(("n_labels", "optimizer"), every_value([2, 3, 12], ["newton", "lbfgs", "cg"]))
def test_regions_equal_scikit_learn(n_labels: int, optimizer: str) -> None:
    data = random_dataset(250, (3, 2, 4, 2), n_labels, weighted=n_labels == 3)
    fits = [
        learn_discriminative(Counts(data), REGIONS, settings=how(init=init, penalty=1.0, optimizer=optimizer))
        for init in ("zero", "generative")
    ]
    peer = peer_cells(fits[0], data, 1.0)
    for learnt in fits:
        assert [f.attributes for f in learnt.tables.families] == [(0, 1), (1, 2), (0, 2), (3,)]
        cll, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, peer)
        assert learnt.cll == pytest.approx(cll, abs=1e-4)
        np.testing.assert_allclose(learnt.tables.cells, peer, atol=2e-3)


@pytest.mark.parametrize("theta", [None, 0.1, 5.0])
def test_on_regions_the_optimizer_starts_from_the_kikuchi_model(theta: float | None) -> None:
    data = random_dataset(250, (3, 2, 4, 2), 3)
    options = {} if theta is None else {"theta": theta}
    learnt = learn_discriminative(Counts(data), REGIONS, settings=how(penalty=1e-3), **options)
    expected = learn_kbma(Counts(data), REGIONS, theta=1.0 if theta is None else theta)
    assert learnt.cll_start == pytest.approx(path_of(expected).steps[-1].log_likelihood, rel=1e-9)
    assert learnt.cll > learnt.cll_start
    assert isinstance(learnt.predictor, Tables)


def test_only_the_regions_of_the_best_step_have_tables() -> None:
    data = random_dataset(250, (3, 2, 4, 2), 2)
    trace = SearchTrace((1, 2, 3, 4), (-4.0, -3.0, -2.0, -1.0), (-4.0, -3.0, -2.0, -9.0), 2)
    regions = Regions(((0,), (1,), (0, 1)), trace)
    learnt = learn_discriminative(Counts(data), regions, settings=how(penalty=1.0))
    assert [f.attributes for f in learnt.tables.families] == [(0,), (1,)]


def test_the_penalty_on_regions_may_be_chosen_by_cross_validation() -> None:
    data = random_dataset(250, (3, 2, 4, 2), 2)
    chosen = choose_penalty(
        data, lambda counts: build_space_discriminative(counts, REGIONS, theta=1.0), center=0.0, seed=0
    )
    assert chosen.penalty in [one.penalty for one in chosen.tried]


@pytest.mark.parametrize(
    ("graph", "design", "classes"),
    every_pair(
        [*GRAPHS],
        [("thermometer", False), ("cells", True), ("thermometer", True)],
        [(2, 0.1), (3, 0.1), (3, 30.0), (12, 3.0)],
    ),
)
def test_effects_equal_scikit_learn_on_the_explicit_design(
    graph: str, design: tuple[str, bool], classes: tuple[int, float]
) -> None:
    """The penalty is on the effects; rotating the steps of an attribute does not change their lengths."""
    (coding, lower_orders), (n_labels, penalty) = design, classes
    kinds = ("numeric", "numeric", "missing", "categorical")
    data = mixed_dataset(random_dataset(250, (3, 2, 5, 2), n_labels, weighted=n_labels == 3), kinds)
    dag = GRAPHS[graph]
    for init in ("zero", "generative"):
        settings = how(init=init, penalty=penalty)
        learnt = learn_discriminative(
            Counts(data), dag, smoothing="m-estimate:1", coding=coding, lower_orders=lower_orders, settings=settings
        )
        families = learnt.tables.families
        design = dense(families, data, coding, lower_orders=lower_orders)
        assert learnt.n_parameters == n_labels * design.shape[1]
        z = oracles.indicators(families, data)
        scores = _peer_scores(z @ design, data, penalty)
        ours = z @ learnt.tables.cells.T
        np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), scores, atol=1e-4)


def _peer_scores(z: np.ndarray, data: Dataset, penalty: float) -> np.ndarray:
    """scikit-learn minimises C loss + |beta|^2 / 2. For two classes it has one vector, V = -+ beta / 2, so that
    lambda / 2 |V|^2 = lambda / 4 |beta|^2 and C = 2 / lambda; else C = 1 / lambda. Scores less their mean."""
    c = (2.0 if data.n_labels == 2 else 1.0) / penalty
    peer = LogisticRegression(C=c, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    scores = z @ peer.fit(z, data.labels, sample_weight=data.weights).coef_.T
    scores = np.concatenate([-scores / 2, scores / 2], axis=1) if data.n_labels == 2 else scores
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))


def test_regions_with_groupings_equal_scikit_learn_too() -> None:
    """Main effects use all cuts, a pair coarser binnings; the main effects within the pair are the finer ones."""
    kinds = ("numeric", "missing")
    data = mixed_dataset(random_dataset(250, (6, 6), 3), kinds)
    groupings = ((None, None), ((0, 0, 1, 1, 2, 2), (0, 0, 0, 1, 1, 2)))
    regions = Regions(((0,), (1,), (0, 1)), bins=(None, 3), groupings=groupings)
    learnt = learn_discriminative(
        Counts(data), regions, coding="thermometer", lower_orders=True, settings=how(init="zero", penalty=1.0)
    )
    families = learnt.tables.families
    assert [family.shape for family in families] == [(6,), (6,), (3, 3)]
    coarse = [np.array(m)[codes] for m, codes in zip(groupings[1], data.codes, strict=True)]
    singles = [first + codes.astype(int) for first, codes in zip((1, 7), data.codes, strict=True)]
    cells = np.column_stack([np.zeros(250, int), *singles, 13 + 3 * coarse[0] + coarse[1]])
    z = np.zeros((250, 1 + 6 + 6 + 9))
    np.put_along_axis(z, cells, 1.0, axis=1)
    scores = _peer_scores(z @ dense(families, data, "thermometer", lower_orders=True), data, 1.0)
    ours = z @ learnt.tables.cells.T
    np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), scores, atol=1e-4)


def test_regions_with_groupings_have_no_generative_start() -> None:
    data = mixed_dataset(random_dataset(50, (6, 6), 2), ("numeric", "numeric"))
    regions = Regions(((0,), (0, 1)), bins=(None, 2), groupings=((None, None), ((0, 0, 0, 1, 1, 1),) * 2))
    with pytest.raises(BncliError, match="generative"):
        learn_discriminative(Counts(data), regions, theta=1.0, settings=how(init="generative", penalty=1.0))
    learnt = learn_discriminative(Counts(data), regions, theta=1.0, settings=how(init="zero", penalty=1.0))
    assert [w.shape for w in learnt.tables.weights] == [(6, 2), (4, 2)]


def key_of(level: int, f: int, family: Family, cell: int, y: int) -> tuple[Any, ...]:
    """Return the key of an entry; entries with the same key share a weight (Zaidi et al. 2017, table 2)."""
    if family.child is None:
        return (f, y) if level < 4 else (f, cell, y)
    value = cell // (family.n_cells // family.shape[0])
    return {1: (f,), 2: (f, value), 3: (f, value, y), 4: (f, cell, y)}[level]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@given(data=datasets(max_rows=15, max_attributes=4), draw=st.data())
def test_entries_share_a_weight_exactly_where_the_level_says(level: int, data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    caught = catch(f"weighted {level}", data, dag)
    theta = generative_tables(Counts(data), dag, "m-estimate:1")
    w = np.random.default_rng(0).uniform(1.0, 2.0, caught.space.n_parameters)
    tables = Tables.of_cells(caught.space.tables(w), caught.likelihood.families)
    ratios: dict[tuple[Any, ...], float] = {}
    n_keys = data.n_labels
    for f, family in enumerate(tables.families):
        keys = set()
        for cell in range(family.n_cells):
            for y in range(data.n_labels):
                key = key_of(level, f, family, cell, y)
                keys.add(key)
                ratio = tables.weights[f][cell, y] / theta.weights[f][cell, y]
                assert ratios.setdefault(key, ratio) == pytest.approx(ratio, rel=1e-12)
        n_keys += len(keys)
    assert caught.space.n_parameters == n_keys
    assert len({round(ratio, 9) for ratio in ratios.values()}) == len(ratios)
    if not dag.class_parents:
        assert len(set((tables.bias / theta.bias).round(9))) == data.n_labels


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_weights_of_one_are_generative_and_of_zero_uniform(level: int) -> None:
    data = random_dataset(50, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    caught = catch(f"weighted {level}", data, dag)
    assert caught.space.generative.tolist() == [1.0] * caught.space.n_parameters
    assert caught.cll(np.zeros(caught.space.n_parameters)) == pytest.approx(-50 * np.log(3))


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("init", ["zero", "generative"])
def test_a_huge_penalty_centred_on_one_gives_the_generative_model(level: int, init: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    learnt = fit(f"weighted {level}", data, dag, init=init, penalty=1e9, penalty_center=1.0)
    expected = generative_tables(Counts(data), dag, "m-estimate:1")
    np.testing.assert_allclose(learnt.tables.bias, expected.bias, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(learnt.tables.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_huge_penalty_centred_on_zero_gives_the_uniform_distribution(level: int) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    learnt = fit(f"weighted {level}", data, Dag(((), (0,), (0,)), (0, 1, 2)), penalty=1e12)
    assert learnt.cll == pytest.approx(-200 * np.log(3), rel=1e-4)


def test_the_smaller_the_penalty_the_higher_the_likelihood() -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))
    for center in (0.0, 1.0):
        clls = [fit("weighted 4", data, dag, penalty=p, penalty_center=center).cll for p in (100.0, 1.0, 0.01)]
        assert clls == sorted(clls)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_two_ends_of_the_penalty_are_the_generative_and_the_discriminative_classifier(n_labels: int) -> None:
    data = dense_dataset((3, 2, 3), n_labels)
    dag = Dag(((), (0,), (0,)), (0, 1, 2))

    def probabilities(learnt: Parameters) -> Any:
        cells = learnt.tables.cells
        return softmax(oracles.indicators(learnt.tables.families, data) @ cells.T, axis=1)

    def weighted(penalty: float) -> Any:
        return probabilities(fit("weighted 4", data, dag, penalty=penalty, penalty_center=1.0))

    generative = probabilities(learn_map(Counts(data), dag, smoothing="m-estimate:1"))
    discriminative = probabilities(fit("discriminative", data, dag))
    assert np.abs(generative - discriminative).max() > 0.02
    np.testing.assert_allclose(weighted(1e10), generative, atol=1e-6)
    np.testing.assert_allclose(weighted(1e-7), weighted(0.0), atol=1e-5)
    np.testing.assert_allclose(weighted(1e-7), discriminative, atol=1e-5)


TAN = Dag(((), (0,), (1,)), (0, 1, 2))
HIDDEN_MIDDLE = Dag(((), (0,), (1,)), (2,), (0,))
OPTIMIZERS = ("lbfgs", "newton", "bfgs", "cg", "cgb")


def fit_extended(data: Dataset, dag: Dag, watch: Any = None, **changes: Any) -> Parameters:
    more = {} if watch is None else {"watch": watch}
    return learn_extended(Counts(data), dag, smoothing="m-estimate:1", settings=how(**changes), **more)


@given(case=incomplete_cases(), optimizer=st.sampled_from(OPTIMIZERS), penalty=st.sampled_from([0.0, 1.0]))
def test_the_objective_never_falls_and_both_ends_are_told_truly(
    case: tuple[Dataset, Dag], optimizer: str, penalty: float
) -> None:
    data, dag = case
    events: list[Any] = []
    learnt = fit_extended(
        data, dag, events.append, optimizer=optimizer, penalty=penalty, max_iterations=8, tolerance=1e-8
    )
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
    assert fit_extended(data, dag, max_iterations=0).cll_start == pytest.approx(
        learn_map(Counts(data), dag, smoothing="m-estimate:1").cll, rel=1e-12
    )


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_without_missing_values_it_is_what_it_is_under_the_other_policy(penalty: float) -> None:
    complete = dense_dataset((2, 3, 2), 2, copies=5)
    one = fit_extended(complete, TAN, penalty=penalty)
    other = fit_extended(with_missing(complete, 0.0), TAN, penalty=penalty)
    assert one.cll == pytest.approx(other.cll, rel=1e-7)
    assert one.n_parameters == other.n_parameters


def test_a_part_of_the_network_that_tells_nothing_stays() -> None:
    """Attribute 1 is a child of attribute 0, which is always known, so the class cannot change its table."""
    complete = random_dataset(80, (3, 2), 2)
    data = with_missing(complete, 0.0)
    dag = Dag(((), (0,)), (0,))
    learnt = fit_extended(data, dag, max_iterations=20)
    start = generative_tables(Counts(data), dag, "m-estimate:1")
    np.testing.assert_allclose(learnt.tables.weights[1], start.weights[1], atol=1e-12)
    assert learnt.cll > learnt.cll_start


def test_a_penalty_can_be_chosen_with_missing_values() -> None:
    """At the largest penalty almost nothing is learned, and the loss reported is about ln K."""
    data = with_missing(random_dataset(60, (3, 2, 3), 3), 0.3)
    space_of = partial(build_space_extended, structure=TAN, smoothing="m-estimate:1")
    chosen = choose_penalty(data, space_of, center=0.0, seed=0)
    assert chosen.penalty in GRID
    assert chosen.tried[0].log_loss == pytest.approx(np.log(3), rel=0.1)
    assert chosen.penalty < GRID[0]


Array = NDArray[np.float64]

GRAPHS_LR = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "triangle": Dag(((), (0,), (1, 0), (2,)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0,)),
}


def predictors(data: Dataset, dag: Dag) -> Array:
    """Return indicators of complete sets, the intercept first; references are the most frequent values."""
    weights = oracles.weights_of(data)
    cardinalities = data.schema.cardinalities
    heaviest = [
        max(range(n), key=lambda v: (sum(w for w, code in zip(weights, codes, strict=True) if code == v), -v))
        for codes, n in zip(data.codes, cardinalities, strict=True)
    ]
    columns = {(): np.ones(data.n_rows)}
    for family in dag.families(cardinalities):
        for cell in np.ndindex(family.shape):
            away = [(i, v) for i, v in zip(family.attributes, cell, strict=True) if v != heaviest[i]]
            columns[tuple(sorted(away))] = np.prod(
                [np.ones(data.n_rows), *(data.codes[i] == v for i, v in away)], axis=0
            )
    return np.array(list(columns.values())).T


@pytest.mark.parametrize(("graph", "penalty"), every_value([*GRAPHS_LR], [0.1, 1.0, 30.0]))
def test_lr_of_two_classes_equals_scikit_learn(graph: str, penalty: float) -> None:
    """It minimises C loss + |beta|^2 / 2 over one vector, as there is one here: C = 1 / lambda."""
    data = random_dataset(250, (3, 2, 4, 2), 2, weighted=True)
    z = predictors(data, GRAPHS_LR[graph])
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    beta = peer.fit(z, data.labels, sample_weight=data.weights).coef_[0]
    for init in ("zero", "generative"):
        learnt = fit("lr", data, GRAPHS_LR[graph], init=init, penalty=penalty)
        assert learnt.n_parameters == len(beta)
        scores = oracles.indicators(learnt.tables.families, data) @ learnt.tables.cells.T
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], z @ beta, atol=1e-4)


@pytest.mark.parametrize("graph", GRAPHS_LR)
@pytest.mark.parametrize("n_labels", [3, 12])
def test_lr_of_more_classes_equals_a_plain_minimisation(graph: str, n_labels: int) -> None:
    data = random_dataset(200, (3, 2, 4, 2), n_labels, weighted=True)
    z, weights = predictors(data, GRAPHS_LR[graph]), np.array(oracles.weights_of(data))
    one_hot = np.eye(n_labels)[data.labels]

    def objective(flat: Array) -> tuple[float, Array]:
        p = flat.reshape(n_labels - 1, -1)
        scores = np.column_stack([np.zeros(len(z)), z @ p.T])
        log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
        gradient = ((np.exp(log_p) - one_hot) * weights[:, np.newaxis]).T[1:] @ z + p
        return float((p**2).sum() / 2 - (weights[:, np.newaxis] * one_hot * log_p).sum()), gradient.ravel()

    start, exact = np.zeros((n_labels - 1) * z.shape[1]), {"gtol": 1e-6, "ftol": 0.0}
    peer = minimize(objective, start, jac=True, method="L-BFGS-B", options=exact)
    events: list[Any] = []
    learnt = fit("lr", data, GRAPHS_LR[graph], init="zero", penalty=1.0, watch=events.append)
    assert events[-1].penalty - events[-1].cll == pytest.approx(peer.fun, rel=1e-9)
    assert learnt.n_parameters == peer.x.size


@pytest.mark.slow
@settings(max_examples=examples(10))
@given(data=datasets(max_rows=30, max_attributes=4), draw=st.data())
def test_references_and_the_first_class_have_no_score_of_their_own(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(graphs_for("lr", len(data.codes)))
    learnt = fit("lr", data, dag, penalty=1.0)
    assert learnt.n_parameters == (data.n_labels - 1) * predictors(data, dag).shape[1]
    assert not learnt.tables.bias[0].any()
    for family, w in zip(learnt.tables.families, learnt.tables.weights, strict=True):
        assert not w[:, 0].any()
        heaviest = [int(oracles.count(data, (i,)).sum(axis=1).argmax()) for i in family.attributes]
        assert not w[np.ravel_multi_index(heaviest, family.shape)].any()


def test_of_equally_frequent_values_the_first_is_the_reference() -> None:
    data = random_dataset(3, (3,), 2)
    data = replace(data, codes=(np.array([2, 1, 0], np.uint8),))
    assert fit("lr", data, Dag(((),), (0,)), penalty=1.0).tables.weights[0][:, 1].tolist()[0] == 0.0


def test_the_published_example() -> None:
    """Section 3.3 of the paper: 9 parameters; with the tables of Roos et al. 14."""
    data = random_dataset(100, (2,) * 5, 2)
    dag = Dag(((), (), (0,), (2,), ()), (2, 3, 4), (0, 1))
    assert fit("lr", data, dag, penalty=1.0).n_parameters == 9
    assert fit("lr_roos", data, dag, penalty=1.0).n_parameters == 14


def test_other_graphs_are_refused_by_name() -> None:
    data = random_dataset(100, (2, 3, 2), 2)
    with pytest.raises(BncliError) as caught:
        fit("lr", data, Dag(((), (), (1, 0)), (0, 1, 2)))
    assert "no arc joins 'a1' and 'a0', both parents of 'a2'" in str(caught.value)
    with pytest.raises(BncliError, match="no arc joins 'class' and 'a0', both parents of 'a1'"):
        fit("lr", data, Dag(((), (0,), ()), (1, 2)))


@given(data=datasets(max_rows=20), k=st.integers(0, 3))
def test_taken_are_exactly_the_perfect_graphs(data: Dataset, k: int) -> None:
    dag = kdb.learn(Counts(data), k=k)
    if dag.unmarried is None:
        catch("lr", data, dag)
    else:
        with pytest.raises(BncliError, match="needs a perfect graph"):
            catch("lr", data, dag)


def test_regions_are_refused() -> None:
    with pytest.raises(BncliError, match="--param lr needs a graph, not regions; use --param disc"):
        build_space_lr(Counts(random_dataset(9, (2, 2), 2)), Regions(((0, 1),)), smoothing="laplace:1")


@pytest.mark.parametrize("graph", GRAPHS_LR)
@pytest.mark.parametrize("n_labels", [2, 4])
def test_what_iterations_of_lr_have_cost(graph: str, n_labels: int) -> None:
    """|Z| counts the ones of the explicit matrix; a row counts once, whatever its weight."""
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    z = predictors(data, GRAPHS_LR[graph])
    flops = logistic_flops(z.shape[1] * (n_labels - 1), int(z.sum()), 60, n_labels)
    events: list[Any] = []
    fit("lr", data, GRAPHS_LR[graph], watch=events.append, optimizer="bfgs", penalty=1.0, max_iterations=3)
    assert [e.flops for e in events] == [flops.spent("bfgs", e.iteration, e.cll_evaluations) for e in events]


GRAPHS_LR_ROOS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "imperfect": Dag(((), (), (0, 1), (2,)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0, 3)),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS_LR_ROOS)


def indicators(data: Dataset, dag: Dag) -> Array:
    """Return the cells of the rows; the column of ones takes the place of a table over the class's parents."""
    z = oracles.indicators(dag.families(data.schema.cardinalities), data)
    return z[:, 1:] if dag.class_parents else z


@every_graph
@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_lr_roos_of_two_classes_equals_scikit_learn(graph: str, penalty: float) -> None:
    """It minimises C loss + |beta|^2 / 2 over one vector, as there is one here: C = 1 / lambda."""
    data = random_dataset(250, (3, 2, 4, 2), 2, weighted=True)
    z = indicators(data, GRAPHS_LR_ROOS[graph])
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    beta = peer.fit(z, data.labels, sample_weight=data.weights).coef_[0]
    for init in ("zero", "generative"):
        learnt = fit("lr_roos", data, GRAPHS_LR_ROOS[graph], init=init, penalty=penalty)
        assert learnt.n_parameters == len(beta)
        found = learnt.tables.cells[1]
        np.testing.assert_allclose(found[1:] if GRAPHS_LR_ROOS[graph].class_parents else found, beta, atol=1e-4)


@every_graph
@pytest.mark.parametrize("n_labels", [3, 12])
def test_lr_roos_of_more_classes_equals_a_plain_minimisation(graph: str, n_labels: int) -> None:
    data = random_dataset(200, (3, 2, 4, 2), n_labels, weighted=True)
    z, weights = indicators(data, GRAPHS_LR_ROOS[graph]), np.array(oracles.weights_of(data))
    one_hot = np.eye(n_labels)[data.labels]

    def objective(flat: Array) -> tuple[float, Array]:
        p = flat.reshape(n_labels - 1, -1)
        scores = np.column_stack([np.zeros(len(z)), z @ p.T])
        log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
        gradient = ((np.exp(log_p) - one_hot) * weights[:, np.newaxis]).T[1:] @ z + p
        return float((p**2).sum() / 2 - (weights[:, np.newaxis] * one_hot * log_p).sum()), gradient.ravel()

    start, exact = np.zeros((n_labels - 1) * z.shape[1]), {"gtol": 1e-6, "ftol": 0.0}
    peer = minimize(objective, start, jac=True, method="L-BFGS-B", options=exact)
    events: list[Any] = []
    learnt = fit("lr_roos", data, GRAPHS_LR_ROOS[graph], init="zero", penalty=1.0, watch=events.append)
    assert events[-1].penalty - events[-1].cll == pytest.approx(peer.fun, rel=1e-9)
    assert learnt.n_parameters == peer.x.size


@pytest.mark.parametrize(
    ("graph", "n_labels", "optimizer"), every_pair([*GRAPHS_LR_ROOS], [2, 3, 5], ["newton", "bfgs", "cg"])
)
def test_without_penalty_the_optimum_is_that_of_all_columns(graph: str, n_labels: int, optimizer: str) -> None:
    data = dense_dataset((2, 3, 2, 2), n_labels, copies=4)
    columns = fit("discriminative", data, GRAPHS_LR_ROOS[graph])
    learnt = fit("lr_roos", data, GRAPHS_LR_ROOS[graph], optimizer=optimizer)
    assert learnt.cll_start == pytest.approx(columns.cll_start, rel=1e-12)
    assert learnt.cll == pytest.approx(columns.cll, rel=1e-7)
    n_cells = indicators(data, GRAPHS_LR_ROOS[graph]).shape[1]
    assert learnt.n_parameters == (n_labels - 1) * n_cells < columns.n_parameters


@settings(max_examples=examples(10))
@given(data=datasets(max_rows=30, max_attributes=4), draw=st.data())
def test_the_first_class_has_no_score_of_its_own(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    learnt = fit("lr_roos", data, dag, penalty=1.0)
    assert not learnt.tables.cells[0].any()
    if dag.class_parents:
        assert not learnt.tables.bias.any()


@pytest.mark.parametrize("preconditioner", ["on", "off"])
@pytest.mark.parametrize("theta", [None, 5.0])
def test_regions_are_taken(theta: float | None, preconditioner: str) -> None:
    data, regions = dense_dataset((2, 3, 2), 3, copies=6), Regions(((0,), (0, 1), (1, 2)))
    settings = how(options={"preconditioner": preconditioner})
    found = learn_lr_roos(Counts(data), regions, settings=settings, theta=theta)
    free = learn_discriminative(Counts(data), regions, settings=how(), theta=theta)
    assert found.cll_start == pytest.approx(free.cll_start, rel=1e-12)
    assert found.cll == pytest.approx(free.cll, rel=1e-7)
    assert found.n_parameters * 3 == free.n_parameters * 2


def test_regions_that_see_an_attribute_in_two_ways_have_no_start() -> None:
    data = random_dataset(50, (4, 2), 2)
    regions = Regions(((0,), (0, 1)), bins=(None, (2, None)), groupings=((), ((0, 0, 1, 1), None)))
    with pytest.raises(BncliError, match="no generative model"):
        build_space_lr_roos(Counts(data), regions)


@every_graph
@pytest.mark.parametrize("n_labels", [2, 4])
def test_what_iterations_of_lr_roos_have_cost(graph: str, n_labels: int) -> None:
    """|Z| counts the ones of the explicit matrix; a row counts once, whatever its weight."""
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    z = indicators(data, GRAPHS_LR_ROOS[graph])
    flops = logistic_flops(z.shape[1] * (n_labels - 1), int(z.sum()), 60, n_labels)
    events: list[Any] = []
    fit("lr_roos", data, GRAPHS_LR_ROOS[graph], watch=events.append, optimizer="bfgs", penalty=1.0, max_iterations=3)
    assert [e.flops for e in events] == [flops.spent("bfgs", e.iteration, e.cll_evaluations) for e in events]


@pytest.mark.slow
@every_graph
def test_preconditioned_it_takes_about_as_many_iterations_as_all_columns(graph: str) -> None:
    data = random_dataset(2000, (6, 5, 4, 7), 3, seed=3)
    for penalty in (0.0, 1.0):
        ours, free = (fit(name, data, GRAPHS_LR_ROOS[graph], penalty=penalty) for name in ("lr_roos", "discriminative"))
        assert ours.iterations <= 1.5 * free.iterations + 3


SPACE = partial(build_space_extended, structure=TAN, smoothing="m-estimate:1")


def fit_early(data: Dataset, early_stop: str = "cv", seed: int = 0, watch: Any = silent, **changes: Any) -> Parameters:
    return learn_extended(
        Counts(data),
        TAN,
        smoothing="m-estimate:1",
        settings=replace(how(**changes), early_stop=early_stop, seed=seed),
        watch=watch,
    )


def slow_scores(data: Dataset, most: int, seed: int, **changes: Any) -> list[float]:
    """Return the held-out CLL after 0, 1, ... iterations; every fold is fitted anew for every number of iterations."""
    fold_of = stratified_folds(data.labels, FOLDS, seed)
    scores = []
    for n in range(most + 1):
        total = 0.0
        for f in range(FOLDS):
            train, rest = data.take(np.flatnonzero(fold_of != f)), data.take(np.flatnonzero(fold_of == f))
            tables = optimize(SPACE(Counts(train)), how(max_iterations=n, **changes), silent).tables
            slow = enumeration(rest, tables.families)
            total += slow.value_and_gradient(slow.flatten(tables))[0]
        scores.append(total)
    return scores


@pytest.mark.slow
@pytest.mark.parametrize(("share", "optimizer"), every_value([0.0, 0.3], ["cg", "lbfgs"]))
def test_the_best_number_of_iterations(share: float, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.engine.parameter_learners.conditional.FIRST", 12)
    data = with_missing(random_dataset(60, (3, 2, 3), 2, seed=5), share)
    scores = slow_scores(data, 12, seed=3, optimizer=optimizer)
    best, held_out = best_iterations(
        tuning_folds(Counts(data), SPACE, seed=3), how(optimizer=optimizer, max_iterations=12), watch=silent
    )
    assert best == int(np.argmax(scores))
    assert held_out == pytest.approx(max(scores))
    learnt = fit_early(data, seed=3, optimizer=optimizer, max_iterations=12)
    assert learnt.iterations == best
    assert learnt.stopped_by is (StoppedBy.CROSS_TUNING if best < 12 else StoppedBy.MAX_ITERATIONS)
    straight = optimize(SPACE(Counts(data)), how(optimizer=optimizer, max_iterations=best), silent)
    assert straight.tables.weights[0].tobytes() == learnt.tables.weights[0].tobytes()


def test_complete_rows_of_the_other_policy_too() -> None:
    data = random_dataset(400, (3, 2, 3), 3, seed=1)
    learnt = fit_early(data, init="zero")
    assert learnt.stopped_by is StoppedBy.CROSS_TUNING
    slow, _ = oracles.conditional_log_likelihood(
        learnt.tables.families, data, enumeration(data, learnt.tables.families).flatten(learnt.tables)
    )
    assert learnt.cll == pytest.approx(slow)
    assert learnt.cll > learnt.cll_start


@pytest.mark.slow
def test_long_runs_that_serve_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of 1, 2, 4, ... iterations choose like unlimited runs if the held-out likelihood rises at first."""
    data = random_dataset(4000, (3, 2, 3), 2, seed=2)
    slowly = {"optimizer": "cg", "init": "zero", "max_iterations": 60}
    folds = tuning_folds(Counts(data), SPACE, seed=0)
    at_once = best_iterations(folds, how(**slowly), watch=silent)
    monkeypatch.setattr("bncli.engine.parameter_learners.conditional.FIRST", 1)
    assert best_iterations(folds, how(**slowly), watch=silent) == at_once
    assert at_once[0] > 1


@dataclass
class MadeUp:
    """A fold with invented held-out likelihoods after every iteration; it records how far it is followed."""

    held_out: list[float]
    caps: list[int] = field(default_factory=list)

    def follow(self, settings: Any) -> tuple[list[float], bool]:
        self.caps.append(settings.max_iterations)
        return self.held_out[: self.caps[-1] + 1], self.caps[-1] >= len(self.held_out)


@pytest.mark.parametrize(
    ("peak", "n", "most", "caps", "best"),
    [
        (5, 100, 90, [8], 5),
        (6, 100, 90, [8, 16], 6),
        (10, 100, 90, [8, 16], 10),
        (11, 100, 90, [8, 16, 32], 11),
        (30, 100, 90, [8, 16, 32, 64], 30),
        (30, 100, 20, [8, 16, 20], 20),
        (6, 7, 90, [8], 6),
        (3, 100, 2, [2], 2),
    ],
)
def test_runs_are_followed_half_as_long_again_as_the_likelihood_rose(
    peak: int, n: int, most: int, caps: list[int], best: int
) -> None:
    """The likelihood rises to its peak and falls; the optimizer stops after n iterations."""
    fold = MadeUp([-abs(i - peak) - 1.0 for i in range(n)])
    assert best_iterations([fold], how(max_iterations=most), watch=silent)[0] == best
    assert fold.caps == caps


def test_the_watch_hears_of_folds_and_only_of_the_last_run() -> None:
    events: list[Event] = []
    learnt = fit_early(with_missing(random_dataset(60, (3, 2, 3), 2), 0.2), watch=events.append)
    iterations = [event.iteration for event in events if isinstance(event, Iteration)]
    assert iterations == list(range(learnt.iterations + 1))
    assert next(event.detail for event in events if isinstance(event, Progress)) == "up to 8 iterations, fold 1 of 5"


def test_seeds_and_determinism() -> None:
    data = with_missing(random_dataset(60, (3, 2, 3), 2), 0.2)
    once, twice = fit_early(data, seed=4), fit_early(data, seed=4)
    assert once.tables.weights[0].tobytes() == twice.tables.weights[0].tobytes()


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_hardly_any_rows(n_rows: int) -> None:
    learnt = fit_early(with_missing(random_dataset(n_rows, (3, 2, 3), 2), 0.3), max_iterations=20)
    assert learnt.cll >= learnt.cll_start


def test_paths_end_where_they_end_and_ties_go_to_fewer() -> None:
    for paths, best in (
        ([[-3.0, -2.0, -1.0], [-1.0, -2.0]], (2, -3.0)),
        ([[-3.0, -2.0, -2.5], [-1.0, -2.0, -1.5]], (0, -4.0)),
        ([[-1.0]], (0, -1.0)),
    ):
        assert best_iterations(list(map(MadeUp, paths)), how(max_iterations=90), watch=silent) == best


def test_many_levels_are_penalised_by_the_inverse_of_their_variance() -> None:
    """With the penalty REFERENCE the optimum is that of a ridge regression with 1 / v on every level."""
    rng = np.random.default_rng(0)
    name = rng.integers(0, 30, 700)
    labels = (rng.random(700) < softmax([np.zeros(30), rng.normal(0, 1.5, 30)], axis=0)[1][name]).astype(np.int8)
    data = dataset_of([name], labels, (30,), 2)
    structure = Regions(((0,),), method="interactions")
    settings = how(init="zero", penalty=REFERENCE["thermometer"])
    fitted = learn_discriminative(Counts(data), structure, settings=settings, coding="thermometer")
    counts = np.array([[np.sum((name == level) & (labels == y)) for y in (0, 1)] for level in range(30)], np.float64)
    v = variance_of_effects(counts)

    def loss(p: NDArray[np.float64]) -> float:
        scores = p[:2] + p[2:].reshape(30, 2)
        log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return float(-(counts * log_p).sum() + REFERENCE["thermometer"] / 2 * p[:2] @ p[:2] + 0.5 / v * p[2:] @ p[2:])

    best = minimize(loss, np.zeros(62), tol=1e-12).x
    assert isinstance(fitted.predictor, Tables)
    cells = fitted.predictor.cells
    np.testing.assert_allclose(cells[:, 1:].T, best[2:].reshape(30, 2), atol=1e-3)
    assert 0.2 < v < 5
