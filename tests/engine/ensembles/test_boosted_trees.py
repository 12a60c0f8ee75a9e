"""Boosting: trees by the formulas, when it ends, how it compares, and trees as tables.

The splits of a tree: compared with every possible split, on the rows, without a histogram."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles import boosted_trees
from bncli.engine.ensembles.boosted_bag import enough_for_joint_fit
from bncli.engine.ensembles.boosted_trees import (
    LEAST_SPLIT_CURVATURE,
    WINDOW,
    BinnedColumns,
    BinSplit,
    Boosted,
    Column,
    Settings,
    _pack,
    _unpack,
    bin_columns,
    boost,
    grow_splits,
    log_loss,
    log_probabilities,
    tables_of,
)
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import Tables
from tests.datasets import random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.sweeps import first_few

PENALTY = 1.0


def term(g: Array, h: Array) -> float:
    return float(g.sum() ** 2 / (h.sum() + PENALTY))


def gain(right: Mask, nodes: Index, g: Array, h: Array) -> float:
    """Return the gain of a split, 0 if a side has hardly any curvature."""
    if min(h[right].sum(), h[~right].sum()) <= LEAST_SPLIT_CURVATURE:
        return 0.0
    total = 0.0
    for node in np.unique(nodes):
        own = nodes == node
        total += term(g[own & right], h[own & right]) + term(g[own & ~right], h[own & ~right]) - term(g[own], h[own])
    return total


def possible_splits(column: Column, bins: Index, g: Array, h: Array) -> Iterator[Mask]:
    """Yield the bins that go right, for every split of a column that is possible."""
    n = column.n_bins
    if column.ordered:
        values = n - column.missing
        for end in range(n - 1):
            yield np.arange(n) > end
            if column.missing and end < values - 1:
                yield (np.arange(n) > end) & (np.arange(n) < n - 1)
        return
    ratio = [g[bins == v].sum() / (h[bins == v].sum() + PENALTY) for v in range(n)]
    order = sorted(range(n), key=lambda v: ratio[v]) if n > 2 else list(range(n))
    for end in range(1, n):
        yield np.isin(np.arange(n), order[end:])


def rows_of(data: Dataset, columns: BinnedColumns) -> list[Index]:
    """Return the bins of every column in the shuffled order of the rows."""
    return [column.binning[data.codes[column.attribute][columns.order]] for column in columns.columns]


def drawn(data: Dataset, seed: int) -> tuple[Array, Array]:
    """Return gradients and curvatures that differ for all rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=data.n_rows), rng.uniform(0.05, 0.25, data.n_rows)


def grown(data: Dataset, columns: BinnedColumns, g: Array, h: Array, depth: int = 3) -> list[BinSplit]:
    return grow_splits(columns, g, h, 0, np.random.default_rng(0), penalty=PENALTY, depth=depth)[0]


@given(mixed_datasets(), st.integers(0, 99), st.integers(2, 8))
def test_no_other_split_gains_more(data: Dataset, seed: int, bins: int) -> None:
    columns = bin_columns(data, bins, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    rows, nodes = rows_of(data, columns), np.zeros(data.n_rows, np.intp)
    for asked in grown(data, columns, g, h):
        best = max(
            gain(right[values], nodes, g, h)
            for column, values in zip(columns.columns, rows, strict=True)
            for right in possible_splits(column, values, g, h)
        )
        answers = asked.right[rows[asked.column]]
        # whole numbers are a millionth of the largest gradient or finer on so few rows
        assert gain(answers, nodes, g, h) == pytest.approx(best, rel=1e-3, abs=1e-3)
        assert asked.gain == pytest.approx(best, rel=1e-3, abs=1e-3)
        nodes = 2 * nodes + answers


@given(mixed_datasets(), st.integers(0, 99))
def test_the_size_of_groups_does_not_change_the_first_gain(data: Dataset, seed: int) -> None:
    g, h = drawn(data, seed)
    found = []
    for bin_numbers in (1 << 13, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boosted_trees, "BLOCK_PLACES", bin_numbers)
            columns = bin_columns(data, 8, np.random.default_rng(seed))
        found.append([question.gain for question in grown(data, columns, g, h, depth=1)])
    assert found[0] == pytest.approx(found[1])


@given(mixed_datasets(), st.integers(0, 99), st.integers(0, 200))
def test_counting_the_smaller_of_two_nodes_changes_nothing(data: Dataset, seed: int, start: int) -> None:
    columns = bin_columns(data, 8, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    n = max(1, data.n_rows * 2 // 3)
    found = []
    for many in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boosted_trees, "MANY_VALUES", many)
            rng = np.random.default_rng(0)
            found.append(grow_splits(columns, g[:n], h[:n], start % data.n_rows, rng, penalty=PENALTY, depth=5))
    (some, leaf), (others, same) = found
    assert [(one.column, one.right.tolist(), one.gain) for one in some] == [
        (one.column, one.right.tolist(), one.gain) for one in others
    ]
    assert np.array_equal(leaf, same)


@given(mixed_datasets(), st.integers(0, 99))
def test_leaves_follow_from_the_splits(data: Dataset, seed: int) -> None:
    columns = bin_columns(data, 8, np.random.default_rng(seed))
    g, h = drawn(data, seed)
    asked, leaf = grow_splits(columns, g, h, data.n_rows // 2, np.random.default_rng(0), penalty=PENALTY, depth=4)
    rows, wanted = rows_of(data, columns), np.zeros(data.n_rows, np.intp)
    for question in asked:
        wanted = 2 * wanted + question.right[rows[question.column]]
    assert np.array_equal(leaf, wanted)


@given(mixed_datasets(), st.integers(2, 300), st.integers(0, 99))
def test_bins_are_neighbours_and_the_missing_level_has_its_own(data: Dataset, bins: int, seed: int) -> None:
    columns = bin_columns(data, bins, np.random.default_rng(seed))
    for column in columns.columns:
        attribute = data.schema.attributes[column.attribute]
        values = column.binning[: attribute.n_values]
        assert list(column.binning[attribute.n_values :]) == [values.max() + 1] * attribute.missing
        assert sorted(set(values.tolist())) == list(range(values.max() + 1))
        if column.ordered:
            assert all(left <= right for left, right in itertools.pairwise(values.tolist()))
            assert values.max() + 1 <= bins
        else:
            assert attribute.n_values == len(set(values.tolist()))
    assert sorted(columns.order.tolist()) == list(range(data.n_rows))


@given(mixed_datasets(), st.integers(0, 99))
def test_places_are_bins_laid_twice(data: Dataset, seed: int) -> None:
    columns = bin_columns(data, 3, np.random.default_rng(seed))
    rows = rows_of(data, columns)
    for group in columns.groups:
        for c, bin_numbers in enumerate(group.bin_numbers):
            expected: Sequence[int] = (rows[group.first + c] + c * group.width).tolist()
            assert bin_numbers.tolist() == [*expected, *expected]
    assert sum(len(group.columns) for group in columns.groups) == len(columns.columns)


@pytest.mark.parametrize("heavy", [0, 7, 15])
def test_a_heavy_value_is_cut_off_on_both_sides(heavy: int) -> None:
    """Half of the rows have it; with any draw, the cuts on both sides are possible splits."""
    codes = np.append(np.full(500, heavy), np.tile(np.arange(16), 32)[:500]).astype(np.uint8)
    data = mixed_dataset(random_dataset(1000, [16], 2), ["numeric"])
    frequencies = tuple(np.bincount(codes, minlength=16).astype(float))
    attribute = replace(data.schema.attributes[0], frequencies=frequencies)
    data = replace(data, codes=(codes,), schema=replace(data.schema, attributes=(attribute,)))
    for seed in range(20):
        (column,) = bin_columns(data, 6, np.random.default_rng(seed)).columns
        assert np.flatnonzero(column.binning == column.binning[heavy]).tolist() == [heavy]
        assert column.n_bins <= 6


def test_sums_of_many_rows_are_exact() -> None:
    """The largest gradients of both signs and the largest curvatures fill both fields of a double."""
    for n in (1, 127, 128, WINDOW):
        g, h = np.where(np.arange(n) % 3, 1.0, -1.0), np.ones(n)
        packed, units = _pack(g, h, np.random.default_rng(0))
        sums = _unpack(np.array([packed.sum(), packed[g > 0].sum(), packed[g < 0].sum()]), units)
        expected = [(x.sum(), x[g > 0].sum(), x[g < 0].sum()) for x in (g, h)]
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)


def scores(member: Boosted, data: Dataset, trees: int | None = None) -> Array:
    """Return scores row by row, from the first `trees`."""
    out = np.empty((data.n_rows, len(member.prior)))
    for t in range(data.n_rows):
        out[t] = member.prior
        for tree in member.trees[:trees]:
            leaf = 0
            for split in tree.splits:
                leaf = 2 * leaf + int(split.right[data.codes[split.attribute][t]])
            out[t] += tree.values[leaf]
    return out


def halves(data: Dataset) -> tuple[Dataset, Dataset]:
    odd = np.arange(data.n_rows) % 2 == 1
    return data.take(np.flatnonzero(~odd)), data.take(np.flatnonzero(odd))


def learnt(data: Dataset, seed: int = 0, **settings: float) -> tuple[Boosted, Dataset, Dataset]:
    train, held_out = halves(data)
    few = replace(Settings(trees=12, patience=4), **settings)  # type: ignore[arg-type]
    return boost(train, held_out, few, np.random.default_rng(seed)), train, held_out


@given(mixed_datasets(), st.integers(0, 9))
def test_predictions_for_held_out_rows_are_sums_of_the_trees(data: Dataset, seed: int) -> None:
    member, _, held_out = learnt(data, seed)
    np.testing.assert_allclose(member.held_out, scores(member, held_out), atol=1e-12)
    assert member.log_loss == pytest.approx(log_loss(member.held_out, held_out), abs=1e-12)


@given(mixed_datasets(), st.integers(0, 9))
def test_no_worse_than_the_class_frequencies_on_the_rows_that_stop_it(data: Dataset, seed: int) -> None:
    member, _, held_out = learnt(data, seed)
    losses = [log_loss(scores(member, held_out, n), held_out) for n in range(len(member.trees) + 1)]
    assert losses[-1] == pytest.approx(min(losses), abs=1e-12)


@given(mixed_datasets(), st.integers(0, 9))
def test_leaves_have_newtons_steps(data: Dataset, seed: int) -> None:
    member, train, _ = learnt(data, seed, rate=0.3, penalty=2.0)
    weights = np.ones(train.n_rows) if train.weights is None else train.weights
    for done, tree in enumerate(member.trees):
        before, after = scores(member, train, done), scores(member, train, done + 1)
        p = np.exp(log_probabilities(before))
        two = train.n_labels == 2
        p, own = (p[:, 1:], train.labels[:, None] == 1) if two else (p, train.labels[:, None] == range(train.n_labels))
        g, h = weights[:, None] * (own - p), weights[:, None] * p * (1 - p)
        leaf = np.unique(
            [split.right[train.codes[split.attribute]] for split in tree.splits], axis=1, return_inverse=True
        )
        for one in range(int(leaf[1].max()) + 1):
            rows = leaf[1] == one
            step = g[rows].sum(axis=0) / (h[rows].sum(axis=0) + 2.0) * (1 if two else 1 - 1 / train.n_labels)
            expected = 0.3 * np.clip(step, -4, 4)
            np.testing.assert_allclose((after - before)[rows], np.tile(expected, (rows.sum(), 1)), atol=1e-9)


@given(mixed_datasets(), st.integers(0, 9))
def test_the_seed_alone_decides(data: Dataset, seed: int) -> None:
    first, second = learnt(data, seed)[0], learnt(replace(data, threads=2), seed)[0]
    assert np.array_equal(first.held_out, second.held_out)
    assert len(first.trees) == len(second.trees)


def exclusive_or(n_rows: int) -> Dataset:
    """Return rows whose class is whether two of four attributes lie on different sides of their cuts."""
    data = random_dataset(n_rows, [9, 9, 9, 9], 2, seed=3)
    return replace(data, labels=((data.codes[0] > 2) != (data.codes[2] > 6)).astype(np.uint8))


def test_two_attributes_that_matter_together_are_found() -> None:
    member, _, held_out = learnt(exclusive_or(600), trees=60, patience=20)
    assert member.log_loss < 0.05
    assert {split.attribute for split in member.trees[-1].splits} >= {0, 2}
    assert np.isfinite(scores(member, held_out)).all()


def test_boosting_ends_early_if_the_classes_are_certain() -> None:
    """Trees keep lowering the loss by a share of it, which becomes negligible."""
    data = random_dataset(600, [2, 5], 2, seed=3)
    member, _, _ = learnt(replace(data, labels=(data.codes[0] == 1).astype(np.uint8)), trees=500, patience=20)
    assert len(member.trees) < 120
    assert member.log_loss < 2e-3


def boosted_while(data: Dataset, **more: Any) -> Boosted:
    return boost(*halves(data), Settings(trees=40, patience=10), np.random.default_rng(0), **more)


def test_boosting_ends_when_the_time_is_over() -> None:
    answers = iter([False] * 5 + [True])
    whole = boosted_while(exclusive_or(600))
    short = boosted_while(exclusive_or(600), is_late=lambda: next(answers))
    assert not short.ended
    assert 0 < len(short.trees) <= 5
    for own, other in zip(short.trees, whole.trees, strict=False):
        np.testing.assert_array_equal(own.values, other.values)
    assert boosted_while(exclusive_or(600), is_late=lambda: True).trees == ()


def test_boosting_ends_when_the_trees_are_enough() -> None:
    heard = list[tuple[int, float, float]]()

    def enough(n_trees: int, loss: float, first: float) -> bool:
        heard.append((n_trees, loss, first))
        return n_trees == 7

    member = boosted_while(exclusive_or(600), are_enough=enough)
    assert member.ended
    assert [n for n, *_ in heard] == [*range(1, 8)]
    base = boosted_while(exclusive_or(600), is_late=lambda: True).log_loss
    assert heard[-1] == (7, member.log_loss, base)


def test_trees_after_the_lowest_loss_are_counted_as_grown() -> None:
    """On noise, 15 more trees are grown without a gain."""
    data = random_dataset(300, [5, 5], 2, seed=8)
    member = boost(*halves(data), Settings(trees=100, patience=15), np.random.default_rng(0))
    assert member.grown == 15 + len(member.trees) < 100


def test_rows_held_out_of_a_class_that_is_certain() -> None:
    """The prior is certain: the loss is 0, and so are curvatures."""
    data = random_dataset(60, [3, 3], 3, seed=1)
    train, held_out = halves(data)
    train = replace(train, weights=np.where(train.labels == 0, 1e16, 1.0))
    held_out = held_out.take(np.flatnonzero(held_out.labels == 0))
    member = boost(
        train, held_out, Settings(trees=5), np.random.default_rng(0), are_enough=enough_for_joint_fit(train, held_out)
    )
    assert np.isfinite(member.held_out).all()
    assert member.log_loss == 0.0


def test_the_limit_of_trees_is_no_proper_end() -> None:
    """Held-out rows still gain from the third tree of a signal, but not from noise."""
    assert not learnt(exclusive_or(600), trees=3)[0].ended
    assert learnt(random_dataset(300, [5, 5], 2, seed=8), trees=100, patience=5)[0].ended


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gained", "pause", "expected"), [(300, 25, 340), (300, 35, 300), (100, 15, 140), (100, 25, 100)]
)
def test_boosting_waits_longer_the_more_trees_there_are(
    monkeypatch: pytest.MonkeyPatch, gained: int, pause: int, expected: int
) -> None:
    """It waits for a tenth of the trees so far, at least 20; after a longer pause later gains are not seen."""
    trees = itertools.count()

    def loss(scores: Array, data: Dataset) -> float:
        """Return a loss that falls for `gained` trees, pauses, and falls again."""
        n = next(trees)
        return math.exp(-0.01 * (min(n, gained) + max(0, min(n, gained + 40) - gained - pause)))

    monkeypatch.setattr(boosted_trees, "log_loss", loss)
    member = boost(*halves(exclusive_or(600)), Settings(trees=1_000), np.random.default_rng(0))
    assert len(member.trees) == expected
    assert member.ended


def test_nothing_is_learned_from_noise() -> None:
    data = random_dataset(300, [5, 5, 5], 3, seed=8)
    noise = np.random.default_rng(5).permutation(data.labels)
    member, _, held_out = learnt(replace(data, labels=noise), trees=50, patience=10)
    assert len(member.trees) <= 3
    assert member.log_loss <= log_loss(np.tile(member.prior, (held_out.n_rows, 1)), held_out)


@pytest.mark.parametrize("n_labels", first_few([2, 5]))
def test_as_good_as_boosting_of_scikit_learn(n_labels: int) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(4)
    data = random_dataset(3000, [32] * 6, n_labels, seed=1)
    x = np.column_stack(data.codes).astype(float) / 32
    signal = np.sin(6 * x[:, 0]) + 4 * (x[:, 1] > 0.2) * (x[:, 2] > 0.7) + x[:, 3] * x[:, 4]
    cuts = np.quantile(signal, np.arange(1, n_labels) / n_labels)
    labels = np.digitize(signal + rng.normal(0, 0.4, len(signal)), cuts)
    data = replace(data, labels=labels.astype(np.uint8))
    train, held_out = halves(data)
    bag = [boost(train, held_out, Settings(), np.random.default_rng(seed)).held_out for seed in range(3)]
    ours = log_loss(np.mean(bag, axis=0), held_out)
    peer = ensemble.HistGradientBoostingClassifier(early_stopping=True, random_state=0).fit(x[::2], labels[::2])
    theirs = -np.log(peer.predict_proba(x[1::2])[np.arange(1500), labels[1::2]]).mean()
    assert ours < 1.03 * theirs


def members_of(data: Dataset, seed: int, n: int = 3) -> list[Boosted]:
    fold = np.arange(data.n_rows) % n
    parts = [(data.take(np.flatnonzero(fold != f)), data.take(np.flatnonzero(fold == f))) for f in range(n)]
    drawn = Settings(trees=8, patience=8, bins=5)
    return [boost(*part, drawn, np.random.default_rng((seed, f))) for f, part in enumerate(parts)]


def by_tables(tables: Tables, data: Dataset) -> Array:
    """Return ln P(y | x) row by row, from the definition of a family's cells."""
    out = np.empty((data.n_rows, data.n_labels))
    for t in range(data.n_rows):
        out[t] = tables.bias
        for family, weights in zip(tables.families, tables.weights, strict=True):
            cell = 0
            for (a, grouping), size in zip(family.binned_attributes, family.shape, strict=True):
                code = int(data.codes[a][t])
                cell = cell * size + (code if grouping is None else grouping[code])
            out[t] += weights[cell]
    normalised: Array = out - np.log(np.exp(out).sum(axis=1, keepdims=True))
    return normalised


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9), st.sampled_from([1, 6, 1024]))
def test_tables_are_the_average_of_the_members(data: Dataset, seed: int, merged: int) -> None:
    members = members_of(data, seed)
    nothing = np.zeros((data.n_rows, len(members[0].prior)))
    expected = np.mean([sum((t.values[t.leaf(data)] for t in m.trees), nothing + m.prior) for m in members], axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosted_trees, "MERGED_CELLS", merged)
        tables = tables_of(members, data.schema)
    np.testing.assert_allclose(by_tables(tables, data), log_probabilities(expected), atol=1e-10)


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9))
def test_groupings_are_those_that_a_file_may_hold(data: Dataset, seed: int) -> None:
    for family in tables_of(members_of(data, seed), data.schema).families:
        assert list(family.attributes) == sorted(set(family.attributes))
        for a, grouping in family.binned_attributes:
            attribute = data.schema.attributes[a]
            codes = list(range(attribute.cardinality)) if grouping is None else list(grouping)
            assert sorted(set(codes)) == list(range(max(codes) + 1))
            assert not attribute.missing or codes.count(codes[-1]) == 1
            if not hasattr(attribute, "levels"):
                values = codes[: attribute.n_values]
                assert all(left <= right for left, right in itertools.pairwise(values))


@given(mixed_datasets().filter(lambda data: data.n_rows > 2), st.integers(0, 9))
def test_numbers_of_a_cell_have_mean_0(data: Dataset, seed: int) -> None:
    for weights in tables_of(members_of(data, seed), data.schema).weights:
        np.testing.assert_allclose(weights.mean(axis=1), 0, atol=1e-12)
