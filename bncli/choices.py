"""What the catalogue is written in: commands, methods, the options that choose among methods, and other options."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A word after `bncli`; its module is `bncli.cli.<word>`, hyphens as underscores."""

    word: str
    summary: str


class Method(NamedTuple):
    """A word after a choosing option, its module (empty: one function does all the words), and the options it takes."""

    word: str
    summary: str
    module: str
    options: tuple[str, ...] = ()


class Choice(NamedTuple):
    """An option that chooses among methods, the word it stands for when it is not typed, and the methods."""

    flag: str
    default: str
    methods: tuple[Method, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(method.word for method in self.methods)

    def method(self, word: str) -> Method | None:
        """The method called `word`, if there is one."""
        return next((method for method in self.methods if method.word == word), None)

    def options_of(self, word: str) -> tuple[str, ...]:
        """The options that `word` takes; none if it is no method's, as a file."""
        return next((method.options for method in self.methods if method.word == word), ())

    @property
    def governed(self) -> frozenset[str]:
        """The options that belong to this choice: those that any of its methods takes."""
        return frozenset(flag for method in self.methods for flag in method.options)


class Option(NamedTuple):
    """A learning option that is not a choice of method: what its value may be, the default in words, what it does."""

    flag: str
    value: str
    default: str
    summary: str
