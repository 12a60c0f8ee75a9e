"""Selective KDB: the choice against a search over slow losses, its limits, and what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners import kdb, skdb
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Note
from tests.datasets import dataset_of, random_dataset
from tests.engine.leaving_out import LOSSES, members_of, slow_loss
from tests.strategies import datasets


def slow_skdb(data: Dataset, k: int, loss: str) -> tuple[tuple[int, ...], ...]:
    """All networks from few parents to many, then from few attributes to many; the first of the lowest loss."""
    members, best, chosen = members_of(data, k), np.inf, (0, 0)
    for candidate in itertools.product(range(k + 1), range(len(members) + 1)):
        found = float(rounded(np.array([slow_loss(data, members, *candidate, loss)]))[0])
        if found < best:
            best, chosen = found, candidate
    parents: list[tuple[int, ...]] = [()] * len(data.codes)
    for i, listed in members[: chosen[1]]:
        parents[i] = listed[: chosen[0]]
    return tuple(parents), tuple(sorted(i for i, _ in members[: chosen[1]]))


@given(datasets(max_rows=25, max_attributes=4), st.integers(0, 3), st.sampled_from(LOSSES))
def test_equals_a_search_over_slow_losses(data: Dataset, k: int, loss: str) -> None:
    parents, children = slow_skdb(data, k, loss)
    assert skdb.learn(Counts(data), k=k, loss=loss) == Dag(parents, children, (), "skdb", {"k": k, "loss": loss})


@given(datasets(), st.integers(0, 4), st.sampled_from(LOSSES))
def test_a_cut_of_kdb(data: Dataset, k: int, loss: str) -> None:
    dag, full = skdb.learn(Counts(data), k=k, loss=loss), kdb.learn(Counts(data), k=k)
    most = max(map(len, dag.parents))
    chosen = set(dag.class_children)
    for i, parents in enumerate(dag.parents):
        assert parents == (full.parents[i][:most] if i in chosen else ())
        assert set(parents) <= chosen


def noise(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(0, 4, n) for _ in range(4)]


def test_noise_is_left_out_and_parents_are_taken_where_they_tell() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    y = np.where(rng.random(4000) < 0.95, a ^ b, a)  # b tells nothing without a
    data = dataset_of([*noise(4000, rng), a, b], y, (4,) * 4 + (2, 2), 2)
    dag = skdb.learn(Counts(data), k=1, loss="rmse")
    assert {4, 5} <= set(dag.class_children)
    assert (4,) in dag.parents or (5,) in dag.parents


def test_no_attribute_at_all_may_win() -> None:
    rng = np.random.default_rng(0)
    data = dataset_of(noise(60, rng), (rng.random(60) < 0.1).astype(int), (4,) * 4, 2)
    dag = skdb.learn(Counts(data), k=2, loss="log-loss")
    assert dag.class_children == ()
    assert set(dag.parents) == {()}


def test_ties_go_to_fewer_parents_then_to_fewer_attributes() -> None:
    x = np.tile([0, 1], 200)
    data = dataset_of([x, x, x], x, (2, 2, 2), 2)
    dag = skdb.learn(Counts(data), k=2, loss="error")
    assert dag.class_children == (0,)
    assert dag.parents == ((), (), ())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_choice_is_told_in_one_note(loss: str) -> None:
    events: list[Event] = []
    dag = skdb.learn(Counts(random_dataset(300, (3, 2, 4, 3), 3)), k=2, loss=loss, watch=events.append)
    (note,) = [event.text for event in events if isinstance(event, Note)]
    chosen, k = len(dag.class_children), max(map(len, dag.parents))
    assert note.startswith(f"skdb chose the first {chosen} of 4 attributes and k = {k}: leave-one-out {loss} 0.")


def test_tables_that_do_not_fit_are_no_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(400, (3, 3, 3, 3), 2, seed=3)
    monkeypatch.setattr(skdb, "MAX_ENTRIES", 2 * (3 + 9 + 9 + 9))
    notes: list[Event] = []
    assert max(map(len, skdb.learn(Counts(data), k=3, loss="rmse", watch=notes.append).parents)) <= 1
    assert "(k above 1 was tried with fewer attributes only: larger tables do not fit)" in str(notes[-1])


def test_many_parents_of_many_values_take_no_dense_table() -> None:
    data = random_dataset(500, (50,) * 12, 2)
    assert set(skdb.learn(Counts(data), k=11, loss="rmse").class_children) <= set(range(12))
