"""Two threads on one pass: what they wait for, and their wall time beside one thread, two processes and a C kernel.

Run `python -m tests.published.threads SECONDS`: it adds repetitions to `threads.csv` for so long, contestants in turn,
and writes the page. Linux says of a thread how long it was ready but had no processor (schedstat); what is left of the
wall time of a kernel after that and its computing, it waited for another thread: that is the interpreter lock. So the
price of the lock is known even of a machine that has no two cores to spare, where the wall time is not.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.parameters import likelihood
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from tests.performance.workloads import simulated, structure, with_threads
from tests.performance.yardsticks import c_pass
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
ROWS, CLASSES = 800_000, (2, 5)
ONE, TWO, PROCESSES, C_ONE, C_TWO = "one thread", "two threads", "two processes", "C, one thread", "C, two threads"
LOOK_UPS_ONE, LOOK_UPS_TWO = "look-ups, one thread", "look-ups, two threads"
KERNELS = ("_SPARSE_TWO", "_SPARSE", "_TWO", "_SOME")
PAUSE = 0.05
"""Seconds of rest before a repetition: a thread that has just rested is served sooner."""


class Figure(NamedTuple):
    """One pass: number of classes, contestant, milliseconds, and the load of the machine, as `uptime` says it.

    computing: of all threads together; kernels: that part of it that threads share; queueing: kernels that were ready
    without a processor; blocked: kernels that waited for another thread.
    """

    classes: int
    contestant: str
    wall: float
    computing: float
    kernels: float
    queueing: float
    blocked: float
    load: float


class _Spent(NamedTuple):
    """Nanoseconds of a thread: wall time, computing, ready without a processor."""

    wall: int
    computing: int
    queueing: int


def main() -> None:
    """Measures for as long as was typed, and writes the page."""
    contests = [_Contest(classes) for classes in CLASSES]
    figures, end = recorded(), time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        for contest in contests:
            figures += contest.round()
        write_csv(FIGURES, [Figure._fields, *figures])
    PAGE.write_text(page(figures))


class _Contest:
    """The contestants on one simulated table."""

    def __init__(self, classes: int) -> None:
        data = simulated(ROWS, (5,) * 30, 2) if classes == 2 else simulated(ROWS)
        families = structure(data, "tan").families(data.schema.cardinalities)
        one, two = (conditional_likelihood(with_threads(data, n), families) for n in (1, 2))
        looked_up = [_by_look_ups(conditional_likelihood, with_threads(data, n), families) for n in (1, 2)]
        cells = np.random.default_rng(0).normal(0, 0.3, (classes, one.n_cells))
        cells[:, 0] = 0.0
        row_major = np.ascontiguousarray(cells.T)
        self._classes, self._kernels = classes, list[_Spent]()
        self._work: dict[str, Callable[[], object]] = {
            ONE: partial(one.value_and_gradient, cells),
            TWO: partial(two.value_and_gradient, cells),
            PROCESSES: _Halves(one, cells, self._kernels),
            LOOK_UPS_ONE: partial(_by_look_ups, looked_up[0].value_and_gradient, cells),
            LOOK_UPS_TWO: partial(_by_look_ups, looked_up[1].value_and_gradient, cells),
            C_ONE: partial(c_pass(data, families, 1), row_major),
            C_TWO: partial(c_pass(data, families, 2), row_major),
        }
        for work in self._work.values():
            work()

    def round(self) -> list[Figure]:
        """One pass of each."""
        with pytest.MonkeyPatch.context() as patch:
            for name in KERNELS:
                kernels = getattr(likelihood, name)
                watched = partial(_watched, self._kernels, kernels.value_and_gradient)
                patch.setattr(likelihood, name, kernels._replace(value_and_gradient=watched))
            return [self._measured(name, work) for name, work in self._work.items()]

    def _measured(self, name: str, work: Callable[[], object]) -> Figure:
        time.sleep(PAUSE)
        self._kernels.clear()
        began, used = time.perf_counter_ns(), time.process_time_ns()
        work()
        wall, computing = time.perf_counter_ns() - began, time.process_time_ns() - used
        kernels, queueing = (sum(getattr(s, what) for s in self._kernels) for what in ("computing", "queueing"))
        blocked = sum(s.wall - s.computing - s.queueing for s in self._kernels)
        used = kernels if name == PROCESSES else computing
        ms = [round(ns / 1e6, 3) for ns in (wall, used, kernels, queueing, blocked)]
        return Figure(self._classes, name, ms[0], ms[1], ms[2], ms[3], ms[4], round(os.getloadavg()[0], 1))


def _by_look_ups(work: Callable[..., Any], *arguments: Any) -> Any:
    """As if the rows were few: np.take and np.bincount."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "FEW_ROWS", ROWS)
        return work(*arguments)


def _block_pass(kernels: Any, block: Any, operand: Any) -> tuple[float, Any]:
    return likelihood._value_and_gradient(block, kernels, operand)


class _Halves:
    """A pass by two processes, each over half of the row blocks; the sums of one are sent to the other, not added."""

    def __init__(self, own: ConditionalLikelihood, cells: NDArray[np.float64], told: list[_Spent]) -> None:
        blocks = own.data.row_blocks(own.states)
        kernel, operand = partial(_block_pass, likelihood._kernels(own.data)), own._operand(cells)
        half = len(blocks) // 2
        self._mine = partial(_all_of, kernel, blocks[:half], operand)
        others = partial(_watched, told, _all_of, kernel, blocks[half:], operand)
        self._told = told
        forked = multiprocessing.get_context("fork")
        self._ask, asked = forked.Pipe()
        forked.Process(target=_serve, args=(asked, others, told), daemon=True).start()

    def __call__(self) -> None:
        self._ask.send(True)
        self._mine()
        self._told.append(self._ask.recv()[1])


def _all_of(kernel: Callable[..., Any], blocks: Iterable[Any], operand: Any) -> list[Any]:
    return [kernel(block, operand) for block in blocks]


def _serve(asked: Connection, work: Callable[[], Any], told: list[_Spent]) -> None:
    while asked.recv():
        asked.send((work(), told[-1]))


def _watched(told: list[_Spent], kernel: Callable[..., Any], *arguments: Any) -> Any:
    before = _now()
    result = kernel(*arguments)
    told.append(_Spent(*(b - a for a, b in zip(before, _now(), strict=True))))
    return result


def _now() -> _Spent:
    told = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text()
    return _Spent(time.perf_counter_ns(), time.thread_time_ns(), int(told.split()[1]))


def recorded() -> list[Figure]:
    """The repetitions kept."""
    if not FIGURES.exists():
        return []
    return [Figure(int(k), name, *map(float, numbers)) for k, name, *numbers in read_csv(FIGURES)[1:]]


def expected(figures: Sequence[Figure], classes: int) -> float:
    """Wall time of two threads beside one where two cores are free: half of what is shared, and all that is not."""
    two = _of(figures, classes, TWO)
    shared, alone = median(f.kernels + f.blocked for f in two), median(f.computing - f.kernels for f in two)
    return (alone + shared / 2) / median(f.computing for f in _of(figures, classes, ONE))


def _of(figures: Sequence[Figure], classes: int, contestant: str) -> list[Figure]:
    return [f for f in figures if (f.classes, f.contestant) == (classes, contestant)]


def _ratio(figures: Sequence[Figure], classes: int, two: str, one: str) -> str:
    """The median of wall times, each beside the other's in the same round."""
    pairs = zip(_of(figures, classes, two), _of(figures, classes, one), strict=True)
    return f"{median(a.wall / b.wall for a, b in pairs):.2f}"


def _parts(figures: Sequence[Figure]) -> Iterable[tuple[str, ...]]:
    for classes in CLASSES:
        for name in (ONE, TWO, PROCESSES, LOOK_UPS_ONE, LOOK_UPS_TWO):
            own = _of(figures, classes, name)
            alone = "" if name == PROCESSES else f"{median(f.computing - f.kernels for f in own):.1f}"
            fourth, middle, *_ = (sorted(f.blocked for f in own)[len(own) // part] + 0.0 for part in (4, 2))
            numbers = (median(f.kernels for f in own), fourth, middle, median(f.queueing for f in own))
            yield f"{classes} classes, {name}", alone, *(f"{abs(number):.1f}" for number in numbers)


def _shares(figures: Sequence[Figure]) -> Iterable[tuple[str, ...]]:
    for classes in CLASSES:
        pairs = ((TWO, ONE), (LOOK_UPS_TWO, LOOK_UPS_ONE), (PROCESSES, ONE), (C_TWO, C_ONE))
        yield f"{classes} classes", f"{expected(figures, classes):.2f}", *(_ratio(figures, classes, *p) for p in pairs)


def page(figures: Sequence[Figure]) -> str:
    """The page, from the figures alone."""
    loads = sorted(f.load for f in figures)
    load = f"{loads[0]:.0f} to {loads[-1]:.0f}"
    rounds = len(_of(figures, 2, ONE))
    headings = ("ms a pass", "alone", "kernels", "blocked, quartile", "blocked, median", "no processor")
    parts = table(headings, _parts(figures))
    header = ("", "two free cores, expected", "two threads", "look-ups, two threads", "two processes", "C, two threads")
    return f"""# Two threads on one pass

A pass (conditional log-likelihood and gradient) over {ROWS:,} simulated rows of 30 attributes, a TAN, as in the figures
of speed. Medians of {rounds} rounds on a machine of two cores, of a load of {load}.

{parts}

CPU time: *kernels* are shared by the threads, row block by row block; *alone* is what one thread does before, between
and after them, starting the other and being measured included. Wall time, of all threads together: *blocked* is how
long kernels waited for another thread, which has the interpreter lock; *no processor*, how long they were ready and had
none.

Wall time beside one thread: half of kernels and blocked and all that is alone is to be expected; beside it the medians
of the pairs as they were measured.

{table(header, _shares(figures))}

Passes over many rows are sparse products, one a block of rows for the look-ups of all groups and one for their sums.
They let the interpreter lock go. *Look-ups* are the kernels for few rows, taken here for many: np.bincount of numpy 2.4
keeps the lock while it sums, so that one thread waits for the other, and handing the lock over costs CPU time of its
own. Processes share no lock, and have the time of what is alone left out here. Pairs of attributes are counted by
sparse matrices for the same reason, from half a billion increments on: fewer take less time than importing them.

Made by `python -m tests.published.threads SECONDS`.
"""


if __name__ == "__main__":
    main()
