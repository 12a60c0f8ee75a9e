"""Logistic regression on complete sets against the explicit model: scikit-learn for two classes, scipy for more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters
from bncli.engine.parameter_learners import lr
from bncli.engine.parameters.flops import logistic
from bncli.engine.structure_learners import kdb
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from tests import oracles
from tests.datasets import random_dataset
from tests.spaces import catch, fit
from tests.strategies import datasets, graphs_for

Array = NDArray[np.float64]

GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "triangle": Dag(((), (0,), (1, 0), (2,)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0,)),
}


def cells_of(learnt: Parameters) -> Array:
    return np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)


def predictors(data: Dataset, dag: Dag) -> Array:
    """The rows' explicit indicators of complete sets, the most frequent values as references, the ones first."""
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


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_two_classes_equal_scikit_learn(graph: str, penalty: float) -> None:
    """It minimises C loss + |beta|^2 / 2 over one vector, as there is one here: C = 1 / lambda."""
    data = random_dataset(250, (3, 2, 4, 2), 2, weighted=True)
    z = predictors(data, GRAPHS[graph])
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    beta = peer.fit(z, data.labels, sample_weight=data.weights).coef_[0]
    for init in ("zero", "generative"):
        learnt = fit("lr", data, GRAPHS[graph], init=init, penalty=penalty)
        assert learnt.n_parameters == len(beta)
        scores = oracles.indicators(learnt.tables.families, data) @ cells_of(learnt).T
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], z @ beta, atol=1e-4)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n_labels", [3, 12])
def test_more_classes_equal_a_plain_minimisation(graph: str, n_labels: int) -> None:
    data = random_dataset(200, (3, 2, 4, 2), n_labels, weighted=True)
    z, weights = predictors(data, GRAPHS[graph]), np.array(oracles.weights_of(data))
    one_hot = np.eye(n_labels)[data.labels]

    def objective(flat: Array) -> tuple[float, Array]:
        p = flat.reshape(n_labels - 1, -1)
        scores = np.column_stack([np.zeros(len(z)), z @ p.T])
        log_p = scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
        gradient = ((np.exp(log_p) - one_hot) * weights[:, np.newaxis]).T[1:] @ z + p
        return float((p**2).sum() / 2 - (weights[:, np.newaxis] * one_hot * log_p).sum()), gradient.ravel()

    start, exact = np.zeros((n_labels - 1) * z.shape[1]), {"gtol": 1e-6, "ftol": 0.0}
    peer = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=exact)
    events: list[Any] = []
    learnt = fit("lr", data, GRAPHS[graph], init="zero", penalty=1.0, watch=events.append)
    assert events[-1].penalty - events[-1].cll == pytest.approx(peer.fun, rel=1e-9)
    assert learnt.n_parameters == peer.x.size


@settings(max_examples=30)
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
        lr.space(Counts(random_dataset(9, (2, 2), 2)), Regions(((0, 1),)), smoothing="laplace:1")


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n_labels", [2, 4])
def test_what_iterations_have_cost(graph: str, n_labels: int) -> None:
    """|Z| are the ones of the explicit matrix; rows count once whatever they weigh."""
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    z = predictors(data, GRAPHS[graph])
    costs = logistic(z.shape[1] * (n_labels - 1), int(z.sum()), 60, n_labels)
    events: list[Any] = []
    fit("lr", data, GRAPHS[graph], watch=events.append, optimizer="bfgs", penalty=1.0, max_iterations=3)
    assert [e.flops for e in events] == [costs.spent("bfgs", e.iteration, e.cll_evaluations) for e in events]
