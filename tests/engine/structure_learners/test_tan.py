"""TAN against its definition: spanning trees, branchings and scores by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.catalogue.option_kinds import Knowledge
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners import tan
from bncli.engine.structure_learners.tan import best_branching, directed_away, spanning_tree
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.scores import parse_score
from bncli.engine.structures.structure import Dag
from tests import oracles
from tests.branchings import arborescences, branchings, total
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets
from tests.sweeps import examples

Edges = list[tuple[int, int]]


def edges_of(dag: Dag) -> Edges:
    return sorted((min(i, j), max(i, j)) for i, parents in enumerate(dag.parents) for j in parents)


def weight(data: Dataset, edges: Edges) -> float:
    return math.fsum(oracles.conditional_mutual_information(oracles.count(data, edge)) for edge in edges)


@given(datasets(max_rows=40, max_attributes=5))
def test_no_spanning_tree_is_heavier(data: Dataset) -> None:
    nodes = range(len(data.codes))
    dependence = {e: weight(data, [e]) for e in itertools.combinations(nodes, 2)}
    totals = sorted((math.fsum(dependence[e] for e in tree), sorted(tree)) for tree in oracles.spanning_trees(nodes))
    found = edges_of(tan.learn(Counts(data)))
    assert math.fsum(dependence[e] for e in found) == pytest.approx(totals[-1][0], rel=1e-11, abs=1e-11)
    unique = len(totals) == 1 or totals[-1][0] - totals[-2][0] > 1e-9
    assert not unique or found == totals[-1][1]


@given(datasets(max_rows=40))
def test_one_root_the_most_relevant_and_all_arcs_away_from_it(data: Dataset) -> None:
    dag = tan.learn(Counts(data))
    relevance = [oracles.mutual_information(oracles.count(data, (i,))) for i in range(len(data.codes))]
    (root,) = (i for i, parents in enumerate(dag.parents) if not parents)
    assert relevance[root] == pytest.approx(max(relevance), abs=1e-11)
    assert dag.class_children == tuple(range(len(data.codes)))
    assert dag.class_parents == ()
    for i in dag.class_children:
        path = [i]
        while dag.parents[path[-1]]:
            path += dag.parents[path[-1]]
            assert len(path) <= len(data.codes)
        assert path[-1] == root


def log_likelihood(data: Dataset, dag: Dag) -> float:
    """sum N ln(N / N) over the attributes' families."""
    total = 0.0
    for i, parents in enumerate(dag.parents):
        counts = oracles.count(data, (i, *parents))
        column = np.broadcast_to(counts.sum(axis=0), counts.shape)
        seen = counts > 0
        total += float((counts[seen] * np.log(counts[seen] / column[seen])).sum())
    return total


def test_no_tree_has_a_higher_likelihood() -> None:
    data = random_dataset(80, (2, 3, 2, 3, 2), 2, seed=5)
    best = log_likelihood(data, tan.learn(Counts(data)))
    for tree in oracles.spanning_trees(range(5)):
        parents: list[tuple[int, ...]] = [()] * 5
        for child, parent in directed_away(tree, [0]).items():
            parents[child] = (parent,)
        assert log_likelihood(data, Dag(tuple(parents), tuple(range(5)))) <= best + 1e-9


def test_the_chain_it_was_drawn_from() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    chain = [rng.integers(0, 3, 4000)]
    for _ in range(4):
        chain.append(np.where(rng.random(4000) < 0.7, chain[-1], rng.integers(0, 3, 4000)))
    data = dataset_of([chain[i] for i in (2, 0, 3, 1, 4)], labels, (3,) * 5, 2)
    assert edges_of(tan.learn(Counts(data))) == [(0, 2), (0, 3), (1, 3), (2, 4)]


def test_every_tie_goes_to_the_first_attribute() -> None:
    """All attributes copy one: all edges weigh the same, all are as relevant."""
    x = np.tile([0, 1], 10)
    data = dataset_of([x] * 4, np.tile([0, 1, 1, 0], 5), (2,) * 4, 2)
    assert tan.learn(Counts(data)).parents == ((), (0,), (0,), (0,))
    independent = dataset_of(
        [*np.array(list(itertools.product((0, 1), repeat=5))).T[:4]], np.tile([0, 1], 16), (2,) * 4, 2
    )
    assert tan.learn(Counts(independent)).parents == ((), (0,), (0,), (0,))


RULES = ("ll", "bic", "aic", "k2", "bdeu:1", "acll:5", "acll-uniform:5")


def gain(data: Dataset, rule: str, parents: Sequence[int]) -> float:
    """What the arcs of a forest (a parent of each attribute, -1 for none) add to the score of naive Bayes."""
    score, total = parse_score(rule).score, 0.0
    for child, parent in enumerate(parents):
        if parent >= 0:
            table = oracles.count(data, (child, parent))
            total += float(score(table) - score(table.sum(axis=1, keepdims=True)))
    return total


def parents_of(dag: Dag) -> list[int]:
    return [listed[0] if listed else -1 for listed in dag.parents]


@given(datasets(max_rows=40, max_attributes=4), st.sampled_from(RULES), st.booleans())
@settings(max_examples=examples(20))
def test_no_tree_and_no_forest_scores_higher(data: Dataset, rule: str, forest: bool) -> None:
    """Over all roots: by a score that is not equivalent, too."""
    n = len(data.codes)
    dag = tan.learn(Counts(data), structure_score=rule, forest=forest)
    found = parents_of(dag)
    assert dag.class_children == tuple(range(n))
    assert forest or found.count(-1) == 1
    best = max(gain(data, rule, parents) for parents in (branchings(n) if forest else arborescences(n)))
    assert gain(data, rule, found) == pytest.approx(best, rel=1e-9, abs=1e-8)


@given(datasets(max_rows=40, max_attributes=4))
def test_a_forest_by_mutual_information_drops_exact_independence_only(data: Dataset) -> None:
    whole, forest = (edges_of(tan.learn(Counts(data), forest=f)) for f in (False, True))
    assert forest == [edge for edge in whole if rounded(np.array(weight(data, [edge]))) > 0]


@pytest.mark.parametrize("rule", ["cmi", *RULES])
def test_attributes_that_say_nothing_of_each_other_make_no_forest(rule: str) -> None:
    """Every combination of values equally often in each class; each tree of one node is its own root."""
    grid = np.repeat(np.array(list(itertools.product((0, 1), repeat=4))), 8, axis=0)
    data = dataset_of([*grid.T[:3]], grid[:, 3], (2,) * 3, 2)
    assert tan.learn(Counts(data), structure_score=rule, forest=True).parents == ((), (), ())


@pytest.mark.parametrize("rule", ["cmi", "ll", "bic"])
def test_every_tree_of_a_forest_starts_at_its_most_relevant_attribute(rule: str) -> None:
    """Two chains; the class follows the end of the first and, less, the middle of the second."""
    rng = np.random.default_rng(1)

    def copy(x: NDArray[np.int64], share: float) -> NDArray[np.int64]:
        return np.where(rng.random(len(x)) < share, x, rng.integers(0, 2, len(x)))

    labels = rng.integers(0, 2, 20000)
    c = copy(labels, 0.8)
    b = copy(c, 0.8)
    a = copy(b, 0.8)
    e = copy(labels, 0.4)
    d, f = copy(e, 0.8), copy(e, 0.8)
    data = dataset_of([a, b, c, d, e, f], labels, (2,) * 6, 2)
    dag = tan.learn(Counts(data), structure_score=rule, forest=True)
    if rule == "bic":
        assert dag.parents == ((1,), (2,), (), (4,), (), (4,))
    assert dag.parents[2] == ()


def test_likelihood_and_mutual_information_choose_the_same_tree() -> None:
    data = random_dataset(300, (2, 3, 4, 2, 3, 2, 5), 3, seed=4)
    trees = [tan.learn(Counts(data), structure_score=rule).parents for rule in ("cmi", "ll")]
    assert trees[0] == trees[1]


@pytest.mark.parametrize("rule", ["cmi", *RULES])
def test_a_weight_of_two_is_the_row_twice_and_order_says_nothing(rule: str) -> None:
    data = random_dataset(60, (2, 3, 2, 4), 3, seed=2)
    order = np.random.default_rng(0).permutation(120)
    codes = [np.tile(c, 2)[order] for c in data.codes]
    twice = dataset_of(codes, np.tile(data.labels, 2)[order], (2, 3, 2, 4), 3)
    doubled = dataset_of(data.codes, data.labels, (2, 3, 2, 4), 3, np.full(60, 2.0))
    for forest in (False, True):
        ours, theirs = (tan.learn(Counts(d), structure_score=rule, forest=forest) for d in (twice, doubled))
        assert ours == theirs
        assert dict(ours.options) == {"structure_score": rule, "forest": forest}
        assert ours.method == "tan"


def test_uninformative_attributes_stay_outside() -> None:
    dag = tan.learn(Counts(random_dataset(40, (1, 3, 1, 2), 2)))
    assert dag.class_children == (1, 3)
    assert dag.parents[0] == dag.parents[2] == ()
    assert sorted(map(len, dag.parents)) == [0, 0, 0, 1]
    for rule in ("cmi", "bic", "k2"):
        for forest in (False, True):
            nothing = tan.learn(Counts(random_dataset(40, (1,), 2)), structure_score=rule, forest=forest)
            assert nothing.class_children == ()
            one = tan.learn(Counts(random_dataset(40, (1, 3), 2)), structure_score=rule, forest=forest)
            assert one.class_children == (1,)


Array = NDArray[np.float64]


@st.composite
def whole_weights(draw: st.DrawFn, max_nodes: int = 5) -> Array:
    """Whole numbers, from a few values with many ties to many digits; some graphs lean to one side of 0."""
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([1, 3, 10**6, 10**12]))
    return np.rint(rng.uniform(-1, 1, (n, n)) * size + draw(st.sampled_from([-size, 0, size])))


def check(weights: Array, forest: bool) -> None:
    n = len(weights)
    choices = branchings(n) if forest else arborescences(n)
    found = tuple(-1 if u is None else u for u in best_branching(weights, forest=forest))
    totals = {parents: total(weights, parents) for parents in choices}
    best = max(totals.values())
    assert found in totals
    assert totals[found] == best
    if forest:
        assert all(weights[u, v] > 0 for v, u in enumerate(found) if u >= 0)
    else:
        assert found.index(-1) == min(parents.index(-1) for parents, t in totals.items() if t == best)


@given(whole_weights(), st.booleans())
def test_no_other_is_better(weights: Array, forest: bool) -> None:
    check(weights, forest)


@pytest.mark.parametrize("forest", [False, True])
@pytest.mark.parametrize("size", [2, 10**9])
def test_no_other_is_better_over_six_nodes(forest: bool, size: int) -> None:
    for seed in range(3):
        check(np.rint(np.random.default_rng(seed).normal(size=(6, 6)) * size), forest)


def test_cycles_within_cycles() -> None:
    """0 <-> 1 and 2 <-> 3 first, then the two pairs; the arc 4 -> 3 opens both the outer and an inner cycle."""
    weights = np.full((5, 5), -50.0)
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 20.0
    weights[1, 2], weights[3, 0], weights[4, 3], weights[0, 4] = 15.0, 14.0, 6.0, 1.0
    assert best_branching(weights, forest=False) == [3, 0, 3, 4, None]
    assert total(weights, (3, 0, 3, 4, -1)) == max(total(weights, p) for p in arborescences(5)) == 60.0


def test_a_forest_is_not_a_tree_without_its_losses() -> None:
    weights = np.array([[0.0, 5.0, -9.0], [6.0, 0.0, -9.0], [-1.0, -9.0, 0.0]])
    assert best_branching(weights, forest=False) == [2, 0, None]  # -1 + 5: without the loss 5
    assert best_branching(weights, forest=True) == [1, None, None]  # 6


def test_all_arcs_alike() -> None:
    for n in range(1, 9):
        parents = best_branching(np.ones((n, n)), forest=False)
        assert parents[0] is None
        assert None not in parents[1:]
        assert best_branching(np.zeros((n, n)), forest=True) == [None] * n


def test_the_weights_are_left_alone() -> None:
    weights = np.random.default_rng(0).normal(size=(7, 7))
    before = weights.copy()
    best_branching(weights, forest=False)
    np.testing.assert_array_equal(weights, before)


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_symmetric_weights_have_the_undirected_tree(seed: int, n: int) -> None:
    weights = np.rint(np.random.default_rng(seed).normal(size=(n, n)) * 1e9)
    weights += weights.T
    for forest in (False, True):
        edges = spanning_tree(weights, tuple(range(n)), forest=forest)
        arcs = [(u, v) for v, u in enumerate(best_branching(weights, forest=forest)) if u is not None]
        assert sum(weights[e] for e in arcs) == sum(weights[e] for e in edges)


@given(st.integers(1, 7), st.integers(0, 99), st.booleans())
def test_the_spanning_tree_of_any_weights(n: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, (n, n)).astype(float) if coarse else rng.normal(size=(n, n))
    weights = weights + weights.T
    tree = spanning_tree(weights, tuple(range(n)))
    assert len(tree) == n - 1
    best = max((math.fsum(weights[e] for e in t) for t in oracles.spanning_trees(range(min(n, 5)))), default=0.0)
    if n <= 5:
        assert math.fsum(weights[e] for e in tree) == pytest.approx(best, abs=1e-12)
    assert len(directed_away(tree, [n - 1])) == n - 1


@given(st.integers(1, 5), st.integers(0, 99))
def test_no_forest_is_heavier(n: int, seed: int) -> None:
    weights = np.rint(np.random.default_rng(seed).normal(size=(n, n)) * 3)
    weights += weights.T
    forest = spanning_tree(weights, tuple(range(n)), forest=True)
    assert sum(weights[e] for e in forest) == max(total(weights, parents) for parents in branchings(n))
    assert all(weights[e] > 0 for e in forest)


def test_nodes_may_be_some_of_the_graph() -> None:
    weights = np.arange(25.0).reshape(5, 5)
    weights += weights.T
    assert spanning_tree(weights, (0, 2, 4)) == [(0, 4), (2, 4)]
    assert spanning_tree(weights, (3,)) == []


def test_each_tree_starts_at_its_first_root() -> None:
    edges = [(0, 3), (3, 5), (1, 2)]
    assert directed_away(edges, [5, 2, 0, 1, 3, 4]) == {3: 5, 0: 3, 1: 2}
    assert directed_away(edges, [1]) == {2: 1}
    assert directed_away([], [0, 1]) == {}


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=examples(20))
def test_branchings_with_arcs_that_are_not_allowed(seed: int, forest: bool) -> None:
    """Of as few trees as the arcs allow (any number in a forest), none of those that obey is heavier."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    weights = rng.integers(-3 if forest else 0, 9, (n, n)).astype(np.float64)
    weights[rng.random((n, n)) < 0.4] = -np.inf
    # The arc into a node that may not be a root is the only one into it, as required arcs are.
    rooted = np.ones(n, np.bool_)
    order = rng.permutation(n)
    for earlier, node in itertools.pairwise(order):
        if rng.random() < 0.3:
            rooted[node] = False
            weights[:, node] = -np.inf
            weights[earlier, node] = float(rng.integers(-3, 9))
    possible = [
        parents
        for parents in branchings(n)
        if all(weights[u, v] > -np.inf if u >= 0 else rooted[v] for v, u in enumerate(parents))
    ]
    found = tuple(-1 if u is None else u for u in best_branching(weights, forest=forest, rooted=rooted))
    assert found in possible
    fewest = min(parents.count(-1) for parents in possible)
    rivals = possible if forest else [parents for parents in possible if parents.count(-1) == fewest]
    assert found in rivals
    assert total(weights, found) == max(total(weights, parents) for parents in rivals)


def test_the_tree_under_constraints_is_the_best_that_obeys() -> None:
    data = random_dataset(80, (2, 3, 2, 3, 2), 2, seed=5)
    names = [attribute.name for attribute in data.schema.attributes]
    for content in (
        {"forbid": [[names[0], names[1]], [names[1], names[0]]]},
        {"require": [[names[4], names[0]]]},
        {"root": names[3], "no_interaction": [[names[0], names[1]], [names[1], names[2]]]},
        {"before": [names[3:], names[:2]], "require": [[names[2], names[1]]]},
    ):
        constraints = ArcConstraints.of(Knowledge.parse(content), data.schema)
        found = log_likelihood(data, tan.learn(Counts(data), constraints=constraints))
        rivals = []
        for parents in arborescences(5):
            dag = Dag(tuple((p,) if p >= 0 else () for p in parents), tuple(range(5)))
            if constraints.is_obeyed(dag):
                rivals.append(log_likelihood(data, dag))
        assert found == pytest.approx(max(rivals), rel=1e-10)
