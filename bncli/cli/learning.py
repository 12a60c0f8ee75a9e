"""The learning options: flags made from the catalogue, which collapse into one recipe with every default resolved.

An option that would have no effect with the chosen methods is refused: silence would let a user believe in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli import catalogue
from bncli.catalogue import (
    DISCRETIZERS,
    INCOMPLETE,
    MARGINALIZED,
    MISSING_POLICIES,
    OPTIMIZERS,
    PARAMETERS,
    SCORE_NUMBERS,
    SCORES,
    SMOOTHING_NUMBERS,
    SMOOTHINGS,
    STRUCTURES,
)
from bncli.choices import Choice
from bncli.cli.command import Decorator, flag
from bncli.cli.numbers import decimal, positive, real, real_or, whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.recipe import Recipe

_CUTS, _STRUCTURE, _PARAMETERS = "Cut points", "Structure", "Parameters"
_MOST_ROWS = 1e15
"""Above it, added rows drown all counts in rounding."""

_PENALTY = real_or("cv")

_TYPES: dict[str, Any] = {
    "--bins": whole(2, 10_000),
    "--k": whole(0, 1000),
    "--loss": click.Choice(["rmse", "error", "log-loss"]),
    "--max-parents": whole(0, 1000),
    "--epsilon": real,
    "--pseudo-counts": positive,
    "--level": click.Choice(["1", "2", "3", "4"]),
    "--init": click.Choice(["zero", "generative"]),
    "--penalty": _PENALTY,
    "--penalty-center": click.Choice(["0", "1"]),
    "--early-stop": click.Choice(["cv", "none"]),
    "--tolerance": real,
    "--max-iterations": whole(0),
}


def _choice(choice: Choice, group: str, what: str, metavar: str) -> Decorator:
    words = [(method.word, method.summary) for method in choice.methods]
    return flag(choice.flag, group=group, metavar=metavar, stands_for=choice.default, words=words, help=what)


def _option(name: str, group: str) -> Decorator:
    option = next(option for option in catalogue.OPTIONS if option.flag == name)
    if not option.value:
        return flag(name, group=group, is_flag=True, default=None, help=option.summary)
    return flag(
        name, group=group, metavar=option.value, type=_TYPES[name], stands_for=option.default, help=option.summary
    )


CUTTING = (
    _choice(DISCRETIZERS, _CUTS, "How numeric columns are cut into intervals.", "METHOD"),
    _option("--bins", _CUTS),
)
CUTS_FILE = (flag("--cuts", group=_CUTS, metavar="FILE", help="Take the cuts of this file instead of learning them."),)
_SEARCH = (
    _choice(MISSING_POLICIES, "Data", "What a missing value is.", "POLICY"),
    _choice(SCORES, _STRUCTURE, "What tan and hill-climb maximise.", "NAME[:NUMBER]"),
    *(
        _option(name, _STRUCTURE)
        for name in ("--k", "--loss", "--max-parents", "--perfect", "--forest", "--epsilon", "--pseudo-counts")
    ),
)
STRUCTURE = (_choice(STRUCTURES, _STRUCTURE, "Which attributes depend on which.", "METHOD"), *_SEARCH)
STRUCTURE_OR_FILE = (
    _choice(STRUCTURES, _STRUCTURE, "Which attributes depend on which; FILE holds a network.", "METHOD|FILE"),
    *_SEARCH,
)
PARAMETER_LEARNING = (
    _choice(PARAMETERS, _PARAMETERS, "How the numbers are learnt.", "METHOD"),
    _choice(SMOOTHINGS, _PARAMETERS, "How counts become probabilities.", "NAME[:NUMBER]"),
    *(_option(name, _PARAMETERS) for name in ("--level", "--init", "--penalty", "--penalty-center", "--early-stop")),
    _choice(OPTIMIZERS, _PARAMETERS, "How the optimum is searched.", "METHOD"),
    *(_option(name, _PARAMETERS) for name in ("--tolerance", "--max-iterations")),
)
ALL = (*CUTTING, *CUTS_FILE, *STRUCTURE_OR_FILE, *PARAMETER_LEARNING)
"""The options of `fit` and `evaluate`."""


class Learning(NamedTuple):
    """The recipe, and the files that stand in for some of its methods."""

    recipe: Recipe
    cuts: str | None
    structure: str | None


def learning(typed: Mapping[str, Any]) -> Learning:
    """What the learning options mean together; options that a command does not have count as not typed."""
    given = given_flags(typed)
    words = {choice.flag: _word(typed, choice) for choice in (DISCRETIZERS, PARAMETERS, OPTIMIZERS, MISSING_POLICIES)}
    words["--structure"] = structure = typed.get("structure") or STRUCTURES.default
    is_file = _is_file(structure)
    if "--cuts" in given:
        _refuse(given, ("--discretize", "--bins"), "with --cuts FILE")
    score = _score(typed, structure)
    chosen = words if score is None else words | {"--structure-score": score.partition(":")[0]}
    catalogue.refuse_idle(given, chosen, [c for c in catalogue.CHOICES if c is not PARAMETERS or "param" in typed])
    from bncli.recipe import Recipe

    discretize, param = words["--discretize"], words["--param"]
    policy = _missing_policy(typed, param)
    recipe = Recipe(
        discretize=discretize,
        bins=_value(typed, "bins", DISCRETIZERS, discretize),
        structure="file" if is_file else structure,
        structure_score=score,
        **{name: _value(typed, name, STRUCTURES, structure) for name in _STRUCTURE_VALUES},
        param=param,
        smoothing=_smoothing(typed, param),
        pseudo_counts=_value(typed, "pseudo_counts", PARAMETERS, param),
        level=_value(typed, "level", PARAMETERS, param),
        missing_policy=policy,
        **_ascent(typed, param, policy),
    )
    return Learning(recipe, typed.get("cuts"), structure if is_file else None)


def given_flags(typed: Mapping[str, Any]) -> list[str]:
    """The learning options (and --cuts, --trace) that were typed, as flags."""
    names = [choice.flag for choice in catalogue.CHOICES] + [option.flag for option in catalogue.OPTIONS]
    return [name for name in (*names, "--cuts", "--trace") if typed.get(_key(name)) is not None]


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _word(typed: Mapping[str, Any], choice: Choice) -> str:
    """The method chosen; one that does not exist is an error with the nearest name."""
    word = typed.get(_key(choice.flag)) or choice.default
    if choice.method(word) is None:
        raise _unknown(choice, word)
    return str(word)


def _unknown(choice: Choice, word: str, also: str = "") -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(word, choice.words, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the choices are {', '.join(choice.words)}{also}"
    return UsageError(f"{choice.flag} knows no {word!r}", hint=hint)


def _is_file(structure: str) -> bool:
    """Whether the word means a file; the name of a method comes first."""
    import os

    if STRUCTURES.method(structure):
        return False
    if os.path.exists(structure):
        return True
    if os.sep in structure or structure.endswith(".json"):
        raise UsageError(f"there is no structure file {structure!r}")
    raise _unknown(STRUCTURES, structure, " or a file")


def refuse_structure_file(path: str) -> None:
    """UsageError where a structure is to be learnt, not read."""
    raise UsageError(
        f"--structure {path} is a file: there is nothing to learn", hint="choose " + ", ".join(STRUCTURES.words)
    )


def _refuse(given: list[str], idle: tuple[str, ...], why: str) -> None:
    for name in given:
        if name in idle:
            raise UsageError(f"{name} has no effect {why}", hint="leave one of them out")


def _smoothing(typed: Mapping[str, Any], param: str) -> str | None:
    """The rule written out; None where the parameters take none."""
    if "--smoothing" not in PARAMETERS.options_of(param):
        return None
    return smoothing_rule(typed.get("smoothing") or SMOOTHINGS.default)


def smoothing_rule(text: str) -> str:
    """`NAME`, or `NAME:NUMBER` with the number written out in the shortest way; UsageError for anything else."""
    return _rule(text, SMOOTHINGS, SMOOTHING_NUMBERS)


def _rule(text: str, choice: Choice, numbers: Mapping[str, str]) -> str:
    name, colon, number = text.partition(":")
    if choice.method(name) is None:
        raise _unknown(choice, name)
    if name not in numbers:
        if colon:
            raise UsageError(f"{choice.flag} {name} takes no number", hint=f"leave out ':{number}'")
        return name
    strength = decimal(number if colon else numbers[name])
    if strength is None or strength <= 0:
        raise UsageError(f"{choice.flag} {name} takes a number above 0, not {number!r}", hint=f"for example {name}:5")
    if strength > _MOST_ROWS:
        raise UsageError(f"{choice.flag} {name} takes a number up to {_MOST_ROWS:.0e}, not {number}")
    return f"{name}:{_written(strength)}"


def _written(number: float) -> str:
    return repr(number).removesuffix(".0")


def _score(typed: Mapping[str, Any], structure: str) -> str | None:
    """The structure score written out, the number of --pseudo-counts included; None where there is none."""
    if "--structure-score" not in STRUCTURES.options_of(structure):
        return None
    rule = _rule(typed.get("structure_score") or _default("--structure-score", structure), SCORES, SCORE_NUMBERS)
    if rule == "cmi" and structure != "tan":
        hint = "choose " + ", ".join(word for word in SCORES.words if word != "cmi")
        raise UsageError(f"--structure-score cmi has no meaning with --structure {structure}", hint=hint)
    pseudo_counts = _value(typed, "pseudo_counts", SCORES, rule)
    return rule if pseudo_counts is None else f"{rule}:{_written(pseudo_counts)}"


_STRUCTURE_VALUES = ("k", "loss", "max_parents", "perfect", "forest", "epsilon")


def _value(typed: Mapping[str, Any], key: str, choice: Choice, word: str) -> Any:
    """The value of an option, its default when it was not typed, None where the method does not take it."""
    name = f"--{key.replace('_', '-')}"
    if name not in choice.options_of(word):
        return None
    if name in _SWITCHES:
        return bool(typed.get(key))
    value = typed.get(key)
    if value is None:
        kind = _TYPES[name]
        value = _default(name, word) if isinstance(kind, click.Choice) else kind(_default(name, word))
    return int(value) if key == "level" else value


_SWITCHES = {option.flag for option in catalogue.OPTIONS if not option.value}


def _default(name: str, word: str = "") -> str:
    """The default of an option with the method `word`."""
    usual = {choice.flag: choice.default for choice in catalogue.CHOICES}
    usual.update((option.flag, option.default) for option in catalogue.OPTIONS)
    return catalogue.OTHER_DEFAULTS.get((word, name), usual[name])


def _missing_policy(typed: Mapping[str, Any], param: str) -> str:
    """The policy typed, else the one that the parameters imply; UsageError where they do not go together."""
    policy = typed.get("missing_policy")
    if param in INCOMPLETE and policy == "level":
        what = f"--missing-policy level has no meaning with --param {param}"
        raise UsageError(what, hint=f"{param} sums missing values out; --param map takes them as a level")
    if policy == "marginalize" and "param" in typed and param not in MARGINALIZED:
        what = f"--missing-policy marginalize cannot go with --param {param}, whose numbers are not probabilities"
        raise UsageError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")
    return str(policy or ("marginalize" if param in INCOMPLETE else MISSING_POLICIES.default))


def _ascent(typed: Mapping[str, Any], param: str, policy: str) -> dict[str, Any]:
    """The options of the optimiser and the penalty; None for those that the parameters do not take."""
    if typed.get("penalty_center") == "1" and param != "weighted":
        raise UsageError(
            f"--penalty-center 1 has no meaning with --param {param}", hint="it goes with --param weighted"
        )
    early = typed.get("early_stop") or ("cv" if policy == "marginalize" else "none")
    early = early if "--early-stop" in PARAMETERS.options_of(param) else None
    if early == "cv" and typed.get("penalty") == "cv":
        hint = "choose one of them: --early-stop none, or a number for --penalty"
        raise UsageError("--penalty cv and --early-stop cv both hold rows out to choose how far to go", hint=hint)
    penalty = typed.get("penalty")
    if penalty is None:
        penalty = 0.0 if early == "cv" else _PENALTY(_default("--penalty"))
    center = float(typed.get("penalty_center") or _default("--penalty-center"))
    values: dict[str, Any] = {
        "init": typed.get("init") or ("zero" if penalty != 0 and center == 0 else "generative"),
        "penalty": penalty,
        "penalty_center": center,
        "optimizer": typed.get("optimizer") or _default("--optimizer", param),
        "tolerance": _value(typed, "tolerance", PARAMETERS, param),
        "max_iterations": _value(typed, "max_iterations", PARAMETERS, param),
        "early_stop": early,
    }
    taken = PARAMETERS.options_of(param)
    kept = {key: value if f"--{key.replace('_', '-')}" in taken else None for key, value in values.items()}
    return kept | {"seed": int(typed.get("seed") or 0) if "cv" in (kept["penalty"], early) else None}
