"""Real schedulers and workers: what a cluster does has the bytes of one process, whatever happens on the way."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.cutting import learn_dataset
from bncli.errors import BncliError
from bncli.files.artifacts.codes import read_codes
from bncli.steps.cluster import connection, fitting
from bncli.steps.cluster.tasks import checked_cluster
from bncli.watch import silent
from tests.steps.cluster.processes import Command, Processes, run, run_anew, started, until

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra 'cluster' is not installed"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc"),
    pytest.mark.slow,  # a scheduler and its workers take many seconds to begin
]

N_ROWS = 140_000
"""Two row blocks."""
SAMPLES = Path(__file__).parents[3] / "sample_data"
FIT = ("--structure", "tan", "--param", "discriminative", "--penalty", "1")
DEADLY = """\
import os
from bncli.steps.evaluate import evaluate as module

def _serve(shared):
    return lambda number: os._exit(9)

module._serve_folds = _serve
"""
"""Run by a worker as it starts: whatever fold it is given, it dies of it."""


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of codes with missing values, weights and three classes."""
    folder = tmp_path_factory.mktemp("codes")
    rng = np.random.default_rng(3)
    label = rng.integers(0, 3, N_ROWS)
    names = np.array(list("abcdef"))
    columns = [names[np.where(rng.random(N_ROWS) < 0.4, label, rng.integers(0, 4, N_ROWS))] for _ in range(4)]
    columns[1][rng.random(N_ROWS) < 0.1] = "?"
    weights = np.array(["0.5", "1", "1.7"])[rng.integers(0, 3, N_ROWS)]
    rows = np.column_stack([*columns, weights, names[label]]).tolist()
    table = folder / "table.csv"
    with table.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["p", "q", "r", "s", "w", "class"], *rows])
    assert run("encode", table, "--weights", "w", "-o", folder / "table.codes").code == 0
    return folder / "table.codes"


@pytest.fixture(scope="module")
def model(codes: Path) -> bytes:
    """What one process learns."""
    assert run("fit", codes, *FIT, "-o", codes.with_suffix(".bnc")).code == 0
    return codes.with_suffix(".bnc").read_bytes()


def without_seconds(report: Any) -> Any:
    if isinstance(report, dict):
        return {key: without_seconds(value) for key, value in report.items() if "seconds" not in key}
    return [without_seconds(one) for one in report] if isinstance(report, list) else report


@pytest.mark.slow
def test_evaluate_finds_the_same(cluster: Processes, tmp_path: Path) -> None:
    options = ("--structure", "nb", "--repeats", "2", "--folds", "2", "--train-rows", "40", "--json")
    ended = [
        run("evaluate", SAMPLES / "wine.csv", *options, "--predictions", tmp_path / name, *where)
        for name, where in (("here.csv", ()), ("there.csv", ("--cluster", cluster.address)))
    ]
    assert [one.code for one in ended] == [0, 0]
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    here, there = (without_seconds(json.loads(one.out)) for one in ended)
    assert here == there
    assert ended[0].err == ended[1].err


def test_compare_finds_the_same_and_resumes(cluster: Processes, tmp_path: Path) -> None:
    data = (SAMPLES / "wine.csv", SAMPLES / "iris.csv")
    learners = ("--learner", "a=--structure nb --param map", "--learner", "b=--structure tan --param map")
    here = run("compare", *data, *learners, "--folds", "2", "--json", "--resume", tmp_path / "kept", "--jobs", "1")
    where = ("--cluster", f"file:{cluster.folder / 'scheduler.json'}")
    there = run_anew("compare", *data, *learners, "--folds", "2", "--json", *where)
    assert (here.code, there.code, there.err) == (0, 0, "")
    assert without_seconds(json.loads(here.out)) == without_seconds(json.loads(there.out))
    lines = (tmp_path / "kept").read_text().splitlines(keepends=True)
    (tmp_path / "kept").write_text("".join(lines[:4]))
    again = run("compare", *data, *learners, "--folds", "2", "--json", *where, "--resume", tmp_path / "kept")
    assert "3 of 8 folds were read from" in again.err
    assert without_seconds(json.loads(again.out)) == without_seconds(json.loads(here.out))
    assert len((tmp_path / "kept").read_text().splitlines()) == 9


@pytest.mark.parametrize(
    "options",
    [
        FIT,
        pytest.param(
            ("--structure", "kdb", "--k", "2", "--param", "map", "--smoothing", "hdp"), marks=pytest.mark.slow
        ),
        ("--structure", "nb", "--param", "weighted"),
        pytest.param(("--structure", "tan", "--param", "extended", "--penalty", "1"), marks=pytest.mark.slow),
        pytest.param(("--structure", "kdb", "--param", "weighted", "--optimizer", "lbfgs"), marks=pytest.mark.slow),
    ],
    ids=lambda options: "-".join(word for word in options if not word.startswith("--")),
)
def test_fit_makes_the_same_bytes(cluster: Processes, codes: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    here = run("fit", codes, *options, "-o", tmp_path / "here.bnc")
    there = run("fit", codes, *options, "-o", tmp_path / "there.bnc", "--cluster", cluster.address)
    assert (here.code, there.code) == (0, 0), there.err
    assert (tmp_path / "here.bnc").read_bytes() == (tmp_path / "there.bnc").read_bytes()
    assert "a cluster is slower than this machine" in there.err
    assert re.search(r"\d+ rounds on 2 workers \(2 threads\): on average \d+ kB sent and \d+ kB received", there.err)


@pytest.mark.parametrize(
    "options",
    [
        ("--structure", "tan", "--param", "map"),
        # with a choice of the penalty, whose folds cut the rows as they were read anew
        ("--structure", "nb", "--discretize", "equal-frequency", "--bins", "4"),
        pytest.param(("--structure", "kdb", "--param", "weighted", "--cuts", "cuts.json"), marks=pytest.mark.slow),
    ],
    ids=lambda options: options[1],
)
def test_fit_of_parts_makes_the_same_bytes(cluster: Processes, tmp_path: Path, options: tuple[str, ...]) -> None:
    parts(tmp_path / "wine")
    assert run("discretize", "wine", "--cuts-out", "cuts.json", cwd=tmp_path).code == 0
    here = run("fit", "wine", *options, "-o", "here.bnc", cwd=tmp_path)
    there = run("fit", "wine", *options, "-o", "there.bnc", "--cluster", cluster.address, cwd=tmp_path)
    assert (here.code, there.code) == (0, 0), there.err
    assert (tmp_path / "here.bnc").read_bytes() == (tmp_path / "there.bnc").read_bytes()
    assert re.search(
        r"^Note: a cluster learns from codes, which are kept in there\.bnc\.\w+\.codes until", there.err, re.M
    )
    assert {path.name for path in tmp_path.iterdir()} == {"wine", "cuts.json", "here.bnc", "there.bnc"}


def test_fit_of_a_large_table_makes_the_same_bytes(cluster: Processes, codes: Path, tmp_path: Path) -> None:
    """Row blocks on both workers, weights and missing values."""
    words = ("fit", codes.with_suffix(".csv"), "--weights", "w", *FIT)
    here, there = run(*words, "-o", tmp_path / "a"), run(*words, "-o", tmp_path / "b", "--cluster", cluster.address)
    assert (here.code, there.code) == (0, 0), there.err
    assert "rounds on 2 workers" in there.err
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_part_that_is_wrong_leaves_no_codes(cluster: Processes, tmp_path: Path) -> None:
    parts(tmp_path / "wine")
    with (tmp_path / "wine" / "b.csv").open("a") as file:
        file.write("".join(f"{word}{',1' * 13}\n" for word in ("much", "more", "some", "few")))  # too many for missing
    options = ("--structure", "nb", "--param", "map", "-o", "x.bnc", "--cluster", cluster.address)
    ended = run("fit", "wine", *options, cwd=tmp_path)
    assert ended.code == 1
    assert re.search(r"^Error: column '\S+' has numbers in \S*a\.csv, but 'much' here", ended.err, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["wine"]


def parts(folder: Path) -> None:
    """Wine in three files."""
    header, *lines = (SAMPLES / "wine.csv").read_text().splitlines(keepends=True)
    folder.mkdir()
    for name, part in (("a.csv", lines[:70]), ("b.csv", lines[70:120]), ("c.csv", lines[120:])):
        (folder / name).write_text(header + "".join(part))


def test_other_codes_under_the_same_name(codes: Path) -> None:
    """The file is as long, but a worker that opens it finds other rows."""
    file = read_codes(str(codes))
    schema = learn_dataset(file.columns()).schema
    stamp = fitting._stamp(file)
    assert fitting._load_block(str(codes), schema, stamp, 1, N_ROWS // 2).n_rows == N_ROWS // 2
    with pytest.raises(BncliError, match="a worker finds different codes under the same path"):
        fitting._load_block(str(codes), schema, stamp + 1, 1, N_ROWS // 2)


def test_encode_writes_the_same_bytes(cluster: Processes, tmp_path: Path) -> None:
    parts(tmp_path / "wine")
    for name, where in (("here.codes", ()), ("there.codes", ("--cluster", cluster.address))):
        ended = run("encode", "a.csv", "b.csv", "c.csv", "-o", name, *where, cwd=tmp_path / "wine")
        assert ended.code == 0, ended.err
    assert (tmp_path / "wine" / "here.codes").read_bytes() == (tmp_path / "wine" / "there.codes").read_bytes()
    with (tmp_path / "wine" / "b.csv").open("a") as file:
        file.write("".join(f"{word}{',1' * 13}\n" for word in ("much", "more", "some", "few")))  # too many for missing
    words = ("encode", "a.csv", "b.csv", "-o", "no.codes", "--cluster", cluster.address)
    ended = run(*words, cwd=tmp_path / "wine")
    assert ended.code == 1
    assert re.search(r"^Error: column '\S+' has numbers in a\.csv, but 'much' here, b\.csv", ended.err, re.MULTILINE)


TWICE = """
import sys
from bncli.engine.evaluation.cross_validation import Protocol
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.evaluate.evaluate import evaluate
from bncli.watch import Run

RECIPE = Recipe(structure="nb", param="map")
for _ in range(2):
    report = evaluate(Source((sys.argv[1],)), RECIPE, Protocol(2), run=Run(cluster=sys.argv[2]))
    print(report.as_json()["error"])
"""


def test_two_evaluations_in_one_process(cluster: Processes) -> None:
    """The settings of dask are its own again after the first, and not gone."""
    command = [sys.executable, "-c", TWICE, str(SAMPLES / "iris.csv"), cluster.address]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    first, second = ended.stdout.split()
    assert first == second


@pytest.mark.slow
def test_workers_of_this_machine(codes: Path, model: bytes, tmp_path: Path) -> None:
    ended = run_anew("fit", codes, *FIT, "-o", tmp_path / "there.bnc", "--cluster", "local:2")
    assert ended.code == 0, ended.err
    assert (tmp_path / "there.bnc").read_bytes() == model


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".codes", ".csv"])
def test_an_interrupt_leaves_nothing(codes: Path, tmp_path: Path, ending: str) -> None:
    """No process, no model, and no codes that were made on the way."""
    data = (codes.with_suffix(ending), *(("--weights", "w") if ending == ".csv" else ()))
    endless = ("--structure", "tan", "--param", "extended", "--penalty", "1", "--restarts", "1000")
    command = Command("fit", *data, *endless, "-o", tmp_path / "x.bnc", "--cluster", "local:2")
    command.hear("a pass over these rows")
    assert len(list(tmp_path.iterdir())) == (ending == ".csv")
    assert len(command.left_over()) > 2
    command.interrupt()
    ended = command.end()
    assert ended.code == 130
    assert "Traceback" not in ended.err
    deadline = time.monotonic() + 20
    while command.left_over():
        assert time.monotonic() < deadline, "processes are left"
        time.sleep(0.1)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_worker_dies_in_the_middle(codes: Path, model: bytes, tmp_path: Path) -> None:
    """The other makes again what was lost."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with started(folder, 2) as processes:
        ended = _killing(processes, 0, codes, tmp_path / "one.bnc")
        assert ended.code == 0, ended.err
        assert (tmp_path / "one.bnc").read_bytes() == model


@pytest.mark.slow
def test_all_workers_die_in_the_middle(codes: Path, tmp_path: Path) -> None:
    """The command ends by itself, after as long as new ones are waited for."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with started(folder, 1) as processes:
        began = time.monotonic()
        ended = _killing(processes, 0, codes, tmp_path / "none.bnc")
        assert ended.code == 1
        assert ended.err.splitlines()[-1].startswith("Error: the cluster has no workers left; start workers")
        assert time.monotonic() - began < 90
        assert not (tmp_path / "none.bnc").exists()


def _killing(processes: Processes, number: int, codes: Path, output: Path) -> Any:
    command = Command("fit", codes, *FIT, "-o", output, "--cluster", processes.address)
    command.hear("a pass over these rows")
    time.sleep(0.2)
    processes.workers[number].kill()
    return command.end()


def test_a_worker_with_another_version(cluster: Processes, tmp_path: Path) -> None:
    preload = tmp_path / "older.py"
    preload.write_text("import bncli\nbncli.__version__ = '0.0.1'\n")
    worker = cluster.add_worker("--preload", str(preload))
    try:
        cluster.await_workers(3)
        ended = run("evaluate", SAMPLES / "wine.csv", "--cluster", cluster.address)
    finally:
        worker.kill()
        worker.wait()
        cluster.await_workers(2)
    assert ended.code == 1
    assert re.fullmatch(r"Error: worker tcp://\S+ has bncli 0\.0\.1, but this machine has \S+; .*\n", ended.err)


def test_a_worker_that_cannot_see_the_data(cluster: Processes, tmp_path: Path) -> None:
    """A path that means another folder to every process."""
    (tmp_path / "data.csv").write_bytes((SAMPLES / "wine.csv").read_bytes())
    ended = run("evaluate", "/proc/self/cwd/data.csv", "--cluster", cluster.address, cwd=tmp_path)
    assert ended.code == 1
    said = r"Error: worker tcp://\S+ cannot find the data, /proc/self/cwd/data\.csv; .*\n"
    assert re.fullmatch(said, ended.err)


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"", id="silent", marks=pytest.mark.slow),  # waits for as long as the command does
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another-protocol"),
    ],
)
def test_somebody_else_answers(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server, greeting), daemon=True).start()
        began = time.monotonic()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        ended = run_anew("evaluate", SAMPLES / "wine.csv", "--cluster", address)
    assert ended.code == 1
    assert ended.err.startswith(f"Error: no scheduler answered at {address} (within 10 seconds); ")
    assert ended.err.count("\n") == 1
    assert time.monotonic() - began < 60


def _greet(server: socket.socket, greeting: bytes) -> None:
    kept = []
    with suppress(OSError):
        while True:
            kept.append(server.accept()[0])
            kept[-1].sendall(greeting)


@pytest.mark.slow
def test_nobody_answers() -> None:
    ended = run("evaluate", SAMPLES / "wine.csv", "--cluster", "tcp://127.0.0.1:1")
    assert ended.code == 1
    assert ended.err.startswith("Error: no scheduler answered at tcp://127.0.0.1:1 (within 10 seconds); ")


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path) -> None:
    with started(tmp_path, 0) as processes:
        ended = run("evaluate", SAMPLES / "wine.csv", "--cluster", processes.address)
    assert ended.code == 1
    assert ended.err.startswith(f"Error: the scheduler at {processes.address} has no workers; start some")


@pytest.mark.slow
def test_a_worker_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known to the scheduler, and says nothing: named in bounded time."""
    with started(tmp_path, 2) as processes:
        processes.workers[0].send_signal(signal.SIGSTOP)
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 8.0)
        said = r"worker tcp://\S+ does not answer \(within \d+ seconds\); stop this worker"
        with pytest.raises(BncliError, match=said), checked_cluster(processes.address, [], silent):
            pass


@pytest.mark.slow
def test_a_task_that_kills_its_workers(tmp_path: Path) -> None:
    """Nannies start them anew, and after the fourth it is the task that is blamed."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    with started(tmp_path, 0) as processes:
        for _ in range(2):
            processes.add_worker("--nanny", "--preload", str(tmp_path / "deadly.py"))
        processes.await_workers(2)
        data = SAMPLES / "wine.csv"
        ended = run("evaluate", data, "--structure", "nb", "--folds", "2", "--cluster", processes.address)
    assert ended.code == 1
    said = "Error: 4 workers died during the same task; the usual reason is too little memory: give workers more"
    assert ended.err.startswith(said)
    assert ended.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_scheduler_that_is_killed(tmp_path: Path, command: str) -> None:
    learner = ("--structure", "auto") if command == "evaluate" else ("--learner", "--structure auto")
    with started(tmp_path, 1) as processes:
        words = (SAMPLES / "tic_tac_toe.csv", *learner, "--repeats", "5", "--cluster", processes.address)
        asked = Command(command, *words, cwd=tmp_path)
        until(lambda: _is_busy(processes.address))
        assert processes.scheduler is not None
        processes.scheduler.kill()
        ended = asked.end(100)
    assert ended.code == 1, ended
    assert ended.err.splitlines()[-1].startswith("Error: the c"), ended
    assert "internal error" not in ended.err


def _is_busy(address: str) -> bool:
    """Whether a worker has a task in hand."""
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        return any(client.processing().values())
