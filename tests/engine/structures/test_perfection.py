"""Canonical forms and perfect graphs against the definitions, node by node and pair by pair."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.structures.structure import UnmarriedParents, canonical_form, first_unmarried

Graph = dict[str, tuple[str, ...]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any acyclic graph over up to six nodes, the target `y` among them; nodes without parents may be left out."""
    order = draw(st.permutations("abcdey"[draw(st.integers(0, 5)) :]))
    graph = {
        node: tuple(draw(st.lists(st.sampled_from(order[:i]), unique=True))) if i else ()
        for i, node in enumerate(order)
    }
    keys = draw(st.permutations(order))
    return {node: graph[node] for node in keys if graph[node] or draw(st.booleans())}


def arcs(graph: Graph) -> set[tuple[str, str]]:
    return {(parent, child) for child, listed in graph.items() for parent in listed}


def slow_canonical_edges(graph: Graph) -> tuple[set[str], set[frozenset[str]]]:
    """The nodes of the Markov blanket with the target, and what is joined, by the definition."""
    children = {child for parent, child in arcs(graph) if parent == "y"}
    parents = {parent for parent, child in arcs(graph) if child == "y"}
    nodes = {"y"} | children | parents | {parent for parent, child in arcs(graph) if child in children}
    joined = {frozenset(arc) for arc in arcs(graph) if set(arc) <= nodes}
    return nodes, joined | {frozenset(pair) for pair in itertools.combinations(parents, 2)}


@given(graphs())
def test_the_canonical_form_is_the_blanket_with_married_parents(graph: Graph) -> None:
    form = canonical_form(graph, "y")
    nodes, joined = slow_canonical_edges(graph)
    assert {node for arc in arcs(form) for node in arc} | {"y"} <= nodes
    assert {frozenset(arc) for arc in arcs(form)} == joined
    assert len(arcs(form)) == len(joined), "no arc points both ways"
    for child in form:
        own = [parent for parent in graph.get(child, ()) if parent in nodes]
        assert list(form[child][: len(own)]) == own
    assert is_acyclic(form)


def is_acyclic(graph: Graph) -> bool:
    nodes = {node for arc in arcs(graph) for node in arc}
    return any(
        all(order.index(parent) < order.index(child) for parent, child in arcs(graph))
        for order in itertools.permutations(sorted(nodes))
    )


@given(graphs())
def test_perfect_means_that_no_child_has_parents_apart(graph: Graph) -> None:
    _, joined = slow_canonical_edges(graph)
    form = canonical_form(graph, "y")
    apart = [
        (child, *pair)
        for child, listed in form.items()
        for pair in itertools.combinations(listed, 2)
        if frozenset(pair) not in joined
    ]
    found = first_unmarried(graph, "y")
    assert (found is None) == (apart == [])
    assert found is None or found == apart[0]


@given(graphs())
def test_the_canonical_form_is_its_own(graph: Graph) -> None:
    form = canonical_form(graph, "y")
    assert arcs(canonical_form(form, "y")) == arcs(form)


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": ("y",), "b": ("y",)}, None),
        ({"a": ("y",), "b": ("y", "a"), "c": ("y", "b")}, None),
        ({"c": ("y", "a", "b"), "a": ("y",), "b": ("y",)}, UnmarriedParents("c", "a", "b")),
        ({"c": ("y", "a")}, UnmarriedParents("c", "y", "a")),
        ({"y": ("a", "b"), "c": ("a", "b", "y")}, None),  # the class's parents are married
        ({"c": ("a", "b"), "a": ("y",)}, None),  # c is outside the blanket
        ({"y": ("a",), "a": ("b", "c")}, None),  # so are the parents of a parent
        ({}, None),
    ],
)
def test_small_graphs(graph: Graph, found: UnmarriedParents[str] | None) -> None:
    assert first_unmarried(graph, "y") == found


def test_the_arc_of_a_marriage_follows_paths_outside_the_blanket() -> None:
    """b comes before a by way of w, which is not in the blanket."""
    assert canonical_form({"y": ("a", "b"), "a": ("w",), "w": ("b",)}, "y") == {"y": ("a", "b"), "a": ("b",), "b": ()}


def test_ten_thousand_parents_of_the_class_are_not_married_to_be_looked_at() -> None:
    assert first_unmarried({"y": tuple(map(str, range(10_000)))}, "y") is None
