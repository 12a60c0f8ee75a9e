"""The schema of a model as JSON: class, labels, attributes with the frequency of every code, reading policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bncli.engine.data.schema import Attribute, MissingPolicy, Schema
from bncli.files.attributes import attribute_json, check_unique_names, direction_json, read_attribute
from bncli.files.documents import Node

_FREQUENCIES = "label_frequencies"
"""A key since version 7."""
_POLICY = "missing_policy"
"""A key of models that marginalize missing values, since version 3; no key: missing is a level."""


_TOWARDS = "towards"
"""A key of models whose directions are about a label that was named; no key: about the second of two."""
OPTIONAL_KEYS = (_POLICY, _FREQUENCIES, _TOWARDS)


def schema_json(schema: Schema) -> dict[str, Any]:
    """What `read_schema` reads."""
    counted = {_FREQUENCIES: list(schema.label_frequencies)} if schema.label_frequencies else {}
    return {
        "class": schema.class_name,
        "labels": list(schema.labels),
        "attributes": [
            {
                **attribute_json(a),
                "missing": bool(a.missing),
                "frequencies": [float(weight) for weight in a.frequencies],
                **direction_json(a),
                **({"holes": float(a.missing_weight)} if a.missing_weight else {}),
            }
            for a in schema.attributes
        ],
        "missing_tokens": None if schema.missing_tokens is None else list(schema.missing_tokens),
        "unseen": schema.unseen,
        **counted,
        **({} if schema.towards is None else {_TOWARDS: schema.towards}),
    } | ({_POLICY: schema.missing_policy} if schema.marginalizes else {})


def read_schema(node: Node) -> Schema:
    """The schema in a model's `schema` object, checked."""
    fields = node.fields(("class", "labels", "attributes", "missing_tokens", "unseen"), OPTIONAL_KEYS)
    class_name = fields["class"].text()
    labels = fields["labels"].texts()
    if not labels:
        fields["labels"].fail("the class has no labels")
    attributes = tuple(read_attribute(item, counted=True) for item in fields["attributes"].items())
    check_unique_names(fields["attributes"], class_name, attributes)
    tokens = fields["missing_tokens"]
    missing_tokens = None if tokens.value is None else tokens.texts()
    if fields["unseen"].text() not in ("average", "error"):
        fields["unseen"].fail("a value never seen in training can be 'average' or 'error'")
    policy = _read_policy(fields[_POLICY], attributes) if _POLICY in fields else "level"
    counted = label_numbers(fields[_FREQUENCIES], labels) if _FREQUENCIES in fields else ()
    schema = Schema(class_name, labels, attributes, missing_tokens, fields["unseen"].value, policy, counted)
    return _towards(schema, node, fields.get(_TOWARDS))


def _towards(schema: Schema, node: Node, label: Node | None) -> Schema:
    """With the label that its directions are about."""
    if label is None:
        if schema.directed and len(schema.labels) != 2:
            node.fail(
                f"attributes have directions, and which of the {len(schema.labels)} labels they lead to is not said"
            )
        return schema
    if label.text() not in schema.labels:
        label.fail(f"the class has no label '{label.text()}'")
    if not schema.directed:
        label.fail("no attribute has a direction")
    return replace(schema, towards=label.text())


def label_numbers(node: Node, labels: tuple[str, ...]) -> tuple[float, ...]:
    """A number of at least 0 for each label."""
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != len(labels) or min(numbers) < 0:
        node.fail(f"expected {len(labels)} numbers of at least 0, one a label")
    return numbers


def _read_policy(node: Node, attributes: tuple[Attribute, ...]) -> MissingPolicy:
    if node.text() != "marginalize":
        node.fail("missing values can be 'marginalize'd; where they are a level, nothing is said")
    for attribute in attributes:
        if attribute.missing:
            node.fail(f"'{attribute.name}' has a missing level, which leaves nothing to marginalize")
    return "marginalize"
