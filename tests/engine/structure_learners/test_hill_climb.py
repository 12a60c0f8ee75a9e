"""Hill climbing against a slow search, its family scores and its arcs against their definitions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners import hill_climb, nb, skdb
from bncli.engine.structure_learners.hill_climb import Arcs, FamilyCache
from bncli.engine.structures.scores import parse_score
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Move
from tests import oracles
from tests.conformance.test_structure_learners import is_acyclic
from tests.datasets import dataset_of, random_dataset
from tests.missing_values import with_missing
from tests.strategies import datasets
from tests.sweeps import every_pair

RULES = ("ll", "aic", "k2", "bdeu:1", "acll:5")
SEEDS = (1, 2, 3, 7)
"""Of woven data: all three kinds of moves are made on them."""
Parents = tuple[frozenset[int], ...]


def climb(data: Dataset, rule: str, max_parents: int, perfect: bool) -> tuple[Dag, list[Move]]:
    events: list[Event] = []
    options: dict[str, Any] = {"structure_score": rule, "max_parents": max_parents, "perfect": perfect}
    dag = hill_climb.learn(Counts(data), **options, watch=events.append)
    return dag, [event for event in events if isinstance(event, Move)]


def woven(seed: int) -> Dataset:
    """Six attributes in a random order, each a noisy function of two of those before it: a search errs and repents."""
    rng = np.random.default_rng(seed)
    cardinalities = (3, 2, 2, 3, 2, 2)
    labels = rng.integers(0, 2, 300)
    columns: dict[int, Any] = {}
    for i in rng.permutation(6).tolist():
        sources = [columns[j] for j in list(columns)[-2:]]
        function = rng.integers(0, cardinalities[i], (3, 3))
        value = function[sources[0], sources[-1]] if sources else labels
        noise = rng.integers(0, cardinalities[i], 300)
        columns[i] = np.where(rng.random(300) < 0.8, value % cardinalities[i], noise)
    weights = rng.uniform(0.2, 3.0, 300) if seed % 2 else None
    return dataset_of([columns[i] for i in range(6)], labels, cardinalities, 2, weights)


class Slow:
    """The score of whole networks, family by family, each table counted row by row."""

    def __init__(self, data: Dataset, rule: str) -> None:
        self.data, self.rule = data, parse_score(rule)
        self.scores: dict[tuple[int, frozenset[int]], float] = {}

    def family(self, i: int, parents: frozenset[int]) -> float:
        if (i, parents) not in self.scores:
            table = oracles.count(self.data, (i, *sorted(parents)))
            self.scores[i, parents] = float(self.rule.score(table.reshape(len(table), -1, self.data.n_labels)))
        return self.scores[i, parents]

    def network(self, parents: Parents) -> float:
        return math.fsum(self.family(i, listed) for i, listed in enumerate(parents))


def by_relevance(data: Dataset) -> list[int]:
    """The attributes by falling I(X_i; Y)."""
    scores = [oracles.mutual_information(oracles.count(data, (i,))) for i in range(len(data.codes))]
    return sorted(range(len(scores)), key=lambda i: (-rounded(np.array([scores[i]]))[0], i))


def neighbours(
    parents: Parents, max_parents: int, perfect: bool, order: list[int] | None = None
) -> list[tuple[Any, int, int, Parents]]:
    """Every legal move in the order that settles ties: kind, parent, child and the graph that it leads to."""
    found = []
    for kind in ("add", "delete", "reverse"):
        for j, i in itertools.permutations(order or range(len(parents)), 2):
            if (kind == "add") == (j in parents[i]):
                continue
            after = list(parents)
            after[i] = parents[i] | {j} if kind == "add" else parents[i] - {j}
            after[j] = parents[j] | {i} if kind == "reverse" else parents[j]
            if is_legal(tuple(after), max_parents, perfect):
                found.append((kind, j, i, tuple(after)))
    return found


def is_legal(parents: Parents, max_parents: int, perfect: bool) -> bool:
    everybody = tuple(range(len(parents)))
    left = set(everybody)
    while free := {i for i in left if not left & parents[i]}:
        left -= free
    as_dag = Dag(tuple(tuple(sorted(listed)) for listed in parents), everybody)
    return not left and max(map(len, parents)) <= max_parents and (as_dag.unmarried is None or not perfect)


def slow_climb(data: Dataset, rule: str, max_parents: int, perfect: bool) -> tuple[Parents, list[Move]]:
    slow = Slow(data, rule)
    parents: Parents = (frozenset(),) * len(data.codes)
    largest = max(1.0, *(abs(slow.family(i, frozenset())) for i in range(len(parents))))
    order, moves = by_relevance(data), list[Move]()
    while True:
        here = slow.network(parents)
        options = neighbours(parents, max_parents, perfect, order)
        gains = [round(slow.network(after) - here, 11 - math.floor(math.log10(largest))) for *_, after in options]
        best = max(gains, default=0.0)
        if best <= 1e-9:
            return parents, moves
        kind, j, i, parents = options[gains.index(best)]
        moves.append(Move(kind, j, i, best))


@pytest.mark.parametrize(("seed", "rule", "perfect"), every_pair(SEEDS, RULES, [False, True]))
def test_equals_the_search_over_whole_networks(seed: int, rule: str, perfect: bool) -> None:
    data = woven(seed)
    max_parents = 1 + seed % 4
    dag, moves = climb(data, rule, max_parents, perfect)
    parents, expected = slow_climb(data, rule, max_parents, perfect)
    assert [frozenset(listed) for listed in dag.parents] == list(parents)
    assert [move[:3] for move in moves] == [move[:3] for move in expected]
    assert [move.gain for move in moves] == pytest.approx([move.gain for move in expected], abs=1e-8)
    assert dag.class_children == tuple(range(6))


def test_all_three_kinds_of_moves_are_made() -> None:
    """The search is examined above on data where each of them occurs."""
    kinds: set[str] = set()
    for seed, rule in itertools.product(SEEDS, RULES):
        kinds.update(move.kind for move in climb(woven(seed), rule, 1 + seed % 4, perfect=False)[1])
    assert kinds == {"add", "delete", "reverse"}


@pytest.mark.parametrize("rule", ["bic", "k2", "acll-uniform:5"])
@pytest.mark.parametrize("perfect", [False, True])
@given(data=datasets(max_rows=60), max_parents=st.integers(0, 3))
def test_no_legal_move_from_the_result_gains(rule: str, perfect: bool, data: Dataset, max_parents: int) -> None:
    dag, moves = climb(data, rule, max_parents, perfect)
    slow, parents = Slow(data, rule), tuple(map(frozenset, dag.parents))
    here = slow.network(parents)
    assert is_legal(parents, max_parents, perfect)
    assert all(slow.network(after) <= here + 2e-9 for *_, after in neighbours(parents, max_parents, perfect))
    start = slow.network((frozenset(),) * len(parents))
    assert math.fsum(move.gain for move in moves) == pytest.approx(here - start, abs=1e-7)
    assert all(move.gain > 1e-9 for move in moves)


@given(datasets(max_rows=40))
def test_parents_by_falling_dependence(data: Dataset) -> None:
    dag, _ = climb(data, "ll", 3, perfect=False)
    for i, listed in enumerate(dag.parents):
        weights = [oracles.conditional_mutual_information(oracles.count(data, (i, j))) for j in listed]
        assert all(a >= b - 1e-11 for a, b in itertools.pairwise(weights))


def test_of_two_directions_that_gain_as_much_the_more_relevant_attribute_is_the_parent() -> None:
    y = np.tile([0, 1], 40)
    noise = np.random.default_rng(0).random(80)
    strong, weak = np.where(noise < 0.1, 1 - y, y), np.where(noise < 0.3, 1 - y, y)
    for columns, expected in (([strong, weak], ("add", 0, 1)), ([weak, strong], ("add", 1, 0))):
        assert climb(dataset_of(columns, y, (2, 2), 2), "ll", 1, perfect=False)[1][0][:3] == expected


def test_every_other_tie_goes_to_the_attribute_that_comes_first() -> None:
    x = np.tile([0, 1], 20)
    dag, moves = climb(dataset_of([x] * 4, np.tile([0, 1, 1, 0], 10), (2,) * 4, 2), "bic", 1, perfect=False)
    assert [move[:3] for move in moves] == [("add", 0, 1), ("add", 0, 2), ("add", 0, 3)]
    assert dag.parents == ((), (0,), (0,), (0,))


def test_without_parents_it_is_naive_bayes() -> None:
    data = random_dataset(30, (2, 3, 1, 2), 2)
    dag, moves = climb(data, "ll", 0, perfect=False)
    assert (dag.parents, moves) == (nb.learn(Counts(data)).parents, [])


def test_uninformative_attributes_stay_outside() -> None:
    dag, _ = climb(random_dataset(60, (1, 3, 1, 2, 2), 2), "ll", 3, perfect=False)
    assert dag.class_children == (1, 3, 4)
    assert dag.parents[0] == dag.parents[2] == ()
    assert all(set(parents) <= {1, 3, 4} for parents in dag.parents)


def test_the_options_are_recorded() -> None:
    dag, _ = climb(random_dataset(60, (2, 3), 2), "bdeu:1", 1, perfect=True)
    assert (dag.method, dict(dag.options)) == (
        "hill-climb", {"structure_score": "bdeu:1", "max_parents": 1, "perfect": True},
    )  # fmt: skip


def test_no_rows() -> None:
    assert climb(random_dataset(0, (2, 3), 2), "bic", 2, perfect=False)[0].parents == ((), ())


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_searches_end_whatever_is_missing(share: float) -> None:
    counts = Counts(with_missing(random_dataset(300, (2, 3, 2, 4), 3, seed=4), share))
    found = hill_climb.learn(counts, structure_score="bic", max_parents=2, perfect=False)
    chosen = skdb.learn(counts, k=2, loss="rmse")
    assert found.class_children == (0, 1, 2, 3)
    assert max(len(listed) for listed in chosen.parents) <= 2
    if share == 1.0:
        assert not any(found.parents)
        assert chosen.class_children == ()


CACHED_RULES = ("bic", "k2", "bdeu:1", "acll:5")


def slow(data: Dataset, rule: str, child: int, parents: frozenset[int]) -> float:
    table = oracles.count(data, (child, *sorted(parents)))
    return float(parse_score(rule).score(table.reshape(len(table), -1, data.n_labels)))


@pytest.mark.parametrize("rule", CACHED_RULES)
@given(data=datasets(max_rows=30), more=st.data())
def test_every_way_to_a_family_gives_its_score(rule: str, data: Dataset, more: st.DataObject) -> None:
    cache = FamilyCache(Counts(data), parse_score(rule))
    n = len(data.codes)
    for _ in range(8):
        child = more.draw(st.integers(0, n - 1))
        parents = more.draw(st.frozensets(st.integers(0, n - 1), max_size=3)) - {child}
        if more.draw(st.booleans()):
            assert cache.score(child, parents) == pytest.approx(slow(data, rule, child, parents), rel=1e-10, abs=1e-9)
        else:
            column = cache.column(child, parents)
            for j in range(n):
                if j == child or j in parents:
                    assert column[j] == -np.inf
                else:
                    expected = slow(data, rule, child, parents | {j})
                    assert column[j] == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("many_rows", [0, 1000], ids=["packed", "swept"])
@pytest.mark.parametrize("rule", CACHED_RULES)
def test_pairs_scored_together_give_the_columns_that_are_asked_for(
    rule: str, many_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hill_climb, "MANY_ROWS", many_rows)
    data = random_dataset(50, (2, 3, 1, 2, 4, 3, 2), 3, weighted=True)
    together, alone = (FamilyCache(Counts(data), parse_score(rule)) for _ in range(2))
    together.score_pairs()
    for i in data.schema.informative:
        np.testing.assert_allclose(together.column(i, frozenset()), alone.column(i, frozenset()), rtol=1e-10, atol=1e-9)


def test_pairs_are_not_counted_together_where_one_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hill_climb, "MAX_CELLS", 23)
    cache = FamilyCache(Counts(random_dataset(40, (3, 2, 4), 2)), parse_score("bic"))
    events: list[Event] = []
    cache.score_pairs(events.append)
    assert events == []
    assert np.isfinite(cache.column(0, frozenset())).tolist() == [False, True, False]


@pytest.mark.parametrize("cardinalities", [(), (1, 1), (1, 3, 1)])
def test_no_pairs(cardinalities: tuple[int, ...]) -> None:
    cache = FamilyCache(Counts(random_dataset(10, cardinalities, 2)), parse_score("k2"))
    cache.score_pairs()
    assert all(np.isinf(cache.column(i, frozenset())).all() for i in cache.counts.data.schema.informative)


def test_families_without_parents() -> None:
    data = random_dataset(40, (3, 1, 2), 2, weighted=True)
    cache = FamilyCache(Counts(data), parse_score("bic"))
    assert cache.without_parents() == pytest.approx([slow(data, "bic", i, frozenset()) for i in (0, 2)])


def test_uninformative_attributes_are_no_candidates() -> None:
    cache = FamilyCache(Counts(random_dataset(40, (3, 1, 2), 2)), parse_score("k2"))
    assert np.isfinite(cache.column(0, frozenset())).tolist() == [False, False, True]


def test_a_family_of_too_many_cells_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hill_climb, "MAX_CELLS", 23)
    cache = FamilyCache(Counts(random_dataset(40, (3, 2, 4, 2), 2)), parse_score("bic"))
    assert np.isfinite(cache.column(0, frozenset())).tolist() == [False, True, False, True]
    assert np.isfinite(cache.column(2, frozenset())).tolist() == [False, True, False, True]
    assert np.isfinite(cache.column(1, frozenset({0}))).tolist() == [False, False, False, False]
    assert cache.score(0, frozenset({1, 3})) == -np.inf
    assert np.isfinite(cache.score(1, frozenset({3})))


def dag_of(present: np.ndarray) -> Dag:
    n = len(present)
    parents = tuple(tuple(np.flatnonzero(present[:, i]).tolist()) for i in range(n))
    return Dag(parents, tuple(range(n)))


def changed(present: np.ndarray, kind: str, j: int, i: int) -> np.ndarray | None:
    """The arcs after a change, or None where there is nothing to change."""
    after = present.copy()
    if kind == "add":
        if i == j or present[j, i] or present[i, j]:
            return None
        after[j, i] = True
        return after
    if not present[j, i]:
        return None
    after[j, i] = False
    after[i, j] = kind == "reverse"
    return after


def allowed_changes(present: np.ndarray, kind: str, max_parents: int, perfect: bool) -> np.ndarray:
    """Which arcs may be changed: every change made and looked at."""
    n = len(present)
    allowed = np.zeros((n, n), bool)
    for j, i in itertools.product(range(n), repeat=2):
        after = changed(present, kind, j, i)
        if after is not None:
            dag = dag_of(after)
            grown = kind == "delete" or after.sum(axis=0)[j if kind == "reverse" else i] <= max_parents
            allowed[j, i] = is_acyclic(dag) and grown and ((dag.unmarried is None) or not perfect)
    return allowed


@pytest.mark.parametrize(("n", "max_parents", "perfect"), every_pair([0, 1, 2, 4, 6], [1, 2, 3, 9], [False, True]))
def test_what_is_allowed_is_what_can_be_made(n: int, max_parents: int, perfect: bool) -> None:
    rng = np.random.default_rng(n)
    arcs = Arcs(n, max_parents=max_parents, perfect=perfect)
    for _ in range(25):
        allowed = arcs.allowed_moves()
        for kind, matrix in allowed.items():
            np.testing.assert_array_equal(
                matrix, allowed_changes(arcs.present, kind, max_parents, perfect), err_msg=kind
            )
        moves = [(kind, j, i) for kind, matrix in allowed.items() for j, i in np.argwhere(matrix).tolist()]
        additions = [move for move in moves if move[0] == "add"]
        if not moves:
            break
        options = additions if additions and rng.random() < 0.6 else moves
        kind, j, i = options[rng.integers(len(options))]
        expected = changed(arcs.present, kind, j, i)
        if kind == "add":
            arcs.add(j, i)
        else:
            arcs.delete(j, i)
        if kind == "reverse":
            arcs.add(i, j)
        np.testing.assert_array_equal(arcs.present, expected)


def test_parents() -> None:
    arcs = Arcs(3, max_parents=2, perfect=False)
    arcs.add(2, 0)
    arcs.add(1, 0)
    assert arcs.parents(0) == {1, 2}
    assert arcs.parents(1) == set()
