"""What holds for every test: no deadline for hypothesis, since a busy machine is not a fault of the code.

Where the environment sets CI the examples are the same in every run; elsewhere new ones are tried each time, a few of
most properties; `-m hypothesis --hypothesis-profile=sweep` tries five times as many. The BLAS
gets one thread, as in the program: its threads spin, and on a busy machine small products take sixty times as long. It
must be told before numpy is imported, so nothing that needs numpy is imported here. Tables are as wide as in a pipe,
however wide the terminal is in which the tests run.
"""

import gc
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Compiled modules are kept even where none may be written beside the sources: else every command that is started
    # would compile bncli anew, and every worker hypothesis and all tests.
    sys.dont_write_bytecode = False
    folder = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)

from hypothesis import settings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ.pop("COLUMNS", None)
settings.register_profile("house", deadline=None, max_examples=4, derandomize="CI" in os.environ)
settings.register_profile("sweep", settings.get_profile("house"), max_examples=20)
settings.load_profile("house")


LONG = (
    "tests/cases/",
    "tests/steps/test_forecast.py::test_the_memory_is",
    "tests/steps/test_run.py::test_every_structure_learns",
    "tests/test_adding_a_method.py",
    "tests/test_manual.py",
    "tests/test_readme.py",
    "tests/test_schemas.py",
)


MOST_CASES = 6
"""Of a test with more cases than these, one in three is run by default, and the others are marked as slow."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that the default run leaves to `-m slow`, and put long tests first.

    Which third is run differs between tests, so that the same method is not left out of all of them. Last, a
    long test would keep one worker busy and leave the others idle.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not any(map(item.get_closest_marker, ("slow", "performance"))):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, group in cases.items():
        if len(group) > MOST_CASES:
            first = zlib.crc32(test.encode())
            for i in range(len(group)):
                if (i + first) % 3:
                    group[i].add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


AVX2 = "BNCLI_TEST_AVX2"
"""The environment variable of tests that run with the instructions of AVX2 only."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test marked `avx2` in a process of its own, where numpy and OpenBLAS use no newer instructions than AVX2.

    The optimum of some published experiments lies at infinity, so that where a fit ends depends on the last bit.
    """
    if not pyfuncitem.get_closest_marker("avx2") or os.environ.get(AVX2):
        return None
    from numpy._core import _multiarray_umath

    features = _multiarray_umath.__cpu_features__
    if not features.get("AVX2"):
        pytest.skip("the figures are those of a processor with AVX2")
    newer = [name for name in _multiarray_umath.__cpu_dispatch__ if features[name] and re.match("AVX512|X86_V4", name)]
    kernels = {"NPY_DISABLE_CPU_FEATURES": " ".join(newer), "OPENBLAS_CORETYPE": "Haswell", AVX2: "1"}
    words = ("-n", "0", "-q", "-p", "no:cacheprovider", "-m", "", pyfuncitem.nodeid)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=pyfuncitem.config.rootpath,
        env={**os.environ, **kernels},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    return True


gc.disable()  # the thousands of tests that are collected stay to the end


def pytest_collection_finish() -> None:
    """The garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row blocks of 256 rows: 5,000 rows make as many as ever there are, in a small part of the time of real ones."""
    monkeypatch.setattr("bncli.engine.data.dataset.ROWS_PER_BLOCK", 1 << 8)


@pytest.fixture
def fewer_export_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exported is compared with the model on 1,000 synthetic rows: a tenth of those that the command uses."""
    for step in ("export", "verify"):
        monkeypatch.setattr(f"bncli.steps.{step}.EXPORT_ROWS", 1_000)
