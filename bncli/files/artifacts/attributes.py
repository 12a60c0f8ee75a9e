"""An attribute as JSON, the same in cuts files, models and reports: its name, its type, and its cuts or levels.

{"name": "age", "type": "numeric", "cuts": [27.5, 41.0]}
{"name": "colour", "type": "categorical", "levels": ["blue", "red"]}

A number that is no plain one says how tables write it: by its decimal mark, perhaps a sign beside it and words that
stand for a missing value, or as a part of the date in a column, whose order of year, month and day is given (`days`
counts from `origin`):

{"name": "price", "type": "numeric", "cuts": [9.5], "form": {"decimal": ",", "sign": "EUR", "words": ["n/a"]}}
{"name": "signup.month", "type": "numeric", "cuts": [6.5], "form": {"date": "signup", "part": "month", "order": "dmy"}}

Where values were pooled, `groups` says for each level which of them it stands for; one that stands for itself is listed
alone. A pooled level has a name of its own.

{"name": "town", "type": "categorical", "levels": ["Lyon|Paris", "Brest"], "groups": [["Lyon", "Paris"], ["Brest"]]}

The form of a numeric attribute as JSON, an optional member of it; `attributes` shows examples.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bncli.engine.data.number_formats import DATE_ORDERS, DATE_PARTS, DateForm, Form, NumberForm
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.files.documents import Node

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DIRECTIONS = {1: "increasing", -1: "decreasing"}
_OPTIONAL_KEYS = {"numeric": ("missing", "form"), "categorical": ("missing", "groups")}
OPTIONAL_KEYS = {"numeric": ("holes", "form", "direction"), "categorical": ("holes", "groups")}
"""Keys that only some attributes of models have, by type."""


def form_json(form: Form) -> dict[str, Any]:
    """Return what `read_form` reads."""
    if isinstance(form, NumberForm):
        optional = {"sign": form.affix, "words": list(form.words)}
        return {"decimal": form.decimal} | {key: value for key, value in optional.items() if value}
    origin = {"origin": _day(form.origin)} if form.part == "days" else {}
    return {"date": form.source, "part": form.part, "order": form.order} | origin


def _day(number: int) -> str | int:
    """Return a day as an ISO date, as its number since 1970 where it has none."""
    ordinal = number + _EPOCH
    return datetime.date.fromordinal(ordinal).isoformat() if 1 <= ordinal <= datetime.date.max.toordinal() else number


def read_form(node: Node) -> Form:
    """Return the form in an attribute's member, checked."""
    if "decimal" in node.members():
        fields = node.fields(("decimal",), ("sign", "words"))
        if fields["decimal"].text() not in (".", ","):
            fields["decimal"].fail("the decimal mark is '.' or ','")
        words = fields["words"].texts() if "words" in fields else ()
        if "" in words:
            fields["words"].fail("a word is empty", hint="an empty field always means a missing value")
        return NumberForm(fields["decimal"].text(), fields["sign"].text() if "sign" in fields else "", words)
    fields = node.fields(("date", "part", "order"), ("origin",))
    part, order = fields["part"].text(), fields["order"].text()
    for key, word, words in (("part", part, DATE_PARTS), ("order", order, DATE_ORDERS)):
        if word not in words:
            fields[key].fail(f"unknown {key} '{word}' of a date", hint=f"one of {', '.join(words)}")
    if (order == "time") != (part == "hour") and order == "time":
        fields["part"].fail("a time of the day has an hour and no other part")
    if (part == "days") != ("origin" in fields):
        node.fail("'days' is counted from an origin, and nothing else is")
    origin = _read_day(fields["origin"]) if "origin" in fields else 0
    return DateForm(fields["date"].text(), part, order, origin)  # type: ignore[arg-type]


def _read_day(node: Node) -> int:
    if isinstance(node.value, int):
        return node.integer()
    try:
        return datetime.date.fromisoformat(node.text()).toordinal() - _EPOCH
    except ValueError:
        node.fail("the origin is no date", hint="write it as 2024-03-01")


def check_forms(node: Node, class_name: str, attributes: tuple[Attribute, ...]) -> None:
    """Refuse a column of dates that is read in two orders, or for anything else as well."""
    orders: dict[str, str] = {}
    names = {class_name, *(attribute.name for attribute in attributes)}
    for item, attribute in zip(node.items(), attributes, strict=True):
        form = attribute.form if isinstance(attribute, NumericAttribute) else None
        if isinstance(form, DateForm):
            if form.source in names:
                item.fail(f"'{attribute.name}' is made from the dates of '{form.source}', which is used itself")
            if orders.setdefault(form.source, form.order) != form.order:
                item.fail(f"the dates of '{form.source}' are read in two orders")


def attribute_json(attribute: Attribute) -> dict[str, Any]:
    """Name, type, and cuts or levels."""
    if isinstance(attribute, NumericAttribute):
        numeric = {"name": attribute.name, "type": "numeric", "cuts": [float(cut) for cut in attribute.cuts]}
        return numeric if attribute.form is None else numeric | {"form": form_json(attribute.form)}
    groups = {"groups": [list(group) for group in attribute.groups]} if attribute.groups else {}
    return {"name": attribute.name, "type": "categorical", "levels": list(attribute.levels)} | groups


def direction_json(attribute: Attribute) -> dict[str, str]:
    """Return the key `direction` of an attribute that has one: models alone know of it."""
    direction = attribute.direction if isinstance(attribute, NumericAttribute) else 0
    return {"direction": _DIRECTIONS[direction]} if direction else {}


def read_attribute(node: Node, *, counted: bool) -> Attribute:
    """Return an attribute as a cuts file has it, perhaps with `missing`, or (`counted`) a model.

    That has `missing`, `frequencies` and perhaps `holes` and `direction`.
    """
    members = node.members()
    kind = members["type"].text() if "type" in members else "numeric"
    if kind not in ("numeric", "categorical"):
        members["type"].fail(f"unknown type '{kind}'", hint="it is numeric or categorical")
    content = "cuts" if kind == "numeric" else "levels"
    more = ("missing", "frequencies") if counted else ()
    optional = OPTIONAL_KEYS if counted else _OPTIONAL_KEYS
    fields = node.fields(("name", "type", content, *more), optional[kind])
    name = fields["name"].text()
    missing = "missing" in fields and fields["missing"].flag()
    frequencies = tuple(item.number() for item in fields["frequencies"].items()) if counted else ()
    if kind == "numeric":
        form = read_form(fields["form"]) if "form" in fields else None
        direction = _read_direction(fields["direction"]) if "direction" in fields else 0
        cuts = _read_cuts(fields["cuts"])
        attribute: Attribute = NumericAttribute(name, missing, frequencies, cuts, form, direction=direction)
    else:
        levels = _read_levels(fields["levels"])
        groups = _read_groups(fields["groups"], levels) if "groups" in fields else ()
        attribute = CategoricalAttribute(name, missing, frequencies, levels, groups)
    if counted:
        weight = _read_missing_weight(fields["holes"]) if "holes" in fields else None
        attribute = attribute if weight is None else replace(attribute, missing_weight=weight)
        _check_frequencies(fields["frequencies"], attribute)
    return attribute


def _read_direction(node: Node) -> int:
    for direction, word in _DIRECTIONS.items():
        if node.text() == word:
            return direction
    return node.fail("a direction is 'increasing' or 'decreasing'")


def _read_cuts(node: Node) -> tuple[float, ...]:
    cuts = tuple(item.number() for item in node.items())
    for left, right in pairwise(cuts):
        if left >= right:
            node.fail(f"the cuts do not rise: {right!r} comes after {left!r}", hint="list every cut once, in order")
    return cuts


def _read_levels(node: Node) -> tuple[str, ...]:
    levels = node.texts()
    if "" in levels:
        node.fail("a level is an empty text", hint="an empty field always means a missing value")
    return levels


def _read_groups(node: Node, levels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the values of every level, each value in one group; the name of a level is no value of another."""
    groups = tuple(_read_levels(item) for item in node.items())
    if len(groups) != len(levels):
        node.fail(f"{len(groups)} groups for {len(levels)} levels")
    seen: set[str] = set()
    for item, group, level in zip(node.items(), groups, levels, strict=True):
        if not group:
            item.fail("a group without a value", hint="every level stands for at least one value")
        if twice := seen.intersection(group):
            item.fail(f"the value '{min(twice)}' is in two groups")
        seen.update(group)
        if len(group) == 1 and group[0] != level:
            item.fail(f"the value '{group[0]}' is alone, and its level is called '{level}'")
    for item, group, level in zip(node.items(), groups, levels, strict=True):
        if len(group) > 1 and level in seen:
            item.fail(f"the pooled level '{level}' is called as a value")
    return groups


def _read_missing_weight(node: Node) -> float:
    weight = node.number()
    if weight < 0:
        node.fail("a weight of missing values cannot be negative")
    return weight


def _check_frequencies(node: Node, attribute: Attribute) -> None:
    """Check that every code has a weight and that some weight is positive."""
    weights = attribute.frequencies
    if len(weights) != attribute.cardinality:
        node.fail(f"{len(weights)} frequencies for {attribute.cardinality} codes")
    total = math.fsum(weights) if all(w < 1e300 for w in weights) else math.inf
    if any(w < 0 for w in weights) or not math.isfinite(total) or (weights and total + attribute.missing_weight == 0):
        node.fail("the frequencies are not weights with a finite sum above 0")


def check_unique_names(node: Node, class_name: str, attributes: tuple[Attribute, ...]) -> None:
    """Refuse two columns of one name; `node` is the list of attributes."""
    seen = {class_name}
    for item, attribute in zip(node.items(), attributes, strict=True):
        if attribute.name in seen:
            item.fail(f"the name '{attribute.name}' is given twice" + (" (the class)" * (attribute.name == class_name)))
        seen.add(attribute.name)
    check_forms(node, class_name, attributes)
