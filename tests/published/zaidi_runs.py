"""The runs of the convergence experiments of Zaidi et al. (2017) as files: `zaidi_STUDY.csv`, a line a run.

Of a run only those moments are kept that something is told of: the iterations of a grid, those that first come to a
threshold (where another space was after five iterations; shares of the way to the lowest NLL), the best and the last.
NLLs are rounded before anything is compared, so that the file gives what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.published.climbs import Climb, Moment
from tests.published.pages import read_csv, write_csv

STRUCTURES = ("NB", "TAN", "KDB-1")
SPACES = ("w", "d", "e")
IN_UNITS = "s"
"""d with all parameters in another unit, the root mean square of the log probabilities."""
STARTS = ("zero", "generative")
AFTER = 5
"""The iteration at which the paper compares."""
SHARES = (0.01, 0.001)
"""Of the way from uniform probabilities to the lowest NLL, what may be missing."""
GAPS = (1e-3, 1e-6)
"""Of the lowest NLL, what may be missing."""
LATE = 550
"""Who needs more passes has not arrived: about what 500 iterations of L-BFGS take."""
GRID = (*range(11), 12, 15, 20, 25, 30, 40, 50, 60, 70, 85, 100, 120, 150, 175, 200)
COARSE = (*range(AFTER + 1), 10, 20, 50, 100)
"""Iterations that are kept, of runs that are timed and of others."""
HEADER = ("set", "structure", "start", "space", "optimizer", "iteration", "nll", "passes", "seconds")


class Way(NamedTuple):
    """Space and start, and the optimiser: `plain` (the published one), `lbfgs` and `newton` (the product's)."""

    space: str
    start: str
    optimizer: str


class Run(NamedTuple):
    """A data set with a structure, climbed in a way."""

    set: str
    structure: str
    way: Way
    climb: Climb


@dataclass(frozen=True)
class Case:
    """A data set with a structure, climbed in several ways."""

    name: str
    structure: str
    climbs: Mapping[Way, Climb]

    @property
    def lowest(self) -> float:
        """The lowest NLL that anybody found."""
        return min(-each.best for each in self.climbs.values())

    def target(self, share: float) -> float:
        """The CLL at which all but this share of the way from uniform probabilities to the best is made."""
        uniform = next(run.start for way, run in self.climbs.items() if way.start == "zero")
        return -self.lowest - share * (-uniform - self.lowest)

    def near(self, gap: float) -> float:
        """The CLL at which the NLL is within this share of the lowest."""
        return -self.lowest * (1 + gap)

    def arrival(self, way: Way, gap: float) -> Moment | None:
        """When the NLL comes within this share of the lowest; None if it never does, or too late."""
        moment = self.climbs[way].reaching(self.near(gap))
        return None if moment is None or moment.passes > LATE else moment

    def lag(self, way: Way) -> int:
        """Iterations after the fifth that `way` needs to be where w was after five; negative where w needs them."""
        w, other = self.climbs[way._replace(space="w")], self.climbs[way]
        ahead, behind, sign = (w, other, 1) if at(w, AFTER) >= at(other, AFTER) else (other, w, -1)
        moment = behind.reaching(at(ahead, AFTER))
        last = behind.end.iteration if moment is None else moment.iteration
        return sign * max(0, last - AFTER)


def at(run: Climb, iteration: int) -> float:
    """The CLL after so many iterations, or at the end of a shorter run."""
    return next(moment.cll for moment in reversed(run.moments) if moment.iteration <= iteration)


def thinned(climbs: Mapping[Way, Climb], grid: Sequence[int]) -> dict[Way, Climb]:
    """The moments of the runs of a case that are kept, their NLLs rounded."""
    case = Case("", "", {way: _rounded(run) for way, run in climbs.items()})
    everywhere = [case.near(gap) for gap in GAPS]
    if any(way.start == "zero" for way in climbs):
        everywhere += [case.target(share) for share in SHARES]
    return {
        way: _kept(run, grid, [*everywhere, *(at(run, AFTER) for of, run in case.climbs.items() if of[1:] == way[1:])])
        for way, run in case.climbs.items()
    }


def _rounded(run: Climb) -> Climb:
    return Climb(tuple(replace(moment, cll=float(f"{moment.cll:.8g}")) for moment in run.moments))


def _kept(run: Climb, grid: Sequence[int], thresholds: Sequence[float]) -> Climb:
    wanted = {run.end, *(run.reaching(cll) for cll in (run.best, *thresholds))}
    return Climb(tuple(moment for moment in run.moments if moment.iteration in grid or moment in wanted))


def path(study: str) -> Path:
    return Path(__file__).with_name(f"zaidi_{study}.csv")


def write(study: str, runs: Sequence[Run], *, timed: bool) -> None:
    """All runs of a study; without passes and seconds unless `timed`."""
    write_csv(path(study), [HEADER, *(_line(run, timed=timed) for run in runs)])


def _line(run: Run, *, timed: bool) -> tuple[str, ...]:
    def all_of(text: Callable[[Moment], str]) -> str:
        return " ".join(map(text, run.climb.moments))

    spent = (all_of(lambda m: str(m.passes)), all_of(lambda m: f"{m.seconds:.3g}")) if timed else ("", "")
    way = (run.way.start, run.way.space, run.way.optimizer)
    return (run.set, run.structure, *way, all_of(lambda m: str(m.iteration)), all_of(lambda m: f"{-m.cll:.8g}"), *spent)


@cache
def _lines(study: str, changed: float) -> list[list[str]]:
    return read_csv(path(study))[1:]


def recorded(study: str) -> list[Run]:
    """The runs in the file of a study; none where there is no file. Passes and seconds that were not kept are NaN."""
    if not path(study).exists():
        return []
    return [_run(line) for line in _lines(study, path(study).stat().st_mtime)]


def _run(line: Sequence[str]) -> Run:
    name, structure, start, space, optimizer, *columns = line
    iterations, nlls, passes, seconds = (column.split() for column in columns)
    moments = (
        Moment(
            int(iteration), -float(nll), 0, int(passes[i]) if passes else 0, float(seconds[i]) if seconds else math.nan
        )
        for i, (iteration, nll) in enumerate(zip(iterations, nlls, strict=True))
    )
    return Run(name, structure, Way(space, start, optimizer), Climb(tuple(moments)))


def by_case(runs: Sequence[Run]) -> list[Case]:
    """The runs put together by data set and structure, in the order of the file."""
    found: dict[tuple[str, str], dict[Way, Climb]] = {}
    for run in runs:
        found.setdefault(run[:2], {})[run.way] = run.climb
    return [Case(*key, climbs) for key, climbs in found.items()]
