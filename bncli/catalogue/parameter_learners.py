"""`--param`, `--smoothing` and `--optimizer`: parameter learners, smoothing rules, optimizers, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import DIRECTIONS, OPTIMIZATION, PARAMETER, Choice, Method, Option
from bncli.catalogue.option_kinds import (
    ClassWeights,
    ColumnNames,
    Integer,
    Label,
    NetworkFile,
    NumberChoice,
    Real,
    Switch,
    Word,
)
from bncli.catalogue.structure_learners import ACLL

_SEARCH = tuple(flag for flag in OPTIMIZATION if flag not in ("--early-stop", "--restarts"))
_ARCS = ("--arcs",)
"""The option of methods that can be fitted without some of the arcs, which held-out rows then choose."""
_CENTERED = (("--penalty-center", "0"),)
"""Fixed for all methods except `weighted`, which alone can shrink towards another value than 0."""

PARAMETERS = Choice(
    "--param",
    "weighted",
    (
        Method(
            "map",
            "smoothed relative frequencies, in closed form",
            ("--smoothing",),
            probabilities=True,
            from_counts=True,
            module="closed_form",
        ),
        Method(
            "acll",
            "highest approximate conditional log-likelihood, in closed form",
            ACLL,
            probabilities=True,
            from_counts=True,
            module="closed_form",
        ),
        Method(
            "acll-uniform",
            "the same with the uniform assumption",
            ("--pseudo-counts",),
            probabilities=True,
            from_counts=True,
            module="closed_form",
        ),
        Method(
            "weighted",
            "log frequencies times weights that are learnt discriminatively",
            ("--smoothing", "--level", *_SEARCH, *DIRECTIONS),
            joint_options=_ARCS,
            module="conditional",
        ),
        Method(
            "discriminative",
            "free log-linear parameters (logistic regression on the cells)",
            ("--smoothing", "--theta", "--coding", "--lower-orders", *_SEARCH, *DIRECTIONS),
            fixed=_CENTERED,
            start_options=("--smoothing", "--theta"),
            joint_options=("--lower-orders", *_ARCS),
            module="conditional",
        ),
        Method(
            "extended",
            "conditional probabilities, learnt discriminatively (ELR)",
            ("--smoothing", *OPTIMIZATION),
            fixed=_CENTERED,
            probabilities=True,
            start_options=("--smoothing",),
            joint_options=_ARCS,
            module="conditional",
        ),
        Method(
            "lr",
            "logistic regression with the fewest parameters; perfect graphs only",
            ("--smoothing", *(flag for flag in _SEARCH if flag not in _ARCS), *DIRECTIONS),
            fixed=_CENTERED,
            start_options=("--smoothing",),
            module="conditional",
        ),
        Method(
            "lr-roos",
            "discriminative with the first class fixed at 0",
            ("--smoothing", "--theta", *_SEARCH, *DIRECTIONS),
            fixed=_CENTERED,
            start_options=("--smoothing", "--theta"),
            joint_options=_ARCS,
            module="conditional",
        ),
        Method(
            "em",
            "most likely probabilities given rows with missing values (expectation maximisation)",
            ("--smoothing", "--restarts", "--tolerance", "--max-iterations", "--trace"),
            probabilities=True,
            for_missing_values=True,
            module="missing_values",
        ),
        Method(
            "apn",
            "the same by gradients (adaptive probabilistic networks)",
            ("--smoothing", "--restarts", "--optimizer", "--tolerance", "--max-iterations", "--trace"),
            defaults=(("--optimizer", "cg"),),
            probabilities=True,
            for_missing_values=True,
            module="missing_values",
        ),
        Method(
            "kbma",
            "regions: the models on the path of the search, averaged by their posterior; kikuchi's default",
            ("--theta", "--degrees-of-freedom"),
            networks=False,
            module="kikuchi_bayes",
        ),
        Method(
            "kmap",
            "regions: the model of highest posterior alone",
            ("--theta", "--degrees-of-freedom"),
            networks=False,
            module="kikuchi_bayes",
        ),
        Method(
            "points",
            "whole numbers, few of them different: those of --structure card",
            ("--rows", "--points", *DIRECTIONS),
            networks=False,
        ),
        Method(
            "auto",
            "those of --structure auto",
            ("--metric", "--effort", "--time-limit", *DIRECTIONS),
            has_module=False,
            networks=False,
        ),
    ),
    PARAMETER,
    "METHOD",
    "The parameter learner.",
    folder="parameter_learners",
    everyday=True,
)

MARGINALIZED = tuple(method.word for method in PARAMETERS.methods if method.probabilities)
"""Methods whose parameters are the probabilities of a network, so that missing values can be marginalized."""

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
    # Every method takes these two: the first weighs the rows, the second corrects the predicted probabilities.
    Option(
        "--class-weights",
        ClassWeights(("balanced",)),
        "",
        PARAMETER,
        "Weight of a row of each class, times the row's own weight: LABEL=NUMBER,... or a FILE of such lines, 1 for a "
        "label left out; balanced: classes weigh alike. It moves probabilities: score --prior training moves them "
        "back.",
        default_words="rows weigh alike",
        none_if_default=True,
    ),
    Option(
        "--calibrate",
        Word(("temperature", "isotonic", "per-class")),
        "",
        PARAMETER,
        "Correct the probabilities by those of rows held out, five folds of the rows learnt anew: bncli help "
        "calibration.",
        default_words="as learnt",
        none_if_default=True,
    ),
    Option(
        "--prior-network",
        NetworkFile(),
        "",
        PARAMETER,
        "Begin from the probabilities of this network, a model of bncli import or fit, as if --prior-rows rows had "
        "been seen (bncli help knowledge).",
        "MODEL",
        default_words="no prior",
        none_if_default=True,
    ),
    Option(
        "--prior-rows",
        Real(below=1e15),
        "",
        PARAMETER,
        "How many rows --prior-network is worth; 0: none.",
        "N",
        default_words="no prior",
        none_if_default=True,
    ),
    Option(
        "--level",
        NumberChoice(("1", "2", "3", "4")),
        "4",
        PARAMETER,
        "What shares a weight: 1 attribute, 2 its value, 3 value and class, 4 nothing.",
    ),
    Option(
        "--points",
        Integer(1, 1_000_000, ("off",)),
        "100",
        PARAMETER,
        "The largest number of points of a card; off: numbers as they are fitted.",
    ),
    Option(
        "--coding",
        Word(("cells", "thermometer")),
        "cells",
        PARAMETER,
        "What is free in discriminative: every cell, or a step at every cut, which smooths along numeric attributes; "
        "interactions take that.",
    ),
    Option(
        "--lower-orders",
        Switch(),
        "",
        PARAMETER,
        "Tables for each subset of a family's attributes too; good with thermometer.",
    ),
    Option(
        "--metric",
        Word(("log-loss", "error", "rmse")),
        "log-loss",
        PARAMETER,
        "What auto chooses by: log-loss, error or rmse.",
        "NAME",
    ),
    Option(
        "--effort",
        NumberChoice(("1", "2", "3", "4", "5")),
        "",
        PARAMETER,
        "How much auto tries: 1 about half a second on small tables, 5 whatever helps.",
        default_words="3, or what fits into the time limit",
        none_if_default=True,
    ),
    Option(
        "--time-limit",
        Real(above=True),
        "",
        PARAMETER,
        "auto tries no more candidates after this time. Without --effort it uses all of it.",
        "SECONDS",
    ),
    Option(
        "--init",
        Word(("zero", "generative")),
        "",
        PARAMETER,
        "Where the optimizer starts.",
        default_words="zero where the penalty shrinks towards 0",
    ),
    Option(
        "--penalty",
        Real(words=("cv",)),
        "cv",
        PARAMETER,
        "Weight of half the squared parameters against the summed log-likelihood; cv: chosen on rows held out. "
        "Unless typed, 0 with --early-stop cv.",
        "LAMBDA|cv",
    ),
    Option(
        "--penalty-center",
        NumberChoice(("0", "1"), float),
        "0",
        PARAMETER,
        "What the penalty shrinks towards; 1, the generative model, only with weighted.",
    ),
    Option(
        "--arcs",
        Word(("cv", "all")),
        "cv",
        PARAMETER,
        "all: keep the arcs of the structure; cv: held-out rows choose, with the penalty, between all arcs between "
        "attributes, those that BIC supports, and none.",
        default_words="all where --structure is typed, else cv",
    ),
    Option(
        "--early-stop",
        Word(("cv", "none")),
        "",
        PARAMETER,
        "cv: extended stops after as many iterations as serve held-out rows.",
        default_words="cv with marginalize, else none",
    ),
    Option(
        "--restarts",
        Integer(0, 1000),
        "0",
        PARAMETER,
        "Random starts beside the usual one in extended, em and apn, which have local optima; the best end is kept.",
        "N",
        none_if_default=True,
    ),
    Option(
        "--increasing",
        ColumnNames(),
        "",
        PARAMETER,
        "The log-odds of the second of two labels, or of the label --towards, never fall along this numeric column, "
        "whatever the others are. May be repeated.",
        "COLUMN",
        none_if_default=True,
    ),
    Option(
        "--decreasing",
        ColumnNames(),
        "",
        PARAMETER,
        "They never rise along this one.",
        "COLUMN",
        none_if_default=True,
    ),
    Option(
        "--towards",
        Label(),
        "",
        PARAMETER,
        "The label of the class whose log-odds --increasing and --decreasing are about; of more than two it has to be "
        "named. Kept are its log-odds against each other label, so those against all others too.",
        "LABEL",
        default_words="the second of two",
        none_if_default=True,
    ),
)

OPTIMIZER_OPTIONS: tuple[Option, ...] = (
    Option(
        "--preconditioner",
        Word(("on", "off")),
        "on",
        PARAMETER,
        "off: the method as published, which knows nothing of cell counts.",
        none_if_default=True,
    ),
    Option(
        "--tolerance",
        Real(words=("auto",)),
        "auto",
        PARAMETER,
        "Stop when the objective improves by less than this share; auto: 1e-10, and on 10,000 rows or more with a "
        "penalty up to 1e-4, a small part of the statistical error.",
        "NUMBER|auto",
    ),
    Option("--max-iterations", Integer(), "500", PARAMETER, "Stop after so many iterations."),
)
