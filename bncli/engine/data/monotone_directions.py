"""Monotone directions: the log-odds of a label never fall, or never rise, along a numeric attribute.

The direction is stored with the attribute in the schema, and the label in the schema itself, so that every learner
finds both there. With two labels, the label is the second one unless another is named.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from bncli.engine.data.class_weights import unknown_label_error
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.errors import UsageError


def set_directions(data: Dataset, increasing: Sequence[str], decreasing: Sequence[str], towards: str | None) -> Dataset:
    """Return the data with a schema that has these directions of attributes, and their label.

    Raises UsageError for a name that is not a numeric attribute, for a label that the class does not have, if there are
    more than two labels and `towards` is None, and if there is only one label.
    """
    if not increasing and not decreasing:
        return data
    schema = data.schema
    n = len(schema.labels)
    if towards is not None and towards not in schema.labels:
        error = unknown_label_error(towards, schema.labels, "--towards", schema.class_name)
        raise UsageError(error.what, hint=error.hint)
    flag = "--increasing" if increasing else "--decreasing"
    if n < 2:
        what = f"{flag} needs a class with at least two labels, but {schema.class_name!r} has {n}"
        raise UsageError(what, hint=f"leave {flag} out")
    if n > 2 and towards is None:
        what = f"{flag} refers to one label, but {schema.class_name!r} has {n} labels"
        raise UsageError(
            what, hint=f"choose it, as in --towards {shlex.quote(schema.labels[-1])} (bncli help monotone)"
        )
    attributes = list(schema.attributes)
    for flag, names, direction in (("--increasing", increasing, 1), ("--decreasing", decreasing, -1)):
        for name in names:
            i = _find_attribute(schema, flag, name)
            attribute = attributes[i]
            if not isinstance(attribute, NumericAttribute):
                hint = "only numeric columns have directions; add --numeric NAME to read a column as numbers"
                raise UsageError(f"{flag} {name}: this column is categorical", hint=hint)
            attributes[i] = replace(attribute, direction=direction)
    return replace(data, schema=replace(schema, attributes=tuple(attributes), towards=towards))


def _find_attribute(schema: Schema, flag: str, name: str) -> int:
    try:
        return schema.index(name)
    except KeyError:
        if name == schema.class_name:
            raise UsageError(f"{flag} {name}: this column is the class", hint="name an attribute") from None
        near = get_close_matches(name, [attribute.name for attribute in schema.attributes], 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else "name a column that is used as an attribute"
        raise UsageError(f"{flag} {name}: there is no such attribute", hint=hint) from None
