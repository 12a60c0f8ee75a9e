"""`--optimizer`: the methods of `bncli.engine.optimizers`, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import PARAMETER, Choice, Method, Option
from bncli.catalogue.option_kinds import Integer, Real, Word

_CONDITIONED = ("--preconditioner",)

OPTIMIZERS = Choice(
    "--optimizer",
    "newton",
    (
        Method("newton", "lbfgs, then truncated Newton steps where it is slow", _CONDITIONED, module="quasi_newton"),
        Method("lbfgs", "limited-memory BFGS, conditioned by cell counts", _CONDITIONED, module="quasi_newton"),
        Method("bfgs", "BFGS as Nash published it; memory: parameters squared", module="classical"),
        Method("cg", "conjugate gradients as Nash published them", module="classical"),
        Method("cgb", "conjugate gradients with Brent's line search", module="classical"),
    ),
    PARAMETER,
    "METHOD",
    "How the optimum is searched.",
    folder="optimizers",
)

OPTIONS: tuple[Option, ...] = (
    Option(
        "--preconditioner",
        Word(("on", "off")),
        "on",
        PARAMETER,
        "off: the method as published, which knows nothing of cell counts.",
        none_if_default=True,
    ),
    Option("--tolerance", Real(), "1e-10", PARAMETER, "Stop when the objective improves by less than this share."),
    Option("--max-iterations", Integer(), "500", PARAMETER, "Stop after so many iterations."),
)
