"""General networks: cut-sets, orientation, conditional information, and whole networks from their own rows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.catalogue.option_kinds import Knowledge
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.networks.network import Network, table_shapes
from bncli.engine.parameter_learners.closed_form import learn_map
from bncli.engine.structure_learners import gbn
from bncli.engine.structure_learners.gbn import (
    CLASS_NODE,
    ConditionalInformation,
    Graph,
    Nodes,
    find_cut_set,
    nodes_on_paths,
    orient,
    representatives,
    sum_n_log_n,
)
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Note, Progress
from tests import oracles
from tests.datasets import dataset_of, random_dataset, reorder
from tests.engine.small_networks import asia, drawn_rows, exact_rows, strong_network
from tests.missing_values import complete_rows, with_missing
from tests.oracles import weights_of
from tests.strategies import datasets

Edge = tuple[int, int]


def parents_of(dag: Dag) -> dict[int, set[int]]:
    parents = {i: {*listed, *([CLASS_NODE] if i in dag.class_children else [])} for i, listed in enumerate(dag.parents)}
    return {**parents, CLASS_NODE: set(dag.class_parents)}


def edges_of(dag: Dag) -> set[Edge]:
    return {(min(i, j), max(i, j)) for i, listed in parents_of(dag).items() for j in listed}


def v_structures(dag: Dag) -> set[tuple[int, int, int]]:
    edges = edges_of(dag)
    pairs = ((c, pair) for c, listed in parents_of(dag).items() for pair in itertools.combinations(sorted(listed), 2))
    return {(a, b, c) for c, (a, b) in pairs if (a, b) not in edges}


def named(network: Network, edges: set[Edge]) -> set[str]:
    names = [*(attribute.name for attribute in network.schema.attributes), network.schema.class_name]
    return {f"{names[a]}-{names[b]}" for a, b in edges}


def learn(data: Dataset, epsilon: float) -> Dag:
    return gbn.learn(Counts(data), epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-4, 3e-4])
def test_asia_without_noise(epsilon: float) -> None:
    network = asia()
    found = learn(exact_rows(network), epsilon)
    assert edges_of(found) == edges_of(network.structure)
    assert v_structures(found) == v_structures(network.structure)


@pytest.mark.parametrize("rows", [50_000, 200_000])
def test_asia_from_rows(rows: int) -> None:
    """`asia` and `tub` share 0.0006 bits: 0.0003 finds them, 0.003 cannot. Then `dysp` and `either` go as well."""
    network = asia()
    data = drawn_rows(network, rows, seed=1)
    found = learn(data, 0.0003)
    assert edges_of(found) == edges_of(network.structure)
    assert v_structures(found) == v_structures(network.structure)
    for epsilon in (0.001, 0.003):
        weaker = learn(data, epsilon)
        assert named(network, edges_of(network.structure) ^ edges_of(weaker)) == {"asia-tub"}
    assert "dysp-either" not in named(network, edges_of(learn(data, 0.01)))


def test_the_tables_of_the_known_networks_have_the_shapes_of_their_structures() -> None:
    for network in (asia(), strong_network(20, 0)):
        shapes = table_shapes(network.structure, network.schema.cardinalities, len(network.schema.labels))
        assert [table.shape for table in (*network.theta, network.theta_class)] == shapes


@pytest.mark.slow
def test_networks_of_twenty_nodes_from_rows() -> None:
    """Six networks, 123 edges: none too many, three missed (one in forty), four networks or more found exactly."""
    true, missing, extra, exact = 0, 0, 0, 0
    for seed in range(6):
        network = strong_network(20, seed)
        drawn_from, found = edges_of(network.structure), edges_of(learn(drawn_rows(network, 50_000, seed), 0.002))
        true, exact = true + len(drawn_from), exact + (drawn_from == found)
        missing, extra = missing + len(drawn_from - found), extra + len(found - drawn_from)
    assert extra == 0
    assert missing <= true / 40
    assert exact >= 4


def mutual_information(data: Dataset, a: int, b: int) -> float:
    """In nats, by a loop over rows."""
    if a == CLASS_NODE:
        return oracles.mutual_information(oracles.count(data, (b,)))
    return oracles.mutual_information(oracles.count(data, (a, b)).sum(axis=-1))


@given(datasets(max_rows=60), st.sampled_from([0.0, 0.01, 0.05, 0.3]))
def test_what_holds_of_every_network(data: Dataset, epsilon: float) -> None:
    """An edge is a dependent pair, and every dependent pair is joined by a path."""
    dag = learn(data, epsilon)
    edges, nodes = edges_of(dag), [CLASS_NODE, *range(len(data.codes))]
    strengths = {pair: mutual_information(data, *pair) for pair in itertools.combinations(nodes, 2)}
    component = {node: {node} for node in nodes}
    for a, b in edges:
        merged = component[a] | component[b]
        component.update(dict.fromkeys(merged, merged))
    for (a, b), strength in strengths.items():
        if strength <= epsilon * math.log(2) - 1e-9:
            assert (a, b) not in edges
        if strength > epsilon * math.log(2) + 1e-9:
            assert component[a] is component[b] or b in component[a]
    assert dag.method == "gbn"
    assert dict(dag.options) == {"epsilon": epsilon}


@given(datasets(max_rows=60), st.sampled_from([0.01, 0.1]))
def test_parents_in_falling_dependence(data: Dataset, epsilon: float) -> None:
    dag = learn(data, epsilon)
    for i, listed in enumerate(dag.parents):
        given_class = [oracles.conditional_mutual_information(oracles.count(data, (i, j))) for j in listed]
        assert all(one >= other - 1e-11 for one, other in itertools.pairwise(given_class))
    of_class = [mutual_information(data, CLASS_NODE, j) for j in dag.class_parents]
    assert all(one >= other - 1e-11 for one, other in itertools.pairwise(of_class))


def test_naive_bayes_is_found_where_it_is_true() -> None:
    """Attributes that depend on the class alone; what has no direction leads away from the class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 20_000)
    columns = [np.where(rng.random(20_000) < 0.8, labels, 1 - labels) for _ in range(6)]
    dag = learn(dataset_of(columns, labels, (2,) * 6, 2), 0.01)
    assert dag.parents == ((),) * 6
    assert dag.class_children == (0, 1, 2, 3, 4, 5)


def test_causes_of_the_class_are_its_parents_and_a_third_attribute_keeps_its_arc() -> None:
    """0 -> class <- 1, class -> 2 -> 3."""
    rng = np.random.default_rng(1)
    x, z = rng.integers(0, 2, (2, 50_000))
    noise = rng.random((3, 50_000)) < 0.1
    labels = np.where(noise[0], 1 - (x | z), x | z)
    below = np.where(noise[1], 1 - labels, labels)
    data = dataset_of([x, z, below, np.where(noise[2], 1 - below, below)], labels, (2,) * 4, 2)
    dag = learn(data, 0.01)
    assert dag == Dag(((), (), (), (2,)), (2,), dag.class_parents, "gbn", {"epsilon": 0.01})
    assert sorted(dag.class_parents) == [0, 1]
    assert dag.attributes == (0, 1, 2)


def test_an_exclusive_or_is_beyond_pairs() -> None:
    """No pair is dependent: nothing is drafted, and nothing else is asked."""
    x, z = np.array(list(itertools.product((0, 1), repeat=2)) * 10).T
    assert edges_of(learn(dataset_of([x, z], x ^ z, (2, 2), 2), 0.0)) == set()


@given(st.lists(st.integers(2, 4), min_size=1, max_size=5), st.integers(2, 4), st.integers(0, 999))
def test_the_order_of_attributes_changes_directions_only(cardinalities: list[int], n_labels: int, seed: int) -> None:
    """Where no two numbers that are compared tie, the edges are the same."""
    data = random_dataset(400, cardinalities, n_labels, seed=seed)
    order = np.random.default_rng(seed).permutation(len(cardinalities)).tolist()
    places = [*order, CLASS_NODE]  # places[CLASS_NODE] is the last
    shuffled = edges_of(learn(reorder(data, order), 0.01))
    assert {tuple(sorted((places[a], places[b]))) for a, b in shuffled} == edges_of(learn(data, 0.01))


def test_nothing_depends_on_anything_above_a_high_threshold() -> None:
    data = random_dataset(200, (3, 2, 4), 2)
    dag = learn(data, 10.0)
    assert edges_of(dag) == set()
    learnt = learn_map(Counts(data), dag, smoothing="mle")
    np.testing.assert_allclose(np.exp(learnt.tables.bias), np.bincount(data.labels) / 200)


def test_uninformative_attributes_stay_outside() -> None:
    dag = learn(random_dataset(400, (1, 3, 1, 2), 2), 0.01)
    assert edges_of(dag) >= {(CLASS_NODE, 1)}
    assert not {i for edge in edges_of(dag) for i in edge} & {0, 2}
    assert edges_of(learn(random_dataset(40, (1,), 2), 0.01)) == set()


def test_copies_of_one_attribute_hang_on_it() -> None:
    x = np.tile([0, 1], 50)
    dag = learn(dataset_of([x] * 3, np.roll(x, 1), (2,) * 3, 2), 0.01)
    assert edges_of(dag) == {(CLASS_NODE, 0), (CLASS_NODE, 1), (CLASS_NODE, 2)}


def test_progress_is_told() -> None:
    events: list[Event] = []
    gbn.learn(Counts(random_dataset(400, (3, 2, 4, 3), 3)), epsilon=0.001, watch=events.append)
    told = [event for event in events if isinstance(event, Progress)]
    assert {event.detail for event in told} == {"pairs of attributes", "pairs without an edge", "edges"}
    assert all(event.total is not None and 0 <= event.done < event.total for event in told)


def test_a_network_is_found_again_through_missing_values() -> None:
    """A quarter of the values missing; an edge is as strong in the rows that have both ends."""
    network = strong_network(6, 3)
    data = drawn_rows(network, 20_000, 1)
    events: list[Event] = []
    found = gbn.learn(Counts(with_missing(data, 0.25)), epsilon=0.01, watch=events.append)
    assert edges_of(found) == edges_of(gbn.learn(Counts(data), epsilon=0.01))
    assert Note("gbn tests independence on the rows without missing values in the tested attributes") in events


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
    assert nodes_on_paths(graph, 0, 1) == expected
    assert nodes_on_paths(graph, 1, 0) == expected


class Notebook:
    """Answers from a table by the set, 1 where it has none; notes the sets in the order in which they are asked."""

    def __init__(self, answers: dict[Nodes, float]) -> None:
        self.answers = answers
        self.asked: list[Nodes] = []

    def __call__(self, a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
        self.asked += sets
        return [self.answers.get(z, 1.0) for z in sets]


def nodes(*members: int) -> Nodes:
    return frozenset(members)


SQUARE = graph_of((0, 2), (2, 1), (0, 3), (3, 1), (0, 4), (4, 5), nodes=6)
"""2 and 3 lie between 0 and 1; 4 and 5 hang on 0."""


def test_the_neighbours_on_paths_are_asked_first() -> None:
    notebook = Notebook({nodes(2, 3): 0.0})
    assert find_cut_set(SQUARE, 0, 1, notebook, 0.1) == nodes(2, 3)
    assert notebook.asked == [nodes(2, 3)]


def test_shrinking_goes_where_least_is_left_and_the_lowest_goes_where_it_ties() -> None:
    graph = graph_of(*((end, middle) for middle in (2, 3, 4) for end in (0, 1)))
    tied = Notebook({nodes(2, 3, 4): 0.9, nodes(3, 4): 0.5, nodes(2, 4): 0.5, nodes(2, 3): 0.7, nodes(4): 0.05})
    assert find_cut_set(graph, 0, 1, tied, 0.1) == nodes(4)
    assert tied.asked == [nodes(2, 3, 4), nodes(3, 4), nodes(2, 4), nodes(2, 3), nodes(4), nodes(3)]
    least = Notebook({nodes(2, 3, 4): 0.9, nodes(3, 4): 0.5, nodes(2, 4): 0.4, nodes(2, 3): 0.7, nodes(2): 0.05})
    assert find_cut_set(graph, 0, 1, least, 0.1) == nodes(2)


def test_shrinking_ends_where_every_removal_raises_the_information() -> None:
    notebook = Notebook({nodes(2, 3): 0.5, nodes(2): 0.6, nodes(3): 0.7})
    assert find_cut_set(SQUARE, 0, 1, notebook, 0.1) is None
    assert notebook.asked == [nodes(2, 3), nodes(3), nodes(2)]


def test_the_threshold_itself_is_independence() -> None:
    assert find_cut_set(SQUARE, 0, 1, Notebook({nodes(2, 3): 0.1}), 0.1) == nodes(2, 3)


def test_then_the_neighbours_neighbours_the_smaller_end_first() -> None:
    """0 - 2, 3 - 4 - 5 - 1: the neighbours of 1 are fewer; then those two steps away."""
    graph = graph_of((0, 2), (0, 3), (2, 4), (3, 4), (4, 5), (5, 1))
    notebook = Notebook({nodes(4, 5): 0.2, nodes(4): 0.0})
    assert find_cut_set(graph, 0, 1, notebook, 0.1) == nodes(4)
    assert notebook.asked == [nodes(5), nodes(2, 3), nodes(3), nodes(2), nodes(4, 5), nodes(5), nodes(4)]


def test_without_a_path_nothing_is_tried() -> None:
    notebook = Notebook({})
    assert find_cut_set(graph_of((0, 2), (1, 3)), 0, 1, notebook, 0.1) is None
    assert notebook.asked == []


Parents = dict[int, set[int]]


def never(a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
    return [0.0] * len(sets)


def always(a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
    return [1.0] * len(sets)


def graph_from_edges(parents: Parents) -> dict[int, set[int]]:
    graph: dict[int, set[int]] = {node: set(listed) for node, listed in parents.items()}
    for node, listed in parents.items():
        for parent in listed:
            graph[parent].add(node)
    return graph


def apart(graph: dict[int, set[int]]) -> list[Edge]:
    return [(a, b) for a, b in itertools.combinations(sorted(graph), 2) if b not in graph[a]]


def v_structures_of(parents: Parents) -> set[tuple[int, int, int]]:
    graph = graph_from_edges(parents)
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


def separated(parents: Parents, a: int, b: int, z: Nodes) -> bool:
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
    graph = graph_from_edges(parents)
    cut_sets = {}
    for a, b in apart(graph):
        for end in (a, b):  # the parents of the later of two nodes separate them
            if separated(parents, a, b, frozenset(parents[end] - {a, b})):
                cut_sets[a, b] = frozenset(parents[end] - {a, b})

    def information(a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
        return [float(not separated(parents, a, b, z)) for z in sets]

    found = orient(graph, cut_sets, information, 0.5)
    assert graph_from_edges(found) == graph
    assert v_structures_of(found) == v_structures_of(parents)
    assert_acyclic(found)


def assert_acyclic(parents: Parents) -> None:
    assert not any(node in above(parents, set(parents[node])) for node in parents)


@given(random_parents(), st.randoms(use_true_random=False))
def test_whatever_the_cut_sets_say_there_is_no_cycle_and_every_edge_one_direction(
    parents: Parents, random: object
) -> None:
    graph = graph_from_edges(parents)
    cut_sets = {pair: frozenset(n for n in graph if random.random() < 0.4) for pair in apart(graph)}  # type: ignore[attr-defined]
    found = orient(graph, cut_sets, always, 0.5)
    assert graph_from_edges(found) == graph
    assert sum(map(len, found.values())) == sum(map(len, parents.values()))
    assert_acyclic(found)


CHAIN = {0: {1}, 1: {0, 2}, 2: {1}}


def test_a_collider_needs_a_cut_set_without_it_and_dependence_given_it() -> None:
    assert orient(CHAIN, {(0, 2): frozenset()}, always, 0.5) == {0: set(), 1: {0, 2}, 2: set()}
    assert orient(CHAIN, {(0, 2): frozenset({1})}, always, 0.5) == {0: set(), 1: {0}, 2: {1}}
    assert orient(CHAIN, {(0, 2): frozenset()}, never, 0.5) == {0: set(), 1: {0}, 2: {1}}


@pytest.mark.parametrize("content", [{"max_parents": 1}, {"no_interaction": [["x0", "x2"]]}])
def test_the_parents_of_a_collider_obey_the_constraints_together(content: dict[str, object]) -> None:
    """Each arc alone is allowed, but not both."""
    schema = random_dataset(20, (2, 2, 2), 2).schema
    schema = replace(schema, attributes=tuple(replace(a, name=f"x{i}") for i, a in enumerate(schema.attributes)))
    constraints = ArcConstraints.of(Knowledge.parse(content), schema)
    assert orient(CHAIN, {(0, 2): frozenset()}, always, 0.5) == {0: set(), 1: {0, 2}, 2: set()}
    found = orient(CHAIN, {(0, 2): frozenset()}, always, 0.5, constraints)
    assert found == {0: set(), 1: {0}, 2: {1}}


def test_an_arc_goes_on_where_the_other_way_would_be_a_new_v_structure() -> None:
    """0 -> 2 <- 1 and 2 - 3."""
    graph = {0: {2}, 1: {2}, 2: {0, 1, 3}, 3: {2}}
    cut_sets = {(0, 1): frozenset[int](), (0, 3): frozenset({2}), (1, 3): frozenset({2})}
    assert orient(graph, cut_sets, always, 0.5)[3] == {2}


def test_arcs_that_would_follow_count_as_well() -> None:
    """2 -> 0 <- 3, and 1 joined to all three: 0 -> 1 would bring 2 -> 1 <- 3 with it (Meek 1995, his third rule)."""
    graph = {0: {1, 2, 3}, 1: {0, 2, 3}, 2: {0, 1}, 3: {0, 1}}

    def information(a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
        return [float(0 in z) for z in sets]

    found = orient(graph, {(2, 3): frozenset({1})}, information, 0.5)
    assert found[0] == {1, 2, 3}
    assert v_structures_of(found) == {(2, 3, 0)}


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

    def information(a: int, b: int, sets: Sequence[Nodes]) -> list[float]:
        return [2.0 if (a, b) == stronger else 1.0] * len(sets)

    found = orient(graph, dict.fromkeys(apart(graph), frozenset()), information, 0.5)
    assert found[head] == set(graph[head])


def slow(data: Dataset, a: int, b: int, given_nodes: Collection[int]) -> float:
    """sum P(a, b, z) ln [P(a, b, z) P(z) / (P(a, z) P(b, z))], from dictionaries."""
    joint, of_a, of_b, of_z = Counter[object](), Counter[object](), Counter[object](), Counter[object]()
    for t, w in enumerate(weights_of(data)):
        x, y, *z = (int((data.labels if i == CLASS_NODE else data.codes[i])[t]) for i in (a, b, *sorted(given_nodes)))
        for counter, key in ((joint, (x, y, *z)), (of_a, (x, *z)), (of_b, (y, *z)), (of_z, tuple(z))):
            counter[key] += w  # type: ignore[assignment]
    total = sum(weights_of(data))
    return math.fsum(
        n / total * math.log(n * of_z[tuple(z)] / (of_a[x, *z] * of_b[y, *z])) for (x, y, *z), n in joint.items()
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Dataset, int, int, list[frozenset[int]]]:
    data = draw(datasets(max_attributes=5).filter(lambda data: len(data.codes) > 1))
    a, b, *rest = draw(st.permutations([CLASS_NODE, *range(len(data.codes))]))
    some = st.frozensets(st.sampled_from(rest)) if rest else st.just(frozenset[int]())
    return data, a, b, draw(st.lists(some, min_size=1, max_size=4))


@pytest.mark.parametrize("table", ["whole", "places", "sorted"])
@given(asked=questions())
def test_equals_the_definition(table: str, asked: tuple[Dataset, int, int, list[frozenset[int]]]) -> None:
    data, a, b, sets = asked
    with pytest.MonkeyPatch.context() as patch:
        if table != "whole":
            patch.setattr(gbn, "SMALL_TABLE", 1)
            patch.setattr(gbn, "CELLS_PER_ROW", 0)
        if table == "sorted":
            patch.setattr(gbn, "MOST_PLACES", 1)
            patch.setattr(gbn, "NUMBERS_PER_ROW", 0)
            patch.setattr(gbn, "FEW_PLACES", 0)
        answers = ConditionalInformation(data).between(a, b, sets)
    assert answers == pytest.approx([slow(data, a, b, z) for z in sets], abs=1.1e-12)


@pytest.mark.parametrize("table", ["whole", "places", "sorted"])
@given(asked=questions(), share=st.sampled_from([0.3, 1.0]))
def test_missing_values_leave_the_rows_that_have_all_that_is_asked_for(
    table: str, asked: tuple[Dataset, int, int, list[frozenset[int]]], share: float
) -> None:
    data, a, b, sets = asked
    incomplete = with_missing(data, share)
    with pytest.MonkeyPatch.context() as patch:
        if table != "whole":
            patch.setattr(gbn, "SMALL_TABLE", 1)
            patch.setattr(gbn, "CELLS_PER_ROW", 0)
        if table == "sorted":
            patch.setattr(gbn, "MOST_PLACES", 1)
            patch.setattr(gbn, "NUMBERS_PER_ROW", 0)
            patch.setattr(gbn, "FEW_PLACES", 0)
        answers = ConditionalInformation(incomplete).between(a, b, sets)
    whole = [complete_rows(incomplete, (z | {a, b}) - {CLASS_NODE}) for z in sets]
    expected = [slow(rows, a, b, z) if rows.n_rows else 0.0 for rows, z in zip(whole, sets, strict=True)]
    assert answers == pytest.approx(expected, abs=1.1e-12)


@given(questions())
def test_answers_are_kept_symmetric_and_never_negative(
    asked: tuple[Dataset, int, int, list[frozenset[int]]],
) -> None:
    data, a, b, sets = asked
    dependence = ConditionalInformation(data)
    answers = dependence.between(a, b, sets)
    assert dependence.between(b, a, sets) == answers
    assert min(answers) >= 0.0
    assert [dependence.between(a, b, [z]) for z in sets] == [[answer] for answer in answers]


def test_a_chain_rule_between_different_questions() -> None:
    """I(A; BC | Z) = I(A; B | Z) + I(A; C | BZ) = I(A; C | Z) + I(A; B | CZ)."""
    dependence = ConditionalInformation(random_dataset(500, (3, 2, 4, 3), 3))
    z = frozenset({3})
    one = dependence.between(0, 1, [z])[0] + dependence.between(0, CLASS_NODE, [z | {1}])[0]
    other = dependence.between(0, CLASS_NODE, [z])[0] + dependence.between(0, 1, [z | {CLASS_NODE}])[0]
    assert one == pytest.approx(other, abs=3e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_neither_threads_nor_blocks_change_an_answer(weighted: bool) -> None:
    data = random_dataset(20_000, (9,) * 8, 3, weighted=weighted)
    assert len(data.bounds()) > 1
    sets = [frozenset(range(2, m)) for m in range(2, 9)]
    answers = [ConditionalInformation(replace(data, threads=threads)).between(0, 1, sets) for threads in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][4] == pytest.approx(slow(data, 0, 1, sets[4]), abs=1e-11)


def test_more_nodes_than_a_number_holds() -> None:
    """40 attributes of 9 values: 9^40 configurations. All rows differ, so that no two agree and nothing is shared."""
    data = random_dataset(300, (9,) * 40, 2)
    assert ConditionalInformation(data).between(
        0, 1, [frozenset(range(2, 40)), frozenset({CLASS_NODE})]
    ) == pytest.approx([0.0, slow(data, 0, 1, [CLASS_NODE])], abs=1e-12)
    twice = data.take(np.repeat(np.arange(300), 2))
    copied = replace(twice, codes=(twice.codes[0], twice.codes[0], *twice.codes[2:]))
    assert ConditionalInformation(copied).between(0, 1, [frozenset(range(2, 40))])[0] == 0.0
    moved = tuple(np.where(np.arange(600) % 2, 1 - codes.clip(0, 1), codes.clip(0, 1)) for codes in copied.codes[:2])
    (shared,) = ConditionalInformation(replace(copied, codes=(*moved, *copied.codes[2:]))).between(
        0, 1, [frozenset(range(2, 40))]
    )
    assert shared == pytest.approx(math.log(2), abs=1e-12)


def test_without_rows_nothing_is_shared() -> None:
    assert ConditionalInformation(random_dataset(0, (2, 3), 2)).between(
        0, 1, [frozenset(), frozenset({CLASS_NODE})]
    ) == [0, 0]


@pytest.mark.parametrize("places", [0, 1 << 24])
@given(cells=st.lists(st.integers(0, 9), max_size=30))
def test_a_row_stands_for_all_of_its_number(places: int, cells: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gbn, "MOST_PLACES", places)
        patch.setattr(gbn, "NUMBERS_PER_ROW", 0)
        found = representatives(np.array(cells, np.intp), 10).tolist()
    assert all(0 <= row < len(cells) for row in found)
    assert all(
        (x == y) == (a == b) for x, a in zip(cells, found, strict=True) for y, b in zip(cells, found, strict=True)
    )


@given(st.lists(st.integers(0, 9) | st.floats(0, 1e6), max_size=20))
def test_the_sum_is_that_of_its_terms(counts: list[float]) -> None:
    expected = math.fsum(n * math.log(n) for n in counts if n > 0)
    assert sum_n_log_n(np.array(counts, float)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    rows = [int(n) for n in counts if n < 10]
    of_rows = math.fsum(n * math.log(n) for n in rows if n > 0)
    assert sum_n_log_n(np.array(rows, np.int64)) == pytest.approx(of_rows, rel=1e-12, abs=1e-12)
