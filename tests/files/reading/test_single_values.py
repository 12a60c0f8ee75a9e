"""Values of one row are read as `values`, `numbers` and `dates` read those of a table."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import DATE_ORDERS, DATE_PARTS, DateForm, DateOrder, NumberForm
from bncli.files.reading.dates import part_of, to_seconds
from bncli.files.reading.numbers import to_numbers_in_form
from bncli.files.reading.single_values import _part_of, _text_of_float, number_in_form, seconds_of_text

DIGITS = st.text("0123456789", min_size=1, max_size=5)
NUMBERS = st.builds(
    lambda before, groups, mark, after, sign, end: f"{sign}{mark.join([before, *groups])}{after}{end}",
    DIGITS,
    st.lists(st.text("0123456789", min_size=2, max_size=3), max_size=2),
    st.sampled_from([".", ",", " ", "'", "\u00a0", "\u2019"]),
    st.sampled_from(["", ",5", ".25", ",", "e3"]),
    st.sampled_from(["", "-", "+", "(", "€ ", "-€", "\u2212"]),
    st.sampled_from(["", "-", ")", " €", "%", " €-"]),
)
DATES = st.builds(
    lambda parts, marks, clock: f"{parts[0]}{marks[0]}{parts[1]}{marks[1]}{parts[2]}{clock}",
    st.permutations(["2024", "24", "3", "03", "31", "29", "2", "Feb", "september", "Foo", "0", "12"]),
    st.tuples(*[st.sampled_from(["-", ".", "/", " ", ". ", ", "])] * 2),
    st.sampled_from(["", " 9:30", "T09:30:15", ", 12:00 AM", " 13:00 pm", " 24:00", " 10:00:00.25Z", "T1:02+01:00"]),
)


@given(NUMBERS, st.sampled_from([".", ","]), st.sampled_from(["", "€", "%"]))
def test_numbers_in_a_national_form(text: str, decimal: str, affix: str) -> None:
    form = NumberForm(decimal, affix)
    expected = to_numbers_in_form(pa.array([text]), form)[0][0]
    found = number_in_form(text, form)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@given(
    DATES | st.sampled_from(["2024-02-29", "2023-02-29", "9:30", "0:00 PM", "12:59:59 pm"]),
    st.sampled_from(DATE_ORDERS),
)
def test_dates(text: str, order: DateOrder) -> None:
    expected = to_seconds(pa.array([text]), order)[0][0]
    found = seconds_of_text(text, order)
    assert found == expected or (math.isnan(found) and math.isnan(expected))
    if not math.isnan(found):
        for part in DATE_PARTS:
            assert (
                _part_of(int(found), DateForm("d", part, order, 7)) == part_of(pa.array([found]).to_numpy(), part, 7)[0]
            )


@given(st.floats(allow_nan=False))
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_text_of_a_number_is_that_of_arrow(scale: float, number: float) -> None:
    for value in (number * scale, float(round(number)) if abs(number) < 1e15 else number):
        assert _text_of_float(value) == pa.array([value]).cast(pa.string())[0].as_py()
