"""The drawings of the page on Zaidi et al.: `bncli convergence` on traces made of the recorded runs."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bncli.steps.convergence import ConvergenceSettings, TracePath, convergence
from tests.published.climbs import Climb
from tests.published.zaidi_runs import AFTER, SPACES, STARTS, STRUCTURES, Case, Way

WORLDS = {"plain": "", "lbfgs": " preconditioned"}
"""Optimisers that climb in every space, and what the drawings call them."""


def figures(large: Sequence[Case], all_sets: Sequence[Case]) -> dict[str, str]:
    """SVG texts by the names of their files."""
    found = {}
    for start, structure in itertools.product(STARTS, STRUCTURES):
        cases = [case for case in large if case.structure == structure]
        found[f"zaidi_curves_{start}_{structure.lower()}.svg"] = _curves(cases, start)
    for start, optimizer in itertools.product(STARTS, WORLDS):
        found[f"zaidi_lags_{start}_{optimizer}.svg"] = _lags(all_sets, start, optimizer)
    return found


def _curves(cases: Sequence[Case], start: str) -> str:
    with TemporaryDirectory() as folder:
        ways = [Way(space, start, optimizer) for optimizer in WORLDS for space in SPACES]
        traces = [*_traces(Path(folder), cases, ways)]
        convergence(traces, ConvergenceSettings(of="nll"), svg=f"{folder}/c.svg")
        return Path(folder, "c.svg").read_text()


def _lags(cases: Sequence[Case], start: str, optimizer: str) -> str:
    with TemporaryDirectory() as folder:
        traces = [*_traces(Path(folder), cases, [Way(space, start, optimizer) for space in SPACES])]
        question = ConvergenceSettings(lag=f"w{WORLDS[optimizer]}", at=AFTER)
        convergence(traces, question, histogram=f"{folder}/h.svg")
        return Path(folder, "h.svg").read_text()


def _traces(folder: Path, cases: Sequence[Case], ways: Sequence[Way]) -> Iterator[TracePath]:
    """A folder a case, a file a run."""
    for case in cases:
        place = folder / f"{case.name} {case.structure}"
        place.mkdir()
        for way in ways:
            path = place / f"{way.space}{WORLDS[way.optimizer]}.csv"
            _write(path, case.climbs[way])
            yield TracePath(str(path))


def _write(path: Path, run: Climb) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("iteration", "cll"))
        writer.writerows((moment.iteration, moment.cll) for moment in run.moments)
