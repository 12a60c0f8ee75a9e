"""General networks by tests of independence, beside the constraint-based learners of pyAgrum and pgmpy.

The nearest there are MIIC (pyAgrum, C++), which asks fewer questions and joins far fewer attributes, and PC (pgmpy)
with cut-sets of one node at most: with larger ones it did not end in minutes.
"""

from __future__ import annotations

import logging
from importlib.metadata import version

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import gbn
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import frame, real

pytestmark = pytest.mark.performance


def search(data: Dataset) -> None:
    gbn.learn(Counts(data), epsilon=0.01)


@pytest.mark.parametrize("name", ["letter", "adult"])
def test_beside_miic(name: str, record: Recorder) -> None:
    gum = pytest.importorskip("pyagrum")
    data = real(name)
    learner = gum.BNLearner(frame(data))
    learner.useMIIC()
    learner.setNumberOfThreads(1)
    times = alternate({"own": lambda: search(data), "theirs": learner.learnBN}, repeats=3)
    detail = f"own {times['own'].cpu:.2f} s, pyAgrum {version('pyagrum')} {times['theirs'].cpu:.2f} s"
    missed = "dividing the cells of 3,916 and 2,752 sets of nodes takes about MIIC's time in numpy; "
    missed += "MIIC asks fewer questions"
    record(f"{name}, beside MIIC", times["own"].cpu / times["theirs"].cpu, "x", 1.0, detail, missed=missed)


@pytest.mark.filterwarnings("ignore")
def test_beside_pc(record: Recorder) -> None:
    estimators = pytest.importorskip("pgmpy.estimators")
    logging.getLogger("pgmpy").setLevel(logging.CRITICAL)
    data = real("letter", 5_000)
    pc = estimators.PC(frame(data))
    contestants = {
        "own": lambda: search(data),
        "theirs": lambda: pc.estimate(ci_test="chi_square", max_cond_vars=1, n_jobs=1, show_progress=False),
    }
    times = alternate(contestants, repeats=1)
    detail = f"own {times['own'].cpu:.2f} s, pgmpy {version('pgmpy')} {times['theirs'].cpu:.1f} s"
    record("letter, 5,000 rows, beside PC", times["own"].cpu / times["theirs"].cpu, "x", 1.0, detail)
