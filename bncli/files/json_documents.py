"""JSON files of bncli: strict reading with errors that name the key, and a layout that people can read.

Reading is stricter than JSON itself. It is an error if a key is repeated in an object, if a key is unknown (most often
a misspelling), if a number is NaN or overflows, and if a string contains half of a surrogate pair. Models, cuts and
other artifacts state their `format` and `version`; `check_format` refuses a newer version.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from bncli.errors import BncliError

MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 4000
"""The maximum number of digits of an integer; Python refuses to convert more than 4,300."""


@dataclass(frozen=True)
class Node:
    """A JSON value with its location in the document, for error messages.

    source: the file. key: the location in it, such as `structure.arcs[3]`. error_class: the class of the errors.
    The methods that return a value or its parts raise such an error if the value has another type.
    """

    value: Any
    source: str
    key: str = ""
    error_class: type[BncliError] = BncliError

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        raise self.error_class(what, where=f"{self.source}, {self.key}" if self.key else self.source, hint=hint)

    def members(self) -> dict[str, Node]:
        """Return the values of an object, keyed as in the object."""
        if not isinstance(self.value, dict):
            self.fail(f"expected an object, found {_describe(self.value)}")
        members = {}
        for key, value in self.value.items():
            place = f"{self.key}[{json.dumps(key)}]"
            if key.isidentifier():
                place = f"{self.key}.{key}" if self.key else key
            members[key] = Node(value, self.source, place, self.error_class)
        return members

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the values of an object with all `required` keys, any of the `optional` ones, and no others."""
        members = self.members()
        required = list(required)
        known = [*required, *optional]
        for key in members:
            if key not in known:
                self.fail(f"unknown key '{key}'", hint=f"the keys here are {', '.join(known)}")
        for key in required:
            if key not in members:
                self.fail(f"the key '{key}' is missing")
        return members

    def items(self) -> list[Node]:
        if not isinstance(self.value, list):
            self.fail(f"expected a list, found {_describe(self.value)}")
        return [Node(value, self.source, f"{self.key}[{i}]", self.error_class) for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail(f"expected a string in quotes, found {_describe(self.value)}")
        return self.value

    def choice(self, words: Iterable[str]) -> str:
        """Return a string that must be one of `words`."""
        text, words = self.text(), tuple(words)
        if text not in words:
            self.fail(f"{text!r} is not one of {', '.join(map(repr, words))}")
        return text

    def texts(self) -> tuple[str, ...]:
        """Return the strings of a list; raise an error if one of them occurs twice."""
        texts: dict[str, None] = {}
        for item in self.items():
            if item.text() in texts:
                item.fail(f"'{item.text()}' is listed twice")
            texts[item.text()] = None
        return tuple(texts)

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail(f"expected true or false, found {_describe(self.value)}")
        return self.value

    def integer(self, low: int = -MAX_INTEGER) -> int:
        """Return an integer from `low` to MAX_INTEGER; raise an error for any other value."""
        # In Python true and false are integers, in JSON they are not.
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            if isinstance(self.value, float):
                self.fail(f"expected a whole number without a decimal point or exponent, found {self.value!r}")
            self.fail(f"expected a whole number, found {_describe(self.value)}")
        if not low <= self.value <= MAX_INTEGER:
            self.fail("the number is out of range")
        return self.value

    def number(self) -> float:
        """Return a finite number as a float."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"expected a number, found {_describe(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:  # JSON does not limit integers
            number = math.inf
        if not math.isfinite(number):
            self.fail("the number is too large")
        return number

    def scalar(self) -> int | float | str | bool:
        """Return a string, a Boolean, a finite float or an `integer`, with the type that it has in the file."""
        if isinstance(self.value, float):
            return self.number()
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.integer()
        return self.flag() if isinstance(self.value, bool) else self.text()

    def check_format(self, name: str, version: int) -> None:
        """Raise an error unless the document is a bncli file of the format `name`, of at most this version."""
        members = self.members()
        stated = members["format"].value if "format" in members else None
        if stated != f"bncli-{name}":
            self.fail(f"not a bncli {name} file", hint=f'it must contain "format": "bncli-{name}"')
        if "version" not in members:
            self.fail("the key 'version' is missing")
        if members["version"].integer(1) > version:
            what = f"the file was written by a newer bncli (format version {members['version'].value})"
            self.fail(what, hint=f"upgrade bncli: the installed one reads versions up to {version}")


class _TooLongError(ValueError):
    """Raised for a number with more than _MAX_DIGITS digits."""


def parse_json(data: bytes, source: str, error_class: type[BncliError] = BncliError) -> Node:
    """Parse a JSON document; raise an `error_class` that names `source` if it is not valid."""
    text = decode_utf8(data, source, error_class)
    try:
        value = json.loads(
            text, object_pairs_hook=_object_of_pairs, parse_constant=_refuse_constant, parse_int=_parse_integer
        )
        if b"\\u" in data:  # only an escape can hold half a surrogate pair, which no file or terminal accepts
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise error_class("a string contains half of a surrogate pair", where=source) from error
    except json.JSONDecodeError as error:
        place = f"{source}, line {error.lineno}, column {error.colno}"
        raise error_class(f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}", where=place) from error
    except RecursionError as error:  # the parser of the standard library recurses for every bracket
        raise error_class("the JSON document is nested too deeply", where=source) from error
    except _TooLongError as error:
        raise error_class(str(error), where=source, hint="check whether the file is damaged") from error
    except ValueError as error:
        raise error_class(f"not valid JSON: {error}", where=source) from error
    return Node(value, source, "", error_class)


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from pairs (key, value); raise ValueError if a key is repeated."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {json.dumps(key)} is given twice in one object")
        members[key] = value
    return members


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _parse_integer(digits: str) -> int:
    n_digits = len(digits.removeprefix("-"))
    if n_digits > _MAX_DIGITS:  # Python's own message for more digits is written for programmers
        raise _TooLongError(f"the file contains a number of {n_digits} digits")
    return int(digits)


def decode_utf8(data: bytes, source: str, error_class: type[BncliError] = BncliError) -> str:
    """Decode UTF-8 without its byte-order mark, if any; raise an `error_class` if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise error_class("the file is not UTF-8 text", where=f"{source}, line {line}") from error


def dump_json(members: Mapping[str, Any]) -> str:
    """Format a JSON object, with one line per member.

    A list of lists or objects, and an object with a list among its values, has one line per element.
    """
    lines = []
    for key, value in members.items():
        text = _to_json(value)
        if isinstance(value, Mapping) and any(isinstance(inner, list | tuple) for inner in value.values()):
            inner_lines = [f"    {_to_json(name)}: {_to_json(inner)}" for name, inner in value.items()]
            text = "{\n" + ",\n".join(inner_lines) + "\n  }"
        elif isinstance(value, list | tuple) and any(isinstance(inner, Mapping | list | tuple) for inner in value):
            text = "[\n" + ",\n".join(f"    {_to_json(inner)}" for inner in value) + "\n  ]"
        lines.append(f"  {_to_json(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _describe(value: object) -> str:
    """Describe a value: null, true and false by themselves, others by their type."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    words = {dict: "an object", list: "a list", str: "a string"}
    return next((word for json_type, word in words.items() if isinstance(value, json_type)), "a number")
