"""A text file cut into blocks of whole rows, so that blocks can be parsed apart from each other, on any thread.

A quote that is never closed would swallow the rest of the file: a row that is still open at the end, or after
64 MB, is malformed; what is dropped is the line on which it begins, and reading goes on with the next line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bncli.errors import BncliError
from bncli.files.reading.headers import MAX_ROW, Header, Layout
from bncli.files.reading.inputs import Stream
from bncli.files.reading.records import count_lines, last_boundary, quoted_sections
from bncli.files.reading.row_blocks import BadRow

BLOCK_SIZE = 1 << 21
FIRST_BLOCK_SIZE = 1 << 18
"""The first block is smaller: types are guessed from it, and scores of a slow input appear sooner."""

ROWS_PER_BLOCK, MAX_WIDE_BLOCK = 64, 1 << 25
"""A block of a wide table holds about so many rows, unless it were larger than that."""
MAX_UNCLOSED = 8
"""Of a file; each of them is a search through all that follows, or through 64 MB of it."""


@dataclass(frozen=True)
class TextBlock:
    """Whole rows; `line` is the number of the first one's line in the file (from 1, the header's)."""

    layout: Layout
    data: bytes
    line: int
    bad: tuple[BadRow, ...] = ()
    paused: bool = False
    """Nothing more was at hand: the rows so far should not wait for the next ones."""

    @property
    def path(self) -> str:
        """The file, as messages call it."""
        return self.layout.path


def cut(stream: Stream, header: Header, size: int = BLOCK_SIZE) -> Iterator[TextBlock]:
    """The blocks of the file after its header, in order."""
    layout, rest, line = header.layout, header.rest, header.line
    unclosed = 0
    wanted = min(size, FIRST_BLOCK_SIZE)
    if size == BLOCK_SIZE:
        size, wanted = (max(n, _of_many_rows(layout)) for n in (size, wanted))
    while True:
        paused_already = stream.paused and b"\n" in rest  # rows that came with the header should not wait
        more = b"" if paused_already else stream.read_ready(max(wanted - len(rest), 1))
        if not rest and not more:
            return
        paused, stream.paused = stream.paused, False
        # Fewer bytes than were asked for: the end, unless the input only paused.
        at_end = not paused_already and (not more or (len(rest) + len(more) < wanted and not paused))
        data, rest, bad = _split(layout, rest, more, line, at_end)
        unclosed += len(bad)
        if unclosed > MAX_UNCLOSED:
            what = f"more than {MAX_UNCLOSED} quotes are opened and never closed"
            raise BncliError(what, where=bad[0].where, hint="a quote inside a quoted field is written twice")
        if data or bad:
            yield TextBlock(layout, data, line, bad, paused)
            line += count_lines(data) + sum(count_lines(row.raw) for row in bad)
            wanted = size
        else:
            wanted = max(wanted, _grown(len(rest), f"{layout.path} line {line}"))


def _of_many_rows(layout: Layout) -> int:
    """Bytes of ROWS_PER_BLOCK rows of the header's length, within reason: every block costs some work a column."""
    return min(ROWS_PER_BLOCK * (sum(map(len, layout.names)) + len(layout.names)), MAX_WIDE_BLOCK)


def _split(
    layout: Layout, rest: bytes, more: bytes, line: int, at_end: bool
) -> tuple[bytes, bytes, tuple[BadRow, ...]]:
    """The whole rows, the bytes after them, and the row that is malformed by a quote without an end."""
    line_feed = more.rfind(b"\n")
    # Without a quote every line feed ends a row: most blocks need no closer look.
    if line_feed >= 0 and b'"' not in more and b'"' not in rest and not at_end:
        return b"".join((rest, memoryview(more)[: line_feed + 1])), more[line_feed + 1 :], ()
    data = rest + more
    sections = quoted_sections(data, layout.delimiter)
    if at_end and not sections.unclosed:
        return data, b"", ()
    end = last_boundary(data, sections)
    if sections.unclosed and (at_end or (end == 0 and len(data) > MAX_ROW)):
        bad = _unclosed_row(layout, data, line, end)
        return data[:end], data[end + len(bad.raw) :], (bad,)
    return data[:end], data[end:], ()


def _grown(n_bytes: int, where: str) -> int:
    if n_bytes > MAX_ROW:
        raise BncliError(f"a line of more than {MAX_ROW >> 20} MB", where=where, hint="is this a table in text form?")
    return 2 * n_bytes


def _unclosed_row(layout: Layout, data: bytes, line: int, start: int) -> BadRow:
    """The line on which the row begins."""
    row = data[start : _line_end(data, start)]
    return BadRow("a quote is opened and never closed", layout.path, line + count_lines(data[:start]), row)


def _line_end(data: bytes, start: int) -> int:
    line_feed = data.find(b"\n", start)
    if line_feed < 0:
        line_feed = data.find(b"\r", start)
    return line_feed + 1 if line_feed >= 0 else len(data)
