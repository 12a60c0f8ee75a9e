"""The cuts file: round trips, mistakes made by hand, forms of numbers and dates, and the binned table."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import (
    DATE_PARTS,
    CategoricalAttribute,
    Cuts,
    DateForm,
    Form,
    NumberForm,
    NumericAttribute,
    Schema,
)
from bncli.errors import BncliError
from bncli.files.artifacts.cuts import dump_cuts, form_json, read_cuts, read_form, write_binned_table, write_cuts
from bncli.files.json_documents import Node

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CUT_LISTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), unique=True, max_size=5).map(sorted).map(tuple)
LEVEL_LISTS = st.lists(TEXTS.filter(bool), unique=True, max_size=5).map(tuple)


@st.composite
def any_cuts(draw: st.DrawFn) -> Cuts:
    names = draw(st.lists(TEXTS, unique=True, min_size=1, max_size=5))
    attributes = tuple(
        NumericAttribute(name, draw(st.booleans()), (), draw(CUT_LISTS))
        if draw(st.booleans())
        else CategoricalAttribute(name, draw(st.booleans()), (), draw(LEVEL_LISTS))
        for name in names[1:]
    )
    return Cuts(names[0], attributes, draw(TEXTS), draw(st.dictionaries(TEXTS, st.integers(0, 2**63 - 1), max_size=3)))


@given(any_cuts())
def test_there_and_back_is_the_same(tmp_path_factory: pytest.TempPathFactory, cuts: Cuts) -> None:
    path = tmp_path_factory.getbasetemp() / "cuts.json"
    write_cuts(str(path), cuts)
    assert read_cuts(str(path)) == cuts
    assert dump_cuts(read_cuts(str(path))).encode() == path.read_bytes()


def test_the_file_is_readable() -> None:
    attributes = (
        NumericAttribute("age", False, (), (27.5, 41.0)),
        CategoricalAttribute("tür", False, (), ("no", "yes")),
    )
    assert dump_cuts(Cuts("sick", attributes, "equal-width", {"bins": 3})) == (
        "{\n"
        '  "format": "bncli-cuts",\n'
        '  "version": 1,\n'
        '  "class": "sick",\n'
        '  "method": "equal-width",\n'
        '  "options": {"bins": 3},\n'
        '  "attributes": [\n'
        '    {"name": "age", "type": "numeric", "cuts": [27.5, 41.0]},\n'
        '    {"name": "tür", "type": "categorical", "levels": ["no", "yes"]}\n'
        "  ]\n"
        "}\n"
    )


def document(**changes: Any) -> dict[str, Any]:
    attribute = {"name": "a", "type": "numeric", "cuts": [1, 2.5]}
    return {"format": "bncli-cuts", "version": 1, "class": "y", "attributes": [attribute]} | changes


def read(tmp_path: Path, content: object) -> Cuts:
    path = tmp_path / "cuts.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_cuts(str(path))


def test_a_file_by_hand_may_be_short(tmp_path: Path) -> None:
    assert read(tmp_path, document()) == Cuts("y", (NumericAttribute("a", False, (), (1.0, 2.5)),), "file", {})


def one(**attribute: Any) -> dict[str, Any]:
    return document(attributes=[attribute])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "this is a text file, perhaps a table, not a bncli cuts file"),
        (b"", "this is an empty file"),
        (b"\x1f\x8b\x08", "this is a gzip-compressed file"),
        (b"[1]", "expected an object, found a list"),
        (b"{", "not valid JSON"),
        ({"format": "bncli-structure"}, "this is a bncli structure file, not a bncli cuts file"),
        ({}, "not a bncli cuts file, .*; it must contain \"format\": \"bncli-cuts\""),
        ({"format": "bncli-cuts"}, "the key 'version' is missing"),
        (document(version=2), "written by a newer bncli .format version 2.*upgrade bncli"),
        (document(version=2, new=1), "written by a newer bncli"),
        (document(version=0), "out of range"),
        (document(version="1"), "expected a whole number, found a string"),
        (document(attribute=[]), "unknown key 'attribute'"),
        ({"format": "bncli-cuts", "version": 1, "class": "y"}, "the key 'attributes' is missing"),
        (document(**{"class": None}), "expected a string in quotes, found null, .*json, class"),
        (document(attributes={}), "expected a list, found an object, .*json, attributes"),
        (document(options={"bins": "3"}), r"expected a whole number, found a string, .*json, options\.bins"),
        (one(type="numeric", cuts=[]), r"the key 'name' is missing, .*json, attributes\[0\]"),
        (one(name="a", cuts=[]), "the key 'type' is missing"),
        (one(name="a", type="ordinal", cuts=[]), "unknown type 'ordinal'.*numeric or categorical"),
        (one(name="a", type="numeric", levels=["x"]), "unknown key 'levels'"),
        (one(name="a", type="numeric", cuts=[], missing="yes"), "expected true or false, found a string"),
        (one(name="a", type="numeric", cuts=["1"]), r"expected a number, found a string, .*attributes\[0\]\.cuts\[0\]"),
        (one(name="a", type="numeric", cuts=[2, 1]), "the cuts are not increasing: 1.0 comes after 2.0"),
        (one(name="a", type="numeric", cuts=[1, 1.0]), "the cuts are not increasing: 1.0 comes after 1.0"),
        (one(name="a", type="numeric", cuts=[2**53, 2**53 + 1]), "the cuts are not increasing"),
        (one(name="a", type="numeric", cuts=[0.0, -0.0]), "the cuts are not increasing"),
        (one(name="a", type="numeric", cuts=[10**400]), "too large"),
        (b'{"format": "bncli-cuts", "version": 1, "class": "y", "attributes": '
         b'[{"name": "a", "type": "numeric", "cuts": [1e999]}]}', "too large"),
        (one(name="a", type="categorical", levels=["x", "x"]), "'x' is listed twice"),
        (one(name="a", type="categorical", levels=["x", ""]), "a level is an empty string"),
        (one(name="a", type="categorical", levels="xy"), "expected a list, found a string"),
        (one(name="y", type="numeric", cuts=[]), "the name 'y' is given twice .the class."),
        (document(attributes=document()["attributes"] * 2), r"the name 'a' is given twice, .*attributes\[1\]"),
    ],
)  # fmt: skip
def test_faults_are_told_in_a_line_with_the_place(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(BncliError, match=message) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)
    assert "cuts.json" in str(caught.value)
    assert caught.value.exit_code == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match=r"no such file, .*nothing\.json"):
        read_cuts(str(tmp_path / "nothing.json"))
    with pytest.raises(BncliError, match="cannot read: this is a folder"):
        read_cuts(str(tmp_path))


TOWN = {
    "name": "town",
    "type": "categorical",
    "levels": ["Lyon|Paris", "Brest"],
    "groups": [["Lyon", "Paris"], ["Brest"]],
}


def test_pooled_levels_there_and_back(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(document(attributes=[TOWN], options={"group_levels": "auto"})))
    cuts = read_cuts(str(tmp_path / "c.json"))
    (town,) = cuts.attributes
    assert isinstance(town, CategoricalAttribute)
    assert town.groups == (("Lyon", "Paris"), ("Brest",))
    assert town.code_of == {"Lyon|Paris": 0, "Brest": 1, "Lyon": 0, "Paris": 0}
    assert cuts.options == {"group_levels": "auto"}
    write_cuts(str(tmp_path / "d.json"), cuts)
    assert read_cuts(str(tmp_path / "d.json")) == cuts
    assert '"groups": [["Lyon", "Paris"], ["Brest"]]' in (tmp_path / "d.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": [["Lyon", "Paris"]]}, "1 groups for 2 levels"),
        ({"groups": [["Lyon", "Paris"], []]}, "a group is empty"),
        ({"groups": [["Lyon", "Brest"], ["Brest"]]}, "the value 'Brest' is in two groups"),
        ({"groups": [["Lyon", "Lyon"], ["Brest"]]}, "'Lyon' is listed twice"),
        ({"groups": [["Lyon", ""], ["Brest"]]}, "a level is an empty string"),
        (
            {"groups": [["Lyon", "Paris"], ["Nice"]]},
            "the value 'Nice' is alone in its group, but its level is called 'Brest'",
        ),
        ({"levels": ["Lyon", "Brest"]}, "the pooled level 'Lyon' has the name of a value"),
        ({"groups": "Lyon"}, "list"),
        ({"groups": [["Lyon", 3], ["Brest"]]}, "string"),
        ({"type": "numeric", "cuts": [1.0]}, "levels"),
    ],
)
def test_groups_that_cannot_be(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    (tmp_path / "c.json").write_text(json.dumps(document(attributes=[TOWN | changes])))
    with pytest.raises(BncliError, match=message):
        read_cuts(str(tmp_path / "c.json"))


@pytest.mark.parametrize("rule", ["some", 1.5, True, []])
def test_a_rule_that_cannot_be(tmp_path: Path, rule: Any) -> None:
    (tmp_path / "c.json").write_text(json.dumps(document(attributes=[TOWN], options={"group_levels": rule})))
    with pytest.raises(BncliError, match="whole number"):
        read_cuts(str(tmp_path / "c.json"))


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
        ({"decimal": ";"}, "the decimal mark must be '.' or ','"),
        ({"decimal": 1}, "expected a string"),
        ({"decimal": ".", "words": ["n/a", ""]}, "a missing token is empty"),
        ({"decimal": ".", "words": ["n/a", "n/a"]}, "'n/a' is listed twice"),
        ({"decimal": ".", "words": "n/a"}, "expected a list"),
        ({"decimal": ",", "date": "d"}, "unknown key"),
        ({"date": "d", "part": "month"}, "order"),
        (
            {"date": "d", "part": "minute", "order": "dmy"},
            "unknown part 'minute' of a date, f, part; one of",
        ),
        ({"date": "d", "part": "month", "order": "ydm"}, "unknown order 'ydm' of a date"),
        ({"date": "d", "part": "month", "order": "time"}, "the only part of a time of day must be the hour"),
        ({"date": "d", "part": "days", "order": "dmy"}, "'days' needs an origin"),
        ({"date": "d", "part": "year", "order": "dmy", "origin": "2024-03-01"}, "'days' needs an origin"),
        ({"date": "d", "part": "days", "order": "dmy", "origin": "2024-02-30"}, "the origin is not a date"),
        ({"date": "d", "part": "days", "order": "dmy", "origin": 1.5}, "expected a string"),
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
        ([("d.year", orders[0]), ("d.month", orders[1])], "the dates of 'd' are read in two different orders"),
        (
            [("d.year", orders[0]), ("d", None)],
            ("'d.year' is derived from the dates of 'd', which is an attribute itself"),
        ),
    ):
        cuts = Cuts("class", tuple(NumericAttribute(name, False, (), (), form) for name, form in attributes))
        path.write_text(dump_cuts(cuts))
        with pytest.raises(BncliError, match=message):
            read_cuts(str(path))


AGE = NumericAttribute("age, in years", True, (1.0, 1.0, 1.0), (2.5,))
NAMES = CategoricalAttribute("who", False, (1.0, 1.0, 1.0), ('o"n, e', "two\nlines", "three"))
SCHEMA = Schema("class", ("no", "yes, sir"), (AGE, NAMES))


def test_binned_values_are_written_as_intervals(tmp_path: Path) -> None:
    attributes = (
        NumericAttribute("x", False, (), (1.0, 0.1 + 0.2)),
        NumericAttribute("all", False, (), ()),
    )
    codes = np.array([0, 1, 2], np.uint8), np.zeros(3, np.uint8)
    path = tmp_path / "binned.csv"
    write_binned_table(str(path), Dataset(Schema("y", ("n", "p"), attributes), codes, np.zeros(3, np.uint8)), "w")
    assert path.read_text().splitlines() == [
        "x,all,y",
        '"(-inf,1]","(-inf,inf)",n',
        '"(1,0.30000000000000004]","(-inf,inf)",n',
        '"(0.30000000000000004,inf)","(-inf,inf)",n',
    ]


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), max_size=20),
    weighted=st.booleans(),
)
def test_the_table_reads_back(tmp_path_factory: object, rows: list[tuple[int, int, int]], weighted: bool) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "binned.csv"  # type: ignore[attr-defined]
    columns = np.array(rows, np.uint8).reshape(-1, 3).T
    weights = np.arange(1, len(rows) + 1) / 4 if weighted else None
    write_binned_table(str(path), Dataset(SCHEMA, (columns[0], columns[1]), columns[2], weights), "w")
    with path.open(newline="") as file:
        header, *read = csv.reader(file)
    assert header == ["age, in years", "who", "class"] + ["w"] * weighted
    expected = [[["(-inf,2.5]", "(2.5,inf)", ""][a], NAMES.levels[b], SCHEMA.labels[c]] for a, b, c in rows]
    assert [row[:3] for row in read] == expected
    if weights is not None:
        assert [float(row[3]) for row in read] == weights.tolist()
        assert [row[3] for row in read] == [f"{weight:g}" for weight in weights]
