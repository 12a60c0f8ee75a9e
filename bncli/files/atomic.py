"""Output files that appear complete or not at all, the standard output, and temporary folders.

The bytes go to a temporary file in the folder of the target. The temporary file is flushed to the disk and then
renamed to the target. Any failure before the rename (a full disk, ^C, an error in the caller) removes it, and an
existing target stays as it was.

On Linux, if the file system supports O_TMPFILE, the temporary file has no name until just before the rename, so that
nothing remains even if the process is killed. Elsewhere its name contains the process ID. On POSIX systems, files that
dead processes left are removed after a day, when the same target is next written.

Conventions: a symbolic link is followed; an existing file keeps its permission bits; a read-only file is refused,
although a rename could replace it. A path that is not a regular file (/dev/stdout, a pipe, /dev/null) is written
directly, since there is nothing to rename.

A process holds a lock on each of its temporary folders. The system releases the lock when the process ends, however
that happens. The process that makes the next temporary folder removes those that are not locked. On Windows, where a
folder cannot be locked, nothing is removed that way.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, cast

from bncli.errors import BncliError
from bncli.files.paths import DESCRIPTOR, cannot_write, inspect_target

_DESCRIPTORS = "/proc/self/fd"
_SECONDS_PER_DAY = 24 * 3600
_NAME = re.compile(r"bncli-\d+-[a-z0-9_]{8}")


def open_output(path: str | None) -> AbstractContextManager[BinaryIO]:
    """Return a context manager for a file to write bytes to: an atomic one at `path`, or the standard output (None).

    Raises BncliError if the standard output is closed.
    """
    if path is None and sys.stdout is None:
        raise BncliError("the standard output is closed", hint="add -o FILE")
    # The standard output stays open: the interpreter flushes it at exit and would report an error if it were closed.
    return nullcontext(sys.stdout.buffer) if path is None else atomic_writer(path)


def name_standard_output() -> None:
    """Make failed writes to `sys.stdout` raise a BncliError that names it, unless it is closed or a terminal."""
    stdout = sys.stdout
    if stdout is None or stdout.isatty():
        return
    file = io.BufferedWriter(_OutputFile(stdout.fileno(), "wb", "standard output", closefd=False))
    newline = None if os.name == "nt" else "\n"  # as Python opens it
    sys.stdout = io.TextIOWrapper(file, stdout.encoding, stdout.errors, newline)


class AbandonableStream(io.RawIOBase):
    """A file that ignores further bytes once `abandoned` is set.

    Arrow's Parquet writer writes a footer when it is closed, even after a failure; this keeps the footer out.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.abandoned = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self.abandoned else self._file.write(data)

    def flush(self) -> None:
        if not self.abandoned and not self._file.closed:
            self._file.flush()


def write_bytes(path: str, data: bytes) -> None:
    """Write `data` to the file `path` atomically (see `atomic_writer`)."""
    with atomic_writer(path) as file:
        file.write(data)


@contextmanager
def atomic_writer(path: str) -> Iterator[BinaryIO]:
    """Yield a binary file that becomes `path` if the block succeeds and vanishes if it raises.

    If `path` is not a regular file, such as a pipe, the bytes are written to it directly. Raises BncliError, which
    names `path`, if writing fails, and BrokenPipeError if the reader of a pipe has closed it.
    """
    target, mode = inspect_target(path)
    raw = _open_temporary(path, target, mode)
    file = io.BufferedWriter(raw, 1 << 18)
    try:
        yield cast(BinaryIO, file)
        if not file.closed:
            file.flush()
        if mode is None or stat.S_ISREG(mode):
            raw.commit(target, mode)
    finally:
        # The raw file is closed first: closing the buffered one would flush its remaining bytes once more.
        raw.close()
        raw.discard()


class _OutputFile(io.FileIO):
    """A raw file whose write errors name the path that the user gave.

    `mode` is "xb" for a temporary file with a name; `unnamed` marks a temporary file without one.
    """

    def __init__(self, file: str | int, mode: str, path: str, *, unnamed: bool = False, closefd: bool = True) -> None:
        super().__init__(file, mode, closefd)
        self._path = path
        self._temporary = file if mode == "xb" and isinstance(file, str) else None
        # A duplicate: the caller may close the file, and a file without a name would be lost with its descriptor.
        self._unnamed = os.dup(self.fileno()) if unnamed else None

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:  # not a failure: the reader of the pipe, such as `head`, has read enough
            raise
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def commit(self, target: str, mode: int | None) -> None:
        """Flush the temporary file to disk and rename it to `target`, with the permission bits of `mode`, if any."""
        try:
            self.close()
            # The bytes reach the disk before the rename; otherwise a power cut could leave the name without the bytes.
            if self._unnamed is not None:
                if mode is not None:
                    os.fchmod(self._unnamed, stat.S_IMODE(mode))
                os.fsync(self._unnamed)
                self._temporary = _temporary_name(target)
                # A link gives the file its first name. It never replaces a file, so a rename must follow. Python
                # calls linkat, which can follow the link to the open file, only if it is passed a folder descriptor.
                os.link(
                    f"{_DESCRIPTORS}/{self._unnamed}", self._temporary, src_dir_fd=self._unnamed, follow_symlinks=True
                )
            else:
                assert self._temporary is not None
                # A new descriptor, since the caller may have closed the one that it wrote to.
                descriptor = os.open(self._temporary, os.O_RDWR)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                if mode is not None:
                    os.chmod(self._temporary, stat.S_IMODE(mode))
            os.replace(self._temporary, target)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._temporary = None

    def discard(self) -> None:
        """Remove the temporary file unless it was renamed."""
        if self._unnamed is not None:
            with suppress(OSError):
                os.close(self._unnamed)
            self._unnamed = None
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary)


def _open_temporary(path: str, target: str, mode: int | None) -> _OutputFile:
    """Open a temporary file for `target`, or the target itself if it is not a regular file."""
    try:
        descriptor = DESCRIPTOR.fullmatch(path)
        if descriptor:
            number = descriptor[1] or descriptor[2] or (2 if path.endswith("err") else 1)
            # A duplicate, since closing it must not close the stream itself; opening /dev/stdout by its name would
            # write from its start.
            return _OutputFile(os.dup(int(number)), "wb", path)
        if mode is not None and not stat.S_ISREG(mode):
            return _OutputFile(target, "wb", path)
        # The temporary file is in the folder of the target, because a rename cannot cross file systems.
        unnamed = _open_unnamed(os.path.dirname(target))
        if unnamed is not None:
            return _OutputFile(unnamed, "wb", path, unnamed=True)
        _remove_stale_files(target)
        # Mode "x" never opens a file that another run has begun.
        return _OutputFile(_temporary_name(target), "xb", path)
    except OSError as error:
        raise cannot_write(path, error) from error


def _open_unnamed(folder: str) -> int | None:
    """Return the descriptor of a new file without a name, or None if the system does not support such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        # Old kernels try to open the folder itself, and network file systems do not know the flag. A full disk is
        # neither of these and stays an error.
        if error.errno in (errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _remove_stale_files(target: str) -> None:
    """Remove temporary files of this target that are more than a day old and whose process has ended.

    The day protects files of other machines that share the folder, whose process IDs mean nothing here.
    """
    folder, name = os.path.split(target)
    pattern = re.compile(rf"\.{re.escape(name[:40])}\.(\d+)\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError):
        for entry in os.listdir(folder):
            match = pattern.fullmatch(entry)
            path = os.path.join(folder, entry)
            if match and not _is_alive(int(match[1])) and os.stat(path).st_mtime < time.time() - _SECONDS_PER_DAY:
                os.unlink(path)


def _is_alive(process: int) -> bool:
    """Return whether the process may still be running."""
    if os.name != "posix":  # on Windows signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _temporary_name(target: str) -> str:
    """Return the path of a hidden file beside the target, with a unique name that contains the process ID."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:40]}.{os.getpid()}.{os.urandom(6).hex()}.tmp")


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
    """Remove bncli's temporary folders in `parent` that no process has locked, if the user owns them or is root.

    A folder that cannot be removed stays. On Windows nothing is removed.
    """
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
    """Lock a folder and return the descriptor that holds the lock; return None if it cannot be locked.

    If another process holds the lock, wait for it if `wait` is true, and otherwise return None.
    """
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
