"""The moves of a search by name, in the reports of both steps that learn a structure."""

from __future__ import annotations

from pathlib import Path

import pytest

from bncli.files.table import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.moves import Moves, NamedMove
from bncli.watch import Event, Move, Note, Stage
from tests.datasets import schema_of

IRIS = Source((str(Path(__file__).parents[2] / "sample_data" / "iris.csv"),))
CLIMB = Recipe.of(structure="hill-climb", structure_score="k2", param="map")


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
    learnt = learn_structure(IRIS, CLIMB)
    fitted = fit(IRIS, CLIMB, output=str(tmp_path / "m.bnc"))
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
