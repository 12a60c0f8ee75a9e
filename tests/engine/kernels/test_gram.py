"""Packed co-occurrences against the dense product of 0/1 columns, however indicators lie in groups, sets and packs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.kernels import gram
from bncli.engine.kernels.gram import Functions, co_occurrences, pack_functions, pack_indicators

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Index], int, list[Index], Array]:
    """Places, n, configurations and factors; every indicator is in one set of one group, and some are in none."""
    n = draw(st.integers(1, 12))
    shapes = draw(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    n_sets = sum(sets for _, sets in shapes)
    home = rng.integers(0, n_sets, n) if n_sets else np.zeros(0, np.intp)
    places, used = [], 0
    for n_configurations, sets in shapes:
        columns = [_column(rng, np.flatnonzero(home == used + s), n, n_configurations) for s in range(sets)]
        places.append(np.array(columns, np.intp).reshape(sets, n_configurations).T)
        used += sets
    n_rows, n_blocks = draw(st.integers(0, 40)), draw(st.integers(1, 3))
    configurations = [rng.integers(0, count, n_rows) for count, _ in shapes]
    return places, n, configurations, rng.uniform(0, 2, (n_blocks, n_rows))


def _column(rng: np.random.Generator, mine: Index, n: int, n_configurations: int) -> Index:
    """One of the set's indicators, or none, for each configuration."""
    return rng.choice(np.append(mine, n), n_configurations)


def dense(places: list[Index], n: int, configurations: list[Index], factors: Array) -> Array:
    """One row at a time."""
    total = np.zeros((len(factors), n, n))
    for t in range(factors.shape[1]):
        z = np.zeros(n + 1)
        for place, codes in zip(places, configurations, strict=True):
            z[place[codes[t]]] = 1.0
        total += factors[:, t, np.newaxis, np.newaxis] * np.outer(z[:n], z[:n])
    return total


@given(cases(), st.sampled_from([1, 4, 16, 128]), st.sampled_from([1, 7, 1 << 14]))
def test_it_is_the_dense_product(case: tuple[list[Index], int, list[Index], Array], packed: int, rows: int) -> None:
    places, n, configurations, factors = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "PACKED", packed)
        patch.setattr(gram, "ROWS", rows)
        packing = pack_indicators(places, n)
        found = co_occurrences(packing, configurations, factors)
    np.testing.assert_allclose(found, dense(places, n, configurations, factors), rtol=1e-12, atol=1e-12)
    assert packing.n == n


@given(cases(), st.sampled_from([1, 4, 16, 128]))
def test_packs_stay_within_the_limit(case: tuple[list[Index], int, list[Index], Array], packed: int) -> None:
    """But for a set that alone is larger; every indicator that some configuration activates is in one pack."""
    places, n, configurations, _ = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "PACKED", packed)
        packing = pack_indicators(places, n)
    for found in packing.packs:
        assert found.active is None or found.n_codes <= packed
        codes = found.codes(configurations)
        assert ((codes >= 0) & (codes < found.n_codes)).all()
        assert found.active is None or found.active.shape == (found.n_codes, len(found.indicators))
    listed = [int(i) for found in packing.packs for i in found.indicators]
    assert sorted(listed) == sorted({int(i) for place in places for i in place.ravel() if i < n})


def test_a_large_set_has_a_pack_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gram, "PACKED", 6)
    sizes = (2, 3, 9, 2, 2, 2)
    edges = np.cumsum([0, *sizes])
    places = [np.arange(a, b)[:, np.newaxis] for a, b in itertools.pairwise(edges)]
    packing = pack_indicators(places, int(edges[-1]))
    assert [found.n_codes for found in packing.packs] == [6, 9, 4, 2]
    assert [found.active is None for found in packing.packs] == [False, True, False, True]
    configurations = [np.random.default_rng(g).integers(0, size, 30) for g, size in enumerate(sizes)]
    factors = np.ones((1, 30))
    np.testing.assert_array_equal(
        co_occurrences(packing, configurations, factors), dense(places, packing.n, configurations, factors)
    )


def test_nothing_to_pack() -> None:
    packing = pack_indicators([np.full((3, 2), 4)], 4)
    assert packing.packs == ()
    assert not co_occurrences(packing, [np.zeros(5, np.intp)], np.ones((2, 5))).any()


def test_the_input_is_left_alone() -> None:
    configurations = [np.array([0, 1, 1]), np.array([1, 0, 1])]
    factors = np.ones((1, 3))
    packing = pack_indicators([np.array([[0], [1]]), np.array([[2], [3]])], 4)
    co_occurrences(packing, configurations, factors)
    assert [c.tolist() for c in configurations] == [[0, 1, 1], [1, 0, 1]]
    assert factors.tolist() == [[1.0, 1.0, 1.0]]


@given(cases(), st.floats(1e3, 1e12), st.integers(1, 5))
def test_what_is_affordable_costs_about_the_budget(
    case: tuple[list[Index], int, list[Index], Array], budget: float, n_blocks: int
) -> None:
    """No more up to ROWS rows; less than twice as much beyond, where tables are summed more than once."""
    packing = pack_indicators([np.zeros((1, 1), np.intp), *case[0]], case[1])
    n_rows = packing.affordable_rows(budget, n_blocks)
    assert n_rows >= 0
    if n_rows:
        assert packing.work(n_rows, n_blocks) <= (1 if n_rows <= gram.ROWS else 2) * budget * (1 + 1e-9)
    assert packing.work(n_rows + 1, n_blocks) >= packing.work(n_rows, n_blocks)
    assert packing.affordable_rows(2 * budget, n_blocks) >= n_rows


@given(st.integers(0, 999), st.sampled_from([1, 8, 128]))
def test_functions_of_codes_equal_the_dense_product(seed: int, packed: int) -> None:
    """Two families of one group and one of another, their functions interleaved, some of them 0 for some codes."""
    rng = np.random.default_rng(seed)
    sizes, groups, n_codes = (3, 2, 1), (0, 0, 1), (4, 5, 1)
    codes = [rng.integers(0, n, 6) for n in n_codes]
    numbers = np.split(rng.permutation(6), [3, 5])
    values = [
        rng.normal(size=(n, size)) * (rng.random((n, size)) < 0.7) for n, size in zip(n_codes, sizes, strict=True)
    ]
    families = [Functions(*parts) for parts in zip(groups, codes, numbers, values, strict=True)]
    configurations = [rng.integers(0, 6, 40) for _ in range(2)]
    factors = rng.uniform(size=(2, 40))
    z = np.zeros((40, 6))
    for family in families:
        z[:, family.numbers] = family.values[family.codes[configurations[family.group]]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "PACKED", packed)
        found = co_occurrences(pack_functions(families, 6), configurations, factors)
    np.testing.assert_allclose(found, np.einsum("bt,ti,tj->bij", factors, z, z), atol=1e-12)
