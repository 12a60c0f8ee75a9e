"""Compare network tables in closed form with loops, joint probabilities and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Model, StoppedBy, Tables
from bncli.engine.parameter_learners.missing_values import incomplete_space
from bncli.engine.parameters.generative import ROWS_PER_SLICE, acll_tables, closed_form, generative_tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.smoothing import back_off
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.missing_values import complete_rows, slow_posterior, with_missing
from tests.strategies import dags, datasets

TAN = Dag(((), (0,), (1,)), (0, 1, 2))
RULES = st.sampled_from(["mle", "laplace:1", "m-estimate:1", "fgg:5", "bdeu:1"])


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


@given(datasets(max_rows=15, max_attributes=4), st.data(), RULES)
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


@given(datasets(max_rows=15, max_attributes=4), st.data(), RULES, st.sampled_from([0.0, 0.3, 1.0]))
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
