"""Work done ahead of time on several threads, its results taken in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_order(tasks: Iterator[Callable[[], T] | None], threads: int) -> Iterator[T]:
    """The result of every task, in order; at most `threads` + 1 of them are under way or waiting to be taken.

    `tasks` is drawn from on the caller's thread; a None among them says that the next may be long in coming, so all
    results are handed over. Closing the iterator ends the threads.
    """
    if threads <= 1:  # no pool: errors and ^C come straight out of the work
        for task in tasks:
            if task is not None:
                yield task()
        return
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for task in tasks:
                if task is not None:
                    waiting.append(pool.submit(task))
                # One more than there are threads, so that none idles while the caller takes the oldest.
                while len(waiting) > (0 if task is None else threads):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # The caller stopped or failed: what has not begun never will, and leaving the pool waits for the rest.
            for future in waiting:
                future.cancel()
