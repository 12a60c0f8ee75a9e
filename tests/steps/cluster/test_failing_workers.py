"""Workers that hang, or die of a task."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

from bncli.errors import BncliError
from bncli.steps.cluster import connection
from bncli.steps.cluster.checks import check_workers
from bncli.steps.cluster.connection import connected
from tests.steps.cluster.processes import run, started

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra 'cluster' is not installed"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc"),
]

SAMPLES = Path(__file__).parents[3] / "sample_data"
DEADLY = """\
import os
from bncli.steps.evaluate import on_cluster

def _serve(plan):
    return lambda number: os._exit(9)

on_cluster._serve = _serve
"""
"""Run by a worker as it starts: whatever fold it is given, it dies of it."""


@pytest.mark.slow
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
