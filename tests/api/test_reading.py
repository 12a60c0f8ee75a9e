"""What the command's flags say of DATA is said in Python by keywords, to the same effect."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import bncli
from bncli.api.calls import COLUMN_OPTIONS, FILE_OPTIONS, LABELLED_OPTIONS, SCORED_OPTIONS
from bncli.api.models import Model
from bncli.cli import options
from bncli.errors import BncliError, ModelError, UsageError
from tests.api.test_learning import command, silent

NB: dict[str, Any] = {"structure": "nb", "param": "map", "progress": silent}
ROWS = [(f"{i % 7},{i % 5}", "grün" if i % 3 else "blau", "ja" if (i + i % 2) % 3 else "nein") for i in range(120)]
SAID: dict[str, Any] = {"delimiter": ";", "encoding": "latin-1", "decimal": ",", "format": "csv"}


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A table that is read wrongly, or not at all, unless it is said how."""
    path = tmp_path / "t.txt"
    lines = ["zahl;farbe;klasse", *(";".join(row) for row in ROWS)]
    path.write_text("\n".join([*lines, ""]), encoding="latin-1")
    return path


def flags(*decorators: Any) -> set[str]:
    def nothing() -> None:
        pass

    callback: Any = nothing
    for decorator in decorators:
        callback = decorator(callback)
    found: list[click.Parameter] = callback.__click_params__
    return {str(one.name) for one in found}


def test_every_flag_about_data_has_its_keyword() -> None:
    """Another flag of the command is to be given one here too."""
    names = {"class_name": "class_"}
    said = {names.get(name, name) for name in flags(*options.TABLE, *options.SPLIT, options.POSITIVE)}
    assert said == {*COLUMN_OPTIONS, *FILE_OPTIONS}
    assert flags(*options.LABELLED_TABLE, *options.MISSING, *options.FORMAT, *options.BAD_ROWS) == {
        "class_name",
        *LABELLED_OPTIONS,
    } - {"class_"}
    assert flags(*options.MISSING, *options.FORMAT, *options.BAD_ROWS) == {*SCORED_OPTIONS}
    for function in (bncli.fit, Model.evaluate):
        assert flags(*options.UNSEEN) <= {*signature(function).parameters}


def test_the_bytes_of_the_command(foreign: Path, tmp_path: Path) -> None:
    words = ["--delimiter", ";", "--encoding", "latin-1", "--decimal", ",", "--format", "csv", "--unseen", "error"]
    command("fit", str(foreign), *words, "--structure", "nb", "--param", "map", "-o", str(tmp_path / "m.bnc"))
    model = bncli.fit(foreign, **NB, **SAID, unseen="error")
    model.save(tmp_path / "python.bnc")
    assert (tmp_path / "python.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()


METHODS: list[Callable[..., Any]] = [
    lambda model, table, **said: model.predict_proba(table, **said),
    lambda model, table, **said: model.predict(table, **said),
    lambda model, table, **said: model.decide(table, threshold=0.4, **said).labels,
    lambda model, table, **said: [one.log_odds for one in model.explain(table, **said)],
    lambda model, table, **said: model.what_if(table, {"farbe": "blau"}, **said),
    lambda model, table, **said: model.flip(table, **said),
    lambda model, table, **said: model.because(table, **said),
    lambda model, table, **said: model.next_best(table, **said),
    lambda model, table, **said: model.surprise(table, **said),
    lambda model, table, **said: model.monitor(table, **said)["rows"],
]


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_read_as_is_said(foreign: Path, method: Callable[..., Any]) -> None:
    model = bncli.fit(foreign, **NB, **SAID)
    numbers, names, labels = zip(*ROWS, strict=True)
    table = {"zahl": [float(text.replace(",", ".")) for text in numbers], "farbe": names, "klasse": labels}
    said = {key: SAID[key] for key in FILE_OPTIONS if key in SAID}
    assert np.array_equal(method(model, foreign, **said), method(model, table))
    with pytest.raises(BncliError):
        method(model, foreign, delimiter=";", encoding="utf-16")
    with pytest.raises(TypeError, match="'dates'"):
        method(model, table, dates="off")
    with pytest.raises(ModelError, match="farbe"):  # no method allows a missing column unless the caller does
        method(model, {"zahl": table["zahl"]})


@pytest.mark.filterwarnings("ignore:the rows look like the training rows")
def test_measuring_reads_as_is_said(foreign: Path) -> None:
    model = bncli.fit(foreign, **NB, **SAID)
    said = {key: SAID[key] for key in FILE_OPTIONS if key in SAID}
    assert model.evaluate(foreign, **said)["rows"] == 120
    assert model.calibrate(foreign, **said).classes_.tolist() == ["ja", "nein"]
    assert bncli.evaluate(foreign, folds=2, **NB, **SAID)["rows"] == 120
    found = bncli.compare([foreign], {"nb": "--structure nb --param map"}, folds=2, progress=silent, **SAID)
    assert [one["rows"] for one in found["data"]] == [120]


def test_values_never_seen_in_folds() -> None:
    """A value of a single row is in no other fold."""
    rows = {"a": [*["u", "v"] * 20, "w"], "class": [*["x", "y"] * 20, "x"]}
    assert bncli.evaluate(rows, folds=2, **NB)["rows"] == 41
    with pytest.raises(ModelError, match="never"):
        bncli.evaluate(rows, folds=2, unseen="error", **NB)
    with pytest.raises(UsageError, match="unseen is 'no'"):
        bncli.evaluate(rows, unseen="no", **NB)
    with pytest.raises(UsageError, match="unseen is 'no'"):
        bncli.compare([], {}, unseen="no")


def test_a_schema_file(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"class": "farbe", "ignore": ["klasse"]}')
    model = bncli.fit(foreign, schema=tmp_path / "s.json", discretize="equal-width", **NB, **SAID)
    assert (model.class_name, model.feature_names_in_.tolist()) == ("farbe", ["zahl"])


def test_bad_rows(tmp_path: Path) -> None:
    rows = {"a": [1.5, 2.5, 3.5] * 20, "class": ["x", "y", "y"] * 20}
    model = bncli.fit(rows, **NB)
    bad = {"a": ["1.5", "two", "3.5"]}
    with pytest.raises(BncliError, match="the table row 2"):
        model.predict(bad)
    assert model.predict(bad, on_bad_row="skip").tolist() == ["x", "y"]
    assert len(model.predict(bad, on_bad_row=tmp_path / "bad.csv")) == 2
    assert "two" in (tmp_path / "bad.csv").read_text()


def test_values_never_seen() -> None:
    rows, new = {"a": ["u", "v"] * 20, "class": ["x", "y"] * 20}, {"a": ["w"], "class": ["x"]}
    model = bncli.fit(rows, **NB)
    assert model.predict(new).tolist() == ["x"]
    for strict, said in ((model, {"unseen": "error"}), (bncli.fit(rows, unseen="error", **NB), {})):
        for call in (strict.predict, strict.explain, strict.evaluate):
            with pytest.raises(ModelError, match=r"(not|never) seen.*unseen='average'"):
                call(new, **said)
        assert strict.predict(new, unseen="average").tolist() == ["x"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"delimiter": ";"}, "delimiter= sets how a file is read, but the table is not a file"),
        ({"format": "xlsx"}, "format is 'xlsx'; it should be one of 'csv', 'tsv', 'parquet', 'arrow'"),
        ({"dates": "foo"}, "dates is 'foo'; it should be one of 'auto', 'off', 'dmy', 'mdy'"),
        ({"unseen": "ignore"}, "unseen is 'ignore'; it should be one of 'average', 'error'"),
        ({"decimal": "x"}, "decimal= must be a point or a comma, not 'x'"),
        ({"delimiter": ";;"}, "delimiter= must be one character, not ';;'"),
        ({"encoding": "klingon"}, "encoding= sets how a file is read, but the table is not a file"),
    ],
)
def test_what_cannot_be(said: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bncli.fit({"a": [1, 2] * 9, "class": ["x", "y"] * 9}, **said)


def test_columns_rows_and_labels_that_are_named(tmp_path: Path) -> None:
    """Lists with commas, columns to use, the event, complete rows, a file without a header."""
    lines = [f"{i % 7},{'' if i % 10 == 3 else i % 5},{'ja' if i % 7 < 4 else 'nein'}" for i in range(120)]
    path = tmp_path / "bare.csv"
    path.write_text("\n".join([*lines, ""]))
    words = ["--structure", "nb", "--param", "map", "-q", "-o", str(tmp_path / "m.bnc")]
    said = ["--names", "a,b,y", "--use", "a", "--positive", "ja", "--drop-incomplete"]
    command("fit", str(path), *words, *said)
    model = bncli.fit(path, **NB, names=["a", "b", "y"], use="a", positive="ja", drop_incomplete=True)
    model.save(tmp_path / "python.bnc")
    assert (tmp_path / "python.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()
    assert model.feature_names_in_.tolist() == ["a"]
    assert model.classes_.tolist() == ["nein", "ja"]
    other = bncli.fit(path, **NB, names=["a", "b", "y"], ignore="b", positive="nein")
    assert other.classes_.tolist() == ["ja", "nein"]
    assert other.report["rows"] == 120
    both = bncli.fit(path, **NB, names=["a", "b", "y"], positive="ja", drop_incomplete=True)
    assert both.report["rows"] == 108
    found = model.evaluate(path, names=["a", "b", "y"], positive="nein")
    assert [one["label"] for one in found["per_class"]] == ["ja", "nein"]
