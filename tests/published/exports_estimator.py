"""What scikit-learn's own checks say of `bncli.Classifier`: python -m tests.published.exports_estimator measures."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.published.pages import read_csv

FIGURES = Path(__file__).with_suffix(".csv")
LEARNERS: dict[str, dict[str, Any]] = {
    "nb": {"structure": "nb", "param": "map"},
    "tan": {"structure": "tan", "param": "weighted", "penalty": 1.0},
    "kdb": {"structure": "kdb", "penalty": 1.0},
    "interactions": {"structure": "interactions", "penalty": 1.0},
    "auto": {"structure": "auto", "effort": 1},
}


class Figure(NamedTuple):
    """Checks of `check_estimator` by what came of them; skipped is that of arrays of other libraries."""

    learner: str
    scikit_learn: str
    passed: int
    skipped: int
    failed: int


def recorded() -> list[Figure]:
    """The file of figures."""
    return [Figure(learner, version, *map(int, counts)) for learner, version, *counts in read_csv(FIGURES)[1:]]


def measured(learner: str) -> Figure:
    """All checks of one learner; none may be expected to fail."""
    import sklearn
    from sklearn.utils.estimator_checks import check_estimator

    import bncli

    found = check_estimator(bncli.Classifier(**LEARNERS[learner]), on_skip=None, on_fail=None)
    counts = Counter(one["status"] for one in found)
    told = Figure(learner, sklearn.__version__, counts["passed"], counts["skipped"], counts["failed"])
    assert sum(told[2:]) == len(found), counts
    return told


def main() -> None:
    """Writes exports_estimator.csv."""
    with FIGURES.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Figure._fields)
        for learner in LEARNERS:
            writer.writerow(measured(learner))
            file.flush()


if __name__ == "__main__":
    main()
