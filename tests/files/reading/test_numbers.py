"""Numbers written as text, plain and in national forms, against Python's float and Decimal."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bncli.engine.data.schema import NumberForm
from bncli.files.reading.numbers import FEW, find_form, to_numbers, to_numbers_in_form

MISSING = ("", "?", "NA")
DECIMAL = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*", re.ASCII)
words = st.one_of(
    st.text(" \t+-.0189eExXnaif_?N", max_size=8),
    st.floats(allow_nan=False).map(repr),
    st.integers().map(str),
    st.sampled_from(["", " ?", "NA", "nan", "1e400", "-1e-400", "0x10", "1e308", "\u0661"]),
)


@given(st.lists(words, max_size=12), st.sampled_from([1, FEW]))
def test_texts_are_numbers_missing_or_wrong(texts: list[str], times: int) -> None:
    texts = times * texts  # few and many have ways of their own
    values, wrong = to_numbers(pa.array(texts, pa.string()), MISSING)
    for i, text in enumerate(texts):
        is_missing = text.strip(" \t") in MISSING
        is_number = not is_missing and DECIMAL.fullmatch(text) is not None and math.isfinite(float(text))
        assert (wrong is not None and bool(wrong[i])) == (not is_missing and not is_number)
        np.testing.assert_equal(values[i], float(text) if is_number else np.nan)


MARKS = {".": [",", " ", "'", "\u00a0", "\u202f", "\u2019", ""], ",": [".", " ", "'", "\u00a0", "\u2019", ""]}
AFFIXES = ["", "€", "$", "EUR", "CHF", "%", "US$", "kr", "£"]
DECIMALS = st.decimals(min_value=-(10**12), max_value=10**12, places=2) | st.integers(-(10**9), 10**9).map(Decimal)


def written(number: Decimal, decimal: str, group: str, affix: str, where: str, minus: str) -> str:
    """The number as a country writes it."""
    text = f"{abs(number):,}".replace(",", "G").replace(".", decimal).replace("G", group)
    if where == "before":
        text = f"{affix} {text}" if affix else text
    elif where == "close":
        text = f"{affix}{text}"
    else:
        text = f"{text} {affix}" if affix else text
    if number >= 0:
        return text
    return f"({text})" if minus == "()" else f"{text}-" if minus == "after" and where != "after" else f"-{text}"


@given(
    st.lists(DECIMALS, min_size=1, max_size=10),
    st.sampled_from([(mark, group) for mark, groups in MARKS.items() for group in groups]),
    st.sampled_from(AFFIXES),
    st.sampled_from(["before", "close", "after"]),
    st.sampled_from(["-", "()", "after"]),
)
def test_numbers_read_back(numbers: list[Decimal], marks: tuple[str, str], affix: str, where: str, minus: str) -> None:
    texts = pa.array([written(n, *marks, affix, where, minus) for n in numbers])
    found, fits = to_numbers_in_form(texts, NumberForm(marks[0], affix))
    assert fits.all(), texts
    assert found.tolist() == [float(n) for n in numbers]


@given(
    st.lists(st.decimals(-(10**7), 10**7, places=2), min_size=3, max_size=12, unique=True),
    st.sampled_from([(mark, group) for mark, groups in MARKS.items() for group in groups]),
    st.sampled_from(AFFIXES),
    st.sampled_from([",", ";", "\t"]),
)
def test_a_column_of_two_decimals_is_recognised(
    numbers: list[Decimal], marks: tuple[str, str], affix: str, delimiter: str
) -> None:
    texts = pa.array(written(n, *marks, affix, "after", "-") for n in numbers)
    assume(to_numbers(texts, ())[1] is not None)  # else they are plain numbers and nobody asks
    found = find_form(texts, None, delimiter)
    if found is None:
        assert len(texts.filter(pa.array(to_numbers(texts, ())[1]))) < 2
        return
    form, is_ambiguous = found
    assert not is_ambiguous
    assert to_numbers_in_form(texts, form)[0].tolist() == [float(n) for n in numbers]


@pytest.mark.parametrize(
    ("texts", "delimiter", "decimal", "either"),
    [
        (["1,234", "5,678", "12"], ",", ".", True),  # numbers below 1000 have no mark: it parts thousands
        (["1,234", "5,678", "12"], ";", ".", True),
        (["1,234", "5,678"], ",", ".", True),
        (["1,234", "5,678"], ";", ",", True),
        (["1,234", "5,678", "4321"], ",", ",", True),  # thousands would have been parted
        (["1,234", "0,678"], ",", ",", False),
        (["1,234", "5,67"], ",", ",", False),
        (["1,234", "5,678,901"], ";", ".", False),
        (["1.234,5", "1.234", "7,5"], ",", ",", False),
        (["1.234.567", "1.234", "1.000.000"], ",", ",", False),
        (["€ 1.234", "€ 5.678"], ";", ",", True),
        (["€ 1.234", "€ 5.678"], ",", ".", True),
        (["1 234", "5 678"], ",", ".", False),
        (["\u22125", "\u22127", "3"], ",", ".", False),
    ],
)
def test_ambiguous_marks_are_decided_over_all_values(
    texts: list[str], delimiter: str, decimal: str, either: bool
) -> None:
    found = find_form(pa.array(texts), None, delimiter)
    assert found is not None
    assert (found[0].decimal, found[1]) == (decimal, either)
    forced = find_form(pa.array(texts), decimal, delimiter)
    assert forced is not None
    assert (forced[0].decimal, forced[1]) == (decimal, False)


@pytest.mark.parametrize(
    "texts",
    [
        ["1,234", "5.678", "1,2"][:2],  # either mark is the decimal one in one of them
        ["1,5", "1.5"],
        ["€ 5,10", "$ 5,10"],
        ["€ 5,10", "5,10"],
        ["-", "1,5"],
        ["€", "€ 5"],
        ["1,5", "2"],  # a single value decides nothing
        ["1.234,5", "1.234"],
        ["1.2.3", "4.5.6"],
        ["192.168.1.1", "10.0.0.1"],
        ["1,23,456", "1,2"],
        ["01,234,567", "2,345,678"],
        ["5%%", "6%%"],
        ["+-5,1", "--5,2"],
        ["(5,1", "6,2)"],
        ["(-5,1)", "(-6,2)"],
        ["1e400,", "1,5"],
        ["١,٥", "1,5"],
        ["", "1,5"],
    ],
)
def test_no_form(texts: list[str]) -> None:
    assert find_form(pa.array(texts), None, ";") is None


@given(
    st.lists(st.one_of(st.text(), st.text("0123456789-+., '€$%()eE")), min_size=1, max_size=8),
    st.sampled_from([None, ".", ","]),
)
def test_any_text_is_a_number_or_none(texts: list[str], decimal: str | None) -> None:
    array = pa.array(texts, pa.string())
    find_form(array, decimal, ",")
    for form in (NumberForm(".", "€"), NumberForm(",", "a (b.")):
        found, fits = to_numbers_in_form(array, form)
        assert (np.isnan(found) == ~fits).all()


@given(st.lists(st.text("0123456789.eE+-", max_size=8), min_size=1, max_size=8))
def test_plain_numbers_are_what_they_were(texts: list[str]) -> None:
    array = pa.array(texts, pa.string())
    plain, wrong = to_numbers(array, ())
    found, fits = to_numbers_in_form(array, NumberForm("."))
    is_plain = np.ones(len(texts), np.bool_) if wrong is None else ~wrong
    assert fits[is_plain].all()
    assert (found[is_plain] == plain[is_plain]).all()
