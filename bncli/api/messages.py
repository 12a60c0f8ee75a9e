"""Errors as a user of Python reads them: keywords in the place of flags.

    --categorical NAME keeps one      ->  categorical=NAME keeps one
    --k has no effect with --structure nb  ->  k= has no effect with structure='nb'

Conventions: a value behind a flag goes along where it is one that the option takes, a number, a name in capitals or in
quotes. A hint that needs a flag which has no keyword is left out.

`progress=`: a function that hears every event, or True for a bar, in a terminal or in a notebook.

Conventions: notes are warnings of Python, with a bar as without one. A bar is gone when the work is done; it is drawn
where the standard error is a terminal, and in notebooks, by what IPython displays (no widgets are needed).
"""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from bncli.cli.console import Console
from bncli.errors import BncliError, UsageError
from bncli.watch import Event, Note, Run, Watch, silent

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
    "use",
    "positive",
    "drop_incomplete",
)
"""What can be said of the columns and rows of a table, besides the options of learning."""
FILES = ("format", "delimiter", "encoding", "names")
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
Told = Callable[[Event], None] | bool | None
"""What `progress=` takes."""
_PAUSE = 0.1
"""Seconds between two pictures of a bar in a notebook."""


class NotebookBars:
    """A bar of HTML that is drawn anew in its place, at most ten times a second."""

    def __init__(self, html: Callable[[str], Any], display: Callable[..., Any]) -> None:
        self._html = html
        self._shown = display(html(""), display_id=True)
        self._name, self._drawn = "starting", -_PAUSE

    def stage(self, name: str) -> None:
        """Show another stage from now on."""
        self._name = name
        self._draw("<progress></progress>", "")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """So much of the stage is done; without a total the bar only moves."""
        if time.monotonic() >= self._drawn + _PAUSE:
            reached = "" if total is None else f' value="{done:g}" max="{total:g}"'
            self._draw(f"<progress{reached}></progress>", detail)

    def _draw(self, bar: str, detail: str) -> None:
        self._drawn = time.monotonic()
        self._shown.update(self._html(f"{bar} {escape(self._name)} {escape(detail[:200])}"))

    def print(self, text: str) -> None:
        """Print a line in place of the bar."""
        self._draw("", text)

    def close(self) -> None:
        """Take the bar away."""
        self._shown.update(self._html(""))


@contextmanager
def in_python() -> Iterator[None]:
    """Yield errors that leave it speak of keywords."""
    try:
        yield
    except BncliError as error:
        raise reworded(error) from error.__cause__


def reworded(error: BncliError) -> BncliError:
    """Return the same error, of the same kind."""
    hint = in_keywords(error.hint)
    hint = "" if _FLAG.search(hint) else hint
    return type(error)(in_keywords(error.what), where=in_keywords(error.where), hint=hint)


def in_keywords(text: str) -> str:
    """Return the text, its flags as keywords; one that has no keyword stays."""
    from bncli.cli.presets import typed_options

    if "--" not in text:
        return text
    keywords = {key.rstrip("_").replace("_", "-"): key for key in (*typed_options(), *COLUMNS, *FILES, *_OTHERS)}
    text = re.sub(r"(?<=^Invalid value for )'(--[a-z-]+)'", r"\1", text)
    return _FLAG.sub(lambda match: _keyword(match, keywords), text)


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
    """Return whether the option takes the word."""
    from bncli.catalogue import LEARNING
    from bncli.catalogue.choices import Choice
    from bncli.cli.options import words_of_data

    entry = next((one for one in LEARNING if one.flag == f"--{flag}"), None)
    if entry is None:
        return word in words_of_data().get(flag.replace("-", "_"), ())
    if isinstance(entry, Choice):
        return word.partition(":")[0] in entry.words
    return word in getattr(entry.kind, "words", ())


def run_of(threads: int, watch: Watch = silent) -> Run:
    """Return how a computation is carried out; UsageError for a number of threads that cannot be."""
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise UsageError(f"threads is {threads!r}, and should be a whole number of at least 1")
    return Run(int(threads), watch=watch)


@contextmanager
def watching(progress: Told) -> Iterator[Watch]:
    """Yield the watch that `progress` means; a bar lasts as long as it does."""
    if progress is True:
        with Console(bars=_notebook_bars()) as console:
            yield lambda event: _warn(event) if isinstance(event, Note) else console.watch(event)
    elif callable(progress):
        yield progress
    elif not progress:
        yield _warn
    else:
        what = f"progress is a {type(progress).__name__}, and should be True or a function that takes an event"
        raise UsageError(what, hint="leave it out for warnings alone")


def _notebook_bars() -> NotebookBars | None:
    """Return those of the notebook that this runs in; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    return NotebookBars(HTML, display)


def _warn(event: Event) -> None:
    if isinstance(event, Note):
        warnings.warn(in_keywords(event.text), UserWarning, stacklevel=2)
