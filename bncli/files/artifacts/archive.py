"""The ZIP container of model and counts files, with a checksum.

Members are stored without compression and without times or any trace of the machine, so equal content gives equal
bytes. The comment of the archive, the last 64 bytes of the file, is the SHA-256 (hexadecimal) of all bytes before it.

A reader verifies the checksum before it parses the ZIP structure, and reads a member only by its name and exact size.
Overlapping and compressed members are refused, because a small file could then expand into a very large one. The
checksum protects against accidents only; the size checks protect against malicious files.

Arrays are `.npy` files (NumPy format 1.0) of little-endian float64, int64 or unsigned integers in C order. Their header
follows from type and shape, so a reader that knows both compares the header and does not parse it.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise
from bncli.files.paths import cannot_read

FLOATS, INTEGERS = "<f8", "<i8"
"""NumPy type strings of the values in a `.npy` file."""
_DIGEST_BYTES = 64
_NPY_ALIGNMENT = 64
"""The values of a `.npy` file start at a multiple of this many bytes."""
_READ_BYTES = 1 << 20


class ArchiveKind(NamedTuple):
    """A kind of archive file.

    `word` is the kind as `recognise` returns it, and `error` the type of errors. `made_by` is the hint for a file of
    another kind, `cure` the hint for a damaged file.
    """

    word: str
    error: type[BncliError]
    made_by: str
    cure: str


MODEL = ArchiveKind("model", ModelError, "bncli fit writes models (.bnc)", "copy the file again or fit the model again")
COUNTS = ArchiveKind(
    "counts", BncliError, "bncli count writes such files (.counts)", "copy the file again or count the tables again"
)


class Archive:
    """An open archive whose checksum has been verified; `names` are its members in the order of the file."""

    def __init__(self, archive: zipfile.ZipFile, path: str, size: int, kind: ArchiveKind) -> None:
        self._archive = archive
        self._path = path
        self._kind = kind
        members = archive.infolist()
        self._sizes = {member.filename: member.file_size for member in members}
        self.names = list(self._sizes)
        # Members that share bytes of the file add up to more than the file.
        if len(self._sizes) < len(members) or sum(member.file_size for member in members) > size:
            self.fail("it has duplicate or overlapping members")
        # A stored member expands to its own size, so a small file cannot fill the memory.
        if any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members):
            self.fail("it has compressed members")

    def size(self, name: str) -> int:
        """Return the size of a member in bytes; fail if it is missing."""
        if name not in self._sizes:
            self.fail(f"the member {name} is missing")
        return self._sizes[name]

    def read(self, name: str) -> bytes:
        with _zip_errors(self._path, self._kind):
            return self._archive.read(name)

    def fail(self, what: str) -> NoReturn:
        """Raise an error stating that the archive is malformed, and how."""
        raise self._kind.error(f"the {self._kind.word} file is malformed: {what}", where=self._path)


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the bytes of an archive whose members are these pairs (name, content), in this order."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)  # without a time it is dated 1980
            # ZipInfo records the operating system; write Unix and rw-r--r-- everywhere.
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
        archive.comment = b"0" * _DIGEST_BYTES
    content = file.getbuffer()
    content[-_DIGEST_BYTES:] = hashlib.sha256(content[:-_DIGEST_BYTES]).hexdigest().encode()
    return bytes(content)


@contextmanager
def open_archive(path: str, kind: ArchiveKind = MODEL) -> Iterator[Archive]:
    """Open a file of this kind and verify its checksum.

    Raises `kind.error` if the file cannot be read, is of another kind or damaged, or is not a valid archive.
    """
    with ExitStack() as stack:
        try:
            file: BinaryIO = stack.enter_context(open(path, "rb"))
            if not file.seekable():
                file = io.BytesIO(file.read())
            file_kind = recognise(file.read(HEAD_BYTES))
            if file_kind.kind != kind.word:
                what = f"this is {file_kind.description}, not a bncli {kind.word}{' file' * (kind is not MODEL)}"
                raise kind.error(what, where=path, hint=kind.made_by)
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            digest = hashlib.sha256()
            remaining = max(size - _DIGEST_BYTES, 0)
            while remaining > 0:
                block = file.read(min(remaining, _READ_BYTES))
                if not block:  # the file was truncated while it was read; its checksum will not match
                    break
                digest.update(block)
                remaining -= len(block)
            if file.read() != digest.hexdigest().encode():
                what = f"the {kind.word} file is damaged or incomplete: its checksum does not match"
                raise kind.error(what, where=path, hint=kind.cure)
        except OSError as error:
            raise cannot_read(path, error, kind.error, what=f" the {kind.word}") from error
        with _zip_errors(path, kind):
            archive = stack.enter_context(zipfile.ZipFile(file))
        yield Archive(archive, path, size, kind)


@contextmanager
def _zip_errors(path: str, kind: ArchiveKind) -> Iterator[None]:
    """Convert exceptions that `zipfile` raises for a malformed archive into an error of this kind."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        struct.error,
        ValueError,
        RuntimeError,
        EOFError,
        KeyError,
        OverflowError,
        OSError,
    ) as error:
        raise kind.error(f"the {kind.word} file is malformed: {error}", where=path) from error


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return a `.npy` file of an array: unsigned integers keep their type, others become int64 or float64."""
    kind = array.dtype.kind
    descr = INTEGERS if kind == "i" else array.dtype.newbyteorder("<").str if kind == "u" else FLOATS
    return npy_header(array.shape, descr) + array.astype(descr, copy=False).tobytes("C")


def npy_header(shape: tuple[int, ...], descr: str = FLOATS) -> bytes:
    """Return the header of a `.npy` file of this shape and type."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % _NPY_ALIGNMENT) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npy_array(data: bytes, shape: tuple[int, ...], descr: str = FLOATS) -> NDArray[Any] | None:
    """Return the array in a `.npy` file, or None if its header is for another shape or type.

    The array is read-only. The caller must have checked the size of the file.
    """
    header = npy_header(shape, descr)
    if not data.startswith(header):
        return None
    native = np.dtype(descr).newbyteorder("=")
    return np.frombuffer(data, descr, offset=len(header)).astype(native, copy=False).reshape(shape)
