"""What an iteration costs by the cost model of Feelders & Ivanovs (2006): floating-point operations, not seconds.

With N rows, K classes, r free parameters, |Z| the number of ones in the indicator matrix of the predictors (the
intercept counted), n attributes with d_i values and D = r network parameters:

    logistic regression:  cost_CLL = |Z|(K - 1) + N(K + 2),        cost_grad = |Z|K + 2NK
    Bayesian network:     cost_CLL = 3D + N(nK + 2K + 2),          cost_grad = 3D + N(2nK + n + (2K + 1)(3 + sum_i d_i))

    iteration of BFGS:         12 r^2 + 8r + (4r + cost_CLL) count_CLL + cost_grad
    iteration of CG and CGB:           10r + (4r + cost_CLL) count_CLL + cost_grad

count_CLL is the number of times that the iteration evaluates the conditional log-likelihood.

Conventions: the evaluation at the start belongs to no iteration, so it costs nothing; N counts rows whatever they
weigh; free tables have K columns where a logistic regression has K - 1, which makes cost_CLL = |Z|K + N(K + 2), and a
one a row for each table and for the bias; of a network, an intercept that a table over the class's parents replaces
does not count. What the penalty costs does not count either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bncli.engine.structures.structure import Family


@dataclass(frozen=True)
class Costs:
    """r, cost_CLL and cost_grad of a parameter space on a data set."""

    n_parameters: int
    cll: int
    gradient: int

    def spent(self, optimizer: str, iterations: int, cll_evaluations: int) -> int | None:
        """Flops of the iterations, the start being one of the evaluations of the CLL; None outside the model."""
        r = self.n_parameters
        overhead = {"bfgs": 12 * r * r + 8 * r, "cg": 10 * r, "cgb": 10 * r}.get(optimizer)
        if overhead is None:
            return None
        return iterations * (overhead + self.gradient) + (cll_evaluations - 1) * (4 * r + self.cll)


def logistic(n_parameters: int, n_ones: int, n_rows: int, n_labels: int) -> Costs:
    """Return a logistic regression with class 0 as reference; n_ones = |Z|."""
    cll = n_ones * (n_labels - 1) + n_rows * (n_labels + 2)
    return Costs(n_parameters, cll, n_ones * n_labels + 2 * n_rows * n_labels)


def network(n_parameters: int, n_values: Sequence[int], n_rows: int, n_labels: int) -> Costs:
    """Return a Bayesian network; n_values = d_i of the attributes that have a table of conditional probabilities."""
    n = len(n_values)
    cll = 3 * n_parameters + n_rows * (n * n_labels + 2 * n_labels + 2)
    per_row = 2 * n * n_labels + n + (2 * n_labels + 1) * (3 + sum(n_values))
    return Costs(n_parameters, cll, 3 * n_parameters + n_rows * per_row)


def of_free_tables(families: Sequence[Family], n_rows: int, n_labels: int) -> Costs:
    """Return a free table entry a cell and class, the bias among them."""
    n_cells, n_ones = 1 + sum(family.n_cells for family in families), (1 + len(families)) * n_rows
    columns = logistic(n_cells * n_labels, n_ones, n_rows, n_labels)
    return replace(columns, cll=columns.cll + n_ones)


def of_networks(families: Sequence[Family], n_rows: int, n_labels: int) -> Costs:
    """Return a network parameter a cell and class."""
    n_values = [family.shape[0] for family in families if family.child is not None]
    return network(sum(_tables(families)) * n_labels, n_values, n_rows, n_labels)


def _tables(families: Sequence[Family]) -> list[int]:
    """Return cells of each table, the class's own first or in the table over its parents."""
    cells = [family.n_cells for family in families]
    return cells if any(family.child is None for family in families) else [1, *cells]
