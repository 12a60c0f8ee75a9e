"""The container of a model file: a ZIP archive with a checksum, made so that equal content is equal bytes.

Members are stored, not compressed, and carry no time and no trace of the machine. The comment of the archive, the last
64 bytes of the file, is the SHA-256 in hex of all bytes before it. Conventions: the checksum is proved before the ZIP
is looked at; members are then handed out only by name and exact size, and members that overlap (so that a small file
could unfold into a large one) are refused. The checksum guards against accidents; against malice guard the sizes.

Arrays are `.npy` files in NumPy's format 1.0, float64, little-endian, in C order, so their header follows from their
shape: a reader that knows the shape compares instead of parsing.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NoReturn

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.errors import ModelError
from bncli.files.places import cannot_read
from bncli.files.recognition import HEAD, recognise

_DIGEST = 64
_ALIGNMENT = 64
"""Of the numbers in a `.npy` file."""
_BLOCK = 1 << 20
_ZIP_FAULTS = (zipfile.BadZipFile, struct.error, ValueError, RuntimeError, EOFError, KeyError, OverflowError, OSError)


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """The archive that holds these members in this order."""
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


class Archive:
    """An open archive whose checksum has been proved."""

    def __init__(self, archive: zipfile.ZipFile, path: str, size: int) -> None:
        self._archive = archive
        self._path = path
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
        """Number of bytes of a member."""
        if name not in self._sizes:
            self.fail(f"the member {name} is missing")
        return self._sizes[name]

    def read(self, name: str) -> bytes:
        """The bytes of a member."""
        with _zip_faults(self._path):
            return self._archive.read(name)

    def fail(self, what: str) -> NoReturn:
        raise ModelError(f"the model file is not well made: {what}", where=self._path)


@contextmanager
def open_archive(path: str) -> Iterator[Archive]:
    """Opens a model file and proves its checksum; ModelError says what it is when it is no model."""
    with _open(path) as file:
        with _read_faults(path):
            size = _check(file, path)
        with _zip_faults(path):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Archive(archive, path, size)


def _open(path: str) -> BinaryIO:
    """The file; what cannot be read twice (a pipe) is read into memory."""
    with _read_faults(path):
        file = open(path, "rb")  # noqa: SIM115
        if file.seekable():
            return file
        with file:
            return io.BytesIO(file.read())


def _check(file: BinaryIO, path: str) -> int:
    """The size of a model file that is whole; anything else is refused by name."""
    found = recognise(file.read(HEAD))
    if found.kind != "model":
        raise ModelError(f"this is {found.description}, not a bncli model", where=path, hint="fit writes models (.bnc)")
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
        what = "the model file is damaged or incomplete: its checksum does not match"
        raise ModelError(what, where=path, hint="copy it again or fit it again")
    return size


@contextmanager
def _read_faults(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_read(path, error, ModelError, what=" the model") from error


@contextmanager
def _zip_faults(path: str) -> Iterator[None]:
    """Whatever the ZIP reader may say about an archive made to mislead it."""
    try:
        yield
    except _ZIP_FAULTS as error:
        raise ModelError(f"the model file is not well made: {error}", where=path) from error


def npy_bytes(array: Array) -> bytes:
    """The `.npy` file of an array."""
    return npy_header(array.shape) + array.astype("<f8", copy=False).tobytes("C")


def npy_header(shape: tuple[int, ...]) -> bytes:
    """The header of a `.npy` file of this shape; the numbers that follow start at a multiple of 64 bytes."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % _ALIGNMENT) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npy_array(data: bytes, shape: tuple[int, ...]) -> Array | None:
    """The read-only array of this shape in a `.npy` file of the right size; None if the header says anything else."""
    header = npy_header(shape)
    if not data.startswith(header):
        return None
    return np.frombuffer(data, "<f8", offset=len(header)).astype(np.float64, copy=False).reshape(shape)
