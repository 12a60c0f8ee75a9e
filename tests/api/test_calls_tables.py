"""Frames of other libraries: the same model and the same probabilities, whatever holds the rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bncli
from bncli import Classifier
from bncli.api.calls import table_of
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import dump_model
from bncli.watch import Event, Note

NB: dict[str, Any] = {"structure": "nb", "param": "map"}
N = 90


def rows() -> dict[str, list[Any]]:
    """Numbers, texts, dates and truth values, some missing."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["no", "yes"], N).tolist()
    yes = np.array(labels) == "yes"
    return {
        "number": np.round(yes + rng.normal(size=N), 2).tolist(),
        "whole": [None if i % 7 == 0 else int(value) for i, value in enumerate(3 * yes + rng.integers(0, 9, N))],
        "text": [None if i % 9 == 0 else value for i, value in enumerate(np.where(rng.random(N) < 0.8, yes, "maybe"))],
        "flag": [None if i % 5 == 0 else bool(value) for i, value in enumerate(rng.random(N) < 0.3 + 0.4 * yes)],
        "day": [datetime.datetime(2024, 1, 1 + int(day)) for day in 9 * yes + rng.integers(0, 20, N)],
        "y": labels,
    }


def pandas(columns: dict[str, list[Any]]) -> Any:
    """Nullable types, and an index that is not a column."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()}).convert_dtypes()
    return frame.set_index(pd.Index(range(7, 7 + len(frame))))


def polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def duckdb(columns: dict[str, list[Any]]) -> Any:
    engine = pytest.importorskip("duckdb")
    database = engine.connect()
    database.register("held", pa.table(columns))
    return database.sql("SELECT * FROM held")


FRAMES = (pandas, polars, duckdb)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_is_the_table_of_arrow(frame: Callable[[Any], Any]) -> None:
    table = pa.table(rows())
    models = [bncli.fit(data, class_="y", progress=lambda event: None, **NB) for data in (table, frame(rows()))]
    assert dump_model(models[0]._model) == dump_model(models[1]._model)
    assert np.array_equal(models[0].predict_proba(table), models[0].predict_proba(frame(rows())))
    nothing = frame(rows()).limit(0) if frame is duckdb else frame(rows())[:0]
    assert models[0].predict_proba(nothing).shape == (0, 2)
    assert models[0].explain(nothing) == []
    with pytest.raises(BncliError, match="no rows"):
        bncli.fit(nothing, class_="y", **NB)


@pytest.mark.parametrize("frame", FRAMES)
def test_the_estimator_takes_it(frame: Callable[[Any], Any]) -> None:
    columns = rows()
    labels = columns.pop("y")
    held = frame(columns)
    model = Classifier(**NB).fit(held, np.array(labels))
    p = model.predict_proba(held)
    assert p.shape == (N, 2)
    assert (p.argmax(axis=1) == (np.array(labels) == "yes")).mean() > 0.7
    assert model.model_ is not None
    assert {"number", "whole", "text"} <= {*model.model_.feature_names_in_}


@pytest.mark.parametrize("values", [[1, "a", None], [1.5, 2, None], ["1", 2, "1"], [True, "x", 3.0]])
def test_columns_of_mixed_types_are_the_same_to_both(values: list[Any]) -> None:
    mixed = np.array(values * 30, object)
    labels = ["u", "v", "v"] * 30
    pd = pytest.importorskip("pandas")
    tables = ({"m": mixed, "class": labels}, pd.DataFrame({"m": mixed, "class": labels}))
    told = [bncli.fit(table, progress=lambda event: None, **NB).predict_proba(table) for table in tables]
    arrays = (mixed[:, None], pd.DataFrame({"m": mixed}))
    told += [Classifier(**NB).fit(one, labels).predict_proba(one) for one in arrays]
    for other in told[1:]:
        assert np.allclose(other, told[0], rtol=0, atol=1e-12)


def test_types_of_pandas_that_arrow_does_not_know() -> None:
    pd = pytest.importorskip("pandas")
    numbers = np.random.default_rng(0).normal(size=N)
    frame = pd.DataFrame({"cut": pd.cut(pd.Series(numbers), 4), "class": np.where(numbers > 0, "u", "v")})
    frame["sparse"] = pd.arrays.SparseArray((numbers > 1).astype(int))
    frame["month"] = pd.period_range("2020-01", periods=N, freq="M")
    frame["code"] = pd.Categorical(np.arange(N) % 3)
    model = bncli.fit(frame, progress=lambda event: None, **NB)
    assert {"cut", "sparse", "code"} <= {*model.feature_names_in_}
    assert (model.predict(frame) == frame["class"]).mean() > 0.9
    inputs = frame.drop(columns="class")
    assert Classifier(**NB).fit(inputs, frame["class"]).score(inputs, frame["class"]) > 0.9


def test_labels_of_pandas_and_polars() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    numbers = np.arange(N)[:, None]
    texts = ["u", "v", "w"] * 30
    for labels in (pd.Series(texts), pd.Series(texts, dtype="string"), pd.Categorical(texts), pl.Series(texts)):
        assert Classifier(**NB).fit(numbers, labels).classes_.tolist() == ["u", "v", "w"]


def test_categories_of_polars_are_categories() -> None:
    pl = pytest.importorskip("polars")
    codes = ["1", "2", "10"] * 30
    labels = ["u", "v", "u"] * 30
    for kind in (pl.Categorical, pl.Enum(["1", "2", "10"])):
        frame = pl.DataFrame({"a": pl.Series(codes, dtype=kind), "class": labels})
        model = bncli.fit(frame, progress=lambda event: None, **NB)
        assert {*model.effects()[0].names[0]} >= {"1", "2", "10"}
    with pytest.raises(UsageError, match="an object of type LazyFrame; collect it first"):
        bncli.fit(frame.lazy())


def test_what_a_frame_cannot_be() -> None:
    pd = pytest.importorskip("pandas")
    table = pa.table({"a": [1, 2], "class": ["u", "v"]})
    twice = pd.DataFrame([[1, 2, "u"]], columns=["a", "a", "class"])
    for data in (twice, table.append_column("a", table["a"])):
        with pytest.raises(UsageError, match="two columns are called 'a', the table; rename one of them"):
            bncli.fit(data)
    with pytest.raises(UsageError, match="column 'z' cannot be read: it contains a value of type complex"):
        bncli.fit(pd.DataFrame({"z": [1j, 2j], "class": ["u", "v"]}))
    with pytest.raises(UsageError, match=r"not a table.*; give a data frame"):
        bncli.fit(pytest.importorskip("polars").Series([1, 2]))
    lists = pd.DataFrame({"a": [1, 2] * 9, "l": [[1], [2]] * 9, "class": ["u", "v"] * 9})
    with pytest.raises(BncliError, match=r"'l' has values .* which cannot be read as text, the table; .* ignore='l'"):
        bncli.fit(lists, categorical="l")
    events: list[Event] = []
    assert bncli.fit(lists, progress=events.append, **NB).feature_names_in_.tolist() == ["a"]
    assert Note("column l was left out because of list values; flatten it, or add --ignore NAME") in events
    assert bncli.fit(lists, ignore="l", progress=lambda event: None, **NB).feature_names_in_.tolist() == ["a"]


def test_the_column_that_is_there_twice_is_named() -> None:
    with pytest.raises(UsageError, match="two columns are called 'b', the table"):
        table_of(pa.table([[1], [2], [3], ["u"]], names=["a", "b", "b", "class"]))


def test_numbers_that_no_integer_of_arrow_holds() -> None:
    large = [10**30 + i * 10**28 for i in range(40)]
    rows = {"a": large, "class": ["x"] * 20 + ["y"] * 20}
    plain = {"a": [float(value) for value in large], "class": rows["class"]}
    said: dict[str, Any] = {"structure": "nb", "param": "map"}
    assert np.array_equal(bncli.fit(rows, **said).predict_proba(rows), bncli.fit(plain, **said).predict_proba(plain))
    found = table_of({"a": [10**400, 1]})
    assert found["a"].to_pylist() == [str(10**400), "1"]


def test_a_column_that_can_be_read_but_once() -> None:
    """Arrow reads up to what it does not know, and the rest would be all."""
    values = [1, 2.5, "x", None]
    assert table_of({"a": (value for value in values)}).equals(table_of({"a": values}))
    assert len(table_of({"a": iter(values), "b": values})) == 4
