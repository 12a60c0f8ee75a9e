"""From an exception to one line and an exit code: 0 done, 1 failed, 2 usage, 3 model, 4 drift, 128 + signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import click

from bncli.cli.group import COMPLETE, group
from bncli.cli.supervised import address_space_limit
from bncli.errors import BncliError, printable

_WANT_OF_MEMORY = (
    "can't start new thread",
    "failed to launch worker thread",
    "failed to map segment",
    "cannot allocate memory",
    "cannot create thread",
    "bad_alloc",
    "malloc of size",
)


def run(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name and returns its exit code; with --debug errors keep their traceback."""
    try:
        if instruction := os.environ.get(COMPLETE):
            from bncli.cli.completion import answer

            answer(instruction)
            return 0
        with group.make_context("bncli", list(arguments)) as context:
            group.invoke(context)
        # What is still buffered goes out while a failure can be told.
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        _forget_stdout()
    except KeyboardInterrupt as stop:
        # The argument is the signal, where it was not ^C.
        return 128 + int(stop.args[0] if stop.args else signal.SIGINT)
    except BaseException as error:
        if "--debug" in arguments or isinstance(error, SystemExit):
            raise
        return _report(error)
    return 0


def _forget_stdout() -> None:
    """Nobody reads any more: what is buffered must not fail again when the interpreter closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _report(error: BaseException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        return _fail(error.format_message(), error.exit_code)
    if isinstance(error, BncliError):
        return _fail(str(error), error.exit_code)
    if isinstance(error, MemoryError):
        return _fail(_memory(error), 1)
    if _is_for_want_of_memory(error):
        return _fail("not enough memory to load a library or to start a thread; allow more, or take fewer --threads", 1)
    if isinstance(error, OSError):
        where = f", {error.filename}" if error.filename else ""
        return _fail(f"{(error.strerror or str(error)).lower()}{where}", 1)
    return _fail(f"internal error: {type(error).__name__}: {error}; run with --debug and report it", 1)


def _fail(message: str, code: int) -> int:
    """Return the one line; a message of several is folded, so that a caller may rely on one."""
    if sys.stderr is not None:
        print("Error:", printable(" ".join(message.split())), file=sys.stderr)
    return code


def _memory(error: MemoryError) -> str:
    detail = f" ({error})" if str(error) else ""
    return f"not enough memory{detail}; use fewer attributes, values or parents"


def _is_for_want_of_memory(error: BaseException | None) -> bool:
    """Return whether it, or what it came from, says in a system's or a library's own words that memory ran out.

    Under a limit on address space a SystemError is a library's that could not even say so.
    """
    while error is not None:
        if any(words in str(error).lower() for words in _WANT_OF_MEMORY):
            return True
        if isinstance(error, SystemError) and address_space_limit() is not None:
            return True
        error = error.__cause__ or error.__context__
    return False
