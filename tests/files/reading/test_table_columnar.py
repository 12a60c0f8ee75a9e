from __future__ import annotations

import datetime
import decimal
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bncli.engine.data.columns import Columns
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.files.reading.test_table import read, values, write
from tests.files.reading.test_table_hostile import from_stdin


def as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def as_file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_feather(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    feather.write_feather(table, sink)
    return sink.getvalue()


FORMATS = [as_parquet, as_file, as_stream, as_feather]


def columns_of(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Columns:
    return read(write(tmp_path, as_parquet(pa.table(columns)), "t.parquet"), **options)


@pytest.mark.parametrize("encode", FORMATS)
def test_all_columnar_formats_by_path_and_from_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encode: Any
) -> None:
    table = pa.table({"x": [1.5, None, 3, 4], "c": ["a", "b", "a", None], "k": ["u", "v", "u", "v"]})
    data = encode(table)
    for columns in (read(write(tmp_path, data, "no_suffix")), from_stdin(monkeypatch, data)):
        assert values(columns, "x") == [1.5, None, 3, 4]
        assert values(columns, "c") == ["a", "b", "a", None]
        assert values(columns, "k") == ["u", "v", "u", "v"]


@pytest.mark.parametrize("encode", FORMATS)
def test_a_columnar_file_cut_off(tmp_path: Path, encode: Any) -> None:
    data = encode(pa.table({"x": list(range(1000)), "k": ["u", "v"] * 500}))
    for size in (len(data) // 2, 40):
        with pytest.raises(BncliError, match=r"damaged or cut off|no rows"):
            read(write(tmp_path, data[:size], "t.parquet"))


def test_types_of_columns(tmp_path: Path) -> None:
    day = datetime.date(2020, 1, 2)
    columns = columns_of(
        tmp_path,
        {
            "int": [1, 2, 3, None],
            "two": [0, 1, 0, 1],
            "two_floats": [0.5, 1.0, math.nan, None],
            "bool": [True, False, None, True],
            "string": ["1", "2", "3", "?"],
            "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
            "codes": pa.array([5, 6, 7, 5]).dictionary_encode(),
            "decimal": [decimal.Decimal("1.25"), decimal.Decimal("2.5"), decimal.Decimal("3.75"), None],
            "date": [day, day, None, day],
            "float": pa.array([1, 2, math.nan, 4], pa.float32()),
            "nothing": pa.nulls(4),
            "uint": pa.array([2**64 - 1, 0, 1, 2], pa.uint64()),
            "k": ["u", "v", "u", "v"],
        },
    )
    assert {name: values(columns, name) for name in columns.attributes} == {
        "int": [1, 2, 3, None],
        "two": ["0", "1", "0", "1"],
        "two_floats": ["0.5", "1", None, None],
        "bool": ["true", "false", None, "true"],
        "string": ["1", "2", "3", None],
        "dictionary": ["a", "b", "a", None],
        "codes": [5, 6, 7, 5],
        "decimal": [1.25, 2.5, 3.75, None],
        "date": ["2020-01-02", "2020-01-02", None, "2020-01-02"],
        "float": [1, 2, None, 4],
        "nothing": [None] * 4,
        "uint": [2.0**64, 0, 1, 2],
    }


def test_flags_choose_other_types(tmp_path: Path) -> None:
    columns = columns_of(
        tmp_path, {"a": ["1", " 2", "NA"], "b": [1, 2, 3], "k": [0, 1, 0]}, numeric=("a",), categorical=("b",)
    )
    assert values(columns, "a") == [1, 2, None]
    assert values(columns, "b") == ["1", "2", "3"]
    assert values(columns, "k") == ["0", "1", "0"]


def test_an_infinite_number_is_named_with_its_row(tmp_path: Path) -> None:
    table = {"x": [1.0, 2.0, math.inf, 3.0, 4.0], "k": ["u", "v", "u", "v", "u"]}
    with pytest.raises(BncliError, match=r"column 'x' holds 'inf'.* row 3"):
        columns_of(tmp_path, table)
    assert values(columns_of(tmp_path, table, on_bad_row="skip"), "x") == [1, 2, 3, 4]
    bad = tmp_path / "bad.csv"
    columns_of(tmp_path, table, on_bad_row=str(bad))
    assert bad.read_bytes() == b"inf,u\n"


def test_lists_have_no_text(tmp_path: Path) -> None:
    table = {"x": [[1], [2, 3]], "y": [1, 2], "k": ["u", "v"]}
    with pytest.raises(BncliError, match="column 'x' holds list"):
        columns_of(tmp_path, table, categorical=("x",))
    assert list(columns_of(tmp_path, table).attributes) == ["y"]
    assert list(columns_of(tmp_path, table, ignore=("x",)).attributes) == ["y"]


def test_no_rows_and_names_twice(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="no rows"):
        columns_of(tmp_path, {"x": pa.array([], pa.int64()), "k": pa.array([], pa.string())})
    twice = pa.table([pa.array([1, 2]), pa.array([1, 2]), pa.array(["u", "v"])], names=["x", "x", "k"])
    with pytest.raises(BncliError, match="'x' appears twice"):
        read(write(tmp_path, as_file(twice), "t.arrow"))


def test_the_format_may_be_forced(tmp_path: Path) -> None:
    path = write(tmp_path, as_parquet(pa.table({"x": [1, 2, 3], "k": ["u", "v", "u"]})))
    with pytest.raises(BncliError, match="not text but Parquet"):
        read(path, format="csv")
    assert read(path, format="parquet").n_rows == 3
    with pytest.raises(BncliError, match="not in arrow format"):
        read(write(tmp_path, "x,k\n1,u\n2,v\n"), format="arrow")


def test_a_large_file_in_batches_on_several_threads(tmp_path: Path) -> None:
    n = 200_000
    x = np.arange(n) % 1000
    table = pa.table({"x": x, "c": pa.array((x % 7).astype(str)), "k": pa.array((x % 2).astype(str))})
    path = write(tmp_path, as_file(table.combine_chunks()), "t.arrow")
    columns = read_columns(Source((path,)), threads=3)
    np.testing.assert_array_equal(columns.attributes["x"].values, x)  # type: ignore[union-attr]
    assert values(columns, "c")[:9] == ["0", "1", "2", "3", "4", "5", "6", "0", "1"]


@pytest.mark.parametrize("encode", [as_file, as_stream])
def test_categories_whose_texts_are_views(tmp_path: Path, encode: Any) -> None:
    """As Polars writes them."""
    levels = pa.array(["long enough not to stand inside", "b"]).cast(pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.uint32()), levels)
    path = write(tmp_path, encode(pa.table({"x": column, "class": ["u", "v", "u", "v"]})), "t.arrow")
    assert values(read(path), "x") == ["long enough not to stand inside", "b", None, "b"]
