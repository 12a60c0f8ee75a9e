"""Compare scores of whole networks with those of pgmpy on complete rows, and with counting row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.generative import acll_tables
from bncli.engine.parameters.network_scores import NetworkScores, ScoredNetwork, Strengths, mean_scores, score_network
from bncli.engine.structures.scores import dirichlet_approximation
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.incomplete_oracle import with_missing
from tests.strategies import dags
from tests.sweeps import examples

NETWORKS = {
    "naive Bayes": Dag(((), (), ()), (0, 1, 2)),
    "tree": Dag(((), (0,), (1,)), (0, 1, 2)),
    "an attribute outside, one without the class": Dag(((), (0,), ()), (0,)),
    "the class with parents": Dag(((), (), (0,)), (2,), (0, 1)),
    "the class alone": Dag(((), (), ()), ()),
}


def nodes_of(network: Dag) -> dict[int | str, tuple[int | str, ...]]:
    """Return the parents of every node; the class is called `class`."""
    found: dict[int | str, tuple[int | str, ...]] = {"class": network.class_parents}
    for i in network.nodes:
        found[i] = (*network.parents[i], *(["class"] if i in network.class_children else []))
    return found


def slow_ll(data: Dataset, network: Dag) -> float:
    """Return the sum of ln P of every row at relative frequencies, row by row."""
    rows = [{"class": int(y), **{i: int(c[t]) for i, c in enumerate(data.codes)}} for t, y in enumerate(data.labels)]
    total = 0.0
    for node, parents in nodes_of(network).items():
        for row in rows:
            alike = [other for other in rows if all(other[p] == row[p] for p in parents)]
            total += math.log(sum(other[node] == row[node] for other in alike) / len(alike))
    return total


@pytest.mark.parametrize("name", NETWORKS)
def test_the_likelihood_is_that_of_the_rows_one_by_one(name: str) -> None:
    data = random_dataset(40, (3, 2, 3), 2, seed=1)
    scores = score_network(Counts(data), NETWORKS[name]).scores
    assert scores.ll == pytest.approx(slow_ll(data, NETWORKS[name]), rel=1e-12)
    parameters = 0
    for node, parents in nodes_of(NETWORKS[name]).items():
        sizes: dict[Any, int] = {"class": 2, 0: 3, 1: 2, 2: 3}
        parameters += (sizes[node] - 1) * math.prod(sizes[p] for p in parents)
    assert scores.aic == pytest.approx(scores.ll - parameters, rel=1e-12)
    assert scores.bic == pytest.approx(scores.ll - math.log(40) / 2 * parameters, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_scores_are_pgmpys(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    estimators = pytest.importorskip("pgmpy.estimators")
    models = pytest.importorskip("pgmpy.base")
    data = random_dataset(60, (3, 2, 3), 2, seed=2)
    network = NETWORKS[name]
    nodes = nodes_of(network)
    table = {str(n): (data.labels if n == "class" else data.codes[n]).astype(int) for n in nodes}  # type: ignore[index]
    sizes = {"class": 2, "0": 3, "1": 2, "2": 3}
    dag = models.DAG()
    dag.add_nodes_from(map(str, nodes))
    dag.add_edges_from([(str(parent), str(node)) for node, parents in nodes.items() for parent in parents])
    states = {str(n): list(range(sizes[str(n)])) for n in nodes}
    frame = pandas.DataFrame(table)
    scores = score_network(Counts(data), network, Strengths(bdeu=7.0)).scores
    for ours, theirs in (
        (scores.bic, estimators.BIC(frame, state_names=states)),
        (scores.aic, estimators.AIC(frame, state_names=states)),
        (scores.k2, estimators.K2(frame, state_names=states)),
        (scores.bdeu, estimators.BDeu(frame, state_names=states, equivalent_sample_size=7)),
    ):
        assert ours == pytest.approx(theirs.score(dag), rel=1e-9)


@given(st.integers(0, 99), dags(3), st.integers(2, 3))
@settings(max_examples=examples(6), deadline=None)
def test_acll_row_by_row(seed: int, network: Dag, n_labels: int) -> None:
    data = random_dataset(30, (3, 2, 3), n_labels, seed=seed)
    counts = Counts(data)
    line = dirichlet_approximation(n_labels, 30.0)
    tables = acll_tables(counts, network, line.beta, 2.0)
    approximate = exact = 0.0
    for t, y in enumerate(data.labels):
        log_u = tables.bias.copy()
        for family, weights in zip(tables.families, tables.weights, strict=True):
            cell = 0
            for i, size in zip(family.attributes, family.shape, strict=True):
                cell = cell * size + int(data.codes[i][t])
            log_u += weights[cell] * family.by_class
        approximate += log_u[y] - float(line.beta) * log_u.sum() - float(line.gamma)
        exact += log_u[y] - math.log(np.exp(log_u).sum())
    scored = score_network(counts, network, Strengths(pseudo_counts=2.0))
    assert scored.scores.acll == pytest.approx(approximate, rel=1e-9)
    assert scored.acll_relative_error == pytest.approx(abs(approximate - exact) / abs(exact), rel=1e-9)


def test_weights_count_as_rows() -> None:
    data = random_dataset(30, (3, 2, 3), 2, seed=3)
    twice = data.take(np.repeat(np.arange(30), 2))
    weighted = Dataset(data.schema, data.codes, data.labels, np.full(30, 2.0))
    one, other = (score_network(Counts(d), NETWORKS["tree"]) for d in (twice, weighted))
    assert one.scores == pytest.approx(other.scores, rel=1e-12)
    assert one.acll_relative_error == pytest.approx(other.acll_relative_error)


def test_what_is_marginalized_has_no_acll() -> None:
    data = with_missing(random_dataset(40, (3, 2, 3), 2, seed=1), 0.2)
    scored = score_network(Counts(data), NETWORKS["tree"])
    assert (scored.scores.acll, scored.acll_relative_error) == (None, None)
    assert mean_scores([scored]) == scored


def test_means() -> None:
    one = ScoredNetwork(NetworkScores(-1.0, -2.0, -3.0, -4.0, -5.0, -6.0), 0.5)
    other = ScoredNetwork(NetworkScores(-3.0, -2.0, -3.0, -4.0, -5.0, None), None)
    assert mean_scores([one, one]) == one
    assert mean_scores([one, other]) == ScoredNetwork(NetworkScores(-2.0, -2.0, -3.0, -4.0, -5.0, None), None)


def test_numbers_of_the_recipe() -> None:
    of = {
        "cmi": Recipe.of(param="map"),
        "bdeu": Recipe.of(structure_score="bdeu:7", param="map"),
        "acll": Recipe.of(structure_score="acll", pseudo_counts=2, param="map"),
        "param": Recipe.of(param="acll", pseudo_counts=3),
        "prior": Recipe.of(structure_score="acll", class_pair_prior="1,1000", param="map"),
        "both": Recipe.of(structure_score="acll", class_pair_prior="1,1000:200", param="acll", seed=4),
        "hostile": Recipe().replaced(structure_score="acll:x/y"),
    }
    assert {key: Strengths.of(recipe) for key, recipe in of.items()} == {
        "cmi": Strengths(),
        "bdeu": Strengths(bdeu=7.0),
        "acll": Strengths(pseudo_counts=2.0),
        "param": Strengths(pseudo_counts=3.0),
        "prior": Strengths(prior="1,1000"),
        "both": Strengths(prior="1,1000:200:4"),
        "hostile": Strengths(),
    }
