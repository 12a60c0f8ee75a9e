"""Whether the files of one table agree on what its columns are.

Types are found over all rows, so a column of numbers in one file and of names in the next would be one of names, or be
left out for its many values, and nobody would know which file is at fault. So that is an error, which names the file.
Only columns whose type nobody has said are looked at; whole and broken numbers are no difference, nor is a column that
is empty in a file.

Conventions: columnar files are compared by the types that they declare. In text, a file with more than two different
numbers and nothing else in a column has numbers, and one without any number has names; a file after one of numbers has
nothing else, and none after one of names has numbers. What turns out to be dates, numbers in a national form or codes
with leading zeros is no difference either: `findings` raises the error, when it comes to names.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bncli.errors import BncliError
from bncli.files.reading.columnar import type_word
from bncli.files.reading.growing import ColumnBlock, Growing, add_different
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.source import Tokens
from bncli.files.reading.vocabulary import CodedTexts

_NUMBERS, _NAMES = "numbers", "names"
_N_SHOWN = 40
_N_TRIED = 64


class PartTypes:
    """Hears of every block of a table in order; columns hear of the first file that differs from those before it."""

    def __init__(self, columns: Mapping[str, Growing], said: frozenset[str], tokens: Tokens) -> None:
        self._open = [name for name in columns if name not in said]
        self._declared: dict[str, tuple[str, str, str]] = {}
        self._typed = [_Typed(column, tokens) if column.is_free else None for column in columns.values()]
        self._path: str | None = None

    def declared(self, path: str, schema: pa.Schema) -> None:
        """BncliError where a columnar file declares another type than the first columnar file."""
        for name in self._open:
            kind = schema.field(name).type
            word = type_word(kind)
            if word is None:
                continue
            known, first, before = self._declared.setdefault(name, (word, path, str(kind)))
            if word != known:
                raise _error(name, first, before, str(kind), path)

    def take(self, path: str, blocks: Sequence[ColumnBlock]) -> None:
        """The next rows, which the columns have taken already."""
        if path != self._path:
            self.finish()
            self._path = path
        for typed, block in zip(self._typed, blocks, strict=True):
            if typed is not None:
                typed.take(path, block)

    def finish(self) -> None:
        """A file has ended."""
        for typed in self._typed:
            if typed is not None and self._path is not None:
                typed.end(self._path)


class _File(NamedTuple):
    path: str
    kind: str


class _Typed:
    """A column: the first file that tells what it is, and what is known of the file in hand."""

    def __init__(self, column: Growing, tokens: Tokens) -> None:
        self._column, self._tokens = column, tokens
        self._first: _File | None = None
        self._settled = False
        self._numbers: list[float] = []
        self._has_text = False

    def take(self, path: str, block: ColumnBlock) -> None:
        if self._settled:
            return
        first, text = self._first, self._column.non_numeric
        if first is not None and first.kind == _NUMBERS:
            if text is not None:
                shown = text.text if len(text.text) <= _N_SHOWN else text.text[:_N_SHOWN] + "..."
                self._differ(f"'{shown}'", text.where or path)
            return
        if not self._has_text or (first is None and not self._numbers):
            self._look(block)
        self._settled = first is None and self._has_text and bool(self._numbers)

    def _look(self, block: ColumnBlock) -> None:
        if isinstance(block, CodedTexts):
            used = np.flatnonzero(np.bincount(block.codes, minlength=len(block.texts)))
            # among names a few are enough to see whether there are numbers at all
            used = used[:_N_TRIED] if self._has_text else used
            numbers, wrong = to_numbers(block.texts.take(pa.array(used)), self._tokens.number)
            self._has_text = self._has_text or wrong is not None
            block = numbers
        add_different(self._numbers, block)

    def end(self, path: str) -> None:
        kind = _NAMES if self._has_text else _NUMBERS if len(self._numbers) > 2 else None
        if self._first is None:
            self._first = None if kind is None else _File(path, kind)
        elif self._first.kind == _NAMES and kind == _NUMBERS:
            self._differ(_NUMBERS, path)
        self._numbers, self._has_text = [], False

    def _differ(self, found: str, where: str) -> None:
        assert self._first is not None
        self._column.difference = _error(self._column.want.name, self._first.path, self._first.kind, found, where)
        self._settled = True


def _error(name: str, first: str, before: str, found: str, where: str) -> BncliError:
    quoted = shlex.quote(name)
    hint = f"write it alike in all files; --categorical {quoted} reads it as names, --ignore {quoted} leaves it out"
    return BncliError(f"column '{name}' has {before} in {first}, but {found} here", where=where, hint=hint)
