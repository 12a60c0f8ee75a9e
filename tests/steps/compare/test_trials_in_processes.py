"""Processes that do tasks: they answer, they die, they are ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.steps.compare import trials
from bncli.steps.compare.trials import Failure, Outcome, RunPlan, Task, run_in_processes
from tests.steps.compare.tables import planned, write_table


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    return planned([write_table(tmp_path / "a.csv", 30, 0)], protocol=Protocol(5, 1, 0))[0]


TASKS = [Task(0, learner, 0, fold) for learner in (0, 1) for fold in range(5)]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that is started."""
    started: list[subprocess.Popen[bytes]] = []
    start = trials._Worker._start_process

    def noted(self: trials._Worker) -> subprocess.Popen[bytes]:
        process = start(self)
        # an interrupt typed at the terminal reaches the parent alone
        assert os.getpgid(process.pid) != os.getpgid(0)
        started.append(process)
        return process

    monkeypatch.setattr(trials._Worker, "_start_process", noted)
    return started


@pytest.mark.slow
def test_every_task_is_done_once_and_all_processes_end(plan: RunPlan, started: list[subprocess.Popen[bytes]]) -> None:
    results = list(run_in_processes(plan, TASKS, 2, lambda task: task.fold == 3))
    assert sorted(task for task, _ in results) == [task for task in TASKS if task.fold != 3]
    assert all(isinstance(result, Outcome) for _, result in results)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@pytest.mark.slow
def test_who_dies_is_replaced(plan: RunPlan, started: list[subprocess.Popen[bytes]]) -> None:
    def killing(task: Task) -> bool:
        """Asked before every task."""
        if task == TASKS[3] and len(started) == 1:
            started[0].kill()
            started[0].wait()
        return False

    results = list(run_in_processes(plan, TASKS, 1, killing))
    ((task, failure),) = [(task, result) for task, result in results if isinstance(result, Failure)]
    assert task == TASKS[3]
    assert "died (killed by signal 9)" in failure.reason
    assert [task for task, _ in results] == TASKS
    assert len(started) == 2


@pytest.mark.slow
def test_closing_ends_all_processes(plan: RunPlan, started: list[subprocess.Popen[bytes]]) -> None:
    with closing(run_in_processes(plan, TASKS[:2], 3, lambda task: False)) as found:
        next(found)
    assert len(started) == 2, "no more processes begin than there are tasks"
    assert all(process.returncode is not None for process in started)
    assert not any(thread.is_alive() for thread in threading.enumerate() if thread.name.endswith("(_work)"))


def test_a_process_that_cannot_be_started_is_an_error(plan: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FileNotFoundError):
        list(run_in_processes(plan, TASKS, 1, lambda task: False))


@pytest.mark.slow
def test_a_worker_does_not_outlive_who_can_ask_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", trials._SERVE], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) is not None
