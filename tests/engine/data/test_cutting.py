"""Schemas learnt from raw columns, and the codes of the rows under them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.schema import CategoricalAttribute, Cuts, MissingPolicy, NumericAttribute, ReadingRules
from bncli.errors import BncliError
from bncli.watch import Event, Progress, Run
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
    schema = learn_dataset(columns, given=cuts).schema
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
        (NumericAttribute("zz", False, (), ()), "'zz' that is not a column"),
        (NumericAttribute("b", False, (), ()), "'b' is categorical in the data and not in the cuts"),
        (CategoricalAttribute("a", False, (), ("1",)), "'a' is numeric in the data"),
        (CategoricalAttribute("b", False, (), ("p",)), "'b' has the value 'q'"),
    ],
)
def test_given_cuts_that_do_not_fit(attribute: NumericAttribute | CategoricalAttribute, message: str) -> None:
    columns = table(a=numeric(list(range(8))), b=categorical([0, 1] * 4, "p", "q"))
    with pytest.raises(BncliError, match=message):
        learn_dataset(columns, given=Cuts("y", (attribute,)))


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
    with pytest.raises(BncliError, match="without a class 'y'"):
        learn_dataset(Columns(0, {}, "y", None))
    with pytest.raises(BncliError, match="without a class 'y'"):
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
    data = learn_dataset(columns, given=Cuts("y", (numeric, categorical, uncut)))
    assert [a.frequencies for a in data.schema.attributes] == [(1.0, 2.0, 0.0), (2.0, 1.0, 0.0), (3.0, 0.0)]
    assert data.schema.cardinalities == (3, 3, 2)
    apart = learn_dataset(columns, given=Cuts("y", (numeric, categorical, uncut)), missing_policy="marginalize")
    assert apart.schema.cardinalities == (2, 2, 1)


def test_given_cuts_meet_a_column_without_values() -> None:
    cuts = Cuts("y", (NumericAttribute("a", False, (), (7.0,)), CategoricalAttribute("b", False, (), ("p", "q"))))
    columns = table(a=numeric([NAN] * 8), b=categorical([MISSING] * 8))
    schema = learn_dataset(columns, given=cuts, missing_policy="marginalize").schema
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
    """What is learnt in one pass is what a scorer finds under the schema, and the schema counts it."""
    method, bins = cutting
    data = learn_dataset(
        columns,
        discretize=method,
        bins=bins,
        given=cuts,
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
