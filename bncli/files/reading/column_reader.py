"""One column of a table that is described, while its rows come by once: its values counted, its type at the end.

The type is found by the rules of learning (`growing`, `findings`). They see the distinct values of every row block, and
at the end the kept values as often as they occur; what a date or a number in a national form would be is also asked of
the values that were not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column, NumericColumn
from bncli.engine.data.forms import DateForm, Form
from bncli.engine.kernels.arrays import Array
from bncli.files.reading.findings import Finding
from bncli.files.reading.forms import read_distinct
from bncli.files.reading.growing import Growing
from bncli.files.reading.near_misses import MARKS, plain_numbers
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.recognition import Meaning
from bncli.files.reading.row_blocks import Kind, Values, is_text
from bncli.files.reading.source import BLANKS, Tokens
from bncli.files.reading.tallies import Budget, Counted, Hashes, Tally, hashes_of
from bncli.files.reading.vocabulary import EMPTY, CodedTexts, SignedCodes

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

    counted: Counted
    column: Column
    low: float
    high: float
    finding: Finding
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
class Encoded:
    """The distinct values of a column in a row block, blanks around them stripped; the value of every row."""

    values: pa.Array
    hashes: Hashes
    codes: SignedCodes


def encode_column(values: Values) -> Encoded:
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
    return Encoded(distinct, hashes_of(distinct), codes)


@dataclass(frozen=True)
class BlockRows:
    """Of a row block: the class, the weight and the place of each row."""

    labels: NDArray[np.int64]
    n_labels: int
    weights: Array | None
    places: Hashes
    locate: Callable[[int], str]

    def table(self, encoded: Encoded) -> Array:
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
        growing: Growing,
        tokens: Tokens,
        budget: Budget,
        find: Callable[..., Finding],
        meaning: Callable[..., Meaning | None],
    ) -> None:
        self.want = growing.want
        self.tokens = tokens
        self._growing = growing
        self._find, self._meaning = find, meaning
        self._is_text = self.want.kind is Kind.TEXT and self.want.form is None
        always = (*tokens.number, *MARKS)
        self.tally = Tally(pa.string() if self._is_text else pa.float64(), budget, always)
        self._low, self._high = np.inf, -np.inf
        self._form: Form | None = None
        self._witnesses: pa.Array = EMPTY
        """Texts that were not kept, and are not in the form that the column was taken to have."""
        self._example: str | None = None
        self._digest = 0

    def take(self, encoded: Encoded, rows: BlockRows) -> None:
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
            encoded = Encoded(encoded.values.filter(pa.array(used)), encoded.hashes[used], encoded.codes)
        self.tally.add(encoded.values, encoded.hashes, table[used])
        for values in self.tally.dropped:
            self._let_go(values)
        self.tally.dropped.clear()

    def _let_go(self, values: pa.Array) -> None:
        """Notes the extremes among values that the tally does not keep, and those that are not in the column's form."""
        if self._growing.want.kind is not Kind.TEXT or not self._is_text:
            self._note_extremes(self._numbers(values))
            return
        if self._form is None:
            self._form = self._form_of(values)
        if self._form is None:
            self._witness(values)
            return
        numbers, wrong = read_distinct(self._form, values, self.tokens.number)
        if wrong is None:
            self._note_extremes(numbers)
        else:
            self._witness(values.filter(pa.array(wrong)))
            self._form = None
            self._low, self._high = np.inf, -np.inf

    def _form_of(self, values: pa.Array) -> Form | None:
        """The form of the first values, or else of the last."""
        for part in (values.slice(0, _N_TRIED), values.slice(max(len(values) - _N_TRIED, 0))):
            meaning = self._meaning(self.want.name, part)
            if meaning is not None:
                return meaning.form
        return None

    def _witness(self, values: pa.Array) -> None:
        """Keeps a few texts for the rules of learning to see at the end."""
        self._witnesses = pa.concat_arrays([self._witnesses, values]).slice(0, _MOST_WITNESSES)

    def _note_extremes(self, numbers: Array) -> None:
        if not np.isnan(numbers).all():
            self._low = min(self._low, float(np.nanmin(numbers)))
            self._high = max(self._high, float(np.nanmax(numbers)))

    def _numbers(self, values: pa.Array) -> Array:
        return to_numbers(values, self.tokens.number)[0] if self._is_text else np.asarray(values.to_numpy())

    def finish(self, n_rows: int, n_classes: int, *, is_class: bool) -> ColumnSummary:
        counted = self.tally.finish(n_classes)
        for values in self.tally.dropped:
            self._let_go(values)
        finding, column = self._found(counted, n_rows, is_class=is_class)
        if self._is_text and finding.form != self._form:  # the extremes so far were read in another way
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

    def _found(self, counted: Counted, n_rows: int, *, is_class: bool) -> tuple[Finding, Column]:
        """What learning makes of the column, and what each kept value is."""
        n = len(counted.values)
        times = _times(counted.rows)
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
        """The values as the rows of the column, of the type that all rows agreed on."""
        coded = CodedTexts(codes, values) if self._is_text else values.to_numpy()[codes]
        self._growing.blocks = [coded]
        for i in self._growing.settle():
            self._growing.blocks[i] = CodedTexts(codes, self._texts(values))

    def _texts(self, values: pa.Array) -> pa.Array:
        """The values as text: numbers and dates of a columnar file as that would write them."""
        if self._is_text:
            return values
        present = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        if self.want.form is not None:
            present = present.cast(pa.int64()).cast(pa.timestamp("s"))
        elif self.want.kind is Kind.INTEGER:
            present = present.cast(pa.int64())
        return present.cast(pa.string()).fill_null("")

    def label(self, labels: pa.Array, *, as_text: bool) -> CategoricalColumn:
        """What each of the class's texts is read as."""
        self._growing.blocks = [CodedTexts(np.arange(len(labels)), labels)]
        return self._growing.label(as_text=as_text)


def _times(rows: Array) -> NDArray[np.int64]:
    """How often each value is shown to the rules of learning: as often as it occurs, in tables of a million rows."""
    times: NDArray[np.int64] = np.maximum(rows / max(rows.sum() / _MOST_SHOWN, 1.0), 1.0).astype(np.int64)
    return times


def _present(values: pa.Array, missing: Sequence[str]) -> pa.Array:
    if values.type != pa.string():
        return values.filter(pc.invert(pc.is_nan(values)))
    return values.filter(pc.invert(pc.is_in(values, value_set=pa.array(missing, pa.string()))))
