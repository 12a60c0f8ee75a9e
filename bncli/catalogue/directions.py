"""`--increasing`, `--decreasing`: along which columns the odds go one way. Parameters that heed it name the options."""

from __future__ import annotations

from bncli.choices import OF_SCHEMA, PARAMETER, Option
from bncli.option_kinds import Names

DIRECTIONS = OF_SCHEMA

OPTIONS: tuple[Option, ...] = (
    Option(
        DIRECTIONS[0],
        Names(),
        "",
        PARAMETER,
        "The log-odds of the second of two labels never fall along this numeric column, whatever the others are. May "
        "be repeated.",
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
)
