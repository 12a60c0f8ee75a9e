"""Checks of tables: seeded defects are found, independent rows have no findings, and the measures by brute force."""

from __future__ import annotations

import itertools
import math
import os
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, KnownCuts, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.splits import SplitBy
from bncli.engine.evaluation.table_checks import (
    FADED,
    TableCheck,
    _agreement_within,
    _cramers_v,
    _explained,
    check_table,
    find_copies,
    too_good,
)
from bncli.engine.evaluation.value_ranks import rank_values
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.files.reading.values import narrow_codes
from bncli.steps.learning_inputs import check_training_table
from bncli.watch import Note, Run
from tests.table_defects import Defect, tables_with_defects, visits

DEFECTS = list(tables_with_defects())


def read(path: Path, **options: Any) -> tuple[Columns, Source]:
    source = Source((str(path),), **options)
    return read_columns(source), source


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_every_defect_is_found_with_the_option_to_add(defect: Defect, tmp_path: Path) -> None:
    table, source = read(defect.write(tmp_path), ignore=defect.ignored)
    events: list[Any] = []
    check = check_training_table(table, source, Run(watch=events.append))
    assert check is not None
    found = {finding.kind: finding for finding in check.findings}
    assert found[defect.kind].option == defect.option
    assert found.keys() <= {defect.kind, "grouped-rows", "repeated-rows"}
    notes = [event for event in events if isinstance(event, Note)]
    assert [note.text for note in notes] == [finding.message for finding in check.findings]
    assert all(note.warning for note in notes)
    assert all(finding.option in finding.message for finding in check.findings)
    assert all(0 < finding.rows <= table.n_rows for finding in check.findings)


def names(codes: np.ndarray) -> CategoricalColumn:
    n = int(codes.max()) + 1
    return CategoricalColumn(narrow_codes(codes, n), tuple(f"v{i:03}" for i in range(n)))


def columns_of(*columns: np.ndarray, labels: np.ndarray) -> Columns:
    made = {
        f"a{i}": NumericColumn(values) if values.dtype.kind == "f" else names(values)
        for i, values in enumerate(columns)
    }
    return Columns(len(labels), made, "class", names(labels))


@pytest.mark.parametrize("n_values", [2, 3, 5])
@pytest.mark.parametrize("n_attributes", [3, 6])
def test_rows_that_are_equal_by_chance_are_no_copies(n_values: int, n_attributes: int) -> None:
    rng = np.random.default_rng(n_values)
    design = rng.permutation(np.array(list(itertools.product(range(n_values), repeat=n_attributes))))[:3000].T
    for columns in (design, rng.integers(0, n_values, (n_attributes, 500))):
        labels = (columns[0] == columns[1]).astype(int)
        check = check_table(columns_of(*columns, labels=labels), {})
        if check is not None:
            assert check.findings == ()


def test_rows_that_stand_in_a_table_of_few_columns_three_times_are_copies() -> None:
    rng = np.random.default_rng(4)
    age, income, city = rng.integers(20, 80, 300), rng.lognormal(7, 0.5, 300).round(2), rng.integers(0, 3, 300)
    labels = (age + rng.normal(0, 20, 300) > 50).astype(np.int64)
    for times in (3, 1):
        rows = np.tile(np.arange(300), times)
        attributes = {
            "age": NumericColumn(age[rows].astype(np.float64)),
            "income": NumericColumn(income[rows]),
            "city": CategoricalColumn(city[rows], ("a", "b", "c")),
        }
        table = Columns(len(rows), attributes, "class", CategoricalColumn(labels[rows], ("n", "y")))
        check = check_table(table, {})
        assert check is not None
        assert [finding.kind for finding in check.findings] == ["repeated-rows"] * (times == 3)


def test_labels_that_change_fast_with_the_distance_are_copies_only_if_rows_are_too_near() -> None:
    """Labels of a chequered table fade with the distance as those of copies do; its rows are not near each other."""
    rng = np.random.default_rng(8)
    places = rng.random((2, 4000))
    labels = np.floor(16 * places).sum(axis=0).astype(int) % 2
    columns = columns_of(*places, labels=labels)
    rows = np.arange(4000)
    found = find_copies(columns.as_read, dict.fromkeys(columns.as_read, 4000), rows, labels)
    assert found.near.kappa > 0.5
    assert found.far.kappa < FADED * found.near.kappa
    assert not found.are_noisy


def test_independent_rows_have_no_findings_and_given_groups_are_not_found_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=600) for _ in range(6)]
    labels = (columns[0] + rng.normal(size=600) > 0).astype(int)
    check = check_table(columns_of(*columns, rng.integers(0, 100, 600), labels=labels), {})
    assert check is not None
    assert check.findings == ()
    visits, _ = read(DEFECTS[0].write(tmp_path))
    ids = visits.as_read["patient"]
    assert isinstance(ids, CategoricalColumn)
    attributes = {name: column for name, column in visits.attributes.items() if name != "patient"}
    split = SplitBy(units=ids.codes.astype(np.intp))
    grouped = check_table(replace(visits, attributes=attributes, split_by=split), {"patient": ids})
    assert grouped is not None
    assert grouped.findings == ()


def test_the_order_of_the_rows_does_not_matter_for_groups_leaks_and_drift(tmp_path: Path) -> None:
    for defect in DEFECTS:
        if defect.kind == "repeated-rows" or defect.ignored:
            continue
        table, _ = read(defect.write(tmp_path))
        order = np.random.default_rng(1).permutation(table.n_rows)
        one, other = check_table(table, {}), check_table(table.take(order), {})
        assert one is not None
        assert other is not None
        for kind in ("grouped-rows", "leak", "drift"):
            found, again = ([f for f in check.findings if f.kind == kind] for check in (one, other))
            assert found == again


def test_running_numbers_are_distinct_whole_numbers_without_wide_gaps() -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(200)
    cases: dict[str, tuple[np.ndarray, bool]] = {
        "counted": (order + 1000.0, True),
        "some left out": (rng.permutation(390)[:200] - 100.0, True),
        "wide gaps": (order * 3.0, False),
        "repeated": (np.where(order == 7, 8.0, order), False),
        "a fraction": (np.where(order == 7, 7.5, order), False),
        "missing": (np.where(order == 7, np.nan, order), False),
        "narrow integers": (((order - 100) * 300).astype(np.int16), False),
    }
    attributes = {name: NumericColumn(values) for name, (values, _) in cases.items()}
    check = check_table(Columns(200, attributes, "class", names(order % 2)), {})
    assert check is not None
    assert list(check.running_numbers) == [name for name, (_, is_running) in cases.items() if is_running]


def test_tables_that_cannot_be_checked() -> None:
    table = columns_of(np.arange(30.0), labels=np.arange(30) % 2)
    assert check_table(table, {}) is None
    assert check_table(replace(table, label=None), {}) is None


def explained(values: np.ndarray, labels: np.ndarray, units: np.ndarray | None = None) -> float:
    column = names(values)
    return _explained(rank_values(column), column, labels, 3, units)


def test_what_an_attribute_explains_is_that_of_leaving_out_each_row() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 6, 80)
    labels = np.where(rng.random(80) < 0.8, values % 3, rng.integers(0, 3, 80))
    shares = np.bincount(labels) / 80
    loss = 0.0
    for t in range(80):
        others = (values == values[t]) & (np.arange(80) != t)
        p = (np.sum(labels[others] == labels[t]) + shares[labels[t]]) / (others.sum() + 1)
        loss -= math.log(p) / 80
    entropy = -float((shares * np.log(shares)).sum())
    assert explained(values, labels) == pytest.approx(1 - loss / entropy)
    assert explained(values, np.zeros(80, np.intp)) == 0


def test_what_an_attribute_explains_with_groups_is_that_of_leaving_out_each_group() -> None:
    rng = np.random.default_rng(4)
    units = rng.integers(0, 25, 80)
    values, labels = (units % 7 + (rng.random(80) < 0.2)) % 7, (units + (rng.random(80) < 0.1)) % 3
    shares = np.bincount(labels) / 80
    loss = 0.0
    for t in range(80):
        others = (values == values[t]) & (units != units[t])
        loss -= math.log((np.sum(labels[others] == labels[t]) + shares[labels[t]]) / (others.sum() + 1)) / 80
    entropy = -float((shares * np.log(shares)).sum())
    assert explained(values, labels, units) == pytest.approx(1 - loss / entropy)
    # codes have the narrowest type, which holds neither 256 groups nor products with fewer
    assert explained(values, labels, units + 300) == pytest.approx(1 - loss / entropy)
    alone = explained(values, labels)
    assert alone == pytest.approx(explained(values, labels, np.arange(80)))
    assert alone > 1 - loss / entropy
    # an attribute that is the same in all rows of a group is no leak
    units = np.repeat(np.arange(20), 30)
    ages, sizes, labels = rng.permutation(20)[units], rng.permutation(20)[units], rng.integers(0, 2, 20)[units]
    table = columns_of(ages, sizes, labels=labels)
    leaks = [
        [found.kind for found in check.findings]
        for split in (None, SplitBy(units))
        if (check := check_table(replace(table, split_by=split), {}))
    ]
    assert "leak" in leaks[0]
    assert leaks[1] == []


def test_the_agreement_within_a_column_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(4)
    units = rng.permutation(np.repeat(np.arange(60), 4))
    of_unit = rng.integers(0, 2, 60)
    labels = np.where(rng.random(240) < 0.9, of_unit[units], 1 - of_unit[units])
    pairs = [(s, t) for s, t in itertools.combinations(range(240), 2) if units[s] == units[t]]
    same = np.mean([labels[s] == labels[t] for s, t in pairs])
    chance = np.square(np.bincount(labels) / 240).sum()
    assert _agreement_within(rank_values(names(units)), labels, 2) == pytest.approx((same - chance) / (1 - chance))
    assert _agreement_within(rank_values(names(units)), rng.permutation(labels), 2) == 0
    # a smooth number is no unit: neighbouring values agree as much
    age = rng.permutation(np.repeat(np.arange(60), 4))
    assert _agreement_within(rank_values(names(age)), (age > 30).astype(int), 2) == 0


def test_cramers_v_is_1_for_equal_columns_and_about_0_for_independent_ones() -> None:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 500)
    assert _cramers_v(first, first) == pytest.approx(1, abs=0.01)
    assert _cramers_v(first, rng.integers(0, 3, 500)) < 0.1
    assert _cramers_v(first, np.zeros(500, np.intp)) == 0


def test_losses_that_are_too_good() -> None:
    check = TableCheck((), 500, copied=0.15, many_values=False, best_attribute="x", explained=0.1)
    found = too_good(check, 0.03, 0.68)
    assert found is not None
    assert (found.kind, found.columns, found.rows, found.option) == ("too-good", ("x",), 500, "--group COLUMN")
    assert "0.03" in found.message
    assert too_good(check, 0.1, 0.68) is None
    assert too_good(check, None, 0.68) is None
    assert too_good(check, 0.03, 0.0) is None
    assert too_good(replace(check, explained=0.6), 0.03, 0.68) is None
    assert too_good(replace(check, copied=0.05), 0.01, 0.68) is None
    assert too_good(replace(check, copied=0.05), 0.0, 0.68) is None
    assert too_good(replace(check, copied=0.05, many_values=True), 0.01, 0.68) is not None
    assert too_good(replace(check, findings=(found,)), 0.03, 0.68) is None


@pytest.mark.slow
def test_near_copies_are_found_as_often_as_the_manual_states() -> None:
    page = (resources.files("bncli.manual") / "validation.md").read_text()
    stated = re.findall(r"^\| (\d) (numeric|categorical) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert len(stated) == 8
    for n_attributes, kind, *numbers in stated:
        for noise, number in zip((0.05, 0.15, 0.3), numbers, strict=True):
            found = 0
            for n_units, seed in itertools.product((300, 1000, 3000), range(4)):
                units, values, labels = visits(n_units, (3, 8), noise, seed, int(n_attributes), kind == "categorical")
                order = np.random.default_rng(seed).permutation(len(units))
                columns = [column[order] for column in values]
                check = check_table(columns_of(*columns, labels=(labels[order] == "yes").astype(int)), {})
                assert check is not None
                found += bool(check.findings)
            # sums of distances differ in the last bits from machine to machine
            assert abs(found - int(number)) <= 1, (n_attributes, kind, noise)


@pytest.mark.slow
@pytest.mark.skipif("BNCLI_DATA" not in os.environ, reason="BNCLI_DATA is not set")
def test_published_tables_have_no_findings() -> None:
    folder, found = Path(os.environ["BNCLI_DATA"]), {}
    paths = [*folder.glob("*.csv*"), *folder.glob("more/*.csv*")]
    assert len(paths) > 50
    for path in paths:
        table, source = read(path)
        check = check_training_table(table, source, Run())
        if check is not None and check.findings:
            found[path.name] = [(finding.kind, finding.columns) for finding in check.findings]
    assert found == {"mushroom.csv.gz": [("leak", ("odor",))]}


def test_cuts_found_by_checks_are_those_of_the_discretizer_for_the_same_rows_only() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    codes = rng.integers(0, 3, n).astype(np.int8)
    values = rng.normal(size=n) + codes
    holes = np.where(rng.random(n) < 0.2, np.nan, np.round(values, 2))
    whole = np.rint(100 * values).astype(np.int32)
    numbers = {"x": NumericColumn(values), "holes": NumericColumn(holes), "whole": NumericColumn(whole)}
    label = CategoricalColumn(codes, ("a", "b", "c"))
    table = Columns(n, numbers, "class", label)
    known = KnownCuts("mdl", label, {})
    check = check_table(table, {}, known_cuts=known)
    assert check == check_table(table, {})
    assert set(known.cuts) == {"x", "holes"}
    with_cuts = replace(table, known_cuts=known)
    plain = learn_dataset(table)
    assert learn_dataset(with_cuts).schema == plain.schema
    assert len(known.cuts["x"][1]) > 1
    # wrong cuts show that they are used, and where they are not
    wrong = KnownCuts("mdl", label, {"x": (table.attributes["x"], (0.5,))})  # type: ignore[dict-item]
    used = replace(table, known_cuts=wrong)
    assert learn_dataset(used).schema.attributes[0].cuts == (0.5,)  # type: ignore[union-attr]
    rows = np.arange(n)
    others = (
        used.take(rows),
        replace(used, weights=np.ones(n)),
        replace(used, label=CategoricalColumn(codes.copy(), label.levels)),
        replace(used, attributes={**numbers, "x": NumericColumn(values.copy())}),
    )
    for other in others:
        assert learn_dataset(other).schema.attributes[0].cuts == plain.schema.attributes[0].cuts  # type: ignore[union-attr]
    assert learn_dataset(used, discretize="equal-frequency").schema.attributes[0].cuts != (0.5,)  # type: ignore[union-attr]
