"""Count the values of every column of a table, in one pass and in bounded memory, for `bncli describe`.

Types are found by the same rules as for learning (`column_builder`, `column_meaning`). These rules are applied to the
distinct values of every row block, and at the end to the kept values with their counts. Columns of text files whose
type is open are read as strings, since the type may still change. Numbers of columnar files are read as numbers.

The values of each column are counted per class. A class with more than 256 labels is not used in this way; then only
the values themselves are counted. Two columns are reported as equal if their digests are equal. A digest is the sum of
a 64-bit hash of (row, value) over all rows, so two different columns are taken to be equal with probability of about
2^-64.

Counting in bounded memory. Up to a limit, all distinct values have exact counts. Beyond it, a value is kept only if its
64-bit hash begins with at least `level` zero bits. The level of a column rises by one whenever too many values remain.
A value that is kept at the end has been kept since its first row, so its counts are exact. It represents 2^level
values: 2^level times a sum over the kept values is an unbiased estimate of the sum over all values. Some values are
always kept, and represent only themselves: those that were most frequent when the limit was reached (up to an eighth of
the limit), missing tokens, and marks that usually mean a missing value. Their counts are therefore exact.

Cost: O(1) per row; memory O(limit x classes), and as much again for rows that wait to be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column, NumericColumn
from bncli.engine.data.schema import DateForm, Form, NumberForm
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.column_builder import EMPTY, CodedTexts, ColumnBuilder
from bncli.files.reading.column_meaning import (
    MARKS,
    MOST_WORDS,
    ColumnDecision,
    are_plain_numbers,
    decide_column,
    recognize_format,
)
from bncli.files.reading.column_roles import ColumnRoles, assign_roles
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import BLANKS, ColumnRequest, MissingTokens, RowBlock, Source, ValueKind, is_text
from bncli.files.reading.table import BadRows, RawBlock, Table, parse, run_in_order
from bncli.files.reading.training_rows import mix_bits, start_columns
from bncli.files.reading.values import SignedCodes, parse_in_form
from bncli.watch import Watch, silent

Hashes = NDArray[np.uint64]
MAX_LABELS = 256
MAX_VALUES = 1 << 14
"""The maximum number of distinct values with exact counts per column, for at most 128 columns and few labels."""
_MAX_CELLS, _MAX_TEXT = 1 << 24, 1 << 27
"""The maximum number of counts (values x classes), and of bytes of strings, for all columns together."""
_MIN_CELLS, _MIN_TEXT = 1 << 11, 1 << 12
"""The minimum of the same limits per column, however many columns there are."""
_MIN_WAITING = 1024
_MAX_SHOWN = 10**6
_MAX_WITNESSES = 256
_N_SAMPLED = 64


@dataclass(frozen=True)
class TableSummary:
    """The summary of a table; `columns` has the summary of each column that was read, in file order, keyed by name.

    - labels: the label that each counted string of the class stands for; None without a class or with too many labels
    - names: all columns of the table, including structs, lists and maps, which are not read; `nested` has the types of
      these
    - ignored: columns that are read but are not attributes, class or weights
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
class ColumnSummary:
    """A column as learning would read it, with each kept value once.

    - counted: the values as strings, and their counts per class
    - column: the same values as parsed (dates as seconds)
    - low, high: the range of all numbers or seconds, NaN if there are none
    - decision: how the column is used as an attribute
    - example: a value that is not missing, or ""
    - digest: a hash that is equal for columns that are equal in every row
    - is_plain: whether the column is a class whose values are all plain numbers, more than two of them distinct
    """

    counted: ValueCounts
    column: Column
    low: float
    high: float
    decision: ColumnDecision
    example: str
    digest: int
    is_plain: bool

    @property
    def is_date(self) -> bool:
        """Whether the values are read as dates or times of the day."""
        return isinstance(self.decision.form, DateForm)

    @property
    def n_distinct(self) -> int:
        """The number of distinct values that are present, estimated if the counts are not exact."""
        if isinstance(self.column, CategoricalColumn):
            present, n_kept = self.column.codes >= 0, len(self.column.levels)
        else:
            present = ~np.isnan(self.column.values)
            n_kept = len(np.unique(self.column.values[present]))
        return n_kept if self.counted.exact else round(float(self.counted.scale[present].sum()))


def summarise_table(source: Source, *, threads: int = 1, watch: Watch = silent) -> TableSummary:
    """Summarize a table in one pass; a table with a single column needs no class."""
    with Table(source, keep=False) as table:
        roles = assign_roles(source, table.names, table.name, nested=table.nested, need_attributes=False)
        # A single column is described without a class, unless the user names it as the class.
        is_single = not roles.attributes and len(table.names) == 1 and source.class_name is None
        class_name = None if is_single else roles.class_name
        not_read = table.nested.keys() - {roles.class_name, roles.weights, *roles.categorical, *roles.numeric}
        names = [name for name in table.names if name not in not_read]
        attributes = tuple(name for name in names if name not in (class_name, roles.weights))
        builders = start_columns(table, replace(roles, attributes=attributes), source, guess=False)
        n_columns = len(table.names)
        budget = ColumnBudget(
            max(_MAX_CELLS // n_columns, _MIN_CELLS), MAX_VALUES, max(_MAX_TEXT // n_columns, _MIN_TEXT)
        )
        readers = {name: _ColumnReader(builders[name], budget, roles, table, source) for name in names}

        # Labels numbered in the order of their first row; None if there are too many.
        label_numbers: dict[str, int] | None = {}
        n_rows = 0
        tokens = MissingTokens.of(source.missing_tokens)
        requests = [reader.request for reader in readers.values()]
        with BadRows(source.on_bad_row, watch) as bad_rows:
            tasks = (partial(_parse_distinct, raw, requests, tokens) for raw in table.raw_blocks(names, watch))
            for block, columns in run_in_order(tasks, threads):
                bad_rows.take(block.bad)
                # odd, so that multiplication by it is one-to-one modulo 2^64: different hashes have different products
                position_hashes = mix_bits(np.arange(n_rows, n_rows + block.n_rows, dtype=np.uint64)) | np.uint64(1)
                n_rows += block.n_rows
                labels = np.zeros(block.n_rows, np.int64)
                if class_name is not None and label_numbers is not None:
                    distinct = columns[names.index(class_name)]
                    texts = distinct.values.slice(0, MAX_LABELS + 1).to_pylist()
                    for text in texts:
                        label_numbers.setdefault(text, len(label_numbers))
                    if len(label_numbers) > MAX_LABELS:
                        label_numbers = None
                        for reader in readers.values():
                            reader.counts.forget_classes()
                    else:
                        labels = np.array([label_numbers[text] for text in texts], np.int64)[distinct.codes]
                weights = None
                if roles.weights is not None:
                    distinct = columns[names.index(roles.weights)]
                    weights = distinct.values.to_numpy()[distinct.codes]
                rows = BlockRows(labels, max(len(label_numbers or ()), 1), weights, position_hashes, block.locate)
                for reader, distinct in zip(readers.values(), columns, strict=True):
                    reader.take(distinct, rows)

        n_labels = max(len(label_numbers or ()), 1)
        summaries = {
            name: reader.finish(n_rows, n_labels, is_class=name == class_name) for name, reader in readers.items()
        }
        label = None
        if class_name is not None and label_numbers is not None:
            # The builder of the class now receives its labels as rows, and decides what each is read as.
            builder = builders[class_name]
            builder.blocks = [CodedTexts(np.arange(len(label_numbers)), pa.array(list(label_numbers), pa.string()))]
            label = builder.label(as_text=class_name in roles.categorical)
        used = {*roles.attributes, roles.class_name, roles.weights}
        ignored = frozenset(name for name in summaries if name not in used)
        nested = {name: word for name, word in table.nested.items() if name not in summaries}
        return TableSummary(n_rows, roles, class_name, ignored, summaries, label, table.names, nested)


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column in a row block, stripped of blanks; row t has the value values[codes[t]]."""

    values: pa.Array
    hashes: Hashes
    codes: SignedCodes


def _parse_distinct(
    raw: RawBlock, requests: Sequence[ColumnRequest], tokens: MissingTokens
) -> tuple[RowBlock, list[DistinctValues]]:
    """Parse a raw block; return its rows without their values, and the distinct values of each requested column."""
    block = parse(raw, requests, tokens)
    columns = []
    for values in block.values:
        if not is_text(values):
            numbers = values.astype(np.float64) + 0.0  # turns -0.0 into 0.0
            numbers[np.isnan(numbers)] = np.nan  # there are many NaNs, which have different bits
            values = pa.array(numbers)
        encoded = values.dictionary_encode()
        distinct, codes = encoded.dictionary, encoded.indices.to_numpy()
        if distinct.type == pa.string():
            trimmed = pc.utf8_trim(distinct, characters=BLANKS)
            if not trimmed.equals(distinct):
                # texts that differ by blanks only are one value: codes of codes
                again = trimmed.dictionary_encode()
                distinct, codes = again.dictionary, again.indices.to_numpy()[codes]
        columns.append(DistinctValues(distinct, hashes_of(distinct), codes))
    return replace(block, values=()), columns


def hashes_of(values: pa.Array) -> Hashes:
    """Return a 64-bit hash of each value: `mix_bits` of a float's bits, or of a polynomial in the bytes of a string."""
    if values.type != pa.string():
        return mix_bits(values.to_numpy().view(np.uint64))
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets).astype(np.int64)
    sums = np.zeros(len(values), np.uint64)
    if lengths.any():
        data = data[offsets[0] : offsets[-1]]
        starts = offsets[:-1].astype(np.int64) - int(offsets[0])
        # position of each byte in its text
        place = np.arange(len(data)) - np.repeat(starts, lengths)
        # powers of an odd number modulo 2^64; a text has the sum over its bytes of (byte + 1) * powers[position]
        powers = np.cumprod(np.full(int(lengths.max()), np.uint64(0x9E3779B97F4A7C15)))
        present = lengths > 0
        sums[present] = np.add.reduceat((data + np.uint64(1)) * powers[place], starts[present])
    return mix_bits(sums + lengths.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03))


@dataclass(frozen=True)
class BlockRows:
    """The rows of a block: the index of each row's label, its weight (all 1 if None), and the hash of its position.

    All arrays are (rows,). n_labels: the number of labels so far.
    """

    labels: NDArray[np.int64]
    n_labels: int
    weights: Array | None
    position_hashes: Hashes
    locate: Callable[[int], str]


class _ColumnReader:
    """A reader that counts the values of one column block by block, and decides its type at the end."""

    def __init__(
        self, builder: ColumnBuilder, budget: ColumnBudget, roles: ColumnRoles, table: Table, source: Source
    ) -> None:
        self.request = builder.request
        self._tokens = MissingTokens.of(source.missing_tokens)
        self._builder = builder
        self._roles, self._table, self._source = roles, table, source
        self._is_text = self.request.kind is ValueKind.TEXT and self.request.form is None
        always = (*self._tokens.number, *MARKS)
        self.counts = ColumnCounts(pa.string() if self._is_text else pa.float64(), budget, always)
        self._low, self._high = np.inf, -np.inf
        """The extremes of the numbers that are not kept."""
        self._form: Form | None = None
        """The form of the strings that are not kept, if they have one."""
        self._witnesses: pa.Array = EMPTY
        """A few strings that are not kept and do not have this form, to which the rules of learning are applied too."""
        self._example: str | None = None
        self._digest = 0

    def take(self, distinct: DistinctValues, rows: BlockRows) -> None:
        """Count the values of the next block."""
        self._digest += int((distinct.hashes[distinct.codes] * rows.position_hashes).sum(dtype=np.uint64))
        if self._is_text:
            self._builder.add(CodedTexts(distinct.codes, distinct.values), rows.locate)
            self._builder.blocks.clear()
        if self._example is None:
            first = _present(distinct.values, self._tokens.number).slice(0, 1)
            self._example = next(iter(self._values_as_text(first).to_pylist()), None)
        # table[i]: the number of rows of positive weight with value i, then their weight in each class.
        n = len(distinct.values)
        codes, labels, weights = distinct.codes, rows.labels, rows.weights
        if weights is not None:
            codes, labels, weights = codes[weights > 0], labels[weights > 0], weights[weights > 0]
        cells = codes.astype(np.int64) * rows.n_labels + labels
        by_class = np.bincount(cells, weights, n * rows.n_labels).reshape(n, rows.n_labels)
        table = np.column_stack([np.bincount(codes, minlength=n), by_class])
        used = table[:, 0] > 0
        values = distinct.values if used.all() else distinct.values.filter(pa.array(used))
        self.counts.add(values, distinct.hashes[used], table[used])
        self._record_dropped()

    def _record_dropped(self) -> None:
        """Record the extremes of the values that were not kept, and strings in another form among them."""
        for values in self.counts.dropped:
            if not self._is_text:
                self._record_extremes(np.asarray(values.to_numpy()))
            elif self._builder.request.kind is not ValueKind.TEXT:
                self._record_extremes(to_numbers(values, self._tokens.number)[0])
            else:
                self._record_dropped_texts(values)
        self.counts.dropped.clear()

    def _record_dropped_texts(self, values: pa.Array) -> None:
        if self._form is None:
            # The first few texts show the form, or else the last few.
            for part in (values.slice(0, _N_SAMPLED), values.slice(max(len(values) - _N_SAMPLED, 0))):
                found = recognize_format(self.request.name, part, self._tokens, self._source, self._table.delimiter)
                if found is not None or are_plain_numbers(part):
                    self._form = NumberForm(".") if found is None else found.form
                    break
        if self._form is None:
            self._witnesses = pa.concat_arrays([self._witnesses, values]).slice(0, _MAX_WITNESSES)
            return
        numbers, wrong = parse_in_form(self._form, values, self._tokens.number)
        if wrong is not None:
            others = values.filter(pa.array(wrong))
            self._witnesses = pa.concat_arrays([self._witnesses, others]).slice(0, _MAX_WITNESSES)
            words = self._form.words if isinstance(self._form, NumberForm) else ()
            if not isinstance(self._form, NumberForm) or len(words) + len(others) > MOST_WORDS:
                self._form = None
                self._low, self._high = np.inf, -np.inf
                return
            self._form = replace(self._form, words=(*words, *others.to_pylist()))
        self._record_extremes(numbers)

    def _record_extremes(self, numbers: Array) -> None:
        if not np.isnan(numbers).all():
            self._low = min(self._low, float(np.nanmin(numbers)))
            self._high = max(self._high, float(np.nanmax(numbers)))

    def finish(self, n_rows: int, n_classes: int, *, is_class: bool) -> ColumnSummary:
        """Return the summary of the column after its last block."""
        counted = self.counts.finish(n_classes)
        self._record_dropped()
        decision, column = self._decide(counted, n_rows, is_class=is_class)
        if self._is_text and _without_words(decision.form) != _without_words(self._form):
            # The extremes so far were read in another form.
            self._low, self._high = np.inf, -np.inf
        if isinstance(column, NumericColumn):
            self._record_extremes(column.values.astype(np.float64))
        has_extremes = self._low <= self._high and isinstance(column, NumericColumn)
        texts = self._values_as_text(counted.values)
        return ColumnSummary(
            replace(counted, values=texts),
            column,
            self._low if has_extremes else np.nan,
            self._high if has_extremes else np.nan,
            decision,
            self._example or next(iter(_present(texts, self._tokens.text).slice(0, 1).to_pylist()), ""),
            self._digest % (1 << 64),
            is_class and are_plain_numbers(_present(texts, self._tokens.number)),
        )

    def _decide(self, counted: ValueCounts, n_rows: int, *, is_class: bool) -> tuple[ColumnDecision, Column]:
        """Return how learning uses the column, and the column as it would be read, with one row per kept value."""
        n = len(counted.values)
        # The rules of learning see each value as often as it occurs, scaled down to a table of at most a million rows.
        scaled = np.maximum(counted.rows / max(counted.rows.sum() / _MAX_SHOWN, 1.0), 1.0)
        times: NDArray[np.int64] = scaled.astype(np.int64)
        codes = np.append(np.repeat(np.arange(n), times), n + np.arange(len(self._witnesses))).astype(np.int64)
        values = pa.concat_arrays([counted.values, self._witnesses]) if self._is_text else counted.values
        self._replace_rows(values, codes)
        n_shown = round(n_rows * n / max(float(counted.scale.sum()), 1.0))
        name = self.request.name
        decision = decide_column(name, self._builder, len(codes), n_shown, self._roles, self._table, self._source)
        # the first row of each value in the repeated rows
        first = np.cumsum(times) - times
        attributes = {name: column.take(first) for name, column in decision.attributes.items()}
        decision = decision._replace(attributes=attributes)
        if isinstance(decision.form, DateForm) and not is_class:
            if not self._is_text:
                return decision, NumericColumn(counted.values.to_numpy())
            return decision, NumericColumn(parse_in_form(decision.form, counted.values, self._tokens.number)[0])
        if name in attributes and not is_class:
            return decision, attributes[name]
        self._replace_rows(values, codes)
        return decision, self._builder.categorical().take(first)

    def _replace_rows(self, values: pa.Array, codes: NDArray[np.int64]) -> None:
        """Replace the rows of the builder by values[codes], as strings if the column turns out to be text."""
        self._builder.blocks = [CodedTexts(codes, values) if self._is_text else values.to_numpy()[codes]]
        for i in self._builder.settle():
            self._builder.blocks[i] = CodedTexts(codes, self._values_as_text(values))

    def _values_as_text(self, values: pa.Array) -> pa.Array:
        """Return the values as strings: numbers and dates of a columnar file as Arrow formats them, "" if missing."""
        if self._is_text:
            return values
        present = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        if self.request.form is not None:
            is_time = isinstance(self.request.form, DateForm) and self.request.form.order == "time"
            seconds = present.cast(pa.int64())
            present = seconds.cast(pa.int32()).cast(pa.time32("s")) if is_time else seconds.cast(pa.timestamp("s"))
        elif self.request.kind is ValueKind.INTEGER:
            present = present.cast(pa.int64())
        return present.cast(pa.string()).fill_null("")


def _present(values: pa.Array, missing: Sequence[str]) -> pa.Array:
    if values.type != pa.string():
        return values.filter(pc.invert(pc.is_nan(values)))
    return values.filter(pc.invert(pc.is_in(values, value_set=pa.array(missing, pa.string()))))


def _without_words(form: Form | None) -> Form | None:
    """Return the form without its words for missing values, or None if the numbers are plain."""
    if not isinstance(form, NumberForm):
        return form
    return None if (form.decimal, form.affix) == (".", "") else replace(form, words=())


@dataclass(frozen=True)
class ColumnBudget:
    """Limits per column on the counts (values x classes), distinct values and bytes of strings that are kept."""

    cells: int
    values: int
    text: int


@dataclass(frozen=True)
class ValueCounts:
    """Distinct values in order of first occurrence, with their counts.

    - rows: the number of rows of positive weight with each value, (n,)
    - by_class: their weight in each class, (n, K)
    - scale: the number of distinct values that each stands for, (n,): 1, or a power of two if values were sampled
    """

    values: pa.Array
    rows: Array
    by_class: Array
    scale: Array

    @property
    def exact(self) -> bool:
        return not (self.scale > 1).any()


class ColumnCounts:
    """A counter of the distinct values of a column within a budget; the module docstring describes the method.

    kind: the Arrow type of the values, string or float64. always: strings that are always kept; for numbers, NaN is
    always kept instead.
    """

    def __init__(self, kind: pa.DataType, budget: ColumnBudget, always: Sequence[str]) -> None:
        self.dropped: list[pa.Array] = []
        """Values that were not kept; the caller empties the list."""
        self._budget = budget
        self._always = pa.array(always if kind == pa.string() else [np.nan], kind)
        self._values = pa.array([], kind)
        self._table = np.zeros((0, 1))
        """The number of rows with each value, followed by their weight in each class, (n, 1 + K)."""
        self._is_fixed = np.zeros(0, np.bool_)
        """Whether each value is kept regardless of its hash."""
        self._level = 0
        self._waiting: list[tuple[pa.Array, Array]] = []
        self._n_waiting = self._waiting_text = 0

    def add(self, values: pa.Array, hashes: Hashes, table: Array) -> None:
        """Add counts of distinct values: table[i] is the number of rows with value i, then their weight per class."""
        if self._level:
            fixed = self._values.filter(pa.array(self._is_fixed))
            keep: Mask = pc.is_in(values, value_set=fixed).to_numpy(zero_copy_only=False)
            keep = keep | self._is_named(values) | _begin_with_zeros(hashes, self._level)
            self._drop(values, ~keep)
            values, table = values.filter(pa.array(keep)), table[keep]
        self._waiting.append((values, table))
        self._n_waiting += len(values)
        self._waiting_text += values.nbytes
        if self._n_waiting > max(_MIN_WAITING, len(self._values)) or self._waiting_text > self._budget.text:
            self._merge_waiting()

    def finish(self, n_classes: int) -> ValueCounts:
        self._merge_waiting()
        self._widen(1 + n_classes)
        scale = np.where(self._is_fixed, 1.0, 2.0**self._level)
        return ValueCounts(self._values, self._table[:, 0], self._table[:, 1:], scale)

    def forget_classes(self) -> None:
        """Merge the counts of all classes; later counts must have a single class."""
        self._merge_waiting()
        self._table = np.column_stack([self._table[:, 0], self._table[:, 1:].sum(axis=1)])

    def _merge_waiting(self) -> None:
        width = max([self._table.shape[1], *(table.shape[1] for _, table in self._waiting)])
        self._widen(width)
        # values that are kept already come first, so they keep their positions
        merged = pa.concat_arrays([self._values, *(values for values, _ in self._waiting)]).dictionary_encode()
        codes, first = merged.indices.to_numpy(), len(self._values)
        total = np.zeros((len(merged.dictionary), width))
        total[: len(self._table)] = self._table
        for _, table in self._waiting:
            total[codes[first : first + len(table)], : table.shape[1]] += table
            first += len(table)
        self._values, self._table = merged.dictionary, total
        self._is_fixed = np.append(self._is_fixed, self._is_named(self._values.slice(len(self._is_fixed))))
        self._waiting, self._n_waiting, self._waiting_text = [], 0, 0
        budget = self._budget
        while len(self._table) > budget.values or self._table.size > budget.cells or self._values.nbytes > budget.text:
            if not self._level:
                # the most frequent values that occur more than once stay, up to an eighth of the budget
                rows = self._table[:, 0]
                order = np.argsort(-rows, kind="stable")
                most = min(budget.values, budget.cells // self._table.shape[1]) // 8
                order = order[rows[order] > 1][:most]
                if self._values.type == pa.string():
                    sizes = pc.binary_length(self._values).to_numpy(zero_copy_only=False)[order]
                    order = order[np.cumsum(sizes) <= budget.text // 8]
                self._is_fixed[order] = True
            # one more zero bit: half of the values that are not fixed go
            self._level += 1
            keep = self._is_fixed | _begin_with_zeros(hashes_of(self._values), self._level)
            if keep.all() and self._level > 60:
                return
            self._drop(self._values, ~keep)
            self._values = self._values.filter(pa.array(keep))
            self._table, self._is_fixed = self._table[keep], self._is_fixed[keep]

    def _widen(self, width: int) -> None:
        n_lacking = width - self._table.shape[1]
        if n_lacking > 0:
            self._table = np.pad(self._table, ((0, 0), (0, n_lacking)))

    def _is_named(self, values: pa.Array) -> Mask:
        named: Mask = pc.is_in(values, value_set=self._always).to_numpy(zero_copy_only=False)
        return named

    def _drop(self, values: pa.Array, mask: Mask) -> None:
        if mask.any():
            self.dropped.append(values.filter(pa.array(mask)))


def _begin_with_zeros(hashes: Hashes, level: int) -> Mask:
    return np.asarray(hashes >> np.uint64(64 - min(level, 63)) == 0)
