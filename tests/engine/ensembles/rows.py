"""Small raw tables for tests of `--structure auto`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import MISSING, CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import ReadingRules
from bncli.engine.ensembles.candidates import fine_dataset
from bncli.engine.model import Ensemble, Model
from bncli.recipe import Recipe
from bncli.watch import Run


def recipe(
    metric: str = "log-loss", time_limit: float | None = None, seed: int = 0, effort: int | None = None
) -> Recipe:
    """Return a recipe of `--structure auto`."""
    return Recipe.of(structure="auto", metric=metric, time_limit=time_limit, seed=seed, effort=effort)


def mixed(n_rows: int = 90, n_labels: int = 2, seed: int = 0, weights: NDArray[np.float64] | None = None) -> Columns:
    """Return two numbers, one with missing values, and two categories; the class follows three of these columns."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n_rows), rng.integers(0, 30, n_rows).astype(float)
    a, b = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
    labels = np.clip(np.round(x + 2 * ((a + b) % 2) + rng.normal(0, 0.3, n_rows)), 0, n_labels - 1).astype(np.int8)
    z[rng.random(n_rows) < 0.1] = np.nan
    codes = np.where(rng.random(n_rows) < 0.05, MISSING, b).astype(np.int8)
    return Columns(
        n_rows,
        {
            "x": NumericColumn(x),
            "z": NumericColumn(z),
            "a": CategoricalColumn(a.astype(np.int8), ("no", "yes")),
            "b": CategoricalColumn(codes, ("blue", "green", "red")),
        },
        "class",
        CategoricalColumn(labels, tuple(f"y{y}" for y in range(n_labels))),
        weights,
    )


def coded(columns: Columns) -> Dataset:
    """Return the rows, finely cut."""
    return fine_dataset(columns, ReadingRules(), Run())


def ensemble_of(model: Model) -> Ensemble:
    """Return the predictor of a model learned with `--structure auto`."""
    assert isinstance(model.predictor, Ensemble)
    return model.predictor
