"""Where a command writes when it is not told, and whether it can and may write where it is told."""

from __future__ import annotations

import os
from collections.abc import Iterable

from bncli.errors import UsageError
from bncli.files.atomic import check_target

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def path_beside_data(paths: tuple[str, ...], suffix: str) -> str:
    """Return the file beside the data with another ending: data/x.csv.gz -> data/x.bnc, the folder d/ -> d.bnc."""
    if len(paths) != 1 or paths[0] == "-":
        what = "the standard input" if paths == ("-",) else "several files"
        raise UsageError(f"data from {what} needs -o FILE", hint=f"for example -o data{suffix}")
    if is_special(paths[0]):
        raise UsageError(f"data from {paths[0]} needs -o FILE", hint=f"for example -o data{suffix}")
    path = paths[0].rstrip("/") or "/"
    if os.path.isdir(path):
        return (path if os.path.basename(path) not in ("", ".", "..") else os.path.realpath(path)) + suffix
    stem, ending = os.path.splitext(path)
    if ending.lower() in _COMPRESSED:
        stem, ending = os.path.splitext(stem)
    return stem + suffix


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Before any work: an error when an output is one of the inputs or of the others, or cannot be written there."""
    outputs = [path for path in outputs if path not in (None, "-")]
    refuse_overwriting(outputs, inputs)
    for path in outputs:
        if path is not None:
            check_target(path)


def refuse_ending(path: str | None, endings: Iterable[str], what: str) -> None:
    """Raise UsageError when the ending of an output asks for something else than `what`.

    Compression, another format.
    """
    if path is None or path == "-" or is_special(path):
        return
    ending = os.path.splitext(path)[1].lower()
    if ending in _COMPRESSED:
        raise UsageError(f"cannot write {path!r}: {what}, not compressed", hint="compress the file afterwards")
    if ending in endings:
        raise UsageError(f"cannot write {path!r}: {what}", hint="choose another ending")


def refuse_overwriting(outputs: Iterable[str | None], inputs: Iterable[str | None]) -> None:
    """Raise UsageError when an output is one of the inputs or one of the other outputs."""
    taken = {_identity(path): f"is read from {path!r}" for path in inputs if path and path != "-"}
    for path in outputs:
        if path is None or is_special(path):
            continue
        if _identity(path) in taken:
            raise UsageError(f"cannot write {path!r}: it {taken[_identity(path)]}", hint="choose another name")
        taken[_identity(path)] = f"is written as {path!r}"


def _identity(path: str) -> object:
    """Equal for two names of one file."""
    try:
        status = os.stat(path)
    except OSError:  # not there yet
        return os.path.realpath(path)
    return status.st_dev, status.st_ino  # hard links, and names that differ in case alone where the system ignores it


def is_special(path: str) -> bool:
    """Return whether writing to it replaces nothing: a pipe, a terminal, /dev/null."""
    return path.startswith("/dev/") or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)))
