"""Passes to the optimum.

Until the penalised objective is within 1e-6 of its best value; lambda = 1, from zero. Beside scipy's L-BFGS-B on the
same objective with ten pairs and no preconditioner (at most 600 passes). Passes do not depend on the machine.
"""

from __future__ import annotations

import pytest

from bncli.engine.counting.counts import Counts
from tests.performance.conftest import Recorder
from tests.performance.objectives import Problem, own_path, plain_path
from tests.performance.workloads import real, structure

pytestmark = pytest.mark.performance

CASES = [
    ("discriminative", "adult", None, "nb", 40),
    ("discriminative", "adult", None, "tan", 60),
    ("discriminative", "letter", None, "nb", 60),
    ("discriminative", "nursery", None, "nb", None),
    ("discriminative", "nursery", None, "tan", None),
    ("discriminative", "covertype", 20_000, "nb", None),
    ("weighted", "adult", None, "nb", None),
    ("weighted", "adult", None, "tan", None),
    ("weighted", "letter", None, "nb", None),
    ("weighted", "nursery", None, "nb", None),
    ("weighted", "nursery", None, "tan", None),
    ("weighted", "covertype", 20_000, "nb", None),
    ("weighted", "covertype", 20_000, "tan", None),
]


@pytest.mark.parametrize(("space", "name", "n_rows", "word", "at_most"), CASES)
def test_passes(space: str, name: str, n_rows: int | None, word: str, at_most: int | None, record: Recorder) -> None:
    data = real(name, n_rows)
    problem = Problem(Counts(data), structure(data, word), space)
    own, plain = own_path(problem), plain_path(problem, max_passes=600)
    best = min(own.best, plain.best)
    detail = (
        f"plain L-BFGS {plain.passes(best):.0f}; to 1e-9: {own.passes(best, 1e-9):.0f}, {plain.passes(best, 1e-9):.0f}"
    )
    what = f"{space}, {name} {word.upper()}, {data.n_rows:,} rows, {problem.plain()[1]:,} parameters"
    record(what, own.passes(best), "passes", at_most, detail)
