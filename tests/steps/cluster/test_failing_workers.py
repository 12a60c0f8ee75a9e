"""Workers that hang, die of a task, or have less memory than there is data."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.dataset import block_bounds
from bncli.engine.data.schema import CategoricalAttribute, Cuts
from bncli.errors import BncliError
from bncli.files.codes import CodedRows, write_codes
from bncli.files.codes_heading import Heading
from bncli.steps.cluster import connection
from bncli.steps.cluster.connection import connected
from bncli.steps.cluster.preflight import check_workers
from tests.steps.cluster.processes import run, started

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra 'cluster' is not installed"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc"),
]

SAMPLES = Path(__file__).parents[3] / "sample_data"
DEADLY = """\
import os
from bncli.steps.evaluating import on_cluster

def _serve(plan):
    return lambda number: os._exit(9)

on_cluster._serve = _serve
"""
"""Run by a worker as it starts: whatever fold it is given, it dies of it."""


def test_a_worker_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known to the scheduler, and says nothing: named in bounded time."""
    with started(tmp_path, 2) as processes:
        processes.workers[0].send_signal(signal.SIGSTOP)
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 8.0)
        said = r"worker tcp://\S+ does not answer \(within \d+ seconds\); end it"
        with pytest.raises(BncliError, match=said), connected(processes.address) as cluster:
            check_workers(cluster, [], lambda event: None)


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
    said = "Error: 4 workers died in the middle of the same task; most often memory ran out: give workers more"
    assert ended.err.startswith(said)
    assert ended.err.count("\n") == 1


MEGABYTES, N_ATTRIBUTES = 400, 40


@pytest.mark.slow
def test_more_data_than_a_worker_may_hold(tmp_path: Path) -> None:
    """The codes are mapped: of a file twice as large as the limit each of two workers reads a half."""
    path = tmp_path / "large.codes"
    _write_large(path, MEGABYTES * 2_000_000 // N_ATTRIBUTES)
    assert os.stat(path).st_size > MEGABYTES * 2_000_000
    options = ("--structure", "nb", "--param", "weighted", "--penalty", "1", "--max-iterations", "3")
    here = run("fit", path, *options, "-o", tmp_path / "here.bnc")
    assert here.code == 0, here.err
    with started(tmp_path, 0) as processes:
        for _ in range(2):
            processes.add_worker("--nanny", "--memory-limit", f"{MEGABYTES}MB")
        processes.await_workers(2)
        there = run("fit", path, *options, "-o", tmp_path / "there.bnc", "--cluster", processes.address)
    assert there.code == 0, there.err
    assert (tmp_path / "here.bnc").read_bytes() == (tmp_path / "there.bnc").read_bytes()


def _write_large(path: Path, n_rows: int) -> None:
    """Attributes of four values, of which the first tell the class."""
    names = [f"x{i}" for i in range(N_ATTRIBUTES)]
    cuts = Cuts("class", tuple(CategoricalAttribute(name, tuple("abcd")) for name in names))
    rng = np.random.default_rng(7)
    rows = []
    for start, stop in block_bounds(n_rows):
        label = rng.integers(0, 2, stop - start).astype(np.uint8)
        noise = rng.integers(0, 4, (3, stop - start)).astype(np.uint8)
        rows.append((noise, label))
    blocks = (
        CodedRows([noise[i % 3] ^ label if i < 3 else noise[i % 3] for i in range(N_ATTRIBUTES)], label)
        for noise, label in rows
    )
    write_codes(str(path), Heading(cuts, ("no", "yes"), n_rows), blocks)
