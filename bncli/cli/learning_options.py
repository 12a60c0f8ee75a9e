"""The learning options of the command line: flags made from the catalogue, and the recipe that was typed with them.

What is typed is only gathered here: which of it is a file, and what a recipe makes of the rest
(`bncli.recipe.Recipe.of`), which knows the defaults and refuses what would have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli import catalogue
from bncli.catalogue import CHOICES, DISCRETIZERS, KEYS, LEARNING, PARAMETERS, STRUCTURES
from bncli.catalogue.choices import Choice, Option, key_of
from bncli.catalogue.option_kinds import ColumnNames, Label, Switch
from bncli.cli.options import Decorator, Flag, KindType, flag, metavar
from bncli.errors import UsageError

if TYPE_CHECKING:
    import click

    from bncli.cli.settings import Setting
    from bncli.recipe import Recipe
    from bncli.steps.supplied_files import SuppliedFiles


CUTS_FILE = flag(
    "--cuts", group=catalogue.CUTTING, metavar="FILE", help="Take the cuts of this file instead of learning them."
)


def flags(*groups: str, structure_file: bool = False) -> tuple[Decorator, ...]:
    """Return the flags of these groups of learning options; `structure_file`: --structure takes a file as well."""
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
        told: dict[str, Any] = {"default_text": entry.default, "words": words, "help": what}
        return flag(entry.flag, group=entry.group, everyday=entry.everyday, metavar=shown, **told)
    if isinstance(entry.kind, Switch):
        told = {"is_flag": True, "default": None, "help": entry.summary}
        return flag(entry.flag, group=entry.group, everyday=entry.everyday, **told)
    if isinstance(entry.kind, ColumnNames):
        told = {"multiple": True, "callback": _any, "metavar": entry.metavar, "help": entry.summary}
        return flag(entry.flag, group=entry.group, everyday=entry.everyday, **told)
    return flag(
        entry.flag,
        group=entry.group,
        everyday=entry.everyday,
        metavar=entry.metavar or metavar(entry.kind),
        type=KindType(entry.kind),
        default_text=entry.default_text,
        once=isinstance(entry.kind, Label),
        help=entry.summary,
    )


def _any(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names that were typed; None: none was."""
    return names or None


CUTTING = flags(catalogue.CUTTING)
DECISIONS = flags(catalogue.DECISIONS)
STRUCTURE = (*flags(catalogue.STRUCTURE, catalogue.DATA), *CUTTING)
_GROUPS = (catalogue.CUTTING, catalogue.STRUCTURE, catalogue.DATA, catalogue.PARAMETER, catalogue.DECISIONS)
ALL = flags(*_GROUPS, structure_file=True)
"""The options of `fit` and `evaluate`."""


class Learning(NamedTuple):
    """The recipe, what the supplied files hold, which stands in for some of its methods, and notes about settings."""

    recipe: Recipe
    supplied: SuppliedFiles
    notes: tuple[str, ...] = ()


def learning(typed: Mapping[str, Any], settings: Mapping[str, Setting] | None = None) -> Learning:
    """Return what the learning options mean together; options that a command does not have count as not typed.

    settings: those that were set rather than typed (None: of the command that runs). One that has no effect beside what
    is typed is left aside, one that can never be right is a UsageError.
    """
    from bncli.cli.settings import settings_of_run

    found = settings_of_run() if settings is None else settings
    settings = {key: found[key] for key in sorted(found.keys() & set(KEYS), key=_methods_first)}
    words = {key: typed[key] for key in KEYS if typed.get(key) is not None and key not in settings}
    _check(settings)
    structure = settings.get("structure")
    if structure is None:
        return _fitted(typed, words, settings)
    others = {key: setting for key, setting in settings.items() if key != "structure"}
    try:
        return _fitted(typed, words | {"structure": structure.value}, others)
    except UsageError as refusal:
        try:
            rest = _fitted(typed, words, others)
        except UsageError:
            raise refusal from None
        return rest._replace(notes=(_left_aside(structure, refusal), *rest.notes))


def _check(settings: Mapping[str, Setting]) -> None:
    """Raise UsageError for a value that no methods could make right."""
    from bncli.recipe.defaults import parse_options

    for key, setting in settings.items():
        try:
            if key != "structure" or not _is_file(setting.value):
                parse_options({key: setting.value})
        except UsageError as error:
            raise UsageError(error.what, where=setting.where, hint=error.hint) from error


def _fitted(typed: Mapping[str, Any], words: dict[str, Any], settings: Mapping[str, Setting]) -> Learning:
    """Return the recipe of the words with all the settings that go with them."""
    from bncli.recipe import Recipe
    from bncli.recipe.defaults import SuppliedKinds
    from bncli.steps.supplied_files import read_supplied

    structure = words.get("structure")
    file = words.pop("structure") if structure is not None and _is_file(structure) else None
    cuts, counts = _cuts_file(typed, structure), typed.get("from_counts")
    coded = cuts is not None and typed.get("cuts") is None
    if cuts is not None and counts is None:
        # What needs no file to be known is refused before one is read.
        names = (STRUCTURES.flag, DISCRETIZERS.flag, *DISCRETIZERS.method_options)
        Recipe.of(
            files=SuppliedKinds(cuts, coded=coded), **{key: words[key] for key in map(key_of, names) if key in words}
        )
    supplied = read_supplied(cuts if counts is None else None, file)
    choices = [choice for choice in CHOICES if choice is not PARAMETERS or "param" in typed]
    files = SuppliedKinds(cuts, file, supplied.region_method, typed.get("trace"), counts, coded)

    def recipe(keys: Iterable[str]) -> Recipe:
        return Recipe.of(files=files, choices=choices, **words, **{key: settings[key].value for key in keys})

    keys, refusals = _in_force(recipe, list(settings))
    return Learning(recipe(keys), supplied, tuple(_left_aside(settings[key], refusals[key]) for key in refusals))


def _cuts_file(typed: Mapping[str, Any], structure: str | None) -> str | None:
    """Return the file with the cuts; a `.codes` table has its own, which auto uses without a file."""
    cuts, paths = typed.get("cuts"), typed.get("data")
    if not isinstance(paths, tuple) or "data" not in typed:
        return cuts
    from bncli.files.reading.column_roles import is_codes_table

    if not is_codes_table(paths):
        return cuts
    if cuts is not None:
        raise UsageError(f"--cuts has no effect on {paths[0]}, whose rows are codes", hint="leave --cuts out")
    return None if structure == "auto" else str(paths[0])


def _in_force(
    recipe: Callable[[Iterable[str]], Recipe], settings: Sequence[str]
) -> tuple[Sequence[str], Mapping[str, UsageError]]:
    """Return the settings that fit what is typed, and why the others do not.

    What is typed may need a setting, as --bins needs equal-width: the fewest that make it valid come first, at most
    two.
    """
    if _refusal(recipe, settings) is None:
        return settings, {}
    refusal = _refusal(recipe, ())
    needed = (keys for size in range(3) for keys in combinations(settings, size) if _refusal(recipe, keys) is None)
    kept = next(needed, None)
    if kept is None:
        assert refusal is not None
        raise refusal
    while True:
        refusals = {key: _refusal(recipe, (*kept, key)) for key in settings if key not in kept}
        fitting = next((key for key, reason in refusals.items() if reason is None), None)
        if fitting is None:
            return kept, {key: reason for key, reason in refusals.items() if reason is not None}
        kept = (*kept, fitting)


def _refusal(recipe: Callable[[Iterable[str]], Recipe], keys: Iterable[str]) -> UsageError | None:
    try:
        recipe(keys)
    except UsageError as error:
        return error
    return None


def _left_aside(setting: Setting, why: UsageError) -> str:
    return f"{setting.where} is left aside: {why}"


def _methods_first(key: str) -> tuple[bool, int]:
    """Return the order in which settings are tried: what a method takes depends on the method."""
    return key not in [key_of(choice.flag) for choice in CHOICES], KEYS.index(key)


def typed_learning_flags(typed: Mapping[str, Any]) -> list[str]:
    """Return the learning options (and --cuts, --trace) that were typed, as flags; settings do not count."""
    names = [*(choice.flag for choice in CHOICES), *(option.flag for option in catalogue.OPTIONS)]
    from bncli.cli.settings import settings_of_run

    settings = settings_of_run()
    keys = {name: key_of(name) for name in (*names, "--cuts", "--trace")}
    return [name for name, key in keys.items() if typed.get(key) is not None and key not in settings]


def _is_file(structure: str) -> bool:
    """Return whether the word means a file; the name of a method comes first."""
    if STRUCTURES.method(structure):
        return False
    if os.path.exists(structure):
        return True
    if os.sep in structure or structure.endswith(".json"):
        from bncli.files.paths import explain_missing

        reason, hint = explain_missing(structure)
        more = reason.removeprefix("no such file").removeprefix(": ")
        raise UsageError(f"there is no structure file {structure!r}{': ' if more else ''}{more}", hint=hint)
    from bncli.recipe.defaults import suggestion

    raise UsageError(f"--structure knows no {structure!r}", hint=suggestion(structure, STRUCTURES.words, " or a file"))


FROM_COUNTS = flag(
    "--from-counts",
    group=catalogue.DATA,
    everyday=False,
    metavar="FILE",
    setting=False,
    help="Learn from the counts in FILE (of bncli count or merge) in place of DATA.",
)


def counts_file(typed: Mapping[str, Any]) -> str | None:
    """Return the file of counts that stands for DATA.

    UsageError for both, neither, or a flag about a table that is not read.

    A counts file is what was read; how it was read cannot be said any more.
    """
    import click
    from click.core import ParameterSource

    context, counts = click.get_current_context(), typed["from_counts"]
    if counts is None:
        if not typed["data"]:
            raise click.MissingParameter(ctx=context, param_type="argument", param_hint="'DATA...'")
        if _is_counts(typed["data"][0]):
            hint = f"counts stand in place of a table: --from-counts {typed['data'][0]}"
            raise UsageError(f"{typed['data'][0]} is no table", hint=hint)
        return None
    if typed["data"]:
        what = f"--from-counts {counts} stands in place of DATA, and {typed['data'][0]!r} is given too"
        raise UsageError(what, hint="leave one of them out")
    if typed.get("cluster") is not None:
        raise UsageError("--cluster has no effect with --from-counts", hint="leave it out: there are no rows to share")
    for parameter in context.command.params:
        name = parameter.name or ""
        of_data = isinstance(parameter, Flag) and parameter.group == catalogue.DATA
        if not of_data or name in (*KEYS, "from_counts", "unseen"):
            continue
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            what = f"{parameter.opts[0]} has no effect with --from-counts"
            raise UsageError(what, hint="say it to bncli count, which reads the table")
    return str(counts)


def _is_counts(path: str) -> bool:
    if not path.endswith(".counts") or not os.path.isfile(path):
        return False
    from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise

    with open(path, "rb") as file:
        return recognise(file.read(HEAD_BYTES)).kind == "counts"


def refuse_auto(structure: str) -> None:
    """Raise UsageError where a structure file is wanted: an ensemble has none."""
    if structure == "auto":
        raise UsageError("--structure auto learns an ensemble of models, no structure file", hint="use bncli fit")


def refuse_structure_file(structure: str | None) -> None:
    """Raise UsageError for a file where a structure is to be learnt, not read."""
    if structure is not None and _is_file(structure):
        what = f"--structure {structure} is a file: there is nothing to learn"
        raise UsageError(what, hint="choose " + ", ".join(STRUCTURES.words))
