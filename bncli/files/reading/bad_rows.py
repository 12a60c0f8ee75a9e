"""What happens to malformed rows: the run stops, or they are skipped and counted, or a file collects them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO

from bncli.errors import BncliError
from bncli.files.atomic import atomic_writer
from bncli.files.reading.headers import LATIN
from bncli.files.reading.row_blocks import NOT_UTF8, BadRow
from bncli.watch import Note, Watch


class BadRows:
    """Takes the malformed rows in file order. The file that collects them appears when all went well."""

    def __init__(self, policy: str, watch: Watch) -> None:
        self.count = 0
        self._policy = policy
        self._watch = watch
        self._first: BadRow | None = None
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> BadRows:
        if self._policy not in ("fail", "skip"):
            self._file = self._stack.enter_context(atomic_writer(self._policy))
        return self

    def take(self, rows: Iterable[BadRow]) -> None:
        for row in rows:
            if self._policy == "fail":
                raise BncliError(f"malformed row: {row.what}", where=row.where, hint=_cure(row))
            self._first = self._first or row
            self.count += 1
            if self._file is not None:
                # The last row of a file may lack its line end; the next file's row must not run into it.
                self._file.write(row.raw if row.raw.endswith((b"\n", b"\r")) else row.raw + b"\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is None and self._first is not None:
            rows = "malformed row" if self.count == 1 else "malformed rows"
            place = "skipped" if self._file is None else f"put into {self._policy}"
            self._watch(Note(f"{self.count} {rows} {place}; the first: {self._first.what}, {self._first.where}"))


def _cure(row: BadRow) -> str:
    hint = "--on-bad-row skip leaves it out"
    return f"{hint}; or it is encoded otherwise: {LATIN}" if row.what == NOT_UTF8 else hint
