"""Check that the matrix of few rows has the optimum of the effects, be there more effects than rows or fewer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.cutting import set_directions
from bncli.engine.ensembles.candidates import Candidate
from bncli.engine.ensembles.held_out_evaluation import parameter_space
from bncli.engine.parameters import few_rows as module
from bncli.engine.parameters.few_rows import FewRows, few_rows
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.structures.structure import Regions
from tests import oracles
from tests.datasets import random_dataset
from tests.effects import dense, mixed_dataset

Array = NDArray[np.float64]

CARDINALITIES = (2, 3, 4)
REGIONS = Regions(((0,), (1,), (2,), (0, 1), (0, 1, 2)))
SIZES = {"more effects than rows": 18, "fewer": 60}

every_size = pytest.mark.parametrize("size", SIZES)
every_class = pytest.mark.parametrize("n_labels", [2, 3])


def whole_space(n_rows: int, n_labels: int = 3, *, weighted: bool = False) -> ParameterSpace:
    """Return a space of effects with lower orders and free cells."""
    data = random_dataset(n_rows, CARDINALITIES, n_labels, weighted=weighted)
    families = REGIONS.families(CARDINALITIES)
    return parameter_space(data, Candidate("by hand", REGIONS, families, coding="cells", lower_orders=True))


def few(space: ParameterSpace) -> FewRows:
    found = few_rows(space)
    assert found is not None
    return found


def settings(optimizer: str = "newton") -> OptimizerSettings:
    return OptimizerSettings("zero", 0.5, 0.0, optimizer, 1e-12, 300)


@every_size
@every_class
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
def test_has_the_optimum_of_the_effects(size: str, n_labels: int, weighted: bool, optimizer: str) -> None:
    whole = whole_space(SIZES[size], n_labels, weighted=weighted)
    expected = find_optimum(whole, settings(), lambda step, p: None)
    space = few(whole)
    assert (space.span is None) == (size == "fewer")
    found = find_optimum(space, settings(optimizer), lambda step, p: None)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(space.effects(found.point), expected.point, atol=1e-4)
    np.testing.assert_allclose(space.cells(found.point), whole.cells(expected.point), atol=1e-4)
    again = find_optimum_from(space, settings(optimizer), found.point)
    np.testing.assert_allclose(again.point, found.point, atol=1e-4)


@every_size
def test_scores_and_lengths_are_those_of_the_effects(size: str) -> None:
    whole = whole_space(SIZES[size])
    space, data = few(whole), whole.likelihood.data
    p = np.random.default_rng(1).normal(size=space.coordinates.n_parameters)
    t = dense(REGIONS.families(CARDINALITIES), data, "cells", lower_orders=True)
    effects = space.effects(p)
    assert effects @ effects == pytest.approx(p @ p)
    tables = effects.reshape(3, -1) @ t.T
    np.testing.assert_allclose(space.cells(p), tables, atol=1e-9)
    cll, _ = whole.likelihood.value_and_gradient(tables)
    assert space.likelihood.value_and_gradient(space.coordinates.tables(p))[0] == pytest.approx(cll)


@every_size
@every_class
def test_derivatives_are_differences(size: str, n_labels: int) -> None:
    space = few(whole_space(SIZES[size], n_labels, weighted=True))
    p, v = np.random.default_rng(2).normal(size=(2, space.coordinates.n_parameters))

    def gradient(point: Array) -> Array:
        residuals = space.likelihood.value_and_gradient(space.coordinates.tables(point))[1]
        return space.coordinates.pull_back(point, residuals)

    def value(point: Array) -> Array:
        return np.array(space.likelihood.value_and_gradient(space.coordinates.tables(point))[0])

    assert gradient(p) @ v == pytest.approx(float(oracles.slope(value, p, v, 1e-3)), rel=1e-6)
    product = space.hessian(p, 0.7)(v)
    np.testing.assert_allclose(product, 0.7 * v - oracles.slope(gradient, p, v, 1e-3), rtol=1e-6, atol=1e-7)


def test_rows_that_are_alike_span_no_more_than_one_of_them() -> None:
    whole = whole_space(6)
    data = whole.likelihood.data
    twice = data.take(np.repeat(np.arange(6), 2))
    families = REGIONS.families(CARDINALITIES)
    space = few(parameter_space(twice, Candidate("by hand", REGIONS, families, coding="cells", lower_orders=True)))
    assert space.coordinates.matrix.shape == (12, len(np.unique(np.stack(data.codes), axis=1).T))


def test_leaves_alone_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    few_enough, more_effects = (whole_space(SIZES[size]) for size in ("fewer", "more effects than rows"))
    for name, most, space in [
        ("MOST_ROWS", 59, few_enough),
        ("MOST_NUMBERS", 60, few_enough),
        ("MOST_CELLS", 60 * 9, few_enough),
        ("MOST_WORK", 18 * 18, more_effects),
    ]:
        assert few_rows(space) is not None
        with monkeypatch.context() as patch:
            patch.setattr(module, name, most)
            assert few_rows(space) is None


@pytest.mark.parametrize("increasing", [[], ["a2"]])
def test_leaves_alone_what_has_directions(increasing: list[str]) -> None:
    data = mixed_dataset(random_dataset(40, CARDINALITIES, 2), ["categorical", "categorical", "numeric"])
    families = REGIONS.families(CARDINALITIES)
    space = parameter_space(
        set_directions(data, increasing, [], None), Candidate("by hand", REGIONS, families, lower_orders=True)
    )
    assert (few_rows(space) is None) == bool(increasing)
