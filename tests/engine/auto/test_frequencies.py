"""The class frequencies as a component: on a handful of rows nothing is much worse than they are."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.auto.choice import FREQUENCIES, judge_frequencies
from bncli.engine.auto.ensemble import least_squares_weights, mixture_weights, with_prior_row
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.evaluation.validate import predict
from bncli.engine.explanation.effects import effects_of
from bncli.engine.learn import learn
from bncli.engine.model import Model
from bncli.files.model import dump_model, read_model, write_model
from bncli.recipe import Recipe
from tests.datasets import dataset_of
from tests.engine.auto.rows import ensemble_of, mixed


SEED = 3
"""Of rows that tell nothing, and look like it."""


def noise(n_rows: int, seed: int = 0, n_labels: int = 2) -> Columns:
    """Attributes that tell nothing of the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n_rows).astype(np.int8)
    labels[:n_labels] = range(n_labels)
    return Columns(
        n_rows,
        {
            "x": NumericColumn(rng.normal(size=n_rows)),
            "a": CategoricalColumn(rng.integers(0, 3, n_rows).astype(np.int8), ("blue", "green", "red")),
        },
        "class",
        CategoricalColumn(labels, tuple(f"y{y}" for y in range(n_labels))),
    )


@pytest.fixture(scope="module")
def model() -> Model:
    """The class frequencies alone."""
    found = learn(noise(25, seed=SEED), Recipe.of(structure="auto")).model
    assert [one.name for one in ensemble_of(found).components] == [FREQUENCIES]
    return found


def halves(data: Dataset) -> tuple[Dataset, Dataset]:
    return data.take(np.arange(0, data.n_rows, 2)), data.take(np.arange(1, data.n_rows, 2))


@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_judged_by_shares_with_one_row_more_of_each_class(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 3, 40), rng.uniform(0.5, 2.0, 40)
    data = dataset_of([np.zeros(40, int)], labels, (1,), 4, weights if weighted else None)
    parts = [halves(data), halves(data)[::-1]]
    expected, of_rows = [], []
    for learnt, held_out in parts:
        w = np.ones(20) if learnt.weights is None else learnt.weights
        counts = [1 + sum(w[learnt.labels == y]) for y in range(4)]
        expected += [math.log(counts[y] / sum(counts)) for y in held_out.labels]
        of_rows += [1.0] * 20 if held_out.weights is None else list(held_out.weights)
    judged = judge_frequencies(parts)
    np.testing.assert_allclose(judged.logs, expected, rtol=1e-12)
    assert judged.losses.log_loss == pytest.approx(-np.average(expected, weights=of_rows), rel=1e-12)


def test_where_nothing_is_told_every_row_gets_them(model: Model) -> None:
    """Of 25 rows, 1 added to each class."""
    counts = np.bincount(noise(25, seed=SEED).label.codes) + 1.0  # type: ignore[union-attr]
    logs = predict(model, noise(10, seed=2))
    np.testing.assert_allclose(np.exp(logs), np.repeat(counts[:, np.newaxis] / 27, 10, axis=1), rtol=1e-12)


def test_a_model_without_tables_is_stored_and_explained(model: Model, tmp_path: Path) -> None:
    path = str(tmp_path / "m.bnc")
    write_model(path, model)
    again = read_model(path)
    assert dump_model(again) == dump_model(model)
    assert ensemble_of(again).families == ()
    assert effects_of(again).effects == ()


def test_of_a_handful_of_rows_nothing_is_much_worse_than_they_are() -> None:
    """Also where one class has a single row; on the average over draws, for a draw may look like more than noise."""
    excess = [excess_on_noise(seed) for seed in range(6)]
    assert np.mean(excess) < 0.03
    assert max(excess) < 0.2


def excess_on_noise(seed: int) -> float:
    """The log-loss of new rows, above that of the class frequencies."""
    rows = noise(24, seed=10 + seed)
    assert rows.label is not None
    codes = np.append(rows.label.codes[:23], np.int8(2))
    found = learn(replace(rows, label=CategoricalColumn(codes, ("a", "b", "c"))), Recipe.of(structure="auto")).model
    new = noise(2_000, seed=100 + seed)
    assert new.label is not None
    logs = predict(found, new)[new.label.codes, np.arange(2_000)]
    counts = np.bincount(codes, minlength=3) + 1.0
    return float(np.log(counts / counts.sum())[new.label.codes].mean() - logs.mean())


def test_one_row_alone_gives_them() -> None:
    found = learn(mixed(1), Recipe.of(structure="auto")).model
    assert [one.name for one in ensemble_of(found).components] == [FREQUENCIES]


@pytest.mark.parametrize("n_rows", [3, 30, 3_000])
def test_the_prior_row_is_one_more_of_which_they_alone_are_right(n_rows: int) -> None:
    """ln v is added to what is maximised; of many rows a model that is better everywhere leaves them no share."""
    first = np.log(np.random.default_rng(0).uniform(0.2, 0.5, n_rows))
    logs = np.stack([first + 0.5, first])
    grid = np.linspace(0.001, 0.999, 999)
    likelihoods = [np.log(np.exp(logs).T @ (1 - g, g)).sum() + math.log(g) for g in grid]
    expected = grid[int(np.argmax(likelihoods))]
    v = mixture_weights(*with_prior_row(logs, None))
    assert v[1] == pytest.approx(expected if expected >= 0.01 else 0.0, abs=2e-3)
    assert (v[1] == 0) is (n_rows == 3_000)


def test_the_prior_row_holds_for_squared_errors_too() -> None:
    rng = np.random.default_rng(1)
    logs = np.log(rng.uniform(0.1, 0.9, (2, 20)))
    p = np.exp(logs)
    grid = np.linspace(0, 1, 2001)
    objectives = [np.square(1 - p.T @ (1 - g, g)).sum() + (1 - g) ** 2 for g in grid]
    v = least_squares_weights(*with_prior_row(logs, None))
    assert v[1] == pytest.approx(grid[int(np.argmin(objectives))], abs=2e-3)
