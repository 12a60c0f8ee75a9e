"""Kinds of option values: what may be given for an option on the command line or in Python.

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
    """An integer from `least` to `most`, or one of `words`."""

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
    """A finite number of at least 0 (above 0 if `above` is true) and less than `below`, or one of `words`."""

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
    """One of `numbers`, which are listed as strings; it is parsed as `type`."""

    numbers: tuple[str, ...]
    type: type[int] | type[float] = int

    def parse(self, value: object) -> int | float:
        text = str(value) if type(value) is int else str(value).removesuffix(".0")
        if text not in self.numbers:
            raise ValueError(f"{str(value)!r} is not one of {', '.join(map(repr, self.numbers))}")
        return self.type(text)


class Switch(NamedTuple):
    """A Boolean; on the command line the option takes no value, and its presence means True."""

    def parse(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{str(value)!r} is neither true nor false")
        return value


_SHAPES, _DRAWS = (1e-3, 1e12), Integer(100, 1_000_000)


class ClassPairPrior(NamedTuple):
    """A prior for the joint probabilities of a row and each class: `[beta,]A,B[,C...][:DRAWS[:SEED]]`.

    `A,B` is a Dirichlet distribution with parameter A for every class and B for the remaining probability. A longer
    list has one parameter per class, and the last for the remaining probability. `beta,A,B` is an independent beta
    distribution per class. With DRAWS, moments are estimated from that many random draws.
    """

    def parse(self, value: object) -> str:
        """Return the canonical string of the prior: without blanks, and with numbers in their shortest form."""
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
        """Return the label as a string without surrounding blanks; an integer is converted to a string."""
        text = str(value).strip()
        if isinstance(value, bool) or not isinstance(value, str | int) or not text:
            raise ValueError(f"{value!r} is not a label: labels are strings")
        return text


class ClassWeights(NamedTuple):
    """Positive numbers for labels of the class, `label=number,...`, or one of `words`."""

    words: tuple[str, ...] = ()

    def parse(self, value: object) -> str:
        """Return the canonical string, with labels sorted; `value` is a string or a mapping from labels to numbers."""
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
        """Return the canonical string, with pairs sorted.

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
    """Constraints on arcs and tables (`Knowledge`)."""

    def parse(self, value: object) -> str | None:
        """Return the canonical JSON of a mapping or of a JSON string, or None if it has no constraints."""
        text = Knowledge.parse(value).text
        return None if text == "{}" else text


class NetworkFile(NamedTuple):
    """The path of a model file of a network; a fitted model stores the file's name and 16 digits of its SHA-256."""

    def parse(self, value: object) -> str:
        """Return the path, which must be a non-empty string; the file is not read."""
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
    """Parse `label=number,...` as numbers keyed by label; raise ValueError for any other string.

    A field whose label contains a comma is quoted with double quotes, as in CSV. The error message names the other
    words that are accepted (`words`) and the form of a field (`what`).
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
    """Format numbers as the string that `parse_label_numbers` reads, with labels sorted."""
    line = io.StringIO()
    fields = [f"{label}={format_number(numbers[label])}" for label in sorted(numbers)]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def parse_decimal(text: str) -> float | None:
    """Parse a finite number in decimal or scientific notation; return None for any other string."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return float(text)


def format_number(number: float) -> str:
    """Format a number as the shortest string that reads back exactly, without a final `.0`."""
    return repr(number).removesuffix(".0")


Pair = tuple[str, str]
ANY = "*"
_KNOWLEDGE_KEYS = ("forbid", "require", "before", "root", "no_interaction", "max_parents")
_MOST_PARENTS = 1000


class Knowledge(NamedTuple):
    """Domain knowledge: constraints on arcs and tables, by the names of columns.

        forbid = [["a", "b"]]            no arc a -> b
        require = [["a", "b"]]           an arc a -> b
        before = [["a", "b"], ["c"]]     tiers: no arc from a later tier to an earlier one
        root = "a"                       no arc into a, which is the root of a tree and comes first in an order
        no_interaction = [["a", "b"]]    a and b are in no table together
        max_parents = 2                  at most 2 attribute parents of each attribute

    In `forbid` and `no_interaction` the name `*` stands for every other column. The class is a parent of attributes in
    any case, and constraints do not concern it. Pairs, and the names of a tier, are sorted and unique.
    """

    forbid: tuple[Pair, ...] = ()
    require: tuple[Pair, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    root: str | None = None
    no_interaction: tuple[Pair, ...] = ()
    max_parents: int | None = None

    @classmethod
    def parse(cls, value: object) -> Knowledge:
        """Parse constraints from a mapping or a JSON string; raise ValueError if they are invalid or contradictory."""
        import json
        from difflib import get_close_matches

        content = value
        if isinstance(value, str):
            try:
                content = json.loads(value)
            except json.JSONDecodeError:
                raise ValueError(f"there is no file {value!r}") from None
        if not isinstance(content, Mapping):
            raise ValueError("knowledge is a table with the keys " + ", ".join(_KNOWLEDGE_KEYS))
        for key in content:
            if key not in _KNOWLEDGE_KEYS:
                near = get_close_matches(str(key), _KNOWLEDGE_KEYS, n=1)
                raise ValueError(
                    f"{key!r} is not a key; " + (f"did you mean {near[0]}?" if near else ", ".join(_KNOWLEDGE_KEYS))
                )
        root, most = content.get("root"), content.get("max_parents")
        if root is not None and (not isinstance(root, str) or not root):
            raise ValueError('root must be the name of one column, as in root = "age"')
        if most is not None and (type(most) is not int or not 0 <= most <= _MOST_PARENTS):
            raise ValueError(f"max_parents must be a whole number from 0 to {_MOST_PARENTS}")
        tiers = content.get("before", [])
        are_lists = isinstance(tiers, list | tuple) and all(isinstance(tier, list | tuple) for tier in tiers)
        names = [name for tier in tiers for name in tier] if are_lists else [None]
        if not all(isinstance(name, str) and name and name != ANY for name in names):
            raise ValueError('before must be a list of lists of columns, as in before = [["age"], ["pulse", "fever"]]')
        known = cls(
            _pairs(content, "forbid"),
            _pairs(content, "require"),
            tuple(tuple(sorted(set(tier))) for tier in tiers),
            root,
            tuple(sorted({(min(pair), max(pair)) for pair in _pairs(content, "no_interaction")})),
            most,
        )
        known.check()
        return known

    @property
    def text(self) -> str:
        """The constraints as JSON, without empty ones; it parses to the same constraints."""
        import json

        values = {key: getattr(self, key) for key in _KNOWLEDGE_KEYS}
        said = {key: value for key, value in values.items() if value not in (None, ())}
        return json.dumps(said, ensure_ascii=False, separators=(",", ":"))

    @property
    def names(self) -> tuple[str, ...]:
        """Every named column once, without `*`: those in pairs first, then those in tiers, then the root."""
        pairs = (*self.forbid, *self.require, *self.no_interaction)
        root = () if self.root is None else (self.root,)
        named = (*(name for listed in (*pairs, *self.before) for name in listed), *root)
        return tuple(name for name in dict.fromkeys(named) if name != ANY)

    def allows(self, parent: str, child: str) -> bool:
        """Return whether an arc parent -> child is allowed, regardless of other arcs."""
        if child == self.root or not self.allows_together(parent, child):
            return False
        if any(pair in self.forbid for pair in ((parent, child), (parent, ANY), (ANY, child))):
            return False
        tiers = {name: number for number, tier in enumerate(self.before) for name in tier}
        return parent not in tiers or child not in tiers or tiers[parent] <= tiers[child]

    def allows_together(self, one: str, other: str) -> bool:
        """Return whether two columns may be in one table."""
        pairs = ((one, other), (ANY, one), (ANY, other))
        return not any((min(pair), max(pair)) in self.no_interaction for pair in pairs)

    def check(self) -> None:
        """Raise ValueError for contradictory constraints, such as required arcs that are forbidden or form a cycle."""
        from graphlib import CycleError, TopologicalSorter

        tiers = [name for tier in self.before for name in tier]
        for name in tiers:
            if tiers.count(name) > 1:
                raise ValueError(f"{name!r} is in two tiers of before")
        parents: dict[str, list[str]] = {}
        for parent, child in self.require:
            if ANY in (parent, child):
                raise ValueError(
                    f"require must name both columns of an arc; only forbid and no_interaction accept {ANY!r}"
                )
            if not self.allows(parent, child):
                why = "it is the root" if child == self.root else "forbid, before or no_interaction excludes it"
                raise ValueError(f"the arc {parent} -> {child} is required, but {why}")
            parents.setdefault(child, []).append(parent)
        for child, listed in parents.items():
            if self.max_parents is not None and len(listed) > self.max_parents:
                n = f"{len(listed)} required parent{'s' if len(listed) > 1 else ''}"
                raise ValueError(f"{child!r} has {n}, and max_parents is {self.max_parents}")
            for position, one in enumerate(listed):
                for other in listed[position + 1 :]:
                    if not self.allows_together(one, other):
                        what = f"{one!r} and {other!r} are required parents of {child!r}"
                        raise ValueError(f"{what}, which puts them in one table; no_interaction forbids this")
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            raise ValueError(f"the required arcs form a cycle: {' -> '.join(reversed(error.args[1]))}") from None


def _pairs(content: Mapping[str, Any], key: str) -> tuple[Pair, ...]:
    pairs = content.get(key, [])
    is_list = isinstance(pairs, list | tuple)
    for pair in pairs if is_list else [None]:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(x, str) and x for x in pair):
            raise ValueError(f'{key} must be a list of pairs of columns, as in {key} = [["age", "pulse"]]')
        if pair[0] == pair[1]:
            raise ValueError(f"{key} names {pair[0]!r} twice in one pair")
    return tuple(sorted({(pair[0], pair[1]) for pair in pairs}))
