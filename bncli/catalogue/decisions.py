"""Options that turn probabilities into decisions: costs, a threshold, abstention, prediction sets.

They go with every method. `fit` stores the resulting rule in the model; `score` takes the same options to replace it.
"""

from __future__ import annotations

from bncli.catalogue.choices import DECISIONS, Option
from bncli.catalogue.option_kinds import Costs, Real, ThresholdRule, Word

OPTIONS: tuple[Option, ...] = (
    Option(
        "--costs",
        Costs(),
        "",
        DECISIONS,
        "Decide for the label of the least expected cost: TRUE:DECISION=COST,..., where right decisions left out cost "
        "0; FILE is a CSV with a row a true label, a column a decision, and labels as names.",
        default_words="the most probable label",
        none_if_default=True,
    ),
    Option(
        "--threshold",
        ThresholdRule(),
        "",
        DECISIONS,
        "Of two labels decide for the second where its probability reaches P; or where it is best by rows held out: "
        "best:f1, best:mcc, best:balanced-accuracy, recall=0.9, precision=0.8, top=5% (of the rows).",
        default_words="the most probable label",
        none_if_default=True,
    ),
    Option(
        "--abstain-below",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Decide nothing where no label is as probable as this.",
        "P",
        none_if_default=True,
    ),
    Option(
        "--sets",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Sets of labels that miss the true one in a share ALPHA of the rows, by conformal prediction; fit holds a "
        "fifth of the rows out for it.",
        "ALPHA",
        none_if_default=True,
    ),
    Option(
        "--sets-by",
        Word(("all", "class")),
        "",
        DECISIONS,
        "What the share of --sets is of: all rows, or the rows of each class.",
        default_words="all",
        none_if_default=True,
    ),
)
