"""`model.scorer()`: the probabilities of one row in Python are those of the table, to the bit."""

from __future__ import annotations

import csv
import datetime
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bncli
from bncli.cli.main import run
from bncli.engine.prediction.factors import Factor, WideFactor
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import BncliError, ModelError, UsageError
from bncli.watch import Event
from tests.transcripts import ROOT

SAMPLES = ROOT / "sample_data"


def ignore_notes(event: Event) -> None:
    """Ignore notes."""


def random_table(seed: int = 0, n_columns: int = 8, n_labels: int = 2, n_rows: int = 400) -> dict[str, Any]:
    """Numbers and names that depend on the class, a tenth of them missing in every other column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n_rows)
    table: dict[str, Any] = {}
    for i in range(n_columns):
        x = rng.normal(size=n_rows) + y * rng.uniform(-2, 2)
        missing = rng.random(n_rows) < 0.1 * (i % 2)
        if i % 4 < 2:
            table[f"x{i}"] = [None if lost else float(v) for v, lost in zip(x, missing, strict=True)]
        else:
            table[f"x{i}"] = [None if lost else f"level {int(v) % 5}" for v, lost in zip(x, missing, strict=True)]
    table["class"] = [f"label {k}" for k in y]
    return table


def rows_of(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = list(table)
    return (dict(zip(names, values, strict=True)) for values in zip(*table.values(), strict=True))


def with_strangers(table: dict[str, Any]) -> dict[str, Any]:
    """Return the table with values that training never saw, and missing ones where it had none."""
    changed = {name: list(values) for name, values in table.items()}
    for i, name in enumerate(list(changed)[:-1]):
        changed[name][i::7] = [None] * len(changed[name][i::7])
        if isinstance(changed[name][-1], str):
            changed[name][i::5] = ["never seen"] * len(changed[name][i::5])
    return changed


@pytest.mark.parametrize(
    ("options", "n_labels", "n_columns"),
    [
        ({"structure": "nb", "param": "map"}, 2, 8),
        ({"structure": "nb", "param": "map"}, 19, 8),
        ({"structure": "tan", "penalty": 1}, 2, 8),
        ({"structure": "kdb", "k": 2, "param": "map"}, 3, 8),
        ({"structure": "interactions", "penalty": 1}, 2, 8),
        pytest.param({"structure": "interactions", "penalty": 1}, 3, 6, marks=pytest.mark.slow),
        ({"structure": "kikuchi"}, 2, 4),
        pytest.param({"structure": "auto", "effort": 2}, 2, 4, marks=pytest.mark.slow),
        ({"structure": "auto", "effort": 1}, 3, 4),
    ],
)
def test_the_bits_of_the_table(options: dict[str, Any], n_labels: int, n_columns: int) -> None:
    table = random_table(1, n_columns, n_labels)
    model = bncli.fit(table, progress=ignore_notes, **options)
    scorer = model.scorer()
    for rows in (table, with_strangers(table)):
        found = np.array([scorer(row) for row in rows_of(rows)])
        assert np.array_equal(found, model.predict_proba(rows))
    row = next(rows_of(table))
    assert scorer([row[name] for name in scorer.columns]) == scorer(row)
    assert scorer(tuple(row[name] for name in scorer.all_columns)) == scorer(row)


def test_a_table_of_one_row() -> None:
    """It is scored as a single row, and with the same bits and errors as among others."""
    table = random_table(7, n_labels=3)
    model = bncli.fit(table, structure="tan")
    expected = model.predict_proba(table)
    frame = pa.table(table)
    for t in range(0, 60, 7):
        row = {name: [values[t]] for name, values in table.items()}
        for one in (row, frame.slice(t, 1), {name: np.array(values) for name, values in row.items()}):
            assert np.array_equal(model.predict_proba(one), expected[t : t + 1])
    pandas = pytest.importorskip("pandas")
    assert np.array_equal(model.predict_proba(pandas.DataFrame(table).iloc[3:4]), expected[3:4])
    row = {name: [values[0]] for name, values in table.items()}
    with pytest.raises(BncliError, match=r"'x0' contains 'wide'.*, the table row 1"):
        model.predict_proba({**row, "x0": ["wide"]})
    del row["x1"]
    with pytest.raises(ModelError, match="no column 'x1'"):
        model.predict_proba(row)
    assert np.array_equal(
        model.predict_proba(row, allow_missing_columns=True),
        model.predict_proba({name: values * 2 for name, values in row.items()}, allow_missing_columns=True)[:1],
    )


def test_tables_without_entries_for_unknown_values() -> None:
    """Rows that lack parents in large tables are averaged over all values, with the same bits in any company."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (800, 17))
    table: dict[str, Any] = {f"b{i}": [f"v{x}" for x in column] for i, column in enumerate(bits.T)}
    table["class"] = [f"label {(a ^ b) + c}" for a, b, c in bits[:, :3].tolist()]
    model = bncli.fit(table, structure="kdb", k=14, param="map", progress=ignore_notes)
    kinds = {type(factor) for factor in compile_scorer(model._model).stages[0].factors}
    assert kinds == {Factor, WideFactor}
    scorer, rows = model.scorer(), with_strangers({name: values[:200] for name, values in table.items()})
    assert np.array_equal([scorer(row) for row in rows_of(rows)], model.predict_proba(rows))


def test_marginalized_values() -> None:
    """Inference adds up the rows of a block together, so the last bits depend on the others."""
    table = random_table(1, 6, 3)
    model = bncli.fit(table, structure="tan", param="map", missing_policy="marginalize")
    scorer, rows = model.scorer(), with_strangers(table)
    assert np.allclose([scorer(row) for row in rows_of(rows)], model.predict_proba(rows), rtol=1e-12, atol=0)


def test_packed_tables() -> None:
    """Many small tables share words of eight or four lanes, other ones for rows with unknown values."""
    table = random_table(2, n_columns=40)
    for labels in (table["class"], [f"label {k % 3}" for k in range(len(table["class"]))]):
        table = {**table, "class": labels}
        model = bncli.fit(table, structure="nb", param="map", discretize="equal-frequency", bins=6)
        scorer = model.scorer()
        for rows in (table, with_strangers(table)):
            assert np.array_equal([scorer(row) for row in rows_of(rows)], model.predict_proba(rows))


@pytest.mark.filterwarnings("ignore:the rows look like the training rows")
@pytest.mark.parametrize("method", ["temperature", "isotonic", "per-class"])
@pytest.mark.parametrize("n_labels", [2, 9])
def test_calibrated(method: str, n_labels: int) -> None:
    table = random_table(3, n_labels=n_labels, n_rows=900)
    model = bncli.fit(table, structure="nb", param="map").calibrate(table, method)
    scorer = model.scorer()
    assert np.array_equal([scorer(row) for row in rows_of(table)], model.predict_proba(table))


def test_the_numbers_that_score_writes(tmp_path: Path) -> None:
    data = str(SAMPLES / "wine_holes.csv")
    model = bncli.fit(data, structure="tan", param="map")
    model.save(tmp_path / "m.bnc")
    assert run(["score", str(tmp_path / "m.bnc"), data, "-o", str(tmp_path / "s.csv"), "-q"]) == 0
    scorer = model.scorer()
    with open(data, newline="") as rows, open(tmp_path / "s.csv", newline="") as scores:
        for row, score in zip(csv.DictReader(rows), csv.DictReader(scores), strict=True):
            assert scorer(row) == [float(score[f"p_{label}"]) for label in model.classes_]


def test_dates_and_numbers_in_a_national_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(900, size=300)]
    prices = rng.integers(100, 10**6, size=300)
    label = [f"{(d.month > 6) + (p > 400_000)} of 2" for d, p in zip(days, prices, strict=True)]
    written = [f"{p // 100:,}".replace(",", ".") + f",{p % 100:02d} €" for p in prices]
    path = tmp_path / "t.csv"
    with open(path, "w") as file:
        file.write("when;price;class\n")
        for d, p, y in zip(days, written, label, strict=True):
            file.write(f"{d.day}.{d.month}.{d.year};{p};{y}\n")
    model = bncli.fit(path, structure="nb", param="map", progress=ignore_notes)
    assert model.feature_names_in_.tolist() == ["when", "price"]
    scorer = model.scorer()
    expected = model.predict_proba(path).tolist()
    for d, p, text, probabilities in zip(days, prices, written, expected, strict=True):
        assert scorer({"when": d, "price": int(p) / 100}) == probabilities
        assert scorer([f"{d.day:02d}.{d.month:02d}.{d.year}", text]) == probabilities
    parts = {"price": "1", "when.month": 3, "when.day": 1, "when.weekday": 2, "when.year": 2020, "when.days": 60}
    table = {name: [value] for name, value in parts.items()}
    assert scorer(parts) == model.predict_proba(table)[0].tolist()


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"size": 1.0, "colour": "red"}, None, ""),
        ({"size": 1.0, "color": "red"}, ModelError, "no column 'colour'.*did you mean 'color'"),
        ({}, ModelError, "no columns 'size', 'colour', which"),
        ({"size": "wide", "colour": "red"}, BncliError, "column 'size' contains 'wide', which is not a finite number"),
        ({"size": float("inf"), "colour": "red"}, BncliError, "column 'size' contains 'inf'"),
        ({"size": True, "colour": "red"}, BncliError, "column 'size' contains 'true'"),
        ({"size": [1.0], "colour": "red"}, BncliError, "column 'size' contains a value of type list"),
        ({"size": 1.0, "colour": {"a": 1}}, BncliError, "column 'colour' contains a value of type dict"),
        ({"size": 10**400, "colour": "red"}, BncliError, "which is not a finite number"),
        ([1.0], ModelError, "1 values instead of 2"),
        ("red", UsageError, "the row is of type str"),
        (3, UsageError, "the row is of type int"),
        ({1.0, 2.0}, UsageError, "the row is of type set"),
        (np.ones((1, 2)), UsageError, "the row is of type ndarray"),
    ],
)
def test_rows_that_are_none(row: Any, error: type[Exception] | None, message: str) -> None:
    table = {"size": [1.0, 2.0, 3.0, 4.0] * 9, "colour": ["red", "red", "blue", "blue"] * 9, "class": [*"aabb"] * 9}
    scorer = bncli.fit(table, structure="nb", param="map", progress=ignore_notes).scorer()
    if error is None:
        assert scorer(row) == scorer({**row, "another": object()})  # what the model does not use is ignored
        return
    with pytest.raises(error, match=message) as caught:
        scorer(row)
    assert "\n" not in str(caught.value)


def test_a_number_in_a_column_of_texts_is_read_as_in_a_table() -> None:
    table = {"c": ["1.5", "2.5", "1.5", "2.5"] * 9, "class": [*"abaa"] * 9}
    model = bncli.fit(table, structure="nb", param="map", categorical=["c"], progress=ignore_notes)
    scorer = model.scorer()
    assert scorer({"c": 1.5}) == scorer({"c": "1.5"}) == model.predict_proba({"c": [1.5]})[0].tolist()
    assert scorer({"c": 2.5}) == scorer({"c": "2.5"}) != scorer({"c": 1.5})
    assert scorer({"c": float("nan")}) == scorer({"c": None})


def test_a_scorer_describes_itself_and_names_three_missing_columns() -> None:
    table = {name: [1.0, 2.0, 3.0, 4.0] * 9 for name in "uvwz"} | {"class": [*"aabb"] * 9}
    scorer = bncli.fit(table, structure="nb", param="map", progress=ignore_notes).scorer()
    assert repr(scorer) == "<bncli.Scorer class: 4 columns, 2 labels>"
    with pytest.raises(ModelError, match="no columns 'u', 'v', 'w' and 1 more, which"):
        scorer({})


def test_values_that_training_never_saw() -> None:
    table = {"size": [1.0, 2.0, 3.0, 4.0] * 9, "colour": ["red", "red", "blue", "blue"] * 9, "class": [*"aabb"] * 9}
    model = bncli.fit(table, structure="nb", param="map", progress=ignore_notes)
    scorer = model.scorer()
    assert scorer([1, "green"]) == scorer([1, None]) == scorer([1.0, " ? "]) == scorer([np.float32(1), np.str_("")])
    assert scorer([None, "red"]) == scorer([float("nan"), "red"]) == scorer(["NA", "red"]) == scorer(["", " red "])
    strict = bncli.fit(table, structure="nb", param="map", unseen="error", progress=ignore_notes).scorer()
    with pytest.raises(ModelError, match="'colour' has the value 'green', which was not seen in training"):
        strict([1, "green"])


def test_a_scorer_is_safe_in_threads_and_can_be_pickled() -> None:
    table = random_table(5, n_columns=40)
    model = bncli.fit(table, structure="nb", param="map")
    rows = [*rows_of(table), *rows_of(with_strangers(table))]
    copy = pickle.loads(pickle.dumps(model.scorer()))
    expected = [copy(row) for row in rows]
    scorer = model.scorer()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(scorer, rows)) == expected


def test_neither_pandas_nor_pyarrow_is_needed(tmp_path: Path) -> None:
    table = random_table(6)
    bncli.fit(table, param="map").save(tmp_path / "m.bnc")
    code = f"""
import sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None  # importing them fails
import bncli
scorer = bncli.load({str(tmp_path / "m.bnc")!r}).scorer()
print(scorer({next(rows_of(table))!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.split(",")) == 2


def test_values_of_other_types_are_read_as_in_a_table(tmp_path: Path) -> None:
    """A number in a column of names counts as the text that a table has for it."""
    columns = {
        "float": [0.5, 1e10, 1e-7, 1e-5, 1.0, 2.5e17] * 20,
        "int": [1, 2, 3, 4, 5, 10**12] * 20,
        "bool": [True, False, True, True, False, False] * 20,
        "time": [datetime.time(1, 2, 3), datetime.time(4), datetime.time(5), datetime.time(6)] * 30,
        "day": [datetime.date(2020, 1, 1), datetime.date(1999, 12, 31)] * 60,
        "stamp": [datetime.datetime(2020, 1, 1, 5), datetime.datetime(2021, 3, 1, 6, 7, 8, 9)] * 60,
        "class": ["a", "b", "a", "a", "b", "b"] * 20,
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    model = bncli.fit(
        path, structure="nb", param="map", categorical=[*columns][:-1], dates="off", progress=ignore_notes
    )
    scorer = model.scorer()
    assert len(scorer.columns) >= 4
    assert [scorer(row) for row in rows_of(columns)] == model.predict_proba(path).tolist()


@pytest.mark.parametrize(
    ("row", "is_plain"),
    [
        ({"x": 1.5, "c": "u"}, True),
        ({"x": np.float64(1.5), "c": None}, True),
        ({"x": "1.5", "c": np.str_("u")}, True),
        ({"x": 2, "c": True}, True),
        ({"x": float("nan"), "c": float("nan")}, True),
        ({"x": 1.5, "c": 1.0}, False),  # a table decides whether its texts are 1 or 1.0
        ({"x": 1.5, "c": np.float64(1)}, False),
        ({"x": np.float32(1.5), "c": "u"}, False),
        ({"x": Decimal("1.5"), "c": "u"}, False),
        ({"x": 1.5}, False),
    ],
)
def test_a_row_whose_values_mean_the_same_in_every_table_is_scored_without_reading_it(
    row: dict[str, Any], is_plain: bool
) -> None:
    table = {"x": [1.0, 2.5, 3.0, 4.0] * 9, "c": [*"uvvu"] * 9, "class": [*"abba"] * 9}
    scorer = bncli.fit(table, structure="nb", param="map", progress=ignore_notes).scorer()
    assert (scorer.plain_row({name: [value] for name, value in row.items()}) is not None) == is_plain
