"""The scale of levels follows the variance of their effects beside the other attributes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.kernels.information import variance_of_effects
from bncli.engine.parameters import level_effects
from bncli.engine.parameters.level_effects import REFERENCE, level_scales
from tests.datasets import dataset_of

N_LEVELS, N_VALUES = 200, 9


def rows(n_rows: int, *, of_levels: float, of_number: float, follows: bool = False, seed: int = 0) -> Dataset:
    """Return a name of many levels, and a number.

    The log-odds of the class have the standard deviation `of_levels` among the levels, and rise by `of_number` per
    standard deviation of the number. With `follows`, the number depends on the level.
    """
    rng = np.random.default_rng(seed)
    name = rng.integers(0, N_LEVELS, n_rows)
    number = rng.integers(0, N_VALUES, n_rows)
    if follows:
        number = (name % N_VALUES + rng.integers(-1, 2, n_rows)).clip(0, N_VALUES - 1)
    x = (number - number.mean()) / number.std()
    log_odds = of_number * x + rng.normal(0, of_levels, N_LEVELS)[name]
    labels = rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))
    return with_number(dataset_of([name, number], labels, (N_LEVELS, N_VALUES), 2))


def with_number(data: Dataset) -> Dataset:
    """Return the data with a numeric second attribute."""
    cuts = tuple(np.arange(N_VALUES - 1) + 0.5)
    frequencies = tuple(np.bincount(data.codes[0], minlength=N_LEVELS).astype(float))
    name = replace(data.schema.attributes[0], frequencies=frequencies)  # type: ignore[type-var]
    number = NumericAttribute("a1", False, (), cuts, None)
    return replace(data, schema=replace(data.schema, attributes=(name, number)))


def variance(data: Dataset, coding: str = "thermometer") -> float:
    return level_scales(data, coding)[0] ** 2 / REFERENCE[coding]


def counts_of(data: Dataset) -> NDArray[np.float64]:
    return np.bincount(data.codes[0].astype(int) * 2 + data.labels, minlength=2 * N_LEVELS).reshape(-1, 2).astype(float)


def test_a_line_has_a_tenth_of_the_penalty_of_steps() -> None:
    data = rows(2_000, of_levels=1.0, of_number=0.5)
    assert level_scales(data, "thermometer")[0] == pytest.approx(10**0.5 * level_scales(data, "linear")[0], rel=1e-12)
    assert level_scales(data, "cells") == level_scales(data, "thermometer")


def test_levels_that_differ_through_a_number_have_hardly_any_variance() -> None:
    data = rows(4_000, of_levels=0.0, of_number=1.0, follows=True)
    assert variance_of_effects(counts_of(data)) > 0.2
    assert variance(data) < 0.02


@pytest.mark.parametrize("rows_per_level", [5, 50])
def test_the_variance_is_found_beside_a_strong_number(rows_per_level: int) -> None:
    """Log-odds of two classes are differences of two effects: each has half their variance."""
    found = [variance(rows(rows_per_level * N_LEVELS, of_levels=1.0, of_number=1.5, seed=seed)) for seed in range(5)]
    assert 0.3 < np.mean(found) < 0.7


def test_without_other_attributes_the_class_frequencies_are_expected() -> None:
    data = rows(2_000, of_levels=1.0, of_number=0.5)
    alone = replace(data, codes=data.codes[:1], schema=replace(data.schema, attributes=data.schema.attributes[:1]))
    assert variance(alone) == pytest.approx(variance_of_effects(counts_of(data)), rel=1e-9)


def test_with_too_many_functions_the_class_frequencies_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(2_000, of_levels=1.0, of_number=0.5, follows=True)
    with_number = variance(data)
    monkeypatch.setattr(level_effects, "MOST_FUNCTIONS", 0)
    assert variance(data) == pytest.approx(variance_of_effects(counts_of(data)), rel=1e-9) != with_number


def test_a_weight_of_two_is_a_row_twice() -> None:
    data = rows(1_000, of_levels=1.0, of_number=0.5)
    twice = data.take(np.tile(np.arange(1_000), 2))
    assert variance(replace(data, weights=np.full(1_000, 2.0))) == pytest.approx(variance(twice), rel=1e-9)


def test_values_that_are_not_observed_count_for_no_level() -> None:
    data = rows(2_000, of_levels=1.0, of_number=0.5)
    hidden = np.arange(2_000) % 4 == 0
    name = np.where(hidden, N_LEVELS, data.codes[0]).astype(np.uint8)
    found = variance(replace(data, codes=(name, data.codes[1])))
    assert found == pytest.approx(variance(data.take(np.flatnonzero(~hidden))), rel=0.2)
    number = np.where(hidden, N_VALUES, data.codes[1]).astype(np.uint8)
    assert variance(replace(data, codes=(data.codes[0], number))) == pytest.approx(variance(data), rel=0.2)


def test_few_levels_have_no_scale() -> None:
    rng = np.random.default_rng(0)
    data = dataset_of([rng.integers(0, 20, 300)], rng.integers(0, 2, 300), (20,), 2)
    assert level_scales(data, "cells") == {}


def test_levels_beside_a_number_that_determines_the_class() -> None:
    data = rows(2_000, of_levels=0.0, of_number=100.0)
    assert variance(data) < 0.05


def test_several_classes_one_of_which_has_no_rows() -> None:
    data = rows(2_000, of_levels=1.0, of_number=0.5)
    wider = replace(data, labels=2 * data.labels, schema=replace(data.schema, labels=("a", "b", "c")))
    assert variance(wider) == pytest.approx(variance(data), rel=1e-9)
