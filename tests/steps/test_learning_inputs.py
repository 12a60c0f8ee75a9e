"""What a given file says of how it was made, and which file named a class that is not there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bncli.engine.structures.named_structure import NamedDag, NamedRegions
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.structure import write_structure
from bncli.files.exports.structure_json import dump_structure
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.learning_inputs import SuppliedFiles, explain_class_origin, read_supplied
from bncli.watch import Event, Note, Run


def told(path: str | None, class_name: str | None, what: str, hint: str = "") -> str:
    with pytest.raises(UsageError) as caught, explain_class_origin(path, class_name):
        raise UsageError(what, where="x.csv", hint=hint)
    return str(caught.value)


def test_the_file_is_named() -> None:
    assert told("st.json", "y", "no column 'y'") == "no column 'y', x.csv; st.json uses it as the class"
    assert told("st.json", "y", "no column 'y'", "'Y'?") == "no column 'y', x.csv; st.json uses it as the class; 'Y'?"


def test_other_errors_stay_as_they_are() -> None:
    assert told("st.json", "y", "no column 'z'") == "no column 'z', x.csv"
    assert told(None, "y", "no column 'y'") == "no column 'y', x.csv"


def test_without_an_error_nothing_happens() -> None:
    with explain_class_origin("st.json", "y"):
        pass


REGIONS = NamedRegions("y", (("a",), ("a", "b")), None, "kikuchi", {"max_order": 3, "theta": 2.0})
GRAPH = NamedDag("y", {"a": ("y",)}, "kdb", {"k": 2})


def test_which_kind_of_structure_a_file_holds(tmp_path: Path) -> None:
    write_structure(str(tmp_path / "r"), REGIONS)
    write_structure(str(tmp_path / "g"), GRAPH)
    assert [read_supplied(None, str(tmp_path / name)).region_method for name in "rg"] == ["kikuchi", ""]
    (tmp_path / "broken").write_text('{"format": "bncli-structure", "version": 1, "class": "y", "regions": [[]]}')
    with pytest.raises(BncliError, match=r"regions\[0\] is empty"):
        read_supplied(None, str(tmp_path / "broken"))


def test_a_pipe_is_read_once() -> None:
    reader, writer = os.pipe()
    os.write(writer, dump_structure(REGIONS).encode())
    os.close(writer)
    supplied = read_supplied(None, f"/dev/fd/{reader}")
    os.close(reader)
    assert (supplied.structure, supplied.region_method) == (REGIONS, "kikuchi")


def test_nothing_supplied_changes_nothing() -> None:
    recipe = Recipe.of(param="map")
    assert read_supplied() == SuppliedFiles()
    assert SuppliedFiles().update_recipe(recipe) is recipe
    assert SuppliedFiles().region_method == ""


def test_the_recipe_names_what_made_the_structure() -> None:
    recipe = Recipe.of(param="map")
    made = SuppliedFiles(structure=GRAPH).update_recipe(recipe)
    assert (made.structure, made.k, made.theta) == ("kdb", 2, None)
    made = SuppliedFiles(structure=REGIONS).update_recipe(recipe)
    assert (made.structure, made.max_order, made.theta) == ("kikuchi", 3, 2.0)


def test_the_theta_of_regions_is_typed_or_of_the_file_or_the_default() -> None:
    recipe, plain = Recipe.of(param="map"), replace(REGIONS, options={})
    assert SuppliedFiles(structure=REGIONS).update_recipe(recipe.replaced(theta=0.5)).theta == 0.5
    assert SuppliedFiles(structure=plain).update_recipe(recipe).theta == 1.0
    with pytest.raises(BncliError, match=r"option 'theta' is -1\.0, r\.json; it must be above 0"):
        SuppliedFiles(structure=replace(REGIONS, options={"theta": -1}, where="r.json")).update_recipe(recipe)


def test_regions_of_an_ensemble_are_not_taken_for_the_ensemble(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,u,p\n2,v,q\n1,v,q\n2,u,p\n" * 5)
    for method, n_notes in (("auto", 1), ("kikuchi", 0)):
        path = str(tmp_path / f"{method}.json")
        write_structure(path, NamedRegions("y", (("a",), ("b",)), None, method, {}, bins=(40, 8)))
        notes: list[Event] = []
        read_supplied(None, path).read(Source((str(tmp_path / "t.csv"),)), Run(watch=notes.append), Recipe())
        told = [note.text for note in notes if isinstance(note, Note) and note.text.startswith(path)]
        assert len(told) == n_notes
        assert all("one component of an ensemble" in text and "--structure auto" in text for text in told)
