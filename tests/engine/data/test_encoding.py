"""Codes of rows under a schema."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import (
    MISSING,
    UNSEEN,
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    NumericColumn,
)
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.encoding import encode_attributes, encode_column, encode_labels
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.errors import ModelError

NAN = float("nan")


def categorical(codes: list[int], *levels: str) -> CategoricalColumn:
    return CategoricalColumn(np.array(codes, np.int16), levels)


def batch(column: Column, n: int) -> Columns:
    return Columns(n, {"a": column}, "y", None)


def schema_of(attribute: Attribute) -> Schema:
    return Schema("y", ("no", "yes"), (attribute,))


@pytest.mark.parametrize(("missing", "code"), [(False, 3), (True, 3)])
def test_numbers(missing: bool, code: int) -> None:
    """Without a missing level 3 is the code of the unknown, with one it is that level's."""
    schema = schema_of(NumericAttribute("a", missing, (), (1.0, 2.0)))
    column = NumericColumn(np.array([-np.inf, 1.0, 1.5, 2.0, np.inf, NAN, -0.0]))
    encoded = encode_attributes(batch(column, 7), schema, [0])
    assert encoded.codes[0].tolist() == [0, 0, 1, 1, 2, code, 0]
    assert encoded.codes[0].dtype == np.uint8
    assert (encoded.unseen, encoded.missing) == ((0,), (1,))


@pytest.mark.parametrize(("missing", "code", "unknown"), [(False, 2, 2), (True, 2, 3)])
def test_levels_are_matched_by_name(missing: bool, code: int, unknown: int) -> None:
    schema = schema_of(CategoricalAttribute("a", missing, (), ("red", "blue")))
    column = categorical([0, 1, 2, MISSING, UNSEEN], "blue", "green", "red")
    encoded = encode_attributes(batch(column, 5), schema, [0])
    assert encoded.codes[0].tolist() == [1, unknown, 0, code, unknown]
    assert (encoded.unseen, encoded.missing) == ((2,), (1,))


@pytest.mark.parametrize(("missing", "unknown"), [(False, 2), (True, 3)])
def test_codes_of_other_levels_are_translated(missing: bool, unknown: int) -> None:
    attribute = CategoricalAttribute("a", missing, (), ("red", "blue"))
    own = CategoricalAttribute("a", True, (), ("blue", "green", "red"))
    column = CodedColumn(ChunkedColumn((np.array([0, 1, 2, 3, 3, 3], np.uint8),)), own)
    encoded = encode_column(column, attribute)
    assert encoded.codes.tolist() == [1, unknown, 0, 2, 2, 2]
    assert (encoded.unseen, encoded.missing) == (1, 3)


def test_the_unknown_code_may_need_a_wider_type() -> None:
    levels = tuple(f"v{i}" for i in range(256))
    schema = schema_of(CategoricalAttribute("a", False, (), levels))
    encoded = encode_attributes(batch(categorical([UNSEEN, 255], *levels), 2), schema, [0])
    assert encoded.codes[0].tolist() == [256, 255]


def test_attributes_come_in_the_order_asked_for() -> None:
    attributes = tuple(NumericAttribute(name, False, (), (0.0,)) for name in "abc")
    columns = Columns(
        1, {n: NumericColumn(np.array([v], np.int8)) for n, v in zip("cba", (1, 0, -1), strict=True)}, "y", None
    )
    encoded = encode_attributes(columns, Schema("y", ("no", "yes"), attributes), [2, 0])
    assert [c.tolist() for c in encoded.codes] == [[1], [0]]


def test_labels_are_matched_by_name() -> None:
    schema = schema_of(NumericAttribute("a", False, (), ()))
    columns = Columns(3, {}, "y", categorical([0, 1, 0], "yes", "no"))
    assert encode_labels(columns, schema).tolist() == [1, 0, 1]
    unused = Columns(1, {}, "y", categorical([1], "maybe", "yes"))
    assert encode_labels(unused, schema).tolist() == [1]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (categorical([0, 1], "no", "maybe"), "is not in the model: 'maybe'"),
        (categorical([MISSING], "no"), "the class 'y' is missing in some rows"),
        (categorical([UNSEEN], "no", "yes"), "the class 'y' is missing in some rows"),
        (None, "has no class column 'y'"),
    ],
)
def test_labels_that_do_not_fit(label: CategoricalColumn | None, message: str) -> None:
    columns = Columns(0 if label is None else len(label.codes), {}, "y", label)
    with pytest.raises(ModelError, match=message):
        encode_labels(columns, Schema("y", ("no", "yes"), ()))


def test_columns_that_do_not_fit() -> None:
    schema = schema_of(NumericAttribute("a", False, (), (1.0,)))
    with pytest.raises(ModelError, match="no column 'a'"):
        encode_attributes(Columns(0, {}, "y", None), schema, [0])
    with pytest.raises(ModelError, match="'a' is not numeric"):
        encode_attributes(batch(categorical([0], "x"), 1), schema, [0])
    other = schema_of(CategoricalAttribute("a", False, (), ("1", "2")))
    with pytest.raises(ModelError, match="'a' is not categorical"):
        encode_attributes(batch(NumericColumn(np.zeros(1)), 1), other, [0])


@given(st.data())
def test_rows_keep_their_order(data: st.DataObject) -> None:
    """The codes of some of the rows are some of the codes of all rows."""
    n = data.draw(st.integers(1, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    missing = rng.random(n) < 0.2
    columns = Columns(
        n,
        {
            "number": NumericColumn(np.where(missing, NAN, rng.integers(0, 6, n))),
            "whole": NumericColumn(rng.integers(-3, 3, n).astype(np.int8)),
            "word": CategoricalColumn(
                np.where(missing, MISSING, rng.integers(0, 4, n)).astype(np.int8), ("d", "a", "c", "b")
            ),
        },
        "y",
        CategoricalColumn(rng.integers(0, 2, n).astype(np.int8), ("no", "yes")),
    )
    whole = learn_dataset(columns, discretize="equal-frequency", bins=3)
    rows = rng.integers(0, n, 10)
    part = encode_attributes(columns.take(rows), whole.schema, whole.schema.informative)
    for i, taken in zip(whole.schema.informative, part.codes, strict=True):
        assert taken.tolist() == whole.codes[i][rows].tolist()


def test_a_column_that_is_not_there_is_unknown_where_that_is_allowed() -> None:
    """Whether or not training had missing values: nothing says that it is one."""
    attributes = (NumericAttribute("a", True, (), (1.0,)), CategoricalAttribute("b", False, (), ("p", "q")))
    schema = Schema("y", ("no", "yes"), attributes)
    columns = Columns(3, {}, "y", None)
    encoded = encode_attributes(columns, schema, [0, 1], allow_missing=True)
    assert [codes.tolist() for codes in encoded.codes] == [[3, 3, 3], [2, 2, 2]]
    assert (encoded.unseen, encoded.missing) == ((0, 0), (0, 0))
    with pytest.raises(ModelError, match="no column 'a'"):
        encode_attributes(columns, schema, [0, 1])
