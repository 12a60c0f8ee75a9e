"""What becomes of each column of a table to learn from, found over all rows: numbers, parts of dates, names, nothing.

A column that nobody has named is left out where more than half of its rows, and more than 20, have a value of their
own. All that is guessed is told.

Columns of text that a few values keep from being numbers or dates, and marks that usually mean a missing value.

They stay what they are, for that is what the file says; the user is told what else they might be. Conventions: at least
90 % of the different values, and at least 20 of them, must be numbers or dates.

Whether a column of text holds dates, or numbers in a national form: what every one of its values agrees on.

Conventions: more than two different values are needed, as for numbers; dates with day, month and year in three numbers
are day first if every value can be read so, whatever parts the numbers, else month first; one column has one shape of
dates, the zone and the time of the day apart, unless the user names the order of day and month.

What is said of the columns of a table to learn from: a note for each kind of guess, however many columns.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import Column, NumericColumn
from bncli.engine.data.number_formats import DATE_ORDERS, DateForm, DateOrder, Form, NumberForm
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.column_builder import ColumnBuilder, distinct_levels, more_than_two, suspected_numbers
from bncli.files.reading.column_roles import ColumnRoles, missing_column, split_names
from bncli.files.reading.dates import are_of_shape, shape_of, to_seconds
from bncli.files.reading.numbers import (
    find_form,
    fitting_forms,
    has_leading_zeros,
    look_like_codes,
    nearest_fit,
    to_numbers,
)
from bncli.files.reading.source import MissingTokens, Source, ValueKind
from bncli.files.reading.table import Table
from bncli.files.reading.values import parts_of_dates, read_distinct
from bncli.watch import Note, Watch

_LEAST_SHARE = 0.9
_LEAST_NUMBER = 20
_NEAR_MISSES_N_TRIED = 64
_N_SHOWN = 40
MARKS = (
    *("n/a", "N/A", "#N/A", "NA", "<NA>", "NULL", "null", "(null)", "NaN", "nan", "nil"),
    *("-", "--", "---", "."),
)
"""Other than the usual words for no value, which are often one: none, unknown."""


class SuspectedFormat(NamedTuple):
    """What the values of a column nearly are, and the note about it (empty: there is nothing to say)."""

    why: str
    note: str = ""


_MARKS, _PLUS_SIGNS = pa.array(MARKS), pa.array(["+", "++", "+++"])
_RECOGNITION_N_TRIED = 64
_PARTS_IN_ORDER: dict[str, tuple[str, ...]] = {
    "dmy": ("day", "month", "year"),
    "mdy": ("month", "day", "year"),
    "ymd": ("year", "month", "day"),
    "yymd": ("year", "month", "day"),
}
MOST_WORDS = 3
"""Different texts among numbers that are taken for words of missing values."""
_FEWEST_SHORT_DATES = 6
"""Different dates with years of two digits: fewer may be any numbers with dots."""


class RecognizedFormat(NamedTuple):
    """The form of a column's values, in words, and the other reading that fits as well (empty: none does)."""

    form: Form
    words: str
    instead: str = ""


_MAX_CODES = 10
_NOTES_N_TRIED = 4096
_N_NAMED = 20


class ColumnNotes:
    """Collects what was found; `lines` says it."""

    def __init__(self) -> None:
        self.doubts: list[str] = []
        self.codes: list[str] = []
        """Columns of digits with leading zeros."""
        self.padded: list[str] = []
        """Columns of numbers, some with leading zeros."""
        self.dates_without_parts: list[str] = []
        self._dates: dict[str, list[str]] = {}
        self._numbers: dict[str, list[str]] = {}
        self._taken: list[str] = []
        self._left_out: dict[str, list[str]] = {}
        self._marks: dict[str, list[str]] = {}
        self._spoilt: dict[str, list[str]] = {}
        self._words: dict[str, list[str]] = {}
        self._integers: list[str] = []

    def look_for_codes(self, name: str, values: NDArray[Any]) -> None:
        """Remembers a column of integers of at most 10 different values."""
        if all(_few_integers(sample) for sample in (values[:_NOTES_N_TRIED], values)):
            self._integers.append(name)

    def mark(self, name: str, marks: Sequence[str], meant: str) -> None:
        """Record that a column holds marks of missing values; without them it is `meant` (empty: names)."""
        for mark in marks:
            self._marks.setdefault(mark, []).append(name)
        if meant:
            self._spoilt.setdefault(meant, []).append(name)

    def missing_words(self, name: str, words: Sequence[str]) -> None:
        """Record the words of a column of numbers that are read as missing values."""
        for word in words:
            self._words.setdefault(word, []).append(name)

    def leave_out(self, name: str, why: str) -> None:
        self._left_out.setdefault(why, []).append(name)

    def number(self, name: str, meaning: RecognizedFormat) -> None:
        instead = f" ({meaning.instead} reads the marks the other way)" if meaning.instead else ""
        self._numbers.setdefault(f"{meaning.words}{instead}", []).append(name)

    def date(self, name: str, meaning: RecognizedFormat, parts: Sequence[str], taken: Sequence[str]) -> None:
        """Record that a date column was expanded into these parts, and which names were already taken."""
        assert isinstance(meaning.form, DateForm)
        self._taken += taken
        if not parts:
            self.dates_without_parts.append(name)
            return
        instead = f"; {meaning.instead} fits too" if meaning.instead else ""
        endings = ", ".join(part.removeprefix(name) for part in parts)
        self._dates.setdefault(f"{endings} (read as {meaning.words}{instead})", []).append(name)

    def lines(self) -> list[Note]:
        """Return the notes, those of most columns first."""
        found = [
            f"left out as {why}: {_named(names)} (--categorical NAME keeps one)"
            for why, names in self._left_out.items()
        ]
        if self._words:
            places = "; ".join(f"'{_shortened(word)}' in {_named(names)}" for word, names in self._words.items())
            found.append(f"words among numbers are read as missing: {places} (--categorical NAME keeps them as names)")
        found += self._about_marks()
        found += self.doubts
        for what, names in self._dates.items():
            column, was = ("columns", "were") if len(names) > 1 else ("column", "was")
            found.append(f"date {column} {_named(names)} {was} expanded into {what}")
        if self._taken:
            found.append(f"parts of dates left out because columns have their names: {_named(self._taken)}")
        if self.dates_without_parts:
            found.append(f"left out as dates that do not vary: {_named(self.dates_without_parts)}")
        found += [f"read as numbers with {what}: {_named(names)}" for what, names in self._numbers.items()]
        if self.codes:
            found.append(f"read as codes because of leading zeros: {_named(self.codes)} (else --numeric NAME)")
        if self.padded:
            what = "read as numbers although some have leading zeros"
            found.append(f"{what}: {_named(self.padded)} (if they are codes: --categorical NAME)")
        if self._integers:
            what = f"integers with at most {_MAX_CODES} different values are read as numbers"
            found.append(f"{what}: {_named(self._integers)} (if they are codes: --categorical NAME)")
        return [Note(line) for line in found]

    def _about_marks(self) -> list[str]:
        """Return one note for all columns, with the option that makes the marks missing."""
        if not self._marks:
            return []
        places = "; ".join(f"'{mark}' in {_named(names)}" for mark, names in self._marks.items())
        options = " ".join(f"--missing {shlex.quote('+' + mark)}" for mark in self._marks)
        then = "".join(f", and {_named(names)} {what}" for what, names in self._spoilt.items())
        return [f"values that may mean missing: {places} ({options} makes them missing{then})"]


_MIN_IDENTIFIER_LEVELS = 20
_UNIQUE_SHARE = 0.9
_WORDS_OF_TEXT = 4


class ColumnDecision(NamedTuple):
    """What becomes of one column: the attributes (none: it is left out), the form it was found in, what is told.

    marks: its values that may mean missing ones; meant: what it is but for them, numbers or dates (empty: names).
    """

    attributes: dict[str, Column]
    form: Form | None
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    meant: str


class _Finder:
    """Takes column after column; `attributes` and `notes` are what has been found so far.

    n_rows: where not all rows are at hand, how many there are, by the number of different values at hand.
    """

    def __init__(self, keep: Mask, roles: ColumnRoles, table: Table, source: Source, n_rows: int | None = None) -> None:
        self.attributes: dict[str, Column] = {}
        self.notes = ColumnNotes()
        self.form: Form | None = None
        self.marks: Sequence[str] = ()
        self.meant = ""
        """Of the last column taken, as the two before."""
        self._n_rows = len(keep) if n_rows is None else n_rows
        self._dates: set[str] = set()
        self._keep, self._roles, self._table, self._source = keep, roles, table, source
        self._tokens = MissingTokens.of(source.missing_tokens)

    def take(self, name: str, column: ColumnBuilder) -> None:
        form = self.form = column.want.form
        if isinstance(form, DateForm):
            self._take_dates(name, column.numeric().values, RecognizedFormat(form, "stored"))
        elif column.want.kind is not ValueKind.TEXT or form is not None:
            self._take_numbers(name, column.numeric().values, form)
        elif name in self._roles.categorical:
            self.attributes[name] = column.categorical()
        else:
            self._take_text(name, column)

    def _take_numbers(self, name: str, values: NDArray[np.generic], form: Form | None) -> None:
        self.attributes[name] = NumericColumn(values, form)
        if name not in self._roles.numeric:
            self.notes.look_for_codes(name, values)

    def _take_text(self, name: str, column: ColumnBuilder) -> None:
        """Dates, numbers in a national form, names, or nothing that can be learnt from."""
        if column.leading_zeros and column.non_numeric is None:
            self._take_codes(name, column)
            return
        meaning = meaning_of(name, column.texts(), self._tokens, self._source, self._table.delimiter)
        if meaning is None and self._table.delimiter is not None:
            meaning = numbers_with_words(column, self._tokens, self._source, self._table.delimiter)
        if meaning is None:
            if column.difference is not None and not column.leading_zeros:
                raise column.difference
            levels = distinct_levels(column.texts(), self._tokens.text)
            self._keep_names(name, column, self._doubt(name, column, levels))
            return
        form = self.form = meaning.form

        def read(texts: pa.Array) -> Array:
            return read_distinct(form, texts, self._tokens.number)[0]

        values = column.numeric(read).values
        if isinstance(form, DateForm):
            self._take_dates(name, values, meaning)
        else:
            self.notes.missing_words(name, form.words)
            if meaning.words:
                self.notes.number(name, meaning)
            self._take_numbers(name, values, form)

    def _take_codes(self, name: str, column: ColumnBuilder) -> None:
        """Numbers with leading zeros: codes or, if they do not look so, numbers after all."""
        texts, counts = column.count(self._tokens.number)
        is_number = more_than_two([to_numbers(texts, ())[0]])
        if not is_number or look_like_codes(texts, counts):
            self.notes.codes += [name] if is_number else []
            self._keep_names(name, column, "")
        else:
            self.notes.padded.append(name)
            self._take_numbers(name, column.numeric().values, None)

    def _keep_names(self, name: str, column: ColumnBuilder, why: str) -> None:
        """Name, unless most rows have their own; `why` says why that may be so, if anything is known."""
        levels = distinct_levels(column.texts(), self._tokens.text)
        if len(levels) > _MIN_IDENTIFIER_LEVELS and 2 * len(levels) > self._n_rows:
            self.notes.leave_out(name, why or _nature(*column.count(self._tokens.text)))
        else:
            self.attributes[name] = column.categorical()

    def _doubt(self, name: str, column: ColumnBuilder, levels: pa.Array) -> str:
        """Return what the column might have been meant to be, which is noted; empty if it is just names."""
        self.marks = marks = marks_among(levels)
        if marks:
            rest = distinct_levels(levels, [*self._tokens.number, *marks])
            self.meant = meant = self._meant(name, rest)
            self.notes.mark(name, marks, meant)
            if meant:
                return f"{meant} but for marks of missing values"
        doubts = suspected_numbers(name, column.non_numeric, column.blocks, self._tokens)
        self.notes.doubts += doubts
        if doubts:
            return "numbers but for a few values"
        present = distinct_levels(levels, self._tokens.number)
        miss = near_miss(name, present, text_file=self._table.delimiter is not None, dates=self._source.dates)
        self.notes.doubts += [miss.note] if miss and miss.note else []
        return miss.why if miss else ""

    def _meant(self, name: str, rest: pa.Array) -> str:
        """Return what the values besides marks of missing ones are."""
        delimiter = self._table.delimiter
        if delimiter is not None and plain_numbers(rest):
            return "numbers"
        meaning = meaning_of(name, rest, self._tokens, self._source, delimiter)
        return "" if meaning is None else "dates" if isinstance(meaning.form, DateForm) else "numbers"

    def _take_dates(self, name: str, seconds: NDArray[np.generic], meaning: RecognizedFormat) -> None:
        assert isinstance(meaning.form, DateForm)
        found = parts_of_dates(np.asarray(seconds, np.float64), meaning.form, self._keep)
        self._dates.add(name)
        wanted = {part: c for part, c in found.items() if part not in self._roles.ignored_parts}
        taken = [part for part in wanted if part in self._table.names]
        self.attributes |= {part: c for part, c in wanted.items() if part not in taken}
        self.notes.date(name, meaning, [part for part in wanted if part not in taken], taken)

    def check_ignored(self, where: str) -> None:
        """Raise BncliError for a part of dates that is ignored or declared numeric in a column without dates."""
        said = self._roles.ignored_parts | self._roles.numeric
        for name in sorted(said.difference(self._table.names)):
            if name.rpartition(".")[0] not in self._dates | {*split_names(self._source.ignore, self._table.names)}:
                raise missing_column(name, self._table.names, where)

    def told(self, where: str, watch: Watch) -> dict[str, Column]:
        """Return the attributes; an error if there is none."""
        lines = self.notes.lines()
        if not self.attributes:
            what = "there is no attribute left: all columns but the class look like identifiers"
            if self.notes.dates_without_parts:
                what = "there is no attribute left: identifiers, and dates that do not vary"
            raise BncliError(
                what, where=where, hint="; ".join((*self.notes.doubts[:1], "--categorical NAME keeps one"))
            )
        for line in lines:
            watch(line)
        return self.attributes


def numbers_with_words(
    column: ColumnBuilder, tokens: MissingTokens, source: Source, delimiter: str
) -> RecognizedFormat | None:
    """Return the form of a column of numbers in which a few words stand, such as "k.A." or "<5"; None if it is none.

    Conventions: at most three different words, in at most 10 % of the rows with a value; more than two different
    numbers, which are no codes with leading zeros. A number or a date written in another way than the rest is no word.
    """
    start = distinct_levels(column.texts().slice(0, _RECOGNITION_N_TRIED), tokens.number)
    if not any(int((~fits).sum()) <= MOST_WORDS for fits in _numbers_among(start, source)):
        return None  # most columns of text end here
    texts, counts = column.count(tokens.number)
    for fits in _numbers_among(texts, source):
        n_words = int((~fits).sum())
        if not 0 < n_words <= MOST_WORDS or counts[fits].sum() < _LEAST_SHARE * counts.sum():
            continue
        words, numbers = texts.filter(pa.array(~fits)), texts.filter(pa.array(fits))
        if not _are_words(words) or (has_leading_zeros(numbers) and look_like_codes(numbers, counts[fits])):
            return None
        is_plain = to_numbers(numbers, ())[1] is None and source.decimal != ","
        found = RecognizedFormat(NumberForm("."), "") if is_plain else _numbers(numbers, source.decimal, delimiter)
        if found is None or not more_than_two([read_distinct(found.form, numbers, ())[0]]):
            continue
        assert isinstance(found.form, NumberForm)
        return found._replace(form=replace(found.form, words=tuple(sorted(words.to_pylist()))))
    return None


def _numbers_among(texts: pa.Array, source: Source) -> list[Mask]:
    """Return which texts are plain numbers, and which are numbers in a national form."""
    plain = [] if source.decimal == "," else [~np.isnan(to_numbers(texts, ())[0])]
    return [*plain, nearest_fit(texts)[-1][1]]


def _are_words(texts: pa.Array) -> bool:
    """Return whether none of the texts is a number or a date in any form, beside any sign."""
    if any(to_seconds(texts, order)[1].any() for order in DATE_ORDERS):
        return False
    return not any(nearest_fit(texts.slice(i, 1))[-1][1].any() for i in range(len(texts)))


def marks_among(levels: pa.Array) -> list[str]:
    """Return the values that usually mean a missing one; a hyphen beside a plus is a sign."""
    found: list[str] = levels.filter(pc.is_in(levels, value_set=_MARKS)).to_pylist()
    signs = bool(found) and pc.any(pc.is_in(levels, value_set=_PLUS_SIGNS)).as_py()
    return [mark for mark in found if not (signs and not mark.strip("-"))]


def plain_numbers(levels: pa.Array) -> bool:
    """Return whether the values would make a column of numbers."""
    numbers, wrong = to_numbers(levels, ())
    return wrong is None and more_than_two([numbers])


def near_miss(name: str, levels: pa.Array, *, text_file: bool, dates: str) -> SuspectedFormat | None:
    """Return what the values, different ones and none missing, nearly are; None if they are just text."""
    if len(levels) < _LEAST_NUMBER:
        return None
    for sample in (levels.slice(0, _NEAR_MISSES_N_TRIED), levels):
        fits = [("dates", to_seconds(sample, order)[1]) for order in DATE_ORDERS]
        fits += nearest_fit(sample) if text_file else []
        what, fitting = max(fits, key=lambda fit: int(fit[1].sum()))
        if fitting.mean() < (_LEAST_SHARE if sample is levels else 0.5) or fitting.sum() < _LEAST_NUMBER:
            return None
    others = levels.filter(pa.array(~fitting))
    if len(others):
        other = _shortened(others[0].as_py())
        note = f"column '{name}': {fitting.sum()} of {len(levels)} different values are {what}, but '{other}' is not"
        return SuspectedFormat(f"{what} but for a few values", f"{note}; --missing '+{other}' reads it as missing")
    return _whole_miss(name, what, levels.to_pylist(), dates)


def _whole_miss(name: str, what: str, texts: Sequence[str], dates: str) -> SuspectedFormat:
    """Return why a column all of whose values are dates, or numbers, was not taken for such."""
    if what != "dates":
        note = f"column '{name}': numbers in which ',' and '.' may each be the decimal mark; --decimal says which"
        return SuspectedFormat("numbers with contradictory marks", note)
    if dates == "off":
        return SuspectedFormat("dates (--dates off)")
    first = shape_of(texts[0])
    other = next((text for text in texts if shape_of(text) != first), texts[-1])
    note = f"column '{name}': dates in several forms, as '{texts[0]}' and '{other}'; --dates dmy or mdy reads them all"
    return SuspectedFormat("dates in several forms", note)


def meaning_of(
    name: str, texts: pa.Array, tokens: MissingTokens, source: Source, delimiter: str | None
) -> RecognizedFormat | None:
    """Return what the texts of a column, each of them once, are; None if they are just text.

    `delimiter` separates the fields of the file; None for a columnar file, whose text is no number.
    """
    first = distinct_levels(texts.slice(0, _RECOGNITION_N_TRIED), tokens.number)
    if len(first) <= 2 and len(texts) <= _RECOGNITION_N_TRIED:
        return None
    if not pc.all(pc.match_substring_regex(first, "[0-9]")).as_py():
        # no form of a number or a date goes without a digit, and most columns of text end here
        return None
    numbers = delimiter is not None and bool(fitting_forms(first, source.decimal))
    if not numbers and not _fitting_orders(first, source.dates):
        return None
    present = distinct_levels(texts, tokens.number)
    found = _numbers(present, source.decimal, delimiter) if numbers and delimiter is not None else None
    found = found or _dates(name, present, source.dates)
    if found is None or not more_than_two([read_distinct(found.form, present, ())[0]]):
        return None
    return found


def _fitting_orders(texts: pa.Array, asked: str) -> list[DateOrder]:
    if not len(texts) or asked == "off":
        return []
    return [order for order in _orders(texts, asked) if to_seconds(texts, order)[1].all()]


def _orders(texts: pa.Array, asked: str) -> tuple[DateOrder, ...]:
    """Return the orders that may be, the likelier first."""
    shape = shape_of(texts[0].as_py())
    if shape == "time":
        return ("time",)
    if asked != "auto":
        return ("dmy",) if asked == "dmy" else ("mdy",)
    if shape is None or not are_of_shape(texts, shape):
        return ()
    if shape == "two-digit year":
        return ("dmy", "mdy", "yymd")
    return ("dmy", "mdy") if shape == "three numbers" else ("ymd",)


def _numbers(texts: pa.Array, decimal: str | None, delimiter: str) -> RecognizedFormat | None:
    found = find_form(texts, decimal, delimiter)
    if found is None:
        return None
    form = found.form
    mark = {".": "point", ",": "comma"}[form.decimal]
    other = {".": ",", ",": "."}[form.decimal]
    words = f"a decimal {mark}" + (f" and the sign {form.affix}" if form.affix else "")
    return RecognizedFormat(form, words, f"--decimal {other}" if found.either else "")


def _dates(name: str, texts: pa.Array, asked: str) -> RecognizedFormat | None:
    orders = _fitting_orders(texts, asked)
    if not orders:
        return None
    if asked == "auto" and len(texts) < _FEWEST_SHORT_DATES and shape_of(texts[0].as_py()) == "two-digit year":
        return None
    instead = f"--dates {orders[1]}" if "mdy" in orders[1:] else ""
    return RecognizedFormat(DateForm(name, "days", orders[0]), _in_words(texts, orders[0]), instead)


def _in_words(texts: pa.Array, order: DateOrder) -> str:
    """Return how the dates are written: day.month.year and time."""
    if order == "time":
        return "times of the day"
    first = texts[0].as_py()
    shape = shape_of(first)
    mark = next((c for c in first if not c.isdigit()), "")
    clock = " and time" if pc.any(pc.match_substring(texts, ":")).as_py() else ""
    years = ", years 1970 to 2069" if shape == "two-digit year" else ""
    words = "with names of months" if "name" in str(shape) else mark.join(_PARTS_IN_ORDER[order])
    return f"{words}{clock}{years}"


def find_attributes(
    columns: Mapping[str, ColumnBuilder], keep: Mask, roles: ColumnRoles, table: Table, source: Source, watch: Watch
) -> dict[str, Column]:
    """Return the attributes by name, in the table's order; `keep` marks the rows that count."""
    finder = _Finder(keep, roles, table, source)
    for name in roles.attributes:
        finder.take(name, columns[name])
    finder.check_ignored(table.name)
    return finder.told(table.name, watch)


def find_one(
    name: str, column: ColumnBuilder, n_shown: int, n_rows: int, roles: ColumnRoles, table: Table, source: Source
) -> ColumnDecision:
    """As `find_attributes` for a single column, of which `n_shown` of about `n_rows` rows are at hand."""
    finder = _Finder(np.ones(n_shown, np.bool_), roles, table, source, n_rows)
    finder.take(name, column)
    notes = tuple(note.text for note in finder.notes.lines())
    return ColumnDecision(finder.attributes, finder.form, notes, tuple(finder.marks), finder.meant)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return ", ".join(names[:_N_NAMED]) + more


def _shortened(text: str) -> str:
    return text if len(text) <= _N_SHOWN else text[:_N_SHOWN] + "..."


def _few_integers(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if (values != np.floor(values)).any():
            return False
    elif values.dtype.itemsize <= 2 and len(values):
        shifted = values.astype(np.int64) - int(values.min())
        return bool(np.count_nonzero(np.bincount(shifted)) <= _MAX_CODES)
    return len(np.unique(values)) <= _MAX_CODES


def _nature(texts: pa.Array, counts: NDArray[np.int64]) -> str:
    """Return what a column of so many different values is: nearly each row its own, long texts, or just many names."""
    words = pc.count_substring(texts, " ").to_numpy(zero_copy_only=False)
    if words.mean() >= _WORDS_OF_TEXT - 1:
        return "free text"
    return "identifiers" if len(texts) >= _UNIQUE_SHARE * counts.sum() else "names of too many values"
