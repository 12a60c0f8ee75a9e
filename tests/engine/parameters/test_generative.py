"""Compare network tables in closed form with loops, joint probabilities and scikit-learn.

Compare smoothing rules with loops, and Dirichlet back-off with exact posteriors and a Gibbs sampler."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.special import gammaln, psi
from sklearn.naive_bayes import CategoricalNB

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Model, StoppedBy, Tables
from bncli.engine.parameter_learners.missing_values import incomplete_space
from bncli.engine.parameters import generative
from bncli.engine.parameters.generative import (
    FLOOR,
    LONGEST,
    RATE,
    ROWS_PER_SLICE,
    SHAPE,
    FixedPoint,
    acll_tables,
    back_off,
    closed_form,
    generative_tables,
    log_conditional,
    pseudo_counts,
    scaled_rise,
)
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.missing_values import complete_rows, slow_posterior, with_missing
from tests.strategies import dags, datasets

RULES = ["mle", "laplace:1", "laplace:0.5", "m-estimate:1", "m-estimate:20", "fgg:5", "fgg:0.1", "bdeu:1", "bdeu:10"]
TABLES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4),
    elements=st.one_of(st.integers(0, 3).map(float), st.floats(0.01, 1e5)),
)
TAN = Dag(((), (0,), (1,)), (0, 1, 2))
drawn_rules = st.sampled_from(["mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1"])


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
    """Tables have the class last. The estimate gives up attribute parents that are listed later first."""
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


TABLES_HDP = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4),
    elements=st.one_of(st.integers(0, 3).map(float), st.floats(0.01, 1e4)),
)
Node = tuple[int, ...]


def by_loops(counts: np.ndarray, sweeps: int) -> np.ndarray:
    """Solve the equations of the module by plain repetition for every node of the tree in turn."""
    values, cards = range(len(counts)), counts.shape[1:]
    nodes = [list(itertools.product(*map(range, cards[:depth]))) for depth in range(len(cards) + 1)]
    n: dict[Node, list[float]] = {node: [float(counts[k, *node]) for k in values] for node in nodes[-1]}
    for depth in range(len(cards), 0, -1):
        for node in nodes[depth - 1]:
            n[node] = [sum(min(n[*node, v][k], 1.0) for v in range(cards[depth - 1])) for k in values]
    a: dict[Node | None, float] = {node: 1.0 for level in nodes for node in level} | {None: 1.0}

    def up(node: Node) -> Node | None:
        return node[:-1] if node else None

    for sweep in range(sweeps + 1):
        theta: dict[Node | None, list[float]] = {None: [1 / len(counts) for _ in values]}
        for node in itertools.chain(*nodes):
            back, c = theta[up(node)], a[up(node)]
            theta[node] = [(n[node][k] + c * back[k]) / (sum(n[node]) + c) for k in values]
        if sweep == sweeps:
            break
        for depth in range(len(cards), -1, -1):
            drawn = {
                node: [_draws(a[up(node)] * theta[up(node)][k], n[node][k]) for k in values] for node in nodes[depth]
            }
            for above in {up(node) for node in nodes[depth]}:
                below = [node for node in nodes[depth] if up(node) == above]
                rise = sum(psi(a[above] + sum(n[node])) - psi(a[above]) for node in below)
                a[above] = (SHAPE + sum(sum(drawn[node]) for node in below)) / (RATE + rise)
                if above is not None:
                    n[above] = [sum(drawn[node][k] for node in below) for k in values]
    return np.stack([theta[node] for node in nodes[-1]], axis=1).reshape(counts.shape)


def _draws(b: float, n: float) -> float:
    return min(b * (psi(b + n) - psi(b)), n) if n > 0 else 0.0


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2, 2), (2, 2, 3, 2)])
def test_solves_its_equations(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generative, "TOLERANCE", 1e-10)
    counts = np.random.default_rng(len(shape)).negative_binomial(0.5, 0.05, shape).astype(float)
    np.testing.assert_allclose(back_off(counts), by_loops(counts, 600), rtol=1e-5)


@pytest.mark.parametrize(
    ("counts", "at_most"),
    [([[1, 0], [0, 0]], 0.1), ([[3, 0], [1, 2]], 0.07), ([[20, 4], [5, 9]], 0.03), ([[9, 0], [0, 9]], 0.03)],
)
def test_close_to_the_exact_posterior_mean(counts: list[list[int]], at_most: float) -> None:
    """With two values and a binary parent the exact mean sums over the marginal and both concentrations.

    With hardly any rows, one estimate of a concentration does not represent its whole distribution; theta then stays
    nearer to the back-off.
    """
    exact, estimate = (f(np.array(counts, float)) for f in (_integrated, back_off))
    np.testing.assert_allclose(estimate, exact, atol=at_most)
    if at_most > 0.05:
        assert (np.abs(estimate - 0.5) < np.abs(exact - 0.5)).all()


def _integrated(counts: np.ndarray) -> np.ndarray:
    concentrations = np.exp(np.linspace(math.log(1e-3), math.log(200), 40))
    prior = concentrations**SHAPE * np.exp(-RATE * concentrations)  # of ln a
    theta = (np.arange(200) + 0.5) / 200
    a0, p, a = np.meshgrid(concentrations, theta, concentrations, indexing="ij")
    prior_a0, _, prior_a = np.meshgrid(prior, theta, prior, indexing="ij")
    half = a0 / 2
    log_weight = gammaln(a0) - 2 * gammaln(half) + (half - 1) * (np.log(p) + np.log1p(-p))
    for one, other in counts.T:
        log_weight += gammaln(a) - gammaln(a + one + other)
        log_weight += gammaln(a * p + one) - gammaln(a * p) + gammaln(a * (1 - p) + other) - gammaln(a * (1 - p))
    weight = np.exp(log_weight - log_weight.max()) * prior_a0 * prior_a
    means = [((one + a * p) / (one + other + a) * weight).sum() / weight.sum() for one, other in counts.T]
    return np.array([means, 1 - np.array(means)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_close_to_a_gibbs_sampler(seed: int) -> None:
    """There are three levels, with distributions drawn from the model itself and 15 rows per node."""
    rng = np.random.default_rng(seed)
    marginal = rng.dirichlet(np.full(3, 2.0))
    by_class = rng.dirichlet(5 * marginal, 2)
    theta = np.array([[rng.dirichlet(3 * given_class) for _ in range(4)] for given_class in by_class])
    counts = np.moveaxis(rng.multinomial(15, theta), -1, 0).astype(float)
    sampled = gibbs(counts, rng, sweeps=3000)
    distance = np.abs(back_off(counts) - sampled)
    assert distance.max() < 0.04
    relative_frequency = counts / counts.sum(axis=0)
    assert distance.max() < np.abs(relative_frequency - sampled).max() / 3


def gibbs(counts: np.ndarray, rng: np.random.Generator, sweeps: int) -> np.ndarray:
    """Return posterior means of theta; back-offs, new draws and concentrations are sampled in turn."""
    depth = counts.ndim - 1
    n = [counts.sum(axis=tuple(range(level + 1, counts.ndim))) for level in range(depth + 1)]
    a = [np.ones(()) if level == 0 else np.ones((*counts.shape[1:level], 1)) for level in range(depth + 1)]
    total = np.zeros(counts.shape)
    for sweep in range(sweeps):
        bases, theta = [], np.full(len(counts), 1 / len(counts))
        for level in range(depth + 1):
            bases.append(np.broadcast_to(theta if level == 0 else theta[..., np.newaxis], n[level].shape))
            drawn = rng.standard_gamma(np.maximum(n[level] + a[level] * bases[level], 1e-9)) + 1e-300
            theta = drawn / drawn.sum(axis=0)
        if sweep >= sweeps // 10:
            total += (counts + a[-1] * bases[-1]) / (counts.sum(axis=0) + a[-1])
        for level in range(depth, -1, -1):
            new = _sampled_draws(a[level] * bases[level], n[level], rng)
            nodes = np.maximum(n[level].sum(axis=0), 1e-9)
            log_q = -np.log(np.maximum(rng.beta(np.broadcast_to(a[level], nodes.shape), nodes), 1e-75))
            axis, keep = (-1, True) if level else (None, False)
            drawn_here, rise = (np.sum(each, axis=axis, keepdims=keep) for each in (new.sum(axis=0), log_q))
            a[level] = rng.standard_gamma(SHAPE + drawn_here) / (RATE + rise)
            if level:
                n[level - 1] = new.sum(axis=-1)
    return total / (sweeps - sweeps // 10)


def _sampled_draws(b: np.ndarray, n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how many of n draws were new: the i-th is new with probability b / (b + i)."""
    i = np.arange(max(1, int(n.max()))).reshape(-1, *(1,) * n.ndim)
    return ((rng.random((len(i), *n.shape)) * (b + i) < b) & (i < n)).sum(axis=0).astype(float)


@given(TABLES_HDP)
def test_probabilities(counts: np.ndarray) -> None:
    theta = back_off(counts)
    assert theta.shape == counts.shape
    assert (theta > 0).all()
    np.testing.assert_allclose(theta.sum(axis=0), 1.0, rtol=1e-12)


@given(TABLES_HDP, st.randoms(use_true_random=False))
def test_permuted_values_give_permuted_probabilities(counts: np.ndarray, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    orders = np.ix_(*(rng.permutation(size) for size in counts.shape))
    np.testing.assert_allclose(back_off(counts[orders]), back_off(counts)[orders], rtol=1e-6)


@pytest.mark.slow
def test_rounding_does_not_decide_where_the_likelihood_is_flat() -> None:
    """Twelve rows of one class occur at three of its nodes: the concentrations of two levels compensate each other."""
    counts = np.zeros((4, 4, 2))
    counts[[2, 3, 3], [1, 2, 3], 1] = [1, 9, 2]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        orders = np.ix_(*(rng.permutation(size) for size in counts.shape))
        np.testing.assert_allclose(back_off(counts[orders]), back_off(counts)[orders], rtol=1e-10)


def test_what_was_never_met_is_its_back_off() -> None:
    counts = np.zeros((3, 3, 2, 2))
    counts[:, 0, 0, 0], counts[:, 1, 0, 1], counts[:, 1, 1, 0] = [5, 1, 0], [0, 2, 2], [0, 1, 7]
    theta = back_off(counts)
    np.testing.assert_allclose(theta[:, 0, 1, 0], theta[:, 0, 1, 1])  # neither met: both the class's
    assert not np.allclose(theta[:, 0, 1, 0], theta[:, 0, 0, 1])  # that one knows a parent more
    unmet = theta[:, 2].reshape(3, -1)  # a class without rows: the marginal
    np.testing.assert_allclose(unmet, np.repeat(unmet[:, :1], 4, axis=1))


def test_no_rows_at_all_are_uniform() -> None:
    np.testing.assert_allclose(back_off(np.zeros((4, 2, 3))), 0.25)


def test_many_rows_are_left_as_they_are() -> None:
    rng = np.random.default_rng(0)
    frequency = rng.dirichlet(np.ones(3), (2, 4)).transpose(2, 0, 1)
    np.testing.assert_allclose(back_off(1e9 * frequency), frequency, atol=1e-7)


def test_parents_that_say_nothing_are_forgotten() -> None:
    """With forty nodes of 10 rows that do not depend on the parent, the estimate beats every single m."""
    rng = np.random.default_rng(1)
    truth = np.array([0.1, 0.3, 0.6])
    counts = rng.multinomial(10, truth, (2, 20)).transpose(2, 0, 1).astype(float)
    error = np.abs(back_off(counts) - truth[:, np.newaxis, np.newaxis]).max()
    for m in (0.5, 1, 2, 5, 10, 20):
        estimate = (counts + m / 3) / (counts.sum(axis=0) + m)
        assert error < np.abs(estimate - truth[:, np.newaxis, np.newaxis]).max()


def test_parents_that_say_all_are_believed() -> None:
    counts = np.zeros((4, 2, 4))
    counts[np.arange(4), :, np.arange(4)] = 6
    counts[0, 0, 0] = 0  # never met
    theta = back_off(counts)
    assert theta[1, 0, 1] > 0.95
    np.testing.assert_allclose(theta[:, 0, 0], [0.25, 0.25, 0.25, 0.25], atol=0.1)


@pytest.mark.parametrize("weight", [1e-300, 1e-6, 0.5, 1e12, 1e300])
def test_weights_of_any_size(weight: float) -> None:
    for counts in (np.full((3, 2, 2), weight), weight * np.eye(3)[:, :, np.newaxis], np.array([weight, 0, 1])):
        theta = back_off(counts)
        assert np.isfinite(np.log(theta)).all()
        np.testing.assert_allclose(theta.sum(axis=0), 1.0)


def test_the_input_is_left_alone_hdp() -> None:
    counts = np.array([[1.0, 0.0], [2.0, 0.0]])
    back_off(counts)
    assert counts.tolist() == [[1.0, 0.0], [2.0, 0.0]]


def rise(x: float, n: float) -> float:
    return float(scaled_rise(np.array([x]), np.array([n]))[0])


@given(st.floats(-300, 15).map(lambda power: 10.0**power), st.integers(0, 300))
def test_whole_numbers_of_draws_are_a_sum(x: float, n: int) -> None:
    assert rise(x, float(n)) == pytest.approx(math.fsum(x / (x + i) for i in range(n)), rel=1e-11)


@given(st.floats(0.1, 100), st.floats(0.5, 1e6))
def test_is_the_difference_of_two_values_of_digamma(x: float, n: float) -> None:
    assert rise(x, n) == pytest.approx(x * (psi(x + n) - psi(x)), rel=1e-10)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_rises_add_up(x: float, n: float, more: float) -> None:
    assert rise(x, n + more) == pytest.approx(rise(x, n) + x / (x + n) * rise(x + n, more), rel=1e-9)


def test_limits() -> None:
    assert rise(5.0, 0.0) == 0.0
    assert rise(1e-300, 7.0) == pytest.approx(1.0)  # all draws repeat the first
    assert rise(1e18, 7.0) == pytest.approx(7.0)  # no draw repeats another
    assert rise(1e-300, 1e300) == pytest.approx(1.0)
    assert rise(2.0, 1e300) == pytest.approx(2.0 * (300 * math.log(10) - float(psi(2.0))))


def test_the_expected_number_of_new_draws_by_enumeration() -> None:
    """Enumerate every way in which each of five draws is new or a repetition."""
    x, n = 0.7, 5
    expected = 0.0
    for pattern in range(2**n):
        new = [(pattern >> i) & 1 for i in range(n)]
        chance = math.prod(x / (x + i) if new[i] else i / (x + i) for i in range(n))
        expected += chance * sum(new)
    assert rise(x, n) == pytest.approx(expected, rel=1e-11)


@given(st.floats(0.0, 0.95), st.floats(-1, 1))
def test_a_line_is_solved_by_one_secant(slope: float, solution: float) -> None:
    search = FixedPoint(np.zeros(1))
    for _ in range(2):
        search = search.stepped(solution + slope * (search.x - solution))
    np.testing.assert_allclose(search.x, solution, atol=1e-9)


def test_many_unknowns_each_have_their_own_secant() -> None:
    target, slope = np.array([1.0, -2.0, 0.5]), np.array([0.9, 0.1, -0.5])
    search = FixedPoint(np.zeros(3))
    assert search.residual == np.inf
    steps = 0
    while search.residual > 1e-9:
        search = search.stepped(target + slope * (search.x - target))
        steps += 1
    np.testing.assert_allclose(search.x, target, atol=1e-8)
    assert steps < 40


def test_a_curve_on_which_repetition_creeps() -> None:
    """For g(x) = x - x^3 / 10, whose slope tends to 1, plain repetition needs some 500 steps to 0.1."""
    search, steps = FixedPoint(np.ones(1)), 0
    while abs(search.x[0]) > 0.1:
        search = search.stepped(search.x - search.x**3 / 10)
        steps += 1
    assert steps < 40


def test_no_step_is_longer_than_the_limit() -> None:
    search = FixedPoint(np.zeros(2)).stepped(np.array([1e9, -1e9]))
    assert search.x.tolist() == [LONGEST, -LONGEST]


def test_nothing_to_find_is_found() -> None:
    assert FixedPoint(np.zeros(0)).stepped(np.zeros(0)).residual == 0.0


def log_cpt(data: Dataset, child: int | None, parents: tuple[int, ...], rule: str, row: int, y: int) -> float:
    """Return ln P(child = its value in `row` | parents as in `row`, class y); for child None, P(y) itself."""
    n = data.schema.cardinalities
    if child is None:
        counts = np.moveaxis(oracles.count(data, parents), -1, 0)
        index, value = tuple(int(data.codes[i][row]) for i in parents), y
        shape = tuple(n[i] for i in parents)
    else:
        counts = oracles.count(data, (child, *parents))
        index, value = (*(int(data.codes[i][row]) for i in parents), y), int(data.codes[child][row])
        shape = (*(n[i] for i in parents), data.n_labels)
    theta = oracles.smoothed(counts.reshape(len(counts), -1), rule).reshape(len(counts), *shape)
    return math.log(theta[(value, *index)])


@given(datasets(max_rows=15, max_attributes=4), st.data(), drawn_rules)
def test_scores_are_the_log_joint_of_the_network(data: Dataset, draw: st.DataObject, rule: str) -> None:
    """The class may be at any place: factors without the class cancel in P(y | x), the others add up."""
    dag = draw.draw(dags(len(data.codes)))
    tables = generative_tables(Counts(data), dag, rule)
    for t in range(min(data.n_rows, 5)):
        for y in range(data.n_labels):
            score = float(tables.bias[y])
            for family, w in zip(tables.families, tables.weights, strict=True):
                score += float(w[oracles.cell(family, data, t), y])
            expected = log_cpt(data, None, dag.class_parents, rule, t, y)
            expected += sum(log_cpt(data, i, dag.parents[i], rule, t, y) for i in dag.class_children)
            assert score == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_a_class_with_parents_has_no_bias() -> None:
    data = random_dataset(30, (2, 3), 3)
    tables = generative_tables(Counts(data), Dag(((), ()), (1,), (0,)), "m-estimate:1")
    assert tables.bias.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(np.exp(tables.weights[1]).sum(axis=1), 1.0)


def test_hdp_forgets_the_parents_from_the_last_listed_to_the_class() -> None:
    data = random_dataset(60, (2, 3, 2), 3)
    tables = generative_tables(Counts(data), Dag(((2, 1), (), ()), (0,), ()), "hdp")
    theta = back_off(oracles.count(data, (0, 2, 1)).transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(np.exp(tables.weights[0]), theta.reshape(-1, 3), rtol=1e-12)
    np.testing.assert_allclose(np.exp(tables.bias), back_off(oracles.count(data, ())), rtol=1e-12)
    other_way = generative_tables(Counts(data), Dag(((1, 2), (), ()), (0,), ()), "hdp")
    assert not np.allclose(other_way.weights[0].reshape(2, 3, 2, 3).transpose(0, 2, 1, 3), np.log(theta))


def test_hdp_of_a_class_with_parents() -> None:
    data = random_dataset(60, (2, 3), 3)
    tables = generative_tables(Counts(data), Dag(((), ()), (), (1, 0)), "hdp")
    theta = back_off(oracles.count(data, (1, 0)).transpose(2, 0, 1))
    np.testing.assert_allclose(np.exp(tables.weights[0]).T, theta.reshape(3, -1), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_naive_bayes_with_laplace_is_scikit_learns(alpha: float) -> None:
    """scikit-learn smooths the attributes only; its class prior is the relative frequency."""
    data = random_dataset(200, (3, 4, 2), 3, weighted=True)
    dag = Dag(((), (), ()), (0, 1, 2))
    tables = generative_tables(Counts(data), dag, f"laplace:{alpha}")
    x = np.stack(data.codes, axis=1).astype(int)
    peer = CategoricalNB(alpha=alpha, min_categories=[3, 4, 2]).fit(x, data.labels, sample_weight=data.weights)
    for weights, log_theta in zip(tables.weights, peer.feature_log_prob_, strict=True):
        np.testing.assert_allclose(weights.T, log_theta, rtol=1e-12)
    class_counts = oracles.count(data, ())
    prior = (class_counts + alpha) / (class_counts.sum() + 3 * alpha)
    np.testing.assert_allclose(np.exp(tables.bias), prior, rtol=1e-12)


@given(datasets(max_rows=15, max_attributes=4), st.data(), drawn_rules, st.sampled_from([0.0, 0.3, 1.0]))
def test_with_missing_values_every_node_has_the_table_of_the_rows_that_have_its_family(
    data: Dataset, draw: st.DataObject, rule: str, share: float
) -> None:
    """Nodes without the class as a parent have the same column for every class."""
    dag, incomplete = draw.draw(dags(len(data.codes))), with_missing(data, share)
    tables = generative_tables(Counts(incomplete), dag, rule)
    assert {f.child for f in tables.families} >= set(dag.nodes) - set(dag.class_parents)
    for family, w in zip(tables.families, tables.weights, strict=True):
        counts = oracles.count(complete_rows(incomplete, set(family.attributes)), family.attributes)
        if family.child is None:
            expected = oracles.smoothed(np.moveaxis(counts, -1, 0).reshape(data.n_labels, -1), rule).T
        elif family.child in dag.class_children:
            expected = oracles.smoothed(counts.reshape(len(counts), -1), rule).reshape(family.n_cells, -1)
        else:
            alone = oracles.smoothed(counts.sum(axis=-1).reshape(len(counts), -1), rule)
            expected = np.repeat(alone.reshape(family.n_cells, 1), data.n_labels, axis=1)
        np.testing.assert_allclose(np.exp(w), expected, rtol=1e-10)


def test_the_conditional_log_likelihood_of_rows_with_missing_values() -> None:
    incomplete = with_missing(random_dataset(60, (2, 3, 2), 3, weighted=True), 0.3)
    parameters = closed_form(Counts(incomplete), generative_tables(Counts(incomplete), TAN, "m-estimate:1"))
    model = Model(incomplete.schema, TAN, parameters.tables, Recipe(), 60, "1")
    assert incomplete.weights is not None
    slow = [
        float(w)
        * slow_posterior(model, {i: int(c[t]) for i, c in enumerate(incomplete.codes)})[int(incomplete.labels[t])]
        for t, w in enumerate(incomplete.weights)
    ]
    assert parameters.cll == parameters.cll_start == pytest.approx(math.fsum(slow), rel=1e-10)


@pytest.mark.parametrize("n_labels", [2, 5])
def test_the_log_likelihood_of_a_closed_form_is_that_of_repeated_passes(n_labels: int) -> None:
    """One goes through the rows by slices, the other fuses them."""
    data = random_dataset(2 * ROWS_PER_SLICE + 9, (2, 3, 2), n_labels, weighted=True)
    tables = generative_tables(Counts(data), TAN, "m-estimate:1")
    likelihood = conditional_likelihood(data, tables.families)
    expected, _ = likelihood.value_and_gradient(tables.cells)
    assert closed_form(Counts(data), tables).cll == pytest.approx(expected, rel=1e-12)


def test_a_table_that_all_classes_share_counts_once() -> None:
    """The learners count the parameters of the same network in this way too."""
    incomplete = with_missing(random_dataset(60, (2, 3, 2), 3), 0.3)
    dag = Dag(((), (0,), (1,)), (0, 1))
    parameters = closed_form(Counts(incomplete), generative_tables(Counts(incomplete), dag, "m-estimate:1"))
    own, shared = 3 + (2 + 3 * 2) * 3, 2 * 3
    space = incomplete_space(Counts(incomplete), dag, "m-estimate:1")
    assert parameters.n_parameters == space.coordinates.n_parameters == own + shared


def test_regions_are_no_network() -> None:
    with pytest.raises(BncliError, match="cannot be learned for regions; use --param kbma, kmap or discriminative"):
        generative_tables(Counts(random_dataset(9, (2, 2), 2)), Regions(((0, 1),)), "m-estimate:1")


Array = NDArray[np.float64]
BETA = np.asarray(0.3)


def slow_acll(data: Dataset, tables: Tables, beta: float) -> float:
    """Return sum over rows of alpha ln U_y - beta sum over c != y of ln U_c, with ln U the scores."""
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
    """Return other probabilities, each at least `bound`."""
    drawn = rng.gamma(0.5, size=log_theta.shape) + 1e-9
    drawn /= drawn.sum(axis=axis, keepdims=True)
    return np.asarray(np.log(bound + (1 - bound * log_theta.shape[axis]) * drawn))


@given(datasets(max_rows=30, max_attributes=3), st.data(), st.sampled_from([0.5, 5.0]))
def test_no_other_parameters_are_better(data: Dataset, draw: st.DataObject, least: float) -> None:
    """theta is at least N' / (sum of N+); this sum is N' / theta of the least cell in a column with a clipped cell."""
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
