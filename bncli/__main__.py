"""The entry point of `bncli` and of `python -m bncli`."""

import os
import signal
import sys
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
    """Run the command line and exit with its code."""
    # bncli has its own threads, which work on blocks of rows. Threads of the BLAS would compete with them and change
    # the last bits of sums, so it gets one. Numpy reads these variables when it is imported.
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    # Pyarrow imports pandas, where it is installed, with its first array. Nothing here needs it, and the import would
    # be a third of the time of a small fit.
    sys.meta_path.insert(0, _PandasBlocker())
    try:
        # Treat a request to terminate, or a closed terminal, like ^C, so that unfinished files are removed.
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # A signal that is ignored already (as by nohup) stays ignored.
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        from bncli.cli.memory_limit import run_within_memory_limit

        code = run_within_memory_limit(_run)
    except KeyboardInterrupt as stop:
        # The interrupt came before or after `run`, which handles its own. Shells expect 128 plus the number of the
        # signal; an interrupt that Python itself raised has no number and stands for SIGINT.
        code = 128 + (stop.args[0] if stop.args else signal.SIGINT)
    # CPython remembers an interrupt inside a text run by `exec` (as dataclasses do), and would exit because of it
    # although it was caught. Running another text clears that state.
    exec("")
    sys.exit(code)


def _run() -> int:
    from bncli.cli.main import run

    return run(sys.argv[1:])


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


class _PandasBlocker:
    """An import hook that makes `import pandas` fail as if pandas were not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


if __name__ == "__main__":
    main()
