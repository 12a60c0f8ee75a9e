"""Temporary folders that do not outlive their process for long, even if it was killed.

A process holds a lock on each of its folders. The system releases the lock when the process ends, however that happens.
The process that makes the next temporary folder removes those that are not locked. On Windows, where a folder cannot be
locked, nothing is removed that way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NAME = re.compile(r"bncli-\d+-[a-z0-9_]{8}")


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield the path of a new folder that is removed afterwards; remove the folders of dead processes first."""
    import tempfile  # imported here, because help and the recognition of files do not need it

    _remove_dead_folders(tempfile.gettempdir())
    while True:
        with tempfile.TemporaryDirectory(prefix=f"bncli-{os.getpid()}-") as folder:
            lock = _lock(folder, wait=True)
            try:
                # Another process may have removed the folder before it was locked.
                if os.path.isdir(folder):
                    yield folder
                    return
            finally:
                if lock is not None:
                    os.close(lock)


def _remove_dead_folders(parent: str) -> None:
    """Remove our temporary folders in `parent` that no process has locked; what cannot be removed stays."""
    if os.name != "posix":
        return
    import shutil

    with suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(parent)):
            path = os.path.join(parent, name)
            with suppress(OSError):
                # The root user hands a folder over to the user that runs a database.
                if os.getuid() not in (0, os.lstat(path).st_uid):
                    continue
                lock = _lock(path, wait=False)
                if lock is not None:
                    try:
                        shutil.rmtree(path, ignore_errors=True)
                    finally:
                        os.close(lock)


def _lock(folder: str, *, wait: bool) -> int | None:
    """Return a descriptor that holds the lock of a folder, or None if it cannot be locked (now, if not `wait`)."""
    if os.name != "posix":
        return None
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
