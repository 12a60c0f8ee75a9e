"""Learners as they are typed, and the presets."""

from __future__ import annotations

import pytest

from bncli.catalogue import CHOICES
from bncli.cli.learners import FAST, PRESETS, help_rows, parse_learners
from bncli.cli.learners import parse_learner as learner
from bncli.errors import UsageError
from bncli.recipe import Recipe


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
    assert learner("x=", 0).recipe == Recipe()
    assert learner("--penalty cv", 7).recipe == Recipe(seed=7)
    assert learner("x=--structure nb --param map", 7).recipe == Recipe.of(structure="nb", param="map")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'' is no learner, in --learner; options begin with hyphens"),
        ("tan", "'tan' is no learner, in --learner; options begin with hyphens"),
        ("=--structure nb", "'' is no name, in --learner '=--structure nb'"),
        ("a=--strukture nb", "No such option.*--strukture.*, in --learner 'a=--strukture nb'"),
        (
            "a=--structure hillclimb",
            "--structure knows no 'hillclimb', in --learner 'a=--structure hillclimb'; did you mean hill-climb",
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
    text = "\n".join(" ".join(row) for row in help_rows(show_all=True))
    for choice in CHOICES:
        assert choice.flag in text
        assert all(method.summary in text for method in choice.methods)
