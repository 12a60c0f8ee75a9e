"""Which candidates there are, and what tables each has."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.ensembles.boosted_candidate import NAME as BOOSTED
from bncli.engine.ensembles.candidate_selection import space_of
from bncli.engine.ensembles.candidates import Fit, Rows, candidate, names
from bncli.engine.structure_learners.additive_fit import additive_fit
from bncli.engine.structures.structure import Regions
from tests.datasets import random_dataset
from tests.effects import mixed_dataset
from tests.engine.ensembles.rows import coded, mixed


def test_numbers_have_sharp_cuts_and_categories_sets_of_four() -> None:
    assert "sharp singles" in names(coded(mixed()))
    categories = random_dataset(40, (2, 3, 2, 2), 2)
    assert "quadruples" in names(categories)
    assert "sharp singles" not in names(categories)


def test_lines_only_where_there_are_numbers_that_tell_something() -> None:
    categories = random_dataset(40, (3, 2), 2)
    assert "lines" not in names(categories)
    assert "lines" in names(mixed_dataset(categories, ("numeric", "categorical")))
    constant = mixed_dataset(random_dataset(40, (1, 3, 2), 2), ("numeric", "categorical", "categorical"))
    assert "lines" not in names(constant)


def test_lines_are_single_attributes_in_another_coding() -> None:
    rows = Rows(coded(mixed(200)))
    lines, singles = candidate(rows, "lines"), candidate(rows, "singles")
    assert lines.coding == "linear"
    assert [f.attributes for f in lines.families] == [f.attributes for f in singles.families]
    assert not any(family.groupings for family in lines.families)
    assert not lines.has_tables_of(singles)
    assert not singles.has_tables_of(lines)
    slopes, steps = (space_of(rows.data, found).coordinates.n_parameters for found in (lines, singles))
    assert slopes == 2 * (1 + 1 + 2 + 2 + 4)  # two classes: bias, x, z, a, b; z and b with a missing level
    assert slopes < steps


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_attributes_have_few_candidates(n: int) -> None:
    data = random_dataset(30, (2,) * n, 2)
    found = names(data)
    assert found[0] == "singles"
    assert ("pairs" in found) == (n > 1)
    assert ("triples" in found) == (n > 2)


def test_all_pairs_only_of_so_many_attributes() -> None:
    assert "all pairs" in names(random_dataset(20, (2,) * 20, 2))
    assert "all pairs" not in names(random_dataset(20, (2,) * 21, 2))


def test_every_candidate_has_tables_over_codes_that_there_are() -> None:
    data = coded(mixed(200))
    rows = Rows(data)
    for name in set(names(data)) - {BOOSTED}:
        found = candidate(rows, name)
        assert found.name == name
        for family in found.families:
            for (i, grouping), width in zip(family.binned_attributes, family.shape, strict=True):
                assert width == (data.schema.cardinalities[i] if grouping is None else max(grouping) + 1)
                assert grouping is None or len(grouping) == data.schema.cardinalities[i]


def test_larger_sets_join_smaller_ones() -> None:
    rows = Rows(coded(mixed(200)))
    singles, pairs, triples = (candidate(rows, name).structure for name in ("singles", "pairs", "triples"))
    assert isinstance(singles, Regions)
    assert isinstance(pairs, Regions)
    assert isinstance(triples, Regions)
    assert pairs.regions[:4] == singles.regions == ((0,), (1,), (2,), (3,))
    assert triples.regions[: len(pairs.regions)] == pairs.regions
    assert pairs.regions[4] == (2, 3)


def test_all_pairs_are_the_pairs_where_there_are_few() -> None:
    rows = Rows(coded(mixed(200)))
    assert candidate(rows, "pairs").has_tables_of(candidate(rows, "all pairs"))
    assert not candidate(rows, "pairs").has_tables_of(candidate(rows, "tree"))


def test_triples_may_build_on_all_pairs() -> None:
    rows = Rows(coded(mixed(200)), below={"pairs": "singles", "triples": "all pairs"})
    pairs, triples = (candidate(rows, name).structure for name in ("all pairs", "triples"))
    assert isinstance(pairs, Regions)
    assert isinstance(triples, Regions)
    assert set(pairs.regions) < set(triples.regions)
    assert {len(region) for region in set(triples.regions) - set(pairs.regions)} == {3}


def test_a_fit_that_followed_its_rows_is_not_asked_what_it_lacks() -> None:
    data = coded(mixed(300))
    plain = Rows(data)
    likelihood, cells = additive_fit(data, candidate(plain, "singles").families)
    wrong = {"singles": Fit(likelihood, 3.0 * np.random.default_rng(1).standard_normal(cells.shape))}
    gentle, firm = (Rows(data, fits=dict(wrong), penalties={"singles": penalty}) for penalty in (9.0, 10.0))
    first, second, third = (candidate(rows, "pairs").structure for rows in (plain, gentle, firm))
    assert first == second
    assert first != third
