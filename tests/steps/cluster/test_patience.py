"""How long is waited for workers that are gone, paused or started anew, and what of a limit of memory is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bncli.errors import BncliError
from bncli.steps.cluster import checks as preflight
from bncli.steps.cluster.connection import Cluster, GoneError, Patience, Worker

BUSY, PAUSED = Worker(1, 10**9, is_busy=True), Worker(1, 10**9, is_paused=True)


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
    """Looks once a second for ten minutes."""
    one = Patience({"a", "b"})
    for second in range(600):
        clock.now = float(second)
        try:
            one.look(workers(second))
        except GoneError as error:
            return clock.now, error.what
    return clock.now, ""


def test_workers_that_are_all_gone(clock: Clock) -> None:
    after, what = seconds_until_gone(clock, lambda _: {})
    assert (after, what) == (21, "the cluster has no workers any more")


def test_a_worker_that_comes_back_in_time(clock: Clock) -> None:
    assert seconds_until_gone(clock, lambda second: {} if second < 15 else {"a": BUSY}) == (599, "")


@pytest.mark.parametrize("other", [PAUSED, Worker(1)], ids=["both", "the other idle"])
def test_paused_workers_and_nothing_done(clock: Clock, other: Worker) -> None:
    after, what = seconds_until_gone(clock, lambda second: {"a": BUSY if second < 5 else PAUSED, "b": other})
    assert after == 26
    assert "of 2 workers are paused, as a, whose memory is full (limit 1,000 MB)" in what


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
def test_what_may_go_on(clock: Clock, workers: Callable[[int], Mapping[str, Worker]]) -> None:
    assert seconds_until_gone(clock, workers) == (599, "")


def test_workers_that_are_started_anew_again_and_again(clock: Clock) -> None:
    after, what = seconds_until_gone(clock, lambda second: {f"{k}-{second // 4}": BUSY for k in "ab"})
    assert after <= 30
    assert what.startswith("workers end again and again")


class Limited(Cluster):
    """Workers of 100 MB in use."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.workers = {address: Worker(1, limit) for address, limit in limits.items()}

    def ask_all(self, function: Callable[..., Any], *arguments: Any) -> Mapping[str, Any]:
        return dict.fromkeys(self.workers, 10**8)


@pytest.mark.parametrize(("limit", "fits"), [(0, True), (10**9, True), (400 * 10**6, True), (300 * 10**6, False)])
def test_a_share_beyond_the_limit_of_memory(limit: int, fits: bool) -> None:
    cluster, shares = Limited({"a": 0, "b": limit}), {"a": 2 * 10**8, "b": 2 * 10**8}
    if fits:
        preflight.check_memory(cluster, shares)
        return
    with pytest.raises(BncliError, match="b may take 300 MB of memory, has 100 MB, and its row blocks are 200 MB"):
        preflight.check_memory(cluster, shares)
