"""Simulated rows written as CSV and Parquet and read back; outputs that fail."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.errors import BncliError, UsageError
from bncli.files import simulated_rows as module
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.files.simulated_rows import FORMATS, open_rows, would_read_as_numbers

NASTY = ("a,b", 'c"d', "e\nf", " g", "h", "ü")


def table(n: int = 4) -> Columns:
    attributes: dict[str, Column] = {
        "number": NumericColumn(np.array([0.1, np.nan, -0.0, 1e300])[:n]),
        "na,me": CategoricalColumn(np.array([5, -1, 0, 1], np.int8)[:n], NASTY),
    }
    return Columns(n, attributes, "class", CategoricalColumn(np.array([1, 0, 1, 1], np.int8)[:n], ("no", "yes")))


def read(path: Path, output_format: str) -> tuple[list[str], list[list[Any]]]:
    if output_format == "csv":
        names, *rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), strict=True))
        return names, rows
    parquet = pq.read_table(path)
    return parquet.column_names, [list(row.values()) for row in parquet.to_pylist()]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.txt"])
def test_the_ending_decides(tmp_path: Path, name: str) -> None:
    with open_rows(str(tmp_path / name), None) as out:
        out.write(table())
        out.write(table(1))
    names, rows = read(tmp_path / name, "parquet" if name.endswith("parquet") else "csv")
    assert names == ["number", "na,me", "class"]
    if name.endswith("parquet"):
        assert rows[:3] == [[0.1, "ü", "yes"], [None, None, "no"], [0.0, "a,b", "yes"]]
    else:
        assert rows[:3] == [["0.1", "ü", "yes"], ["", "", "no"], ["0", "a,b", "yes"]]
        assert rows[3] == ["1e+300", 'c"d', "yes"]
    assert rows[4] == rows[0]


def test_a_word_beats_the_ending(tmp_path: Path) -> None:
    with open_rows(str(tmp_path / "x.csv"), "parquet") as out:
        out.write(table())
    assert pq.read_table(tmp_path / "x.csv").num_rows == 4


levels = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1, unique=True)


@pytest.mark.parametrize("output_format", FORMATS)
@given(levels=levels, data=st.data())
def test_a_reader_of_tables_reads_them_back(
    tmp_path_factory: pytest.TempPathFactory, output_format: str, levels: list[str], data: st.DataObject
) -> None:
    codes = data.draw(st.lists(st.integers(0, len(levels) - 1), min_size=4, max_size=4))
    column = CategoricalColumn(np.array(codes, np.int16), tuple(levels))
    numbers = NumericColumn(np.array(data.draw(st.lists(st.floats(-1e200, 1e200), min_size=4, max_size=4))))
    rows = Columns(4, {"x": column, "z": numbers}, "y", CategoricalColumn(np.array([0, 1, 0, 1]), ("no", "yes")))
    path = tmp_path_factory.mktemp("rows") / f"rows.{output_format}"
    with open_rows(str(path), None) as out:
        out.write(rows)
    again = read_columns(Source((str(path),), categorical=("x",), numeric=("z",), missing_tokens=("\0",)))
    x, z = again.attributes["x"], again.attributes["z"]
    assert isinstance(x, CategoricalColumn)
    assert isinstance(z, NumericColumn)
    assert [x.levels[code] for code in x.codes] == [levels[code] for code in codes]
    np.testing.assert_array_equal(z.values.astype(float), numbers.values)
    assert again.label is not None
    assert again.label.codes.tolist() == [0, 1, 0, 1]


def test_parquet_comes_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_PER_GROUP", 8)
    with open_rows(str(tmp_path / "x.parquet"), None) as out:
        for _ in range(5):
            out.write(table())
    assert pq.ParquetFile(tmp_path / "x.parquet").metadata.num_row_groups == 3
    monkeypatch.setattr(module, "_VALUES_PER_GROUP", 12)
    with open_rows(str(tmp_path / "y.parquet"), None) as out:
        for _ in range(5):
            out.write(table())
    assert pq.ParquetFile(tmp_path / "y.parquet").metadata.num_row_groups == 5


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="'xls'"), open_rows(None, "xls"):
        pass


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_failure_leaves_no_file(tmp_path: Path, output_format: str, written: int) -> None:
    with pytest.raises(ZeroDivisionError):
        _write_and_fail(str(tmp_path / "out"), output_format, written)
    assert list(tmp_path.iterdir()) == []


def _write_and_fail(path: str, output_format: str, written: int) -> None:
    with open_rows(path, output_format) as out:
        for _ in range(written):
            out.write(table())
        raise ZeroDivisionError


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="folder"), open_rows(str(tmp_path), None):
        pass


@pytest.mark.parametrize(
    ("levels", "answer"),
    [(("1", "2", "3"), True), (("1", "2"), False), (("1", "2", "x"), False), ((), False), (("1e3", "-2", ".5"), True)],
)
def test_levels_that_look_like_numbers(levels: tuple[str, ...], answer: bool) -> None:
    assert would_read_as_numbers(levels) is answer


def test_arrow_types(tmp_path: Path) -> None:
    with open_rows(str(tmp_path / "x.parquet"), None) as out:
        out.write(table())
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert schema.types == [pa.float64(), pa.string(), pa.string()]
