"""Where rows go while they come: a file, whole or not at all, or the standard output.

Trouble with the standard output is told in one line, as `atomic_writer` tells that of files; a closed pipe stays a
BrokenPipeError, which ends a run quietly.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, BinaryIO

from bncli.errors import BncliError
from bncli.files.atomic import atomic_writer


def output_stream(path: str | None) -> AbstractContextManager[BinaryIO]:
    """A place to write bytes to: the file at `path`, or the standard output for None."""
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
