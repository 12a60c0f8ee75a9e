"""`--knowledge FILE`: constraints in a file, from the command line to the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bncli as python_interface
from bncli.files.artifacts.model import read_model

from .conftest import Bncli

KNOWN = 'forbid = [["radius", "size"]]\nrequire = [["texture", "outline"]]\nroot = "texture"\n'


def test_the_model_obeys_and_records_what_is_known(bncli: Bncli) -> None:
    Path("k.toml").write_text(KNOWN)
    assert bncli("fit", "tumours.csv", "--structure", "tan", "--knowledge", "k.toml", "-q", "-o", "m.bnc").code == 0
    assert bncli("export", "m.bnc", "--to", "json", "-o", "m.json").code == 0
    document = json.loads(Path("m.json").read_text())
    assert document["parents"]["outline"] == ["diagnosis", "texture"]
    assert document["parents"]["texture"] == ["diagnosis"]
    assert "radius" not in document["parents"]["size"]
    recorded = read_model("m.bnc").recipe.knowledge
    assert json.loads(recorded) == {
        "forbid": [["radius", "size"]],
        "require": [["texture", "outline"]],
        "root": "texture",
    }


@pytest.mark.slow
def test_step_by_step_gives_the_same_bytes(bncli: Bncli) -> None:
    Path("k.toml").write_text(KNOWN)
    options = ("--structure", "tan", "--knowledge", "k.toml", "-q")
    assert bncli("fit", "tumours.csv", *options, "-o", "one.bnc").code == 0
    assert bncli("discretize", "tumours.csv", "--cuts-out", "c.json", "-q").code == 0
    assert bncli("learn-structure", "tumours.csv", "--cuts", "c.json", *options, "-o", "s.json").code == 0
    steps = ("--cuts", "c.json", "--structure", "s.json", "-q", "-o", "steps.bnc")
    assert bncli("fit", "tumours.csv", *steps).code == 0
    assert Path("one.bnc").read_bytes() == Path("steps.bnc").read_bytes()


@pytest.mark.slow
def test_evaluate_compare_and_python_take_it(bncli: Bncli) -> None:
    Path("k.toml").write_text('no_interaction = [["petal_length", "*"]]\n')
    assert bncli("evaluate", "iris.csv", "--param", "map", "--knowledge", "k.toml", "--folds", 2, "-q").code == 0
    learner = "a=--structure kdb --param map --knowledge k.toml"
    assert bncli("compare", "iris.csv", "--learner", learner, "--folds", 2, "--jobs", 1, "-q").code == 0
    for known in ("k.toml", Path("k.toml"), {"no_interaction": [["petal_length", "*"]]}):
        model = python_interface.fit("iris.csv", structure="kdb", param="map", knowledge=known)
        assert "petal_length" not in {name for pair in _arcs(model) for name in pair}


def _arcs(model: python_interface.Model) -> list[tuple[str, str]]:
    model.save("python.bnc")
    loaded = read_model("python.bnc")
    names = [attribute.name for attribute in loaded.schema.attributes]
    return [(names[j], names[i]) for i, parents in enumerate(loaded.structure.parents) for j in parents]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "options", "code", "what"),
    [
        ('forbid = [["age", "size"]]', (), 2, "--knowledge names 'age', which is not an attribute of the table"),
        ('root = "diagnosis"', (), 2, "which is the class"),
        ("root = ", (), 1, "k.toml"),
        ('roots = "size"', (), 2, "did you mean root?"),
        ('require = [["size", "radius"], ["radius", "size"]]', (), 2, "cycle"),
        ('require = [["size", "radius"]]', ("--structure", "nb"), 2, "does not combine attributes"),
        ('require = [["size", "radius"]]', ("--structure", "interactions"), 2, "has no arcs"),
        ('require = [["size", "radius"]]', ("--structure", "auto"), 2, "--structure auto"),
        ('require = [["size", "radius"]]', ("--structure", "tan", "--arcs", "cv"), 2, "--arcs cv"),
        ('require = [["size", "radius"], ["texture", "radius"]]', ("--structure", "tan"), 2, "2 parents of 'radius'"),
        ('require = [["size", "radius"], ["texture", "radius"]]', ("--structure", "kdb"), 2, "raise --k"),
        (
            'require = [["size", "radius"], ["texture", "radius"]]',
            ("--structure", "hill-climb", "--max-parents", "1"),
            2,
            "raise --max-parents",
        ),
    ],
)
def test_what_cannot_be_obeyed_is_one_line(
    bncli: Bncli, content: str, options: tuple[str, ...], code: int, what: str
) -> None:
    Path("k.toml").write_text(content)
    done = bncli("fit", "tumours.csv", "--knowledge", "k.toml", *options, "-o", "m.bnc")
    assert (done.code, done.out) == (code, "")
    assert what in done.err
    assert done.err.strip().splitlines()[-1].startswith(("Error", "Usage")) or "Error" in done.err
    assert "Traceback" not in done.err
    assert not Path("m.bnc").exists()
