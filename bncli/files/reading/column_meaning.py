"""Decide what each column of a training table holds: numbers, dates, categories, or values that cannot be learned from.

Guesses are reported in notes, which list the columns by kind of guess.

- A text column is recognised as dates, or as numbers in a national form, if all of its values have one form. More than
  two distinct values are needed, as for plain numbers. Dates of three numbers with the year last are read with the day
  first if all values can be read in this way, otherwise with the month first. All dates of a column must have the same
  shape, except for the time of day and the zone, unless the user gives the order of day and month.
- Numbers with a few words among them ("k.A.", "<5") are read as numbers, and the words as missing values. This is done
  in columnar files too, where other strings that look like numbers stay text.
- Otherwise, a column in which nearly all values are numbers or dates stays text, and a note names some exceptions.
  "Nearly all" means at least 90 % of the values (of the distinct values, for dates and national forms), and at least
  20. A column with marks that usually mean a missing value ("-") also stays text, and a note lists the marks.
- A text column whose type the user does not give is left out if it has more than 20 distinct values, and if their
  number is more than half the number of rows.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import Column, NumericColumn
from bncli.engine.data.schema import DATE_ORDERS, DateForm, DateOrder, Form, NumberForm
from bncli.engine.kernels.arrays import Mask
from bncli.errors import BncliError
from bncli.files.reading.column_builder import MOSTLY, CodedTexts, ColumnBuilder, has_more_than_two
from bncli.files.reading.column_roles import ColumnRoles, missing_column, split_names
from bncli.files.reading.dates import are_of_shape, shape_of, to_seconds
from bncli.files.reading.numbers import (
    find_form,
    fits_by_form,
    fitting_forms,
    has_leading_zeros,
    look_like_codes,
    to_numbers,
)
from bncli.files.reading.single_values import FIRST_TWO_DIGIT_YEAR
from bncli.files.reading.source import MissingTokens, Source, ValueKind, list_names, shorten
from bncli.files.reading.table import Table
from bncli.files.reading.values import distinct_levels, expand_dates, parse_in_form
from bncli.watch import Note, Watch

MARKS = (*("n/a", "N/A", "#N/A", "NA", "<NA>", "NULL", "null", "(null)", "NaN", "nan", "nil"), *("-", "--", "---", "."))
"""Strings that usually mean a missing value; words such as "none" are not listed, since they may be values."""
MOST_WORDS = 3
"""The maximum number of distinct words among numbers that are taken to mean missing values."""
_MARKS, _PLUS_SIGNS = pa.array(MARKS), pa.array(["+", "++", "+++"])
_MIN_NEAR_MISSES = 20
_MOST_ADVISED = 5
"""The maximum number of exceptions for which a note lists one option each."""
_MIN_SHORT_DATES = 6
"""The minimum number of distinct dates with two-digit years; fewer may be other numbers with dots, such as versions."""
_MIN_IDENTIFIER_LEVELS = 20
_IDENTIFIER_SHARE = 0.9
_WORDS_OF_FREE_TEXT = 4
_MAX_CODES = 10
_SHORT_DATE_WITH_HYPHENS = "^(?P<first>[0-9]+)-[0-9]+-(?P<last>[0-9]+)"
_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_N_SAMPLED, _N_SAMPLED_INTEGERS = 64, 4096
_PARTS_IN_ORDER: dict[str, tuple[str, ...]] = {
    "dmy": ("day", "month", "year"),
    "mdy": ("month", "day", "year"),
    "ymd": ("year", "month", "day"),
    "yymd": ("year", "month", "day"),
}


class RecognizedFormat(NamedTuple):
    """The form of a column's values, its description, and the option that selects another form that fits, or ""."""

    form: Form
    description: str
    alternative: str = ""


class ColumnDecision(NamedTuple):
    """The decision on how learning uses one column.

    - attributes: the attributes made from it, keyed by name; empty if it is left out
    - form: the form in which its values are written, or None for plain values
    - notes: the notes about it
    - marks: its values that may mean missing
    - without_marks: what the column would be without these marks: "numbers", "dates", or "" for categories
    - advised: the strings that a note advises adding to the missing tokens
    """

    attributes: dict[str, Column]
    form: Form | None
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    without_marks: str
    advised: tuple[str, ...]


def find_attributes(
    columns: Mapping[str, ColumnBuilder], keep: Mask, roles: ColumnRoles, table: Table, source: Source, watch: Watch
) -> dict[str, Column]:
    """Return the attributes, keyed by name, in the order of the table, and report the guesses about them.

    keep: a mask of the usable rows. Raises BncliError if no attribute is left or if the files disagree about a type,
    and UsageError if an option names a part of a column that holds no dates.
    """
    interpreter = _ColumnInterpreter(keep, roles, table, source)
    for name in roles.attributes:
        interpreter.take(name, columns[name])
    # A part that the user ignores or declares numeric must come from a column of dates.
    date_columns = interpreter.date_columns | {*split_names(source.ignore, table.names)}
    for name in sorted((roles.ignored_parts | roles.numeric).difference(table.names)):
        if name.rpartition(".")[0] not in date_columns:
            raise missing_column(name, table.names, table.name)
    notes = interpreter.notes
    if not interpreter.attributes:
        what = "there are no attributes: all columns except the class look like identifiers"
        if notes.constant_dates:
            what = "there are no attributes: all columns except the class look like identifiers or constant dates"
        hint = "; ".join((*notes.near_misses[:1], "add --categorical NAME to keep one"))
        raise BncliError(what, where=table.name, hint=hint)
    for line in notes.lines():
        watch(Note(line))
    return interpreter.attributes


def decide_column(
    name: str, column: ColumnBuilder, n_present: int, n_rows: int, roles: ColumnRoles, table: Table, source: Source
) -> ColumnDecision:
    """Return how `find_attributes` would use one column.

    n_present: the number of rows in `column`. n_rows: the number of rows of the table that they represent.
    """
    interpreter = _ColumnInterpreter(np.ones(n_present, np.bool_), roles, table, source, n_rows)
    interpreter.take(name, column)
    return ColumnDecision(
        interpreter.attributes,
        interpreter.form,
        tuple(interpreter.notes.lines()),
        tuple(interpreter.marks),
        interpreter.without_marks,
        tuple(interpreter.advised),
    )


_lists: Callable[[], dict[str, list[str]]] = partial(defaultdict, list)


@dataclass
class _ColumnNotes:
    """The guesses to report: for each kind of guess, the columns concerned, some of them keyed by a description."""

    left_out: dict[str, list[str]] = field(default_factory=_lists)
    words: dict[str, list[str]] = field(default_factory=_lists)
    marks: dict[str, list[str]] = field(default_factory=_lists)
    without_marks: dict[str, list[str]] = field(default_factory=_lists)
    near_misses: list[str] = field(default_factory=list)
    """Whole sentences, one per column."""
    dates: dict[str, list[str]] = field(default_factory=_lists)
    taken_parts: list[str] = field(default_factory=list)
    constant_dates: list[str] = field(default_factory=list)
    numbers: dict[str, list[str]] = field(default_factory=_lists)
    codes: list[str] = field(default_factory=list)
    padded: list[str] = field(default_factory=list)
    """Columns read as numbers in which some numbers have leading zeros."""
    few_integers: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the notes, in a fixed order of their kinds."""
        lines = [
            f"left out as {why}: {list_names(names)} (add --categorical NAME to keep one)"
            for why, names in self.left_out.items()
        ]
        if self.words:
            listed = "; ".join(f"'{shorten(word)}' in {list_names(names)}" for word, names in self.words.items())
            lines.append(
                f"words in numeric columns were read as missing: {listed} (--categorical NAME keeps them as values)"
            )
        if self.marks:
            listed = " and ".join(f"'{mark}' in {list_names(names)}" for mark, names in self.marks.items())
            options = " ".join(f"--missing {shlex.quote('+' + mark)}" for mark in self.marks)
            them = "it" if len(self.marks) == 1 else "them"
            then = " and ".join(f"{list_names(names)} as {what}" for what, names in self.without_marks.items())
            then = f", and to read {then}" if then else ""
            lines.append(f"{listed} may mean missing; add {options} to treat {them} as missing{then}")
        lines += self.near_misses
        for what, names in self.dates.items():
            column, was = ("columns", "were") if len(names) > 1 else ("column", "was")
            lines.append(f"date {column} {list_names(names)} {was} expanded into {what}")
        if self.taken_parts:
            lines.append(
                f"parts of dates were left out because other columns have their names: {list_names(self.taken_parts)}"
            )
        if self.constant_dates:
            lines.append(f"left out as constant dates: {list_names(self.constant_dates)}")
        lines += [f"read as numbers with {what}: {list_names(names)}" for what, names in self.numbers.items()]
        if self.codes:
            lines.append(
                f"read as codes because of leading zeros: {list_names(self.codes)} (--numeric NAME reads "
                f"them as numbers)"
            )
        if self.padded:
            what = "read as numbers although some values have leading zeros"
            lines.append(f"{what}: {list_names(self.padded)} (if they are codes, add --categorical NAME)")
        if self.few_integers:
            what = f"read as numbers although at most {_MAX_CODES} different whole numbers occur"
            lines.append(f"{what}: {list_names(self.few_integers)} (if they are codes, add --categorical NAME)")
        return lines


class _ColumnInterpreter:
    """A collector of attributes and notes, which takes one column after another.

    keep: a mask of the usable rows. n_rows: the number of rows of the table, or None if it is the length of `keep`.
    """

    def __init__(self, keep: Mask, roles: ColumnRoles, table: Table, source: Source, n_rows: int | None = None) -> None:
        self.attributes: dict[str, Column] = {}
        self.notes = _ColumnNotes()
        self.date_columns: set[str] = set()
        self.form: Form | None = None
        """The form of the last column taken. The next three (see `ColumnDecision`) are set only by `_explain_text`."""
        self.marks: Sequence[str] = ()
        self.without_marks = ""
        self.advised: Sequence[str] = ()
        self._n_rows = len(keep) if n_rows is None else n_rows
        self._keep, self._roles, self._table, self._source = keep, roles, table, source
        self._tokens = MissingTokens.of(source.missing_tokens)

    def take(self, name: str, column: ColumnBuilder) -> None:
        form = self.form = column.request.form
        if isinstance(form, DateForm):
            self._add_dates(name, column.numeric().values, RecognizedFormat(form, "stored"))
        elif column.request.kind is not ValueKind.TEXT or form is not None:
            self._add_numbers(name, column.numeric().values, form)
        elif name in self._roles.categorical:
            self.attributes[name] = column.categorical()
        elif column.has_leading_zeros and column.non_numeric is None:
            texts, counts = column.count(self._tokens.number)
            is_number = has_more_than_two([to_numbers(texts, ())[0]])
            if is_number and not look_like_codes(texts, counts):
                self.notes.padded.append(name)
                self._add_numbers(name, column.numeric().values, None)
            else:
                self.notes.codes += [name] if is_number else []
                self._add_names(name, column, explain=False)
        else:
            self._take_text(name, column)

    def _take_text(self, name: str, column: ColumnBuilder) -> None:
        """Add a text column as dates, as numbers in a national form or with words, or as categories.

        Raises BncliError if it would be categories although the files of the table disagree about its type.
        """
        delimiter, texts = self._table.delimiter, column.texts()
        if len(texts) <= 2 and column.difference is None and all(map(_PLAIN_NUMBER.fullmatch, texts.to_pylist())):
            # One or two plain numbers are categories and nothing else; wide tables have very many such columns.
            self.attributes[name] = column.categorical()
            return
        recognized = recognize_format(name, texts, self._tokens, self._source, delimiter)
        if recognized is None:
            # In a columnar file, text that consists of numbers is meant as text (postal codes), but a column of
            # numbers with words could not be stored in another way.
            recognized = _recognize_numbers_with_words(column, self._tokens, self._source, delimiter or ",")
        if recognized is None:
            if column.difference is not None and not column.has_leading_zeros:
                raise column.difference
            self._add_names(name, column, explain=True)
            return
        form = self.form = recognized.form
        values = column.numeric(form).values
        if isinstance(form, DateForm):
            self._add_dates(name, values, recognized)
            return
        for word in form.words:
            self.notes.words[word].append(name)
        if recognized.description:
            other = recognized.alternative
            instead = f" ({other} swaps the two marks)" if other else ""
            self.notes.numbers[f"{recognized.description}{instead}"].append(name)
        self._add_numbers(name, values, form)

    def _add_numbers(self, name: str, values: NDArray[np.generic], form: Form | None) -> None:
        self.attributes[name] = NumericColumn(values, form)
        # A short sample decides most columns.
        samples = (values[:_N_SAMPLED_INTEGERS], values)
        if name not in self._roles.numeric and all(_are_few_integers(sample) for sample in samples):
            self.notes.few_integers.append(name)

    def _add_dates(self, name: str, seconds: NDArray[np.generic], recognized: RecognizedFormat) -> None:
        assert isinstance(recognized.form, DateForm)
        self.date_columns.add(name)
        parts = expand_dates(np.asarray(seconds, np.float64), recognized.form, self._keep)
        parts = {part: column for part, column in parts.items() if part not in self._roles.ignored_parts}
        self.notes.taken_parts += [part for part in parts if part in self._table.names]
        parts = {part: column for part, column in parts.items() if part not in self._table.names}
        self.attributes |= parts
        if not parts:
            self.notes.constant_dates.append(name)
            return
        instead = f"; {recognized.alternative} is possible too" if recognized.alternative else ""
        endings = ", ".join(part.removeprefix(name) for part in parts)
        self.notes.dates[f"{endings} (read as {recognized.description}{instead})"].append(name)

    def _add_names(self, name: str, column: ColumnBuilder, *, explain: bool) -> None:
        """Add a column of categories, or leave it out if it has too many distinct values (see the module docstring).

        explain: whether to add notes on what else the column might be.
        """
        levels = distinct_levels(column.texts(), self._tokens.text)
        reason = self._explain_text(name, column, levels) if explain else ""
        if len(levels) <= _MIN_IDENTIFIER_LEVELS or 2 * len(levels) <= self._n_rows:
            self.attributes[name] = column.categorical()
            return
        if not reason:
            texts, counts = column.count(self._tokens.text)
            blanks = pc.count_substring(texts, " ").to_numpy(zero_copy_only=False)
            if blanks.mean() >= _WORDS_OF_FREE_TEXT - 1:
                reason = "free text"
            elif len(texts) >= _IDENTIFIER_SHARE * counts.sum():
                reason = "identifiers"
            else:
                reason = "categories with too many values"
        self.notes.left_out[reason].append(name)

    def _explain_text(self, name: str, column: ColumnBuilder, levels: pa.Array) -> str:
        """Add notes on values that keep a text column from being numbers or dates, and return why it is left as text.

        The reason is, for example, "numbers except for a few values", and "" for categories.
        """
        marks = levels.filter(pc.is_in(levels, value_set=_MARKS)).to_pylist()
        if marks and pc.any(pc.is_in(levels, value_set=_PLUS_SIGNS)).as_py():
            marks = [mark for mark in marks if mark.strip("-")]  # beside a plus, a hyphen is a minus
        self.marks, self.without_marks, self.advised = marks, "", ()
        if marks:
            others = distinct_levels(levels, [*self._tokens.number, *marks])
            if self._table.delimiter is not None and are_plain_numbers(others):
                self.without_marks = "numbers"
            else:
                recognized = recognize_format(name, others, self._tokens, self._source, self._table.delimiter)
                if recognized is not None:
                    self.without_marks = "dates" if isinstance(recognized.form, DateForm) else "numbers"
            for mark in marks:
                self.notes.marks[mark].append(name)
            if self.without_marks:
                self.notes.without_marks[self.without_marks].append(name)
                return f"{self.without_marks} except for markers of missing values"
        note = _note_about_exception(name, column, self._tokens)
        if note:
            assert column.non_numeric is not None
            self.advised = [column.non_numeric.text]
            self.notes.near_misses.append(note)
            return "numbers except for a few values"
        present = distinct_levels(levels, self._tokens.number)
        is_text_file = self._table.delimiter is not None
        reason, note, self.advised = _near_miss(name, present, is_text_file=is_text_file, dates=self._source.dates)
        self.notes.near_misses += [note] if note else []
        return reason


def are_plain_numbers(levels: pa.Array) -> bool:
    """Return whether all of the values are plain numbers, and more than two of the numbers are distinct."""
    numbers, wrong = to_numbers(levels, ())
    return wrong is None and has_more_than_two([numbers])


def _are_few_integers(values: NDArray[Any]) -> bool:
    """Return whether the values are integers with at most _MAX_CODES distinct ones."""
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if (values != np.floor(values)).any():
            return False
    elif values.dtype.itemsize <= 2 and len(values):  # counting is faster than sorting
        shifted = values.astype(np.int64) - int(values.min())
        return bool(np.count_nonzero(np.bincount(shifted)) <= _MAX_CODES)
    return len(np.unique(values)) <= _MAX_CODES


def _note_about_exception(name: str, column: ColumnBuilder, tokens: MissingTokens) -> str:
    """Return a note if a text column consists of numbers except for a few values, otherwise "".

    A single `1.2x` among thousands of numbers is most often a typing error.
    """
    if column.non_numeric is None:
        return ""
    blocks = [block for block in column.blocks if isinstance(block, CodedTexts)]
    most_others = (1 - MOSTLY) * sum(len(block.codes) for block in blocks) + 1
    masks: dict[int, tuple[Mask, Mask]] = {}
    n_numbers = n_present = 0
    for block in blocks:
        key = id(block.texts)
        if key not in masks:
            numbers, wrong = to_numbers(block.texts, tokens.number)
            is_number = ~np.isnan(numbers)
            masks[key] = is_number, is_number if wrong is None else is_number | wrong
        is_number, is_present = masks[key]
        counts = np.bincount(block.codes, minlength=len(block.texts))
        n_numbers += int(counts[is_number].sum())
        n_present += int(counts[is_present].sum())
        if n_present - n_numbers > most_others:  # too few numbers, whatever follows
            break
    if n_numbers < max(_MIN_NEAR_MISSES, MOSTLY * n_present):
        return ""
    text = shorten(column.non_numeric.text)
    place = f" ({column.non_numeric.where})" if column.non_numeric.where else ""
    what = f"column '{name}': {n_numbers} of {n_present} values are numbers, but '{text}'{place} is not"
    missing = f"add --missing {shlex.quote(f'+{text}')} to treat '{text}' as missing"
    return f"{what}; {missing}, or --numeric {shlex.quote(name)} to read all values as numbers"


def _near_miss(name: str, levels: pa.Array, *, is_text_file: bool, dates: str) -> tuple[str, str, list[str]]:
    """Explain why a column of nearly all numbers or dates is text: return the reason, a note, and the advised tokens.

    The reason is, for example, "dates except for a few values". The note advises adding the tokens to the missing
    tokens. All three are empty for categories; in other cases the note or the tokens may be empty. dates: as in
    `Source`.
    """
    if len(levels) < _MIN_NEAR_MISSES:
        return "", "", []
    for sample in (levels.slice(0, _N_SAMPLED), levels):
        fits = [("dates", to_seconds(sample, order)[1]) for order in DATE_ORDERS]
        fits += fits_by_form(sample) if is_text_file else []
        what, fitting = max(fits, key=lambda fit: int(fit[1].sum()))
        if fitting.mean() < (MOSTLY if sample is levels else 0.5) or fitting.sum() < _MIN_NEAR_MISSES:
            return "", "", []
    others = levels.filter(pa.array(~fitting))
    if len(others):
        counted = f"column '{name}': {fitting.sum()} of {len(levels)} different values are {what}, but"
        reason = f"{what} except for a few values"
        if len(others) > _MOST_ADVISED:
            text = shorten(others[0].as_py())
            return (
                reason,
                f"{counted} {len(others)} are not, such as '{text}'; add --missing +TOKEN to treat one as missing",
                [],
            )
        advised = others.to_pylist()
        are, them = ("are", "them") if len(advised) > 1 else ("is", "it")
        options = " ".join(f"--missing {shlex.quote(f'+{other}')}" for other in advised)
        listed = list_names([f"'{shorten(other)}'" for other in advised])
        return reason, f"{counted} {listed} {are} not; add {options} to treat {them} as missing", advised
    # All values are dates, or all are numbers, but they do not agree on one form.
    if what != "dates":
        note = f"column '{name}': both ',' and '.' could be the decimal mark of its numbers; set it with --decimal"
        return "numbers with contradictory decimal marks", note, []
    if dates == "off":
        return "dates (--dates off)", "", []
    texts = levels.to_pylist()
    shape = shape_of(texts[0])
    other = next((text for text in texts if shape_of(text) != shape), texts[-1])
    note = (
        f"column '{name}': dates in several formats, such as '{texts[0]}' and '{other}'; add --dates dmy or mdy to "
        "read them all"
    )
    return "dates in several formats", note, []


def _recognize_numbers_with_words(
    column: ColumnBuilder, tokens: MissingTokens, source: Source, delimiter: str
) -> RecognizedFormat | None:
    """Return the form of a column of numbers that contains a few words, such as "k.A." or "<5", or None.

    Conventions: at most three distinct words, in at most 10 % of the rows with a value; more than two distinct numbers,
    which are not codes with leading zeros. A number or a date whose form differs from the others is not a word.
    """
    if len(column.texts()) <= 3:
        return None  # three distinct numbers and a word are four texts
    sample = distinct_levels(column.texts().slice(0, _N_SAMPLED), tokens.number)
    has_digit = pc.match_substring_regex(sample, "[0-9]").to_numpy(zero_copy_only=False)
    has_word = pc.match_substring_regex(sample, "[A-Za-z]{4}").to_numpy(zero_copy_only=False)  # longer than a currency
    if (~has_digit | has_word).sum() > MOST_WORDS:
        return None  # most columns of text end here, or with the next test
    if not any(int((~fits).sum()) <= MOST_WORDS for fits in _number_masks(sample, source)):
        return None
    texts, counts = column.count(tokens.number)
    for fits in _number_masks(texts, source):
        n_words = int((~fits).sum())
        if not 0 < n_words <= MOST_WORDS or counts[fits].sum() < MOSTLY * counts.sum():
            continue
        words, numbers = texts.filter(pa.array(~fits)), texts.filter(pa.array(fits))
        if any(to_seconds(words, order)[1].any() for order in DATE_ORDERS):
            return None
        # One by one, since the first currency or percent sign in a column counts for all of its values.
        if any(fits_by_form(words.slice(i, 1))[-1][1].any() for i in range(n_words)):
            return None
        if has_leading_zeros(numbers) and look_like_codes(numbers, counts[fits]):
            return None
        is_plain = to_numbers(numbers, ())[1] is None and source.decimal != ","
        recognized = (
            RecognizedFormat(NumberForm("."), "")
            if is_plain
            else _recognize_numbers(numbers, source.decimal, delimiter)
        )
        if recognized is None or not has_more_than_two([parse_in_form(recognized.form, numbers, ())[0]]):
            continue
        assert isinstance(recognized.form, NumberForm)
        return recognized._replace(form=replace(recognized.form, words=tuple(sorted(words.to_pylist()))))
    return None


def _number_masks(texts: pa.Array, source: Source) -> list[Mask]:
    """Return two masks: of the plain numbers, and of the numbers in a national form (such as 1.234,5).

    If the user gave the comma as decimal mark, return only the second mask.
    """
    plain = [] if source.decimal == "," else [~np.isnan(to_numbers(texts, ())[0])]
    return [*plain, fits_by_form(texts)[-1][1]]


def recognize_format(
    name: str, texts: pa.Array, tokens: MissingTokens, source: Source, delimiter: str | None
) -> RecognizedFormat | None:
    """Return the national form of numbers, or the form of dates, that all strings have, or None if there is none.

    Missing tokens are ignored; there must be more than two distinct values. texts: distinct strings. delimiter:
    separates the fields of the file; None for a columnar file, in which strings are not read as numbers.
    """
    sample = distinct_levels(texts.slice(0, _N_SAMPLED), tokens.number)
    if len(sample) <= 2 and len(texts) <= _N_SAMPLED:
        return None
    if not pc.all(pc.match_substring_regex(sample, "[0-9]")).as_py():
        # Numbers and dates have digits in every form, and most columns of text end here.
        return None
    may_be_numbers = delimiter is not None and bool(fitting_forms(sample, source.decimal))
    if not may_be_numbers and not fitting_orders(sample, source.dates):
        return None
    present = distinct_levels(texts, tokens.number)
    recognized = None
    if may_be_numbers and delimiter is not None:
        recognized = _recognize_numbers(present, source.decimal, delimiter)
    recognized = recognized or _recognize_dates(name, present, source.dates)
    if recognized is None or not has_more_than_two([parse_in_form(recognized.form, present, ())[0]]):
        return None
    return recognized


def _recognize_numbers(texts: pa.Array, decimal: str | None, delimiter: str) -> RecognizedFormat | None:
    found = find_form(texts, decimal, delimiter)
    if found is None:
        return None
    form, is_ambiguous = found
    mark, other = {".": ("point", ","), ",": ("comma", ".")}[form.decimal]
    description = f"a decimal {mark}" + (f" and the sign {form.affix}" if form.affix else "")
    return RecognizedFormat(form, description, f"--decimal {other}" if is_ambiguous else "")


def _recognize_dates(name: str, texts: pa.Array, dates: str) -> RecognizedFormat | None:
    orders = fitting_orders(texts, dates)
    if not orders:
        return None
    first = texts[0].as_py()
    shape = shape_of(first)
    if dates == "auto" and len(texts) < _MIN_SHORT_DATES and shape == "two-digit year":
        return None
    order = orders[0]
    if order == "time":
        description = "times of day"
    else:
        mark = next((c for c in first if not c.isdigit()), "")
        description = "with names of months" if "name" in str(shape) else mark.join(_PARTS_IN_ORDER[order])
        description += " and time" if pc.any(pc.match_substring(texts, ":")).as_py() else ""
        if shape == "two-digit year":
            description += f", years {FIRST_TWO_DIGIT_YEAR} to {FIRST_TWO_DIGIT_YEAR + 99}"
    others = [other for other in orders[1:] if other == ("dmy" if order == "yymd" else "mdy")]
    alternative = f"--dates {others[0]}" if others else ""
    return RecognizedFormat(DateForm(name, "days", order), description, alternative)


def fitting_orders(texts: pa.Array, dates: str) -> list[DateOrder]:
    """Return the orders with which all strings are dates, or times for the order `time`, the most likely order first.

    dates: as in `Source`.
    """
    if not len(texts) or dates == "off":
        return []
    shape = shape_of(texts[0].as_py())
    orders: tuple[DateOrder, ...]
    if shape == "time":
        orders = ("time",)
    elif dates != "auto":
        orders = ("dmy",) if dates == "dmy" else ("mdy",)
    elif shape is None or not are_of_shape(texts, shape):
        return []
    elif shape == "two-digit year":
        orders = ("dmy", "mdy", "yymd")
    else:
        orders = ("dmy", "mdy") if shape == "three numbers" else ("ymd",)
    fitting = [order for order in orders if to_seconds(texts, order)[1].all()]
    if "yymd" in fitting[1:] and pc.all(pc.match_substring_regex(texts, _SHORT_DATE_WITH_HYPHENS)).as_py():
        # Dates such as 21-02-27 begin with the year if the first place has fewer distinct numbers than the last.
        parts = pc.extract_regex(texts, _SHORT_DATE_WITH_HYPHENS)
        first, last = (pc.count_distinct(pc.struct_field(parts, i)).as_py() for i in range(2))
        if first < last:
            fitting = ["yymd", *(order for order in fitting if order != "yymd")]
    return fitting
