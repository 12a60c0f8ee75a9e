"""What is decided by the probabilities: costs, a threshold, abstaining, prediction sets. No option of any method.

`learn` records what they come to in the model, beside its tables; `score` takes the same words instead of it.
"""

from __future__ import annotations

from bncli.catalogue.choices import DECISIONS, Option
from bncli.catalogue.option_kinds import CostNumbers, Criterion, Real, Word

OPTIONS: tuple[Option, ...] = (
    Option(
        "--costs",
        CostNumbers(),
        "",
        DECISIONS,
        "Decide for the label of the least expected cost: TRUE:DECISION=COST,..., where right decisions left out cost "
        "0; FILE is a CSV with a row a true label, a column a decision, and labels as names.",
        stands_for="the most probable label",
        tacit=True,
    ),
    Option(
        "--threshold",
        Criterion(),
        "",
        DECISIONS,
        "Of two labels decide for the second where its probability reaches P; or where it is best by rows held out: "
        "best:f1, best:mcc, best:balanced-accuracy, recall=0.9, precision=0.8, top=5% (of the rows).",
        stands_for="the most probable label",
        tacit=True,
    ),
    Option(
        "--abstain-below",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Decide nothing where no label is as probable as this.",
        "P",
        tacit=True,
    ),
    Option(
        "--sets",
        Real(above=True, below=1),
        "",
        DECISIONS,
        "Sets of labels that miss the true one in a share ALPHA of the rows, by conformal prediction; fit holds a "
        "fifth of the rows out for it.",
        "ALPHA",
        tacit=True,
    ),
    Option(
        "--sets-by",
        Word(("all", "class")),
        "",
        DECISIONS,
        "What the share of --sets is of: all rows, or the rows of each class.",
        stands_for="all",
        tacit=True,
    ),
)
