"""A recipe: the learning options of one fit as one frozen value, which the model stores.

`Recipe.of(structure="kdb", k=2)` makes one. It fills in every default, and raises a UsageError for an option that is
unknown, out of bounds, or without effect; the command line prints that error. Most of these rules follow from the
catalogue. The others are:

- `refusals`: the rules that take two options together
- `defaults`: the rules by which the default of one option depends on another

A recipe contains neither paths nor numbers of threads: the same recipe on the same rows gives the same bytes, unless it
limits the seconds. An option that has no effect with the chosen methods is None, and so is one of the catalogue's
NONE_IF_DEFAULT that has its default value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bncli.catalogue import CHOICES, DISCRETIZERS, KEYS, NONE_IF_DEFAULT, PARAMETERS, SCORES, STRUCTURES
from bncli.catalogue.choices import Choice, Method, flag_of, key_of
from bncli.catalogue.option_kinds import ClassPairPrior, DomainKnowledge, Real, Switch, Word
from bncli.errors import BncliError, UsageError
from bncli.recipe.defaults import (
    ALTERNATIVE,
    BY_FLAG,
    GO_WITH_ALTERNATIVE,
    NOTHING,
    ChosenMethods,
    SuppliedKinds,
    has_single_attributes,
    is_random,
    parse_options,
    parse_rule,
    recipe_values,
)
from bncli.recipe.refusals import refuse

_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
_OF_REGIONS = ("theta", "degrees_of_freedom")
"""Options of the structure kikuchi that its parameter learner takes too."""


class Recipe:
    """A value for every learning option, under its name with underscores: `recipe.structure`, `recipe.max_order`.

    Some values are longer than what was typed:
    - smoothing is `NAME` or `NAME:NUMBER`, with a default number written out; so is structure_score. The number of
      `acll` and `acll-uniform` is from `--pseudo-counts`; `--class-pair-prior` follows after a slash, with the seed
      of its draws.
    - init is the starting point that was typed, or that follows from the penalty.
    - seed is None unless learning draws random numbers, such as folds, random starts or rows that are held out.
    - missing_policy is None in models that were written before the option existed, which means `level`.

    `alternative` is the word of a structure that competes with `structure` on held-out rows, or None. It cannot be
    typed: commands set it if no typed option decides the structure, the cuts or the parameters. The recipe of a fitted
    model has none, since it holds the structure that was chosen.
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
        """Return the recipe for options by key; None means not typed, and numbers may be text.

        files: files that replace a part of learning. choices: the choices of the running command; error messages
        mention no others. alternatives: whether the default structure may get an alternative, as in `bncli fit`.
        Raises UsageError.
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
        """Return a recipe from stored values, unchecked; an option that `values` lacks is None."""
        recipe = object.__new__(cls)
        recorded = {key: values.get(key) for key in KEYS}
        if values.get("alternative") is not None:
            recorded["alternative"] = values["alternative"]
        object.__setattr__(recipe, "_values", recorded)
        return recipe

    def options(self, method: Method | None) -> dict[str, Any]:
        """Return the keyword arguments for the function of a method; none if a file replaces the method (None)."""
        keys = () if method is None else map(key_of, method.keyword_options)
        return {key: NONE_IF_DEFAULT.get(key) if self._values[key] is None else self._values[key] for key in keys}

    @property
    def alternative(self) -> str | None:
        """The structure that competes with `structure` on held-out rows, or None."""
        return self._values.get("alternative")

    def competing(self) -> tuple[Recipe, Recipe]:
        """Return this recipe without its alternative, and the recipe of the alternative with the same other options."""
        common = {key_of(flag): self._values[key_of(flag)] for flag in GO_WITH_ALTERNATIVE}
        return self.replaced(alternative=None), Recipe.of(structure=self.alternative).replaced(**common)

    def replaced(self, **values: Any) -> Recipe:
        """Return this recipe with other values, unchecked."""
        return Recipe.recorded({**self._values, **values})

    def without_limit(self) -> Recipe:
        """Return this recipe without `--max-attributes`, for a table that has no more attributes than the limit.

        The seed is removed too, unless something else draws random numbers.
        """
        values = {**self._values, "max_attributes": None}
        return Recipe.recorded(values if is_random(values) else {**values, "seed": None})

    def as_dict(self) -> dict[str, Any]:
        """Return every value by key; `alternative` only if there is one."""
        return dict(self._values)

    def with_cuts(self, method: str, options: Mapping[str, int | float | str | bool]) -> Recipe:
        """Return this recipe for supplied cuts that `method` made with `options`; unknown options are left out."""
        made = {key: options.get(key) for key in map(key_of, DISCRETIZERS.method_options)}
        return self.replaced(discretize=method, **made)

    def with_structure(self, method: str, options: Mapping[str, int | float | str | bool], arcs: str = "all") -> Recipe:
        """Return this recipe for a supplied structure that `method` made with `options`.

        This recipe's own `theta` and `degrees_of_freedom`, if set, take precedence. `arcs` is used for a network
        if this recipe's penalty is cross-validated and its `arcs` is None. Unknown options are left out. Raises
        BncliError for a value that the option cannot have.
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
    """Return the value of a structure's option; raise BncliError unless it is one that a recipe may have.

    The value of an option that no structure learner has is returned unchecked.
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
    """Raise UsageError or ValueError unless this is a structure score as `score_rule` writes it.

    `acll` and `acll-uniform` are followed by their pseudo-counts, and `acll` also by a slash and its class pair prior.
    """
    score, slash, prior = rule.partition("/")
    word, colon, number = score.partition(":")
    if colon and "--pseudo-counts" in SCORES.options_of(word):
        Real(above=True).parse(number)
        score = word
    parse_rule(score, SCORES)
    if slash:
        ClassPairPrior().parse(prior)
