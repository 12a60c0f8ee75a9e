"""JSON files of the project's own: strict reading that says which key is at fault, and a layout that people can read.

Reading is stricter than JSON: a key given twice, NaN, a number that overflows, half a surrogate pair, a key that nobody
reads (most often a slip of the pen) are errors. A file says what it is in `format` and `version`; a newer version is
refused before anything else in it is looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from bncli.errors import BncliError

MAX_INTEGER = 2**63 - 1
_MOST_DIGITS = 4000
"""Python turns no more than 4,300 into a number."""


@dataclass(frozen=True)
class Node:
    """A JSON value that knows where it stands, so that whatever is wrong with it can be said in one line."""

    value: Any
    source: str
    key: str = ""
    kind: type[BncliError] = BncliError

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        raise self.kind(what, where=f"{self.source}, {self.key}" if self.key else self.source, hint=hint)

    def members(self) -> dict[str, Node]:
        """Return the values of an object by key."""
        if not isinstance(self.value, dict):
            self.fail(f"expected an object, found {_describe(self.value)}")
        return {key: self._inner(value, _join(self.key, key)) for key, value in self.value.items()}

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the values of an object that has all `required` keys, perhaps `optional` ones, and no others."""
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
        """Return the elements of a list."""
        if not isinstance(self.value, list):
            self.fail(f"expected a list, found {_describe(self.value)}")
        return [self._inner(value, f"{self.key}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail(f"expected a text in quotes, found {_describe(self.value)}")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """Return a list of texts, each of them once."""
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
        # In Python true and false are numbers too; in JSON they are not.
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail(f"expected a whole number, found {_describe(self.value)}")
        if not low <= self.value <= MAX_INTEGER:
            self.fail("the number is out of range")
        return self.value

    def number(self) -> float:
        """Return a finite number; a whole one becomes a float."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"expected a number, found {_describe(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:  # JSON's integers have no end, floats have
            number = math.inf
        if not math.isfinite(number):
            self.fail("the number is too large")
        return number

    def scalar(self) -> int | float | str | bool:
        """Return a text, a truth value or a finite number, as it stands."""
        if isinstance(self.value, float):
            return self.number()
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.integer()
        return self.flag() if isinstance(self.value, bool) else self.text()

    def check_format(self, name: str, version: int) -> None:
        """Refuse what is not a `name` of at most this version."""
        members = self.members()
        found = members["format"].value if "format" in members else None
        if found != f"bncli-{name}":
            self.fail(f"not a bncli {name} file", hint=f'it should hold "format": "bncli-{name}"')
        if "version" not in members:
            self.fail("the key 'version' is missing")
        if members["version"].integer(1) > version:
            what = f"the file was written by a newer bncli (format version {members['version'].value})"
            self.fail(what, hint=f"upgrade bncli: this one reads versions up to {version}")

    def _inner(self, value: Any, key: str) -> Node:
        return Node(value, self.source, key, self.kind)


class _TooLongError(ValueError):
    """A number that is JSON, but more than anything here could mean."""


def parse_json(data: bytes, source: str, kind: type[BncliError] = BncliError) -> Node:
    """Return the JSON document in `data`."""
    text = decode_utf8(data, source, kind)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)
        if b"\\u" in data:  # only an escape can hold half a surrogate pair, and no file or terminal takes one
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise kind("a text holds half of a surrogate pair", where=source) from error
    except json.JSONDecodeError as error:
        place = f"{source}, line {error.lineno}, column {error.colno}"
        raise kind(f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}", where=place) from error
    except RecursionError as error:  # brackets by the thousand: the parser of the standard library calls itself
        raise kind("not valid JSON for this reader: nested too deeply", where=source) from error
    except _TooLongError as error:
        raise kind(str(error), where=source, hint="is it damaged?") from error
    except ValueError as error:
        raise kind(f"not valid JSON: {error}", where=source) from error
    return Node(value, source, "", kind)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {json.dumps(twice)} is given twice in one object")
    return members


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _integer(digits: str) -> int:
    """As JSON writes one; Python refuses more digits than that with advice for those who write programs."""
    n_digits = len(digits.removeprefix("-"))
    if n_digits > _MOST_DIGITS:
        raise _TooLongError(f"the file holds a number of {n_digits} digits")
    return int(digits)


def decode_utf8(data: bytes, source: str, kind: type[BncliError] = BncliError) -> str:
    """Return the text in `data`, UTF-8 with or without a byte-order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise kind("the file is not UTF-8 text", where=f"{source}, line {line}") from error


def dump_json(members: Mapping[str, Any]) -> str:
    """Return a JSON object as text: a member a line; in a member that holds lists or objects, an element a line."""
    lines = [f"  {_compact(key)}: {_lay_out(value)}" for key, value in members.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lay_out(value: Any) -> str:
    if isinstance(value, Mapping) and any(isinstance(v, list | tuple) for v in value.values()):
        lines = [f"    {_compact(key)}: {_compact(inner)}" for key, inner in value.items()]
        return "{\n" + ",\n".join(lines) + "\n  }"
    if isinstance(value, list | tuple) and any(isinstance(v, Mapping | list | tuple) for v in value):
        return "[\n" + ",\n".join(f"    {_compact(inner)}" for inner in value) + "\n  ]"
    return _compact(value)


def _join(key: str, member: str) -> str:
    plain = member.isidentifier()
    return f"{key}.{member}" if key and plain else member if plain else f"{key}[{json.dumps(member)}]"


def _describe(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    words = {dict: "an object", list: "a list", str: "a text"}
    return next((word for kind, word in words.items() if isinstance(value, kind)), "a number")
