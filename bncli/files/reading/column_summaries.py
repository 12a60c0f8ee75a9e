"""What is in a table, column by column, from one pass over its rows in bounded memory.

Types are found by the rules of learning (`growing`, `assembly`), fed with the distinct values of every row block; each
column is a `Tally` of its values against the class. Two columns are the same where the sums of the hashes of
(row, value) are: of 64 bits, so a mistake has the odds of 2^-64 a pair.

Conventions: of text files every column is read as text, since its type may still change; of columnar files numbers are
read as such. A class of more than 256 labels is no class: then only the values themselves are counted.

The values of one column counted against the class, in bounded memory, while its rows come by once.

Up to a cap every distinct value has its exact counts. Beyond it a value stays only if its hash, a fixed function of the
value that spreads evenly over 64 bits, begins with as many zero bits as the column's `level` says; the level rises by
one whenever too many values stay. A value that stays at the end has stayed from its first row on, so its counts are
exact, and each stands for 2^level values: sums over values times 2^level are unbiased estimates. The values that were
most frequent when the cap was reached, and those named in `always`, are kept whatever their hash, and stand for
themselves, so that what is common and what is missing stay exact.

Cost: O(1) a row; memory O(cap x classes), and as much again for rows that wait to be counted in.

One column of a table that is described, while its rows come by once: its values counted, its type at the end.

The type is found by the rules of learning (`growing`, `findings`). They see the distinct values of every row block, and
at the end the kept values as often as they occur; what a date or a number in a national form would be is also asked of
the values that were not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column, NumericColumn
from bncli.engine.data.number_formats import DateForm, Form, NumberForm
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.column_builder import EMPTY, CodedTexts, ColumnBuilder, SignedCodes
from bncli.files.reading.column_meaning import (
    MARKS,
    MOST_WORDS,
    ColumnDecision,
    RecognizedFormat,
    find_one,
    meaning_of,
    plain_numbers,
)
from bncli.files.reading.column_roles import ColumnRoles, roles_of
from bncli.files.reading.csv_text import BLOCK_SIZE, BadRows
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import BLANKS, BadRow, MissingTokens, Source, ValueKind, Values, is_text
from bncli.files.reading.table import RawBlock, Table, in_order, parse
from bncli.files.reading.training_rows import start_columns
from bncli.files.reading.values import read_distinct
from bncli.watch import Watch, silent

Hashes = NDArray[np.uint64]
_BASE, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_LEAST_WAITING = 1024


@dataclass(frozen=True)
class ColumnBudget:
    """What a column may keep: table cells (values x classes), distinct values, bytes of text."""

    cells: int
    values: int
    text: int


@dataclass(frozen=True)
class ValueCounts:
    """Distinct values in the order of their first rows, their counts, and how many values each stands for.

    rows (n,): number of rows with the value. by_class (n, K): their weight in each class. scale (n,): 1 where counts
    are exact for all values, else a power of two for the sampled ones.
    """

    values: pa.Array
    rows: Array
    by_class: Array
    scale: Array

    @property
    def exact(self) -> bool:
        return not (self.scale > 1).any()

    def take(self, which: Mask) -> ValueCounts:
        return ValueCounts(
            self.values.filter(pa.array(which)), self.rows[which], self.by_class[which], self.scale[which]
        )


class ColumnCounts:
    """Counts so far. `low`, `high`: among the numbers that were not kept (NaN: there are none)."""

    def __init__(self, kind: pa.DataType, budget: ColumnBudget, always: Sequence[str]) -> None:
        self._budget = budget
        self._always = pa.array(always if kind == pa.string() else [np.nan], kind)
        self._values = pa.array([], kind)
        self._table = np.zeros((0, 1))
        self._common = np.zeros(0, np.bool_)
        self._level = 0
        self._waiting: list[tuple[pa.Array, Array]] = []
        self._n_waiting = self._waiting_text = 0
        self.dropped: list[pa.Array] = []
        """Values that were not kept, since the caller last emptied the list."""

    def add(self, values: pa.Array, hashes: Hashes, table: Array) -> None:
        """Count in distinct values; table[i] is the rows of value i, then their weight in each class."""
        if self._level:
            keep = self._stays(values, hashes)
            self._drop(values, ~keep)
            values, table = values.filter(pa.array(keep)), table[keep]
        self._waiting.append((values, table))
        self._n_waiting += len(values)
        self._waiting_text += values.nbytes
        if self._n_waiting > max(_LEAST_WAITING, len(self._values)) or self._waiting_text > self._budget.text:
            self._count_in()

    def finish(self, n_classes: int) -> ValueCounts:
        self._count_in()
        self._widen(1 + n_classes)
        scale = np.where(self._common, 1.0, 2.0**self._level)
        return ValueCounts(self._values, self._table[:, 0], self._table[:, 1:], scale)

    def forget_classes(self) -> None:
        """Goes on with one class in place of all."""
        self._count_in()
        self._table = np.column_stack([self._table[:, 0], self._table[:, 1:].sum(axis=1)])

    def _count_in(self) -> None:
        width = max([self._table.shape[1], *(table.shape[1] for _, table in self._waiting)])
        self._widen(width)
        merged = pa.concat_arrays([self._values, *(values for values, _ in self._waiting)]).dictionary_encode()
        codes, first = merged.indices.to_numpy(), len(self._values)
        n = len(merged.dictionary)
        total = np.zeros((n, width))
        total[: len(self._table)] = self._table
        for _, table in self._waiting:
            total[codes[first : first + len(table)], : table.shape[1]] += table
            first += len(table)
        self._values, self._table = merged.dictionary, total
        self._common = np.append(self._common, self._is_named(self._values.slice(len(self._common))))
        self._waiting, self._n_waiting, self._waiting_text = [], 0, 0
        self._shrink()

    def _widen(self, width: int) -> None:
        lacking = width - self._table.shape[1]
        if lacking > 0:
            self._table = np.pad(self._table, ((0, 0), (0, lacking)))

    def _is_named(self, values: pa.Array) -> Mask:
        found: Mask = pc.is_in(values, value_set=self._always).to_numpy(zero_copy_only=False)
        return found

    def _shrink(self) -> None:
        """Raise the level until what is kept fits."""
        while self._is_over():
            if not self._level:
                self._common |= self._most_frequent()
            self._level += 1
            keep = self._common | _begins_with_zeros(hashes_of(self._values), self._level)
            if keep.all() and self._level > 60:
                return
            self._drop(self._values, ~keep)
            self._values = self._values.filter(pa.array(keep))
            self._table, self._common = self._table[keep], self._common[keep]

    def _is_over(self) -> bool:
        n, width = self._table.shape
        return n > self._budget.values or n * width > self._budget.cells or self._values.nbytes > self._budget.text

    def _most_frequent(self) -> Mask:
        """Of the values seen more than once, up to an eighth of all that may be kept, in cells and in bytes."""
        rows = self._table[:, 0]
        order = np.argsort(-rows, kind="stable")
        order = order[rows[order] > 1][: min(self._budget.values, self._budget.cells // self._table.shape[1]) // 8]
        if self._values.type == pa.string():
            sizes = pc.binary_length(self._values).to_numpy(zero_copy_only=False)[order]
            order = order[np.cumsum(sizes) <= self._budget.text // 8]
        common = np.zeros(len(rows), np.bool_)
        common[order] = True
        return common

    def _stays(self, values: pa.Array, hashes: Hashes) -> Mask:
        common = self._values.filter(pa.array(self._common))
        known: Mask = pc.is_in(values, value_set=common).to_numpy(zero_copy_only=False)
        return known | self._is_named(values) | _begins_with_zeros(hashes, self._level)

    def _drop(self, values: pa.Array, gone: Mask) -> None:
        if gone.any():
            self.dropped.append(values.filter(pa.array(gone)))


_MOST_SHOWN = 10**6
_N_TRIED = 64
_MOST_WITNESSES = 256


@dataclass(frozen=True)
class ColumnSummary:
    """A column as learning would read it, its kept values once each.

    counted: the values as they were, and their counts by class. column: what each of them is, of a date its seconds.
    low, high: of all its numbers or seconds, NaN where there are none. finding: what becomes of it as an attribute.
    example: a value that is present, "" if there is none. digest: equal for columns that are the same in every row.
    """

    counted: ValueCounts
    column: Column
    low: float
    high: float
    finding: ColumnDecision
    example: str
    digest: int
    plain: bool
    """Whether it is the class, and all its texts are plain numbers."""

    @property
    def is_date(self) -> bool:
        """Whether all its values are dates or times of the day."""
        return isinstance(self.finding.form, DateForm)

    @property
    def n_distinct(self) -> int:
        """How many different values there are that are present, about."""
        if isinstance(self.column, CategoricalColumn):
            present, n_kept = self.column.codes >= 0, len(self.column.levels)
        else:
            present = ~np.isnan(self.column.values)
            n_kept = len(np.unique(self.column.values[present]))
        return n_kept if self.counted.exact else round(float(self.counted.scale[present].sum()))


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column in a row block, blanks around them stripped; the value of every row."""

    values: pa.Array
    hashes: Hashes
    codes: SignedCodes


@dataclass(frozen=True)
class BlockRows:
    """Of a row block: the class, the weight and the place of each row."""

    labels: NDArray[np.int64]
    n_labels: int
    weights: Array | None
    places: Hashes
    locate: Callable[[int], str]

    def table(self, encoded: DistinctValues) -> Array:
        """Of each distinct value the rows of positive weight, and their weight in each class."""
        n = len(encoded.values)
        codes, labels, weights = encoded.codes, self.labels, self.weights
        if weights is not None:
            codes, labels, weights = codes[weights > 0], labels[weights > 0], weights[weights > 0]
        cells = codes.astype(np.int64) * self.n_labels + labels
        by_class = np.bincount(cells, weights, n * self.n_labels).reshape(n, self.n_labels)
        return np.column_stack([np.bincount(codes, minlength=n), by_class])


class ColumnReader:
    """One column while its rows come by."""

    def __init__(
        self,
        growing: ColumnBuilder,
        tokens: MissingTokens,
        budget: ColumnBudget,
        find: Callable[..., ColumnDecision],
        meaning: Callable[..., RecognizedFormat | None],
    ) -> None:
        self.want = growing.want
        self.tokens = tokens
        self._growing = growing
        self._find, self._meaning = find, meaning
        self._is_text = self.want.kind is ValueKind.TEXT and self.want.form is None
        always = (*tokens.number, *MARKS)
        self.tally = ColumnCounts(pa.string() if self._is_text else pa.float64(), budget, always)
        self._low, self._high = np.inf, -np.inf
        self._form: Form | None = None
        self._witnesses: pa.Array = EMPTY
        """Texts that were not kept, and are not in the form that the column was taken to have."""
        self._example: str | None = None
        self._digest = 0

    def take(self, encoded: DistinctValues, rows: BlockRows) -> None:
        self._digest += int((encoded.hashes[encoded.codes] * rows.places).sum(dtype=np.uint64))
        if self._is_text:
            self._growing.add(CodedTexts(encoded.codes, encoded.values), rows.locate)
            self._growing.blocks.clear()
        if self._example is None:
            first = _present(encoded.values, self.tokens.number).slice(0, 1)
            self._example = next(iter(self._texts(first).to_pylist()), None)
        table = rows.table(encoded)
        used = table[:, 0] > 0
        if not used.all():
            encoded = DistinctValues(encoded.values.filter(pa.array(used)), encoded.hashes[used], encoded.codes)
        self.tally.add(encoded.values, encoded.hashes, table[used])
        for values in self.tally.dropped:
            self._let_go(values)
        self.tally.dropped.clear()

    def _let_go(self, values: pa.Array) -> None:
        """Record the extremes among values that are not counted, and those that are not in the column's form."""
        if self._growing.want.kind is not ValueKind.TEXT or not self._is_text:
            self._note_extremes(
                to_numbers(values, self.tokens.number)[0] if self._is_text else np.asarray(values.to_numpy())
            )
            return
        if self._form is None:
            self._form = self._form_of(values)
        if self._form is None:
            self._witness(values)
            return
        numbers, wrong = read_distinct(self._form, values, self.tokens.number)
        if wrong is not None:
            others = values.filter(pa.array(wrong))
            self._witness(others)
            known = self._form.words if isinstance(self._form, NumberForm) else ()
            if isinstance(self._form, NumberForm) and len(known) + len(others) <= MOST_WORDS:
                self._form = replace(self._form, words=(*known, *others.to_pylist()))
            else:
                self._form = None
                self._low, self._high = np.inf, -np.inf
                return
        self._note_extremes(numbers)

    def _form_of(self, values: pa.Array) -> Form | None:
        """Return the form of the first values, or else of the last."""
        for part in (values.slice(0, _N_TRIED), values.slice(max(len(values) - _N_TRIED, 0))):
            meaning = self._meaning(self.want.name, part)
            if meaning is not None:
                return meaning.form
            if plain_numbers(part):
                return NumberForm(".")
        return None

    def _witness(self, values: pa.Array) -> None:
        """Keep a few texts for the rules of learning to see at the end."""
        self._witnesses = pa.concat_arrays([self._witnesses, values]).slice(0, _MOST_WITNESSES)

    def _note_extremes(self, numbers: Array) -> None:
        if not np.isnan(numbers).all():
            self._low = min(self._low, float(np.nanmin(numbers)))
            self._high = max(self._high, float(np.nanmax(numbers)))

    def finish(self, n_rows: int, n_classes: int, *, is_class: bool) -> ColumnSummary:
        counted = self.tally.finish(n_classes)
        for values in self.tally.dropped:
            self._let_go(values)
        finding, column = self._found(counted, n_rows, is_class=is_class)
        if self._is_text and _without_words(finding.form) != _without_words(
            self._form
        ):  # the extremes so far were read in another way
            self._low, self._high = np.inf, -np.inf
        if isinstance(column, NumericColumn):
            self._note_extremes(column.values.astype(np.float64))
        known = self._low <= self._high and isinstance(column, NumericColumn)
        texts = self._texts(counted.values)
        return ColumnSummary(
            replace(counted, values=texts),
            column,
            self._low if known else np.nan,
            self._high if known else np.nan,
            finding,
            self._example or next(iter(_present(texts, self.tokens.text).slice(0, 1).to_pylist()), ""),
            self._digest % (1 << 64),
            is_class and plain_numbers(_present(texts, self.tokens.number)),
        )

    def _found(self, counted: ValueCounts, n_rows: int, *, is_class: bool) -> tuple[ColumnDecision, Column]:
        """Return what learning makes of the column, and what each kept value is."""
        n = len(counted.values)
        # How often each value is shown to the rules of learning: as often as it occurs, in tables of a million rows.
        times: NDArray[np.int64] = np.maximum(counted.rows / max(counted.rows.sum() / _MOST_SHOWN, 1.0), 1.0).astype(
            np.int64
        )
        codes = np.append(np.repeat(np.arange(n), times), n + np.arange(len(self._witnesses))).astype(np.int64)
        values = pa.concat_arrays([counted.values, self._witnesses]) if self._is_text else counted.values
        self._put(values, codes)
        shown = round(n_rows * n / max(float(counted.scale.sum()), 1.0))
        finding = self._find(self.want.name, self._growing, len(codes), shown)
        first = np.cumsum(times) - times
        attributes = {name: column.take(first) for name, column in finding.attributes.items()}
        finding = finding._replace(attributes=attributes)
        if isinstance(finding.form, DateForm) and not is_class:
            if not self._is_text:
                return finding, NumericColumn(counted.values.to_numpy())
            return finding, NumericColumn(read_distinct(finding.form, counted.values, self.tokens.number)[0])
        if self.want.name in attributes and not is_class:
            return finding, attributes[self.want.name]
        self._put(values, codes)
        return finding, self._growing.categorical().take(first)

    def _put(self, values: pa.Array, codes: NDArray[np.int64]) -> None:
        """Store the values as the rows of the column, in the type that all rows agreed on."""
        coded = CodedTexts(codes, values) if self._is_text else values.to_numpy()[codes]
        self._growing.blocks = [coded]
        for i in self._growing.settle():
            self._growing.blocks[i] = CodedTexts(codes, self._texts(values))

    def _texts(self, values: pa.Array) -> pa.Array:
        """Return the values as text: numbers and dates of a columnar file as that would write them."""
        if self._is_text:
            return values
        present = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        if self.want.form is not None:
            present = present.cast(pa.int64()).cast(pa.timestamp("s"))
        elif self.want.kind is ValueKind.INTEGER:
            present = present.cast(pa.int64())
        return present.cast(pa.string()).fill_null("")

    def label(self, labels: pa.Array, *, as_text: bool) -> CategoricalColumn:
        """Return what each of the class's texts is read as."""
        self._growing.blocks = [CodedTexts(np.arange(len(labels)), labels)]
        return self._growing.label(as_text=as_text)


def _without_words(form: Form | None) -> Form | None:
    """Return how the numbers themselves are written; None if plainly."""
    if not isinstance(form, NumberForm):
        return form
    return None if (form.decimal, form.affix) == (".", "") else replace(form, words=())


MAX_LABELS = 256
MAX_VALUES = 1 << 14
"""Distinct values of a column up to which all is exact, in a table of up to 128 columns and a class of few labels."""
_CELLS, _TEXT = 1 << 24, 1 << 27
"""Table cells, and bytes of text, that all columns may keep together."""
_LEAST_CELLS, _LEAST_TEXT = 1 << 11, 1 << 12


@dataclass(frozen=True)
class TableSummary:
    """The columns in file order, the class among them.

    labels: what each counted class is read as; None where there is no class, or one of too many labels. names: all
    columns of the table, those of structs, lists and maps too, which are not read.
    """

    n_rows: int
    roles: ColumnRoles
    class_name: str | None
    ignored: frozenset[str]
    columns: dict[str, ColumnSummary]
    labels: CategoricalColumn | None
    names: tuple[str, ...]
    nested: Mapping[str, str]


@dataclass(frozen=True)
class _Block:
    columns: list[DistinctValues]
    n_rows: int
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]


class _Reading:
    """The rows so far."""

    def __init__(self, readers: dict[str, ColumnReader], class_name: str | None, weights: str | None) -> None:
        self._readers = readers
        names = list(readers)
        self._class = None if class_name is None else names.index(class_name)
        self._weights = None if weights is None else names.index(weights)
        self._labels: dict[str, int] | None = {}
        self._n_rows = 0

    def take(self, block: _Block) -> None:
        """Count in a row block."""
        places = mixed(np.arange(self._n_rows, self._n_rows + block.n_rows, dtype=np.uint64)) | np.uint64(1)
        self._n_rows += block.n_rows
        labels = self._codes_of_labels(block)
        weights = None
        if self._weights is not None:
            encoded = block.columns[self._weights]
            weights = encoded.values.to_numpy()[encoded.codes]
        rows = BlockRows(labels, max(len(self._labels or ()), 1), weights, places, block.locate)
        for reader, encoded in zip(self._readers.values(), block.columns, strict=True):
            reader.take(encoded, rows)

    def _codes_of_labels(self, block: _Block) -> NDArray[np.int64]:
        """Return the class of each row, numbered as met; all 0 without a class."""
        if self._class is None or self._labels is None:
            return np.zeros(block.n_rows, np.int64)
        encoded = block.columns[self._class]
        found = encoded.values.slice(0, MAX_LABELS + 1).to_pylist()
        for label in found:
            self._labels.setdefault(label, len(self._labels))
        if len(self._labels) > MAX_LABELS:
            self._labels = None
            for reader in self._readers.values():
                reader.tally.forget_classes()
            return np.zeros(block.n_rows, np.int64)
        numbers: NDArray[np.int64] = np.array([self._labels[label] for label in found], np.int64)[encoded.codes]
        return numbers

    def finish(self, roles: ColumnRoles, class_name: str | None, table: Table) -> TableSummary:
        n_labels = max(len(self._labels or ()), 1)
        columns = {
            name: reader.finish(self._n_rows, n_labels, is_class=name == class_name)
            for name, reader in self._readers.items()
        }
        labels = None
        if class_name is not None and self._labels is not None:
            reader = self._readers[class_name]
            texts = pa.array(list(self._labels), pa.string())
            labels = reader.label(texts, as_text=class_name in roles.categorical)
        used = {*roles.attributes, roles.class_name, roles.weights}
        ignored = frozenset(name for name in columns if name not in used)
        nested = {name: word for name, word in table.nested.items() if name not in columns}
        return TableSummary(self._n_rows, roles, class_name, ignored, columns, labels, table.names, nested)


def hashes_of(values: pa.Array) -> Hashes:
    """Return 64 bits of each value, spread evenly.

    Of numbers their bits mixed, of texts a polynomial of their bytes mixed.
    """
    if values.type != pa.string():
        return mixed(values.to_numpy().view(np.uint64))
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets).astype(np.int64)
    sums = np.zeros(len(values), np.uint64)
    if lengths.any():
        data = data[offsets[0] : offsets[-1]]
        starts = offsets[:-1].astype(np.int64) - int(offsets[0])
        place = np.arange(len(data)) - np.repeat(starts, lengths)
        powers = np.cumprod(np.full(int(lengths.max()), _BASE))
        present = lengths > 0
        sums[present] = np.add.reduceat((data + np.uint64(1)) * powers[place], starts[present])
    return mixed(sums + lengths.astype(np.uint64) * _ODD)


def mixed(bits: NDArray[Any]) -> Hashes:
    """Return the finalizer of SplitMix64 (Steele, Lea & Flood 2014): a one-to-one map that spreads every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    spread: Hashes = bits ^ (bits >> np.uint64(31))
    return spread


def encode_column(values: Values) -> DistinctValues:
    if not is_text(values):
        numbers = values.astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan  # one of the many
        values = pa.array(numbers)
    encoded = values.dictionary_encode()
    distinct, codes = encoded.dictionary, encoded.indices.to_numpy()
    if distinct.type == pa.string():
        trimmed = pc.utf8_trim(distinct, characters=BLANKS)
        if not trimmed.equals(distinct):
            again = trimmed.dictionary_encode()
            distinct, codes = again.dictionary, again.indices.to_numpy()[codes]
    return DistinctValues(distinct, hashes_of(distinct), codes)


def summarise_table(
    source: Source, *, threads: int = 1, watch: Watch = silent, block_size: int = BLOCK_SIZE
) -> TableSummary:
    """Return the whole table in one pass; it needs no attribute, and no class."""
    with Table(source, keep=False, block_size=block_size) as table:
        roles = roles_of(source, table.names, table.name, nested=table.nested)
        alone = not roles.attributes and len(table.names) == 1 and source.class_name is None
        class_name = None if alone else roles.class_name
        # Every column, with the type that is said, or that of a columnar file; in a text file types are open.
        not_read = table.nested.keys() - {roles.class_name, roles.weights, *roles.categorical, *roles.numeric}
        names = tuple(name for name in table.names if name not in not_read)
        attributes = tuple(name for name in names if name not in (class_name, roles.weights))
        columns = start_columns(table, replace(roles, attributes=attributes), source, guess=False)
        budget = _budget(len(table.names))
        find = partial(find_one, roles=roles, table=table, source=source)
        tokens = MissingTokens.of(source.missing_tokens)
        meaning = partial(meaning_of, tokens=tokens, source=source, delimiter=table.delimiter)
        readers = {name: ColumnReader(columns[name], tokens, budget, find, meaning) for name in names}
        reading = _Reading(readers, class_name, roles.weights)
        with BadRows(source.on_bad_row, watch) as bad:
            tasks = (partial(_encode_block, raw, readers) for raw in table.raw_blocks(list(readers), watch))
            for block in in_order(tasks, threads):
                bad.take(block.bad)
                reading.take(block)
        return reading.finish(roles, class_name, table)


def _budget(n_columns: int) -> ColumnBudget:
    return ColumnBudget(max(_CELLS // n_columns, _LEAST_CELLS), MAX_VALUES, max(_TEXT // n_columns, _LEAST_TEXT))


def _encode_block(raw: RawBlock, readers: dict[str, ColumnReader]) -> _Block:
    tokens = next(iter(readers.values())).tokens
    block = parse(raw, [reader.want for reader in readers.values()], tokens)
    return _Block([encode_column(values) for values in block.values], block.n_rows, block.bad, block.locate)


def _begins_with_zeros(hashes: Hashes, level: int) -> Mask:
    return np.asarray(hashes >> np.uint64(64 - min(level, 63)) == 0)


def _present(values: pa.Array, missing: Sequence[str]) -> pa.Array:
    if values.type != pa.string():
        return values.filter(pc.invert(pc.is_nan(values)))
    return values.filter(pc.invert(pc.is_in(values, value_set=pa.array(missing, pa.string()))))
