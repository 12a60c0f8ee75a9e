"""Slow and obvious readers of delimited text, to compare the quick ones with."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """A row as the character-by-character reader sees it."""

    start: int
    line: int
    fields: list[bytes] = field(default_factory=lambda: [b""])
    end: int = 0
    closed: bool = True


def read_rows(data: bytes, delimiter: bytes) -> list[Row]:
    """One byte after the other: outside, at a field's start, inside quotes."""
    rows: list[Row] = []
    row: Row | None = None
    line = position = 0
    quoted = False
    field_start = True
    while position < len(data):
        byte = data[position : position + 1]
        if row is None:
            row = Row(position, line)
            field_start = True
        if byte in (b"\n", b"\r"):
            width = 2 if data[position : position + 2] == b"\r\n" else 1
            line += 1
            if not quoted:
                row.end = position + width
                if position > row.start:
                    rows.append(row)
                row = None
                position += width
                continue
            row.fields[-1] += data[position : position + width]
            position += width
            continue
        if quoted:
            if byte == b'"' and data[position + 1 : position + 2] == b'"':
                row.fields[-1] += b'"'
                position += 1
            elif byte == b'"':
                quoted = False
            else:
                row.fields[-1] += byte
        elif byte == b'"' and field_start:
            quoted = True
        elif byte == delimiter:
            row.fields.append(b"")
        else:
            row.fields[-1] += byte
        field_start = not quoted and byte == delimiter
        position += 1
    if row is not None:
        row.end, row.closed = len(data), not quoted
        rows.append(row)
    return rows
