"""Kinds of option values: what may be typed, or passed by a program, for an option.

`parse` of a kind returns the value as a recipe stores it, and raises ValueError with the reason if the value is not of
that kind. `json_schema` describes the values of a kind as JSON Schema.
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


class Integer(NamedTuple):
    """A whole number from `least` to `most`, or one of `words`."""

    least: int = 0
    most: int = 10**18
    words: tuple[str, ...] = ()

    def parse(self, value: object) -> int | str:
        text = str(value).strip()
        if text in self.words:
            return text
        if type(value) is int:
            number: int | None = value
        else:
            # int() itself also reads "1_0" and digits of other scripts, and is slow for very long texts.
            number = int(text) if re.fullmatch(r"[0-9]{1,4000}", text) else None
        if number is None or number < self.least:
            other = "".join(f", nor {word}" for word in self.words)
            raise ValueError(f"{str(value)!r} is not a whole number of at least {self.least}{other}")
        if number > self.most:
            raise ValueError(f"{value} is too large: the maximum is {self.most}")
        return number


class Real(NamedTuple):
    """A finite number of at least 0 (with `above` greater than 0) and less than `below`, or one of `words`."""

    above: bool = False
    below: float = math.inf
    words: tuple[str, ...] = ()

    def parse(self, value: object) -> float | str:
        text = str(value).strip()
        if text in self.words:
            return text
        number = None if isinstance(value, bool) else parse_decimal(text)
        if number is None or not 0 <= number < self.below or (self.above and number == 0):
            bound = "above 0" if self.above else "of at least 0"
            end = "" if self.below == math.inf else f" and below {self.below:g}"
            kind = "a finite number" if self.below == math.inf else "a number"
            raise ValueError(f"{str(value)!r} is not {kind} {bound}{end}{''.join(f', nor {w}' for w in self.words)}")
        return number


class Word(NamedTuple):
    """One of `words`."""

    words: tuple[str, ...]

    def parse(self, value: object) -> str:
        if value not in self.words:
            raise ValueError(f"{str(value)!r} is not one of {', '.join(map(repr, self.words))}")
        return str(value)


class NumberChoice(NamedTuple):
    """One of `numbers`, stored as `type`."""

    numbers: tuple[str, ...]
    type: type[int] | type[float] = int

    def parse(self, value: object) -> int | float:
        text = str(value) if type(value) is int else str(value).removesuffix(".0")
        if text not in self.numbers:
            raise ValueError(f"{str(value)!r} is not one of {', '.join(map(repr, self.numbers))}")
        return self.type(text)


class Switch(NamedTuple):
    """A truth value; on the command line, true if the option is given."""

    def parse(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{str(value)!r} is neither true nor false")
        return value


_SHAPES, _DRAWS = (1e-3, 1e12), Integer(100, 1_000_000)


class ClassPairPrior(NamedTuple):
    """A prior of the joint probabilities of a row and each class: `[beta,]A,B[,C...][:DRAWS[:SEED]]`.

    `A,B` is a Dirichlet distribution with parameter A for every class and B for the remaining probability. A longer
    list has one parameter per class, and the last for the remaining probability. `beta,A,B` is an independent beta
    distribution per class. With DRAWS, moments are estimated from that many random draws.
    """

    def parse(self, value: object) -> str:
        """Return the shortest text that specifies the distribution."""
        text = "".join(str(value).split())
        shape, *draws_and_seed = text.split(":")
        name, shape_numbers = ("beta,", shape[5:]) if shape.startswith("beta,") else ("", shape)
        numbers = [parse_decimal(number) for number in shape_numbers.split(",")]
        if len(numbers) < 2 or (name and len(numbers) > 2) or len(draws_and_seed) > 2:
            raise ValueError(f"{str(value)!r} should be A,B (or A,B,C..., or beta,A,B), optionally followed by :DRAWS")
        if not all(number is not None and _SHAPES[0] <= number <= _SHAPES[1] for number in numbers):
            raise ValueError(f"{str(value)!r} has a number that is not between {_SHAPES[0]:g} and {_SHAPES[1]:g}")
        counts = [kind.parse(n) for n, kind in zip(draws_and_seed, (_DRAWS, Integer()), strict=False)]
        if name and not counts:
            raise ValueError(f"{str(value)!r} has no closed form: give the number of draws, as in {text}:100000")
        return ":".join([name + ",".join(format_number(float(n or 0)) for n in numbers), *map(str, counts)])


class ColumnNames(NamedTuple):
    """Names of columns; on the command line the option is repeated, once per name."""

    def parse(self, value: object) -> tuple[str, ...] | None:
        """Return the names without repetitions, or None if there are none. A single string is one name."""
        names = (value,) if isinstance(value, str) else value
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{value!r} is neither a column name nor a list of column names")
        return tuple(dict.fromkeys(names)) or None


class Label(NamedTuple):
    """A label of the class, as it is written in tables."""

    def parse(self, value: object) -> str:
        """Return the text without surrounding blanks; an integer label becomes its digits."""
        text = str(value).strip()
        if isinstance(value, bool) or not isinstance(value, str | int) or not text:
            raise ValueError(f"{value!r} is not a label: labels are strings")
        return text


class ClassWeights(NamedTuple):
    """Positive numbers for labels of the class, `label=number,...`, or one of `words`."""

    words: tuple[str, ...] = ()

    def parse(self, value: object) -> str:
        """Return the canonical text, with labels in order; `value` is a string or a mapping from labels to numbers."""
        if value in self.words:
            return str(value)
        if value == {}:
            raise ValueError("it contains no label=NUMBER")
        items = value.items() if isinstance(value, Mapping) else parse_label_numbers(str(value), self.words).items()
        numbers = {
            str(label): number if type(number) is float else parse_decimal(str(number)) for label, number in items
        }
        for label, number in numbers.items():
            if number is None or not 0 < number < math.inf:
                raise ValueError(f"the number for label {label!r} must be finite and above 0")
        return format_label_numbers({label: number for label, number in numbers.items() if number is not None})


class Costs(NamedTuple):
    """Costs of decisions, `true:decision=cost,...`, each at least 0."""

    words: tuple[str, ...] = ()

    def parse(self, value: object) -> str:
        """Return the canonical text.

        value: a string, a mapping from pairs (true label, decision) or strings `true:decision` to costs, or a mapping
        from true labels to mappings from decisions to costs.
        """
        if isinstance(value, Mapping):
            nested = [v for v in value.values() if isinstance(v, Mapping)]
            pairs = [((t, d), c) for t, costs in value.items() for d, c in costs.items()] if nested else value.items()
            items = {":".join(map(str, pair)) if isinstance(pair, tuple) else str(pair): c for pair, c in pairs}
        else:
            items = parse_label_numbers(str(value), what="of the form TRUE:DECISION=COST, such as yes:no=5")
        numbers = {key: parse_decimal(str(cost)) for key, cost in items.items()}
        for key, number in numbers.items():
            if ":" not in key:
                raise ValueError(f"{key!r} is not of the form TRUE:DECISION, as in yes:no=5,no:yes=1")
            if number is None or number < 0:
                raise ValueError(f"the cost of {key!r} is not a finite number of at least 0")
        return format_label_numbers({key: number for key, number in numbers.items() if number is not None})


class ThresholdRule(NamedTuple):
    """A probability, or the rule by which a threshold is chosen: `best:f1`, `recall=0.9`, `top=5%`."""

    words: tuple[str, ...] = ("best:f1", "best:mcc", "best:balanced-accuracy")

    def parse(self, value: object) -> str:
        text = "".join(str(value).split())
        if text in self.words:
            return text
        name, equals, digits = text.partition("=")
        if not equals:
            number = None if isinstance(value, bool) else parse_decimal(text)
            if number is None or not 0 <= number <= 1:
                words = ", ".join((*self.words, "recall=0.9", "precision=0.8", "top=5%"))
                raise ValueError(f"{str(value)!r} is neither a probability nor one of {words}")
            return format_number(number)
        number = parse_decimal(digits.removesuffix("%"))
        most, percent = (100, "%") if name == "top" else (1, "")
        if name not in ("recall", "precision", "top") or number is None or not 0 < number <= most:
            raise ValueError(
                f"{text!r} is not one of recall=R, precision=R (above 0, at most 1) and top=X% (at most 100%)"
            )
        if digits.endswith("%") != bool(percent):
            raise ValueError(
                f"{text!r}: top takes a percentage, as in top=5%; recall and precision take a fraction, "
                f"as in recall=0.9"
            )
        return f"{name}={format_number(number)}{percent}"


class DomainKnowledge(NamedTuple):
    """Constraints on arcs and tables (`bncli.catalogue.knowledge`)."""

    def parse(self, value: object) -> str | None:
        """Return the canonical JSON of a mapping, or of its text; None for a mapping without constraints."""
        from bncli.catalogue.knowledge import Knowledge

        text = Knowledge.parse(value).text
        return None if text == "{}" else text


class NetworkFile(NamedTuple):
    """The path of a model file of a network; a fitted model records the file's name and checksum instead."""

    def parse(self, value: object) -> str:
        """Return the text, which must not be empty."""
        if not isinstance(value, str) or not value:
            raise ValueError(f"{value!r} is not the path of a model")
        return value


Kind = (
    Integer
    | Real
    | Word
    | NumberChoice
    | Switch
    | ClassPairPrior
    | ColumnNames
    | Label
    | ClassWeights
    | Costs
    | ThresholdRule
    | DomainKnowledge
    | NetworkFile
)


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of the values of a kind."""
    if isinstance(kind, Integer | Real):
        number: dict[str, Any]
        if isinstance(kind, Integer):
            number = {"type": "integer", "minimum": kind.least, "maximum": kind.most}
        else:
            number = {"type": "number", "exclusiveMinimum" if kind.above else "minimum": 0}
            if kind.below != math.inf:
                number["exclusiveMaximum"] = kind.below
        return {"anyOf": [number, {"enum": list(kind.words)}]} if kind.words else number
    if isinstance(kind, Word):
        return {"enum": list(kind.words)}
    if isinstance(kind, NumberChoice):
        return {"enum": [kind.type(number) for number in kind.numbers]}
    if isinstance(kind, Switch):
        return {"type": "boolean"}
    if isinstance(kind, ColumnNames):
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}
    return {"type": "string"}


def parse_label_numbers(
    text: str, words: tuple[str, ...] = (), what: str = "of the form label=NUMBER"
) -> dict[str, float]:
    """Return the numbers in `label=number,...` by label; raise ValueError for any other text.

    A field whose label contains a comma is quoted with double quotes, as in CSV. The error message names the other
    words that may be typed (`words`) and the form of a field (`what`).
    """
    numbers: dict[str, float] = {}
    fields = next(csv.reader([text.strip()], skipinitialspace=True), [])
    for field, following in itertools.zip_longest(fields, fields[1:]):
        label, equals, digits = (part.strip() for part in field.rpartition("="))
        value = parse_decimal(digits)
        if not equals or value is None:
            other = "".join(f", nor {word}" for word in words)
            advice = ""
            if not equals and following is not None:
                # A label may have been cut at its comma: show how to type it with the next field.
                comma = ", " if f"{field}, {following}" in text else ","
                bare = f"{field}{comma}{following}".replace('"', "")
                advice = f"""; quote a label that contains a comma, with its number: '"{bare}"'"""
            raise ValueError(f"{field!r} is not {what}{other}, and there is no file {text!r}{advice}")
        if label in numbers:
            raise ValueError(f"{label!r} appears twice")
        numbers[label] = value
    if not numbers:
        raise ValueError("it contains no label=NUMBER")
    return numbers


def format_label_numbers(numbers: Mapping[str, float]) -> str:
    """Return the text that `parse_label_numbers` reads, with labels in order."""
    line = io.StringIO()
    fields = [f"{label}={format_number(numbers[label])}" for label in sorted(numbers)]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def parse_decimal(text: str) -> float | None:
    """Return the finite number that `text` writes in decimal digits, or None."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return float(text)


def format_number(number: float) -> str:
    """Return the shortest text that reads back as the number, without a point for a whole number."""
    return repr(number).removesuffix(".0")
