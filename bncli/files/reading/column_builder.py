"""One column of a table that is learnt from, while its rows come block by block and its type is still open.

A column is taken for numbers as long as nothing speaks against it, and for text from the first block that does; the
blocks that were read as numbers before are then read again as text, this column alone. Blocks are kept small: numbers
in the narrowest type that holds them exactly, text as codes.

Conventions: a column is numeric when every value that is present is a finite decimal number and there are more than
two different ones, unless all are digits only and some, as 01234, have leading zeros: these are codes. It is one of
dates when the file says so and there are more than two. A column all empty is categorical, without levels.

Columns of text as codes: the texts of a row block once each, and per row which one it is.

Texts are kept raw (blanks and all) until all rows are read; stripping, missing tokens and the final order of levels
then cost a pass over the distinct texts, not over the rows.

A column of numbers that a few non-numeric values turn into text, most often by a slip of the pen.

One `1.2x` among thousands of numbers makes a column categorical, or lets it look like an identifier. That is what the
file says, so it is done; but hardly ever is it meant, so the user is told. Only columns whose type nobody has named are
looked at. Conventions: at least 90 % of the values that are present, and at least 20 of them, must be numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import MISSING, CategoricalColumn, NumericColumn
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.numbers import FEW, has_leading_zeros, to_numbers
from bncli.files.reading.source import BLANKS, ColumnRequest, MissingTokens, ValueKind, Values, is_text

MAX_SHARED = 4096
"""More distinct texts than that are not looked up but encoded anew in every block."""
EMPTY = pa.array([], pa.string())
SignedCodes = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class CodedTexts:
    """codes[t] is the index of row t's raw text in `texts`."""

    codes: SignedCodes
    texts: pa.Array


_LEAST_SHARE = 0.9
_LEAST_NUMBER = 20
_N_SHOWN = 40


class NonNumeric(NamedTuple):
    """The first text of a column that is no number; where it stands (empty: not looked for)."""

    text: str
    where: str


ColumnBlock = CodedTexts | NDArray[Any]
"""A column of a row block as it is kept."""
_N_TRIED = 64


class ColumnBuilder:
    """A column's blocks so far. `want` says how the next rows are asked for; `free`: its type is not yet settled."""

    def __init__(self, want: ColumnRequest, *, free: bool, tokens: MissingTokens) -> None:
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
        is_number = self.want.kind is not ValueKind.TEXT
        return self._free and self._whole and is_number and not self.leading_zeros

    def add(self, block: ColumnBlock, locate: Callable[[int], str]) -> None:
        """Take the next block and learns from it; `locate` tells where its rows stand."""
        self.blocks.append(block)
        if isinstance(block, CodedTexts):
            if block.texts is not self.shared:
                self._learn_texts(block, locate)
        elif self._free and block.dtype.kind == "f":
            self._whole = self._whole and _are_whole(block)
            if self.want.kind is ValueKind.INTEGER:
                self.want = ColumnRequest(self.want.name, ValueKind.NUMBER)

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
            self.want = ColumnRequest(self.want.name, ValueKind.TEXT)
        elif not self.leading_zeros and has_leading_zeros(texts):
            self.leading_zeros = True
        elif not self.leading_zeros and self.want.kind is ValueKind.TEXT and more_than_two([numbers]):
            self.want = ColumnRequest(self.want.name, ValueKind.NUMBER)

    def settle(self) -> list[int]:
        """End the search for the type; returns the blocks that must be read again as text and put in by `replace`."""
        if self._free:
            if not more_than_two(
                (to_numbers(block.texts, self._tokens.number)[0] if isinstance(block, CodedTexts) else block)
                for block in self.blocks
            ) or (self.leading_zeros and self._whole):
                self.want = ColumnRequest(self.want.name, ValueKind.TEXT)
            elif self.want.form is None:
                self.want = ColumnRequest(self.want.name, ValueKind.NUMBER)
            self._free = False
        if self.want.kind is not ValueKind.TEXT or self.want.form is not None:
            return []
        return [i for i, block in enumerate(self.blocks) if not isinstance(block, CodedTexts)]

    def replace(self, index: int, values: pa.Array) -> None:
        self.blocks[index] = encode(values, self.shared)

    def texts(self, rows: Mask | None = None) -> pa.Array:
        """Return all raw texts of a column of text, or those of the rows that are marked, once each."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        different = {id(block.texts): block.texts for block in blocks}.values()
        if rows is None and len(different) == 1:
            return next(iter(different))  # a block has no text twice
        return pa.concat_arrays([EMPTY, *(different if rows is None else _marked(blocks, rows))]).unique()

    def count(self, missing: Sequence[str]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the different values of a column of text that are not missing, and how often each occurs."""
        blocks = [block for block in self.blocks if isinstance(block, CodedTexts)]
        times = [np.bincount(block.codes, minlength=len(block.texts)) for block in blocks]
        trimmed, is_missing = strip(pa.concat_arrays([EMPTY, *(block.texts for block in blocks)]), missing)
        table = pa.table({"text": trimmed, "times": np.concatenate([np.empty(0, np.int64), *times])})
        found = table.filter(pa.array(~is_missing)).group_by("text").aggregate([("times", "sum")])
        return found["text"].combine_chunks(), found["times_sum"].to_numpy()

    def numeric(self, read: Callable[[pa.Array], Array] | None = None) -> NumericColumn:
        """Return the finished column of numbers.

        The blocks are gone. `read` makes numbers of texts that are no plain ones.
        """
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
        """Return the finished class: in one whose values are all numbers the missing tokens are those of numbers."""
        numbers, wrong = to_numbers(self.texts(), self._tokens.number)
        if not as_text and wrong is None and not np.isnan(numbers).all():
            self._tokens = MissingTokens(self._tokens.number, self._tokens.number)
        return self.categorical()

    def categorical(self, levels: tuple[str, ...] | None = None) -> CategoricalColumn:
        """Return the finished column of text; the blocks are gone. `levels`: as found, sorted, unless given.

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


def encode(values: pa.Array, shared: pa.Array) -> CodedTexts:
    """Return codes into the shared texts if all values are among them, else into the block's own."""
    if len(shared):
        indices = pc.index_in(values, value_set=shared)
        if not indices.null_count:
            return CodedTexts(narrow_codes(indices.to_numpy(), len(shared)), shared)
    encoded = values.dictionary_encode()
    return CodedTexts(narrow_codes(encoded.indices.to_numpy(), len(encoded.dictionary)), encoded.dictionary)


def narrow_codes(codes: NDArray[Any], n_levels: int) -> SignedCodes:
    """Return the codes in the narrowest signed type that holds 0..n_levels - 1 and the negative marks."""
    narrow: SignedCodes = codes.astype(np.min_scalar_type(-max(n_levels, 2)), copy=False)
    return narrow


def merged(shared: pa.Array, texts: pa.Array) -> pa.Array:
    """Return the shared texts and the new ones among `texts`; neither holds a text twice."""
    if not len(shared):
        return texts
    return pc.unique(pa.concat_arrays([shared, texts]))


def strip(texts: pa.Array, missing: Sequence[str]) -> tuple[pa.Array, Mask]:
    """Return the texts without blanks around them, and which of them are missing tokens."""
    if len(texts) <= FEW:
        few = [text.strip(BLANKS) for text in texts.to_pylist()]
        return pa.array(few, pa.string()), np.array([text in missing for text in few], np.bool_)
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    is_missing = pc.is_in(trimmed, value_set=pa.array(missing, pa.string())).to_numpy(zero_copy_only=False)
    return trimmed, is_missing


def distinct_levels(texts: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return the values, once each, that are not missing."""
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
    """Return the same of Python's texts."""
    return sort_levels(pa.array(list(texts), pa.string()))


def codes_of(
    texts: pa.Array, levels: Sequence[str], missing: Sequence[str], unknown: int = MISSING
) -> NDArray[np.int64]:
    """Return the code of each text: its level's, MISSING for a missing token, `unknown` for a text that is neither."""
    if len(texts) <= FEW:
        code = {level: i for i, level in enumerate(levels)} | dict.fromkeys(missing, MISSING)
        return np.array([code.get(text.strip(BLANKS), unknown) for text in texts.to_pylist()], np.int64)
    trimmed, is_missing = strip(texts, missing)
    indices = pc.index_in(trimmed, value_set=pa.array(levels, pa.string())).fill_null(unknown)
    codes: NDArray[np.int64] = indices.to_numpy().astype(np.int64)
    codes[is_missing] = MISSING
    return codes


def first_non_numeric(block: CodedTexts, wrong: Mask, locate: Callable[[int], str]) -> NonNumeric:
    """Return the first row whose text is `wrong`. Its line is only searched among numbers, which takes a scan."""
    is_wrong = wrong[block.codes]
    row = int(np.argmax(is_wrong))
    text = block.texts[int(block.codes[row])].as_py().strip(BLANKS)
    return NonNumeric(text, locate(row) if is_wrong.mean() <= 1 - _LEAST_SHARE else "")


def suspected_numbers(
    name: str, non_numeric: NonNumeric | None, blocks: Sequence[Any], tokens: MissingTokens
) -> list[str]:
    """Return a note for the user if the column of text was most likely meant to be numbers."""
    if non_numeric is None:
        return []
    text = non_numeric.text if len(non_numeric.text) <= _N_SHOWN else non_numeric.text[:_N_SHOWN] + "..."
    count = _count_numbers(blocks, tokens)
    n_numbers, n_present = count
    if n_numbers >= max(_LEAST_NUMBER, _LEAST_SHARE * n_present):
        place = f" ({non_numeric.where})" if non_numeric.where else ""
        what = f"column '{name}': {count[0]} of {count[1]} values are numbers, but '{text}'{place} is not"
        ways = f"--numeric {shlex.quote(name)} reads it as numbers, --missing {shlex.quote(f'+{text}')} as missing"
        return [f"{what}; {ways}"]
    return []


def _count_numbers(blocks: Sequence[Any], tokens: MissingTokens) -> tuple[int, int]:
    """Return how many values are numbers, and how many are present.

    Counting ends early where numbers cannot be most.
    """
    tolerable = (1 - _LEAST_SHARE) * sum(len(block.codes) for block in blocks) + 1
    marks: dict[int, tuple[Mask, Mask]] = {}
    n_numbers = n_present = 0
    for block in blocks:
        if id(block.texts) not in marks:
            marks[id(block.texts)] = _marks(block.texts, tokens)
        is_number, is_present = marks[id(block.texts)]
        times = np.bincount(block.codes, minlength=len(block.texts))
        n_numbers += int(times[is_number].sum())
        n_present += int(times[is_present].sum())
        if n_present - n_numbers > tolerable:
            break
    return n_numbers, n_present


def _marks(texts: pa.Array, tokens: MissingTokens) -> tuple[Mask, Mask]:
    """Of each text: whether it is a number, whether it is not missing."""
    numbers, wrong = to_numbers(texts, tokens.number)
    is_number = ~np.isnan(numbers)
    return is_number, is_number if wrong is None else is_number | wrong


def compact_values(values: Values, shared: pa.Array) -> ColumnBlock:
    """Return the values of a column in a row block, in the form that is kept."""
    return encode(values, shared) if is_text(values) else narrow_numbers(values)


def more_than_two(blocks: Iterable[NDArray[Any]]) -> bool:
    """Return whether there are more than two different numbers in all."""
    seen: list[float] = []
    for values in blocks:
        add_different(seen, values)
        if len(seen) > 2:
            return True
    return False


def add_different(seen: list[float], values: NDArray[Any]) -> None:
    """Add numbers that were not seen, until there are three."""
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
    """Return one array of a type that holds all blocks exactly; float64 if values are missing."""
    if len(blocks) == 1:
        kind, joined = blocks[0].dtype, blocks[0]
    else:
        kind = np.result_type(*(block.dtype for block in blocks)) if blocks else np.dtype(np.float64)
        joined = np.concatenate([block.astype(kind, copy=False) for block in blocks]) if blocks else np.empty(0, kind)
    if kind == np.float32 and np.isnan(joined).any():
        return joined.astype(np.float64)
    return joined


def _are_whole(values: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore"):
        return not any((sample != np.floor(sample))[~np.isnan(sample)].any() for sample in (values[:_N_TRIED], values))


def _marked(blocks: Iterable[CodedTexts], rows: Mask) -> Iterable[pa.Array]:
    first = 0
    for block in blocks:
        end = first + len(block.codes)
        yield block.texts.take(pa.array(np.unique(block.codes[rows[first:end]])))
        first = end
