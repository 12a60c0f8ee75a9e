"""What is wrong with a place where nothing is: a URL, a tilde that the shell left alone, a folder that is not there."""

from __future__ import annotations

import difflib
import os
import re
import shlex

from bncli.errors import BncliError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+.")


def cannot_read(
    path: str, error: OSError, kind: type[BncliError] = BncliError, *, what: str = "", is_data: bool = False
) -> BncliError:
    """The failure to open `path` as one line with what to do; `what` was to be read, `is_data`: stdin would do too."""
    if not isinstance(error, FileNotFoundError):
        return kind(f"cannot read{what}: {(error.strerror or str(error)).lower()}", where=path)
    reason, hint = why_missing(path, is_data=is_data)
    return kind(reason, where=path, hint=hint)


def check_data(path: str) -> None:
    """BncliError where there is no table to read at `path`; a hyphen, the standard input, is always there."""
    if path == "-":
        return
    try:
        os.stat(path)
    except OSError as error:
        raise cannot_read(path, error, is_data=True) from error


def why_missing(path: str, *, is_data: bool = False) -> tuple[str, str]:
    """Why there is no file at `path`, and what to do ("": nothing that could be told)."""
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


def why_unwritable(path: str) -> tuple[str, str]:
    """The same of a file that was to be written."""
    if _URL.match(path):
        return "cannot write to a URL", "write a file, then copy it there"
    if (home := os.path.expanduser(path)) != path:
        return "cannot write: the shell leaves a '~' in quotes, or behind '=', as it is", f"write {home}"
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(folder):  # a file system of the kernel's own, such as /proc, takes no files
        return f"cannot write in the folder '{folder}'", "choose another one"
    return f"cannot write: there is no folder '{folder}'", "create it first"


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
