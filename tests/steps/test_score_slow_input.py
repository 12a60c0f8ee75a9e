"""A pipe that pauses: what has come is scored without waiting for more."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "sample_data"
PATIENCE = 30.0


def test_rows_that_have_come_are_scored_while_the_pipe_pauses(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bncli"]
    model = str(tmp_path / "iris.bnc")
    subprocess.run([*command, "fit", str(SAMPLES / "iris.csv"), "-q", "-o", model], check=True)
    header, *rows = (SAMPLES / "iris.csv").read_bytes().splitlines(keepends=True)
    with subprocess.Popen(
        [*command, "score", model, "-q", "--labels-only"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(header + rows[0] + rows[1] + rows[2][:5])
        process.stdin.flush()
        assert _lines(process, 3) == [b"prediction", b"setosa", b"setosa"]
        process.stdin.write(rows[2][5:] + rows[60])
        process.stdin.flush()
        assert _lines(process, 2) == [b"setosa", b"versicolor"]
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def _lines(process: subprocess.Popen[bytes], count: int) -> list[bytes]:
    assert process.stdout is not None
    text = b""
    while text.count(b"\n") < count and select.select([process.stdout], [], [], PATIENCE)[0]:
        text += os.read(process.stdout.fileno(), 1 << 16)
    return text.splitlines()
