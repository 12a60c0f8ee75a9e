"""Columns of text as codes: the texts of a row block once each, and per row which one it is.

Texts are kept raw (blanks and all) until all rows are read; stripping, missing tokens and the final order of levels
then cost a pass over the distinct texts, not over the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import MISSING
from bncli.engine.kernels.arrays import Mask
from bncli.files.reading.numerals import FEW, to_numbers
from bncli.files.reading.source import BLANKS

MAX_SHARED = 4096
"""More distinct texts than that are not looked up but encoded anew in every block."""
EMPTY = pa.array([], pa.string())
SignedCodes = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class CodedTexts:
    """codes[t] is the index of row t's raw text in `texts`."""

    codes: SignedCodes
    texts: pa.Array


def encode(values: pa.Array, shared: pa.Array) -> CodedTexts:
    """Codes into the shared texts if all values are among them, else into the block's own."""
    if len(shared):
        indices = pc.index_in(values, value_set=shared)
        if not indices.null_count:
            return CodedTexts(narrow_codes(indices.to_numpy(), len(shared)), shared)
    encoded = values.dictionary_encode()
    return CodedTexts(narrow_codes(encoded.indices.to_numpy(), len(encoded.dictionary)), encoded.dictionary)


def narrow_codes(codes: NDArray[Any], n_levels: int) -> SignedCodes:
    """The codes in the narrowest signed type that holds 0..n_levels - 1 and the negative marks."""
    narrow: SignedCodes = codes.astype(np.min_scalar_type(-max(n_levels, 2)), copy=False)
    return narrow


def merged(shared: pa.Array, texts: pa.Array) -> pa.Array:
    """The shared texts and the new ones among `texts`; neither holds a text twice."""
    if not len(shared):
        return texts
    return pc.unique(pa.concat_arrays([shared, texts]))


def strip(texts: pa.Array, missing: Sequence[str]) -> tuple[pa.Array, Mask]:
    """The texts without blanks around them, and which of them are missing tokens."""
    if len(texts) <= FEW:
        few = [text.strip(BLANKS) for text in texts.to_pylist()]
        return pa.array(few, pa.string()), np.array([text in missing for text in few], np.bool_)
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    is_missing = pc.is_in(trimmed, value_set=pa.array(missing, pa.string())).to_numpy(zero_copy_only=False)
    return trimmed, is_missing


def distinct_levels(texts: pa.Array, missing: Sequence[str]) -> pa.Array:
    """The values, once each, that are not missing."""
    if len(texts) <= FEW:
        stripped = dict.fromkeys(text.strip(BLANKS) for text in texts.to_pylist())
        return pa.array([text for text in stripped if text not in missing], pa.string())
    trimmed, is_missing = strip(texts, missing)
    return trimmed.filter(pa.array(~is_missing)).unique()


def sort_levels(levels: pa.Array) -> tuple[str, ...]:
    """By number when all are numbers (equal numbers by code point), else by code point."""
    numbers, wrong = to_numbers(levels, ())
    texts = levels.to_pylist()
    if wrong is not None:
        return tuple(sorted(texts))
    return tuple(text for _, text in sorted(zip(numbers.tolist(), texts, strict=True)))


def sorted_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """The same of Python's texts."""
    return sort_levels(pa.array(list(texts), pa.string()))


def codes_of(
    texts: pa.Array, levels: Sequence[str], missing: Sequence[str], unknown: int = MISSING
) -> NDArray[np.int64]:
    """The code of each text: its level's, MISSING for a missing token, `unknown` for a text that is neither."""
    if len(texts) <= FEW:
        code = {level: i for i, level in enumerate(levels)} | dict.fromkeys(missing, MISSING)
        return np.array([code.get(text.strip(BLANKS), unknown) for text in texts.to_pylist()], np.int64)
    trimmed, is_missing = strip(texts, missing)
    indices = pc.index_in(trimmed, value_set=pa.array(levels, pa.string())).fill_null(unknown)
    codes: NDArray[np.int64] = indices.to_numpy().astype(np.int64)
    codes[is_missing] = MISSING
    return codes
