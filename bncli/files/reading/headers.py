"""The header row of a text file: its delimiter and its column names."""

from __future__ import annotations

from dataclasses import dataclass

from bncli.errors import BncliError, UsageError
from bncli.files.reading.arrow_csv import read_texts
from bncli.files.reading.inputs import Stream
from bncli.files.reading.records import Sections, count_lines, quoted_sections
from bncli.files.reading.source import BLANKS

_DELIMITERS = b",\t;|"
_NAMED = {"tab": b"\t", "\\t": b"\t", "comma": b",", "semicolon": b";", "bar": b"|", "space": b" "}
_BOM = b"\xef\xbb\xbf"
_READ_SIZE = 1 << 18
MAX_ROW = 1 << 26
"""Bytes; without a bound a file that is no table would be read into memory as one row."""
_N_SHOWN = 60
LATIN = "--encoding latin-1"
"""The likeliest cure of text that is not UTF-8."""


@dataclass(frozen=True)
class Layout:
    """How the rows of a text file are written."""

    path: str
    names: tuple[str, ...]
    delimiter: bytes


@dataclass(frozen=True)
class Header:
    """The layout, the bytes read beyond the header, and the number of the line on which they begin."""

    layout: Layout
    rest: bytes
    line: int


def read_header(stream: Stream, delimiter: bytes | None) -> Header:
    """Reads up to the end of the first row that is not empty."""
    name = stream.owner.name
    data = stream.read_ready(_READ_SIZE).removeprefix(_BOM)
    _check_width(data[:4], name)
    text = data.lstrip(b"\r\n")
    line = 1 + count_lines(data[: len(data) - len(text)])
    # What is at hand is looked at before more is waited for: a header that is piped slowly may be whole already.
    while True:
        if not text:
            raise BncliError("the file is empty", where=name, hint="a table begins with a row of column names")
        more = b""
        end, chosen = _first_row(text, delimiter, at_end=False)
        if end:
            break
        more = stream.read_ready(max(_READ_SIZE, len(text)))  # doubled, for all of it is looked at again
        end, chosen = _first_row(text, delimiter, at_end=not more)
        if end:
            break
        text += more
        if not more or len(text) > MAX_ROW:
            why = "a quote is never closed" if not more else f"it has more than {MAX_ROW >> 20} MB"
            raise BncliError(f"the header row does not end: {why}", where=f"{name} line {line}")
    layout = Layout(name, _names(text[:end], chosen, f"{name} line {line}"), chosen)
    return Header(layout, text[end:] + more, line + count_lines(text[:end]))


def _check_width(start: bytes, name: str) -> None:
    """Refuses wide characters without a byte-order mark, told by the NUL bytes of the first letters."""
    wide = "UTF-32" if start.count(b"\0") == 3 else "UTF-16" if b"\0" in start[:2] else None
    if wide:
        end = "be" if start.startswith(b"\0") else "le"
        raise BncliError(f"the text is {wide}", where=name, hint=f"--encoding {wide.lower()}-{end}")


def _first_row(text: bytes, delimiter: bytes | None, *, at_end: bool) -> tuple[int, bytes]:
    """The end of the first row (0: not in sight) and the delimiter: the one given or else the most frequent one.

    Conventions: a tie goes to the first of comma, tab, semicolon, bar.
    """
    candidates = [delimiter] if delimiter else [bytes([d]) for d in _DELIMITERS]
    rows = [(_row_end(text, d, at_end=at_end), d) for d in candidates]
    return max(rows, key=lambda row: _count_outside_quotes(text[: row[0]], row[1]))


def _row_end(text: bytes, delimiter: bytes, *, at_end: bool) -> int:
    # Short prefixes first: the header is a small part of what was read.
    size = 1 << 12
    while True:
        head = text[:size]
        is_all = at_end and size >= len(text)
        sections = quoted_sections(head, delimiter)
        if found := _line_end_outside(head, sections, is_all):
            return found
        if size >= len(text):
            return len(text) if is_all and not sections.unclosed else 0
        size *= 4


def _line_end_outside(text: bytes, sections: Sections, is_all: bool) -> int:
    """The position after the first line end that is not quoted, 0 if there is none."""
    start = 0
    for stop, after in zip((*sections.starts.tolist(), len(text)), (*sections.ends.tolist(), 0), strict=True):
        if found := _next_line_end(text, start, stop, is_all):
            return found
        start = after
    return 0


def _next_line_end(text: bytes, start: int, stop: int, is_all: bool) -> int:
    """The position after the next line end before `stop`, 0 if there is none or its second half may follow."""
    ends = [p for p in (text.find(b"\n", start, stop), text.find(b"\r", start, stop)) if p >= 0]
    if not ends:
        return 0
    first = min(ends)
    if text[first : first + 1] == b"\n":
        return first + 1
    if first + 1 == len(text):  # a CR at the end of what is read: LF may be the next byte
        return first + 1 if is_all else 0
    return first + 2 if text[first + 1 : first + 2] == b"\n" else first + 1


def _count_outside_quotes(row: bytes, delimiter: bytes) -> int:
    sections = quoted_sections(row, delimiter)
    quoted = sum(row.count(delimiter, a, b) for a, b in zip(sections.starts, sections.ends, strict=True))
    return row.count(delimiter) - quoted


def _names(row: bytes, delimiter: bytes, where: str) -> tuple[str, ...]:
    if b"\0" in row:
        raise BncliError("the header holds NUL bytes, so this is no text file", where=where)
    try:
        row.decode()
    except UnicodeDecodeError as error:
        raise BncliError("the header is not UTF-8 text", where=where, hint=f"how is it encoded? {LATIN}") from error
    fields = read_texts(row, _count_outside_quotes(row, delimiter) + 1, delimiter)
    names = tuple(field[0].as_py().strip(BLANKS) for field in fields)
    check_distinct(names, where)
    return names


def check_distinct(names: tuple[str, ...], where: str) -> None:
    """Columns are matched by name, so a name may stand only once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            shown = name if len(name) <= _N_SHOWN else name[:_N_SHOWN] + "..."
            raise BncliError(f"the column name '{shown}' appears twice", where=where, hint="rename one of the two")
        seen.add(name)


def parse_delimiter(text: str | None, file_format: str | None) -> bytes | None:
    """The byte that the user asks for, None if it is to be found in the header."""
    if text is None:
        return b"\t" if file_format == "tsv" else None
    delimiter = _NAMED.get(text, text.encode())
    if len(delimiter) != 1 or delimiter in b'"\r\n\0':
        raise UsageError(f"the delimiter '{text}' is not a single character that can separate fields")
    return delimiter
