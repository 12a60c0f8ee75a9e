"""The types of the catalogue: a method, a choice among methods, and an option of a method.

An entry holds everything about an option as data: its kind of values (`bncli.catalogue.option_kinds`), its default, and
its place in the help.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from bncli.catalogue.option_kinds import Kind

CUTTING, STRUCTURE, PARAMETER, DATA, DECISIONS = "Cut points", "Structure", "Parameters", "Data", "Decisions"
"""Headings under which the help shows the learning options."""

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
"""Options of numerical optimization; a parameter learner receives them together, as one settings object."""

LEVEL_GROUPING = ("--group-levels",)
"""Options about categorical columns, which every discretizer must list."""

DIRECTIONS = ("--increasing", "--decreasing", "--towards")
"""Options of monotonicity constraints; methods read their values from the schema."""


class Method(NamedTuple):
    """A method, chosen by a word after an option, such as `kdb` after `--structure`.

    All methods:
        word, summary: the name of the method, and its line in the help.
        options: flags of the options that the method takes.
        number: default of the number that may follow the word after a colon; "" if no number may follow.
        defaults: flags whose usual default this method replaces, with the replacement.
        fixed: flags whose value the method sets itself; this value is recorded, and no other may be given.
        has_module: whether the folder of the choice has a module for the method.
        module: the name of that module if several methods share it; "" if it is named after the method.

    Structures:
        params: parameters that can be learned for the structure, the default first; empty for networks, which accept
            every method with `networks`.
        without_effect: flags that have no effect with the structure, and the reason as the end of a sentence.
        single_attribute_limit: an option and the largest of its values for which every table has a single attribute;
            ("", 0) if every table always has one, None if no option determines it.
        requires: triples (flag, option, limit): the flag has an effect only if the option is above the limit.

    Parameters:
        networks: whether they can be learned for networks.
        probabilities: whether they are the probabilities of a network, so that missing values can be marginalized.
        for_missing_values: whether the method is intended for rows with missing values, which it marginalizes.
        start_options: options that only affect the generative starting point.
        joint_options: options that only affect tables of several attributes.

    Both:
        from_counts: whether contingency tables suffice (for structures: tables of pairs of attributes), so that a
            counts file can replace the rows.
    """

    word: str
    summary: str
    options: tuple[str, ...] = ()
    number: str = ""
    defaults: tuple[tuple[str, str], ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    has_module: bool = True
    module: str = ""
    params: tuple[str, ...] = ()
    without_effect: tuple[tuple[str, ...], str] = ((), "")
    networks: bool = True
    probabilities: bool = False
    for_missing_values: bool = False
    start_options: tuple[str, ...] = ()
    joint_options: tuple[str, ...] = ()
    single_attribute_limit: tuple[str, int] | None = None
    requires: tuple[tuple[str, str, int], ...] = ()
    from_counts: bool = False

    @property
    def keyword_options(self) -> tuple[str, ...]:
        """Options that the method's function takes as keyword arguments.

        These are all options of the method except:

        - those in OPTIMIZATION if the method has an optimizer, otherwise --trace and --restarts
        - those that the discretization and the schema handle for every method
        """
        shared = OPTIMIZATION if "--optimizer" in self.options else ("--trace", "--restarts")
        return tuple(flag for flag in self.options if flag not in (*shared, *LEVEL_GROUPING, *DIRECTIONS))


class Choice(NamedTuple):
    """An option that chooses a method.

    flag: the option. default: the name of the default method. group: the heading in the help. folder: the folder of
    `bncli.engine` with a module per method; "" if one function implements them all. everyday: whether `--help` shows
    the option; `--help-all` shows every option.
    """

    flag: str
    default: str
    methods: tuple[Method, ...]
    group: str
    metavar: str
    summary: str
    folder: str = ""
    everyday: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(method.word for method in self.methods)

    def method(self, word: str) -> Method | None:
        """Return the method called `word`, or None if there is none."""
        return next((method for method in self.methods if method.word == word), None)

    def options_of(self, word: str) -> tuple[str, ...]:
        """Return the options that the method `word` takes; a word that is not a method (a file) takes none."""
        method = self.method(word)
        return () if method is None else method.options

    def module_of(self, word: str) -> str:
        """Return the full name of the module of the method `word`, or "" if it has none."""
        method = self.method(word)
        if method is None or not method.has_module or not self.folder:
            return ""
        return f"bncli.engine.{self.folder}.{method.module or word.replace('-', '_')}"

    def load(self, word: str, verb: str) -> Any:
        """Import the module of the method `word` and return its function `verb`.

        In a module that several methods share, the function is called `verb_word`.
        """
        method = self.method(word)
        assert method is not None, f"{self.flag} {word}"
        name = f"{verb}_{word.replace('-', '_')}" if method.module else verb
        return getattr(importlib.import_module(self.module_of(word)), name)

    @property
    def method_options(self) -> frozenset[str]:
        """The options that at least one of the methods takes."""
        return frozenset(flag for method in self.methods for flag in method.options)


class Option(NamedTuple):
    """A learning option that does not choose a method.

    default: the default as given on the command line, "" if there is none. default_words: the default in words, if the
    help should say more than the value. everyday: whether `--help` shows the option. none_if_default: whether a recipe
    stores None instead of the default; this keeps the bytes of model files that were written before the option existed.
    """

    flag: str
    kind: Kind
    default: str
    group: str
    summary: str
    metavar: str = ""
    default_words: str = ""
    everyday: bool = False
    none_if_default: bool = False

    @property
    def default_text(self) -> str:
        """The default as the help shows it."""
        return self.default_words or self.default


def key_of(flag: str) -> str:
    """Return the key of a flag, a Python identifier: `--max-order` becomes `max_order`."""
    return flag.removeprefix("--").replace("-", "_")


def flag_of(key: str) -> str:
    """Return the flag of a key: `max_order` becomes `--max-order`."""
    return f"--{key.replace('_', '-')}"
