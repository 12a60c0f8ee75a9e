"""`--learner "NAME=--structure kdb --k 2"`: the learning options of `fit` in one word, read as a command line is.

Conventions: a text that begins with a hyphen has no name, so an equals sign in it belongs to an option. The name is
then made of the structure, the parameters and whatever else was typed: `kdb map k=2 hdp`. Learners that are compared
together often have a name: `bncli compare DATA --preset papers`, in `bncli.cli.presets`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from bncli import catalogue
from bncli.choices import flag_of, key_of
from bncli.cli import learning
from bncli.cli.flags import Callback, Flag
from bncli.cli.presets import PRESETS
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.files.table import Source
    from bncli.recipe import Recipe
    from bncli.steps.comparing.learners import Learner


def learners(texts: Iterable[str], presets: Iterable[str], seed: int) -> list[Learner]:
    """The learners typed, then those of the presets that are not among them; without either the preset `fast`."""
    typed = [learner(text, seed) for text in texts]
    chosen = list(presets) or ([] if typed else ["fast"])
    words = dict.fromkeys(text for preset in chosen for text in PRESETS[preset][1])
    taken = {one.name for one in typed}
    ready = [learner(text, seed) for text in words]
    return typed + [one for one in ready if one.name not in taken]


def learner(text: str, seed: int) -> Learner:
    """One learner; a UsageError says which one it is about."""
    from bncli.steps.comparing.learners import Learner

    name, options = _parted(text)
    try:
        typed = typed_options(options)
        _refuse_decisions(typed)
        chosen = learning.learning({**typed, "seed": seed}, settings={})
    except BncliError as error:
        raise type(error)(error.what, where=_place(text, error.where), hint=error.hint) from error
    except (click.ClickException, ValueError) as error:
        what = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(
            what.rstrip("."), where=_place(text), hint="it takes the learning options of bncli fit"
        ) from error
    return Learner(name or _name(typed, chosen.recipe), chosen.recipe, options, chosen.supplied)


def _refuse_decisions(typed: Mapping[str, Any]) -> None:
    for key in catalogue.DECISION_KEYS:
        if typed[key] is not None:
            what = f"{flag_of(key)} has no effect in a comparison, whose figures are of probabilities"
            raise UsageError(what, hint="bncli evaluate measures decisions")


def _place(text: str, where: str = "") -> str:
    return f"{where}{', ' if where else ''}in --learner {text!r}"


def _parted(text: str) -> tuple[str, str]:
    """The name (empty: none) and the options."""
    if text.lstrip().startswith("-"):
        return "", text.strip()
    name, equals, options = text.partition("=")
    if not equals:
        hint = "options begin with hyphens, as in 'NAME=--structure tan'; 'NAME=' alone takes every default"
        raise UsageError(f"{text!r} is no learner", where="in --learner", hint=hint)
    if not name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is no name", where=_place(text))
    return name.strip(), options.strip()


def typed_options(options: str = "") -> dict[str, Any]:
    """What the options of learning say, by key; as in `fit`, None where nothing was typed."""
    with _command().make_context("--learner", shlex.split(options)) as context:
        return dict(context.params)


def idle_notes(compared: Iterable[Learner], sources: Iterable[Source]) -> list[str]:
    """A note for each learner and `.codes` file whose rows are cut already, where the learner says how to cut them."""
    from bncli.files.reading.coded import are_codes

    coded = [source.paths[0] for source in sources if are_codes(source.paths)]
    keys = [key_of(entry.flag) for entry in catalogue.LEARNING if entry.group == catalogue.CUTTING]
    notes = []
    for one in compared if coded else ():
        typed = typed_options(one.options)
        flags = " and ".join(flag_of(key) for key in keys if typed[key] is not None)
        if flags:
            notes += [f"on {path}, whose rows are codes, {one.name} goes without its {flags}" for path in coded]
    return notes


def help_rows(*, everything: bool) -> tuple[tuple[str, str], ...]:
    """The options that a learner takes, those of every day or `everything`, as lines of the help."""
    command = _command()
    context = click.Context(command)
    flags = [flag for flag in command.params if isinstance(flag, Flag)]
    shown = [flag for flag in flags if flag.group != catalogue.DECISIONS and (everything or flag.everyday)]
    return tuple(row for flag in shown for row in flag.rows(context))


def _command() -> click.Command:
    def nothing(**typed: Any) -> None:
        """Never called: only the options are of use."""

    callback: Callback = nothing
    for decorator in reversed(learning.ALL):
        callback = decorator(callback)
    return click.command("learner", add_help_option=False)(callback)


def _name(typed: Mapping[str, Any], recipe: Recipe) -> str:
    """Methods left out are those that the recipe took; `auto` is the word of a structure and of its parameters."""
    methods = dict.fromkeys([_base(typed["structure"] or recipe.structure), recipe.param])
    return " ".join([*methods, *_others(typed)])


def _base(path: str) -> str:
    """A method's word as it is; of a file, its name."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _others(typed: Mapping[str, Any]) -> Iterable[str]:
    """What else was typed: the word of a method, NAME=VALUE for a number, the bare name of a switch."""
    methods = {key_of(choice.flag) for choice in catalogue.CHOICES} | {"cuts"}
    for key, value in typed.items():
        if key in ("structure", "param") or value is None:
            continue
        name = key.replace("_", "-")
        yield name if value is True else _base(str(value)) if key in methods else f"{name}={value}"
