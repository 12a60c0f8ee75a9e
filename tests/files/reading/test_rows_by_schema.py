"""Rows read as a model's schema says, in batches to score or whole to test."""

from __future__ import annotations

import csv
import io
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.reading import csv_text
from bncli.files.reading.rows_by_schema import Batch, Batches, LevelLookup, read_labelled
from bncli.files.reading.source import MissingTokens, Source
from bncli.watch import Event, Note, Run
from tests.batches import blocks_of, read_batches
from tests.files.reading.tables import (
    FakeStdin,
    as_parquet,
    write,
)

SCHEMA = Schema(
    "class",
    ("no", "yes"),
    (
        NumericAttribute("x", False, (), (0.5,)),
        CategoricalAttribute("c", False, (), ("b", "a", "01")),
        NumericAttribute("z", False, (), ()),
    ),
)


def batches(path: str, needed: tuple[str, ...] = ("x", "c"), **options: Any) -> list[Batch]:
    source = Source((path,), **{key: options.pop(key) for key in ("on_bad_row", "missing_tokens") if key in options})
    with blocks_of(options.pop("block_size", csv_text.BLOCK_SIZE)):
        return list(read_batches(source, SCHEMA, needed, **options))


def coded(found: list[Batch], name: str) -> list[float]:
    parts: list[float] = []
    for batch in found:
        column = batch.columns.attributes[name]
        parts += (column.codes if isinstance(column, CategoricalColumn) else column.values).tolist()
    return parts


def kept(found: list[Batch], i: int) -> list[str]:
    return [text for batch in found for text in batch.kept[i].to_pylist()]


def test_rows_are_read_as_the_schema_says(tmp_path: Path) -> None:
    path = write(tmp_path, "c,more,x,class\na,1,7,yes\n b ,2,0x,no\n01,3,1e3,?\n1,4,NA,x\n?,5,,\nNA,6,-1,\n", "t.csv")
    with pytest.raises(BncliError, match=r"column 'x' contains '0x', which is not a finite number, .* line 3"):
        batches(path)
    found = batches(path, on_bad_row="skip")
    (batch,) = found
    assert (batch.columns.n_rows, batch.columns.label, batch.columns.class_name) == (5, None, "class")
    np.testing.assert_array_equal(coded(found, "x"), [7, 1000, np.nan, np.nan, -1])
    assert coded(found, "c") == [1, 2, UNSEEN, MISSING, UNSEEN]
    column = batch.columns.attributes["x"]
    assert isinstance(column, NumericColumn)
    assert column.values.dtype == np.float64
    assert [batch.locate(i) for i in (0, 1, 4)] == [f"{path} line {line}" for line in (2, 4, 7)]


def test_a_column_of_integers_in_the_file_may_be_categorical_in_the_model(tmp_path: Path) -> None:
    schema = Schema("class", ("a", "b"), (CategoricalAttribute("x", False, (), ("1", "02", "3")),))
    source = Source((write(tmp_path, "x\n1\n2\n02\n 3\n"),))
    (batch,) = read_batches(source, schema, ("x",))
    assert coded([batch], "x") == [0, UNSEEN, 1, 2]


def test_kept_columns_are_the_text_that_was_there(tmp_path: Path) -> None:
    path = write(tmp_path, 'x,c,class,id\n007,a, yes,"q""q"\n+1.50,b,,\n NA ,?,no,"l1\nl2"\n')
    found = batches(path, keep="all", block_size=4)
    assert [kept(found, i) for i in range(4)] == [
        ["007", "+1.50", " NA "],
        ["a", "b", "?"],
        [" yes", "", "no"],
        ['q"q', "", "l1\nl2"],
    ]
    np.testing.assert_array_equal(coded(found, "x"), [7, 1.5, np.nan])
    assert kept(batches(path, keep=("id", "x")), 1) == ["007", "+1.50", " NA "]
    with Batches(Source((path,)), SCHEMA, ("x",), keep="all") as opened:
        assert opened.kept_names == ("x", "c", "class", "id")
    with pytest.raises(UsageError, match=r"no column 'idd'.*did you mean 'id'"):
        Batches(Source((path,)), SCHEMA, ("x",), keep=("idd",))


def test_a_column_that_the_model_uses_must_be_there(tmp_path: Path) -> None:
    path = write(tmp_path, "xx,c\n1,a\n")
    with pytest.raises(ModelError, match=r"no column 'x', which the model uses, .*t\.csv; did you mean 'xx'"):
        batches(path)
    assert len(batches(path, needed=("c",))) == 1
    with pytest.raises(ModelError, match="no columns 'x', 'z', which"):
        batches(path, needed=("x", "z"))


def test_a_header_alone_gives_no_batches(tmp_path: Path) -> None:
    assert batches(write(tmp_path, "x,c\n")) == []
    assert batches(write(tmp_path, "x,c")) == []
    path = write(tmp_path, as_parquet(pa.table({"x": pa.array([], pa.int64()), "c": pa.array([], pa.string())})))
    assert batches(path) == []
    with pytest.raises(BncliError, match="empty"):
        batches(write(tmp_path, ""))


def test_a_model_that_uses_no_column_still_counts_rows(tmp_path: Path) -> None:
    found = batches(write(tmp_path, "u,v\n1,2\n,\n3,4\n"), needed=())
    assert sum(batch.columns.n_rows for batch in found) == 3
    path = write(tmp_path, as_parquet(pa.table({"u": [1, 2]})))
    assert sum(batch.columns.n_rows for batch in batches(path, needed=())) == 2


def test_missing_tokens_of_the_model_or_of_the_user(tmp_path: Path) -> None:
    path = write(tmp_path, "x,c\n-9,a\nNA,b\n")
    schema = Schema(SCHEMA.class_name, SCHEMA.labels, SCHEMA.attributes, missing_tokens=("-9",))
    with pytest.raises(BncliError, match="'NA'"):
        list(read_batches(Source((path,)), schema, ("x",)))
    (batch,) = read_batches(Source((path,), missing_tokens=("NA", "a")), schema, ("x", "c"))
    np.testing.assert_array_equal(coded([batch], "x"), [-9, np.nan])
    assert coded([batch], "c") == [MISSING, 0]


def test_malformed_rows_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "x,c\n" + "1,a\n2\nlow,b\n3,a\n" * 100)
    notes: list[Event] = []
    bad = tmp_path / "bad"
    source = Source((path,), on_bad_row=str(bad))
    with blocks_of(50), Batches(source, SCHEMA, ("x", "c"), run=Run(watch=notes.append)) as opened:
        assert coded(list(opened), "x") == [1, 3] * 100
        assert opened.bad_rows.count == 200
    assert bad.read_bytes() == b"2\nlow,b\n" * 100
    (note,) = [note for note in notes if isinstance(note, Note)]
    assert note.text.startswith("200 malformed rows written to ")


def test_columnar_files_are_read_as_the_schema_says(tmp_path: Path) -> None:
    table = pa.table({"c": [1, None, 3], "x": ["1.5", "NA", " 2"], "other": [[1], [], [2]]})
    schema = Schema(
        "class", ("a", "b"), (CategoricalAttribute("c", False, (), ("1", "2")), NumericAttribute("x", False, (), ()))
    )
    path = write(tmp_path, as_parquet(table), "t.parquet")
    found = list(read_batches(Source((path,)), schema, ("c", "x"), keep=("x", "c")))
    assert coded(found, "c") == [0, MISSING, UNSEEN]
    np.testing.assert_array_equal(coded(found, "x"), [1.5, np.nan, 2])
    assert [kept(found, 0), kept(found, 1)] == [["1.5", "NA", " 2"], ["1", "", "3"]]
    assert found[0].locate(2) == f"{path} row 3"


@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2.5", "", "NA", " 3 "]), st.text('ab01 "\n,;?é', max_size=3)), max_size=30
    ),
    st.integers(1, 100),
    st.sampled_from([1, 2, 4]),
)
def test_rows_keep_their_order_for_any_block_size_and_number_of_threads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], block_size: int, threads: int
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("x", "c"), *rows])
    path = write(tmp_path_factory.getbasetemp(), text.getvalue(), "batches.csv")
    found = batches(path, keep="all", block_size=block_size, run=Run(threads))
    missing = ("", "NA")
    np.testing.assert_array_equal(coded(found, "x"), [np.nan if x in missing else float(x) for x, _ in rows])
    codes = {"b": 0, "a": 1, "01": 2, "": MISSING, "?": MISSING}
    assert coded(found, "c") == [codes.get(c.strip(" \t"), UNSEEN) for _, c in rows]
    if rows:
        assert (kept(found, 0), kept(found, 1)) == ([x for x, _ in rows], [c for _, c in rows])


def test_a_reader_that_stops_early_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write(tmp_path, "x,c\n" + "1,a\n" * 5000)
    n_threads = threading.active_count()
    with blocks_of(100):
        iterator = read_batches(Source((path,)), SCHEMA, ("x",), run=Run(2))
        next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert threading.active_count() == n_threads


def test_the_first_batch_comes_before_stdin_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = FakeStdin(b"x,c\n" + b"1,a\n" * 1_000_000)
    monkeypatch.setattr(sys, "stdin", stdin)
    iterator = read_batches(Source(("-",)), SCHEMA, ("x", "c"))
    first = next(iterator)
    assert first.columns.n_rows < 200_000
    assert first.columns.n_rows + sum(batch.columns.n_rows for batch in iterator) == 1_000_000
    stdin.close()


def labelled(path: str, needed: tuple[str, ...] | None = ("x", "c"), **options: Any) -> Any:
    with blocks_of(options.pop("block_size", csv_text.BLOCK_SIZE)):
        return read_labelled(Source((path,), **options), SCHEMA, needed)


@pytest.mark.parametrize("block_size", [1, 1000])
def test_a_test_set_is_coded_by_the_schema(tmp_path: Path, block_size: int) -> None:
    path = write(tmp_path, "class,x,c,w\nyes,1,a,1\n no,,u,2\nyes,3,b,0\n")
    columns = labelled(path, weights="w", block_size=block_size)
    assert (columns.n_rows, columns.class_name, columns.label.levels) == (2, "class", ("no", "yes"))
    assert columns.label.codes.tolist() == [1, 0]
    assert columns.weights.tolist() == [1, 2]
    np.testing.assert_array_equal(columns.attributes["x"].values, [1, np.nan])
    assert columns.attributes["c"].codes.tolist() == [1, UNSEEN]
    assert columns.attributes["c"].levels == ("b", "a", "01")


def test_labels_of_a_test_set(tmp_path: Path) -> None:
    path = write(tmp_path, "class,x,c\nyes,1,a\nno,1,b\nmaybe,2,b\n")
    with pytest.raises(ModelError, match=r"class 'class' has the value 'maybe', which is not a label .* line 4"):
        labelled(path)
    incomplete = write(tmp_path, "class,x,c\nyes,1,a\n,2,b\n")
    with pytest.raises(BncliError, match="missing in 1 row"):
        labelled(incomplete)
    assert labelled(incomplete, drop_unlabelled=True).n_rows == 1
    numbers = replace(SCHEMA, labels=("-3", "10"))
    na = write(tmp_path, "class,x,c\n10,1,a\nNA,2,b\n-3,2,b\n")
    with pytest.raises(BncliError, match="missing in 1 row"):
        read_labelled(Source((na,)), numbers, ("x", "c"))
    assert read_labelled(Source((na,), drop_unlabelled=True), numbers, ("x", "c")).n_rows == 2
    renamed = write(tmp_path, "truth,x,c\nyes,1,a\n")
    with pytest.raises(ModelError, match="no column 'class', the class of the model"):
        labelled(renamed)
    assert labelled(renamed, class_name="truth").class_name == "class"
    with pytest.raises(ModelError, match="no column 'z', which the model uses"):
        labelled(renamed, None, class_name="truth")
    with pytest.raises(UsageError, match="no column 'w'"):
        labelled(renamed, class_name="truth", weights="w")
    with pytest.raises(BncliError, match="no rows"):
        labelled(write(tmp_path, "class,x,c\n"))


TEXTS = st.sampled_from(["a", "b", " a", "10", "9", "9.0", "", "?", " ", "é", "NA"])


@given(st.lists(TEXTS, max_size=20))
def test_codes_by_a_models_levels(texts: list[str]) -> None:
    levels = ("b", "a", "9", "NA")
    for tokens in (MissingTokens.of(None), MissingTokens.of(("NA", "b"))):
        codes = LevelLookup.of(levels, tokens).encode(pa.array(texts, pa.string()))
        for text, code in zip(texts, codes.tolist(), strict=True):
            value = text.strip()
            known = levels.index(value) if value in levels else UNSEEN
            assert code == (MISSING if value in tokens.text else known)
