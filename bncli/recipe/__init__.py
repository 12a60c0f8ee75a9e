"""A recipe: the learning options of one fit as an immutable value, which the model stores.

`Recipe.of(structure="kdb", k=2)` makes one. It fills in every default, and raises a UsageError for an option that is
unknown, out of bounds, or without effect; the command line prints that error. Most of these rules follow from the
catalogue; `refuse` contains the rules about combinations of options.

- `defaults`: the rules by which the default of one option depends on another

The recipe in a model file contains neither paths nor the number of threads: the same recipe and rows give the same
model file, byte for byte, unless the recipe has a time limit. An option that has no effect with the chosen methods is
None, and so is an option in the catalogue's NONE_IF_DEFAULT that has its default value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bncli.catalogue import (
    CHOICES,
    DECISION_KEYS,
    DISCRETIZERS,
    KEYS,
    MARGINALIZED,
    NONE_IF_DEFAULT,
    PARAMETERS,
    SCORES,
    STRUCTURES,
    as_typed,
    refuse_options_without_effect,
)
from bncli.catalogue.choices import Choice, Method, flag_of, key_of
from bncli.catalogue.option_kinds import (
    ClassPairPrior,
    DomainKnowledge,
    Knowledge,
    Real,
    Switch,
    Word,
    format_number,
    parse_decimal,
)
from bncli.errors import BncliError, UsageError, alternatives
from bncli.recipe.defaults import (
    ALTERNATIVE,
    BY_FLAG,
    GO_WITH_ALTERNATIVE,
    NOTHING,
    ChosenMethods,
    SuppliedKinds,
    dependent_defaults,
    has_single_attributes,
    is_random,
    params_of,
    parse_options,
    parse_rule,
    recipe_values,
    score_rule,
)

_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
_OF_REGIONS = ("theta", "degrees_of_freedom")
"""Options of the structure kikuchi that its parameter learners also take."""


class Recipe:
    """A value for every learning option, as an attribute with underscores: `recipe.structure`, `recipe.max_order`.

    Some values differ from the options that were given:
    - smoothing and structure_score are `NAME` or `NAME:NUMBER`, with a default number filled in. The number of `acll`
      and `acll-uniform` is from `--pseudo-counts`; a `--class-pair-prior` follows after a slash, with the seed of its
      draws if it has any.
    - init is the given starting point or, by default, the one that follows from the method and the penalty.
    - seed is None unless learning draws random numbers, such as folds, random starts or held-out rows.
    - missing_policy is None in models that were written before the option existed, which means `level`.

    `alternative` is a structure that competes with `structure` on held-out rows, or None. It is not an option: commands
    set it if no option determines the structure, the cuts or the parameters. The recipe of a fitted model has no
    alternative, because its structure is the one that was chosen.
    """

    __slots__ = ("_values",)
    _values: Mapping[str, Any]

    def __init__(self, **words: Any) -> None:
        object.__setattr__(self, "_values", Recipe.of(**words).as_dict())

    @classmethod
    def of(
        cls,
        *,
        files: SuppliedKinds = NOTHING,
        choices: Collection[Choice] = CHOICES,
        alternatives: bool = False,
        **words: Any,
    ) -> Recipe:
        """Return the recipe for options given by key; None means not given, and numbers may be strings.

        files: the files that replace a part of learning. choices: the choices of the running command, the only ones
        that error messages mention. alternatives: whether the default structure may get an alternative, as in
        `bncli fit`. Raises UsageError for options that are unknown, invalid or without effect.
        """
        typed = parse_options(words)
        seed = typed.pop("--seed", 0)
        if typed.get("--class-pair-prior", "").count(":") == 1:
            # Write the seed of the draws out, so that the score stays the same if the recipe has no other random part.
            typed["--class-pair-prior"] += f":{seed}"
        chosen = ChosenMethods.of(typed, files)
        refuse(chosen, files, choices)
        values = recipe_values(chosen, seed)
        learns_all = PARAMETERS in choices and files == NOTHING._replace(trace=files.trace)
        if alternatives and learns_all and typed.keys() <= GO_WITH_ALTERNATIVE:
            values["alternative"] = ALTERNATIVE
        return cls.recorded(values)

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Recipe:
        """Return a recipe with the stored `values`, without checking them; missing options are None."""
        recipe = object.__new__(cls)
        recorded = {key: values.get(key) for key in KEYS}
        if values.get("alternative") is not None:
            recorded["alternative"] = values["alternative"]
        object.__setattr__(recipe, "_values", recorded)
        return recipe

    def options(self, method: Method | None) -> dict[str, Any]:
        """Return the keyword arguments for the function of a method; empty for None (a file replaces the method)."""
        keys = () if method is None else map(key_of, method.keyword_options)
        return {key: NONE_IF_DEFAULT.get(key) if self._values[key] is None else self._values[key] for key in keys}

    @property
    def alternative(self) -> str | None:
        """The structure that competes with `structure` on held-out rows, or None."""
        return self._values.get("alternative")

    def competing(self) -> tuple[Recipe, Recipe]:
        """Return this recipe without its alternative, and the alternative's recipe with the same common options."""
        common = {key_of(flag): self._values[key_of(flag)] for flag in GO_WITH_ALTERNATIVE}
        return self.replaced(alternative=None), Recipe.of(structure=self.alternative).replaced(**common)

    def replaced(self, **values: Any) -> Recipe:
        """Return this recipe with some values replaced, without checking them."""
        return Recipe.recorded({**self._values, **values})

    def without_limit(self) -> Recipe:
        """Return this recipe without `--max-attributes`, for a table that does not exceed this limit.

        The seed is also removed, unless something else draws random numbers.
        """
        values = {**self._values, "max_attributes": None}
        return Recipe.recorded(values if is_random(values) else {**values, "seed": None})

    def as_dict(self) -> dict[str, Any]:
        """Return every value by key, and `alternative` only if there is one."""
        return dict(self._values)

    def with_cuts(self, method: str, options: Mapping[str, int | float | str | bool]) -> Recipe:
        """Return this recipe for supplied cuts that `method` made with `options`; unknown options are ignored."""
        made = {key: options.get(key) for key in map(key_of, DISCRETIZERS.method_options)}
        return self.replaced(discretize=method, **made)

    def with_structure(self, method: str, options: Mapping[str, int | float | str | bool], arcs: str = "all") -> Recipe:
        """Return this recipe for a supplied structure that `method` made with `options`.

        This recipe's own `theta` and `degrees_of_freedom`, if set, take precedence. `arcs` is used for a network with
        arcs between attributes if this recipe's penalty is cross-validated and its `arcs` is None. Unknown options are
        ignored. Raises BncliError for an invalid value of an option.
        """
        values = {key: check_structure_option(key, options.get(key)) for key in map(key_of, STRUCTURES.method_options)}
        for key in _OF_REGIONS:
            if getattr(self, key) is not None:
                values[key] = getattr(self, key)
        values["knowledge"] = check_structure_option("knowledge", options.get("knowledge"))
        maker = STRUCTURES.method(method)
        if maker is not None and (maker.params or has_single_attributes(maker, lambda flag: values[key_of(flag)])):
            values["arcs"] = None  # no arcs between attributes
        elif self.penalty == "cv" and self.arcs is None:
            values["arcs"] = arcs
        return self.replaced(structure=method, **values)

    def __getattr__(self, key: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[key]
        except KeyError:
            raise AttributeError(f"a recipe has no option {key!r}", name=key, obj=self) from None

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError("a recipe cannot be changed")

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Recipe) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __repr__(self) -> str:
        return f"Recipe({', '.join(f'{key}={value!r}' for key, value in self._values.items() if value is not None)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe.recorded, (self.as_dict(),)


def check_structure_option(key: str, value: Any) -> Any:
    """Return the value of an option in a structure file; raise BncliError if it is invalid.

    An integer becomes a float if the option is real, and domain knowledge becomes canonical JSON. None, and the value
    of an option that no structure learner has, are returned unchecked.
    """
    if value is None or (flag_of(key) not in STRUCTURES.method_options and key != "knowledge"):
        return value
    entry = BY_FLAG[flag_of(key)]
    if isinstance(entry, Choice):
        required: type = str
    elif isinstance(entry.kind, Word):
        required = str
    elif isinstance(entry.kind, DomainKnowledge):
        try:
            return entry.kind.parse(value)
        except ValueError as error:
            raise BncliError(f"the structure's option {key!r} is invalid: {error}") from error
    elif isinstance(entry.kind, Switch):
        required = bool
    else:
        required = type(entry.kind.parse(entry.default or "1"))
    if required is float and type(value) is int:
        return float(value)
    hint = ""
    if type(value) is not required:
        hint = f"it should be {_TYPE_NAMES[required]}"
    elif isinstance(entry, Choice):
        try:
            if entry is SCORES:
                _check_score(str(value))
            else:
                parse_rule(str(value), entry)
        except UsageError as error:
            hint = f"{error.what}; {error.hint}" if error.hint else error.what
        except ValueError as error:
            hint = str(error)
    elif isinstance(entry.kind, Word) and value not in entry.kind.words:
        hint = f"it should be one of {', '.join(entry.kind.words)}"
    if hint:
        raise BncliError(f"the structure's option {key!r} is {value!r}", hint=hint)
    return value


def _check_score(rule: str) -> None:
    """Raise UsageError or ValueError unless `rule` is a structure score as `score_rule` returns it.

    `acll` and `acll-uniform` may be followed by a colon and their pseudo-counts; then a slash and a class pair prior
    may follow.
    """
    score, slash, prior = rule.partition("/")
    word, colon, number = score.partition(":")
    if colon and "--pseudo-counts" in SCORES.options_of(word):
        Real(above=True).parse(number)
        score = word
    parse_rule(score, SCORES)
    if slash:
        ClassPairPrior().parse(prior)


_KIND_NAMES = {
    "kikuchi": "regions, which are not a Bayesian network",
    "interactions": "regions that use coarser intervals",
    "card": "a card, whose tables are points",
    "auto": "--structure auto, which chooses its own parameters",
}
_LEAVE_OUT = "leave one of them out"


def refuse(chosen: ChosenMethods, files: SuppliedKinds, choices: Collection[Choice]) -> None:
    """Raise UsageError if an option has no effect, or if options cannot be combined.

    choices: the choices of the running command; without PARAMETERS among them, the rules about parameters are skipped.
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
    """Raise UsageError for options without effect because of a file, or because the structure learns its own cuts.

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
    """Raise UsageError if --max-attributes has no effect because of a file or --structure auto."""
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
    """Raise UsageError if domain knowledge has no effect, or if the structure or --arcs cv cannot obey it."""
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
    """Raise UsageError if only one of --prior-network and --prior-rows is given, or if they have no effect.

    Also raise it for options about cuts and attributes, unless a cuts file is supplied.
    """
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
    """Raise UsageError for options that have no effect because of a limit on the size of the structure."""
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
    """Raise UsageError if the parameter method does not fit the structure, the missing policy or another option."""
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
    """Raise UsageError if an option that the method fixes was given another value."""
    for flag, text in method.fixed:
        value = parse_options({key_of(flag): text})[flag]
        other = typed.get(flag, value)
        if other != value:
            free = [m.word for m in PARAMETERS.methods if flag in m.options and flag not in dict(m.fixed)]
            hint = f"use {flag} {text}, or --param {', '.join(free)} with networks"
            other = format_number(other) if isinstance(other, float) else str(other)
            raise UsageError(f"{flag} {other} has no effect with {name}", hint=hint)


def _refuse_optimization(chosen: ChosenMethods) -> None:
    """Raise UsageError if options about penalty, starting point, arcs or early stop conflict or have no effect."""
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
    """Raise UsageError for `--costs` together with `--threshold`, and for `--sets-by` without prediction sets.

    typed: values by flag, None if an option was not given. has_sets: whether a model supplies prediction sets.
    """
    if typed["--costs"] is not None and typed["--threshold"] is not None:
        raise UsageError("--costs and --threshold both define the decisions", hint=_LEAVE_OUT)
    if typed["--sets-by"] is not None and typed["--sets"] is None and not has_sets:
        raise UsageError("--sets-by has no effect without --sets", hint="add --sets ALPHA")
