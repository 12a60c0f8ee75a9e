"""A `.codes` file that becomes shorter while it is in use ends the run with one line, never with SIGBUS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.dataset import block_bounds
from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.errors import BncliError
from bncli.files.artifacts.codes import CodedRows, CodesHeader, read_codes, write_codes

ROWS = 300_000
_PASS = """
import os, signal, sys
from bncli.files.artifacts import codes
from bncli.files.artifacts.codes import read_codes
codes.MAPPED_FROM = 0
path = sys.argv[1]
columns = read_codes(path).columns()
{between}
print(sum(int(part.sum()) for part in columns.attributes["n"].codes.parts))
"""


@pytest.fixture
def codes(tmp_path: Path) -> Path:
    """Return a file of which 5,000 bytes do not hold the first block."""
    path, rng = tmp_path / "x.codes", np.random.default_rng(0)
    header = CodesHeader(Cuts("class", (NumericAttribute("n", False, (), (1.5, 2.5)),), "mdl"), ("no", "yes"), ROWS)
    numbers, labels = rng.integers(0, 3, ROWS).astype(np.uint8), rng.integers(0, 2, ROWS).astype(np.uint8)
    write_codes(str(path), header, (CodedRows((numbers[a:b],), labels[a:b]) for a, b in block_bounds(ROWS)))
    return path


def test_a_small_file_is_read_at_once(codes: Path) -> None:
    file = read_codes(str(codes))
    os.truncate(codes, 5000)
    assert file.columns().n_rows == ROWS, "codes that were changed are refused"


def test_a_file_that_shrinks_is_refused_after_a_pass(codes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.files.artifacts.codes.MAPPED_FROM", 0)
    file = read_codes(str(codes))
    file.columns()
    # Only the end of the last page is lost, which then reads as zeros without any signal.
    os.truncate(codes, codes.stat().st_size - 1)
    with pytest.raises(BncliError, match="was truncated while it was in use"):
        file.columns()


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="the system does not have SIGBUS")
def test_lost_pages_end_the_process_with_one_line(codes: Path) -> None:
    done = _pass_after(codes, "os.truncate(path, 5000)")
    error = (
        f"Error: the file was truncated while it was in use, {codes}; write the file again, then repeat the command\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", error)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="the system does not have SIGBUS")
def test_other_bus_errors_are_not_blamed_on_the_file(codes: Path) -> None:
    """The first signal restores the default action, which the repeated instruction (here the second signal) meets."""
    done = _pass_after(codes, "for _ in range(2): os.kill(os.getpid(), signal.SIGBUS)")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGBUS, "", "")


def _pass_after(codes: Path, between: str) -> subprocess.CompletedProcess[str]:
    """Map the file in another process, run a statement there, and read all codes."""
    program = _PASS.format(between=between)
    return subprocess.run([sys.executable, "-c", program, str(codes)], capture_output=True, text=True)
