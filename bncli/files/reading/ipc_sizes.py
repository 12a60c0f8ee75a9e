"""What the messages of Arrow IPC claim to hold, compared with the file's length before Arrow sets memory aside for it.

A message is a flatbuffer of metadata and a body. Arrow checks its form, but takes three kinds of number on trust: the
metadata's length (of a stream), the rows of a column that needs no bytes, and the length of a compressed buffer once
decompressed, which stands in the buffer's first eight bytes.
Source: the Arrow columnar format 1.5, Message.fbs and File.fbs; RFC 8878 (zstd), the LZ4 block format.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from bncli.errors import BncliError

_EXPANSION = {0: 255, 1: 1 << 15}
"""By codec, the most bytes that one can stand for: LZ4; zstd, whose blocks of 128 KB take at least four."""
_ROWS_PER_BYTE = 8 << 15
"""No column with values of its own has more: one bit a value, compressed by zstd."""
_DICTIONARY, _BATCH = 2, 3
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])


@dataclass(frozen=True)
class _Message:
    """Its flatbuffer, and where in the file its body begins and ends."""

    table: _Table
    begin: int
    end: int


def check_sizes(file: BinaryIO, kind: str, path: str, memory: int | None) -> None:
    """BncliError if a message claims more than the file, or the free memory (bytes, None: unknown), can hold."""
    size = file.seek(0, os.SEEK_END)
    try:
        messages = _of_stream(file, size) if kind == "stream" else _of_file(file, size)
        for message in messages:
            _check(file, message, size, memory)
    except (struct.error, ValueError) as error:
        raise BncliError("the file is damaged or cut off (invalid metadata)", where=path) from error
    except _ClaimError as error:
        raise BncliError(f"the file is damaged or cut off ({error})", where=path) from error
    finally:
        file.seek(0)


class _ClaimError(Exception):
    pass


def _of_stream(file: BinaryIO, size: int) -> Iterator[_Message]:
    at = 0
    while (message := _message_at(file, at, size)) is not None:
        yield message
        at = message.end


def _of_file(file: BinaryIO, size: int) -> Iterator[_Message]:
    """The messages that the footer names; it ends with its length and the magic word."""
    file.seek(max(0, size - 10))
    (length,) = struct.unpack("<i6x", file.read(10))
    if not 0 < length <= size - 10:
        raise _ClaimError(f"a footer of {length} bytes in a file of {size}")
    file.seek(size - 10 - length)
    footer = _Table.root(file.read(length))
    for blocks in (footer.structs(2, _BLOCK), footer.structs(3, _BLOCK)):
        for block in blocks:
            message = _message_at(file, int(block["offset"]), size)
            if message is not None:
                yield message


def _message_at(file: BinaryIO, at: int, size: int) -> _Message | None:
    """None at the end of a stream."""
    if not 0 <= at <= size:
        raise _ClaimError(f"a message at byte {at} of a file of {size}")
    file.seek(at)
    prefix = file.read(8)
    if len(prefix) < 8:  # a stream may end without the mark of its end
        return None
    mark, length = struct.unpack("<Ii", prefix)
    # Before Arrow 0.15 the length stood by itself.
    begin, length = (at + 8, length) if mark == 0xFFFFFFFF else (at + 4, mark)
    if length == 0:
        return None
    if not 0 < length <= size - begin:
        raise _ClaimError(f"{length} bytes of metadata where {size - begin} are left")
    file.seek(begin)
    table = _Table.root(file.read(length))
    begin, body = begin + length, table.number(3, "<q")
    if not 0 <= body <= size - begin:
        raise _ClaimError(f"a message of {body} bytes where {size - begin} are left")
    return _Message(table, begin, begin + body)


def _check(file: BinaryIO, message: _Message, size: int, memory: int | None) -> None:
    header = message.table.number(1, "<B")
    if header not in (_DICTIONARY, _BATCH):
        return
    batch = message.table.table(2)
    if batch is not None and header == _DICTIONARY:
        batch = batch.table(1)
    if batch is None:
        return
    rows = batch.number(0, "<q")
    if not 0 <= rows <= size * _ROWS_PER_BYTE:
        raise _ClaimError(f"{rows} rows in {size} bytes")
    compression = batch.table(3)
    if compression is not None:
        n_bytes = sum(_decompressed_sizes(file, message, batch, _EXPANSION.get(compression.number(0, "<b"), 0)))
        if memory is not None and n_bytes > memory:
            raise _ClaimError(f"a batch of {n_bytes} bytes, where {memory} are free")


def _decompressed_sizes(file: BinaryIO, message: _Message, batch: _Table, expansion: int) -> Iterator[int]:
    for offset, length in batch.structs(2, _BUFFER).tolist():
        if not length:
            continue
        if not (offset >= 0 and 8 <= length <= message.end - message.begin - offset):
            raise _ClaimError(f"a buffer of {length} bytes at {offset} of {message.end - message.begin}")
        file.seek(message.begin + offset)
        (claim,) = struct.unpack("<q", file.read(8))
        # -1: this one was not worth compressing.
        if not -1 <= claim <= length * expansion:
            raise _ClaimError(f"{claim} bytes out of {length} compressed ones")
        yield max(claim, length)


class _Table:
    """A table of a flatbuffer, its fields by their numbers; struct.error where it points out of its bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - self._read("<i", at)

    @staticmethod
    def root(data: bytes) -> _Table:
        return _Table(data, struct.unpack_from("<I", data)[0])

    def number(self, i: int, form: str) -> int:
        """0 where it is absent."""
        at = self._place(i)
        return self._read(form, at) if at else 0

    def table(self, i: int) -> _Table | None:
        at = self._place(i)
        return _Table(self._data, at + self._read("<I", at)) if at else None

    def structs(self, i: int, form: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """A vector of structs, empty where it is absent."""
        at = self._place(i)
        if not at:
            return np.empty(0, form)
        at += self._read("<I", at)
        return np.frombuffer(self._data, form, self._read("<I", at), at + 4)

    def _place(self, i: int) -> int:
        if 4 + 2 * i >= self._read("<H", self._fields):
            return 0
        offset = self._read("<H", self._fields + 4 + 2 * i)
        return self._at + offset if offset else 0

    def _read(self, form: str, at: int) -> int:
        if at < 0:  # which would count from the end
            raise struct.error
        return int(struct.unpack_from(form, self._data, at)[0])
