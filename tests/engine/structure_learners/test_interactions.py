"""Interactions: planted ones are found, the rest is left out; laws of the result.

Grids and regions with cuts of their own: against enumeration, loops over rows, and properties.

The quick fit: close to the optimum, over regrouped and plain attributes alike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_sample
from bncli.engine.optimizers.quasi_newton import Optimum
from bncli.engine.parameter_learners.conditional import learn_discriminative
from bncli.engine.parameters.cut_grids import Axis, Grid
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum_from
from bncli.engine.structure_learners import interactions
from bncli.engine.structure_learners.interactions import GrownRegion, additive_fit, grow_regions
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Family, Regions
from bncli.watch import Event, Note
from tests.datasets import dataset_of, random_dataset
from tests.effects import mixed_dataset, mixed_datasets
from tests.engine.structure_learners.test_interaction_gains import gains_of, probabilities
from tests.strategies import datasets
from tests.sweeps import examples

Array = NDArray[np.float64]
Starts = tuple[tuple[int, ...], ...]
Problem = tuple[Array, tuple[Axis, ...], float]


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


def worth(sums: Array, starts: Starts, penalty: float, price: float = 1.0) -> float:
    """Cell by cell, class by class, code by code."""
    total, n_classes = 0.0, len(sums) // 2
    groups = [
        [range(first, last) for first, last in itertools.pairwise((*s, n))]
        for s, n in zip(starts, sums.shape[1:], strict=True)
    ]
    for cell in itertools.product(*groups):
        for y in range(n_classes):
            g = sum(sums[(y, *codes)] for codes in itertools.product(*cell))
            h = sum(sums[(n_classes + y, *codes)] for codes in itertools.product(*cell))
            total += (g * g - price * h) / (2 * (h + penalty))
    return total


def refinements(starts: Starts, axes: Sequence[Axis]) -> list[Starts]:
    """Every grid with one cut more."""
    return [
        (*starts[:j], tuple(sorted((*starts[j], code))), *starts[j + 1 :])
        for j, axis in enumerate(axes)
        for code in range(1, axis.n_ordered)
        if code not in starts[j]
    ]


def slowly_grown(sums: Array, axes: Sequence[Axis], penalty: float, most: int, least: float) -> Starts:
    uncut: Starts = tuple(tuple(axis.uncut) for axis in axes)
    firsts = [[(c,) for c in range(1, axis.n_ordered)] or [()] for axis in axes]
    begun = [
        tuple(tuple(sorted(s + c)) for s, c in zip(uncut, some, strict=True)) for some in itertools.product(*firsts)
    ]
    starts = max(begun, key=lambda one: round(worth(sums, one, penalty), 9))
    while True:
        larger = [one for one in refinements(starts, axes) if np.prod([len(s) for s in one]) <= most]
        best = max(larger, key=lambda one: round(worth(sums, one, penalty), 9), default=starts)
        if not worth(sums, best, penalty) > worth(sums, starts, penalty) + max(least, 1e-9):
            return starts
        starts = best


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Sums of one to three attributes of few codes: all intervals, some of them levels, or intervals and a missing
    level; some cells without rows."""
    axes = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 5))
        axes.append(Axis(n, draw(st.sampled_from([0, n, n - 1]))))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    shape = (draw(st.integers(1, 3)), *(axis.n_codes for axis in axes))
    h = rng.gamma(1.0, 3.0, shape) * (rng.random(shape[1:]) < 0.8)
    sums = np.concatenate([rng.normal(0, 2, shape) * np.sqrt(h), h])
    return sums, tuple(axes), draw(st.sampled_from([0.5, 1.0, 10.0]))


@given(problems(), st.integers(1, 40), st.sampled_from([0.0, 0.3, 2.0]))
def test_every_cut_tried_in_turn(problem: Problem, most: int, least: float) -> None:
    sums, axes, penalty = problem
    grid = Grid(sums, axes, penalty)
    grid.grow(most, least)
    assert tuple(map(tuple, grid.starts)) == slowly_grown(sums, axes, penalty, most, least)
    assert grid.value == pytest.approx(worth(sums, tuple(map(tuple, grid.starts)), penalty))


@given(problems())
def test_without_a_price_a_refinement_loses_nothing_but_what_the_penalty_takes(
    problem: Problem,
) -> None:
    """(a + b)^2 / (c + d) <= a^2 / c + b^2 / d: so no refinement has a negative gain where nothing is corrected."""
    sums, axes, *_ = problem
    starts: Starts = tuple(tuple(axis.uncut) for axis in axes)
    for finer in refinements(starts, axes):
        assert worth(sums, finer, 1e-9, 0.0) >= worth(sums, starts, 1e-9, 0.0) - 1e-6


@given(problems())
def test_what_a_cut_is_worth_is_what_it_makes_of_the_grid(problem: Problem) -> None:
    sums, axes, penalty = problem
    grid = Grid(sums, axes, penalty)
    for j, axis in enumerate(axes):
        best, same, code = grid.best_cut(j)
        assert same == j
        if axis.n_ordered < 2:
            assert best == -np.inf
            continue
        grid.starts[j] = sorted([*grid.starts[j], code])
        assert grid.value == pytest.approx(best, abs=1e-9)


def test_two_cuts_at_once_find_what_neither_attribute_says_alone() -> None:
    """Opposite corners: every margin of g is 0, so that a cut through one attribute gains nothing by itself."""
    g = np.where(np.equal.outer(np.arange(8) < 2, np.arange(8) < 6), 1.0, -1.0)
    g -= g.mean(axis=0) + g.mean(axis=1)[:, np.newaxis] - g.mean()
    grid = Grid(np.stack([10 * g, np.full((8, 8), 5.0)]), (Axis(8, 8), Axis(8, 8)))
    grid.grow(64)
    assert grid.starts == [[0, 2], [0, 6]]


def test_no_more_cells_than_asked_for() -> None:
    rng = np.random.default_rng(0)
    sums = np.concatenate([rng.normal(0, 50, (1, 12, 12)), np.full((1, 12, 12), 4.0)])
    grid = Grid(sums, (Axis(12, 12), Axis(12, 12)))
    grid.grow(30)
    assert 20 < len(grid.starts[0]) * len(grid.starts[1]) <= 30


def grown(data: Dataset, sets: list[tuple[int, ...]]) -> list[GrownRegion]:
    """Beside single attributes whose tables are anything."""
    families = [Family(s, (data.schema.cardinalities[s[0]],), None) for s in ((i,) for i in data.schema.informative)]
    likelihood = conditional_likelihood(data, families)
    cells = np.random.default_rng(0).normal(size=(data.n_labels, likelihood.n_cells))
    return grow_regions(likelihood, cells, sets, 40)


@given(mixed_datasets())
def test_gains_are_those_of_the_cells_row_by_row(data: Dataset) -> None:
    informative = data.schema.informative
    sets = [tuple(informative[: n + 1]) for n in range(min(3, len(informative)))]
    gains = gains_of(data, [(i,) for i in informative])
    found = grow_regions(gains.likelihood, gains.cells, sets, 40)
    assert [one.gain for one in found] == sorted((one.gain for one in found), reverse=True)
    assert {one.attributes for one in found} == set(sets)
    for one in found:
        sums: dict[tuple[tuple[int, ...], int], list[float]] = {}
        for t in range(data.n_rows):
            codes = [int(data.codes[i][t]) for i in one.attributes]
            cell = tuple(c if m is None else m[c] for c, m in zip(codes, one.groupings, strict=True))
            weight = 1.0 if data.weights is None else float(data.weights[t])
            for y, p in enumerate(probabilities(gains, t)):
                pair = sums.setdefault((cell, y), [0.0, 0.0])
                pair[0] += weight * (float(data.labels[t] == y) - p)
                pair[1] += weight * p * (1 - p)
        assert one.gain == pytest.approx(sum((g * g - h) / (2 * (h + 1.0)) for g, h in sums.values()), abs=1e-9)


def rows(n_rows: int = 600) -> Dataset:
    return mixed_dataset(random_dataset(n_rows, (12, 9, 3, 6), 3), ["numeric", "missing", "categorical", "numeric"])


SETS: list[tuple[int, ...]] = [(0,), (0, 1), (0, 2), (1, 3), (0, 1, 3), (1, 2, 3)]


def test_twice_is_weight_two_and_order_is_nothing() -> None:
    data = rows()
    twice = grown(data.take(np.repeat(np.arange(600), 2)), SETS)
    heavy = grown(replace(data, weights=np.full(600, 2.0)), SETS)
    shuffled = grown(data.take(np.random.default_rng(1).permutation(600)), SETS)
    for one, other in ((twice, heavy), (grown(data, SETS), shuffled)):
        assert [(r.attributes, r.groupings) for r in one] == [(r.attributes, r.groupings) for r in other]
        np.testing.assert_allclose([r.gain for r in one], [r.gain for r in other], rtol=1e-9, atol=1e-9)


def test_threads_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 100)
    data = rows()
    found = grown(data, SETS)
    assert grown(replace(data, threads=3), SETS) == found
    monkeypatch.setattr(interactions, "SUMS_AT_A_TIME", 1)
    assert grown(data, SETS) == found


def test_groupings_join_neighbours_and_leave_levels_and_the_missing_level_apart() -> None:
    data = rows()
    for one in grown(data, SETS):
        for i, grouping in zip(one.attributes, one.groupings, strict=True):
            attribute = data.schema.attributes[i]
            if grouping is None:
                continue
            assert i != 2
            assert set(np.diff(grouping)) <= {0, 1}
            assert len(grouping) == attribute.cardinality
            assert not attribute.missing or grouping[-1] > grouping[-2]
            assert grouping[attribute.n_values - 1] > 0  # every numeric attribute is cut


def test_a_region_of_many_codes_is_seen_through_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    monkeypatch.setattr(interactions, "MAX_SUMS", 6 * 9)
    monkeypatch.setattr(interactions, "FEWEST_BINS", 3)
    attributes = tuple(replace(a, frequencies=(600 / a.cardinality,) * a.cardinality) for a in data.schema.attributes)
    coarse = grown(replace(data, schema=replace(data.schema, attributes=attributes)), [(0, 3)])
    assert all(grouping is not None and max(grouping) < 3 for grouping in coarse[0].groupings)


def test_as_many_cells_as_the_rows_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "LEAST_CELLS", 6)
    for rows_per_cell, most in ((100, 6), (60, 10)):
        monkeypatch.setattr(interactions, "ROWS_PER_CELL", rows_per_cell)
        found = grown(rows(), [(0, 3)])[0].groupings
        assert 4 <= math.prod(max(grouping) + 1 for grouping in found if grouping) <= most


@settings(max_examples=examples(6))
@given(mixed_datasets(), st.sampled_from([0.5, 3.0]))
def test_close_to_the_optimum(data: Dataset, penalty: float) -> None:
    regions = Regions(tuple((i,) for i in data.schema.informative))
    likelihood, cells, *_ = additive_fit(data, regions.families(data.schema.cardinalities), penalty)
    best = learn_discriminative(
        Counts(data),
        regions,
        coding="thermometer",
        settings=OptimizerSettings("zero", penalty, 0.0, "newton", 1e-12, 500),
    )
    cll, gradient = likelihood.value_and_gradient(cells)
    assert gradient.shape == cells.shape == (data.n_labels, likelihood.n_cells)
    assert cll == pytest.approx(best.cll, rel=0.02, abs=0.02 * data.n_rows)


def test_the_penalty_is_10() -> None:
    data = random_dataset(150, (4, 5, 3), 3, seed=4)
    regions = Regions(((0,), (1,), (2,)))
    likelihood, cells, *_ = additive_fit(data, regions.families((4, 5, 3)))
    best = {
        penalty: learn_discriminative(
            Counts(data),
            regions,
            coding="thermometer",
            settings=OptimizerSettings("zero", penalty, 0.0, "newton", 1e-12, 500),
        ).cll
        for penalty in (3.0, 10.0, 30.0)
    }
    assert best[30.0] < 1.02 * best[10.0] < 1.04 * best[3.0]
    assert likelihood.value_and_gradient(cells)[0] == pytest.approx(best[10.0], rel=0.005)


def test_the_class_alone() -> None:
    data = random_dataset(200, (2, 3), 3)
    _, cells, *_ = additive_fit(data, (), 1e-6)
    shares = np.exp(cells[:, 0]) / np.exp(cells[:, 0]).sum()
    np.testing.assert_allclose(shares, np.bincount(data.labels) / 200, atol=1e-3)


def test_coarse_families_have_tables_of_coarse_codes() -> None:
    data = mixed_dataset(random_dataset(100, (6, 5), 2), ["numeric", "numeric"])
    groupings = (((0, 0, 1, 1, 2, 2), None),)
    families = Regions(((0,), (1,)), bins=(3,), groupings=groupings).families((6, 5))
    _, cells, *_ = additive_fit(data, families)
    assert cells.shape == (2, 1 + 3 + 5)


@settings(max_examples=examples(6))
@given(mixed_datasets())
def test_from_a_smaller_fit_the_optimum_is_the_same(data: Dataset) -> None:
    informative, cardinalities = data.schema.informative, data.schema.cardinalities
    singles = Regions(tuple((i,) for i in informative)).families(cardinalities)
    pairs = Regions(tuple(itertools.combinations(informative, 2))).families(cardinalities)
    penalty = 3.0
    for families in (singles, (*pairs, *singles[1:])):
        first = additive_fit(data, singles, penalty)
        again = additive_fit(data, families, penalty, smaller=first)
        anew = additive_fit(data, families, penalty)
        cll, expected = (fit.likelihood.value_and_gradient(fit.cells)[0] for fit in (again, anew))
        assert cll == pytest.approx(expected, rel=0.02, abs=0.02 * data.n_rows)


def test_known_effects_are_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the smaller fit are those at which the larger one begins, wherever its families stand."""
    data = random_dataset(150, (4, 5, 3), 3, seed=4)
    singles = Regions(((0,), (1,), (2,))).families((4, 5, 3))
    pair = Regions(((0, 1),)).families((4, 5, 3))
    smaller, starts = additive_fit(data, singles), []

    def stay(space: ParameterSpace, settings: OptimizerSettings, point: np.ndarray) -> Optimum:
        starts.append(space.likelihood.value_and_gradient(space.coordinates.tables(point))[0])
        return find_optimum_from(space, settings, point)

    monkeypatch.setattr(interactions, "find_optimum_from", stay)
    additive_fit(data, (*pair, *reversed(singles)), smaller=smaller)
    assert starts == [pytest.approx(smaller.likelihood.value_and_gradient(smaller.cells)[0], rel=1e-12)]
