"""Errors that the user can fix; each says what happened, where, and what to do about it.

The command line prints an error as one line, `Error: what, where; hint`, and exits with the exit code of its class.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any


class BncliError(Exception):
    """The data are unsuitable, or the computation failed (exit code 1); the base class of the other errors."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        self.where = where
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can be sent to another process."""
        return partial(type(self), self.what, where=self.where, hint=self.hint), ()

    def __str__(self) -> str:
        place = f", {self.where}" if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return printable(f"{self.what}{place}{advice}")


class UsageError(BncliError):
    """The options or arguments are invalid, or cannot be combined (exit code 2)."""

    exit_code = 2


class ModelError(BncliError):
    """The model is unreadable, does not fit the data, or cannot do what was requested (exit code 3)."""

    exit_code = 3


class DriftError(BncliError):
    """The command succeeded, but at least one attribute has drifted since training (exit code 4)."""

    exit_code = 4


def alternatives(words: Iterable[str]) -> str:
    """Join one or more words into a choice: "a", "a or b", "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def printable(text: str) -> str:
    """Return a string without control characters that is short enough for a terminal.

    Names and values from a file must not break the line, control the terminal, reverse the writing direction, or fill
    the screen. Characters that could do so are replaced by `?`. A word of more than 300 characters keeps only its first
    60 and its last 20. If the string then has more than 4,000 characters, only its beginning and its end are kept.
    """
    text = _LONG_WORD.sub(lambda word: f"{word[0][:60]}...{word[0][-20:]}", text.translate(_CONTROLS))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 4 :]}"


_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Code points that set the writing direction, and the line and paragraph separators."""
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS, 0xFEFF], "?")
_LONG_WORD = re.compile(r"(?<!\S)\S{301,}")
_LONGEST = 4000
