"""Console transcripts as tests: commands after `$ `, then what they print (stderr and stdout as a terminal shows them).

A transcript stands in a file of its own or in a ```console block of a Markdown file. Every command is run by a shell in
a copy of the sample data; what it prints is compared with what is written, times apart. `compare` works in one process
(more change no figure, which tests/cli/test_compare.py holds, but each loads its libraries anew). With BNCLI_UPDATE=1
in the environment (and -n 0, for a file is written by several tests) the written output is replaced by what was
printed: look at the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.started import program

ROOT = Path(__file__).parents[1]
UPDATING = os.environ.get("BNCLI_UPDATE") == "1"


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
    """A folder with a copy of the sample data, and `bncli` on the path of its shells."""
    shutil.copytree(ROOT / "sample_data", folder / "sample_data", ignore=shutil.ignore_patterns("*.bnc"))
    programs = folder / ".programs"
    programs.mkdir()
    program(programs / "bncli")
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
        r"^( ?seconds\b.*)$", lambda line: re.sub(r"\s+[0-9]+\.[0-9]+", " -", line[1]), transcript, flags=re.M
    )
