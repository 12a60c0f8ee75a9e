"""The flags of the learning options, made from the catalogue; `bncli.cli.learning` makes a recipe of what was typed."""

from __future__ import annotations

from bncli import catalogue
from bncli.catalogue import DISCRETIZERS, MISSING_POLICIES, OPTIMIZERS, PARAMETERS, SCORES, SMOOTHINGS, STRUCTURES
from bncli.choices import Choice
from bncli.cli.command import Decorator, flag
from bncli.cli.learning_values import TYPES

_CUTS, _STRUCTURE, _PARAMETERS = "Cut points", "Structure", "Parameters"


def _choice(choice: Choice, group: str, what: str, metavar: str) -> Decorator:
    words = [(method.word, method.summary) for method in choice.methods]
    return flag(choice.flag, group=group, metavar=metavar, stands_for=choice.default, words=words, help=what)


def _option(name: str, group: str) -> Decorator:
    option = next(option for option in catalogue.OPTIONS if option.flag == name)
    if not option.value:
        return flag(name, group=group, is_flag=True, default=None, help=option.summary)
    return flag(
        name, group=group, metavar=option.value, type=TYPES[name], stands_for=option.default, help=option.summary
    )


CUTTING = (
    _choice(
        DISCRETIZERS, _CUTS, "How numeric columns are cut into intervals; interactions take equal-frequency.", "METHOD"
    ),
    _option("--bins", _CUTS),
)
CUTS_FILE = (flag("--cuts", group=_CUTS, metavar="FILE", help="Take the cuts of this file instead of learning them."),)
_SEARCH = (
    _choice(MISSING_POLICIES, "Data", "What a missing value is.", "POLICY"),
    _choice(SCORES, _STRUCTURE, "What tan and hill-climb maximise.", "NAME[:NUMBER]"),
    *(
        _option(name, _STRUCTURE)
        for name in (
            *("--k", "--loss", "--max-parents", "--perfect", "--forest", "--epsilon", "--pseudo-counts"),
            *("--max-order", "--theta", "--max-seconds", "--max-candidates"),
        )
    ),
)
STRUCTURE = (_choice(STRUCTURES, _STRUCTURE, "Which attributes depend on which.", "METHOD"), *_SEARCH)
STRUCTURE_OR_FILE = (
    _choice(STRUCTURES, _STRUCTURE, "Which attributes depend on which; FILE holds one, or regions.", "METHOD|FILE"),
    *_SEARCH,
)
PARAMETER_LEARNING = (
    _choice(
        PARAMETERS,
        _PARAMETERS,
        "How the numbers are learnt; kikuchi takes kbma, interactions take discriminative, auto takes auto.",
        "METHOD",
    ),
    _choice(SMOOTHINGS, _PARAMETERS, "How counts become probabilities.", "NAME[:NUMBER]"),
    *(
        _option(name, _PARAMETERS)
        for name in (
            "--level",
            "--coding",
            "--lower-orders",
            "--metric",
            "--time-limit",
            "--init",
            "--penalty",
            "--penalty-center",
            "--early-stop",
        )
    ),
    _choice(OPTIMIZERS, _PARAMETERS, "How the optimum is searched.", "METHOD"),
    *(_option(name, _PARAMETERS) for name in ("--tolerance", "--max-iterations")),
)
ALL = (*CUTTING, *CUTS_FILE, *STRUCTURE_OR_FILE, *PARAMETER_LEARNING)
"""The options of `fit` and `evaluate`."""
