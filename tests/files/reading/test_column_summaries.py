"""Tallies beside plain counters: exact up to the cap, and beyond it exact for what is kept, unbiased for the rest."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.reading.column_summaries import ColumnBudget, ColumnCounts, ValueCounts, hashes_of

SMALL = ColumnBudget(cells=256, values=64, text=1 << 20)


def counted(blocks: list[list[str]], labels: list[list[int]], budget: ColumnBudget, n_labels: int = 2) -> ValueCounts:
    tally = ColumnCounts(pa.string(), budget, ("", "NA"))
    for texts, classes in zip(blocks, labels, strict=True):
        values = list(dict.fromkeys(texts))
        table = np.zeros((len(values), 1 + n_labels))
        for text, label in zip(texts, classes, strict=True):
            table[values.index(text), [0, 1 + label]] += 1
        array = pa.array(values, pa.string())
        tally.add(array, hashes_of(array), table)
    return tally.finish(n_labels)


words = st.lists(st.tuples(st.text(max_size=3), st.integers(0, 1)), max_size=30)


@given(st.lists(words, max_size=6))
def test_few_values_are_counted_as_a_counter_counts_them(blocks: list[list[tuple[str, int]]]) -> None:
    found = counted(
        [[t for t, _ in b] for b in blocks], [[y for _, y in b] for b in blocks], ColumnBudget(10**6, 10**6, 10**6)
    )
    rows = [row for block in blocks for row in block]
    assert found.exact
    assert dict(zip(found.values.to_pylist(), found.rows.tolist(), strict=True)) == Counter(t for t, _ in rows)
    assert found.values.to_pylist() == list(dict.fromkeys(t for t, _ in rows))
    cells = Counter(rows)
    for text, counts in zip(found.values.to_pylist(), found.by_class.tolist(), strict=True):
        assert counts == [cells[text, 0], cells[text, 1]]


def long_tail(seed: int, n: int = 6000) -> tuple[list[str], list[int]]:
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.zipf(1.2, n), 3000)
    texts = ["NA" if u < 0.01 else f"v{c}" for u, c in zip(rng.random(n), codes, strict=True)]
    return texts, (codes % 2).tolist()


def in_blocks(values: list, size: int = 500) -> list[list]:  # type: ignore[type-arg]
    return [values[i : i + size] for i in range(0, len(values), size)]


def test_what_is_kept_beyond_the_cap_has_exact_counts_and_is_bounded() -> None:
    texts, labels = long_tail(0)
    found = counted(in_blocks(texts), in_blocks(labels), SMALL)
    right = Counter(texts)
    assert not found.exact
    assert len(found.values) <= SMALL.values
    for text, rows, by_class in zip(found.values.to_pylist(), found.rows, found.by_class, strict=True):
        assert rows == right[text] == by_class.sum()
    assert "NA" in found.values.to_pylist()
    assert {word for word, _ in right.most_common(3)} <= set(found.values.to_pylist())


@pytest.mark.slow
def test_scaled_sums_are_near_the_truth_over_many_tables() -> None:
    ratios = []
    for seed in range(40):
        texts, labels = long_tail(seed)
        found = counted(in_blocks(texts), in_blocks(labels), SMALL)
        ratios.append(found.scale.sum() / len(set(texts)))
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)
    assert min(ratios) > 0.4
    assert max(ratios) < 1.8


def test_long_texts_are_bounded_by_their_bytes() -> None:
    texts = [f"{i}" + "x" * 2000 for i in range(3000)]
    found = counted(in_blocks(texts), in_blocks([0] * len(texts)), ColumnBudget(10**6, 10**6, 1 << 16))
    assert found.values.nbytes <= 1 << 16
    assert found.scale.sum() == pytest.approx(3000, rel=0.6)


def test_numbers_are_kept_by_their_value_and_missing_ones_always() -> None:
    tally = ColumnCounts(pa.float64(), ColumnBudget(256, 64, 10**6), ())
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = pa.array(np.append(rng.normal(size=100), np.nan))
        tally.add(values, hashes_of(values), np.ones((101, 2)))
    found = tally.finish(1)
    kept = found.values.to_numpy()
    assert found.rows[np.isnan(kept)].tolist() == [20.0]
    assert found.scale.sum() == pytest.approx(2001, rel=0.5)
    gone = np.concatenate([values.to_numpy() for values in tally.dropped])
    assert len(np.unique(gone)) + len(kept) == 2001


def test_the_class_may_be_given_up_and_widened() -> None:
    tally = ColumnCounts(pa.string(), SMALL, ())
    values = pa.array(["a", "b"])
    tally.add(values, hashes_of(values), np.array([[3.0, 1, 2], [1.0, 1, 0]]))
    tally.forget_classes()
    tally.add(values, hashes_of(values), np.array([[1.0, 1], [5.0, 5]]))
    found = tally.finish(1)
    assert found.rows.tolist() == [4, 6]
    assert found.by_class.tolist() == [[4], [6]]


@given(st.lists(st.text(max_size=8), unique=True, min_size=2, max_size=50), st.integers(0, 3))
def test_a_hash_is_of_the_value_alone(texts: list[str], skipped: int) -> None:
    whole = pa.array(texts, pa.string())
    part = whole.slice(min(skipped, len(texts) - 1))
    alone = [int(hashes_of(pa.array([text], pa.string()))[0]) for text in texts]
    assert hashes_of(whole).tolist() == alone
    assert hashes_of(part).tolist() == alone[len(texts) - len(part) :]
    assert len(set(alone)) == len(texts)


def test_hashes_spread_evenly() -> None:
    hashes = hashes_of(pa.array([str(i) for i in range(20_000)]))
    for bit in range(64):
        share = ((hashes >> np.uint64(bit)) & np.uint64(1)).mean()
        assert share == pytest.approx(0.5, abs=0.02)
