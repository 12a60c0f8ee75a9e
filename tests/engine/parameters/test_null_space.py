"""Directions of the tables without effect: none has any, and for trees and naive Bayes none is missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters import preconditioner as module
from bncli.engine.parameters.preconditioner import NullSpace, null_space, whitening
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.datasets import random_dataset
from tests.spaces import catch
from tests.strategies import dags, datasets

Array = NDArray[np.float64]

GRAPHS = {
    "nb": Dag(((), (), (), ()), (0, 1, 2, 3)),
    "tan": Dag(((), (0,), (1,), (1,)), (0, 1, 2, 3)),
    "forest, child first": Dag(((2,), (), (), (1,)), (0, 1, 2, 3)),
}


def directions(space: NullSpace) -> Array:
    """N, (n_cells, columns)."""
    n_cells = space.sums.columns.shape[1]
    columns = [np.zeros((1, n_cells)) for _ in range(space.sums.n)]
    for j, column in enumerate(columns):
        space.sums.add(column, np.eye(space.sums.n)[[j]])
    return np.stack([columns[a][0] - columns[b][0] for a, b in zip(space.plus, space.minus, strict=True)], axis=1)


@given(data=datasets(max_attributes=4), draw=st.data())
def test_no_row_is_scored_otherwise(data: Dataset, draw: st.DataObject) -> None:
    families = draw.draw(dags(len(data.codes))).families(data.schema.cardinalities)
    z = oracles.indicators(families, data)
    found = null_space(families, z.sum(axis=0), np.ones((1, z.shape[1])))
    assume(found is not None)
    assert found is not None
    assert not (z @ directions(found)).any()


@pytest.mark.parametrize("graph", GRAPHS)
def test_for_networks_of_one_parent_none_is_missed(graph: str) -> None:
    data = random_dataset(600, (3, 2, 4, 3), 2)
    families = GRAPHS[graph].families(data.schema.cardinalities)
    z = oracles.indicators(families, data)
    assert z.any(axis=0).all()
    found = null_space(families, z.sum(axis=0), np.ones((1, z.shape[1])))
    assert found is not None
    n = directions(found)
    assert np.linalg.matrix_rank(n) == n.shape[1] == z.shape[1] - np.linalg.matrix_rank(z)


def test_the_heaviest_are_kept_where_they_are_too_many() -> None:
    data = random_dataset(600, (3, 2, 4, 3), 2)
    families = GRAPHS["tan"].families(data.schema.cardinalities)
    weights = oracles.indicators(families, data).sum(axis=0)
    every, some = (null_space(families, weights, np.ones((1, len(weights))), most) for most in (99, 3))
    assert every is not None
    assert some is not None
    kept, lightest = (np.abs(directions(space)).T @ weights / 2 for space in (some, every))
    assert len(kept) == 3 < len(lightest)
    assert sorted(kept) == sorted(lightest)[-3:]
    assert null_space(families, weights, np.ones((1, len(weights))), 0) is None


@pytest.mark.parametrize("name", ["discriminative", "weighted 4"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_along_them_the_preconditioner_is_the_penalty(
    monkeypatch: pytest.MonkeyPatch, name: str, n_labels: int
) -> None:
    """With few dense cells: no eigenvalue of inverse times Hessian is near 0, as there are without."""
    monkeypatch.setattr(module, "LEAST_SIZE", 4)
    monkeypatch.setattr(module, "STRETCH", 0.0)
    monkeypatch.setattr(module, "FLAT_WORK", 1e-3)
    data = random_dataset(5_000, (6, 5, 6, 4), n_labels)
    caught = catch(name, data, GRAPHS["tan"])
    white = whitening(caught.likelihood, caught.space, 0.1)
    p = np.zeros(caught.space.n_parameters)
    product = caught.likelihood.hessian(caught.space.tables(p))

    def hessian(v: Array) -> Array:
        return 0.1 * v + caught.space.pull_back(p, product(caught.space.push(p, v)))

    def least(apply: Callable[[Array], Array]) -> float:
        inverse, h = (np.stack([f(unit) for unit in np.eye(len(p))], axis=1) for f in (apply, hessian))
        factor = np.linalg.cholesky((h + h.T) / 2)
        return float(np.linalg.eigvalsh(factor.T @ (inverse + inverse.T) @ factor / 2)[0])

    with_them = least(white.refresh(p, 0.0))
    without = least(replace(white, flat=None).refresh(p, 0.0))
    assert white.flat is not None
    assert without < 0.02
    assert with_them > 10 * without
