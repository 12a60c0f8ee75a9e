"""Hill climbing: time by rows, and beside the nearest searches of pyAgrum and pgmpy.

Theirs start from naive Bayes with its arcs fixed and give no node more than three parents. Rows are coded in advance
for everybody, and pyAgrum has read them. With BIC it needs a prior, which is made too small to matter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import hill_climb
from bncli.engine.structures.structure import Dag
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import frame, real, simulated

pytestmark = pytest.mark.performance

FEW, MANY = 100_000, 1_000_000
SCORES = ("bic", "aic", "k2")


def climb(data: Dataset, score: str = "bic") -> Dag:
    return hill_climb.learn(Counts(data), structure_score=score, max_parents=2, perfect=False)


def test_linear_in_rows(record: Recorder) -> None:
    few, many = simulated(FEW, (5,) * 30, 2), simulated(MANY, (5,) * 30, 2)
    times = alternate({"few": lambda: climb(few), "many": lambda: climb(many)}, repeats=3)
    ratio = times["many"].cpu / MANY / (times["few"].cpu / FEW)
    detail = f"{times['few'].cpu:.3f} s, {times['many'].cpu:.3f} s"
    record(f"BIC, {MANY:,} rows x 30", ratio, f"x the time a row of {FEW:,}", 1.5, detail)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", ["letter", "adult"])
def test_beside_pyagrum(name: str, score: str, record: Recorder) -> None:
    data = real(name)
    contestants = {"own": lambda: climb(data, score), "theirs": pyagrum_search(data, score)}
    times = alternate(contestants, repeats=5)
    detail = f"own {times['own'].cpu:.3f} s, pyAgrum {version('pyagrum')} {times['theirs'].cpu:.3f} s"
    record(f"{score}, {name}, beside pyAgrum", times["own"].cpu / times["theirs"].cpu, "x", 1.0, detail)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["letter", "adult"])
def test_beside_pgmpy(name: str, record: Recorder) -> None:
    data = real(name)
    times = alternate({"own": lambda: climb(data), "theirs": pgmpy_search(data)}, repeats=1)
    detail = f"own {times['own'].cpu:.3f} s, pgmpy {version('pgmpy')} {times['theirs'].cpu:.2f} s"
    record(f"bic, {name}, beside pgmpy", times["own"].cpu / times["theirs"].cpu, "x", 0.1, detail)


def pyagrum_search(data: Dataset, score: str) -> Callable[[], Any]:
    gum = pytest.importorskip("pyagrum")
    learner = gum.BNLearner(frame(data))
    learner.useGreedyHillClimbing()
    {"bic": learner.useScoreBIC, "aic": learner.useScoreAIC, "k2": learner.useScoreK2}[score]()
    if score == "k2":
        learner.useNoPrior()
    else:
        learner.useSmoothingPrior(1e-3)
    learner.setNumberOfThreads(1)
    learner.setMaxIndegree(3)
    for child in data.schema.informative:
        learner.addMandatoryArc("class", f"a{child}")
    return learner.learnBN  # type: ignore[no-any-return]


def pgmpy_search(data: Dataset) -> Callable[[], Any]:
    estimators = pytest.importorskip("pgmpy.estimators")
    logging.getLogger("pgmpy").setLevel(logging.CRITICAL)
    arcs = [("class", f"a{child}") for child in data.schema.informative]
    knowledge = estimators.ExpertKnowledge(required_edges=arcs)
    rows = frame(data)
    return lambda: estimators.HillClimbSearch(rows).estimate(
        scoring_method="bic-d", max_indegree=3, expert_knowledge=knowledge, epsilon=1e-9, show_progress=False
    )
