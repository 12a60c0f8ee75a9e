"""An array in NumPy's format 1.0, written and read without a parser.

Every array of a model is float64, little-endian, in C order, so its header follows from its shape; a reader that knows
the shape compares instead of parsing.
"""

from __future__ import annotations

import struct

import numpy as np

from bncli.engine.kernels.arrays import Array

_ALIGNMENT = 64


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
