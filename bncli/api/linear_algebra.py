"""One thread for the BLAS while bncli works, as many as before afterwards.

bncli has threads of its own, over row blocks; those of the BLAS would spin beside them and change the last bits of
sums. The command line says so before numpy is loaded. Here others may have loaded it, and want their threads back.

Conventions: done by threadpoolctl where it is installed (scikit-learn brings it), else by the functions of the OpenBLAS
that the wheels of numpy and scipy carry. Where there is neither, nothing is done: probabilities may then differ from
the command's in their last digit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")


@contextmanager
def one_thread() -> Iterator[None]:
    """While it lasts, products of matrices are made by one thread."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        with _one_thread_of(_openblas()):
            yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@contextmanager
def _one_thread_of(libraries: tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]) -> Iterator[None]:
    before = [get() for get, _ in libraries]
    try:
        for _, put in libraries:
            put(1)
        yield
    finally:
        for (_, put), threads in zip(libraries, before, strict=True):
            put(threads)


@cache
def _openblas() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """Return what asks for the number of threads and what sets it, of every OpenBLAS of the wheels."""
    import numpy
    import scipy
    import scipy.linalg  # or its library would be loaded later, with threads

    found = []
    for package in (numpy, scipy):
        folder = Path(str(package.__file__)).parents[1] / f"{package.__name__}.libs"
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            names = (name for name in _NAMES if hasattr(library, name.format("get")))
            found += [(getattr(library, n.format("get")), getattr(library, n.format("set"))) for n in names]
    return tuple(found)
