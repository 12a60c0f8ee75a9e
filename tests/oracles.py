"""Slow, obvious references: one row, one cell, one tree at a time, straight from the definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from bncli.engine.structures.structure import Family

Array = NDArray[np.float64]


def weights_of(data: Dataset) -> list[float]:
    return [1.0] * data.n_rows if data.weights is None else [float(w) for w in data.weights]


def count(data: Dataset, attributes: Sequence[int]) -> Array:
    """n[x_i, ..., y] by a loop over rows."""
    cardinalities = data.schema.cardinalities
    table = np.zeros((*(cardinalities[i] for i in attributes), data.n_labels))
    for t, w in enumerate(weights_of(data)):
        table[(*(int(data.codes[i][t]) for i in attributes), int(data.labels[t]))] += w
    return table


def mutual_information(table: Array) -> float:
    """I(X; Y) of n[a, y], in nats."""
    total = table.sum()
    terms = []
    for a, y in itertools.product(*map(range, table.shape)):
        if table[a, y] > 0:
            p, pa, py = table[a, y] / total, table[a].sum() / total, table[:, y].sum() / total
            terms.append(p * math.log(p / (pa * py)))
    return math.fsum(terms)


def conditional_mutual_information(table: Array) -> float:
    """I(X; Z | Y) of n[a, b, y], in nats."""
    total = table.sum()
    terms = []
    for a, b, y in itertools.product(*map(range, table.shape)):
        if table[a, b, y] > 0:
            py = table[:, :, y].sum()
            joint, left, right = table[a, b, y] / py, table[a, :, y].sum() / py, table[:, b, y].sum() / py
            terms.append(table[a, b, y] / total * math.log(joint / (left * right)))
    return math.fsum(terms)


def spanning_trees(nodes: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All spanning trees: every choice of n - 1 edges without a cycle."""
    edges = list(itertools.combinations(nodes, 2))
    for chosen in itertools.combinations(edges, len(nodes) - 1):
        component = {i: i for i in nodes}
        for i, j in chosen:
            old, new = component[i], component[j]
            if old == new:
                break
            component = {node: new if c == old else c for node, c in component.items()}
        else:
            yield list(chosen)


def cell(family: Family, data: Dataset, t: int) -> int:
    """The mixed-radix number of row t's values as the family bins them, the first attribute the most significant."""
    number = 0
    for position, radix in enumerate(family.shape):
        number = number * radix + digit(family, position, int(data.codes[family.attributes[position]][t]))
    return number


def digit(family: Family, position: int, code: int) -> int:
    """The code of one of its attributes in the binning of the family."""
    grouping = family.groupings[position] if family.groupings else None
    return code if grouping is None else grouping[code]


def written_out(family: Family, table: Array, cardinalities: Sequence[int]) -> tuple[Family, Array]:
    """The same table (cells, any) over the codes of the attributes, cell by cell, and the family without groupings."""
    shape = tuple(cardinalities[a] for a in family.attributes)
    rows = []
    for codes in itertools.product(*map(range, shape)):
        digits = [digit(family, position, code) for position, code in enumerate(codes)]
        rows.append(table[int(np.ravel_multi_index(digits, family.shape))])
    return Family(family.attributes, shape, family.child, family.by_class), np.array(rows).reshape(-1, table.shape[-1])


def active_cells(families: Sequence[Family], data: Dataset, t: int) -> list[int]:
    """Row t's cells in the flat numbering: 0 is the bias, then family after family."""
    cells, offset = [0], 1
    for family in families:
        cells.append(offset + cell(family, data, t))
        offset += family.n_cells
    return cells


def indicators(families: Sequence[Family], data: Dataset) -> Array:
    """The rows' explicit one-hot matrix, (N, 1 + cells of all families), the column of ones first."""
    z = np.zeros((data.n_rows, 1 + sum(family.n_cells for family in families)))
    for t in range(data.n_rows):
        z[t, active_cells(families, data, t)] = 1.0
    return z


def log_posterior(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    log_sum = top + math.log(math.fsum(math.exp(s - top) for s in scores))
    return [s - log_sum for s in scores]


def conditional_log_likelihood(families: Sequence[Family], data: Dataset, cells: Array) -> tuple[float, Array]:
    """sum_t w_t ln P(y_t | x_t) and its gradient, for tables `cells` (K, n_cells), by a loop over rows."""
    gradient = np.zeros(cells.shape)
    terms = []
    for t, w in enumerate(weights_of(data)):
        active = active_cells(families, data, t)
        log_p = log_posterior([math.fsum(row[active]) for row in cells])
        terms.append(w * log_p[int(data.labels[t])])
        for y, lp in enumerate(log_p):
            gradient[y, active] += w * ((y == int(data.labels[t])) - math.exp(lp))
    return math.fsum(terms), gradient


def hessian(families: Sequence[Family], data: Dataset, cells: Array) -> Array:
    """The Hessian of -CLL in the tables, (K n_cells, K n_cells), class-major: a sum of outer products over rows."""
    n_labels, n_cells = cells.shape
    z = indicators(families, data)
    total = np.zeros((n_labels, n_cells, n_labels, n_cells))
    for row, w in zip(z, weights_of(data), strict=True):
        p = np.exp(log_posterior(list(cells @ row)))
        total += w * np.einsum("yk,c,d->yckd", np.diag(p) - np.outer(p, p), row, row)
    return total.reshape(n_labels * n_cells, -1)


def slope(function: Callable[[Array], Any], p: Array, direction: Array, step: float = 1e-5) -> Any:
    """The derivative of `function` at p along `direction`, by central differences of fourth order."""
    near = function(p + step * direction) - function(p - step * direction)
    far = function(p + 2 * step * direction) - function(p - 2 * step * direction)
    return (8 * near - far) / (12 * step)


def smoothed(counts: Array, rule: str) -> Array:
    """theta[k, j] of counts N[k, j], the child's values first and everything else in one axis, entry by entry."""
    theta = np.zeros(counts.shape)
    for k, j in itertools.product(*map(range, counts.shape)):
        a, prior = _prior(counts, rule, k)
        total = float(counts[:, j].sum()) + a
        theta[k, j] = (float(counts[k, j]) + a * prior) / total if total > 0 else 1 / len(counts)
    return np.maximum(theta, 1e-10) if rule == "mle" else theta


def _prior(counts: Array, rule: str, k: int) -> tuple[float, float]:
    """(a, prior_k) of the formula theta = (N_kj + a prior_k) / (N_j + a)."""
    n_values, n_columns = counts.shape
    name, _, number = rule.partition(":")
    if name == "laplace":
        return float(number) * n_values, 1 / n_values
    if name == "m-estimate":
        return float(number), 1 / n_values
    if name == "bdeu":
        return float(number) / n_columns, 1 / n_values
    if name == "fgg":
        return float(number), (float(counts[k].sum()) + 1 / n_values) / (float(counts.sum()) + 1)
    return 0.0, 0.0
