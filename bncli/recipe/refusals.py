"""Checks of a recipe: options without effect, and options that cannot be combined, raise a UsageError of one line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bncli.catalogue import (
    DECISION_KEYS,
    DISCRETIZERS,
    MARGINALIZED,
    PARAMETERS,
    SCORES,
    STRUCTURES,
    as_typed,
    refuse_options_without_effect,
)
from bncli.catalogue.choices import Choice, Method, flag_of, key_of
from bncli.catalogue.knowledge import Knowledge
from bncli.catalogue.option_kinds import format_number, parse_decimal
from bncli.errors import UsageError, alternatives
from bncli.recipe.defaults import (
    ChosenMethods,
    SuppliedKinds,
    dependent_defaults,
    has_single_attributes,
    params_of,
    parse_options,
    score_rule,
)

_KIND_NAMES = {
    "kikuchi": "regions, which are not a Bayesian network",
    "interactions": "regions that use coarser intervals",
    "card": "a card, whose tables are points",
    "auto": "--structure auto, which chooses its own parameters",
}
_LEAVE_OUT = "leave one of them out"


def refuse(chosen: ChosenMethods, files: SuppliedKinds, choices: Collection[Choice]) -> None:
    """Raise UsageError if an option has no effect, or if options cannot be combined.

    `choices` are the choices of the running command; without PARAMETERS the rules about parameters are skipped.
    """
    typed = chosen.typed
    flags = [*typed, *(f"--{name}" for name in ("cuts", "trace") if getattr(files, name) is not None)]
    _refuse_beside_files(chosen, files, flags, choices)

    score = score_rule(chosen)
    words = {choice.flag: word for choice, word in chosen.words.items()}
    words["--structure"] = files.structure or words["--structure"]
    words |= {} if score is None else {"--structure-score": score.partition(":")[0]}
    refuse_options_without_effect(flags, words, choices)
    if score == "cmi" and words["--structure"] != "tan":
        hint = "choose " + ", ".join(word for word in SCORES.words if word != "cmi")
        raise UsageError(f"--structure-score cmi has no effect with --structure {words['--structure']}", hint=hint)

    _refuse_limit(chosen, files)
    _refuse_knowledge(chosen, files)
    _refuse_prior(chosen, files)
    _refuse_below_limits(chosen)
    refuse_decisions({flag: typed.get(flag) for flag in map(flag_of, DECISION_KEYS)})
    if PARAMETERS in choices:
        _refuse_unsuitable_parameters(chosen)
        _refuse_optimization(chosen)
    both = [name for name in typed.get("--increasing", ()) if name in typed.get("--decreasing", ())]
    if both:
        raise UsageError(
            f"column {both[0]!r} is named as both increasing and decreasing", hint="list it in only one of them"
        )
    if "--towards" in typed and "--increasing" not in typed and "--decreasing" not in typed:
        hint = "add --increasing COLUMN or --decreasing COLUMN, or leave --towards out"
        raise UsageError("--towards has no effect without --increasing or --decreasing", hint=hint)


def _refuse_beside_files(
    chosen: ChosenMethods, files: SuppliedKinds, flags: Collection[str], choices: Collection[Choice]
) -> None:
    """Raise UsageError for options that a file, or a structure with cuts of its own, leaves without effect.

    With counts, also raise it for a method that needs the rows themselves.
    """
    structure = chosen.structure_method
    if structure is not None and "--cuts" in structure.without_effect[0]:
        _refuse_flags(flags, *structure.without_effect)
    cutting = (DISCRETIZERS.flag, *DISCRETIZERS.method_options)
    if files.counts is None:
        if files.cuts is not None and files.coded:
            _refuse_flags(flags, cutting, f"on {files.cuts}, whose rows are codes", "use it with bncli encode")
        elif files.cuts is not None:
            _refuse_flags(flags, cutting, "with --cuts FILE")
        return

    _refuse_flags(flags, (*cutting, "--cuts"), "with --from-counts FILE, which contains the cuts")
    _refuse_flags(flags, ("--class-weights",), "with --from-counts FILE, because rows were counted with their weights")
    # A threshold that is a number needs no rows, but a rule such as best:f1 does.
    is_rule = "--threshold" in chosen.typed and parse_decimal(chosen.typed["--threshold"]) is None
    holding_out = ("--calibrate", "--sets", *(("--threshold",) if is_rule else ()))
    _refuse_flags(flags, holding_out, "with --from-counts FILE, which has no rows to hold out")
    learners = [(STRUCTURES, structure), *([(PARAMETERS, chosen.param)] if PARAMETERS in choices else [])]
    for choice, method in learners:
        if method is not None and not method.from_counts:
            words = [m.word for m in choice.methods if m.from_counts]
            fitting = f"use {choice.flag} {alternatives(words)}"
            what = f"{choice.flag} {method.word} needs the rows, which counts do not contain"
            raise UsageError(what, hint=f"{fitting}, or fit the table itself")


def _refuse_flags(flags: Iterable[str], idle: tuple[str, ...], why: str, hint: str = _LEAVE_OUT) -> None:
    for flag in flags:
        if flag in idle:
            raise UsageError(f"{flag} has no effect {why}", hint=hint)


def _refuse_limit(chosen: ChosenMethods, files: SuppliedKinds) -> None:
    """Raise UsageError if --max-attributes has no effect: files name the attributes, and auto selects its own."""
    if "--max-attributes" not in chosen.typed:
        return
    if chosen.structure is not None and chosen.kind == "auto":
        hint = "choose another structure, or give the columns with --use"
        raise UsageError(
            "--max-attributes has no effect with --structure auto, which selects attributes itself", hint=hint
        )
    if files.counts is not None:
        what = "--max-attributes has no effect with --from-counts FILE, which has no rows to hold out"
    elif files.structure is not None:
        what = f"--max-attributes has no effect with the structure in {files.structure}, which lists its attributes"
    elif files.coded:
        what = f"--max-attributes has no effect on {files.cuts}, whose rows are codes"
        raise UsageError(what, hint="learn from the table itself")
    elif files.cuts is not None:
        what = "--max-attributes has no effect with --cuts FILE, which lists the attributes"
    else:
        return
    raise UsageError(what, hint=_LEAVE_OUT)


def _refuse_knowledge(chosen: ChosenMethods, files: SuppliedKinds) -> None:
    """Raise UsageError for domain knowledge that the structure cannot obey."""
    if "--knowledge" not in chosen.typed:
        return
    known = Knowledge.parse(chosen.typed["--knowledge"])
    if files.structure is not None:
        raise UsageError(f"--knowledge has no effect with the structure in {files.structure}", hint=_LEAVE_OUT)
    if chosen.kind == "auto":
        hint = "choose another structure, such as interactions or tan"
        raise UsageError(
            "--knowledge has no effect with --structure auto, whose trees cannot obey constraints", hint=hint
        )
    if chosen.kind and (known.require or known.before or known.root):
        what = f"--structure {chosen.kind} has no arcs, so it cannot obey require, before or root in --knowledge"
        raise UsageError(what, hint="use no_interaction, or --structure tan, kdb or hill-climb")
    assert chosen.structure is not None
    if has_single_attributes(chosen.structure, chosen.value):
        what = f"--knowledge has no effect with --structure {chosen.structure.word}, which does not combine attributes"
        raise UsageError(what, hint=_LEAVE_OUT)
    if chosen.structure.word == "gbn" and known.max_parents is not None:
        what = "--structure gbn cannot obey max_parents of --knowledge"
        raise UsageError(what, hint="use --structure tan, kdb or hill-climb")
    if known.require and chosen.typed.get("--arcs") == "cv":
        raise UsageError("--arcs cv may leave out arcs that --knowledge requires", hint="leave --arcs out")


def _refuse_prior(chosen: ChosenMethods, files: SuppliedKinds) -> None:
    """Raise UsageError if --prior-network or --prior-rows was typed without the other, or has no effect."""
    typed, flags = chosen.typed, ("--prior-network", "--prior-rows")
    given = [flag for flag in flags if flag in typed]
    if not given:
        return
    if len(given) == 1:
        other = next(flag for flag in flags if flag not in typed)
        raise UsageError(f"{given[0]} has no effect without {other}", hint=f"add {other}, or leave {given[0]} out")
    if chosen.kind:
        what = f"--prior-network has no effect with --structure {chosen.kind}, which is not a Bayesian network"
        raise UsageError(what, hint="choose another structure, such as tan")
    if chosen.param.word in ("acll", "acll-uniform"):
        what = f"--prior-network has no effect with --param {chosen.param.word}, whose probabilities have no prior"
        raise UsageError(what, hint="use --param map or weighted")
    if files.cuts is None:
        idle = (DISCRETIZERS.flag, *DISCRETIZERS.method_options, "--max-attributes")
        _refuse_flags(typed, idle, "with --prior-network, which fixes the cuts and levels")


def _refuse_below_limits(chosen: ChosenMethods) -> None:
    """Raise UsageError for options that need larger tables, or more parents, than the structure can have."""
    structure, typed = chosen.structure, chosen.typed
    if structure is None:
        return
    for flag, other, limit in structure.requires:
        if flag in typed and chosen.value(other) <= limit:
            raise UsageError(f"{flag} has no effect with {other} {chosen.value(other)}", hint=_LEAVE_OUT)
    if structure.single_attribute_limit is not None and has_single_attributes(structure, chosen.value):
        option, limit = structure.single_attribute_limit
        for flag in chosen.param.joint_options:
            if flag in typed:
                method = f"--structure {structure.word}{f' {option} {limit}' if option else ''}"
                what = f"{flag} has no effect with {method}, because every table has a single attribute"
                raise UsageError(what, hint="leave it out")


def _refuse_unsuitable_parameters(chosen: ChosenMethods) -> None:
    """Raise UsageError if the parameters do not fit the structure, the missing policy or a typed option."""
    typed, kind, param = chosen.typed, chosen.kind, chosen.param
    if kind and param.word not in params_of(kind):
        what = f"--param {param.word} cannot be used with {_KIND_NAMES.get(kind, f'--structure {kind}')}"
        raise UsageError(what, hint=f"use --param {', '.join(params_of(kind))}, or another structure")
    if not kind and not param.networks:
        words = [m.word for m in STRUCTURES.methods if param.word in m.params]
        raise UsageError(f"--param {param.word} cannot be used with networks", hint=f"use --structure {words[0]}")
    if chosen.structure_method is not None and kind:
        _refuse_flags(list(typed), *chosen.structure_method.without_effect)
        _refuse_other_values(typed, chosen.structure_method, f"--structure {kind}")
    name = as_typed(PARAMETERS, param.word)
    _refuse_other_values(typed, param, name)
    if kind:
        _refuse_flags(list(typed), ("--arcs",), "with regions, which have no arcs")
    else:
        _refuse_flags(list(typed), ("--theta",), "without regions", "leave it out, or use --structure kikuchi")

    policy = typed.get("--missing-policy")
    if param.for_missing_values and policy == "level":
        what = f"--missing-policy level has no effect with --param {param.word}"
        raise UsageError(what, hint=f"{param.word} marginalizes missing values; --param map treats them as a level")
    if policy == "marginalize" and not param.probabilities:
        what = f"--missing-policy marginalize cannot be used with {name}, whose tables are not probabilities"
        raise UsageError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")


def _refuse_other_values(typed: Mapping[str, Any], method: Method, name: str) -> None:
    """Raise UsageError if another value was typed for an option that the method fixes."""
    for flag, text in method.fixed:
        value = parse_options({key_of(flag): text})[flag]
        other = typed.get(flag, value)
        if other != value:
            free = [m.word for m in PARAMETERS.methods if flag in m.options and flag not in dict(m.fixed)]
            hint = f"use {flag} {text}, or --param {', '.join(free)} with networks"
            other = format_number(other) if isinstance(other, float) else str(other)
            raise UsageError(f"{flag} {other} has no effect with {name}", hint=hint)


def _refuse_optimization(chosen: ChosenMethods) -> None:
    """Raise UsageError for a penalty, starting point and early stop that cannot be combined."""
    typed, values = chosen.typed, dependent_defaults(chosen)
    if values["early_stop"] == "cv" and typed.get("--penalty") == "cv":
        hint = "choose one of them: --early-stop none, or a number for --penalty"
        raise UsageError("--penalty cv and --early-stop cv both use held-out rows to prevent overfitting", hint=hint)
    if values["early_stop"] == "cv" and typed.get("--arcs") == "cv":
        hint = "choose one of them: --arcs all, or --early-stop none"
        raise UsageError("--arcs cv and --early-stop cv both use held-out rows to choose the model", hint=hint)
    if "--penalty-center" in typed and values["penalty"] == 0:
        raise UsageError("--penalty-center has no effect with --penalty 0", hint=_LEAVE_OUT)
    if values["init"] == "zero":
        for flag in chosen.param.start_options:
            if flag in typed and not (chosen.structure is not None and flag in chosen.structure.options):
                of_start = "--init zero" if "--init" in typed else "--init zero, the default here"
                what = f"{flag} has no effect with --param {chosen.param.word} and {of_start}"
                raise UsageError(what, hint="use --init generative, or leave it out")


def refuse_decisions(typed: Mapping[str, Any], has_sets: bool = False) -> None:
    """Raise UsageError for two decision rules at once, and for `--sets-by` without prediction sets.

    typed: values by flag, None if an option was not typed. has_sets: whether a model supplies prediction sets.
    """
    if typed["--costs"] is not None and typed["--threshold"] is not None:
        raise UsageError("--costs and --threshold both define the decisions", hint=_LEAVE_OUT)
    if typed["--sets-by"] is not None and typed["--sets"] is None and not has_sets:
        raise UsageError("--sets-by has no effect without --sets", hint="add --sets ALPHA")
