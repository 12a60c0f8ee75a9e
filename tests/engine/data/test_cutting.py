"""Schemas learnt from raw columns."""

import numpy as np
import pytest

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.cutting import cuts_of, learn_schema
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, Reading
from bncli.errors import BncliError
from bncli.watch import Event, Progress, Run

NAN = float("nan")


def numeric(values: list[float]) -> NumericColumn:
    return NumericColumn(np.array(values, np.float64))


def categorical(codes: list[int], *levels: str) -> CategoricalColumn:
    return CategoricalColumn(np.array(codes, np.int8), levels)


def table(weights: list[float] | None = None, **attributes: Column) -> Columns:
    label = categorical([0, 0, 0, 0, 1, 1, 1, 1], "no", "yes", "never")
    return Columns(8, attributes, "y", label, None if weights is None else np.array(weights))


def test_cuts_levels_holes_and_frequencies() -> None:
    schema = learn_schema(
        table(
            a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
            b=categorical([2, 2, 0, 0, 0, 0, MISSING, 0], "p", "q", "r"),
            c=NumericColumn(np.array([7] * 8, np.int8)),
            d=categorical([MISSING] * 8),
        ),
        reading=Reading(("x",), "error"),
    )
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
    """They bring no level, no hole and no cut, whatever the discretizer."""
    columns = table(
        [0, 1, 1, 1, 1, 1, 2.5, 0],
        a=numeric([-1000, 1, 2, 3, 11, 12, 13, NAN]),
        b=categorical([0, 1, 1, 1, 1, 2, 2, MISSING], "p", "q", "r"),
    )
    schema = learn_schema(columns)
    assert schema.attributes == (
        NumericAttribute("a", False, (3.0, 4.5), (7.0,)),
        CategoricalAttribute("b", False, (4.0, 3.5), ("q", "r")),
    )
    (width, _) = learn_schema(columns, discretize="equal-width", bins=2).attributes
    assert isinstance(width, NumericAttribute)
    assert width.cuts == (7.0,)


def test_bins_reach_the_discretizer() -> None:
    columns = table(a=numeric([0, 1, 2, 3, 4, 5, 6, 8]))
    (attribute,) = learn_schema(columns, discretize="equal-width", bins=4).attributes
    assert attribute == NumericAttribute("a", False, (3.0, 2.0, 2.0, 1.0), (2.0, 4.0, 6.0))
    (attribute,) = learn_schema(columns, discretize="equal-frequency", bins=2).attributes
    assert attribute == NumericAttribute("a", False, (4.0, 4.0), (3.5,))


def test_given_cuts_are_used_as_they_are_in_their_order() -> None:
    columns = table(
        a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
        left_out=numeric(list(range(8))),
        b=categorical([2, 2, 0, 0, 0, 0, MISSING, 0], "p", "q", "r"),
    )
    given = Cuts(
        "y",
        (
            CategoricalAttribute("b", False, (), ("s", "r", "p")),
            NumericAttribute("a", False, (), (2.0, 50.0)),
        ),
    )
    schema = learn_schema(columns, given=given)
    assert schema.attributes == (
        CategoricalAttribute("b", True, (0.0, 2.0, 5.0, 1.0), ("s", "r", "p")),
        NumericAttribute("a", True, (2.0, 5.0, 0.0, 1.0), (2.0, 50.0)),
    )
    assert cuts_of(schema, "file", {}) == given
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
        learn_schema(columns, given=Cuts("y", (attribute,)))


def test_threads_change_nothing_and_progress_is_told_in_order() -> None:
    rng = np.random.default_rng(0)
    columns = table(**{f"a{i}": numeric(rng.normal(size=8).tolist()) for i in range(9)})
    events: list[Event] = []
    alone = learn_schema(columns, discretize="equal-frequency", bins=3, run=Run(watch=events.append))
    assert learn_schema(columns, discretize="equal-frequency", bins=3, run=Run(3)) == alone
    assert events == [Progress(i + 1, 9, f"a{i}") for i in range(9)]


def test_rows_without_a_class_are_refused() -> None:
    with pytest.raises(BncliError, match="without a class 'y'"):
        learn_schema(Columns(0, {}, "y", None))
    with pytest.raises(BncliError, match="without a class 'y'"):
        learn_schema(Columns(2, {}, "y", categorical([0, MISSING], "a")))


def test_no_rows_and_no_attributes_give_a_schema() -> None:
    empty = Columns(0, {"a": numeric([]), "b": categorical([])}, "y", categorical([], "no", "yes"))
    assert learn_schema(empty).informative == ()
    assert learn_schema(table()).attributes == ()
    unseen = table(b=categorical([UNSEEN] * 8, "p"))
    assert learn_schema(unseen).attributes[0].missing


def test_holes_that_are_summed_out_are_no_level() -> None:
    schema = learn_schema(
        table(
            [1, 1, 1, 1.5, 1, 1, 1, 1],
            a=numeric([1, 2, 3, NAN, 11, 12, 13, 14]),
            b=categorical([0, 0, MISSING, 0, 0, 0, 0, 0], "p"),
            c=numeric([NAN] * 8),
            d=categorical([MISSING] * 8),
            e=categorical([0, 1] * 4, "p", "q"),
        ),
        missing_policy="marginalize",
    )
    assert schema.attributes == (
        NumericAttribute("a", False, (3.0, 4.0), (7.0,), holes=1.5),
        CategoricalAttribute("b", False, (7.5,), ("p",), holes=1.0),
        NumericAttribute("c", False, (0.0,), (), holes=8.5),
        CategoricalAttribute("d", False, (), (), holes=8.5),
        CategoricalAttribute("e", False, (4.0, 4.5), ("p", "q")),
    )
    assert schema.informative == (0, 4)
    assert schema.marginalizes
    assert all((a.missing, a.frequencies, a.holes) == (False, (), 0.0) for a in cuts_of(schema, "mdl", {}).attributes)


def test_given_cuts_meet_a_column_of_holes() -> None:
    given = Cuts("y", (NumericAttribute("a", False, (), (7.0,)), CategoricalAttribute("b", False, (), ("p", "q"))))
    columns = table(a=numeric([NAN] * 8), b=categorical([MISSING] * 8))
    schema = learn_schema(columns, given=given, missing_policy="marginalize")
    assert schema.attributes == (
        NumericAttribute("a", False, (0.0, 0.0), (7.0,), holes=8.0),
        CategoricalAttribute("b", False, (0.0, 0.0), ("p", "q"), holes=8.0),
    )
