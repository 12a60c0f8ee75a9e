"""What the catalogue is written in: methods, choices among methods, options.

Everything about an option is data here: what it may be (`bncli.catalogue.option_kinds`), its default, where the help
shows it.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from bncli.catalogue.option_kinds import Kind, Pairs

CUTTING, STRUCTURE, PARAMETER, DATA, DECISIONS = "Cut points", "Structure", "Parameters", "Data", "Decisions"
"""The groups of learning options."""


OPTIMIZATION = (
    "--init",
    "--penalty",
    "--penalty-center",
    "--arcs",
    "--early-stop",
    "--restarts",
    "--optimizer",
    "--tolerance",
    "--max-iterations",
    "--trace",
)
"""Options that say how an optimum is searched; a method that takes an optimizer gets them as one value."""


CATEGORIES = ("--group-levels",)
"""Options of every discretizer that say what becomes of the columns it does not cut."""

OF_SCHEMA = ("--increasing", "--decreasing", "--towards")
"""Options of methods that find what is said by them in the schema."""


class Method(NamedTuple):
    """A word after a choosing option.

    options: the flags that it takes; defaults: where one of them (or of a choice made beside it) has another default
    than usual; fixed: values that are recorded and cannot be typed. number: the number that may follow after a
    colon, if it is left out; "" where none may. has_module: whether it is a module of the choice's room; module: that
    module's name if it is not the word, because several methods share it.

    Of structures: `params` go with it, the default first (none: those of networks); `idle` are flags without effect and
    the reason. Of parameters: `networks` says whether they go with networks, `probabilities` whether they are the
    probabilities of one, so that what is missing can be marginalized, `incomplete` whether they are meant for that.
    `start` are flags that only make the generative start, so that they have no effect from zero; `joint` those that
    only concern families of several attributes.

    counted: whether contingency tables (of structures: those of pairs) are all that it asks for, so that counts do
    without the rows.

    Of structures as well: `alone` is the option, and its value, up to which every family has a single attribute ("":
    always, None: never); `needs` are flags that have an effect only where another one is above a value.
    """

    word: str
    summary: str
    options: tuple[str, ...] = ()
    number: str = ""
    defaults: Pairs = ()
    fixed: Pairs = ()
    has_module: bool = True
    module: str = ""
    params: tuple[str, ...] = ()
    idle: tuple[tuple[str, ...], str] = ((), "")
    networks: bool = True
    probabilities: bool = False
    incomplete: bool = False
    start: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    alone: tuple[str, int] | None = None
    needs: tuple[tuple[str, str, int], ...] = ()
    counted: bool = False

    @property
    def own_options(self) -> tuple[str, ...]:
        """Those that its function takes by name: no files, and nothing that comes with an optimizer as one value.

        Nor random starts, which come with their seed, nothing that concerns other columns than those that a
        discretizer cuts, and no directions, which the schema has.
        """
        shared = OPTIMIZATION if "--optimizer" in self.options else ("--trace", "--restarts")
        return tuple(flag for flag in self.options if flag not in (*shared, *CATEGORIES, *OF_SCHEMA))


class Choice(NamedTuple):
    """An option that chooses among methods: the word it stands for when it is not typed, and where the help shows it.

    room: the folder of the engine that has a module for each word; "" where one function does them all. everyday: as
    of an `Option`.
    """

    flag: str
    default: str
    methods: tuple[Method, ...]
    group: str
    metavar: str
    summary: str
    room: str = ""
    everyday: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(method.word for method in self.methods)

    def method(self, word: str) -> Method | None:
        """Return the method called `word`, if there is one."""
        return next((method for method in self.methods if method.word == word), None)

    def options_of(self, word: str) -> tuple[str, ...]:
        """Return the options that `word` takes; none if it is no method's, as a file."""
        method = self.method(word)
        return () if method is None else method.options

    def module_of(self, word: str) -> str:
        """Return the module of the method `word`; "" if it has none."""
        method = self.method(word)
        if method is None or not method.has_module or not self.room:
            return ""
        return f"bncli.engine.{self.room}.{method.module or word.replace('-', '_')}"

    def load(self, word: str, verb: str) -> Any:
        """Import the module of the method `word` and return its function `verb`.

        In a module that several methods share, the function is called `verb_word`.
        """
        method = self.method(word)
        assert method is not None, f"{self.flag} {word}"
        name = f"{verb}_{word.replace('-', '_')}" if method.module else verb
        return getattr(importlib.import_module(self.module_of(word)), name)

    @property
    def governed(self) -> frozenset[str]:
        """The options that belong to this choice: those that any of its methods takes."""
        return frozenset(flag for method in self.methods for flag in method.options)


class Option(NamedTuple):
    """A learning option that is not a choice of method.

    default: as it would be typed, "" for none; stands_for: the default in words, where it takes more to say.
    everyday: `--help` shows it, which leaves the others to `--help-all`. tacit: a recipe says nothing of the default,
    so that what was written before there was the option is still written so.
    """

    flag: str
    kind: Kind
    default: str
    group: str
    summary: str
    metavar: str = ""
    stands_for: str = ""
    everyday: bool = False
    tacit: bool = False

    @property
    def shown_default(self) -> str:
        """The default in words."""
        return self.stands_for or self.default


def key_of(flag: str) -> str:
    """Return the name of an option where hyphens cannot be written: `--max-order` is `max_order`."""
    return flag.removeprefix("--").replace("-", "_")


def flag_of(key: str) -> str:
    """Return the option of this name."""
    return f"--{key.replace('_', '-')}"
