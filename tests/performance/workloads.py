"""Data to measure on: real tables coded as a fit codes them, and rows simulated from random trees."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import nb, tan
from bncli.engine.structures.structure import Dag
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Run
from tests.datasets import dataset_of

VALUES = (2, 3, 4, 5, 6, 8, 10, 12, 3, 5) * 3
"""Cardinalities of the simulated table `mixed`: 30 attributes, five classes."""


def real_path(name: str) -> Path:
    """The file of a real table; skips the test where there is none."""
    folder = Path(os.environ.get("BNCLI_DATA", ""))
    parts = (folder, folder / "more")
    for path in (part / f"{name}{ending}" for part in parts for ending in (".csv", ".csv.gz")):
        if "BNCLI_DATA" in os.environ and path.exists():
            return path
    return pytest.skip(f"{name} is not at hand: the environment variable BNCLI_DATA names no folder that has it")


@cache
def real(name: str, n_rows: int | None = None) -> Dataset:
    """A real table in codes, MDL cuts; `n_rows` of them in random order."""
    columns = read_columns(Source((str(real_path(name)),)), threads=2)
    data = learn_dataset(columns, run=Run(2))
    if n_rows is None:
        return data
    return data.take(np.random.default_rng(1).permutation(data.n_rows)[:n_rows])


@cache
def finely_cut(name: str) -> Dataset:
    """A real table in codes, numeric columns cut at equal frequency into some 20 intervals."""
    columns = real_columns(name)
    return learn_dataset(columns, discretize="equal-frequency", bins=20, run=Run(2))


def real_columns(name: str) -> Columns:
    """A real table as it is read."""
    return read_columns(Source((str(real_path(name)),)), threads=2)


@cache
def simulated(n_rows: int, cardinalities: tuple[int, ...] = VALUES, n_labels: int = 5) -> Dataset:
    """Rows from a random tree: every attribute follows the class a little and an earlier attribute more."""
    rng = np.random.default_rng(1)
    labels = rng.choice(n_labels, n_rows, p=rng.dirichlet(np.full(n_labels, 3.0)))
    columns: dict[int, NDArray[np.intp]] = {}
    order = [int(i) for i in rng.permutation(len(cardinalities))]
    for rank, i in enumerate(order):
        parent = order[rng.integers(max(0, rank - 6), rank)] if rank else None
        configurations = 1 if parent is None else cardinalities[parent]
        own = rng.dirichlet(np.ones(cardinalities[i]), configurations)
        theta = 0.75 * own + 0.25 * rng.dirichlet(np.full(cardinalities[i], 0.6), (n_labels, configurations))
        row = labels * configurations + (0 if parent is None else columns[parent])
        columns[i] = _draw(theta.reshape(-1, cardinalities[i]), row, rng)
    return dataset_of([columns[i] for i in range(len(cardinalities))], labels, cardinalities, n_labels)


def _draw(theta: NDArray[np.float64], row: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """A value for every row from its row of `theta`."""
    uniform = rng.random(len(row))
    values = np.zeros(len(row), np.intp)
    for edge in theta.cumsum(axis=1).T[:-1]:
        values += uniform > edge[row]
    return values


def structure(data: Dataset, word: str) -> Dag:
    """The structure called `nb` or `tan`."""
    return (nb if word == "nb" else tan).learn(Counts(data))


def with_threads(data: Dataset, threads: int) -> Dataset:
    """The same rows, worked on by so many threads."""
    return replace(data, threads=threads)


def frame(data: Dataset) -> Any:
    """The rows as both libraries take them: columns of words, the class last."""
    pandas = pytest.importorskip("pandas")
    columns = {f"a{i}": data.codes[i] for i in data.schema.informative} | {"class": data.labels}
    return pandas.DataFrame({name: [f"v{code}" for code in codes] for name, codes in columns.items()})
