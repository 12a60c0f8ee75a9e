"""One row in Python: a scorer, a table of one row, and a web service.

30 columns, half of them numbers and half of them names, and 20,000 rows to learn from. Times are CPU time. The web
service is the example of `bncli help web-service`, with one worker of uvicorn and 8 clients that
keep their connections.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bncli
from tests.performance.conftest import Recorder
from tests.transcripts import ROOT

pytestmark = pytest.mark.performance
N_ROWS = 20_000
N_ASKED = 2_000
N_CLIENTS = 8
OPTIONS = {
    "nb": {"structure": "nb", "param": "map"},
    "tan": {"structure": "tan", "param": "weighted"},
    "interactions": {"structure": "interactions"},
}


@pytest.fixture(scope="module")
def table() -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=N_ROWS)
    columns: dict[str, list[Any]] = {}
    for i in range(15):
        x = z * rng.uniform(-0.6, 0.6) + rng.normal(size=N_ROWS)
        columns[f"x{i}"] = np.round(x, 4).tolist()
        columns[f"c{i}"] = [f"level {int(v)}" for v in np.clip(np.abs(4 * x), 0, 9)]
    columns["class"] = np.where(
        z + columns["x0"] * np.array(columns["x1"]) + rng.normal(size=N_ROWS) > 0, "yes", "no"
    ).tolist()
    return columns


@pytest.fixture(scope="module")
def rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    names = [name for name in table if name != "class"]
    return [{name: table[name][t] for name in names} for t in range(N_ASKED)]


@pytest.fixture(scope="module")
def models(table: dict[str, list[Any]]) -> dict[str, bncli.Model]:
    return {word: bncli.fit(table, progress=lambda event: None, **options) for word, options in OPTIONS.items()}


def microseconds(work: Callable[[Any], object], arguments: list[Any], times: int = 7) -> float:
    """The least CPU time of several runs, per argument."""
    spent = []
    for _ in range(times):
        start = time.thread_time()
        for argument in arguments:
            work(argument)
        spent.append(time.thread_time() - start)
    return 1e6 * min(spent) / len(arguments)


@pytest.mark.parametrize("word", OPTIONS)
def test_a_scorer(models: dict[str, bncli.Model], rows: list[dict[str, Any]], record: Recorder, word: str) -> None:
    scorer = models[word].scorer()
    record(f"a row of 30 columns, a dict, {word}", microseconds(scorer, rows), "microseconds", 30)


def test_a_table_of_one_row(models: dict[str, bncli.Model], rows: list[dict[str, Any]], record: Recorder) -> None:
    pandas = pytest.importorskip("pandas")
    model, few = models["tan"], rows[:100]
    frames = [pandas.DataFrame([row]) for row in few]
    tables = [pa.Table.from_pylist([row]) for row in few]
    record(
        "predict_proba of a data frame of one row, tan", microseconds(model.predict_proba, frames), "microseconds", 500
    )
    record(
        "predict_proba of an Arrow table of one row, tan",
        microseconds(model.predict_proba, tables),
        "microseconds",
        500,
    )


def test_loading(models: dict[str, bncli.Model], tmp_path: Path, record: Recorder) -> None:
    models["tan"].save(tmp_path / "m.bnc")
    code = f"""
import time, numpy
start = time.process_time()
import bncli
bncli.load({str(tmp_path / "m.bnc")!r}).scorer()
print(time.process_time() - start)
"""
    spent = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    record("bncli.load for the first time, after numpy", 1000 * min(spent), "milliseconds", 250)


def example() -> str:
    """The program of the manual."""
    text = (ROOT / "bncli" / "manual" / "web-service.md").read_text()
    program = re.search(r"^    from fastapi.*?(?=^\S)", text, re.DOTALL | re.MULTILINE)
    assert program is not None
    return textwrap.dedent(program[0])


@pytest.fixture
def service(models: dict[str, bncli.Model], tmp_path: Path) -> Iterator[tuple[int, int]]:
    """The port and the process of the example."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    models["tan"].save(tmp_path / "model.bnc")
    (tmp_path / "service.py").write_text(example())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        try:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.1)
            yield port, process.pid
        finally:
            process.terminate()


def ask(port: int, rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    """The answers to rows, one after the other on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    answers = []
    for row in rows:
        connection.request("POST", "/score", json.dumps(row), {"Content-Type": "application/json"})
        answers.append(json.loads(connection.getresponse().read()))
    connection.close()
    return answers


def cpu_of(pid: int) -> float:
    """CPU seconds of another process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_a_web_service(
    models: dict[str, bncli.Model], rows: list[dict[str, Any]], service: tuple[int, int], record: Recorder
) -> None:
    port, pid = service
    scorer = models["tan"].scorer()
    assert [list(answer.values()) for answer in ask(port, rows[:50])] == [scorer(row) for row in rows[:50]]
    parts = [rows[i::N_CLIENTS] for i in range(N_CLIENTS)]
    before = cpu_of(pid)
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        answers = list(pool.map(lambda part: ask(port, part), parts))
    spent = (cpu_of(pid) - before) / sum(map(len, answers))
    share = microseconds(scorer, rows) / (1e6 * spent)
    detail = f"{1 / spent:,.0f} requests per second of CPU time; the scorer takes {share:.0%} of it"
    record("a request to FastAPI, one worker", 1e6 * spent, "microseconds", detail=detail)
