"""Naive Bayes: a star over the informative attributes."""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners import nb
from bncli.engine.structures.structure import Dag
from tests.datasets import random_dataset


def test_every_informative_attribute_hangs_below_the_class() -> None:
    data = random_dataset(20, (3, 1, 2, 1), 2)
    assert nb.learn(Counts(data)) == Dag(((), (), (), ()), (0, 2), (), "nb")


def test_no_attributes_at_all() -> None:
    assert nb.learn(Counts(random_dataset(20, (), 2))) == Dag((), (), (), "nb")
