"""A run within a limit on its address space (`ulimit -v`) is watched by the process that was called.

Where such a limit is met, libraries in C++ that cannot start a thread or map a buffer end the process (abort, a
segmentation fault, an exit of their own) before Python hears of it. So the work is done by a child, forked before any
library is loaded, and an end that it did not announce becomes the one line of every other failure. What libraries write
on the standard error by themselves goes to a file without a name: it is shown after an end that was announced, and
dropped otherwise. Without a limit nothing of this happens.
"""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_ANNOUNCED = b"."
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP")
_PR_SET_PDEATHSIG, _M_ARENA_MAX = 1, -8


def supervised(work: Callable[[], int]) -> int:
    """Return the exit code of `work`, which a child does where there is a limit.

    1 and a line if it ends unannounced.
    """
    limit = address_space_limit()
    if limit is None or not hasattr(os, "fork"):
        return work()
    with tempfile.TemporaryFile() as noise:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            _work(work, send, noise)
        os.close(send)
        with _forwarding(child):
            announced = os.read(receive, 1) == _ANNOUNCED
            _, status = os.waitpid(child, 0)
        os.close(receive)
        code = os.waitstatus_to_exitcode(status)
        if announced and code >= 0:
            noise.seek(0)
            if sys.stderr is not None:
                shutil.copyfileobj(noise, sys.stderr.buffer)
            return code
    what = f"the run ended within a library, under the limit of {limit / 2**20:,.0f} MiB on address space (ulimit -v)"
    print(f"Error: not enough memory, most likely: {what}; allow more, or take fewer --threads", file=sys.stderr)
    return 1


def _work(work: Callable[[], int], send: int, noise: BinaryIO) -> None:
    """Run the work in the child process; never returns."""
    # Less address space kept in reserve; and an end with the parent, were it killed.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        library.mallopt(_M_ARENA_MAX, 2)
    if sys.stderr is not None:
        stderr = os.fdopen(os.dup(2), "wb", 0)
        os.dup2(noise.fileno(), 2)
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
    os._exit(code)  # threads of a library that waits for memory must not keep it


@contextmanager
def _forwarding(child: int) -> Iterator[None]:
    """Request to end are the child's business, and the parent waits for its answer.

    A terminal asks both of them, and asking twice would break off the tidying up.
    """
    numbers = [getattr(signal, name) for name in _FORWARDED if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: _send(child, number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _send(child: int, number: int) -> None:
    if number == signal.SIGTERM or not _is_in_foreground():
        with suppress(ProcessLookupError):
            os.kill(child, number)


def _is_in_foreground() -> bool:
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


def address_space_limit() -> int | None:
    """Return bytes, as `ulimit -v` sets them; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
