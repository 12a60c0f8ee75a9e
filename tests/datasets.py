"""Coded data sets made for tests: at random, from a network, or dense enough that every optimum is finite."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import Dataset, code_dtype, encode_attributes, encode_labels
from bncli.engine.data.schema import CategoricalAttribute, Schema


def schema_of(cardinalities: Sequence[int], n_labels: int, names: Sequence[str] | None = None) -> Schema:
    """Categorical attributes `a0`, `a1`, ... with so many levels, and a class with so many labels."""
    attributes = tuple(
        CategoricalAttribute(names[i] if names else f"a{i}", False, (1.0,) * n, tuple(map(str, range(n))))
        for i, n in enumerate(cardinalities)
    )
    return Schema("class", tuple(f"y{y}" for y in range(n_labels)), attributes)


def dataset_of(
    columns: Sequence[NDArray[Any]],
    labels: NDArray[Any],
    cardinalities: Sequence[int],
    n_labels: int,
    weights: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> Dataset:
    """Rows given as one array of codes per attribute."""
    codes = tuple(np.asarray(c).astype(code_dtype(n)) for c, n in zip(columns, cardinalities, strict=True))
    labels = np.asarray(labels).astype(code_dtype(n_labels))
    return Dataset(schema_of(cardinalities, n_labels), codes, labels, weights, threads)


def coded_rows(columns: Columns, schema: Schema, threads: int = 1) -> Dataset:
    """Labelled rows under a schema that is there, as a scorer codes them."""
    codes = encode_attributes(columns, schema, range(len(schema.attributes))).codes
    return Dataset(schema, codes, encode_labels(columns, schema), columns.weights, threads)


def random_dataset(
    n_rows: int,
    cardinalities: Sequence[int],
    n_labels: int,
    *,
    seed: int = 0,
    weighted: bool = False,
    threads: int = 1,
) -> Dataset:
    """Attributes that follow the class and their left neighbour in two rows of three, else anything."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n_rows)
    columns: list[NDArray[Any]] = []
    for cardinality in cardinalities:
        source = labels + (columns[-1] if columns else 0)
        columns.append(np.where(rng.random(n_rows) < 0.67, source % cardinality, rng.integers(0, cardinality, n_rows)))
    weights = rng.uniform(0.2, 3.0, n_rows) if weighted else None
    return dataset_of(columns, labels, cardinalities, n_labels, weights, threads)


def dense_dataset(cardinalities: Sequence[int], n_labels: int, *, copies: int = 3, seed: int = 0) -> Dataset:
    """Every combination of values and class at least once and up to `copies` times: nothing is separable."""
    rng = np.random.default_rng(seed)
    grid = np.array(list(itertools.product(*(range(n) for n in (*cardinalities, n_labels)))))
    rows = np.repeat(grid, rng.integers(1, copies + 1, len(grid)), axis=0)
    rows = rows[rng.permutation(len(rows))]
    return dataset_of([*rows[:, :-1].T], rows[:, -1], cardinalities, n_labels)


def reorder(data: Dataset, order: Sequence[int]) -> Dataset:
    """Attribute order[i] becomes attribute i."""
    schema = replace(data.schema, attributes=tuple(data.schema.attributes[i] for i in order))
    return Dataset(schema, tuple(data.codes[i] for i in order), data.labels, data.weights, data.threads)
