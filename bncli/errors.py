"""Every way in which a run can fail for a reason the user can mend: what, where, and what to do.

An error is printed as one line, `Error: what, where; hint`, and ends the command with its kind's exit code.
"""

import re
from functools import partial
from typing import Any


class BncliError(Exception):
    """The data or the run failed (exit code 1)."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        self.where = where
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """As it comes out of another process."""
        return partial(type(self), self.what, where=self.where, hint=self.hint), ()

    def __str__(self) -> str:
        place = f", {self.where}" if self.where else ""
        advice = f"; {self.hint}" if self.hint else ""
        return printable(f"{self.what}{place}{advice}")


def printable(text: str) -> str:
    """Return the text with `?` for control characters, and what is too long to be read cut in its middle.

    Names and values out of a file must neither break the line nor steer the terminal, nor turn about what follows, as
    marks of the direction of writing do, nor fill it: a word keeps its
    first and last letters if it is longer than any path should be, and so does the whole.
    """
    text = _LONG_WORD.sub(lambda word: f"{word[0][:60]}...{word[0][-20:]}", text.translate(_CONTROLS))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 4 :]}"


_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Marks of the direction of writing, and the separators of lines and paragraphs."""
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS, 0xFEFF], "?")
_LONG_WORD = re.compile(r"(?<!\S)\S{301,}")
_LONGEST = 4000


class UsageError(BncliError):
    """The command line asks for something that does not exist or does not fit together (exit code 2)."""

    exit_code = 2


class ModelError(BncliError):
    """The model file is unreadable, or the data does not fit the model (exit code 3)."""

    exit_code = 3


class DriftError(BncliError):
    """All was done as asked, and the rows are no longer like those that the model was learnt from (exit code 4)."""

    exit_code = 4
