"""Leave-one-out losses against refitting without each row, one network and one row at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameter_learners import map as generative
from bncli.engine.structure_search import leave_one_out
from bncli.engine.structure_search.leave_one_out import nested_losses
from bncli.engine.structures.structure import Dag
from bncli.watch import Progress
from tests.datasets import random_dataset
from tests.engine.leaving_out import LOSSES, members_of, slow_loss
from tests.oracles import log_posterior
from tests.strategies import datasets


@settings(max_examples=40)
@given(datasets(max_rows=20, max_attributes=4), st.integers(0, 3), st.sampled_from(LOSSES))
def test_equals_refitting_without_each_row(data: Dataset, k: int, loss: str) -> None:
    members = members_of(data, k)
    losses = nested_losses(data, members, [k + 1] * len(members), loss)
    assert losses.shape == (k + 1, len(members) + 1)
    for k_used, p in np.ndindex(losses.shape):
        assert losses[k_used, p] == pytest.approx(slow_loss(data, members, k_used, p, loss), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_whole_weights_are_rows_alike(loss: str) -> None:
    data = random_dataset(40, (3, 2, 4), 3, seed=5)
    times = np.random.default_rng(0).integers(1, 5, data.n_rows)
    members = members_of(data, 2)
    repeated = data.take(np.repeat(np.arange(data.n_rows), times))
    weighted = nested_losses(replace(data, weights=times.astype(float)), members, [3] * 3, loss)
    np.testing.assert_allclose(weighted, nested_losses(repeated, members, [3] * 3, loss), rtol=1e-13)


def test_a_network_is_the_one_that_map_learns() -> None:
    data = random_dataset(25, (3, 2, 4, 2), 3, seed=2)
    members, k = members_of(data, 2), 2
    parents = tuple(dict(members)[i] for i in range(4))
    surprise = []
    for t in range(data.n_rows):
        rest = data.take(np.delete(np.arange(data.n_rows), t))
        tables = generative.learn(Counts(rest), Dag(parents, (0, 1, 2, 3)), smoothing="m-estimate:1").tables
        scores = tables.bias.copy()
        for family, weights in zip(tables.families, tables.weights, strict=True):
            values = tuple(int(data.codes[i][t]) for i in family.attributes)
            scores += weights[np.ravel_multi_index(values, family.shape)]
        surprise.append(-log_posterior(list(scores))[int(data.labels[t])])
    losses = nested_losses(data, members, [3] * 4, "log-loss")
    assert losses[k, 4] == pytest.approx(float(np.mean(surprise)), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_rounds_and_threads_change_no_bit(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (random_dataset(20_000, (3, 5, 4), 3, weighted=weighted, threads=threads) for threads in (1, 2))
    members = members_of(one, 2)
    expected = nested_losses(one, members, [3] * 3, "rmse")
    assert (nested_losses(two, members, [3] * 3, "rmse") == expected).all()
    monkeypatch.setattr(leave_one_out, "STATE_BUDGET", 1)
    assert (nested_losses(one, members, [3] * 3, "rmse") == expected).all()


def test_networks_not_asked_for_are_infinitely_bad() -> None:
    data = random_dataset(30, (3, 2, 4), 2)
    members = members_of(data, 2)
    some, everything = (nested_losses(data, members, n_k, "rmse") for n_k in ([3, 2, 1], [3, 3, 3]))
    asked = np.array([[True, True, True, True], [True, True, True, False], [True, True, False, False]])
    assert np.isinf(some[~asked]).all()
    assert (some[asked] == everything[asked]).all()


def test_progress_ends_at_its_total() -> None:
    data = random_dataset(30, (3, 2, 4), 2)
    events: list[Progress] = []
    nested_losses(data, members_of(data, 2), [3, 2, 2], "rmse", events.append)  # type: ignore[arg-type]
    assert [event.total for event in events] == [7] * len(events)
    assert events[-1].done == 7
    assert [event.done for event in events] == sorted(event.done for event in events)
