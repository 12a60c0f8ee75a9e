"""The container of a model or counts file: a ZIP archive with a checksum, so that equal content is equal bytes.

Members are stored, not compressed, and carry no time and no trace of the machine. The comment of the archive, the last
64 bytes of the file, is the SHA-256 in hex of all bytes before it. Conventions: the checksum is proved before the ZIP
is looked at; members are then handed out only by name and exact size, and members that overlap (so that a small file
could unfold into a large one) are refused. The checksum guards against accidents; against malice guard the sizes.

Arrays are `.npy` files in NumPy's format 1.0, float64, int64 or unsigned, little-endian, in C order, so their header
follows from their type and shape: a reader that knows these compares instead of parsing.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.recognition import HEAD, recognise
from bncli.files.paths import cannot_read

_DIGEST = 64
_ALIGNMENT = 64
"""Of the numbers in a `.npy` file."""
_BLOCK = 1 << 20
_ZIP_FAULTS = (zipfile.BadZipFile, struct.error, ValueError, RuntimeError, EOFError, KeyError, OverflowError, OSError)


class ArchiveKind(NamedTuple):
    """What an archive may hold: its word (of `recognise`), what errors are of, what makes such a file, and a cure."""

    word: str
    error: type[BncliError]
    made_by: str
    cure: str


MODEL = ArchiveKind("model", ModelError, "fit writes models (.bnc)", "copy it again or fit it again")
COUNTS = ArchiveKind("counts", BncliError, "count writes counts (.counts)", "copy it again or count again")


class Archive:
    """An open archive whose checksum has been proved."""

    def __init__(self, archive: zipfile.ZipFile, path: str, size: int, kind: ArchiveKind) -> None:
        self._archive = archive
        self._path = path
        self._kind = kind
        self._sizes = {info.filename: info.file_size for info in archive.infolist()}
        infos = archive.infolist()
        # Members that share bytes of the file add up to more than the file.
        if len(self._sizes) < len(infos) or sum(info.file_size for info in infos) > size:
            self.fail("it has members that are doubled or overlap")
        # What is stored unfolds to its own size: a small file cannot fill the memory.
        if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
            self.fail("it has compressed members")

    @property
    def names(self) -> list[str]:
        """The members, in their order."""
        return list(self._sizes)

    def size(self, name: str) -> int:
        """Return the number of bytes of a member."""
        if name not in self._sizes:
            self.fail(f"the member {name} is missing")
        return self._sizes[name]

    def read(self, name: str) -> bytes:
        """Return the bytes of a member."""
        with _zip_faults(self._path, self._kind):
            return self._archive.read(name)

    def fail(self, what: str) -> NoReturn:
        raise self._kind.error(f"the {self._kind.word} file is not well made: {what}", where=self._path)


FLOATS, INTEGERS = "<f8", "<i8"
"""The types of numbers in a `.npy` file."""


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the archive that holds these members in this order."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            # Unix and rw-r--r-- wherever it is written: ZipInfo notes the system; its time is 1980 unless one is given.
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
        archive.comment = b"0" * _DIGEST
    content = file.getbuffer()
    content[-_DIGEST:] = hashlib.sha256(content[:-_DIGEST]).hexdigest().encode()
    return bytes(content)


@contextmanager
def open_archive(path: str, kind: ArchiveKind = MODEL) -> Iterator[Archive]:
    """Open a file of this kind and proves its checksum; an error of the kind says what it is when it is none."""
    with _open(path, kind) as file:
        with _read_faults(path, kind):
            # The size of a file that is whole and of this kind; anything else is refused by name.
            found = recognise(file.read(HEAD))
            if found.kind != kind.word:
                what = f"this is {found.description}, not a bncli {kind.word}{' file' * (kind is not MODEL)}"
                raise kind.error(what, where=path, hint=kind.made_by)
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            digest = hashlib.sha256()
            left = max(size - _DIGEST, 0)
            while left > 0:
                block = file.read(min(left, _BLOCK))
                if not block:  # cut off while it is read; then the checksum is wrong
                    break
                digest.update(block)
                left -= len(block)
            if file.read() != digest.hexdigest().encode():
                what = f"the {kind.word} file is damaged or incomplete: its checksum does not match"
                raise kind.error(what, where=path, hint=kind.cure)
        with _zip_faults(path, kind):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Archive(archive, path, size, kind)


def _open(path: str, kind: ArchiveKind) -> BinaryIO:
    """Return the file; what cannot be read twice (a pipe) is read into memory."""
    with _read_faults(path, kind):
        file = open(path, "rb")  # noqa: SIM115
        if file.seekable():
            return file
        with file:
            return io.BytesIO(file.read())


@contextmanager
def _read_faults(path: str, kind: ArchiveKind) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_read(path, error, kind.error, what=f" the {kind.word}") from error


@contextmanager
def _zip_faults(path: str, kind: ArchiveKind) -> Iterator[None]:
    """Whatever the ZIP reader may say about an archive made to mislead it."""
    try:
        yield
    except _ZIP_FAULTS as error:
        raise kind.error(f"the {kind.word} file is not well made: {error}", where=path) from error


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return the `.npy` file of an array of floats, integers, or unsigned integers in their own type."""
    kind = array.dtype.kind
    descr = INTEGERS if kind == "i" else array.dtype.newbyteorder("<").str if kind == "u" else FLOATS
    return npy_header(array.shape, descr) + array.astype(descr, copy=False).tobytes("C")


def npy_header(shape: tuple[int, ...], descr: str = FLOATS) -> bytes:
    """Return the header of a `.npy` file of this shape; the numbers that follow start at a multiple of 64 bytes."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % _ALIGNMENT) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npy_array(data: bytes, shape: tuple[int, ...], descr: str = FLOATS) -> NDArray[Any] | None:
    """Return the read-only array of this shape in a `.npy` file of the right size.

    None if the header says anything else.
    """
    header = npy_header(shape, descr)
    if not data.startswith(header):
        return None
    native = np.dtype(descr).newbyteorder("=")
    return np.frombuffer(data, descr, offset=len(header)).astype(native, copy=False).reshape(shape)
