"""A cluster that goes in the middle of the work: one line in bounded time, and no task is blamed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from bncli.errors import BncliError
from bncli.steps.cluster.connection import Cluster, GoneError, LostError, Worker, connected
from bncli.steps.cluster.tasks import each_task
from tests.steps.cluster.processes import Command, started, until

SAMPLES = Path(__file__).parents[3] / "sample_data"
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="'cluster' is not installed")


class Going(Cluster):
    """Loses what is asked of it: at the first look, or when a value is fetched."""

    def __init__(self, lost: Exception, *, at_first: bool) -> None:
        self.workers = {"here": Worker(1)}
        self._lost, self._at_first = lost, at_first

    def submit(self, *_: Any, **__: Any) -> Any:
        return object()

    def first(self, futures: Any) -> Any:
        if self._at_first:
            raise self._lost
        return list(futures)[:1]

    def values(self, futures: Any) -> Any:
        raise self._lost


@pytest.mark.parametrize("at_first", [True, False])
@pytest.mark.parametrize("lost", [LostError("x"), GoneError("x")], ids=["lost", "gone"])
def test_a_cluster_that_goes_ends_the_command(lost: Exception, at_first: bool) -> None:
    with pytest.raises(GoneError):
        list(each_task(Going(lost, at_first=at_first), _serve, None, range(3), lambda _: False))


def test_a_task_that_fails_is_a_result() -> None:
    failed = BncliError("x")
    found = list(each_task(Going(failed, at_first=False), _serve, None, range(3), lambda _: False))
    assert found == [(k, failed) for k in range(3)]


def _serve(_: Any) -> Any:
    return _late


def _late(_: Any) -> None:
    raise TimeoutError("of the task itself")


@needs_dask
def test_the_patience_of_a_task_is_its_own() -> None:
    """It was taken for that of the connection, and the result asked for again for ever."""
    with connected("local:1") as cluster, pytest.raises(TimeoutError, match="of the task itself"):
        cluster.values([cluster.submit(_late, None)])


@needs_dask
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")
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
