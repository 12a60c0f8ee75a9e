"""Files that are read in place: mapped into memory, and guarded against becoming shorter meanwhile.

If somebody cuts off a mapped file, the system sends SIGBUS to the process that reads the lost part, which ends it
without a message. Python cannot handle this signal: its handlers run between two instructions of Python, and the
instruction that failed never ends. Therefore

- small files are read into memory at once;
- the size of a mapped file is compared with that at the beginning after each pass over it;
- a handler in C, made with ctypes, prints the error and exits with code 1 if the file is cut off during a pass.

The handler cannot clean up. Output files have no name until they are complete (`atomic`), so no half-written file
remains on Linux. A signal for any other reason ends the process as before. A file that is cut off and restored to its
length within one pass, or overwritten at the same length, goes unnoticed.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from bncli.errors import BncliError

MAPPED_FROM = 1 << 26
"""Files of at least this many bytes are mapped; smaller ones are read."""
LARGE_FILE = 1 << 28
"""Pages of a mapped file of at least this many bytes are released after use."""
_PATHS: weakref.WeakKeyDictionary[mmap.mmap, str] = weakref.WeakKeyDictionary()
"""The path of each mapped file that is in use."""
_HANDLERS: list[Any] = []
"""The handler that is installed, which must not be freed."""


def map_file(path: str, file: BinaryIO) -> tuple[bytes | mmap.mmap, Callable[[], None] | None]:
    """Return the content of an open file, and what to call after each pass over it (None if it was read).

    That function raises BncliError if the file has become shorter, and releases the pages of a large one.
    """
    if os.fstat(file.fileno()).st_size < MAPPED_FROM:
        file.seek(0)
        return file.read(), None
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _PATHS[mapped] = path
    _install_handler()
    return mapped, partial(_end_pass, mapped, path)


def _end_pass(mapped: mmap.mmap, path: str) -> None:
    if mapped.size() < len(mapped):
        raise _shorter(path)
    dont_need = getattr(mmap, "MADV_DONTNEED", None)  # Windows does not have it
    if dont_need is not None and len(mapped) >= LARGE_FILE:
        mapped.madvise(dont_need)


def _shorter(path: str) -> BncliError:
    return BncliError(
        "the file was truncated while it was in use", where=path, hint="write the file again, then repeat the command"
    )


def _install_handler() -> None:
    """Install the handler of SIGBUS, once per process, if the system has this signal."""
    if _HANDLERS or not hasattr(signal, "SIGBUS"):
        return
    import ctypes

    try:
        install = ctypes.CDLL(None).signal
    except (OSError, AttributeError):
        return
    install.argtypes, install.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p

    def end(number: int) -> None:
        for mapped, path in list(_PATHS.items()):
            if mapped.size() < len(mapped):
                print(f"Error: {_shorter(path)}", file=sys.stderr, flush=True)
                os._exit(1)
        install(number, None)  # the default action: the instruction is repeated, and the signal ends the process

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end)
    _HANDLERS.append(handler)
    install(int(signal.SIGBUS), ctypes.cast(handler, ctypes.c_void_p))
