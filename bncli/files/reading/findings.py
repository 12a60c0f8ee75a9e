"""What becomes of each column of a table to learn from, found over all rows: numbers, parts of dates, names, nothing.

A column that nobody has named is left out where more than half of its rows, and more than 20, have a value of their
own. All that is guessed is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import Column, NumericColumn
from bncli.engine.data.forms import DateForm, Form
from bncli.engine.kernels.arrays import Array, Mask
from bncli.errors import BncliError
from bncli.files.reading.forms import parts_of_dates, read_distinct
from bncli.files.reading.growing import Growing, more_than_two
from bncli.files.reading.near_misses import marks_among, near_miss, plain_numbers
from bncli.files.reading.non_numeric import doubts_about
from bncli.files.reading.notes import Notes
from bncli.files.reading.numerals import are_codes, to_numbers
from bncli.files.reading.reader import Table
from bncli.files.reading.recognition import Meaning, meaning_of
from bncli.files.reading.roles import Roles, missing_column
from bncli.files.reading.row_blocks import Kind
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.vocabulary import distinct_levels
from bncli.watch import Watch

_MIN_IDENTIFIER_LEVELS = 20
_UNIQUE_SHARE = 0.9
_WORDS_OF_TEXT = 4


def find_attributes(
    columns: Mapping[str, Growing], keep: Mask, roles: Roles, table: Table, source: Source, watch: Watch
) -> dict[str, Column]:
    """The attributes by name, in the table's order; `keep` marks the rows that count."""
    finder = _Finder(keep, roles, table, source)
    for name in roles.attributes:
        finder.take(name, columns[name])
    finder.check_ignored(table.name)
    return finder.told(table.name, watch)


class Finding(NamedTuple):
    """What becomes of one column: the attributes (none: it is left out), the form it was found in, what is told.

    marks: its values that may mean missing ones; meant: what it is but for them, numbers or dates (empty: names).
    """

    attributes: dict[str, Column]
    form: Form | None
    notes: tuple[str, ...]
    marks: tuple[str, ...]
    meant: str


def find_one(
    name: str, column: Growing, n_shown: int, n_rows: int, roles: Roles, table: Table, source: Source
) -> Finding:
    """As `find_attributes` for a single column, of which `n_shown` of about `n_rows` rows are at hand."""
    finder = _Finder(np.ones(n_shown, np.bool_), roles, table, source, n_rows)
    finder.take(name, column)
    notes = tuple(note.text for note in finder.notes.lines())
    return Finding(finder.attributes, finder.form, notes, tuple(finder.marks), finder.meant)


class _Finder:
    """Takes column after column; `attributes` and `notes` are what has been found so far.

    n_rows: where not all rows are at hand, how many there are, by the number of different values at hand.
    """

    def __init__(self, keep: Mask, roles: Roles, table: Table, source: Source, n_rows: int | None = None) -> None:
        self.attributes: dict[str, Column] = {}
        self.notes = Notes()
        self.form: Form | None = None
        self.marks: Sequence[str] = ()
        self.meant = ""
        """Of the last column taken, as the two before."""
        self._n_rows = len(keep) if n_rows is None else n_rows
        self._dates: set[str] = set()
        self._keep, self._roles, self._table, self._source = keep, roles, table, source
        self._tokens = Tokens.of(source.missing_tokens)

    def take(self, name: str, column: Growing) -> None:
        form = self.form = column.want.form
        if isinstance(form, DateForm):
            self._take_dates(name, column.numeric().values, Meaning(form, "as stored"))
        elif column.want.kind is not Kind.TEXT or form is not None:
            self._take_numbers(name, column.numeric().values, form)
        elif name in self._roles.categorical:
            self.attributes[name] = column.categorical()
        else:
            self._take_text(name, column)

    def _take_numbers(self, name: str, values: NDArray[np.generic], form: Form | None) -> None:
        self.attributes[name] = NumericColumn(values, form)
        if name not in self._roles.numeric:
            self.notes.look_for_codes(name, values)

    def _take_text(self, name: str, column: Growing) -> None:
        """Dates, numbers in a national form, names, or nothing that can be learnt from."""
        if column.leading_zeros and column.non_numeric is None:
            self._take_codes(name, column)
            return
        meaning = meaning_of(name, column.texts(), self._tokens, self._source, self._table.delimiter)
        if meaning is None:
            self._take_names(name, column)
            return
        form = self.form = meaning.form

        def read(texts: pa.Array) -> Array:
            return read_distinct(form, texts, self._tokens.number)[0]

        values = column.numeric(read).values
        if isinstance(form, DateForm):
            self._take_dates(name, values, meaning)
        else:
            self.notes.number(name, meaning)
            self._take_numbers(name, values, form)

    def _take_codes(self, name: str, column: Growing) -> None:
        """Numbers with leading zeros: codes or, if they do not look so, numbers after all."""
        texts, counts = column.count(self._tokens.number)
        is_number = more_than_two([to_numbers(texts, ())[0]])
        if not is_number or are_codes(texts, counts):
            self.notes.codes += [name] if is_number else []
            self._keep_names(name, column, "")
        else:
            self.notes.padded.append(name)
            self._take_numbers(name, column.numeric().values, None)

    def _take_names(self, name: str, column: Growing) -> None:
        if column.difference is not None and not column.leading_zeros:
            raise column.difference
        levels = distinct_levels(column.texts(), self._tokens.text)
        self._keep_names(name, column, self._doubt(name, column, levels))

    def _keep_names(self, name: str, column: Growing, why: str) -> None:
        """Names, unless most rows have their own; `why` says why that may be so, if anything is known."""
        levels = distinct_levels(column.texts(), self._tokens.text)
        if len(levels) > _MIN_IDENTIFIER_LEVELS and 2 * len(levels) > self._n_rows:
            self.notes.leave_out(name, why or _nature(*column.count(self._tokens.text)))
        else:
            self.attributes[name] = column.categorical()

    def _doubt(self, name: str, column: Growing, levels: pa.Array) -> str:
        """What the column might have been meant to be, which is noted; empty if it is just names."""
        self.marks = marks = marks_among(levels)
        if marks:
            rest = distinct_levels(levels, [*self._tokens.number, *marks])
            self.meant = meant = self._meant(name, rest)
            self.notes.mark(name, marks, meant)
            if meant:
                return f"{meant} but for marks of missing values"
        doubts = doubts_about(name, column.non_numeric, column.blocks, self._tokens)
        self.notes.doubts += doubts
        if doubts:
            return "numbers but for a few values"
        present = distinct_levels(levels, self._tokens.number)
        miss = near_miss(name, present, text_file=self._table.delimiter is not None, dates=self._source.dates)
        self.notes.doubts += [miss.note] if miss and miss.note else []
        return miss.why if miss else ""

    def _meant(self, name: str, rest: pa.Array) -> str:
        """What the values besides marks of missing ones are."""
        delimiter = self._table.delimiter
        if delimiter is not None and plain_numbers(rest):
            return "numbers"
        meaning = meaning_of(name, rest, self._tokens, self._source, delimiter)
        return "" if meaning is None else "dates" if isinstance(meaning.form, DateForm) else "numbers"

    def _take_dates(self, name: str, seconds: NDArray[np.generic], meaning: Meaning) -> None:
        assert isinstance(meaning.form, DateForm)
        found = parts_of_dates(np.asarray(seconds, np.float64), meaning.form, self._keep)
        self._dates.add(name)
        wanted = {part: c for part, c in found.items() if part not in self._roles.ignored_parts}
        taken = [part for part in wanted if part in self._table.names]
        self.attributes |= {part: c for part, c in wanted.items() if part not in taken}
        self.notes.date(name, meaning, [part for part in wanted if part not in taken], taken)

    def check_ignored(self, where: str) -> None:
        """An error for a part of dates that is to be ignored, or is said to be numeric, in a column without dates."""
        said = self._roles.ignored_parts | self._roles.numeric
        for name in sorted(said.difference(self._table.names)):
            if name.rpartition(".")[0] not in self._dates | set(self._source.ignore):
                raise missing_column(name, self._table.names, where)

    def told(self, where: str, watch: Watch) -> dict[str, Column]:
        """The attributes; an error if there is none."""
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


def _nature(texts: pa.Array, counts: NDArray[np.int64]) -> str:
    """What a column of so many different values is: nearly each row its own, long texts, or just many names."""
    words = pc.count_substring(texts, " ").to_numpy(zero_copy_only=False)
    if words.mean() >= _WORDS_OF_TEXT - 1:
        return "free text"
    return "identifiers" if len(texts) >= _UNIQUE_SHARE * counts.sum() else "names of too many values"
