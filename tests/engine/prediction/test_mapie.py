"""Prediction sets against those of MAPIE on the same probabilities: split conformal with the score 1 - P, LAC there.

By class MAPIE has no sets of its own: a label is in ours where it is in those that MAPIE makes of its rows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import DecisionRule, HeldOutScores, PredictionSets
from bncli.engine.prediction.decision_rules import Decider

LABELS = ("a", "b", "c")


class Said(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Rows that are probabilities, as the predictions of a classifier."""

    def __init__(self) -> None:
        self.classes_ = np.arange(len(LABELS))

    def fit(self, rows: Any, labels: Any) -> Said:
        """There is nothing to learn."""
        return self

    def predict_proba(self, rows: Array) -> Array:
        """The rows."""
        return rows

    def predict(self, rows: Array) -> Index:
        """The most probable labels."""
        return np.asarray(rows.argmax(axis=1))


def by_mapie(p: Array, labels: Index, new: Array, alpha: float) -> Mask:
    """Whether each label is in the set of each new row, (rows, K)."""
    mapie = pytest.importorskip("mapie.classification", reason="the extra `peers` is not installed")
    classifier = mapie.SplitConformalClassifier(Said(), confidence_level=1 - alpha, conformity_score="lac")
    classifier.conformalize(p, labels)
    return np.asarray(classifier.predict_set(new)[1][:, :, 0])


def ours(p: Array, labels: Index, new: Array, sets: PredictionSets) -> Mask:
    """The same from what a model keeps of the rows held out."""
    own = [np.sort(p[labels == c, c]) for c in range(len(LABELS))]
    held_out = HeldOutScores(tuple(tuple(one.tolist()) for one in own), None, True)
    members = Decider.of(DecisionRule(sets=sets, held_out=held_out), LABELS).decide(np.log(new).T).members
    assert members is not None
    return members.T


def drawn(n_rows: int) -> tuple[Array, Index, Array]:
    """Probabilities of rows held out, their labels, and probabilities of 300 new rows."""
    rng = np.random.default_rng(n_rows)
    p, new = (rng.dirichlet([0.8, 1.0, 1.5], n) for n in (n_rows, 300))
    return p, np.array([rng.choice(3, p=row) for row in p]), new


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("n_rows", [60, 199, 500])
def test_sets_are_those_of_mapie(alpha: float, n_rows: int) -> None:
    p, labels, new = drawn(n_rows)
    found = ours(p, labels, new, PredictionSets(alpha))
    np.testing.assert_array_equal(found, by_mapie(p, labels, new, alpha))
    assert len(np.unique(found.sum(axis=1))) > 1, "sets of one size would agree too easily"


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("n_rows", [199, 500])
def test_by_class_a_label_is_in_the_set_that_its_own_rows_give(alpha: float, n_rows: int) -> None:
    p, labels, new = drawn(n_rows)
    by_class = ours(p, labels, new, PredictionSets(alpha, by_class=True))
    for c in range(len(LABELS)):
        own = labels == c
        with pytest.warns(UserWarning, match="less labels"):
            theirs = by_mapie(p[own], labels[own], new, alpha)
        np.testing.assert_array_equal(by_class[:, c], theirs[:, c])
    assert not np.array_equal(by_class, ours(p, labels, new, PredictionSets(alpha)))
