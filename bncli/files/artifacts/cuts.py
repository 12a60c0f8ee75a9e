"""The cuts file: how every column becomes codes. `discretize` writes it, `--cuts FILE` reads it.

    {"format": "bncli-cuts", "version": 1, "class": "diagnosis", "method": "mdl", "options": {},
     "attributes": [{"name": "age", "type": "numeric", "cuts": [27.5, 41.0]},
                    {"name": "colour", "type": "categorical", "levels": ["blue", "red"]}]}

Intervals are closed on the right: a cut belongs to the interval below it. `method` and `options` are optional.
`sampled_rows` is present only if the cuts were computed from a sample of the table, and is the size of the sample.

Model files and reports describe an attribute in the same way. Further keys of an attribute, all optional:

- `"missing": true`: the attribute has a level for missing values. Without this key it gets one if its rows need it.
- `form`: how tables write the values, if not as plain numbers. For numbers it has the decimal mark and, if present, a
  sign next to the number and words that mean a missing value. For a part of the dates in a column it has the name of
  the column, the part, and the order of day, month and year. The part `days` is counted from `origin`.

      {"name": "price", "type": "numeric", "cuts": [9.5], "form": {"decimal": ",", "sign": "EUR", "words": ["n/a"]}}
      {"name": "signup.month", "type": "numeric", "cuts": [6.5],
       "form": {"date": "signup", "part": "month", "order": "dmy"}}

- `groups`: the values that each level stands for, if values were pooled. A level of several values has a name of its
  own; a level of one value has the name of that value.

      {"name": "town", "type": "categorical", "levels": ["Lyon|Paris", "Brest"],
       "groups": [["Lyon", "Paris"], ["Brest"]]}
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.catalogue.choices import flag_of
from bncli.catalogue.option_kinds import format_number
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import (
    DATE_ORDERS,
    DATE_PARTS,
    Attribute,
    CategoricalAttribute,
    Cuts,
    DateForm,
    Form,
    NumberForm,
    NumericAttribute,
)
from bncli.files.artifacts.file_kinds import read_document
from bncli.files.artifacts.provenance import read_option
from bncli.files.atomic import atomic_writer, write_bytes
from bncli.files.json_documents import Node, dump_json

VERSION = 1
SAMPLED_ROWS = "sampled_rows"
"""The key of cuts files and models whose cuts were computed from a sample of the rows."""
MODEL_ATTRIBUTE_KEYS = {"numeric": ("holes", "form", "direction"), "categorical": ("holes", "groups")}
"""Optional keys of an attribute in a model file, by type."""
_ATTRIBUTE_KEYS = {"numeric": ("missing", "form"), "categorical": ("missing", "groups")}
_DIRECTIONS = {1: "increasing", -1: "decreasing"}
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_BLOCK_ROWS = 1 << 16


def read_cuts(path: str) -> Cuts:
    """Load cuts from a file; raise BncliError if it is not a valid cuts file."""
    return parse_cuts(read_document(path, "cuts", VERSION))


def write_cuts(path: str, cuts: Cuts) -> None:
    write_bytes(path, dump_cuts(cuts).encode())


def dump_cuts(cuts: Cuts) -> str:
    """Format the cuts as the content of a cuts file."""
    return dump_json(cuts_json(cuts))


def cuts_json(cuts: Cuts) -> dict[str, Any]:
    """Return the content of the cuts file as a JSON object."""
    sampled = {} if cuts.sampled_rows is None else {SAMPLED_ROWS: cuts.sampled_rows}
    return sampled | {
        "format": "bncli-cuts",
        "version": VERSION,
        "class": cuts.class_name,
        "method": cuts.method,
        "options": dict(sorted(cuts.options.items())),
        "attributes": [attribute_json(a) | ({"missing": True} if a.missing else {}) for a in cuts.attributes],
    }


def attribute_json(attribute: Attribute) -> dict[str, Any]:
    """Return the name of an attribute, its type, its cuts or levels, and its form or groups if it has any."""
    if isinstance(attribute, NumericAttribute):
        numeric = {"name": attribute.name, "type": "numeric", "cuts": [float(cut) for cut in attribute.cuts]}
        return numeric if attribute.form is None else numeric | {"form": form_json(attribute.form)}
    groups = {"groups": [list(group) for group in attribute.groups]} if attribute.groups else {}
    return {"name": attribute.name, "type": "categorical", "levels": list(attribute.levels)} | groups


def form_json(form: Form) -> dict[str, Any]:
    """Return the content of the key `form`."""
    if isinstance(form, NumberForm):
        optional = {"sign": form.affix, "words": list(form.words)}
        return {"decimal": form.decimal} | {key: value for key, value in optional.items() if value}
    date: dict[str, Any] = {"date": form.source, "part": form.part, "order": form.order}
    if form.part == "days":
        # An ISO date, or the number of days since 1970 for an origin that Python's dates do not cover.
        day = form.origin + _EPOCH
        is_date = 1 <= day <= datetime.date.max.toordinal()
        date["origin"] = datetime.date.fromordinal(day).isoformat() if is_date else form.origin
    return date


def direction_json(attribute: Attribute) -> dict[str, str]:
    """Return the monotonicity constraint under the key `direction`, which only models have; empty if there is none."""
    direction = attribute.direction if isinstance(attribute, NumericAttribute) else 0
    return {"direction": _DIRECTIONS[direction]} if direction else {}


def parse_cuts(document: Node) -> Cuts:
    """Parse the content of a cuts file; raise BncliError if it is not valid."""
    fields = document.fields(("format", "version", "class", "attributes"), ("method", "options", SAMPLED_ROWS))
    class_name = fields["class"].text()
    attributes = tuple(read_attribute(item, in_model=False) for item in fields["attributes"].items())
    check_columns(fields["attributes"], class_name, attributes)
    method = fields["method"].text() if "method" in fields else "file"
    options = {
        name: (read_option(name, option) if flag_of(name) in DISCRETIZERS.method_options else option.integer())
        for name, option in (fields["options"].members() if "options" in fields else {}).items()
    }
    sampled_rows = fields[SAMPLED_ROWS].integer(1) if SAMPLED_ROWS in fields else None
    return Cuts(class_name, attributes, method, options, sampled_rows)


def read_attribute(node: Node, *, in_model: bool) -> Attribute:
    """Parse an attribute of a cuts file, or of a model if `in_model` is true.

    In a model, an attribute must have `missing` and `frequencies`. It may have `holes`, the training weight of rows in
    which it was not observed, and, if it is numeric, `direction`.
    """
    members = node.members()
    kind = members["type"].text() if "type" in members else "numeric"
    if kind not in ("numeric", "categorical"):
        members["type"].fail(f"unknown type '{kind}'", hint="the type must be numeric or categorical")
    required = ("name", "type", "cuts" if kind == "numeric" else "levels")
    if in_model:
        fields = node.fields((*required, "missing", "frequencies"), MODEL_ATTRIBUTE_KEYS[kind])
    else:
        fields = node.fields(required, _ATTRIBUTE_KEYS[kind])
    name = fields["name"].text()
    missing = fields["missing"].flag() if "missing" in fields else False
    frequencies = tuple(item.number() for item in fields["frequencies"].items()) if in_model else ()
    attribute: Attribute
    if kind == "numeric":
        form = read_form(fields["form"]) if "form" in fields else None
        direction = 0
        if "direction" in fields:
            word = fields["direction"].text()
            if word not in _DIRECTIONS.values():
                fields["direction"].fail("a direction must be 'increasing' or 'decreasing'")
            direction = 1 if word == _DIRECTIONS[1] else -1
        cuts = tuple(item.number() for item in fields["cuts"].items())
        for left, right in pairwise(cuts):
            if left >= right:
                what = f"the cuts are not increasing: {right!r} comes after {left!r}"
                fields["cuts"].fail(what, hint="list every cut once, in increasing order")
        attribute = NumericAttribute(name, missing, frequencies, cuts, form, direction=direction)
    else:
        levels = _read_levels(fields["levels"])
        groups = _read_groups(fields["groups"], levels) if "groups" in fields else ()
        attribute = CategoricalAttribute(name, missing, frequencies, levels, groups)
    return _with_checked_weights(fields, attribute) if in_model else attribute


def _with_checked_weights(fields: dict[str, Node], attribute: Attribute) -> Attribute:
    """Return the attribute with its weight of missing values; fail if the number, sign or sum of weights is invalid."""
    if "holes" in fields:
        missing_weight = fields["holes"].number()
        if missing_weight < 0:
            fields["holes"].fail("a weight of missing values cannot be negative")
        attribute = replace(attribute, missing_weight=missing_weight)
    weights, node = attribute.frequencies, fields["frequencies"]
    if len(weights) != attribute.cardinality:
        node.fail(f"expected {attribute.cardinality} frequencies, found {len(weights)}")
    total = math.fsum(weights) if all(w < 1e300 for w in weights) else math.inf
    if any(w < 0 for w in weights) or not math.isfinite(total) or (weights and total + attribute.missing_weight == 0):
        node.fail("the frequencies must be at least 0, with a finite sum above 0")
    return attribute


def read_form(node: Node) -> Form:
    """Parse the key `form` of an attribute."""
    if "decimal" in node.members():
        fields = node.fields(("decimal",), ("sign", "words"))
        if fields["decimal"].text() not in (".", ","):
            fields["decimal"].fail("the decimal mark must be '.' or ','")
        words = fields["words"].texts() if "words" in fields else ()
        if "" in words:
            fields["words"].fail("a missing token is empty", hint="an empty field always means a missing value")
        return NumberForm(fields["decimal"].text(), fields["sign"].text() if "sign" in fields else "", words)
    fields = node.fields(("date", "part", "order"), ("origin",))
    part, order = fields["part"].text(), fields["order"].text()
    for key, word, words in (("part", part, DATE_PARTS), ("order", order, DATE_ORDERS)):
        if word not in words:
            fields[key].fail(f"unknown {key} '{word}' of a date", hint=f"one of {', '.join(words)}")
    if order == "time" and part != "hour":
        fields["part"].fail("the only part of a time of day must be the hour")
    if (part == "days") != ("origin" in fields):
        node.fail("'days' needs an origin, and no other part may have one")
    origin = 0
    if "origin" in fields:
        day = fields["origin"]
        try:
            is_number = isinstance(day.value, int)
            origin = day.integer() if is_number else datetime.date.fromisoformat(day.text()).toordinal() - _EPOCH
        except ValueError:
            day.fail("the origin is not a date", hint="write it as 2024-03-01")
    return DateForm(fields["date"].text(), part, order, origin)  # type: ignore[arg-type]


def _read_levels(node: Node) -> tuple[str, ...]:
    levels = node.texts()
    if "" in levels:
        node.fail("a level is an empty string", hint="an empty field always means a missing value")
    return levels


def _read_groups(node: Node, levels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Parse the values of every level; fail unless the groups are disjoint, not empty and consistently named."""
    groups = tuple(_read_levels(item) for item in node.items())
    if len(groups) != len(levels):
        node.fail(f"{len(groups)} groups for {len(levels)} levels")
    earlier_texts: set[str] = set()
    for item, group, level in zip(node.items(), groups, levels, strict=True):
        if not group:
            item.fail("a group is empty", hint="every level must stand for at least one value")
        if repeated := earlier_texts.intersection(group):
            item.fail(f"the value '{min(repeated)}' is in two groups")
        earlier_texts.update(group)
        if len(group) == 1 and group[0] != level:
            item.fail(f"the value '{group[0]}' is alone in its group, but its level is called '{level}'")
    for item, group, level in zip(node.items(), groups, levels, strict=True):
        if len(group) > 1 and level in earlier_texts:
            item.fail(f"the pooled level '{level}' has the name of a value")
    return groups


def check_columns(node: Node, class_name: str, attributes: tuple[Attribute, ...]) -> None:
    """Fail if two columns have the same name, or if a date column is read in two orders or is also used itself.

    `node` is the JSON list of the attributes, which errors refer to.
    """
    names = {class_name}
    for item, attribute in zip(node.items(), attributes, strict=True):
        if attribute.name in names:
            item.fail(f"the name '{attribute.name}' is given twice" + (" (the class)" * (attribute.name == class_name)))
        names.add(attribute.name)
    orders: dict[str, str] = {}
    for item, attribute in zip(node.items(), attributes, strict=True):
        form = attribute.form if isinstance(attribute, NumericAttribute) else None
        if isinstance(form, DateForm):
            if form.source in names:
                item.fail(
                    f"'{attribute.name}' is derived from the dates of '{form.source}', which is an attribute itself"
                )
            if orders.setdefault(form.source, form.order) != form.order:
                item.fail(f"the dates of '{form.source}' are read in two different orders")


def write_binned_table(path: str, data: Dataset, weights_name: str) -> None:
    """Write a discretized table as CSV, with every number replaced by the interval that contains it.

    An interval such as (2.45,4.75] is closed on the right, and is read again as a category. A missing value is an empty
    field. Attributes come in the order of the schema, then the class, then the row weights if there are any.
    """
    # Imported here, because reading a model or cuts needs neither.
    import pyarrow as pa
    import pyarrow.compute as pc

    from bncli.engine.networks.network import value_names

    schema = data.schema
    names = [attribute.name for attribute in schema.attributes] + [schema.class_name]
    texts = [[*value_names(attribute), *([""] if attribute.missing else [])] for attribute in schema.attributes]
    fields = [pa.array(_csv_fields(column), pa.string()) for column in (*texts, schema.labels)]
    if data.weights is not None:
        names.append(weights_name)
    with atomic_writer(path) as file:
        file.write(",".join(_csv_fields(names)).encode() + b"\n")
        for start in range(0, data.n_rows, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            columns = [f.take(pa.array(c[rows])) for f, c in zip(fields, (*data.codes, data.labels), strict=True)]
            if data.weights is not None:
                columns.append(pa.array(map(format_number, data.weights[rows].tolist()), pa.string()))
            lines = pc.binary_join_element_wise(*columns, ",")
            file.write("\n".join(lines.to_pylist()).encode() + b"\n")


def _csv_fields(texts: Sequence[str]) -> list[str]:
    """Format each string as a CSV field, quoted if it contains a comma, a quote or a line break."""
    return ['"' + text.replace('"', '""') + '"' if re.search(r'[,"\r\n]', text) else text for text in texts]
