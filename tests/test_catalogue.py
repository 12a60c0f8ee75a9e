"""The catalogue against the house: every word has its module, and every option its place."""

from __future__ import annotations

import importlib
import importlib.resources

import pytest

from bncli import catalogue
from bncli.catalogue import CHOICES, OPTIONS, refuse_options_without_effect
from bncli.catalogue.choices import Choice, Method, Option, key_of
from bncli.cli.commands import COMMANDS, Command
from bncli.errors import UsageError
from bncli.recipe import Recipe
from bncli.recipe.defaults import BY_FLAG, params_of

METHODS = [(choice, method) for choice in CHOICES for method in choice.methods]


@pytest.mark.parametrize(("choice", "method"), METHODS, ids=lambda x: x.flag if isinstance(x, Choice) else x.word)
def test_the_word_typed_is_the_module_opened(choice: Choice, method: Method) -> None:
    name = choice.module_of(method.word)
    if not name:
        return
    assert name.rsplit(".", 1)[1] == (method.module or method.word.replace("-", "_"))
    verb = {"--discretize": "cut_points", "--optimizer": "minimise"}.get(choice.flag, "learn")
    assert callable(choice.load(method.word, verb))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.word)
def test_every_command_has_a_module(command: Command) -> None:
    module = importlib.import_module(f"bncli.cli.{command.word.replace('-', '_')}")
    assert module.command.name == command.word


VERBS = {
    "discretizers": "cut_points",
    "structure_learners": "learn",
    "parameter_learners": "learn",
    "optimizers": "minimise",
}
"""The function that every module of a method has, by room."""


@pytest.mark.parametrize("room", VERBS)
def test_no_method_is_missing_from_the_catalogue(room: str) -> None:
    listed = {choice.module_of(method.word) for choice, method in METHODS} - {""}
    folder = importlib.resources.files(importlib.import_module(f"bncli.engine.{room}"))
    stems = {entry.name[:-3] for entry in folder.iterdir() if entry.name.endswith(".py")} - {"__init__"}
    modules = {f"bncli.engine.{room}.{stem}" for stem in stems}
    for module in modules:
        names = vars(importlib.import_module(module))
        own = {name for name, value in names.items() if getattr(value, "__module__", module) == module}
        assert module in listed or not any(name.startswith(VERBS[room]) for name in own), module


def test_words_are_unique_and_defaults_exist() -> None:
    for choice in CHOICES:
        assert len(set(choice.words)) == len(choice.words)
        assert choice.method(choice.default)


def test_every_option_that_a_method_takes_is_declared() -> None:
    declared = {option.flag for option in OPTIONS} | {choice.flag for choice in CHOICES} | {"--trace"}
    for _, method in METHODS:
        assert set(method.options) <= declared


def test_defaults_are_those_of_the_recipe() -> None:
    recipe = Recipe()
    for choice in CHOICES:
        value = getattr(recipe, choice.flag[2:].replace("-", "_"))
        assert str(value).split(":")[0] == choice.default
    for option in OPTIONS:
        value = getattr(recipe, option.flag[2:].replace("-", "_"))
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert float(option.default) == value
        if isinstance(value, str) and option.flag != "--init":
            assert option.default == value
    names = {entry.flag[2:].replace("-", "_") for entry in (*CHOICES, *OPTIONS)}
    assert names | {"seed"} == set(Recipe().as_dict()) == set(catalogue.KEYS)


@pytest.mark.parametrize(("choice", "method"), METHODS, ids=lambda x: x.flag if isinstance(x, Choice) else x.word)
def test_an_option_without_effect_is_refused(choice: Choice, method: Method) -> None:
    for flag in choice.method_options:
        if flag in method.options:
            refuse_options_without_effect([flag], {choice.flag: method.word})
        else:
            # parameters that come with a structure of their name alone are asked for by the structure
            word = "--structure auto" if method.word == "auto" else f"{choice.flag} {method.word}"
            with pytest.raises(UsageError, match=f"{flag} has no effect with {word}"):
                refuse_options_without_effect([flag], {choice.flag: method.word})


def test_a_structure_file_takes_no_options() -> None:
    with pytest.raises(UsageError, match=r"--k has no effect with --structure mine\.json"):
        refuse_options_without_effect(["--k"], {"--structure": "mine.json"})


def test_one_of_several_choices_may_take_an_option() -> None:
    for score, param in (("acll", "map"), ("bic", "acll"), ("acll", "acll")):
        refuse_options_without_effect(["--pseudo-counts"], {"--structure-score": score, "--param": param})
    with pytest.raises(UsageError, match="has no effect with --structure-score bic and --param map; use it with"):
        refuse_options_without_effect(["--pseudo-counts"], {"--structure-score": "bic", "--param": "map"})


@pytest.mark.parametrize(("choice", "method"), METHODS, ids=lambda x: x.flag if isinstance(x, Choice) else x.word)
def test_other_defaults_are_values_of_options_that_the_method_or_its_parameters_take(
    choice: Choice, method: Method
) -> None:
    beside = [catalogue.PARAMETERS.method(word) for word in method.params]
    taken = {flag for taker in (method, *beside) if taker is not None for flag in taker.options}
    for flag, value in (*method.defaults, *method.fixed):
        entry = BY_FLAG[flag]
        if isinstance(entry, Option):
            entry.kind.parse(value)
        else:
            assert value in entry.words
        assert flag in taken or choice is catalogue.STRUCTURES
    for flag in (*method.start_options, *method.without_effect[0]):
        assert flag in BY_FLAG or flag == "--cuts"


def test_parameters_of_a_kind_of_structure_are_methods() -> None:
    for method in catalogue.STRUCTURES.methods:
        assert set(params_of(method.word)) <= set(catalogue.PARAMETERS.words)
        assert len(set(params_of(method.word))) == len(params_of(method.word))


def test_structure_options_are_values_of_the_recipe() -> None:
    assert {key_of(flag) for flag in catalogue.STRUCTURES.method_options} <= set(Recipe().as_dict())
    assert catalogue.STRUCTURES.options_of("mine.json") == ()
    assert catalogue.STRUCTURES.module_of("mine.json") == ""
