"""The `.codes` file: there and back, as other programs read it, and what damage is told in one line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import CodedColumn, ColumnsJoinedOnDemand
from bncli.engine.data.dataset import Dataset, block_bounds
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute
from bncli.errors import BncliError
from bncli.files.artifacts.codes import HEADER_KEY, CodedRows, CodesFile, CodesHeader, is_codes, read_codes, write_codes
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.encode import encode

CUTS = Cuts(
    "class",
    (NumericAttribute("n", False, (), (1.5, 2.5)), CategoricalAttribute("c", False, (), tuple(map(str, range(300))))),
    "mdl",
)


def _write(path: Path, n: int = 1000, weights: str | None = None, seed: int = 0) -> tuple[CodesHeader, CodedRows]:
    rng = np.random.default_rng(seed)
    heading = CodesHeader(CUTS, ("no", "yes"), n, missing=("n",), weights=weights)
    number, name = rng.integers(0, 4, n).astype(np.uint8), rng.integers(0, 300, n).astype(np.uint16)
    labels = rng.integers(0, 2, n).astype(np.uint8)
    rows = CodedRows((number, name), labels, None if weights is None else rng.random(n) + 0.5)
    cut = [
        CodedRows([c[a:b] for c in rows.codes], labels[a:b], None if rows.weights is None else rows.weights[a:b])
        for a, b in block_bounds(n)
    ]
    write_codes(str(path), heading, cut)
    return heading, rows


@pytest.mark.usefixtures("small_blocks")
@given(n=st.integers(1, 5000), weighted=st.booleans())
def test_there_and_back(tmp_path_factory: pytest.TempPathFactory, n: int, weighted: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "x.codes"
    heading, rows = _write(path, n, "w" if weighted else None, n)
    found = read_codes(str(path))
    assert found.header == heading
    assert [len(batch) for batch in found.batches] == [b - a for a, b in block_bounds(n)]
    columns = found.columns()
    for name, codes in zip(("n", "c"), rows.codes, strict=True):
        column = columns.attributes[name]
        assert isinstance(column, CodedColumn)
        np.testing.assert_array_equal(column.codes.joined(), codes)
    assert columns.label is not None
    np.testing.assert_array_equal(columns.label.codes, rows.labels)
    assert (columns.weights is None) == (not weighted)
    if rows.weights is not None:
        np.testing.assert_array_equal(columns.weights, rows.weights)


def test_it_is_an_ordinary_arrow_file(tmp_path: Path) -> None:
    _, rows = _write(tmp_path / "x.codes")
    table = pa.ipc.open_file(tmp_path / "x.codes").read_all()
    assert [(f.name, str(f.type), f.nullable) for f in table.schema] == [
        ("n", "uint8", False),
        ("c", "uint16", False),
        ("class", "uint8", False),
    ]
    assert table["c"].to_pylist() == rows.codes[1].tolist()
    heading = json.loads(table.schema.metadata[HEADER_KEY])
    assert (heading["format"], heading["version"], heading["labels"]) == ("bncli-codes", 1, ["no", "yes"])


def test_a_column_lies_where_the_file_is_mapped(tmp_path: Path) -> None:
    _write(tmp_path / "x.codes")
    column = read_codes(str(tmp_path / "x.codes")).columns().attributes["n"]
    assert isinstance(column, CodedColumn)
    assert not column.codes.joined().flags.owndata


def test_other_files_are_no_codes(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "empty.codes").write_bytes(b"")
    assert not is_codes(str(tmp_path / "x.arrow"))
    assert not is_codes(str(tmp_path / "empty.codes"))
    assert not is_codes("-")
    assert not is_codes(str(tmp_path))


def _with_heading(path: Path, **changed: Any) -> None:
    """The file again, with other values in its heading."""
    reader = pa.ipc.open_file(pa.py_buffer(path.read_bytes()))
    heading = json.loads(reader.schema.metadata[HEADER_KEY]) | changed
    schema = reader.schema.with_metadata({HEADER_KEY: json.dumps(heading).encode()})
    with pa.ipc.new_file(path, schema) as writer:
        for i in range(reader.num_record_batches):
            found = reader.get_batch_with_custom_metadata(i)
            batch = pa.RecordBatch.from_arrays(found.batch.columns, schema=schema)
            writer.write_batch(batch, custom_metadata=found.custom_metadata)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"version": 2}, "newer bncli"),
        ({"rows": 999}, "does not have the 999 rows"),
        ({"labels": ["a"]}, "two labels"),
        ({"labels": ["a", "b", "c"]}, "the counts of the codes are missing"),
        ({"missing": ["z"]}, "no attribute 'z'"),
        ({"weights": "n"}, "given twice"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_a_heading_that_is_not_right_is_told(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    path = tmp_path / "x.codes"
    _write(path)
    _with_heading(path, **changed)
    with pytest.raises(BncliError, match=told) as caught:
        read_codes(str(path)).columns()
    assert str(path) in str(caught.value)


def test_a_file_cut_short_is_told(tmp_path: Path) -> None:
    _write(tmp_path / "x.codes")
    content = (tmp_path / "x.codes").read_bytes()
    for size in [*range(0, len(content), 97), len(content) - 1]:
        (tmp_path / "cut.codes").write_bytes(content[:size])
        with pytest.raises(BncliError):
            read_columns(Source((str(tmp_path / "cut.codes"),)))


def test_damage_in_the_rows_is_told(tmp_path: Path) -> None:
    _, rows = _write(tmp_path / "x.codes", weights="w")
    content = bytearray((tmp_path / "x.codes").read_bytes())
    assert rows.weights is not None
    for values in (*rows.codes, rows.labels, rows.weights):
        at = content.index(values.tobytes())
        damaged = content.copy()
        damaged[at + 10] ^= 1
        (tmp_path / "d.codes").write_bytes(damaged)
        with pytest.raises(BncliError, match="damaged"):
            read_codes(str(tmp_path / "d.codes")).columns()


@given(places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3))
def test_damage_anywhere_is_an_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.codes"
    _write(path, 50)
    data = bytearray(path.read_bytes())
    for place, byte in places:
        data[place % len(data)] = byte
    path.write_bytes(data)
    with contextlib.suppress(BncliError):
        read_columns(Source((str(path),), class_name="class"))


@pytest.mark.slow
def test_any_bit_of_the_sample_is_guarded(tmp_path: Path) -> None:
    path = _with_sample(tmp_path)
    content = path.read_bytes()
    start = content.index(b"bncli.sample")
    for k in range(400):
        damaged = bytearray(content)
        damaged[start + k * (len(content) - start) // 400] ^= 1 << k % 8
        path.write_bytes(damaged)
        try:
            found = _sample(path)
        except BncliError:
            continue
        path.write_bytes(content)
        assert found == _sample(path)


def test_a_sample_without_checksum_is_read_and_an_empty_one_told(tmp_path: Path) -> None:
    path = _with_sample(tmp_path)
    known = _sample(path)
    _with_tail(path, {b"bncli.sample.crc32": None})
    assert _sample(path) == known
    empty = pa.BufferOutputStream()
    pa.ipc.new_stream(empty, pa.schema([("0", pa.int8())])).close()
    _with_tail(path, {b"bncli.sample": empty.getvalue().to_pybytes()})
    with pytest.raises(BncliError, match="the sample is empty"):
        _sample(path)


def test_the_sample_keeps_the_weights_of_its_rows(tmp_path: Path) -> None:
    lines = [f"{i * 37 % 101 / 8},{i % 5 + 0.5},{'xy'[i % 2]}" for i in range(60)]
    (tmp_path / "w.csv").write_text("n,w,class\n" + "\n".join(lines) + "\n")
    encode(Source((str(tmp_path / "w.csv"),), weights="w"), Recipe(), output=str(tmp_path / "w.codes"))
    origin = read_codes(str(tmp_path / "w.codes")).columns().origin
    assert origin is not None
    assert origin.sample is not None
    assert origin.sample.weights is not None
    assert origin.sample.weights.tolist() == [i % 5 + 0.5 for i in range(60)]


def _with_sample(folder: Path) -> Path:
    """Codes of a table of numbers and names, with all of its rows."""
    lines = [f"{i * 37 % 101 / 8},{'abc'[i % 3]},{'xy'[i % 2]}" for i in range(60)]
    (folder / "t.csv").write_text("n,c,class\n" + "\n".join(lines) + "\n")
    encode(Source((str(folder / "t.csv"),)), Recipe(), output=str(folder / "s.codes"))
    return folder / "s.codes"


def _sample(path: Path) -> Any:
    """What the sample says, as plain lists."""
    origin = read_codes(str(path)).columns().origin
    assert origin is not None
    rows = origin.sample
    assert rows is not None
    read = [getattr(column, "values", getattr(column, "codes", None)) for column in rows.attributes.values()]
    return origin.seed, [np.asarray(values).tolist() for values in read]


def _with_tail(path: Path, changed: dict[bytes, bytes | None]) -> None:
    """The file again, with other metadata of its last batch; None: without them."""
    reader = pa.ipc.open_file(pa.py_buffer(path.read_bytes()))
    with pa.ipc.new_file(path, reader.schema) as writer:
        for i in range(reader.num_record_batches):
            found = reader.get_batch_with_custom_metadata(i)
            tail = dict(found.custom_metadata or {})
            tail = {k: v for k, v in (tail | (changed if tail else {})).items() if v is not None}
            writer.write_batch(found.batch, custom_metadata=tail)


def test_codes_are_not_read_as_a_table_of_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _write(tmp_path / f"{name}.codes", seed=ord(name))
    with pytest.raises(BncliError, match="contains codes"):
        read_columns(Source((str(tmp_path / "a.codes"), str(tmp_path / "b.codes"))))


@pytest.mark.parametrize(
    "said", [{"ignore": ("n",)}, {"missing_tokens": ("x",)}, {"weights": "n"}, {"class_name": "n"}]
)
def test_what_is_said_of_reading_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    _write(tmp_path / "x.codes")
    with pytest.raises(BncliError, match="encode"):
        read_columns(Source((str(tmp_path / "x.codes"),), **said))


def test_no_changed_letter_of_the_heading_is_taken_for_another_name(tmp_path: Path) -> None:
    """JSON and names stay well made where a letter changes: only the checksum tells."""
    path = tmp_path / "x.codes"
    _write(path, 10)
    content = path.read_bytes()
    assert content.count(b'"yes"') >= 2, "at the beginning and in the footer"
    path.write_bytes(content.replace(b'"yes"', b'"yea"'))
    with pytest.raises(BncliError, match="the header was changed"):
        read_codes(str(path))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the memory of a process is told by Linux")
def test_pages_of_a_large_file_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, n = tmp_path / "x.codes", 600_000
    _write(path, n)
    monkeypatch.setattr("bncli.files.artifacts.codes.MAPPED_FROM", 0)
    assert _resident(path, read_codes(str(path))) > 3 * n
    monkeypatch.setattr("bncli.files.artifacts.codes.LARGE_FILE", 0)
    assert _resident(path, read_codes(str(path))) < n


def _resident(path: Path, file: CodesFile) -> int:
    """Bytes of the file in this process after a pass over all columns."""
    columns = file.columns()
    codes = ColumnsJoinedOnDemand([cast(CodedColumn, column).codes for column in columns.attributes.values()])
    data = Dataset(cast(Any, None), codes, np.zeros(columns.n_rows, np.uint8))
    assert data.reduce(lambda block: sum(int(column.sum()) for column in block.codes)) > 0
    lines = Path("/proc/self/smaps").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(path.name))
    found = next(line for line in lines[at:] if line.startswith("Rss:"))
    return int(found.split()[1]) * 1024
