"""Free tables against scikit-learn's logistic regression on the explicit indicators of the cells."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters, StoppedBy, Tables
from bncli.engine.parameter_learners import discriminative, kbma
from bncli.engine.structures.structure import Dag, Regions, SearchTrace
from tests import oracles
from tests.datasets import random_dataset
from tests.paths import path_of
from tests.spaces import RICH_SPACES, choose_penalty, fit, how
from tests.sweeps import every_pair

GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "kdb-2": Dag(((), (0,), (1, 0), (2, 1)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0, 3)),
}


def cells_of(learnt: Parameters) -> np.ndarray:
    return np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)


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
    for init in ("zero", "generative"):
        learnt = fit("discriminative", data, GRAPHS[graph], init=init, penalty=penalty)
        peer = peer_cells(learnt, data, penalty)
        cll, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, peer)
        ours = learnt.cll - penalty / 2 * np.square(cells_of(learnt)).sum()
        assert ours == pytest.approx(cll - penalty / 2 * np.square(peer).sum(), rel=1e-9)
        assert learnt.cll == pytest.approx(cll, rel=1e-6)
        np.testing.assert_allclose(cells_of(learnt), peer, atol=1e-4)


def test_penalised_tables_sum_to_nothing_over_the_classes() -> None:
    learnt = fit("discriminative", random_dataset(200, (3, 4), 3), Dag(((), ()), (0, 1)), penalty=1.0)
    np.testing.assert_allclose(cells_of(learnt).sum(axis=0), 0.0, atol=1e-6)


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
    """The first attribute is the class."""
    data = random_dataset(60, (n_labels, 2), n_labels, weighted=weighted)
    data = Dataset(data.schema, (data.labels, data.codes[1]), data.labels, data.weights)
    learnt = fit(name, data, Dag(((), ()), (0, 1)), tolerance=1e-8)
    assert learnt.stopped_by is StoppedBy.SEPARABLE
    assert np.isfinite(cells_of(learnt)).all()
    assert fit(name, data, Dag(((), ()), (0, 1)), tolerance=1e-8, penalty=1.0).stopped_by is not StoppedBy.SEPARABLE


REGIONS = Regions(((0,), (0, 1), (1, 2), (0, 2), (3,)))
"""A triangle, which no network with these tables could be."""


@pytest.mark.parametrize("n_labels", [2, 3, 12])
@pytest.mark.parametrize("optimizer", ["newton", "lbfgs", "cg"])
def test_regions_equal_scikit_learn(n_labels: int, optimizer: str) -> None:
    data = random_dataset(250, (3, 2, 4, 2), n_labels, weighted=n_labels == 3)
    for init in ("zero", "generative"):
        settings = how(init=init, penalty=1.0, optimizer=optimizer)
        learnt = discriminative.learn(Counts(data), REGIONS, settings=settings)
        assert [f.attributes for f in learnt.tables.families] == [(0, 1), (1, 2), (0, 2), (3,)]
        peer = peer_cells(learnt, data, 1.0)
        cll, _ = oracles.conditional_log_likelihood(learnt.tables.families, data, peer)
        assert learnt.cll == pytest.approx(cll, abs=1e-4)
        np.testing.assert_allclose(cells_of(learnt), peer, atol=2e-3)


@pytest.mark.parametrize("theta", [None, 0.1, 5.0])
def test_on_regions_the_optimizer_starts_from_the_kikuchi_model(theta: float | None) -> None:
    data = random_dataset(250, (3, 2, 4, 2), 3)
    options = {} if theta is None else {"theta": theta}
    learnt = discriminative.learn(Counts(data), REGIONS, settings=how(penalty=1e-3), **options)
    expected = kbma.learn(Counts(data), REGIONS, theta=1.0 if theta is None else theta)
    assert learnt.cll_start == pytest.approx(path_of(expected).steps[-1].log_likelihood, rel=1e-9)
    assert learnt.cll > learnt.cll_start
    assert isinstance(learnt.predictor, Tables)


def test_only_the_regions_of_the_best_step_have_tables() -> None:
    data = random_dataset(250, (3, 2, 4, 2), 2)
    trace = SearchTrace((1, 2, 3, 4), (-4.0, -3.0, -2.0, -1.0), (-4.0, -3.0, -2.0, -9.0), 2)
    regions = Regions(((0,), (1,), (0, 1)), trace)
    learnt = discriminative.learn(Counts(data), regions, settings=how(penalty=1.0))
    assert [f.attributes for f in learnt.tables.families] == [(0,), (1,)]


def test_the_penalty_on_regions_may_be_chosen_by_cross_validation() -> None:
    data = random_dataset(250, (3, 2, 4, 2), 2)
    chosen = choose_penalty(data, lambda counts: discriminative.space(counts, REGIONS, theta=1.0), center=0.0, seed=0)
    assert chosen.penalty in [one.penalty for one in chosen.tried]
