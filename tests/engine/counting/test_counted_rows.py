"""Counts merged part by part, beside counts of all rows at once and a slow count with numpy alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counted_rows import (
    LARGEST_COUNT,
    CountedRows,
    CountsPart,
    RequestedSets,
    count_rows,
    empty_counts,
    merge_counts,
    relabel,
)
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, ReadingRules, Schema
from bncli.engine.kernels.arrays import Index
from bncli.errors import BncliError

CUTS = Cuts(
    "y",
    (
        NumericAttribute("a", False, (), (1.0, 2.0)),
        CategoricalAttribute("b", False, (), ("p", "q")),
        NumericAttribute("c", False, ()),
        NumericAttribute("d", True, (), (0.5,)),
    ),
)
VALUES = (3, 2, 1, 2)
WANTED: tuple[RequestedSets, ...] = (None, ((0, 1, 3), (1, 2)), ())


@st.composite
def rows(draw: st.DrawFn) -> Index:
    """Codes of each attribute (missing: the number of its values), the label, the weight; (rows, 6)."""
    n = draw(st.integers(1, 30))
    columns = [draw(st.lists(st.integers(0, top), min_size=n, max_size=n)) for top in (*VALUES, 2)]
    return np.array([*columns, draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))]).T


def dataset(table: Index, labels: Sequence[str] = ("u", "v", "w"), *, weighted: bool = False) -> Dataset:
    codes = tuple(column.astype(np.uint8) for column in table.T[:4])
    weights = table[:, 5].astype(np.float64) if weighted else None
    return Dataset(Schema("y", tuple(labels), CUTS.attributes), codes, table[:, 4].astype(np.uint8), weights)


def naive(table: Index, members: Sequence[int], shape: Sequence[int], *, weighted: bool) -> Index:
    counts = np.zeros((*shape, 3), np.int64)
    for row in table:
        counts[(*row[list(members)], row[4])] += row[5] if weighted else 1
    return counts


@given(rows(), st.sampled_from(WANTED), st.booleans())
def test_every_table_is_the_slow_count(table: Index, wanted: RequestedSets, weighted: bool) -> None:
    counted = count_rows(dataset(table, weighted=weighted), CUTS, wanted)
    layout = counted.layout
    several = [i for i in range(4) if layout.radices[i] > 1]
    expected = list(itertools.combinations(several, 2)) if wanted is None else wanted
    assert {layout.reduced(s) for s in expected} <= set(layout.sets)
    for s in layout.sets:
        found = layout.table(counted.numbers, s)
        np.testing.assert_array_equal(found, naive(table, s, layout.shape(s)[:-1], weighted=weighted))
    assert counted.numbers.dtype == np.int64
    assert counted.layout.n_entries == len(counted.numbers) == sum(np.prod(layout.shape(s)) for s in layout.sets)
    assert counted.n_missing == tuple(int((table[:, i] == VALUES[i]).sum()) for i in range(4))


@given(rows(), st.sampled_from(WANTED), st.booleans(), st.data())
def test_any_partition_in_any_order_and_nesting_has_the_same_sum(
    table: Index, wanted: RequestedSets, weighted: bool, data: st.DataObject
) -> None:
    owner = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(table), max_size=len(table))))
    counted = [part(table[owner == k], wanted, k, weighted=weighted) for k in range(4)]
    shuffled = data.draw(st.permutations(counted))
    cut = data.draw(st.integers(1, 3))
    nested = summed([summed(shuffled[:cut]), summed(shuffled[cut:])])
    for total in (summed(counted), summed(shuffled), nested):
        same(total, relabel(count_rows(dataset(table, weighted=weighted), CUTS, wanted), total.labels))
        assert total.parts == summed(counted).parts
    everything = relabel(summed(counted), ("u", "v", "w"))
    assert everything.n_rows == len(table)


def part(table: Index, wanted: RequestedSets, k: int, *, weighted: bool) -> CountedRows:
    """The counts of some rows, which know their own labels only, in the order of a reader that met them so."""
    if not len(table):
        return empty_counts(CUTS, wanted)
    own = list(dict.fromkeys(table[:, 4].tolist()))
    renumbered = table.copy()
    renumbered[:, 4] = [own.index(label) for label in table[:, 4]]
    counted = count_rows(dataset(renumbered, ["uvw"[k] for k in own], weighted=weighted), CUTS, wanted)
    return replace(counted, parts=(CountsPart(f"{k}", len(table)),))


def summed(counted: Sequence[CountedRows]) -> CountedRows:
    return merge_counts(counted, tuple(sorted({label for one in counted for label in one.labels})))


def same(one: CountedRows, other: CountedRows) -> None:
    assert one.cuts == other.cuts
    assert (one.labels, one.requested, one.n_rows, one.n_missing) == (
        other.labels, other.requested, other.n_rows, other.n_missing,
    )  # fmt: skip
    np.testing.assert_array_equal(one.numbers, other.numbers)


@given(rows(), st.sampled_from(["level", "marginalize"]))
def test_learners_see_the_counts_of_the_rows(table: Index, policy: str) -> None:
    counted = count_rows(dataset(table), CUTS, None)
    stored = counted.stored("marginalize" if policy == "marginalize" else "level", ReadingRules())
    data = replace(dataset(table), schema=replace(stored.schema))
    assert stored.n_rows == data.n_rows
    assert stored.n_missing == data.n_missing
    assert stored.radices == data.radices
    known, counts = Counts(stored), Counts(data)
    informative = stored.schema.informative
    sets = [(), *((i,) for i in informative), *itertools.permutations(informative, 2)]
    for found, expected in zip(known.tables(sets), counts.tables(sets), strict=True):
        np.testing.assert_array_equal(found, expected)
    batches = {(i, j): n for b in known.pair_batches(informative) for i, j, n in zip(b.i, b.j, b.counts, strict=True)}
    assert sorted(batches) == list(itertools.combinations(informative, 2))
    for (i, j), found in batches.items():
        np.testing.assert_array_equal(found, counts.tables([(int(i), int(j))])[0])


def test_what_is_not_held_is_refused() -> None:
    table = np.array([[0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 1], [2, 1, 0, 2, 2, 1]])
    counts = Counts(count_rows(dataset(table), CUTS, ((0, 1),)).stored("level", ReadingRules()))
    assert counts.tables([(1, 0)])[0].shape == (2, 3, 3)
    with pytest.raises(BncliError, match="have no table over 'a', 'd' and the class"):
        counts.tables([(3, 0)])
    with pytest.raises(BncliError, match="have no table over 'a', 'd' and the class"):
        list(counts.pair_batches([0, 1, 3]))
    with pytest.raises(BncliError, match="needs the rows"):
        _ = counts.data
    with pytest.raises(BncliError, match="come from tables without rows"):
        empty_counts(CUTS, None).stored("level", ReadingRules())


def test_what_is_before_counts_for_less_with_a_decay() -> None:
    table = np.array([[0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 1], [2, 1, 0, 1, 2, 1]])
    one, two, three = (
        replace(count_rows(dataset(table[k:]), CUTS, None), parts=(CountsPart(f"{k}", 3 - k),)) for k in range(3)
    )
    labels = ("u", "v", "w")
    total = merge_counts([one, two, three], labels, 0.5)
    assert total.is_decayed
    np.testing.assert_array_equal(total.class_counts, [0.25, 0.25 + 0.5, 0.25 + 0.5 + 1])
    assert [(p.fingerprint, p.n_rows, p.weight) for p in total.parts] == [("0", 3, 0.25), ("1", 2, 0.5), ("2", 1, 1.0)]
    assert total.n_rows == 6
    nested = merge_counts([merge_counts([one, two], labels, 0.5), three], labels, 0.5)
    np.testing.assert_array_equal(nested.numbers, total.numbers)
    assert nested.parts == total.parts


def test_more_than_float64_can_count_is_refused() -> None:
    table = np.array([[0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 1]])
    half = count_rows(dataset(table), CUTS, None)
    half = replace(half, numbers=half.numbers * (LARGEST_COUNT // 4))
    assert merge_counts([half, half], half.labels).class_counts.sum() == LARGEST_COUNT
    with pytest.raises(BncliError, match="exceeds 9,007,199,254,740,992"):
        merge_counts([half, half, half], half.labels)
