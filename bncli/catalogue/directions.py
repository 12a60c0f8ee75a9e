"""`--increasing`, `--decreasing`, `--towards`: along which columns the odds of a label go one way.

Parameters that heed it name the options.
"""

from __future__ import annotations

from bncli.catalogue.choices import OF_SCHEMA, PARAMETER, Option
from bncli.catalogue.option_kinds import Label, Names

DIRECTIONS = OF_SCHEMA

OPTIONS: tuple[Option, ...] = (
    Option(
        DIRECTIONS[0],
        Names(),
        "",
        PARAMETER,
        "The log-odds of the second of two labels, or of the label --towards, never fall along this numeric column, "
        "whatever the others are. May be repeated.",
        "COLUMN",
        tacit=True,
    ),
    Option(
        DIRECTIONS[1],
        Names(),
        "",
        PARAMETER,
        "They never rise along this one.",
        "COLUMN",
        tacit=True,
    ),
    Option(
        DIRECTIONS[2],
        Label(),
        "",
        PARAMETER,
        "The label of the class whose log-odds --increasing and --decreasing are about; of more than two it has to be "
        "named. Kept are its log-odds against each other label, so those against all others too.",
        "LABEL",
        stands_for="the second of two",
        tacit=True,
    ),
)
