"""Build one column of a training table block by block, while its type is still open.

A column that seems to hold numbers is read as numbers until a block contains other strings, and as text from then on.
At the end, its earlier blocks are read again as text. Blocks are stored compactly: numbers in a narrow type, and
strings as indices into the distinct strings. Strings keep their blanks until all rows are read. Blanks and missing
tokens can then be removed, and the levels sorted, in one pass over the distinct strings instead of the rows.

A column whose type is open gets its type by these rules (`column_meaning` then looks for further forms in text):

- It is numeric if every value that is present is a finite decimal number, and more than two of the numbers are
  distinct.
- As an exception, it holds codes if all values consist of digits and some of them, such as 01234, have leading zeros
  (`look_like_codes` has an exception to this).
- A column that is stored as dates in a columnar file is a date column if more than two of the dates are distinct.
- A column without any value is categorical and has no levels.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.engine.data.schema import Form
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.numbers import has_leading_zeros, to_numbers
from bncli.files.reading.source import BLANKS, ColumnRequest, MissingTokens, ValueKind
from bncli.files.reading.values import (
    SignedCodes,
    distinct_levels,
    encode_levels,
    narrow_codes,
    narrow_numbers,
    parse_in_form,
    sort_levels,
    strip_texts,
)

MAX_SHARED = 4096
"""A column's shared strings are extended up to about this many; a block with other strings has strings of its own."""
MOSTLY = 0.9
"""If at least this fraction of the values are numbers or dates, the other values are reported as exceptions."""
EMPTY = pa.array([], pa.string())
_N_SAMPLED = 64
_ROWS_AT_ONCE = 1 << 14
"""Rows whose codes are looked up in one call: their indices, in eight bytes each, stay in the L2 cache."""


@dataclass(frozen=True)
class CodedTexts:
    """A block of strings: codes[t] is the index of the string of row t in the distinct strings `texts`."""

    codes: SignedCodes
    texts: pa.Array


ColumnBlock = CodedTexts | NDArray[Any]
"""The rows of one block in a column: encoded strings or numbers."""


class NonNumericValue(NamedTuple):
    """The first value of a column that is not a number, and its location, or "" if that was not searched for."""

    text: str
    where: str


class ColumnBuilder:
    """The blocks of one column read so far, and the type that their values allow.

    request: how the next rows are requested. is_free: whether the type is still open.
    """

    def __init__(self, request: ColumnRequest, *, is_free: bool, tokens: MissingTokens) -> None:
        self.request = request
        self.is_free = is_free
        self.shared: pa.Array = EMPTY
        """The distinct strings with which later blocks are encoded, if they contain all of the block's strings."""
        self.blocks: list[ColumnBlock] = []
        self.non_numeric: NonNumericValue | None = None
        """The value that made this a text column, if its type was open."""
        self.has_leading_zeros = False
        """Whether a number with leading zeros occurred; if all values consist of digits only, they may be codes."""
        self.difference: BncliError | None = None
        """If the files of a table disagree about the type: the error to raise if the column becomes categorical."""
        self._all_whole = True
        self._tokens = tokens
        self._n_reserved = 0
        """The number of rows that `_stored` may hold; 0 once a block lies elsewhere."""
        self._stored: NDArray[Any] = np.empty(0, np.int8)
        """The reserved memory; the blocks are views of its first `_n_stored` values."""
        self._n_stored = 0

    @property
    def may_be_codes(self) -> bool:
        """Whether all values so far are integers that may still turn out to be codes with leading zeros."""
        is_number = self.request.kind is not ValueKind.TEXT
        return self.is_free and self._all_whole and is_number and not self.has_leading_zeros

    def add(self, block: ColumnBlock, locate: Callable[[int], str]) -> None:
        """Append the next block; `locate` returns the location of a row of the block, for messages."""
        if isinstance(block, CodedTexts) and block.texts.equals(self.shared):
            # Blocks that were parsed before the first was added have the same texts in an array of their own.
            block = CodedTexts(block.codes, self.shared)
        if isinstance(block, CodedTexts):
            self.blocks.append(CodedTexts(self._store(block.codes), block.texts))
            if block.texts is not self.shared:
                self._learn_from_texts(block, locate)
            return
        self.blocks.append(self._store(block))
        if self.is_free and block.dtype.kind == "f":
            if self._all_whole:
                # The first few values decide most columns.
                with np.errstate(invalid="ignore"):
                    samples = (block[:_N_SAMPLED], block)
                    self._all_whole = not any((s != np.floor(s))[~np.isnan(s)].any() for s in samples)
            if self.request.kind is ValueKind.INTEGER:
                self.request = ColumnRequest(self.request.name, ValueKind.NUMBER)

    def reserve(self, n_rows: int) -> None:
        """Reserve memory for this many rows, before any is added, so that blocks need not be joined at the end.

        If there are more rows, or fewer, the finished column is the same. The memory is allocated with the next block.
        """
        self._n_reserved = n_rows

    def _store(self, block: NDArray[Any]) -> NDArray[Any]:
        """Copy the values of a block to the reserved memory; return the copy, or the block itself if it does not fit.

        A block that needs a wider type than the earlier ones does not fit.
        """
        start, end = self._n_stored, self._n_stored + len(block)
        if not len(block):
            return block
        if end <= self._n_reserved and not len(self._stored):
            try:
                self._stored = np.empty(self._n_reserved, block.dtype)
            except (MemoryError, ValueError):  # ValueError: no array is so long
                self._n_reserved = 0
        if end > self._n_reserved or np.result_type(self._stored, block) != self._stored.dtype:
            self._n_reserved = 0  # later blocks would not be in their place
            return block
        self._n_stored = end
        kept = self._stored[start:end]
        kept[:] = block
        return kept

    def _joined(self, blocks: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        """Return the values of all blocks in the reserved memory, or None if not all of them are there."""
        if self._n_stored != sum(map(len, blocks)) or any(len(b) and b.base is not self._stored for b in blocks):
            return None
        return self._stored[: self._n_stored]

    def copy(self) -> ColumnBuilder:
        """Return a builder of the same blocks; finishing it leaves this one as it is."""
        other = copy.copy(self)
        other._n_stored = -1  # so that the reserved memory is not written to
        return other

    def _learn_from_texts(self, block: CodedTexts, locate: Callable[[int], str]) -> None:
        texts = block.texts
        if len(self.shared) < MAX_SHARED:
            self.shared = pc.unique(pa.concat_arrays([self.shared, texts])) if len(self.shared) else texts
        if not self.is_free:
            return
        numbers, wrong = to_numbers(texts, self._tokens.number)
        if wrong is not None:
            self.is_free = False
            is_wrong = wrong[block.codes]
            row = int(np.argmax(is_wrong))
            text = texts[int(block.codes[row])].as_py().strip(BLANKS)
            # A message names the line only if nearly all values are numbers; finding it takes a scan of the block.
            where = locate(row) if is_wrong.mean() <= 1 - MOSTLY else ""
            self.non_numeric = NonNumericValue(text, where)
            self.request = ColumnRequest(self.request.name, ValueKind.TEXT)
        elif not self.has_leading_zeros and has_leading_zeros(texts):
            self.has_leading_zeros = True
        elif not self.has_leading_zeros and self.request.kind is ValueKind.TEXT and has_more_than_two([numbers]):
            self.request = ColumnRequest(self.request.name, ValueKind.NUMBER)

    def settle(self) -> list[int]:
        """Decide the type after the last block; return the indices of the blocks that must be read again as text."""
        if self.is_free:
            # Blocks mostly share their texts, which are parsed once.
            distinct = {id(b.texts if isinstance(b, CodedTexts) else b): b for b in self.blocks}.values()
            if not has_more_than_two(
                (to_numbers(block.texts, self._tokens.number)[0] if isinstance(block, CodedTexts) else block)
                for block in distinct
            ) or (self.has_leading_zeros and self._all_whole):
                self.request = ColumnRequest(self.request.name, ValueKind.TEXT)
            elif self.request.form is None:
                self.request = ColumnRequest(self.request.name, ValueKind.NUMBER)
            self.is_free = False
        if self.request.kind is not ValueKind.TEXT or self.request.form is not None:
            return []
        return [i for i, block in enumerate(self.blocks) if not isinstance(block, CodedTexts)]

    def texts(self, rows: Mask | None = None) -> pa.Array:
        """Return the distinct strings of a text column, with their blanks, in all rows or in the rows of a mask."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        texts = []
        if rows is None:
            texts = list({id(block.texts): block.texts for block in blocks}.values())
            if len(texts) == 1:
                return texts[0]  # the texts of one block are distinct
        else:
            start = 0
            for block in blocks:
                end = start + len(block.codes)
                texts.append(block.texts.take(pa.array(np.unique(block.codes[rows[start:end]]))))
                start = end
        return pa.concat_arrays([EMPTY, *texts]).unique()

    def count(self, missing: Sequence[str]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the distinct stripped values of a text column except missing tokens, and the frequency of each."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        counts = [np.bincount(block.codes, minlength=len(block.texts)) for block in blocks]
        trimmed, is_missing = strip_texts(pa.concat_arrays([EMPTY, *(block.texts for block in blocks)]), missing)
        table = pa.table({"text": trimmed, "times": np.concatenate([np.empty(0, np.int64), *counts])})
        total = table.filter(pa.array(~is_missing)).group_by("text").aggregate([("times", "sum")])
        return total["text"].combine_chunks(), total["times_sum"].to_numpy()

    def numeric(self, form: Form | None = None) -> NumericColumn:
        """Return the finished column of numbers, and release the blocks.

        form: the form of numbers or dates in the blocks of strings, or None for plain numbers. The type of the values
        is the common type of the narrow blocks, but float64 instead of float32 if a value is missing.
        """
        by_texts: dict[int, Array] = {}
        blocks = []
        for block in self.blocks:
            if isinstance(block, CodedTexts):
                key = id(block.texts)
                if key not in by_texts:
                    missing = self._tokens.number
                    parsed = (
                        to_numbers(block.texts, missing) if form is None else parse_in_form(form, block.texts, missing)
                    )
                    by_texts[key] = parsed[0]
                block = narrow_numbers(by_texts[key].take(block.codes))
            blocks.append(block)
        self.blocks = []
        if not blocks:
            return NumericColumn(np.empty(0, np.float64))
        dtype = np.result_type(*(block.dtype for block in blocks))
        joined = blocks[0] if len(blocks) == 1 else self._joined(blocks)
        values = np.concatenate([block.astype(dtype, copy=False) for block in blocks]) if joined is None else joined
        if dtype == np.float32 and np.isnan(values).any():
            values = values.astype(np.float64)
        return NumericColumn(values)

    def label(self, *, as_text: bool) -> CategoricalColumn:
        """Return the finished class column, and release the blocks.

        If all labels are numbers, the missing tokens for numbers apply, unless the labels are read `as_text`.
        """
        numbers, wrong = to_numbers(self.texts(), self._tokens.number)
        if not as_text and wrong is None and not np.isnan(numbers).all():
            self._tokens = MissingTokens(self._tokens.number, self._tokens.number)
        return self.categorical()

    def categorical(self, levels: tuple[str, ...] | None = None) -> CategoricalColumn:
        """Return the finished text column, and release the blocks.

        levels: the levels, or None for the distinct values, sorted. A string that is not a level gets the code MISSING.
        """
        if levels is None:
            levels = sort_levels(distinct_levels(self.texts(), self._tokens.text))
        by_texts: dict[int, SignedCodes] = {}
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        assert len(blocks) == len(self.blocks)
        for block in blocks:
            if id(block.texts) not in by_texts:
                found = encode_levels(block.texts, levels, self._tokens.text)
                by_texts[id(block.texts)] = narrow_codes(found, len(levels))
        codes = self._joined([block.codes for block in blocks])
        dtype = narrow_codes(np.empty(0, np.int8), len(levels)).dtype
        if codes is None or codes.dtype != dtype:
            codes = np.empty(sum(len(block.codes) for block in blocks), dtype)
        end = 0
        for block in blocks:
            code_of_text = by_texts[id(block.texts)]
            for start in range(0, len(block.codes), _ROWS_AT_ONCE):
                own = block.codes[start : start + _ROWS_AT_ONCE]
                start, end = end, end + len(own)
                # All codes are valid; "clip" writes without a buffer, even to the memory that is read.
                np.take(code_of_text, own, out=codes[start:end], mode="clip")
        self.blocks = []
        return CategoricalColumn(codes, levels)


def encode_texts(values: pa.Array, shared: pa.Array) -> CodedTexts:
    """Encode strings as indices into `shared` if it contains all of them, otherwise into their own distinct strings."""
    if pa.types.is_dictionary(values.type):
        return _encode_dictionary(values.dictionary, values.indices.to_numpy(), shared)
    if len(shared):
        indices = pc.index_in(values, value_set=shared)
        if not indices.null_count:
            return CodedTexts(narrow_codes(indices.to_numpy(), len(shared)), shared)
    encoded = values.dictionary_encode()
    return CodedTexts(narrow_codes(encoded.indices.to_numpy(), len(encoded.dictionary)), encoded.dictionary)


def _encode_dictionary(texts: pa.Array, codes: NDArray[Any], shared: pa.Array) -> CodedTexts:
    """Encode rows like `encode_texts`, where row t has the string texts[codes[t]].

    A string may occur twice in `texts`, or in no row.
    """
    if texts.equals(shared.slice(0, len(texts))):  # as after the first block of most files
        # Copied in any case, since a view would keep the whole record batch in memory.
        return CodedTexts(np.array(codes, narrow_codes(codes[:0], len(shared)).dtype), shared)
    found = pc.index_in(texts, value_set=shared)
    if found.null_count:
        is_used = np.bincount(codes, minlength=len(texts)) > 0
        if not is_used.all():
            codes = (np.cumsum(is_used) - 1).take(codes)
            texts, found = texts.filter(pa.array(is_used)), found.filter(pa.array(is_used))
    if found.null_count:
        encoded = texts.dictionary_encode()
        shared, found = encoded.dictionary, encoded.indices
    return CodedTexts(narrow_codes(found.to_numpy(), len(shared)).take(codes), shared)


def has_more_than_two(blocks: Iterable[NDArray[Any]]) -> bool:
    """Return whether there are more than two distinct numbers in all blocks together."""
    found: list[float] = []
    for values in blocks:
        append_distinct(found, values)
        if len(found) > 2:
            return True
    return False


def append_distinct(found: list[float], values: NDArray[Any]) -> None:
    """Append distinct numbers that are not yet in `found`, until it has three; ignore NaN."""
    if len(found) > 2:
        return
    unseen = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    for known in found:
        # at most three passes over the numbers, which take less time than sorting them
        unseen = unseen[unseen != known]
    while len(unseen) and len(found) <= 2:
        found.append(unseen[0])
        unseen = unseen[unseen != unseen[0]]
