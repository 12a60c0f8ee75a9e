"""Gains of candidates against models rebuilt row by row, whatever is kept, cut or steep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import batches, candidate_gains
from bncli.engine.kikuchi.candidate_gains import LookAhead
from bncli.engine.kikuchi.candidates import Candidates, all_members
from bncli.engine.kikuchi.search_trace import Climber
from tests import kikuchi_oracle
from tests.datasets import random_dataset
from tests.strategies import datasets


def look(climber: Climber, size: int) -> LookAhead:
    schema = climber.data.schema
    members = all_members(range(len(schema.attributes)), size)
    return LookAhead(climber, Candidates(members, schema.cardinalities, len(schema.labels)))


def gains(ahead: LookAhead) -> np.ndarray:
    found = ahead.gains(np.arange(len(ahead.candidates.members)), lambda done, total: True)
    assert found is not None
    return found


def expected(climber: Climber, ahead: LookAhead, theta: float = 1.0) -> list[float]:
    slow = kikuchi_oracle.Slow(climber.data, theta)
    before = slow.log_likelihood(climber.regions)
    members = map(tuple, ahead.candidates.members.tolist())
    return [slow.log_likelihood([*climber.regions, candidate]) - before for candidate in members]


@given(datasets(), st.integers(1, 4), st.data())
def test_gains_after_every_step(data: Dataset, size: int, draw: st.DataObject) -> None:
    size = min(size, len(data.codes))
    climber = Climber(Counts(data), 1.0)
    ahead = look(climber, size)
    for _ in range(3):
        np.testing.assert_allclose(gains(ahead), expected(climber, ahead), rtol=1e-8, atol=1e-8)
        chosen = draw.draw(st.integers(0, len(ahead.candidates.members) - 1))
        ahead.cover(climber.add(tuple(ahead.candidates.members[chosen].tolist())))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("steepest", [80.0, 0.0])
@pytest.mark.parametrize("limits", [(1 << 25, 1 << 15, 1 << 22), (0, 1, 1), (400, 60, 300)])
def test_limits_change_no_gain(
    monkeypatch: pytest.MonkeyPatch, n_labels: int, steepest: float, limits: tuple[int, int, int]
) -> None:
    data = random_dataset(90, (2, 3, 4, 2, 3), n_labels, seed=3)
    for name, limit in zip(("KEPT", "GROUP", "ROUND"), limits, strict=True):
        monkeypatch.setattr(candidate_gains, name, limit)
    monkeypatch.setattr(candidate_gains, "LOOKUPS", limits[2] * 100)
    monkeypatch.setattr(batches, "STEEPEST", steepest)
    climber = Climber(Counts(data), 1.0)
    climber.add((1,))
    ahead = look(climber, 3)
    for _ in range(2):
        np.testing.assert_allclose(gains(ahead), expected(climber, ahead), rtol=1e-8)
    ahead.cover(climber.add((0, 2)))
    np.testing.assert_allclose(gains(ahead), expected(climber, ahead), rtol=1e-8)


def test_some_of_the_candidates() -> None:
    climber = Climber(Counts(random_dataset(90, (2, 3, 4, 2, 3), 3, seed=3)), 1.0)
    ahead = look(climber, 2)
    whole = expected(climber, ahead)
    for wanted in ([1, 4, 5, 9], [0, 1, 2, 3, 9], [8], []):
        found = ahead.gains(np.array(wanted, np.intp), lambda done, total: True)
        assert found is not None
        np.testing.assert_allclose(found, [whole[w] for w in wanted], rtol=1e-9)


def test_extreme_smoothing_is_still_finite() -> None:
    data = random_dataset(60, (3, 3), 2, seed=3)
    data = replace(data, labels=(data.codes[0] > 0).astype(np.uint8))
    climber = Climber(Counts(data), 1e-280)
    climber.add((0,))
    np.testing.assert_allclose(gains(look(climber, 2)), expected(climber, look(climber, 2), 1e-280), atol=1e-6)


def test_stopped_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_gains, "LOOKUPS", 1)
    climber = Climber(Counts(random_dataset(60, (2, 2, 2), 2)), 1.0)
    seen: list[tuple[int, int]] = []

    def proceed(done: int, total: int) -> bool:
        seen.append((done, total))
        return done < 1

    assert look(climber, 2).gains(np.arange(3), proceed) is None
    assert seen == [(0, 3), (2, 3)]
