"""Where `bncli` and `python -m bncli` begin."""

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
    """Run the command line and exits with its code.

    Threads work on blocks of rows here; a second pool inside the BLAS would spin beside them and change the last
    bits of sums, so it gets one thread. That must be said before numpy is imported. Where pandas is installed, pyarrow
    would import it with its first array, and nothing here needs it: that would be a third of the time of a small fit.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = "1"
    sys.meta_path.insert(0, _NoPandas())
    try:
        # A request to end, or a terminal that is closed, is like ^C: what was begun is tidied up. `nohup` is
        # respected.
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # Whoever ignores a signal already (nohup) meant it.
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        from bncli.cli.supervised import supervised

        code = supervised(_run)
    except KeyboardInterrupt as stop:
        # Pressed before, or after, the time when `run` looks after it.
        # As shells count: 128 and the number of the signal, SIGINT where Python itself raised it.
        code = 128 + (stop.args[0] if stop.args else signal.SIGINT)
    # CPython remembers an interrupt within a text that `exec` ran (so dataclasses are made), and would die of it in the
    # end though it was caught; the next text makes it forget.
    exec("")
    sys.exit(code)


def _run() -> int:
    from bncli.cli.main import run

    return run(sys.argv[1:])


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


class _NoPandas:
    """An importer that knows one name and refuses it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


if __name__ == "__main__":
    main()
