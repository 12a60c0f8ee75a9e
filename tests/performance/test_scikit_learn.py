"""Naive Bayes with discriminative parameters beside scikit-learn's LogisticRegression.

The same objective: one-hot cells and a column of ones, no intercept of its own. scikit-learn has one coefficient vector
for two classes, W = (-beta/2, beta/2), so that lambda/2 |W|^2 = lambda/4 |beta|^2 and C = 2/lambda. Every contestant
gets the loosest setting of its ladder that comes within 1e-6 of the best objective value. Only the fit is timed: ours
from the codes, with counting, fusing and conditioning; theirs from the finished sparse matrix. Imports are not timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.counts import Counts
from bncli.engine.dataset import Dataset
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.objectives import GAP, Problem, own_path
from tests.performance.workloads import real, structure
from tests.performance.yardsticks import cells

pytestmark = pytest.mark.performance

Fit = Callable[[], NDArray[np.float64]]

SOLVERS = {
    "adult": ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),
    "letter": ("lbfgs", "newton-cg", "sag", "saga"),  # newton-cholesky needs a minute there
}
LADDERS = {
    "lbfgs": [(1e-4, 2000), (1e-5, 2000), (1e-6, 2000)],
    "newton-cg": [(1e-4, 100), (1e-5, 100), (1e-6, 100)],
    "newton-cholesky": [(1e-4, 100), (1e-5, 100), (1e-6, 100)],
    "sag": [(1e-3, 100), (3e-4, 200), (1e-4, 400), (1e-5, 800)],
    "saga": [(1e-3, 30), (3e-4, 100), (1e-4, 200), (1e-5, 400)],
}


@pytest.mark.parametrize("name", ["adult", "letter"])
def test_same_objective_value_sooner(name: str, record: Recorder) -> None:
    data = real(name)
    problem = Problem(Counts(data), structure(data, "nb"), "discriminative")
    objective, _ = problem.plain()
    best = own_path(problem).best

    def arrives(p: NDArray[np.float64]) -> bool:
        return objective(p)[0] <= best * (1 + GAP)

    contestants = {"own": loosest(own_fits(problem), arrives)}
    for solver in SOLVERS[name]:
        contestants[solver] = loosest(their_fits(data, problem, solver), arrives)
    times = alternate(contestants, repeats=3, warm=True)
    for solver in SOLVERS[name]:
        detail = f"own {times['own'].cpu:.3f} s, {solver} {times[solver].cpu:.3f} s"
        record(f"{name}, beside {solver}", times["own"].cpu / times[solver].cpu, "x its time", 0.5, detail)


def loosest(fits: Iterator[Fit], arrives: Callable[[NDArray[np.float64]], bool]) -> Fit:
    """The first of a ladder of fits that arrives."""
    return next(fit for fit in fits if arrives(fit()))


def own_fits(problem: Problem) -> Iterator[Fit]:
    def fit(tolerance: float) -> NDArray[np.float64]:
        fresh = Problem(Counts(problem.counts.data), problem.structure, problem.space)
        tables = fresh.learn(tolerance).tables
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1).ravel()

    return ((lambda tolerance=tolerance: fit(tolerance)) for tolerance in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9))


def their_fits(data: Dataset, problem: Problem, solver: str) -> Iterator[Fit]:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    families = problem.structure.families(data.schema.cardinalities)
    columns = np.concatenate([np.zeros((data.n_rows, 1), np.intp), cells(data, families)], axis=1)
    starts = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)
    n_cells = 1 + sum(family.n_cells for family in families)
    parts = (np.ones(columns.size), columns.ravel().astype(np.int32), starts)
    rows = csr_matrix(parts, shape=(data.n_rows, n_cells))
    two = data.n_labels == 2

    def fit(tolerance: float, max_iterations: int) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "did not converge" is for the ladder to find out
            model = LogisticRegression(
                C=2.0 if two else 1.0,
                solver=solver,
                tol=tolerance,
                max_iter=max_iterations,
                fit_intercept=False,
                random_state=0,
            ).fit(rows, data.labels)
        beta = model.coef_
        return (np.concatenate([-beta / 2, beta / 2]) if two else beta).ravel()

    return ((lambda rung=rung: fit(*rung)) for rung in LADDERS[solver])
