"""Tables to learn from: types and missing values over all rows, several files, against Python's csv module."""

from __future__ import annotations

import collections
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.errors import BncliError
from bncli.files.reading import training_rows
from bncli.files.reading.rows_by_cuts import read_table
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Run
from tests.batches import blocks_of
from tests.files.reading.tables import read, table, values, write


def test_a_plain_table(tmp_path: Path) -> None:
    columns = table(tmp_path, "x,c,class\n1.5,a,yes\n2,b,no\n3e1,a,yes\n")
    assert columns.n_rows == 3
    assert (columns.class_name, columns.label.levels) == ("class", ("no", "yes"))  # type: ignore[union-attr]
    assert list(columns.attributes) == ["x", "c"]
    assert values(columns, "x") == [1.5, 2.0, 30.0]
    assert values(columns, "c") == ["a", "b", "a"]
    assert values(columns, "class") == ["yes", "no", "yes"]


def test_more_than_two_numbers_make_a_column_numeric(tmp_path: Path) -> None:
    columns = table(tmp_path, "a,b,c,class\n0,1,7,x\n1,1.0,7,y\n0,2,7,x\n,3,7,y\n")
    assert values(columns, "a") == ["0", "1", "0", None]
    assert values(columns, "b") == [1, 1, 2, 3]
    assert values(columns, "c") == ["7"] * 4


def test_a_categorical_column_keeps_the_text_of_the_file(tmp_path: Path) -> None:
    columns = table(tmp_path, "a,b,class\n007,1,x\n7.0,2,y\n007,3,x\n", categorical=("b",))
    assert values(columns, "a") == ["007", "7.0", "007"]
    assert values(columns, "b") == ["1", "2", "3"]


@pytest.mark.parametrize("token", ["", "?", "NA", "NaN", "null", " ", " ? ", "\tNA", "  null  "])
def test_missing_values_in_a_column_of_numbers(tmp_path: Path, token: str) -> None:
    columns = table(tmp_path, f"x,class\n1,a\n2,b\n3,a\n{token},b\n")
    assert values(columns, "x") == [1, 2, 3, None]


def test_na_is_a_value_among_texts(tmp_path: Path) -> None:
    columns = table(tmp_path, "x,class\nNA,a\nu,b\n?,a\n,b\n ? ,a\n")
    assert values(columns, "x") == ["NA", "u", None, None, None]


def test_missing_tokens_replace_the_list_but_the_empty_field(tmp_path: Path) -> None:
    columns = table(tmp_path, "x,c,class\n1,?,a\n2,none,b\n3,u,a\n-9,,b\n", missing_tokens=("-9", "none"))
    assert values(columns, "x") == [1, 2, 3, None]
    assert values(columns, "c") == ["?", None, "u", None]


@pytest.mark.parametrize(
    "text", ["inf", "-inf", "nan", "Infinity", "0x1F", "1_000", "1e400", "1e", ".", "١", "1,5", "NA "]
)
def test_what_is_no_finite_decimal_number_makes_a_column_text(tmp_path: Path, text: str) -> None:
    columns = table(tmp_path, f'x,class\n1,a\n2,b\n3,a\n"{text}",b\n')
    expected = [1, 2, 3, None] if text == "NA " else ["1", "2", "3", text]
    assert values(columns, "x") == expected


@pytest.mark.parametrize(
    "text", ["+5", " 5", "5 ", "5.", ".5", "-0.5E+3", "00.5", "1e-400", "123456789012345678901234567890"]
)
def test_what_is_a_finite_decimal_number(tmp_path: Path, text: str) -> None:
    columns = table(tmp_path, f"x,class\n1,a\n2,b\n3,a\n{text},b\n")
    assert values(columns, "x") == [1, 2, 3, float(text)]


def test_blanks_around_values_and_names_are_not_part_of_them(tmp_path: Path) -> None:
    columns = table(tmp_path, "x , c,\tclass\n 1, a,yes \n2 ,a ,no\n3,  a\t, yes\n")
    assert values(columns, "x") == [1, 2, 3]
    assert values(columns, "c") == ["a", "a", "a"]
    assert values(columns, "class") == ["yes", "no", "yes"]


def test_types_are_found_over_all_rows(tmp_path: Path) -> None:
    rows = "".join(f"{i % 50},{i % 7},{i / 2},{i % 2},y{i % 2}\n" for i in range(5000))
    words = ["four", "different", "words", "here"]
    content = "a,b,c,d,class\n" + rows + "".join(f"{word},1.5,,0,y1\n" for word in words)
    columns = table(tmp_path, content, block_size=1000)
    assert values(columns, "a") == [str(i % 50) for i in range(5000)] + words
    assert values(columns, "b") == [i % 7 for i in range(5000)] + [1.5] * 4
    assert values(columns, "c") == [i / 2 for i in range(5000)] + [None] * 4
    assert values(columns, "d") == [str(i % 2) for i in range(5000)] + ["0"] * 4


def test_a_column_that_is_empty_or_constant_at_first(tmp_path: Path) -> None:
    rows = [("", "0", "")] * 3000 + [(f"{i}.5", str(i), "t") for i in range(3000)]
    content = "a,b,c,class\n" + "".join(f"{a},{b},{c},{i % 2}\n" for i, (a, b, c) in enumerate(rows))
    columns = table(tmp_path, content, block_size=1000, threads=2)
    assert values(columns, "a") == [float(a) if a else None for a, _, _ in rows]
    assert values(columns, "b") == [float(b) for _, b, _ in rows]
    assert values(columns, "c") == [c or None for _, _, c in rows]


def test_numbers_are_kept_in_narrow_types(tmp_path: Path) -> None:
    names = "tiny,small,large,huge,half,third,gaps,class\n"
    rows = "".join(
        f"{i},{i * 300},{i * 10**6},{i * 10**12},{i / 2},{i / 3},{i if i else ''},{i % 2}\n" for i in range(100)
    )
    columns = table(tmp_path, names + rows)
    types = {name: column.values.dtype.name for name, column in columns.attributes.items()}  # type: ignore[union-attr]
    assert types == {
        "tiny": "int8",
        "small": "int16",
        "large": "int32",
        "huge": "float64",
        "half": "float32",
        "third": "float64",
        "gaps": "float64",
    }


def test_levels_are_in_order_of_numbers_or_code_points(tmp_path: Path) -> None:
    content = "a,b,class\n10,x,9\n9,é,10\n010,Z,1e1\n9.5,z,9\n10,x,1e1\n9,z,10\n"
    columns = table(tmp_path, content, categorical=("a",), class_name="class")
    assert columns.attributes["a"].levels == ("9", "9.5", "010", "10")  # type: ignore[union-attr]
    assert columns.attributes["b"].levels == ("Z", "x", "z", "é")  # type: ignore[union-attr]
    assert columns.label.levels == ("9", "10", "1e1")  # type: ignore[union-attr]


def test_a_column_all_empty_has_no_levels(tmp_path: Path) -> None:
    column = table(tmp_path, "x,y,class\n,1,a\n?,2,b\n").attributes["x"]
    assert isinstance(column, CategoricalColumn)
    assert (column.levels, column.codes.tolist()) == ((), [-1, -1])


def test_many_levels(tmp_path: Path) -> None:
    n = 100_000
    content = "x,class\n" + "".join(f"level {i % n},{i % 2}\n" for i in range(2 * n + 2))
    column = table(tmp_path, content, categorical=("x",)).attributes["x"]
    assert isinstance(column, CategoricalColumn)
    assert len(column.levels) == n
    assert column.levels[column.codes[n + 7]] == "level 7"


def test_tiny_and_huge_numbers(tmp_path: Path) -> None:
    columns = table(tmp_path, "x,class\n1e308,a\n-1e308,b\n5e-324,a\n-0.0,b\n9007199254740993,a\n")
    assert values(columns, "x") == [1e308, -1e308, 5e-324, 0.0, 9007199254740992.0]


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    n_columns = draw(st.integers(2, 4))
    words = st.sampled_from(
        ["a", "b", 'q"q', '"', "x,y", "l1\nl2", "r\rn", "\r\n", "é", " pad ", "", "?", "NA", "0x1F", "inf"]
    )
    numbers = st.sampled_from(["0", "1", "2", "-3", "4.5", "1e3", "+7", "007", "", "NA", " 8 ", "130", "70000"])
    kinds = [draw(st.sampled_from([numbers, numbers, words, st.one_of(numbers, words)])) for _ in range(n_columns - 1)]
    n_rows = draw(st.integers(1, 25))
    rows = [[draw(kind) for kind in kinds] + [draw(st.sampled_from(["u", "v"]))] for _ in range(n_rows)]
    rows += [["1"] * (n_columns - 1) + [label] for label in "uv"]
    return [[f"c{i}" for i in range(n_columns - 1)] + ["class"], *rows]


def are_codes(texts: list[str | None]) -> bool:
    """Digits only, one with a leading zero, and zero no commoner than any other value."""
    present = [text for text in texts if text is not None]
    if not all(re.fullmatch("[0-9]+", text) for text in present):
        return False
    times = collections.Counter("0" if not text.strip("0") else text for text in present)
    commonest = max((n for text, n in times.items() if text != "0"), default=0)
    padded = any(re.fullmatch("0[0-9]+", text) for text in present)
    return padded and times["0"] <= commonest and len(set(map(float, present))) > 2


def expected(texts: list[str]) -> list[Any]:
    stripped = [text.strip(" \t") for text in texts]
    numbers = [None if text in ("", "?", "NA", "NaN", "null") else text for text in stripped]
    decimal = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
    words = [text for text in numbers if text is not None and not decimal.fullmatch(text)]
    if len(set(words)) <= 3 and 10 * len(words) <= sum(text is not None for text in numbers):
        numbers = [None if text in words else text for text in numbers]
        found = [None if text is None else float(text) for text in numbers]
        if not are_codes(numbers) and len({number for number in found if number is not None}) > 2:
            return found
    return [None if text in ("", "?") else text for text in stripped]


@given(
    tables(),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.integers(1, 300),
    st.sampled_from([1, 2, 5]),
)
def test_every_table_reads_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    delimiter: str,
    line_end: str,
    quoting: int,
    block_size: int,
    threads: int,
) -> None:
    if any(end in value for row in rows for value in row for end in "\r\n"):
        quoting = csv.QUOTE_ALL  # the minimal way leaves some line ends bare
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    path = write(tmp_path_factory.getbasetemp(), text.getvalue(), "hypothesis.csv")
    columns = read(path, block_size=block_size, threads=threads)
    for i, name in enumerate(rows[0]):
        assert values(columns, name) == expected([row[i] for row in rows[1:]])


def test_the_same_table_for_any_block_size_and_number_of_threads(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [
        f"{rng.normal():.6g},{rng.integers(3)},w{rng.integers(40)},{'x' if i == 3990 else i},{i % 3}"
        for i in range(4000)
    ]
    path = write(tmp_path, "a,b,c,d,class\n" + "\n".join(rows) + "\n")
    first = read(path, categorical=("d",))
    for block_size, threads in ((100, 1), (5000, 3), (1 << 20, 2)):
        again = read(path, categorical=("d",), block_size=block_size, threads=threads)
        for name, column in first.attributes.items():
            other = again.attributes[name]
            if isinstance(column, NumericColumn):
                assert isinstance(other, NumericColumn)
                np.testing.assert_array_equal(column.values, other.values)
            else:
                assert isinstance(other, CategoricalColumn)
                assert column.levels == other.levels
                np.testing.assert_array_equal(column.codes, other.codes)


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
        ((NAMES, NUMBERS), "column 'x' has text in {0}, but numbers here", "{1}"),
        ((NUMBERS, NUMBERS, [*NUMBERS, *"wxyz"]), "column 'x' has numbers in {0}, but 'w' here", "{2} line 42"),
        ((NUMBERS[:9], [*range(40), *"abcd"]), "column 'x' has numbers in {0}, but 'a' here", "{1} line 42"),
        ((["", "?"] * 4, NAMES, ["1"] * 4, NAMES, NUMBERS), "column 'x' has text in {1}, but numbers here", "{4}"),
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
        (X64, TEXT, "type int64 in {0}, but type string here"),
        (TEXT, X64.cast(pa.float64()), "type string in {0}, but type double here"),
        (X64, X64.cast(pa.timestamp("s")), "type int64 in {0}, but type timestamp[ms] here"),
        (
            TEXT.dictionary_encode(),
            X64,
            "type dictionary<values=string, indices=int32, ordered=0> in {0}, but type int64 here",
        ),
        (X64.cast(pa.int32()).cast(pa.time32("s")), X64.cast(pa.timestamp("s")), "type time32[ms] in {0}, but"),
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
    with pytest.raises(BncliError, match="column 'class' has type int64 in"):
        read_columns(Source(tuple(paths)))
    assert read_columns(Source(tuple(paths), categorical=("class",))).label is not None


def test_text_after_a_columnar_file(tmp_path: Path) -> None:
    (table,) = columnar(tmp_path, X64)
    (text,) = written(tmp_path, NAMES)
    with pytest.raises(BncliError) as caught:
        read_columns(Source((table, text)))
    assert (caught.value.what, caught.value.where) == (f"column 'x' has numbers in {table}, but 'low' here", text)
