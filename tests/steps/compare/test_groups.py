"""Groups of tables by their rows: every table in one of them, none of them empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import UsageError
from bncli.steps.compare.entries import groups_by_rows

SIZES = {"iris": 150, "wine": 178, "adult": 48_842, "letter": 20_000, "car": 1_728}


def test_names_and_tables() -> None:
    assert groups_by_rows([], SIZES) == {}
    assert groups_by_rows([20_000], SIZES) == {
        "rows<20000": ("iris", "wine", "car"),
        "rows>=20000": ("adult", "letter"),
    }
    assert groups_by_rows([178, 1_000], {**SIZES, "rice": 500}) == {
        "rows<178": ("iris",),
        "178<=rows<1000": ("wine", "rice"),
        "rows>=1000": ("adult", "letter", "car"),
    }


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4, unique=True), st.lists(st.integers(0, 60), max_size=12))
def test_every_table_in_exactly_one(bounds: list[int], rows: list[int]) -> None:
    bounds = sorted(bounds)
    sizes = {f"t{i}": n for i, n in enumerate(rows)}
    try:
        groups = groups_by_rows(bounds, sizes)
    except UsageError:
        edges = [0, *bounds, 10**9]
        filled = {sum(n >= bound for bound in bounds) for n in rows}
        assert filled != set(range(len(edges) - 1))
        return
    found = [data for tables in groups.values() for data in tables]
    assert sorted(found) == sorted(sizes)
    for number, tables in enumerate(groups.values()):
        assert {sum(sizes[data] >= bound for bound in bounds) for data in tables} == {number}


@pytest.mark.parametrize(
    ("bounds", "sizes", "fault"),
    [
        ([100], SIZES, r"no table has fewer than 100 rows: they have from 150 \(iris\) to 48,842 \(adult\); move the"),
        ([100_000], SIZES, r"no table has 100,000 rows or more: they have from"),
        ([160, 170, 2_000], SIZES, r"no table has 160 rows or more and fewer than 170: they have"),
        ([9], {"a": 5, "b": 7}, r"no table has 9 rows or more: a has 5, b has 7"),
    ],
)
def test_a_group_that_no_table_falls_into(bounds: list[int], sizes: dict[str, int], fault: str) -> None:
    with pytest.raises(UsageError, match=fault) as caught:
        groups_by_rows(bounds, sizes)
    assert "\n" not in str(caught.value)
