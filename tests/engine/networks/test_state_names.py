"""Names of codes: intervals, levels, and a missing level that is called like no other."""

from __future__ import annotations

import pytest
from hypothesis import given

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.networks.named_network import state_names, value_names
from tests.strategies import attributes


def test_intervals() -> None:
    age = NumericAttribute("age", True, (), (-1.0, 2.5, 0.1 + 2.5))
    assert state_names(age) == ("(-inf,-1]", "(-1,2.5]", "(2.5,2.6]", "(2.6,inf)", "missing")
    assert state_names(NumericAttribute("age", True, (), ())) == ("(-inf,inf)", "missing")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (("a", "b"), "missing"),
        (("a", "missing"), "missing_2"),
        (("missing", "missing_2", "missing_4"), "missing_3"),
    ],
)
def test_the_missing_level_collides_with_none(levels: tuple[str, ...], expected: str) -> None:
    assert state_names(CategoricalAttribute("x", True, (), levels)) == (*levels, expected)
    assert state_names(CategoricalAttribute("x", False, (), levels)) == levels


@given(attributes("x"))
def test_every_code_has_a_name_of_its_own(attribute: Attribute) -> None:
    names = state_names(attribute)
    assert len(set(names)) == len(names) == attribute.cardinality
    assert value_names(attribute) == names[: attribute.n_values]
