"""`--discretize`: the methods of `bncli/engine/discretizers/`, and their option."""

from __future__ import annotations

from bncli.choices import CUTTING, Choice, Method, Option, Whole

DISCRETIZERS = Choice(
    "--discretize",
    "mdl",
    (
        Method("mdl", "entropy cuts with the MDL stop of Fayyad & Irani"),
        Method("equal-width", "intervals of equal length between minimum and maximum", ("--bins",)),
        Method("equal-frequency", "intervals with about equally many rows", ("--bins",)),
    ),
    CUTTING,
    "METHOD",
    "How numeric columns are cut into intervals; interactions take equal-frequency.",
    room="discretizers",
    everyday=True,
)

OPTIONS: tuple[Option, ...] = (
    Option(
        "--bins",
        Whole(2, 10_000),
        "10",
        CUTTING,
        "Number of intervals of equal-width and equal-frequency; interactions take 20.",
        everyday=True,
    ),
)
