"""The convergence experiments of Zaidi et al. (2017), "Efficient parameter learning of Bayesian network classifiers".

Three parameter spaces of the same classifiers: w (`weighted`, level 4), d (`discriminative`), e (`extended`); each
climbed by plain L-BFGS, no penalty, from 0 and from the generative model. NLL is the negative conditional
log-likelihood of the training rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.networks.random_networks import conditioning_network
from bncli.engine.networks.simulation import sample
from bncli.engine.parameter_learners import discriminative, extended, weighted
from bncli.engine.parameter_spaces.coordinates import PerCell
from bncli.engine.structure_learners import kdb, nb, tan
from bncli.engine.structures.structure import Dag
from bncli.engine.training.optimization import ParameterSpace
from tests.performance.workloads import real
from tests.published.climbs import Climb, Moment, climb, published_lbfgs

Array = NDArray[np.float64]

SMOOTHING = "m-estimate:1"
LARGE = {
    "covertype": 50_000,
    "connect_4": None,
    "shuttle": None,
    "adult": None,
    "letter": None,
    "nursery": None,
    "satimage": None,
}
"""The largest sets, and how many of their rows, drawn at random (None: all)."""
TO_THE_END = ("vehicle", "car", "cmc", "tic_tac_toe")
"""Sets small enough for the paper's own stopping rule."""
PRECISE = ("adult", "connect_4", "nursery", "german", "cmc", "car", "pima")
"""Sets climbed until nothing is left to gain."""
MOST = 500
"""Iterations there; passes of the product's optimiser, which finishes the iteration in hand."""
LATE = 550
"""Who needs more passes has not arrived: about what 500 iterations of L-BFGS take."""
DOUBLES = ("_2class", "_train")
"""Names of files that hold other sets' rows end like this."""
STRUCTURES: dict[str, Callable[[Counts], Dag]] = {
    "NB": nb.learn,
    "TAN": tan.learn,
    "KDB-1": lambda counts: kdb.learn(counts, k=1),
}
SPACES = ("w", "d", "e")
IN_UNITS = "s"
"""d in another unit: see `_InUnits`."""
OWN = (("w", "generative"), ("d", "zero"), ("d", "generative"))
"""Spaces and starts from which the product's optimiser climbs."""
STARTS = ("zero", "generative")
AFTER = 5
"""The iteration at which the paper compares."""
MAX_ITERATIONS = 200
MAX_PASSES = 120
"""For the product's optimiser, whose iterations may take several; an iteration of the others takes about one."""
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def small_sets() -> list[str]:
    """Every other table in the folder of real data."""
    names = {path.name.split(".")[0] for path in Path(os.environ["BNCLI_DATA"]).glob("*.csv*")}
    return sorted(name for name in names - LARGE.keys() if not name.endswith(DOUBLES))


@dataclass(frozen=True)
class Case:
    """A data set with a structure, climbed in the three spaces from both starts; `own` are the product's optimiser."""

    name: str
    structure: str
    climbs: dict[tuple[str, str], Climb]
    own: dict[tuple[str, str], Climb]

    @property
    def lowest(self) -> float:
        return min(-each.best for each in (*self.climbs.values(), *self.own.values()))

    def target(self, share: float) -> float:
        """The CLL at which all but this share of the way from uniform probabilities to the best is made."""
        return -self.lowest - share * (-self.climbs["w", "zero"].start - self.lowest)

    def arrival(self, run: Climb, gap: float) -> Moment | None:
        """When the NLL comes within this share of the lowest; None if it never does, or too late."""
        moment = run.reaching(-self.lowest * (1 + gap))
        return None if moment is None or moment.passes > LATE else moment

    def lag(self, space: str, start: str) -> int:
        """Iterations after the fifth that `space` needs to be where w was after five; negative where w needs them."""
        w, other = self.climbs["w", start], self.climbs[space, start]
        ahead, behind, sign = (w, other, 1) if at(w, AFTER) >= at(other, AFTER) else (other, w, -1)
        moment = behind.reaching(at(ahead, AFTER))
        last = behind.end.iteration if moment is None else moment.iteration
        return sign * max(0, last - AFTER)


def at(run: Climb, iteration: int) -> float:
    """The CLL after so many iterations, or at the end of a shorter run."""
    return run.moments[min(iteration, len(run.moments) - 1)].cll


def cases(
    name: str,
    n_rows: int | None = None,
    *,
    words: Sequence[str] = SPACES,
    starts: Sequence[str] = STARTS,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = 0.0,
    own: Sequence[tuple[str, str]] = (),
    max_passes: int = MAX_PASSES,
) -> Iterator[Case]:
    """The set with each of the three structures; skips the test where it is not at hand."""
    counts = Counts(real(name, n_rows))
    for structure, learn in STRUCTURES.items():
        spaces = spaces_of(counts, learn(counts))
        climbs = {
            (word, start): published_lbfgs(spaces[word], start, max_iterations, tolerance=tolerance)
            for word in words
            for start in starts
        }
        ours = {
            (word, start): climb(spaces[word], "newton", init=start, tolerance=1e-12, max_passes=max_passes)
            for word, start in own
        }
        yield Case(name, structure, climbs, ours)


def to_the_optimum(name: str) -> Iterator[Case]:
    """From the generative model, until little is left to gain."""
    return cases(name, starts=("generative",), max_iterations=MOST, own=(("d", "generative"),), max_passes=MOST)


def spaces_of(counts: Counts, structure: Dag) -> dict[str, ParameterSpace]:
    free = discriminative.space(counts, structure, smoothing=SMOOTHING)
    log_theta = free.coordinates.tables(free.coordinates.generative)
    return {
        "w": weighted.space(counts, structure, smoothing=SMOOTHING, level=4),
        "d": free,
        "e": extended.space(counts, structure, smoothing=SMOOTHING),
        IN_UNITS: replace(free, coordinates=_InUnits(log_theta, float(np.sqrt(np.mean(log_theta**2))))),
    }


@dataclass(frozen=True)
class _InUnits(PerCell):
    """W = unit * p, the same unit for all: d, but a step of length 1 goes as far as in w on average."""

    unit: float

    @property
    def generative(self) -> Array:
        return self.log_theta.ravel() / self.unit

    @property
    def scale(self) -> Array:
        return np.full((1, self.log_theta.shape[1]), self.unit)

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.unit * d_tables.ravel()


def conditioning(exponent: float, seed: int) -> dict[str, Climb]:
    """Three binary inputs with coefficients 10^a, 1 and 10^-a, 10,000 rows, naive Bayes, w and d from 0."""
    columns = sample(conditioning_network(exponent), 10_000, np.random.default_rng(seed))
    counts = Counts(learn_dataset(columns))
    spaces = spaces_of(counts, nb.learn(counts))
    return {space: published_lbfgs(spaces[space], "zero", 100) for space in ("w", "d")}


def geometric(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
