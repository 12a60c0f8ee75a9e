"""Tables with many more columns than rows: the work grows with the columns, not with their square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.files.reading.source import Source
from bncli.files.reading.table import Table
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.evaluate.evaluate import evaluate
from bncli.steps.fit import fit
from bncli.watch import silent

ROWS, FEW, MANY = 30, 100, 400
RECIPES = {"map": Recipe.of(structure="nb", param="map"), "the default": Recipe.of(structure="nb")}


def write_table(path: Path, n_columns: int) -> Source:
    """Numbers, words and codes in turn; a tenth of them tell something of the class."""
    rows = [",".join(f"a{i}" for i in range(n_columns)) + ",class"]
    for t in range(ROWS):
        told = [(t * (i + 3) * 7919 + i * i) % 97 + (t % 2) * 50 * (i % 10 == 0) for i in range(n_columns)]
        fields = (f"{v / 7:.3f}" if i % 3 == 0 else "abc"[v % 3] if i % 3 == 1 else str(v) for i, v in enumerate(told))
        rows.append(",".join(fields) + f",{'pq'[t % 2]}")
    path.write_text("\n".join(rows) + "\n")
    return Source((str(path),))


def count_calls(work: Callable[[], object]) -> int:
    """How many functions are called, those written in C included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


STEPS: dict[str, Callable[[Source, str], object]] = {
    "fit map": lambda source, path: fit(source, RECIPES["map"], output=path),
    "fit": lambda source, path: fit(source, RECIPES["the default"], output=path),
    "evaluate": lambda source, path: evaluate(source, RECIPES["map"], Protocol(2)),
    "discretize": lambda source, path: discretize(source, Recipe(), cuts_out=f"{path}.json"),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_calls_grow_with_the_columns(step: str, tmp_path: Path) -> None:
    work = STEPS[step]
    tables = {n: write_table(tmp_path / f"{n}.csv", n) for n in (FEW, MANY)}
    work(tables[FEW], str(tmp_path / "warm"))  # imports are not counted
    few, many = (count_calls(partial(work, tables[n], str(tmp_path / "m.bnc"))) for n in (FEW, MANY))
    assert many <= 1.2 * MANY / FEW * few


@pytest.mark.slow
def test_a_wide_table_is_read_in_few_blocks(tmp_path: Path) -> None:
    source = write_table(tmp_path / "wide.csv", 20_000)
    with Table(source, keep=False) as table:
        assert len(list(table.raw_blocks((), silent))) == 1
