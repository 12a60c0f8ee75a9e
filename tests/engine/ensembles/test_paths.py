"""The space of a candidate whose larger sets are penalised more, against one that is made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.candidate_selection import space_of
from bncli.engine.ensembles.candidates import Candidate, Rows, candidate
from bncli.engine.parameters.optimization import OptimizerSettings, find_optimum
from bncli.engine.structures.structure import Regions
from tests.datasets import random_dataset
from tests.effects import dense

Array = NDArray[np.float64]

REGIONS = Regions(((0,), (1,), (2,), (0, 1), (0, 1, 2)))
CARDINALITIES, N_LABELS = (2, 3, 2), 3
PENALTY = 2.0


def rows() -> Dataset:
    return random_dataset(40, CARDINALITIES, N_LABELS)


def found(beyond: float) -> Candidate:
    families = REGIONS.families(CARDINALITIES)
    return Candidate("by hand", REGIONS, families, coding="cells", lower_orders=True, beyond=beyond)


def optimum(beyond: float) -> tuple[Array, float]:
    """The tables (K, n_cells) of the candidate at PENALTY, and the least value there."""
    space = space_of(rows(), found(beyond))
    best = find_optimum(space, OptimizerSettings("zero", PENALTY, 0.0, "newton", 1e-10, 200), lambda step, p: None)
    return space.coordinates.tables(best.point), best.value


def optimum_by_hand(beyond: float) -> tuple[Array, float]:
    """Every effect of a set of several attributes has the penalty PENALTY * beyond; any other one PENALTY."""
    data = rows()
    likelihood = space_of(data, found(1.0)).likelihood
    matrix = dense(REGIONS.families(CARDINALITIES), data, "cells", lower_orders=True)
    several = 1 + sum(CARDINALITIES)
    penalties = np.where(np.arange(matrix.shape[1]) < several, PENALTY, PENALTY * beyond)

    def loss(p: Array) -> tuple[float, Array]:
        effects = p.reshape(N_LABELS, -1)
        cll, gradient = likelihood.value_and_gradient(effects @ matrix.T)
        return float((penalties * effects**2).sum() / 2 - cll), (penalties * effects - gradient @ matrix).ravel()

    best = optimize.minimize(
        loss, np.zeros(N_LABELS * matrix.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}
    )
    return best.x.reshape(N_LABELS, -1) @ matrix.T, float(best.fun)


@pytest.mark.parametrize("beyond", [1.0, 10.0, 100.0])
def test_the_penalty_of_larger_sets_is_so_many_times_as_large(beyond: float) -> None:
    (tables, value), (expected, least) = optimum(beyond), optimum_by_hand(beyond)
    assert value == pytest.approx(least, rel=1e-8)
    np.testing.assert_allclose(tables, expected, atol=1e-4)


def test_single_attributes_are_as_free_as_ever() -> None:
    """In the limit the larger sets say nothing, and what is left are the tables over single attributes."""
    alone = replace(found(1.0), families=Regions(((0,), (1,), (2,))).families(CARDINALITIES))
    space = space_of(rows(), alone)
    best = find_optimum(space, OptimizerSettings("zero", PENALTY, 0.0, "newton", 1e-10, 200), lambda step, p: None)
    _, value = optimum(1e9)
    assert value == pytest.approx(best.value, rel=1e-6)


def test_what_pairs_told_is_used_from_then_on() -> None:
    known = Rows(rows(), penalties={"singles": 0.3, "pairs": 30.0})
    assert candidate(known, "triples").beyond == pytest.approx(100.0)
    assert candidate(Rows(rows()), "triples").beyond == 1.0
