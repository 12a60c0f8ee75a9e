"""Directions against the rules, and against d-separation in random graphs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.structure_learners.gbn import CutSet, orient

Parents = dict[int, set[int]]
Edge = tuple[int, int]


def never(a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
    return [0.0] * len(sets)


def always(a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
    return [1.0] * len(sets)


def graph_of(parents: Parents) -> dict[int, set[int]]:
    graph: dict[int, set[int]] = {node: set(listed) for node, listed in parents.items()}
    for node, listed in parents.items():
        for parent in listed:
            graph[parent].add(node)
    return graph


def apart(graph: dict[int, set[int]]) -> list[Edge]:
    return [(a, b) for a, b in itertools.combinations(sorted(graph), 2) if b not in graph[a]]


def v_structures(parents: Parents) -> set[tuple[int, int, int]]:
    graph = graph_of(parents)
    return {
        (a, b, c)
        for c, listed in parents.items()
        for a, b in itertools.combinations(sorted(listed), 2)
        if b not in graph[a]
    }


def above(parents: Parents, start: set[int]) -> set[int]:
    found = set(start)
    while more := {p for node in found for p in parents[node]} - found:
        found |= more
    return found


def separated(parents: Parents, a: int, b: int, z: CutSet) -> bool:
    """d-separation: in the moral graph of a, b, z and what is above them, z cuts a from b."""
    kept = above(parents, {a, b, *z})
    moral: dict[int, set[int]] = {node: set() for node in kept}
    for node in kept:
        for one, other in itertools.permutations([node, *parents[node]], 2):
            moral[one].add(other)
    reached = {a}
    while more := {n for node in reached for n in moral[node]} - reached - z:
        reached |= more
    return b not in reached


@st.composite
def random_parents(draw: st.DrawFn) -> Parents:
    n = draw(st.integers(1, 7))
    order = draw(st.permutations(range(n)))
    return {
        node: set(draw(st.lists(st.sampled_from(order[:place]), max_size=3))) if place else set()
        for place, node in enumerate(order)
    }


@given(random_parents())
def test_true_cut_sets_give_an_equivalent_graph(parents: Parents) -> None:
    """The same edges and v-structures: equivalent (Verma & Pearl 1990)."""
    graph = graph_of(parents)
    cut_sets = {}
    for a, b in apart(graph):
        for end in (a, b):  # the parents of the later of two nodes separate them
            if separated(parents, a, b, frozenset(parents[end] - {a, b})):
                cut_sets[a, b] = frozenset(parents[end] - {a, b})

    def information(a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
        return [float(not separated(parents, a, b, z)) for z in sets]

    found = orient(graph, cut_sets, information, 0.5)
    assert graph_of(found) == graph
    assert v_structures(found) == v_structures(parents)
    assert_acyclic(found)


def assert_acyclic(parents: Parents) -> None:
    assert not any(node in above(parents, set(parents[node])) for node in parents)


@given(random_parents(), st.randoms(use_true_random=False))
def test_whatever_the_cut_sets_say_there_is_no_cycle_and_every_edge_one_direction(
    parents: Parents, random: object
) -> None:
    graph = graph_of(parents)
    cut_sets = {pair: frozenset(n for n in graph if random.random() < 0.4) for pair in apart(graph)}  # type: ignore[attr-defined]
    found = orient(graph, cut_sets, always, 0.5)
    assert graph_of(found) == graph
    assert sum(map(len, found.values())) == sum(map(len, parents.values()))
    assert_acyclic(found)


CHAIN = {0: {1}, 1: {0, 2}, 2: {1}}


def test_a_collider_needs_a_cut_set_without_it_and_dependence_given_it() -> None:
    assert orient(CHAIN, {(0, 2): frozenset()}, always, 0.5) == {0: set(), 1: {0, 2}, 2: set()}
    assert orient(CHAIN, {(0, 2): frozenset({1})}, always, 0.5) == {0: set(), 1: {0}, 2: {1}}
    assert orient(CHAIN, {(0, 2): frozenset()}, never, 0.5) == {0: set(), 1: {0}, 2: {1}}


def test_an_arc_goes_on_where_the_other_way_would_be_a_new_v_structure() -> None:
    """0 -> 2 <- 1 and 2 - 3."""
    graph = {0: {2}, 1: {2}, 2: {0, 1, 3}, 3: {2}}
    cut_sets = {(0, 1): frozenset[int](), (0, 3): frozenset({2}), (1, 3): frozenset({2})}
    assert orient(graph, cut_sets, always, 0.5)[3] == {2}


def test_arcs_that_would_follow_count_as_well() -> None:
    """2 -> 0 <- 3, and 1 joined to all three: 0 -> 1 would bring 2 -> 1 <- 3 with it (Meek 1995, his third rule)."""
    graph = {0: {1, 2, 3}, 1: {0, 2, 3}, 2: {0, 1}, 3: {0, 1}}

    def information(a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
        return [float(0 in z) for z in sets]

    found = orient(graph, {(2, 3): frozenset({1})}, information, 0.5)
    assert found[0] == {1, 2, 3}
    assert v_structures(found) == {(2, 3, 0)}


def test_what_nothing_decides_goes_from_lower_to_higher() -> None:
    triangle = {-1: {0, 1}, 0: {-1, 1}, 1: {-1, 0}}
    assert orient(triangle, {}, never, 0.5) == {-1: set(), 0: {-1}, 1: {-1, 0}}
    star = {-1: {0, 1, 2}, 0: {-1}, 1: {-1}, 2: {-1}}
    pairs = {pair: frozenset({-1}) for pair in ((0, 1), (0, 2), (1, 2))}
    assert orient(star, pairs, never, 0.5) == {-1: set(), 0: {-1}, 1: {-1}, 2: {-1}}


@pytest.mark.parametrize(("stronger", "head"), [((0, 2), 1), ((1, 3), 2)])
def test_of_two_v_structures_that_want_one_edge_the_stronger_has_it(stronger: Edge, head: int) -> None:
    """0 - 1 - 2 - 3: 0 -> 1 <- 2 or 1 -> 2 <- 3."""
    graph = {0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}}

    def information(a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
        return [2.0 if (a, b) == stronger else 1.0] * len(sets)

    found = orient(graph, dict.fromkeys(apart(graph), frozenset()), information, 0.5)
    assert found[head] == set(graph[head])
