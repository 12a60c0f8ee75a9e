"""A first guess at the types of columns, from the first rows of a text file. What comes later may overturn it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bncli.files.reading.blocks import Block
from bncli.files.reading.growing import more_than_two
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.parse import parse_block
from bncli.files.reading.pieces import Kind, Values, Want
from bncli.files.reading.source import Tokens


def guess_kinds(block: Block, names: Sequence[str], tokens: Tokens) -> dict[str, Kind]:
    """INTEGER or NUMBER where there are more than two numbers and nothing else, TEXT elsewhere."""
    piece = parse_block(block, [Want(name, Kind.TEXT) for name in names], tokens)
    return {name: _guess(values, tokens) for name, values in zip(names, piece.values, strict=True)}


def _guess(values: Values, tokens: Tokens) -> Kind:
    texts = values.unique()
    numbers, wrong = to_numbers(texts, tokens.number)
    if wrong is not None or not more_than_two([numbers]):
        return Kind.TEXT
    try:
        texts.filter(pa.array(numbers == numbers)).cast(pa.int64())
    except pa.ArrowInvalid:
        return Kind.NUMBER
    return Kind.INTEGER
