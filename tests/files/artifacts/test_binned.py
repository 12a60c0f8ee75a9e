"""The binned table, read back by Python's own reader: every value in the interval that is written for it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.files.artifacts.binned_tables import value_texts, write_binned

AGE = NumericAttribute("age, in years", True, (1.0, 1.0, 1.0), (2.5,))
NAMES = CategoricalAttribute("who", False, (1.0, 1.0, 1.0), ('o"n, e', "two\nlines", "three"))
SCHEMA = Schema("class", ("no", "yes, sir"), (AGE, NAMES))


def test_texts_of_values() -> None:
    assert value_texts(AGE) == ["(-inf,2.5]", "(2.5,inf)", ""]
    assert value_texts(NumericAttribute("x", False, (), (1.0, 0.1 + 0.2))) == [
        "(-inf,1]",
        "(1,0.30000000000000004]",
        "(0.30000000000000004,inf)",
    ]
    assert value_texts(NumericAttribute("x", False, (), ())) == ["(-inf,inf)"]
    assert value_texts(NAMES) == list(NAMES.levels)


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), max_size=20),
    weighted=st.booleans(),
)
def test_the_table_reads_back(tmp_path_factory: object, rows: list[tuple[int, int, int]], weighted: bool) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "binned.csv"  # type: ignore[attr-defined]
    columns = np.array(rows, np.uint8).reshape(-1, 3).T
    weights = np.arange(1, len(rows) + 1) / 4 if weighted else None
    write_binned(str(path), Dataset(SCHEMA, (columns[0], columns[1]), columns[2], weights), "w")
    with path.open(newline="") as file:
        header, *read = csv.reader(file)
    assert header == ["age, in years", "who", "class"] + ["w"] * weighted
    expected = [[value_texts(AGE)[a], NAMES.levels[b], SCHEMA.labels[c]] for a, b, c in rows]
    assert [row[:3] for row in read] == expected
    if weights is not None:
        assert [float(row[3]) for row in read] == weights.tolist()
        assert [row[3] for row in read] == [f"{weight:g}" for weight in weights]
