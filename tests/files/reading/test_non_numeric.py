"""Columns that a few strange texts turn from numbers into text, and what the user is told of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bncli.errors import BncliError
from bncli.watch import Event, Note
from tests.files.reading.test_table import table, values


def numbers_and_one(text: str, n: int = 40, delimiter: str = ",") -> str:
    """A table whose column `a` is n different numbers, and on line n + 2 a text."""
    rows = [f"{i}.5{delimiter}{'uv'[i % 2]}\n" for i in range(n)]
    return f"a{delimiter}k\n" + "".join(rows) + f"{text}{delimiter}u\n"


def test_one_slip_among_numbers_is_told(tmp_path: Path) -> None:
    content = numbers_and_one("1.2x")
    said = (
        r"column 'a': 40 of 41 values are numbers, but '1\.2x' \(.*t\.csv line 42\) is not; "
        r"--numeric a reads it as numbers, --missing \+1.2x as missing"
    )
    with pytest.raises(BncliError, match=f"look like identifiers.*{said}; --categorical NAME keeps one"):
        table(tmp_path, content)
    notes: list[Event] = []
    table(
        tmp_path, content.replace("a,k", "a,b,k").replace(",", ",7,").replace("a,7,b,7,k", "a,b,k"), watch=notes.append
    )
    assert [note.text for note in notes if isinstance(note, Note) and re.fullmatch(said, note.text)]


@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_a_slip_is_counted_over_all_blocks(tmp_path: Path, block_size: int) -> None:
    notes: list[Event] = []
    content = numbers_and_one("?,u\noops", 30) + "".join(f"{i % 7},v\n" for i in range(500))
    table(tmp_path, content, watch=notes.append, block_size=block_size)
    assert any("530 of 531 values are numbers, but 'oops'" in note.text for note in notes if isinstance(note, Note))


def test_no_doubt_about_columns_of_text(tmp_path: Path) -> None:
    notes: list[Event] = []
    words = "a,b,k\n" + "".join(f"{'w' if i % 5 == 0 else i % 9},{'xyz'[i % 3]},{'uv'[i % 2]}\n" for i in range(60))
    table(tmp_path, words, watch=notes.append)
    table(tmp_path, numbers_and_one("1.2x", 19), watch=notes.append, categorical=("a",))
    table(tmp_path, numbers_and_one("1.2x"), watch=notes.append, categorical=("a",))
    assert not [note for note in notes if isinstance(note, Note)]


def test_decimal_commas_are_told(tmp_path: Path) -> None:
    content = numbers_and_one("3,14", delimiter=";").replace(".5;", ",5;")
    notes: list[Event] = []
    columns = table(tmp_path, content, watch=notes.append)
    assert values(columns, "a")[-2:] == [39.5, 3.14]
    assert "numbers: a (decimal comma)" in [note.text for note in notes if isinstance(note, Note)]


@pytest.mark.parametrize(("n_words", "told"), [(4, True), (5, False)])
def test_nine_tenths_must_be_numbers(tmp_path: Path, n_words: int, told: bool) -> None:
    notes: list[Event] = []
    rows = [*(f"{i % 8}.5" for i in range(36)), *["w"] * n_words]
    table(tmp_path, "a,k\n" + "".join(f"{a},{'uv'[i % 2]}\n" for i, a in enumerate(rows)), watch=notes.append)
    assert told == any("36 of 40 values are numbers" in note.text for note in notes if isinstance(note, Note))
