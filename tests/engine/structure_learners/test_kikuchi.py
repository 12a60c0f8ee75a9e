"""The search against one that rebuilds every candidate's region graph, and the laws of its result."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi import candidate_gains
from bncli.engine.kikuchi.search_trace import follow
from bncli.engine.structure_learners import kikuchi
from bncli.engine.structures.structure import Regions, SearchTrace
from bncli.watch import Event, Note, Progress, TimeLimit
from tests import kikuchi_oracle
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets
from tests.sweeps import examples


def search(data: Dataset, max_order: int = 4, theta: float = 1.0, most: int = 1000, kind: str | None = None) -> Regions:
    return kikuchi.learn(Counts(data), max_order=max_order, theta=theta, max_candidates=most, degrees_of_freedom=kind)


def woven(seed: int, n_rows: int = 400, n_labels: int = 2) -> Dataset:
    """The class depends on a pair, on a triple and on single attributes."""
    rng = np.random.default_rng(seed)
    cardinalities = (2, 3, 2, 2, 3)
    columns = [rng.integers(0, n, n_rows) for n in cardinalities]
    signal = (columns[0] + columns[1]) % 2 * 1.5 + (columns[1] + columns[2] + columns[3]) % 2 + columns[4] * 0.3
    labels = np.clip(signal + rng.normal(0, 0.5, n_rows), 0, n_labels - 1).astype(int)
    weights = rng.uniform(0.2, 3.0, n_rows) if seed % 2 else None
    return dataset_of(columns, labels, cardinalities, n_labels, weights)


def close(trace: SearchTrace | None, other: SearchTrace | None) -> None:
    assert trace is not None
    assert other is not None
    assert trace.df == other.df
    assert trace.map_step == other.map_step
    np.testing.assert_allclose(trace.log_likelihood, other.log_likelihood, rtol=1e-9)
    np.testing.assert_allclose(trace.log_posterior, other.log_posterior, rtol=1e-9)


@settings(max_examples=examples(13))
@given(
    datasets(max_attributes=4),
    st.integers(1, 5),
    st.sampled_from([0.1, 1.0, 5.0]),
    st.sampled_from([None, "joint", "structural-zeros"]),
)
def test_the_search_that_rescans_everything(data: Dataset, max_order: int, theta: float, kind: str | None) -> None:
    found = search(data, max_order, theta, kind=kind)
    regions, steps = kikuchi_oracle.search(data, max_order, theta, kind or "conditional")
    assert list(found.regions) == regions
    assert found.trace is not None
    assert found.trace.df == tuple(step.df for step in steps)
    np.testing.assert_allclose(found.trace.log_likelihood, [step.log_likelihood for step in steps], rtol=1e-9)
    np.testing.assert_allclose(found.trace.log_posterior, [step.log_posterior for step in steps], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "n_labels", "kind"),
    [
        (1, 2, None),
        pytest.param(2, 3, "structural-zeros", marks=pytest.mark.slow),
        pytest.param(3, 4, None, marks=pytest.mark.slow),
        pytest.param(4, 2, "joint", marks=pytest.mark.slow),
    ],
)
def test_pairs_and_triples_are_found(seed: int, n_labels: int, kind: str | None) -> None:
    data = woven(seed, 160, n_labels)
    regions, _ = kikuchi_oracle.search(data, 4, 1.0, kind or "conditional")
    assert list(search(data, kind=kind).regions) == regions
    assert {len(region) for region in regions} >= {1, 2}


def test_a_function_of_two_attributes_is_found() -> None:
    grid = np.array(list(itertools.product(range(2), repeat=4)) * 12)
    data = dataset_of([*grid.T], grid[:, 1] ^ grid[:, 3], (2,) * 4, 2)
    found = search(data)
    assert found.chosen == ((1, 3),)
    assert found.trace is not None
    assert found.trace.log_likelihood[found.trace.map_step] == pytest.approx(0, abs=2)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_of_shuffled_rows(seed: int) -> None:
    data = woven(seed)
    shuffled = data.take(np.random.default_rng(seed).permutation(data.n_rows))
    found, again = search(data), search(shuffled)
    assert again.regions == found.regions
    close(again.trace, found.trace)


def test_a_row_of_weight_two_is_a_row_twice() -> None:
    data = woven(2)
    times = np.random.default_rng(0).integers(1, 3, data.n_rows)
    found = search(replace(data, weights=times.astype(float)))
    again = search(data.take(np.repeat(np.arange(data.n_rows), times)))
    assert again.regions == found.regions
    close(again.trace, found.trace)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_change_nothing(seed: int) -> None:
    data = woven(seed, 2_000, 3)
    assert search(data) == search(replace(data, threads=4))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", [None, "joint", "structural-zeros"])
def test_following_the_path_gives_the_same_bits(seed: int, kind: str | None) -> None:
    data = woven(seed)
    found = search(data, kind=kind)
    assert len(found.regions) > 3
    assert found.options.get("degrees_of_freedom") == kind
    assert follow(Counts(data), found.regions, 1.0, degrees_of_freedom=kind) == found.trace


def test_of_copies_the_first_is_taken() -> None:
    data = random_dataset(200, (3,), 2, seed=4)
    twins = dataset_of([data.codes[0]] * 3, data.labels, (3,) * 3, 2)
    assert search(twins).chosen == ((0,),)


def test_the_largest_size_is_that_of_the_table() -> None:
    data = woven(2)
    assert search(data, 9) == replace(search(data, 6), options=search(data, 9).options)
    assert search(data, 1).regions == ()
    assert search(data, 2).attributes == search(data, 2).nodes
    assert max(len(region) for region in search(data, 2).regions) == 1


def test_few_rows_leave_the_class_alone() -> None:
    data = woven(2, 3)
    assert search(data).regions == ()
    assert search(data.take(np.arange(1))).regions == ()


def test_one_class_needs_no_region() -> None:
    data = woven(2, 50)
    found = search(dataset_of(data.codes, np.zeros(50, int), data.schema.cardinalities, 1))
    assert found.regions == ()
    assert found.trace is not None
    assert found.trace.log_likelihood == (0.0,)


def test_the_path_goes_up_and_then_down_within_reach() -> None:
    found = search(woven(4, 300))
    assert found.trace is not None
    posteriors, likelihoods = found.trace.log_posterior, found.trace.log_likelihood
    last = max(len(region) for region in found.regions)
    for s, region in enumerate(found.regions, 1):
        if len(region) < last:
            assert posteriors[s] > posteriors[s - 1]
        elif posteriors[s] <= posteriors[s - 1]:
            assert likelihoods[s] > likelihoods[s - 1]
            assert posteriors[s] >= max(posteriors) - 40


def test_the_budget_of_kept_tables_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = woven(3, 500, 3)
    found = search(data)
    for kept, group, together in ((0, 1, 1), (300, 100, 700)):
        monkeypatch.setattr(candidate_gains, "ENTRIES_KEPT", kept)
        monkeypatch.setattr(candidate_gains, "ENTRIES_PER_GROUP", group)
        monkeypatch.setattr(candidate_gains, "ENTRIES_PER_ROUND", together)
        monkeypatch.setattr(candidate_gains, "LOOKUPS_PER_ROUND", together)
        assert search(data).regions == found.regions


def test_steep_tables_are_added_up_in_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = woven(3, 500, 3)
    found = search(data)
    monkeypatch.setattr(candidate_gains, "STEEPEST", 0.0)
    assert search(data) == found
    assert search(data, 4, 1e-250).regions


def test_a_cap_on_candidates_keeps_the_strongest_and_says_so() -> None:
    data = woven(2)
    events: list[Event] = []
    found = kikuchi.learn(Counts(data), max_order=4, theta=1.0, max_candidates=6, watch=events.append)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == [
        "4 of 10 regions of 2 attributes were not tried (--max-candidates)",
        "4 of 10 regions of 3 attributes were not tried (--max-candidates)",
    ]
    assert found.options == {"max_order": 4, "theta": 1.0, "max_candidates": 6}
    assert all(len(region) < 2 or set(region) <= set(found.attributes) for region in found.regions)


def test_no_more_than_the_time_allows() -> None:
    data = woven(2)
    whole = search(data).regions
    for looks in range(1, 40):
        ticks = itertools.count()
        events: list[Event] = []
        found = kikuchi.learn(
            Counts(data),
            max_order=4,
            theta=1.0,
            max_candidates=100,
            max_seconds=TimeLimit(looks, lambda ticks=ticks: float(next(ticks))),
            watch=events.append,
        )
        assert found.regions == whole[: len(found.regions)]
        assert found.options["max_seconds"] == looks
        assert found.trace is not None
        assert len(found.trace.df) == len(found.regions) + 1
        stopped = [event.text for event in events if isinstance(event, Note)]
        assert bool(stopped) or found.regions == whole
        assert all(text.startswith("the time limit was reached: the search stopped at ") for text in stopped)
    assert found.regions == whole


def test_progress_is_told() -> None:
    events: list[Event] = []
    kikuchi.learn(Counts(woven(2)), max_order=3, theta=1.0, max_candidates=100, watch=events.append)
    assert Progress(0, 5, "candidates of step 1") in events
