"""Scoring files: predictions, explanations, counts, the order of the rows, errors, and input that pauses."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import select
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files import atomic as output_streams
from bncli.files.artifacts.model import write_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps import row_scoring
from bncli.steps.fit import fit
from bncli.steps.score import ScoreOutput, ScoreReport, score
from bncli.watch import Run
from tests.missing_values import slow_posterior
from tests.scoring_oracle import slow_log_probabilities
from tests.strategies import models
from tests.sweeps import every_pair, examples


def small_model() -> Model:
    """Naive Bayes on a colour (never missing in training) and a size (missing in training)."""
    schema = Schema(
        "class",
        ("no", "yes"),
        (
            CategoricalAttribute("colour", False, (3.0, 1.0), ("blue", "red")),
            NumericAttribute("size", True, (2.0, 1.0, 1.0), (1.5,)),
        ),
    )
    dag = Dag(((), ()), (0, 1))
    weights = (np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([[0.0, 0.5], [0.0, -0.5], [0.0, 2.0]]))
    return Model(schema, dag, Tables(np.zeros(2), dag.families(schema.cardinalities), weights), Recipe(), 4, "1")


DATA = "id,size,colour\n1,1,blue\n2,2,red\n3,,green\n4,9,?\n5,1.5,green\n"
LOG_ODDS = [1.5, -1.5, 2.0, -0.5, 0.5]


class Place:
    """A folder with a model and data; `score` runs on them and `rows` are what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "out.csv"
        self.model = str(folder / "m.bnc")
        write_model(self.model, small_model())

    def score(self, data: str = DATA, *, parts: int = 1, on_bad_row: str = "fail", **options: Any) -> ScoreReport:
        """The data as so many files, which are so many batches at least."""
        header, *lines = data.splitlines(keepends=True)
        paths = [self.folder / ("data.csv" if parts == 1 else f"part{i}.csv") for i in range(parts)]
        for i, path in enumerate(paths):
            path.write_text(header + "".join(lines[len(lines) * i // parts : len(lines) * (i + 1) // parts]))
        said = {"missing_tokens": options.pop("missing", None)}
        said |= {"allow_missing_columns": options.pop("allow_missing_columns", False)}
        source = Source(tuple(map(str, paths)), on_bad_row=on_bad_row, **said)
        how = {name: options.pop(name) for name in ("unseen", "run") if name in options}
        return score(self.model, source, ScoreOutput(**{"path": str(self.output), **options}), **how)

    def rows(self) -> list[list[str]]:
        return list(csv.reader(io.StringIO(self.output.read_text(), newline=""), strict=True))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_predictions_and_counts(place: Place) -> None:
    report = place.score()
    header, *rows = place.rows()
    assert header == ["prediction", "p_no", "p_yes"]
    assert [row[0] for row in rows] == ["yes", "no", "yes", "no", "yes"]
    np.testing.assert_allclose([float(row[2]) for row in rows], 1 / (1 + np.exp(-np.array(LOG_ODDS))), rtol=1e-15)
    assert (report.rows, report.skipped_rows, report.output) == (5, 0, str(place.output))
    assert (report.unseen_values, report.unseen) == (2, {"colour": 2})
    assert (report.missing_values, report.missing) == (2, {"colour": 1, "size": 1})
    assert report.seconds["total"] > 0
    assert json.loads(json.dumps(report.as_json()))["unseen"] == {"colour": 2}


@pytest.mark.parametrize(("numbers_per_part", "parts", "threads"), every_pair([1, 6, 1 << 21], [1, 2, 30], [1, 3]))
def test_neither_blocks_nor_threads_show(
    place: Place, monkeypatch: pytest.MonkeyPatch, numbers_per_part: int, parts: int, threads: int
) -> None:
    data = "size,colour,id\n" + "".join(f"{i % 4},{('red', 'blue', 'x')[i % 3]},{i}\n" for i in range(100))
    place.score(data, keep=("id",))
    expected = place.output.read_bytes()
    monkeypatch.setattr(row_scoring, "NUMBERS_PER_BLOCK", numbers_per_part)
    assert place.score(data, parts=parts, keep=("id",), run=Run(threads)).rows == 100
    assert place.output.read_bytes() == expected


def test_kept_columns_come_first_as_they_were(place: Place) -> None:
    data = 'class,colour,size,note\nyes, red,1.0,"a, ""b"""\nno,blue,?,\n'
    place.score(data, keep=("note", "size"), labels_only=True)
    assert place.rows() == [["note", "size", "prediction"], ['a, "b"', "1.0", "no"], ["", "?", "yes"]]
    place.score(data, keep="all", labels_only=True)
    assert place.rows()[0] == ["class", "colour", "size", "note", "prediction"]
    assert place.rows()[1] == ["yes", " red", "1.0", 'a, "b"', "no"]


def test_kept_columns_that_collide(place: Place) -> None:
    with pytest.raises(UsageError, match="'p_no'"):
        place.score("size,colour,p_no\n1,red,x\n", keep="all")
    assert not place.output.exists()


def test_header_in_header_out(place: Place) -> None:
    assert place.score("size,colour\n").rows == 0
    assert place.rows() == [["prediction", "p_no", "p_yes"]]


def test_a_missing_column(place: Place) -> None:
    with pytest.raises(ModelError, match="'colour'"):
        place.score("size,color\n1,red\n")
    assert not place.output.exists()


@pytest.mark.parametrize("keep", [(), ("id",), ("colour",), "all"])
def test_a_value_never_seen_can_be_an_error(place: Place, keep: Any) -> None:
    with pytest.raises(ModelError, match=r"column 'colour' has the value 'green'.*data\.csv line 4"):
        place.score(unseen="error", keep=keep)
    assert not place.output.exists()


def test_missing_values_are_no_values(place: Place) -> None:
    place.score("id,size,colour\n1,,?\n", unseen="error", keep=("id",))
    assert place.rows()[0] == ["id", "prediction", "p_no", "p_yes"]


def test_the_model_may_refuse_unseen_values_itself(place: Place) -> None:
    model = small_model()
    schema = Schema("class", model.schema.labels, model.schema.attributes, unseen="error")
    write_model(place.model, Model(schema, model.structure, model.tables, model.recipe, 4, "1"))
    with pytest.raises(ModelError, match="green"):
        place.score()
    assert place.score(unseen="average").unseen_values == 2


def test_other_missing_tokens(place: Place) -> None:
    report = place.score(missing=("green",))
    assert report.unseen == {"colour": 1}
    assert report.missing == {"colour": 2, "size": 1}


def test_malformed_rows(place: Place) -> None:
    data = "size,colour\n1,red\nlarge,red\n2,blue,x\n2,blue\n"
    with pytest.raises(BncliError, match="line 3"):
        place.score(data)
    assert not place.output.exists()
    report = place.score(data, on_bad_row="skip")
    assert (report.rows, report.skipped_rows) == (2, 2)


@pytest.mark.parametrize("name", ["data.csv", "m.bnc"])
def test_inputs_are_not_written_over(place: Place, name: str) -> None:
    before = (place.folder / "m.bnc").read_bytes()
    with pytest.raises(UsageError, match="choose another name"):
        place.score(path=str(place.folder / name))
    assert (place.folder / "m.bnc").read_bytes() == before
    assert (place.folder / "data.csv").read_text() == DATA


def test_parquet_by_extension(place: Place) -> None:
    place.score(path=str(place.folder / "out.parquet"), digits=3)
    assert pq.read_table(place.folder / "out.parquet")["p_yes"].to_pylist()[:2] == [0.818, 0.182]


class Pipe(io.BytesIO):
    """Standard output that whoever reads it closes after so many writes."""

    def __init__(self, open_for: int) -> None:
        super().__init__()
        self.open_for = open_for

    def write(self, data: Any) -> int:
        self.open_for -= 1
        if self.open_for < 0:
            raise BrokenPipeError(32, "Broken pipe")
        return super().write(data)


@pytest.mark.parametrize("open_for", [0, 1, 3])
def test_a_closed_pipe_ends_the_run(place: Place, monkeypatch: pytest.MonkeyPatch, open_for: int) -> None:
    pipe = Pipe(open_for)
    monkeypatch.setattr(output_streams, "sys", SimpleNamespace(stdout=SimpleNamespace(buffer=pipe)))
    with pytest.raises(BrokenPipeError):
        place.score("size,colour\n" + "1,red\n" * 100, parts=50, path=None)
    assert pipe.getvalue().count(b"\n") < 100


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(13), deadline=None)
@given(models(), st.integers(0, 99))
def test_equals_the_definition(tmp_path: Path, model: Model, seed: int) -> None:
    generator = np.random.default_rng(seed)
    codes, texts = _random_rows(model.schema, 6, generator)
    write_model(str(tmp_path / "m.bnc"), model)
    names = [*(a.name for a in model.schema.attributes), "row"]
    lines = [",".join(names), *(",".join([*row, str(t)]) for t, row in enumerate(texts))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    output = str(tmp_path / "out.jsonl")
    source = Source((str(tmp_path / "data.csv"),))
    assert score(str(tmp_path / "m.bnc"), source, ScoreOutput(output, log_proba=True)).rows == 6
    written = [json.loads(line) for line in Path(output).read_text().splitlines()]
    actual = [[row[f"p_{label}"] for label in model.schema.labels] for row in written]
    expected = [slow_log_probabilities(model, dict(enumerate(row))) for row in codes]
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def _random_rows(
    schema: Schema, n_rows: int, generator: np.random.Generator
) -> tuple[list[list[int]], list[list[str]]]:
    """Codes and a text for each: levels, numbers inside the interval, missing ones, and values never seen."""
    codes = [[int(generator.integers(a.cardinality + 1)) for a in schema.attributes] for _ in range(n_rows)]
    texts = []
    for row in codes:
        texts.append([])
        for attribute, code in zip(schema.attributes, row, strict=True):
            if code == attribute.n_values and attribute.missing:
                texts[-1].append("?")
            elif isinstance(attribute, CategoricalAttribute):
                texts[-1].append(attribute.levels[code] if code < attribute.n_values else "never seen")
            elif code < attribute.n_values:
                texts[-1].append(str(code - 0.5))
            else:  # a number is always in some interval: only a missing value that training did not have is unknown
                texts[-1].append("?" if not attribute.missing else "0.5")
                row[schema.index(attribute.name)] = code if not attribute.missing else _interval(attribute, 0.5)
    return codes, texts


def _interval(attribute: NumericAttribute, value: float) -> int:
    return sum(value > cut for cut in attribute.cuts)


def sum_out(place: Place) -> Model:
    """Instead of the place's model, a chain colour -> size under the class, its missing values marginalized."""
    schema = Schema(
        "class",
        ("no", "yes"),
        (
            CategoricalAttribute("colour", False, (3.0, 1.0), ("blue", "red"), missing_weight=1.0),
            NumericAttribute("size", False, (3.0, 2.0), (1.5,)),
        ),
        missing_policy="marginalize",
    )
    dag = Dag(((), (0,)), (0, 1))
    families = dag.families(schema.cardinalities, all_factors=True)
    theta = (np.array([[0.7, 0.2], [0.3, 0.8]]), np.array([[0.9, 0.5], [0.4, 0.1], [0.1, 0.5], [0.6, 0.9]]))
    tables = Tables(np.log([0.5, 0.5]), families, tuple(map(np.log, theta)))
    model = Model(schema, dag, tables, Recipe.of(missing_policy="marginalize", param="map"), 5, "1")
    write_model(place.model, model)
    return model


def predicted(place: Place) -> list[float]:
    return [float(row[-1]) for row in place.rows()[1:]]


def test_unknown_values_are_summed_out(place: Place) -> None:
    """A missing value, a value never seen and a column that is not there all say nothing."""
    model = sum_out(place)
    shown = [(0, 0), (1, 1), (2, 1), (2, 0), (0, 2), (2, 2)]
    expected = [math.exp(slow_posterior(model, dict(enumerate(row)))[1]) for row in shown]
    report = place.score("size,colour\n1,blue\n2,red\n2,?\n1,green\n,blue\n,\n")
    assert predicted(place) == pytest.approx(expected, rel=1e-12)
    assert (report.unseen, report.missing, report.absent_columns) == ({"colour": 1}, {"colour": 2, "size": 2}, ())


@pytest.mark.parametrize("unseen", ["average", "error"])
@pytest.mark.parametrize("policy", ["level", "marginalize"])
def test_columns_that_are_not_there_can_be_unknown(place: Place, policy: str, unseen: Any) -> None:
    model = small_model() if policy == "level" else sum_out(place)
    slow = slow_log_probabilities if policy == "level" else slow_posterior
    cardinality = model.schema.cardinalities[1]
    report = place.score("colour\nblue\nred\n", allow_missing_columns=True, unseen=unseen, keep=("colour",))
    assert predicted(place) == pytest.approx([math.exp(slow(model, {0: c, 1: cardinality})[1]) for c in (0, 1)])
    assert report.as_json()["absent_columns"] == ["size"]
    assert (report.missing_values, report.unseen_values) == (0, 0)
    report = place.score("id\n1\n2\n", allow_missing_columns=True, unseen=unseen)
    assert predicted(place) == pytest.approx([0.5, 0.5])
    assert report.absent_columns == ("colour", "size")
    with pytest.raises(UsageError, match="no column 'size'"):
        place.score("colour\nblue\n", allow_missing_columns=True, keep=("size",))


def test_without_leave_a_missing_column_names_the_way_out(place: Place) -> None:
    with pytest.raises(ModelError, match=r"no column 'size', which the model uses, .*; add --allow-missing-columns"):
        place.score("colour\nblue\n")


def test_an_unseen_value_beside_a_column_that_is_not_there(place: Place) -> None:
    with pytest.raises(ModelError, match=r"the value 'green', which was not seen in training, .*line 3"):
        place.score("colour\nblue\ngreen\n", allow_missing_columns=True, unseen="error")


def test_the_reasons(place: Place) -> None:
    """Colour: -1 and +1 at 3 to 1, so that the mean of yes is .5; size: .5, -.5 and 2 at 2 to 1 to 1."""
    place.score(explain=1, digits=2)
    header, *rows = place.rows()
    assert header == ["prediction", "p_no", "p_yes", "log_odds", "base", "explain_1", "rest", "towards"]
    assert rows[0] == ["yes", "0.18", "0.82", "1.5", "1.12", "colour=blue:+0.5", "-0.12", "yes"]
    assert rows[1][3:] == ["1.5", "-1.12", "colour=red:+1.5", "1.12", "no"]
    assert rows[2][5] == "size=missing:+1.38"
    assert rows[4][5].startswith("colour=unknown:-0.5")


def test_without_attributes_known(place: Place) -> None:
    place.score("id\n1\n", explain=3, allow_missing_columns=True)
    _, row = place.rows()
    assert [text.split(":")[0] for text in row[5:8]] == ["size=unknown", "colour=unknown", ""]


def test_header_in_header_out_with_explanations(place: Place) -> None:
    place.score("size,colour\n", explain=2, labels_only=True)
    assert place.rows() == [["prediction", "log_odds", "base", "explain_1", "explain_2", "rest", "towards"]]


def test_kept_columns_that_collide_with_explanations(place: Place) -> None:
    with pytest.raises(UsageError, match="'rest'"):
        place.score("size,colour,rest\n1,red,x\n", keep="all", explain=1)


@pytest.mark.parametrize("parts", [1, 7])
def test_blocks_do_not_show(place: Place, monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    data = "size,colour\n" + "".join(f"{i % 4},{('red', 'blue', 'x')[i % 3]}\n" for i in range(100))
    place.score(data, explain=2)
    expected = place.output.read_bytes()
    monkeypatch.setattr(row_scoring, "NUMBERS_PER_BLOCK", 100)
    place.score(data, parts=parts, explain=2)
    assert place.output.read_bytes() == expected


def test_predictions_stay_as_they_are(place: Place) -> None:
    place.score(DATA)
    plain = place.rows()
    place.score(DATA, explain=2)
    assert [row[:3] for row in place.rows()] == plain


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(10), deadline=None)
@given(models(), st.integers(0, 99), st.integers(1, 4), st.sampled_from([None, 0, 3, 14]))
def test_what_is_written_adds_up(tmp_path: Path, model: Model, seed: int, most: int, digits: int | None) -> None:
    _, texts = _random_rows(model.schema, 6, np.random.default_rng(seed))
    write_model(str(tmp_path / "m.bnc"), model)
    names = [*(a.name for a in model.schema.attributes), "row"]
    lines = [",".join(names), *(",".join([*row, str(t)]) for t, row in enumerate(texts))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    output = tmp_path / "out.jsonl"
    source = Source((str(tmp_path / "data.csv"),))
    score(
        str(tmp_path / "m.bnc"),
        source,
        output=ScoreOutput(path=str(output), explain=most, digits=digits, log_proba=True),
    )
    for line in output.read_text().splitlines():
        row = json.loads(line)
        reasons = [row[f"explain_{k}"] for k in range(1, most + 1)]
        total = row["base"] + row["rest"] + sum(r["contribution"] for r in reasons if r is not None)
        assert total == pytest.approx(row["log_odds"], abs=1e-9, rel=1e-12)
        if digits is None:
            logs = {label: row[f"p_{label}"] for label in model.schema.labels}
            own = logs.pop(row["prediction"])
            assert row["log_odds"] == pytest.approx(own - sum(logs.values()) / len(logs), abs=1e-9, rel=1e-12)


SAMPLES = Path(__file__).parents[2] / "sample_data"
WAIT_SECONDS = 30.0


def test_rows_that_have_come_are_scored_while_the_pipe_pauses(tmp_path: Path) -> None:
    """The command does not wait for more input."""
    command = [sys.executable, "-m", "bncli"]
    model = str(tmp_path / "iris.bnc")
    fit(Source((str(SAMPLES / "iris.csv"),)), Recipe.of(param="map"), output=model)
    header, *rows = (SAMPLES / "iris.csv").read_bytes().splitlines(keepends=True)
    with subprocess.Popen(
        [*command, "score", model, "-q", "--labels-only"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(header + rows[0] + rows[1] + rows[2][:5])
        process.stdin.flush()
        assert _lines(process, 3) == [b"prediction", b"setosa", b"setosa"]
        process.stdin.write(rows[2][5:] + rows[60])
        process.stdin.flush()
        assert _lines(process, 2) == [b"setosa", b"versicolor"]
        process.stdin.close()
        assert process.wait(WAIT_SECONDS) == 0


def _lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    text = b""
    while text.count(b"\n") < count and select.select([process.stdout], [], [], WAIT_SECONDS)[0]:
        text += os.read(process.stdout.fileno(), 1 << 16)
    return text.splitlines()
