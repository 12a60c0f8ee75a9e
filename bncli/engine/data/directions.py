"""Which numeric attributes have a direction: the log-odds of the second of two labels never fall, or never rise.

It is a property of the attribute in the schema, so that whoever learns from coded rows finds it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.errors import UsageError


def directed(data: Dataset, increasing: Sequence[str], decreasing: Sequence[str]) -> Dataset:
    """The rows with these directions in their schema; UsageError for what cannot have one."""
    if not increasing and not decreasing:
        return data
    schema = data.schema
    if len(schema.labels) != 2:
        what = f"--{'increasing' if increasing else 'decreasing'} takes a class of two labels"
        hint = "towards one of several, learn a column that says 1 for it and 0 for all others (bncli help monotone)"
        raise UsageError(f"{what}, and {schema.class_name!r} has {len(schema.labels)}", hint=hint)
    attributes = list(schema.attributes)
    for flag, names, direction in (("--increasing", increasing, 1), ("--decreasing", decreasing, -1)):
        for name in names:
            i = _place(schema, flag, name)
            attribute = attributes[i]
            if not isinstance(attribute, NumericAttribute):
                hint = "a direction is one of numbers; --numeric reads a column as such"
                raise UsageError(f"{flag} {name}: this column is categorical", hint=hint)
            attributes[i] = replace(attribute, direction=direction)
    return replace(data, schema=replace(schema, attributes=tuple(attributes)))


def _place(schema: Schema, flag: str, name: str) -> int:
    try:
        return schema.index(name)
    except KeyError:
        if name == schema.class_name:
            raise UsageError(f"{flag} {name}: this column is the class", hint="name an attribute") from None
        near = get_close_matches(name, [attribute.name for attribute in schema.attributes], 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else "the attributes are the columns that are not left out"
        raise UsageError(f"{flag} names no attribute: {name!r}", hint=hint) from None
