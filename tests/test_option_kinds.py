"""Kinds of values: what was written is read again, bounds hold, and what is not a value is refused with its reason."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.catalogue.option_kinds import (
    Integer,
    NumberChoice,
    Real,
    Switch,
    Word,
    format_number,
    json_schema,
    parse_decimal,
)

WHOLE, REAL, SHARE = Integer(2, 10_000), Real(), Real(below=1)


@given(st.integers(0, 10**18))
def test_whole_numbers_are_read_from_numbers_and_texts(number: int) -> None:
    assert Integer().parse(number) == Integer().parse(f" {number} ") == number


@given(st.integers())
def test_whole_numbers_stay_within_bounds(number: int) -> None:
    if 2 <= number <= 10_000:
        assert WHOLE.parse(number) == number
    else:
        with pytest.raises(ValueError, match=r"at least 2|the maximum is 10000"):
            WHOLE.parse(number)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_numbers_come_back_from_the_text_they_are_written_as(number: float) -> None:
    assert REAL.parse(number) == REAL.parse(format_number(number)) == parse_decimal(format_number(number)) == number


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_share_is_at_least_0_and_below_1(number: float) -> None:
    if 0 <= number < 1:
        assert SHARE.parse(number) == number
    else:
        with pytest.raises(ValueError, match="is not a number of at least 0 and below 1"):
            SHARE.parse(number)


@pytest.mark.parametrize("kind", [WHOLE, REAL, SHARE, NumberChoice(("0", "1")), Word(("cv",)), Real(words=("cv",))])
@pytest.mark.parametrize(
    "value",
    [True, False, None, math.nan, math.inf, -math.inf, -1, "", "nan", "inf", "1_0", "0x1", "١", "two", ()],
)
def test_what_is_no_value_is_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValueError, match="is not"):
        kind.parse(value)


@pytest.mark.parametrize("value", [1.0, "1.0", "1e1", 10**19, "9" * 4001])
def test_whole_numbers_have_no_point_and_an_end(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a whole number|is too large"):
        Integer().parse(value)


@pytest.mark.parametrize("value", [10**400, "1e999", "9" * 400])
def test_numbers_too_large_for_a_float_are_not_finite(value: object) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        REAL.parse(value)


def test_a_word_may_stand_beside_the_numbers() -> None:
    kind = Real(above=True, words=("cv",))
    assert (kind.parse("cv"), kind.parse("2.50")) == ("cv", 2.5)
    with pytest.raises(ValueError, match="'0' is not a finite number above 0, nor cv"):
        kind.parse("0")


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.0"])
def test_one_of_some_numbers_is_stored_as_its_type(value: object) -> None:
    whole, real = NumberChoice(("0", "1")).parse(value), NumberChoice(("0", "1"), float).parse(value)
    assert (whole, type(whole), real, type(real)) == (1, int, 1.0, float)
    with pytest.raises(ValueError, match="'2' is not one of '0', '1'"):
        NumberChoice(("0", "1")).parse(2)


@pytest.mark.parametrize("value", [1, 0, "true", None, "True"])
def test_a_switch_is_true_or_false(value: object) -> None:
    assert (Switch().parse(True), Switch().parse(False)) == (True, False)
    with pytest.raises(ValueError, match="neither true nor false"):
        Switch().parse(value)


@pytest.mark.parametrize("number", [0, 1, 2, 9_999, 10_000, 10_001])
def test_the_schema_says_the_same_bounds(number: int) -> None:
    schema = json_schema(WHOLE)
    inside = schema["minimum"] <= number <= schema["maximum"]
    if inside:
        assert WHOLE.parse(number) == number
    else:
        with pytest.raises(ValueError, match=r"at least|too large"):
            WHOLE.parse(number)
