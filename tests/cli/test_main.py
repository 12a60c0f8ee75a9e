"""Exit codes and one-line errors, for whatever goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import bncli.steps.fit
from bncli.cli.main import run
from bncli.errors import BncliError, ModelError, UsageError
from tests.cli.conftest import Bncli, prepare
from tests.transcripts import ROOT

PROGRAM = [sys.executable, "-m", "bncli"]


def _from_an_interrupt() -> RuntimeError:
    """As Python raises it for ^C while a class is made, before version 3.12."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BncliError("it failed", where="x.csv line 3", hint="mend it"), 1, "Error: it failed, x.csv line 3; mend it\n"),
        (UsageError("no such thing"), 2, "Error: no such thing\n"),
        (ModelError("not a model"), 3, "Error: not a model\n"),
        (ValueError("two\nlines"), 1, "Error: internal error: ValueError: two lines; run with --debug and report it\n"),
        (MemoryError(), 1, "Error: not enough memory; use fewer attributes, values or parents\n"),
        (
            RuntimeError("can't start new thread"),
            1,
            (
                "Error: not enough memory to load a library or to start a thread; raise "
                "the memory limit, or lower --threads\n"
            ),
        ),
        (OSError(28, "No space left on device", "m.bnc"), 1, "Error: no space left on device, m.bnc\n"),
        (ZeroDivisionError("oh"), 1, "Error: internal error: ZeroDivisionError: oh; run with --debug and report it\n"),
        (KeyboardInterrupt(), 130, ""),
        (KeyboardInterrupt(signal.SIGTERM), 143, ""),
        (BrokenPipeError(), 0, ""),
        (_from_an_interrupt(), 130, ""),
    ],
)
def test_every_failure_is_one_line_and_a_code(
    bncli: Bncli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    import bncli.cli.main as running

    monkeypatch.setattr(bncli_fit, "fit", failing)
    monkeypatch.setattr(running, "_discard_stdout", lambda: None)
    assert bncli("fit", "iris.csv") == (code, "", line)


bncli_fit = bncli.steps.fit


def test_a_library_that_fails_without_a_word_under_a_limit_had_not_enough_memory(
    bncli: Bncli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise SystemError("error return without exception set")

    monkeypatch.setattr(bncli_fit, "fit", failing)
    assert bncli("fit", "iris.csv")[2].startswith("Error: internal error: SystemError")
    monkeypatch.setattr("bncli.cli.main.address_space_limit", lambda: 1 << 30)
    assert bncli("fit", "iris.csv")[2].startswith("Error: not enough memory")


def test_debug_shows_the_traceback(bncli: Bncli) -> None:
    with pytest.raises(BncliError, match="no such file"):
        run(["fit", "nothing.csv", "--debug"])


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["fit"],
        ["fit", "iris.csv", "--nothing"],
        ["fit", "iris.csv", "--penalty", "nan"],
        ["fit", "iris.csv", "--penalty", "-1"],
        ["fit", "iris.csv", "--penalty", "1e999"],
        ["fit", "iris.csv", "--level", "5"],
        ["fit", "iris.csv", "--threads", "0"],
        ["fit", "iris.csv", "--seed", "1.5"],
        ["fit", "iris.csv", "--bins", "1", "--discretize", "equal-width"],
        ["fit", "iris.csv", "--delimiter", "ab"],
        ["fit", "-"],
        ["fit", "iris.csv", "tumours.csv"],
        ["fit", "iris.csv", "-", "-o", "x.bnc"],
        ["fit", "iris.csv", "-o", "iris.csv"],
        ["fit", "iris.csv", "-o", "x.bnc", "--trace", "./x.bnc"],
        ["fit", "iris.csv", "--on-bad-row", "iris.csv"],
        ["learn-structure", "iris.csv", "--structure", "tumours.csv"],
        ["evaluate", "iris.csv", "--folds", "1"],
        ["evaluate", "iris.csv", "--model", "m.bnc", "--k", "2"],
        ["evaluate", "iris.csv", "--model", "m.bnc", "--folds", "3"],
        ["evaluate", "iris.csv", "--test", "iris.csv", "--folds", "3"],
        ["score", "m.bnc", "iris.csv", "--json"],
        ["score", "m.bnc", "iris.csv", "--labels-only", "--digits", "3"],
        ["score", "m.bnc", "iris.csv", "--labels-only", "--log-proba"],
        ["score", "m.bnc", "iris.csv", "--keep", "class", "--keep-all"],
        ["inspect"],
        ["fit", "iris.csv", "-o", ""],
        ["fit", "iris.csv", "--structure", ""],
        ["fit", "iris.csv", "--smoothing", ""],
        ["fit", "iris.csv", "--smoothing", "laplace:1e16"],
        ["fit", "iris.csv", "--structure", "kdb", "--k", "1001"],
        ["fit", "iris.csv", "--discretize", "equal-width", "--bins", "10001"],
        ["score", "m.bnc", "iris.csv", "--digits", "15"],
        ["score", "m.bnc", "iris.csv", "-o", "x.tsv"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_writes_nothing(bncli: Bncli, tmp_path: Path, words: list[str]) -> None:
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ran = bncli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_without_a_command_the_help_is_shown(bncli: Bncli) -> None:
    ran = bncli()
    assert ran.code == 2
    assert "Build by steps:" in ran.err


def test_a_closed_pipe_ends_quietly(bncli: Bncli, tmp_path: Path) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    (tmp_path / "many.csv").write_text("sepal_length,sepal_width,petal_length,petal_width\n" + "1,2,3,4\n" * 200_000)
    for words in (["score", "iris.bnc", "many.csv"], ["inspect", "iris.bnc", "--tables"]):
        program = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
        assert program.stdout is not None
        program.stdout.readline()
        program.stdout.close()
        assert (program.wait(60), program.stderr.read()) == (0, b"")  # type: ignore[union-attr]
        program.stderr.close()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow)],
    ids=["INT", "TERM", "HUP"],
)
def test_an_interrupt_ends_quietly_and_leaves_nothing(
    bncli: Bncli, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    if signal.getsignal(sent) is signal.SIG_IGN:
        pytest.skip("whoever started the tests (nohup, say) has this signal ignored, and so does the program then")
    prepare(bncli, "fit iris.csv --param map -q")
    before = {path.name for path in tmp_path.iterdir()}
    with subprocess.Popen(
        [*PROGRAM, "score", "iris.bnc", "-", "-o", "x.csv"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as program:
        assert program.stdin is not None
        program.stdin.write(b"sepal_length,sepal_width,petal_length,petal_width\n" + b"1,2,3,4\n" * 50_000)
        program.stdin.flush()
        deadline = time.monotonic() + 60
        while not _writes(program.pid, tmp_path, before) and program.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _writes(program.pid, tmp_path, before)
        program.send_signal(sent)
        assert program.wait(30) == code
        assert program.stderr.read() == b""  # type: ignore[union-attr]
    assert {path.name for path in tmp_path.iterdir()} == before


def _writes(process: int, folder: Path, before: set[str]) -> bool:
    """Whether it has a temporary file in the folder: with a name, or open without one."""
    if {path.name for path in folder.iterdir()} != before:
        return True
    opened = []
    for link in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):  # closed meanwhile
            opened.append(os.readlink(link))
    return any(path.startswith(f"{folder}/") and path.endswith(" (deleted)") for path in opened)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        ["score", "iris.bnc", "iris.csv", "-q"],
        ["inspect", "iris.bnc"],
        pytest.param(["describe", "iris.csv", "--json", "-q"], marks=pytest.mark.slow),
        ["help"],
        ["--version"],
        pytest.param(["export", "iris.bnc", "--to", "json", "-q"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_that_names_the_standard_output(bncli: Bncli, tmp_path: Path, words: list[str]) -> None:
    prepare(bncli, "fit iris.csv --param map -q")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60)
    message = (
        b"Error: cannot write: no space left on device, standard output; free some space or choose another place\n"
    )
    assert (done.returncode, done.stderr) == (1, message)


LIMITED = """import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from bncli.__main__ import main
main()
"""


@pytest.mark.slow
def test_encode_leaves_nothing_half_written(tmp_path: Path) -> None:
    shutil.copy(ROOT / "sample_data" / "tic_tac_toe.csv", tmp_path / "t.csv")
    words = ["encode", "t.csv", "-o", "t.codes"]
    # without -B, Python 3.11 would keep the bytecode of modules that it compiles here, cut at the limit
    ran = subprocess.run([sys.executable, "-B", "-c", LIMITED, *words], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: cannot write")
    assert len(ran.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
