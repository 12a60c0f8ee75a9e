"""Figures are checked against their limits as they are measured, and written to RESULTS.md when the tests have run."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.performance.results import Figure, Results

RESULTS = pytest.StashKey[Results]()


class Recorder:
    """Notes figures under the heading of the test's module."""

    def __init__(self, results: Results, heading: str) -> None:
        self._results = results
        self._heading = heading

    def __call__(self, what: str, measured: float, unit: str, at_most: float | None = None, detail: str = "") -> None:
        """Notes a figure; AssertionError if it is above its limit."""
        self._results.add(self._heading, Figure(what, measured, unit, at_most, detail))
        assert at_most is None or measured <= at_most, f"{what}: {measured:.3g} {unit}, at most {at_most:g} ({detail})"


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Recorder:
    assert not hasattr(request.config, "workerinput"), "what is measured runs alone: pytest -n 0 -m performance"
    results = request.config.stash.setdefault(RESULTS, Results())
    heading = (request.module.__doc__ or request.module.__name__).split("\n")[0].rstrip(".")
    return Recorder(results, heading)


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Threads of linear algebra libraries spin and steal: nobody gets more than one."""
    from threadpoolctl import threadpool_limits

    for module in ("numpy", "scipy.linalg", "sklearn.linear_model"):
        import_module(module)
    with threadpool_limits(1):
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    if RESULTS in session.config.stash:
        session.config.stash[RESULTS].write()
