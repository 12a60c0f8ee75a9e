"""Running a command in a child process if the address space is limited (`ulimit -v`).

At such a limit, C++ libraries that cannot start a thread or map a buffer end the process (abort, segmentation fault, or
exit) before Python can catch anything. Therefore a child process does the work. It is forked before any library is
loaded, and it notifies the parent just before it exits. If it ends without this notice, and not because of a forwarded
signal, the parent prints a one-line error.

The messages that libraries write directly to the standard error go to a temporary file. The parent prints them unless
it prints its own error. Without a limit there is no child process.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import BinaryIO

_ANNOUNCED = b"."
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP")
_PR_SET_PDEATHSIG, _M_MMAP_THRESHOLD, _M_ARENA_MAX = 1, -3, -8


def address_space_limit() -> int | None:
    """Return the limit of `ulimit -v` in bytes, or None if there is no limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def run_within_memory_limit(work: Callable[[], int]) -> int:
    """Run `work`, in a child process if the address space is limited, and return its exit code.

    If a library ends the child, print an error and return 1.
    """
    limit = address_space_limit()
    if limit is None or not hasattr(os, "fork"):
        return work()
    with tempfile.TemporaryFile() as library_messages:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            _run_in_child(work, send, library_messages)
        os.close(send)
        with _forwarding_signals(child):
            is_announced = os.read(receive, 1) == _ANNOUNCED
            _, status = os.waitpid(child, 0)
        os.close(receive)
        code = os.waitstatus_to_exitcode(status)
        # the exit codes of a child that a forwarded signal ended before its work began
        forwarded = [128 + getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
        if code >= 0 and (is_announced or code in forwarded):
            library_messages.seek(0)
            if sys.stderr is not None:
                shutil.copyfileobj(library_messages, sys.stderr.buffer)
            return code
    what = f"a library stopped the program; the address space is limited to {limit / 2**20:,.0f} MiB (ulimit -v)"
    print(f"Error: probably not enough memory: {what}; raise the limit, or lower --threads", file=sys.stderr)
    return 1


def _run_in_child(work: Callable[[], int], send: int, library_messages: BinaryIO) -> None:
    """Run the work, announce its end on the pipe `send`, and exit the process with the exit code of the work."""
    # Arrow's default memory pool reserves address space that is never used.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # not at the top: without a limit nothing needs it

        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))  # end with the parent if that is killed
        library.mallopt(_M_ARENA_MAX, 2)  # every further malloc arena reserves 64 MiB of address space
        # Arrow reserves for each column of a CSV file as many bytes as the block of text has. A threshold that is set
        # does not grow, so that what is freed goes back to the system instead of leaving holes between columns.
        library.mallopt(_M_MMAP_THRESHOLD, 32 << 10)
    if sys.stderr is not None:
        # Python keeps the real standard error, while libraries write to file descriptor 2.
        stderr = os.fdopen(os.dup(2), "wb", 0)
        os.dup2(library_messages.fileno(), 2)
        sys.stderr = io.TextIOWrapper(stderr, errors="backslashreplace", write_through=True)
    code = 1
    try:
        code = work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt as stop:
        code = 128 + (stop.args[0] if stop.args else signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    with suppress(Exception):
        sys.stdout.flush()
    os.write(send, _ANNOUNCED)
    # Exit at once: threads of a library that wait for memory could keep the process alive.
    os._exit(code)


@contextmanager
def _forwarding_signals(child: int) -> Iterator[None]:
    """Forward signals that end the run to the child, while the parent waits for it.

    A terminal sends ^C and a hangup to both processes. The child must receive them only once, because a second signal
    would interrupt its cleanup.
    """
    numbers = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    previous = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if previous[number] is not signal.SIG_IGN:
            signal.signal(number, partial(_forward, child))
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _forward(child: int, number: int, _frame: object) -> None:
    if number == signal.SIGTERM or not _is_in_foreground():
        with suppress(ProcessLookupError):
            os.kill(child, number)


def _is_in_foreground() -> bool:
    """Return whether this process belongs to the foreground group of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
