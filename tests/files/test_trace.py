"""The trace: a row an iteration, read back as it was told."""

from __future__ import annotations

import csv
from pathlib import Path

from bncli.files.trace import HEADER, Trace
from bncli.watch import Event, Iteration, Note


def test_iterations_become_rows(tmp_path: Path) -> None:
    seen: list[Event] = []
    trace = Trace(seen.append)
    events = [
        Iteration(0, -10.125, 0.0, 3.0, 0.0, 1, 1),
        Note("x"),
        Iteration(1, -0.1 - 0.2, 1e-17, 2.5, 1.0, 3, 2, 123456789012345),
        Iteration(2, None, 0.0, 2.0, 1.0, 4, 4, None, -20.5),
    ]
    for event in events:
        trace(event)
    trace.write(str(tmp_path / "t.csv"))
    rows = list(csv.reader((tmp_path / "t.csv").read_text().splitlines()))
    assert seen == events
    assert tuple(rows[0]) == HEADER
    told = [tuple(float(cell) if cell else None for cell in row[:-1]) for row in rows[1:]]
    assert told == [event for event in events if isinstance(event, Iteration)]
    assert [row[-3] for row in rows[1:]] == ["", "123456789012345", ""]
    assert [float(row[-1]) >= 0 for row in rows[1:]] == [True] * 3


def test_the_columns() -> None:
    counts = ("cll_evaluations", "gradient_evaluations", "flops", "ll", "seconds")
    assert ("iteration", "cll", "penalty", "gradient_norm", "step", *counts) == HEADER


def test_without_iterations_only_the_header(tmp_path: Path) -> None:
    trace = Trace(lambda event: None)
    trace.write(str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == ",".join(HEADER) + "\n"
