"""The families of a model as JSON: which attributes each of its tables is over, and how it sees them.

    {"attributes": ["pulse", "age"], "child": "pulse", "merges": [null, [0, 0, 1, 1, 2]]}

The child, if there is one, is the first attribute, else null. `merges` is there only where a family joins codes: for
each attribute null or the coarse code of every code. Intervals are joined with their neighbours, levels with any, and a
missing level, the last code, with none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.structures.structure import Dag, Family, Grouping, Structure
from bncli.files.documents import Node

_MERGES = "merges"
"""A key of families that join codes, since version 4."""


def families_json(families: Iterable[Family], schema: Schema) -> list[dict[str, Any]]:
    """What `read_families` reads."""
    names = [attribute.name for attribute in schema.attributes]
    return [
        {"attributes": [names[i] for i in f.attributes], "child": None if f.child is None else names[f.child]}
        | ({_MERGES: [None if m is None else [int(code) for code in m] for m in f.groupings]} if f.groupings else {})
        for f in families
    ]


def read_families(node: Node, schema: Schema, structure: Structure) -> tuple[Family, ...]:
    """The families, checked against the schema.

    In a model that marginalizes missing values, a child that is not below the class in the structure has a table
    without the class.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    graph = structure if schema.marginalizes and isinstance(structure, Dag) else None
    families = []
    for item in node.items():
        fields = item.fields(("attributes", "child"), (_MERGES,))
        names = fields["attributes"].texts()
        if not names or not all(name in index and schema.cardinalities[index[name]] for name in names):
            fields["attributes"].fail("a table needs attributes of the schema that have values")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table is its first attribute or null")
        attributes = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else attributes[0]
        by_class = child is None or graph is None or child in graph.class_children
        merges = _read_merges(fields[_MERGES], [schema.attributes[i] for i in attributes]) if _MERGES in fields else ()
        families.append(Family.over(attributes, schema.cardinalities, child, by_class, merges))
    return tuple(families)


def _read_merges(node: Node, attributes: Sequence[Attribute]) -> tuple[Grouping | None, ...]:
    items = node.items()
    if len(items) != len(attributes):
        node.fail(f"{len(items)} merges for {len(attributes)} attributes")
    return tuple(
        None if item.value is None else _read_merge(item, attribute)
        for item, attribute in zip(items, attributes, strict=True)
    )


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
