"""Tables that are sums of effects against scikit-learn's logistic regression on the explicit columns of effects."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters
from bncli.engine.parameter_learners import discriminative
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from tests import oracles
from tests.datasets import random_dataset
from tests.effects import dense, mixed_dataset
from tests.spaces import how
from tests.sweeps import every_pair

GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (0,)), (0, 1, 2, 3)),
    "kdb-2": Dag(((), (0,), (1, 0), (2, 1)), (0, 1, 2, 3)),
    "class below": Dag(((), (0,), (1,), ()), (1, 2), (0, 3)),
}


def cells_of(learnt: Parameters) -> np.ndarray:
    return np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)


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
    """The penalty is on the effects; turning the steps of an attribute does not change their lengths."""
    (coding, lower_orders), (n_labels, penalty) = design, classes
    kinds = ("numeric", "numeric", "missing", "categorical")
    data = mixed_dataset(random_dataset(250, (3, 2, 5, 2), n_labels, weighted=n_labels == 3), kinds)
    dag = GRAPHS[graph]
    for init in ("zero", "generative"):
        settings = how(init=init, penalty=penalty)
        learnt = discriminative.learn(
            Counts(data), dag, smoothing="m-estimate:1", coding=coding, lower_orders=lower_orders, settings=settings
        )
        families = learnt.tables.families
        design = dense(families, data, coding, lower_orders=lower_orders)
        assert learnt.n_parameters == n_labels * design.shape[1]
        z = oracles.indicators(families, data)
        scores = _peer_scores(z @ design, data, penalty)
        ours = z @ cells_of(learnt).T
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
    """Main effects as cut, a pair in coarser binnings; the main effects within the pair are the finer ones."""
    kinds = ("numeric", "missing")
    data = mixed_dataset(random_dataset(250, (6, 6), 3), kinds)
    groupings = ((None, None), ((0, 0, 1, 1, 2, 2), (0, 0, 0, 1, 1, 2)))
    regions = Regions(((0,), (1,), (0, 1)), bins=(None, 3), groupings=groupings)
    learnt = discriminative.learn(
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
    ours = z @ cells_of(learnt).T
    np.testing.assert_allclose(ours - ours.mean(axis=1, keepdims=True), scores, atol=1e-4)


def test_regions_with_groupings_have_no_generative_start() -> None:
    data = mixed_dataset(random_dataset(50, (6, 6), 2), ("numeric", "numeric"))
    regions = Regions(((0,), (0, 1)), bins=(None, 2), groupings=((None, None), ((0, 0, 0, 1, 1, 1),) * 2))
    with pytest.raises(BncliError, match="generative"):
        discriminative.learn(Counts(data), regions, theta=1.0, settings=how(init="generative", penalty=1.0))
    learnt = discriminative.learn(Counts(data), regions, theta=1.0, settings=how(init="zero", penalty=1.0))
    assert [w.shape for w in learnt.tables.weights] == [(6, 2), (4, 2)]
