from __future__ import annotations

import collections
import csv
import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute
from bncli.errors import BncliError, UsageError
from bncli.files.reading import csv_text
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.batches import blocks_of


def write(path: Path, content: str | bytes, name: str = "t.csv") -> str:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def read(path: str, **options: Any) -> Columns:
    """Read a file; `block_size` is in bytes."""
    reading = {key: options.pop(key) for key in ("threads", "cuts", "watch") if key in options}
    with blocks_of(options.pop("block_size", csv_text.BLOCK_SIZE)):
        return read_columns(Source((path,), **options), **reading)


def table(path: Path, content: str | bytes, **options: Any) -> Columns:
    return read(write(path, content), **options)


def values(columns: Columns, name: str) -> list[Any]:
    """The column as Python values, a missing value as None."""
    column = columns.label if name == columns.class_name else columns.attributes[name]
    if isinstance(column, CategoricalColumn):
        return [None if code < 0 else column.levels[code] for code in column.codes]
    assert isinstance(column, NumericColumn)
    return [None if math.isnan(value) else value for value in column.values.tolist()]


# Types and missing values


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


# Everything against Python's csv module


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
    if all(text is None or decimal.fullmatch(text) for text in numbers) and not are_codes(numbers):
        found = [None if text is None else float(text) for text in numbers]
        if len({number for number in found if number is not None}) > 2:
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


# Roles


def test_the_class_is_called_class_or_is_the_last_column(tmp_path: Path) -> None:
    assert table(tmp_path, "class,x\na,1\nb,2\n").class_name == "class"
    assert table(tmp_path, "x,y\n1,a\n2,b\n").class_name == "y"
    assert table(tmp_path, "x,y,class\n1,a,0\n2,b,1\n", class_name="y").class_name == "y"


def test_flags_give_columns_their_roles(tmp_path: Path) -> None:
    content = "id,code,flag,w,class\n1,1,0,2,a\n2,2,1,1,b\n3,3,1,0,c\n4,1,0,1.5,a\n"
    options: dict[str, Any] = {"ignore": ("id",), "categorical": ("code",), "numeric": ("flag",), "weights": "w"}
    columns = table(tmp_path, content, **options)
    assert list(columns.attributes) == ["code", "flag"]
    assert columns.weights is not None
    assert columns.weights.tolist() == [2, 1, 1.5]  # the row of weight 0 does not exist
    assert values(columns, "code") == ["1", "2", "1"]
    assert columns.attributes["code"].levels == ("1", "2")  # type: ignore[union-attr]
    assert values(columns, "flag") == [0, 1, 0]
    assert columns.label.levels == ("a", "b")  # type: ignore[union-attr]


def test_a_schema_file_beside_the_data_is_used_and_flags_win(tmp_path: Path) -> None:
    content = "a,b,c,k\n1,1,1,u\n2,2,2,v\n3,3,3,u\n"
    path = write(tmp_path, content, "data.csv")
    write(tmp_path, '{"class": "a", "categorical": ["b"], "ignore": ["c"]}', "data.schema.json")
    columns = read(path, class_name="k", numeric=("c",))
    assert columns.class_name == "k"
    assert values(columns, "b") == ["1", "2", "3"]
    assert values(columns, "c") == [1, 2, 3]
    elsewhere = write(tmp_path, '{"class": "k", "weights": "a"}', "other.json")
    assert read(path, schema_file=elsewhere).weights.tolist() == [1, 2, 3]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "one JSON object"),
        ("{", "not valid JSON"),
        ('{"class": "k", "class": "k"}', 'key "class" is given twice'),
        ('{"classs": "k"}', "did you mean 'class'"),
        ('{"class": 3}', "must be a column name"),
        ('{"ignore": "a"}', "must be a list"),
        ('{"ignore": ["z"]}', "no column 'z'"),
        ('{"ignore": ["a"], "numeric": ["a"]}', "both"),
    ],
)
def test_faults_of_a_schema_file(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path, "a,k\n1,u\n2,v\n")
    write(tmp_path, content, "t.schema.json")
    with pytest.raises(BncliError, match=message) as caught:
        read(path)
    assert caught.value.exit_code == 1
    assert "t.schema.json" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_name": "clas"}, "no column 'clas', .*did you mean 'class'"),
        ({"ignore": ("agee",)}, "did you mean 'age'"),
        ({"weights": "nothing like it"}, "no column 'nothing like it', .*csv$"),
        ({"categorical": ("age",), "numeric": ("age",)}, "both"),
        ({"ignore": ("class",)}, "is the class"),
        ({"weights": "class"}, "is the class"),
        ({"delimiter": "ab"}, "delimiter"),
        ({"format": "xls"}, "unknown format"),
    ],
)
def test_options_that_do_not_fit_the_data_are_usage_errors(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        table(tmp_path, "age,sex,class\n1,m,a\n2,f,b\n3,f,a\n", **options)


def test_given_cuts_fix_the_attributes_and_their_types(tmp_path: Path) -> None:
    numeric = NumericAttribute("b", False, (), (0.5,))
    cuts = Cuts("k", (numeric, CategoricalAttribute("a", False, (), ("3", "1", "2"))))
    columns = table(tmp_path, "a,b,c,k,z\n1,0,9,u,1\n2,1,8,v,1\n ,1,7,u,1\n", cuts=cuts)
    assert columns.class_name == "k"
    assert list(columns.attributes) == ["a", "b"]
    assert values(columns, "b") == [0, 1, 1]
    assert values(columns, "a") == ["1", "2", None]
    assert columns.attributes["a"].levels == ("1", "2", "3")  # type: ignore[union-attr]
    with pytest.raises(BncliError, match="column 'a' has the value '4'"):
        table(tmp_path, "a,b,k\n1,0,u\n4,1,v\n", cuts=cuts)
    with pytest.raises(BncliError, match="the cuts name 'b'"):
        table(tmp_path, "a,bb,k\n1,0,u\n2,1,v\n", cuts=cuts)
    with pytest.raises(BncliError, match=r"column 'b' holds 'x'.* line 3"):
        table(tmp_path, "a,b,k\n1,0,u\n2,x,v\n", cuts=cuts)
    with pytest.raises(UsageError, match="the cuts are for the class 'k', not 'c'"):
        table(tmp_path, "a,b,c,k\n1,0,1,u\n2,1,2,v\n", cuts=cuts, class_name="c")


@pytest.mark.parametrize("block_size", [16, 1 << 20])
def test_a_level_that_the_given_cuts_lack_is_no_error_in_a_row_that_does_not_count(
    tmp_path: Path, block_size: int
) -> None:
    cuts = Cuts("k", (CategoricalAttribute("a", False, (), ("p", "q")),))
    rows = "a,w,k\np,1,u\nr,0,u\nq,1,v\nq,2,u\ns,3,\n"
    options: dict[str, Any] = {"cuts": cuts, "weights": "w", "block_size": block_size}
    columns = table(tmp_path, rows, drop_unlabelled=True, **options)
    assert values(columns, "a") == ["p", "q", "q"]
    with pytest.raises(BncliError, match="column 'a' has the value 's'"):
        table(tmp_path, rows.replace("s,3,", "s,3,u"), **options)


def test_identifiers_are_left_out_with_a_note(tmp_path: Path) -> None:
    content = "id,x,class\n" + "".join(f"n{i},{i},{i % 2}\n" for i in range(30))
    notes: list[Event] = []
    assert list(table(tmp_path, content, watch=notes.append).attributes) == ["x"]
    assert any(isinstance(note, Note) and "identifiers: id " in note.text for note in notes)
    assert list(table(tmp_path, content, categorical=("id",)).attributes) == ["id", "x"]
    with pytest.raises(BncliError, match="identifiers"):
        table(tmp_path, content, ignore=("x",))


def test_integer_columns_of_few_values_are_named_once(tmp_path: Path) -> None:
    content = "a,b,c,d,class\n" + "".join(
        f"{i % 10},{i % 11},{i % 3 * 1000000},{i % 4 / 2},{i % 2}\n" for i in range(50)
    )
    notes: list[Event] = []
    table(tmp_path, content, watch=notes.append)
    assert [note.text for note in notes if isinstance(note, Note)] == [
        "integers with at most 10 different values are read as numbers: a, c (if they are codes: --categorical NAME)"
    ]
    notes.clear()
    table(tmp_path, content, watch=notes.append, numeric=("a",), categorical=("c",))
    assert not [note for note in notes if isinstance(note, Note)]


# The class


def test_na_is_a_missing_value_in_a_class_of_numbers(tmp_path: Path) -> None:
    content = "x,class\n1,10\n2,9\n3,-3\n4,NA\n5,10\n6,9\n7,9\n"
    with pytest.raises(BncliError, match="missing in 1 row"):
        table(tmp_path, content)
    columns = table(tmp_path, content, drop_unlabelled=True)
    assert columns.label is not None
    assert columns.label.levels == ("-3", "9", "10")
    as_text = table(tmp_path, content + "8,NA\n", categorical=("class",))
    assert as_text.label is not None
    assert "NA" in as_text.label.levels
    words = table(tmp_path, "x,class\n1,a\n2,NA\n3,NA\n")
    assert values(words, "class") == ["a", "NA", "NA"]


def test_rows_without_a_class(tmp_path: Path) -> None:
    content = "x,y,class\n1,p,a\n2,q,\n3,p,b\n4,p,?\n"
    with pytest.raises(BncliError, match="missing in 2 rows"):
        table(tmp_path, content)
    columns = table(tmp_path, content, drop_unlabelled=True)
    assert values(columns, "x") == [1, 3]
    assert columns.attributes["y"].levels == ("p",)  # type: ignore[union-attr]
    with pytest.raises(BncliError, match="missing in every row"):
        table(tmp_path, "x,class\n1,\n2,?\n", drop_unlabelled=True)


def test_a_class_must_have_two_labels_and_not_too_many(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="only one value, 'a'"):
        table(tmp_path, "x,class\n1,a\n2,a\n")
    with pytest.raises(BncliError, match=r"3 labels in 5 rows.*; it is a number, so cut it into .*--class"):
        table(tmp_path, "x,class\n1,1\n2,2\n3,3\n4,1\n5,1\n")
    with pytest.raises(BncliError, match=r"3 labels in 5 rows.*; --class"):
        table(tmp_path, "x,class\n1,a\n2,2\n3,3\n4,a\n5,a\n")


@pytest.mark.parametrize(
    ("labels", "n_rows", "is_number"),
    [
        ([str(i) for i in range(298)], 1500, True),
        ([f"{i / 4}" for i in range(21)], 3000, True),
        ([str(i) for i in range(21)], 1000, True),
        ([str(i) for i in range(21)], 1050, False),
        ([str(i) for i in range(20)], 200, False),
        ([f"{i / 4}" for i in range(20)], 200, False),
        ([f"a{i}" for i in range(298)], 1500, False),
        (["none", *(str(i) for i in range(297))], 1500, False),
    ],
)
def test_a_class_of_many_numbers_is_told_to_be_a_number(
    tmp_path: Path, labels: list[str], n_rows: int, is_number: bool
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,y\n" + "".join(f"{i % 5},{labels[i % len(labels)]}\n" for i in range(n_rows)))
    heard: list[Event] = []
    read_columns(Source((str(path),)), watch=heard.append)
    warnings = [event.text for event in heard if isinstance(event, Note) and event.warning]
    assert len(warnings) == is_number
    if is_number:
        what = f"the class 'y' looks like a number, not a class: {len(labels)} different numbers in {n_rows:,} rows; "
        assert warnings[0].startswith(what)
        assert "--class" in warnings[0]
        assert "--categorical 'y'" in warnings[0]
    heard.clear()
    read_columns(Source((str(path),), categorical=("y",)), watch=heard.append)
    assert not any(isinstance(event, Note) and event.warning for event in heard)


# Weights


@pytest.mark.parametrize(
    ("weight", "message"),
    [("-1", "is '-1"), ("", "missing"), ("NA", "missing"), ("inf", "inf"), ("x", "'x'")]
    + [(text, "weights must lie between 1e-100 and 1e100; rescale them") for text in ("1e308", "1.1e100", "9e-101")],
)
def test_a_weight_is_a_number_and_not_negative(tmp_path: Path, weight: str, message: str) -> None:
    content = f"x,w,class\n1,1,a\n2,{weight},b\n3,2,b\n"
    with pytest.raises(BncliError, match=f"weight in column 'w' .*{message}.*line 3"):
        table(tmp_path, content, weights="w")
    columns = table(tmp_path, content, weights="w", on_bad_row="skip")
    assert columns.weights is not None
    assert columns.weights.tolist() == [1, 2]


def test_the_extreme_weights(tmp_path: Path) -> None:
    columns = table(tmp_path, "x,w,class\n1,1e100,a\n2,1e-100,b\n3,0,b\n", weights="w")
    assert columns.weights is not None
    assert columns.weights.tolist() == [1e100, 1e-100]


def test_some_row_must_count(tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="every row has weight 0"):
        table(tmp_path, "x,w,class\n1,0,a\n2,0,b\n", weights="w")


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
