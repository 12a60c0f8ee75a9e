"""Parquet and Arrow files: their types, and files that are damaged or state false sizes."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import math
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import bncli
from bncli.engine.data.columns import Columns
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps import encode as encoding
from tests.damage import FORMATS
from tests.files.reading.tables import as_feather, as_file, as_parquet, as_stream, from_stdin, read, values, write

ENCODERS = [as_parquet, as_file, as_stream, as_feather]


def columns_of(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Columns:
    return read(write(tmp_path, as_parquet(pa.table(columns)), "t.parquet"), **options)


@pytest.mark.parametrize("encode", ENCODERS)
def test_all_columnar_formats_by_path_and_from_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encode: Any
) -> None:
    table = pa.table({"x": [1.5, None, 3, 4], "c": ["a", "b", "a", None], "k": ["u", "v", "u", "v"]})
    data = encode(table)
    for columns in (read(write(tmp_path, data, "no_suffix")), from_stdin(monkeypatch, data)):
        assert values(columns, "x") == [1.5, None, 3, 4]
        assert values(columns, "c") == ["a", "b", "a", None]
        assert values(columns, "k") == ["u", "v", "u", "v"]


@pytest.mark.parametrize("encode", ENCODERS)
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
    with pytest.raises(BncliError, match=r"column 'x' contains 'inf'.* row 3"):
        columns_of(tmp_path, table)
    assert values(columns_of(tmp_path, table, on_bad_row="skip"), "x") == [1, 2, 3, 4]
    bad = tmp_path / "bad.csv"
    columns_of(tmp_path, table, on_bad_row=str(bad))
    assert bad.read_bytes() == b"inf,u\n"


def test_lists_have_no_text(tmp_path: Path) -> None:
    table = {"x": [[1], [2, 3]], "y": [1, 2], "k": ["u", "v"]}
    with pytest.raises(BncliError, match="column 'x' has values of type list"):
        columns_of(tmp_path, table, categorical=("x",))
    assert list(columns_of(tmp_path, table).attributes) == ["y"]
    assert list(columns_of(tmp_path, table, ignore=("x",)).attributes) == ["y"]


def test_no_rows_and_names_twice(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="no rows"):
        columns_of(tmp_path, {"x": pa.array([], pa.int64()), "k": pa.array([], pa.string())})
    twice = pa.table([pa.array([1, 2]), pa.array([1, 2]), pa.array(["u", "v"])], names=["x", "x", "k"])
    with pytest.raises(BncliError, match=r"'x' appears twice, [^ ]*; rename one of the columns$"):
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


@cache
def surveys(n: int, *kinds: str) -> dict[str, dict[str, int]]:
    """How many of the first n mutations of each format ended how; AssertionError where one ended as none may."""
    command = [sys.executable, "-m", "tests.damage", "0", str(n), *kinds]
    told = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, check=True, text=True).stdout
    found = json.loads(told)
    for kind in kinds:
        assert found[kind]["failures"] == [], kind
        assert sum(found[kind]["counts"].values()) == n
    return {kind: found[kind]["counts"] for kind in kinds}


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_are_read_or_refused_in_one_line(kind: str) -> None:
    counts = surveys(15, *FORMATS)[kind]
    assert min(counts["read"], counts["Error"]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_many_damaged_files(kind: str) -> None:
    surveys(150, kind)


def corrupt(encode: Callable[[pa.Table], bytes], old: bytes, new: bytes) -> bytes:
    """A file of a column x of which some bytes, there once, are replaced."""
    table = pa.table({"x": ["abcd", "efgh", "ijkl"], "y": [1, 2, 3], "class": ["u", "v", "u"]})
    data = encode(table)
    assert data.count(old) == 1
    assert len(old) == len(new)
    return data.replace(old, new)


OFFSETS = struct.pack("<4i", 0, 4, 8, 12)


@pytest.mark.parametrize("encode", [as_file, as_stream])
def test_the_column_that_is_damaged_is_named_and_can_be_left_out(tmp_path: Path, encode: Any) -> None:
    path = write(tmp_path, corrupt(encode, OFFSETS, struct.pack("<4i", 0, 1 << 30, 8, 12)), "t.arrow")
    with pytest.raises(BncliError, match=r"^the file is damaged or cut off \(column 'x': .*offset.*t\.arrow"):
        read(path)
    assert values(read(path, ignore=("x",)), "y") == [1, 2, 3]


def plain_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="none", use_dictionary=False, write_statistics=False)
    return sink.getvalue()


@pytest.mark.parametrize("encode", [as_file, as_stream, plain_parquet])
def test_text_that_is_not_utf8(tmp_path: Path, encode: Any) -> None:
    path = write(tmp_path, corrupt(encode, b"gh", b"\xff\xfe"), "t")
    with pytest.raises(BncliError, match=r"column 'x': Invalid UTF8"):
        read(path)


@pytest.mark.parametrize("encode", [as_file, as_stream])
def test_a_name_that_is_not_utf8(tmp_path: Path, encode: Any) -> None:
    data = encode(pa.table({"column of numbers": [1, 2, 3], "class": ["u", "v", "u"]}))
    with pytest.raises(BncliError, match=r"damaged or cut off .*utf-8"):
        read(write(tmp_path, data.replace(b"column of", b"colu\xffn of"), "t"))


@pytest.mark.parametrize("encode", [as_file, as_stream, as_parquet])
def test_no_columns(tmp_path: Path, encode: Any) -> None:
    with pytest.raises(BncliError, match="the file has no columns"):
        read(write(tmp_path, encode(pa.table({})), "t"))


@pytest.mark.parametrize("encode", [as_file, as_stream])
def test_an_index_beyond_its_dictionary(tmp_path: Path, encode: Any) -> None:
    codes = pa.array([1, 0, 1, 1, 0, 1, 0, 0], pa.int8())
    names = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]))
    data = encode(pa.table({"x": names, "class": ["u", "v"] * 4}))
    index = bytes(codes.to_numpy().tobytes())
    assert data.count(index) == 1
    with pytest.raises(BncliError, match=r"column 'x': .*ictionary indices"):
        read(write(tmp_path, data.replace(index, b"\x7f" + index[1:]), "t"))


def compressed(encode: Any, codec: str, n: int = 1000) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(range(n), pa.int64()), "class": pa.array([i % 2 for i in range(n)], pa.int8())})
    new = pa.ipc.new_file if encode is as_file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("encode", [as_file, as_stream])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("claim", [1 << 33, -7, (1 << 63) - 1])
def test_a_compressed_buffer_that_claims_more_than_it_can_hold(
    tmp_path: Path, encode: Any, codec: str, claim: int
) -> None:
    data = compressed(encode, codec)
    honest = struct.pack("<q", 8000)
    assert data.count(honest) == 1
    before = pa.total_allocated_bytes()
    with pytest.raises(BncliError, match=rf"\({claim} bytes compressed to \d+\)"):
        read(write(tmp_path, data.replace(honest, struct.pack("<q", claim)), "t"))
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("encode", [as_file, as_stream])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_as_much_as_compression_can_do_is_honest(tmp_path: Path, encode: Any, codec: str) -> None:
    n = 300_000
    table = pa.table({"x": np.zeros(n, np.int64), "y": np.arange(n) % 3, "class": np.arange(n, dtype=np.int8) % 2})
    sink = io.BytesIO()
    new = pa.ipc.new_file if encode is as_file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])
    path = write(tmp_path, sink.getvalue(), "t.arrow")
    assert Path(path).stat().st_size < n
    assert read(path).n_rows == n
    with pytest.raises(BncliError, match=r"a batch of \d+ bytes, but only 1000 bytes of memory are free"):
        read_columns(Source((path,)), memory=1000)


@pytest.mark.parametrize("encode", [as_file, as_stream])
def test_rows_that_need_no_bytes(tmp_path: Path, encode: Any) -> None:
    n = 123_456_789
    table = pa.table({"none": pa.nulls(n), "class": pa.nulls(n)})
    with pytest.raises(BncliError, match=rf"\({1 << 60} rows in \d+ bytes\)"):
        read(write(tmp_path, encode(table).replace(struct.pack("<q", n), struct.pack("<q", 1 << 60)), "t"))


def test_a_stream_whose_metadata_claims_gigabytes(tmp_path: Path) -> None:
    data = as_stream(pa.table({"x": [1, 2, 3], "class": ["u", "v", "u"]}))
    lie = data[:4] + struct.pack("<I", 1 << 31) + data[8:]
    with pytest.raises(BncliError, match=r"2147483648 bytes of metadata, but only \d+ bytes are left"):
        read(write(tmp_path, lie, "t"))


@pytest.mark.parametrize("length", [-1, 0, 1 << 30])
def test_a_footer_that_claims_more_than_the_file(tmp_path: Path, length: int) -> None:
    data = as_file(pa.table({"x": [1, 2, 3], "class": ["u", "v", "u"]}))
    with pytest.raises(BncliError, match=rf"a footer of {length} bytes in a file of {len(data)}"):
        read(write(tmp_path, data[:-10] + struct.pack("<i", length) + data[-6:], "t"))


def varint(number: int) -> bytes:
    """Zigzag, as Thrift's compact protocol writes integers."""
    number, found = 2 * number, b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


@pytest.mark.parametrize("claim", [20_012, 1 << 31, 1 << 60, 20_010, 0])
def test_a_parquet_footer_that_claims_other_rows(tmp_path: Path, claim: int) -> None:
    """In one of two files, too: memory is reserved for the rows of both."""
    n = 20_011
    data = plain_parquet(pa.table({"x": list(range(n)), "class": [i % 2 for i in range(n)]}))
    (length,) = struct.unpack("<i", data[-8:-4])
    footer = data[-8 - length : -8].replace(varint(n), varint(claim), -1 if claim > n else 1)
    lie = data[: -8 - length] + footer + struct.pack("<i", len(footer)) + b"PAR1"
    paths = write(tmp_path, lie, "lie.parquet"), write(tmp_path, data, "honest.parquet")
    for source in (Source(paths[:1]), Source(paths), Source(paths[::-1])):
        with pytest.raises(BncliError, match=rf"damaged or cut off \({n} rows, but the footer states {claim}"):
            read_columns(source)


def test_a_parquet_page_that_claims_gigabytes(tmp_path: Path) -> None:
    n = 20_000
    sink = io.BytesIO()
    table = pa.table({"class": [i % 2 for i in range(n)], "x": list(range(n))})
    parquet.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    data = sink.getvalue()
    honest = varint(8 * n + 8)  # the values, and definition levels
    lie = data.replace(honest, varint((1 << 31) - 1), 1)
    assert lie != data
    with pytest.raises(BncliError, match="damaged or cut off"):
        read(write(tmp_path, lie, "t.parquet"))


def moments() -> pa.Table:
    return pa.table(
        {
            "nano": pa.array([1, 2, 3, 4], pa.timestamp("ns")),
            "far": pa.array([400_000_000_000_000] * 4, pa.timestamp("ms")),
            "day": pa.array([datetime.date(2020, 1, 2), None, datetime.date(9999, 12, 31), None]),
            "later": pa.array([1 << 28] * 4, pa.date32()),
            "list": [[1, 2], [3], [], None],
            "x": [1.0, float("inf"), 3.0, 1.0],
            "say": ["a", 'b,"c"', "d", "e"],
            "class": ["u", "v", "u", "v"],
        }
    )


@pytest.mark.parametrize("encode", [as_file, as_stream, as_parquet])
def test_a_malformed_row_beside_times_beyond_pythons(tmp_path: Path, encode: Any) -> None:
    path = write(tmp_path, encode(moments()), "t")
    chosen: dict[str, Any] = {"ignore": ("list",), "categorical": ("nano", "say")}
    with pytest.raises(BncliError, match=r"column 'x' contains 'inf'.* row 2"):
        read(path, **chosen)
    assert values(read(path, on_bad_row="skip", **chosen), "x") == ["1", "3", "1"]
    bad = tmp_path / "bad.csv"
    read(path, on_bad_row=str(bad), **chosen)
    far = "14645-06-30 15:06:40.000"
    expected = f'1970-01-01 00:00:00.000000002,{far},,<value out of range: {1 << 28}>,[3],inf,"b,""c""",v\n'
    assert bad.read_text() == expected


TEXTS = ["red", " red", "blue", "", "?", "7", "1e3", "long " * 9]
ODD_DICTIONARIES = {
    "plain": pa.DictionaryArray.from_arrays(pa.array([0, 2, 2, 0] * 9), pa.array(TEXTS)),
    "nulls as indices": pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 4] * 9, pa.int8()), pa.array(TEXTS)),
    "nulls in the dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1] * 9), pa.array(["a", None, "b"])),
    "the same text twice": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1] * 9), pa.array(["a", "a", "b"])),
    "blanks make the same text": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1] * 9), pa.array(TEXTS)),
    "unused texts": pa.DictionaryArray.from_arrays(pa.array([5, 0, 5, 5] * 9, pa.uint8()), pa.array(TEXTS)),
    "only nulls": pa.DictionaryArray.from_arrays(pa.array([None] * 36, pa.int32()), pa.array(TEXTS)),
    "large texts": pa.DictionaryArray.from_arrays(pa.array([0, 2, 2, 0] * 9), pa.array(TEXTS, pa.large_string())),
    "numbers": pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0] * 9), pa.array(["1.5", "2", "-3e2"])),
    "numbers and a word": pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0] * 9), pa.array(["1.5", "2", "k.A."])),
    "integers": pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0] * 9), pa.array([5, 6, 7])),
    "more texts than rows": pa.DictionaryArray.from_arrays(
        pa.array([90, 2, 1, 0] * 9), pa.array([f"t{i}" for i in range(100)])
    ),
}


@pytest.mark.parametrize("kind", ODD_DICTIONARIES)
@pytest.mark.parametrize("encode", [as_parquet, as_file, as_stream])
def test_dictionaries_are_read_as_the_texts_that_they_stand_for(tmp_path: Path, kind: str, encode: Any) -> None:
    column = ODD_DICTIONARIES[kind]
    if encode is as_parquet and column.dictionary.null_count:
        pytest.skip("pyarrow does not write such a dictionary to Parquet")
    label = pa.array(["u", "v", "v"] * 12)
    coded = pa.table({"c": column, "k": label.dictionary_encode()})
    plain = pa.table({"c": column.dictionary_decode(), "k": label})
    found, expected = (read(write(tmp_path, encode(table), "t.arrow")) for table in (coded, plain))
    assert values(found, "c") == values(expected, "c")
    assert found.attributes.keys() == expected.attributes.keys()
    for name in expected.attributes:
        own, theirs = found.attributes[name], expected.attributes[name]
        assert type(own) is type(theirs)
        assert getattr(own, "levels", None) == getattr(theirs, "levels", None)


def test_row_groups_without_rows_and_chunks_of_several_types(tmp_path: Path) -> None:
    """Each row group has its own dictionary, some have none, and some columns are coded in one file only."""
    whole = pa.table({"c": ["a", "b", "b", "c"] * 5, "x": list(range(20)), "k": ["u", "v"] * 10})
    path = tmp_path / "t.parquet"
    coded = pa.schema([("c", pa.dictionary(pa.int32(), pa.string())), ("x", pa.int64()), ("k", pa.string())])
    with parquet.ParquetWriter(path, coded) as writer:
        for start, stop in ((0, 0), (0, 7), (7, 7), (7, 8), (8, 20), (20, 20)):
            writer.write_table(whole.slice(start, stop - start).cast(coded))
    parquet.write_table(whole, tmp_path / "plain.parquet")
    expected = read(str(tmp_path / "plain.parquet"))
    for name in ("c", "x", "k"):
        assert values(read(str(path)), name) == values(expected, name)
    both = read_columns(Source((str(path), str(tmp_path / "plain.parquet"))))
    assert both.n_rows == 40
    assert values(both, "c") == values(expected, "c") * 2


@pytest.mark.parametrize("indices", [[0, 1, None, 2] * 10, [3, 0, 1, 2] * 10])
def test_coded_rows_are_scored_as_their_texts(tmp_path: Path, indices: list[int | None]) -> None:
    """A dictionary may hold levels that the model does not know, in any order."""
    texts = pa.array(["b", "a", "c", "never seen"])
    column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), texts)
    train = pa.table({"c": ["a", "b", "c", "a"] * 10, "x": [1.5, 2.5, 3.5, 4.5] * 10, "k": ["u", "v", "v", "u"] * 10})
    model = bncli.fit(train, structure="nb", param="map", progress=lambda event: None)
    x = pa.array([1.5, 2.5, 3.5, 4.5] * 10)
    for encode in (as_parquet, as_file):
        coded, plain = (
            write(tmp_path, encode(pa.table({"c": c, "x": x})), name)
            for c, name in ((column, "coded.arrow"), (column.dictionary_decode(), "plain.arrow"))
        )
        assert np.array_equal(model.predict_proba(coded), model.predict_proba(plain))


def test_numbers_with_words_give_the_same_model_in_every_format(tmp_path: Path) -> None:
    """Learnt, read again from its codes, and scored: text, Parquet and Arrow with a dictionary."""
    texts = ["k.A." if i % 23 == 0 else "-" if i % 37 == 1 else f"{i * i % 101 / 4}" for i in range(300)]
    labels = ["u" if i * i % 101 < 50 + i % 7 else "v" for i in range(300)]
    plain, coded = ({"a": c, "k": labels} for c in (pa.array(texts), pa.array(texts).dictionary_encode()))
    paths = [
        write(tmp_path, "a,k\n" + "".join(map("{},{}\n".format, texts, labels)), "t.csv"),
        write(tmp_path, as_parquet(pa.table(plain)), "t.parquet"),
        write(tmp_path, as_feather(pa.table(coded)), "t.arrow"),
    ]
    models, probabilities = set(), []
    for path in paths:
        encoded = f"{path}.codes"
        encoding.encode(Source((path,)), Recipe(), output=encoded)
        for data in (path, encoded):
            model = bncli.fit(data, structure="nb", param="map", progress=lambda event: None)
            model.save(tmp_path / "m.bnc")
            models.add((tmp_path / "m.bnc").read_bytes())
        probabilities.append(model.predict_proba(path))
    assert len(models) == 1
    assert model._model.schema.informative == (0,)
    assert all(np.array_equal(found, probabilities[0]) for found in probabilities)


def test_texts_of_large_row_groups_are_those_of_other_files(tmp_path: Path) -> None:
    """Parquet texts are read as dictionaries, also where the writer gave a dictionary up in the middle of a group."""
    n = 40_000
    few = [None if i % 11 == 0 else f" level {i % 7}" for i in range(n)]
    table = pa.table(
        {
            "few": few,
            "many": [f"{i % 9_999} {'long' * 20}" for i in range(n)],
            "late": ["same"] * (n - 5) + ["other"] * 5,
            "numbers": [str(i % 50) for i in range(n)],
            "nothing": pa.array([None] * n, pa.string()),
            "k": ["u", "v"] * (n // 2),
        }
    )
    for size in (20_000, n, 1_000):
        path = tmp_path / "t.parquet"
        parquet.write_table(table, path, row_group_size=size, dictionary_pagesize_limit=1 << 16)
        found, expected = read(str(path)), read(write(tmp_path, as_feather(table), "t.arrow"))
        assert found.attributes.keys() == expected.attributes.keys()
        for name in (*expected.attributes, "k"):
            assert values(found, name) == values(expected, name)


@pytest.mark.parametrize("n_more", [0, 40])
def test_numbers_that_turn_out_to_be_names_beside_dictionaries(tmp_path: Path, n_more: int) -> None:
    """Read again without the other columns, a file has other batches: each dictionary begins a new one."""
    n = 140_000
    table = pa.table(
        {
            "two": np.arange(n) % 3 // 2,
            "c": pa.array([f"level {i % 5}" for i in range(n)]).dictionary_encode(),
            **{f"x{i}": np.arange(n) % (7 + i) for i in range(n_more)},
            "k": pa.array(["u", "v"] * (n // 2)).dictionary_encode(),
        }
    )
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path, row_group_size=30_001)
    for threads in (1, 2):
        found = read_columns(Source((str(path),)), threads=threads)
        assert values(found, "two") == [str(x) for x in table["two"].to_pylist()]
