"""The schema of a model as JSON: class, labels, attributes with the frequency of every code, reading policies."""

from __future__ import annotations

from typing import Any

from bncli.engine.schema import Schema
from bncli.files.attributes import attribute_json, check_unique_names, read_attribute
from bncli.files.documents import Node


def schema_json(schema: Schema) -> dict[str, Any]:
    """What `read_schema` reads."""
    return {
        "class": schema.class_name,
        "labels": list(schema.labels),
        "attributes": [
            {
                **attribute_json(a),
                "missing": bool(a.missing),
                "frequencies": [float(weight) for weight in a.frequencies],
            }
            for a in schema.attributes
        ],
        "missing_tokens": None if schema.missing_tokens is None else list(schema.missing_tokens),
        "unseen": schema.unseen,
    }


def read_schema(node: Node) -> Schema:
    """The schema in a model's `schema` object, checked."""
    fields = node.fields(("class", "labels", "attributes", "missing_tokens", "unseen"))
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
    return Schema(class_name, labels, attributes, missing_tokens, fields["unseen"].value)
