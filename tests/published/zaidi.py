"""The convergence experiments of Zaidi et al. (2017), "Efficient parameter learning of Bayesian network classifiers".

Three parameter spaces of the same classifiers: w (`weighted`, level 4), d (`discriminative`), e (`extended`), no
penalty, climbed from 0 and from the generative model. NLL is the negative conditional log-likelihood of the training
rows. Run `BNCLI_DATA=FOLDER python -m tests.published.zaidi [STUDY...] [SET...]`: it measures what the files
`zaidi_STUDY.csv` lack, a set at a time, so that a stopped run goes on where it was, and writes the page.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.learn import learn_structure
from bncli.engine.networks.simulation import conditioning_network, sample
from bncli.engine.parameter_learners.conditional import (
    build_space_discriminative,
    build_space_extended,
    build_space_weighted,
)
from bncli.engine.parameters.coordinates import EntryCoordinates
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.structures.structure import Dag
from tests.performance.workloads import real
from tests.published.climbs import Climb, climb, one_thread, published_lbfgs
from tests.published.presets import preset
from tests.published.zaidi_runs import COARSE, GRID, IN_UNITS, SPACES, STARTS, Run, Way, recorded, thinned, write

Array = NDArray[np.float64]

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
DOUBLES = ("_2class", "_train")
"""Names of files that hold other sets' rows end like this."""
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
DRAWS = 10
MOST_PASSES = 40
"""Of the preconditioned runs in all spaces, which are there for their beginning."""
WORDS = {"NB": "nb", "TAN": "tan", "KDB-1": "kdb1"}
"""The structures, and the words of the preset's learners."""
PRESET = preset("zaidi")


class Study(NamedTuple):
    """Which sets are climbed how: words of the space, starts, and what the optimisers may spend.

    `max_passes` is for the product's default optimiser, whose iterations may take several; one of the published takes
    about one. `timed`: passes and seconds are kept.
    """

    sets: tuple[str, ...]
    ways: tuple[Way, ...]
    max_iterations: int
    max_passes: int
    tolerance: float = 0.0
    timed: bool = True

    @property
    def grid(self) -> Sequence[int]:
        return GRID if self.timed else COARSE


def _ways(optimizer: str, spaces: Sequence[str] = SPACES, starts: Sequence[str] = STARTS) -> tuple[Way, ...]:
    return tuple(Way(space, start, optimizer) for space in spaces for start in starts)


OURS = (Way("w", "generative", "newton"), Way("d", "zero", "newton"), Way("d", "generative", "newton"))
"""Spaces and starts from which the default optimiser climbs."""


def studies() -> dict[str, Study]:
    """All that is measured, by the name of its file."""
    both = (*_ways("plain"), *_ways("lbfgs"))
    from_model = (*_ways("plain", starts=("generative",)), Way("d", "generative", "newton"))
    return {
        "large": Study(tuple(LARGE), (*both, *OURS), 200, 120),
        "small": Study(small_sets(), (*both, *_ways("plain", (IN_UNITS,))), 100, 120, timed=False),
        "ends": Study(TO_THE_END, _ways("plain"), 2000, 0, tolerance=1e-32),
        "optimum": Study(PRECISE, from_model, 500, 500),
        "conditioning": Study(tuple(f"{a:g}" for a in EXPONENTS), (), 100, 0, timed=False),
    }


def small_sets() -> tuple[str, ...]:
    """Every other table in the folder of real data."""
    names = {path.name.split(".")[0] for path in Path(os.environ["BNCLI_DATA"]).glob("*.csv*")}
    return tuple(sorted(name for name in names - LARGE.keys() if not name.endswith(DOUBLES)))


def main(words: Sequence[str]) -> None:
    """Measures what is missing, of the studies and sets that are named if any are; the page once nothing is."""
    with one_thread():
        list(climbed("car", "NB", studies()["small"]))  # warms up
        for name, table, part in list(_missing()):
            if not words or {name, table, f"{name}/{table}"} & {*words}:
                _measure(name, studies()[name], table, part)
    if not any(_missing()):
        from tests.published import zaidi_page

        zaidi_page.write()


def _missing() -> Iterator[tuple[str, str, str]]:
    """Studies, their sets and structures (of the conditioning experiment draws) that the files lack."""
    for name, study in studies().items():
        done = {run[:2] for run in recorded(name)}
        yield from ((name, *pair) for pair in _pairs(name, study) if pair not in done)


def _pairs(name: str, study: Study) -> list[tuple[str, str]]:
    """In the order of the file."""
    parts = map(str, range(DRAWS)) if name == "conditioning" else WORDS
    return list(itertools.product(study.sets, parts))


def _measure(name: str, study: Study, table: str, part: str) -> None:
    runs = [*(conditioning(float(table), int(part)) if name == "conditioning" else climbed(table, part, study))]
    order = _pairs(name, study)
    write(name, sorted([*recorded(name), *runs], key=lambda run: order.index(run[:2])), timed=study.timed)
    print(name, table, part, flush=True)


def climbed(name: str, structure: str, study: Study) -> Iterator[Run]:
    """The set with this structure, climbed in every way of the study; thinned."""
    counts = Counts(rows_of(name))
    spaces = spaces_of(counts, structure_of(counts, structure))
    climbs = {way: _climb(spaces[way.space], way, study) for way in study.ways}
    yield from (Run(name, structure, way, run) for way, run in thinned(climbs, study.grid).items())


def structure_of(counts: Counts, structure: str) -> Dag:
    """Return the structure that the preset's learners have."""
    found = learn_structure(counts, PRESET[WORDS[structure]])
    assert isinstance(found, Dag)
    return found


def rows_of(name: str) -> Dataset:
    return real(name, LARGE.get(name))


def _climb(space: ParameterSpace, way: Way, study: Study) -> Climb:
    if way.optimizer == "plain":
        return published_lbfgs(space, way.start, study.max_iterations, tolerance=study.tolerance)
    return climb(
        space,
        way.optimizer,
        init=way.start,
        tolerance=1e-12,
        max_iterations=study.max_iterations,
        max_passes=study.max_passes if way.optimizer == "newton" else MOST_PASSES,
    )


def spaces_of(counts: Counts, structure: Dag) -> Mapping[str, ParameterSpace]:
    """Return the spaces of the preset's learners, and d in another unit."""
    smoothing = PRESET["nb w"].smoothing
    free = build_space_discriminative(counts, structure, smoothing=smoothing)
    log_theta = free.coordinates.tables(free.coordinates.generative)
    # W = unit * p, the same unit for all: d, but a step of length 1 goes as far as in w on average
    unit = float(np.sqrt(np.mean(log_theta**2)))
    return {
        "w": build_space_weighted(counts, structure, smoothing=smoothing, level=PRESET["nb w"].level),
        "d": free,
        "e": build_space_extended(counts, structure, smoothing=smoothing),
        IN_UNITS: replace(free, coordinates=EntryCoordinates(log_theta / unit, np.full((1, log_theta.shape[1]), unit))),
    }


def conditioning(exponent: float, draw: int) -> Iterator[Run]:
    """Three binary inputs with coefficients 10^a, 1 and 10^-a, 10,000 rows, naive Bayes, w and d from 0.

    The draw stands in place of the structure.
    """
    columns = sample(conditioning_network(exponent), 10_000, np.random.default_rng(draw))
    counts = Counts(learn_dataset(columns))
    spaces = spaces_of(counts, structure_of(counts, "NB"))
    climbs = {way: published_lbfgs(spaces[way.space], way.start, 100) for way in _ways("plain", ("w", "d"), ("zero",))}
    yield from (Run(f"{exponent:g}", str(draw), way, run) for way, run in thinned(climbs, GRID).items())


if __name__ == "__main__":
    main(sys.argv[1:])
