"""Where rows begin and end in delimited text, exactly.

A quote opens a quoted section only at the start of a field; inside it a doubled quote is a quote, and delimiters and
line ends are data. After the section the field goes on to the next delimiter or line end. Elsewhere a quote is a
character like any other. A row ends at a line feed, a carriage return, or the two together; an empty line is no row.

Quoted sections are found without a loop when quotes alternate between field starts and section ends (nearly every
file); otherwise one regular expression walks from section to section. Both give the same answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index, Mask

_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'
_SLICE = 1 << 17


@dataclass(frozen=True)
class Sections:
    """Quoted sections [starts, ends) in ascending order; `unclosed` if the last one runs into the end of the bytes."""

    starts: Index
    ends: Index
    unclosed: bool

    def holding(self, position: int) -> int | None:
        """Start of the section that holds the position."""
        i = int(np.searchsorted(self.starts, position, side="right")) - 1
        return int(self.starts[i]) if i >= 0 and position < self.ends[i] else None


def quoted_sections(data: bytes, delimiter: bytes) -> Sections:
    """The quoted sections of bytes that begin with a row."""
    if b'"' not in data:
        return Sections(np.empty(0, np.intp), np.empty(0, np.intp), False)
    text = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(text == _QUOTE)
    before = text[quotes[0::2] - 1]  # of a quote at position 0 this is the last byte, put right in the next line
    before[quotes[0::2] == 0] = _LINE_FEED
    may_precede = np.zeros(256, np.bool_)
    may_precede[[delimiter[0], _LINE_FEED, _RETURN, _QUOTE]] = True
    if not may_precede[before].all():
        return _walk(data, delimiter)
    unclosed = len(quotes) % 2 == 1
    ends = np.append(quotes[1::2] + 1, len(data)) if unclosed else quotes[1::2] + 1
    return Sections(quotes[0::2], ends, unclosed)


def _walk(data: bytes, delimiter: bytes) -> Sections:
    pattern = re.compile(rb'(?<![^%s\r\n])"[^"]*+(?:""[^"]*+)*+("?)' % re.escape(delimiter))
    found = [(match.start(), match.end(), not match[1]) for match in pattern.finditer(data)]
    starts = np.array([start for start, _, _ in found], np.intp)
    ends = np.array([end for _, end, _ in found], np.intp)
    return Sections(starts, ends, bool(found) and found[-1][2])


def last_boundary(data: bytes, sections: Sections) -> int:
    """The end of the last row that is surely whole, 0 if there is none (more bytes may follow the data)."""
    end = len(data)
    while True:
        end = _last_line_end(data, end)
        section = sections.holding(end - 1) if end else None
        if section is None:
            return end
        end = section


def _last_line_end(data: bytes, before: int) -> int:
    line_feed = data.rfind(b"\n", 0, before)
    if line_feed >= 0:
        return line_feed + 1
    # A return at the very end may be the first half of a return and line feed.
    return data.rfind(b"\r", 0, min(before, len(data) - 1)) + 1


def count_lines(data: bytes) -> int:
    """Number of line ends."""
    # In slices, for a mask that stays in the cache.
    n_lines = 0
    for start in range(0, len(data), _SLICE):
        found = np.frombuffer(data, np.uint8, min(_SLICE, len(data) - start), start)
        n_lines += int(np.count_nonzero(found == _LINE_FEED))
    return n_lines if b"\r" not in data else n_lines + data.count(b"\r") - data.count(b"\r\n")


@dataclass(frozen=True)
class Records:
    """The rows of some bytes: [starts, ends) with the line end, number of fields, number of lines before the row."""

    starts: Index
    ends: Index
    n_fields: Index
    lines: Index

    def __len__(self) -> int:
        return len(self.starts)

    def holding(self, position: int) -> int:
        """Index of the row that holds the position (in an empty line: of the row after it)."""
        return int(np.searchsorted(self.ends, position, side="right"))

    def take(self, rows: Mask) -> Records:
        return Records(self.starts[rows], self.ends[rows], self.n_fields[rows], self.lines[rows])


def scan(data: bytes, delimiter: bytes) -> Records:
    """The rows of bytes that begin with a row; empty lines are left out."""
    if not data:
        return Records(*(np.empty(0, np.intp) for _ in range(4)))
    text = np.frombuffer(data, np.uint8)
    line_ends = _line_ends(text)
    bare = _blank_out(text, quoted_sections(data, delimiter))
    ends = _line_ends(bare)
    if not len(ends) or ends[-1] < len(data):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1]))
    delimiters = np.flatnonzero(bare == delimiter[0])
    n_fields = np.searchsorted(delimiters, ends) - np.searchsorted(delimiters, starts) + 1
    records = Records(starts, ends, n_fields, np.searchsorted(line_ends, starts, side="right"))
    return records.take(~np.isin(bare[starts], (_LINE_FEED, _RETURN)))


def _line_ends(text: NDArray[np.uint8]) -> Index:
    """The position after every line end."""
    is_end = text == _LINE_FEED
    returns = np.flatnonzero(text == _RETURN)
    if len(returns):
        followed = text[np.minimum(returns + 1, len(text) - 1)] == _LINE_FEED
        is_end[returns[~followed]] = True
    return np.flatnonzero(is_end) + 1


def _blank_out(text: NDArray[np.uint8], sections: Sections) -> NDArray[np.uint8]:
    """The bytes with quotes in place of all that is quoted."""
    if not len(sections.starts):
        return text
    change = np.zeros(len(text) + 1, np.int8)
    change[sections.starts] += 1
    change[sections.ends] -= 1
    return np.where(np.cumsum(change[:-1], dtype=np.int8) > 0, np.uint8(_QUOTE), text)
