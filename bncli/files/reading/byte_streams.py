"""The bytes of a table: find its files, decompress them, and decode their text to UTF-8.

A table is one file, several files, a directory of files, or stdin. Compression is detected from the first bytes. The
position in stdin is never changed: if the table may have to be read twice, the bytes of stdin are copied to a temporary
file as they arrive, and the second `open` reads the copy. Named pipes are treated in the same way.

UTF-16 and UTF-32 are recognised by their byte-order mark. A byte that is not valid in its encoding is normally passed
on unchanged, which makes its row malformed. In UTF-16 and UTF-32, most invalid bytes end the reading with an error
instead.
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
from typing import Any, BinaryIO, cast

import pyarrow as pa

from bncli.errors import BncliError, UsageError
from bncli.files.paths import CREATE_AGAIN, cannot_read, check_data

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_N_FIRST = 8
_TRANSCODED_AT_ONCE = 1 << 20
_SPOOLED_AT_ONCE = 1 << 22
_PAUSE = 0.1
"""Seconds without a byte after which a pipe counts as paused, and the bytes that have arrived are processed."""


def find_inputs(paths: Sequence[str], *, keep: bool) -> tuple[InputFile, ...]:
    """Return the files that make up the table; with `keep`, even stdin and pipes can be opened more than once.

    Raises BncliError if a path does not exist or cannot be read, and if a folder contains no tables. Raises UsageError
    if a file is given twice, or if stdin (-) is given together with files.
    """
    if "-" in paths and len(paths) > 1:
        raise UsageError("the standard input (-) cannot be combined with files")
    files: list[str] = []
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            check_data(path)
            files.append(path)
            continue
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            raise cannot_read(path, error, is_data=True) from error
        in_folder = [
            os.path.join(path, name)
            for name in names
            if not name.startswith((".", "_")) and strip_compression(name).lower().endswith(TABLE_SUFFIXES)
        ]
        in_folder = [file for file in in_folder if os.path.isfile(file)]
        if not in_folder:
            known = " ".join(TABLE_SUFFIXES)
            raise BncliError("the folder contains no data files", where=path, hint=f"the known extensions are {known}")
        files += in_folder
    # The rows of a file that is named twice would silently count twice.
    real_paths: set[str] = set()
    for path in files:
        real = os.path.realpath(path)  # links to one file are one file
        if real in real_paths:
            raise UsageError("the same file is given twice", where=path)
        real_paths.add(real)
    return tuple(InputFile(path, keep) for path in files)


def strip_compression(name: str) -> str:
    """Return a file name without the extension .gz, .bz2, .xz or .zst, if it has one."""
    stem, suffix = os.path.splitext(name)
    return stem if suffix.lower() in COMPRESSED_SUFFIXES else name


def strip_table_suffixes(name: str) -> str:
    """Return a file name without the extensions of compression and of tables."""
    stem = strip_compression(name)
    for suffix in TABLE_SUFFIXES:
        stem = stem[: -len(suffix)] if stem.lower().endswith(suffix) else stem
    return stem


def check_encoding(name: str | None) -> str | None:
    """Return Python's name of a text encoding, or None for UTF-8 and for None; raise UsageError if it is unknown."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(name)
        "".encode(name)  # raises if the encoding is not one of text
    except (LookupError, ValueError, TypeError) as error:
        hint = "use for example utf-16, latin-1, cp1252, cp1250 or shift_jis"
        raise UsageError(f"unknown encoding '{name}'", hint=hint) from error
    return None if codec.name in ("utf-8", "utf-8-sig") else codec.name


class InputFile:
    """One file of the table, or stdin; `n_done` is the number of (compressed) bytes read since it was last opened."""

    def __init__(self, path: str, keep: bool) -> None:
        self.path = path
        self.name = "stdin" if path == "-" else path
        """The name to show in messages."""
        self.n_done = 0
        self._keep = keep
        self._spool: BinaryIO | None = None
        self._file: BinaryIO | None = None

    @property
    def is_regular(self) -> bool:
        return self.path != "-" and stat.S_ISREG(os.stat(self.path).st_mode)

    def open(self) -> Stream:
        """Open the input, and return a stream of its decompressed bytes from the beginning.

        Stdin and pipes can be opened a second time only if their bytes are kept. Raises BncliError if the input cannot
        be opened.
        """
        self.n_done = 0
        if self._spool is not None:
            self._spool.seek(0)
            return Stream(_RawBytes(self, self._spool, None))
        if self.path == "-":
            if sys.stdin is None:
                raise BncliError("the standard input is closed", hint="give the path of a file, or pipe the table in")
            file = sys.stdin.buffer
        else:
            self.close_file()
            try:
                file = cast(BinaryIO, open(self.path, "rb", buffering=0))  # noqa: SIM115
            except OSError as error:
                raise cannot_read(self.path, error, is_data=True) from error
            self._file = file
        if self._keep and not self.is_regular:
            self._spool = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
        return Stream(_RawBytes(self, file, self._spool))

    def close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Close the file, and delete its copy if there is one."""
        self.close_file()
        if self._spool is not None:
            self._spool.close()
            self._spool = None


class _RawBytes(io.RawIOBase):
    """The bytes of an input as stored; they are counted as they are read, and copied to the spool if there is one.

    `first` holds the first few bytes, which `read` also returns.
    """

    def __init__(self, owner: InputFile, file: BinaryIO, spool: BinaryIO | None) -> None:
        super().__init__()
        self.owner = owner
        self._file = file
        self._spool = spool
        self._ahead = b""
        self.first = self._ahead = _read_fully(self, _N_FIRST)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0 or self._ahead or self._spool is not None:
            return super().read(size) or b""
        # The same as `readinto` without a second copy. A buffered stdin would wait for all bytes in `read`, so `read1`.
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
        # A buffered stdin would wait for a full buffer; `readinto1` returns the bytes that are there.
        read_available = getattr(self._file, "readinto1", None) or self._file.readinto  # type: ignore[attr-defined]
        try:
            n = int(read_available(target) or 0)
        except OSError as error:
            raise cannot_read(self.owner.name, error, is_data=True) from error
        self.owner.n_done += n
        if self._spool is not None and n:
            try:
                self._spool.write(target[:n])
            except OSError as error:  # most often a full disk: on some systems /tmp is in memory, and small
                what = f"cannot keep a copy of the input in {tempfile.gettempdir()}: {error.strerror}"
                raise BncliError(
                    what, where=self.owner.name, hint="set TMPDIR to a folder with enough free space"
                ) from error
        return n

    def is_paused(self) -> bool:
        """Wait up to _PAUSE seconds, and return whether a pipe has delivered no byte by then."""
        try:
            pipe = self._file.fileno()
            # A regular file is always ready, so this waits only for pipes, terminals and sockets.
            return not self._ahead and not select.select([pipe], [], [], _PAUSE)[0]
        except (OSError, ValueError):  # there is no file descriptor, or one that cannot be waited for
            return False


class Stream:
    """The decompressed bytes of an input or, after `decode`, its text in UTF-8.

    `first` holds the first few decompressed bytes, which `read` also returns, decoded after `decode`.
    """

    def __init__(self, raw: _RawBytes) -> None:
        self.owner = raw.owner
        self.paused = False
        """Whether the last `read_ready` returned early because the input paused."""
        self._raw = raw
        self.compression = next((name for magic, name in _COMPRESSIONS.items() if raw.first.startswith(magic)), None)
        self._source: io.IOBase | pa.NativeFile | Transcoder = raw
        if self.compression == "xz":  # Arrow reads the other three formats
            self._source = lzma.LZMAFile(cast(BinaryIO, raw))  # noqa: SIM115
        elif self.compression is not None:
            self._source = pa.CompressedInputStream(pa.PythonFile(raw, "r"), self.compression)
        self._ahead = b""
        self.first = self._ahead = self._read_source(_N_FIRST)

    def decode(self, encoding: str | None) -> None:
        """Make all later reads return UTF-8, converted from `encoding`; call it before reading.

        If `encoding` is None, it is taken from a byte-order mark of UTF-16 or UTF-32; without such a mark, the bytes
        are taken to be UTF-8 and returned unchanged.
        """
        encoding = encoding or next((e for mark, e in _BYTE_ORDER_MARKS.items() if self._ahead.startswith(mark)), None)
        if encoding is not None:
            self._source = Transcoder(self._ahead, self._source, encoding, self.owner.name)
            self._ahead = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or fewer only at the end of the input."""
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        return ahead + self._read_source(size - len(ahead)) if len(ahead) < size else ahead

    def read_ready(self, size: int) -> bytes:
        """Return `size` bytes, or fewer if the input ends or pauses earlier; a pause sets `paused`."""
        self.paused = False
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        if ahead and self._check_pause():
            return ahead
        return ahead + self._read_source(size - len(ahead), self._check_pause) if len(ahead) < size else ahead

    def _check_pause(self) -> bool:
        """Return whether the input has paused, which can be known only for an uncompressed pipe."""
        self.paused = self.compression is None and self._raw.is_paused()
        return self.paused

    def _read_source(self, size: int, is_paused: Callable[[], bool] = lambda: False) -> bytes:
        try:
            return _read_fully(self._source, size, is_paused)
        except (OSError, EOFError, lzma.LZMAError) as error:
            what = f"the {self.compression}-compressed data are damaged or cut off ({error})"
            raise BncliError(what, where=self.owner.name, hint=CREATE_AGAIN) from error

    def spool(self) -> BinaryIO:
        """Copy all remaining bytes to a temporary file, and return it, positioned at its start."""
        file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
        while data := self.read(_SPOOLED_AT_ONCE):
            file.write(data)
        file.seek(0)
        return file


def _read_fully(stream: Any, size: int, is_paused: Callable[[], bool] = lambda: False) -> bytes:
    """Return `size` bytes, or fewer at the end of the stream or, after the first read, when `is_paused()` is true."""
    data: bytes = stream.read(size)
    if not data or len(data) == size:
        return data
    parts, missing = [data], size - len(data)
    while missing and not is_paused() and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


class Transcoder:
    """A stream that converts `source` from `encoding` to UTF-8; the bytes `first` were already read from the source."""

    def __init__(self, first: bytes, source: Any, encoding: str, name: str) -> None:
        self._first, self._source = first, source
        self._encoding, self._name = encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
        self._ready = memoryview(b"")
        self._at_end = False

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, and no bytes only at the end of the source.

        Raises BncliError if the bytes of the source cannot be converted.
        """
        while not self._ready and not self._at_end:
            raw, self._first = self._first or self._source.read(_TRANSCODED_AT_ONCE), b""
            self._at_end = not raw
            try:
                text = self._decoder.decode(raw, self._at_end)
                self._ready = memoryview(text.encode("utf-8", "surrogateescape"))
            except UnicodeError as error:
                reason = getattr(error, "reason", str(error))
                what = f"the text is not {self._encoding} ({reason})"
                raise BncliError(what, where=self._name, hint="give the correct encoding with --encoding") from error
        data, self._ready = bytes(self._ready[:size]), self._ready[size:]
        return data
