"""The families of a model as JSON: which attributes each of its tables is over, and how it sees them.

    {"attributes": ["pulse", "age"], "child": "pulse", "merges": [null, [0, 0, 1, 1, 2]]}

The child, if there is one, is the first attribute, else null. `merges` is there only where a family joins codes: for
each attribute null or the coarse code of every code. Intervals are joined with their neighbours, levels with any, and a
missing level, the last code, with none.

A model of many such families (`are_many`) says the same in fewer numbers, under `groups` in place of `merges`: of
intervals the last code of every group but the last, of levels the coarse code of each; a missing level goes without
saying.

    {"attributes": ["pulse", "age", "colour"], "child": null, "groups": [null, [1], [0, 1, 0]]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.structures.structure import Dag, Family, Grouping, Structure
from bncli.files.documents import Node

MANY = 256
"""Families that join codes, from which on files have `groups`, and all tables in one array."""
MOST_CODES = 1 << 24
"""Of all groupings of a file: a few numbers of it may stand for many codes."""
_MERGES = "merges"
"""A key of families that join codes, since version 4."""
_GROUPS = "groups"
"""The key of many families that join codes, since version 5."""


def are_many(families: Iterable[Family]) -> bool:
    """Whether a file has them in the compact form; families as they were cut are short without."""
    return sum(1 for family in families if family.groupings) >= MANY


def families_json(families: Sequence[Family], schema: Schema) -> list[dict[str, Any]]:
    """What `read_families` reads."""
    names = [attribute.name for attribute in schema.attributes]
    joined = _groups_json if are_many(families) else _merges_json
    return [
        {"attributes": [names[i] for i in f.attributes], "child": None if f.child is None else names[f.child]}
        | (joined(f, schema) if f.groupings else {})
        for f in families
    ]


def _merges_json(family: Family, _: Schema) -> dict[str, Any]:
    return {_MERGES: [None if m is None else [int(code) for code in m] for m in family.groupings]}


def _groups_json(family: Family, schema: Schema) -> dict[str, Any]:
    seen = ((schema.attributes[a], grouping) for a, grouping in family.binned_attributes)
    return {_GROUPS: [None if grouping is None else _groups(attribute, grouping) for attribute, grouping in seen]}


def _groups(attribute: Attribute, grouping: Grouping) -> list[int]:
    values = [int(code) for code in grouping[: attribute.n_values]]
    if not isinstance(attribute, NumericAttribute):
        return values
    return [code for code, (left, right) in enumerate(pairwise(values)) if left != right]


def read_families(node: Node, schema: Schema, structure: Structure) -> tuple[Family, ...]:
    """The families, checked against the schema.

    In a model that marginalizes missing values, a child that is not below the class in the structure has a table
    without the class.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    graph = structure if schema.marginalizes and isinstance(structure, Dag) else None
    families, codes = [], 0
    for item in node.items():
        fields = item.fields(("attributes", "child"), (_MERGES, _GROUPS))
        names = fields["attributes"].texts()
        if not names or not all(name in index and schema.cardinalities[index[name]] for name in names):
            fields["attributes"].fail("a table needs attributes of the schema that have values")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table is its first attribute or null")
        attributes = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else attributes[0]
        by_class = child is None or graph is None or child in graph.class_children
        groupings = _read_groupings(fields, [schema.attributes[i] for i in attributes])
        codes += sum(len(grouping) for grouping in groupings if grouping)
        if codes > MOST_CODES:
            item.fail(f"all groupings together have more than {MOST_CODES:,} codes")
        families.append(Family.over(attributes, schema.cardinalities, child, by_class, groupings))
    return tuple(families)


def _read_groupings(fields: Mapping[str, Node], attributes: Sequence[Attribute]) -> tuple[Grouping | None, ...]:
    """A grouping or None for each attribute; () where the family joins nothing."""
    key = _GROUPS if _GROUPS in fields else _MERGES
    if key not in fields:
        return ()
    node, read = fields[key], _read_groups if key == _GROUPS else _read_merge
    if _GROUPS in fields and _MERGES in fields:
        node.fail(f"a family has {_GROUPS} or {_MERGES}, not both")
    items = node.items()
    if len(items) != len(attributes):
        node.fail(f"{len(items)} {key} for {len(attributes)} attributes")
    joined = zip(items, attributes, strict=True)
    return tuple(None if item.value is None else read(item, attribute) for item, attribute in joined)


def _read_merge(node: Node, attribute: Attribute) -> Grouping:
    merge = tuple(item.integer(0) for item in node.items())
    if len(merge) != attribute.cardinality:
        node.fail(f"{len(merge)} coarse codes for the {attribute.cardinality} codes of '{attribute.name}'")
    values = merge[: attribute.n_values]
    if set(merge) != set(range(len(set(merge)))):
        node.fail("coarse codes count from 0, each of them used")
    if isinstance(attribute, NumericAttribute) and any(right < left for left, right in pairwise(values)):
        node.fail("the coarse codes of intervals do not fall")
    if attribute.missing and any(code >= merge[-1] for code in values):
        node.fail("the missing level has the last coarse code to itself")
    return merge


def _read_groups(node: Node, attribute: Attribute) -> Grouping:
    numbers = [item.integer(0) for item in node.items()]
    if isinstance(attribute, NumericAttribute):
        if any(right <= left for left, right in pairwise(numbers)) or any(n >= attribute.n_values - 1 for n in numbers):
            node.fail(f"the last codes of groups rise, below the last of the {attribute.n_values} intervals")
        ends = [*numbers, attribute.n_values - 1]
        values = [group for group, (left, right) in enumerate(pairwise([-1, *ends])) for _ in range(right - left)]
    else:
        values = numbers
        if len(values) != attribute.n_values:
            node.fail(f"{len(values)} coarse codes for the {attribute.n_values} levels of '{attribute.name}'")
        if set(values) != set(range(len(set(values)))):
            node.fail("coarse codes count from 0, each of them used")
    missing = [max(values, default=-1) + 1] * attribute.missing
    return (*values, *missing)
