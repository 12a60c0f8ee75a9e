"""Tables grow with the rows."""

from __future__ import annotations

from bncli.engine.auto.capacity import BINS, CELL_ROWS, FEW_ROWS, FINEST, SETS, Capacity, capacity


def test_few_rows_have_what_they_always_have() -> None:
    assert capacity(FEW_ROWS) == capacity(1) == Capacity()
    assert Capacity().bins == (None, BINS[2], BINS[3])


def test_more_rows_have_more_and_finer_sets_within_bounds() -> None:
    sizes = [capacity(n) for n in (FEW_ROWS + 1, 10_000, 100_000, 10**8)]
    for k in (2, 3, 4):
        bins = [size.bins[k - 1] or 0 for size in sizes]
        assert bins == sorted(bins)
        assert BINS[k] <= bins[0]
        assert bins[-1] == FINEST[k]
    assert [size.pairs for size in sizes] == sorted(size.pairs for size in sizes)
    assert SETS[2] == sizes[0].pairs < sizes[-1].pairs


def test_a_pair_has_rows_for_its_cells() -> None:
    n = 200 * CELL_ROWS
    assert capacity(n).bins[1] == 14
