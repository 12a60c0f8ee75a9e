"""The learning options of one fit as one frozen value: what a model records of how it was made.

`Recipe.of(structure="kdb", k=2)` is the one way to make one: it fills in every default and refuses what is unknown,
out of bounds or without effect, with a UsageError that the command line prints as it is. What it refuses follows from
the catalogue; the few rules that take two options together stand below.

Never paths or threads: the same recipe on the same rows gives the same bytes, unless it limits the seconds. An option
that has no effect with the chosen methods is None, and so is one of the catalogue's TACIT that has its default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bncli.catalogue import CHOICES, DISCRETIZERS, KEYS, STRUCTURES, TACIT
from bncli.catalogue.choices import Choice, Method, Option, flag_of, key_of
from bncli.catalogue.option_kinds import Switch, Word
from bncli.errors import BncliError
from bncli.recipe.defaults import BY_FLAG, NOTHING, ChosenMethods, SuppliedKinds, may_have_arcs, read, values
from bncli.recipe.refusals import refuse


class Recipe:
    """A value for every learning option, by its name with underscores: `recipe.structure`, `recipe.max_order`.

    smoothing is `NAME` or `NAME:NUMBER`, with the number always written out where the rule has one, and so is
    structure_score, where the number of `acll` and `acll-uniform` is that of --pseudo-counts; what was typed as
    --class-pair-prior follows after a slash, the seed of its draws written out. init is resolved: the word typed or the
    default that follows from the penalty. seed draws the folds by which a penalty `cv` is chosen, the number of
    iterations where early_stop is `cv`, and random starts where there are `restarts`. missing_policy is
    None in models that were learnt before there was a choice: `level`.
    """

    __slots__ = ("_values",)
    _values: Mapping[str, Any]

    def __init__(self, **words: Any) -> None:
        object.__setattr__(self, "_values", _resolved(words, NOTHING, CHOICES))

    @classmethod
    def of(cls, *, files: SuppliedKinds = NOTHING, choices: Collection[Choice] = CHOICES, **words: Any) -> Recipe:
        """Return the recipe that these words mean; None is not typed, numbers may be text.

        `choices` are those that the asking command has: errors speak of no others. Raises UsageError.
        """
        return cls.recorded(_resolved(words, files, choices))

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Recipe:
        """Return a recipe as a file holds it, unchecked; an option that did not exist when it was written is None."""
        recipe = object.__new__(cls)
        object.__setattr__(recipe, "_values", {key: values.get(key) for key in KEYS})
        return recipe

    def options(self, method: Method | None) -> dict[str, Any]:
        """Return the values of the options that the function of this method takes by name.

        No method (a file) takes none.
        """
        keys = () if method is None else map(key_of, method.own_options)
        return {key: TACIT.get(key) if self._values[key] is None else self._values[key] for key in keys}

    def replaced(self, **values: Any) -> Recipe:
        """Return this recipe with other values, unchecked."""
        return Recipe.recorded({**self._values, **values})

    def as_dict(self) -> dict[str, Any]:
        """Return every value by name."""
        return dict(self._values)

    def with_cuts(self, method: str, options: Mapping[str, int | float | str | bool]) -> Recipe:
        """Return this recipe for supplied cuts, made by `method` with `options`; unknown options are left out."""
        return self.replaced(discretize=method, **{key: options.get(key) for key in map(key_of, DISCRETIZERS.governed)})

    def with_structure(self, method: str, options: Mapping[str, int | float | str | bool], arcs: str = "all") -> Recipe:
        """Return this recipe for a supplied structure, made by `method` with `options`.

        A theta and degrees of freedom that are set stay; `arcs` is what --arcs is unless it was typed. Raises
        BncliError for an option that cannot be that of a structure; unknown ones are left out.
        """
        values = {key: _checked(key, options.get(key)) for key in map(key_of, STRUCTURES.governed)}
        for key in _OF_REGIONS:
            if getattr(self, key) is not None:
                values[key] = getattr(self, key)
        if not may_have_arcs(method, values):
            values["arcs"] = None
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


_OF_REGIONS = ("theta", "degrees_of_freedom")
"""Options of kikuchi that its parameters have too."""


def _checked(key: str, value: Any) -> Any:
    """Return an option of a structure file."""
    if value is None:
        return None
    entry = BY_FLAG[flag_of(key)]
    kind = type(value)
    wanted = str if isinstance(entry, Choice) else type(entry.kind.read(_typical(entry)))
    if wanted is float and kind is int:
        return float(value)
    if kind is not wanted:
        hint = f"it should be of the type {wanted.__name__}"
        raise BncliError(f"the structure's option {key!r} is {value!r}", hint=hint)
    if isinstance(entry, Option) and isinstance(entry.kind, Word) and value not in entry.kind.words:
        hint = f"it should be one of {', '.join(entry.kind.words)}"
        raise BncliError(f"the structure's option {key!r} is {value!r}", hint=hint)
    return value


def _typical(option: Option) -> object:
    """Return some value of an option."""
    if isinstance(option.kind, Word):
        return option.kind.words[0]
    return True if isinstance(option.kind, Switch) else option.default or "1"


def _resolved(words: Mapping[str, Any], files: SuppliedKinds, choices: Collection[Choice]) -> dict[str, Any]:
    """Return a value for every key, from what was typed, the catalogue's defaults and the rules."""
    typed = read(words)
    seed = typed.pop("--seed", 0)
    if typed.get("--class-pair-prior", "").count(":") == 1:
        typed["--class-pair-prior"] += f":{seed}"  # draws: the same whatever else is random
    chosen = ChosenMethods.of(typed, files)
    refuse(chosen, files, choices)
    return values(chosen, seed)
