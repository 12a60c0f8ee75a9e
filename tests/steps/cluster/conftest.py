"""The cluster that the tests of these modules share: those that break one start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.steps.cluster.processes import Processes, started


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A scheduler and two workers."""
    with started(tmp_path_factory.mktemp("cluster"), 2) as processes:
        yield processes
