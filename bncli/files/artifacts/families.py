"""The families of a model as JSON: the attributes of each of its tables, and how the table bins their codes.

    {"attributes": ["pulse", "age"], "child": "pulse", "merges": [null, [0, 0, 1, 1, 2]]}

The child, if there is one, is the first attribute, else null. `merges` is present only if the family bins codes: per
attribute null, or the coarse code of every code. Neighbouring intervals can be merged, and any levels; the level for
missing values, the last code, is merged with nothing. If very many families bin codes (`is_compact`), they have the
shorter key `groups` instead: for intervals the last code of every group except the last group, for levels the coarse
code of each level. The level for missing values is not listed.

    {"attributes": ["pulse", "age", "colour"], "child": null, "groups": [null, [1], [0, 1, 0]]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.structures.structure import Dag, Family, Grouping, Structure
from bncli.files.json_documents import Node

MANY_BINNED = 256
"""With at least this many binned families, files use `groups` and one array for all tables."""
MOST_CODES = 1 << 24
"""The largest total number of codes in all groupings of a file; `groups` can describe many codes with few numbers."""
_MERGES, _GROUPS = "merges", "groups"
"""Keys of binned families, since version 4 and version 5."""


def is_compact(families: Iterable[Family]) -> bool:
    """Return whether a file stores these families in the compact form: `groups`, and one array for all tables."""
    return sum(1 for family in families if family.groupings) >= MANY_BINNED


def families_json(families: Sequence[Family], schema: Schema) -> list[dict[str, Any]]:
    """Return the content of the key `families`, in the form that the module docstring describes."""
    names = [attribute.name for attribute in schema.attributes]
    compact = is_compact(families)
    described: list[dict[str, Any]] = []
    for family in families:
        child = None if family.child is None else names[family.child]
        described.append({"attributes": [names[i] for i in family.attributes], "child": child})
        if not family.groupings:
            continue
        if not compact:
            merges = [None if g is None else [int(code) for code in g] for g in family.groupings]
            described[-1][_MERGES] = merges
            continue
        groups: list[list[int] | None] = []
        for i, grouping in family.binned_attributes:
            attribute = schema.attributes[i]
            if grouping is None:
                groups.append(None)
                continue
            values = [int(code) for code in grouping[: attribute.n_values]]
            if isinstance(attribute, NumericAttribute):
                values = [code for code, (left, right) in enumerate(pairwise(values)) if left != right]
            groups.append(values)
        described[-1][_GROUPS] = groups
    return described


def read_families(node: Node, schema: Schema, structure: Structure) -> tuple[Family, ...]:
    """Return the families, checked against the schema.

    In a model that marginalizes missing values, the table of a node that does not have the class as a parent has no
    axis for the class.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    dag = structure if schema.marginalizes and isinstance(structure, Dag) else None
    families, n_codes = [], 0
    for item in node.items():
        fields = item.fields(("attributes", "child"), (_MERGES, _GROUPS))
        names = fields["attributes"].texts()
        if not names or not all(name in index and schema.cardinalities[index[name]] for name in names):
            fields["attributes"].fail("every attribute of a table must be in the schema and have at least one value")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table must be its first attribute or null")
        attributes = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else attributes[0]
        by_class = child is None or dag is None or child in dag.class_children
        groupings = _read_groupings(fields, [schema.attributes[i] for i in attributes])
        n_codes += sum(len(grouping) for grouping in groupings if grouping)
        if n_codes > MOST_CODES:
            item.fail(f"all groupings together have more than {MOST_CODES:,} codes")
        families.append(Family.over(attributes, schema.cardinalities, child, by_class, groupings))
    return tuple(families)


def _read_groupings(fields: Mapping[str, Node], attributes: Sequence[Attribute]) -> tuple[Grouping | None, ...]:
    """Return a grouping or None for each attribute; empty if the family bins nothing."""
    key = _GROUPS if _GROUPS in fields else _MERGES
    if key not in fields:
        return ()
    node = fields[key]
    if _GROUPS in fields and _MERGES in fields:
        node.fail(f"a family has {_GROUPS} or {_MERGES}, not both")
    items = node.items()
    if len(items) != len(attributes):
        node.fail(f"{len(items)} {key} for {len(attributes)} attributes")
    groupings: list[Grouping | None] = []
    for item, attribute in zip(items, attributes, strict=True):
        if item.value is None:
            groupings.append(None)
        else:
            groupings.append(_read_groups(item, attribute) if key == _GROUPS else _read_merges(item, attribute))
    return tuple(groupings)


def _read_groups(node: Node, attribute: Attribute) -> Grouping:
    """Return the grouping that an item of `groups` describes."""
    numbers = [item.integer(0) for item in node.items()]
    if isinstance(attribute, NumericAttribute):
        if any(right <= left for left, right in pairwise(numbers)) or any(n >= attribute.n_values - 1 for n in numbers):
            node.fail(
                f"the last codes of groups must increase and stay below the last of {attribute.n_values} intervals"
            )
        ends = [*numbers, attribute.n_values - 1]
        values = [group for group, (left, right) in enumerate(pairwise([-1, *ends])) for _ in range(right - left)]
    else:
        values = numbers
        if len(values) != attribute.n_values:
            node.fail(f"{len(values)} coarse codes for the {attribute.n_values} levels of '{attribute.name}'")
        if set(values) != set(range(len(set(values)))):
            node.fail("coarse codes must be numbered from 0 without gaps")
    missing = [max(values, default=-1) + 1] * attribute.missing
    return (*values, *missing)


def _read_merges(node: Node, attribute: Attribute) -> Grouping:
    """Return the grouping that an item of `merges` lists."""
    grouping = tuple(item.integer(0) for item in node.items())
    if len(grouping) != attribute.cardinality:
        node.fail(f"{len(grouping)} coarse codes for the {attribute.cardinality} codes of '{attribute.name}'")
    values = grouping[: attribute.n_values]
    if set(grouping) != set(range(len(set(grouping)))):
        node.fail("coarse codes must be numbered from 0 without gaps")
    if isinstance(attribute, NumericAttribute) and any(right < left for left, right in pairwise(values)):
        node.fail("the coarse codes of intervals must not decrease")
    if attribute.missing and any(code >= grouping[-1] for code in values):
        node.fail("the missing level alone must have the last coarse code")
    return grouping
