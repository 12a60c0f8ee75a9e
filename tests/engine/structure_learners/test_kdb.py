"""KDB against its definition on slow scores, and its limiting cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners import kdb, nb
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets
from tests.sweeps import every_value


def slow_kdb(data: Dataset, k: int) -> list[tuple[int, ...]]:
    """Sahami 1996, step by step; scores compared at 12 digits, lower index first."""

    def score(attributes: tuple[int, ...]) -> float:
        table = oracles.count(data, attributes)
        slow = oracles.mutual_information if len(attributes) == 1 else oracles.conditional_mutual_information
        return float(rounded(np.array([slow(table)]))[0])

    remaining, used = list(range(len(data.codes))), list[int]()
    parents: list[tuple[int, ...]] = [()] * len(data.codes)
    while remaining:
        best = remaining[0]
        for i in remaining:
            if score((i,)) > score((best,)):
                best = i
        candidates = sorted(used)
        while candidates and len(parents[best]) < k:
            strongest = candidates[0]
            for j in candidates:
                if score((best, j)) > score((best, strongest)):
                    strongest = j
            parents[best] += (strongest,)
            candidates.remove(strongest)
        used.append(best)
        remaining.remove(best)
    return parents


@pytest.mark.parametrize(("seed", "k"), every_value(range(21), [0, 1, 2, 3, 9]))
def test_equals_the_definition(seed: int, k: int) -> None:
    data = random_dataset(60, (3, 2, 4, 3, 2), 2 + seed % 3, seed=seed, weighted=bool(seed % 2))
    dag = kdb.learn(Counts(data), k=k)
    assert dag == Dag(tuple(slow_kdb(data, k)), (0, 1, 2, 3, 4), (), "kdb", {"k": k})


@given(datasets(max_rows=30), st.integers(0, 6))
def test_attribute_by_attribute_up_to_k_parents(data: Dataset, k: int) -> None:
    n = len(data.codes)
    dag = kdb.learn(Counts(data), k=k)
    assert sorted(map(len, dag.parents)) == sorted(min(k, rank) for rank in range(n))
    dependence = {(i, j): oracles.count(data, (i, j)) for i in range(n) for j in dag.parents[i]}
    scores = {pair: oracles.conditional_mutual_information(table) for pair, table in dependence.items()}
    for i, parents in enumerate(dag.parents):
        listed = [scores[i, j] for j in parents]
        assert all(a >= b - 1e-11 for a, b in itertools.pairwise(listed))


def test_no_parents_is_naive_bayes() -> None:
    data = random_dataset(30, (2, 3, 1, 2), 2)
    assert kdb.learn(Counts(data), k=0).parents == nb.learn(Counts(data)).parents


def test_every_tie_goes_to_the_first_attribute() -> None:
    x = np.tile([0, 1], 10)
    data = dataset_of([x] * 4, np.tile([0, 1, 1, 0], 5), (2,) * 4, 2)
    assert kdb.learn(Counts(data), k=2).parents == ((), (0,), (0, 1), (0, 1))


def test_uninformative_attributes_stay_outside() -> None:
    dag = kdb.learn(Counts(random_dataset(40, (1, 3, 1, 2, 2), 2)), k=4)
    assert dag.class_children == (1, 3, 4)
    assert dag.parents[0] == dag.parents[2] == ()
    assert all(set(parents) <= {1, 3, 4} for parents in dag.parents)
