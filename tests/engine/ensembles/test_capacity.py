"""Tables grow with the rows: intervals for a hundred rows a cell, sets by the fourth root."""

from __future__ import annotations

import itertools

import pytest

from bncli.engine.ensembles.candidates import Capacity, capacity


def test_few_rows_have_what_they_always_have() -> None:
    assert capacity(3_000) == capacity(1) == Capacity((None, 8, 4), 3, 2, 2)


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (3_001, Capacity((None, 8, 4, 4), 3, 2, 2)),
        # 200 cells: 14 squared, 5 to the power of 3, 3 to the power of 4; 1.607 times as many sets
        (20_000, Capacity((None, 14, 5, 4), 4, 3, 3)),
        # 100, 21 and 10 would be too fine; 4.273 times
        (1_000_000, Capacity((None, 20, 8, 6), 12, 8, 8)),
    ],
)
def test_more_rows_have_more_and_finer_sets_within_bounds(n_rows: int, expected: Capacity) -> None:
    assert capacity(n_rows) == expected


def test_nothing_shrinks_where_rows_are_added() -> None:
    sizes = [capacity(n) for n in (1, 3_000, 3_001, 10_000, 100_000, 10**8)]
    for size, larger in itertools.pairwise(sizes):
        assert (size.pairs, size.triples, size.quadruples) <= (larger.pairs, larger.triples, larger.quadruples)
        for k in (1, 2):
            assert (size.bins[k] or 0) <= (larger.bins[k] or 0)
