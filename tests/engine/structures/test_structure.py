"""Structures by name and by index."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.structures.named_structure import NamedDag, name_dag
from bncli.engine.structures.structure import (
    Dag,
    Family,
    Regions,
    UnmarriedParents,
    first_unmarried,
    inside_earlier,
    maximal,
)
from bncli.errors import BncliError

REGIONS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple), max_size=8)


def schema_of(*cardinalities: int) -> Schema:
    """Attributes a, b, c, ... with so many values; the class is y."""
    attributes = tuple(
        CategoricalAttribute(chr(ord("a") + i), False, (1.0,) * n, tuple(map(str, range(n))))
        for i, n in enumerate(cardinalities)
    )
    return Schema("y", ("no", "yes"), attributes)


def test_names_become_indices_in_the_listed_order() -> None:
    named = NamedDag("y", {"c": ("b", "y", "a"), "b": ("y",), "a": ("y",)}, "kdb", {"k": 2})
    assert named.resolve(schema_of(2, 2, 2)) == Dag(((), (), (1, 0)), (0, 1, 2), (), "kdb", {"k": 2})


def test_the_class_may_have_parents_and_attributes_may_do_without_it() -> None:
    named = NamedDag("y", {"y": ("b", "a"), "c": ("y", "d"), "b": ("a",)})
    assert named.resolve(schema_of(2, 2, 2, 2)) == Dag(((), (0,), (3,), ()), (2,), (1, 0))


def test_uninformative_attributes_drop_out_of_every_list() -> None:
    incomplete = NumericAttribute("d", True, (1.0, 1.0), ())
    schema = Schema("y", ("no", "yes"), (*schema_of(2, 1, 2).attributes, incomplete))
    named = NamedDag("y", {"a": ("y", "b"), "b": ("y",), "c": ("y", "b", "a", "d"), "d": ("y",)})
    assert named.resolve(schema) == Dag(((), (), (0, 3), ()), (0, 2, 3))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (NamedDag("z", {"a": ("z",)}), "for the class 'z', not for 'y'; .*--class z"),
        (NamedDag("y", {"petal": ("y",)}), "unknown attribute 'petal'; did you mean 'petals'"),
        (NamedDag("y", {"petals": ("y", "zzz")}), "unknown attribute 'zzz'; the table has no such"),
    ],
)
def test_names_that_the_schema_does_not_have(named: NamedDag, message: str) -> None:
    schema = Schema("y", ("no", "yes"), (NumericAttribute("petals", False, (1.0, 1.0), (0.5,)),))
    with pytest.raises(BncliError, match=message):
        named.resolve(schema)


def test_a_graph_that_does_not_say_which_node_is_the_class_takes_that_of_the_schema() -> None:
    parents = {"y": ("a",), "b": ("y", "a"), "c": ()}
    assert NamedDag(None, parents).resolve(schema_of(2, 2, 2)) == NamedDag("y", parents).resolve(schema_of(2, 2, 2))
    assert NamedDag(None, {"a": ("y",)}).resolve(schema_of(2)) == Dag(((),), (0,))
    with pytest.raises(
        BncliError, match=r"the class 'y' is not a node of the structure; .*--class; the nodes are a, b$"
    ):
        NamedDag(None, {"a": ("b",)}).resolve(schema_of(2, 2))


def test_errors_name_the_file_that_the_graph_is_from() -> None:
    for named in (NamedDag(None, {"z": ()}, where="f.bif"), NamedDag("y", {"z": ("y",)}, where="f.bif")):
        with pytest.raises(BncliError, match=r", f\.bif"):
            named.resolve(schema_of(2))
    with pytest.raises(BncliError, match=r"has a cycle: a -> a, f\.bif"):
        NamedDag("y", {"a": ("a",)}, where="f.bif")
    assert NamedDag("y", {}, where="f.bif") == NamedDag("y", {})


def test_nodes_are_those_with_parents_then_those_that_only_are_parents() -> None:
    assert NamedDag("y", {"b": ("y", "c"), "a": ("b",)}).nodes == ("b", "a", "y", "c")


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": ("a",)}, "cycle: a -> a"),
        ({"a": ("b",), "b": ("a",)}, "cycle: a -> b -> a"),
        ({"c": ("a",), "a": ("y", "b"), "b": ("y", "d"), "d": ("a",)}, "cycle: a -> d -> b -> a"),
        ({"a": ("y",), "y": ("a",)}, "cycle: a -> y -> a"),
        ({"a": ("b", "y", "b")}, "'a' lists its parent 'b' twice"),
    ],
)
def test_what_is_no_acyclic_graph_is_refused(parents: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        NamedDag("y", parents)


@pytest.mark.slow
def test_a_long_chain_is_no_cycle_and_a_long_cycle_is_told_briefly() -> None:
    chain = {str(i): (str(i + 1),) for i in range(50_000)}
    assert len(NamedDag("y", chain).parents) == 50_000
    with pytest.raises(BncliError) as caught:
        NamedDag("y", chain | {"50000": ("0",)})
    assert len(str(caught.value)) < 200


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Dag, Schema]:
    """Any acyclic graph over up to six informative attributes and the class."""
    n = draw(st.integers(1, 6))
    order = draw(st.permutations(range(n + 1)))  # n is the class
    parents = {
        node: draw(st.lists(st.sampled_from(order[:i]), unique=True)) if i else [] for i, node in enumerate(order)
    }
    children = tuple(i for i in range(n) if n in parents[i])
    dag = Dag(tuple(tuple(j for j in parents[i] if j < n) for i in range(n)), children, tuple(parents[n]))
    return dag, schema_of(*[2] * n)


@given(graphs())
def test_names_there_and_back(graph: tuple[Dag, Schema]) -> None:
    dag, schema = graph
    assert name_dag(dag, schema).resolve(schema) == dag


@given(graphs())
def test_perfect_graphs_are_those_of_the_named_graph(graph: tuple[Dag, Schema]) -> None:
    dag, schema = graph
    assert (dag.unmarried is None) == (name_dag(dag, schema).unmarried is None)


def has_cycle(parents: dict[str, tuple[str, ...]]) -> bool:
    """By Kahn's way round: take away nodes without parents until nothing changes."""
    left = {node: set(listed) for node, listed in parents.items()}
    for listed in parents.values():
        for name in listed:
            left.setdefault(name, set())
    while roots := [node for node, listed in left.items() if not listed]:
        for root in roots:
            del left[root]
        for listed in left.values():
            listed.difference_update(roots)
    return bool(left)


NODES = st.sampled_from("abcdef")


@given(st.dictionaries(NODES, st.lists(NODES, unique=True, max_size=3).map(tuple)))
def test_exactly_the_graphs_with_cycles_are_refused_and_the_cycle_is_real(parents: dict[str, tuple[str, ...]]) -> None:
    if not has_cycle(parents):
        NamedDag("y", parents)
        return
    with pytest.raises(BncliError) as caught:
        NamedDag("y", parents)
    nodes = caught.value.what.removeprefix("the structure has a cycle: ").split(" -> ")
    assert nodes[0] == nodes[-1]
    assert len(set(nodes)) == len(nodes) - 1
    assert all(parent in parents[child] for parent, child in pairwise(nodes))


def test_families_are_the_children_of_the_class_and_its_parents() -> None:
    dag = Dag(((), (0,), (1,), ()), (1,), (3, 0))
    assert dag.families((2, 3, 4, 5)) == (Family((1, 0), (3, 2), 1), Family((3, 0), (5, 2), None))
    assert dag.attributes == (0, 1, 3)


def test_the_whole_network_has_a_family_for_every_node() -> None:
    """a0 -> a1 -> a2, a3 apart; class -> a1, a3 and a0 -> class, a4 without an arc."""
    dag = Dag(((), (0,), (1,), (), ()), (1,), (3, 0))
    assert dag.nodes == (0, 1, 2, 3)
    assert dag.families((2, 3, 4, 5, 6), all_factors=True) == (
        Family((1, 0), (3, 2), 1),
        Family((0,), (2,), 0, by_class=False),
        Family((2, 1), (4, 3), 2, by_class=False),
        Family((3,), (5,), 3, by_class=False),
        Family((3, 0), (5, 2), None),
    )
    assert Dag(((), ()), ()).families((2, 3), all_factors=True) == ()


def test_regions_have_the_groupings_of_their_size() -> None:
    """Attribute 1 is never regrouped; regions of three attributes and more are binned alike."""
    pairs, larger = (0, 0, 1, 1, 2), (0, 0, 0, 1, 1)
    groupings = ((None, None, None, None), (pairs, None, pairs, None), (larger, None, larger, None))
    regions = Regions(((0,), (1,), (0, 1), (1, 3), (0, 1, 2, 3)), bins=(None, 3, 2), groupings=groupings)
    assert regions.families((5, 2, 5, 2)) == (
        Family((0,), (5,), None),
        Family((1,), (2,), None),
        Family((0, 1), (3, 2), None, groupings=(pairs, None)),
        Family((1, 3), (2, 2), None),
        Family((0, 1, 2, 3), (2, 2, 2, 2), None, groupings=(larger, None, larger, None)),
    )
    assert replace(regions, bins=(), groupings=()).families((5, 2, 5, 2)) == (Family((0, 1, 2, 3), (5, 2, 5, 2), None),)


def test_a_region_is_part_of_a_larger_one_only_if_it_has_the_same_bins() -> None:
    regions = Regions(((0,), (1,), (0, 1), (0, 1, 2), (1, 2)), bins=(4, 2, 2))
    assert regions.chosen == ((0,), (1,), (0, 1, 2))
    assert replace(regions, bins=(4, 2)).chosen == regions.chosen
    assert replace(regions, bins=(2,)).chosen == ((0, 1, 2),)
    assert replace(regions, bins=(None, None, 3)).chosen == ((0, 1), (0, 1, 2), (1, 2))


SETS = st.sets(st.integers(0, 4), min_size=1, max_size=3).map(lambda members: tuple(sorted(members)))


@given(st.lists(SETS, max_size=6), st.lists(st.sampled_from([None, 2, 3]), max_size=4).map(tuple))
def test_the_chosen_regions_by_the_definition(regions: list[tuple[int, ...]], bins: tuple[int | None, ...]) -> None:
    padded = (*bins, *[bins[-1] if bins else None] * 3)

    def inside(region: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return set(region) < set(other) and padded[len(region) - 1] == padded[len(other) - 1]

    found = Regions(tuple(regions), bins=bins)
    expected = [r for r in dict.fromkeys(regions) if not any(inside(r, other) for other in regions)]
    assert list(found.chosen) == expected
    assert [f.attributes for f in found.families((3,) * 5)] == expected


Graph = dict[str, tuple[str, ...]]


@st.composite
def named_graphs(draw: st.DrawFn) -> Graph:
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


@given(named_graphs())
def test_perfect_means_that_no_child_has_parents_apart(graph: Graph) -> None:
    nodes, joined = slow_canonical_edges(graph)
    apart = [
        (child, *pair)
        for child, listed in graph.items()
        for pair in itertools.combinations([parent for parent in listed if parent in nodes], 2)
        if child in nodes and frozenset(pair) not in joined
    ]
    found = first_unmarried(graph, "y")
    assert (found is None) == (apart == [])
    assert found is None or found == apart[0]


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


def test_ten_thousand_parents_of_the_class_are_not_married_to_be_looked_at() -> None:
    assert first_unmarried({"y": tuple(map(str, range(10_000)))}, "y") is None


@given(REGIONS)
def test_inside_an_earlier_one(regions: list[tuple[int, ...]]) -> None:
    expected = [j for j, b in enumerate(regions) if any(set(b) <= set(a) for a in regions[:j])]
    assert inside_earlier(regions) == expected


@given(REGIONS, st.booleans())
def test_maximal_ones_are_in_no_other(regions: list[tuple[int, ...]], empty: bool) -> None:
    regions = [*([()] if empty else []), *regions]
    found = maximal(regions)
    assert {frozenset(a) for a in found} == {frozenset(a) for a in regions if not any(set(a) < set(b) for b in regions)}
    assert len({frozenset(a) for a in found}) == len(found)
    assert found == sorted(found, key=regions.index)


def test_names_do_as_well_as_numbers() -> None:
    assert maximal([("a",), ("b", "a"), ("a", "b"), ("c",)]) == [("b", "a"), ("c",)]
