"""The free memory is the least that the system and a container allow; what cannot be read is no limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bncli.errors import BncliError
from bncli.files.table import Source
from bncli.recipe import Recipe
from bncli.steps import evaluate, fit, learn_structure, memory
from bncli.steps.memory import free_memory

TIC_TAC_TOE = Source((str(Path(__file__).parents[2] / "sample_data" / "tic_tac_toe.csv"),))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the files in which Linux tells of its memory; empty."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
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


LEARNING: dict[Any, Callable[[Path], object]] = {
    fit: lambda path: fit.fit(TIC_TAC_TOE, Recipe(), output=str(path)),
    evaluate: lambda path: evaluate.evaluate(TIC_TAC_TOE, Recipe(), predictions=f"{path}.csv"),
    learn_structure: lambda path: learn_structure.learn_structure(TIC_TAC_TOE, Recipe(), output=f"{path}.json"),
}


@pytest.mark.parametrize("step", LEARNING)
def test_every_step_that_learns_asks(step: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(step, "free_memory", lambda: 100)
    with pytest.raises(BncliError, match=r"compares 9 attributes two by two: about 0\.0 MiB of memory"):
        LEARNING[step](tmp_path / "m.bnc")
    assert not list(tmp_path.iterdir())
