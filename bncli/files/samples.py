"""Rows as they were read, inside a `.codes` file: a compressed Arrow stream of numbers, and of names with their levels.

The columns are those of the codes, and a date's parts are numbers as they are there. The seed by which the rows were
drawn stands in the metadata, empty where they are all rows of the table.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.files.codes_heading import Heading

_SEED = b"seed"
_WEIGHTS = "weights"


def dump_sample(rows: Columns, seed: int | None) -> bytes:
    """What `read_sample` reads."""
    assert rows.label is not None
    columns = [_array(column) for column in (*rows.as_read.values(), rows.label)]
    columns += [] if rows.weights is None else [pa.array(rows.weights)]
    # numbered, for the weights may be called like a column
    schema = pa.schema(
        [(str(i), c.type) for i, c in enumerate(columns)], {_SEED: b"" if seed is None else b"%d" % seed}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(sink.getvalue())


def _array(column: Column) -> pa.Array:
    if isinstance(column, NumericColumn):
        return pa.array(column.values)
    codes = column.codes.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(column.levels, pa.string()))


def read_sample(data: bytes, heading: Heading) -> tuple[Columns, int | None]:
    """The rows, and the seed; ValueError or Arrow's own errors for what is not well made."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = next(iter(reader), None)
    if batch is None:
        raise ValueError("the sample is empty")
    batch.validate(full=True)
    attributes, metadata = heading.cuts.attributes, reader.schema.metadata or {}
    if batch.num_columns != len(attributes) + 1 + (heading.weights is not None):
        raise ValueError("the sample has not the columns of the codes")
    read = {a.name: _column(column, a) for a, column in zip(attributes, batch.columns, strict=False)}
    label = _column(batch.column(len(attributes)), None)
    if not isinstance(label, CategoricalColumn) or label.levels != heading.labels or (label.codes < 0).any():
        raise ValueError("the sample has not the labels of the codes")
    weights = None if heading.weights is None else batch.column(batch.num_columns - 1).to_numpy()
    seed = metadata.get(_SEED, b"")
    if not seed and batch.num_rows != heading.rows:
        raise ValueError("the sample has not all rows")
    name = heading.cuts.class_name
    return Columns(batch.num_rows, read, name, label, weights), int(seed) if seed else None


def _column(array: pa.Array, attribute: Attribute | None) -> Column:
    """The column of an attribute; None: the class."""
    if isinstance(attribute, NumericAttribute):
        if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) or array.null_count:
            raise ValueError(f"the sample's column '{attribute.name}' holds no numbers")
        return NumericColumn(array.to_numpy(zero_copy_only=False), attribute.form)
    if not isinstance(array, pa.DictionaryArray):
        raise ValueError("a column of names in the sample has no levels")
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return CategoricalColumn(codes, tuple(array.dictionary.to_pylist()))
