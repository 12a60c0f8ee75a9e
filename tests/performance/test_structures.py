"""TAN and KDB of tall tables: time by rows, and beside pyAgrum.

Beside pyAgrum stands the whole fit of a generative TAN, tree and tables, as its own classifier does it. Its rows are
coded in advance, like ours; it finds the same tree.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import kdb, tan
from bncli.engine.structures.structure import Dag
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.test_tan import fit
from tests.performance.workloads import real, simulated

pytestmark = pytest.mark.performance

MISSED_WHY = "a few hundredths of a second: the fixed cost of some fifty numpy calls"
FEW, MANY = 100_000, 1_000_000
LEARNERS: dict[str, Callable[[Counts], Dag]] = {
    "TAN": tan.learn,
    "TAN by BIC": lambda counts: tan.learn(counts, structure_score="bic"),
    "TAN by aCLL": lambda counts: tan.learn(counts, structure_score="acll:5"),
    "KDB-1": lambda counts: kdb.learn(counts, k=1),
    "KDB-5": lambda counts: kdb.learn(counts, k=5),
}


@pytest.mark.parametrize("what", LEARNERS)
def test_linear_in_rows(what: str, record: Recorder) -> None:
    """30 attributes of 2 to 12 values, five classes."""
    learn = LEARNERS[what]
    few, many = simulated(FEW), simulated(MANY)
    times = alternate({"few": lambda: learn(Counts(few)), "many": lambda: learn(Counts(many))}, repeats=3)
    ratio = times["many"].cpu / MANY / (times["few"].cpu / FEW)
    detail = f"{times['few'].cpu:.3f} s, {times['many'].cpu:.3f} s"
    record(f"{what}, {MANY:,} rows x 30", ratio, f"x the time a row of {FEW:,}", 1.5, detail)


@pytest.mark.filterwarnings("ignore:A classifier with too many possible values")
@pytest.mark.parametrize("what", ["letter, 20,000 rows x 16", "100,000 rows x 30"])
def test_beside_pyagrum(what: str, record: Recorder) -> None:
    data = real("letter") if what.startswith("letter") else simulated(FEW)
    times = alternate({"own": lambda: fit(data), "theirs": pyagrum_tan(data)}, repeats=1, warm=True)
    detail = f"own {times['own'].cpu:.3f} s, pyAgrum {version('pyagrum')} {times['theirs'].cpu:.2f} s"
    ratio = times["own"].cpu / times["theirs"].cpu
    missed = MISSED_WHY if what.startswith("letter") else ""
    record(f"TAN with tables, {what}, beside pyAgrum", ratio, "x", 0.05, detail, missed=missed)


def pyagrum_tan(data: Dataset) -> Callable[[], object]:
    pytest.importorskip("pyagrum")
    pandas = pytest.importorskip("pandas")
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
    from pyagrum.skbn import BNClassifier

    rows = pandas.DataFrame({f"a{i}": data.codes[i].astype(str) for i in data.schema.informative})
    labels = pandas.Series(data.labels.astype(str), name="class")
    return lambda: BNClassifier(learningMethod="TAN", type_processor=DiscreteTypeProcessor()).fit(rows, labels)
