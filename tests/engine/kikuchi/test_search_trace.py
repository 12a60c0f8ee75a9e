"""Steps of a search, degrees of freedom and bootstrap losses against slow oracles."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import SplitBy
from bncli.engine.kikuchi import search_trace
from bncli.engine.kikuchi.candidate_gains import Candidates, all_sets
from bncli.engine.kikuchi.model_paths import cover
from bncli.engine.kikuchi.search_trace import (
    DegreesOfFreedom,
    GrowingModel,
    Resampling,
    bootstrap_log_losses,
    follow,
    log_priors,
    with_log_losses,
)
from bncli.engine.structure_learners import kikuchi
from bncli.engine.structures.structure import Regions
from bncli.watch import Event, Progress
from tests import kikuchi_oracle, oracles
from tests.datasets import dataset_of, random_dataset
from tests.strategies import datasets

Region = tuple[int, ...]


@st.composite
def paths(draw: st.DrawFn) -> tuple[Dataset, list[Region]]:
    data = draw(datasets())
    members = st.integers(0, len(data.codes) - 1)
    region = st.lists(members, min_size=1, max_size=4, unique=True).map(sorted).map(tuple)
    return data, draw(st.lists(region, max_size=6))


@given(paths(), st.sampled_from([0.2, 1.0]), st.sampled_from(["conditional", "joint", "structural-zeros"]))
def test_every_step_is_the_model_rebuilt(case: tuple[Dataset, list[Region]], theta: float, kind: str) -> None:
    data, regions = case
    found = follow(Counts(data), regions, theta, degrees_of_freedom=kind)
    slow = kikuchi_oracle.Slow(data, theta, kind)
    steps = [slow.step(regions[:s]) for s in range(len(regions) + 1)]
    assert found.df == tuple(step.df for step in steps)
    np.testing.assert_allclose(found.log_likelihood, [step.log_likelihood for step in steps], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.log_posterior, [step.log_posterior for step in steps], rtol=1e-9, atol=1e-9)
    assert found.map_step == found.log_posterior.index(max(found.log_posterior))


@given(datasets())
def test_single_attributes_make_naive_bayes(data: Dataset) -> None:
    singles = [(i,) for i in range(len(data.codes))]
    assert follow(Counts(data), singles, 1.0).log_likelihood[-1] == pytest.approx(
        _network(data, dict.fromkeys(range(len(data.codes)), ())), rel=1e-9
    )


@given(datasets(), st.randoms())
def test_the_pairs_of_a_tree_make_its_network(data: Dataset, random: object) -> None:
    n = len(data.codes)
    parents: dict[int, Region] = {0: ()}
    for i in range(1, n):
        parents[i] = (random.randrange(i),)  # type: ignore[attr-defined]
    pairs = [tuple(sorted((i, *listed))) for i, listed in parents.items()]
    assert follow(Counts(data), pairs, 1.0).log_likelihood[-1] == pytest.approx(_network(data, parents), rel=1e-9)


@given(datasets())
def test_overlapping_triples_make_a_chain_of_second_order(data: Dataset) -> None:
    n = len(data.codes)
    parents = {i: tuple(range(max(0, i - 2), i)) for i in range(n)}
    regions = [(*listed, i) for i, listed in parents.items()]
    assert follow(Counts(data), regions, 1.0).log_likelihood[-1] == pytest.approx(_network(data, parents), rel=1e-9)


def _network(data: Dataset, parents: dict[int, Region]) -> float:
    """The log-likelihood of the classes under P(y) prod P(x_i | parents, y), as ratios of submodels, row by row."""
    slow = kikuchi_oracle.Slow(data, 1.0)
    terms = []
    for t, w in enumerate(slow.weights):
        row = [int(codes[t]) for codes in data.codes]
        scores = np.log(slow.submodel(()))
        for i, listed in parents.items():
            above = slow.submodel(listed)[tuple(row[j] for j in listed)]
            family = tuple(sorted((i, *listed)))
            scores = scores + np.log(slow.submodel(family)[tuple(row[j] for j in family)] / above)
        terms.append(w * oracles.log_posterior(scores.tolist())[int(data.labels[t])])
    return math.fsum(terms)


def test_a_region_inside_the_model_changes_nothing() -> None:
    data = random_dataset(100, (2, 3, 2), 3, seed=1)
    found = follow(Counts(data), [(0, 1), (1,), (0, 1)], 1.0)
    assert len(set(found.df[1:])) == len(set(found.log_posterior[1:])) == 1


def test_tables_counted_before_change_no_bit() -> None:
    data = random_dataset(300, (2, 3, 2), 3, seed=1, weighted=True)
    counts = Counts(data)
    counts.tables([(0, 1, 2)])
    assert follow(counts, [(0,), (0, 2)], 1.0) == follow(Counts(data), [(0,), (0, 2)], 1.0)


def test_what_add_returns_is_new() -> None:
    growing = GrowingModel(Counts(random_dataset(50, (2, 2, 2), 2)), 1.0)
    assert growing.add((0, 1)) == [(0,), (1,), (0, 1)]
    assert growing.add((0, 2)) == [(2,), (0, 2)]
    assert growing.regions == [(0, 1), (0, 2)]


def test_the_prior() -> None:
    priors = log_priors(100.0, np.array([10.0, 98.0, 99.0, 1000.0]))
    assert priors.tolist() == [pytest.approx(-1000 / 89), -9800, -math.inf, -math.inf]
    np.testing.assert_array_equal(log_priors(100.0, np.array([0.0, 99.0])), [0, -math.inf])


def test_progress_is_told() -> None:
    events: list[Event] = []
    follow(Counts(random_dataset(50, (2, 2), 2)), [(0,), (1,)], 1.0, events.append)
    assert events == [Progress(0, 2, "regions"), Progress(1, 2, "regions")]


KINDS = ("conditional", "joint", "structural-zeros")


@given(datasets(max_attributes=4), st.sampled_from(KINDS), st.data())
def test_every_way_to_add_up_is_that_of_the_region_graph(data: Dataset, kind: str, draw: st.DataObject) -> None:
    members = st.lists(st.integers(0, len(data.codes) - 1), min_size=1, unique=True).map(sorted).map(tuple)
    regions: list[Region] = draw.draw(st.lists(members, max_size=5))
    rule, covered = DegreesOfFreedom(data, kind), {()}
    size = draw.draw(st.integers(1, len(data.codes)))
    sets = all_sets(range(len(data.codes)), size)
    candidates = Candidates(sets, rule.of_subsets(sets))
    total = rule.added([()])
    for region in regions:
        new = cover(covered, region)
        candidates.cover(new)
        total += rule.added(new)
    assert _at_least_the_class(total, data) == kikuchi_oracle.degrees_of_kind(data, regions, kind)
    for members_of, added in zip(map(tuple, sets.tolist()), candidates.added_df(), strict=True):
        expected = kikuchi_oracle.degrees_of_kind(data, [*regions, members_of], kind)
        assert _at_least_the_class(total + added, data) == expected


def _at_least_the_class(df: float, data: Dataset) -> float:
    return max(df, data.n_labels - 1)


def test_the_example_of_a_table_with_a_hole() -> None:
    """Two values, two classes; the second value never meets the second class: 3 cells with the class, 2 without."""
    data = dataset_of([np.array([0, 0, 1, 1])], np.array([0, 1, 0, 0]), (2,), 2)
    found = [GrowingModel(Counts(data), 1.0, degrees_of_freedom=kind) for kind in KINDS]
    for growing in found:
        growing.add((0,))
    assert [growing.df for growing in found] == [[1, 2], [1, 3], [1, 1]]


def test_a_copy_costs_nothing_with_structural_zeros() -> None:
    one = random_dataset(200, (3,), 2, seed=1)
    data = dataset_of([one.codes[0]] * 2, one.labels, (3, 3), 2)
    growing = GrowingModel(Counts(data), 1.0, degrees_of_freedom="structural-zeros")
    growing.add((0,))
    growing.add((0, 1))
    assert growing.df == [1, 3, 3]


def test_cycles_take_no_model_below_the_class_alone() -> None:
    one = random_dataset(200, (3,), 2, seed=1)
    data = dataset_of([one.codes[0]] * 4, one.labels, (3,) * 4, 2)
    growing = GrowingModel(Counts(data), 1.0, degrees_of_freedom="structural-zeros")
    for pair in all_sets(range(4), 2).tolist():
        growing.add(tuple(pair))
    assert sum(growing.rule.added(covered) for covered in ([()], [s for s in growing.covered if s])) < 1
    assert min(growing.df) == growing.df[-1] == 1
    assert growing.log_priors(np.array([-1.0])).tolist() == growing.log_priors(np.array([-9.0])).tolist()


def test_weights_and_threads_and_sorting_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(300, (3, 4, 2, 5), 3, seed=2)
    sets = all_sets(range(4), 3)
    expected = DegreesOfFreedom(data, "structural-zeros").of_subsets(sets)
    monkeypatch.setattr(search_trace, "DENSE", 0)
    monkeypatch.setattr(search_trace, "REGIONS_AT_A_TIME", 2)
    weighted = replace(data, weights=np.full(300, 0.5), threads=2)
    np.testing.assert_array_equal(DegreesOfFreedom(weighted, "structural-zeros").of_subsets(sets), expected)


@pytest.mark.usefixtures("small_blocks")
def test_cells_of_all_row_blocks_are_joined() -> None:
    data = random_dataset(4_000, (40, 30), 3, seed=2)
    rows = {tuple(map(int, row)) for row in zip(*data.codes, data.labels, strict=True)}
    expected = len(rows) - len({row[:2] for row in rows})
    rule = DegreesOfFreedom(data, "structural-zeros")
    assert rule.added([(), (0,), (1,), (0, 1)]) == expected


def test_giants_have_infinitely_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_trace, "MAX_ENTRIES", 20)
    rule = DegreesOfFreedom(random_dataset(50, (3, 4), 2), "structural-zeros")
    pair = rule.of_subsets(np.array([[0, 1]]))[0]
    assert pair[3] == math.inf
    assert np.isfinite(pair[:3]).all()


def test_a_giant_in_a_giant_adds_infinitely_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four subsets of the triple are too large to be counted; nothing is said of invalid numbers."""
    monkeypatch.setattr(search_trace, "MAX_ENTRIES", 8)
    rule = DegreesOfFreedom(random_dataset(50, (3, 3, 3), 2, seed=1), "structural-zeros")
    added = rule.of_subsets(np.array([[0, 1, 2]]))[0]
    assert np.isfinite(added[[1, 2, 4]]).all()
    assert added[[3, 5, 6, 7]].tolist() == [math.inf] * 4


REGIONS = ((0,), (1,), (0, 1), (2,), (1, 2))


def search(data: Dataset) -> Regions:
    return kikuchi.learn(Counts(data), max_order=4, theta=1.0, max_candidates=1000)


@given(datasets(), st.integers(0, 3), st.sampled_from([0.1, 1.0]))
def test_losses_are_those_of_models_rebuilt(data: Dataset, seed: int, theta: float) -> None:
    regions = [region for region in REGIONS if max(region) < len(data.codes)]
    resampling = Resampling(3, seed)
    found = bootstrap_log_losses(data, regions, theta, resampling)
    slow = [kikuchi_oracle.Slow(resample, theta) for resample in resampling.draw(data)]
    for step, loss in enumerate(found):
        each = [_loss(model, regions[:step], data) for model in slow]
        assert loss == pytest.approx(math.fsum(each) / 3, rel=1e-9)


def _loss(model: kikuchi_oracle.Slow, regions: list[tuple[int, ...]], rows: Dataset) -> float:
    logs = model.log_probabilities(regions, rows)
    return -math.fsum(w * logs[t][rows.labels[t]] for t, w in enumerate(oracles.weights_of(rows)))


@given(datasets(), st.integers(0, 9))
def test_a_resample_has_rows_of_the_table_and_its_weight(data: Dataset, seed: int) -> None:
    rows = {row[:-1] for row in _rows(data)}
    for resample in Resampling(2, seed).draw(data):
        assert {row[:-1] for row in _rows(resample)} <= rows
        assert resample.total_weight == pytest.approx(data.total_weight)
        unit = data.total_weight / max(round(data.total_weight), 1)
        counts = np.array(oracles.weights_of(resample)) / unit
        np.testing.assert_allclose(counts, np.round(counts), rtol=1e-9)


def _rows(data: Dataset) -> list[tuple[float, ...]]:
    return [*zip(*data.codes, data.labels, oracles.weights_of(data), strict=True)]


def test_rows_are_drawn_by_weight() -> None:
    data = dataset_of([np.arange(4)], np.array([0, 1, 0, 1]), (4,), 2, np.array([1.0, 0.5, 6.5, 2.0]))
    resamples = list(Resampling(400).draw(data))
    drawn = np.sum([np.bincount(one.codes[0], one.weights, 4) for one in resamples], axis=0)
    np.testing.assert_allclose(drawn / 4000, [0.1, 0.05, 0.65, 0.2], atol=0.03)


@given(datasets(), st.integers(0, 9), st.integers(1, 5))
def test_units_are_drawn_whole(data: Dataset, seed: int, size: int) -> None:
    units = np.random.default_rng(seed).permutation(data.n_rows) // size
    numbered = dataset_of([np.arange(data.n_rows)], data.labels, (data.n_rows,), data.n_labels, data.weights)
    for resample in Resampling(2, seed).draw(replace(numbered, split_by=SplitBy(units))):
        if size == 1:
            assert resample.total_weight == pytest.approx(data.total_weight)
            continue
        times = np.bincount(resample.codes[0], minlength=data.n_rows)
        drawn = {int(unit): set(times[units == unit].tolist()) for unit in units}
        assert all(len(each) == 1 for each in drawn.values())  # all rows of a unit equally often
        assert sum(min(each) for each in drawn.values()) == len(drawn)  # as many units as there are
        np.testing.assert_array_equal(resample.labels, data.labels[resample.codes[0]])
        assert (resample.weights is None) == (data.weights is None)


@given(datasets(), st.integers(0, 9))
def test_units_of_one_row_give_the_same_losses(data: Dataset, seed: int) -> None:
    regions = [region for region in REGIONS if max(region) < len(data.codes)]
    alone = replace(data, split_by=SplitBy(np.arange(data.n_rows)[::-1]))
    expected = bootstrap_log_losses(data, regions, 1.0, Resampling(2, seed))
    assert bootstrap_log_losses(alone, regions, 1.0, Resampling(2, seed)) == expected


def test_heavy_rows_take_no_memory() -> None:
    data = dataset_of([np.arange(2)], np.array([0, 1]), (2,), 2, np.array([1e12, 3e12]))
    (resample,) = Resampling(1).draw(data)
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
