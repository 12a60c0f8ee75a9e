"""What a person sees: a bar only on a terminal, numbers that JSON can hold, lines that stay lines."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rich.console

from bncli.cli.console import Console, TerminalBar
from bncli.watch import Iteration, Note, Progress, Stage
from tests.cli.conftest import Bncli

EVENTS = (
    Stage("read"),
    Progress(1, None),
    Progress(5, 10, "of a file"),
    Note("something [odd] was left out"),
    Stage("parameters"),
    Iteration(3, -1.5, 0.25, 1e-3, 1.0, 4, 4),
    Iteration(4, None, 0.0, 1e-3, 1.0, 5, 5, None, -2.5),
    Stage("fit"),
    Progress(1, 5, "fold 1 of 5"),
)


class Fixed:
    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def as_json(self) -> dict[str, Any]:
        return self.values


def test_json_has_no_nan(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    nothing = float("nan")
    Console(as_json=True).json(
        Fixed({"a": nothing, "b": [1.0, float("inf")], "c": {"d": (nothing,)}, "e": "grün \udc80"})
    )
    text = capfdbinary.readouterr().out.decode()
    assert json.loads(text) == {
        "schema_version": 1, "a": None, "b": [1.0, None], "c": {"d": [None]}, "e": "grün \udc80",
    }  # fmt: skip


def test_numbers_have_full_precision(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Console().json(Fixed({"x": 0.1 + 0.2}))
    assert json.loads(capfdbinary.readouterr().out)["x"] == 0.1 + 0.2


def test_without_a_terminal_there_are_only_notes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with Console() as console:
        for event in EVENTS:
            console.watch(event)
        console.summary(["rows 3"])
    assert capfdbinary.readouterr() == (b"", b"Note: something [odd] was left out\nrows 3\n")


def test_quiet_and_json_leave_out_the_summary(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for console in (Console(quiet=True), Console(as_json=True)):
        console.summary(["rows 3"])
    assert capfdbinary.readouterr() == (b"", b"")


def test_on_a_terminal_there_is_a_bar() -> None:
    program = f"""
from bncli.cli.console import Console
from bncli.watch import *
with Console() as console:
    for event in {EVENTS!r}:
        console.watch(event)
    console.summary(["rows 3"])
"""
    shown = _on_a_terminal([sys.executable, "-c", program])
    assert "Note: something [odd] was left out" in shown
    assert shown.rstrip().endswith("rows 3")
    assert "\x1b" in shown


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_bar_keeps_its_width_whatever_is_told(width: int) -> None:
    bar = TerminalBar()
    bar.close()
    page = rich.console.Console(file=io.StringIO(), width=width)
    for detail in ("", "a", "fold 2 of 5: all pairs, penalty 0.03, fold 3 of 5, and so on " * 3):
        bar.progress(5, 10, detail)
        page.print(bar._live.get_renderable())
    lines = page.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 3
    assert len({line[: line.index("left")] for line in lines}) == 1
    assert all("━" * 12 + " " in line for line in lines)


def test_a_long_name_does_not_fill_the_bar() -> None:
    program = """
from bncli.cli.console import Console
from bncli.watch import *
with Console() as console:
    console.watch(Stage("fit"))
    console.watch(Progress(1, 2, "x" * 10**6))
"""
    assert len(_on_a_terminal([sys.executable, "-c", program], COLUMNS="100000")) < 1_000_000


def test_a_dumb_terminal_gets_no_bar() -> None:
    program = "from bncli.cli.console import Console\nwith Console() as console: console.note('hello')"
    assert _on_a_terminal([sys.executable, "-c", program], TERM="dumb") == "Note: hello\r\n"


def _on_a_terminal(words: list[str], **environment: str) -> str:
    """What a program writes to a terminal as its standard error."""
    here, there = pty.openpty()
    settings = os.environ | {"TERM": "xterm", "COLUMNS": "80"} | environment
    with subprocess.Popen(words, stderr=there, env=settings) as program:
        os.close(there)
        chunks = []
        while True:
            try:
                chunk = os.read(here, 4096)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
        assert program.wait() == 0
    os.close(here)
    return b"".join(chunks).decode()


def test_no_colour_where_it_is_not_wanted(bncli: Bncli, tmp_path: Path) -> None:
    bncli("fit", "iris.csv", "--param", "map")
    assert "\x1b" not in bncli("inspect", "iris.bnc").out


def test_zero_has_no_sign(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    class Zero:
        def as_json(self) -> dict[str, Any]:
            return {"cll": -0.0, "path": [-0.0, -1.5]}

    Console(as_json=True).json(Zero())
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b'{"schema_version": 1, "cll": 0.0, "path": [0.0, -1.5]}\n'


def test_after_five_notes_the_rest_is_counted(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for n in (5, 6, 9):
        with Console() as console:
            for i in range(n):
                console.watch(Note(f"note {i}"))
                console.watch(Note(f"warning {i}", warning=True))
            console.summary(["the end"])
        lines = capfdbinary.readouterr().err.decode().splitlines()
        assert sum(line.startswith("Note: ") for line in lines) == 5
        assert sum(line.startswith("Warning: ") for line in lines) == n
        hidden = {5: [], 6: ["1 more note; bncli describe FILE shows how each column is read"]}
        more = hidden.get(n, ["4 more notes; bncli describe FILE shows how each column is read"])
        assert lines[-1 - len(more) :] == [*more, "the end"]
