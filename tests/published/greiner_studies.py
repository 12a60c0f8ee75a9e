"""The artificial studies of Greiner et al. (2004): structures that say too little, and structures that say too much.

    simpler:  C -> E1, ..., E5 with P(+c) = 0.9, P(+e | +c) = 0.2, P(+e | -c) = 0.8, but E1 = E2 = ... = Em; learned as
              naive Bayes, which is ever more wrong the larger m is
    single:   E1 is C, or agrees with it in 98% of rows (a correlation of 0.96); E2, ..., Ek are coins; naive Bayes
    chain:    the first one with m = 0, learned with arcs E1 -> E2 -> ... -> E5 that nothing calls for

Errors are exact: every combination of values is predicted and weighed by its probability. Queries are complete; only
the rows that are learned from have holes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import Columns
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.evaluation.significance import PairedT, paired_t
from bncli.engine.learn import SuppliedParts, learn
from bncli.engine.structures.named_structure import NamedDag
from tests.published.greiner import recipe_of, with_missing
from tests.published.pages import read_csv
from tests.published.targets import all_combinations, binary_table

FIGURES = Path(__file__).with_name("greiner_studies.csv")
COMPLETE = ("OFE", "ELR")
UNSMOOTHED = tuple(f"{way} unsmoothed" for way in COMPLETE)
"""Only in `single`, where a class that E1 decides is known for certain from the first rows."""
INCOMPLETE = ("OFE", "ELR", "APN", "EM")
RUNS = 10
SIZES = (10, 20, 40, 80, 160)
SIMPLER_SIZE = 400
SIMPLER_HOLES = 0.5
OTHER_HOLES = 0.2


class Truth(NamedTuple):
    """A distribution: the probability of every combination of (class, E1, ..., Ek), the class the highest digit."""

    study: str
    setting: str
    probabilities: NDArray[np.float64]

    @property
    def k(self) -> int:
        return int(np.log2(len(self.probabilities))) - 1

    @property
    def best_error(self) -> float:
        """The error of whoever knows the distribution."""
        return float(self.probabilities.reshape(2, -1).min(axis=0).sum())


class Case(NamedTuple):
    """A truth learned in a way from `size` rows with a share of holes: the error of each run."""

    study: str
    setting: str
    holes: float
    size: int
    parameters: str
    errors: tuple[float, ...]


def simpler(m: int, k: int = 5, study: str = "simpler") -> Truth:
    """E1 = ... = Em, given the class independent of the others."""
    rows = all_combinations(k + 1)
    label, inputs = rows[:, 0], rows[:, 1:]
    given = np.where(label[:, np.newaxis] == 1, 0.2, 0.8)
    factors = np.where(inputs == 1, given, 1 - given)
    factors[:, 1:m] = inputs[:, 1:m] == inputs[:, :1]
    return Truth(study, f"m={m}", np.where(label == 1, 0.9, 0.1) * factors.prod(axis=1))


def single(k: int, agreement: float) -> Truth:
    """E1 agrees with the class; the others are coins."""
    rows = all_combinations(k + 1)
    agrees = np.where(rows[:, 1] == rows[:, 0], agreement, 1 - agreement)
    return Truth("single", f"k={k} {agreement:.0%}", agrees * 0.5**k)


TRUTHS = (
    *(simpler(m) for m in range(6)),
    *(single(k, agreement) for k in (6, 7) for agreement in (1.0, 0.98)),
    simpler(0, study="chain"),
)
CHAIN = NamedDag("class", {"e1": ("class",), **{f"e{i}": ("class", f"e{i - 1}") for i in range(2, 6)}})


def cases(truth: Truth) -> Iterator[Case]:
    """Every size, with and without holes, in every way; the ways of one run see the same rows."""
    sizes = (SIMPLER_SIZE,) if truth.study == "simpler" else SIZES
    complete = COMPLETE + UNSMOOTHED if truth.study == "single" else COMPLETE
    share = SIMPLER_HOLES if truth.study == "simpler" else OTHER_HOLES
    for size in sizes:
        for holes, ways in ((0.0, complete), (share, INCOMPLETE)):
            drawn = [with_missing(draw(truth, size, run), holes, run) for run in range(RUNS)]
            for way in ways:
                errors = tuple(_error(truth, rows, way) for rows in drawn)
                yield Case(truth.study, truth.setting, holes, size, way, errors)


def draw(truth: Truth, size: int, run: int) -> Columns:
    """Rows from the truth; larger sizes of a run begin with the smaller ones."""
    numbers = np.random.default_rng([run, truth.k]).choice(len(truth.probabilities), size, p=truth.probabilities)
    return _table(all_combinations(truth.k + 1)[numbers])


def _error(truth: Truth, rows: Columns, way: str) -> float:
    parameters, *unsmoothed = way.split(" ")
    recipe = recipe_of(f"NB+{parameters}")
    recipe = recipe.replaced(smoothing="mle") if unsmoothed else recipe
    model = learn(rows, recipe, supplied=SuppliedParts(structure=CHAIN if truth.study == "chain" else None)).model
    possible = np.flatnonzero(truth.probabilities)
    queries = _table(all_combinations(truth.k + 1)[possible])
    return predict_and_measure(model, replace(queries, weights=truth.probabilities[possible])).metrics.error


def _table(rows: NDArray[np.intp]) -> Columns:
    return binary_table(rows[:, 1:], [f"e{i}" for i in range(1, rows.shape[1])], rows[:, 0])


def recorded() -> list[Case]:
    """The file of figures."""
    return [
        Case(study, setting, float(holes), int(size), way, tuple(map(float, errors.split())))
        for study, setting, holes, size, way, errors in read_csv(FIGURES)[1:]
    ]


def mean_errors(found: Sequence[Case], study: str, *, holes: bool, way: str) -> dict[tuple[str, int], float]:
    """By setting and size."""
    chosen = (c for c in found if (c.study, c.parameters, c.holes > 0) == (study, way, holes))
    return {(c.setting, c.size): float(np.mean(c.errors)) for c in chosen}


def compare(found: Sequence[Case], study: str, *, holes: bool, ways: tuple[str, str], setting: str = "") -> PairedT:
    """Whether the errors of the second way are higher than those of the first: over all runs, settings and sizes."""
    first, second = (
        [
            error
            for c in found
            if (c.study, c.parameters, c.holes > 0) == (study, way, holes) and setting in c.setting
            for error in c.errors
        ]
        for way in ways
    )
    return paired_t(second, first)
