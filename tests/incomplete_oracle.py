"""Inference by enumeration: every row that the network could have made, and which fit what is known of a row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Dag, Family
from tests import oracles
from tests.datasets import random_dataset
from tests.strategies import dags

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Enumeration:
    """The likelihood of incomplete rows, as `bncli.engine.inference` has it; missing is the code past the last."""

    data: Dataset
    families: tuple[Family, ...]

    @property
    def n_cells(self) -> int:
        return 1 + sum(family.n_cells for family in self.families)

    def flatten(self, tables: Tables) -> Array:
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)

    def tables(self, cells: Array) -> Tables:
        edges = np.cumsum([1, *(family.n_cells for family in self.families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return Tables(bias[:, 0].copy(), self.families, tuple(w.T.copy() for w in weights))

    def log_joint(self, cells: Array) -> Array:
        return np.stack([_log_sums(self._scores(row)) for row in cells])

    def joint(self, cells: Array) -> tuple[float, Array]:
        log_joint, labels, w = self.log_joint(cells), self.data.labels, self._weights
        own = [self._expected(cells[y], w * (labels == y)) for y in range(len(cells))]
        return float(w @ log_joint[labels, np.arange(len(labels))]), np.stack(own)

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        log_joint, w = self.log_joint(cells), self._weights
        log_evidence = _log_sums(log_joint.T)
        ll, own = self.joint(cells)
        shares = np.exp(log_joint - log_evidence)
        any_class = [self._expected(row, w * share) for row, share in zip(cells, shares, strict=True)]
        return ll - float(w @ log_evidence), own - np.stack(any_class)

    def _scores(self, row: Array) -> Array:
        """ln P(y, x) of every possible row x that fits row t, (N, A), for the tables of one class."""
        return np.where(self._fits, self._indicators @ row, -np.inf)

    def _expected(self, row: Array, weights: Array) -> Array:
        """sum_t weights_t B(cell | e_t, y), for the tables of class y."""
        scores = self._scores(row)
        return np.asarray(weights @ np.exp(scores - _log_sums(scores)[:, np.newaxis]) @ self._indicators)

    @property
    def _weights(self) -> Array:
        return np.array(oracles.weights_of(self.data))

    @cached_property
    def _used(self) -> list[int]:
        return sorted({i for family in self.families for i in family.attributes})

    @cached_property
    def _possible(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(self.data.schema.cardinalities[i]) for i in self._used)))

    @cached_property
    def _indicators(self) -> Array:
        """The cells of each possible row, a column of ones first."""
        z = np.zeros((len(self._possible), self.n_cells))
        z[:, 0] = 1.0
        for row, values in zip(z, self._possible, strict=True):
            value, offset = dict(zip(self._used, values, strict=True)), 1
            for family in self.families:
                cell = 0
                for i, radix in zip(family.attributes, family.shape, strict=True):
                    cell = cell * radix + value[i]
                row[offset + cell] = 1.0
                offset += family.n_cells
        return z

    @cached_property
    def _fits(self) -> NDArray[Any]:
        """Whether possible row a agrees with all that is known of row t, (N, A)."""
        fits = np.ones((self.data.n_rows, len(self._possible)), bool)
        for place, i in enumerate(self._used):
            values = np.array([values[place] for values in self._possible])
            codes = self.data.codes[i][:, np.newaxis]
            fits &= (codes == values) | (codes == self.data.schema.cardinalities[i])
        return fits


def _log_sums(rows: Array) -> Array:
    """ln sum exp over the last axis."""
    top = rows.max(axis=-1)
    return np.asarray(top + np.log(np.exp(rows - top[..., np.newaxis]).sum(axis=-1)))


def enumeration(data: Dataset, families: Sequence[Family]) -> Enumeration:
    return Enumeration(data, tuple(families))


def with_missing(data: Dataset, share: float, seed: int = 0) -> Dataset:
    """The same rows, each value gone with this probability, under the policy that marginalizes what is missing."""
    rng = np.random.default_rng(seed)
    schema = replace(data.schema, missing_policy="marginalize")
    gone = rng.random((len(data.codes), data.n_rows)) < share
    pairs = zip(data.codes, gone, schema.cardinalities, strict=True)
    return replace(data, schema=schema, codes=tuple(np.where(g, n, c).astype(np.uint8) for c, g, n in pairs))


@st.composite
def incomplete_cases(draw: st.DrawFn, max_rows: int = 20) -> tuple[Dataset, Dag]:
    """Few rows with any share of missing values, and any graph over few attributes."""
    cardinalities = draw(st.lists(st.integers(2, 3), min_size=1, max_size=4))
    seed = draw(st.integers(0, 999))
    n_rows, n_labels = draw(st.integers(1, max_rows)), draw(st.integers(2, 3))
    data = random_dataset(n_rows, cardinalities, n_labels, seed=seed, weighted=draw(st.booleans()))
    share = draw(st.sampled_from([0.0, 0.25, 0.6, 1.0]))
    return with_missing(data, share, seed), draw(dags(len(cardinalities)))
