"""Paths given by users: default outputs, checks before any work begins, and errors that say what to do.

`check_outputs` refuses an output that would replace an input or another output, or that cannot be written.
`cannot_read` and `cannot_write` turn an OSError into a BncliError of one line. A path that does not exist often has
a simple cause (a URL, a `~` that the shell did not expand, a misspelt folder), and the error names it.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
from collections.abc import Iterable

from bncli.errors import BncliError, UsageError

CREATE_AGAIN = "create or download the file again"
"""The hint of errors about damaged data files."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+.")
DESCRIPTOR = re.compile(r"/dev/(?:stdout|stderr|fd/(\d+))|/proc/self/fd/(\d+)")
"""Paths that name an open file of this process."""


def default_output_path(paths: tuple[str, ...], suffix: str) -> str:
    """Return the output path beside the data: `data/x.csv.gz` gives `data/x.bnc`, the folder `d/` gives `d.bnc`.

    Raises UsageError for several files, for the standard input, and for pipes and other special files.
    """
    if len(paths) != 1 or paths[0] == "-":
        what = "the standard input" if paths == ("-",) else "several files"
        raise UsageError(f"data from {what} need -o FILE", hint=f"for example -o data{suffix}")
    if is_special(paths[0]):
        raise UsageError(f"data from {paths[0]} need -o FILE", hint=f"for example -o data{suffix}")
    path = paths[0].rstrip("/") or "/"
    if os.path.isdir(path):
        return (path if os.path.basename(path) not in ("", ".", "..") else os.path.realpath(path)) + suffix
    stem, ending = os.path.splitext(path)
    if ending.lower() in _COMPRESSED:
        stem, ending = os.path.splitext(stem)
    return stem + suffix


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raise UsageError if an output is also an input or another output, and BncliError if an output is not writable.

    None and `-` (the standard streams) are ignored. Special files (see `is_special`) may be named twice.
    """
    targets = [path for path in outputs if path is not None and path != "-"]
    taken = {_file_identity(path): f"the input {path!r}" for path in inputs if path and path != "-"}
    for path in targets:
        if is_special(path):
            continue
        identity = _file_identity(path)
        if identity in taken:
            raise UsageError(f"cannot write {path!r}: {taken[identity]} is the same file", hint="choose another name")
        taken[identity] = f"the output {path!r}"
    for path in targets:
        check_target(path)


def refuse_ending(path: str | None, endings: Iterable[str], what: str) -> None:
    """Raise UsageError if an output path has the extension of a compressed file or one of the unsupported `endings`.

    The message quotes `what`, which names the formats that are written. None, `-` and special files are accepted.
    """
    if path is None or path == "-" or is_special(path):
        return
    ending = os.path.splitext(path)[1].lower()
    if ending in _COMPRESSED:
        raise UsageError(f"cannot write {path!r}: {what}, not compressed", hint="compress the file afterwards")
    if ending in endings:
        raise UsageError(f"cannot write {path!r}: {what}", hint="choose another extension")


def is_special(path: str) -> bool:
    """Return whether the path is a device or a pipe: in /dev (not /dev/shm), or neither a regular file nor a folder."""
    # /dev/stdout may be a regular file, but it is written through the descriptor; /dev/shm has files like any other
    in_devices = path.startswith("/dev/") and not path.startswith("/dev/shm/")
    return in_devices or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))


def repeated_path(paths: Iterable[str]) -> str | None:
    """Return the first path that names the same file as an earlier one, or None."""
    known = set[object]()
    for path in paths:
        identity = _file_identity(path)
        if identity in known:
            return path
        known.add(identity)
    return None


def _file_identity(path: str) -> object:
    """Return a key that is equal for two paths to the same file."""
    try:
        status = os.stat(path)
    except OSError:  # the file does not exist yet
        return os.path.realpath(path)
    # Device and inode also match hard links, and names that differ only in case if the file system ignores it.
    return status.st_dev, status.st_ino


def check_data(path: str) -> None:
    """Raise BncliError if no file or folder is found at `path`; `-`, the standard input, is always accepted."""
    if path == "-":
        return
    try:
        os.stat(path)
    except OSError as error:
        raise cannot_read(path, error, is_data=True) from error


def cannot_read(
    path: str, error: OSError, error_class: type[BncliError] = BncliError, *, what: str = "", is_data: bool = False
) -> BncliError:
    """Build an error of class `error_class` for a failure to open or read `path`.

    `what` names the input, with a space before it. With `is_data` the hint for a URL shows how to pipe the table into
    bncli.
    """
    if not isinstance(error, FileNotFoundError):
        if isinstance(error, IsADirectoryError):
            return error_class(f"cannot read{what}: this is a folder", where=path, hint="give the path of a file")
        return error_class(f"cannot read{what}: {reason_of(error)}", where=path)
    reason, hint = explain_missing(path, is_data=is_data)
    return error_class(reason, where=path, hint=hint)


def explain_missing(path: str, *, is_data: bool = False) -> tuple[str, str]:
    """Return the reason why there is no file at `path`, and a hint, which is empty if there is nothing to suggest."""
    if url := _URL.match(path):
        scheme = url[1].lower()
        reading = " | bncli fit - -o m.bnc" if is_data else ""
        hint = "copy the file to this machine first"
        if scheme == "file":
            hint = f"name it as {re.sub('^[a-zA-Z]+:/+', '/', path)}"
        elif scheme in ("http", "https", "ftp"):
            hint = f"download it first, e.g. curl -L{'' if is_data else 'O'} {shlex.quote(path)}{reading}"
        elif scheme == "s3":
            hint = f"download it first, e.g. aws s3 cp {shlex.quote(path)} {'-' if is_data else '.'}{reading}"
        return "this is a URL, but only files can be read", hint
    if (home := os.path.expanduser(path)) != path:
        return "no such file: the shell does not expand '~' in quotes or after '='", f"write {home}"
    folder, name = os.path.split(path)
    if not folder or os.path.isdir(folder):
        return "no such file", _suggest_name(folder, name)
    while (parent := os.path.dirname(folder)) and parent != folder and not os.path.isdir(parent):
        folder = parent
    return f"there is no folder '{folder}'", _suggest_name(*os.path.split(folder))


def _suggest_name(folder: str, name: str) -> str:
    from difflib import get_close_matches  # imported here, because help does not need it

    try:
        similar = get_close_matches(name, os.listdir(folder or "."), 1)
    except OSError:
        similar = []
    return f"did you mean {os.path.join(folder, similar[0])}?" if similar else ""


def check_target(path: str) -> None:
    """Raise the error that writing to `path` would raise, as far as it can be known before anything is written."""
    target, mode = inspect_target(path)
    if mode is None or stat.S_ISREG(mode):
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            raise cannot_write(path, FileNotFoundError())
        # `atomic_writer` renames a new file, so the folder must be writable, regardless of the permissions of the old
        # file.
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BncliError(f"cannot write: no permission to write in the folder '{folder}'", where=path)


def inspect_target(path: str) -> tuple[str, int | None]:
    """Return the path to write, with links resolved, and the mode of the file there, or None if there is none.

    A path that names an open file of this process, such as /dev/stdout, is returned unchanged with the mode S_IFCHR.
    Raises BncliError for a folder, for a read-only file, and if the path cannot be inspected.
    """
    if path.endswith("/"):
        raise BncliError("cannot write to a folder", where=path, hint="give a file in it")
    if DESCRIPTOR.fullmatch(path):
        return path, stat.S_IFCHR
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target, None
    except OSError as error:
        raise cannot_write(path, error) from error
    if stat.S_ISDIR(mode):
        raise BncliError("cannot write to a folder", where=path, hint="give a file in it")
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        raise BncliError("cannot write: the file is read-only", where=path, hint="choose another name with -o")
    return target, mode


def reason_of(error: OSError) -> str:
    """Return the system's reason for a failure, in lower case, or a clearer one if part of the path is a file."""
    if isinstance(error, NotADirectoryError):
        return "part of the path is a file, not a folder"
    return (error.strerror or str(error)).lower()


def cannot_write(path: str, error: OSError) -> BncliError:
    if not isinstance(error, FileNotFoundError):
        if isinstance(error, IsADirectoryError):
            return BncliError("cannot write: this is a folder", where=path, hint="give the path of a file")
        reason = reason_of(error)
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space or choose another place" if is_full else ""
        return BncliError(f"cannot write: {reason}", where=path, hint=hint)
    folder = os.path.dirname(os.path.realpath(path))
    if _URL.match(path):
        what, hint = "cannot write to a URL", "write a file, then copy it there"
    elif (home := os.path.expanduser(path)) != path:
        what, hint = "cannot write: the shell does not expand '~' in quotes or after '='", f"write {home}"
    elif os.path.isdir(folder):  # file systems such as /proc accept no new files
        what, hint = f"cannot create a file in the folder '{folder}'", "choose another folder"
    else:
        what, hint = f"cannot write: there is no folder '{folder}'", "create it first"
    return BncliError(what, where=path, hint=hint)
