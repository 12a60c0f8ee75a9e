"""A table after discretization, as CSV: every number replaced by the interval that holds it.

An interval is written like (2.45,4.75], closed on the right, so that reading the table again takes it for a category;
a missing value is an empty field. Attributes come in schema order, then the class, then the weights if rows have any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import Attribute
from bncli.engine.networks.named_network import number_text, value_names
from bncli.files.atomic import atomic_writer

_ROWS = 1 << 16


def write_binned(path: str, data: Dataset, weights_name: str) -> None:
    """Write the table; the rows are those that were learnt from, in their order."""
    schema = data.schema
    names = [attribute.name for attribute in schema.attributes] + [schema.class_name]
    fields = [_fields(value_texts(attribute)) for attribute in schema.attributes] + [_fields(schema.labels)]
    if data.weights is not None:
        names.append(weights_name)
    with atomic_writer(path) as file:
        file.write(",".join(_quoted(names)).encode() + b"\n")
        for start in range(0, data.n_rows, _ROWS):
            rows = slice(start, start + _ROWS)
            columns = [f.take(pa.array(c[rows])) for f, c in zip(fields, (*data.codes, data.labels), strict=True)]
            if data.weights is not None:
                columns.append(pa.array(map(number_text, data.weights[rows].tolist()), pa.string()))
            lines = pc.binary_join_element_wise(*columns, ",")
            file.write("\n".join(lines.to_pylist()).encode() + b"\n")


def _fields(texts: Sequence[str]) -> pa.Array:
    return pa.array(_quoted(texts), pa.string())


def _quoted(texts: Sequence[str]) -> list[str]:
    """Return each text as a field of CSV, in quotes where it needs them."""
    return ['"' + text.replace('"', '""') + '"' if re.search(r'[,"\r\n]', text) else text for text in texts]


def value_texts(attribute: Attribute) -> list[str]:
    """Return the text of each code of an attribute: the interval or the level; empty for the missing level."""
    return [*value_names(attribute), *([""] if attribute.missing else [])]
