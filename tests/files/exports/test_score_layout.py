"""Columns of predictions: numbers as text against Python's own formatting, and explanations in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bncli.engine.prediction.contributions import Explanation, TermText
from bncli.errors import UsageError
from bncli.files.exports.prediction_files import open_scores
from bncli.files.exports.score_layout import (
    MOST_DIGITS,
    FixedDecimals,
    ScoreLayout,
    contribution_objects,
    contribution_texts,
    round_explanation,
    shortest,
)

EDGES = [0.0, 1e-300, 5e-7, 0.5, 0.25, 0.125, 1 / 3, 0.999999, 0.9999995, 1 - 2.0**-53, 1.0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_shortest_reads_back(values: list[float]) -> None:
    assert [float(text) for text in shortest(np.array(values, dtype=float)).to_pylist()] == values


def test_shortest_has_no_negative_zero() -> None:
    assert shortest(np.array([-0.0, 0.5])).to_pylist() == ["0", "0.5"]


@pytest.mark.parametrize("digits", range(MOST_DIGITS + 1))
def test_fixed_decimals(digits: int) -> None:
    values = np.array([*EDGES, *np.random.default_rng(0).random(1000)])
    texts = FixedDecimals(digits).text(values).to_pylist()
    assert {len(text) for text in texts} == {digits + 2 if digits else 1}
    for value, text in zip(values, texts, strict=True):
        assert abs(float(text) - value) <= 0.5 * 10.0**-digits + 1e-15


@given(st.floats(0, 1), st.integers(0, 6))
def test_fixed_decimals_are_python_s_own(value: float, digits: int) -> None:
    """But for what lies within rounding of a half."""
    if abs((value * 10**digits) % 1 - 0.5) > 1e-6:
        assert FixedDecimals(digits).text(np.array([value])).to_pylist() == [f"{value:.{digits}f}"]


def test_no_rows() -> None:
    assert FixedDecimals(3).text(np.empty(0)).to_pylist() == []
    assert FixedDecimals(9).text(np.empty(0)).to_pylist() == []
    assert shortest(np.empty(0)).to_pylist() == []


WORDINGS = (TermText(("size",), ("large",)), TermText(("age", 'say, "x"'), ("<=27.5", "é")))
WHY = Explanation(
    log_odds=np.array([1.5, 0.25]),
    base=np.array([0.25, 0.25]),
    rest=np.array([0.5, 0.0]),
    contributions=np.array([[1.0, 0.0], [-0.25, 0.0]]),
    term_of=np.array([[1, 0], [0, -1]]),
    terms=WORDINGS,
)
LOG_P = np.log(np.array([[0.25, 0.4], [0.75, 0.6]]))
NAMES = ["prediction", "p_no", "p_yes", "log_odds", "base", "explain_1", "explain_2", "rest", "towards"]
TEXTS = [['age<=27.5&say, "x"=é:+1', "size=large:-0.25"], ["size=large:+0", None]]


def written(path: Path, output_format: str, **options: Any) -> None:
    with open_scores(str(path), output_format, ScoreLayout(("no", "yes"), explain=2, **options)) as out:
        out.write((), LOG_P, WHY)


def test_as_csv(tmp_path: Path) -> None:
    written(tmp_path / "out", "csv", digits=3)
    names, *rows = list(csv.reader(io.StringIO((tmp_path / "out").read_text(), newline=""), strict=True))
    assert names == NAMES
    assert [row[5:7] for row in rows] == [[text or "" for text in row] for row in TEXTS]
    assert [[float(row[i]) for i in (3, 4, 7)] for row in rows] == [[1.5, 0.25, 0.5], [0.25, 0.25, 0.0]]
    assert [row[8] for row in rows] == ["yes", "yes"]


def test_as_json_lines(tmp_path: Path) -> None:
    written(tmp_path / "out", "jsonl", labels_only=True)
    first, second = (json.loads(line) for line in (tmp_path / "out").read_text().splitlines())
    assert list(first) == [NAMES[0], *NAMES[3:]]
    assert first["explain_1"] == {"attributes": ["age", 'say, "x"'], "values": ["<=27.5", "é"], "contribution": 1.0}
    assert first["explain_2"] == {"attributes": ["size"], "values": ["large"], "contribution": -0.25}
    assert (second["explain_2"], second["rest"], second["log_odds"]) == (None, 0.0, 0.25)


@pytest.mark.parametrize("output_format", ["parquet", "arrow"])
def test_as_arrow(tmp_path: Path, output_format: str) -> None:
    written(tmp_path / "out", output_format)
    path = tmp_path / "out"
    table = pq.read_table(path) if output_format == "parquet" else pa.ipc.open_file(path).read_all()
    assert table.column_names == NAMES
    assert [[table[f"explain_{k}"][t].as_py() for k in (1, 2)] for t in (0, 1)] == TEXTS
    assert table["log_odds"].to_pylist() == [1.5, 0.25]


def test_without_explanations_there_are_no_columns() -> None:
    assert ScoreLayout(("no", "yes")).names == ("prediction", "p_no", "p_yes")
    assert ScoreLayout(("no", "yes"), keep=("base", "explain_1")).names[:2] == ("base", "explain_1")


@pytest.mark.parametrize("name", ["log_odds", "base", "explain_2", "rest"])
def test_names_that_collide(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}'"):
        ScoreLayout(("no", "yes"), keep=(name,), explain=2)


numbers = st.floats(-1e3, 1e3)


@given(arrays(np.float64, (3, 4), elements=numbers), arrays(np.float64, 4, elements=numbers), st.integers(0, 14))
def test_rounded_numbers_add_up(parts: Any, base: Any, digits: int) -> None:
    rest = parts[2]
    log_odds = base + parts.sum(axis=0)
    why = Explanation(log_odds, base, rest, parts[:2], np.zeros((2, 4), np.intp), WORDINGS)
    shown = round_explanation(why, digits)
    total = shown.base + shown.contributions.sum(axis=0) + shown.rest
    np.testing.assert_allclose(total, shown.log_odds, rtol=0, atol=1e-9)
    np.testing.assert_allclose(shown.rest, why.rest, rtol=0, atol=2.5 * 10.0**-digits + 1e-9)
    np.testing.assert_array_equal(shown.base, np.round(base, digits))
    assert round_explanation(why, None) is why


def test_explanations_of_no_rows() -> None:
    nothing = Explanation(np.empty(0), np.empty(0), np.empty(0), np.empty((2, 0)), np.empty((2, 0), np.intp), ())
    assert [len(column) for column in (*contribution_texts(nothing), *contribution_objects(nothing))] == [0] * 4
