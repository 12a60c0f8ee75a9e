"""The entry point of `bncli` and of `python -m bncli`."""

import os  # loaded already, unlike `__future__`, which is a file to find

try:
    import signal
    import sys
except KeyboardInterrupt:  # ^C so early that there is no handler yet
    os._exit(130)

TYPE_CHECKING = False  # as in __init__: nothing that takes time is loaded before the handlers are set
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def main() -> None:
    """Run the command line and exit with its exit code."""
    # Until a command begins there is nothing to clean up, and an interrupt needs no message.
    try:
        _handle_signals(_exit_quietly)
    except KeyboardInterrupt:
        os._exit(130)
    # bncli has its own threads, which work on blocks of rows. Threads of the BLAS would compete with them and change
    # the last bits of sums, so it gets one. Numpy reads these variables when it is imported.
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    # Pyarrow imports pandas, where it is installed, with its first array. Nothing here needs it, and the import would
    # be a third of the time of a small fit.
    sys.meta_path.insert(0, _PandasBlocker())
    sys.unraisablehook = _report_ignored
    from bncli.cli.memory_limit import run_within_memory_limit

    code = run_within_memory_limit(_run)
    # CPython remembers an interrupt inside a text run by `exec` (as dataclasses do), and would exit because of it
    # although it was caught. Running another text clears that state.
    exec("")
    sys.exit(code)


def _run() -> int:
    from bncli.cli.main import run
    from bncli.files.atomic import name_standard_output

    name_standard_output()
    try:
        _handle_signals(_interrupt)
        try:
            return run(sys.argv[1:])
        finally:
            _handle_signals(_exit_quietly)
    except KeyboardInterrupt as stop:  # just before or after `run`, which handles its own
        return 128 + int(stop.args[0])


def _handle_signals(handler: "Callable[[int, FrameType | None], None]") -> None:
    """Set the handler for interrupt (^C), termination and hangup, except for signals that are ignored (nohup)."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _exit_quietly(number: int, _frame: "FrameType | None") -> None:
    os._exit(128 + number)  # as shells report a process that a signal has ended


def _interrupt(number: int, _frame: "FrameType | None") -> None:
    """Raise KeyboardInterrupt with the number of the signal, so that the command removes unfinished files."""
    raise KeyboardInterrupt(number)


def _report_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    """Exit if an exception that Python ignores, as in a destructor, is an interrupt; print any other exception."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        os._exit(128 + int(ignored.exc_value.args[0]))
    sys.__unraisablehook__(ignored)


class _PandasBlocker:
    """An import hook that makes `import pandas` fail as if pandas were not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


if __name__ == "__main__":
    main()
