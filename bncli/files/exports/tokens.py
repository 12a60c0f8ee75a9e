"""The words of a text, one after the other, each with its place: what the readers of network files stand on.

A grammar is a regular expression whose named groups are the kinds of tokens; the group `skip` is passed over. The
text is cut lazily, so that a reader may also take a stretch of it raw.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from bncli.errors import BncliError

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A finite decimal number, as files of networks hold them."""


class Token(NamedTuple):
    """`kind` is the name of a group of the grammar, or "end"; `at` the offset of its first character."""

    kind: str
    text: str
    at: int


class Tokens:
    """A cursor over the tokens of `text`; every error names `where`, the line and the column."""

    def __init__(self, text: str, where: str, grammar: re.Pattern[str]) -> None:
        self._text = text.removeprefix("\ufeff")
        self._where = where
        self._grammar = grammar
        self._next = self._scan(0)

    @property
    def next(self) -> Token:
        """The token at the cursor."""
        return self._next[0]

    def take(self) -> Token:
        """Return the token at the cursor, which moves on."""
        token, end = self._next
        self._next = self._scan(end)
        return token

    def take_if(self, *texts: str) -> bool:
        """Return whether one of these marks or keywords (never a quoted text) was at the cursor, and was taken."""
        found = self.at(*texts)
        if found:
            self.take()
        return found

    def at(self, *texts: str) -> bool:
        """Return whether one of these marks or keywords is at the cursor."""
        return self.next.kind != "quoted" and self.next.text in texts

    def expect(self, *texts: str) -> Token:
        """Take one of these marks or keywords; anything else is an error."""
        if not self.at(*texts):
            self.fail(f"expected {' or '.join(repr(text) for text in texts)}, found {describe(self.next)}")
        return self.take()

    def take_raw(self, pattern: re.Pattern[str]) -> str | None:
        """Return the stretch of text at the cursor that `pattern` matches, taken; None where it does not."""
        match = pattern.match(self._text, self.next.at)
        if match is None:
            return None
        self._next = self._scan(match.end())
        return match[0]

    def fail(self, what: str, *, at: int | None = None, hint: str = "") -> NoReturn:
        """Raise the error, at the cursor or at an offset."""
        raise BncliError(what, where=self.place(self.next.at if at is None else at), hint=hint)

    def place(self, at: int) -> str:
        """File, line and column of an offset."""
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return f"{self._where}, line {line}, column {column}"

    def _scan(self, start: int) -> tuple[Token, int]:
        """Return the first token from `start` on that is not skipped, and where it ends."""
        while start < len(self._text):
            match = self._grammar.match(self._text, start)
            if match is None:
                what = f"this does not belong here: '{self._text[start]}'"
                raise BncliError(what, where=self.place(start))
            kind = match.lastgroup or ""
            if kind != "skip":
                return Token(kind, match[kind], match.start()), match.end()
            start = match.end()
        return Token("end", "", len(self._text)), len(self._text)


def describe(token: Token) -> str:
    """Return what stands there, for an error."""
    if token.kind == "end":
        return "the end of the file"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"'{text}'"
