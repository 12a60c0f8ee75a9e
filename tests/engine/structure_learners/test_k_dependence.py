"""The order and the parents of k-dependence networks: fewer parents are a cut of the longer list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners.arc_scores import relevance
from bncli.engine.structure_learners.k_dependence import order_attributes
from tests.datasets import random_dataset
from tests.strategies import datasets


@given(datasets(max_rows=30), st.integers(0, 5))
def test_parents_of_a_smaller_k_come_first(data: Dataset, k: int) -> None:
    few, more = order_attributes(Counts(data), k), order_attributes(Counts(data), k + 1)
    assert few.order == more.order
    assert few.parents == tuple(parents[:k] for parents in more.parents)


@given(datasets(max_rows=30))
def test_the_most_relevant_come_first_and_parents_before_their_children(data: Dataset) -> None:
    counts = Counts(data)
    ordered = order_attributes(counts, 2)
    scores = relevance(counts)
    assert list(ordered.order) == sorted(range(len(data.codes)), key=lambda i: (-scores[i], i))
    for rank, i in enumerate(ordered.order):
        assert set(ordered.parents[i]) <= set(ordered.order[:rank])


def test_uninformative_attributes_are_not_in_the_order() -> None:
    ordered = order_attributes(Counts(random_dataset(40, (1, 3, 1, 2), 2)), 3)
    assert sorted(ordered.order) == [1, 3]
    assert ordered.parents[0] == ordered.parents[2] == ()
