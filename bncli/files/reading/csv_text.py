"""Delimited text files: the header, blocks of whole rows, and the conversion of a block to a row block.

Rows. A quote opens a quoted section only at the start of a field. Inside the section a doubled quote is a quote, and
delimiters and line ends are data. After the section the field continues up to the next delimiter or line end. Anywhere
else a quote is an ordinary character. A row ends at a line feed, a carriage return, or both together; an empty line is
not a row. Quoted sections are found without a loop if quotes alternate between starts of fields and ends of sections,
as in nearly every file; otherwise a regular expression walks from section to section. Both give the same result.

Blocks. A file is divided into blocks of whole rows, which can be parsed independently, in any thread. A quote that is
never closed would swallow the rest of the file. Therefore, if a quote is still open at the end of the file or after
64 MB, only the line on which its row begins is treated as a malformed row, and reading continues with the next line.
More than eight such quotes are an error.

Parsing. Normally one call of Arrow's CSV parser converts a block. If that fails, or if the block contains NUL bytes or
is not UTF-8, its rows are examined one by one: malformed rows are removed, and a column that does not consist of
numbers is read as text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Index, Mask
from bncli.errors import BncliError, UsageError
from bncli.files.reading.byte_streams import Stream
from bncli.files.reading.numbers import has_leading_zeros, to_finite
from bncli.files.reading.source import (
    BLANKS,
    NOT_UTF8,
    BadRow,
    ColumnRequest,
    MissingTokens,
    RowBlock,
    ValueKind,
    Values,
    list_names,
    select_rows,
    shorten,
)
from bncli.files.reading.values import convert_values, find_faults

BLOCK_SIZE = 1 << 21
"""The usual size of a block in bytes."""
FIRST_BLOCK_SIZE = 1 << 18
"""The size of the first block in bytes; it is small so that types can be guessed, and rows scored, after few bytes."""
ROWS_PER_BLOCK, MAX_WIDE_BLOCK = 64, 1 << 25
"""Blocks of a wide table are larger, so that they hold about this many rows, up to this many bytes."""
MAX_ROW = 1 << 26
"""The maximum size of a row in bytes; without a limit, a file that is not a table would be read as a single row."""
MAX_UNCLOSED = 8
"""The maximum number of unclosed quotes in a file; each costs a search through 64 MB, or up to the end of the file."""
LATIN = "set the encoding, as in --encoding latin-1"
"""The hint for text that is not UTF-8."""
WRONG_DELIMITER = "if the delimiter is wrong, set it with --delimiter"
"""The hint for tables with too few columns."""
_ARROW_TYPES = {ValueKind.TEXT: pa.string(), ValueKind.INTEGER: pa.int64(), ValueKind.NUMBER: pa.float64()}
_ZERO, _QUOTE, _LINE_FEED, _RETURN = b'0"\n\r'
_DELIMITERS = b",\t;|"
_NAMED_DELIMITERS = {"tab": b"\t", "\\t": b"\t", "comma": b",", "semicolon": b";", "bar": b"|", "space": b" "}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DELIMITER_ROW = re.compile(rb'"?[Ss][Ee][Pp]=([^"\r\n\0])"?[,;\t|]*[\r\n]*')
"""The row in which Excel expects the delimiter, before the header."""
_READ_SIZE = 1 << 18
_SLICE = 1 << 16
"""The number of bytes searched at a time, so that the masks stay in the cache of the processor."""


@dataclass(frozen=True)
class TextLayout:
    """The path, the column names and the delimiter of a text file."""

    path: str
    names: tuple[str, ...]
    delimiter: bytes


@dataclass(frozen=True)
class TextBlock:
    """Whole rows of a text file; `line` is the number of the line on which the bytes begin, counted from 1."""

    layout: TextLayout
    data: bytes
    line: int
    bad: tuple[BadRow, ...] = ()
    paused: bool = False
    """Whether the input paused after these rows, so that their results should not wait for more rows."""

    @property
    def path(self) -> str:
        return self.layout.path


class TextFile:
    """An open text file whose header has been read; `blocks` yields its rows."""

    def __init__(
        self, stream: Stream, delimiter: bytes | None, names: tuple[str, ...] | None, block_size: int | None
    ) -> None:
        layout, pending, line = read_header(stream, delimiter, names)
        self.names = layout.names
        self.delimiter = layout.delimiter.decode()
        self.blocks: Iterator[TextBlock] = cut_blocks(stream, layout, pending, line, block_size)

    def first_block(self) -> TextBlock | None:
        """Return the first block without removing it from `blocks`, or None if there is none."""
        block = next(self.blocks, None)
        if block is not None:
            self.blocks = itertools.chain((block,), self.blocks)
        return block


def parse_delimiter(text: str | None, file_format: str | None) -> bytes | None:
    """Return the delimiter given by the options --delimiter and --format, or None if it is to be detected.

    Raises UsageError if --delimiter is not a single character that can separate fields.
    """
    if text is None:
        return b"\t" if file_format == "tsv" else None
    delimiter = _NAMED_DELIMITERS.get(text, text.encode())
    if len(delimiter) != 1 or delimiter in b'"\r\n\0':
        raise UsageError(f"the delimiter '{text}' is not a single character that can separate fields")
    return delimiter


def read_header(
    stream: Stream, delimiter: bytes | None, names: tuple[str, ...] | None = None
) -> tuple[TextLayout, bytes, int]:
    """Read the header, which is the first row that is not empty; if `names` are given, that row is data instead.

    A row such as `sep=;` before it, which Excel reads, is left out; it sets the delimiter if `delimiter` is None.

    Returns the layout, the bytes that were read beyond the header, and the number of the line on which they begin.
    Raises BncliError for an invalid header, and UsageError if the number of `names` is not the number of fields.
    """
    path = stream.owner.name
    data = stream.read_ready(_READ_SIZE).removeprefix(_BYTE_ORDER_MARK)
    # UTF-16 and UTF-32 without a byte-order mark are recognised by the NUL bytes of the first letters.
    start = data[:4]
    wide = "UTF-32" if start.count(b"\0") == 3 else "UTF-16" if b"\0" in start[:2] else None
    if wide:
        order = "be" if start.startswith(b"\0") else "le"
        raise BncliError(f"the text is {wide}", where=path, hint=f"add --encoding {wide.lower()}-{order}")
    text = data.lstrip(b"\r\n")
    line = 1 + count_lines(data[: len(data) - len(text)])
    end, n_fields, chosen, text = _await_first_row(stream, delimiter, text, line)
    if found := _DELIMITER_ROW.fullmatch(text[:end]):
        after = text[end:] or stream.read_ready(_READ_SIZE)
        text = after.lstrip(b"\r\n")
        line += count_lines(found[0]) + count_lines(after[: len(after) - len(text)])
        end, n_fields, chosen, text = _await_first_row(stream, delimiter or found[1], text, line)
    row = text[:end]
    where = f"{path} line {line}"
    if b"\0" in row:
        raise BncliError("the header contains NUL bytes, so this is not a text file", where=where)
    try:
        row.decode()
    except UnicodeDecodeError as error:
        raise BncliError("the header is not UTF-8 text", where=where, hint=LATIN) from error
    if names is not None:
        if len(names) != n_fields:
            what = f"the first row has {n_fields} field{'s' * (n_fields != 1)}, but --names gives {len(names)}"
            raise UsageError(what, where=where, hint=f"give every column a name; {WRONG_DELIMITER}")
        check_distinct(names, "--names")
        return TextLayout(path, names, chosen), text, line
    fields = read_arrays(row, n_fields, chosen, dict.fromkeys(range(n_fields), ValueKind.TEXT), ())
    names = tuple(field[0].as_py().strip(BLANKS) for field in fields.values())
    check_distinct(names, where)
    return TextLayout(path, names, chosen), text[end:], line + count_lines(row)


def _await_first_row(stream: Stream, delimiter: bytes | None, text: bytes, line: int) -> tuple[int, int, bytes, bytes]:
    """Return the result of `_first_row`, and `text` followed by the bytes read to find the row's end.

    Raises BncliError if the text is empty, or if the row, which begins on line `line`, does not end or is too long.
    """
    path = stream.owner.name
    # The bytes at hand are searched before more are awaited: a header that arrives slowly may be complete already.
    while True:
        if not text:
            raise BncliError("the file is empty", where=path, hint="a table must begin with a row of column names")
        end, n_fields, chosen = _first_row(text, delimiter, at_end=False)
        if end:
            return end, n_fields, chosen, text
        more = stream.read_ready(max(_READ_SIZE, len(text)))  # doubled, since all of it is searched again
        end, n_fields, chosen = _first_row(text, delimiter, at_end=not more)
        text += more
        if end:
            return end, n_fields, chosen, text
        if not more or len(text) > MAX_ROW:
            why = "a quote is never closed" if not more else f"it has more than {MAX_ROW >> 20} MB"
            raise BncliError(f"the header row does not end: {why}", where=f"{path} line {line}")


def _first_row(text: bytes, delimiter: bytes | None, *, at_end: bool) -> tuple[int, int, bytes]:
    """Return the end of the first row (0 if it lies beyond the text), its number of fields, and the delimiter.

    If no delimiter is given, the one that yields the most fields is chosen from comma, tab, semicolon and bar (in a
    tie, the first of these).
    """
    candidates = [delimiter] if delimiter else [bytes([d]) for d in _DELIMITERS]
    return max((_first_row_by(text, d, at_end) for d in candidates), key=itemgetter(1))


def _first_row_by(text: bytes, delimiter: bytes, at_end: bool) -> tuple[int, int, bytes]:
    size = 1 << 12  # the header is usually a small part of the text, so short prefixes are searched first
    while True:
        head = text[:size]
        is_all = at_end and size >= len(text)
        if is_all or b"\n" in head or b"\r" in head:
            rows = scan(head, delimiter)
            end = int(rows.ends[0])
            # A row that ends with the head is whole unless its quote is open, or its return may precede a line feed.
            is_whole = end < len(head)
            if not is_whole and (is_all or head.endswith(b"\n")):
                is_whole = not quoted_sections(head, delimiter).unclosed
            if is_whole:
                return end, int(rows.n_fields[0]), delimiter
        if size >= len(text):
            return 0, 1, delimiter
        size *= 4


def check_distinct(names: tuple[str, ...], where: str, *, is_text: bool = True) -> None:
    """Raise BncliError if two columns have the same name, or if more than one has no name.

    is_text: whether the names are the first row of a text file, so that the header may be missing.
    """
    unnamed = [str(i) for i, name in enumerate(names, 1) if not name]
    if len(unnamed) > 1:
        hint = "delete the columns if they are empty, or give each a name"
        raise BncliError(
            f"columns {list_names(unnamed)} have no name",
            where=where,
            hint=f"{hint}; the header must be the first row" if is_text else hint,
        )
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            hint = "rename one of the columns"
            raise BncliError(
                f"the column name '{shorten(name, 60)}' appears twice",
                where=where,
                hint=f"{hint}; or is the header missing? Add --names a,b,c to give one" if is_text else hint,
            )
        earlier_names.add(name)


def cut_blocks(
    stream: Stream, layout: TextLayout, pending: bytes, line: int, size: int | None = None
) -> Iterator[TextBlock]:
    """Yield the blocks of a file after its header, in order.

    pending, line: the bytes that were read beyond the header, and the number of the line on which they begin. size: the
    size of a block in bytes; None means BLOCK_SIZE, or more if the table is wide. Raises BncliError for a row of more
    than MAX_ROW bytes, and for more than MAX_UNCLOSED quotes that are never closed.
    """
    n_wanted = min(size or BLOCK_SIZE, FIRST_BLOCK_SIZE)
    if size is None:
        wide = min(ROWS_PER_BLOCK * (sum(map(len, layout.names)) + len(layout.names)), MAX_WIDE_BLOCK)
        n_wanted, size = max(n_wanted, wide), max(BLOCK_SIZE, wide)
    # Invariant: `pending` are the bytes after the last block, of a row that is not whole yet; `line` is their line.
    n_unclosed = 0
    after_unclosed = memoryview(b"")  # bytes that were read in search of the end of a row that has none
    while True:
        again = bytes(after_unclosed[: max(n_wanted - len(pending), 1)])
        paused_already = stream.paused and b"\n" in pending  # rows that came with the header should not wait
        more = b"" if paused_already else again or stream.read_ready(max(n_wanted - len(pending), 1))
        if not pending and not more:
            return
        paused, stream.paused = stream.paused, False
        # Fewer bytes than requested: the file has ended, unless the input only paused.
        at_end = not paused_already and not again and (not more or (len(pending) + len(more) < n_wanted and not paused))
        if not paused_already:
            after_unclosed = after_unclosed[len(again) :]
        data, pending, bad = _split_rows(layout, pending, more, line, at_end)
        n_unclosed += len(bad)
        if n_unclosed > MAX_UNCLOSED:
            what = f"more than {MAX_UNCLOSED} quotes are opened and never closed"
            raise BncliError(what, where=bad[0].where, hint="a quote inside a quoted field must be doubled")
        # reading continues after the dropped line, with bytes that were read already
        if bad:
            after_unclosed, pending = memoryview(pending + bytes(after_unclosed)), b""
        if data or bad:
            yield TextBlock(layout, data, line, bad, paused)
            line += count_lines(data) + sum(count_lines(row.raw) for row in bad)
            n_wanted = size
        elif len(pending) > MAX_ROW:
            what = f"a line is longer than {MAX_ROW >> 20} MB"
            raise BncliError(what, where=f"{layout.path} line {line}", hint="is the file a table in text form?")
        else:
            # no whole row yet: twice as much, so that a long row is searched a few times only
            n_wanted = max(n_wanted, min(2 * len(pending), MAX_ROW + 1))


def _split_rows(
    layout: TextLayout, pending: bytes, more: bytes, line: int, at_end: bool
) -> tuple[bytes, bytes, tuple[BadRow, ...]]:
    """Split pending + more; return the whole rows, the bytes to read next, and the malformed rows.

    The malformed rows are empty, or the one line with an unclosed quote that lies between the whole rows and the rest.
    """
    line_feed = more.rfind(b"\n")
    # Without a quote every line feed ends a row; this decides most blocks.
    if line_feed >= 0 and b'"' not in more and b'"' not in pending and not at_end:
        return b"".join((pending, memoryview(more)[: line_feed + 1])), more[line_feed + 1 :], ()
    data = pending + more
    sections = quoted_sections(data, layout.delimiter)
    if at_end and not sections.unclosed:
        return data, b"", ()
    end = last_boundary(data, sections)
    if not (sections.unclosed and (at_end or (end == 0 and len(data) > MAX_ROW))):
        return data[:end], data[end:], ()
    # Only the line on which the unclosed row begins is dropped.
    line_end = data.find(b"\n", end)
    if line_end < 0:
        line_end = data.find(b"\r", end)
    resume = line_end + 1 if line_end >= 0 else len(data)
    bad = BadRow("a quote is opened and never closed", layout.path, line + count_lines(data[:end]), data[end:resume])
    return data[:end], data[resume:], (bad,)


@dataclass(frozen=True)
class Sections:
    """The quoted sections [starts, ends), ascending; `unclosed` is whether the last one has no closing quote."""

    starts: Index
    ends: Index
    unclosed: bool


def quoted_sections(data: bytes, delimiter: bytes) -> Sections:
    """Return the quoted sections of bytes that begin at the start of a row."""
    if b'"' not in data:
        return Sections(np.empty(0, np.intp), np.empty(0, np.intp), False)
    text = np.frombuffer(data, np.uint8)
    # If quotes alternate, every second one opens a section. That holds if each of these stands at the start of a field
    # or right after a quote: a doubled quote closes a section and opens it again.
    quotes = np.flatnonzero(text == _QUOTE)
    before = text[quotes[0::2] - 1]  # for a quote at position 0 this is the last byte; the next line corrects it
    before[quotes[0::2] == 0] = _LINE_FEED
    may_precede = np.zeros(256, np.bool_)
    may_precede[[delimiter[0], _LINE_FEED, _RETURN, _QUOTE]] = True
    if not may_precede[before].all():
        return _quoted_sections_by_regex(data, delimiter)
    unclosed = len(quotes) % 2 == 1
    ends = np.append(quotes[1::2] + 1, len(data)) if unclosed else quotes[1::2] + 1
    return Sections(quotes[0::2], ends, unclosed)


def _quoted_sections_by_regex(data: bytes, delimiter: bytes) -> Sections:
    # a quote at the start of a field, then text and doubled quotes, then the closing quote (group 1) unless the data
    # end; possessive quantifiers (*+), since giving characters back would take time and change nothing
    pattern = re.compile(rb'(?<![^%s\r\n])"[^"]*+(?:""[^"]*+)*+("?)' % re.escape(delimiter))
    matches = list(pattern.finditer(data))
    starts = np.array([match.start() for match in matches], np.intp)
    ends = np.array([match.end() for match in matches], np.intp)
    return Sections(starts, ends, bool(matches) and not matches[-1][1])


def last_boundary(data: bytes, sections: Sections) -> int:
    """Return the end of the last row that is certainly whole, or 0; more bytes may follow the data."""
    end = len(data)
    while True:
        line_end = data.rfind(b"\n", 0, end)
        if line_end < 0:
            # A return at the very end may be the first half of a return and line feed.
            line_end = data.rfind(b"\r", 0, min(end, len(data) - 1))
        end = line_end + 1
        # the last section that begins before the line end
        section = int(np.searchsorted(sections.starts, end - 1, side="right")) - 1
        if end == 0 or section < 0 or end > sections.ends[section]:
            return end
        end = int(sections.starts[section])  # the line end is quoted


def count_lines(data: bytes) -> int:
    """Return the number of line ends: line feeds, carriage returns, and both together as one."""
    n_lines = 0
    for start in range(0, len(data), _SLICE):
        part = np.frombuffer(data, np.uint8, min(_SLICE, len(data) - start), start)
        n_lines += int(np.count_nonzero(part == _LINE_FEED))
    return n_lines if b"\r" not in data else n_lines + data.count(b"\r") - data.count(b"\r\n")


@dataclass(frozen=True)
class Records:
    """The rows of `data`: where they start and end (including the line end), and their numbers of fields.

    `lines` is the number of lines before each row. All arrays are (rows,).
    """

    data: bytes
    starts: Index
    ends: Index
    n_fields: Index
    lines: Index

    def take(self, rows: Mask) -> Records:
        return Records(self.data, self.starts[rows], self.ends[rows], self.n_fields[rows], self.lines[rows])


def scan(data: bytes, delimiter: bytes) -> Records:
    """Split CSV bytes that begin at the start of a row into records, leaving out empty lines."""
    if not data:
        return Records(data, *(np.empty(0, np.intp) for _ in range(4)))
    text = np.frombuffer(data, np.uint8)
    line_ends = _line_ends(text)
    sections = quoted_sections(data, delimiter)
    unquoted = text
    if len(sections.starts):
        # All bytes of quoted sections are replaced by quotes.
        change = np.zeros(len(text) + 1, np.int8)
        change[sections.starts] += 1
        change[sections.ends] -= 1
        # 1 inside a section and 0 outside, since sections do not overlap; wide enough as int8
        unquoted = np.where(np.cumsum(change[:-1], dtype=np.int8) > 0, np.uint8(_QUOTE), text)
    ends = _line_ends(unquoted)
    if not len(ends) or ends[-1] < len(data):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1]))
    delimiters = np.flatnonzero(unquoted == delimiter[0])
    # the delimiters between start and end, and 1
    n_fields = np.searchsorted(delimiters, ends) - np.searchsorted(delimiters, starts) + 1
    records = Records(data, starts, ends, n_fields, np.searchsorted(line_ends, starts, side="right"))
    return records.take(~np.isin(unquoted[starts], (_LINE_FEED, _RETURN)))


def _line_ends(text: NDArray[np.uint8]) -> Index:
    """Return the position after every line end."""
    is_end = text == _LINE_FEED
    returns = np.flatnonzero(text == _RETURN)
    if len(returns):
        # a return before a line feed does not end the line; one at the very end is compared with itself, so it does
        is_followed = text[np.minimum(returns + 1, len(text) - 1)] == _LINE_FEED
        is_end[returns[~is_followed]] = True
    return np.flatnonzero(is_end) + 1


def read_arrays(
    data: bytes, n_columns: int, delimiter: bytes, kinds: Mapping[int, ValueKind], missing: Sequence[str]
) -> dict[int, pa.Array]:
    """Parse the columns at the positions in `kinds` with Arrow; `missing` tokens become nulls in columns of numbers.

    The data must be UTF-8. Returns the columns keyed by position. Raises pa.ArrowInvalid if a row has a wrong number of
    fields, or if a value in a column of numbers is not a number.
    """
    names = [str(i) for i in range(n_columns)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # One block: the rows are whole already, and a block could end at a line end inside quotes.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(delimiter=delimiter.decode()),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,  # the caller has checked; Arrow does not report which row is at fault
            column_types={names[i]: _ARROW_TYPES[kind] for i, kind in kinds.items()},
            include_columns=[names[i] for i in kinds],
            null_values=list(missing),
            strings_can_be_null=False,  # whether a text means missing depends on all rows, so it is kept
        ),
    )
    arrays = {}
    for j, i in enumerate(kinds):
        column = table.column(j)
        arrays[i] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return arrays


@dataclass(frozen=True)
class _Rows:
    """The well-formed rows of a block, and the malformed ones.

    records: the positions of the well-formed rows in the bytes of the block, or None if all bytes are such rows.
    """

    layout: TextLayout
    data: bytes
    line: int
    bad: tuple[BadRow, ...]
    records: Records | None = None

    def scan(self) -> Records:
        return scan(self.data, self.layout.delimiter) if self.records is None else self.records

    def locate(self, row: int) -> str:
        return f"{self.layout.path} line {self.line + int(self.scan().lines[row])}"

    def drop(self, records: Records, faults: Mapping[int, str]) -> _Rows:
        """Return these rows without the malformed ones, which are added to `bad`; `faults` is keyed by row index."""
        keep = np.ones(len(records.starts), np.bool_)
        keep[list(faults)] = False
        bad = list(self.bad)
        for row in sorted(faults):
            raw = records.data[records.starts[row] : records.ends[row]]
            bad.append(BadRow(faults[row], self.layout.path, self.line + int(records.lines[row]), raw))
        bad.sort(key=attrgetter("number"))
        return replace(self, bad=tuple(bad), records=records.take(keep))


def parse_block(block: TextBlock, requests: Sequence[ColumnRequest], tokens: MissingTokens) -> RowBlock:
    rows = _Rows(block.layout, block.data, block.line, block.bad)
    if b"\0" in block.data or not _is_utf8(block.data):
        rows = _drop_malformed(rows)
    position = {name: i for i, name in enumerate(block.layout.names)}
    positions = [position[request.name] for request in requests]
    # A column that is requested in two types is parsed as text, which can be converted to numbers.
    kinds: dict[int, ValueKind] = {}
    for i, request in zip(positions, requests, strict=True):
        kinds[i] = ValueKind.TEXT if kinds.get(i, request.kind) is not request.kind else request.kind
    kinds = kinds or {0: ValueKind.TEXT}
    try:
        columns = _parse_columns(rows, kinds, tokens)
    except pa.ArrowInvalid:
        if rows.records is None:  # the usual reason is a row with a wrong number of fields
            rows = _drop_malformed(rows)
        try:
            columns = _parse_columns(rows, kinds, tokens)
        except pa.ArrowInvalid:
            # some value is not a number: `convert_values` finds its row in the text
            columns = _parse_columns(rows, dict.fromkeys(kinds, ValueKind.TEXT), tokens)
    n_rows = len(next(iter(columns.values())))
    converted = [convert_values(request, columns[i], tokens) for request, i in zip(requests, positions, strict=True)]
    values = [column for column, _ in converted]
    faults = find_faults(requests, [columns[i] for i in positions], [wrong for _, wrong in converted])
    if faults:
        keep = np.ones(n_rows, np.bool_)
        keep[list(faults)] = False
        values = [select_rows(column, keep) for column in values]
        rows = rows.drop(rows.scan(), faults)
        n_rows = int(keep.sum())
    return RowBlock(n_rows, tuple(values), rows.bad, rows.locate)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():  # the usual case, and much faster than decoding
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _drop_malformed(rows: _Rows) -> _Rows:
    """Remove the rows that have NUL bytes, bytes that are not UTF-8, or a wrong number of fields."""
    layout, data = rows.layout, rows.data
    records = scan(data, layout.delimiter)
    faults: dict[int, str] = {}
    view, start = memoryview(data), 0
    while start < len(data):
        try:
            str(view[start:], "utf-8")
            break
        except UnicodeDecodeError as error:
            # the row that contains the byte; decoding continues after it
            i = int(np.searchsorted(records.ends, start + error.start, side="right"))
            faults[i] = NOT_UTF8
            start = int(records.ends[i])
    nul = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    faults |= {int(row): "a NUL byte" for row in np.unique(np.searchsorted(records.ends, nul, side="right"))}
    n_expected = len(layout.names)
    for row in np.flatnonzero(records.n_fields != n_expected):
        faults[int(row)] = f"expected {n_expected} fields, found {records.n_fields[row]}"
    whole = rows.drop(records, faults)
    if faults:
        kept = whole.scan()
        data = b"".join(data[a:b] for a, b in zip(kept.starts, kept.ends, strict=True))
    return replace(whole, data=data)


def _parse_columns(rows: _Rows, kinds: dict[int, ValueKind], tokens: MissingTokens) -> dict[int, Values]:
    """Parse the columns in `kinds`; return them keyed by position.

    A column with a number that is not finite is returned as strings. Raises pa.ArrowInvalid if parsing fails.
    """
    # Arrow refuses bytes without any row ("Empty CSV file"); here they are a block without rows.
    if rows.data[:1] in b"\r\n" and not rows.data.strip(b"\r\n"):
        return {i: pa.array([], pa.string()) for i in kinds}
    if ValueKind.INTEGER in kinds.values() and any(x in rows.data and b"0" + x in rows.data for x in (b"x", b"X")):
        # Arrow accepts 0x1F as an integer, but not as a double.
        kinds = {i: ValueKind.NUMBER if kind is ValueKind.INTEGER else kind for i, kind in kinds.items()}
    # Arrow compares without stripping, so tokens with a blank at either end are listed as well.
    missing = list(dict.fromkeys(f"{a}{token}{b}" for token in tokens.number for a in ("", " ") for b in ("", " ")))
    n_columns, delimiter = len(rows.layout.names), rows.layout.delimiter
    columns = read_arrays(rows.data, n_columns, delimiter, kinds, missing)
    not_finite = []
    for i, array in columns.items():
        if kinds[i] is not ValueKind.TEXT:
            columns[i] = numbers = to_finite(array)
            if numbers is None:
                not_finite.append(i)
    if not_finite:
        columns |= read_arrays(rows.data, n_columns, delimiter, dict.fromkeys(not_finite, ValueKind.TEXT), ())
    return columns


def columns_with_leading_zeros(
    block: TextBlock, n_rows: int, watched: Collection[str], tokens: MissingTokens
) -> frozenset[str]:
    """Return the watched columns in which a number has leading zeros, such as 01234.

    A parser of numbers does not distinguish 01234 from 1234, so the bytes are searched for a zero at the start of a
    field that is followed by digits up to its end. Its column follows from the number of delimiters before it, unless
    there are quotes, blanks or malformed rows; then the watched columns are parsed as strings. Cost: a few percent of
    parsing, and nothing if no column is watched.

    n_rows: the number of well-formed rows in the block.
    """
    if not watched:
        return frozenset()
    text = np.frombuffer(block.data, np.uint8)
    # Candidates: zeros that follow a delimiter, quote or blank, and are followed by a digit.
    delimiter = block.layout.delimiter[0]
    padded = np.concatenate(([np.uint8(_LINE_FEED)], text, [np.uint8(_LINE_FEED)]))
    candidates = []
    for start in range(0, len(text), _SLICE):
        here = padded[start : start + _SLICE + 2]
        zeros = here[1:-1] == _ZERO
        # unsigned: bytes below "0" wrap around to large numbers
        zeros &= here[2:] - np.uint8(_ZERO) < 10
        before = here[:-2]
        # bytes up to the quote: line ends, blanks and quotes, and a few others that only make more candidates
        zeros &= (before == delimiter) | (before <= _QUOTE)
        candidates.append(np.flatnonzero(zeros) + start)
    starts = np.concatenate(candidates) if candidates else np.empty(0, np.intp)
    if not len(starts):
        return frozenset()
    # The column in which each field starts: each row has n_columns - 1 delimiters, and the last one before a field
    # counts its column.
    n_columns, delimiters = len(block.layout.names), np.flatnonzero(text == delimiter)
    before = np.where(starts > 0, text[starts - 1], np.uint8(_LINE_FEED))
    is_first = (before == _LINE_FEED) | (before == _RETURN)
    can_count = len(delimiters) == n_rows * (n_columns - 1) and b'"' not in block.data
    names = sorted(watched)
    if not can_count or not (is_first | (before == delimiter)).all():
        texts = parse_block(block, [ColumnRequest(name, ValueKind.TEXT) for name in names], tokens).values
        return frozenset(name for name, values in zip(names, texts, strict=True) if has_leading_zeros(values))
    columns = np.where(is_first, 0, (np.searchsorted(delimiters, starts) - 1) % max(n_columns - 1, 1) + 1)
    end = re.escape(block.layout.delimiter) + rb"\r\n"
    is_number = re.compile(rb"0[0-9]+[ \t]*(?:[%s]|\Z)" % end).match
    positions = {name: starts[columns == block.layout.names.index(name)] for name in names}
    return frozenset(name for name, at in positions.items() if any(is_number(block.data, i) for i in at.tolist()))
