"""Tokens of a text with their positions, for the parsers of network files.

A grammar is a regular expression whose named groups are the kinds of tokens; the group `skip` is skipped. The text is
scanned one token at a time, so that a parser can also take a stretch of raw text.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from bncli.errors import BncliError

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A finite decimal number, as network files write it."""


class Token(NamedTuple):
    """A token of a text: `kind` is a group name of the grammar, or "end"; `at` is the offset of its first character."""

    kind: str
    text: str
    at: int


class Tokens:
    """A cursor over the tokens of a text; `next` is the token at the cursor. Errors name `where`, line and column."""

    def __init__(self, text: str, where: str, grammar: re.Pattern[str]) -> None:
        self._text = text.removeprefix("\ufeff")
        self._where = where
        self._grammar = grammar
        self.next = Token("end", "", 0)
        self._end = 0
        self._scan(0)

    def _scan(self, start: int) -> None:
        """Move the cursor to the first token from `start` on that is not skipped."""
        while start < len(self._text):
            match = self._grammar.match(self._text, start)
            if match is None:
                self.fail(f"unexpected character: '{self._text[start]}'", at=start)
            kind = match.lastgroup or ""
            if kind != "skip":
                self.next, self._end = Token(kind, match[kind], match.start()), match.end()
                return
            start = match.end()
        self.next, self._end = Token("end", "", len(self._text)), len(self._text)

    def take(self) -> Token:
        """Return the token at the cursor and move on."""
        token = self.next
        self._scan(self._end)
        return token

    def at(self, *texts: str) -> bool:
        """Return whether one of these marks or keywords is at the cursor; a quoted text is neither."""
        return self.next.kind != "quoted" and self.next.text in texts

    def take_if(self, *texts: str) -> bool:
        """Take the token at the cursor if it is one of these marks or keywords; return whether it was."""
        is_next = self.at(*texts)
        if is_next:
            self.take()
        return is_next

    def expect(self, *texts: str) -> Token:
        """Take and return the token at the cursor; raise BncliError if it is not one of these marks or keywords."""
        if not self.at(*texts):
            self.fail(f"expected {' or '.join(repr(text) for text in texts)}, found {quoted_token(self.next)}")
        return self.take()

    def take_raw(self, pattern: re.Pattern[str]) -> str | None:
        """Take and return the text at the cursor that `pattern` matches, or return None if it does not match."""
        match = pattern.match(self._text, self.next.at)
        if match is None:
            return None
        self._scan(match.end())
        return match[0]

    def fail(self, what: str, *, at: int | None = None, hint: str = "") -> NoReturn:
        """Raise BncliError with the position of the cursor, or of the offset `at`."""
        at = self.next.at if at is None else at
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        raise BncliError(what, where=f"{self._where}, line {line}, column {column}", hint=hint)


def quoted_token(token: Token) -> str:
    """Return the token in quotes for an error message, at most 40 characters of it."""
    if token.kind == "end":
        return "the end of the file"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"'{text}'"
