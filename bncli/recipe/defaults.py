"""What was typed, and every default: from words to the values of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bncli.catalogue import (
    DECISION_KEYS,
    DISCRETIZERS,
    KEYS,
    LEARNING,
    MISSING_POLICIES,
    OPTIMIZERS,
    OPTIONS,
    PARAMETERS,
    SCORES,
    STRUCTURES,
    TACIT,
)
from bncli.catalogue.choices import CATEGORIES, Choice, Method, Option, flag_of, key_of
from bncli.catalogue.option_kinds import Switch, Whole, decimal, written
from bncli.errors import UsageError

_MOST_ROWS = 1e15
"""Above it, added rows drown all counts in rounding."""
BY_FLAG: dict[str, Choice | Option] = {entry.flag: entry for entry in LEARNING}
_SWITCHES = {option.flag for option in OPTIONS if isinstance(option.kind, Switch)}
_SEED = Whole()


class SuppliedKinds(NamedTuple):
    """Files that stand in for learning, by the names that errors give them; `kind` as in `kind_of`, of the structure.

    `trace` is no stand-in: it is a file that only parameters with an optimizer can write. `counts` stand in for the
    rows and their cuts. `coded`: the cuts are those of the table itself, whose rows are codes.
    """

    cuts: str | None = None
    structure: str | None = None
    kind: str = ""
    trace: str | None = None
    counts: str | None = None
    coded: bool = False


NOTHING = SuppliedKinds()


class ChosenMethods(NamedTuple):
    """The methods that are chosen, and what they make of the other options."""

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
        of_kind = STRUCTURES.method(kind) if kind else structure
        usual = dict(of_kind.defaults) if of_kind else {}
        discretizer = typed.get("--discretize") or usual.get("--discretize", DISCRETIZERS.default)
        param = typed.get("--param") or params_of(kind)[0]
        words = {DISCRETIZERS: discretizer, STRUCTURES: "file" if structure is None else word, PARAMETERS: param}
        fitter = _method(PARAMETERS, param)
        optimizer = typed.get("--optimizer") or dict(fitter.defaults).get("--optimizer", OPTIMIZERS.default)
        if takes_optimizer := "--optimizer" in fitter.options:
            words[OPTIMIZERS] = optimizer
        return cls(
            typed,
            structure,
            _method(DISCRETIZERS, discretizer),
            fitter,
            _method(OPTIMIZERS, optimizer) if takes_optimizer else None,
            words,
            kind,
        )

    @property
    def taking(self) -> tuple[Method, ...]:
        """The methods whose options count, the one that decides about defaults first."""
        return tuple(
            method for method in (self.structure, self.discretizer, self.param, self.optimizer) if method is not None
        )

    @property
    def of_kind(self) -> Method | None:
        """The structure's method; for a file the one that makes what it holds, unless that is a network."""
        return self.structure or (STRUCTURES.method(self.kind) if self.kind else None)

    @property
    def joined(self) -> bool:
        """Whether there may be arcs between attributes."""
        return not self.kind and (self.structure is None or not alone(self.structure, self.value))

    def value(self, flag: str) -> Any:
        """Return what was typed, or the default of the first method that takes the option; None where none does."""
        takers = [method for method in self.taking if flag in method.options]
        entry = BY_FLAG[flag]
        if not takers or entry is SCORES:
            return None
        deciders = [*((self.of_kind,) if self.of_kind else ()), *takers]
        fixed = [dict(method.fixed)[flag] for method in deciders if flag in dict(method.fixed)]
        if fixed:
            return read({key_of(flag): fixed[0]})[flag]
        if flag in self.typed:
            return self.typed[flag]
        if self.structure is None and (flag in STRUCTURES.governed or flag == "--arcs"):
            return None  # the file says it, or what it was made by
        if flag == "--arcs" and "--structure" in self.typed:
            return "all"  # a structure that is asked for is what is fitted
        if flag in _SWITCHES:
            return False
        defaults = [dict(method.defaults).get(flag, "") for method in deciders]
        default = next(filter(None, [*defaults, entry.default]), "")
        return read({key_of(flag): default})[flag] if default else None


def kind_of(structure: str) -> str:
    """Return the word of a structure that is no network (kikuchi, interactions, auto); "" for networks."""
    method = STRUCTURES.method(structure)
    return structure if method is not None and method.params else ""


def params_of(kind: str) -> tuple[str, ...]:
    """Return the parameters that go with a kind of structure, the default first."""
    method = STRUCTURES.method(kind)
    if method is not None and method.params:
        return method.params
    words = tuple(m.word for m in PARAMETERS.methods if m.networks)
    return (PARAMETERS.default, *(word for word in words if word != PARAMETERS.default))


def read(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed, by flag, as the values that it stands for."""
    typed: dict[str, Any] = {}
    for key, value in words.items():
        flag = flag_of(key)
        if flag != "--seed" and flag not in BY_FLAG:
            raise UsageError(f"there is no learning option {key!r}", hint=near(key, KEYS))
        if value is None or (value is False and flag in _SWITCHES):
            continue
        entry = BY_FLAG.get(flag)
        found = rule(str(value), entry) if isinstance(entry, Choice) else _value(flag, value, entry)
        typed |= {} if found is None else {flag: found}
    return typed


def _value(flag: str, value: object, option: Option | None) -> Any:
    try:
        return (_SEED if option is None else option.kind).read(value)
    except ValueError as error:
        raise UsageError(f"Invalid value for '{flag}': {error}") from error


def rule(text: str, choice: Choice) -> str:
    """Return `NAME`, or `NAME:NUMBER` with the number written out in the shortest way; UsageError for anything else."""
    name, colon, number = text.partition(":")
    method = choice.method(name)
    if method is None:
        raise UsageError(f"{choice.flag} knows no {name!r}", hint=near(name, choice.words))
    if not method.number:
        if colon:
            raise UsageError(f"{choice.flag} {name} takes no number", hint=f"leave out ':{number}'")
        return name
    strength = decimal(number if colon else method.number)
    if strength is None or strength <= 0:
        raise UsageError(f"{choice.flag} {name} takes a number above 0, not {number!r}", hint=f"for example {name}:5")
    if strength > _MOST_ROWS:
        raise UsageError(f"{choice.flag} {name} takes a number up to {_MOST_ROWS:.0e}, not {number}")
    return f"{name}:{written(strength)}"


def near(word: str, words: Iterable[str], also: str = "") -> str:
    """Return the advice after a mistyped word: the nearest one, else all that there are."""
    from difflib import get_close_matches

    words = list(words)
    found = get_close_matches(word, words, n=1)
    return f"did you mean {found[0]}?" if found else f"the choices are {', '.join(words)}{also}"


def alone(structure: Method, value: Callable[[str], Any]) -> bool:
    """Return whether every family of the structure has a single attribute; `value` tells its options by flag."""
    if structure.alone is None:
        return False
    bound, most = structure.alone
    return not bound or value(bound) <= most


def may_have_arcs(structure: str, options: Mapping[str, Any]) -> bool:
    """Return whether a structure file of this method may join attributes; `file` is a structure made by hand.

    `options` are those of the structure by their keys.
    """
    method = STRUCTURES.method(structure)
    return method is None or not (method.params or alone(method, lambda flag: options[key_of(flag)]))


def score(chosen: ChosenMethods) -> str | None:
    """Return the structure score written out, the number of --pseudo-counts included; None where there is none."""
    structure = chosen.structure
    if structure is None or "--structure-score" not in structure.options:
        return None
    usual = dict(structure.defaults).get("--structure-score", SCORES.default)
    word = str(chosen.typed.get("--structure-score") or usual)
    if "--pseudo-counts" not in SCORES.options_of(word):
        return word
    option = BY_FLAG["--pseudo-counts"]
    rule = f"{word}:{written(float(chosen.typed.get('--pseudo-counts') or option.default))}"
    prior = chosen.typed.get("--class-pair-prior") if "--class-pair-prior" in SCORES.options_of(word) else None
    return rule if prior is None else f"{rule}/{prior}"


def optimization(chosen: ChosenMethods) -> dict[str, Any]:
    """Return the missing policy, and what the penalty, the start and the stop are by default."""
    typed = chosen.typed
    policy = typed.get("--missing-policy") or ("marginalize" if chosen.param.incomplete else MISSING_POLICIES.default)
    taken = chosen.param.options
    early = typed.get("--early-stop") or ("cv" if policy == "marginalize" else "none")
    early = early if "--early-stop" in taken else None
    penalty, center = chosen.value("--penalty"), chosen.value("--penalty-center")
    if early == "cv" and "--penalty" not in typed:
        penalty = 0.0
    shrinks = penalty != 0 and center == 0
    init = chosen.value("--init") or ("zero" if shrinks else "generative") if "--init" in taken else None
    arcs = chosen.value("--arcs") if chosen.joined else None
    if (arcs == "all" and penalty != "cv") or (arcs == "cv" and penalty != "cv" and "--arcs" not in typed):
        arcs = None  # nothing is held out that could choose
    return {"missing_policy": policy, "early_stop": early, "penalty": penalty, "init": init, "arcs": arcs}


def values(chosen: ChosenMethods, seed: int) -> dict[str, Any]:
    """Return the value of every key of a recipe."""
    taken = {key_of(entry.flag): chosen.value(entry.flag) for entry in LEARNING}
    taken |= {key_of(choice.flag): word for choice, word in chosen.words.items()}
    taken["structure_score"] = score(chosen)
    taken |= {key: chosen.typed.get(flag_of(key)) for key in ("class_weights", "calibrate", *DECISION_KEYS)}
    taken["smoothing"] = None if chosen.kind else taken["smoothing"]
    if chosen.kind == "auto":
        taken |= {"discretize": "auto", **dict.fromkeys(map(key_of, DISCRETIZERS.governed - {*CATEGORIES}))}
    taken |= optimization(chosen)
    # beside a structure file a default that is typed wins over what the file says
    kept = set(map(key_of, chosen.typed)) & set(map(key_of, STRUCTURES.governed)) if chosen.structure is None else set()
    taken |= {key: None for key, default in TACIT.items() if taken[key] == default and key not in kept}
    held_out = taken["sets"] is not None or decimal(taken["threshold"] or "0") is None
    random = chosen.param.word == "auto" or "cv" in (taken["penalty"], taken["early_stop"], taken["arcs"])
    random = random or taken["restarts"] or held_out or taken["calibrate"]
    return {key: taken.get(key) for key in KEYS} | {"seed": seed if random else None}


def _method(choice: Choice, word: str) -> Method:
    method = choice.method(word)
    assert method is not None, word
    return method
