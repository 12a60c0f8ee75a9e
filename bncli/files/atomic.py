"""A file appears whole or not at all.

The bytes go to a temporary file in the same folder, which is flushed to the disk and then renamed over the target;
whatever goes wrong before that (a full disk, ^C, an error of the caller) removes it and leaves an older file as it
was. Where the system has files without a name (O_TMPFILE on Linux) the temporary one has none until the moment before
the rename, so that nothing is left even of a process that is killed. Elsewhere it has a name that tells whose it is,
and what dead processes left beside the target is removed. Conventions: a symbolic link is followed; an existing file
keeps its permission bits, and a read-only one is refused although a rename could replace it. What is no regular file
(/dev/stdout, a pipe, /dev/null) is written directly: there is nothing to rename.

What is wrong with a place where nothing is: a URL, a tilde that the shell left alone, a folder that is not there.

Where rows go while they come: a file, whole or not at all, or the standard output.

Trouble with the standard output is told in one line, as `atomic_writer` tells that of files; a closed pipe stays a
BrokenPipeError, which ends a run quietly.
"""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, cast

from bncli.errors import BncliError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+.")
_DESCRIPTORS = "/proc/self/fd"
_DAY = 24 * 3600
"""Seconds."""
_DESCRIPTOR = re.compile(r"/dev/(?:stdout|stderr|fd/(\d+))|/proc/self/fd/(\d+)")


class _Output(io.FileIO):
    """A raw file whose failures are told in terms of the path that the user named.

    Where it is to take the place of another it has a temporary name or, until the bytes are complete, none.
    """

    def __init__(self, file: str | int, mode: str, path: str, *, unnamed: bool = False) -> None:
        super().__init__(file, mode)
        self._path = path
        self._temporary = file if mode == "xb" and isinstance(file, str) else None
        # A copy: the caller may close the file, and a file without a name would be gone with it.
        self._unnamed = os.dup(self.fileno()) if unnamed else None

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:  # an OSError too, but no failure: `| head` has seen enough
            raise
        except OSError as error:
            raise _failure(self._path, error) from error

    def commit(self, target: str, mode: int | None) -> None:
        """Put the temporary file in the target's place."""
        try:
            self.close()
            # Before the rename, or a power cut could leave the name without the bytes.
            if self._unnamed is not None:
                if mode is not None:
                    os.fchmod(self._unnamed, stat.S_IMODE(mode))
                os.fsync(self._unnamed)
                self._temporary = _temporary_name(target)
                # Gives a file without a name one that is free; a link never replaces a file, so that a rename must
                # follow.
                # Only with a folder's descriptor does Python call linkat, which can follow the link to the open file.
                os.link(
                    f"{_DESCRIPTORS}/{self._unnamed}", self._temporary, src_dir_fd=self._unnamed, follow_symlinks=True
                )
            else:
                assert self._temporary is not None
                # Waits until the bytes are on the disk; a file of its own, for the caller may have closed the one it
                # wrote to.
                descriptor = os.open(self._temporary, os.O_RDWR)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                if mode is not None:
                    os.chmod(self._temporary, stat.S_IMODE(mode))
            os.replace(self._temporary, target)
        except OSError as error:
            raise _failure(self._path, error) from error
        self._temporary = None

    def discard(self) -> None:
        """Remove the temporary file if it did not take the target's place."""
        if self._unnamed is not None:
            with suppress(OSError):
                os.close(self._unnamed)
            self._unnamed = None
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary)


class AbandonableStream(io.RawIOBase):
    """A file that swallows bytes once it is abandoned: Arrow's Parquet writer writes a footer whatever has failed."""

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


def cannot_read(
    path: str, error: OSError, kind: type[BncliError] = BncliError, *, what: str = "", is_data: bool = False
) -> BncliError:
    """Return the failure to open `path` as one line with what to do.

    `what` was to be read, `is_data`: stdin would do too.
    """
    if not isinstance(error, FileNotFoundError):
        return kind(f"cannot read{what}: {(error.strerror or str(error)).lower()}", where=path)
    reason, hint = why_missing(path, is_data=is_data)
    return kind(reason, where=path, hint=hint)


def check_data(path: str) -> None:
    """Raise BncliError where there is no table to read at `path`; a hyphen, the standard input, is always there."""
    if path == "-":
        return
    try:
        os.stat(path)
    except OSError as error:
        raise cannot_read(path, error, is_data=True) from error


def why_missing(path: str, *, is_data: bool = False) -> tuple[str, str]:
    """Return why there is no file at `path`, and what to do ("": nothing that could be told)."""
    if url := _URL.match(path):
        return "this is a URL, and only files are read", _how_to_fetch(path, url[1].lower(), is_data)
    if (home := os.path.expanduser(path)) != path:
        return "no such file: the shell leaves a '~' in quotes, or behind '=', as it is", f"write {home}"
    folder, name = os.path.split(path)
    if not folder or os.path.isdir(folder):
        return "no such file", _near(folder, name)
    while (upper := os.path.dirname(folder)) and upper != folder and not os.path.isdir(upper):
        folder = upper
    return f"there is no folder '{folder}'", _near(*os.path.split(folder))


def _how_to_fetch(url: str, scheme: str, is_data: bool) -> str:
    if scheme == "file":
        return f"name it as {re.sub('^[a-zA-Z]+:/+', '/', url)}"
    reading = " | bncli fit - -o m.bnc" if is_data else ""
    if scheme in ("http", "https", "ftp"):
        return f"download it first, e.g. curl -L{'' if is_data else 'O'} {shlex.quote(url)}{reading}"
    if scheme == "s3":
        return f"download it first, e.g. aws s3 cp {shlex.quote(url)} {'-' if is_data else '.'}{reading}"
    return "copy it to a folder of this machine first"


def _near(folder: str, name: str) -> str:
    try:
        near = difflib.get_close_matches(name, os.listdir(folder or "."), 1)
    except OSError:
        near = []
    return f"did you mean {os.path.join(folder, near[0])}?" if near else ""


def why_unwritable(path: str) -> tuple[str, str]:
    """Return the same of a file that was to be written."""
    if _URL.match(path):
        return "cannot write to a URL", "write a file, then copy it there"
    if (home := os.path.expanduser(path)) != path:
        return "cannot write: the shell leaves a '~' in quotes, or behind '=', as it is", f"write {home}"
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(folder):  # a file system of the kernel's own, such as /proc, takes no files
        return f"cannot write in the folder '{folder}'", "choose another one"
    return f"cannot write: there is no folder '{folder}'", "create it first"


def write_bytes(path: str, data: bytes) -> None:
    """Write the whole content of a file at once."""
    with atomic_writer(path) as file:
        file.write(data)


def check_target(path: str) -> None:
    """Raise what writing to `path` would raise, as far as that can be known before there is anything to write."""
    target, mode = _inspect_target(path)
    if mode is None or stat.S_ISREG(mode):
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            raise _failure(path, FileNotFoundError())
        # A rename writes to the folder, whatever the rights of the file in it.
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BncliError(f"cannot write: no permission to write in the folder '{folder}'", where=path)


def _inspect_target(path: str) -> tuple[str, int | None]:
    """Where the bytes shall end up, links followed, and its mode (None: nothing there yet)."""
    if path.endswith("/"):
        raise BncliError("cannot write to a folder", where=path, hint="name a file in it")
    if _DESCRIPTOR.fullmatch(path):
        return path, stat.S_IFCHR
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target, None
    except OSError as error:
        raise _failure(path, error) from error
    if stat.S_ISDIR(mode):
        raise BncliError("cannot write to a folder", where=path, hint="name a file in it")
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        raise BncliError("cannot write: the file is read-only", where=path, hint="choose another name with -o")
    return target, mode


def _failure(path: str, error: OSError) -> BncliError:
    if isinstance(error, FileNotFoundError):
        what, hint = why_unwritable(path)
        return BncliError(what, where=path, hint=hint)
    reason = (error.strerror or str(error)).lower()
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return BncliError(f"cannot write: {reason}", where=path, hint="make room or choose another place" if full else "")


@contextmanager
def atomic_writer(path: str) -> Iterator[BinaryIO]:
    """Yield a binary file to write to, which becomes `path` when the block ends well and vanishes when it does not.

    A failure to write is a BncliError that names `path`; a closed pipe stays a BrokenPipeError.
    """
    target, mode = _inspect_target(path)
    raw = _open(path, target, mode)
    file = io.BufferedWriter(raw, 1 << 18)
    try:
        yield cast(BinaryIO, file)
        if not file.closed:
            file.flush()
        if mode is None or stat.S_ISREG(mode):
            raw.commit(target, mode)
    finally:
        # The raw file first: closing the buffered one would flush what is left once more.
        raw.close()
        raw.discard()


def _open(path: str, target: str, mode: int | None) -> _Output:
    try:
        descriptor = _DESCRIPTOR.fullmatch(path)
        if descriptor:
            number = descriptor[1] or descriptor[2] or (2 if path.endswith("err") else 1)
            # A copy: closing it must not close the stream itself; opening /dev/stdout anew would write from its start.
            return _Output(os.dup(int(number)), "wb", path)
        if mode is not None and not stat.S_ISREG(mode):
            return _Output(target, "wb", path)
        # In the target's folder, as a rename cannot cross file systems.
        unnamed = _unnamed(os.path.dirname(target))
        if unnamed is not None:
            return _Output(unnamed, "wb", path, unnamed=True)
        _sweep(target)
        # "x" never writes to what another run began
        return _Output(_temporary_name(target), "xb", path)
    except OSError as error:
        raise _failure(path, error) from error


def _unnamed(folder: str) -> int | None:
    """Return a descriptor of a new file without a name; None where the system, or the file system, has none."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        # Old kernels take the folder for the file, network file systems do not know the flag; a full disk is neither.
        if error.errno in (errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _sweep(target: str) -> None:
    """Remove temporary files of this target whose process is gone, and which nobody has written to for a day.

    The day is for folders that machines share: a number says nothing of the processes of another machine.
    """
    folder, name = os.path.split(target)
    pattern = re.compile(rf"\.{re.escape(name[:40])}\.(\d+)\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError):
        for found in os.listdir(folder):
            own = pattern.fullmatch(found)
            path = os.path.join(folder, found)
            if own and not _is_alive(int(own[1])) and os.stat(path).st_mtime < time.time() - _DAY:
                os.unlink(path)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # there signal 0 is no question but the end of the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _temporary_name(target: str) -> str:
    """Beside the target: hidden, never taken twice, with the number of this process in it."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:40]}.{os.getpid()}.{os.urandom(6).hex()}.tmp")


def output_stream(path: str | None) -> AbstractContextManager[BinaryIO]:
    """Return a place to write bytes to: the file at `path`, or the standard output for None."""
    if path is None and sys.stdout is None:
        raise BncliError("the standard output is closed", hint="name a file with -o")
    # Not closed at the end: the interpreter flushes it, and would complain of a closed one.
    return nullcontext(sys.stdout.buffer) if path is None else atomic_writer(path)


@contextmanager
def write_faults() -> Iterator[None]:
    """Around every write to an output stream."""
    try:
        yield
    except BrokenPipeError:  # an OSError too, but no failure: `| head` has seen enough
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BncliError(f"cannot write: {reason}", where="standard output") from error
