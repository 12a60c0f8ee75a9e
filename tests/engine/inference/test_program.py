"""Check programs: distinct numbers, the order of elimination, and the families that a row needs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.inference import program
from bncli.engine.inference.program import elimination_order, requisite, supporting
from bncli.engine.structures.structure import Dag, Family
from tests.engine.inference.enumeration import Problem, enumerate_completions, problem
from tests.strategies import dags


@given(st.lists(st.integers(0, 999)), st.sampled_from([1000, 1 << 50]))
def test_equals_sorting(numbers: list[int], bound: int) -> None:
    array = np.array(numbers, np.intp)
    found, places = program.distinct(array, bound)
    assert found.tolist() == sorted(set(numbers))
    np.testing.assert_array_equal(found[places], array)


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).integers(0, 5000, 700)
    marked = program.distinct(numbers, 5000)
    monkeypatch.setattr(program, "MARKED_ANYWAY", 0)
    monkeypatch.setattr(program, "MARKED_PER_NUMBER", 0)
    for a, b in zip(marked, program.distinct(numbers, 5000), strict=True):
        np.testing.assert_array_equal(a, b)


CLIQUES = st.lists(st.sets(st.integers(0, 7), max_size=3))


def width(order: list[int], cliques: list[set[int]]) -> int:
    """Return the largest number of attributes joined with one that is summed out."""
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


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Problem]:
    """Draw the same network twice with the same missing values, but other numbers in every family."""
    n = draw(st.integers(1, 5))
    dag, share = draw(dags(n)), draw(st.sampled_from([0.3, 0.7]))
    return problem(dag, (2,) * n, 2, 6, share, 2), problem(dag, (2,) * n, 2, 6, share, 4)


@settings(deadline=None)
@given(cases())
def test_a_family_that_is_not_needed_changes_nothing(case: tuple[Problem, Problem]) -> None:
    one, other = case
    hidden = {i: codes == 2 for i, codes in enumerate(one.data.codes)}
    hidden = {i: rows for i, rows in hidden.items() if any(i in family.attributes for family in one.families)}
    before, start = enumerate_completions(one), 1
    conditional = requisite(one.families, hidden, 6)
    joint = supporting(one.families, hidden, 6)
    for family, bears, counts in zip(one.families, conditional, joint, strict=True):
        part = slice(start, start + family.n_cells)
        start = part.stop
        cells = one.cells.copy()
        cells[:, part] = other.cells[:, part]
        after = enumerate_completions(Problem(one.data, one.families, cells))
        np.testing.assert_allclose(after.log_joint[:, ~counts], before.log_joint[:, ~counts], atol=1e-12)
        np.testing.assert_allclose(after.log_posterior[:, ~bears], before.log_posterior[:, ~bears], atol=1e-12)
        assert (counts | ~bears).all()


def needed(dag: Dag, hidden: set[int]) -> tuple[set[int | None], set[int | None]]:
    n = len(dag.parents)
    families: tuple[Family, ...] = dag.families((2,) * n, all_factors=True)
    rows = {i: np.array([i in hidden]) for i in range(n)}
    found = (requisite(families, rows, 1), supporting(families, rows, 1))
    conditional, joint = ({f.child for f, r in zip(families, each, strict=True) if r[0]} for each in found)
    return conditional, joint


def test_barren_nodes_fall_away() -> None:
    """class -> a0 -> a1 -> a2."""
    chain = Dag(((), (0,), (1,)), (0,))
    assert needed(chain, {0, 1, 2}) == (set(), set())
    assert needed(chain, {0, 2}) == ({0, 1}, {0, 1})
    assert needed(chain, {1, 2}) == ({0}, {0})


def test_a_known_common_child_opens_the_path_to_its_other_parent() -> None:
    """class -> a0 <- a1 <- a2."""
    collider = Dag(((1,), (2,), ()), (0,))
    assert needed(collider, {1}) == ({0, 1}, {0, 1, 2})
    assert needed(collider, {1, 2}) == ({0, 1, 2}, {0, 1, 2})
    assert needed(collider, {2}) == ({0}, {0, 1, 2})
    assert needed(collider, {0}) == (set(), {1, 2})


def test_a_known_parent_of_the_class_is_the_end() -> None:
    """a0 -> a1 -> class -> a2."""
    above = Dag(((), (0,), ()), (2,), (1,))
    assert needed(above, set()) == ({2, None}, {0, 1, 2, None})
    assert needed(above, {1}) == ({1, 2, None}, {0, 1, 2, None})
    assert needed(above, {0, 1, 2}) == ({0, 1, None}, {0, 1, None})
