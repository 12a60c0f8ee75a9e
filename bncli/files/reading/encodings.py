"""Text in another encoding than UTF-8, turned into it as it is read, a piece at a time.

UTF-16 and UTF-32 are known by their byte-order mark. A byte that stands for no character goes on as it is, which makes
its row malformed; where the encoding is so wide that nothing after such a fault can be trusted, reading ends.
"""

from __future__ import annotations

import codecs
from typing import Protocol

from bncli.errors import BncliError, UsageError

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PIECE = 1 << 20


def checked_encoding(name: str | None) -> str | None:
    """The name of a text encoding that Python knows, None for UTF-8; UsageError for anything else."""
    if name is None:
        return None
    try:
        found = codecs.lookup(name)
        "".encode(name)  # only encodings of text take a text
        known = found.name
    except (LookupError, ValueError, TypeError) as error:
        hint = "as utf-16, latin-1, cp1252, cp1250, shift_jis"
        raise UsageError(f"unknown encoding '{name}'", hint=hint) from error
    return None if known in ("utf-8", "utf-8-sig") else known


def marked_encoding(first: bytes) -> str | None:
    """The encoding that a byte-order mark names, None without one and for UTF-8."""
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)


class _Bytes(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Transcoder:
    """The bytes of `source`, of which `first` have been read already, as UTF-8."""

    def __init__(self, first: bytes, source: _Bytes, encoding: str, name: str) -> None:
        self._first, self._source = first, source
        self._encoding, self._name = encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
        self._ready = memoryview(b"")
        self._at_end = False

    def read(self, size: int, /) -> bytes:
        """At least one byte, unless the source has ended; at most `size`."""
        while not self._ready and not self._at_end:
            self._ready = memoryview(self._next())
        data, self._ready = bytes(self._ready[:size]), self._ready[size:]
        return data

    def _next(self) -> bytes:
        raw, self._first = self._first or self._source.read(_PIECE), b""
        self._at_end = not raw
        try:
            return self._decoder.decode(raw, self._at_end).encode("utf-8", "surrogateescape")
        except UnicodeError as error:
            reason = getattr(error, "reason", str(error))
            what = f"the text is not {self._encoding} ({reason})"
            raise BncliError(what, where=self._name, hint="--encoding names another") from error
