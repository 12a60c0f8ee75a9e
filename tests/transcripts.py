"""Console transcripts as tests: commands after `$ `, then what they print (stderr and stdout as a terminal shows them).

A transcript stands in a file of its own or in a ```console block of a Markdown file. Every command is run by a shell in
a copy of the sample data; what it prints is compared with what is written, times apart. `compare` works in one process
(more change no figure, which tests/cli/test_compare.py holds, but each loads its libraries anew). With BNCLI_UPDATE=1
in the environment (and -n 0, for a file is written by several tests) the written output is replaced by what was
printed: look at the difference before you keep it.

What is compared: text to the letter, and numbers by their meaning. Processors add up products in different orders, so
that the last bits of a sum differ between machines, and with them what depends on these bits (`settled`):

- a number without a decimal point is a count, or was typed: exact;
- a figure, which has a decimal point: RELATIVE, or one unit in the last place where that is no more than ROUNDING of
  it (a sum may fall on either side of a limit of rounding); the same decimals, if the figures are equal;
- rounding errors, all below FLOOR: the same;
- what an optimizer needed, in iterations and passes: a tenth, and exact below 5; their means: a twentieth, and their
  standard deviations one pass, for one more pass in one of three folds is as much.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from tests.started import program

ROOT = Path(__file__).parents[1]
UPDATING = os.environ.get("BNCLI_UPDATE") == "1"

RELATIVE, ROUNDING, FLOOR = Decimal("1e-6"), Decimal("1e-5"), Decimal("1e-14")
_NUMBER = re.compile(r"(?<![\w.])([+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)(?!\w|\.\d)")
_COUNTS_EFFORT = re.compile(r"\bbncli convergence\b|\['(?:iterations|evaluations)'\]")
"""Commands whose whole numbers are iterations and passes."""
_MEANS_OF_EFFORT = re.compile(r"--metric (?:iterations|passes)\b")
"""Commands whose figures are means of them."""
_AFTER = re.compile(r"\bafter $|\"(?:iterations|evaluations)\": $")
"""What stands before a number of iterations elsewhere."""


class Exchange(NamedTuple):
    """A command, over several lines if they end in a backslash, and its output."""

    command: str
    output: str


def parse(text: str) -> list[Exchange]:
    """The exchanges of a transcript."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a transcript begins with a command, not with {parts[0]!r}"
    exchanges = []
    for part in parts[1:]:
        match = re.match(r"((?:.*\\\n)*.*\n?)", part)
        assert match is not None
        exchanges.append(Exchange(match[1].rstrip("\n"), part[match.end() :]))
    return exchanges


def blocks(markdown: str) -> list[str]:
    """The ```console blocks of a Markdown text."""
    return re.findall(r"^```console\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)


def workplace(folder: Path) -> Path:
    """A folder with a copy of the sample data; `bncli`, and the Python of these tests, on the path of its shells."""
    shutil.copytree(ROOT / "sample_data", folder / "sample_data", ignore=shutil.ignore_patterns("*.bnc"))
    programs = folder / ".programs"
    programs.mkdir()
    program(programs / "bncli")
    for name in ("python", "python3"):  # not a link, which would not find the packages of a virtual environment
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (programs / name).chmod(0o755)
    return folder


def replay(transcript: str, folder: Path) -> str:
    """The transcript with the output that its commands print now."""
    return "".join(f"$ {exchange.command}\n{_run(exchange.command, folder)}" for exchange in parse(transcript))


def _run(command: str, folder: Path) -> str:
    """What a command prints; installing is left out, for it was done before any test could run."""
    command = re.sub(r"python3? -m pip install \S+ *(&& *(\\\n)?)?", "", command)
    path = f"{folder / '.programs'}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "160", "BNCLI_JOBS": "1"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    code = f"[exit code {done.returncode}]\n" if done.returncode else ""
    return done.stdout.decode() + code


def without_times(transcript: str) -> str:
    """The transcript with every number of seconds replaced by a hyphen."""
    transcript = re.sub(r'("seconds": )\{[^}]*\}', r"\1{}", transcript)
    return re.sub(
        r"^( ?seconds\b.*|time   .*)$", lambda line: re.sub(r"\s+[0-9]+\.[0-9]+", " -", line[1]), transcript, flags=re.M
    )


def settled(played: str, written: str) -> str:
    """The played transcript with the written line wherever the two say the same."""
    lines = []
    for ours, theirs in zip(parse(played), parse(written), strict=True):
        new, old = ours.output.splitlines(keepends=True), theirs.output.splitlines(keepends=True)
        if len(new) == len(old):
            new = [b if _same_line(a, b, ours.command) else a for a, b in zip(new, old, strict=True)]
        lines += [f"$ {ours.command}\n", *new]
    return "".join(lines)


def _same_line(played: str, written: str, command: str) -> bool:
    """Whether the texts are the same, and every number means the same."""
    ours, theirs = _NUMBER.split(played), _NUMBER.split(written)  # texts at even places, numbers between them
    if ours[::2] != theirs[::2]:
        return False
    return all(_same(ours[i], theirs[i], ours[i - 1], command) for i in range(1, len(ours), 2))


def _same(played: str, written: str, before: str, command: str) -> bool:
    """Whether two numbers mean the same after the text that stands before them."""
    if played == written:
        return True
    a, b = (Decimal(one.replace(",", "")) for one in (played, written))
    if "." not in played or "." not in written:
        whole = re.fullmatch(r"[\d,]+", played) and re.fullmatch(r"[\d,]+", written)
        counts_effort = _AFTER.search(before) or _COUNTS_EFFORT.search(command)
        return bool(whole and counts_effort) and abs(a - b) <= (math.ceil(b / 10) if b >= 5 else 0)
    if a == b:  # but for the sign of zero, written otherwise
        return a == 0 and played.lstrip("+-") == written.lstrip("+-")
    if _MEANS_OF_EFFORT.search(command):
        return abs(a - b) <= (1 if before.endswith("±") else b / 20)
    least = max(RELATIVE * abs(b), FLOOR)
    unit = Decimal(1).scaleb(min(int(one.as_tuple().exponent) for one in (a, b)))
    return abs(a - b) <= (unit if least < unit <= ROUNDING * abs(b) else least)
