"""All methods, the options that choose them, and the options of each method, as data.

The flags of the command line, their help, the refusal of options without effect, the tables of the manual, and the
conformance tests follow from these entries. A new method is a module in its folder of the engine and an entry here; the
docstring of that folder describes what the module must contain, and which other lists may have to name the method. The
entry of a discretizer must include `*LEVEL_GROUPING` in its options, as all discretizers do.

- `choices`: the types of the entries
- `option_kinds`: the kinds of values that an option may have
- `methods`: the entries about structures, their scores, parameters, smoothing and optimizers; all others are here

Nothing heavy may be imported here, because `bncli --help` reads these modules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

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
from bncli.catalogue.methods import (
    MARGINALIZED,
    OPTIMIZER_OPTIONS,
    OPTIMIZERS,
    PARAMETER_OPTIONS,
    PARAMETERS,
    SCORES,
    SMOOTHINGS,
    STRUCTURE_OPTIONS,
    STRUCTURES,
)
from bncli.catalogue.option_kinds import Costs, Integer, Real, ThresholdRule, Word
from bncli.errors import UsageError, alternatives

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

DISCRETIZERS = Choice(
    "--discretize",
    "mdl",
    (
        Method("mdl", "entropy cuts, stopped by the MDL criterion (Fayyad & Irani)", LEVEL_GROUPING),
        Method("equal-width", "intervals of equal length between minimum and maximum", ("--bins", *LEVEL_GROUPING)),
        Method("equal-frequency", "intervals with about equally many rows", ("--bins", *LEVEL_GROUPING)),
    ),
    CUTTING,
    "METHOD",
    "How numeric columns are cut into intervals.",
    folder="discretizers",
    everyday=True,
)

_CUTTING_OPTIONS: tuple[Option, ...] = (
    Option("--bins", Integer(2, 10_000), "10", CUTTING, "Intervals of equal-width and equal-frequency.", everyday=True),
    Option(
        "--group-levels",
        Integer(1, 1_000_000, ("auto", "off")),
        "auto",
        CUTTING,
        "Merge levels of categorical columns that carry the same information about the class: where levels have few "
        "rows (auto), never (off), or until at most N are left.",
    ),
)

MISSING_POLICIES = Choice(
    "--missing-policy",
    "level",
    (
        Method("level", "a missing value counts as one more value of the attribute"),
        Method(
            "marginalize",
            "missing values are marginalized in learning and scoring; for --param " + ", ".join(MARGINALIZED),
        ),
    ),
    DATA,
    "POLICY",
    "How missing values are treated.",
)

_DECISION_OPTIONS: tuple[Option, ...] = (
    Option(
        "--costs",
        Costs(),
        "",
        DECISIONS,
        "Choose the label with the lowest expected cost: TRUE:DECISION=COST,... (a correct decision costs 0 unless "
        "given), or a CSV file with one row per true label and one column per decision.",
        default_words="the most probable label",
        none_if_default=True,
    ),
    Option(
        "--threshold",
        ThresholdRule(),
        "",
        DECISIONS,
        "With two labels, choose the second if its probability is at least P. To choose P on held-out rows, give "
        "best:f1, best:mcc, best:balanced-accuracy, recall=0.9, precision=0.8, top=5% (of the rows).",
        default_words="the most probable label",
        none_if_default=True,
    ),
    Option(
        "--abstain-below",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Abstain if no label has at least this probability.",
        "P",
        none_if_default=True,
    ),
    Option(
        "--sets",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Add conformal prediction sets, which miss the true label in at most a fraction ALPHA of the rows. fit holds "
        "out a fifth of the rows to compute them.",
        "ALPHA",
        none_if_default=True,
    ),
    Option(
        "--sets-by",
        Word(("all", "class")),
        "",
        DECISIONS,
        "Whether the guarantee of --sets holds over all rows or within each class.",
        default_words="all",
        none_if_default=True,
    ),
)
"""Options that turn probabilities into decisions. They can be combined with every method.

`fit` stores the resulting rule in the model; `score` takes the same options to replace parts of it.
"""

LEARNING: tuple[Choice | Option, ...] = (
    DISCRETIZERS,
    *_CUTTING_OPTIONS,
    STRUCTURES,
    MISSING_POLICIES,
    SCORES,
    *STRUCTURE_OPTIONS,
    PARAMETERS,
    SMOOTHINGS,
    *PARAMETER_OPTIONS,
    OPTIMIZERS,
    *OPTIMIZER_OPTIONS,
    *_DECISION_OPTIONS,
)
"""All learning options in the order of the help. `--trace` is not one: it writes a file and changes no model."""

CHOICES = tuple(entry for entry in LEARNING if isinstance(entry, Choice))
"""The learning options that choose a method."""

OPTIONS = tuple(entry for entry in LEARNING if isinstance(entry, Option))
"""The learning options that do not choose a method."""

KEYS = (*(key_of(entry.flag) for entry in LEARNING), "seed")
"""The keys of a recipe: one per learning option, and the random seed."""

DECISION_KEYS = tuple(key_of(option.flag) for option in _DECISION_OPTIONS)
"""The keys about decisions, in the order of `bncli.engine.prediction.decision_rules.DecisionOptions`."""

NONE_IF_DEFAULT = {
    key_of(option.flag): option.kind.parse(option.default) if option.default else None
    for option in OPTIONS
    if option.none_if_default
}
"""The default values that a recipe replaces with None, keyed by option; None for an option without a default."""

OMITTED_IF_NONE = frozenset((*map(key_of, LEVEL_GROUPING), *NONE_IF_DEFAULT))
"""Keys that a recipe in a file omits if their value is None; for other keys it contains null."""

_SIZE = ("--attributes", "--values", "--classes")

NETWORKS = Choice(
    "--network",
    "",
    (
        Method("nb", "the class is the only parent of each attribute", _SIZE),
        Method("tan", "a random tree over the attributes; the class is a parent of each", _SIZE),
        Method("kdb", "each attribute has k random attributes and the class as parents", (*_SIZE, "--k")),
        Method("conditioning", "three inputs whose coefficients differ by powers of ten", ("--exponent",)),
    ),
    "Network",
    "METHOD",
    "The kind of random network.",
)
"""The kinds of random networks of `bncli simulate`. This is not a learning option."""


def refuse_options_without_effect(
    typed: Collection[str], chosen: Mapping[str, str], choices: Collection[Choice] = CHOICES
) -> None:
    """Raise UsageError if an option given by the user has no effect with the chosen methods.

    typed: the flags of these options. chosen: the name of the chosen method, keyed by the flag of the choice; a choice
    without an entry is not used in the run, and a name that is not a method (a file) takes no options. choices: the
    choices of the running command.
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
            idle = f"{' and '.join(dict.fromkeys(above))}, which does not use {' or '.join(flags)}"
        fitting = [as_typed(choice, m.word) for choice in takers for m in choice.methods if flag in m.options]
        hint = f"use it with {alternatives(dict.fromkeys(fitting))}"
        raise UsageError(f"{flag} has no effect with {idle}", hint=hint)


def as_typed(choice: Choice, word: str) -> str:
    """Return the option and word that choose a method, such as `--param map`.

    Parameters that have the same word as a structure (auto) are chosen by that structure: `--structure auto`.
    """
    return f"{STRUCTURES.flag if choice is PARAMETERS and word in STRUCTURES.words else choice.flag} {word}"
