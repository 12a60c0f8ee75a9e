"""Encode raw columns under a schema: every value becomes a small whole number.

    numeric      the interval of the value, 0 .. m
    categorical  the position of the level in the schema's order, by name, or of the level that it was pooled to
    missing      the missing level (the last code), if training rows had missing values
    unknown      one past the last code: a value never seen in training, or a missing one if training had none

The columns may list their levels in another order than the schema, or more of them (in a fold of a table): codes are
translated by a small table of names. Cost: one pass per column.
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
    """The codes (N,) of several attributes, and in how many rows the value of each is unseen, and is missing."""

    codes: tuple[Codes, ...]
    unseen: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True)
class EncodedColumn:
    """The codes (N,) of one attribute, and in how many rows its value is unseen, and is missing."""

    codes: Codes
    unseen: int
    missing: int


def encode_attributes(
    columns: Columns, schema: Schema, used: Iterable[int], *, allow_missing: bool = False
) -> EncodedAttributes:
    """Encode the attributes with the indices `used`, for scoring; no class column is needed.

    If the table lacks a column, raise ModelError or, with `allow_missing`, give it the code of unknown values in every
    row and count it neither as unseen nor as missing.
    """
    encoded = []
    for i in used:
        attribute = schema.attributes[i]
        column = columns.attributes.get(attribute.name)
        if column is not None:
            encoded.append(encode_column(column, attribute))
        elif allow_missing:
            unknown = np.full(1, attribute.cardinality, code_dtype(attribute.cardinality + 1))
            encoded.append(EncodedColumn(np.broadcast_to(unknown, columns.n_rows), 0, 0))
        else:
            raise ModelError(f"the table has no column {attribute.name!r}, which the model needs")
    return EncodedAttributes(
        tuple(e.codes for e in encoded), tuple(e.unseen for e in encoded), tuple(e.missing for e in encoded)
    )


def encode_column(column: Column | CodedColumn, attribute: Attribute) -> EncodedColumn:
    """Encode a column; raise ModelError if it is numeric and the attribute categorical, or the other way round."""
    unknown = attribute.cardinality
    if isinstance(column, CodedColumn):
        return _recode_column(column, attribute)
    if isinstance(column, NumericColumn) and isinstance(attribute, NumericAttribute):
        values = column.values
        codes = interval_codes(values, attribute.cuts, code_dtype(unknown + 1))
        if values.dtype.kind != "f":
            return EncodedColumn(codes, 0, 0)
        # the code of NaN is arbitrary until here
        missing = np.isnan(values)
        n_missing = int(np.count_nonzero(missing))
        if n_missing:
            codes[missing] = attribute.n_values
        return EncodedColumn(codes, 0, n_missing)
    if isinstance(column, CategoricalColumn) and isinstance(attribute, CategoricalAttribute):
        # the last two entries of the table, reached by the codes -2 and -1, are for unseen and for missing values
        table = np.append(_translation(column.levels, attribute.code_of, unknown), attribute.n_values)
        codes = table.astype(code_dtype(unknown + 1)).take(column.codes)  # up to six times faster than an index
        n_missing = int(np.count_nonzero(column.codes == MISSING))
        n_unknown = int(np.count_nonzero(codes == unknown))
        # without a missing level, missing values have the code of unknown ones too
        return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)
    kind = "numeric" if isinstance(attribute, NumericAttribute) else "categorical"
    raise ModelError(f"column {attribute.name!r} is not {kind}, as the model requires")


def _recode_column(column: CodedColumn, attribute: Attribute) -> EncodedColumn:
    """Translate the codes of a column to those of `attribute`; a level that the attribute lacks is unseen.

    Raises ModelError if the cuts differ.
    """
    own, unknown = column.attribute, attribute.cardinality
    if isinstance(own, CategoricalAttribute) and isinstance(attribute, CategoricalAttribute):
        table = _translation(own.levels, attribute.code_of, unknown)
        table[-1] = attribute.n_values
    elif isinstance(own, NumericAttribute) and isinstance(attribute, NumericAttribute) and own.cuts == attribute.cuts:
        table = np.arange(own.n_values + 1)
    else:
        raise ModelError(f"the codes of column {attribute.name!r} do not match the cuts of the model")
    codes = table.astype(code_dtype(unknown + 1)).take(column.codes.joined())
    n_missing = int(column.codes.count(own.n_values + 1)[own.n_values])
    n_unknown = int(np.count_nonzero(codes == unknown))
    return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)


def encode_labels(columns: Columns, schema: Schema) -> Codes:
    """Return the class of every row, (N,), as a position in the schema's labels.

    Raises ModelError if a row has no class, or a label that the schema lacks.
    """
    if columns.label is None:
        raise ModelError(f"the table has no class column {schema.class_name!r}")
    n = len(schema.labels)
    known = {label: code for code, label in enumerate(schema.labels)}
    codes = np.append(_translation(columns.label.levels, known, unknown=n), n).take(columns.label.codes)
    unknown_rows = np.flatnonzero(codes == n)
    if len(unknown_rows):
        own = int(columns.label.codes[unknown_rows[0]])
        if own < 0:
            raise ModelError(f"the class {schema.class_name!r} is missing in some rows")
        listed = ", ".join(schema.labels[:10]) + (", ..." if len(schema.labels) > 10 else "")
        what = f"class {schema.class_name!r} has a label that is not in the model: {columns.label.levels[own]!r}"
        raise ModelError(what, hint=f"its labels are {listed}")
    # every label is known, so the type need not hold n itself
    narrow: Codes = codes.astype(code_dtype(n))
    return narrow


def _translation(own: tuple[str, ...], code_of: Mapping[str, int], unknown: int) -> NDArray[np.int64]:
    """Return the code of each level of `own`, or `unknown` if it has none; one more entry is `unknown`."""
    return np.array([*(code_of.get(level, unknown) for level in own), unknown], np.int64)
