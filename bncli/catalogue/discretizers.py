"""`--discretize`: the methods of `bncli.engine.discretizers`, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import CUTTING, LEVEL_GROUPING, Choice, Method, Option
from bncli.catalogue.option_kinds import Integer

DISCRETIZERS = Choice(
    "--discretize",
    "mdl",
    (
        Method("mdl", "entropy cuts with the MDL stop of Fayyad & Irani", LEVEL_GROUPING),
        Method("equal-width", "intervals of equal length between minimum and maximum", ("--bins", *LEVEL_GROUPING)),
        Method("equal-frequency", "intervals with about equally many rows", ("--bins", *LEVEL_GROUPING)),
    ),
    CUTTING,
    "METHOD",
    "How numeric columns are cut into intervals; interactions take equal-frequency.",
    folder="discretizers",
    everyday=True,
)

OPTIONS: tuple[Option, ...] = (
    Option(
        "--bins",
        Integer(2, 10_000),
        "10",
        CUTTING,
        "Intervals of equal-width and equal-frequency; interactions take 255.",
        everyday=True,
    ),
    Option(
        "--group-levels",
        Integer(1, 1_000_000, ("auto", "off")),
        "auto",
        CUTTING,
        "Pool the levels of a category by what they say of the class: where the rows cannot fill them, never, or to at "
        "most N.",
    ),
)
