"""Which attributes can have a direction, and what is said of those that cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.directions import directed
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
    schema = directed(rows(("no", "yes")), ("age",), ()).schema
    assert schema.attributes[0] == replace(rows(("no", "yes")).schema.attributes[0], direction=1)


@pytest.mark.parametrize(
    ("labels", "increasing", "decreasing", "message"),
    [
        (
            ("a", "b", "c"),
            (),
            ("age",),
            r"--decreasing takes a class of two labels, and 'ill' has 3; towards one of several, learn a column that "
            r"says 1 for it and 0 for all others \(bncli help monotone\)",
        ),
        (("no", "yes"), ("site",), (), "--increasing site: this column is categorical"),
        (("no", "yes"), ("ill",), (), "--increasing ill: this column is the class"),
        (("no", "yes"), (), ("aeg",), "--decreasing names no attribute: 'aeg'; did you mean 'age'?"),
    ],
)
def test_what_has_none_is_named(
    labels: tuple[str, ...], increasing: tuple[str, ...], decreasing: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        directed(rows(labels), increasing, decreasing)
