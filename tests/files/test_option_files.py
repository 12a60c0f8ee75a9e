"""Numbers of labels, typed and in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.catalogue.option_kinds import ClassWeights, format_label_numbers, parse_label_numbers
from bncli.errors import BncliError
from bncli.files.option_files import read_label_numbers, resolve_label_numbers

label = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1)


@given(st.dictionaries(label, st.floats(1e-9, 1e9), min_size=1))
def test_what_is_written_is_read(numbers: dict[str, float]) -> None:
    assert parse_label_numbers(format_label_numbers(numbers)) == numbers
    assert ClassWeights().parse(numbers) == format_label_numbers(numbers)


def test_typed() -> None:
    kind = ClassWeights(("balanced",))
    assert kind.parse("balanced") == "balanced"
    assert kind.parse(" yes = 5 , no=1.0") == "no=1,yes=5"
    assert parse_label_numbers('"a,b"=2,x=y=3') == parse_label_numbers('"a,b=2",x=y=3') == {"a,b": 2.0, "x=y": 3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("even", "'even' is not of the form label=NUMBER, nor balanced, and there is no file 'even'"),
        ("a=", "'a=' is not of the form label=NUMBER"),
        ("a=nan", "is not of the form label=NUMBER"),
        ("a,b=2", """'a' is not of the form label=NUMBER.*: '"a,b=2"'$"""),
        ("a, b=2", """: '"a, b=2"'$"""),
        ('c=1,x:"a,b"=2', """: '"x:a,b=2"'$"""),
        ("a=1,b", "'b' is not of the form label=NUMBER, nor balanced, and there is no file 'a=1,b'$"),
        ("a=1,a=2", "'a' appears twice"),
        ("a=0", "the number for label 'a' must be finite and above 0"),
        ("a=-1", "the number for label 'a' must"),
        ({"a": True}, "the number for label 'a' must"),
        ({"a": float("inf")}, "the number for label 'a' must"),
        ({}, "it contains no label=NUMBER"),
        ("", "it contains no label=NUMBER"),
    ],
)
def test_slips_are_named(text: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assert ClassWeights(("balanced",)).parse(text)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    for text in ("label,weight\nno,1\nyes,5\n", "\ufeffyes,5\r\n\r\nno, 1\r\n", '{"no": 1, "yes": 5.0}'):
        path.write_text(text, encoding="utf-8", newline="")
        assert read_label_numbers(str(path)) == {"no": 1.0, "yes": 5.0}
        assert resolve_label_numbers(str(path)) == resolve_label_numbers(path) == "no=1,yes=5"
    assert resolve_label_numbers("no=1") == "no=1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no label with a number"),
        (b"label,weight\n", "no label with a number"),
        (b"a,1\nb\n", "found 'b', .*line 2"),
        (b"a,1\nb,two\n", "found 'b,two', .*line 2"),
        (b"a,1\na,2\n", "twice, .*line 2"),
        (b"a,1,2\n", "found 'a,1,2', .*line 1"),
        (b'a,"1\n', "not valid CSV"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"a": "x"}', "expected a number"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"{}", "no label with a number"),
    ],
)
def test_files_that_hold_no_such_list(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "weights.csv"
    path.write_bytes(content)
    with pytest.raises(BncliError, match=message):
        read_label_numbers(str(path))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="cannot read"):
        read_label_numbers(str(tmp_path))
