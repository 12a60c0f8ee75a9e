"""Row blocks on workers: the bytes that are counted are those sent, and memory limits are kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from bncli.errors import BncliError
from bncli.steps.cluster import fitting
from bncli.steps.cluster.connection import BROADCAST_BYTES, Cluster, Worker


class RecordingCluster(Cluster):
    """Two workers; records the arguments of every task."""

    def __init__(self) -> None:
        self.workers = {"a": Worker(1), "b": Worker(1)}
        self.tasks: list[tuple[Any, ...]] = []

    def submit(self, *arguments: Any, worker: str | None = None) -> Any:
        self.tasks.append(arguments)
        return len(self.tasks)


@pytest.mark.parametrize("large", [False, True])
def test_bytes_sent_for_row_state_are_counted(large: bool) -> None:
    """A small operand travels inside each task, a large one once to each worker."""
    cluster = RecordingCluster()
    groups = [("a", range(3)), ("b", range(3, 6))]
    blocks = fitting.WorkerBlocks(cluster, list(range(6)), ["a"] * 3 + ["b"] * 3, groups)
    operand = np.zeros(BROADCAST_BYTES // 8 + 1 if large else 10)
    blocks.keep(np.add, [operand], None)
    size = len(pickle.dumps((operand,), protocol=5))
    assert blocks.sent == size * (2 if large else 6)
    assert sum(any(isinstance(x, tuple) for x in arguments) for arguments in cluster.tasks) == (1 if large else 6)


class LimitedCluster(Cluster):
    """Workers that use 100 MB, with memory limits in bytes."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.workers = {address: Worker(1, limit) for address, limit in limits.items()}

    def ask_all(self, function: Callable[..., Any], *arguments: Any) -> Mapping[str, Any]:
        return dict.fromkeys(self.workers, 10**8)


@pytest.mark.parametrize(("limit", "fits"), [(0, True), (10**9, True), (400 * 10**6, True), (300 * 10**6, False)])
def test_a_share_beyond_the_memory_limit_is_refused(limit: int, fits: bool) -> None:
    cluster, shares = LimitedCluster({"a": 0, "b": limit}), {"a": 2 * 10**8, "b": 2 * 10**8}
    if fits:
        fitting.refuse_memory_limits(cluster, shares)
        return
    with pytest.raises(
        BncliError, match="b may use 300 MB of memory, already uses 100 MB, and its row blocks need 200 MB"
    ):
        fitting.refuse_memory_limits(cluster, shares)
