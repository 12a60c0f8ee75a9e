"""From raw columns to codes: every row as small whole numbers, as a schema says.

    numeric      the interval of the value, 0 .. m
    categorical  the position of the level in the schema's order, by name, or of the level that it was pooled to
    missing      the missing level (the last code), if training rows had missing values
    unknown      one past the last code: a value never seen in training, or a missing one where training had none

The columns may list their levels in another order than the schema, or more of them (in a fold of a table): codes
are carried over by a small table of names. Cost: one pass per column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import MISSING, CategoricalColumn, CodedColumn, Column, Columns, NumericColumn
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Codes
from bncli.engine.kernels.binning import interval_codes
from bncli.errors import ModelError


@dataclass(frozen=True)
class EncodedAttributes:
    """Codes (N,) of each attribute asked for; in how many rows its value was never seen, in how many it is missing."""

    codes: tuple[Codes, ...]
    unseen: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True)
class EncodedColumn:
    """Codes (N,) of one attribute, in how many rows the value was never seen, in how many it is missing."""

    codes: Codes
    unseen: int
    missing: int


def encode_attributes(
    columns: Columns, schema: Schema, used: Iterable[int], *, allow_missing: bool = False
) -> EncodedAttributes:
    """Return the attributes with these indices, for scoring; no class is needed.

    A column that is not there is an error, or (`allow_missing`) unknown in every row: neither unseen nor missing.
    """
    attributes = [schema.attributes[i] for i in used]
    encoded = [
        _unknown(attribute, columns.n_rows)
        if allow_missing and attribute.name not in columns.attributes
        else encode_column(_column(columns, attribute), attribute)
        for attribute in attributes
    ]
    return EncodedAttributes(
        tuple(e.codes for e in encoded), tuple(e.unseen for e in encoded), tuple(e.missing for e in encoded)
    )


def _unknown(attribute: Attribute, n_rows: int) -> EncodedColumn:
    code = np.full(1, attribute.cardinality, code_dtype(attribute.cardinality + 1))
    return EncodedColumn(np.broadcast_to(code, n_rows), 0, 0)


def _column(columns: Columns, attribute: Attribute) -> Column | CodedColumn:
    if attribute.name not in columns.attributes:
        raise ModelError(f"the data has no column {attribute.name!r}, which the model needs")
    return columns.attributes[attribute.name]


def label_codes(columns: Columns, schema: Schema) -> Codes:
    """Return the class of every row as a position in the schema's labels.

    ModelError for a label that is not one of them.
    """
    if columns.label is None:
        raise ModelError(f"the rows carry no class {schema.class_name!r}")
    n = len(schema.labels)
    known = {label: code for code, label in enumerate(schema.labels)}
    codes = np.append(_lookup(columns.label.levels, known, unknown=n), n)[columns.label.codes]
    unknown_rows = np.flatnonzero(codes == n)
    if len(unknown_rows):
        raise _unknown_label(int(columns.label.codes[unknown_rows[0]]), columns.label, schema)
    # no label is unknown any more, so n itself needs no room
    narrow: Codes = codes.astype(code_dtype(n))
    return narrow


def _lookup(own: tuple[str, ...], code_of: Mapping[str, int], unknown: int) -> NDArray[np.int64]:
    """Return the code of each level of `own`, `unknown` where it has none; one entry more, unknown."""
    return np.array([*(code_of.get(level, unknown) for level in own), unknown], np.int64)


def _unknown_label(code: int, label: CategoricalColumn, schema: Schema) -> ModelError:
    if code < 0:
        return ModelError(f"there are rows without a class {schema.class_name!r}")
    known = ", ".join(schema.labels[:10]) + (", ..." if len(schema.labels) > 10 else "")
    return ModelError(
        f"class {schema.class_name!r} has a label that the model does not know: {label.levels[code]!r}",
        hint=f"it knows {known}",
    )


def encode_column(column: Column | CodedColumn, attribute: Attribute) -> EncodedColumn:
    if isinstance(column, CodedColumn):
        # By the same cuts or levels: only a level that the attribute has not is unseen.
        own, unknown = column.attribute, attribute.cardinality
        if isinstance(own, CategoricalAttribute) and isinstance(attribute, CategoricalAttribute):
            lookup = _lookup(own.levels, attribute.code_of, unknown)
            lookup[-1] = attribute.n_values
        elif (
            isinstance(own, NumericAttribute) and isinstance(attribute, NumericAttribute) and own.cuts == attribute.cuts
        ):
            lookup = np.arange(own.n_values + 1)
        else:
            raise ModelError(f"the codes of column {attribute.name!r} are not those of the model's cuts")
        codes = lookup.astype(code_dtype(unknown + 1))[column.codes.whole()]
        n_missing = int(column.codes.count(own.n_values + 1)[own.n_values])
        n_unknown = int(np.count_nonzero(codes == unknown))
        return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)
    if isinstance(column, NumericColumn) and isinstance(attribute, NumericAttribute):
        return _encoded_numbers(column, attribute)
    if isinstance(column, CategoricalColumn) and isinstance(attribute, CategoricalAttribute):
        return _encoded_levels(column, attribute)
    kind = "numeric" if isinstance(attribute, NumericAttribute) else "categorical"
    raise ModelError(f"column {attribute.name!r} is not {kind}, as the model needs it")


def _encoded_numbers(column: NumericColumn, attribute: NumericAttribute) -> EncodedColumn:
    values = column.values
    codes = interval_codes(values, attribute.cuts, code_dtype(attribute.cardinality + 1))
    if values.dtype.kind != "f":
        return EncodedColumn(codes, 0, 0)
    missing = np.isnan(values)
    n_missing = int(np.count_nonzero(missing))
    if n_missing:
        codes[missing] = attribute.n_values
    return EncodedColumn(codes, 0, n_missing)


def _encoded_levels(column: CategoricalColumn, attribute: CategoricalAttribute) -> EncodedColumn:
    """By a table whose last two entries, reached by the codes -2 and -1, are for unseen and for missing values."""
    unknown = attribute.cardinality
    lookup = _lookup(column.levels, attribute.code_of, unknown)
    lookup = np.append(lookup, attribute.n_values).astype(code_dtype(unknown + 1))
    codes = lookup[column.codes]
    n_missing = int(np.count_nonzero(column.codes == MISSING))
    n_unknown = int(np.count_nonzero(codes == unknown))
    # without a missing level, missing values have the code of the unknown too
    return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)
