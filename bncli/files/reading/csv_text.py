"""A text file cut into blocks of whole rows, so that blocks can be parsed apart from each other, on any thread.

A quote that is never closed would swallow the rest of the file: a row that is still open at the end, or after
64 MB, is malformed; what is dropped is the line on which it begins, and reading goes on with the next line.

Arrow's CSV parser, asked for some columns of some whole rows, on the calling thread.

Where rows begin and end in delimited text, exactly.

A quote opens a quoted section only at the start of a field; inside it a doubled quote is a quote, and delimiters and
line ends are data. After the section the field goes on to the next delimiter or line end. Elsewhere a quote is a
character like any other. A row ends at a line feed, a carriage return, or the two together; an empty line is no row.

Quoted sections are found without a loop when quotes alternate between field starts and section ends (nearly every
file); otherwise one regular expression walks from section to section. Both give the same answer.

The header row of a text file: its delimiter and its column names.

What happens to malformed rows: the run stops, or they are skipped and counted, or a file collects them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index, Mask
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import atomic_writer
from bncli.files.reading.byte_streams import Stream
from bncli.files.reading.source import BLANKS, NOT_UTF8, BadRow, ValueKind
from bncli.watch import Note, Watch

_TYPES = {ValueKind.TEXT: pa.string(), ValueKind.INTEGER: pa.int64(), ValueKind.NUMBER: pa.float64()}
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
        """Return index of the row that holds the position (in an empty line: of the row after it)."""
        return int(np.searchsorted(self.ends, position, side="right"))

    def take(self, rows: Mask) -> Records:
        return Records(self.starts[rows], self.ends[rows], self.n_fields[rows], self.lines[rows])


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
class TextLayout:
    """How the rows of a text file are written."""

    path: str
    names: tuple[str, ...]
    delimiter: bytes


@dataclass(frozen=True)
class Header:
    """The layout, the bytes read beyond the header, and the number of the line on which they begin."""

    layout: TextLayout
    rest: bytes
    line: int


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

    layout: TextLayout
    data: bytes
    line: int
    bad: tuple[BadRow, ...] = ()
    paused: bool = False
    """Nothing more was at hand: the rows so far should not wait for the next ones."""

    @property
    def path(self) -> str:
        """The file, as messages call it."""
        return self.layout.path


class BadRows:
    """Takes the malformed rows in file order. The file that collects them appears when all went well."""

    def __init__(self, policy: str, watch: Watch) -> None:
        self.count = 0
        self._policy = policy
        self._watch = watch
        self._first: BadRow | None = None
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> BadRows:
        if self._policy not in ("fail", "skip"):
            self._file = self._stack.enter_context(atomic_writer(self._policy))
        return self

    def take(self, rows: Iterable[BadRow]) -> None:
        for row in rows:
            if self._policy == "fail":
                raise BncliError(f"malformed row: {row.what}", where=row.where, hint=_cure(row))
            self._first = self._first or row
            self.count += 1
            if self._file is not None:
                # The last row of a file may lack its line end; the next file's row must not run into it.
                self._file.write(row.raw if row.raw.endswith((b"\n", b"\r")) else row.raw + b"\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if error is None and self._first is not None:
            rows = "malformed row" if self.count == 1 else "malformed rows"
            place = "skipped" if self._file is None else f"put into {self._policy}"
            self._watch(Note(f"{self.count} {rows} {place}; the first: {self._first.what}, {self._first.where}"))


def read_arrays(
    data: bytes, n_columns: int, delimiter: bytes, kinds: Mapping[int, ValueKind], missing: Sequence[str]
) -> dict[int, pa.Array]:
    """Return the columns at the positions in `kinds`; `missing` become nulls among numbers only.

    The data must be UTF-8. Raises pa.ArrowInvalid when a row is ragged or a text is no number.
    """
    names = [str(i) for i in range(n_columns)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # One block: rows are cut already, so that a line end inside quotes is no trouble either.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(delimiter=delimiter.decode()),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,  # the caller has looked: it knows which row is at fault, Arrow does not say
            column_types={names[i]: _TYPES[kind] for i, kind in kinds.items()},
            include_columns=[names[i] for i in kinds],
            null_values=list(missing),
            strings_can_be_null=False,  # a text stays as it stands: whether it means missing follows from all rows
        ),
    )
    return {i: _single(table.column(j)) for j, i in enumerate(kinds)}


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_texts(data: bytes, n_columns: int, delimiter: bytes) -> list[pa.Array]:
    """Return all columns as text."""
    arrays = read_arrays(data, n_columns, delimiter, dict.fromkeys(range(n_columns), ValueKind.TEXT), ())
    return list(arrays.values())


def quoted_sections(data: bytes, delimiter: bytes) -> Sections:
    """Return the quoted sections of bytes that begin with a row."""
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
    """Return the end of the last row that is surely whole, 0 if there is none (more bytes may follow the data)."""
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
    """Return the number of line ends."""
    # In slices, for a mask that stays in the cache.
    n_lines = 0
    for start in range(0, len(data), _SLICE):
        found = np.frombuffer(data, np.uint8, min(_SLICE, len(data) - start), start)
        n_lines += int(np.count_nonzero(found == _LINE_FEED))
    return n_lines if b"\r" not in data else n_lines + data.count(b"\r") - data.count(b"\r\n")


def scan(data: bytes, delimiter: bytes) -> Records:
    """Return the rows of bytes that begin with a row; empty lines are left out."""
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
    """Return the position after every line end."""
    is_end = text == _LINE_FEED
    returns = np.flatnonzero(text == _RETURN)
    if len(returns):
        followed = text[np.minimum(returns + 1, len(text) - 1)] == _LINE_FEED
        is_end[returns[~followed]] = True
    return np.flatnonzero(is_end) + 1


def _blank_out(text: NDArray[np.uint8], sections: Sections) -> NDArray[np.uint8]:
    """Return the bytes with quotes in place of all that is quoted."""
    if not len(sections.starts):
        return text
    change = np.zeros(len(text) + 1, np.int8)
    change[sections.starts] += 1
    change[sections.ends] -= 1
    return np.where(np.cumsum(change[:-1], dtype=np.int8) > 0, np.uint8(_QUOTE), text)


def read_header(stream: Stream, delimiter: bytes | None, given: tuple[str, ...] | None = None) -> Header:
    """Read up to the end of the first row that is not empty; `given` names make that row the first of the data."""
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
    row = text[:end]
    where = f"{name} line {line}"
    if b"\0" in row:
        raise BncliError("the header holds NUL bytes, so this is no text file", where=where)
    try:
        row.decode()
    except UnicodeDecodeError as error:
        raise BncliError("the header is not UTF-8 text", where=where, hint=f"how is it encoded? {LATIN}") from error
    fields = read_texts(row, _count_outside_quotes(row, chosen) + 1, chosen)
    if given is not None:
        if len(given) != len(fields):
            what = f"the first row has {len(fields)} field{'s' * (len(fields) != 1)}, and --names gives {len(given)}"
            raise UsageError(what, where=where, hint="give every column a name; is the delimiter right? --delimiter")
        check_distinct(given, "--names")
        return Header(TextLayout(name, given, chosen), text + more, line)
    names = tuple(field[0].as_py().strip(BLANKS) for field in fields)
    check_distinct(names, where)
    layout = TextLayout(name, names, chosen)
    return Header(layout, text[end:] + more, line + count_lines(text[:end]))


def _check_width(start: bytes, name: str) -> None:
    """Refuse wide characters without a byte-order mark, told by the NUL bytes of the first letters."""
    wide = "UTF-32" if start.count(b"\0") == 3 else "UTF-16" if b"\0" in start[:2] else None
    if wide:
        end = "be" if start.startswith(b"\0") else "le"
        raise BncliError(f"the text is {wide}", where=name, hint=f"--encoding {wide.lower()}-{end}")


def _first_row(text: bytes, delimiter: bytes | None, *, at_end: bool) -> tuple[int, bytes]:
    """Return the end of the first row (0: not in sight) and the delimiter: the one given or else the most frequent one.

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
    """Return the position after the first line end that is not quoted, 0 if there is none."""
    start = 0
    for stop, after in zip((*sections.starts.tolist(), len(text)), (*sections.ends.tolist(), 0), strict=True):
        if found := _next_line_end(text, start, stop, is_all):
            return found
        start = after
    return 0


def _next_line_end(text: bytes, start: int, stop: int, is_all: bool) -> int:
    """Return the position after the next line end before `stop`, 0 if there is none or its second half may follow."""
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


def check_distinct(names: tuple[str, ...], where: str) -> None:
    """Columns are matched by name, so a name may stand only once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            shown = name if len(name) <= _N_SHOWN else name[:_N_SHOWN] + "..."
            raise BncliError(
                f"the column name '{shown}' appears twice",
                where=where,
                hint="rename one of the two; or is the header missing? --names a,b,c gives one",
            )
        seen.add(name)


def parse_delimiter(text: str | None, file_format: str | None) -> bytes | None:
    """Return the byte that the user asks for, None if it is to be found in the header."""
    if text is None:
        return b"\t" if file_format == "tsv" else None
    delimiter = _NAMED.get(text, text.encode())
    if len(delimiter) != 1 or delimiter in b'"\r\n\0':
        raise UsageError(f"the delimiter '{text}' is not a single character that can separate fields")
    return delimiter


def cut(stream: Stream, header: Header, size: int = BLOCK_SIZE) -> Iterator[TextBlock]:
    """Yield the blocks of the file after its header, in order."""
    layout, rest, line = header.layout, header.rest, header.line
    unclosed = 0
    wanted = min(size, FIRST_BLOCK_SIZE)
    if size == BLOCK_SIZE:
        size, wanted = (
            max(n, min(ROWS_PER_BLOCK * (sum(map(len, layout.names)) + len(layout.names)), MAX_WIDE_BLOCK))
            for n in (size, wanted)
        )
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
            n_bytes = len(rest)
            where = f"{layout.path} line {line}"
            if n_bytes > MAX_ROW:
                raise BncliError(
                    f"a line of more than {MAX_ROW >> 20} MB", where=where, hint="is this a table in text form?"
                )
            wanted = max(wanted, (2 * n_bytes))


def _split(
    layout: TextLayout, rest: bytes, more: bytes, line: int, at_end: bool
) -> tuple[bytes, bytes, tuple[BadRow, ...]]:
    """Return the whole rows, the bytes after them, and the row that is malformed by a quote without an end."""
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
        # The line on which the row begins.
        row = data[end : _line_end(data, end)]
        bad = BadRow("a quote is opened and never closed", layout.path, line + count_lines(data[:end]), row)
        return data[:end], data[end + len(bad.raw) :], (bad,)
    return data[:end], data[end:], ()


def _line_end(data: bytes, start: int) -> int:
    line_feed = data.find(b"\n", start)
    if line_feed < 0:
        line_feed = data.find(b"\r", start)
    return line_feed + 1 if line_feed >= 0 else len(data)


def _cure(row: BadRow) -> str:
    hint = "--on-bad-row skip leaves it out"
    return f"{hint}; or it is encoded otherwise: {LATIN}" if row.what == NOT_UTF8 else hint
