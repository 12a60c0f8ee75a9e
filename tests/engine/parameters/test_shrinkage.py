"""Shrinkage towards the class frequencies: as slow sums, never dearer than it may be, and where there is none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.dataset import Dataset
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.learn import learn, learn_parameters
from bncli.engine.model import ChosenPenalty, Shrinkage
from bncli.engine.parameter_learners import discriminative
from bncli.engine.parameters.optimization import OptimizerSettings, find_optimum_from
from bncli.engine.parameters.penalty_cv import (
    FACTORS,
    GRID,
    choose_factor,
    held_out_base,
    held_out_folds,
    log_frequencies,
    penalty_path,
    shrink_cells,
    shrink_parameters,
)
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe
from tests import oracles
from tests.datasets import random_dataset

Array = NDArray[np.float64]
NB = Dag(((), (), ()), (0, 1, 2))
SHAPE = (3, 2, 4)
space_of = partial(discriminative.space, structure=NB, smoothing="m-estimate:1")


def columns_of(attributes: list[Any], labels: Any, n_labels: int) -> Columns:
    """Categorical columns x0, x1, ... and the class, as they would have been read."""
    inputs = {
        f"x{i}": CategoricalColumn(codes.astype(np.int8), tuple("abcdef"[: codes.max() + 1]))
        for i, codes in enumerate(attributes)
    }
    label = CategoricalColumn(labels.astype(np.int8), tuple("pqrst"[:n_labels]))
    return Columns(len(labels), inputs, "class", label)


def noise(n_rows: int, n_labels: int = 3, seed: int = 0) -> Dataset:
    """Attributes that say nothing of the class, the first label being the commonest."""
    data, rng = random_dataset(n_rows, SHAPE, n_labels, seed=seed), np.random.default_rng(seed)
    shares = np.arange(n_labels, 0, -1.0)
    drawn = rng.choice(n_labels, n_rows, p=shares / shares.sum())
    return replace(data, labels=drawn.astype(data.labels.dtype))


def path(data: Dataset, *, shrink: bool = True) -> ChosenPenalty:
    return penalty_path(held_out_folds(data, 0), lambda counts: space_of(counts), center=0.0, shrink=shrink)


def log_likelihood(families: Any, cells: Array, data: Dataset) -> float:
    """sum_t w_t ln P(y_t | x_t), densely."""
    scores = oracles.indicators(families, data) @ cells.T
    scores -= np.logaddexp.reduce(scores, axis=1)[:, np.newaxis]
    return float(np.asarray(oracles.weights_of(data)) @ scores[np.arange(data.n_rows), data.labels])


def slow_totals(data: Dataset, penalty: float) -> list[float]:
    """The held-out CLL under each factor: tables of every fold mixed with its frequencies, entry by entry."""
    totals = np.zeros(len(FACTORS))
    how = OptimizerSettings("zero", penalty, 0.0, "lbfgs", 1e-12, 2000)
    for fold in held_out_folds(data, 0):
        space = space_of(fold.counts)
        n = space.coordinates.n_parameters
        cells = space.coordinates.tables(find_optimum_from(space, how, np.zeros(n)).point)
        learnt = fold.counts.data
        sizes = [
            float(np.asarray(oracles.weights_of(learnt))[learnt.labels == y].sum()) for y in range(learnt.n_labels)
        ]
        logs = [np.log((size + 1) / (sum(sizes) + len(sizes))) for size in sizes]
        for i, factor in enumerate(FACTORS):
            mixed = factor * cells
            for y, log in enumerate(logs):
                mixed[y, 0] += (1 - factor) * log
            totals[i] += log_likelihood(space.likelihood.families, mixed, fold.rows)
    return totals.tolist()


@pytest.mark.parametrize(("n_rows", "weighted"), [(40, False), (70, True), (120, False)])
def test_the_factor_is_that_of_slow_sums(n_rows: int, weighted: bool) -> None:
    data = noise(n_rows)
    if weighted:
        data = replace(data, weights=np.random.default_rng(1).uniform(0.5, 2.0, n_rows))
    chosen = path(data)
    totals = slow_totals(data, chosen.penalty)
    doubt = 2.0 if n_rows <= 50 else 100 / n_rows
    worth = np.array(totals) - doubt * np.array(FACTORS)
    found = 1.0 if chosen.shrinkage is None else chosen.shrinkage.factor
    # the search of the folds is loose: a factor that is next to the best is as good
    assert worth[FACTORS.index(found)] >= worth.max() - 0.02
    assert chosen.log_loss == pytest.approx(-totals[FACTORS.index(found)] / data.total_weight, rel=5e-3)


def test_noise_is_shrunk_to_next_to_nothing() -> None:
    losses = []
    for seed in range(10):
        chosen = path(noise(40, seed=seed))
        assert chosen.shrinkage is not None
        base = held_out_base(noise(40, seed=seed), 0)
        assert base is not None
        assert chosen.log_loss is not None
        losses.append(chosen.log_loss / base)
        assert chosen.shrinkage.factor <= 0.5
    assert np.mean(losses) < 1.01


def test_what_the_tables_tell_for_sure_is_not_shrunk() -> None:
    data = random_dataset(100, (2, 2, 2), 2)
    sure = replace(data, labels=np.asarray(data.codes[0]).astype(data.labels.dtype))
    assert path(sure).shrinkage is None


@given(st.lists(st.floats(-500, -0.01), min_size=len(FACTORS), max_size=len(FACTORS)), st.integers(2, 300))
@settings(max_examples=200)
def test_no_factor_costs_more_than_a_quarter_of_the_loss_nor_more_than_the_doubt(
    clls: list[float], n_rows: int
) -> None:
    found = choose_factor(clls, n_rows, float(n_rows))
    factor = 1.0 if found is None else found.factor
    cll = clls[FACTORS.index(factor)]
    assert factor in FACTORS
    assert -cll <= -1.25 * max(clls) + 1e-9
    assert cll >= clls[-1] - 2.0 * (1 - factor) - 1e-9 or clls[-1] < 1.25 * max(clls)
    if found is not None:
        assert found.log_loss == pytest.approx(-cll / n_rows)


@given(st.floats(0.1, 1.0), st.integers(0, 20))
def test_shrunk_tables_are_between_the_model_and_the_frequencies(factor: float, seed: int) -> None:
    """Log-odds of any two classes are a times those of the tables and 1 - a times those of the frequencies."""
    rng = np.random.default_rng(seed)
    cells, counts = rng.normal(size=(3, 5)), rng.integers(0, 9, 3).astype(float)
    mixed = shrink_cells(cells, counts, factor)
    row = np.array([1, 0, 1, 0, 1])
    odds, own, base = (np.diff(s) for s in (mixed @ row, cells @ row, np.log(counts + 1)))
    np.testing.assert_allclose(odds, factor * own + (1 - factor) * base, atol=1e-12)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6))
def test_frequencies_are_probabilities_and_none_is_zero(counts: list[int]) -> None:
    f = np.exp(log_frequencies(np.array(counts, float)))
    assert f.sum() == pytest.approx(1)
    assert f.min() >= 1 / (sum(counts) + len(counts)) - 1e-12


def test_a_factor_of_one_leaves_tables_as_they_are() -> None:
    cells = np.ones((2, 3))
    assert shrink_cells(cells, np.ones(2), 1.0) is cells


@pytest.mark.parametrize(("n_rows", "may"), [(300, True), (301, False)])
def test_of_many_rows_nothing_is_shrunk(n_rows: int, may: bool) -> None:
    data = noise(n_rows)
    assert (path(data).shrinkage is not None) == may
    without = path(data, shrink=False)
    assert without.shrinkage is None
    assert (without.penalty, without.tried) == (path(data).penalty, path(data).tried)


def test_the_smallest_penalties_are_not_tried_on_few_rows() -> None:
    for n_rows, least in ((2, 300.0), (8, 30.0), (24, 1.0), (50, 0.1), (80, 0.03), (93, 0.01), (500, 0.01)):
        labels = np.arange(n_rows) % 2
        data = random_dataset(n_rows, (2, 2, 2), 2)
        sure = replace(data, labels=labels.astype(data.labels.dtype), codes=(labels.astype(data.codes[0].dtype),) * 3)
        tried = [one.penalty for one in path(sure, shrink=False).tried]
        assert tried == list(GRID[: GRID.index(least) + 1]), n_rows


def test_the_cll_told_is_that_of_the_tables_kept() -> None:
    data, counts = noise(60), Counts(noise(60))
    recipe = Recipe(structure="nb", param="discriminative")
    plain = learn_parameters(counts, NB, recipe, chosen=ChosenPenalty(1.0, ()))
    kept = shrink_parameters(plain, counts, Shrinkage(0.3, 1.0))
    cells = np.concatenate([kept.tables.bias[:, None], *(w.T for w in kept.tables.weights)], axis=1)
    assert kept.cll == pytest.approx(log_likelihood(kept.tables.families, cells, data))
    for w, v in zip(kept.tables.weights, plain.tables.weights, strict=True):
        np.testing.assert_allclose(w, 0.3 * v)


LINES = ({}, {"param": "discriminative"}, {"structure": "interactions"}, {"structure": "nb", "param": "lr"})


@pytest.mark.parametrize("words", LINES, ids=str)
def test_a_class_of_one_row_or_none_keeps_some_probability(words: dict[str, str]) -> None:
    """Seventy rows whose first attribute tells two classes apart; a third has one row, which a fold holds out."""
    rng = np.random.default_rng(2)
    labels = np.array([*[0, 1] * 34, 0, 2])
    x = np.where(labels == 2, rng.integers(0, 2, 70), labels)
    columns = [x, rng.integers(0, 3, 70), rng.integers(0, 2, 70)]
    model = learn(columns_of(columns, labels, 4), Recipe(**words)).model
    p = np.exp(predict(model, columns_of(columns, labels, 4)))
    assert p[2].min() > 1e-4
    assert p[3].min() > 1e-5  # a label that no row has
    assert p[2].mean() == pytest.approx(1 / 70, rel=1)


@pytest.mark.parametrize("words", [LINES[0], LINES[2]], ids=str)
def test_on_noise_the_default_lines_are_no_worse_than_the_class_frequencies(words: dict[str, str]) -> None:
    """Tables of seventy rows, interactions were 5 % worse; new rows by the thousand."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, 1070, p=[0.6, 0.3, 0.1])
        whole = columns_of([rng.integers(0, 3, 1070) for _ in range(4)], labels, 3)
        model = learn(whole.take(np.arange(70)), Recipe(**words)).model
        new = labels[70:]
        counts = np.bincount(labels[:70], minlength=3) + 1.0
        base = -np.log(counts / counts.sum())[new].mean()
        ratios.append(-predict(model, whole.take(np.arange(70, 1070)))[new, np.arange(1000)].mean() / base)
    assert np.mean(ratios) < 1.02
    assert max(ratios) < 1.06
