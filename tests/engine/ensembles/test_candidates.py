"""Which candidates there are, how their attributes are cut, and what tables they have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bncli.engine.data.columns import NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.discretizers.mdl import cut_points
from bncli.engine.ensembles import candidates
from bncli.engine.ensembles.boosted_bag import BOOSTED
from bncli.engine.ensembles.candidates import CandidateFinder, Capacity, Fit, candidate_names, capacity_for
from bncli.engine.ensembles.held_out_evaluation import parameter_space
from bncli.engine.structure_learners.interactions import additive_fit
from bncli.engine.structures.regrouping import group_intervals
from bncli.engine.structures.structure import Regions
from tests.datasets import random_dataset
from tests.effects import mixed_dataset
from tests.engine.ensembles.rows import coded, mixed


def test_numbers_have_sharp_cuts_and_categories_sets_of_four() -> None:
    assert "sharp singles" in candidate_names(coded(mixed()))
    categories = random_dataset(40, (2, 3, 2, 2), 2)
    assert "quadruples" in candidate_names(categories)
    assert "sharp singles" not in candidate_names(categories)


def test_lines_need_informative_numbers() -> None:
    categories = random_dataset(40, (3, 2), 2)
    assert "lines" not in candidate_names(categories)
    assert "lines" in candidate_names(mixed_dataset(categories, ("numeric", "categorical")))
    constant = mixed_dataset(random_dataset(40, (1, 3, 2), 2), ("numeric", "categorical", "categorical"))
    assert "lines" not in candidate_names(constant)


def test_lines_are_single_attributes_in_another_coding() -> None:
    rows = CandidateFinder(coded(mixed(200)))
    lines, singles = rows.find("lines"), rows.find("singles")
    assert lines.coding == "linear"
    assert [f.attributes for f in lines.families] == [f.attributes for f in singles.families]
    assert not any(family.groupings for family in lines.families)
    assert not lines.is_same_model(singles)
    assert not singles.is_same_model(lines)
    slopes, steps = (parameter_space(rows.data, found).coordinates.n_parameters for found in (lines, singles))
    assert slopes == 2 * (1 + 1 + 2 + 2 + 4)  # two classes: bias, x, z, a, b; z and b with a missing level
    assert slopes < steps


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_attributes_have_few_candidates(n: int) -> None:
    data = random_dataset(30, (2,) * n, 2)
    found = candidate_names(data)
    assert found[0] == "singles"
    assert ("pairs" in found) == (n > 1)
    assert ("triples" in found) == (n > 2)


def test_all_pairs_have_a_limit_of_attributes() -> None:
    assert "all pairs" in candidate_names(random_dataset(20, (2,) * 20, 2))
    assert "all pairs" not in candidate_names(random_dataset(20, (2,) * 21, 2))


def test_tables_of_candidates_fit_the_codes() -> None:
    data = coded(mixed(200))
    rows = CandidateFinder(data)
    for name in set(candidate_names(data)) - {BOOSTED}:
        found = rows.find(name)
        assert found.name == name
        for family in found.families:
            for (i, grouping), width in zip(family.binned_attributes, family.shape, strict=True):
                assert width == (data.schema.cardinalities[i] if grouping is None else max(grouping) + 1)
                assert grouping is None or len(grouping) == data.schema.cardinalities[i]


def test_larger_sets_are_added_to_smaller_ones() -> None:
    rows = CandidateFinder(coded(mixed(200)))
    singles, pairs, triples = (rows.find(name).structure for name in ("singles", "pairs", "triples"))
    assert isinstance(singles, Regions)
    assert isinstance(pairs, Regions)
    assert isinstance(triples, Regions)
    assert pairs.regions[:4] == singles.regions == ((0,), (1,), (2,), (3,))
    assert triples.regions[: len(pairs.regions)] == pairs.regions
    assert pairs.regions[4] == (2, 3)


def test_with_few_attributes_pairs_are_all_pairs() -> None:
    rows = CandidateFinder(coded(mixed(200)))
    assert rows.find("pairs").is_same_model(rows.find("all pairs"))
    assert not rows.find("pairs").is_same_model(rows.find("tree"))


def test_triples_may_build_on_all_pairs() -> None:
    rows = CandidateFinder(coded(mixed(200)), builds_on={"pairs": "singles", "triples": "all pairs"})
    pairs, triples = (rows.find(name).structure for name in ("all pairs", "triples"))
    assert isinstance(pairs, Regions)
    assert isinstance(triples, Regions)
    assert set(pairs.regions) < set(triples.regions)
    assert {len(region) for region in set(triples.regions) - set(pairs.regions)} == {3}


def test_residuals_of_an_overfitted_candidate_are_not_used() -> None:
    data = coded(mixed(300))
    plain = CandidateFinder(data)
    likelihood, cells, *_ = additive_fit(data, plain.find("singles").families)
    wrong = {"singles": Fit(likelihood, 3.0 * np.random.default_rng(1).standard_normal(cells.shape))}
    gentle, firm = (CandidateFinder(data, fits=dict(wrong), penalties={"singles": penalty}) for penalty in (9.0, 10.0))
    first, second, third = (rows.find("pairs").structure for rows in (plain, gentle, firm))
    assert first == second
    assert first != third


def test_few_rows_have_the_least_capacity() -> None:
    assert capacity_for(3_000) == capacity_for(1) == Capacity((None, 8, 4), 3, 2, 2)


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (3_001, Capacity((None, 8, 4, 4), 3, 2, 2)),
        # 200 cells: 14 squared, 5 to the power of 3, 3 to the power of 4; 1.607 times as many sets
        (20_000, Capacity((None, 14, 5, 4), 4, 3, 3)),
        # 100, 21 and 10 would be too fine; 4.273 times
        (1_000_000, Capacity((None, 20, 8, 6), 12, 8, 8)),
    ],
)
def test_more_rows_allow_more_and_finer_sets_within_bounds(n_rows: int, expected: Capacity) -> None:
    assert capacity_for(n_rows) == expected


def test_capacity_never_falls_with_more_rows() -> None:
    sizes = [capacity_for(n) for n in (1, 3_000, 3_001, 10_000, 100_000, 10**8)]
    for size, larger in itertools.pairwise(sizes):
        assert (size.pairs, size.triples, size.quadruples) <= (larger.pairs, larger.triples, larger.quadruples)
        for k in (1, 2):
            assert (size.bins[k] or 0) <= (larger.bins[k] or 0)


@pytest.mark.parametrize("n_rows", [90, candidates.MANY_ROWS - 1])
def test_few_rows_have_half_as_many_intervals_in_single_attributes(n_rows: int) -> None:
    data = coded(mixed(n_rows))
    assert data.schema.attributes[0].n_values == min(n_rows, candidates.FINEST)
    single = CandidateFinder(data).single_groupings[0]
    assert single is not None
    assert max(single) + 1 == candidates.SINGLE_INTERVALS // 2
    assert isinstance(data.schema.attributes[2], CategoricalAttribute)
    assert CandidateFinder(data).single_groupings[2] is None


def test_with_many_rows_single_attributes_have_the_sharp_cuts_too() -> None:
    data = coded(mixed(candidates.MANY_ROWS))
    steps, sharp, single = (
        group_intervals(data.schema.attributes[0], candidates.SINGLE_INTERVALS),
        CandidateFinder(data).mdl_groupings[0],
        CandidateFinder(data).single_groupings[0],
    )
    assert steps is not None
    assert sharp is not None
    assert single is not None
    for code in range(1, len(single)):
        parted = steps[code] != steps[code - 1] or sharp[code] != sharp[code - 1]
        assert single[code] - single[code - 1] == parted


def test_with_many_rows_the_sharp_cuts_are_among_the_fine_ones() -> None:
    columns = mixed(candidates.MANY_ROWS)
    attribute, column = coded(columns).schema.attributes[0], columns.attributes["x"]
    assert isinstance(attribute, NumericAttribute)
    assert isinstance(column, NumericColumn)
    assert columns.label is not None
    sharp = cut_points(column.values, columns.label.codes.astype(np.uint8), 2, None)
    assert sharp
    assert set(sharp) < set(attribute.cuts)


def test_a_sharp_binning_joins_the_intervals_between_the_cuts_of_these_rows() -> None:
    data = coded(mixed(400))
    grouping = CandidateFinder(data).mdl_groupings[0]
    assert grouping is not None
    cuts = cut_points(data.codes[0], data.labels, 2, None)
    assert grouping == tuple(int(sum(code > cut for cut in cuts)) for code in range(data.schema.cardinalities[0]))


def test_missing_values_stay_apart_in_an_mdl_binning() -> None:
    data = coded(mixed(400))
    grouping = CandidateFinder(data).mdl_groupings[1]
    assert grouping is not None
    assert grouping[-1] == max(grouping[:-1]) + 1
    assert CandidateFinder(data).mdl_groupings[3] is None


@pytest.mark.parametrize(
    ("penalties", "factor"),
    [
        ({}, 1.0),
        ({"singles": 1.0}, 1.0),
        ({"pairs": 30.0, "triples": 300.0}, 1.0),
        ({"singles": 3.0, "pairs": 3.0}, 1.0),
        ({"singles": 10.0, "pairs": 1.0}, 1.0),
        ({"singles": 1.0, "pairs": 0.99 * 9.0}, 1.0),
        ({"singles": 1.0, "pairs": 9.0}, 9.0),
        ({"singles": 0.3, "pairs": 30.0}, 100.0),
    ],
)
def test_best_penalties_a_decade_apart_raise_the_penalty_of_larger_sets(
    penalties: dict[str, float], factor: float
) -> None:
    assert CandidateFinder(random_dataset(20, (2, 2), 2), penalties=penalties).interaction_factor == pytest.approx(
        factor
    )
