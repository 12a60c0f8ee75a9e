"""Every word a user may type for a method, and the learning options that each method takes, as data.

The flags of the command line, their help, the refusal of options without effect, the tables of the manual, and the
conformance tests follow from these entries. A new method is a module in its folder of the engine and an entry here.

- `choices`: the types of the entries
- `option_kinds`: the kinds of values that an option may have
- `discretizers`, `structure_learners` (with the structure scores), `parameter_learners` (with smoothing and monotone
  directions), `optimizers`, `decisions`: the entries

Nothing heavy may be imported here, because `bncli --help` reads these modules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bncli.catalogue import decisions, discretizers, optimizers, parameter_learners, structure_learners
from bncli.catalogue.choices import (
    CUTTING,
    DATA,
    DECISIONS,
    LEVEL_GROUPING,
    PARAMETER,
    STRUCTURE,
    Choice,
    Method,
    Option,
    key_of,
)
from bncli.catalogue.discretizers import DISCRETIZERS
from bncli.catalogue.optimizers import OPTIMIZERS
from bncli.catalogue.parameter_learners import MARGINALIZED, PARAMETERS, SMOOTHINGS
from bncli.catalogue.structure_learners import SCORES, STRUCTURES
from bncli.errors import UsageError

__all__ = [
    "CHOICES",
    "CUTTING",
    "DATA",
    "DECISIONS",
    "DECISION_KEYS",
    "DISCRETIZERS",
    "KEYS",
    "LEARNING",
    "MARGINALIZED",
    "MISSING_POLICIES",
    "NETWORKS",
    "NONE_IF_DEFAULT",
    "OMITTED_IF_NONE",
    "OPTIMIZERS",
    "OPTIONS",
    "PARAMETER",
    "PARAMETERS",
    "SCORES",
    "SMOOTHINGS",
    "STRUCTURE",
    "STRUCTURES",
    "refuse_options_without_effect",
]

MISSING_POLICIES = Choice(
    "--missing-policy",
    "level",
    (
        Method("level", "a missing value is one more value of its attribute"),
        Method(
            "marginalize",
            "what is missing is marginalized, in learning and in scoring; it goes with --param "
            + ", ".join(MARGINALIZED),
        ),
    ),
    DATA,
    "POLICY",
    "What a missing value is.",
)

LEARNING: tuple[Choice | Option, ...] = (
    DISCRETIZERS,
    *discretizers.OPTIONS,
    STRUCTURES,
    MISSING_POLICIES,
    SCORES,
    *structure_learners.OPTIONS,
    PARAMETERS,
    SMOOTHINGS,
    *parameter_learners.OPTIONS,
    OPTIMIZERS,
    *optimizers.OPTIONS,
    *decisions.OPTIONS,
)
"""All learning options in the order of the help. `--trace` is not one: it writes a file and changes no model."""

CHOICES = tuple(entry for entry in LEARNING if isinstance(entry, Choice))
"""The learning options that choose a method."""

OPTIONS = tuple(entry for entry in LEARNING if isinstance(entry, Option))
"""The learning options that do not choose a method."""

KEYS = (*(key_of(entry.flag) for entry in LEARNING), "seed")
"""The keys of a recipe: one per learning option, and the seed of everything random."""

DECISION_KEYS = tuple(key_of(option.flag) for option in decisions.OPTIONS)
"""The keys about decisions, in the order of `bncli.engine.prediction.decision_rules.DecisionOptions`."""

NONE_IF_DEFAULT = {
    key_of(option.flag): option.kind.parse(option.default) if option.default else None
    for option in OPTIONS
    if option.none_if_default
}
"""Keys for which a recipe stores None instead of the default, with that default."""

OMITTED_IF_NONE = frozenset((*map(key_of, LEVEL_GROUPING), *NONE_IF_DEFAULT))
"""Keys that a file omits if their value is None; it writes null for all others."""

_SIZE = ("--attributes", "--values", "--classes")

NETWORKS = Choice(
    "--network",
    "",
    (
        Method("nb", "attributes depend on the class alone", _SIZE),
        Method("tan", "a random tree over the attributes, below the class", _SIZE),
        Method("kdb", "k random attribute parents each, and the class", (*_SIZE, "--k")),
        Method("conditioning", "three inputs whose influence differs by powers of ten", ("--exponent",)),
    ),
    "Network",
    "METHOD",
    "What is drawn from besides models and the networks named P.N.D.ROWS.",
)
"""The kinds of random networks of `bncli simulate`. This is not a learning option."""


def refuse_options_without_effect(
    typed: Collection[str], chosen: Mapping[str, str], choices: Collection[Choice] = CHOICES
) -> None:
    """Raise UsageError if a typed option has no effect with the chosen methods.

    typed: flags. chosen: the word of each choice, by flag; a choice without an entry plays no part in the run, and a
    word that is no method (a file) takes no options. choices: those that the command has.
    """
    for flag in typed:
        takers = [choice for choice in choices if flag in choice.method_options]
        taking = [choice for choice in takers if choice.flag in chosen]
        if not takers or any(flag in choice.options_of(chosen[choice.flag]) for choice in taking):
            continue
        if taking:
            idle = " and ".join(dict.fromkeys(as_typed(choice, chosen[choice.flag]) for choice in taking))
        else:
            # No method was chosen for any of them, since another choice leaves them out, as `map` does the optimizer.
            flags = [choice.flag for choice in takers]
            above = [
                as_typed(choice, chosen[choice.flag])
                for choice in choices
                if choice.flag in chosen and any(flag in choice.method_options for flag in flags)
            ]
            idle = f"{' and '.join(dict.fromkeys(above))}, which takes no {' or '.join(flags)}"
        fitting = [as_typed(choice, m.word) for choice in takers for m in choice.methods if flag in m.options]
        raise UsageError(f"{flag} has no effect with {idle}", hint=f"it goes with {', '.join(dict.fromkeys(fitting))}")


def as_typed(choice: Choice, word: str) -> str:
    """Return the words that choose a method.

    Parameters that come with one structure only, such as auto, are chosen by that structure: `--structure auto`.
    """
    return f"{STRUCTURES.flag if choice is PARAMETERS and word in STRUCTURES.words else choice.flag} {word}"
