"""Every name a user may type: commands, methods, and the learning options that each method takes. Strings only.

The choices of the command line, its help, the refusal of options that would have no effect, the tables of the manual
and the conformance tests all follow from here. A new method is a module in its room of the engine, and one entry in the
module here that has the room's name, with its options beside it. Nothing heavy may be imported here: `bncli --help`
reads these files and little else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bncli.catalogue import decisions, directions, discretizers, optimizers, parameter_learners, structure_learners
from bncli.catalogue.choices import (
    CATEGORIES,
    CUTTING,
    DATA,
    DECISIONS,
    PARAMETER,
    STRUCTURE,
    Choice,
    Method,
    Option,
    key_of,
)
from bncli.catalogue.discretizers import DISCRETIZERS
from bncli.catalogue.optimizers import OPTIMIZERS
from bncli.catalogue.parameter_learners import MARGINALIZED, PARAMETERS
from bncli.catalogue.scores import SCORES
from bncli.catalogue.smoothing import SMOOTHINGS
from bncli.catalogue.structure_learners import STRUCTURES
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
    "OPTIMIZERS",
    "OPTIONS",
    "PARAMETER",
    "PARAMETERS",
    "SCORES",
    "SMOOTHINGS",
    "STRUCTURE",
    "STRUCTURES",
    "TACIT",
    "WRITTEN_WHERE_USED",
    "refuse_idle",
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
    *directions.OPTIONS,
    OPTIMIZERS,
    *optimizers.OPTIONS,
    *decisions.OPTIONS,
)
"""The learning options in the order in which the help shows them; `--trace` writes a file and changes nothing."""

CHOICES = tuple(entry for entry in LEARNING if isinstance(entry, Choice))
"""Every learning option that chooses a method."""

OPTIONS = tuple(entry for entry in LEARNING if isinstance(entry, Option))
"""The others."""

KEYS = (*(key_of(entry.flag) for entry in LEARNING), "seed")
"""What a recipe says: a value for each learning option, and the seed where anything is random."""

DECISION_KEYS = tuple(key_of(option.flag) for option in decisions.OPTIONS)
"""What a recipe says of decisions, in the order of `bncli.engine.prediction.decision_rules.DecisionOptions`."""

TACIT = {
    key_of(option.flag): option.kind.read(option.default) if option.default else None
    for option in OPTIONS
    if option.tacit
}
"""Keys whose default a recipe does not say, and the default."""

WRITTEN_WHERE_USED = frozenset((*map(key_of, CATEGORIES), *TACIT))
"""Keys that a file has only where they have a value; of all others it says that they have none."""


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
"""What `simulate` draws from; no learning option."""


def refuse_idle(typed: Collection[str], chosen: Mapping[str, str], choices: Collection[Choice] = CHOICES) -> None:
    """Raise UsageError for an option among `typed` that the methods chosen do not take.

    `chosen` maps flags of choices to words; a word that is no method's (a file) takes no options. `choices` are those
    that the command has; one without a word has no part in what is done.
    """
    for flag in typed:
        governors = [choice for choice in choices if flag in choice.governed]
        concerned = [choice for choice in governors if choice.flag in chosen]
        if governors and not any(flag in choice.options_of(chosen[choice.flag]) for choice in concerned):
            idle = " and ".join(dict.fromkeys(as_typed(choice, chosen[choice.flag]) for choice in concerned))
            takers = [as_typed(choice, m.word) for choice in governors for m in choice.methods if flag in m.options]
            what = f"{flag} has no effect with {idle or _without(governors, chosen, choices)}"
            raise UsageError(what, hint=f"it goes with {', '.join(dict.fromkeys(takers))}")


def as_typed(choice: Choice, word: str) -> str:
    """Return how a method is typed: `--structure auto` for the parameters auto, which come with that structure only."""
    return f"{STRUCTURES.flag if choice is PARAMETERS and word in STRUCTURES.words else choice.flag} {word}"


def _without(unchosen: Sequence[Choice], chosen: Mapping[str, str], choices: Collection[Choice]) -> str:
    """Return the methods chosen that leave no part to these choices: an optimizer, say, where nothing is optimized."""
    flags = [choice.flag for choice in unchosen]
    above = [choice for choice in choices if choice.flag in chosen and any(flag in choice.governed for flag in flags)]
    methods = " and ".join(dict.fromkeys(as_typed(choice, chosen[choice.flag]) for choice in above))
    return f"{methods}, which takes no {' or '.join(flags)}"
