"""Stages keep the order, hand failures up the stream, and let go on ^C."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from bncli.steps.run import PipelineStage


def test_everything_arrives_in_order() -> None:
    seen: list[int] = []
    with PipelineStage(seen.append) as last, PipelineStage(last.put) as middle:
        for i in range(100):
            middle.put(i)
    assert seen == list(range(100))


def test_the_work_is_done_on_another_thread() -> None:
    seen: list[int] = []
    with PipelineStage[int](lambda _: seen.append(threading.get_ident())) as stage:
        stage.put(0)
    assert seen != [threading.get_ident()]


def _fail_at(seen: list[int], at: int) -> PipelineStage[int]:
    """Notes the items before number `at`."""

    def work(item: int) -> None:
        if item == at:
            raise ZeroDivisionError
        seen.append(item)

    return PipelineStage(work)


@pytest.mark.parametrize("n_items", [4, 1000])
def test_a_failure_travels_up_the_stream(n_items: int) -> None:
    seen: list[int] = []
    with pytest.raises(ZeroDivisionError):
        _feed(_fail_at(seen, 3), n_items)
    assert seen == [0, 1, 2]


def _feed(stage: PipelineStage[int], n_items: int) -> None:
    with stage as last, PipelineStage(last.put) as middle:
        for i in range(n_items):
            middle.put(i)


def test_what_was_put_before_a_failure_of_the_feeder_is_worked_on() -> None:
    seen: list[int] = []
    with suppress(IndexError), PipelineStage(seen.append) as stage:
        stage.put(1)
        stage.put([][0])
    assert seen == [1]


@pytest.mark.parametrize("n_items", [1, 3])
def test_an_interrupt_does_not_wait_for_a_lane_that_hangs(monkeypatch: pytest.MonkeyPatch, n_items: int) -> None:
    monkeypatch.setattr("bncli.steps.run._PATIENCE", 0.01)
    started, released = threading.Event(), threading.Event()
    seen: list[int] = []

    def work(item: int) -> None:
        started.set()
        released.wait()
        seen.append(item)

    with pytest.raises(KeyboardInterrupt):
        _put_and_interrupt(stage := PipelineStage(work), started, n_items)
    released.set()
    stage._thread.join(5)
    assert not stage._thread.is_alive()
    assert seen == [0]


def _put_and_interrupt(stage: PipelineStage[int], started: threading.Event, n_items: int) -> None:
    with stage:
        for i in range(n_items):
            stage.put(i)
        started.wait()
        raise KeyboardInterrupt
