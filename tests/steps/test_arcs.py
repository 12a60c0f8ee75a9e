"""Arcs chosen on held-out rows, from recipe to model file: what is recorded, and that files stand in for learning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.engine.structures.structure import Dag
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.recipe.defaults import SuppliedKinds
from bncli.steps.fit import FitReport, fit
from bncli.steps.inspect import inspect
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from bncli.watch import Note, Run

NOISE, PARITY = "noise", "parity"


def table(folder: Path, kind: str) -> Source:
    """120 rows of four binary attributes: the class is unrelated to them, or the parity of two."""
    rng = np.random.default_rng(11)
    x = rng.integers(0, 2, (120, 4))
    label = rng.integers(0, 2, 120) if kind == NOISE else x[:, 0] ^ x[:, 2]
    rows = "".join(f"{','.join(f'v{v}' for v in row)},{y}\n" for row, y in zip(x, label, strict=True))
    path = folder / f"{kind}.csv"
    path.write_text("a,b,c,d,class\n" + rows)
    return Source((str(path),))


def fitted(folder: Path, kind: str, **words: Any) -> tuple[FitReport, Dag]:
    report = fit(table(folder, kind), Recipe.of(**words), output=str(folder / "m.bnc"))
    structure = read_model(report.model).structure
    assert isinstance(structure, Dag)
    return report, structure


def test_arcs_that_tell_nothing_are_left_out_and_what_was_tried_is_told(tmp_path: Path) -> None:
    report, structure = fitted(tmp_path, NOISE)
    assert (report.arcs, report.used, structure.n_arcs) == (0, 0, 0)
    tried = report.as_json()["arcs_cv"]
    assert [one["arcs"] for one in tried] == ["class", "none", "all"]
    assert [one["n_arcs"] for one in tried] == [0, 0, 3]
    assert inspect(report.model).as_json()["arcs_cv"] == tried


def test_a_structure_that_is_typed_keeps_its_arcs_and_one_note_says_what_rows_prefer(tmp_path: Path) -> None:
    notes: list[str] = []

    def watch(event: object) -> None:
        notes.extend([event.text] if isinstance(event, Note) else [])

    recipe, output = Recipe.of(structure="tan"), str(tmp_path / "m.bnc")
    report = fit(table(tmp_path, NOISE), recipe, output=output, run=Run(watch=watch, advise=True))
    assert (report.arcs, report.as_json()["arcs_cv"], recipe.arcs) == (3, [], "all")
    (note,) = (note for note in notes if "naive Bayes" in note)
    assert "with all 3 arcs of tan; add --arcs cv to choose arcs by held-out log-loss" in note
    kept = Path(output).read_bytes()
    alone, joined = (float(figure) for figure in re.findall(r"0\.\d+", note))
    tried = {one.arcs: one.log_loss for one in fitted(tmp_path, NOISE)[0].penalty_cv.arcs}  # type: ignore[union-attr]
    assert joined == pytest.approx(tried["all"], rel=1e-3)
    assert alone == pytest.approx(tried["none"], rel=1e-3)
    notes.clear()
    fit(table(tmp_path, NOISE), Recipe.of(structure="tan", arcs="all"), output=output, run=Run(watch=watch))
    assert Path(output).read_bytes() == kept
    assert not any("naive Bayes" in note for note in notes)


@pytest.mark.parametrize(("kind", "learned"), [(NOISE, "the class alone"), (PARITY, "1 of 3 arcs")])
def test_arcs_are_chosen_at_a_penalty_that_is_typed(tmp_path: Path, kind: str, learned: str) -> None:
    report, structure = fitted(tmp_path, kind, structure="tan", penalty=2.0, arcs="cv")
    assert (report.penalty, report.structure_learned) == (2.0, f"{learned}, chosen from tan on held-out rows")
    assert (structure.n_arcs > 0) == (kind == PARITY)
    assert {one["lambda"] for one in report.as_json()["arcs_cv"]} == {2.0}
    kept = fitted(tmp_path, kind, structure="tan", penalty=2.0, arcs="all")[0]
    harmless = Path(kept.model).read_bytes()
    assert Path(fitted(tmp_path, kind, structure="tan", penalty=2.0)[0].model).read_bytes() == harmless


def test_arcs_that_carry_the_class_stay(tmp_path: Path) -> None:
    report, structure = fitted(tmp_path, PARITY)
    assert report.arcs == structure.n_arcs >= 1
    assert 2 in structure.parents[0] or 0 in structure.parents[2]


@pytest.mark.parametrize("kind", [NOISE, PARITY])
def test_all_keeps_what_the_search_found(tmp_path: Path, kind: str) -> None:
    report, structure = fitted(tmp_path, kind, arcs="all")
    assert structure.n_arcs == 3
    assert report.as_json()["arcs_cv"] == []
    assert read_model(report.model).recipe.arcs == "all"


def test_a_penalty_that_is_typed_keeps_all_arcs(tmp_path: Path) -> None:
    report, structure = fitted(tmp_path, NOISE, penalty=1.0)
    assert structure.n_arcs == 3
    assert read_model(report.model).recipe.arcs is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (NOISE, {}),
        (PARITY, {"structure": "kdb", "k": 2}),
        pytest.param(NOISE, {"structure": "kdb", "k": 2}, marks=pytest.mark.slow),
        pytest.param(PARITY, {}, marks=pytest.mark.slow),
        pytest.param(NOISE, {"structure": "nb"}, marks=pytest.mark.slow),
        pytest.param(PARITY, {"structure": "nb"}, marks=pytest.mark.slow),
        pytest.param(NOISE, {"structure": "kdb", "k": 0}, marks=pytest.mark.slow),
        pytest.param(PARITY, {"structure": "kdb", "k": 0}, marks=pytest.mark.slow),
    ],
)
def test_a_structure_file_gives_the_same_bytes(tmp_path: Path, kind: str, words: dict[str, Any]) -> None:
    once, _ = fitted(tmp_path, kind, **words)
    expected = Path(once.model).read_bytes()
    data, structure = table(tmp_path, kind), str(tmp_path / "s.json")
    learn_structure(data, Recipe.of(**words), output=structure)
    from_file = Recipe.of(files=SuppliedKinds(structure=structure))
    again = fit(data, from_file, output=str(tmp_path / "again.bnc"), supplied=read_supplied(None, structure))
    assert Path(again.model).read_bytes() == expected


@pytest.mark.parametrize(("arcs", "kept"), [(None, 1), ("all", 1), ("cv", 0)])
def test_a_hand_made_structure_stays_as_it_is_unless_asked(tmp_path: Path, arcs: str | None, kept: int) -> None:
    path = tmp_path / "hand.json"
    parents = '{"a": ["class"], "b": ["class", "a"], "c": ["class"]}'
    path.write_text(f'{{"format": "bncli-structure", "version": 1, "class": "class", "parents": {parents}}}')
    supplied, recipe = (
        read_supplied(None, str(path)),
        Recipe.of(files=SuppliedKinds(structure=str(path)), arcs=arcs),
    )
    report = fit(table(tmp_path, NOISE), recipe, output=str(tmp_path / "m.bnc"), supplied=supplied)
    assert report.arcs == kept
    assert read_model(report.model).recipe.arcs == (arcs or "all")
