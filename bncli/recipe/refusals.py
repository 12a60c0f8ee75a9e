"""What is refused: options without effect, and words that cannot go together. A refusal is a UsageError of one line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bncli.catalogue import (
    DECISION_KEYS,
    DISCRETIZERS,
    MARGINALIZED,
    PARAMETERS,
    SCORES,
    STRUCTURES,
    as_typed,
    refuse_idle,
)
from bncli.catalogue.choices import Choice, Method, flag_of, key_of
from bncli.catalogue.option_kinds import decimal, written
from bncli.errors import UsageError
from bncli.recipe.defaults import ChosenMethods, SuppliedKinds, alone, optimization, params_of, read, score

_NAMES = {
    "kikuchi": "regions, which are no Bayesian network",
    "interactions": "regions that look at attributes through fewer intervals",
    "auto": "--structure auto, which learns them itself",
}


def refuse(chosen: ChosenMethods, files: SuppliedKinds, choices: Collection[Choice]) -> None:
    """Raise UsageError for what has no effect, or cannot go together."""
    typed = chosen.typed
    given = [*typed, *(f"--{name}" for name in ("cuts", "trace") if getattr(files, name) is not None)]
    of_kind = chosen.of_kind
    if of_kind is not None and "--cuts" in of_kind.idle[0]:
        _refuse_flags(given, *of_kind.idle)
    cutting = (DISCRETIZERS.flag, *DISCRETIZERS.governed)
    if files.cuts is not None and files.counts is None:
        why, hint = f"on {files.cuts}, whose rows are codes", "say it when the table is encoded"
        _refuse_flags(given, cutting, *((why, hint) if files.coded else ("with --cuts FILE",)))
    if files.counts is not None:
        _refuse_flags(given, (*cutting, "--cuts"), "with --from-counts FILE, which holds the cuts")
        _refuse_flags(given, ("--class-weights",), "with --from-counts FILE: the rows were counted as they weighed")
        rows = [flag for flag in ("--sets", "--threshold") if flag in typed and _takes_rows(flag, typed[flag])]
        _refuse_flags(given, ("--calibrate", *rows), "with --from-counts FILE, which has no rows to hold out")
        _refuse_uncounted(chosen, choices)
    scored = score(chosen)
    words = {choice.flag: word for choice, word in chosen.words.items()}
    words["--structure"] = files.structure or words["--structure"]
    words |= {} if scored is None else {"--structure-score": scored.partition(":")[0]}
    refuse_idle(given, words, choices)
    if scored == "cmi" and words["--structure"] != "tan":
        hint = "choose " + ", ".join(word for word in SCORES.words if word != "cmi")
        raise UsageError(f"--structure-score cmi has no meaning with --structure {words['--structure']}", hint=hint)
    _refuse_needless(chosen)
    refuse_decisions({flag: typed.get(flag) for flag in map(flag_of, DECISION_KEYS)})
    if PARAMETERS in choices:
        _refuse_unfit(chosen)
        _refuse_policy(chosen)
        _refuse_optimization(chosen)
        _refuse_directions(typed)


def _refuse_flags(given: Collection[str], idle: tuple[str, ...], why: str, hint: str = "leave one of them out") -> None:
    for flag in given:
        if flag in idle:
            raise UsageError(f"{flag} has no effect {why}", hint=hint)


def _takes_rows(flag: str, value: Any) -> bool:
    return flag == "--sets" or decimal(value) is None


def _refuse_uncounted(chosen: ChosenMethods, choices: Collection[Choice]) -> None:
    """Raise UsageError for what asks for more than counts hold.

    Single rows, or tables that nobody can name beforehand.
    """
    asked = [(STRUCTURES, chosen.of_kind), *([(PARAMETERS, chosen.param)] if PARAMETERS in choices else [])]
    for choice, method in asked:
        if method is not None and not method.counted:
            words = [m.word for m in choice.methods if m.counted]
            fitting = f"use {choice.flag} {', '.join(words[:-1])} or {words[-1]}"
            what = f"{choice.flag} {method.word} learns from the rows, and counts do not hold them"
            raise UsageError(what, hint=f"{fitting}, or fit the table itself")


def _refuse_needless(chosen: ChosenMethods) -> None:
    """Options that need larger families, or more parents, than the structure can have."""
    structure, typed = chosen.structure, chosen.typed
    if structure is None:
        return
    for flag, other, most in structure.needs:
        if flag in typed and chosen.value(other) <= most:
            raise UsageError(f"{flag} has no effect with {other} {chosen.value(other)}", hint="leave one of them out")
    if structure.alone is not None and alone(structure, chosen.value):
        bound, most = structure.alone
        for flag in chosen.param.joint:
            if flag in typed:
                what = f"{flag} has no effect with --structure {structure.word}{f' {bound} {most}' if bound else ''}"
                raise UsageError(what, hint="leave it out: every table there has one attribute")


def _refuse_unfit(chosen: ChosenMethods) -> None:
    """Raise UsageError where parameters and structure do not go together, or an option has no meaning with the two."""
    typed, kind, param = chosen.typed, chosen.kind, chosen.param.word
    if kind and param not in params_of(kind):
        what = f"--param {param} cannot go with {_NAMES.get(kind, f'--structure {kind}')}"
        raise UsageError(what, hint=f"use --param {', '.join(params_of(kind))}, or another structure")
    if not kind and not chosen.param.networks:
        words = [m.word for m in STRUCTURES.methods if param in m.params]
        raise UsageError(f"--param {param} does not go with networks", hint=f"use --structure {words[0]}")
    if chosen.of_kind is not None and kind:
        _refuse_flags(list(typed), *chosen.of_kind.idle)
        _refuse_other(typed, chosen.of_kind, f"--structure {kind}")
    _refuse_other(typed, chosen.param, as_typed(PARAMETERS, param))
    if kind:
        _refuse_flags(list(typed), ("--arcs",), "with regions, which have none")
    else:
        _refuse_flags(list(typed), ("--theta",), "without regions")


def _refuse_other(typed: Mapping[str, Any], method: Method, name: str) -> None:
    """Raise UsageError for a value other than the one that the method fixes, which may be typed."""
    for flag, text in method.fixed:
        value = read({key_of(flag): text})[flag]
        if typed.get(flag, value) != value:
            free = [m.word for m in PARAMETERS.methods if flag in m.options and flag not in dict(m.fixed)]
            hint = f"use {flag} {text}, or --param {', '.join(free)} with networks"
            raise UsageError(f"{flag} {_text(typed[flag])} has no meaning with {name}", hint=hint)


def _text(value: Any) -> str:
    return written(value) if isinstance(value, float) else str(value)


def _refuse_policy(chosen: ChosenMethods) -> None:
    """Raise UsageError where missing values cannot be what the policy says with these parameters."""
    param, policy = chosen.param, chosen.typed.get("--missing-policy")
    if param.incomplete and policy == "level":
        what = f"--missing-policy level has no meaning with --param {param.word}"
        raise UsageError(what, hint=f"{param.word} marginalizes missing values; --param map takes them as a level")
    if policy == "marginalize" and not param.probabilities:
        name = as_typed(PARAMETERS, param.word)
        what = f"--missing-policy marginalize cannot go with {name}, whose numbers are not probabilities"
        raise UsageError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")


def _refuse_optimization(chosen: ChosenMethods) -> None:
    """Rules of the penalty, the start and the stop."""
    typed, resolved = chosen.typed, optimization(chosen)
    if resolved["early_stop"] == "cv" and typed.get("--penalty") == "cv":
        hint = "choose one of them: --early-stop none, or a number for --penalty"
        raise UsageError("--penalty cv and --early-stop cv both hold rows out to choose how far to go", hint=hint)
    if resolved["early_stop"] == "cv" and typed.get("--arcs") == "cv":
        hint = "choose one of them: --arcs all, or --early-stop none"
        raise UsageError("--arcs cv and --early-stop cv both hold rows out to choose what is learnt", hint=hint)
    if "--penalty-center" in typed and resolved["penalty"] == 0:
        raise UsageError("--penalty-center has no effect with --penalty 0", hint="leave one of them out")
    if resolved["init"] == "zero":
        for flag in chosen.param.start:
            if flag in typed and not (chosen.structure is not None and flag in chosen.structure.options):
                what = f"{flag} has no effect with --param {chosen.param.word} that starts from zero"
                raise UsageError(what, hint="use --init generative, or leave it out")


def _refuse_directions(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for a column that is to go both ways, and for a label that nothing goes towards."""
    both = [name for name in typed.get("--increasing", ()) if name in typed.get("--decreasing", ())]
    if both:
        raise UsageError(f"column {both[0]!r} is to be both increasing and decreasing", hint="leave one of them out")
    if "--towards" in typed and "--increasing" not in typed and "--decreasing" not in typed:
        hint = "name a column by one of them, or leave it out"
        raise UsageError("--towards has no effect without --increasing or --decreasing", hint=hint)


def refuse_decisions(typed: Mapping[str, Any], sets: bool = False) -> None:
    """Raise UsageError for two ways to decide at once, and what goes with sets without them (`sets`.

    A model has them).
    """
    if typed["--costs"] is not None and typed["--threshold"] is not None:
        raise UsageError("--costs and --threshold both say what to decide", hint="leave one of them out")
    if typed["--sets-by"] is not None and typed["--sets"] is None and not sets:
        raise UsageError("--sets-by has no effect without --sets", hint="add --sets ALPHA")
