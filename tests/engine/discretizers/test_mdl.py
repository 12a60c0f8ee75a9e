"""The MDL search against a recursive double loop, and its laws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.discretizers import mdl
from bncli.engine.discretizers.mdl import NLogN, cut_points

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-323, 1e308, 1.7e308, -1.7e308, 1.0, 1.0 + 2**-52, 0.1, 16777217.0, 2.0**31]


def entropy(counts: list[float]) -> float:
    n = math.fsum(counts)
    return -math.fsum(c / n * math.log2(c / n) for c in counts if c > 0)


def slow_cuts(rows: list[tuple[float, int, float]], n_labels: int) -> list[float]:
    """The definition: every boundary point of every interval, each time counted from scratch."""
    rows = sorted(row for row in rows if row[2] > 0)
    total = math.fsum(row[2] for row in rows)
    distinct = sorted({row[0] for row in rows})

    def counts(low: float, high: float) -> list[float]:
        inside = [row for row in rows if low <= row[0] <= high]
        return [math.fsum(row[2] for row in inside if row[1] == y) for y in range(n_labels)]

    candidates = []
    for a, b in itertools.pairwise(distinct):
        classes = {row[1] for row in rows if row[0] in (a, b)}
        if len(classes) > 1:
            left, right = counts(distinct[0], a), counts(b, distinct[-1])
            cost = (math.fsum(left) * entropy(left) + math.fsum(right) * entropy(right)) / total
            candidates.append((cost, a, b, left, right))
    if not candidates or total <= 1:
        return []
    best = min(c[0] for c in candidates)
    cost, a, b, left, right = next(c for c in candidates if c[0] <= best + 1e-12)
    whole = counts(distinct[0], distinct[-1])
    k, k1, k2 = (sum(c > 0 for c in part) for part in (whole, left, right))
    delta = math.log2(3**k - 2) - (k * entropy(whole) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(whole) - cost <= (math.log2(total - 1) + delta) / total:
        return []
    cut = a / 2 + b / 2
    sides = [row for row in rows if row[0] <= a], [row for row in rows if row[0] >= b]
    return [*slow_cuts(sides[0], n_labels), a if cut == b else cut, *slow_cuts(sides[1], n_labels)]


def cuts(
    values: list[float], labels: list[int], n_labels: int, weights: list[float] | None = None
) -> tuple[float, ...]:
    return cut_points(
        np.array(values, np.float64),
        np.array(labels, np.uint16),
        n_labels,
        None if weights is None else np.array(weights, np.float64),
    )


some_values = st.one_of(st.integers(-3, 3).map(float), st.sampled_from(EXTREMES), st.floats(-1e3, 1e3, width=16))
some_weights = st.sampled_from([0.0, 1e-3, 1 / 3, 0.5, 1.0, 2.0, 7.0])


@given(st.lists(st.tuples(some_values, st.integers(0, 3), some_weights), max_size=40))
def test_equals_the_double_loop(rows: list[tuple[float, int, float]]) -> None:
    values, labels, weights = ([row[i] for row in rows] for i in range(3))
    assert cuts(values, labels, 4, weights) == pytest.approx(slow_cuts(rows, 4), rel=1e-15)
    unit = [(value, label, 1.0) for value, label, _ in rows]
    assert cuts(values, labels, 4) == pytest.approx(slow_cuts(unit, 4), rel=1e-15)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.lists(st.integers(1, 9), min_size=8, max_size=8),
    st.floats(-10, 10),
)
def test_runs_of_pure_classes_are_cut_as_by_the_double_loop(classes: list[int], lengths: list[int], low: float) -> None:
    rows = [(low + 0.1 * (10 * i + j), y, 1.0) for i, y in enumerate(classes) for j in range(lengths[i])]
    found = cuts([row[0] for row in rows], [row[1] for row in rows], 5)
    assert found == pytest.approx(slow_cuts(rows, 5), rel=1e-15)


@given(st.data())
def test_the_way_of_storing_and_the_order_of_rows_do_not_matter(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 200))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    labels = rng.integers(0, 3, n).astype(np.uint8)
    values = np.clip(np.rint(rng.normal(size=n) * 4 + 10 * labels), -100, 100)
    expected = cut_points(values, labels, 3, None)
    shuffle = rng.permutation(n)
    for dtype in (np.int8, np.int16, np.int32, np.float32, np.float64):
        assert cut_points(values[shuffle].astype(dtype), labels[shuffle], 3, None) == expected
    shifted = values + 2.0**40 + 0.5  # neither whole nor exact as float32: sorted by row
    assert cut_points(shifted, labels, 3, None) == tuple(c + 2.0**40 + 0.5 for c in expected)
    wide = values * 2.0**22  # too wide a range for a table: sorted by key
    assert cut_points(wide, labels, 3, None) == tuple(c * 2.0**22 for c in expected)


@given(st.integers(0, 1000), st.integers(2, 60))
def test_weight_two_is_the_row_twice(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n).astype(np.uint8)
    values = rng.normal(size=n) + 2 * labels
    weights = rng.integers(0, 4, n)
    repeated = np.repeat(np.arange(n), weights)
    expected = cut_points(values[repeated], labels[repeated], 3, None)
    assert cut_points(values, labels, 3, weights.astype(np.float64)) == expected


def test_ten_thousand_classes() -> None:
    labels = np.arange(20_000) % 10_000
    assert cut_points(np.arange(20_000) * 0.1, labels.astype(np.uint16), 10_000, None) == ()
    labels = np.where(np.arange(20_000) < 10_000, 0, 9_999)
    assert cut_points(np.arange(20_000) * 0.1, labels.astype(np.uint16), 10_000, None) == pytest.approx((999.95,))


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_a_constant_and_a_single_class_have_no_cuts(n: int) -> None:
    zeros, many = np.zeros(n), np.arange(n).astype(np.float64)
    assert cut_points(zeros, np.arange(n).astype(np.uint8), max(n, 1), None) == ()
    assert cut_points(many, zeros.astype(np.uint8), 1, None) == ()


def test_a_million_times_a_weight_is_still_exact() -> None:
    """Ten rows weighed up: the same cut, whether the weights are whole, fractions or beyond whole numbers."""
    values, labels = np.arange(10.0), np.array([0] * 4 + [1] * 6, np.uint8)
    for factor in (1.0, 1e6, 0.7, 1e300):
        assert cut_points(values, labels, 2, np.full(10, factor)) == (3.5,)
    assert cut_points(values, labels, 2, np.full(10, 0.1)) == ()
    assert cut_points(values, labels, 2, np.full(10, 5e-324)) == ()


def test_a_long_column_of_many_blocks_equals_its_collapsed_form() -> None:
    """100,000 distinct values against the same information as weighted rows."""
    rng = np.random.default_rng(7)
    labels: NDArray[np.uint8] = rng.integers(0, 4, 100_000).astype(np.uint8)
    values = np.round(rng.normal(size=100_000) + labels, 3)
    cells, weights = np.unique(np.column_stack([values, labels]), axis=0, return_counts=True)
    collapsed = cut_points(cells[:, 0], cells[:, 1].astype(np.uint8), 4, weights.astype(np.float64))
    assert len(collapsed) > 10
    assert cut_points(values, labels, 4, None) == collapsed


def one_pass_cuts(values: NDArray[np.float64], labels: NDArray[np.uint8], n_labels: int) -> list[float]:
    """The criterion with every boundary point evaluated, unit weights, exact ties: sums of Python integers."""
    order = np.lexsort((labels, values))
    v, y = values[order], labels[order]
    total = len(v)
    shift = 60 - math.ceil(math.log2(max(total, 2)) + math.log2(math.log2(max(total, 4))))
    table = [0] + [round(n * math.log2(n) * 2.0**shift) for n in range(1, total + 1)]
    ends = np.flatnonzero(np.append(v[1:] != v[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    pure = [int(y[a]) if y[a] == y[b] else -1 for a, b in zip(starts, ends, strict=True)]
    onehot = y[:, None] == np.arange(n_labels)
    before = np.vstack((np.zeros((1, n_labels), np.int64), np.cumsum(onehot, axis=0)))
    found, pending = [], [(0, total)]
    while pending:
        first, stop = pending.pop()
        whole, n = before[stop] - before[first], stop - first
        costs = []
        for g in range(int(np.searchsorted(ends, first)), int(np.searchsorted(ends, stop - 1))):
            if pure[g] >= 0 and pure[g] == pure[g + 1]:
                continue
            left = before[ends[g] + 1] - before[first]
            cost = table[left.sum()] + table[n - left.sum()]
            cost -= sum(table[c] for c in left) + sum(table[c] for c in whole - left)
            costs.append((cost, g))
        if not costs or n <= 1:
            continue
        lowest = min(costs)[0]
        cost, g = next(each for each in costs if each[0] <= lowest + int(math.ldexp(1e-12 * n, shift)))
        left = before[ends[g] + 1] - before[first]
        (ent, k), (ent1, k1), (ent2, k2) = (
            (entropy([float(c) for c in part]), int((part > 0).sum())) for part in (whole, left, whole - left)
        )
        delta = math.log2(3**k - 2) - (k * ent - k1 * ent1 - k2 * ent2)
        if ent - cost / 2.0**shift / n > (math.log2(n - 1) + delta) / n:
            found.append(float(v[ends[g]] / 2 + v[ends[g] + 1] / 2))
            pending += [(first, int(ends[g]) + 1), (int(ends[g]) + 1, stop)]
    return sorted(found)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_never_hide_the_best_cut(seed: int) -> None:
    """Thousands of rows, so that blocks are ruled out: every kind of column, few and many classes, many ties."""
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1500, 12_000)), (2, 3, 7, 30)[seed % 4]
    labels = rng.choice(n_labels, n, p=rng.dirichlet(np.full(n_labels, 0.7))).astype(np.uint8)
    values = x = rng.normal(size=n)
    kind = seed // 4
    if kind == 0:
        pass
    elif kind == 1:
        values = x + 0.3 * labels
    elif kind == 2:  # waves: many cuts, pure stretches
        values = rng.random(n)
        labels = (np.sin(40 * values) > 0).astype(np.uint8)
    elif kind == 3:
        values = np.round(x + 0.2 * labels, 2) / 3  # ties, not decimal
    elif kind == 4:
        values = np.exp(8 * x) * (1.0 + labels) * rng.choice([-1.0, 0.0, 1.0], n)
    else:  # the same classes again and again: equal costs
        values, labels = np.arange(n) * 0.37, (np.arange(n) // 5 % n_labels).astype(np.uint8)
    assert list(cut_points(values, labels, n_labels, None)) == pytest.approx(
        one_pass_cuts(values, labels, n_labels), rel=1e-15
    )


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=10))
def test_entropy_is_that_of_the_definition(counts: list[int]) -> None:
    n = sum(counts)
    expected = math.fsum(-c * math.log2(c / n) for c in counts if c)
    found = NLogN(n).entropy(np.array(counts))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13 * n + 1e-12)


@pytest.mark.parametrize("total", [0, 1, 2, 3, 1000, 2**53])
def test_no_overflow_in_fixed_point(total: int) -> None:
    whole = NLogN(total)
    numbers = np.array(sorted({0, min(1, total), total // 2, total}))
    assert (np.diff(whole(numbers)) >= 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 120), st.integers(1, 4), st.integers(0, 3), st.sampled_from([0, 1, 3]))
def test_the_quick_bound_never_hides_a_cut(seed: int, n: int, n_labels: int, digits: int, effect: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(0, n_labels, n).astype(np.uint8)
    values = np.round(random.normal(size=n) + effect * labels, digits)
    if mdl.uncut(values[np.newaxis], labels, n_labels)[0]:
        assert mdl.cut_points(values, labels, n_labels, None) == ()


def test_the_quick_bound_finds_most_columns_without_a_cut() -> None:
    random = np.random.default_rng(0)
    labels = (np.arange(30) % 2).astype(np.uint8)
    columns = random.normal(size=(200, 30))
    searched = [mdl.cut_points(values, labels, 2, np.ones(30)) for values in columns]
    hopeless = mdl.uncut(columns, labels, 2)
    assert not any(cuts for cuts, told in zip(searched, hopeless, strict=True) if told)
    assert sum(hopeless) > 0.9 * sum(not cuts for cuts in searched)
