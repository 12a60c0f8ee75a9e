"""When waiting for workers ends, and whose errors the results raise."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bncli.steps.cluster.connection import ClusterGoneError, Worker, WorkerMonitor, connected

BUSY, PAUSED = Worker(1, 10**9, is_busy=True), Worker(1, 10**9, is_paused=True)
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="'cluster' is not installed")


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    return clock


def seconds_until_gone(clock: Clock, workers: Callable[[int], Mapping[str, Worker]]) -> tuple[float, str]:
    """Check once per second for ten minutes."""
    monitor = WorkerMonitor({"a", "b"})
    for second in range(600):
        clock.now = float(second)
        try:
            monitor.check(workers(second))
        except ClusterGoneError as error:
            return clock.now, error.what
    return clock.now, ""


def test_workers_that_are_all_gone(clock: Clock) -> None:
    after, what = seconds_until_gone(clock, lambda _: {})
    assert (after, what) == (21, "the cluster has no workers left")


def test_a_worker_that_comes_back_in_time(clock: Clock) -> None:
    assert seconds_until_gone(clock, lambda second: {} if second < 15 else {"a": BUSY}) == (599, "")


@pytest.mark.parametrize("other", [PAUSED, Worker(1)], ids=["both", "the other idle"])
def test_paused_workers_and_nothing_done(clock: Clock, other: Worker) -> None:
    after, what = seconds_until_gone(clock, lambda second: {"a": BUSY if second < 5 else PAUSED, "b": other})
    assert after == 26
    assert "of 2 workers are paused because their memory is full, for example a (limit 1,000 MB)" in what


@pytest.mark.parametrize(
    "workers",
    [
        lambda _: {"a": PAUSED, "b": BUSY},
        lambda _: {"a": PAUSED._replace(is_busy=True), "b": PAUSED},
        lambda second: {"a": PAUSED if second % 20 else BUSY, "b": Worker(1)},
        lambda _: {"a": Worker(1), "b": Worker(1)},
        lambda second: {"a": BUSY, f"b{second // 150}": BUSY},
    ],
    ids=["one works", "at work though paused", "now and then", "idle", "a few come and go"],
)
def test_work_that_may_go_on(clock: Clock, workers: Callable[[int], Mapping[str, Worker]]) -> None:
    assert seconds_until_gone(clock, workers) == (599, "")


def test_workers_that_are_restarted_again_and_again(clock: Clock) -> None:
    after, what = seconds_until_gone(clock, lambda second: {f"{k}-{second // 4}": BUSY for k in "ab"})
    assert after <= 30
    assert what.startswith("workers keep stopping")


@pytest.mark.slow
@needs_dask
def test_a_timeout_raised_by_a_task_is_its_result() -> None:
    """It is not taken for a timeout of the connection, after which the result would be asked for again."""
    with connected("local:1") as cluster, pytest.raises(TimeoutError, match="of the task itself"):
        cluster.values([cluster.submit(_time_out, None)])


def _time_out(_: Any) -> None:
    raise TimeoutError("of the task itself")
