"""From a block of text to a row block: the columns that are wanted, typed, and the malformed rows told apart.

The quick way is one call of Arrow's parser. Only when that fails, or the bytes are foul (NUL, not UTF-8), the rows of
this one block are looked at one by one: ragged and foul rows go, and a column that is not all numbers is read as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bncli.engine.kernels.arrays import Mask
from bncli.files.reading.arrow_csv import read_arrays
from bncli.files.reading.headers import Layout
from bncli.files.reading.numerals import padded, to_numpy
from bncli.files.reading.records import Records, scan
from bncli.files.reading.row_blocks import NOT_UTF8, BadRow, Kind, RowBlock, Values, Want, select
from bncli.files.reading.source import Tokens
from bncli.files.reading.text_blocks import TextBlock
from bncli.files.reading.values import find_faults, resolve


@dataclass(frozen=True)
class _Rows:
    """The good rows of a block. Once scanned, `records` tells where they stand in the `raw` bytes, from `line` on."""

    layout: Layout
    data: bytes
    line: int
    bad: tuple[BadRow, ...]
    records: Records | None = None
    raw: bytes = b""

    def scanned(self) -> tuple[Records, bytes]:
        """Where the rows are, and in which bytes."""
        if self.records is not None:
            return self.records, self.raw
        return scan(self.data, self.layout.delimiter), self.data


def parse_block(block: TextBlock, wants: Sequence[Want], tokens: Tokens) -> RowBlock:
    """The wanted columns of a block's rows."""
    rows = _Rows(block.layout, block.data, block.line, block.bad)
    if _is_foul(rows.data):
        rows = _weed(rows)
    position = {name: i for i, name in enumerate(block.layout.names)}
    positions = [position[want.name] for want in wants]
    kinds = _kinds(positions, wants) or {0: Kind.TEXT}
    try:
        found = _typed(rows, kinds, tokens)
    except pa.ArrowInvalid:
        if rows.records is None:  # not weeded yet: ragged rows are what Arrow most often refuses
            rows = _weed(rows)
        found = _typed_or_text(rows, kinds, tokens)
    n_rows = len(next(iter(found.values())))
    values = [resolve(want, found[i], tokens) for want, i in zip(wants, positions, strict=True)]
    return _without_wrong_values(rows, n_rows, wants, values, [found[i] for i in positions])


def _is_foul(data: bytes) -> bool:
    if b"\0" in data:
        return True
    if data.isascii():  # the usual case, told without decoding
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _kinds(positions: Sequence[int], wants: Sequence[Want]) -> dict[int, Kind]:
    """How each column is parsed: as text if anyone wants it so, for numbers can be had from text."""
    kinds: dict[int, Kind] = {}
    for i, want in zip(positions, wants, strict=True):
        kinds[i] = Kind.TEXT if kinds.get(i, want.kind) is not want.kind else want.kind
    return kinds


def _typed(rows: _Rows, kinds: dict[int, Kind], tokens: Tokens) -> dict[int, Values]:
    """The columns by position; raises pa.ArrowInvalid when they are not what `kinds` says."""
    # Arrow refuses no bytes at all ("Empty CSV file"); here that is a block without rows, as are empty lines.
    if rows.data[:1] in b"\r\n" and not rows.data.strip(b"\r\n"):
        return {i: pa.array([], pa.string()) for i in kinds}
    asked = kinds
    if Kind.INTEGER in kinds.values() and _may_be_hexadecimal(rows.data):
        # Arrow takes 0x1F for an integer, but not for a double.
        asked = {i: Kind.NUMBER if kind is Kind.INTEGER else kind for i, kind in kinds.items()}
    layout = rows.layout
    found = read_arrays(rows.data, len(layout.names), layout.delimiter, asked, padded(tokens.number))
    not_finite = []
    for i, array in found.items():
        if asked[i] is not Kind.TEXT:
            found[i] = numbers = to_numpy(array)
            if numbers is None:
                not_finite.append(i)
    if not_finite:
        texts = dict.fromkeys(not_finite, Kind.TEXT)
        found |= read_arrays(rows.data, len(layout.names), layout.delimiter, texts, ())
    return found


def _may_be_hexadecimal(data: bytes) -> bool:
    # One byte is found much faster than two.
    return any(x in data and b"0" + x in data for x in (b"x", b"X"))


def _typed_or_text(rows: _Rows, kinds: dict[int, Kind], tokens: Tokens) -> dict[int, Values]:
    try:
        return _typed(rows, kinds, tokens)
    except pa.ArrowInvalid:
        return _typed(rows, dict.fromkeys(kinds, Kind.TEXT), tokens)


def _without_wrong_values(
    rows: _Rows,
    n_rows: int,
    wants: Sequence[Want],
    resolved: Sequence[tuple[Values, Mask | None]],
    found: Sequence[Values],
) -> RowBlock:
    faults = find_faults(wants, found, [wrong for _, wrong in resolved])
    if not faults:
        return RowBlock(n_rows, tuple(values for values, _ in resolved), rows.bad, _locator(rows))
    keep = np.ones(n_rows, np.bool_)
    keep[list(faults)] = False
    records, raw = rows.scanned()
    bad = [_bad_row(rows, records, raw, row, what) for row, what in faults.items()]
    left = _Rows(rows.layout, b"", rows.line, _in_order(rows.bad, bad), records.take(keep), raw)
    values = tuple(select(values, keep) for values, _ in resolved)
    return RowBlock(int(keep.sum()), values, left.bad, _locator(left))


def _bad_row(rows: _Rows, records: Records, raw: bytes, row: int, what: str) -> BadRow:
    line = rows.line + int(records.lines[row])
    return BadRow(what, rows.layout.path, line, raw[records.starts[row] : records.ends[row]])


def _locator(rows: _Rows) -> Callable[[int], str]:
    return lambda row: f"{rows.layout.path} line {rows.line + int(rows.scanned()[0].lines[row])}"


def _weed(rows: _Rows) -> _Rows:
    """The rows that are whole: as many fields as the header, no NUL bytes, UTF-8."""
    layout, data = rows.layout, rows.data
    records = scan(data, layout.delimiter)
    faults: dict[int, str] = dict.fromkeys(_rows_not_utf8(data, records), NOT_UTF8)
    nul = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    faults |= {int(row): "a NUL byte" for row in np.unique(np.searchsorted(records.ends, nul, side="right"))}
    expected = len(layout.names)
    for row in np.flatnonzero(records.n_fields != expected):
        faults[int(row)] = f"expected {expected} fields, found {records.n_fields[row]}"
    bad = [_bad_row(rows, records, data, row, faults[row]) for row in sorted(faults)]
    keep = np.ones(len(records), np.bool_)
    keep[list(faults)] = False
    kept = records.take(keep)
    clean = b"".join(data[a:b] for a, b in zip(kept.starts, kept.ends, strict=True)) if faults else data
    return _Rows(layout, clean, rows.line, _in_order(rows.bad, bad), kept, data)


def _rows_not_utf8(data: bytes, records: Records) -> Iterator[int]:
    view, start = memoryview(data), 0
    while start < len(data):
        try:
            str(view[start:], "utf-8")
            return
        except UnicodeDecodeError as error:
            row = records.holding(start + error.start)
            yield row
            start = int(records.ends[row])


def _in_order(earlier: tuple[BadRow, ...], later: Sequence[BadRow]) -> tuple[BadRow, ...]:
    return tuple(sorted((*earlier, *later), key=lambda bad: bad.number))
