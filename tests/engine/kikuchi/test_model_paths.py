"""Predictors made of regions: submodels, paths and tables against slow oracles."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.model_paths import (
    counting_changes,
    cover,
    log_submodels,
    posterior_weights,
    region_tables,
    require_regions,
    score_table,
    subsets,
)
from bncli.engine.model import Model, Path, PathStep
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests import kikuchi_oracle
from tests.datasets import dataset_of, random_dataset
from tests.kikuchi_oracle import region_graph
from tests.paths import Case, learnt_paths, path_of
from tests.strategies import datasets

ASCENDING = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(lambda region: tuple(sorted(region))),
    max_size=8,
)


@given(learnt_paths())
def test_sums_of_changes_are_the_counting_numbers(case: Case) -> None:
    _, regions, learnt, _ = case
    numbers: Counter[frozenset[int]] = Counter()
    for s, step in enumerate(path_of(learnt).steps):
        assert step.region == ((), *regions.regions)[s]
        assert list(step.changes) == sorted(step.changes)
        for family, change in step.changes:
            members = () if family < 0 else path_of(learnt).families[family].attributes
            assert set(members) <= set(step.region)
            numbers[frozenset(members)] += change
        assert {r: c for r, c in numbers.items() if c} == region_graph(regions.regions[:s])


@given(learnt_paths())
def test_every_family_once_in_the_order_of_its_first_use(case: Case) -> None:
    path = path_of(case[2])
    used = dict.fromkeys(f for step in path.steps for f, _ in step.changes if f >= 0)
    members = [family.attributes for family in path.families]
    assert sorted(used) == list(range(len(members)))
    assert len(set(members)) == len(members)
    firsts = [next(s for s, step in enumerate(path.steps) if f in dict(step.changes)) for f in range(len(members))]
    assert firsts == sorted(firsts)


@given(learnt_paths())
def test_submodels_are_consistent(case: Case) -> None:
    """Each sums to 1, and to that of the class."""
    path = path_of(case[2])
    for logs in path.logs:
        np.testing.assert_allclose(np.exp(logs).sum(axis=0), np.exp(path.class_logs), rtol=1e-12)
    assert np.exp(path.class_logs).sum() == pytest.approx(1.0)


@given(learnt_paths())
def test_families_have_the_shapes_of_their_attributes(case: Case) -> None:
    data, regions, learnt, _ = case
    families = path_of(learnt).families
    for family in families:
        assert family.child is None
        assert family.shape == tuple(data.schema.cardinalities[i] for i in family.attributes)
    assert set(regions.regions) <= {family.attributes for family in families}


def test_weights_are_shares_of_the_posterior() -> None:
    assert posterior_weights([math.log(1) - 5000, math.log(3) - 5000]) == pytest.approx((0.25, 0.75))
    assert posterior_weights([-1e9, 0.0, -math.inf]) == (0.0, 1.0, 0.0)
    assert posterior_weights([-math.inf, -math.inf]) == (1.0, 0.0)


@given(learnt_paths())
def test_one_table_for_each_chosen_region_is_the_same_model(case: Case) -> None:
    data, regions, learnt, theta = case
    tables = region_tables(Counts(data), regions, theta)
    assert tables.families == regions.families(data.schema.cardinalities)
    last = path_of(learnt).tables(len(regions.regions))
    one, other = (Model(data.schema, regions, t, Recipe(), 1, "0") for t in (tables, last))
    np.testing.assert_allclose(scored(one, data), scored(other, data), atol=1e-9)


@pytest.mark.parametrize(("posteriors", "best"), [((-5.0, -3.0, -3.0), 1), ((-3.0, -3.0, -4.0), 0), ((-3.0, -2.0), 1)])
def test_the_best_step_is_the_first_of_highest_posterior(posteriors: tuple[float, ...], best: int) -> None:
    steps = tuple(PathStep((), (), 1, -1.0, posterior, 0.0) for posterior in posteriors)
    assert Path(np.zeros(2), (), (), steps).best == best


def scored(model: Model, data: Dataset) -> np.ndarray:
    scorer = compile_scorer(model)
    return log_probabilities(scorer, [data.codes[i] for i in scorer.used], data.n_rows)


def test_naive_bayes_is_the_singles() -> None:
    """ln P(y) + sum over attributes of ln P(x_i, y) - ln P(y)."""
    data = random_dataset(50, (2, 3), 3)
    tables = region_tables(Counts(data), Regions(((0,), (1,))), 1.0)
    counts = np.bincount(data.labels, minlength=3)
    np.testing.assert_allclose(tables.bias, np.log((counts + 1 / 3) / 51))
    for i, n in enumerate((2, 3)):
        joint = np.array([[((data.codes[i] == v) & (data.labels == y)).sum() for y in range(3)] for v in range(n)])
        np.testing.assert_allclose(tables.weights[i], np.log((joint + 1 / (3 * n)) / 51) - tables.bias)


def test_joined_intervals_are_an_attribute_of_their_own() -> None:
    data = random_dataset(200, (4, 2), 2)
    grouping = (0, 0, 1, 1)
    regions = Regions(((0,), (0, 1)), bins=(None, 2), groupings=((None, None), (grouping, None)))
    tables = region_tables(Counts(data), regions, 1.0)
    assert [len(w) for w in tables.weights] == [4, 4]
    joined = dataset_of([data.codes[0], data.codes[0] // 2, data.codes[1]], data.labels, (4, 2, 2), 2)
    plain = region_tables(Counts(joined), Regions(((0,), (1, 2))), 1.0)
    for one, other in zip(tables.weights, plain.weights, strict=True):
        np.testing.assert_allclose(one, other)
    with pytest.raises(BncliError, match="coarser intervals; use --param discriminative"):
        require_regions(regions)


def test_a_network_is_refused() -> None:
    with pytest.raises(BncliError, match=r"need regions, .* use --structure kikuchi"):
        require_regions(Dag(((),), (0,)))


@given(datasets(), st.sampled_from([0.1, 1.0, 7.0]))
def test_submodels_are_smoothed_frequencies_that_agree(data: Dataset, theta: float) -> None:
    whole = tuple(range(len(data.codes)))
    regions = list(subsets(whole))
    slow = kikuchi_oracle.Slow(data, theta)
    [*found, joint] = log_submodels(Counts(data), [*regions, whole], theta)
    for region, logs in zip(regions, found, strict=True):
        np.testing.assert_allclose(np.exp(logs), slow.submodel(region), rtol=1e-12)
        dropped = tuple(i for i in whole if i not in region)
        np.testing.assert_allclose(np.exp(joint).sum(axis=dropped), np.exp(logs), rtol=1e-9)


@given(datasets(), st.integers(0, 31))
def test_a_region_adds_the_submodels_of_its_subsets(data: Dataset, chosen: int) -> None:
    whole = tuple(range(len(data.codes)))
    covered = [s for k, s in enumerate(subsets(whole)) if chosen >> k & 1]
    changes = counting_changes(covered)
    counts = Counts(data)
    [table] = counts.tables([whole])
    found = score_table(table, whole, changes, data.total_weight, 1.0).reshape(table.shape)
    expected = np.zeros(table.shape)
    for region, change in changes.items():
        [logs] = log_submodels(counts, [region], 1.0)
        shape = tuple(n if i in region else 1 for i, n in enumerate(table.shape[:-1]))
        expected += change * logs.reshape(*shape, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(ASCENDING)
def test_counting_numbers_of_the_region_graph(regions: list[tuple[int, ...]]) -> None:
    covered: set[tuple[int, ...]] = {()}
    numbers = Counter({frozenset[int](): 1})
    for region in regions:
        for changed, change in counting_changes(cover(covered, region)).items():
            numbers[frozenset(changed)] += change
    assert {r: c for r, c in numbers.items() if c} == region_graph(regions)


@given(ASCENDING)
def test_a_set_is_covered_if_a_region_contains_it(regions: list[tuple[int, ...]]) -> None:
    covered: set[tuple[int, ...]] = {()}
    for region in regions:
        before = set(covered)
        assert set(cover(covered, region)) == covered - before
    subsets = [s for size in range(6) for s in itertools.combinations(range(5), size)]
    assert covered == {s for s in subsets if not s or any(set(s) <= set(region) for region in regions)}


def test_two_attributes_share_the_class() -> None:
    assert counting_changes(cover({(), (0,)}, (1,))) == {(1,): 1, (): -1}
