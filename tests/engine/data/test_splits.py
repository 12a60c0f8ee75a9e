from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.splits import (
    FEW_HELD_OUT,
    RowSplit,
    SplitBy,
    inner_splits,
    nested_order,
    nested_samples,
    splits_of_folds,
    stratified_folds,
    stratified_sample,
    time_splits,
)
from bncli.errors import BncliError


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(2, 10), st.integers(0, 99))
def test_every_class_and_the_whole_are_spread_evenly(classes: list[int], n_folds: int, seed: int) -> None:
    labels = np.array(classes)
    if n_folds > len(labels):
        return
    folds = stratified_folds(labels, n_folds, seed)
    assert folds.shape == labels.shape
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for label in set(classes):
        assert np.ptp(np.bincount(folds[labels == label], minlength=n_folds)) <= 1


def test_the_seed_decides() -> None:
    labels = np.arange(100) % 3
    first = stratified_folds(labels, 5, 1)
    assert (stratified_folds(labels, 5, 1) == first).all()
    assert (stratified_folds(labels, 5, 2) != first).any()
    assert (stratified_folds(labels, 5, (1, 0)) != stratified_folds(labels, 5, (1, 1))).any()


@pytest.mark.parametrize(
    ("n_folds", "message"), [(1, "at least 2 folds"), (4, "4 folds need at least 4 rows, but the table has only 3")]
)
def test_too_few_and_too_many(n_folds: int, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        stratified_folds(np.zeros(3, np.uint8), n_folds, 0)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 70), st.integers(0, 99))
def test_a_sample_keeps_the_share_of_every_class(classes: list[int], n_rows: int, seed: int) -> None:
    labels = np.array(classes, np.uint8)
    rows = stratified_sample(labels, n_rows, seed)
    assert len(rows) == min(n_rows, len(labels))
    assert (np.diff(rows) > 0).all()
    assert (stratified_sample(labels, n_rows, seed) == rows).all()
    for label in set(classes):
        share = (labels == label).sum() * len(rows) / len(labels)
        assert abs((labels[rows] == label).sum() - share) < 1


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 99))
def test_nested_samples_share_rows_out_as_seats_are(classes: list[int], seed: int) -> None:
    """Sainte-Laguë: the next seat goes to the largest of n_c / (2 seats + 1), here with ties to either."""
    labels = np.array(classes, np.uint8)
    order = nested_order(labels, seed)
    assert sorted(order.tolist()) == list(range(len(labels)))
    assert (nested_order(labels, seed) == order).all()
    votes, seats = Counter(classes), Counter[int]()
    for row in order:
        quotients = {label: Fraction(n, 2 * seats[label] + 1) for label, n in votes.items()}
        assert quotients[classes[row]] == max(quotients.values())
        seats[classes[row]] += 1


def test_the_seed_decides_nested_samples_and_ties_fall_to_either_class() -> None:
    labels = np.arange(40) % 2
    orders = [nested_order(labels, (seed, 0, 1)) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert {int(labels[order[0]]) for order in orders} == {0, 1}


tables = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=2, max_size=60)
"""Rows of a label and a unit."""


@given(tables, st.integers(2, 6), st.integers(0, 99))
def test_folds_of_units_equal_those_of_a_plain_loop(rows: list[tuple[int, int]], n_folds: int, seed: int) -> None:
    """StratifiedGroupKFold, as its authors describe it: all folds are tried for each unit."""
    labels, units = (np.array(column) for column in zip(*rows, strict=True))
    distinct = sorted(set(units.tolist()))
    if len(distinct) < n_folds or len(distinct) == len(rows):
        return
    folds = stratified_folds(labels, n_folds, seed, SplitBy(units))
    assert set(folds.tolist()) == set(range(n_folds))
    classes = sorted(set(labels.tolist()))
    counts = np.array([[((labels == c) & (units == unit)).sum() for c in classes] for unit in distinct])
    order = np.random.default_rng(seed).permutation(len(distinct)).tolist()
    order.sort(key=lambda unit: -round(float(counts[unit].std()), 9))
    held = np.zeros((n_folds, len(classes)))
    for unit in order:
        tried = []
        for fold in range(n_folds):
            after = held.copy()
            after[fold] += counts[unit]
            deviation = float((after / counts.sum(axis=0)).std(axis=0).sum())
            tried.append((round(deviation, 9), held[fold].sum(), fold))
        fold = int(folds[units == distinct[unit]][0])
        assert (folds[units == distinct[unit]] == fold).all()
        assert tried[fold][:2] == min(tried)[:2]
        held[fold] += counts[unit]


@given(tables, st.integers(2, 6), st.integers(0, 99))
def test_units_of_one_row_change_nothing(rows: list[tuple[int, int]], n: int, seed: int) -> None:
    labels = np.array([label for label, _ in rows], np.uint8)
    by = SplitBy(np.random.default_rng(seed).permutation(1000)[: len(labels)])
    if n <= len(labels):
        assert (stratified_folds(labels, n, seed, by) == stratified_folds(labels, n, seed)).all()
    assert (stratified_sample(labels, n, seed, by) == stratified_sample(labels, n, seed)).all()
    for mine, plain in zip(nested_samples(labels, [n], seed, by), nested_samples(labels, [n], seed), strict=True):
        assert (mine == plain).all()
    for own, single in zip(inner_splits(labels, n, seed, by), inner_splits(labels, n, seed), strict=True):
        assert all((a == b).all() for a, b in zip(own, single, strict=True))


@given(tables, st.lists(st.integers(1, 60), min_size=1, max_size=3, unique=True), st.integers(0, 99))
def test_samples_take_whole_units(rows: list[tuple[int, int]], sizes: list[int], seed: int) -> None:
    labels, units = (np.array(column) for column in zip(*rows, strict=True))
    largest = max(Counter(units.tolist()).values())
    before: set[int] = set()
    samples = [*nested_samples(labels, sorted(sizes), seed, SplitBy(units))]
    for size, sample in zip(sorted(sizes), samples, strict=True):
        taken = set(units[sample].tolist())
        assert np.isin(units, list(taken)).sum() == len(sample)
        assert len(sample) <= max(size, largest if len(taken) == 1 else 0)
        assert before <= set(sample.tolist())
        before = set(sample.tolist())
    if largest > 1:
        sample = stratified_sample(labels, min(sizes), seed, SplitBy(units))
        assert len(sample) <= min(sizes)
        fits = len(samples[0]) <= min(sizes)
        if fits and len(set(units[samples[0]].tolist())) >= min(5, len(set(units.tolist()))):
            assert (sample == samples[0]).all()
        else:  # rows of all units, as if there were none
            assert (sample == stratified_sample(labels, min(sizes), seed)).all()


@pytest.mark.parametrize("n_units", [2, 3, 9])
def test_a_sample_of_few_large_units_can_be_split_between_them(n_units: int) -> None:
    """With whole units it would hold one unit, of which no row can be held out."""
    labels = np.random.default_rng(n_units).integers(0, 2, 3000)
    by = SplitBy(np.arange(3000) * n_units // 3000)
    rows = stratified_sample(labels, 300, 0, by)
    splits = inner_splits(labels[rows], 5, 0, by.take(rows))
    assert len(rows) == 300
    assert len(splits) == min(5, n_units)
    for split in splits:
        check_sides(split, by.take(rows))


def check_sides(split: RowSplit, by: SplitBy) -> None:
    others, rows = split
    assert len(others)
    assert len(rows)
    assert (np.diff(others) > 0).all()
    assert (np.diff(rows) > 0).all()
    assert not set(others.tolist()) & set(rows.tolist())
    if by.units is not None:
        assert not set(by.units[others].tolist()) & set(by.units[rows].tolist())
    if by.times is not None:
        assert by.times[others].max() < by.times[rows].min() - by.gap or (
            not by.gap and by.times[others].max() < by.times[rows].min()
        )


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), min_size=4, max_size=60),
    st.integers(2, 5),
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.booleans(),
)
def test_splits_by_time_train_on_the_past(
    rows: list[tuple[int, int]], n_blocks: int, window: int | None, gap: float, with_units: bool
) -> None:
    times, units = (np.array(column) for column in zip(*rows, strict=True))
    by = SplitBy(units if with_units else None, times.astype(np.float64), gap)
    try:
        splits = time_splits(by, n_blocks, window)
    except BncliError:
        return
    assert len(splits) == n_blocks - 1
    ascending = np.sort(times)
    starts = [times[rows].min() for _, rows in splits]
    if not with_units:
        # each block begins at a new time, the nearest one to its share of the rows
        changes = np.flatnonzero(np.diff(ascending)) + 1
        edges = [int((times < start).sum()) for start in starts]
        for block, edge in enumerate(edges, 1):
            wanted = len(times) * block // n_blocks
            assert abs(edge - wanted) == np.abs(changes - wanted).min()
        ends = [*edges[1:], len(times)]
        for block, ((others, held_out), edge, end) in enumerate(zip(splits, edges, ends, strict=True), 1):
            assert (np.sort(times[held_out]) == ascending[edge:end]).all()
            first = ([0, *edges])[max(0, block - window)] if window else 0
            kept = ascending[first:edge]
            assert (np.sort(times[others]) == kept[kept < ascending[edge] - gap]).all()
    for split in splits:
        check_sides(split, by)


def test_a_block_may_begin_with_a_time_of_one_row() -> None:
    ((others, held_out),) = time_splits(SplitBy(None, np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0])), 2)
    assert (others.tolist(), held_out.tolist()) == ([0, 1, 2], [3, 4, 5, 6])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=60),
    st.integers(2, 6),
    st.sampled_from([(True, False), (False, True), (True, True)]),
    st.sampled_from([0.0, 2.0]),
)
def test_inner_splits_keep_units_and_time(
    rows: list[tuple[int, int, int]], n_folds: int, kinds: tuple[bool, bool], gap: float
) -> None:
    labels, units, times = (np.array(column) for column in zip(*rows, strict=True))
    by = SplitBy(units if kinds[0] else None, times.astype(np.float64) if kinds[1] else None, gap)
    splits = inner_splits(labels, n_folds, 0, by)
    n_units = len(set(units.tolist()))
    if kinds[1]:
        assert len(splits) <= 1
    else:
        assert len(splits) == (min(n_folds, n_units) if n_units > 1 else 0)
    for split in splits:
        check_sides(split, by)
    if kinds == (False, True) and not gap and len(set(times.tolist())) > 1:
        ((others, held_out),) = splits
        assert len(others) + len(held_out) == len(rows)


def test_the_last_rows_stay_held_out_although_their_units_were_seen_before() -> None:
    """Every unit has rows at all times: the rows to learn from give units up."""
    units, times = np.tile(np.arange(20), 5), np.repeat(np.arange(5.0), 20)
    times += np.where((units < 4) & (times == 4.0), 1.0, 0.0)
    by = SplitBy(units, times)
    ((others, held_out),) = inner_splits(np.zeros(100, np.uint8), 25, 0, by)
    assert (times[held_out] == 5.0).all()
    assert not np.isin(units[others], units[held_out]).any()
    assert 0 < FEW_HELD_OUT < 1


@pytest.mark.parametrize(
    ("by", "n_blocks", "message"),
    [
        (SplitBy(None, np.zeros(9)), 3, "the same time"),
        (SplitBy(None, np.arange(9.0) // 5), 3, "there are only 2 blocks, not 3"),
        (SplitBy(None, np.arange(9.0), 4.0), 3, "before block 2 of 3"),
        (SplitBy(np.zeros(9, np.intp), np.arange(9.0)), 3, "no new group"),
        (SplitBy(None, np.arange(9.0)), 1, "at least 2 blocks"),
    ],
)
def test_times_that_cannot_be_split(by: SplitBy, n_blocks: int, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        time_splits(by, n_blocks)


@pytest.mark.parametrize(("n_units", "hint"), [(3, "--folds 3"), (1, "another column")])
def test_fewer_units_than_folds(n_units: int, hint: str) -> None:
    with pytest.raises(BncliError, match=f"5 groups of rows, but the table has only {n_units}") as error:
        stratified_folds(np.zeros(9, np.uint8), 5, 0, SplitBy(np.arange(9) % n_units))
    assert hint in error.value.hint
    assert len(inner_splits(np.zeros(9, np.uint8), 5, 0, SplitBy(np.arange(9) % n_units))) == (
        n_units if n_units > 1 else 0
    )


@given(st.integers(0, 99))
def test_classes_are_as_even_as_those_of_scikit_learn(seed: int) -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    labels = (rng.random(60) < 0.3).astype(np.uint8)[units]
    peer = selection.StratifiedGroupKFold(5, shuffle=True, random_state=seed)

    def unevenness(splits: list[RowSplit]) -> float:
        counts = np.array([np.bincount(labels[rows], minlength=2) for _, rows in splits])
        return float((counts / counts.sum(axis=0)).std(axis=0).sum())

    mine = splits_of_folds(stratified_folds(labels, 5, seed, SplitBy(units)))
    theirs = [*peer.split(np.zeros(len(labels)), labels, units)]
    assert abs(unevenness(mine) - unevenness(theirs)) < 0.02


def test_splits_by_time_of_equal_blocks_equal_those_of_scikit_learn() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    for gap, window in ((0, None), (2, None), (0, 1)):
        peer = selection.TimeSeriesSplit(4, gap=gap, max_train_size=None if window is None else 10 * window)
        mine = time_splits(SplitBy(None, np.arange(50.0), float(gap)), 5, window)
        for (others, rows), (train, test) in zip(mine, peer.split(np.zeros(50)), strict=True):
            assert others.tolist() == train.tolist()
            assert rows.tolist() == test.tolist()


def test_a_sample_of_one_large_unit_has_no_more_rows_than_asked_for() -> None:
    assert len(stratified_sample(np.arange(10) % 2, 4, 0, SplitBy(units=np.zeros(10, np.intp)))) == 4
