"""Tables of several files, progress, and results in order from several threads."""

from __future__ import annotations

import gzip
import os
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.files.reading.table import run_in_order
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Event, Progress
from tests.files.reading.tables import (
    GOOD,
    check_good,
    read,
    write,
)


def test_several_files_of_one_table_in_any_order_of_columns(tmp_path: Path) -> None:
    a = write(tmp_path, "x,c,class\n1,a,u\n", "a.csv")
    b = write(tmp_path, gzip.compress(b"class;x;c\nv;2;b\nu;3;a\n"), "b.csv.gz")
    check_good(read_columns(Source((a, b))))
    with pytest.raises(BncliError, match=r"'z' is in \S*z\.csv but not in \S*a\.csv"):
        read_columns(Source((a, write(tmp_path, "x,c,class,z\n", "z.csv"))))


def test_a_directory_of_text_and_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    write(tmp_path, "x,c,class\n1,a,u\n", "part1.csv")
    parquet.write_table(pa.table({"class": ["v", "u"], "x": [2, 3], "c": ["b", "a"]}), tmp_path / "part2.parquet")
    check_good(read(str(tmp_path)))


def test_progress_is_in_bytes_of_the_files(tmp_path: Path) -> None:
    events: list[Event] = []
    a = write(tmp_path, GOOD, "a.csv")
    b = write(tmp_path, gzip.compress(GOOD.encode()), "b.csv.gz")
    read_columns(Source((a, b)), watch=events.append)
    progress = [event for event in events if isinstance(event, Progress)]
    total = os.path.getsize(a) + os.path.getsize(b)
    assert {event.total for event in progress} == {total}
    assert progress[-1].done == total
    assert [event.done for event in progress] == sorted(event.done for event in progress)


def late(i: int) -> int:
    time.sleep(0.002 * (i % 3))
    return i


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_results_come_in_order(threads: int) -> None:
    assert list(run_in_order((partial(late, i) for i in range(20)), threads)) == list(range(20))
    assert list(run_in_order(iter(()), threads)) == []


def test_no_more_than_asked_is_drawn_ahead() -> None:
    drawn: list[int] = []

    def tasks():  # type: ignore[no-untyped-def]
        for i in range(100):
            drawn.append(i)
            yield partial(late, i)

    results = run_in_order(tasks(), 3)
    assert [next(results), next(results)] == [0, 1]
    assert len(drawn) <= 6
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_comes_where_its_result_would_have_come(threads: int) -> None:
    n_threads = threading.active_count()

    def fail() -> int:
        raise ValueError("third")

    results = run_in_order(iter([partial(late, 1), partial(late, 2), fail, partial(late, 4)]), threads)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(results)
    assert threading.active_count() == n_threads
