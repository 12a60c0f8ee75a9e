"""Predictions in every format, read back; the laws of printed probabilities; hostile places."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from bncli.errors import UsageError
from bncli.files import atomic as output_streams
from bncli.files.exports import SCORES
from bncli.files.exports.prediction_files import open_scores, write_predictions
from bncli.files.exports.score_layout import LARGEST, SMALLEST, Predictions, ScoreLayout

LOG_P = np.log(np.array([[0.25, 0.5, 1e-320], [0.75, 0.5, 1.0]]))
KEPT = (pa.array(["r1", "a,b", ""]),)


def read(path: Path, output_format: str) -> tuple[list[str], list[list[Any]]]:
    """Names and rows of a file that was written; the text formats give text."""
    if output_format == "csv":
        names, *rows = list(csv.reader(io.StringIO(path.read_text(), newline=""), strict=True))
        return names, rows
    if output_format == "jsonl":
        objects = [json.loads(line) for line in path.read_text().splitlines()]
        return (list(objects[0]) if objects else []), [list(o.values()) for o in objects]
    table = pq.read_table(path) if output_format == "parquet" else pa.ipc.open_file(path).read_all()
    return table.column_names, [list(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("output_format", SCORES)
def test_every_format(tmp_path: Path, output_format: str) -> None:
    path = tmp_path / "out"
    with open_scores(str(path), output_format, ScoreLayout(("no", "yes"), keep=("id",))) as out:
        out.write(tuple(k.slice(0, 1) for k in KEPT), LOG_P[:, :1])
        out.write(tuple(k.slice(1) for k in KEPT), LOG_P[:, 1:])
    names, rows = read(path, output_format)
    assert names == ["id", "prediction", "p_no", "p_yes"]
    assert [row[:2] for row in rows] == [["r1", "yes"], ["a,b", "no"], ["", "yes"]]
    numbers = [[float(number) for number in row[2:]] for row in rows]
    np.testing.assert_allclose(numbers, [[0.25, 0.75], [0.5, 0.5], [SMALLEST, LARGEST]], rtol=1e-15)


def test_a_whole_table_at_once(tmp_path: Path) -> None:
    write_predictions(str(tmp_path / "out.csv"), ("no", "yes"), LOG_P, np.array([1, 1, 0]))
    names, rows = read(tmp_path / "out.csv", "csv")
    assert names == ["prediction", "p_no", "p_yes", "true_label"]
    assert [(row[0], row[3]) for row in rows] == [("yes", "yes"), ("no", "yes"), ("yes", "no")]


@pytest.mark.parametrize("output_format", ["csv", "parquet", "arrow"])
def test_no_rows_leave_the_header(tmp_path: Path, output_format: str) -> None:
    path = tmp_path / "out"
    with open_scores(str(path), output_format, ScoreLayout(("no", "yes"))):
        pass
    assert read(path, output_format) == (["prediction", "p_no", "p_yes"], [])


def test_plain_csv(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with open_scores(str(path), None, ScoreLayout(("no", "say, yes"), digits=3)) as out:
        out.write((), LOG_P)
    assert path.read_text() == (
        'prediction,p_no,"p_say, yes"\n"say, yes",0.250,0.750\nno,0.500,0.500\n"say, yes",0.000,1.000\n'
    )


@pytest.mark.parametrize("output_format", SCORES)
def test_labels_only(tmp_path: Path, output_format: str) -> None:
    with open_scores(str(tmp_path / "out"), output_format, ScoreLayout(("no", "yes"), labels_only=True)) as out:
        out.write((), LOG_P)
    assert read(tmp_path / "out", output_format) == (["prediction"], [["yes"], ["no"], ["yes"]])


@pytest.mark.parametrize("output_format", SCORES)
@pytest.mark.parametrize("digits", [None, 2])
def test_log_probabilities(tmp_path: Path, output_format: str, digits: int | None) -> None:
    layout = ScoreLayout(("no", "yes"), log_proba=True, digits=digits)
    with open_scores(str(tmp_path / "out"), output_format, layout) as out:
        out.write((), LOG_P)
    _, rows = read(tmp_path / "out", output_format)
    expected = LOG_P if digits is None else np.round(LOG_P, digits)
    assert [[float(number) for number in row[1:]] for row in rows] == expected.T.tolist()


@pytest.mark.parametrize(
    ("name", "output_format"),
    [("x.parquet", "parquet"), ("x.FEATHER", "arrow"), ("x.jsonl", "jsonl"), ("x.csv", "csv"), ("x", "csv")],
)
def test_the_extension_decides(tmp_path: Path, name: str, output_format: str) -> None:
    with open_scores(str(tmp_path / name), None, ScoreLayout(("no", "yes"))) as out:
        out.write((), LOG_P)
    assert read(tmp_path / name, output_format)[0] == ["prediction", "p_no", "p_yes"]


log_odds = arrays(np.float64, st.tuples(st.integers(2, 5), st.integers(1, 4)), elements=st.floats(-900, 900))


@given(log_odds)
def test_printed_probabilities(raw: NDArray[np.float64]) -> None:
    shifted = raw - raw.max(axis=0)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=0))
    layout = ScoreLayout(tuple("abcde"[: len(log_p)]))
    predictions = Predictions.of(layout, (), log_p)
    numbers = np.array(predictions.probabilities)
    assert ((numbers >= 1e-300) & (numbers <= 1 - 2.0**-53)).all()
    np.testing.assert_allclose(numbers.sum(axis=0), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(predictions.codes, log_p.argmax(axis=0))


def test_a_tie_goes_to_the_first_label() -> None:
    for n_labels in (2, 3):
        log_p = np.log(np.full((n_labels, 1), 1 / n_labels))
        assert Predictions.of(ScoreLayout(("a", "b", "c")[:n_labels]), (), log_p).codes.tolist() == [0]


@pytest.mark.parametrize("kept", [("prediction",), ("p_no",), ("a", "p_yes"), ("a", "a")])
def test_names_that_collide(kept: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=f"'{kept[-1]}'"):
        ScoreLayout(("no", "yes"), keep=kept)


def test_without_probabilities_their_names_are_free() -> None:
    assert ScoreLayout(("no", "yes"), keep=("p_no",), labels_only=True).names == ("p_no", "prediction")


@pytest.mark.parametrize("digits", [15, -1])
def test_digits_out_of_range(digits: int) -> None:
    with pytest.raises(UsageError, match="--digits"):
        ScoreLayout(("no", "yes"), digits=digits)


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'xls'"), open_scores(None, "xls", ScoreLayout(("a", "b"))):
        pass


class Pipe(io.BytesIO):
    """Standard output; fails as told."""

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        if self.fault is not None:
            raise self.fault
        return super().write(data)


@pytest.fixture
def stdout(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    pipe = Pipe()
    monkeypatch.setattr(output_streams, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=pipe)))
    return pipe


@pytest.mark.parametrize("output", [None, "-"])
def test_standard_output_as_it_comes(stdout: Pipe, output: str | None) -> None:
    with open_scores(output, None, ScoreLayout(("no", "yes"), labels_only=True)) as out:
        out.write((), LOG_P[:, :2])
        assert stdout.getvalue() == b"prediction\nyes\nno\n"


def test_arrow_into_a_pipe_is_a_stream(stdout: Pipe) -> None:
    with open_scores(None, "arrow", ScoreLayout(("no", "yes"))) as out:
        out.write((), LOG_P)
    assert pa.ipc.open_stream(stdout.getvalue()).read_all().num_rows == 3


@pytest.mark.parametrize("output_format", SCORES)
def test_a_closed_pipe_stays_one(stdout: Pipe, output_format: str) -> None:
    stdout.fault = BrokenPipeError(32, "Broken pipe")
    with pytest.raises(BrokenPipeError), open_scores(None, output_format, ScoreLayout(("no", "yes"))) as out:
        out.write((), LOG_P)


@pytest.mark.parametrize("output_format", SCORES)
def test_a_failure_leaves_no_file(tmp_path: Path, output_format: str) -> None:
    with pytest.raises(ZeroDivisionError):
        _write_and_fail(str(tmp_path / "out"), output_format)
    assert list(tmp_path.iterdir()) == []


def _write_and_fail(path: str, output_format: str) -> None:
    with open_scores(path, output_format, ScoreLayout(("no", "yes"))) as out:
        out.write((), LOG_P)
        raise ZeroDivisionError
