"""Clocks and ratios: contestants run in alternation, so that whatever disturbs the machine disturbs all of them."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant: median CPU time of the process (all threads together), and the least wall time."""

    cpu: float
    wall: float


def alternate(
    contestants: Mapping[str, Callable[[], object]], repeats: int = 9, *, warm: bool = False
) -> dict[str, Timing]:
    """Each contestant once to warm up (unless it is `warm`), then `repeats` rounds of each in turn."""
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    wall: dict[str, list[float]] = {name: [] for name in contestants}
    if not warm:
        for contestant in contestants.values():
            contestant()
    for _ in range(repeats):
        for name, contestant in contestants.items():
            gc.collect()
            began, used = time.perf_counter(), time.process_time()
            contestant()
            cpu[name].append(time.process_time() - used)
            wall[name].append(time.perf_counter() - began)
    return {name: Timing(statistics.median(cpu[name]), min(wall[name])) for name in contestants}


@dataclass(frozen=True)
class Run:
    """One run of a command: CPU seconds, and the most memory it held."""

    cpu: float
    peak_mb: float
    output: str


LAUNCHER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""
"""A small process in between: a child counts the memory of the process that forked it as its own peak."""


def run(arguments: Sequence[str]) -> Run:
    """Runs a command to its end; AssertionError with what it said where it fails."""
    done = subprocess.run([sys.executable, "-c", LAUNCHER, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cpu, peak_mb = map(float, done.stderr.splitlines()[-1].split())
    return Run(cpu, peak_mb, done.stdout)


def alternate_commands(commands: Mapping[str, Sequence[str]], repeats: int = 5) -> dict[str, Run]:
    """The run of median CPU time of each command, the commands run in turn; the first round warms the file cache."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for round_number in range(repeats + 1):
        for name, arguments in commands.items():
            done = run(arguments)
            if round_number:
                runs[name].append(done)
    return {name: sorted(each, key=lambda r: r.cpu)[len(each) // 2] for name, each in runs.items()}
