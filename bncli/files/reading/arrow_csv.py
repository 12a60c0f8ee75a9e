"""Arrow's CSV parser, asked for some columns of some whole rows, on the calling thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.csv

from bncli.files.reading.row_blocks import Kind

_TYPES = {Kind.TEXT: pa.string(), Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64()}


def read_arrays(
    data: bytes, n_columns: int, delimiter: bytes, kinds: Mapping[int, Kind], missing: Sequence[str]
) -> dict[int, pa.Array]:
    """The columns at the positions in `kinds`; `missing` become nulls among numbers only.

    The data must be UTF-8. Raises pa.ArrowInvalid when a row is ragged or a text is no number.
    """
    names = [str(i) for i in range(n_columns)]
    table = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # One block: rows are cut already, so that a line end inside quotes is no trouble either.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(delimiter=delimiter.decode()),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,  # the caller has looked: it knows which row is at fault, Arrow does not say
            column_types={names[i]: _TYPES[kind] for i, kind in kinds.items()},
            include_columns=[names[i] for i in kinds],
            null_values=list(missing),
            strings_can_be_null=False,  # a text stays as it stands: whether it means missing follows from all rows
        ),
    )
    return {i: _single(table.column(j)) for j, i in enumerate(kinds)}


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_texts(data: bytes, n_columns: int, delimiter: bytes) -> list[pa.Array]:
    """All columns as text."""
    arrays = read_arrays(data, n_columns, delimiter, dict.fromkeys(range(n_columns), Kind.TEXT), ())
    return list(arrays.values())
