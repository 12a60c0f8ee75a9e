"""The manual's sentence about arcs follows from its figures, and a typed structure is the one that is searched for."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from bncli.engine.structures.named_structure import name_structure
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from tests.published import arcs
from tests.transcripts import ROOT

SMALL = 50_000
"""Bytes up to which a table is tried: what is searched for depends on kinds of columns, not on the number of rows."""
TABLES = sorted(Path(os.environ["BNCLI_DATA"]).glob("*.csv*")) if "BNCLI_DATA" in os.environ else []
TABLES = [path for path in TABLES if path.stat().st_size <= SMALL]


def test_the_manual_says_what_the_figures_say() -> None:
    page = (ROOT / "bncli" / "manual" / "penalties.md").read_text()
    assert "\n".join(textwrap.wrap(arcs.sentence(), 120, break_on_hyphens=False)) in page


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["tan", "kdb"])
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_the_arcs_of_a_typed_structure_are_those_of_learn_structure(tmp_path: Path, path: Path, structure: str) -> None:
    source, out = Source((str(path),)), str(tmp_path / "s.json")
    recipe = Recipe.of(structure=structure, penalty=1.0)
    learn_structure(source, Recipe.of(structure=structure), output=out)
    fit(source, recipe, output=str(tmp_path / "m.bnc"))
    model = read_model(str(tmp_path / "m.bnc"))
    supplied = read_supplied(structure_path=out).structure
    assert supplied is not None
    named = name_structure(model.structure, model.schema)
    assert named == name_structure(supplied.resolve(model.schema), model.schema)
