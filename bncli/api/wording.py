"""Errors as a user of Python reads them: keywords in the place of flags.

    --categorical NAME keeps one      ->  categorical=NAME keeps one
    --k has no effect with --structure nb  ->  k= has no effect with structure='nb'

Conventions: a value behind a flag goes along where it is one that the option takes, a number, a name in capitals or in
quotes. A hint that needs a flag which has no keyword is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from bncli.errors import BncliError

COLUMNS = (
    "class_",
    "ignore",
    "categorical",
    "numeric",
    "weights",
    "missing",
    "dates",
    "decimal",
    "schema",
    "drop_unlabelled",
    "on_bad_row",
)
"""What can be said of the columns and rows of a table, besides the options of learning."""
FILES = ("format", "delimiter", "encoding")
"""What can be said of a file that is a table."""
_OTHERS = (
    "unseen",
    "seed",
    "threads",
    "test",
    "folds",
    "repeats",
    "rows",
    "by",
    "reliability",
    "allow_missing_columns",
)
_FLAG = re.compile(r"""(?<![\w'"-])--([a-z][a-z0-9-]*)(?: ('[^']*'|[\w.+-]*[\w+]))?""")


@contextmanager
def in_python() -> Iterator[None]:
    """Errors that leave it speak of keywords."""
    try:
        yield
    except BncliError as error:
        raise reworded(error) from error.__cause__


def reworded(error: BncliError) -> BncliError:
    """The same error, of the same kind."""
    hint = in_keywords(error.hint)
    hint = "" if _FLAG.search(hint) else hint
    return type(error)(in_keywords(error.what), where=in_keywords(error.where), hint=hint)


def in_keywords(text: str) -> str:
    """The text, its flags as keywords; one that has no keyword stays."""
    from bncli.cli.learner_words import typed_options

    if "--" not in text:
        return text
    keywords = {_flag_of(key): key for key in (*typed_options(), *COLUMNS, *FILES, *_OTHERS)}
    text = re.sub(r"(?<=^Invalid value for )'(--[a-z-]+)'", r"\1", text)
    return _FLAG.sub(lambda match: _keyword(match, keywords), text)


def _flag_of(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _keyword(match: re.Match[str], keywords: dict[str, str]) -> str:
    flag, value = match[1], match[2]
    if flag not in keywords:
        return match[0]
    if value is None:
        return f"{keywords[flag]}="
    if re.fullmatch(r"'.*'|[A-Z_]+|[\d.]+", value):
        return f"{keywords[flag]}={value}"
    return f"{keywords[flag]}={value!r}" if _is_value(flag, value) else f"{keywords[flag]}= {value}"


def _is_value(flag: str, word: str) -> bool:
    """Whether the option takes the word."""
    from bncli.catalogue import LEARNING
    from bncli.choices import Choice
    from bncli.cli.options import words_of_data

    entry = next((one for one in LEARNING if one.flag == f"--{flag}"), None)
    if entry is None:
        return word in words_of_data().get(flag.replace("-", "_"), ())
    if isinstance(entry, Choice):
        return word.partition(":")[0] in entry.words
    return word in getattr(entry.kind, "words", ())
