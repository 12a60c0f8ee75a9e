"""Values grouped by the class, against every partition of a few values and the criterion written out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.kernels import value_grouping
from bncli.engine.kernels.value_grouping import group_values, partition_cost
from tests.sweeps import examples


def slow_cost(groups: list[list[list[int]]], n_values: int) -> float:
    """The criterion from its definition, with binomials and factorials of whole numbers; groups of values' counts."""
    cost = math.log(n_values) + n_values * math.log(len(groups)) - math.log(math.factorial(len(groups)))
    for group in groups:
        counts = [sum(of_class) for of_class in zip(*group, strict=True)]
        ways = math.factorial(sum(counts)) // math.prod(math.factorial(count) for count in counts)
        cost += math.log(math.comb(sum(counts) + len(counts) - 1, len(counts) - 1)) + math.log(ways)
    return cost


def partitions(n: int) -> Iterator[list[int]]:
    """Every partition of n values, each as the group of every value in order of first members."""

    def grown(groups: list[int]) -> Iterator[list[int]]:
        if len(groups) == n:
            yield groups
            return
        for group in range(max(groups, default=-1) + 2):
            yield from grown([*groups, group])

    return grown([])


def cost_of(rows: list[list[int]], groups: list[int], n_values: int) -> float:
    members = [[row for row, group in zip(rows, groups, strict=True) if group == g] for g in range(max(groups) + 1)]
    return slow_cost(members, n_values)


def least_cost(rows: list[list[int]], groups: list[int]) -> float:
    """The cost of a partition, with rare values as one where they share a group, by the thresholds of the method."""
    costs = [cost_of([[sum(c) for c in zip(*rows, strict=True)]], [0], 1)] if max(groups) == 0 else []
    for threshold in (2**j for j in range(12)):
        rare = {group for row, group in zip(rows, groups, strict=True) if sum(row) < threshold}
        n_rare = sum(sum(row) < threshold for row in rows)
        if len(rare) <= 1:
            costs.append(cost_of(rows, groups, len(rows) - n_rare + len(rare)))
    return min(costs)


def best_cost(rows: list[list[int]], most: int) -> float:
    """The least cost of all partitions."""
    return min(least_cost(rows, groups) for groups in partitions(len(rows)) if max(groups) < most)


COUNTS = st.integers(2, 3).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 12), min_size=k, max_size=k).filter(lambda row: sum(row) > 0), min_size=1, max_size=6
    )
)


@given(COUNTS)
def test_the_criterion_is_its_definition(rows: list[list[int]]) -> None:
    assert partition_cost(np.array(rows, np.float64), 7) == pytest.approx(slow_cost([[row] for row in rows], 7))


@settings(max_examples=examples(20))
@given(COUNTS, st.integers(1, 6))
def test_no_partition_costs_less_but_by_little(rows: list[list[int]], most: int) -> None:
    found = group_values(np.array(rows, np.int64), most=most).tolist()
    assert max(found) < most
    assert found in list(partitions(len(rows)))
    # merging two by two is no proof; what it misses is worth less than a value's description
    assert least_cost(rows, found) <= best_cost(rows, most) + 1.5


@pytest.mark.slow
def test_most_tables_get_the_best_partition_of_all() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.integers(0, 25, (6, int(k))) + 1 for k in rng.integers(2, 4, 40)]
    found = [
        least_cost(table.tolist(), group_values(table).tolist()) <= best_cost(table.tolist(), 6) + 1e-9
        for table in tables
    ]
    assert sum(found) >= 36


def test_two_kinds_of_values_are_two_groups() -> None:
    rows = [[40, 2], [3, 50], [35, 1], [2, 60], [1, 44]]
    assert group_values(np.array(rows)).tolist() == [0, 1, 0, 1, 1]


def test_values_that_tell_nothing_are_one_group() -> None:
    rng = np.random.default_rng(1)
    assert group_values(rng.multinomial(6, (0.3, 0.7), 400)).max() == 0


def test_rare_values_do_not_drown_what_a_common_one_says() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.multinomial(1, (0.5, 0.5), 3000), [[200, 100]]])
    groups = group_values(rows)
    assert groups.max() == 1
    assert (groups == groups[-1]).sum() == 1


def test_most_bounds_the_groups() -> None:
    rows = np.array([[100 * (i == k) + 1 for k in range(5)] for i in range(5)])
    assert group_values(rows).tolist() == [0, 1, 2, 3, 4]
    assert group_values(rows, most=3).max() == 2
    assert group_values(rows, most=1).max() == 0


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_values_plays_no_part(rows: list[list[int]], random: object) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    one, other = group_values(np.array(rows)), group_values(np.array(rows)[order])
    same = {(a, b) for a in order for b in order if one[a] == one[b]}
    assert {(order[i], order[j]) for i in range(len(order)) for j in range(len(order))
            if other[i] == other[j]} == same  # fmt: skip


@given(COUNTS)
def test_units_are_a_scale(rows: list[list[int]]) -> None:
    """Counts of half rows in units of 1/2 are the counts."""
    one, other = group_values(np.array(rows)), group_values(2 * np.array(rows), unit=0.5)
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize("n_labels", [2, 3])
def test_more_proportions_than_are_compared_are_joined_first(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    monkeypatch.setattr(value_grouping, "MOST_UNITS", 8)
    rng = np.random.default_rng(3)
    kinds = rng.dirichlet(np.full(n_labels, 0.2), 3)
    kind = rng.integers(0, 3, 60)
    rows = np.array([rng.multinomial(200, kinds[k]) for k in kind])
    found = group_values(rows)
    sums = np.array([rows[found == g].sum(axis=0) for g in range(int(found.max()) + 1)])
    assert partition_cost(sums, 60) < partition_cost(rows.sum(axis=0, keepdims=True).astype(float), 1)


def test_rare_are_those_below_1_2_4_8_rows_and_so_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds that change nothing, and that which would leave one value, are left out."""
    weights = [1, 2, 3, 4, 5, 8, 9, 16, 40]
    n_values: list[int] = []
    join = value_grouping._join_proportional

    def counted(counts: np.ndarray) -> np.ndarray:
        n_values.append(len(counts))
        return join(counts)

    monkeypatch.setattr(value_grouping, "_join_proportional", counted)
    group_values(np.array([[weight, 0] for weight in weights]))
    n_rare = [sum(weight < threshold for weight in weights) for threshold in (1, 2, 4, 8, 16, 32)]
    assert n_rare == [0, 1, 3, 5, 7, 8]
    assert n_values == [len(weights) - n + min(n, 1) for n in n_rare]


@pytest.mark.parametrize(("n_proportions", "n_units"), [(2, 2), (200, 200), (256, 256), (257, 256), (400, 256)])
def test_up_to_256_proportions_are_told_apart(n_proportions: int, n_units: int) -> None:
    rows = np.array([[i + 1, 1] for i in range(n_proportions)] * 2)
    units = value_grouping._join_proportional(rows)
    assert len(np.unique(units)) == n_units
    np.testing.assert_array_equal(units[:n_proportions], units[n_proportions:])


def test_a_merge_that_was_wrong_is_mended_by_moving_a_member() -> None:
    """Some tables are grouped better than by merging alone, and none worse."""
    rng, better = np.random.default_rng(5), 0
    for _ in range(40):
        units = rng.integers(0, 30, (12, 3)).astype(float) + 1
        merged = value_grouping._merge_groups(units, 12, None)
        improved = value_grouping._move_units(units, merged)
        before, after = (
            partition_cost(np.array([units[groups == g].sum(axis=0) for g in range(groups.max() + 1)]), 12)
            for groups in (merged, improved)
        )
        assert after <= before + 1e-9
        better += after < before - 1e-6
    assert better > 0
