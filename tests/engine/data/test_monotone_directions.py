"""Which attributes can have a monotone direction, and the errors about those that cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.monotone_directions import set_directions
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.errors import UsageError


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
