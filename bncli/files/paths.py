"""Where a command writes when it is not told, and what it must never write over."""

from __future__ import annotations

import os
from collections.abc import Iterable

from bncli.errors import UsageError

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def beside(paths: tuple[str, ...], suffix: str) -> str:
    """The file beside the data with another ending: data/x.csv.gz -> data/x.bnc, the folder d/ -> d.bnc."""
    if len(paths) != 1 or paths[0] == "-":
        what = "the standard input" if paths == ("-",) else "several files"
        raise UsageError(f"data from {what} needs -o FILE", hint=f"for example -o data{suffix}")
    if _is_special(paths[0]):
        raise UsageError(f"data from {paths[0]} needs -o FILE", hint=f"for example -o data{suffix}")
    path = paths[0].rstrip("/") or "/"
    if os.path.isdir(path):
        return (path if os.path.basename(path) not in ("", ".", "..") else os.path.realpath(path)) + suffix
    stem, ending = os.path.splitext(path)
    if ending.lower() in _COMPRESSED:
        stem, ending = os.path.splitext(stem)
    return stem + suffix


def refuse_overwriting(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """UsageError when an output is one of the inputs or one of the other outputs."""
    taken = {_identity(path): f"is read from {path!r}" for path in inputs if path and path != "-"}
    for path in outputs:
        if path is None or _is_special(path):
            continue
        if _identity(path) in taken:
            raise UsageError(f"cannot write {path!r}: it {taken[_identity(path)]}", hint="choose another name")
        taken[_identity(path)] = f"is written as {path!r}"


def _identity(path: str) -> object:
    """Equal for two names of one file."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _is_special(path: str) -> bool:
    """Whether writing to it replaces nothing: a pipe, a terminal, /dev/null."""
    return path.startswith("/dev/") or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))
