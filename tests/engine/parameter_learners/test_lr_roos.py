"""Logistic regression on cells with class 0 fixed at 0: the explicit model, scikit-learn, and the K free columns."""

from __future__ import annotations

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
from bncli.engine.parameter_learners import discriminative, lr_roos
from bncli.engine.parameters.flops import logistic
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.spaces import fit, how
from tests.strategies import dags, datasets

Array = NDArray[np.float64]

GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "imperfect": Dag(((), (), (0, 1), (2,)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0, 3)),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS)


def indicators(data: Dataset, dag: Dag) -> Array:
    """The rows' cells; the column of ones stands for a table over the class's parents that there is not."""
    z = oracles.indicators(dag.families(data.schema.cardinalities), data)
    return z[:, 1:] if dag.class_parents else z


def contrasts(learnt: Parameters) -> Array:
    return np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)


@every_graph
@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_two_classes_equal_scikit_learn(graph: str, penalty: float) -> None:
    """It minimises C loss + |beta|^2 / 2 over one vector, as there is one here: C = 1 / lambda."""
    data = random_dataset(250, (3, 2, 4, 2), 2, weighted=True)
    z = indicators(data, GRAPHS[graph])
    peer = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cg")
    beta = peer.fit(z, data.labels, sample_weight=data.weights).coef_[0]
    for init in ("zero", "generative"):
        learnt = fit("lr_roos", data, GRAPHS[graph], init=init, penalty=penalty)
        assert learnt.n_parameters == len(beta)
        found = contrasts(learnt)[1]
        np.testing.assert_allclose(found[1:] if GRAPHS[graph].class_parents else found, beta, atol=1e-4)


@every_graph
@pytest.mark.parametrize("n_labels", [3, 12])
def test_more_classes_equal_a_plain_minimisation(graph: str, n_labels: int) -> None:
    data = random_dataset(200, (3, 2, 4, 2), n_labels, weighted=True)
    z, weights = indicators(data, GRAPHS[graph]), np.array(oracles.weights_of(data))
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
    learnt = fit("lr_roos", data, GRAPHS[graph], init="zero", penalty=1.0, watch=events.append)
    assert events[-1].penalty - events[-1].cll == pytest.approx(peer.fun, rel=1e-9)
    assert learnt.n_parameters == peer.x.size


@every_graph
@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("optimizer", ["newton", "bfgs", "cg"])
def test_without_penalty_the_optimum_is_that_of_all_columns(graph: str, n_labels: int, optimizer: str) -> None:
    data = dense_dataset((2, 3, 2, 2), n_labels, copies=4)
    columns = fit("discriminative", data, GRAPHS[graph])
    learnt = fit("lr_roos", data, GRAPHS[graph], optimizer=optimizer)
    assert learnt.cll_start == pytest.approx(columns.cll_start, rel=1e-12)
    assert learnt.cll == pytest.approx(columns.cll, rel=1e-7)
    n_cells = indicators(data, GRAPHS[graph]).shape[1]
    assert learnt.n_parameters == (n_labels - 1) * n_cells < columns.n_parameters


@settings(max_examples=30)
@given(data=datasets(max_rows=30, max_attributes=4), draw=st.data())
def test_the_first_class_has_no_score_of_its_own(data: Dataset, draw: st.DataObject) -> None:
    dag = draw.draw(dags(len(data.codes)))
    learnt = fit("lr_roos", data, dag, penalty=1.0)
    assert not contrasts(learnt)[0].any()
    if dag.class_parents:
        assert not learnt.tables.bias.any()


@pytest.mark.parametrize("preconditioner", ["on", "off"])
@pytest.mark.parametrize("theta", [None, 5.0])
def test_regions_are_taken(theta: float | None, preconditioner: str) -> None:
    data, regions = dense_dataset((2, 3, 2), 3, copies=6), Regions(((0,), (0, 1), (1, 2)))
    settings = how(options={"preconditioner": preconditioner})
    found = lr_roos.learn(Counts(data), regions, settings=settings, theta=theta)
    free = discriminative.learn(Counts(data), regions, settings=how(), theta=theta)
    assert found.cll_start == pytest.approx(free.cll_start, rel=1e-12)
    assert found.cll == pytest.approx(free.cll, rel=1e-7)
    assert found.n_parameters * 3 == free.n_parameters * 2


def test_regions_that_see_an_attribute_in_two_ways_have_no_start() -> None:
    data = random_dataset(50, (4, 2), 2)
    regions = Regions(((0,), (0, 1)), bins=(None, (2, None)), groupings=((), ((0, 0, 1, 1), None)))
    with pytest.raises(BncliError, match="no generative model"):
        lr_roos.space(Counts(data), regions)


@every_graph
@pytest.mark.parametrize("n_labels", [2, 4])
def test_what_iterations_have_cost(graph: str, n_labels: int) -> None:
    """|Z| are the ones of the explicit matrix; rows count once whatever they weigh."""
    data = random_dataset(60, (3, 2, 4, 2), n_labels, weighted=True)
    z = indicators(data, GRAPHS[graph])
    costs = logistic(z.shape[1] * (n_labels - 1), int(z.sum()), 60, n_labels)
    events: list[Any] = []
    fit("lr_roos", data, GRAPHS[graph], watch=events.append, optimizer="bfgs", penalty=1.0, max_iterations=3)
    assert [e.flops for e in events] == [costs.spent("bfgs", e.iteration, e.cll_evaluations) for e in events]


@every_graph
def test_preconditioned_it_takes_about_as_many_iterations_as_all_columns(graph: str) -> None:
    data = random_dataset(2000, (6, 5, 4, 7), 3, seed=3)
    for penalty in (0.0, 1.0):
        ours, free = (fit(name, data, GRAPHS[graph], penalty=penalty) for name in ("lr_roos", "discriminative"))
        assert ours.iterations <= 1.5 * free.iterations + 3
