"""Strict JSON: whatever is wrong is one line with the place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.errors import BncliError, ModelError
from bncli.files.json_documents import Node, dump_json, parse_json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not valid JSON: expecting value, f, line 1, column 1"),
        (b'{"a": 1,\n "b": }', "not valid JSON: expecting value, f, line 2, column 7"),
        (b'{"a": 1, "a": 2}', 'the key "a" is given twice in one object, f'),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"[" * 100_000, "nested too deeply, f"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply, f"),
        (b'{"a":' * 100_000, "nested too deeply, f"),
        (
            b"[" + b"9" * 10_000 + b"]",
            ("the file contains a number of 10000 digits, f; check whether the file is damaged"),
        ),
        (
            b"[1, -" + b"9" * 4001 + b"]",
            "the file contains a number of 4001 digits, f; check whether the file is damaged",
        ),
        (b'"\\ud800"', "half of a surrogate pair, f"),
        (b'{"\\udfff": 1}', "half of a surrogate pair, f"),
        (b'{"a": 1,\n"\xff": 1}', "the file is not UTF-8 text, f, line 2"),
        (b"{} {}", "not valid JSON: extra data"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(BncliError) as caught:
        parse_json(text, "f")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_not_content() -> None:
    assert parse_json(b"\xef\xbb\xbf[1]", "f").value == [1]


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_an_error(data: bytes) -> None:
    try:
        node = parse_json(data, "f", ModelError)
    except ModelError:
        return
    assert json.loads(data.decode("utf-8-sig")) == node.value


@pytest.mark.parametrize(
    ("value", "reader", "message"),
    [
        (1, "members", "expected an object, found a number, f, x"),
        ([], "members", "expected an object, found a list"),
        ({}, "items", "expected a list, found an object"),
        (None, "text", "expected a string in quotes, found null"),
        (["a", "a"], "texts", "'a' is listed twice, f, x[1]"),
        (["a", 1], "texts", "expected a string in quotes, found a number, f, x[1]"),
        (1, "flag", "expected true or false, found a number"),
        (True, "integer", "expected a whole number, found true"),
        (1.0, "integer", "expected a whole number without a decimal point or exponent, found 1.0"),
        (2**63, "integer", "out of range"),
        (10**400, "number", "the number is too large"),
        (float("inf"), "number", "the number is too large"),
        (False, "number", "expected a number, found false"),
        ("1", "number", "expected a number, found a string"),
        (None, "scalar", "expected a string in quotes, found null"),
    ],
)
def test_a_wrong_type_is_named_with_its_key(value: object, reader: str, message: str) -> None:
    with pytest.raises(BncliError) as caught:
        getattr(Node(value, "f", "x"), reader)()
    assert message in str(caught.value)


def test_fields_are_all_there_and_no_others() -> None:
    node = parse_json(b'{"one": 1, "tow": 2}', "f")
    with pytest.raises(BncliError, match="unknown key 'tow', f; the keys here are one, two"):
        node.fields(["one"], ["two"])
    with pytest.raises(BncliError, match="the key 'three' is missing, f"):
        node.fields(["one", "tow", "three"])
    assert node.fields(["one"], ["tow"])["tow"].integer() == 2


def test_keys_are_told_as_a_path() -> None:
    node = parse_json(b'{"a": [{"b c": [1, "x"]}]}', "f")
    inner = node.members()["a"].items()[0].members()["b c"].items()[1]
    with pytest.raises(BncliError) as caught:
        inner.number()
    assert caught.value.where == 'f, a[0]["b c"][1]'


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)


@given(st.dictionaries(TEXTS, VALUES))
def test_a_dump_is_the_same_json(members: dict[str, object]) -> None:
    assert json.loads(dump_json(members)) == members


def test_the_layout_has_an_element_a_line() -> None:
    members = {"a": 1, "list": [{"b": [1, 2]}, {}], "flat": [1, 2], "map": {"x": ["y"], "z": []}, "options": {"k": 1}}
    assert dump_json(members).splitlines() == [
        "{",
        '  "a": 1,',
        '  "list": [',
        '    {"b": [1, 2]},',
        "    {}",
        "  ],",
        '  "flat": [1, 2],',
        '  "map": {',
        '    "x": ["y"],',
        '    "z": []',
        "  },",
        '  "options": {"k": 1}',
        "}",
    ]


@pytest.mark.parametrize("digits", [1, 20, 309, 4000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_other_whole_numbers_are_read_as_they_are(sign: str, digits: int) -> None:
    assert parse_json(f"[{sign}{'7' * digits}]".encode(), "f").value == [int(f"{sign}{'7' * digits}")]
