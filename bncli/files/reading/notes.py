"""What is said of the columns of a table to learn from: a note for each kind of guess, however many columns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.forms import DateForm
from bncli.files.reading.recognition import Meaning
from bncli.watch import Note

_MAX_CODES = 10
_N_TRIED = 4096
_N_NAMED = 20


class Notes:
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
        self._integers: list[str] = []

    def look_for_codes(self, name: str, values: NDArray[Any]) -> None:
        """Remembers a column of integers of at most 10 different values."""
        if all(_few_integers(sample) for sample in (values[:_N_TRIED], values)):
            self._integers.append(name)

    def mark(self, name: str, marks: Sequence[str], meant: str) -> None:
        """A column holds marks of missing values; without them it is `meant` (empty: names)."""
        for mark in marks:
            self._marks.setdefault(mark, []).append(name)
        if meant:
            self._spoilt.setdefault(meant, []).append(name)

    def leave_out(self, name: str, why: str) -> None:
        self._left_out.setdefault(why, []).append(name)

    def number(self, name: str, meaning: Meaning) -> None:
        instead = f"; {meaning.instead} reads the marks the other way" if meaning.instead else ""
        self._numbers.setdefault(f"({meaning.words}{instead})", []).append(name)

    def date(self, name: str, meaning: Meaning, parts: Sequence[str], taken: Sequence[str]) -> None:
        """A column of dates has become these parts; others have names that are taken by columns."""
        assert isinstance(meaning.form, DateForm)
        self._taken += taken
        if not parts:
            self.dates_without_parts.append(name)
            return
        instead = f"; the other way round fits too: {meaning.instead}" if meaning.instead else ""
        endings = ", ".join(part.removeprefix(name) for part in parts)
        self._dates.setdefault(f"({meaning.words}{instead}) becomes {endings}", []).append(name)

    def lines(self) -> list[Note]:
        """The notes, those of most columns first."""
        found = [f"dates: {_named(names)} {what}" for what, names in self._dates.items()]
        if self._taken:
            found.append(f"parts of dates whose names are taken by columns, so left out: {_named(self._taken)}")
        if self.dates_without_parts:
            found.append(f"left out as dates that do not vary: {_named(self.dates_without_parts)}")
        found += [f"numbers: {_named(names)} {what}" for what, names in self._numbers.items()]
        if self.codes:
            found.append(f"codes, not numbers, by their leading zeros: {_named(self.codes)} (else --numeric NAME)")
        if self.padded:
            what = "numbers, though some have leading zeros, for most are 0 or some not digits alone"
            found.append(f"{what}: {_named(self.padded)} (if they are codes: --categorical NAME)")
        for why, names in self._left_out.items():
            found.append(f"left out as {why}: {', '.join(names)} (--categorical NAME keeps one)")
        found += self._about_marks()
        if self._integers:
            text = f"integers of at most {_MAX_CODES} values taken as numbers: {', '.join(self._integers)}"
            found.append(f"{text} (if they are codes: --categorical NAME)")
        return [Note(line) for line in (*found, *self.doubts)]

    def _about_marks(self) -> list[str]:
        """One note for all columns, with the option that makes the marks missing."""
        if not self._marks:
            return []
        places = "; ".join(f"'{mark}' in {_named(names)}" for mark, names in self._marks.items())
        options = " ".join(f"--missing {shlex.quote('+' + mark)}" for mark in self._marks)
        then = "".join(f", and {_named(names)} {what}" for what, names in self._spoilt.items())
        return [f"values that may mean missing ones: {places} ({options} makes them missing{then})"]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
    return ", ".join(names[:_N_NAMED]) + more


def _few_integers(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
        if (values != np.floor(values)).any():
            return False
    elif values.dtype.itemsize <= 2 and len(values):
        shifted = values.astype(np.int64) - int(values.min())
        return bool(np.count_nonzero(np.bincount(shifted)) <= _MAX_CODES)
    return len(np.unique(values)) <= _MAX_CODES
