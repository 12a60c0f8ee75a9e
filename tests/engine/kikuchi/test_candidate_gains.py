"""Candidates and their gains against slow oracles.

Upper bounds: above every gain, close to small ones, and what they leave out is never the best.

Tables and sums of batches against one row and one candidate at a time."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import candidate_gains
from bncli.engine.kikuchi.candidate_gains import (
    Batch,
    CandidateGains,
    CandidateGroup,
    Candidates,
    all_sets,
    count,
    strongest_sets,
    sum_logs,
    tabulate,
)
from bncli.engine.kikuchi.model_paths import counting_changes, cover, score_table, subsets
from bncli.engine.kikuchi.search_trace import DegreesOfFreedom, GrowingModel
from bncli.engine.structure_learners import kikuchi
from tests import kikuchi_oracle, oracles
from tests.datasets import random_dataset
from tests.strategies import datasets
from tests.sweeps import every_pair

CARDINALITIES = (2, 3, 2, 4, 3)
OFFSETS = np.array([0, 2, 5, 7, 11])
LASTS = [2, 3, 4]
COVERED = {*subsets((0, 3)), (1,)}
N = 5
REGIONS = st.lists(st.lists(st.integers(0, N - 1), min_size=1, unique=True).map(sorted).map(tuple), max_size=6)


def grouped(data: Dataset) -> tuple[Batch, list[np.ndarray]]:
    """The candidates (0, 1, k), and the score tables D (cells, K) that they should have."""
    members = np.array([(0, 1, k) for k in LASTS])
    candidates = Candidates(members, np.zeros((len(members), 8)))
    candidates.cover(COVERED)
    group = CandidateGroup((0, 1), np.array(LASTS), np.arange(3), (2, 3), np.array([2, 4, 3]))
    [counted] = data.reduce(count, [group], OFFSETS, data.n_labels)
    batch = tabulate(group, counted, candidates.changes(group.which), data.total_weight, 1.0)
    tables = []
    for region in map(tuple, members.tolist()):
        [table] = Counts(data).tables([region])
        changes = counting_changes(cover(set(COVERED), region))
        tables.append(score_table(table, region, changes, data.total_weight, 1.0))
    return batch, tables


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_of_a_group_lie_side_by_side(n_labels: int, weighted: bool) -> None:
    data = random_dataset(200, CARDINALITIES, n_labels, seed=1, weighted=weighted)
    batch, tables = grouped(data)
    together = np.log(batch.tables).reshape(n_labels - 1, 6, 9)
    for slot, (start, radix) in enumerate([(0, 2), (2, 4), (6, 3)]):
        d = (tables[slot][:, 1:] - tables[slot][:, :1]).reshape(6, radix, -1)
        np.testing.assert_allclose(np.moveaxis(together[:, :, start : start + radix], 0, 2), d, rtol=1e-9, atol=1e-9)
        n = oracles.count(data, (0, 1, LASTS[slot])).reshape(6, radix, -1)
        assert batch.sums[slot] == pytest.approx(float((n[..., 1:] * d).sum()))


@pytest.mark.parametrize("slots", [[0, 1, 2], [0, 2], [1]])
@pytest.mark.parametrize("steepest", [80.0, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_rows(monkeypatch: pytest.MonkeyPatch, slots: list[int], steepest: float, weighted: bool) -> None:
    monkeypatch.setattr(candidate_gains, "STEEPEST", steepest)
    monkeypatch.setattr(candidate_gains, "LOOKUPS_AT_A_TIME", 300)
    monkeypatch.setattr(candidate_gains, "CODES_AT_A_TIME", 1)
    data = random_dataset(1203, CARDINALITIES, 3, seed=2, weighted=weighted)
    batch, tables = grouped(data)
    assert batch.steep == (steepest == 0.0)
    scores = np.random.default_rng(0).normal(0, 3, (3, data.n_rows))
    [block] = data.row_blocks([scores])
    found = sum_logs(block, [replace(batch, slots=np.array(slots))], OFFSETS)
    for slot, total in zip(slots, found, strict=True):
        terms = []
        for t, weight in enumerate(oracles.weights_of(data)):
            p = np.exp(oracles.log_posterior(scores[:, t].tolist()))
            shape = (2, 3, CARDINALITIES[LASTS[slot]])
            cell = np.ravel_multi_index([int(data.codes[i][t]) for i in (0, 1, LASTS[slot])], shape)
            terms.append(weight * math.log(float(p @ np.exp(tables[slot][cell] - tables[slot][cell, 0]))))
        assert total == pytest.approx(math.fsum(terms), rel=1e-9)


@given(REGIONS, st.integers(1, N), st.lists(st.integers(2, 4), min_size=N, max_size=N), st.integers(2, 3))
def test_what_a_step_needs_of_every_candidate(
    regions: list[tuple[int, ...]], size: int, cardinalities: list[int], n_labels: int
) -> None:
    sets = all_sets(range(N), size)
    candidates = Candidates(sets, DegreesOfFreedom(random_dataset(3, cardinalities, n_labels)).of_subsets(sets))
    covered: set[tuple[int, ...]] = {()}
    for region in regions:
        candidates.cover(cover(covered, region))
    changes = candidates.changes(np.arange(len(candidates.sets)))
    for place, members in enumerate(map(tuple, candidates.sets.tolist())):
        new = cover(set(covered), members)
        assert candidates.present[place] == (members in covered)
        assert candidates.added_df()[place] == (n_labels - 1) * sum(
            math.prod(cardinalities[i] - 1 for i in s) for s in new
        )
        assert _named(changes[place], members) == counting_changes(new)


def _named(changes: np.ndarray, members: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    subsets = (tuple(i for p, i in enumerate(members) if subset >> p & 1) for subset in range(len(changes)))
    return {region: int(change) for region, change in zip(subsets, changes, strict=True) if change}


def test_cover_tells_whom_it_touches() -> None:
    candidates = Candidates(all_sets(range(4), 2), np.ones((6, 4)))
    assert candidates.sets[candidates.cover([(1, 3)])].tolist() == [[1, 3]]
    assert candidates.sets[candidates.cover([(0,)])].tolist() == [[0, 1], [0, 2], [0, 3]]
    assert len(candidates.cover([(), (1, 2, 3)])) == 0


@given(st.integers(0, 6), st.integers(1, 4))
def test_all_members_in_order(n: int, size: int) -> None:
    expected = list(itertools.combinations(range(n), size))
    assert list(map(tuple, all_sets(range(n), size).tolist())) == expected


@given(st.permutations(range(6)), st.integers(1, 4), st.integers(1, 20))
def test_the_strongest_members(ranked: list[int], size: int, most: int) -> None:
    places = sorted(itertools.combinations(range(6), size), key=lambda places: places[::-1])
    expected = sorted(tuple(sorted(ranked[p] for p in chosen)) for chosen in places[:most])
    found = strongest_sets(ranked, size, most)
    assert list(map(tuple, found.tolist())) == expected
    assert len(found) == min(most, math.comb(6, size))


def test_fewer_attributes_than_a_set_has_members_make_none() -> None:
    assert strongest_sets([3], 2, 5).shape == (0, 2)


def look(growing: GrowingModel, size: int) -> CandidateGains:
    members = all_sets(range(len(growing.data.codes)), size)
    return CandidateGains(growing, Candidates(members, growing.rule.of_subsets(members)))


def gains(ahead: CandidateGains) -> np.ndarray:
    found = ahead.gains(np.arange(len(ahead.candidates.sets)), lambda done, total: True)
    assert found is not None
    return found


def expected(growing: GrowingModel, ahead: CandidateGains, theta: float = 1.0) -> list[float]:
    slow = kikuchi_oracle.Slow(growing.data, theta)
    before = slow.log_likelihood(growing.regions)
    members = map(tuple, ahead.candidates.sets.tolist())
    return [slow.log_likelihood([*growing.regions, candidate]) - before for candidate in members]


@given(datasets(), st.integers(1, 4), st.data())
def test_gains_after_every_step(data: Dataset, size: int, draw: st.DataObject) -> None:
    size = min(size, len(data.codes))
    growing = GrowingModel(Counts(data), 1.0)
    ahead = look(growing, size)
    for _ in range(3):
        np.testing.assert_allclose(gains(ahead), expected(growing, ahead), rtol=1e-8, atol=1e-8)
        chosen = draw.draw(st.integers(0, len(ahead.candidates.sets) - 1))
        ahead.cover(growing.add(tuple(ahead.candidates.sets[chosen].tolist())))


@pytest.mark.parametrize(
    ("n_labels", "steepest", "limits"),
    every_pair([2, 3], [80.0, 0.0], [(1 << 25, 1 << 15, 1 << 22), (0, 1, 1), (400, 60, 300)]),
)
def test_limits_change_no_gain(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, steepest: float, limits: tuple[int, int, int]
) -> None:
    data = random_dataset(90, (2, 3, 4, 2, 3), n_labels, seed=3)
    for name, limit in zip(("ENTRIES_KEPT", "ENTRIES_PER_GROUP", "ENTRIES_PER_ROUND"), limits, strict=True):
        monkeypatch.setattr(candidate_gains, name, limit)
    monkeypatch.setattr(candidate_gains, "LOOKUPS_PER_ROUND", limits[2] * 100)
    monkeypatch.setattr(candidate_gains, "STEEPEST", steepest)
    growing = GrowingModel(Counts(data), 1.0)
    growing.add((1,))
    ahead = look(growing, 3)
    for _ in range(2):
        np.testing.assert_allclose(gains(ahead), expected(growing, ahead), rtol=1e-8)
    ahead.cover(growing.add((0, 2)))
    np.testing.assert_allclose(gains(ahead), expected(growing, ahead), rtol=1e-8)


def test_some_of_the_candidates() -> None:
    growing = GrowingModel(Counts(random_dataset(90, (2, 3, 4, 2, 3), 3, seed=3)), 1.0)
    ahead = look(growing, 2)
    whole = expected(growing, ahead)
    for wanted in ([1, 4, 5, 9], [0, 1, 2, 3, 9], [8], []):
        found = ahead.gains(np.array(wanted, np.intp), lambda done, total: True)
        assert found is not None
        np.testing.assert_allclose(found, [whole[w] for w in wanted], rtol=1e-9)


def test_extreme_smoothing_is_still_finite() -> None:
    data = random_dataset(60, (3, 3), 2, seed=3)
    data = replace(data, labels=(data.codes[0] > 0).astype(np.uint8))
    growing = GrowingModel(Counts(data), 1e-280)
    growing.add((0,))
    np.testing.assert_allclose(gains(look(growing, 2)), expected(growing, look(growing, 2), 1e-280), atol=1e-6)


def test_stopped_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_gains, "LOOKUPS_PER_ROUND", 1)
    growing = GrowingModel(Counts(random_dataset(60, (2, 2, 2), 2)), 1.0)
    seen: list[tuple[int, int]] = []

    def proceed(done: int, total: int) -> bool:
        seen.append((done, total))
        return done < 1

    assert look(growing, 2).gains(np.arange(3), proceed) is None
    assert seen == [(0, 3), (2, 3)]


@pytest.fixture
def bounds_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are used from the second step on, whether they pay or not."""
    monkeypatch.setattr(candidate_gains, "LEAST_SAVING", 0)
    monkeypatch.setattr(candidate_gains, "LOOKUPS_BEFORE_BOUNDS", 0)
    monkeypatch.setattr(candidate_gains, "FIRST_TRIED", 1)


def bounds(ahead: CandidateGains) -> np.ndarray:
    found = candidate_gains.upper_bounds(ahead._data, ahead.candidates.sets)
    assert found is not None
    return ahead._upper_bounds(found)


@pytest.mark.usefixtures("bounds_always")
@given(datasets(), st.integers(2, 3), st.data())
def test_above_every_gain(data: Dataset, size: int, draw: st.DataObject) -> None:
    if len(data.codes) < size:
        return
    growing = GrowingModel(Counts(data), 1.0)
    ahead = look(growing, size)
    for _ in range(2):
        known = gains(ahead)
        assert (bounds(ahead) >= known - 1e-9).all()
        chosen = draw.draw(st.integers(0, len(ahead.candidates.sets) - 1))
        ahead.cover(growing.add(tuple(ahead.candidates.sets[chosen].tolist())))


@pytest.mark.usefixtures("bounds_always")
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_second_order_is_closer(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    """What it leaves out is of the third order: with labels shuffled the tables are small."""
    data = random_dataset(4_000, (2, 3, 4, 2), n_labels, seed=1)
    data = replace(data, labels=np.random.default_rng(1).permutation(data.labels))
    growing = GrowingModel(Counts(data), 1.0)
    growing.add((1,))
    second, first = look(growing, 2), look(growing, 2)
    known = gains(second)
    left_out = bounds(second) - known
    monkeypatch.setattr(candidate_gains, "SECOND_ORDER_CLASSES", 0)
    gains(first)
    assert (left_out < 0.25 * (bounds(first) - known)).all()


@pytest.mark.usefixtures("bounds_always")
@pytest.mark.parametrize("n_labels", [2, 3, 5])
@given(draw=st.data())
def test_the_best_is_found(n_labels: int, draw: st.DataObject) -> None:
    seed = draw.draw(st.integers(0, 1000))
    growing = GrowingModel(Counts(random_dataset(60, (2, 3, 2, 4), n_labels, seed=seed)), 1.0)
    ahead = look(growing, draw.draw(st.integers(2, 3)))
    added = np.random.default_rng(seed).normal(0.0, 3.0, len(ahead.candidates.sets))
    wanted = np.arange(len(added))
    for _ in range(3):
        known = gains(ahead)
        found = ahead.highest(wanted, added, 0.0, lambda done, total: True)
        assert found is not None
        tried = np.isfinite(found)
        np.testing.assert_array_equal(found[tried], known[tried])
        assert np.argmax(found + added) == np.argmax(known + added)
        ahead.cover(growing.add(tuple(ahead.candidates.sets[np.argmax(known)].tolist())))


@pytest.mark.usefixtures("bounds_always")
@pytest.mark.parametrize("kind", ["conditional", "structural-zeros"])
@pytest.mark.parametrize(("n_labels", "seed"), [(2, 1), (3, 2), (5, 3)])
def test_the_search_is_the_same(monkeypatch: pytest.MonkeyPatch, n_labels: int, seed: int, kind: str) -> None:
    data = random_dataset(400, (2, 3, 2, 3, 4, 2), n_labels, seed=seed)
    tried = []
    highest = CandidateGains.highest

    def counted(self: CandidateGains, *args: object) -> np.ndarray | None:
        found = highest(self, *args)  # type: ignore[arg-type]
        tried.append(found is not None and not np.isfinite(found).all())
        return found

    monkeypatch.setattr(CandidateGains, "highest", counted)
    options = {"max_order": 4, "theta": 1.0, "max_candidates": 1000, "degrees_of_freedom": kind}
    bounded = kikuchi.learn(Counts(data), **options)  # type: ignore[arg-type]
    assert any(tried)
    monkeypatch.setattr(candidate_gains, "MOST_ROW_SETS", 0)
    tried.clear()
    assert kikuchi.learn(Counts(data), **options) == bounded  # type: ignore[arg-type]
    assert not any(tried)


def test_every_set_of_values_has_its_number() -> None:
    values = candidate_gains.number_unusual_values((0, 2, 3), np.array([1, 0, 0, 2]), np.array([3, 2, 2, 4]), 2)
    listed = [
        int(values.offsets[size] + sum(values.binomials[k, f] for k, f in enumerate(members, 1)))
        for size in range(3)
        for members in itertools.combinations(range(2 + 1 + 3), size)
    ]
    assert sorted(listed) == list(range(1 + 6 + 15)) == list(range(int(values.offsets[-1])))
    assert values.of_values(0, 3).tolist() == [0, -1, 1]
    assert values.of_values(3, 4).tolist() == [3, 4, -1, 5]
