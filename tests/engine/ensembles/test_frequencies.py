"""The class frequencies as a component: on a handful of rows nothing is much worse than they are."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.auto import shrink_to_last
from bncli.engine.ensembles.candidate_selection import FREQUENCIES, judge_frequencies
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.learn import learn
from bncli.engine.model import Model
from bncli.engine.prediction.effects import effects_of
from bncli.files.artifacts.model import dump_model, read_model, write_model
from bncli.recipe import Recipe
from tests.datasets import dataset_of
from tests.engine.ensembles.rows import ensemble_of, mixed


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
    """The class frequencies alone: of one row nothing can be held out."""
    found = learn(mixed(1), Recipe.of(structure="auto")).model
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
    expected, own, of_rows = [], [], []
    for learnt, held_out in parts:
        w = np.ones(20) if learnt.weights is None else learnt.weights
        counts = [1 + sum(w[learnt.labels == y]) for y in range(4)]
        expected += [[math.log(count / sum(counts)) for count in counts]] * 20
        own += [math.log(counts[y] / sum(counts)) for y in held_out.labels]
        of_rows += [1.0] * 20 if held_out.weights is None else list(held_out.weights)
    judged = judge_frequencies(parts)
    np.testing.assert_allclose(judged.logs, np.transpose(expected), rtol=1e-12)
    assert judged.losses.log_loss == pytest.approx(-np.average(own, weights=of_rows), rel=1e-12)


def test_they_are_those_of_all_rows_and_one_more_of_each_class(model: Model) -> None:
    label = mixed(1).label
    assert label is not None
    shares = (np.arange(2) == label.codes[0]) / 3 + 1 / 3
    np.testing.assert_allclose(np.exp(predict(model, mixed(10))), np.repeat(shares[:, np.newaxis], 10, axis=1))


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


def test_weights_of_a_handful_of_rows_are_shrunk_to_the_last_model() -> None:
    """Of 20 rows by half, of 60 by a tenth."""
    w = np.array([0.6, 0.0, 0.5, 0.1])
    np.testing.assert_allclose(shrink_to_last(w, 20), [0.3, 0.0, 0.25, 0.55], rtol=1e-12)
    np.testing.assert_allclose(shrink_to_last(w, 60), [0.54, 0.0, 0.45, 0.19], rtol=1e-12)
    assert shrink_to_last(w, 1)[3] > 0.99


def test_weights_of_more_rows_are_left_alone() -> None:
    w = np.array([0.6, 0.5, 0.0])
    assert shrink_to_last(w, 198)[2] > 0
    np.testing.assert_array_equal(shrink_to_last(w, 199), w)
