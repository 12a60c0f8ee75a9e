"""Numbers as text, a whole column at a time.

`shortest` prints the shortest text that reads back as the same float64 (70 ns a number). `Decimals` prints
probabilities with a fixed number of decimals several times faster: the digits of the rounded number are looked up
in groups, and a group is a machine word of eight bytes,

    0.123456  =  "0.123..." from a table of 1001 words  |  ".....456" from a table of 1000 words   (. = a zero byte).

Conventions: at most 14 decimals, which a float64 between 0 and 1 always has; who wants more wants `shortest`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array

MOST_DIGITS = 14
Words = NDArray[np.uint64]


def shortest(values: Array) -> pa.Array:
    """The shortest text of every number that reads back as the same number."""
    return pa.array(values + 0.0).cast(pa.string())  # + 0.0 makes -0 a 0


class Decimals:
    """Prints numbers between 0 and 1 with `digits` (0 to 14) decimals."""

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._whole = _words(f"{n // 1000}.{n % 1000:03d}\0\0\0" for n in range(1001))
        self._thousands = _words(f"\0\0\0\0\0{n:03d}" for n in range(1000))
        if digits > 6:
            self._upper = _words(f"{n:04d}\0\0\0\0" for n in range(10**4))
            self._lower = _words(f"\0\0\0\0{n:04d}" for n in range(10**4))

    def text(self, values: Array) -> pa.Array:
        """Every number rounded (half to even) and printed."""
        n, digits = len(values), self._digits
        rounded = np.rint(values * 10.0**digits).astype(np.int64)
        if digits <= 6:
            words = self._leading(rounded * 10 ** (6 - digits))
        else:
            rounded *= 10 ** (MOST_DIGITS - digits)
            leading = rounded // 10**8
            words = np.stack([self._leading(leading), self._trailing(rounded - leading * 10**8)], axis=1)
        width = digits + 2 if digits else 1
        text = np.ascontiguousarray(words.view(np.uint8).reshape(n, 8 * words.size // max(n, 1))[:, :width])
        offsets = np.arange(0, (n + 1) * width, width, dtype=np.int32)
        return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))

    def _leading(self, millionths: NDArray[np.int64]) -> Words:
        """The eight bytes `w.dddddd` of every number of millionths."""
        thousandths = millionths // 1000
        words: Words = self._whole[thousandths] | self._thousands[millionths - thousandths * 1000]
        return words

    def _trailing(self, rest: NDArray[np.int64]) -> Words:
        """The eight bytes `dddddddd` of every number below 10^8."""
        upper = rest // 10**4
        words: Words = self._upper[upper] | self._lower[rest - upper * 10**4]
        return words


def _words(texts: Iterable[str]) -> Words:
    """Texts of eight bytes each, read as words in the machine's own order."""
    return np.frombuffer("".join(texts).encode(), dtype=np.uint64)
