"""The steps of a path of regions in a model file.

    {"steps": [{"region": [], "changes": [[-1, 1]], ...}, {"region": ["age"], "changes": [[-1, -1], [0, 1]], ...}]}

Every step has the attributes that it adds, the changes of counting numbers (family of the model, -1 for the class
alone, and by how much), degrees of freedom, log-likelihood, log posterior (null: minus infinity) and its weight in the
average. A step changes only families inside its region, and weights sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bncli.engine.data.schema import Schema
from bncli.engine.model import PathStep
from bncli.engine.structures.structure import Family
from bncli.files.documents import Node
from bncli.files.graphs import posterior_json

_ROUNDING = 1e-9
_MOST = 1 << 20
"""No counting number changes by more, where a region has up to 16 attributes."""


def steps_json(steps: Sequence[PathStep], schema: Schema) -> dict[str, Any]:
    """The key `steps`."""
    return {"steps": [_step_json(step, schema) for step in steps]}


def _step_json(step: PathStep, schema: Schema) -> dict[str, Any]:
    return {
        "region": [schema.attributes[i].name for i in step.region],
        "changes": [[int(family), int(change)] for family, change in step.changes],
        "df": int(step.df),
        "log_likelihood": float(step.log_likelihood),
        "log_posterior": posterior_json(step.log_posterior),
        "weight": float(step.weight),
    }


def read_steps(node: Node, schema: Schema, families: Sequence[Family]) -> tuple[PathStep, ...]:
    """What `steps_json` wrote; `families` are those of the path."""
    listed = node.fields(("steps",))["steps"]
    steps = tuple(_read_step(item, schema, families) for item in listed.items())
    if not abs(math.fsum(step.weight for step in steps) - 1.0) <= _ROUNDING:
        listed.fail("the weights of the steps do not sum to 1")
    return steps


def _read_step(node: Node, schema: Schema, families: Sequence[Family]) -> PathStep:
    fields = node.fields(("region", "changes", "df", "log_likelihood", "log_posterior", "weight"))
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    names = fields["region"].texts()
    if not all(name in index for name in names):
        fields["region"].fail("a region is made of attributes of the schema")
    region = tuple(index[name] for name in names)
    weight, posterior = fields["weight"].number(), fields["log_posterior"]
    if weight < 0:
        fields["weight"].fail("a weight cannot be negative")
    return PathStep(
        region,
        tuple(_read_change(item, region, families) for item in fields["changes"].items()),
        fields["df"].integer(0),
        fields["log_likelihood"].number(),
        -math.inf if posterior.value is None else posterior.number(),
        weight,
    )


def _read_change(node: Node, region: tuple[int, ...], families: Sequence[Family]) -> tuple[int, int]:
    numbers = [item.integer(-_MOST) for item in node.items()]
    if len(numbers) != 2 or not -1 <= numbers[0] < len(families) or numbers[1] > _MOST:
        node.fail("a change is the number of a family, or -1 for the class, and a small whole number")
    family, change = numbers
    if family >= 0 and not set(families[family].attributes) <= set(region):
        node.fail("a step changes only families inside its region")
    return family, change
