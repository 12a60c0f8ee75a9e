"""The learning options of the command line: flags made from the catalogue, and the recipe that was typed with them.

What is typed is only gathered here: which of it is a file, and what a recipe makes of the rest
(`bncli.recipe.Recipe.of`), which knows the defaults and refuses what would have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli import catalogue
from bncli.catalogue import CHOICES, KEYS, LEARNING, PARAMETERS, STRUCTURES
from bncli.choices import Choice, Option, Switch, key_of
from bncli.cli.command import Decorator, flag
from bncli.cli.numbers import KindType, metavar
from bncli.cli.settings import settings_of_run
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.recipe import Recipe
    from bncli.steps.supplied_files import Supplied

CUTS_FILE = flag(
    "--cuts", group=catalogue.CUTTING, metavar="FILE", help="Take the cuts of this file instead of learning them."
)


def flags(*groups: str, structure_file: bool = False) -> tuple[Decorator, ...]:
    """The flags of these groups of learning options; `structure_file`: --structure takes a file as well."""
    made = [_flag(entry, structure_file) for entry in LEARNING if entry.group in groups]
    if catalogue.CUTTING in groups:
        cutting = sum(entry.group == catalogue.CUTTING for entry in LEARNING)
        made.insert(cutting, CUTS_FILE)
    return tuple(made)


def _flag(entry: Choice | Option, structure_file: bool) -> Decorator:
    if isinstance(entry, Choice):
        words = [(method.word, method.summary) for method in entry.methods]
        held = entry is STRUCTURES and structure_file
        shown = f"{entry.metavar}|FILE" if held else entry.metavar
        what = f"{entry.summary.removesuffix('.')}; FILE holds one, or regions." if held else entry.summary
        return flag(entry.flag, group=entry.group, metavar=shown, stands_for=entry.default, words=words, help=what)
    if isinstance(entry.kind, Switch):
        return flag(entry.flag, group=entry.group, is_flag=True, default=None, help=entry.summary)
    return flag(
        entry.flag,
        group=entry.group,
        metavar=entry.metavar or metavar(entry.kind),
        type=KindType(entry.kind),
        stands_for=entry.shown_default,
        help=entry.summary,
    )


CUTTING = flags(catalogue.CUTTING)
STRUCTURE = (*flags(catalogue.STRUCTURE, catalogue.DATA), *CUTTING)
ALL = flags(catalogue.CUTTING, catalogue.STRUCTURE, catalogue.DATA, catalogue.PARAMETER, structure_file=True)
"""The options of `fit` and `evaluate`."""


class Learning(NamedTuple):
    """The recipe, what the supplied files hold, which stands in for some of its methods, and notes about settings."""

    recipe: Recipe
    supplied: Supplied
    notes: tuple[str, ...] = ()


def learning(typed: Mapping[str, Any]) -> Learning:
    """What the learning options mean together; options that a command does not have count as not typed."""
    from bncli.recipe import Recipe
    from bncli.recipe.defaults import Files
    from bncli.steps.supplied_files import read_supplied

    settings = settings_of_run()
    words = {key: typed[key] for key in KEYS if typed.get(key) is not None and key not in settings}
    if "structure" in settings and "structure" not in words:
        words["structure"] = typed["structure"]
    structure = words.get("structure")
    file = words.pop("structure") if structure is not None and _is_file(structure) else None
    cuts = typed.get("cuts")
    if cuts is not None:
        # What needs no file to be known is refused before one is read.
        Recipe.of(files=Files(cuts), **{key: words[key] for key in ("structure", "discretize", "bins") if key in words})
    supplied = read_supplied(cuts, file)
    choices = [choice for choice in CHOICES if choice is not PARAMETERS or "param" in typed]
    files = Files(cuts, file, supplied.kind, typed.get("trace"))
    recipe, notes = Recipe.of(files=files, choices=choices, **words), []
    for key in sorted(settings.keys() & set(KEYS) - words.keys(), key=_methods_first):
        try:
            recipe = Recipe.of(files=files, choices=choices, **words, **{key: settings[key].value})
            words[key] = settings[key].value
        except UsageError as error:
            notes.append(f"{settings[key].where} is left aside: {error}")
    return Learning(recipe, supplied, tuple(notes))


def _methods_first(key: str) -> tuple[bool, int]:
    """The order in which settings are tried: what a method takes depends on the method."""
    return key not in [key_of(choice.flag) for choice in CHOICES], KEYS.index(key)


def given_flags(typed: Mapping[str, Any]) -> list[str]:
    """The learning options (and --cuts, --trace) that were typed, as flags; settings do not count."""
    names = [*(choice.flag for choice in CHOICES), *(option.flag for option in catalogue.OPTIONS)]
    settings = settings_of_run()
    keys = {name: key_of(name) for name in (*names, "--cuts", "--trace")}
    return [name for name, key in keys.items() if typed.get(key) is not None and key not in settings]


def _is_file(structure: str) -> bool:
    """Whether the word means a file; the name of a method comes first."""
    if STRUCTURES.method(structure):
        return False
    if os.path.exists(structure):
        return True
    if os.sep in structure or structure.endswith(".json"):
        raise UsageError(f"there is no structure file {structure!r}")
    from bncli.recipe.defaults import near

    raise UsageError(f"--structure knows no {structure!r}", hint=near(structure, STRUCTURES.words, " or a file"))


def refuse_auto(structure: str) -> None:
    """UsageError where a structure file is wanted: an ensemble has none."""
    if structure == "auto":
        raise UsageError("--structure auto learns an ensemble of models, no structure file", hint="use bncli fit")


def refuse_structure_file(structure: str | None) -> None:
    """UsageError for a file where a structure is to be learnt, not read."""
    if structure is not None and _is_file(structure):
        what = f"--structure {structure} is a file: there is nothing to learn"
        raise UsageError(what, hint="choose " + ", ".join(STRUCTURES.words))
