"""`--smoothing`: the rules of `bncli/engine/smoothing/`."""

from __future__ import annotations

from bncli.catalogue.choices import PARAMETER, Choice, Method

SMOOTHINGS = Choice(
    "--smoothing",
    "m-estimate",
    (
        Method("mle", "relative frequencies as they are"),
        Method("laplace", "NUMBER [1] is added to every count", number="1"),
        Method("m-estimate", "NUMBER [1] rows spread evenly over the values", number="1"),
        Method("fgg", "NUMBER [5] rows spread like the attribute's own frequencies", number="5"),
        Method("bdeu", "NUMBER [1] rows spread evenly over the table", number="1"),
        Method("hdp", "towards fewer parents, as far as the data ask for (hierarchical Dirichlet)"),
    ),
    PARAMETER,
    "NAME[:NUMBER]",
    "How counts become probabilities.",
)
