"""How a step carries out a run: seconds on a clock that the test turns, moves by name, iterations, free memory."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from bncli.errors import BncliError
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps import run
from bncli.steps.evaluate.evaluate import EvaluateOutputs, evaluate
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.run import TRACED, Moves, NamedMove, Stopwatch, Trace
from bncli.watch import Event, Iteration, Move, Note, SelectedRun, Stage
from tests.datasets import schema_of


def test_stages_are_timed_and_events_handed_on() -> None:
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


def test_a_trace_is_of_the_run_that_is_kept(tmp_path: Path) -> None:
    trace = Trace(lambda event: None)
    for n, value in enumerate((-5.0, -1.0, -3.0)):
        for i in range(n + 1):
            trace(Iteration(i, value, 0.0, 1.0, 1.0, i + 1, i + 1))
    trace(SelectedRun(1))
    trace.write(str(tmp_path / "t.csv"))
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [(row["iteration"], row["cll"]) for row in rows] == [("0", "-1.0"), ("1", "-1.0")]
    assert float(rows[0]["seconds"]) == 0.0


def test_moves_are_kept_by_name_and_everything_is_handed_on() -> None:
    seen: list[Event] = []
    moves = Moves(seen.append)
    events = [Stage("structure"), Move("add", 1, 0, 2.5), Note("odd"), Move("reverse", 1, 0, 0.5)]
    for event in events:
        moves(event)
    assert seen == events
    names = moves.named(schema_of((2, 2), 2, names=("age", "pulse")))
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
def test_nothing_is_told_where_nobody_searches(word: str) -> None:
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
def test_every_step_that_learns_asks(step: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "free_memory", lambda: 100)
    with pytest.raises(BncliError, match=r"compares 9 attributes two by two: about 0\.0 MiB of memory"):
        LEARNING[step](str(tmp_path / "m.bnc"))
    assert not list(tmp_path.iterdir())


def test_iterations_become_rows(tmp_path: Path) -> None:
    seen: list[Event] = []
    trace = Trace(seen.append)
    events = [
        Iteration(0, -10.125, 0.0, 3.0, 0.0, 1, 1),
        Note("x"),
        Iteration(1, -0.1 - 0.2, 1e-17, 2.5, 1.0, 3, 2, 123456789012345),
        Iteration(2, None, 0.0, 2.0, 1.0, 4, 4, None, -20.5),
    ]
    for event in events:
        trace(event)
    trace.write(str(tmp_path / "t.csv"))
    rows = list(csv.reader((tmp_path / "t.csv").read_text().splitlines()))
    assert seen == events
    assert tuple(rows[0]) == TRACED
    told = [tuple(float(cell) if cell else None for cell in row[:-1]) for row in rows[1:]]
    assert told == [event for event in events if isinstance(event, Iteration)]
    assert [row[-3] for row in rows[1:]] == ["", "123456789012345", ""]
    assert [float(row[-1]) >= 0 for row in rows[1:]] == [True] * 3


def test_the_columns() -> None:
    counts = ("cll_evaluations", "gradient_evaluations", "flops", "ll", "seconds")
    assert ("iteration", "cll", "penalty", "gradient_norm", "step", *counts) == TRACED


def test_without_iterations_only_the_header(tmp_path: Path) -> None:
    trace = Trace(lambda event: None)
    trace.write(str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == ",".join(TRACED) + "\n"
