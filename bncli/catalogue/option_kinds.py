"""Kinds of options: what may be typed for a value, or handed over by a program, and its JSON Schema.

A kind raises ValueError with the reason where a value cannot be that.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Whole(NamedTuple):
    """A whole number within bounds, or one of some words."""

    least: int = 0
    most: int = 10**18
    words: tuple[str, ...] = ()

    def read(self, value: object) -> int | str:
        text = str(value).strip()
        if text in self.words:
            return text
        number = value if type(value) is int else self._written(text)
        if number is None or number < self.least:
            other = "".join(f", nor {word}" for word in self.words)
            raise ValueError(f"{str(value)!r} is not a whole number of at least {self.least}{other}")
        if number > self.most:
            raise ValueError(f"{value} is too much: the most is {self.most}")
        return number

    @staticmethod
    def _written(text: str) -> int | None:
        return int(text) if re.fullmatch(r"[0-9]{1,4000}", text) else None

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        number: dict[str, Any] = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return {"anyOf": [number, {"enum": list(self.words)}]} if self.words else number


class Real(NamedTuple):
    """A finite number of at least 0 (`above`: above 0; `below`: below that), or one of some words."""

    above: bool = False
    below: float = math.inf
    words: tuple[str, ...] = ()

    def read(self, value: object) -> float | str:
        text = str(value).strip()
        if text in self.words:
            return text
        number = None if isinstance(value, bool) else decimal(text)
        if number is None or not 0 <= number < self.below or (self.above and number == 0):
            bound = "above 0" if self.above else "of at least 0"
            end = "" if self.below == math.inf else f" and below {self.below:g}"
            kind = "a finite number" if self.below == math.inf else "a number"
            raise ValueError(f"{str(value)!r} is not {kind} {bound}{end}{''.join(f', nor {w}' for w in self.words)}")
        return number

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        number: dict[str, Any] = {"type": "number", "exclusiveMinimum" if self.above else "minimum": 0}
        if self.below != math.inf:
            number["exclusiveMaximum"] = self.below
        return {"anyOf": [number, {"enum": list(self.words)}]} if self.words else number


class Word(NamedTuple):
    """One of some words."""

    words: tuple[str, ...]

    def read(self, value: object) -> str:
        if value not in self.words:
            raise ValueError(f"{str(value)!r} is not one of {', '.join(map(repr, self.words))}")
        return str(value)

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"enum": list(self.words)}


class Number(NamedTuple):
    """One of some numbers, which are stored as `type`."""

    numbers: tuple[str, ...]
    type: type[int] | type[float] = int

    def read(self, value: object) -> int | float:
        text = str(value) if type(value) is int else str(value).removesuffix(".0")
        if text not in self.numbers:
            raise ValueError(f"{str(value)!r} is not one of {', '.join(map(repr, self.numbers))}")
        return self.type(text)

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"enum": [self.type(number) for number in self.numbers]}


class Switch(NamedTuple):
    """Typed or not: true or false."""

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{str(value)!r} is neither true nor false")
        return value

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "boolean"}


_SHAPES, _DRAWS = (1e-3, 1e12), Whole(100, 1_000_000)


class Prior(NamedTuple):
    """A distribution of the joint probabilities of a row and each class: `[beta,]A,B[,C...][:DRAWS[:SEED]]`.

    Dirichlet with these numbers, the last for the rest: A,B stands for A of every class. `beta,A,B`: independent. With
    draws, what follows from it is estimated from so many.
    """

    def read(self, value: object) -> str:
        """Return the text in the shortest way; the seed is that of the draws."""
        text = "".join(str(value).split())
        shape, *drawn = text.split(":")
        name, numbers = ("beta,", shape[5:]) if shape.startswith("beta,") else ("", shape)
        found = [decimal(number) for number in numbers.split(",")]
        if len(found) < 2 or (name and len(found) > 2) or len(drawn) > 2:
            raise ValueError(f"{str(value)!r} is not A,B (or A,B,C..., or beta,A,B) with :DRAWS behind it or nothing")
        if not all(number is not None and _SHAPES[0] <= number <= _SHAPES[1] for number in found):
            raise ValueError(f"{str(value)!r} has a number that is not between {_SHAPES[0]:g} and {_SHAPES[1]:g}")
        counts = [kind.read(n) for n, kind in zip(drawn, (_DRAWS, Whole()), strict=False)]
        if name and not counts:
            raise ValueError(f"{str(value)!r} has no closed form: say how many draws, as in {text}:100000")
        return ":".join([name + ",".join(written(float(n or 0)) for n in found), *map(str, counts)])

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string"}


class Names(NamedTuple):
    """Names of columns, each of which may be typed by itself."""

    def read(self, value: object) -> tuple[str, ...] | None:
        """Return the names, each once; None for no name. One text is one name, whatever it holds."""
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{value!r} is not the name of a column, nor a list of names")
        return tuple(dict.fromkeys(names)) or None

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}


class Label(NamedTuple):
    """A label of the class, as tables write it."""

    def read(self, value: object) -> str:
        """Return the text without blanks around it; a whole number, which labels may be, is its digits."""
        text = str(value).strip()
        if isinstance(value, bool) or not isinstance(value, str | int) or not text:
            raise ValueError(f"{value!r} is not the text of a label")
        return text

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string"}


class ClassNumbers(NamedTuple):
    """A number above 0 for labels of the class, `label=number,...`, or one of some words."""

    words: tuple[str, ...] = ()

    def read(self, value: object) -> str:
        """Return the text in the one way in which it is written, labels in order."""
        if value in self.words:
            return str(value)
        if value == {}:
            raise ValueError("no label has a number")
        items = value.items() if isinstance(value, Mapping) else label_numbers(str(value), self.words).items()
        numbers = {str(label): number if type(number) is float else decimal(str(number)) for label, number in items}
        for label, number in numbers.items():
            if number is None or not 0 < number < math.inf:
                raise ValueError(f"the number of {label!r} is not a finite number above 0")
        return written_numbers({label: number for label, number in numbers.items() if number is not None})

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string"}


class CostNumbers(NamedTuple):
    """What decisions cost: `true:decision=cost,...`, numbers of at least 0."""

    words: tuple[str, ...] = ()

    def read(self, value: object) -> str:
        """Return the text in the one way in which it is written.

        A mapping may have pairs for keys, or mappings for values.
        """
        if isinstance(value, Mapping):
            nested = [v for v in value.values() if isinstance(v, Mapping)]
            pairs = [((t, d), c) for t, costs in value.items() for d, c in costs.items()] if nested else value.items()
            items = {":".join(map(str, pair)) if isinstance(pair, tuple) else str(pair): c for pair, c in pairs}
        else:
            items = label_numbers(str(value), what="TRUE:DECISION=COST")
        numbers = {key: decimal(str(cost)) for key, cost in items.items()}
        for key, number in numbers.items():
            if ":" not in key:
                raise ValueError(f"{key!r} is no TRUE:DECISION, as in yes:no=5,no:yes=1")
            if number is None or number < 0:
                raise ValueError(f"the cost of {key!r} is not a finite number of at least 0")
        return written_numbers({key: number for key, number in numbers.items() if number is not None})

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string"}


class Criterion(NamedTuple):
    """A probability, or what a threshold is chosen by: `best:f1`, `recall=0.9`, `precision=0.8`, `top=5%`."""

    words: tuple[str, ...] = ("best:f1", "best:mcc", "best:balanced-accuracy")

    def read(self, value: object) -> str:
        text = "".join(str(value).split())
        if text in self.words:
            return text
        name, equals, number = text.partition("=")
        if not equals:
            found = None if isinstance(value, bool) else decimal(text)
            if found is None or not 0 <= found <= 1:
                words = ", ".join((*self.words, "recall=0.9", "precision=0.8", "top=5%"))
                raise ValueError(f"{str(value)!r} is neither a probability nor one of {words}")
            return written(found)
        found = decimal(number.removesuffix("%"))
        most, percent = (100, "%") if name == "top" else (1, "")
        if name not in ("recall", "precision", "top") or found is None or not 0 < found <= most:
            raise ValueError(
                f"{text!r} is none of recall=R, precision=R (above 0, at most 1) and top=X% (at most 100%)"
            )
        if number.endswith("%") != bool(percent):
            raise ValueError(f"{text!r}: top takes per cent, as in top=5%, and the others a share, as in recall=0.9")
        return f"{name}={written(found)}{percent}"

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string"}


Kind = Whole | Real | Word | Number | Switch | Prior | Names | Label | ClassNumbers | CostNumbers | Criterion
Pairs = tuple[tuple[str, str], ...]
"""Flags with the values they have."""


def label_numbers(text: str, words: tuple[str, ...] = (), what: str = "label=NUMBER") -> dict[str, float]:
    """Return the numbers in `label=number,...`.

    A field with a comma in its label stands in double quotes, as in CSV.
    """
    found: dict[str, float] = {}
    fields = next(csv.reader([text.strip()], skipinitialspace=True), [])
    for field, following in itertools.zip_longest(fields, fields[1:]):
        label, equals, number = (part.strip() for part in field.rpartition("="))
        value = decimal(number)
        if not equals or value is None:
            other = "".join(f", nor {word}" for word in words)
            quoted = "" if equals or following is None else _quoting(field, following, text)
            raise ValueError(f"{field!r} is not {what}{other}, and {text!r} no file{quoted}")
        if label in found:
            raise ValueError(f"{label!r} stands there twice")
        found[label] = value
    if not found:
        raise ValueError("no label has a number")
    return found


def _quoting(field: str, following: str, text: str) -> str:
    """Return how a pair is typed whose label may have been cut at its comma, these being the halves."""
    bare = f"{field}{', ' if f'{field}, {following}' in text else ','}{following}".replace('"', "")
    return f"""; a label with a comma is typed in double quotes with its number: '"{bare}"'"""


def written_numbers(numbers: Mapping[str, float]) -> str:
    """Return what `label_numbers` reads, labels in order."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([f"{label}={written(numbers[label])}" for label in sorted(numbers)])
    return line.getvalue()


def decimal(text: str) -> float | None:
    """Return the number that `text` writes in decimal digits; None if it writes none or one that is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return float(text)


def written(number: float) -> str:
    """Return the number in the shortest way."""
    return repr(number).removesuffix(".0")
