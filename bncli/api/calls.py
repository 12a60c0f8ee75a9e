"""Code that all calls from Python share: wording of errors, warnings and progress bars, one BLAS thread.

- In errors and notes, keyword arguments replace the flags of the command line:

      --categorical NAME keeps one           ->  categorical=NAME keeps one
      --k has no effect with --structure nb  ->  k= has no effect with structure='nb'

  A hint that needs a flag without a keyword is left out.
- Notes are issued as Python warnings. `progress=True` also draws a progress bar, on the standard error if that is a
  terminal, or in a notebook with what IPython displays (no widgets are needed). The bar disappears with the call.
- bncli has its own threads, which work on blocks of rows. Threads of the BLAS would compete with them and change the
  last bits of sums, so the BLAS gets one thread during a call, and its former number afterwards. The command line sets
  this before numpy is imported. Here the functions of the OpenBLAS in the wheels of numpy and scipy do it, or those
  that threadpoolctl finds if there are other libraries. With neither, probabilities may differ from those of the
  command line in the last digit.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from bncli.api.tables import COLUMN_OPTIONS, FILE_OPTIONS
from bncli.catalogue import LEARNING
from bncli.catalogue.choices import Choice, Option
from bncli.catalogue.option_kinds import Switch
from bncli.cli.console import Console
from bncli.cli.learning_options import typed_options
from bncli.cli.options import switches_about_tables, words_about_tables
from bncli.errors import BncliError, UsageError
from bncli.watch import Event, Note, Run, Watch, silent

ProgressOption = Callable[[Event], None] | bool | None
"""The values of `progress`: a function that receives every event, or True for a progress bar."""
_OTHER_OPTIONS = (
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
_FLAG = re.compile(r"""(?<![\w'"-])--([a-z][a-z0-9-]*)(?: ('[^']*'|[\w.,:+-]*[\w+]-?))?""")
_NO_VALUE = re.compile(
    "a|above|and|are|can|cannot|columns|gives|has|holds|is|keeps|leaves|makes|must|names|needs?|of|or|out|reads|takes"
    "|was|with|would"
)
"""A word after an option that takes any text, such as the name of a column, that is not its value."""
_OPENBLAS_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_REDRAW_SECONDS = 0.1


@contextmanager
def python_call(progress: ProgressOption = None) -> Iterator[Watch]:
    """Yield the watch that `progress` selects, and limit the BLAS to one thread within the block.

    In the message of a BncliError raised in the block, keyword arguments replace flags (`error_in_keywords`).
    """
    try:
        with one_blas_thread(), _watching(progress) as watch:
            yield watch
    except BncliError as error:
        raise error_in_keywords(error) from error.__cause__


def make_run(threads: int, watch: Watch = silent) -> Run:
    """Return a `Run` with this number of threads; raise UsageError unless it is a whole number of at least 1."""
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise UsageError(f"threads is {threads!r}; it should be a whole number of at least 1")
    return Run(int(threads), watch=watch)


def error_in_keywords(error: BncliError) -> BncliError:
    """Return the error with keywords in place of flags, without a hint that has a flag without a keyword."""
    hint = in_keywords(error.hint)
    hint = "" if _FLAG.search(hint) else hint
    return type(error)(in_keywords(error.what), where=in_keywords(error.where), hint=hint)


def in_keywords(text: str) -> str:
    """Return the text with keywords in place of flags; a flag that has no keyword stays."""
    if "--" not in text:
        return text
    names = (*typed_options(), *COLUMN_OPTIONS, *FILE_OPTIONS, *_OTHER_OPTIONS)
    keywords = {name.rstrip("_").replace("_", "-"): name for name in names}
    text = re.sub(r"(?<=^Invalid value for )'(--[a-z-]+)'", r"\1", text)
    return _FLAG.sub(lambda match: _keyword(match, keywords), text)


def _keyword(match: re.Match[str], keywords: dict[str, str]) -> str:
    """Return a flag and the word after it as `k=2` if the word is a value of the option, otherwise as `k= word`.

    A switch becomes `k=True`, and a flag without a keyword is unchanged. Values are words that the option accepts,
    numbers, names in capital letters, anything in quotes or with a dot or comma inside, and most words after an option
    about a table that takes any text (see _NO_VALUE).
    """
    flag, word = match[1], match[2]
    if flag not in keywords:
        return match[0]
    entry = next((option for option in LEARNING if option.flag == f"--{flag}"), None)
    accepted = words_about_tables().get(keywords[flag])
    if keywords[flag] in switches_about_tables() or (isinstance(entry, Option) and isinstance(entry.kind, Switch)):
        return f"{keywords[flag]}=True" + (f" {word}" if word else "")
    if word is None:
        return f"{keywords[flag]}="
    if re.fullmatch(r"'.*'|[A-Z_]+|[\d.]+(e-\d+)?", word):
        return f"{keywords[flag]}={word}"
    if re.search(r"\w[.,]\w", word) or (accepted is not None and word in accepted):
        is_value = True
    elif entry is None:
        takes_text = accepted is None and keywords[flag] in (*COLUMN_OPTIONS, *FILE_OPTIONS, "by")
        is_value = takes_text and _NO_VALUE.fullmatch(word) is None
    elif isinstance(entry, Choice):
        is_value = word.partition(":")[0] in entry.words
    else:
        is_value = word in getattr(entry.kind, "words", ())
    return f"{keywords[flag]}={word!r}" if is_value else f"{keywords[flag]}= {word}"


@contextmanager
def _watching(progress: ProgressOption) -> Iterator[Watch]:
    """Yield the watch that `progress` selects, and draw a bar if it is True; raise UsageError for an invalid value."""
    if progress is True:
        with Console(bar=_notebook_bar()) as console:
            yield lambda event: _warn(event) if isinstance(event, Note) else console.watch(event)
    elif callable(progress):
        yield progress
    elif not progress:
        yield _warn
    else:
        what = f"progress is of type {type(progress).__name__}; it should be True or a function that takes an event"
        raise UsageError(what, hint="leave it out to see warnings only")


def _warn(event: Event) -> None:
    if isinstance(event, Note):
        warnings.warn(in_keywords(event.text), UserWarning, stacklevel=2)


def _notebook_bar() -> NotebookBar | None:
    """Return a bar in the notebook that this runs in, or None outside of notebooks."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    return NotebookBar(HTML, display)


class NotebookBar:
    """A progress bar in HTML, redrawn in place at most ten times per second (see `bncli.cli.console.ProgressBar`)."""

    def __init__(self, html: Callable[[str], Any], display: Callable[..., Any]) -> None:
        self._html = html
        self._display = display(html(""), display_id=True)
        self._name, self._drawn = "starting", -_REDRAW_SECONDS

    def stage(self, name: str) -> None:
        """Begin another stage."""
        self._name = name
        self._draw("<progress></progress>", "")

    def progress(self, done: float, total: float | None, detail: str) -> None:
        """Show how much of the stage is done; without a total the bar only moves."""
        if time.monotonic() >= self._drawn + _REDRAW_SECONDS:
            reached = "" if total is None else f' value="{done:g}" max="{total:g}"'
            self._draw(f"<progress{reached}></progress>", detail)

    def _draw(self, bar: str, detail: str) -> None:
        self._drawn = time.monotonic()
        self._display.update(self._html(f"{bar} {escape(self._name)} {escape(detail[:200])}"))

    def print(self, text: str) -> None:
        """Show a line in place of the bar."""
        self._draw("", text)

    def close(self) -> None:
        """Remove the bar."""
        self._display.update(self._html(""))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS to one thread within the block."""
    libraries = _blas_functions()
    before = [get_threads() for get_threads, _ in libraries]
    try:
        for (_, set_threads), threads in zip(libraries, before, strict=True):
            if threads != 1:
                set_threads(1)
        yield
    finally:
        for (_, set_threads), threads in zip(libraries, before, strict=True):
            if threads != 1:
                set_threads(threads)


@cache
def _blas_functions() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return for each BLAS of numpy and scipy the functions that get and set its threads; empty if none is found."""
    functions = _openblas_functions()
    if functions:
        return functions
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return ()
    import scipy.linalg  # noqa: F401 - its library would be loaded later, with its own number of threads

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple((library.get_num_threads, library.set_num_threads) for library in libraries)


def _openblas_functions() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return for each OpenBLAS in the wheels of numpy and scipy the functions that get and set its threads."""
    import scipy

    functions = []
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parents[1] / f"{package.__name__}.libs"
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            names = (name for name in _OPENBLAS_NAMES if hasattr(library, name.format("get")))
            functions += [(getattr(library, n.format("get")), getattr(library, n.format("set"))) for n in names]
    return tuple(functions)
