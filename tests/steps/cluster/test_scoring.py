"""Real workers that score: the bytes, counts and errors of one process, file by file of the table."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bncli.engine.prediction.decision_rules import DecisionOptions
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.row_scoring import WhatIfQuestions
from bncli.steps.score import ScoreOutput, ScoreReport, score
from bncli.watch import Event, Note, Run
from tests.steps.cluster.processes import Processes, run

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra 'cluster' is not installed"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc"),
    pytest.mark.slow,  # a scheduler and its workers take many seconds to begin
]

N_ROWS = 3000
"""Of a file."""
HERE = ScoreOutput("x.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and a table of five files: CSV and Parquet, columns in any order, values never seen and missing."""
    folder = tmp_path_factory.mktemp("scoring")
    rng = np.random.default_rng(5)
    (folder / "parts").mkdir()
    for part in range(5):
        label = rng.integers(0, 3, N_ROWS)
        table = {
            "id": [f"{part}, {i}" for i in range(N_ROWS)],
            "p": np.where(rng.random(N_ROWS) < 0.5, label, rng.integers(0, 4, N_ROWS)).astype(str).astype(object),
            "q": rng.normal(label, 1.0).round(3),
            "class": np.array(list("abc"))[label],
        }
        if part:
            table["p"][rng.random(N_ROWS) < 0.01 * part] = f"new {part}"
            table["p"][rng.random(N_ROWS) < 0.01] = "?"
        names = sorted(table, reverse=part % 2 == 1)
        if part == 3:
            kept = pa.table({name: pa.array(list(table[name])) for name in names})
            parquet.write_table(kept, folder / "parts" / f"{part}.parquet")
        else:
            text = [",".join(names)]
            text += [",".join(f'"{value}"' for value in row) for row in zip(*map(table.get, names), strict=True)]
            (folder / "parts" / f"{part}.csv").write_text("\n".join(text) + "\n")
    source = Source((str(folder / "parts" / "0.csv"),), ignore=("id",), categorical=("p",))
    fit(source, Recipe(structure="tan", param="map"), output=str(folder / "m.bnc"))
    return folder


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with all this, which is the working folder: not that of the workers."""
    monkeypatch.chdir(folder)
    return folder


def scored(address: str | None, source: Source, output: ScoreOutput = HERE, **how: Any) -> tuple[Any, ...]:
    """The bytes written (None: there is no file), the report or the error, and the notes."""
    path = Path(output.path or "")
    path.unlink(missing_ok=True)
    notes: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    result: ScoreReport | tuple[type, str]
    try:
        result = replace(score("m.bnc", source, output, run=Run(watch=watch, cluster=address), **how), seconds={})
    except BncliError as error:
        result = type(error), str(error)
    return path.read_bytes() if path.exists() else None, result, notes


@pytest.mark.parametrize(
    "output",
    [
        ScoreOutput("x.csv", keep=("id",)),
        ScoreOutput("x.jsonl", keep="all", explain=2, digits=3),
        ScoreOutput("x.arrow", keep="all", log_proba=True),
        ScoreOutput("x.parquet", keep=("p", "id"), labels_only=True),
    ],
    ids=lambda output: output.path,
)
def test_the_same_bytes_and_counts(cluster: Processes, place: Path, output: ScoreOutput) -> None:
    here, there = (scored(address, Source(("parts",)), output) for address in (None, cluster.address))
    assert here == there
    report = there[1]
    assert report.rows == 5 * N_ROWS
    assert report.unseen_values > 0 < report.missing_values


QUESTIONS = WhatIfQuestions(next_best=True, changes=(("q", "0.5"),), flip=True, surprise=True)


@pytest.mark.parametrize("path", ["x.csv", "x.arrow"])
def test_questions_and_monitors(cluster: Processes, place: Path, path: str) -> None:
    """What is asked row by row, and what is counted of all of them: the bytes of one process."""
    output = ScoreOutput(
        path, decisions=DecisionOptions(costs="a:b=1,a:c=2,b:a=1,b:c=1,c:a=5,c:b=1"), questions=QUESTIONS
    )
    found = []
    for address in (None, cluster.address):
        written, report, notes = scored(address, Source(("parts",)), output, monitor="watched.json")
        found.append((written, report.as_json(), notes, Path("watched.json").read_bytes()))
    assert found[0] == found[1]
    counted = json.loads(found[1][-1])
    assert counted["rows"] == counted["labelled_rows"] == 5 * N_ROWS
    assert counted["mean_log_p"] < 0


def test_fewer_files_than_threads(cluster: Processes, place: Path) -> None:
    here, there = (scored(address, Source(("parts/1.csv",))) for address in (None, cluster.address))
    assert here[:2] == there[:2]
    assert there[2] == ["one file makes one task, so only 1 of 2 threads of the cluster are used"]


def damaged(place: Path, part: int) -> str:
    """A copy of the table with a malformed row at the end of a part; its path as it is typed."""
    folder = place / f"damaged{part}"
    folder.mkdir(exist_ok=True)
    for file in (place / "parts").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    with (folder / f"{part}.csv").open("a") as file:
        file.write("1,2,3,4,5\n")
    return folder.name


def test_a_malformed_row(cluster: Processes, place: Path) -> None:
    """By the command itself: what stands before it in the order of the rows is on the standard output."""
    data = damaged(place, 2)
    here = run("score", "m.bnc", data, cwd=place)
    there = run("score", "m.bnc", data, "--cluster", cluster.address, cwd=place)
    assert here == there
    assert there.code == 1
    assert f", damaged2/2.csv line {N_ROWS + 2};" in there.err
    assert there.out.count("\n") >= 2 * N_ROWS


@pytest.mark.parametrize("policy", ["skip", "bad.csv"])
def test_malformed_rows_are_left_out(cluster: Processes, place: Path, policy: str) -> None:
    source = Source((damaged(place, 1),), on_bad_row=policy)
    here, there = (scored(address, source) for address in (None, cluster.address))
    assert here == there
    assert there[1].skipped_rows == 1
    assert there[2][0].endswith(f"damaged1/1.csv line {N_ROWS + 2}")
    assert policy == "skip" or (place / policy).read_bytes() == b"1,2,3,4,5\n"


def test_a_value_never_seen(cluster: Processes, place: Path) -> None:
    here, there = (scored(address, Source(("parts",)), unseen="error") for address in (None, cluster.address))
    assert here == there
    assert there[0] is None
    assert "column 'p' has the value 'new 1', which was not seen in training, parts/1.csv line" in there[1][1]


def test_other_columns(cluster: Processes, place: Path) -> None:
    (place / "other.csv").write_text("p,q,other\n1,2,3\n")
    source = Source(("./parts/0.csv", "./other.csv"))
    here, there = (scored(address, source) for address in (None, cluster.address))
    assert here == there
    assert "is in ./parts/0.csv but not in ./other.csv; give files" in there[1][1]


def test_a_pipe(place: Path) -> None:
    """Refused before anybody is asked."""
    nowhere = "tcp://127.0.0.1:1"
    ended = run("score", "m.bnc", "-", "--cluster", nowhere, cwd=place)
    assert ended.code == 2
    said = "Error: --cluster has no effect with the standard input, which workers cannot read;"
    assert ended.err.startswith(said)
