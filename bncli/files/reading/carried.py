"""Columns that a test set is asked for beside those of its model: their values as they stand in the table.

They become numbers as in a table to learn from: where all values are numbers, and more than two different ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import CategoricalColumn, Column, NumericColumn
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.row_blocks import Kind, Want
from bncli.files.reading.source import Tokens
from bncli.files.reading.vocabulary import codes_of, distinct_levels, narrow_codes, sort_levels


def carried_wants(names: Sequence[str], known: Sequence[str], table: Sequence[str]) -> list[Want]:
    """How those of the names are asked for that the table has and that are not read anyway."""
    return [Want(name, Kind.TEXT) for name in names if name in table and name not in known]


def carried_column(blocks: Sequence[pa.Array], tokens: Tokens) -> Column:
    """The texts of all row blocks as one column."""
    encoded = pa.chunked_array(blocks, pa.string()).combine_chunks().dictionary_encode()
    texts = encoded.dictionary
    numbers, wrong = to_numbers(texts, tokens.number)
    rows = encoded.indices.to_numpy()
    if wrong is None and len(np.unique(numbers[~np.isnan(numbers)])) > 2:
        return NumericColumn(numbers[rows])
    levels = sort_levels(distinct_levels(texts, tokens.text))
    codes = codes_of(texts, levels, tokens.text)[rows]
    return CategoricalColumn(narrow_codes(codes, len(levels)), levels)
