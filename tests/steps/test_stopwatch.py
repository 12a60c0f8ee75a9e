"""Seconds by stage, on a clock that the test turns."""

from __future__ import annotations

import pytest

from bncli.steps.stopwatch import Stopwatch
from bncli.watch import Event, Note, Stage


def test_stages_are_timed_and_events_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 3.0, 7.0, 15.0, 15.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    seen: list[Event] = []
    watch = Stopwatch(seen.append)
    events = [Stage("read"), Note("hello"), Stage("fit"), Stage("read")]
    for event in events:
        watch(event)
    assert watch.seconds() == {"read": 2.0 + 8.0, "fit": 4.0, "total": 15.0}
    assert seen == events
