"""`--structure-score`: the scores of `bncli/engine/structures/scores.py`."""

from __future__ import annotations

from bncli.catalogue.choices import STRUCTURE, Choice, Method

ACLL = ("--pseudo-counts", "--class-pair-prior")
"""Options of acll, the score and the parameters."""

SCORES = Choice(
    "--structure-score",
    "cmi",
    (
        Method("cmi", "mutual information given the class (tan only)", has_module=False),
        Method("ll", "log-likelihood"),
        Method("bic", "log-likelihood less ln(N)/2 a parameter; hill-climb's default"),
        Method("aic", "log-likelihood less 1 a parameter"),
        Method("k2", "marginal likelihood, 1 added to every count"),
        Method("bdeu", "marginal likelihood, NUMBER [1] rows over the table", number="1"),
        Method("acll", "approximate conditional log-likelihood, Dirichlet assumption", ACLL),
        Method("acll-uniform", "approximate conditional log-likelihood, uniform assumption", ("--pseudo-counts",)),
    ),
    STRUCTURE,
    "NAME[:NUMBER]",
    "What tan and hill-climb maximise.",
)
