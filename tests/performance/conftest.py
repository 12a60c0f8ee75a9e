"""Figures are checked as they are measured, and told when the tests have run; BNCLI_UPDATE=1 keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.performance.results import PAGE, Figure, Results, machine, objection, page, read, summary, write
from tests.published.pages import UPDATING

MEASURED = pytest.StashKey[list[Figure]]()
RECORDED = pytest.StashKey[Results]()
"""What the file had before the run."""


class Recorder:
    """Notes figures under the heading of the test's module."""

    def __init__(self, measured: list[Figure], recorded: Results, section: str) -> None:
        self._measured = measured
        self._section = section
        self._recorded = {figure.key: figure for figure in recorded.figures}

    def __call__(
        self, what: str, measured: float, unit: str, at_most: float | None = None, detail: str = "", missed: str = ""
    ) -> None:
        """Notes a figure; AssertionError if it is above its limit.

        `missed` says why the limit is known to be missed. The figure may then not be above SLACK times what is
        recorded, no more than one that has no limit.
        """
        figure = Figure(self._section, what, measured, unit, at_most, missed, detail)
        self._measured.append(figure)
        if UPDATING:
            # at once: a run that is stopped keeps what it has measured
            write(read().renewed(Results(machine(), (figure,))))
        wrong = objection(figure, self._recorded.get(figure.key), updating=UPDATING)
        assert wrong is None, wrong


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Recorder:
    assert not hasattr(request.config, "workerinput"), "what is measured runs alone: pytest -n 0 -m performance"
    stash = request.config.stash
    measured, recorded = stash.setdefault(MEASURED, []), stash.setdefault(RECORDED, read())
    return Recorder(measured, recorded, (request.module.__doc__ or request.module.__name__).split("\n")[0].rstrip("."))


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Threads of linear algebra libraries spin and steal: nobody gets more than one."""
    from threadpoolctl import threadpool_limits

    for module in ("numpy", "scipy.linalg", "sklearn.linear_model"):
        import_module(module)
    with threadpool_limits(1):
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    measured = config.stash.get(MEASURED, [])
    if measured:
        terminalreporter.section("measured")
        for line in summary(measured, config.stash[RECORDED]):
            terminalreporter.write_line(line)
    if UPDATING:
        PAGE.write_text(page(read()))
