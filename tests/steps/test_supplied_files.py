"""What a given file says of how it was made, and which file named a class that is not there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bncli.engine.structures.named_structure import NamedDag, NamedRegions
from bncli.errors import BncliError, UsageError
from bncli.files.structure import write_structure
from bncli.recipe import Recipe
from bncli.steps.supplied_files import class_named_by, file_with_class, kind_of_structure, recipe_for


def told(path: str | None, class_name: str | None, what: str, hint: str = "") -> str:
    with pytest.raises(UsageError) as caught, class_named_by(path, class_name):
        raise UsageError(what, where="x.csv", hint=hint)
    return str(caught.value)


def test_the_file_is_named() -> None:
    assert told("st.json", "y", "no column 'y'") == "no column 'y', x.csv; st.json names it as the class"
    assert told("st.json", "y", "no column 'y'", "'Y'?") == "no column 'y', x.csv; st.json names it as the class; 'Y'?"


def test_other_errors_stay_as_they_are() -> None:
    assert told("st.json", "y", "no column 'z'") == "no column 'z', x.csv"
    assert told(None, "y", "no column 'y'") == "no column 'y', x.csv"


def test_without_an_error_nothing_happens() -> None:
    with class_named_by("st.json", "y"):
        pass


def test_which_file_says_what_the_class_is() -> None:
    marked, unmarked = NamedDag("y", {"a": ("y",)}, where="st.json"), NamedDag(None, {"a": ("y",)}, where="st.bif")
    assert file_with_class(marked, "cuts.json") == "st.json"
    assert file_with_class(unmarked, "cuts.json") == "cuts.json"
    assert file_with_class(None, "cuts.json") == "cuts.json"
    assert file_with_class(unmarked, None) is None


REGIONS = NamedRegions("y", (("a",), ("a", "b")), None, "kikuchi", {"max_order": 3, "theta": 2.0})
GRAPH = NamedDag("y", {"a": ("y",)}, "kdb", {"k": 2})


def test_which_kind_of_structure_a_file_holds(tmp_path: Path) -> None:
    write_structure(str(tmp_path / "r"), REGIONS)
    write_structure(str(tmp_path / "g"), GRAPH)
    assert [kind_of_structure(str(tmp_path / name)) for name in "rg"] == ["kikuchi", ""]
    (tmp_path / "broken").write_text('{"format": "bncli-structure", "version": 1, "class": "y", "regions": [[]]}')
    with pytest.raises(BncliError, match=r"regions\[0\] is empty"):
        kind_of_structure(str(tmp_path / "broken"))


def test_a_pipe_is_left_to_whoever_reads_it() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"{}")
    assert not kind_of_structure(f"/dev/fd/{reader}")
    assert os.read(reader, 9) == b"{}"
    os.close(reader)
    os.close(writer)


def test_the_recipe_names_what_made_the_structure() -> None:
    recipe = Recipe.of(param="map")
    assert recipe_for(recipe, None) is recipe
    made = recipe_for(recipe, GRAPH)
    assert (made.structure, made.k, made.theta) == ("kdb", 2, None)
    made = recipe_for(recipe, REGIONS)
    assert (made.structure, made.max_order, made.theta) == ("kikuchi", 3, 2.0)


def test_the_theta_of_regions_is_typed_or_of_the_file_or_the_default() -> None:
    recipe, plain = Recipe.of(param="map"), replace(REGIONS, options={})
    assert recipe_for(recipe.replaced(theta=0.5), REGIONS).theta == 0.5
    assert recipe_for(recipe, plain).theta == 1.0
    with pytest.raises(BncliError, match=r"option 'theta' is -1\.0, r\.json; it should exceed 0"):
        recipe_for(recipe, replace(REGIONS, options={"theta": -1}, where="r.json"))
