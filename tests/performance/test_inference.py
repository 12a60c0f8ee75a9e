"""Rows with holes: a pass of exact inference beside the pass over complete rows.

A quarter of all values is removed at random; what is left is summed out of the network. Both passes give the
conditional log-likelihood and its gradient at the same tables. The floor of the latter multiplies one pair of numbers
in the cache for every entry of its tables and products, forward and backward.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structure_learners import kdb, nb, tan
from bncli.engine.structures.structure import Dag
from tests.performance.conftest import Recorder
from tests.performance.measure import alternate
from tests.performance.workloads import real

pytestmark = pytest.mark.performance

MISSED_WHY = "attributes of 15 to 42 values: the entries, multiplied once forward and once backward, take {:.0f} passes"
MISSED = ("KDB-2", "general")
LIMITS = [("NB", 2.0), ("TAN", 10.0), ("KDB-2", 30.0), ("general", 30.0)]
"""Times the complete pass."""


@pytest.mark.parametrize(("word", "at_most"), LIMITS)
def test_a_quarter_missing(word: str, at_most: float, record: Recorder) -> None:
    data = real("adult")
    counts = Counts(data)
    graph = graph_of(word, counts)
    tables = generative_tables(counts, graph, "m-estimate:1")
    complete = conditional_likelihood(data, tables.families)
    began = time.process_time()
    incomplete = IncompleteLikelihood(with_missing(data), tables.families)
    work = incomplete.work.entries
    compiled = time.process_time() - began
    cells = tables.cells
    contestants = {
        "complete": lambda: complete.value_and_gradient(cells),
        "incomplete": lambda: incomplete.value_and_gradient(cells),
        "floor": lambda: multiply(2 * work),
    }
    times = {name: timing.cpu for name, timing in alternate(contestants, repeats=5).items()}
    detail = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in times.items())
    detail += f", compiling {compiled * 1e3:.0f} ms, {work:,} entries"
    what = f"adult {word}, {data.n_rows:,} rows, 25% missing"
    missed = MISSED_WHY.format(times["floor"] / times["complete"]) if word in MISSED else ""
    record(what, times["incomplete"] / times["complete"], "x the complete pass", at_most, detail, missed=missed)


def multiply(n: int) -> None:
    """So many products of two numbers, in blocks that stay in the first-level cache."""
    left, right, out = np.ones((3, 1024))
    for _ in range(n // 1024):
        np.multiply(left, right, out=out)


def graph_of(word: str, counts: Counts) -> Dag:
    if word == "general":
        return three_tree([*counts.data.schema.informative])
    learner = {"NB": nb.learn, "TAN": tan.learn}.get(word)
    return kdb.learn(counts, k=2) if learner is None else learner(counts)


def three_tree(attributes: list[int], seed: int = 3) -> Dag:
    """Each attribute, in random order, has the class and three that are joined already for parents: treewidth 3."""
    rng = np.random.default_rng(seed)
    order = [int(i) for i in rng.permutation(attributes)]
    parents: list[tuple[int, ...]] = [()] * (max(attributes) + 1)
    for place in range(3):
        parents[order[place]] = tuple(order[:place])
    cliques = [tuple(order[:3])]
    for i in order[3:]:
        parents[i] = cliques[rng.integers(len(cliques))]
        cliques += [(*(a for a in parents[i] if a != left_out), i) for left_out in parents[i]]
    return Dag(tuple(parents), tuple(sorted(attributes)))


def with_missing(data: Dataset, share: float = 0.25) -> Dataset:
    rng = np.random.default_rng(0)
    codes = tuple(
        np.where(rng.random(data.n_rows) < share, n, codes).astype(code_dtype(n + 1))
        for codes, n in zip(data.codes, data.schema.cardinalities, strict=True)
    )
    return replace(data, codes=codes)
