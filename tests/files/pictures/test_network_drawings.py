"""Layouts: no two nodes in one place, children behind their parents, parents at the middle, equal subtrees alike."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.files.pictures.network_drawings import NetworkLayout, layered_layout, tree_layout
from tests.sweeps import examples


def forests() -> st.SearchStrategy[dict[int, int | None]]:
    parents = st.lists(st.integers(0, 10**6), max_size=25)
    return parents.map(lambda drawn: {i: None if n % 7 == 0 or not i else n % i for i, n in enumerate(drawn)})


def graphs() -> st.SearchStrategy[dict[int, list[int]]]:
    rows = st.lists(st.sets(st.integers(0, 24), max_size=3), max_size=14)
    return rows.map(lambda drawn: {i: sorted(p for p in some if p < i) for i, some in enumerate(drawn)})


def apart(layout: NetworkLayout) -> bool:
    pairs = combinations(layout.positions.values(), 2)
    return all(a[0] != b[0] or abs(a[1] - b[1]) >= 1 - 1e-9 for a, b in pairs)


@settings(max_examples=examples(26), deadline=None)
@given(forests())
def test_trees_are_tidy(parents: dict[int, int | None]) -> None:
    layout = tree_layout(parents)
    assert set(layout.positions) == set(parents)
    assert apart(layout)
    for node in parents:
        below = [layout.positions[child] for child, parent in parents.items() if parent == node]
        depth, breadth = layout.positions[node]
        assert all(place[0] == depth + 1 for place in below)
        if below:
            assert breadth == pytest.approx((min(b for _, b in below) + max(b for _, b in below)) / 2)


@settings(max_examples=examples(26), deadline=None)
@given(graphs())
def test_layers_rise_along_every_arc(parents: dict[int, list[int]]) -> None:
    layout = layered_layout(parents)
    assert set(layout.positions) == set(parents)
    assert apart(layout)
    assert set(layout.arcs) == {(parent, node) for node, listed in parents.items() for parent in listed}
    for (parent, node), points in layout.arcs.items():
        assert (points[0], points[-1]) == (layout.positions[parent], layout.positions[node])
        assert [b[0] - a[0] for a, b in pairwise(points)] == [1] * (len(points) - 1)


def test_crossings_that_need_not_be_are_not() -> None:
    layout = layered_layout({0: [], 1: [], 2: [1], 3: [0]})
    assert (layout.positions[2][1] - layout.positions[3][1]) * (layout.positions[1][1] - layout.positions[0][1]) > 0
