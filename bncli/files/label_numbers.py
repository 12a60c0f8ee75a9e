"""A number for each label of the class, from a file: CSV of two columns (`label,weight`), or a JSON object.

Conventions: a first line whose second field is no number is a heading; blank lines are skipped. A text that names no
file is what it says, `label=number,...`.
"""

from __future__ import annotations

import csv
import os
from typing import Any

from bncli.catalogue.option_kinds import format_label_numbers, parse_decimal
from bncli.errors import BncliError
from bncli.files.documents import Node, decode_utf8, parse_json
from bncli.files.paths import cannot_read

_MOST_BYTES = 1 << 24


def read_label_numbers(path: str) -> dict[str, float]:
    """Return the numbers by label; BncliError with the line for what is no such file."""
    text = small_text(path)
    if text.lstrip().startswith("{"):
        return _from_json(parse_json(text.encode(), path))
    rows = csv_rows(text, path)
    if rows and len(rows[0][1]) == 2 and parse_decimal(rows[0][1][1]) is None:
        del rows[0]
    found: dict[str, float] = {}
    for line, fields in rows:
        number = parse_decimal(fields[1]) if len(fields) == 2 else None
        if number is None:
            what = f"expected a label and a number, found {','.join(fields)[:60]!r}"
            raise BncliError(what, where=f"{path}, line {line}", hint="a line holds label,number")
        if fields[0] in found:
            raise BncliError(f"the label {fields[0]!r} stands there twice", where=f"{path}, line {line}")
        found[fields[0]] = number
    if not found:
        raise BncliError("there is no label with a number", where=path, hint="a line holds label,number")
    return found


def _from_json(document: Node) -> dict[str, float]:
    found = {label: node.number() for label, node in document.members().items()}
    if not found:
        document.fail("there is no label with a number")
    return found


def resolve_label_numbers(value: Any) -> Any:
    """Return what was typed; where it is the path of a file, its numbers as they are typed: `label=number,...`."""
    if not isinstance(value, str | os.PathLike) or not os.path.exists(value):
        return value
    return format_label_numbers(read_label_numbers(os.fspath(value)))


def resolve_costs(value: Any) -> Any:
    """Return what was typed; where it is the path of a table of costs, its numbers as `true:decision=cost,...`."""
    if not isinstance(value, str | os.PathLike) or not os.path.exists(value):
        return value
    # A heading with the decisions, then a line a true label; an empty field is a cost only of a right decision.
    #
    # The field above the labels may be anything, or (R writes so) not be there.
    path = os.fspath(value)
    rows = csv_rows(small_text(path), path)
    if len(rows) < 2 or len(rows[0][1]) < 2:
        what = "this is no table of costs"
        hint = "commas between fields; a first line with the decisions, then a line a true label"
        raise BncliError(what, where=path, hint=hint)
    heading = rows[0][1]
    decisions = heading if all(len(fields) == len(heading) + 1 for _, fields in rows[1:]) else heading[1:]
    found: dict[str, float] = {}
    for line, (true, *costs) in rows[1:]:
        where = f"{path}, line {line}"
        if len(costs) != len(decisions):
            what = f"{len(costs)} costs for {len(decisions)} decision{'s' * (len(decisions) != 1)}"
            raise BncliError(what, where=where, hint="a line holds a true label, then a cost for each decision")
        for decision, text in zip(decisions, costs, strict=True):
            cost = 0.0 if not text and decision == true else parse_decimal(text)
            if cost is None or cost < 0:
                said = f"costs {text!r}" if text else "has no cost"
                what = f"deciding {decision!r} where {true!r} is true {said}"
                raise BncliError(what, where=where, hint="a cost is a number of at least 0")
            if f"{true}:{decision}" in found:
                raise BncliError(f"deciding {decision!r} where {true!r} is true stands there twice", where=where)
            found[f"{true}:{decision}"] = cost
    return format_label_numbers(found)


def small_text(path: str) -> str:
    """Return the text of a file that people write by hand."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(content) > _MOST_BYTES:
        raise BncliError(f"the file has more than {_MOST_BYTES:,} bytes: it is no such list", where=path)
    return decode_utf8(content, path)


def csv_rows(text: str, path: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not blank, with their numbers, as fields without blanks around them."""
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        rows = [(reader.line_num, [field.strip() for field in fields]) for fields in reader]
    except csv.Error as error:
        raise BncliError(f"this is no CSV: {error}", where=f"{path}, line {reader.line_num}") from error
    return [(line, fields) for line, fields in rows if any(fields)]
