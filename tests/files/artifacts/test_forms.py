"""Forms of numbers and dates in cuts files and models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.number_formats import DATE_PARTS, DateForm, Form, NumberForm
from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.errors import BncliError
from bncli.files.artifacts.attributes import form_json, read_form
from bncli.files.artifacts.cuts import dump_cuts, read_cuts
from bncli.files.documents import Node

ORIGINS = st.one_of(st.integers(-719162, 2932896), st.integers(-(10**12), 10**12))
FORMS = st.one_of(
    st.builds(NumberForm, st.sampled_from(".,"), st.sampled_from(["", "€", "%", "US$", " a"])),
    st.builds(NumberForm, st.just("."), st.just(""), st.lists(st.text(min_size=1), unique=True).map(tuple)),
    st.builds(DateForm, st.just("d"), st.sampled_from(DATE_PARTS[:-1]), st.sampled_from(["ymd", "mdy", "yymd"])),
    st.builds(lambda origin: DateForm("é", "days", "dmy", origin), ORIGINS),
    st.just(DateForm("t", "hour", "time")),
)


@given(FORMS)
def test_forms_read_back(form: Form) -> None:
    assert read_form(Node(form_json(form), "f")) == form


def test_a_cuts_file_with_forms_reads_back(tmp_path: Path) -> None:
    forms: list[Form | None] = [
        None,
        NumberForm(","),
        DateForm("d", "year", "dmy"),
        DateForm("d", "days", "dmy", 19000),
    ]
    attributes = tuple(NumericAttribute(f"x{i}", False, (), (1.5,), form) for i, form in enumerate(forms))
    cuts = Cuts("class", attributes)
    path = tmp_path / "cuts.json"
    path.write_text(dump_cuts(cuts))
    assert read_cuts(str(path)) == cuts
    assert dump_cuts(read_cuts(str(path))) == path.read_text()
    assert path.read_text().count('"form"') == 3


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"decimal": ";"}, "the decimal mark is '.' or ','"),
        ({"decimal": 1}, "expected a text"),
        ({"decimal": ".", "words": ["n/a", ""]}, "a word is empty"),
        ({"decimal": ".", "words": ["n/a", "n/a"]}, "'n/a' is listed twice"),
        ({"decimal": ".", "words": "n/a"}, "expected a list"),
        ({"decimal": ",", "date": "d"}, "unknown key"),
        ({"date": "d", "part": "month"}, "order"),
        (
            {"date": "d", "part": "minute", "order": "dmy"},
            "unknown part 'minute' of a date, f, part; one of",
        ),
        ({"date": "d", "part": "month", "order": "ydm"}, "unknown order 'ydm' of a date"),
        ({"date": "d", "part": "month", "order": "time"}, "a time of the day has an hour and no other part"),
        ({"date": "d", "part": "days", "order": "dmy"}, "'days' is counted from an origin"),
        ({"date": "d", "part": "year", "order": "dmy", "origin": "2024-03-01"}, "'days' is counted from an origin"),
        ({"date": "d", "part": "days", "order": "dmy", "origin": "2024-02-30"}, "the origin is no date"),
        ({"date": "d", "part": "days", "order": "dmy", "origin": 1.5}, "expected a text"),
        ({"date": "d", "part": "days", "order": "dmy", "origin": True}, "expected a"),
        ([], "expected an object"),
    ],
)
def test_wrong_forms_are_refused(form: Any, message: str) -> None:
    with pytest.raises(BncliError, match=re.escape(message)):
        read_form(Node(form, "f"))


def test_a_column_of_dates_is_read_in_one_way(tmp_path: Path) -> None:
    path = tmp_path / "cuts.json"
    orders = [DateForm("d", "year", "dmy"), DateForm("d", "month", "mdy")]
    for attributes, message in (
        ([("d.year", orders[0]), ("d.month", orders[1])], "the dates of 'd' are read in two orders"),
        ([("d.year", orders[0]), ("d", None)], "'d.year' is made from the dates of 'd', which is used itself"),
    ):
        cuts = Cuts("class", tuple(NumericAttribute(name, False, (), (), form) for name, form in attributes))
        path.write_text(dump_cuts(cuts))
        with pytest.raises(BncliError, match=message):
            read_cuts(str(path))
