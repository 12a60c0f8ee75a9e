"""Files given as the value of an option: a number for each label, misclassification costs, domain knowledge.

A file of label numbers is a CSV file with two columns (`label,weight`) or a JSON object. If the second field of the
first line is not a number, that line is a header. Blank lines are skipped. Options that take such a file also take the
numbers themselves, `label=number,...`: a value that is not the path of a file is passed on unchanged. Domain knowledge
is a TOML file, whose content `bncli.catalogue.option_kinds` describes.
"""

from __future__ import annotations

import csv
import os
import tomllib
from typing import Any

from bncli.catalogue.option_kinds import format_label_numbers, parse_decimal
from bncli.errors import BncliError
from bncli.files.json_documents import decode_utf8, parse_json
from bncli.files.paths import cannot_read

_MAX_BYTES = 1 << 24


def resolve_label_numbers(value: Any) -> Any:
    """Return the numbers in the file `value` as `label=number,...`, or `value` itself if there is no such file.

    Raises BncliError if the file cannot be read or has any other content.
    """
    if not isinstance(value, str | os.PathLike) or not os.path.exists(value):
        return value
    return format_label_numbers(read_label_numbers(os.fspath(value)))


def read_label_numbers(path: str) -> dict[str, float]:
    """Load the numbers in a file, keyed by label; raise BncliError for any other content, with the line if known."""
    text = _read_text(path)
    if text.lstrip().startswith("{"):
        document = parse_json(text.encode(), path)
        numbers = {label: node.number() for label, node in document.members().items()}
        if not numbers:
            document.fail("the file contains no label with a number")
        return numbers
    rows = _csv_rows(text, path)
    if rows and len(rows[0][1]) == 2 and parse_decimal(rows[0][1][1]) is None:
        del rows[0]
    numbers = {}
    for line, fields in rows:
        number = parse_decimal(fields[1]) if len(fields) == 2 else None
        if number is None:
            what = f"expected a label and a number, found {','.join(fields)[:60]!r}"
            raise BncliError(what, where=f"{path}, line {line}", hint="write each line as label,number")
        if fields[0] in numbers:
            raise BncliError(f"the label {fields[0]!r} appears twice", where=f"{path}, line {line}")
        numbers[fields[0]] = number
    if not numbers:
        raise BncliError("the file contains no label with a number", where=path, hint="write each line as label,number")
    return numbers


def resolve_costs(value: Any) -> Any:
    """Return the costs in the file `value` as `true:decision=cost,...`, or `value` itself if there is no such file.

    The file is a CSV table: a header with the decisions, then one line per true label with the cost of each decision.
    The field above the labels may be absent, as in files that R writes. An empty field is allowed only for a correct
    decision, which then costs nothing. Raises BncliError if the file cannot be read or is not such a table.
    """
    if not isinstance(value, str | os.PathLike) or not os.path.exists(value):
        return value
    path = os.fspath(value)
    rows = _csv_rows(_read_text(path), path)
    if len(rows) < 2 or len(rows[0][1]) < 2:
        what = "the file is not a table of costs"
        hint = "use commas between fields, a first line with the decisions, then one line per true label"
        raise BncliError(what, where=path, hint=hint)
    header = rows[0][1]
    decisions = header if all(len(fields) == len(header) + 1 for _, fields in rows[1:]) else header[1:]
    costs: dict[str, float] = {}
    for line, (true, *fields) in rows[1:]:
        where = f"{path}, line {line}"
        if len(fields) != len(decisions):
            n, m = len(fields), len(decisions)
            what = f"{n} cost{'s' * (n != 1)} for {m} decision{'s' * (m != 1)}"
            raise BncliError(
                what, where=where, hint="write each line as a true label, followed by a cost for each decision"
            )
        for decision, text in zip(decisions, fields, strict=True):
            cost = 0.0 if not text and decision == true else parse_decimal(text)
            if cost is None or cost < 0:
                problem = f"costs {text!r}" if text else "has no cost"
                what = f"the decision {decision!r} when {true!r} is true {problem}"
                raise BncliError(what, where=where, hint="a cost must be a number of at least 0")
            if f"{true}:{decision}" in costs:
                what = f"the cost of deciding {decision!r} when {true!r} is true is given twice"
                raise BncliError(what, where=where, hint="give each pair once")
            costs[f"{true}:{decision}"] = cost
    return format_label_numbers(costs)


def _read_text(path: str) -> str:
    """Read a UTF-8 file; raise BncliError if it cannot be read, has more than _MAX_BYTES bytes or is not UTF-8."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(content) > _MAX_BYTES:
        raise BncliError(f"the file has more than {_MAX_BYTES:,} bytes, too many for a list of labels", where=path)
    return decode_utf8(content, path)


def _csv_rows(text: str, path: str) -> list[tuple[int, list[str]]]:
    """Parse CSV; return the number of the last line and the stripped fields of each row that is not blank.

    Raises BncliError if the text is not valid CSV.
    """
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        rows = [(reader.line_num, [field.strip() for field in fields]) for fields in reader]
    except csv.Error as error:
        raise BncliError(f"the file is not valid CSV: {error}", where=f"{path}, line {reader.line_num}") from error
    return [(line, fields) for line, fields in rows if any(fields)]


def resolve_knowledge(value: Any) -> Any:
    """Return the content of the TOML file `value`, or `value` itself if it is not a path (a mapping, or JSON text).

    Raises BncliError if the file cannot be read, or is not TOML.
    """
    if not isinstance(value, str | os.PathLike) or (isinstance(value, str) and value.lstrip().startswith("{")):
        return value
    path = os.fspath(value)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    try:
        return tomllib.loads(decode_utf8(data, path))
    except tomllib.TOMLDecodeError as error:
        hint = 'a knowledge file is TOML, as in forbid = [["a", "b"]]'
        raise BncliError(f"the file is not valid TOML: {error}", where=path, hint=hint) from None
