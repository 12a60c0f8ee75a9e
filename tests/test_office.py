"""The made-up office tables: the same bytes for a seed, the shapes promised."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.office import OFFICE, TABLES, sheet_of, truth, write


def rows_of(name: str, path: Path) -> list[list[str]]:
    maker = TABLES[name]
    with path.open(newline="", encoding=maker.encoding) as file:
        return list(csv.reader(file, delimiter=maker.delimiter))


@pytest.mark.parametrize("name", OFFICE)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(name: str, tmp_path: Path) -> None:
    first = write(name, tmp_path, n_rows=200).read_bytes()
    assert write(name, tmp_path, n_rows=200).read_bytes() == first
    assert write(name, tmp_path, seed=1, n_rows=200).read_bytes() != first


@pytest.mark.parametrize("name", OFFICE)
def test_the_file_holds_the_sheet(name: str, tmp_path: Path) -> None:
    header, *rows = rows_of(name, write(name, tmp_path))
    sheet = sheet_of(name)
    assert header == list(sheet)
    assert 800 <= len(rows) == TABLES[name].n_rows <= 5000
    assert [list(column) for column in zip(*rows, strict=True)] == [column.texts for column in sheet.values()]


@pytest.mark.parametrize("name", OFFICE)
def test_missing_values_are_written_as_the_marks_alone(name: str) -> None:
    found = set()
    for column in sheet_of(name).values():
        missing = column.values == "" if column.values.dtype.kind == "U" else column.values != column.values
        found |= {text for text, gone in zip(column.texts, missing, strict=True) if gone}
    assert found == set(TABLES[name].marks)


@pytest.mark.parametrize("name", OFFICE)
def test_no_class_is_rare_beyond_use_and_none_nearly_all(name: str) -> None:
    _, label = truth(name)
    shares = np.array(list(Counter(label.tolist()).values())) / len(label)
    assert len(shares) >= 2
    assert shares.min() > 0.02
    assert shares.max() < 0.97


def test_the_churn_table_is_the_one_of_a_first_hour(tmp_path: Path) -> None:
    path = write("churn", tmp_path)
    text = path.read_text(encoding="utf-8")
    sheet = sheet_of("churn")
    assert text.count(";") >= 1500 * 9
    assert len(set(sheet["handset"].texts)) == 468
    assert len(set(sheet["customer"].texts)) > 1400
    assert any(code.startswith("0") for code in sheet["postcode"].texts)
    assert {"NA", "n/a", "-", ""} <= set(sheet["complaints"].texts)
    assert all(text.startswith("€ ") for text in sheet["monthly"].texts if text not in TABLES["churn"].marks)


def test_the_encodings_are_needed(tmp_path: Path) -> None:
    for name in ("staff", "tickets"):
        with pytest.raises(UnicodeDecodeError):
            write(name, tmp_path).read_text(encoding="utf-8")


def test_flights_have_thousands_of_names() -> None:
    sheet = sheet_of("flights")
    assert len(sheet["delayed"].texts) == 35_000
    assert (len(set(sheet["route"].texts)), len(set(sheet["tail"].texts))) == (2439, 3501)
