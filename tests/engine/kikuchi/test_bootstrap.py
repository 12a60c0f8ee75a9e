"""The bootstrap check of a path, against models rebuilt from every resample row by row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.bootstrap import Resampling, bootstrap_log_losses, with_log_losses
from bncli.engine.kikuchi.search_trace import follow
from bncli.engine.structure_learners import kikuchi
from bncli.engine.structures.structure import Regions
from bncli.watch import Event, Progress
from tests import kikuchi_oracle, oracles
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets

REGIONS = ((0,), (1,), (0, 1), (2,), (1, 2))


def search(data: Dataset) -> Regions:
    return kikuchi.learn(Counts(data), max_order=4, theta=1.0, max_candidates=1000)


@given(datasets(), st.integers(0, 3), st.sampled_from([0.1, 1.0]))
def test_losses_are_those_of_models_rebuilt(data: Dataset, seed: int, theta: float) -> None:
    regions = [region for region in REGIONS if max(region) < len(data.codes)]
    resampling = Resampling(3, seed)
    found = bootstrap_log_losses(data, regions, theta, resampling)
    slow = [kikuchi_oracle.Slow(resample, theta) for resample in resampling.of(data)]
    for step, loss in enumerate(found):
        each = [_loss(model, regions[:step], data) for model in slow]
        assert loss == pytest.approx(math.fsum(each) / 3, rel=1e-9)


def _loss(model: kikuchi_oracle.Slow, regions: list[tuple[int, ...]], rows: Dataset) -> float:
    logs = model.log_probabilities(regions, rows)
    return -math.fsum(w * logs[t][rows.labels[t]] for t, w in enumerate(oracles.weights_of(rows)))


@given(datasets(), st.integers(0, 9))
def test_a_resample_has_rows_of_the_table_and_its_weight(data: Dataset, seed: int) -> None:
    rows = {row[:-1] for row in _rows(data)}
    for resample in Resampling(2, seed).of(data):
        assert {row[:-1] for row in _rows(resample)} <= rows
        assert resample.total_weight == pytest.approx(data.total_weight)
        unit = data.total_weight / max(round(data.total_weight), 1)
        counts = np.array(oracles.weights_of(resample)) / unit
        np.testing.assert_allclose(counts, np.round(counts), rtol=1e-9)


def _rows(data: Dataset) -> list[tuple[float, ...]]:
    return [*zip(*data.codes, data.labels, oracles.weights_of(data), strict=True)]


def test_rows_are_drawn_by_weight() -> None:
    data = dataset_of([np.arange(4)], np.array([0, 1, 0, 1]), (4,), 2, np.array([1.0, 0.5, 6.5, 2.0]))
    resamples = list(Resampling(400).of(data))
    drawn = np.sum([np.bincount(one.codes[0], one.weights, 4) for one in resamples], axis=0)
    np.testing.assert_allclose(drawn / 4000, [0.1, 0.05, 0.65, 0.2], atol=0.03)


def test_heavy_rows_take_no_memory() -> None:
    data = dataset_of([np.arange(2)], np.array([0, 1]), (2,), 2, np.array([1e12, 3e12]))
    (resample,) = Resampling(1).of(data)
    assert resample.n_rows == 2
    assert resample.total_weight == pytest.approx(4e12)


def test_what_is_worth_nothing_loses_on_new_rows() -> None:
    """Attributes that know nothing of the class raise the likelihood and the loss; one that does lowers it."""
    rng = np.random.default_rng(1)
    telling = rng.integers(0, 2, 150)
    labels = np.where(rng.random(150) < 0.2, 1 - telling, telling)
    noise = [rng.integers(0, 9, 150) for _ in range(2)]
    data = dataset_of([telling, *noise], labels, (2, 9, 9), 2)
    regions = [(0,), (0, 1), (0, 1, 2)]
    likelihood = follow(Counts(data), regions, 1.0).log_likelihood
    assert likelihood[0] < likelihood[1] < likelihood[2] < likelihood[3]
    none, one, two, three = bootstrap_log_losses(data, regions, 1.0, Resampling(20))
    assert one < none - 20
    assert one < two - 5 < three - 10


@pytest.mark.usefixtures("small_blocks")
def test_the_seed_decides_and_threads_change_nothing() -> None:
    data = random_dataset(3_000, (2, 3, 2), 2, seed=1)
    found = bootstrap_log_losses(data, REGIONS, 1.0, Resampling(2, 5))
    assert bootstrap_log_losses(replace(data, threads=3), REGIONS, 1.0, Resampling(2, 5)) == found
    assert bootstrap_log_losses(data, REGIONS, 1.0, Resampling(2, 6)) != found


def test_it_is_told_with_the_steps_of_a_search() -> None:
    data = random_dataset(60, (2, 3), 2, seed=1)
    events: list[Event] = []
    regions = search(data)
    checked = with_log_losses(data, regions, 1.0, Resampling(2, 3), events.append)
    assert checked.trace is not None
    assert regions.trace is not None
    assert checked.trace.bootstrap_log_loss == bootstrap_log_losses(data, regions.regions, 1.0, Resampling(2, 3))
    assert checked.options == {**regions.options, "bootstrap": 2, "seed": 3}
    assert replace(checked.trace, bootstrap_log_loss=()) == regions.trace
    assert events == [Progress(0, 2, "resamples"), Progress(1, 2, "resamples")]
