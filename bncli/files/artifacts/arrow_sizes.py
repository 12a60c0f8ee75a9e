"""Check the sizes that an Arrow IPC file claims before Arrow allocates memory for them.

A message of Arrow IPC is metadata, a flatbuffer, followed by a body. Arrow validates the structure of the metadata, but
trusts three kinds of numbers: the length of the metadata (in a stream), the number of rows of a column that needs no
bytes, and the size of a compressed buffer after decompression, which is stored in the first eight bytes of the buffer.

Source: the Arrow columnar format 1.5, Message.fbs and File.fbs; RFC 8878 (zstd); the LZ4 block format.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from bncli.errors import BncliError
from bncli.files.paths import CREATE_AGAIN

_DICTIONARY, _BATCH = 2, 3
"""Message types that carry buffers."""
_MOST_EXPANSION = {0: 255, 1: 1 << 15}
"""Maximum decompressed bytes per compressed byte of LZ4 (0) and zstd (1), whose 128 KB blocks take at least 4 bytes."""
_MOST_ROWS_PER_BYTE = 8 << 15
"""The maximum number of rows per byte of the file: columns of one bit per value, compressed by zstd."""
_BUFFER = np.dtype([("offset", "<i8"), ("length", "<i8")])
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])


class _ClaimError(Exception):
    """Raised for a file that claims a size that cannot be true."""


class _Message(NamedTuple):
    """The metadata of a message, and where its body begins and ends in the file, in bytes."""

    metadata: _FlatTable
    begin: int
    end: int


def check_sizes(file: BinaryIO, kind: str, path: str, memory: int | None) -> int:
    """Return the number of rows; raise BncliError if a message is invalid or claims more than could be true.

    A message must not claim more than the file can hold, nor a compressed batch more than the free memory. kind:
    "stream" or "file". memory: free memory in bytes, or None to skip this check.
    """
    size = file.seek(0, os.SEEK_END)
    try:
        return sum(_check_message(file, message, size, memory) for message in _messages(file, kind, size))
    except (struct.error, ValueError) as error:
        what = "the file is damaged or cut off (invalid metadata)"
        raise BncliError(what, where=path, hint=CREATE_AGAIN) from error
    except _ClaimError as error:
        raise BncliError(f"the file is damaged or cut off ({error})", where=path, hint=CREATE_AGAIN) from error
    finally:
        file.seek(0)


def _messages(file: BinaryIO, kind: str, size: int) -> Iterator[_Message]:
    if kind == "stream":
        position = 0
        while (message := _message_at(file, position, size)) is not None:
            yield message
            position = message.end
        return
    # The footer, which lists the messages of a file, is followed by its length and a magic word of six bytes.
    file.seek(max(0, size - 10))
    (length,) = struct.unpack("<i6x", file.read(10))
    if not 0 < length <= size - 10:
        raise _ClaimError(f"a footer of {length} bytes in a file of {size}")
    file.seek(size - 10 - length)
    footer = _FlatTable(file.read(length))
    for blocks in (footer.structs(2, _BLOCK), footer.structs(3, _BLOCK)):
        for block in blocks:
            message = _message_at(file, int(block["offset"]), size)
            if message is not None:
                yield message


def _message_at(file: BinaryIO, position: int, size: int) -> _Message | None:
    """Return the message at a position of the file, or None at the end of a stream.

    Raises _ClaimError if the message extends beyond the file.
    """
    if not 0 <= position <= size:
        raise _ClaimError(f"a message at byte {position} of a file of {size}")
    file.seek(position)
    prefix = file.read(8)
    if len(prefix) < 8:  # a stream may end without an end-of-stream marker
        return None
    marker, length = struct.unpack("<Ii", prefix)
    # Before Arrow 0.15 there was no marker in front of the length.
    begin, length = (position + 8, length) if marker == 0xFFFFFFFF else (position + 4, marker)
    if length == 0:
        return None
    if not 0 < length <= size - begin:
        raise _ClaimError(f"{length} bytes of metadata, but only {size - begin} bytes are left")
    file.seek(begin)
    metadata = _FlatTable(file.read(length))
    begin, body = begin + length, metadata.number(3, "<q")
    if not 0 <= body <= size - begin:
        raise _ClaimError(f"a message of {body} bytes, but only {size - begin} bytes are left")
    return _Message(metadata, begin, begin + body)


def _check_message(file: BinaryIO, message: _Message, size: int, memory: int | None) -> int:
    """Return the number of rows of a record batch, and 0 for other messages.

    Raises _ClaimError if the message claims an impossible number of rows, or of bytes in its compressed buffers.
    """
    kind = message.metadata.number(1, "<B")
    if kind not in (_DICTIONARY, _BATCH):
        return 0
    batch = message.metadata.table(2)
    if batch is not None and kind == _DICTIONARY:
        batch = batch.table(1)
    if batch is None:
        return 0
    n_rows = batch.number(0, "<q")
    if not 0 <= n_rows <= size * _MOST_ROWS_PER_BYTE:
        raise _ClaimError(f"{n_rows} rows in {size} bytes")
    n_table_rows = n_rows if kind == _BATCH else 0
    compression = batch.table(3)
    if compression is None:
        return n_table_rows
    expansion = _MOST_EXPANSION.get(compression.number(0, "<b"), 0)
    n_bytes = 0
    for offset, length in batch.structs(2, _BUFFER).tolist():
        if not length:
            continue
        if not (offset >= 0 and 8 <= length <= message.end - message.begin - offset):
            raise _ClaimError(f"a buffer of {length} bytes at {offset} of {message.end - message.begin}")
        file.seek(message.begin + offset)
        (claim,) = struct.unpack("<q", file.read(8))
        # -1 marks a buffer that is stored uncompressed.
        if not -1 <= claim <= length * expansion:
            raise _ClaimError(f"{claim} bytes compressed to {length}")
        n_bytes += max(claim, length)
    if memory is not None and n_bytes > memory:
        raise _ClaimError(f"a batch of {n_bytes} bytes, but only {memory} bytes of memory are free")
    return n_table_rows


class _FlatTable:
    """A table of a flatbuffer, whose fields are numbered.

    Its methods raise struct.error or ValueError if an offset points outside the buffer.
    """

    def __init__(self, data: bytes, position: int | None = None) -> None:
        """Open the table at a position, by default the root table."""
        self._data = data
        self._position: int = struct.unpack_from("<I", data)[0] if position is None else position
        self._fields = self._position - self._unpack("<i", self._position)

    def number(self, field: int, form: str) -> int:
        """Return a number stored in the `struct` format `form`, or 0 if the field is absent."""
        position = self._field_position(field)
        return self._unpack(form, position) if position else 0

    def table(self, field: int) -> _FlatTable | None:
        """Return an inner table, or None if the field is absent."""
        position = self._field_position(field)
        return _FlatTable(self._data, position + self._unpack("<I", position)) if position else None

    def structs(self, field: int, form: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a vector of structs as an array with dtype `form`, which is empty if the field is absent."""
        position = self._field_position(field)
        if not position:
            return np.empty(0, form)
        position += self._unpack("<I", position)
        return np.frombuffer(self._data, form, self._unpack("<I", position), position + 4)

    def _field_position(self, field: int) -> int:
        if 4 + 2 * field >= self._unpack("<H", self._fields):
            return 0
        offset = self._unpack("<H", self._fields + 4 + 2 * field)
        return self._position + offset if offset else 0

    def _unpack(self, form: str, position: int) -> int:
        if position < 0:  # unpack_from would count from the end
            raise struct.error
        return int(struct.unpack_from(form, self._data, position)[0])
