"""The defaults of a recipe: they turn the options that were given into a value for every key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bncli.catalogue import (
    DECISION_KEYS,
    DISCRETIZERS,
    KEYS,
    LEARNING,
    MISSING_POLICIES,
    NONE_IF_DEFAULT,
    OPTIMIZERS,
    OPTIONS,
    PARAMETERS,
    SCORES,
    STRUCTURES,
)
from bncli.catalogue.choices import LEVEL_GROUPING, Choice, Method, Option, flag_of, key_of
from bncli.catalogue.option_kinds import Integer, Switch, format_number, parse_decimal
from bncli.errors import UsageError

BY_FLAG: dict[str, Choice | Option] = {entry.flag: entry for entry in LEARNING}

ALTERNATIVE = "interactions"
"""The structure that competes with the default one on held-out rows if no option decides between them."""
GO_WITH_ALTERNATIVE = frozenset(
    (
        *("--seed", "--group-levels", "--missing-policy", "--max-attributes", "--class-weights", "--calibrate"),
        *("--increasing", "--decreasing", "--towards", *map(flag_of, DECISION_KEYS)),
    )
)
"""The options that have the same meaning for both structures and therefore do not decide between them."""
_SWITCHES = {option.flag for option in OPTIONS if isinstance(option.kind, Switch)}
_OF_ALL_METHODS = ("class_weights", "calibrate", "max_attributes", "knowledge", "prior_network", "prior_rows")
"""Keys of options that do not belong to any method."""
_MOST_ROWS = 1e15
"""The maximum number in a smoothing or score rule; with more prior rows, rounding would make the counts vanish."""


class SuppliedKinds(NamedTuple):
    """The files that replace a part of learning, by the names that error messages use; None without such a file.

    cuts, structure, counts: files of these types; counts replace the rows and their cuts. kind: the kind of the
    supplied structure, as returned by `kind_of`. trace: a trace file to write, which needs parameters with an
    optimizer. coded: whether the table is a `.codes` file, which contains its own cuts.
    """

    cuts: str | None = None
    structure: str | None = None
    kind: str = ""
    trace: str | None = None
    counts: str | None = None
    coded: bool = False


NOTHING = SuppliedKinds()


class ChosenMethods(NamedTuple):
    """The options that were given, by flag, and the methods that follow from them.

    structure: None if a file supplies it. optimizer: None if the parameters need none. words: the chosen method's name
    for every choice that applies. kind: the kind of the structure, see `kind_of`.
    """

    typed: Mapping[str, Any]
    structure: Method | None
    discretizer: Method
    param: Method
    optimizer: Method | None
    words: Mapping[Choice, str]
    kind: str

    @classmethod
    def of(cls, typed: Mapping[str, Any], files: SuppliedKinds) -> ChosenMethods:
        word = typed.get("--structure") or ("auto" if typed.get("--param") == "auto" else STRUCTURES.default)
        structure = None if files.structure else STRUCTURES.method(word)
        kind = files.kind if structure is None else kind_of(word)
        decider = STRUCTURES.method(kind) if kind else structure
        discretizer = typed.get("--discretize") or (dict(decider.defaults) if decider else {}).get(
            "--discretize", DISCRETIZERS.default
        )
        param = _method(PARAMETERS, typed.get("--param") or params_of(kind)[0])
        words = {DISCRETIZERS: discretizer, STRUCTURES: "file" if structure is None else word, PARAMETERS: param.word}
        optimizer = None
        if "--optimizer" in param.options:
            default = dict(param.defaults).get("--optimizer", OPTIMIZERS.default)
            words[OPTIMIZERS] = typed.get("--optimizer") or default
            optimizer = _method(OPTIMIZERS, words[OPTIMIZERS])
        return cls(typed, structure, _method(DISCRETIZERS, discretizer), param, optimizer, words, kind)

    @property
    def structure_method(self) -> Method | None:
        """The structure learner; for a structure file, the method that learns its kind of regions, or None."""
        return self.structure or (STRUCTURES.method(self.kind) if self.kind else None)

    def value(self, flag: str) -> Any:
        """Return the value of an option: the value that a method fixes, the value that was given, or the default.

        The first of these that exists is returned. The value is None if no method takes the option, if a structure file
        determines it, or if it is not given and has no default. It is also None for `--structure-score`, whose value
        `score_rule` returns.
        """
        methods = (self.structure, self.discretizer, self.param, self.optimizer)
        takers = [method for method in methods if method is not None and flag in method.options]
        entry = BY_FLAG[flag]
        if not takers or entry is SCORES:
            return None
        deciders = [*((self.structure_method,) if self.structure_method else ()), *takers]
        fixed = [dict(method.fixed)[flag] for method in deciders if flag in dict(method.fixed)]
        if fixed:
            return parse_options({key_of(flag): fixed[0]})[flag]
        if flag in self.typed:
            return self.typed[flag]
        if self.structure is None and (flag in STRUCTURES.method_options or flag == "--arcs"):
            return None  # the structure file has the value
        if flag == "--arcs" and ("--structure" in self.typed or '"require"' in self.typed.get("--knowledge", "")):
            return "all"  # a structure that was typed, or arcs that are required, are fitted as they are
        if flag in _SWITCHES:
            return False
        defaults = [dict(method.defaults).get(flag, "") for method in deciders]
        default = next(filter(None, [*defaults, entry.default]), "")
        return parse_options({key_of(flag): default})[flag] if default else None


def recipe_values(chosen: ChosenMethods, seed: int) -> dict[str, Any]:
    """Return the value of every key of a recipe."""
    values = {key_of(entry.flag): chosen.value(entry.flag) for entry in LEARNING}
    values |= {key_of(choice.flag): word for choice, word in chosen.words.items()}
    values["structure_score"] = score_rule(chosen)
    values |= {key: chosen.typed.get(flag_of(key)) for key in (*_OF_ALL_METHODS, *DECISION_KEYS)}
    values["smoothing"] = None if chosen.kind else values["smoothing"]
    if chosen.kind == "auto":
        cut_options = DISCRETIZERS.method_options - {*LEVEL_GROUPING}
        values |= {"discretize": "auto", **dict.fromkeys(map(key_of, cut_options))}
    values |= dependent_defaults(chosen)
    # With a structure file, a default that was given overrides the value in the file, so it is not replaced by None.
    overruling = set()
    if chosen.structure is None:
        overruling = set(map(key_of, chosen.typed)) & set(map(key_of, STRUCTURES.method_options))
    for key, default in NONE_IF_DEFAULT.items():
        if values[key] == default and key not in overruling:
            values[key] = None
    return {key: values.get(key) for key in KEYS} | {"seed": seed if is_random(values) else None}


def is_random(values: Mapping[str, Any]) -> bool:
    """Return whether learning with these values of a recipe draws random numbers and therefore needs a seed."""
    holds_rows_out = values["sets"] is not None or parse_decimal(values["threshold"] or "0") is None
    by_folds = values["param"] == "auto" or "cv" in (values["penalty"], values["early_stop"], values["arcs"])
    # An optimizer fits rows that are drawn from a prior network.
    draws_rows = values["prior_network"] is not None and values["optimizer"] is not None
    others = (values["restarts"], values["calibrate"], values["max_attributes"], draws_rows)
    return by_folds or holds_rows_out or any(others)


def dependent_defaults(chosen: ChosenMethods) -> dict[str, Any]:
    """Resolve the options whose defaults depend on each other: missing_policy, early_stop, penalty, init and arcs.

    Returns their values by key, None for an option that has no effect.
    """
    typed = chosen.typed
    policy = typed.get("--missing-policy")
    policy = policy or ("marginalize" if chosen.param.for_missing_values else MISSING_POLICIES.default)
    options = chosen.param.options
    early_stop = typed.get("--early-stop") or ("cv" if policy == "marginalize" else "none")
    early_stop = early_stop if "--early-stop" in options else None
    penalty, center = chosen.value("--penalty"), chosen.value("--penalty-center")
    if early_stop == "cv" and "--penalty" not in typed:
        penalty = 0.0
    shrinks_to_zero = penalty != 0 and center == 0
    init = None
    if "--init" in options:
        init = chosen.value("--init") or ("zero" if shrinks_to_zero else "generative")
    may_join = not chosen.kind and not (chosen.structure and has_single_attributes(chosen.structure, chosen.value))
    arcs = chosen.value("--arcs") if may_join else None
    if penalty != "cv" and (arcs == "all" or (arcs == "cv" and "--arcs" not in typed)):
        arcs = None  # no rows are held out that could choose
    return {"missing_policy": policy, "early_stop": early_stop, "penalty": penalty, "init": init, "arcs": arcs}


def score_rule(chosen: ChosenMethods) -> str | None:
    """Return the structure score, or None if the structure is supplied or takes no score.

    `acll` and `acll-uniform` are followed by a colon and the value of `--pseudo-counts`, and `acll` also by a slash and
    the value of `--class-pair-prior`, if that is given.
    """
    structure = chosen.structure
    if structure is None or "--structure-score" not in structure.options:
        return None
    default = dict(structure.defaults).get("--structure-score", SCORES.default)
    word = str(chosen.typed.get("--structure-score") or default)
    if "--pseudo-counts" not in SCORES.options_of(word):
        return word
    pseudo_counts = float(chosen.typed.get("--pseudo-counts") or BY_FLAG["--pseudo-counts"].default)
    rule = f"{word}:{format_number(pseudo_counts)}"
    prior = chosen.typed.get("--class-pair-prior") if "--class-pair-prior" in SCORES.options_of(word) else None
    return rule if prior is None else f"{rule}/{prior}"


def kind_of(structure: str) -> str:
    """Return `structure` if it is not a network (such as kikuchi, interactions or auto), or "" if it is a network."""
    method = STRUCTURES.method(structure)
    return structure if method is not None and method.params else ""


def params_of(kind: str) -> tuple[str, ...]:
    """Return the names of the `--param` methods that a kind of structure can have, the default first."""
    method = STRUCTURES.method(kind)
    if method is not None and method.params:
        return method.params
    words = tuple(m.word for m in PARAMETERS.methods if m.networks)
    return (PARAMETERS.default, *(word for word in words if word != PARAMETERS.default))


def has_single_attributes(structure: Method, value: Callable[[str], Any]) -> bool:
    """Return whether every table of the structure has a single attribute; `value` maps a flag to the option's value."""
    if structure.single_attribute_limit is None:
        return False
    flag, limit = structure.single_attribute_limit
    return not flag or value(flag) <= limit


def parse_options(words: Mapping[str, Any]) -> dict[str, Any]:
    """Parse options given by key; return the values by flag, without options that were not given.

    None, and False for a switch, mean that an option was not given. Raises UsageError for a key that is not a learning
    option, and for an invalid value.
    """
    typed: dict[str, Any] = {}
    for key, value in words.items():
        flag = flag_of(key)
        if flag != "--seed" and flag not in BY_FLAG:
            raise UsageError(f"there is no learning option {key!r}", hint=suggestion(key, KEYS))
        if value is None or (value is False and flag in _SWITCHES):
            continue
        entry = BY_FLAG.get(flag)
        if isinstance(entry, Choice):
            parsed: Any = parse_rule(str(value), entry)
        else:
            try:
                parsed = (Integer() if entry is None else entry.kind).parse(value)
            except ValueError as error:
                raise UsageError(f"Invalid value for '{flag}': {error}") from error
        if parsed is not None:
            typed[flag] = parsed
    return typed


def parse_rule(text: str, choice: Choice) -> str:
    """Parse `NAME` or `NAME:NUMBER`; return it with the number, or its default, in the shortest form.

    Methods without a number are returned as `NAME`. Raises UsageError for an unknown method and for an invalid number.
    """
    name, colon, number = text.partition(":")
    method = choice.method(name)
    if method is None:
        raise UsageError(f"unknown {choice.flag} {name!r}", hint=suggestion(name, choice.words))
    if not method.number:
        if colon:
            raise UsageError(f"{choice.flag} {name} does not take a number", hint=f"leave out ':{number}'")
        return name
    value = parse_decimal(number if colon else method.number)
    if value is None or value <= 0:
        raise UsageError(f"{choice.flag} {name} needs a number above 0, not {number!r}", hint=f"for example {name}:5")
    if value > _MOST_ROWS:
        raise UsageError(f"{choice.flag} {name} needs a number of at most {_MOST_ROWS:.0e}, not {number}")
    return f"{name}:{format_number(value)}"


def suggestion(word: str, words: Iterable[str], also: str = "") -> str:
    """Return a hint for a mistyped word: the most similar word or, if none is similar, all words followed by `also`."""
    from difflib import get_close_matches

    words = list(words)
    matches = get_close_matches(word, words, n=1)
    return f"did you mean {matches[0]}?" if matches else f"the choices are {', '.join(words)}{also}"


def _method(choice: Choice, word: str) -> Method:
    method = choice.method(word)
    assert method is not None, word
    return method
