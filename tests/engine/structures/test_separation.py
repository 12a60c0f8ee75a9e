"""Paths against an enumeration of all of them; cut-sets against a notebook of what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.structure_learners.gbn import CutSet, Graph, cut_set, joined, on_paths


def graph_of(*edges: tuple[int, int], nodes: int = 0) -> dict[int, set[int]]:
    graph: dict[int, set[int]] = {node: set() for node in {*range(nodes), *(n for edge in edges for n in edge)}}
    for a, b in edges:
        graph[a].add(b)
        graph[b].add(a)
    return graph


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    n = draw(st.integers(2, 7))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    return graph_of(*draw(st.lists(st.sampled_from(pairs), unique=True)), nodes=n)


def simple_paths(graph: Graph, path: list[int], end: int) -> Iterator[list[int]]:
    for node in graph[path[-1]]:
        if node == end:
            yield path
        elif node not in path:
            yield from simple_paths(graph, [*path, node], end)


@given(graphs())
def test_nodes_on_paths_are_those_of_all_simple_paths(graph: Graph) -> None:
    expected = {node for path in simple_paths(graph, [0], 1) for node in path[1:]}
    assert on_paths(graph, 0, 1) == expected
    assert on_paths(graph, 1, 0) == expected


@given(graphs())
def test_joined_where_there_is_a_path(graph: Graph) -> None:
    assert joined(graph, 0, 1) == any(True for _ in simple_paths(graph, [0], 1))


class Notebook:
    """Answers from a table by the set, 1 where it has none; notes the sets in the order in which they are asked."""

    def __init__(self, answers: dict[CutSet, float]) -> None:
        self.answers = answers
        self.asked: list[CutSet] = []

    def __call__(self, a: int, b: int, sets: Sequence[CutSet]) -> list[float]:
        self.asked += sets
        return [self.answers.get(z, 1.0) for z in sets]


def nodes(*members: int) -> CutSet:
    return frozenset(members)


SQUARE = graph_of((0, 2), (2, 1), (0, 3), (3, 1), (0, 4), (4, 5), nodes=6)
"""2 and 3 lie between 0 and 1; 4 and 5 hang on 0."""


def test_the_neighbours_on_paths_are_asked_first() -> None:
    notebook = Notebook({nodes(2, 3): 0.0})
    assert cut_set(SQUARE, 0, 1, notebook, 0.1) == nodes(2, 3)
    assert notebook.asked == [nodes(2, 3)]


def test_shrinking_goes_where_least_is_left_and_the_lowest_goes_where_it_ties() -> None:
    graph = graph_of(*((end, middle) for middle in (2, 3, 4) for end in (0, 1)))
    tied = Notebook({nodes(2, 3, 4): 0.9, nodes(3, 4): 0.5, nodes(2, 4): 0.5, nodes(2, 3): 0.7, nodes(4): 0.05})
    assert cut_set(graph, 0, 1, tied, 0.1) == nodes(4)
    assert tied.asked == [nodes(2, 3, 4), nodes(3, 4), nodes(2, 4), nodes(2, 3), nodes(4), nodes(3)]
    least = Notebook({nodes(2, 3, 4): 0.9, nodes(3, 4): 0.5, nodes(2, 4): 0.4, nodes(2, 3): 0.7, nodes(2): 0.05})
    assert cut_set(graph, 0, 1, least, 0.1) == nodes(2)


def test_shrinking_ends_where_every_removal_raises_the_information() -> None:
    notebook = Notebook({nodes(2, 3): 0.5, nodes(2): 0.6, nodes(3): 0.7})
    assert cut_set(SQUARE, 0, 1, notebook, 0.1) is None
    assert notebook.asked == [nodes(2, 3), nodes(3), nodes(2)]


def test_the_threshold_itself_is_independence() -> None:
    assert cut_set(SQUARE, 0, 1, Notebook({nodes(2, 3): 0.1}), 0.1) == nodes(2, 3)


def test_then_the_neighbours_neighbours_the_smaller_end_first() -> None:
    """0 - 2, 3 - 4 - 5 - 1: the neighbours of 1 are fewer; then those two steps away."""
    graph = graph_of((0, 2), (0, 3), (2, 4), (3, 4), (4, 5), (5, 1))
    notebook = Notebook({nodes(4, 5): 0.2, nodes(4): 0.0})
    assert cut_set(graph, 0, 1, notebook, 0.1) == nodes(4)
    assert notebook.asked == [nodes(5), nodes(2, 3), nodes(3), nodes(2), nodes(4, 5), nodes(5), nodes(4)]


def test_without_a_path_nothing_is_tried() -> None:
    notebook = Notebook({})
    assert cut_set(graph_of((0, 2), (1, 3)), 0, 1, notebook, 0.1) is None
    assert notebook.asked == []
