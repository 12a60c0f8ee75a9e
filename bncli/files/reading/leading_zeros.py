"""Numbers with leading zeros, as 01234, in a block of text whose columns are read as numbers: these are codes.

A parser of numbers does not tell 01234 from 1234, so the bytes are looked at: a zero at the start of a field, followed
by digits to its end. Which column it stands in follows from the number of delimiters before it, unless there are
quotes, blanks or rows that are malformed; then the columns in question are parsed as text. Cost: a few per cent of
parsing, and nothing where no column may still turn out to be codes.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index
from bncli.files.reading.numerals import has_leading_zeros
from bncli.files.reading.parse import parse_block
from bncli.files.reading.row_blocks import Kind, Want
from bncli.files.reading.source import Tokens
from bncli.files.reading.text_blocks import TextBlock

_ZERO, _LINE_FEED, _RETURN, _QUOTE = b'0\n\r"'
_SLICE = 1 << 16


def columns_with_leading_zeros(
    block: TextBlock, n_rows: int, watched: Collection[str], tokens: Tokens
) -> frozenset[str]:
    """Those of the watched columns that hold a number with leading zeros; `n_rows` are well formed."""
    if not watched:
        return frozenset()
    text = np.frombuffer(block.data, np.uint8)
    starts = _starts(text, block.layout.delimiter[0])
    if not len(starts):
        return frozenset()
    fields = _fields(block, text, starts, n_rows)
    names = sorted(watched)
    if fields is None:
        texts = parse_block(block, [Want(name, Kind.TEXT) for name in names], tokens).values
        return frozenset(name for name, values in zip(names, texts, strict=True) if has_leading_zeros(values))
    end = re.escape(block.layout.delimiter) + rb"\r\n"
    is_number = re.compile(rb"0[0-9]+[ \t]*(?:[%s]|\Z)" % end).match
    positions = {name: starts[fields == block.layout.names.index(name)] for name in names}
    return frozenset(name for name, at in positions.items() if any(is_number(block.data, i) for i in at.tolist()))


def _starts(text: NDArray[np.uint8], delimiter: int) -> Index:
    """The positions of zeros that begin a field, more or less, and are followed by a digit."""
    padded = np.concatenate(([np.uint8(_LINE_FEED)], text, [np.uint8(_LINE_FEED)]))
    found = []
    for start in range(0, len(text), _SLICE):  # in slices, for masks that stay in the cache
        here = padded[start : start + _SLICE + 2]
        zeros = here[1:-1] == _ZERO
        zeros &= here[2:] - np.uint8(_ZERO) < 10
        before = here[:-2]
        zeros &= (before == delimiter) | (before <= _QUOTE)
        found.append(np.flatnonzero(zeros) + start)
    return np.concatenate(found) if found else np.empty(0, np.intp)


def _fields(block: TextBlock, text: NDArray[np.uint8], starts: Index, n_rows: int) -> Index | None:
    """The number of the column that each field stands in; None if counting delimiters does not tell."""
    delimiter, n_columns = block.layout.delimiter[0], len(block.layout.names)
    delimiters = np.flatnonzero(text == delimiter)
    before = np.where(starts > 0, text[starts - 1], np.uint8(_LINE_FEED))
    is_first = (before == _LINE_FEED) | (before == _RETURN)
    if len(delimiters) != n_rows * (n_columns - 1) or b'"' in block.data:
        return None
    if not (is_first | (before == delimiter)).all():
        return None
    n_before = np.searchsorted(delimiters, starts)
    return np.where(is_first, 0, (n_before - 1) % max(n_columns - 1, 1) + 1)
