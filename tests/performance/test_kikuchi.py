"""Kikuchi-Bayes: the search beside the least work of its steps, and by rows.

The floor of a step is one look-up and one logarithm a row and candidate, with the cells of all candidates at hand. The
search also finds the cells, and averages over the classes, before it takes fewer logarithms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.candidate_gains import CandidateGains, Candidates, all_sets
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.structure_learners import kikuchi
from bncli.engine.structures.structure import Regions
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import real, simulated

pytestmark = pytest.mark.performance

PAPER = {"adult": 1.11, "chess_krkp": 6.52, "spambase": 39.9, "mushroom": 1.33, "horse_colic": 1.89, "anneal": 6.16}
"""Seconds of the search on a notebook of 2006 (Jakulin & Rish 2006, table 1)."""
CONNECT_4 = 60.0
"""Seconds of CPU for 67,557 rows x 42, with the 11,480 triples looked up once: 317 steps."""
FEW, MANY = 50_000, 500_000


def search(data: Dataset) -> Regions:
    return kikuchi.learn(Counts(data), max_order=4, theta=1.0, max_candidates=100_000)


@pytest.mark.parametrize("name", ["chess_krkp", "adult"])
def test_a_step_beside_its_floor(name: str, record: Recorder) -> None:
    data = real(name)
    schema = data.schema
    growing = GrowingModel(Counts(data), 1.0)
    growing.add((schema.informative[0],))
    members = all_sets(data.schema.informative, 3)
    ahead = CandidateGains(growing, Candidates(members, growing.rule.of_subsets(members)))
    wanted = np.arange(len(ahead.candidates.sets))
    times = alternate({"own": lambda: ahead.gains(wanted, lambda done, total: True), "floor": floor(data)}, repeats=3)
    detail = f"{len(wanted):,} triples, {times['own'].cpu:.3f} s, floor {times['floor'].cpu:.3f} s"
    record(f"a step of {name} beside look-ups and logarithms", times["own"].cpu / times["floor"].cpu, "x", 2.5, detail)


def floor(data: Dataset) -> Callable[[], object]:
    """As many look-ups and logarithms, over and over in the cells of a few triples."""
    triples = list(itertools.combinations(data.schema.informative, 3))
    cardinalities = data.schema.cardinalities
    cells, tables = [], []
    for i, j, k in triples[:8]:
        shape = (cardinalities[i], cardinalities[j], cardinalities[k])
        cells.append(np.ravel_multi_index([data.codes[a].astype(np.intp) for a in (i, j, k)], shape))
        tables.append(np.random.default_rng(0).uniform(0.5, 1.5, shape).ravel())

    def work() -> list[float]:
        sums = []
        for place in range(len(triples)):
            sums.append(0.0)
            for start in range(0, data.n_rows, 1 << 14):
                looked_up = tables[place % 8].take(cells[place % 8][start : start + (1 << 14)])
                sums[-1] += float(np.log(looked_up, out=looked_up).sum())
        return sums

    return work


@pytest.mark.parametrize("name", PAPER)
def test_seconds_beside_the_paper(name: str, record: Recorder) -> None:
    data = real(name)
    times = alternate({"own": lambda: search(data)}, repeats=1, warm=True)
    detail = f"{data.n_rows:,} rows x {len(data.schema.informative)}; the paper's notebook took {PAPER[name]} s"
    record(f"the search on {name}", times["own"].cpu, "s of CPU", PAPER[name] * 1.5, detail)


def test_seconds_on_many_rows_and_attributes(record: Recorder) -> None:
    """Every candidate looked up at every step takes 3.3 s for each of the some 140 steps of triples."""
    data = real("connect_4")
    times = alternate({"own": lambda: search(data)}, repeats=1, warm=True)
    detail = f"{data.n_rows:,} rows x {len(data.schema.informative)}"
    record("the search on connect_4", times["own"].cpu, "s of CPU", CONNECT_4, detail)


def test_linear_in_rows(record: Recorder) -> None:
    """Steps by rows, for the same candidates: a longer table bears a longer path."""
    few, many = simulated(FEW), simulated(MANY)
    times = alternate({"few": lambda: step(few), "many": lambda: step(many)}, repeats=1)
    ratio = times["many"].cpu / MANY / (times["few"].cpu / FEW)
    detail = f"{times['few'].cpu:.3f} s, {times['many'].cpu:.3f} s"
    record(f"pairs of {MANY:,} rows x 30, five classes", ratio, f"x the time a row of {FEW:,}", 1.5, detail)


def step(data: Dataset) -> None:
    growing = GrowingModel(Counts(data), 1.0)
    members = all_sets(data.schema.informative, 2)
    ahead = CandidateGains(growing, Candidates(members, growing.rule.of_subsets(members)))
    ahead.gains(np.arange(len(ahead.candidates.sets)), lambda done, total: True)
