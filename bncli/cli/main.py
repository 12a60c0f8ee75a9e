"""Running a command, with exceptions turned into a one-line error and an exit code.

The exit codes are 0 for success, 1 for failure, 2 for a usage error, 3 for a model error, and 4 for drift. After an
interrupt the exit code is 128 plus the number of the signal.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import click

from bncli.cli.commands import COMPLETION_VARIABLE, group
from bncli.cli.memory_limit import address_space_limit
from bncli.errors import BncliError, printable

_MEMORY_MESSAGES = (
    "can't start new thread",
    "failed to launch worker thread",
    "failed to map segment",
    "cannot allocate memory",
    "cannot create thread",
    "bad_alloc",
    "malloc of size",
)
"""Parts of the messages with which systems and libraries report that memory ran out."""


def run(arguments: Sequence[str]) -> int:
    """Run the command in `arguments` and return its exit code; with --debug, raise exceptions other than interrupts.

    If a shell requests completions through the environment, print these instead.
    """
    try:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            from bncli.cli.completion import print_completions

            print_completions(instruction)
            return 0
        with group.make_context("bncli", list(arguments)) as context:
            group.invoke(context)
        # Write buffered output here, where a failure is still reported.
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        _discard_stdout()
    except BaseException as error:
        if (interrupt := _find_interrupt(error)) is not None:
            # The argument is the number of the signal unless Python itself raised the interrupt, for ^C.
            return 128 + int(interrupt.args[0] if interrupt.args else signal.SIGINT)
        if "--debug" in arguments or isinstance(error, SystemExit):
            raise
        try:  # flush earlier output, so that it comes before the error
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, BncliError):
            _discard_stdout()
        return _report(error)
    return 0


def _discard_stdout() -> None:
    """Redirect the standard output to the null device, so that flushing buffered output at exit cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _find_interrupt(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the error itself or the first of its causes that is a KeyboardInterrupt, or None.

    If ^C arrives while a class is being created, Python raises another error with this cause.
    """
    seen: list[BaseException] = []
    while error is not None and not isinstance(error, KeyboardInterrupt):
        seen.append(error)
        error = None if any(error.__cause__ is one for one in seen) else error.__cause__
    return error


def _report(error: BaseException) -> int:
    """Print the error as one line (or the help, if a command was given no arguments) and return its exit code."""
    code = 1
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        message, code = error.format_message(), error.exit_code
    elif isinstance(error, BncliError):
        message, code = str(error), error.exit_code
    elif isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        message = f"not enough memory{detail}; use fewer attributes, values or parents"
    elif _is_lack_of_memory(error):
        message = "not enough memory to load a library or to start a thread; raise the memory limit, or lower --threads"
    elif isinstance(error, OSError):
        where = f", {error.filename}" if error.filename else ""
        message = f"{(error.strerror or str(error)).lower()}{where}"
    else:
        message = f"internal error: {type(error).__name__}: {error}; run with --debug and report it"
    if sys.stderr is not None:
        # Messages of several lines are joined, so that callers can rely on a single line.
        print("Error:", printable(" ".join(message.split())), file=sys.stderr)
    return code


def _is_lack_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means that memory ran out.

    Under a limit on address space, a SystemError counts too, because libraries raise it without a message.
    """
    while error is not None:
        if any(words in str(error).lower() for words in _MEMORY_MESSAGES):
            return True
        if isinstance(error, SystemError) and address_space_limit() is not None:
            return True
        error = error.__cause__ or error.__context__
    return False
