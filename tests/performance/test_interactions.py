"""Pairs and triples by their gains.

The whole search, and the ranking of all pairs beside one evaluation of the likelihood and its gradient, for the single
attributes. Fine cuts, as by default; 57 numeric attributes have 1,596 pairs, 60 categories 1,770.
"""

from __future__ import annotations

from functools import cache

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners import interactions
from bncli.engine.structure_learners.additive_fit import additive_fit
from bncli.engine.structure_learners.interaction_gains import Gains
from bncli.engine.structures.structure import Regions
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import real_columns

pytestmark = pytest.mark.performance


@cache
def finely_cut(name: str) -> Dataset:
    columns = real_columns(name)
    return learn_dataset(columns, discretize="equal-frequency", bins=255)


@pytest.mark.parametrize(("name", "most"), [("adult", 2.0), ("spambase", 4.0), ("splice", 4.0), ("letter", 8.0)])
def test_seconds(name: str, most: float, record: Recorder) -> None:
    data = finely_cut(name)
    found: list[Regions] = []
    times = alternate({"search": lambda: found.append(interactions.learn(Counts(data)))}, repeats=1)
    sizes = [len(region) for region in found[-1].regions]
    detail = f"{data.n_rows:,} rows; {sizes.count(1)} singles, {sizes.count(2)} pairs, {sizes.count(3)} triples"
    record(f"{name}, pairs and triples: seconds", times["search"].cpu, "s", most, detail)


@pytest.mark.parametrize(("name", "most"), [("adult", 25.0), ("spambase", 100.0), ("splice", 150.0), ("letter", 40.0)])
def test_all_pairs_beside_a_pass(name: str, most: float, record: Recorder) -> None:
    data = finely_cut(name)
    singles = Regions(tuple((i,) for i in data.schema.informative)).families(data.schema.cardinalities)
    likelihood, cells = additive_fit(data, singles)
    gains = Gains(likelihood, cells, data.schema.informative, 5)
    contestants = {"pairs": gains.of_pairs, "pass": lambda: likelihood.value_and_gradient(cells)}
    times = alternate(contestants, repeats=5)
    detail = f"{1e3 * times['pairs'].cpu:.0f} ms, a pass {1e3 * times['pass'].cpu:.1f} ms"
    record(f"{name}, gains of all pairs", times["pairs"].cpu / times["pass"].cpu, "x a pass", most, detail)
