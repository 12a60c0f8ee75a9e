"""The roles of columns, from options, schema files and given cuts; the checks of the class and the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Note
from tests.files.reading.tables import read, table, values, write, write_parquet


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
        ('{"categorical": ["a.month"]}', "derived from the dates of 'a'"),
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
        ({"ignore": ("AGE",)}, "did you mean 'age'"),
        ({"weights": "nothing like it"}, "no column 'nothing like it', .*csv$"),
        ({"categorical": ("age",), "numeric": ("age",)}, "both"),
        ({"ignore": ("class",)}, "is the class"),
        ({"weights": "class"}, "is the class"),
        ({"group": ("class",)}, "contains the class, .*give the class with --class"),
        ({"group": ("class",), "class_name": "class"}, "contains the class, .*choose another column$"),
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
    with pytest.raises(BncliError, match="the cuts contain 'b'"):
        table(tmp_path, "a,bb,k\n1,0,u\n2,1,v\n", cuts=cuts)
    with pytest.raises(BncliError, match=r"column 'b' contains 'x'.* line 3"):
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
    with pytest.raises(BncliError, match=r"3 labels in 5 rows.*; its values are numbers, so cut them into .*--class"):
        table(tmp_path, "x,class\n1,1\n2,2\n3,3\n4,1\n5,1\n")
    with pytest.raises(BncliError, match=r"3 labels in 5 rows.* with --class"):
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
        what = f"the class 'y' looks like a numeric variable, not a class: {len(labels)} different numbers in "
        what += f"{n_rows:,} rows; "
        assert warnings[0].startswith(what)
        assert "--class" in warnings[0]
        assert "--categorical 'y'" in warnings[0]
    heard.clear()
    read_columns(Source((str(path),), categorical=("y",)), watch=heard.append)
    assert not any(isinstance(event, Note) and event.warning for event in heard)


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


def test_a_wrong_delimiter_is_hinted_at(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,k\n1,2,u\n2,3,v\n")
    (tmp_path / "t.schema.json").write_text('{"class": "k"}')
    with pytest.raises(BncliError, match=r"no column 'k', .*json; .*t\.csv has a single column.*--delimiter"):
        read(path, delimiter=";")
    with pytest.raises(UsageError, match=r"no column 'b', .*t\.csv has a single column.*--delimiter"):
        read(path, delimiter=";", schema_file=None, class_name="b")


@pytest.mark.parametrize("option", ["class", "weights"])
@pytest.mark.parametrize(("value", "word"), [([1, 2], "lists"), ({"a": 1}, "structs")])
def test_labels_and_weights_are_single_values(tmp_path: Path, option: str, value: Any, word: str) -> None:
    """Leaving the column out, as is advised for attributes, would be no help."""
    path = write_parquet(tmp_path, {"x": [1.5, 2.5, 3.5, 4.5], "n": [value] * 4, "class": ["u", "v"] * 2})
    with pytest.raises(BncliError, match=f"column 'n' contains {word}, which cannot be") as error:
        read(path, **{"class_name" if option == "class" else "weights": "n"})
    assert error.value.hint == f"choose a column of single values with --{option}"
