from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from bncli.files.reading.table import in_order


def late(i: int) -> int:
    time.sleep(0.002 * (i % 3))
    return i


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_come_in_order(threads: int) -> None:
    assert list(in_order((partial(late, i) for i in range(20)), threads)) == list(range(20))
    assert list(in_order(iter(()), threads)) == []


def test_no_more_than_asked_is_drawn_ahead() -> None:
    drawn: list[int] = []

    def tasks():  # type: ignore[no-untyped-def]
        for i in range(100):
            drawn.append(i)
            yield partial(late, i)

    results = in_order(tasks(), 3)
    assert [next(results), next(results)] == [0, 1]
    assert len(drawn) <= 6
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_comes_where_its_result_would_have_come(threads: int) -> None:
    n_threads = threading.active_count()

    def fail() -> int:
        raise ValueError("third")

    results = in_order(iter([partial(late, 1), partial(late, 2), fail, partial(late, 4)]), threads)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(results)
    assert threading.active_count() == n_threads
