"""The learning options: flags made from the catalogue, which collapse into one recipe with every default resolved.

An option that would have no effect with the chosen methods is refused: silence would let a user believe in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli import catalogue
from bncli.catalogue import (
    DISCRETIZERS,
    ELSEWHERE,
    FITTING,
    INCOMPLETE,
    MARGINALIZED,
    MISSING_POLICIES,
    OPTIMIZERS,
    PARAMETERS,
    SCORE_NUMBERS,
    SCORES,
    SMOOTHINGS,
    STRUCTURES,
)
from bncli.choices import Choice
from bncli.cli.learning_flags import ALL as ALL
from bncli.cli.learning_values import (
    PENALTY,
    TYPES,
    default,
    key_of,
    rule,
    smoothing_rule,
    unknown,
    value,
    word,
    written,
)
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.recipe import Recipe
    from bncli.steps.supplied_files import Supplied


class Learning(NamedTuple):
    """The recipe, and what the supplied files hold, which stands in for some of its methods."""

    recipe: Recipe
    supplied: Supplied


def learning(typed: Mapping[str, Any]) -> Learning:
    """What the learning options mean together; options that a command does not have count as not typed."""
    given = given_flags(typed)
    structure = typed.get("structure") or ("auto" if typed.get("param") == "auto" else STRUCTURES.default)
    is_file = _is_file(structure)
    if structure == "auto":
        _refuse(given, ("--discretize", "--bins", "--cuts"), "with --structure auto, which makes its own cuts")
    if "--cuts" in given:
        _refuse(given, ("--discretize", "--bins"), "with --cuts FILE")
    from bncli.steps.supplied_files import read_supplied

    supplied = read_supplied(typed.get("cuts"), structure if is_file else None)
    kind = supplied.kind if is_file else structure if structure in FITTING else ""
    words = {choice.flag: word(typed, choice) for choice in (OPTIMIZERS, MISSING_POLICIES)}
    words["--structure"] = structure
    words["--discretize"] = discretize = word(typed, DISCRETIZERS, default("--discretize", kind))
    words["--param"] = param = word(typed, PARAMETERS, FITTING.get(kind, ("",))[0])
    score = _score(typed, structure)
    chosen = words if score is None else words | {"--structure-score": score.partition(":")[0]}
    catalogue.refuse_idle(given, chosen, [c for c in catalogue.CHOICES if c is not PARAMETERS or "param" in typed])
    if "param" in typed:
        _refuse_unfit(typed, given, param, kind)
    from bncli.recipe import Recipe

    policy = _missing_policy(typed, param)
    recipe = Recipe(
        discretize="auto" if kind == "auto" else discretize,
        bins=None if kind == "auto" else _of_kind(typed, "bins", DISCRETIZERS, discretize, kind),
        structure="file" if is_file else structure,
        structure_score=score,
        **{name: value(typed, name, STRUCTURES, structure) for name in _STRUCTURE_VALUES},
        theta=typed.get("theta") or (float(default("--theta")) if kind == "kikuchi" and not is_file else None),
        param=param,
        smoothing=None if kind else _smoothing(typed, param),
        pseudo_counts=value(typed, "pseudo_counts", PARAMETERS, param),
        coding=_of_kind(typed, "coding", PARAMETERS, param, kind),
        **{name: value(typed, name, PARAMETERS, param) for name in _PARAMETER_VALUES},
        missing_policy=policy,
        **_ascent({**typed, "init": "zero"} if kind == "interactions" else typed, param, policy),
    )
    return Learning(recipe, supplied)


_PARAMETER_VALUES = ("level", "lower_orders", "metric", "time_limit")


def _of_kind(typed: Mapping[str, Any], key: str, choice: Choice, method: str, kind: str) -> Any:
    """The value of an option whose default may depend on the kind of structure."""
    usual = catalogue.OTHER_DEFAULTS.get((kind, f"--{key}"))
    if typed.get(key) is None and usual is not None:
        typed = {key: TYPES[f"--{key}"](usual) if key == "bins" else usual}
    return value(typed, key, choice, method)


def given_flags(typed: Mapping[str, Any]) -> list[str]:
    """The learning options (and --cuts, --trace) that were typed, as flags."""
    names = [choice.flag for choice in catalogue.CHOICES] + [option.flag for option in catalogue.OPTIONS]
    return [name for name in (*names, "--cuts", "--trace") if typed.get(key_of(name)) is not None]


def _is_file(structure: str) -> bool:
    """Whether the word means a file; the name of a method comes first."""
    import os

    if STRUCTURES.method(structure):
        return False
    if os.path.exists(structure):
        return True
    if os.sep in structure or structure.endswith(".json"):
        raise UsageError(f"there is no structure file {structure!r}")
    raise unknown(STRUCTURES, structure, " or a file")


def _refuse_unfit(typed: Mapping[str, Any], given: list[str], param: str, kind: str) -> None:
    """UsageError where parameters and structure do not go together, or an option has no meaning with the two."""
    if kind and param not in FITTING[kind]:
        what = f"--param {param} cannot go with {_NAMES[kind]}"
        raise UsageError(what, hint=f"use --param {', '.join(FITTING[kind])}, or another structure")
    if not kind and param in ELSEWHERE:
        word = "auto" if param == "auto" else "kikuchi"
        raise UsageError(f"--param {param} does not go with networks", hint=f"use --structure {word}")
    if kind == "kikuchi":
        _refuse(given, ("--smoothing",), "with regions, which are smoothed by --theta")
    elif kind == "interactions":
        _refuse(given, ("--smoothing", "--theta"), "with --structure interactions, where nothing is smoothed")
        if typed.get("init") == "generative":
            what = "--init generative has no meaning with --structure interactions"
            raise UsageError(what, hint="there is no generative model of these tables; use --init zero")
    elif not kind:
        _refuse(given, ("--theta",), "without regions")


_NAMES = {
    "kikuchi": "regions, which are no Bayesian network",
    "interactions": "regions that look at attributes through fewer intervals",
    "auto": "--structure auto, which learns them itself",
}


def refuse_auto(structure: str) -> None:
    """UsageError where a structure file is wanted: a blend has none."""
    if structure == "auto":
        raise UsageError("--structure auto learns a blend of models, no structure file", hint="use bncli fit")


def refuse_structure_file(structure: str | None) -> None:
    """UsageError for a file where a structure is to be learnt, not read."""
    if structure is not None and _is_file(structure):
        what = f"--structure {structure} is a file: there is nothing to learn"
        raise UsageError(what, hint="choose " + ", ".join(STRUCTURES.words))


def _refuse(given: list[str], idle: tuple[str, ...], why: str) -> None:
    for name in given:
        if name in idle:
            raise UsageError(f"{name} has no effect {why}", hint="leave one of them out")


def _smoothing(typed: Mapping[str, Any], param: str) -> str | None:
    """The rule written out; None where the parameters take none."""
    if "--smoothing" not in PARAMETERS.options_of(param):
        return None
    return smoothing_rule(typed.get("smoothing") or SMOOTHINGS.default)


def _score(typed: Mapping[str, Any], structure: str) -> str | None:
    """The structure score written out, the number of --pseudo-counts included; None where there is none."""
    if "--structure-score" not in STRUCTURES.options_of(structure):
        return None
    chosen = rule(typed.get("structure_score") or default("--structure-score", structure), SCORES, SCORE_NUMBERS)
    if chosen == "cmi" and structure != "tan":
        hint = "choose " + ", ".join(word for word in SCORES.words if word != "cmi")
        raise UsageError(f"--structure-score cmi has no meaning with --structure {structure}", hint=hint)
    pseudo_counts = value(typed, "pseudo_counts", SCORES, chosen)
    return chosen if pseudo_counts is None else f"{chosen}:{written(pseudo_counts)}"


_STRUCTURE_VALUES = (
    *("k", "loss", "max_parents", "perfect", "forest", "epsilon"),
    *("max_order", "max_seconds", "max_candidates"),
)


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
        penalty = 0.0 if early == "cv" else PENALTY(default("--penalty"))
    center = float(typed.get("penalty_center") or default("--penalty-center"))
    values: dict[str, Any] = {
        "init": typed.get("init") or ("zero" if penalty != 0 and center == 0 else "generative"),
        "penalty": penalty,
        "penalty_center": center,
        "optimizer": typed.get("optimizer") or default("--optimizer", param),
        "tolerance": value(typed, "tolerance", PARAMETERS, param),
        "max_iterations": value(typed, "max_iterations", PARAMETERS, param),
        "early_stop": early,
    }
    taken = PARAMETERS.options_of(param)
    kept = {key: given if f"--{key.replace('_', '-')}" in taken else None for key, given in values.items()}
    return kept | {"seed": int(typed.get("seed") or 0) if param == "auto" or "cv" in (kept["penalty"], early) else None}
