"""Levels that are pooled: which attributes, what they are called, and the codes of rows old and new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Columns
from bncli.engine.data.cutting import FEW, Rule, cuts_of, learn_dataset, many_valued, pooling_notes
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.kernels.arrays import Array
from bncli.watch import Event, Note, Run

N_TOWNS = 30


def towns(n_rows: int = 400, seed: int = 0, weights: Array | None = None) -> Columns:
    """`town` has two kinds of values, `street` says nothing; some towns are missing."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, N_TOWNS, n_rows)
    y = (rng.random(n_rows) < np.where(town % 3 == 0, 0.95, 0.05)).astype(np.int8)
    code = np.where(rng.random(n_rows) < 0.05, MISSING, town)
    streets = tuple(f"s{i:03}" for i in range(150))
    columns = {
        "town": CategoricalColumn(code, tuple(f"t{i:02}" for i in range(N_TOWNS))),
        "street": CategoricalColumn(rng.integers(0, 150, n_rows), streets),
        "side": CategoricalColumn(rng.integers(0, 2, n_rows), ("left", "right")),
    }
    return Columns(n_rows, columns, "y", CategoricalColumn(y, ("no", "yes")), weights)


def levels_of(n_levels: int, weight: float) -> CategoricalAttribute:
    levels = tuple(f"v{i}" for i in range(n_levels))
    return CategoricalAttribute("a", False, (weight / n_levels,) * n_levels, levels)


def learnt(columns: Columns, rule: Rule = "auto", **more: Any) -> tuple[CategoricalAttribute, ...]:
    return learn_dataset(columns, group_levels=rule, **more).schema.attributes  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("n_levels", "weight", "rule", "wanted"),
    [
        (FEW, 30.0, "auto", False),
        (FEW + 1, 440.0, "auto", True),
        (FEW + 1, 441.0, "auto", False),
        (500, 249_999.0, "auto", True),
        (500, 10.0, "off", False),
        (500, 10.0, None, False),
        (5, 1e6, 4, True),
        (5, 1.0, 5, False),
    ],
)
def test_which_attributes_have_too_many_levels(n_levels: int, weight: float, rule: Rule, wanted: bool) -> None:
    assert many_valued(levels_of(n_levels, weight), rule) == wanted


def test_levels_are_pooled_by_what_they_say() -> None:
    town, street, side = learnt(towns())
    assert [len(group) for group in town.groups] == [10, 20]
    assert town.groups[0] == tuple(f"t{i:02}" for i in range(0, N_TOWNS, 3))
    assert town.missing
    assert sum(town.frequencies) == 400
    assert all(name.endswith(more) for name, more in zip(town.levels, ("|8 more", "|18 more"), strict=True))
    assert (len(street.levels), street.informative, len(street.groups[0])) == (1, False, len(set(street.groups[0])))
    assert (side.levels, side.groups) == (("left", "right"), ())


def test_without_the_rule_nothing_is_pooled() -> None:
    assert all(attribute.groups == () for attribute in learnt(towns(), "off"))
    assert learnt(towns(), "off") == learn_dataset(towns()).schema.attributes


def test_a_number_bounds_the_groups_of_every_attribute() -> None:
    town, street, side = learnt(towns(), 1)
    assert [len(a.levels) for a in (town, street, side)] == [1, 1, 1]
    assert side.groups == (("left", "right"),)
    assert side.levels == ("left|right",) or side.levels == ("right|left",)


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    rows = np.arange(400)
    twice = towns().take(np.concatenate([rows, rows[:150]]))
    weighted = towns(weights=np.where(rows < 150, 2.0, 1.0))
    assert learnt(twice) == learnt(weighted)


def test_the_order_of_rows_and_threads_play_no_part() -> None:
    weights = np.random.default_rng(1).random(400)
    columns = towns(weights=weights)
    shuffled = columns.take(np.random.default_rng(2).permutation(400))
    one, other = learnt(columns), learnt(shuffled, run=Run(3))
    assert [(a.levels, a.groups) for a in one] == [(a.levels, a.groups) for a in other]


def test_renamed_levels_are_grouped_alike() -> None:
    columns = towns()
    town = columns.attributes["town"]
    assert isinstance(town, CategoricalColumn)
    renamed = CategoricalColumn(np.where(town.codes < 0, town.codes, N_TOWNS - 1 - town.codes), town.levels)
    other = Columns(400, {"town": renamed}, "y", columns.label)
    groups = {frozenset(N_TOWNS - 1 - int(value[1:]) for value in group) for group in learnt(other)[0].groups}
    assert groups == {frozenset(int(value[1:]) for value in group) for group in learnt(columns)[0].groups}


def test_rows_to_come_have_the_codes_of_their_groups() -> None:
    data = learn_dataset(towns(), group_levels="auto")
    town = data.schema.attributes[0]
    assert isinstance(town, CategoricalAttribute)
    column = CategoricalColumn(np.array([0, 1, 2, MISSING, UNSEEN, 3]), ("t01", "t03", "new", town.levels[1]))
    batch = Columns(6, {"town": column}, "y", None)
    encoded = encode_attributes(batch, data.schema, [0])
    assert encoded.codes[0].tolist() == [1, 0, 3, 2, 3, 1]
    assert (encoded.unseen, encoded.missing) == ((2,), (1,))


def test_given_cuts_pool_as_they_say() -> None:
    columns = towns()
    data = learn_dataset(columns, group_levels="auto")
    again = learn_dataset(columns, given=cuts_of(data.schema, "mdl", {}), group_levels="off")
    assert again.schema == data.schema
    assert all((a == b).all() for a, b in zip(again.codes, data.codes, strict=True))


def test_names_are_no_values_and_differ() -> None:
    """A value may look like the name of a group, or be very long."""
    long = "x" * 1000
    levels = ("a", "b", "a|b", long, f"{long}y")
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(5), 60)
    y = (rng.random(300) < np.array([0.9, 0.9, 0.1, 0.1, 0.5])[codes]).astype(np.int8)
    label = CategoricalColumn(y, ("no", "yes"))
    (attribute,) = learnt(Columns(300, {"a": CategoricalColumn(codes, levels)}, "y", label), 3)
    assert len(set(attribute.levels)) == len(attribute.levels)
    pooled = [name for name, group in zip(attribute.levels, attribute.groups, strict=True) if len(group) > 1]
    assert not set(pooled) & set(levels)
    assert "a|b (2)" in pooled
    assert all(len(name) < 100 for name in pooled)


def test_what_was_pooled_is_told_once() -> None:
    heard: list[Event] = []
    learn_dataset(towns(), group_levels="auto", run=Run(watch=heard.append))
    notes = [event.text for event in heard if isinstance(event, Note)]
    first, second = notes
    assert first == ("levels pooled by what they say of the class: town 30 -> 2 groups (--group-levels off keeps them)")
    assert second.startswith("'street' (")
    assert second.endswith("values) tells nothing about the class that 400 rows could show: left out "
                           "(--group-levels off keeps it)")  # fmt: skip


def test_long_lists_are_shortened() -> None:
    many = [CategoricalAttribute(f"a{i}", False, (1.0,), ("x|y",), (("x", "y"),)) for i in range(11)]
    (sentence,) = pooling_notes(many, 7)
    assert "'a7' (2 values) and 3 more tell nothing" in sentence
