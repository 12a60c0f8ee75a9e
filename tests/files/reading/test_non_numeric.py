"""Columns that a few strange texts turn from numbers into text, and what the user is told of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bncli.engine.data.columns import Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.number_formats import NumberForm
from bncli.errors import BncliError
from bncli.files.reading.rows_by_schema import read_labelled
from bncli.files.reading.source import Source
from bncli.watch import Event, Note
from tests.batches import blocks_of
from tests.files.reading.test_table import table, values


def numbers_and(*texts: str, n: int = 40, delimiter: str = ",") -> str:
    """A table whose column `a` is n different numbers, and from line n + 2 on some texts."""
    rows = [f"{i}.5{delimiter}{'uv'[i % 2]}\n" for i in range(n)]
    return f"a{delimiter}k\n" + "".join(rows) + "".join(f"{text}{delimiter}u\n" for text in texts)


SLIPS = ("1.2x", "1.3x", "1.4x", "1.5x")
"""One more than are taken for words that mean missing."""


def test_slips_among_numbers_are_noted(tmp_path: Path) -> None:
    content = numbers_and(*SLIPS)
    said = (
        r"column 'a': 40 of 44 values are numbers, but '1\.2x' \(.*t\.csv line 42\) is not; "
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
    content = numbers_and("?", "oops", *SLIPS, n=30) + "".join(f"{i % 7},v\n" for i in range(500))
    table(tmp_path, content, watch=notes.append, block_size=block_size)
    assert any("530 of 535 values are numbers, but 'oops'" in note.text for note in notes if isinstance(note, Note))


def test_no_doubt_about_columns_of_text(tmp_path: Path) -> None:
    notes: list[Event] = []
    words = "a,b,k\n" + "".join(f"{'w' if i % 5 == 0 else i % 9},{'xyz'[i % 3]},{'uv'[i % 2]}\n" for i in range(60))
    table(tmp_path, words, watch=notes.append)
    table(tmp_path, numbers_and(*SLIPS, n=19), watch=notes.append, categorical=("a",))
    table(tmp_path, numbers_and(*SLIPS), watch=notes.append, categorical=("a",))
    assert not [note for note in notes if isinstance(note, Note)]


def test_decimal_commas_are_told(tmp_path: Path) -> None:
    content = numbers_and("3,14", delimiter=";").replace(".5;", ",5;")
    notes: list[Event] = []
    columns = table(tmp_path, content, watch=notes.append)
    assert values(columns, "a")[-2:] == [39.5, 3.14]
    assert "read as numbers with a decimal comma: a" in [note.text for note in notes if isinstance(note, Note)]


@pytest.mark.parametrize(("n_words", "told"), [(4, True), (5, False)])
def test_nine_tenths_must_be_numbers(tmp_path: Path, n_words: int, told: bool) -> None:
    notes: list[Event] = []
    rows = [*(f"{i % 8}.5" for i in range(36)), *"vwxyz"[:n_words]]
    table(tmp_path, "a,k\n" + "".join(f"{a},{'uv'[i % 2]}\n" for i, a in enumerate(rows)), watch=notes.append)
    assert told == any("36 of 40 values are numbers" in note.text for note in notes if isinstance(note, Note))


# Words among numbers


def column_of(texts: list[str], header: str = "a;k") -> str:
    return header + "\n" + "".join(f"{text};{'uv'[i % 2]}\n" for i, text in enumerate(texts))


def noted(path: Path, content: str, **options: Any) -> tuple[Columns, list[str]]:
    notes: list[Event] = []
    columns = table(path, content, watch=notes.append, **options)
    return columns, [note.text for note in notes if isinstance(note, Note)]


@pytest.mark.parametrize("words", [["k.A."], ["<5", "-"], ["unbekannt", "n/a", "keine Angabe"]])
@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("block_size", [64, 1 << 20])
def test_a_few_words_among_numbers_are_missing(tmp_path: Path, words: list[str], mark: str, block_size: int) -> None:
    numbers = [f"{i}{mark}5" for i in range(27)]
    content = column_of([*numbers, *words])
    columns, notes = noted(tmp_path, content, block_size=block_size)
    assert values(columns, "a") == [*(i + 0.5 for i in range(27)), *[None] * len(words)]
    (note,) = (note for note in notes if note.startswith("words among numbers are read as missing: "))
    assert all(f"'{word}' in a" in note for word in words)
    assert "--categorical NAME" in note
    schema = learn_dataset(columns, discretize="equal-width", bins=3).schema
    assert schema.attributes[0].form == NumberForm(mark, "", tuple(sorted(words)))  # type: ignore[union-attr]
    with blocks_of(block_size):
        again = read_labelled(Source((str(tmp_path / "t.csv"),)), schema)
    assert values(again, "a") == values(columns, "a")
    as_names, notes = noted(tmp_path, column_of([*numbers, *words] * 3), categorical=("a",))
    assert values(as_names, "a") == [*numbers, *words] * 3
    assert not notes
    said, notes = noted(tmp_path, content, missing_tokens=tuple(f"+{word}" for word in words))
    assert values(said, "a") == values(columns, "a")
    assert not any("words among" in note for note in notes)


def test_a_word_that_training_did_not_have_is_malformed(tmp_path: Path) -> None:
    columns, _ = noted(tmp_path, column_of([*(f"{i}" for i in range(40)), "k.A."]))
    schema = learn_dataset(columns, discretize="equal-width", bins=3).schema
    path = tmp_path / "more.csv"
    path.write_text("a;k\n1;u\nk.A.;v\nunbekannt;u\n")
    with pytest.raises(BncliError, match=r"column 'a' holds 'unbekannt', which is not a number.*line 4"):
        read_labelled(Source((str(path),)), schema)
    path.write_text("a;k\n1;u\nk.A.;v\n")
    assert values(read_labelled(Source((str(path),)), schema), "a") == [1, None]


@pytest.mark.parametrize(
    "texts",
    [
        [*(f"{i}" for i in range(36)), *"vwxy"],  # four words
        [*(f"{i}" for i in range(17)), "x", "x"],  # more than a tenth of the rows
        [*(f"{i}" for i in range(9)), "", "", "", "x", "y"],  # a tenth of the rows, more of those with a value
        [*("1", "2") * 20, "x"],  # two numbers
        [*(f"{i:03}" for i in range(40)), "x"],  # codes
        [*(f"{i}.5" for i in range(40)), "1,25"],  # a number, written in another way
        [*(f"{i}" for i in range(40)), "€ 1,25"],
        [*(f"{i}" for i in range(40)), "2024-03-01"],  # a date
    ],
)
def test_what_is_no_column_of_numbers_with_words(tmp_path: Path, texts: list[str]) -> None:
    columns, notes = noted(tmp_path, column_of([f"{text};{i % 3}.5" for i, text in enumerate(texts)], "a;b;k"))
    assert not isinstance(columns.attributes.get("a"), NumericColumn)
    assert not any("words among" in note for note in notes)
