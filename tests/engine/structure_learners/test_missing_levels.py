"""Missing values as levels for searches that compare networks on the same rows."""

from __future__ import annotations

import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.structure_learners import hill_climb, skdb
from bncli.engine.structure_learners.missing_levels import with_missing_levels
from bncli.watch import Event, Note
from tests.datasets import random_dataset
from tests.missing_values import with_missing


def test_without_missing_values_nothing_changes() -> None:
    counts = Counts(with_missing(random_dataset(20, (2, 3), 2), 0.0))
    events: list[Event] = []
    assert with_missing_levels(counts, "x", events.append) is counts
    assert events == []


def test_a_missing_value_is_one_more_value_of_the_same_rows() -> None:
    data = with_missing(random_dataset(50, (2, 3, 2), 2), 0.3)
    events: list[Event] = []
    seen = with_missing_levels(Counts(data), "hill-climb", events.append)
    assert seen.data.schema.cardinalities == (3, 4, 3)
    assert seen.tables([(0, 1, 2)])[0].sum() == 50
    assert seen.data.n_missing == (0, 0, 0)
    assert [event for event in events if isinstance(event, Note)] == [
        Note("hill-climb takes a missing value for one more value while it compares networks")
    ]


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_searches_end_whatever_is_missing(share: float) -> None:
    counts = Counts(with_missing(random_dataset(300, (2, 3, 2, 4), 3, seed=4), share))
    found = hill_climb.learn(counts, structure_score="bic", max_parents=2, perfect=False)
    chosen = skdb.learn(counts, k=2, loss="rmse")
    assert found.class_children == (0, 1, 2, 3)
    assert max(len(listed) for listed in chosen.parents) <= 2
    if share == 1.0:
        assert not any(found.parents)
        assert chosen.class_children == ()
