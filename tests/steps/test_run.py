"""What the steps share: recorded events, stages in threads of their own, and the memory that is free."""

from __future__ import annotations

import csv
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from bncli.catalogue import STRUCTURES
from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps import run as run_module
from bncli.steps.evaluate.evaluate import EvaluateOutputs, evaluate
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.run import (
    TRACE_COLUMNS,
    NamedMove,
    PipelineStage,
    Recorder,
    Stopwatch,
    free_memory,
    with_memory_limit,
)
from bncli.watch import Event, Iteration, Move, Note, Run, SelectedRun, Stage, silent
from tests.datasets import schema_of


def test_stages_are_timed_and_events_passed_on() -> None:
    now = iter([0.0, 1.0, 3.0, 7.0, 15.0, 15.0])
    seen: list[Event] = []
    watch = Stopwatch(seen.append, lambda: next(now))
    events = [Stage("read"), Note("hello"), Stage("fit"), Stage("read")]
    for event in events:
        watch(event)
    assert watch.seconds() == {"read": 2.0 + 8.0, "fit": 4.0, "total": 15.0}
    assert seen == events


IRIS = Source((str(Path(__file__).parents[2] / "sample_data" / "iris.csv"),))
GREEDY = Recipe.of(structure="hill-climb", structure_score="k2", param="map")


def test_a_trace_has_the_iterations_of_the_selected_run(tmp_path: Path) -> None:
    recorder = Recorder(silent)
    for n, value in enumerate((-5.0, -1.0, -3.0)):
        for i in range(n + 1):
            recorder(Iteration(i, value, 0.0, 1.0, 1.0, i + 1, i + 1))
    recorder(SelectedRun(1))
    recorder.write_trace(str(tmp_path / "t.csv"))
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [(row["iteration"], row["cll"]) for row in rows] == [("0", "-1.0"), ("1", "-1.0")]
    assert float(rows[0]["seconds"]) == 0.0


def test_moves_are_recorded_by_name_and_every_event_is_passed_on() -> None:
    seen: list[Event] = []
    recorder = Recorder(seen.append)
    events = [Stage("structure"), Move("add", 1, 0, 2.5), Note("odd"), Move("reverse", 1, 0, 0.5)]
    for event in events:
        recorder(event)
    assert seen == events
    names = recorder.named_moves(schema_of((2, 2), 2, names=("age", "pulse")))
    assert names == (NamedMove("add", "pulse", "age", 2.5), NamedMove("reverse", "pulse", "age", 0.5))


def test_both_steps_report_the_moves_that_lead_to_the_structure(tmp_path: Path) -> None:
    learnt = learn_structure(IRIS, GREEDY)
    fitted = fit(IRIS, GREEDY, output=str(tmp_path / "m.bnc"))
    assert learnt.moves == fitted.moves
    arcs = {(parent, child) for child, listed in learnt.structure.parents.items() for parent in listed[1:]}
    assert {move.kind for move in learnt.moves} == {"add"}
    assert sorted((move.parent, move.child) for move in learnt.moves) == sorted(arcs)
    told = [{"kind": "add", "parent": m.parent, "child": m.child, "gain": m.gain} for m in learnt.moves]
    assert told
    assert learnt.as_json()["moves"] == fitted.as_json()["moves"] == told


@pytest.mark.parametrize("word", ["nb", "tan"])
def test_without_a_greedy_search_there_are_no_moves(word: str) -> None:
    report = learn_structure(IRIS, Recipe(structure=word))
    assert report.moves == ()
    assert report.as_json()["moves"] == []


TIC_TAC_TOE = Source((str(Path(__file__).parents[2] / "sample_data" / "tic_tac_toe.csv"),))


LEARNING: dict[str, Callable[[str], object]] = {
    "fit": lambda path: fit(TIC_TAC_TOE, Recipe(), output=path),
    "evaluate": lambda path: evaluate(TIC_TAC_TOE, Recipe(), outputs=EvaluateOutputs(f"{path}.csv")),
    "learn-structure": lambda path: learn_structure(TIC_TAC_TOE, Recipe(), output=f"{path}.json"),
}


@pytest.mark.parametrize("step", LEARNING)
def test_every_step_that_learns_limits_its_memory(step: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_module, "free_memory", lambda: 100)
    with pytest.raises(BncliError, match=r"compares all pairs of 9 attributes: this needs about 0\.0 MiB of memory"):
        LEARNING[step](str(tmp_path / "m.bnc"))
    assert not list(tmp_path.iterdir())


def test_iterations_become_rows(tmp_path: Path) -> None:
    seen: list[Event] = []
    recorder = Recorder(seen.append)
    events = [
        Iteration(0, -10.125, 0.0, 3.0, 0.0, 1, 1),
        Note("x"),
        Iteration(1, -0.1 - 0.2, 1e-17, 2.5, 1.0, 3, 2, 123456789012345),
        Iteration(2, None, 0.0, 2.0, 1.0, 4, 4, None, -20.5),
    ]
    for event in events:
        recorder(event)
    recorder.write_trace(str(tmp_path / "t.csv"))
    rows = list(csv.reader((tmp_path / "t.csv").read_text().splitlines()))
    assert seen == events
    assert tuple(rows[0]) == TRACE_COLUMNS
    told = [tuple(float(cell) if cell else None for cell in row[:-1]) for row in rows[1:]]
    assert told == [event for event in events if isinstance(event, Iteration)]
    assert [row[-3] for row in rows[1:]] == ["", "123456789012345", ""]
    assert [float(row[-1]) >= 0 for row in rows[1:]] == [True] * 3


def test_the_columns() -> None:
    counts = ("cll_evaluations", "gradient_evaluations", "flops", "ll", "seconds")
    assert ("iteration", "cll", "penalty", "gradient_norm", "step", *counts) == TRACE_COLUMNS


def test_without_iterations_only_the_header(tmp_path: Path) -> None:
    recorder = Recorder(silent)
    recorder.write_trace(str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == ",".join(TRACE_COLUMNS) + "\n"


def test_everything_arrives_in_order() -> None:
    seen: list[int] = []
    with PipelineStage(seen.append) as last, PipelineStage(last.put) as middle:
        for i in range(100):
            middle.put(i)
    assert seen == list(range(100))


def test_the_work_is_done_on_another_thread() -> None:
    seen: list[int] = []
    with PipelineStage[int](lambda _: seen.append(threading.get_ident())) as stage:
        stage.put(0)
    assert seen != [threading.get_ident()]


def _fail_at(seen: list[int], at: int) -> PipelineStage[int]:
    """Return a stage that records the items before number `at`, and fails there."""

    def work(item: int) -> None:
        if item == at:
            raise ZeroDivisionError
        seen.append(item)

    return PipelineStage(work)


@pytest.mark.parametrize("n_items", [4, 1000])
def test_a_failure_travels_up_the_stream(n_items: int) -> None:
    seen: list[int] = []
    with pytest.raises(ZeroDivisionError):
        _feed(_fail_at(seen, 3), n_items)
    assert seen == [0, 1, 2]


def _feed(stage: PipelineStage[int], n_items: int) -> None:
    with stage as last, PipelineStage(last.put) as middle:
        for i in range(n_items):
            middle.put(i)


def test_what_was_put_before_a_failure_of_the_feeder_is_worked_on() -> None:
    seen: list[int] = []
    with suppress(IndexError), PipelineStage(seen.append) as stage:
        stage.put(1)
        stage.put([][0])
    assert seen == [1]


@pytest.mark.parametrize("n_items", [1, 3])
def test_an_interrupt_does_not_wait_for_a_stage_that_hangs(monkeypatch: pytest.MonkeyPatch, n_items: int) -> None:
    monkeypatch.setattr("bncli.steps.run._INTERRUPT_SECONDS", 0.01)
    started, released = threading.Event(), threading.Event()
    seen: list[int] = []

    def work(item: int) -> None:
        started.set()
        released.wait()
        seen.append(item)

    with pytest.raises(KeyboardInterrupt):
        _put_and_interrupt(stage := PipelineStage(work), started, n_items)
    released.set()
    stage._thread.join(5)
    assert not stage._thread.is_alive()
    assert seen == [0]


def _put_and_interrupt(stage: PipelineStage[int], started: threading.Event, n_items: int) -> None:
    with stage:
        for i in range(n_items):
            stage.put(i)
        started.wait()
        raise KeyboardInterrupt


ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that replaces the files in which Linux describes its memory."""
    monkeypatch.setattr(run_module, "PROC", tmp_path)
    monkeypatch.setattr(run_module, "CGROUP", tmp_path)
    return tmp_path


def describe(machine: Path, **files: str) -> None:
    for name, text in files.items():
        machine.joinpath(name.replace("_", ".") if name.startswith("memory") else name).write_text(text)


def test_the_memory_that_linux_reports(machine: Path) -> None:
    describe(machine, meminfo="MemTotal: 900 kB\nMemAvailable:   700 kB\n")
    assert free_memory() == 700 * 1024


def test_a_container_may_allow_less(machine: Path) -> None:
    describe(machine, meminfo="MemAvailable: 700 kB\n", memory_max="5000\n", memory_current="4000\n")
    describe(machine, memory_stat="anon 1\ninactive_file 1500\n")
    assert free_memory() == 2500
    describe(machine, memory_max="max\n")
    assert free_memory() == 700 * 1024


@pytest.mark.parametrize("text", ["", "MemAvailable:", "MemAvailable: much kB", "Nothing: 1 kB"])
def test_elsewhere_all_memory_counts(machine: Path, text: str) -> None:
    describe(machine, meminfo=text)
    found = free_memory()
    assert found is None or found > 1 << 20


def test_nothing_known(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sysconf")
    assert free_memory() is None


def test_this_machine_has_some() -> None:
    assert (free_memory() or 1 << 30) > 1 << 20


def test_limits_that_are_set_stay(machine: Path) -> None:
    describe(machine, meminfo="MemAvailable: 700 kB\n")
    assert with_memory_limit(Run(3)) == Run(3, 700 * 1024, time.monotonic)
    own = Run(memory=7, clock=time.process_time)
    assert with_memory_limit(own) == own


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("memory_", "memory.")).write_text(text)


def test_every_group_around_the_own_one_counts(machine: Path) -> None:
    group(machine / "self", cgroup="0::/outer/inner\n")
    group(machine / "outer", memory_max="900\n", memory_current="500\n", memory_stat="inactive_file 50\n")
    group(machine / "outer/inner", memory_max="max\n", memory_high="800\n", memory_current="100\n", memory_stat="")
    describe(machine, meminfo="MemAvailable: 700 kB\n")
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
    describe(machine, meminfo="MemAvailable: 700 kB\n")
    assert free_memory() == 800


def test_in_a_container_the_path_of_the_group_may_not_be_there(machine: Path) -> None:
    group(machine / "self", cgroup="0::/not/here\n")
    group(machine, memory_max="900\n", memory_current="500\n", memory_stat="")
    describe(machine, meminfo="MemAvailable: 700 kB\n")
    assert free_memory() == 400


def test_the_limit_of_the_process_counts() -> None:
    program = "from bncli.steps.run import free_memory; print(free_memory())"
    done = within(1 << 28, "-c", program)
    assert 0 < int(done.stdout) < 1 << 28


def within(limit: int, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run Python with a limit on its address space, in bytes."""

    def limit_it() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, cwd=ROOT, timeout=1200, preexec_fn=limit_it
    )


@pytest.mark.slow
def test_a_wide_table_is_read_within_a_few_times_its_size(tmp_path: Path) -> None:
    """What Arrow reserves and frees for each column must not stay with the process."""
    n = 2500
    cells = [",".join(f"{(t * 7 + i * i) % 1000 / 997:.3f}" for i in range(n)) for t in range(200)]
    text = (
        ",".join(f"x{i}" for i in range(n))
        + ",class\n"
        + "".join(f"{row},{'ab'[t % 2]}\n" for t, row in enumerate(cells))
    )
    words = ("fit", "-", "--structure", "nb", "--param", "map", "-q", "--threads", "1", "-o", str(tmp_path / "m.bnc"))
    done = within(800 << 20, "-m", "bncli", *words, stdin=text.encode())
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture(scope="module")
def twenty_thousand_columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 rows of normal numbers, of which the first twenty columns depend on the class."""
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    values = rng.normal(size=(200, 20_000))
    values[:, :20] += y[:, np.newaxis]
    columns = {f"x{i}": column for i, column in enumerate(values.round(3).T)}
    pyarrow.csv.write_csv(pa.table(columns | {"class": np.array(["a", "b"])[y]}), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("structure", [*STRUCTURES.words, ""])
def test_every_structure_learns_from_a_wide_table_in_2_gb_or_names_a_way(
    structure: str, twenty_thousand_columns: Path, tmp_path: Path
) -> None:
    words = ("fit", str(twenty_thousand_columns), "-q", "--threads", "1", "-o", str(tmp_path / "m.bnc"))
    if structure:
        words += ("--structure", structure)
    if structure and structure not in ("gbn", "kikuchi", "card", "auto"):
        words += ("--penalty", "1")  # the choice of a penalty takes no more memory, and most of the time
    done = within(2_000_000_000, "-m", "bncli", *words)
    if structure in ("gbn", "auto"):
        assert done.returncode == 1
        assert re.fullmatch(rb"Error: .* of memory, but only .* is free; .*(--epsilon|--ignore).*\n", done.stderr)
        assert not (tmp_path / "m.bnc").exists()
    else:
        assert (done.returncode, done.stderr) == (0, b"")


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
    stderr = done.stderr.decode()
    lines = [line for line in stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == done.returncode, stderr
    # A library that cannot start its threads may print a line of its own, before it gives up; jemalloc also at the
    # exit.
    last = [line for line in stderr.splitlines() if not line.startswith("<jemalloc>:")][-1:]
    assert done.returncode == 0 or (last == lines and "memory" in lines[0]), stderr
    assert "Traceback" not in stderr
    assert set(os.listdir(tmp_path)) <= {"m.bnc"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems ignore the limit")
@pytest.mark.parametrize("megabytes", [100, 230, 320])
def test_running_out_of_memory_is_one_line(megabytes: int, tmp_path: Path) -> None:
    assert_ends_well_or_with_a_line(COMMANDS["nb"], megabytes, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems ignore the limit")
@pytest.mark.parametrize("megabytes", [60, *range(150, 700, 100), 1000])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_whatever_the_limit(command: tuple[str, ...], megabytes: int, tmp_path: Path) -> None:
    assert_ends_well_or_with_a_line(command, megabytes, tmp_path)
