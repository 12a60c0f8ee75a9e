"""The memory that a run may take, and what happens where it is not enough."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bncli.steps import run as memory
from bncli.steps.run import free_memory, limited
from bncli.watch import Run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the files in which Linux tells of its memory; empty."""
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    return tmp_path


def tell(machine: Path, **files: str) -> None:
    for name, text in files.items():
        machine.joinpath(name.replace("_", ".") if name.startswith("memory") else name).write_text(text)


def test_the_system_tells(machine: Path) -> None:
    tell(machine, meminfo="MemTotal: 900 kB\nMemAvailable:   700 kB\n")
    assert free_memory() == 700 * 1024


def test_a_container_may_allow_less(machine: Path) -> None:
    tell(machine, meminfo="MemAvailable: 700 kB\n", memory_max="5000\n", memory_current="4000\n")
    tell(machine, memory_stat="anon 1\ninactive_file 1500\n")
    assert free_memory() == 2500
    tell(machine, memory_max="max\n")
    assert free_memory() == 700 * 1024


@pytest.mark.parametrize("text", ["", "MemAvailable:", "MemAvailable: much kB", "Nothing: 1 kB"])
def test_elsewhere_all_memory_counts(machine: Path, text: str) -> None:
    tell(machine, meminfo=text)
    found = free_memory()
    assert found is None or found > 1 << 20


def test_nothing_known(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sysconf")
    assert free_memory() is None


def test_this_machine_has_some() -> None:
    assert (free_memory() or 1 << 30) > 1 << 20


def test_limits_that_are_set_stay(machine: Path) -> None:
    tell(machine, meminfo="MemAvailable: 700 kB\n")
    assert limited(Run(3)) == Run(3, 700 * 1024, time.monotonic)
    own = Run(memory=7, clock=time.process_time)
    assert limited(own) == own


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("memory_", "memory.")).write_text(text)


def test_every_group_around_the_own_one_counts(machine: Path) -> None:
    group(machine / "self", cgroup="0::/outer/inner\n")
    group(machine / "outer", memory_max="900\n", memory_current="500\n", memory_stat="inactive_file 50\n")
    group(machine / "outer/inner", memory_max="max\n", memory_high="800\n", memory_current="100\n", memory_stat="")
    tell(machine, meminfo="MemAvailable: 700 kB\n")
    assert free_memory() == 450
    (machine / "outer/memory.max").write_text("max\n")
    assert free_memory() == 700
    (machine / "outer/inner/memory.high").write_text("40\n")
    assert free_memory() == 0


def test_groups_of_the_first_version(machine: Path) -> None:
    group(machine / "self", cgroup="9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    usage = {"memory_usage_in_bytes": "300", "memory_stat": "inactive_file 1\ntotal_inactive_file 100\n"}
    group(machine / "memory/job", memory_limit_in_bytes="1000", **usage)
    group(machine / "memory", memory_limit_in_bytes="9223372036854771712", **usage)
    tell(machine, meminfo="MemAvailable: 700 kB\n")
    assert free_memory() == 800


def test_in_a_container_the_path_of_the_group_may_not_be_there(machine: Path) -> None:
    group(machine / "self", cgroup="0::/not/here\n")
    group(machine, memory_max="900\n", memory_current="500\n", memory_stat="")
    tell(machine, meminfo="MemAvailable: 700 kB\n")
    assert free_memory() == 400


def test_the_limit_of_the_process_counts() -> None:
    program = "from bncli.steps.run import free_memory; print(free_memory())"
    done = within(1 << 28, "-c", program)
    assert 0 < int(done.stdout) < 1 << 28


def within(limit: int, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Python under a limit on its address space, in bytes."""

    def limit_it() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, cwd=ROOT, timeout=300, preexec_fn=limit_it
    )


TABLE = "".join(f"{t % 7},{t * t % 11 / 3:.3f},{t % 5},{'abc'[t % 3]},{'pq'[t * t % 13 % 2]}\n" for t in range(20_000))
COMMANDS = {
    "nb": ("fit", "-", "--structure", "nb", "--param", "map"),
    "default": ("fit", "-", "--max-iterations", "5"),
    "evaluate": ("evaluate", "-", "--structure", "nb", "--param", "map"),
    "discretize": ("discretize", "-"),
}


def assert_ends_well_or_with_a_line(command: tuple[str, ...], megabytes: int, tmp_path: Path) -> None:
    output = ("-o", str(tmp_path / "m.bnc")) if command[0] == "fit" else ()
    done = within(
        megabytes << 20, "-m", "bncli", *command, *output, "--quiet", stdin=b"a,b,c,d,class\n" + TABLE.encode()
    )
    assert done.returncode in (0, 1), done.stderr
    told = done.stderr.decode()
    lines = [line for line in told.splitlines() if line.startswith("Error: ")]
    assert len(lines) == done.returncode, told
    # A library that cannot start its threads may print a line of its own, before it gives up; jemalloc also at the
    # exit.
    last = [line for line in told.splitlines() if not line.startswith("<jemalloc>:")][-1:]
    assert done.returncode == 0 or (last == lines and "memory" in lines[0]), told
    assert "Traceback" not in told
    assert set(os.listdir(tmp_path)) <= {"m.bnc"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not heed the limit")
@pytest.mark.parametrize("megabytes", [100, 230, 320])
def test_running_out_of_memory_is_one_line(megabytes: int, tmp_path: Path) -> None:
    assert_ends_well_or_with_a_line(COMMANDS["nb"], megabytes, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not heed the limit")
@pytest.mark.parametrize("megabytes", [60, *range(150, 700, 25), 1000])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_whatever_the_limit(command: tuple[str, ...], megabytes: int, tmp_path: Path) -> None:
    assert_ends_well_or_with_a_line(command, megabytes, tmp_path)
