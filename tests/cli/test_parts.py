"""Files of one table that do not fit together, through the commands: one line that names the file, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Bncli


def written(path: str, x: list[str]) -> str:
    rows = "".join(f"{value},{'uv'[i % 2]},{'ab'[i // 2 % 2]}\n" for i, value in enumerate(x))
    Path(path).write_text(f"x,z,class\n{rows}")
    return path


def parts() -> tuple[str, str]:
    return written("numbers.csv", [f"{i / 8}" for i in range(40)]), written("names.csv", ["low", "high"] * 20)


@pytest.mark.parametrize("command", ["fit", "encode", "discretize"])
def test_a_column_of_two_types(bncli: Bncli, command: str) -> None:
    ran = bncli(command, *parts(), "-o", "out")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "Error: column 'x' has numbers in numbers.csv, but 'low' here, names.csv; " in ran.err
    assert not Path("out").exists()
    assert bncli(command, *parts(), "--categorical", "x", "-o", "out").code == 0


@pytest.mark.parametrize("first", [0, 1])
def test_counting_names_the_file(bncli: Bncli, first: int) -> None:
    one, other = parts()[first], parts()[1 - first]
    assert bncli("discretize", one, "--cuts-out", "cuts.json").code == 0
    ran = bncli("count", one, other, "--cuts", "cuts.json", "-o", "all.counts")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert f"{other} line 2" in ran.err
    assert not Path("all.counts").exists()


@pytest.mark.parametrize("command", ["fit", "encode"])
def test_a_column_that_one_file_lacks(bncli: Bncli, command: str) -> None:
    first, _ = parts()
    Path("lacking.csv").write_text("z,class\nu,a\nv,b\n")
    ran = bncli(command, first, "lacking.csv", "-o", "out")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "the files have different columns: 'x' is in numbers.csv but not in lacking.csv" in ran.err
    assert not Path("out").exists()
