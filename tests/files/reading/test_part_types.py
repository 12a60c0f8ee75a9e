"""Files of one table that differ in what a column is: an error that names the file and the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.errors import BncliError
from bncli.files.reading import training_rows
from bncli.files.reading.rows_by_cuts import read_table
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Run
from tests.batches import blocks_of

NUMBERS = [f"{i / 8}" for i in range(40)]
NAMES = ["low", "high"] * 20


def written(folder: Path, *parts: Sequence[object]) -> tuple[str, ...]:
    """A CSV file of each column x, beside another attribute and the class."""
    paths = []
    for number, x in enumerate(parts):
        rows = "".join(f"{value};{'uv'[i % 2]};{'ab'[i // 2 % 2]}\n" for i, value in enumerate(x))
        path, text = folder / f"part-{number}.csv", f"x;z;class\n{rows}".encode()
        path.write_bytes(text)
        paths.append(str(path))
    return tuple(paths)


def columnar(folder: Path, *parts: pa.Array) -> tuple[str, ...]:
    paths = []
    for number, x in enumerate(parts):
        table = pa.table({"x": x, "z": ["u", "v"] * (len(x) // 2), "class": ["a", "a", "b", "b"] * (len(x) // 4)})
        paths.append(str(folder / f"part-{number}.parquet"))
        parquet.write_table(table, paths[-1])
    return tuple(paths)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize(
    ("parts", "what", "where"),
    [
        ((NUMBERS, NAMES), "column 'x' has numbers in {0}, but 'low' here", "{1}"),
        ((NAMES, NUMBERS), "column 'x' has names in {0}, but numbers here", "{1}"),
        ((NUMBERS, NUMBERS, [*NUMBERS, *"wxyz"]), "column 'x' has numbers in {0}, but 'w' here", "{2} line 42"),
        ((NUMBERS[:9], [*range(40), *"abcd"]), "column 'x' has numbers in {0}, but 'a' here", "{1} line 42"),
        ((["", "?"] * 4, NAMES, ["1"] * 4, NAMES, NUMBERS), "column 'x' has names in {1}, but numbers here", "{4}"),
        ((["1", "2"] * 4, NUMBERS, NAMES), "column 'x' has numbers in {1}, but 'low' here", "{2}"),
    ],
)
def test_a_file_with_another_type_is_named(
    parts: Sequence[Sequence[object]], what: str, where: str, block_size: int, threads: int, tmp_path: Path
) -> None:
    paths = written(tmp_path, *parts)
    with pytest.raises(BncliError) as caught, blocks_of(block_size):
        read_columns(Source(paths), threads=threads)
    assert caught.value.what == what.format(*paths)
    # a line is only sought in a block of which nearly all are numbers
    expected = where.format(*paths)
    assert caught.value.where in (expected, expected.partition(" ")[0])
    assert caught.value.where == expected or block_size == 64
    assert "--categorical x" in caught.value.hint


@pytest.mark.parametrize(
    "parts",
    [
        (list(range(40)), NUMBERS),
        (NUMBERS, NUMBERS, [*NUMBERS, "1.2x"]),
        (NUMBERS[:12], [*range(9), "a", *range(2)]),
        (NUMBERS, [""] * 8, NUMBERS),
        (NUMBERS, ["NA", "?"] * 4),
        ([1, 2] * 8, NUMBERS),
        (list(range(9)), ["1,5", "2,25", "7,5", "8,75"]),
        ([f"2024-01-{i:02}" for i in range(1, 20)], ["2024-02-03T10:00"] * 2 + [""] * 2),
    ],
)
def test_what_is_no_difference(parts: Sequence[Sequence[object]], tmp_path: Path) -> None:
    found = read_columns(Source(written(tmp_path, *parts)))
    assert {name for name, c in found.attributes.items() if isinstance(c, CategoricalColumn)} == {"z"}


@pytest.mark.parametrize(
    "parts", [(["1", "2"] * 8, NAMES), (["01", "02", "07"] * 5, NAMES), (["a1", "7"] * 8, NUMBERS), (NAMES, ["1", "2"])]
)
def test_what_may_be_names_in_both(parts: Sequence[Sequence[object]], tmp_path: Path) -> None:
    paths = written(tmp_path, *parts)
    found = read_columns(Source(paths, categorical=("x",))).attributes["x"]
    again = read_columns(Source(paths)).attributes.get("x", found)  # or left out, which is told
    assert isinstance(found, CategoricalColumn)
    assert isinstance(again, CategoricalColumn)
    assert found.levels == again.levels


def test_what_is_said_of_a_column_is_no_difference(tmp_path: Path) -> None:
    paths = written(tmp_path, NUMBERS, NAMES)
    assert "x" not in read_columns(Source(paths, ignore=("x",))).attributes
    assert isinstance(read_columns(Source(paths, categorical=("x",))).attributes["x"], CategoricalColumn)
    found = read_columns(Source(paths, numeric=("x",), on_bad_row="skip"))
    assert found.n_rows == len(NUMBERS)
    assert isinstance(read_columns(Source(paths, missing_tokens=("+low", "+high"))).attributes["x"], NumericColumn)


def test_a_sample_of_the_rows_tells_it_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 20)
    monkeypatch.setattr(training_rows, "BUDGET", 100)
    paths = written(tmp_path, NUMBERS, NUMBERS, NAMES)
    with pytest.raises(BncliError, match=f"column 'x' has numbers in {paths[0]}, but 'low' here"):
        read_table(Source(paths), cuts=None, seed=0, run=Run())


X64, TEXT = pa.array(range(40)), pa.array([f"t{i % 3}" for i in range(40)])


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (X64, TEXT, "int64 in {0}, but string here"),
        (TEXT, X64.cast(pa.float64()), "string in {0}, but double here"),
        (X64, X64.cast(pa.timestamp("s")), "int64 in {0}, but timestamp[ms] here"),
        (TEXT.dictionary_encode(), X64, "dictionary<values=string, indices=int32, ordered=0> in {0}, but int64 here"),
        (X64.cast(pa.int32()).cast(pa.time32("s")), X64.cast(pa.timestamp("s")), "time32[ms] in {0}, but"),
    ],
)
def test_columnar_files_are_compared_by_what_they_declare(
    first: pa.Array, second: pa.Array, found: str, tmp_path: Path
) -> None:
    paths = columnar(tmp_path, first, pa.nulls(40), second)
    with pytest.raises(BncliError) as caught:
        read_columns(Source(paths))
    assert f"column 'x' has {found.format(*paths)}" in caught.value.what
    assert caught.value.where == paths[2]
    assert "x" not in read_columns(Source(paths, ignore=("x",))).attributes


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (X64, X64.cast(pa.float32())),
        (X64.cast(pa.int8()), X64.cast(pa.decimal128(21, 2))),
        (TEXT, TEXT.dictionary_encode()),
        (TEXT, TEXT.cast(pa.large_string())),
        (X64.cast(pa.timestamp("s")), X64.cast(pa.timestamp("ns", "UTC"))),
    ],
)
def test_columnar_types_that_are_read_alike(first: pa.Array, second: pa.Array, tmp_path: Path) -> None:
    alike = read_columns(Source(columnar(tmp_path, first, second)))
    once = read_columns(Source(columnar(tmp_path, first, first)))
    assert list(alike.attributes) == list(once.attributes)


def test_a_columnar_class_of_two_types(tmp_path: Path) -> None:
    paths = []
    for number, label in enumerate((pa.array([0, 1] * 20), pa.array(["0", "1"] * 20))):
        paths.append(str(tmp_path / f"{number}.parquet"))
        parquet.write_table(pa.table({"x": TEXT, "class": label}), paths[-1])
    with pytest.raises(BncliError, match="column 'class' has int64 in"):
        read_columns(Source(tuple(paths)))
    assert read_columns(Source(tuple(paths), categorical=("class",))).label is not None


def test_text_after_a_columnar_file(tmp_path: Path) -> None:
    (table,) = columnar(tmp_path, X64)
    (text,) = written(tmp_path, NAMES)
    with pytest.raises(BncliError) as caught:
        read_columns(Source((table, text)))
    assert (caught.value.what, caught.value.where) == (f"column 'x' has numbers in {table}, but 'low' here", text)
