"""What is said of the bytes that go to the workers is what goes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from bncli.steps.cluster.connection import BROADCAST_BYTES, Cluster, Worker
from bncli.steps.cluster.fitting import WorkerBlocks


class Counting(Cluster):
    """Two workers; keeps the arguments of every task."""

    def __init__(self) -> None:
        self.workers = {"a": Worker(1), "b": Worker(1)}
        self.asked: list[tuple[Any, ...]] = []

    def submit(self, *asked: Any, worker: str | None = None) -> Any:
        self.asked.append(asked)
        return len(self.asked)


@pytest.mark.parametrize("large", [False, True])
def test_what_is_kept_is_sent_and_counted(large: bool) -> None:
    """A small operand inside each task, a large one once to each worker."""
    cluster = Counting()
    blocks = WorkerBlocks(cluster, list(range(6)), ["a"] * 3 + ["b"] * 3, [("a", range(3)), ("b", range(3, 6))])
    operand = np.zeros(BROADCAST_BYTES // 8 + 1 if large else 10)
    blocks.keep(np.add, [operand], None)
    size = len(pickle.dumps((operand,), protocol=5))
    assert blocks.traffic.sent == size * (2 if large else 6)
    assert sum(any(isinstance(one, tuple) for one in asked) for asked in cluster.asked) == (1 if large else 6)
