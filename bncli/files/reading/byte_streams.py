"""From what the user names to bytes: files, a directory, stdin; compressed or not, told by their first bytes.

Stdin is never seeked. Where the table may have to be read twice its bytes are kept in a temporary file as they come,
which a second `open` reads; the same goes for pipes that have a name.

Text in another encoding than UTF-8, turned into it as it is read, a piece at a time.

UTF-16 and UTF-32 are known by their byte-order mark. A byte that stands for no character goes on as it is, which makes
its row malformed; where the encoding is so wide that nothing after such a fault can be trusted, reading ends.
"""

from __future__ import annotations

import codecs
import io
import lzma
import os
import select
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from bncli.errors import BncliError, UsageError
from bncli.files.paths import cannot_read, check_data

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_PIECE = 1 << 20


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


_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")
_N_FIRST = 8
_PATIENCE = 0.1
"""Seconds without a byte after which a pipe counts as paused, and what has come is worked on."""


class Readable(Protocol):
    """A stream of bytes that ends with an empty read."""

    def read(self, size: int, /) -> bytes: ...


@dataclass
class Input:
    """One file of the table, or stdin. `n_done` counts the (compressed) bytes read since the last `open`."""

    path: str
    keep: bool
    n_done: int = 0
    _spool: BinaryIO | None = field(default=None, repr=False)
    _open: BinaryIO | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "stdin" if self.path == "-" else self.path

    @property
    def size(self) -> int | None:
        """Its length in bytes, where it has one."""
        return os.path.getsize(self.path) if self.is_regular else None

    @property
    def is_regular(self) -> bool:
        return self.path != "-" and stat.S_ISREG(os.stat(self.path).st_mode)

    def open(self) -> Stream:
        """Return the bytes from the beginning, decompressed."""
        self.n_done = 0
        if self._spool is not None:
            self._spool.seek(0)
            return Stream(_Raw(self, self._spool, None))
        file = self._open_once()
        if self.keep and not self.is_regular:
            self._spool = _temporary_file()
        return Stream(_Raw(self, file, self._spool))

    def _open_once(self) -> BinaryIO:
        if self.path == "-":
            if sys.stdin is None:
                raise BncliError("stdin is closed", hint="name a file, or pipe the table in")
            return sys.stdin.buffer
        self.close_file()
        try:
            self._open = cast(BinaryIO, open(self.path, "rb", buffering=0))  # noqa: SIM115
        except OSError as error:
            raise cannot_read(self.path, error, is_data=True) from error
        return self._open

    def close_file(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def close(self) -> None:
        self.close_file()
        if self._spool is not None:
            self._spool.close()
            self._spool = None


class _Raw(io.RawIOBase):
    """Bytes as they are stored: counted, copied to the spool, the first ones looked at beforehand."""

    def __init__(self, owner: Input, file: BinaryIO, spool: BinaryIO | None) -> None:
        super().__init__()
        self.owner = owner
        self._file = file
        self._spool = spool
        self._ahead = b""
        self.first = self._ahead = fill(self, _N_FIRST)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0 or self._ahead or self._spool is not None:
            return super().read(size) or b""
        # The same as readinto below without a second copy; read1 as a buffered stdin waits for all of `size` in read.
        try:
            data: bytes = getattr(self._file, "read1", self._file.read)(size)
        except OSError as error:
            raise cannot_read(self.owner.name, error, is_data=True) from error
        self.owner.n_done += len(data)
        return data

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer)  # type: ignore[arg-type]
        if self._ahead:
            n = min(len(target), len(self._ahead))
            target[:n], self._ahead = self._ahead[:n], self._ahead[n:]
            return n
        n = self._read_once(target)
        self.owner.n_done += n
        if self._spool is not None and n:
            data = target[:n]
            assert self._spool is not None
            try:
                self._spool.write(data)
            except OSError as error:  # most often a full disk: /tmp is small where it lies in memory
                what = f"cannot keep a copy of the input in {tempfile.gettempdir()}: {error.strerror}"
                raise BncliError(what, where=self.owner.name, hint="set TMPDIR to a place with room") from error
        return n

    def pauses(self) -> bool:
        """Return whether a pipe has nothing to give for _PATIENCE seconds."""
        try:
            pipe = self._file.fileno()
            # A regular file is always ready, so this waits for pipes, terminals and sockets alone.
            return not self._ahead and not select.select([pipe], [], [], _PATIENCE)[0]
        except (OSError, ValueError):  # no file behind it, or one that cannot be waited for
            return False

    def _read_once(self, target: memoryview) -> int:
        # A buffered stdin would wait for a full buffer; readinto1 takes what is there.
        read_once = getattr(self._file, "readinto1", None) or self._file.readinto  # type: ignore[attr-defined]
        try:
            return int(read_once(target) or 0)
        except OSError as error:
            raise cannot_read(self.owner.name, error, is_data=True) from error


class Stream:
    """Decompressed bytes; `read(n)` gives n of them unless the input ends."""

    def __init__(self, raw: _Raw) -> None:
        self.owner = raw.owner
        self._raw = raw
        self.compression = next((name for magic, name in _COMPRESSIONS.items() if raw.first.startswith(magic)), None)
        self._source: Readable = _decompressed(raw, self.compression)
        self._ahead = b""
        self.first = self._ahead = self._fill(_N_FIRST)
        self.paused = False

    def decode(self, encoding: str | None) -> None:
        """Turn what follows into UTF-8 from this encoding; None: from UTF-8, or as a byte-order mark says."""
        encoding = encoding or marked_encoding(self._ahead)
        if encoding is not None:
            self._source = Transcoder(self._ahead, self._source, encoding, self.owner.name)
            self._ahead = b""

    def read(self, size: int) -> bytes:
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        return ahead + self._fill(size - len(ahead)) if len(ahead) < size else ahead

    def read_ready(self, size: int) -> bytes:
        """As `read`, but fewer bytes (at least one) where the input pauses; `paused` then says so."""
        self.paused = False
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        if ahead and self._pauses():
            return ahead
        return ahead + self._fill(size - len(ahead), self._pauses) if len(ahead) < size else ahead

    def _pauses(self) -> bool:
        """Return whether nothing comes for a while; only told of an uncompressed pipe."""
        self.paused = self.compression is None and self._raw.pauses()
        return self.paused

    def _fill(self, size: int, pauses: Callable[[], bool] = lambda: False) -> bytes:
        try:
            return fill(self._source, size, pauses)
        except (OSError, EOFError, lzma.LZMAError) as error:
            what = f"the {self.compression}-compressed data is damaged or cut off ({error})"
            raise BncliError(what, where=self.owner.name, hint="make or fetch the file again") from error

    def spool(self) -> BinaryIO:
        """Return all the bytes in a temporary file that can be seeked."""
        file = _temporary_file()
        while data := self.read(1 << 22):
            file.write(data)
        file.seek(0)
        return file


def checked_encoding(name: str | None) -> str | None:
    """Return the name of a text encoding that Python knows, None for UTF-8; UsageError for anything else."""
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
    """Return the encoding that a byte-order mark names, None without one and for UTF-8."""
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)


def fill(stream: Readable, size: int, pauses: Callable[[], bool] = lambda: False) -> bytes:
    """`size` bytes, fewer only at the end or, after the first, where `pauses()` says that nothing more is at hand."""
    data = stream.read(size)
    if not data or len(data) == size:
        return data
    parts, missing = [data], size - len(data)
    while missing and not pauses() and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def find_inputs(paths: Sequence[str], *, keep: bool) -> tuple[Input, ...]:
    """Return the files that make up the table; `keep`: they may be opened more than once."""
    if "-" in paths and len(paths) > 1:
        raise UsageError("stdin (-) cannot be read together with files")
    found: list[str] = []
    for path in paths:
        if path != "-" and os.path.isdir(path):
            try:
                names = sorted(os.listdir(path))
            except OSError as error:
                raise cannot_read(path, error, is_data=True) from error
            files = [
                os.path.join(path, name)
                for name in names
                if (not name.startswith((".", "_")) and strip_compression(name).lower().endswith(TABLE_SUFFIXES))
            ]
            files = [file for file in files if os.path.isfile(file)]
            if not files:
                known = " ".join(TABLE_SUFFIXES)
                raise BncliError("the directory holds no data files", where=path, hint=f"known names end in {known}")
            found += files
        else:
            check_data(path)
            found.append(path)
    _check_once(found)
    return tuple(Input(path, keep) for path in found)


def _check_once(paths: Sequence[str]) -> None:
    """Rows that are read twice would count twice, and nobody would see it."""
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)  # links to one file are one file
        if real in seen:
            raise UsageError("the same file is given twice", where=path)
        seen.add(real)


def strip_compression(name: str) -> str:
    """Return the name without .gz, .bz2, .xz or .zst."""
    stem, suffix = os.path.splitext(name)
    return stem if suffix.lower() in COMPRESSED_SUFFIXES else name


def _temporary_file() -> BinaryIO:
    return cast(BinaryIO, tempfile.TemporaryFile())


def _decompressed(raw: _Raw, compression: str | None) -> Readable:
    if compression is None:
        return cast(Readable, raw)
    if compression == "xz":
        return cast(Readable, lzma.LZMAFile(cast(BinaryIO, raw)))  # Arrow knows the other three, not this one
    return cast(Readable, pa.CompressedInputStream(pa.PythonFile(raw, "r"), compression))
