"""From raw columns to a schema and coded rows: cuts, levels, pooled levels, supplied cuts, threads, directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data import cutting
from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.cutting import (
    FEW,
    PoolingRule,
    cuts_of,
    learn_dataset,
    needs_pooling,
    pooling_notes,
    set_directions,
)
from bncli.engine.data.dataset import Dataset, encode_attributes
from bncli.engine.data.schema import CategoricalAttribute, Cuts, MissingPolicy, NumericAttribute, ReadingRules, Schema
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError, UsageError
from bncli.watch import Event, Note, Progress, Run
from tests.datasets import coded_rows

NAN = float("nan")


def numeric(values: list[float]) -> NumericColumn:
    return NumericColumn(np.array(values, np.float64))


def categorical(codes: list[int], *levels: str) -> CategoricalColumn:
    return CategoricalColumn(np.array(codes, np.int8), levels)


def table(weights: list[float] | None = None, **attributes: Column) -> Columns:
    label = categorical([0, 0, 0, 0, 1, 1, 1, 1], "no", "yes", "never")
    return Columns(8, attributes, "y", label, None if weights is None else np.array(weights))


def test_cuts_levels_missing_values_and_frequencies() -> None:
    schema = learn_dataset(
        table(
            a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
            b=categorical([2, 2, 0, 0, 0, 0, MISSING, 0], "p", "q", "r"),
            c=NumericColumn(np.array([7] * 8, np.int8)),
            d=categorical([MISSING] * 8),
        ),
        reading=ReadingRules(("x",), "error"),
    ).schema
    assert schema.attributes == (
        NumericAttribute("a", True, (3.0, 4.0, 1.0), (7.0,)),
        CategoricalAttribute("b", True, (5.0, 2.0, 1.0), ("p", "r")),
        NumericAttribute("c", False, (8.0,), ()),
        CategoricalAttribute("d", True, (8.0,), ()),
    )
    assert schema.informative == (0, 1)
    assert (schema.class_name, schema.labels) == ("y", ("no", "yes", "never"))
    assert (schema.missing_tokens, schema.unseen) == (("x",), "error")


def test_rows_without_weight_do_not_exist() -> None:
    """They bring no level, no missing value and no cut, whatever the discretizer."""
    columns = table(
        [0, 1, 1, 1, 1, 1, 2.5, 0],
        a=numeric([-1000, 1, 2, 3, 11, 12, 13, NAN]),
        b=categorical([0, 1, 1, 1, 1, 2, 2, MISSING], "p", "q", "r"),
    )
    schema = learn_dataset(columns).schema
    assert schema.attributes == (
        NumericAttribute("a", False, (3.0, 4.5), (7.0,)),
        CategoricalAttribute("b", False, (4.0, 3.5), ("q", "r")),
    )
    (width, _) = learn_dataset(columns, discretize="equal-width", bins=2).schema.attributes
    assert isinstance(width, NumericAttribute)
    assert width.cuts == (7.0,)


def test_bins_reach_the_discretizer() -> None:
    columns = table(a=numeric([0, 1, 2, 3, 4, 5, 6, 8]))
    (attribute,) = learn_dataset(columns, discretize="equal-width", bins=4).schema.attributes
    assert attribute == NumericAttribute("a", False, (3.0, 2.0, 2.0, 1.0), (2.0, 4.0, 6.0))
    (attribute,) = learn_dataset(columns, discretize="equal-frequency", bins=2).schema.attributes
    assert attribute == NumericAttribute("a", False, (4.0, 4.0), (3.5,))


def test_given_cuts_are_used_as_they_are_in_their_order() -> None:
    columns = table(
        a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
        left_out=numeric(list(range(8))),
        b=categorical([2, 2, 0, 0, 0, 0, MISSING, 0], "p", "q", "r"),
    )
    cuts = Cuts(
        "y",
        (
            CategoricalAttribute("b", False, (), ("s", "r", "p")),
            NumericAttribute("a", False, (), (2.0, 50.0)),
        ),
    )
    schema = learn_dataset(columns, cuts=cuts).schema
    assert schema.attributes == (
        CategoricalAttribute("b", True, (0.0, 2.0, 5.0, 1.0), ("s", "r", "p")),
        NumericAttribute("a", True, (2.0, 5.0, 0.0, 1.0), (2.0, 50.0)),
    )
    with_level = tuple(replace(attribute, missing=True) for attribute in cuts.attributes)
    assert cuts_of(schema, "file", {}) == replace(cuts, attributes=with_level)
    again = cuts_of(schema, "equal-width", {"bins": 3})
    assert (again.method, again.options) == ("equal-width", {"bins": 3})


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (NumericAttribute("zz", False, (), ()), "'zz', which is not a column"),
        (NumericAttribute("b", False, (), ()), "'b' is categorical in the table but not in the cuts"),
        (CategoricalAttribute("a", False, (), ("1",)), "'a' is numeric in the table"),
        (CategoricalAttribute("b", False, (), ("p",)), "'b' has the value 'q'"),
    ],
)
def test_given_cuts_that_do_not_fit(attribute: NumericAttribute | CategoricalAttribute, message: str) -> None:
    columns = table(a=numeric(list(range(8))), b=categorical([0, 1] * 4, "p", "q"))
    with pytest.raises(BncliError, match=message):
        learn_dataset(columns, cuts=Cuts("y", (attribute,)))


def test_threads_change_nothing_and_progress_is_told_in_order() -> None:
    rng = np.random.default_rng(0)
    columns = table(**{f"a{i}": numeric(rng.normal(size=8).tolist()) for i in range(9)})
    events: list[Event] = []
    alone = learn_dataset(columns, discretize="equal-frequency", bins=3, run=Run(watch=events.append))
    shared = learn_dataset(columns, discretize="equal-frequency", bins=3, run=Run(3))
    assert (shared.schema, shared.threads, alone.threads) == (alone.schema, 3, 1)
    assert [c.tolist() for c in shared.codes] == [c.tolist() for c in alone.codes]
    assert events == [Progress(i + 1, 9, f"a{i}") for i in range(9)]


def test_rows_without_a_class_are_refused() -> None:
    with pytest.raises(BncliError, match="the class 'y' is missing in some rows"):
        learn_dataset(Columns(0, {}, "y", None))
    with pytest.raises(BncliError, match="the class 'y' is missing in some rows"):
        learn_dataset(Columns(2, {}, "y", categorical([0, MISSING], "a")))


def test_no_rows_and_no_attributes_give_a_schema() -> None:
    empty = Columns(0, {"a": numeric([]), "b": categorical([])}, "y", categorical([], "no", "yes"))
    assert learn_dataset(empty).schema.informative == ()
    assert learn_dataset(table()).schema.attributes == ()
    unseen = table(b=categorical([UNSEEN] * 8, "p"))
    assert learn_dataset(unseen).schema.attributes[0].missing


def test_marginalized_missing_values_are_no_level() -> None:
    schema = learn_dataset(
        table(
            [1, 1, 1, 1.5, 1, 1, 1, 1],
            a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
            b=categorical([0, 0, MISSING, 0, 0, 0, 0, 0], "p"),
            c=numeric([NAN] * 8),
            d=categorical([MISSING] * 8),
            e=categorical([0, 1] * 4, "p", "q"),
        ),
        missing_policy="marginalize",
    ).schema
    assert schema.attributes == (
        NumericAttribute("a", False, (3.0, 4.0), (7.0,), missing_weight=1.5),
        CategoricalAttribute("b", False, (7.5,), ("p",), missing_weight=1.0),
        NumericAttribute("c", False, (0.0,), (), missing_weight=8.5),
        CategoricalAttribute("d", False, (), (), missing_weight=8.5),
        CategoricalAttribute("e", False, (4.0, 4.5), ("p", "q")),
    )
    assert schema.informative == (0, 4)
    assert schema.marginalizes
    assert all(
        (a.missing, a.frequencies, a.missing_weight) == (False, (), 0.0) for a in cuts_of(schema, "mdl", {}).attributes
    )


def test_a_missing_level_of_given_cuts_stays_where_no_value_is_missing() -> None:
    numeric, categorical = NumericAttribute("a", True, (), (7.0,)), CategoricalAttribute("b", True, (), ("p", "q"))
    uncut = NumericAttribute("c", True, ())
    rows = {
        "a": NumericColumn(np.array([1.0, 9.0, 9.0])),
        "b": CategoricalColumn(np.array([0, 0, 1]), ("p", "q")),
        "c": NumericColumn(np.array([1.0, 2.0, 3.0])),
    }
    columns = Columns(3, rows, "y", CategoricalColumn(np.array([0, 1, 1]), ("n", "y")))
    data = learn_dataset(columns, cuts=Cuts("y", (numeric, categorical, uncut)))
    assert [a.frequencies for a in data.schema.attributes] == [(1.0, 2.0, 0.0), (2.0, 1.0, 0.0), (3.0, 0.0)]
    assert data.schema.cardinalities == (3, 3, 2)
    apart = learn_dataset(columns, cuts=Cuts("y", (numeric, categorical, uncut)), missing_policy="marginalize")
    assert apart.schema.cardinalities == (2, 2, 1)


def test_given_cuts_meet_a_column_without_values() -> None:
    cuts = Cuts("y", (NumericAttribute("a", False, (), (7.0,)), CategoricalAttribute("b", False, (), ("p", "q"))))
    columns = table(a=numeric([NAN] * 8), b=categorical([MISSING] * 8))
    schema = learn_dataset(columns, cuts=cuts, missing_policy="marginalize").schema
    assert schema.attributes == (
        NumericAttribute("a", False, (0.0, 0.0), (7.0,), missing_weight=8.0),
        CategoricalAttribute("b", False, (0.0, 0.0), ("p", "q"), missing_weight=8.0),
    )


def test_the_cuts_may_come_from_a_function() -> None:
    """By the contract of a discretizer."""
    columns = table(a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]))
    seen = []

    def cut_points(values: Any, labels: Any, n_labels: int, weights: Any, *, bins: int) -> tuple[float, ...]:
        seen.append((values.tolist(), labels.tolist(), n_labels, weights, bins))
        return (2.0,)

    data = learn_dataset(columns, discretize=cut_points, bins=3)
    assert seen == [([1, 2, 3, 11, 12, 13, 14], [0, 0, 0, 1, 1, 1, 1], 3, None, 3)]
    assert data.codes[0].tolist() == [0, 0, 1, 2, 1, 1, 1, 1]


def test_an_attribute_that_tells_nothing_takes_no_memory() -> None:
    data = learn_dataset(table(c=NumericColumn(np.array([7] * 8, np.int8)), d=categorical([MISSING] * 8)))
    assert [(codes.tolist(), codes.strides) for codes in data.codes] == [([0] * 8, (0,))] * 2


@pytest.mark.parametrize("weights", [None, [0.5] * 8, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
def test_columns_of_one_value_and_missing_ones(weights: list[float] | None) -> None:
    one, gaps = categorical([0] * 8, "p"), categorical([MISSING, 0, 0, 0, 0, 0, 0, 0], "p")
    schema = learn_dataset(table(weights, one=one, gaps=gaps)).schema
    whole, first = (8.0, 1.0) if weights is None else (sum(weights), weights[0])
    has_gaps = first > 0
    assert schema.attributes == (
        CategoricalAttribute("one", False, (whole,), ("p",)),
        CategoricalAttribute("gaps", has_gaps, (whole - first, first)[: 1 + has_gaps], ("p",)),
    )


def test_a_column_may_have_as_many_levels_as_its_type_holds() -> None:
    """128 in signed bytes: the code of a missing value is one more than they can count to."""
    codes = np.array([*range(128), MISSING], np.int8)
    column = CategoricalColumn(codes, tuple(f"v{i:03}" for i in range(128)))
    data = learn_dataset(Columns(129, {"a": column}, "y", categorical([0] * 129, "no", "yes")))
    assert data.schema.attributes[0].frequencies == (1.0,) * 129
    assert data.codes[0].tolist() == list(range(129))


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    """Columns of every kind; some rows lack a value, have a level that only they have, or weigh nothing."""
    n = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    missing = rng.random(n) < draw(st.sampled_from([0.0, 0.2, 1.0]))
    word = np.where(missing, MISSING, rng.integers(0, 4, n))
    weights = draw(st.sampled_from([None, rng.integers(1, 4, n).astype(np.float64), rng.integers(0, 2, n) * 0.5]))
    return Columns(
        n,
        {
            "number": NumericColumn(np.where(missing, NAN, rng.integers(0, 6, n))),
            "many": NumericColumn(rng.normal(size=n)),
            "whole": NumericColumn(rng.integers(-3, 3, n).astype(np.int8)),
            "constant": NumericColumn(np.full(n, 7.0, np.float32)),
            "word": CategoricalColumn(word.astype(np.int8), ("d", "a", "c", "b")),
        },
        "y",
        CategoricalColumn(rng.integers(0, 3, n).astype(np.int8), ("no", "yes", "maybe")),
        weights,
    )


GIVEN = Cuts(
    "y",
    (
        CategoricalAttribute("word", False, (), ("never", "a", "b", "c", "d")),
        NumericAttribute("whole", False, (), (-1.0, 0.0, 100.0)),
        NumericAttribute("number", False, (), (2.5,)),
    ),
)


@given(
    tables(),
    st.sampled_from([("mdl", None), ("equal-frequency", 3), ("equal-width", 2), ("equal-width", 255)]),
    st.sampled_from([None, GIVEN]),
    st.sampled_from(["level", "marginalize"]),
    st.sampled_from([1, 2]),
)
def test_the_codes_are_those_under_the_schema(
    columns: Columns, cutting: tuple[str, int | None], cuts: Cuts | None, policy: MissingPolicy, threads: int
) -> None:
    """What is learned in one pass is what a scorer finds under the schema, and the schema counts it."""
    method, bins = cutting
    data = learn_dataset(
        columns,
        discretize=method,
        bins=bins,
        cuts=cuts,
        missing_policy=policy,
        reading=ReadingRules(unseen="error"),
        run=Run(threads),
    )
    again = coded_rows(columns, data.schema)
    assert data.labels.tolist() == again.labels.tolist()
    assert (data.labels.dtype, data.weights is columns.weights) == (again.labels.dtype, True)
    for attribute, codes, expected in zip(data.schema.attributes, data.codes, again.codes, strict=True):
        assert codes.dtype.kind == "u"
        if attribute.informative:
            assert codes.tolist() == expected.tolist()
            counts = np.bincount(codes, data.weights, attribute.cardinality)[: attribute.cardinality]
            assert tuple(counts.tolist()) == attribute.frequencies
        else:
            assert not codes.any()


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


def learnt(columns: Columns, rule: PoolingRule = "auto", **more: Any) -> tuple[CategoricalAttribute, ...]:
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
def test_which_attributes_have_too_many_levels(n_levels: int, weight: float, rule: PoolingRule, wanted: bool) -> None:
    assert needs_pooling(levels_of(n_levels, weight), rule) == wanted


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


def test_levels_that_are_drawn_in_are_pooled_only_if_they_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.integers(0, 25, 400), np.arange(25, 31), np.full(9, MISSING)])
    y = np.where(codes > 24, codes % 2, rng.random(415) < np.where(codes % 3 == 0, 0.95, 0.05)).astype(np.int8)
    town = CategoricalColumn(codes, tuple(f"t{i:02}" for i in range(31)))
    columns = Columns(415, {"town": town}, "y", CategoricalColumn(y, ("no", "yes")))
    (kept,) = learnt(columns, shrinks=True)
    assert kept.levels[:25] == town.levels[:25]
    assert sorted(value for group in kept.groups[25:] for value in group) == list(town.levels[25:])
    assert kept.n_values < 31
    assert kept.missing
    (numbered,) = learnt(columns, 10, shrinks=True)
    assert numbered.n_values <= 10
    monkeypatch.setattr(cutting, "MOST_KEPT", 7)
    (fewer,) = learnt(columns, shrinks=True)
    alone = [group for group in fewer.groups if len(group) == 1]
    assert len(alone) >= 7
    assert fewer.n_values < 15


def test_levels_that_do_not_vary_are_left_out_even_if_they_would_be_drawn_in() -> None:
    _, street, _ = learnt(towns(), shrinks=True)
    assert not street.informative


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
    again = learn_dataset(columns, cuts=cuts_of(data.schema, "mdl", {}), group_levels="off")
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
    pooled = "levels with similar information about the class were pooled: town 30 -> 2 groups"
    assert first == f"{pooled} (--group-levels off keeps them)"
    assert second.startswith("'street' (")
    assert second.endswith("values) was left out because it shows no relation to the class in 400 rows "
                           "(--group-levels off keeps it)")  # fmt: skip


def test_long_lists_are_shortened() -> None:
    many = [CategoricalAttribute(f"a{i}", False, (1.0,), ("x|y",), (("x", "y"),)) for i in range(11)]
    (sentence,) = pooling_notes(many, 7)
    assert "'a7' (2 values) and 3 more were left out because they show no relation" in sentence


def rows(labels: tuple[str, ...]) -> Dataset:
    """A number and a category, of a class with these labels."""
    number = NumericAttribute("age", False, (3.0, 3.0), cuts=(40.5,))
    category = CategoricalAttribute("site", False, (3.0, 3.0), levels=("a", "b"))
    codes = np.array([0, 1, 0, 1, 0, 1], np.uint8)
    label = np.arange(6, dtype=np.uint8) % len(labels)
    return Dataset(Schema("ill", labels, (number, category)), [codes, codes], label)


def test_two_labels_have_directions() -> None:
    schema = set_directions(rows(("no", "yes")), ("age",), (), None).schema
    assert schema.attributes[0] == replace(rows(("no", "yes")).schema.attributes[0], direction=1)
    assert (schema.towards, schema.direction_label) == (None, 1)


@pytest.mark.parametrize("labels", [("no", "yes"), ("1", "2", "10"), ("a", "b", "c", "d")])
def test_any_label_can_be_named(labels: tuple[str, ...]) -> None:
    for i, label in enumerate(labels):
        schema = set_directions(rows(labels), (), ("age",), label).schema
        assert (schema.towards, schema.direction_label) == (label, i)


def test_without_a_direction_a_label_is_of_no_account() -> None:
    data = rows(("a", "b", "c"))
    assert set_directions(data, (), (), "a") is data


@pytest.mark.parametrize(
    ("labels", "flags", "towards", "message"),
    [
        (
            ("a", "b", "well, then"),
            ((), ("age",)),
            None,
            "--decreasing refers to one label, but 'ill' has 3 labels; choose it, as in --towards 'well, then' "
            "(bncli help monotone)",
        ),
        (
            ("a",),
            (("age",), ()),
            None,
            "--increasing needs a class with at least two labels, but 'ill' has 1; leave --increasing out",
        ),
        (
            ("a",),
            (("age",), ()),
            "a",
            "--increasing needs a class with at least two labels, but 'ill' has 1; leave --increasing out",
        ),
        (
            ("1", "2", "3"),
            (("age",), ()),
            "1.0",
            "--towards names '1.0', which is not a label of the class 'ill'; its labels are 1, 2, 3",
        ),
        (
            ("no", "yes"),
            (("age",), ()),
            "Yes",
            "--towards names 'Yes', which is not a label of the class 'ill'; its labels are no, yes",
        ),
        (
            ("no", "yes"),
            (("site",), ()),
            None,
            "--increasing site: this column is categorical; only numeric columns have directions; add "
            "--numeric NAME to read a column as numbers",
        ),
        (("no", "yes"), (("ill",), ()), None, "--increasing ill: this column is the class; name an attribute"),
        (("no", "yes"), ((), ("aeg",)), None, "--decreasing aeg: there is no such attribute; did you mean 'age'?"),
    ],
)
def test_what_has_none_is_named(
    labels: tuple[str, ...], flags: tuple[tuple[str, ...], tuple[str, ...]], towards: str | None, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        set_directions(rows(labels), *flags, towards)
    assert str(caught.value) == message
