"""One column of a table that is learnt from, while its rows come block by block and its type is still open.

A column is taken for numbers as long as nothing speaks against it, and for text from the first block that does; the
blocks that were read as numbers before are then read again as text, this column alone. Blocks are kept small: numbers
in the narrowest type that holds them exactly, text as codes.

Conventions: a column is numeric when every value that is present is a finite decimal number and there are more than
two different ones, unless all are digits only and some, as 01234, have leading zeros: these are codes. It is one of
dates when the file says so and there are more than two. A column all empty is categorical, without levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, NumericColumn
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.non_numeric import NonNumeric, first_non_numeric
from bncli.files.reading.numerals import has_leading_zeros, to_numbers
from bncli.files.reading.row_blocks import Kind, Values, Want, is_text
from bncli.files.reading.source import Tokens
from bncli.files.reading.vocabulary import (
    EMPTY,
    MAX_SHARED,
    CodedTexts,
    codes_of,
    distinct_levels,
    encode,
    merged,
    narrow_codes,
    sort_levels,
    strip,
)

ColumnBlock = CodedTexts | NDArray[Any]
"""A column of a row block as it is kept."""
_N_TRIED = 64


class Growing:
    """A column's blocks so far. `want` says how the next rows are asked for; `free`: its type is not yet settled."""

    def __init__(self, want: Want, *, free: bool, tokens: Tokens) -> None:
        self.want = want
        self.shared: pa.Array = EMPTY
        self.blocks: list[ColumnBlock] = []
        self.non_numeric: NonNumeric | None = None
        """The text that settled that a column of free type is no column of numbers."""
        self.leading_zeros = False
        """Whether a number with leading zeros was met: if all values are digits, they are codes."""
        self.difference: BncliError | None = None
        """Where the files of a table differ in what the column is: what to say if that makes it one of names."""
        self._free = free
        self._whole = True
        self._tokens = tokens

    @property
    def is_free(self) -> bool:
        """Whether its type is not yet settled."""
        return self._free

    @property
    def may_be_codes(self) -> bool:
        """Whether it is read as numbers that are all whole so far, and may yet turn out to be codes."""
        is_number = self.want.kind is not Kind.TEXT
        return self._free and self._whole and is_number and not self.leading_zeros

    def add(self, block: ColumnBlock, locate: Callable[[int], str]) -> None:
        """Takes the next block and learns from it; `locate` tells where its rows stand."""
        self.blocks.append(block)
        if isinstance(block, CodedTexts):
            if block.texts is not self.shared:
                self._learn_texts(block, locate)
        elif self._free and block.dtype.kind == "f":
            self._whole = self._whole and _are_whole(block)
            if self.want.kind is Kind.INTEGER:
                self.want = Want(self.want.name, Kind.NUMBER)

    def _learn_texts(self, block: CodedTexts, locate: Callable[[int], str]) -> None:
        texts = block.texts
        if len(self.shared) < MAX_SHARED:
            self.shared = merged(self.shared, texts)
        if not self._free:
            return
        numbers, wrong = to_numbers(texts, self._tokens.number)
        if wrong is not None:
            self._free = False
            self.non_numeric = first_non_numeric(block, wrong, locate)
            self.want = Want(self.want.name, Kind.TEXT)
        elif not self.leading_zeros and has_leading_zeros(texts):
            self.leading_zeros = True
        elif not self.leading_zeros and self.want.kind is Kind.TEXT and more_than_two([numbers]):
            self.want = Want(self.want.name, Kind.NUMBER)

    def settle(self) -> list[int]:
        """Ends the search for the type; returns the blocks that must be read again as text and put in by `replace`."""
        if self._free:
            if not more_than_two(self._numbers(block) for block in self.blocks) or (self.leading_zeros and self._whole):
                self.want = Want(self.want.name, Kind.TEXT)
            elif self.want.form is None:
                self.want = Want(self.want.name, Kind.NUMBER)
            self._free = False
        if self.want.kind is not Kind.TEXT or self.want.form is not None:
            return []
        return [i for i, block in enumerate(self.blocks) if not isinstance(block, CodedTexts)]

    def replace(self, index: int, values: pa.Array) -> None:
        self.blocks[index] = encode(values, self.shared)

    def _numbers(self, block: ColumnBlock) -> NDArray[Any]:
        """The different numbers of a block of text, the numbers of another."""
        return to_numbers(block.texts, self._tokens.number)[0] if isinstance(block, CodedTexts) else block

    def texts(self, rows: Mask | None = None) -> pa.Array:
        """All raw texts of a column of text, or those of the rows that are marked, once each."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        different = {id(block.texts): block.texts for block in blocks}.values()
        if rows is None and len(different) == 1:
            return next(iter(different))  # a block has no text twice
        return pa.concat_arrays([EMPTY, *(different if rows is None else _marked(blocks, rows))]).unique()

    def count(self, missing: Sequence[str]) -> tuple[pa.Array, NDArray[np.int64]]:
        """The different values of a column of text that are not missing, and how often each occurs."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        times = [np.bincount(block.codes, minlength=len(block.texts)) for block in blocks]
        trimmed, is_missing = strip(pa.concat_arrays([EMPTY, *(block.texts for block in blocks)]), missing)
        table = pa.table({"text": trimmed, "times": np.concatenate([np.empty(0, np.int64), *times])})
        found = table.filter(pa.array(~is_missing)).group_by("text").aggregate([("times", "sum")])
        return found["text"].combine_chunks(), found["times_sum"].to_numpy()

    def numeric(self, read: Callable[[pa.Array], Array] | None = None) -> NumericColumn:
        """The finished column of numbers; the blocks are gone. `read` makes numbers of texts that are no plain ones."""
        read = read or (lambda texts: to_numbers(texts, self._tokens.number)[0])
        tables: dict[int, Array] = {}
        numbers = []
        for block in self.blocks:
            if isinstance(block, CodedTexts):
                if id(block.texts) not in tables:
                    tables[id(block.texts)] = read(block.texts)
                block = narrow_numbers(tables[id(block.texts)][block.codes])
            numbers.append(block)
        self.blocks = []
        return NumericColumn(join_numbers(numbers))

    def label(self, *, as_text: bool) -> CategoricalColumn:
        """The finished class: in one whose values are all numbers the missing tokens are those of numbers."""
        numbers, wrong = to_numbers(self.texts(), self._tokens.number)
        if not as_text and wrong is None and not np.isnan(numbers).all():
            self._tokens = Tokens(self._tokens.number, self._tokens.number)
        return self.categorical()

    def categorical(self, levels: tuple[str, ...] | None = None) -> CategoricalColumn:
        """The finished column of text; the blocks are gone. `levels`: as found, sorted, unless given.

        A text that is not among the given levels has the code MISSING: see `unknown`.
        """
        if levels is None:
            levels = sort_levels(distinct_levels(self.texts(), self._tokens.text))
        tables: dict[int, NDArray[Any]] = {}
        codes_by_block = [np.empty(0, np.int8)]
        for block in self.blocks:
            assert isinstance(block, CodedTexts)
            if id(block.texts) not in tables:
                codes = codes_of(block.texts, levels, self._tokens.text)
                tables[id(block.texts)] = narrow_codes(codes, len(levels))
            codes_by_block.append(tables[id(block.texts)][block.codes])
        self.blocks = []
        return CategoricalColumn(np.concatenate(codes_by_block), levels)


def _are_whole(values: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore"):
        return not any((sample != np.floor(sample))[~np.isnan(sample)].any() for sample in (values[:_N_TRIED], values))


def _marked(blocks: Iterable[CodedTexts], rows: Mask) -> Iterable[pa.Array]:
    first = 0
    for block in blocks:
        end = first + len(block.codes)
        yield block.texts.take(pa.array(np.unique(block.codes[rows[first:end]])))
        first = end


def digest(values: Values, shared: pa.Array) -> ColumnBlock:
    """The values of a column in a row block, in the form that is kept."""
    return encode(values, shared) if is_text(values) else narrow_numbers(values)


def more_than_two(blocks: Iterable[NDArray[Any]]) -> bool:
    """Whether there are more than two different numbers in all."""
    seen: list[float] = []
    for values in blocks:
        add_different(seen, values)
        if len(seen) > 2:
            return True
    return False


def add_different(seen: list[float], values: NDArray[Any]) -> None:
    """Adds numbers that were not seen, until there are three."""
    if len(seen) > 2:
        return
    rest = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    for known in seen:
        rest = rest[rest != known]
    while len(rest) and len(seen) <= 2:
        seen.append(rest[0])
        rest = rest[rest != rest[0]]


def narrow_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """int64 as int8, int16, int32 or (beyond) float64; float64, NaN included, as float32 if nothing is lost."""
    if values.dtype.kind == "i":
        return values.astype(_integer_type(values), copy=False)
    if len(values) > _N_TRIED and not _is_single(values[:_N_TRIED]):
        return values
    return values.astype(np.float32) if _is_single(values) else values


def _integer_type(values: NDArray[Any]) -> type[np.generic]:
    low, high = (values.min(), values.max()) if len(values) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    return np.float64


def _is_single(values: NDArray[Any]) -> bool:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = values.astype(np.float32)
    return bool(((narrow == values) | np.isnan(values)).all())


def join_numbers(blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One array of a type that holds all blocks exactly; float64 if values are missing."""
    if len(blocks) == 1:
        kind, joined = blocks[0].dtype, blocks[0]
    else:
        kind = np.result_type(*(block.dtype for block in blocks)) if blocks else np.dtype(np.float64)
        joined = np.concatenate([block.astype(kind, copy=False) for block in blocks]) if blocks else np.empty(0, kind)
    if kind == np.float32 and np.isnan(joined).any():
        return joined.astype(np.float64)
    return joined
