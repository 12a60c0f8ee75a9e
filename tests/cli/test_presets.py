"""The presets: every learner is what its paper says, and learns a small table without a warning."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest

from bncli.catalogue import PARAMETERS, STRUCTURES
from bncli.cli.learners import ALL_METHODS, CUTS, PAPERS, PRESETS, parse_learners
from bncli.cli.learners import parse_learner as learner
from bncli.engine.data.columns import Columns
from bncli.engine.learn import learn
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.compare.entries import check_names
from bncli.watch import Event, Note, Run
from tests.transcripts import ROOT

MOST = 50
"""Iterations here: a climb to the end may take seconds."""
EVERY = tuple(dict.fromkeys(chain.from_iterable(texts for _, texts in PRESETS.values())))


@cache
def table(name: str) -> Columns:
    """Every third row of a sample table, four attributes."""
    columns = read_columns(Source((str(ROOT / "sample_data" / f"{name}.csv"),)))
    attributes = dict(list(columns.attributes.items())[:4])
    return replace(columns, attributes=attributes).take(np.arange(0, columns.n_rows, 3))


@pytest.mark.parametrize("preset", PRESETS)
def test_learners_of_a_preset_exist_and_differ(preset: str) -> None:
    made = parse_learners([], [preset], 0)
    assert len(made) == len(PRESETS[preset][1])
    assert len({one.name for one in made}) == len(made)
    assert len({one.recipe for one in made}) == len(made)


def test_all_presets_go_together() -> None:
    made = parse_learners([], list(PRESETS), 0)
    check_names(made)
    assert len(made) == len(EVERY)
    assert PRESETS["papers"][1] == tuple(chain.from_iterable(PRESETS[word][1] for word in PAPERS))


def test_all_methods_are_all_methods() -> None:
    recipes = [learner(text, 0).recipe for text in ALL_METHODS]
    assert {one.structure for one in recipes} == {method.word for method in STRUCTURES.methods}
    assert {one.param for one in recipes} == {method.word for method in PARAMETERS.methods}


@pytest.mark.parametrize("text", EVERY)
def test_every_learner_learns_without_a_warning(text: str) -> None:
    events: list[Event] = []
    one = learner(text, 0)
    most = one.recipe.max_iterations
    recipe = one.recipe.replaced(max_iterations=None if most is None else min(most, MOST))
    names = ("iris", "wine_holes") if one.name.startswith("greiner") else ("iris",)
    for name in names:
        learnt = learn(table(name), recipe, run=Run(watch=events.append))
        assert learnt.model.attributes
        assert (learnt.n_missing > 0) == (name == "wine_holes")
    assert [event.text for event in events if isinstance(event, Note) and event.warning] == []


def of(preset: str) -> dict[str, Recipe]:
    """The recipes of a paper, by the rest of the names."""
    return {one.name.partition(" ")[2]: one.recipe for one in parse_learners([], [preset], 0)}


def settings(recipe: Recipe, **expected: Any) -> dict[str, Any]:
    """What a recipe says of the options in question."""
    return {key: getattr(recipe, key) for key in expected}


def test_what_all_papers_have() -> None:
    for text in PRESETS["papers"][1]:
        recipe = learner(text, 0).recipe
        assert (recipe.discretize, recipe.group_levels) == ("mdl", "off")
        assert recipe.penalty in (0.0, None)
        assert recipe.arcs is None, "all arcs are kept where no penalty is chosen"
        assert text.endswith(CUTS)


def test_zaidi() -> None:
    """Section 7: MDL cuts, missing as a value, L-BFGS without a penalty from 0, to 1e-32 or 10,000 iterations."""
    found = of("zaidi")
    climb: dict[str, Any] = {
        "penalty": 0.0, "optimizer": "lbfgs", "preconditioner": "off", "tolerance": 1e-32, "max_iterations": 10_000,
        "init": "zero",
    }  # fmt: skip
    shapes: dict[str, dict[str, Any]] = {
        "nb": {"structure": "nb"},
        "tan": {"structure": "tan", "structure_score": "cmi"},
        "kdb1": {"structure": "kdb", "k": 1},
    }
    params = {"": "map", " w": "weighted", " d": "discriminative", " e": "extended"}
    assert set(found) == {f"{shape}{letter}" for shape in shapes for letter in params}
    for shape, structure in shapes.items():
        for letter, param in params.items():
            recipe = found[shape + letter]
            expected = {**structure, "param": param, "missing_policy": "level"}
            if letter:
                expected |= climb
            if letter in ("", " w"):
                expected["smoothing"] = "m-estimate:1"
            if letter == " w":
                expected |= {"level": 4}
            assert settings(recipe, **expected) == expected, shape + letter


def test_greiner() -> None:
    """Sections 4 and 5: frequencies with Laplace's correction; ELR by conjugate gradients from them, cross-tuned."""
    found = of("greiner")
    params: dict[str, dict[str, Any]] = {
        "ofe": {"param": "map"},
        "elr": {"param": "extended", "init": "generative", "penalty": 0.0, "optimizer": "cg", "early_stop": "cv"},
        "em": {"param": "em"},
        "apn": {"param": "apn", "optimizer": "cg"},
    }
    assert set(found) == {f"{structure} {name}" for structure in ("nb", "tan", "gbn") for name in params}
    for name, recipe in found.items():
        structure, param = name.split()
        expected = {"structure": structure, "smoothing": "laplace:1", "missing_policy": "marginalize", **params[param]}
        assert settings(recipe, **expected) == expected, name


def test_carvalho() -> None:
    """Section 5: optimal trees by each score, N' = 5."""
    expected: dict[str, dict[str, Any]] = {
        "tan ll": {"structure_score": "ll", "param": "map", "smoothing": "fgg:5"},
        "tan acll": {"structure_score": "acll:5/1,1000", "param": "acll", "pseudo_counts": 5.0},
        "tan uniform": {"structure_score": "acll-uniform:5", "param": "acll-uniform", "pseudo_counts": 5.0},
    }
    found = of("carvalho")
    assert {name: settings(recipe, **expected[name]) for name, recipe in found.items()} == expected
    assert {(recipe.structure, recipe.forest) for recipe in found.values()} == {("tan", False)}


def test_feelders() -> None:
    """Sections 4 to 6: greedy perfect graphs by a penalised likelihood; from Laplace's rule, by Nash's CG and BFGS."""
    found = of("feelders")
    spaces = {"lr": "lr", "roos": "lr-roos", "bn": "extended"}
    optimizers = ("cg", "cgb", "bfgs")
    assert set(found) == {f"{space} {optimizer}" for space in spaces for optimizer in optimizers}
    for name, recipe in found.items():
        space, optimizer = name.split()
        expected = {
            "structure": "hill-climb", "structure_score": "bic", "perfect": True, "param": spaces[space],
            "smoothing": "laplace:1", "init": "generative", "penalty": 0.0, "optimizer": optimizer,
            "max_iterations": 200, "missing_policy": "level",
        }  # fmt: skip
        assert settings(recipe, **expected) == expected, name


def test_jakulin() -> None:
    """Sections 6 and 7: one theta for all regions, of up to four variables, missing as a value."""
    for name, recipe in of("jakulin").items():
        expected = {"structure": "kikuchi", "param": name, "theta": 1.0, "max_order": 4, "missing_policy": "level"}
        assert settings(recipe, **expected) == expected
