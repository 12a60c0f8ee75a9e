"""Learners as they are typed, and presets: each is what its paper describes, and learns without a warning."""

from __future__ import annotations

import csv
import math
import shlex
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bncli.catalogue import CHOICES, PARAMETERS, STRUCTURES
from bncli.cli.learning_options import ALL_METHODS, FAST, PAPERS, PRESETS, PUBLISHED_CUTS, help_rows, parse_learners
from bncli.cli.learning_options import parse_learner as learner
from bncli.engine.data.columns import Columns
from bncli.engine.learn import learn
from bncli.errors import UsageError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.compare.trials import check_names
from bncli.watch import Event, Note, Run
from tests.cli.conftest import Bncli
from tests.transcripts import ROOT


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("--structure nb", "nb weighted", "--structure nb"),
        ("--param map --structure kdb --k 2", "kdb map k=2", "--param map --structure kdb --k 2"),
        ("--forest --param=map --smoothing=laplace:2", "tan map laplace:2 forest", None),
        ("mine=", "mine", ""),
        ("mine = --penalty=3", "mine", "--penalty=3"),
        ("a=b=--structure nb", "a", None),
        ("my own=--structure skdb --param map", "my own", "--structure skdb --param map"),
        ("--structure kikuchi", "kikuchi kbma", None),
        ("--structure auto", "auto", None),
        ("--param auto", "auto", None),
        ("--structure 'nb' --param \"map\"", "nb map", None),
    ],
)
def test_names_and_options(text: str, name: str, options: str | None) -> None:
    if text.startswith("a=b"):
        with pytest.raises(UsageError, match="unexpected extra argument"):
            learner(text, 0)
        return
    made = learner(text, 0)
    assert set(made.name.split()) == set(name.split())
    assert made.name.split()[:2] == name.split()[:2]
    if options is not None:
        assert made.options == options


def test_the_recipe_is_that_of_fit() -> None:
    assert learner("x=", 0).recipe == Recipe.of(alternatives=True)
    assert learner("--penalty cv", 7).recipe == Recipe(seed=7)
    assert learner("x=--structure nb --param map", 7).recipe == Recipe.of(structure="nb", param="map")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is not a learner, in --learner; options begin with hyphens"),
        ("tan", "'tan' is not a learner, in --learner; options begin with hyphens"),
        ("=--structure nb", "'' is not a valid name for a learner, in --learner '=--structure nb'"),
        ("a=--strukture nb", "No such option.*--strukture.*, in --learner 'a=--strukture nb'"),
        (
            "a=--structure hillclimb",
            "unknown --structure 'hillclimb', in --learner 'a=--structure hillclimb'; did you mean hill-climb",
        ),
        ("a=--structure nb --k 2", "--k has no effect with --structure nb, in --learner"),
        ("a=nb", r"unexpected extra argument \(nb\), in --learner 'a=nb'"),
        ("a=--structure 'nb", "No closing quotation, in --learner"),
        ("a=--structure", "--structure.*requires an argument, in --learner"),
        ("a=--help", "No such option.*--help"),
        ("a=--seed 3", "No such option.*--seed"),
        ("a=--k x --structure kdb", "not a whole number.*, in --learner"),
        ("a=--structure gone.json", r"no structure file 'gone\.json', in --learner"),
        ("a=--structure ''", "the value is empty, in --learner"),
    ],
)
def test_errors_say_which_learner(text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        learner(text, 0)


def test_presets_come_after_what_is_typed() -> None:
    def names(*given: list[str]) -> list[str]:
        return [one.name for one in parse_learners(*given, 0)]

    fast = [text.partition("=")[0] for text in FAST]
    assert names([], []) == names([], ["fast"]) == fast
    assert names(["--structure nb"], []) == ["nb weighted"]
    assert names(["tan map=--param map", "z=--param acll"], ["fast"]) == [
        "tan map",
        "z",
        *(name for name in fast if name != "tan map"),
    ]
    assert names([], ["fast", "all-methods"]) == names([], ["all-methods"])
    jakulin = [text.partition("=")[0] for text in PRESETS["jakulin"][1]]
    assert names([], ["jakulin", "fast"]) == [*jakulin, *fast]


def test_help_rows_are_those_of_the_learning_options() -> None:
    text = "\n".join(" ".join(row) for row in help_rows())
    for choice in CHOICES:
        assert choice.flag in text
        assert all(method.summary in text for method in choice.methods)


MOST = 50
"""Iterations here: a climb to the end may take seconds."""
EVERY = tuple(dict.fromkeys(chain.from_iterable(texts for _, texts in PRESETS.values())))


@cache
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
    if recipe.penalty == "cv":
        recipe = recipe.replaced(penalty=1.0)
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
        assert recipe.penalty in ((0.01,) if text.startswith("jakulin lr=") else (0.0, None))
        assert recipe.arcs is None, "all arcs are kept where no penalty is chosen"
        assert text.endswith(PUBLISHED_CUTS)


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
    """Sections 4 and 5: smoothed frequencies; ELR by conjugate gradients from them, cross-tuned; limits of our page."""
    found = of("greiner")
    limits = {"tolerance": 1e-6, "max_iterations": 60}
    params: dict[str, dict[str, Any]] = {
        "ofe": {"param": "map"},
        "elr": {
            "param": "extended",
            "init": "generative",
            "penalty": 0.0,
            "optimizer": "cg",
            "early_stop": "cv",
            **limits,
        },
        "em": {"param": "em", **limits},
        "apn": {"param": "apn", "optimizer": "cg", **limits},
    }
    assert set(found) == {f"{structure} {name}" for structure in ("nb", "tan", "gbn") for name in params}
    for name, recipe in found.items():
        structure, param = name.split()
        expected = {
            "structure": structure,
            "smoothing": "m-estimate:1",
            "missing_policy": "marginalize",
            **params[param],
        }
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
    """Sections 6 and 7: one theta for all regions, of up to four variables; NB, LR and TAN; missing as a value."""
    regions = {"structure": "kikuchi", "theta": 1.0, "max_order": 4}
    expected: dict[str, dict[str, Any]] = {
        "nb": {"structure": "nb", "param": "map", "smoothing": "bdeu:1"},
        "lr": {"structure": "nb", "param": "lr", "penalty": 0.01},
        "tan": {"structure": "tan", "param": "map", "smoothing": "bdeu:1"},
        "kmap": {**regions, "param": "kmap"},
        "kbma": {**regions, "param": "kbma"},
    }
    found = of("jakulin")
    assert {name: settings(recipe, **expected[name]) for name, recipe in found.items()} == expected
    assert {recipe.missing_policy for recipe in found.values()} == {"level"}


ATTRIBUTES = ("a", "b", "c", "d")
Rows = list[tuple[str, ...]]
Tree = tuple[int | None, ...]
Frequencies = Counter[tuple[tuple[int, ...], tuple[str, ...]]]


@pytest.mark.parametrize("name", ["tan", "tan s"])
def test_friedman(bncli: Bncli, tmp_path: Path, name: str) -> None:
    """Sections 4.1 and 5: the tree of most likelihood on complete rows, and P(x | parents) drawn towards P(x)."""
    table = _table_with_holes()
    text = "\n".join(",".join(row) for row in [(*ATTRIBUTES, "class"), *table])
    (tmp_path / "t.csv").write_text(text + "\n")
    complete = [row for row in table if "" not in row]
    assert 100 < len(complete) < len(table)
    typed = next(text.partition("=")[2] for text in PRESETS["friedman"][1] if text.startswith(f"friedman {name}="))
    assert bncli("fit", "t.csv", "--drop-incomplete", *shlex.split(typed), "-o", "m.bnc").code == 0
    told = list(csv.DictReader(bncli("score", "m.bnc", "t.csv").out.splitlines()))
    found = _frequencies(complete)
    best = max(_trees_of_four(), key=lambda tree: sum(math.log(_joint(found, tree, row, 0.0)) for row in complete))
    # `mle` has a floor of 1e-10, and the prior of `fgg` one uniform row more than the frequencies of the paper
    strength = 5.0 if name == "tan s" else 0.0
    off_by = 0.003 if strength else 1e-8
    for row, line in zip(table, told, strict=True):
        if "" not in row:
            expected = _posterior(found, best, row, strength)
            assert float(line["p_y"]) == pytest.approx(expected, abs=off_by)


def _table_with_holes() -> Rows:
    """400 rows of the attributes and the class, in which d hangs from c, c from a, and b from nothing but the class."""
    draw = np.random.default_rng(5)
    rows: Rows = []
    for _ in range(400):
        y = draw.choice(["n", "y"])
        a = draw.choice(["p", "q", "r"], p=[0.2, 0.3, 0.5] if y == "y" else [0.5, 0.3, 0.2])
        b = draw.choice(["s", "t"], p=[0.6, 0.4] if y == "y" else [0.35, 0.65])
        c = a if draw.random() < 0.6 else draw.choice(["p", "q", "r"])
        d = c if draw.random() < (0.7 if y == "y" else 0.4) else draw.choice(["p", "q", "r"])
        row = [str(value) if draw.random() > 0.05 else "" for value in (a, b, c, d)]
        rows.append((*row, str(y)))
    return rows


def _trees_of_four() -> list[Tree]:
    """All spanning trees over the four attributes, each hung from every root: the parent of each attribute."""
    found: list[Tree] = []
    for parents in product((None, 0, 1, 2, 3), repeat=4):
        edges = [(child, parent) for child, parent in enumerate(parents) if parent is not None]
        joined = [{i} for i in range(4)]
        for child, parent in edges:
            union = joined[child] | joined[parent]
            for i in union:
                joined[i] = union
        if len(edges) == 3 and len(joined[0]) == 4 and all(child != parent for child, parent in edges):
            found.append(parents)
    assert len(found) == 16 * 4, "Cayley's formula"
    return found


def _frequencies(rows: Rows) -> Frequencies:
    """How many rows have these values in these columns, for up to three columns; the class is column 4."""
    some = [columns for size in range(4) for columns in combinations(range(5), size)]
    return Counter((columns, tuple(row[i] for i in columns)) for row in rows for columns in some)


def _joint(found: Frequencies, tree: Tree, row: tuple[str, ...], strength: float) -> float:
    """Return P(y) times all alpha P(x | parents) + (1 - alpha) P(x), alpha = N(parents) / (N(parents) + strength)."""

    def count(*columns: int) -> int:
        return found[columns, tuple(row[i] for i in columns)]

    p = count(4) / count()
    for child, parent in enumerate(tree):
        above = (4,) if parent is None else (parent, 4)
        n, both = count(*above), count(*sorted((child, *above)))
        p *= (both + strength * count(child) / count()) / (n + strength)
    return p


def _posterior(found: Frequencies, tree: Tree, row: tuple[str, ...], strength: float) -> float:
    """Return P(y | attributes) of the label y."""
    y, n = (_joint(found, tree, (*row[:4], label), strength) for label in "yn")
    return y / (y + n)
