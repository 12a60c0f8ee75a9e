"""Interactions: planted ones are found, the rest is left out; laws of the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_sample
from bncli.engine.structure_learners import interactions
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Regions
from bncli.watch import Event, Note
from tests.datasets import dataset_of, random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.strategies import datasets


def planted(n_rows: int = 2000, seed: int = 0) -> Dataset:
    """The class follows attribute 0, whether 1 and 3 agree, and the parity of 2, 4 and 5, of which every pair says
    a little too; attributes 6 to 9 are noise."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 2, n_rows) for _ in range(10)]
    parity = (columns[2] + columns[4] + columns[5]) % 2
    score = 1.5 * columns[0] + 3.0 * (columns[1] == columns[3]) + 2.5 * parity + (columns[2] == columns[4]) - 4.0
    labels = rng.random(n_rows) < 1 / (1 + np.exp(-score))
    return dataset_of(columns, labels, (2,) * 10, 2)


def learn(data: Dataset, max_order: int = 4) -> Regions:
    return interactions.learn(Counts(data), max_order=max_order)


def test_what_was_planted_is_found() -> None:
    found = learn(planted())
    assert found.regions[:10] == tuple((i,) for i in range(10))
    pairs, triples = ([r for r in found.regions if len(r) == size] for size in (2, 3))
    assert pairs[:2] == [(1, 3), (2, 4)]
    assert triples[0] == (2, 4, 5)
    assert len(pairs) <= 30
    assert len(triples) <= 20
    gains = dict(zip(found.regions, found.gains, strict=True))
    assert gains[1, 3] > 50 < gains[2, 4, 5]
    assert gains[0,] > max(gains[i,] for i in range(6, 10))


def test_of_many_rows_a_sample_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted()
    monkeypatch.setattr(interactions, "SEARCHED_ROWS", 1000)
    found = learn(data)
    monkeypatch.setattr(interactions, "SEARCHED_ROWS", 2000)
    assert found == learn(data.take(stratified_sample(data.labels, 1000, interactions.SEED)))
    assert found != learn(data)
    assert (1, 3) in found.regions


def test_so_many_rows_are_searched() -> None:
    for n_rows, searched in ((1000, 1000), (65_536, 65_536), (65_540, 65_536), (200_000, 65_536)):
        labels = np.arange(n_rows) % 3
        rows = interactions.searched_rows(labels)
        assert len(rows) == searched
        assert (np.diff(rows) > 0).all()


def test_regions_that_gain_a_small_share_of_the_loss_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base loss of 2,000 rows of two classes is below 2,000 ln 2 nats."""
    everything = learn(planted())
    monkeypatch.setattr(interactions, "REGION_SHARE", 0.02)
    found = learn(planted())
    gains = dict(zip(found.regions, found.gains, strict=True))
    assert (1, 3) in gains
    assert len(gains) < len(everything.regions)
    assert all(gain > 10 for region, gain in gains.items() if len(region) > 1)
    monkeypatch.setattr(interactions, "REGION_SHARE", 1.0)
    assert max(map(len, learn(planted()).regions)) == 1


@pytest.mark.parametrize(("max_order", "largest"), [(2, 1), (3, 2), (4, 3), (5, 4)])
def test_the_class_counts_as_one_of_the_order(max_order: int, largest: int) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, 3000) for _ in range(5)]
    labels = (rng.random(3000) < 0.1 + 0.8 * ((columns[0] & columns[1] & columns[2] & columns[3]) == 1)).astype(int)
    found = learn(dataset_of(columns, labels, (2,) * 5, 2), max_order)
    assert max(map(len, found.regions)) == largest
    assert (found.method, dict(found.options)) == ("interactions", {"max_order": max_order})


@given(st.one_of(datasets(), mixed_datasets()), st.integers(2, 5))
def test_order_and_size_of_the_list(data: Dataset, max_order: int) -> None:
    found = learn(data, max_order)
    n = len(data.schema.informative)
    sizes = [len(region) for region in found.regions]
    assert found.regions[:n] == tuple((i,) for i in data.schema.informative)
    assert sizes == sorted(sizes)
    assert max(sizes, default=1) < max_order
    assert all(sizes.count(size) <= most * n for size, most in ((2, 3), (3, 2), (4, 1)))
    assert len(set(found.regions)) == len(found.regions) == len(found.gains)
    assert all(tuple(sorted(region)) == region for region in found.regions)
    for size in set(sizes) - {1}:
        gains = [g for g, s in zip(found.gains, sizes, strict=True) if s == size]
        assert gains == sorted(gains, reverse=True)
        assert gains[-1] >= 1.0
    triples = [region for region in found.regions if len(region) > 2]
    assert all(any(set(r) > set(p) for p in found.regions if len(p) == len(r) - 1) for r in triples)
    assert name_structure(found, data.schema).resolve(data.schema) == found


def test_pairs_are_cut_where_they_matter() -> None:
    """The class of rows that agree in being below the second tenth and the first tenth: no quantile of 8 or 5."""
    rng = np.random.default_rng(1)
    columns: list[NDArray[np.intp]] = [rng.integers(0, 20, 4000) for _ in range(3)]
    agree = (columns[0] < 4) == (columns[1] < 2)
    data = dataset_of(columns, rng.random(4000) < np.where(agree, 0.9, 0.2), (20,) * 3, 2)
    attributes = tuple(replace(a, frequencies=(200.0,) * 20) for a in data.schema.attributes)
    data = mixed_dataset(replace(data, schema=replace(data.schema, attributes=attributes)), ["numeric"] * 3)
    found = learn(data)
    assert found.regions[3] == (0, 1)
    assert all(grouping is not None for grouping in found.binnings[3])
    sharp = [min(c for c in range(20) if grouping[c]) for grouping in found.binnings[3] if grouping]
    assert sharp == [4, 2]
    shapes = {family.attributes: family.shape for family in found.families(data.schema.cardinalities)}
    assert shapes[0,] == (20,)
    assert max(shapes[0, 1]) <= 5


def test_of_many_attributes_those_that_say_something_alone_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = planted()
    all_of_them = learn(data)
    monkeypatch.setattr(interactions, "ROWS_PER_COMBINED", data.n_rows)
    monkeypatch.setattr(interactions, "MOST_COMBINED", 10)
    assert learn(data) == all_of_them
    # 1 and 3 say nothing alone; 0 is the strongest
    monkeypatch.setattr(interactions, "MOST_COMBINED", 1)
    assert learn(data).regions == tuple((i,) for i in range(10))


def test_the_two_that_say_most_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, 2000) for _ in range(5)]
    labels = rng.random(2000) < 0.1 + 0.5 * (columns[1] & columns[4]) + 0.3 * (columns[0] ^ columns[2])
    data = dataset_of(columns, labels, (2,) * 5, 2)
    alone = [abs(float(np.mean(labels[c == 1]) - np.mean(labels[c == 0]))) for c in columns]
    assert set(np.argsort(alone)[-2:].tolist()) == {1, 4}
    assert (0, 2) in learn(data).regions
    monkeypatch.setattr(interactions, "ROWS_PER_COMBINED", data.n_rows)
    monkeypatch.setattr(interactions, "MOST_COMBINED", 2)
    assert learn(data).regions[5:] == ((1, 4),)


def test_more_rows_let_more_attributes_be_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted()
    found = learn(data)
    monkeypatch.setattr(interactions, "MOST_COMBINED", 1)
    monkeypatch.setattr(interactions, "ROWS_PER_COMBINED", data.n_rows // 10)
    assert learn(data) == found


def test_rows_in_another_order_or_twice() -> None:
    data = planted(500)
    shuffled = data.take(np.random.default_rng(1).permutation(500))
    twice = data.take(np.repeat(np.arange(500), 2))
    heavy = replace(data, weights=np.full(500, 2.0))
    for one, other in ((data, shuffled), (twice, heavy)):
        found, again = learn(one), learn(other)
        assert found.regions == again.regions
        np.testing.assert_allclose(found.gains, again.gains, rtol=1e-6, atol=1e-6)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 100)
    data = planted(1000)
    assert learn(data) == learn(replace(data, threads=4))


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_hardly_any_rows(n_rows: int) -> None:
    assert learn(random_dataset(n_rows, (2, 3), 2)).regions[:2] == ((0,), (1,))


def test_nothing_to_learn_from() -> None:
    assert learn(random_dataset(20, (1, 1), 2)).regions == ()
    assert learn(random_dataset(20, (2, 3), 1)).regions == ((0,), (1,))


def test_missing_values_that_are_to_be_marginalized_count_as_a_value() -> None:
    data = planted(300)
    codes = (np.where(np.arange(300) % 5 == 0, 2, data.codes[0]).astype(np.uint8), *data.codes[1:])
    schema = replace(data.schema, missing_policy="marginalize")
    events: list[Event] = []
    found = interactions.learn(Counts(replace(data, schema=schema, codes=codes)), watch=events.append)
    assert len(found.regions) >= 10
    assert any(isinstance(event, Note) for event in events)


def test_an_attribute_of_many_levels_is_not_combined() -> None:
    rng = np.random.default_rng(0)
    name, side, number = rng.integers(0, 30, 800), rng.integers(0, 2, 800), rng.integers(0, 4, 800)
    labels = ((name + side) % 2 ^ (number > 1)).astype(np.int8)
    few, many = (dataset_of([name % n, side, number], labels, (n, 2, 4), 2) for n in (20, 30))
    assert (0, 1) in learn(few).regions
    assert {region for region in learn(many).regions if 0 in region} == {(0,)}
