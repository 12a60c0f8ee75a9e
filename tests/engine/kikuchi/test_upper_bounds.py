"""Upper bounds: above every gain, close to small ones, and what they leave out is never the best."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import candidate_gains, upper_bounds
from bncli.engine.kikuchi.candidate_gains import CandidateGains, Candidates, all_sets
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.structure_learners import kikuchi
from tests.datasets import random_dataset
from tests.strategies import datasets


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are used from the second step on, whether they pay or not."""
    monkeypatch.setattr(upper_bounds, "LEAST_SAVING", 0)
    monkeypatch.setattr(candidate_gains, "LOOKUPS_BEFORE_BOUNDS", 0)
    monkeypatch.setattr(candidate_gains, "FIRST_TRIED", 1)


def look(growing: GrowingModel, size: int) -> CandidateGains:
    members = all_sets(range(len(growing.data.codes)), size)
    return CandidateGains(growing, Candidates(members, growing.rule.of_subsets(members)))


def gains(ahead: CandidateGains) -> np.ndarray:
    found = ahead.gains(np.arange(len(ahead.candidates.sets)), lambda done, total: True)
    assert found is not None
    return found


def bounds(ahead: CandidateGains) -> np.ndarray:
    found = upper_bounds.upper_bounds(ahead._data, ahead.candidates.sets)
    assert found is not None
    return ahead._upper_bounds(found)


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
    monkeypatch.setattr(upper_bounds, "SECOND_ORDER_CLASSES", 0)
    gains(first)
    assert (left_out < 0.25 * (bounds(first) - known)).all()


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
    monkeypatch.setattr(upper_bounds, "MOST_ROW_SETS", 0)
    tried.clear()
    assert kikuchi.learn(Counts(data), **options) == bounded  # type: ignore[arg-type]
    assert not any(tried)


def test_every_set_of_values_has_its_number() -> None:
    values = upper_bounds.number_unusual_values((0, 2, 3), np.array([1, 0, 0, 2]), np.array([3, 2, 2, 4]), 2)
    listed = [
        int(values.offsets[size] + sum(values.binomials[k, f] for k, f in enumerate(members, 1)))
        for size in range(3)
        for members in itertools.combinations(range(2 + 1 + 3), size)
    ]
    assert sorted(listed) == list(range(1 + 6 + 15)) == list(range(int(values.offsets[-1])))
    assert values.of_values(0, 3).tolist() == [0, -1, 1]
    assert values.of_values(3, 4).tolist() == [3, 4, -1, 5]
