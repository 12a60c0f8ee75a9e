"""The order: a permutation, without fill where that is possible, cheap first."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.inference.elimination import elimination_order

CLIQUES = st.lists(st.sets(st.integers(0, 7), max_size=3))


def width(order: list[int], cliques: list[set[int]]) -> int:
    """Most attributes joined with one that is summed out."""
    graph = {node: {other for c in cliques if node in c for other in c} - {node} for node in order}
    widest = 0
    for node in order:
        neighbours = graph.pop(node)
        widest = max(widest, len(neighbours))
        for a in neighbours:
            graph[a] = (graph[a] | neighbours) - {a, node}
    return widest


@given(CLIQUES, st.lists(st.integers(2, 5), min_size=8, max_size=8))
def test_every_attribute_once(cliques: list[set[int]], sizes: list[int]) -> None:
    order = elimination_order(cliques, dict(enumerate(sizes)))
    assert sorted(order) == list(range(8))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(2, 50))
def test_trees_have_width_one(parents: list[int], size: int) -> None:
    cliques = [{child, parent % child} for child, parent in enumerate(parents, 1)]
    sizes = {i: 2 + (size * i) % 7 for i in range(len(parents) + 1)}
    assert width(elimination_order(cliques, sizes), cliques) == 1


def test_no_order_is_much_better_on_a_grid() -> None:
    cliques = [{3 * r + c, 3 * r + c + 1} for r in range(3) for c in range(2)]
    cliques += [{3 * r + c, 3 * r + c + 3} for r in range(2) for c in range(3)]
    assert width(elimination_order(cliques, dict.fromkeys(range(9), 2)), cliques) == 3


def test_the_smaller_table_first_then_the_lower_index() -> None:
    assert elimination_order([], {0: 5, 1: 2, 2: 2}) == [1, 2, 0]
    assert elimination_order([{0, 1}, {1, 2}], {0: 5, 1: 3, 2: 2})[0] == 2


def test_a_clique_of_many() -> None:
    clique = set(range(40))
    order = elimination_order([clique, *map(set, itertools.pairwise(range(40, 80)))], dict.fromkeys(range(80), 2))
    assert sorted(order) == list(range(80))
