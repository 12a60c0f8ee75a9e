"""Small random networks, rows with missing values, and their likelihood by enumerating completions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.structures.structure import Dag, Family
from tests.datasets import schema_of
from tests.strategies import dags

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows, the families of a whole network, and log CPTs of shape (K, n_cells)."""

    data: Dataset
    families: tuple[Family, ...]
    cells: Array


@st.composite
def problems(draw: st.DrawFn, max_attributes: int = 6) -> Problem:
    """Draw any graph, any missing values, 2 to 4 classes, attributes of 1 to 3 values, rows with weights or without."""
    cardinalities = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=max_attributes)))
    dag = draw(dags(len(cardinalities)))
    share = draw(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
    seed = draw(st.integers(0, 2**32 - 1))
    return problem(dag, cardinalities, draw(st.integers(2, 4)), draw(st.integers(0, 12)), share, seed)


def problem(
    dag: Dag,
    cardinalities: tuple[int, ...],
    n_labels: int,
    n_rows: int,
    share: float,
    seed: int = 0,
    concentration: float = 0.7,
) -> Problem:
    """Return random rows, each value missing with probability `share`; a smaller `concentration` is more extreme."""
    rng = np.random.default_rng(seed)
    families = dag.families(cardinalities, all_factors=True)
    codes = tuple(
        np.where(rng.random(n_rows) < share, n, rng.integers(0, n, n_rows)).astype("u1") for n in cardinalities
    )
    labels = rng.integers(0, n_labels, n_rows).astype("u1")
    weights = rng.uniform(0.2, 3.0, n_rows) if seed % 2 else None
    data = Dataset(schema_of(cardinalities, n_labels), codes, labels, weights)
    prior = np.zeros(n_labels) if dag.class_parents else np.log(rng.dirichlet(np.ones(n_labels)))
    tables = [_log_cpt(family, n_labels, concentration, rng) for family in families]
    return Problem(data, families, np.concatenate([prior[:, np.newaxis], *tables], axis=1))


def _log_cpt(family: Family, n_labels: int, concentration: float, rng: np.random.Generator) -> Array:
    table = rng.gamma(concentration, size=(*family.shape, n_labels if family.by_class else 1)) + 1e-9
    table /= table.sum(axis=-1 if family.child is None else 0, keepdims=True)
    return np.array(np.broadcast_to(np.log(table), (*family.shape, n_labels)).reshape(-1, n_labels).T)


@dataclass(frozen=True)
class Enumerated:
    """log_joint (K, N) ln P(y, e_t); posterior[t, y, c] = P(cell c | e_t, y)."""

    problem: Problem
    log_joint: Array
    posterior: Array

    @property
    def value(self) -> float:
        return float(self._weights @ self._of_label(self.log_posterior))

    @property
    def joint_value(self) -> float:
        return float(self._weights @ self._of_label(self.log_joint))

    @property
    def log_posterior(self) -> Array:
        return self.log_joint - np.logaddexp.reduce(self.log_joint, axis=0)

    @property
    def gradient(self) -> Array:
        residual = self._one_hot - np.exp(self.log_posterior)
        return np.einsum("t,yt,tyc->yc", self._weights, residual, self.posterior)

    @property
    def expected(self) -> Array:
        return np.einsum("t,yt,tyc->yc", self._weights, self._one_hot, self.posterior)

    @property
    def _weights(self) -> Array:
        data = self.problem.data
        return np.ones(data.n_rows) if data.weights is None else data.weights

    @property
    def _one_hot(self) -> Array:
        return np.eye(len(self.log_joint))[self.problem.data.labels].T

    def _of_label(self, table: Array) -> Array:
        return table[self.problem.data.labels, np.arange(self.problem.data.n_rows)]


def enumerate_completions(problem: Problem) -> Enumerated:
    rows = [_row(problem, t) for t in range(problem.data.n_rows)]
    shape = problem.cells.shape
    log_joint = np.array([row[0] for row in rows]).reshape(-1, shape[0]).T
    return Enumerated(problem, log_joint, np.array([row[1] for row in rows]).reshape(-1, *shape))


def _row(problem: Problem, t: int) -> tuple[Array, Array]:
    cells = problem.cells
    active = [active_cells(problem.families, values) for values in completions(problem, t)]
    log_terms = np.array([cells[:, each].sum(axis=1) for each in active])
    total = np.logaddexp.reduce(log_terms, axis=0)
    counts = np.zeros(cells.shape)
    for each, log_term in zip(active, log_terms, strict=True):
        counts[:, each] += np.exp(log_term - total)[:, np.newaxis]
    return total, counts


def completions(problem: Problem, t: int) -> list[dict[int, int]]:
    """Return the possible values of row t, attribute by attribute of the network."""
    cardinalities = problem.data.schema.cardinalities
    members = sorted({attribute for family in problem.families for attribute in family.attributes})
    codes = [int(problem.data.codes[a][t]) for a in members]
    choices = [
        range(cardinalities[a]) if code == cardinalities[a] else [code] for a, code in zip(members, codes, strict=True)
    ]
    return [dict(zip(members, values, strict=True)) for values in itertools.product(*choices)]


def active_cells(families: Sequence[Family], values: dict[int, int]) -> list[int]:
    """Return the bias, and one cell per family."""
    active, start = [0], 1
    for family in families:
        active.append(start + int(np.ravel_multi_index([values[a] for a in family.attributes], family.shape)))
        start += family.n_cells
    return active


def through_softmax(problem: Problem, gradient: Array) -> list[Array]:
    """Return derivatives by free parameters beta, with theta = softmax beta, from dV/dW."""
    start, found = 1, []
    for family in problem.families:
        part = slice(start, start + family.n_cells)
        start = part.stop
        theta, slope = np.exp(problem.cells[:, part]), gradient[:, part]
        if not family.by_class:
            theta, slope = theta[:1], slope.sum(axis=0, keepdims=True)
        shape = (-1, 1) if family.child is None else (len(slope), family.shape[0], -1)
        if family.child is None:
            found.append(slope - theta * slope.sum(axis=0))
        else:
            theta, slope = theta.reshape(shape), slope.reshape(shape)
            found.append(slope - theta * slope.sum(axis=1, keepdims=True))
    return found
