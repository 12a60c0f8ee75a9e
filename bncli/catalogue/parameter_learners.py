"""`--param`: the methods of `bncli/engine/parameter_learners/`, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import OPTIMIZATION, PARAMETER, Choice, Method, Option
from bncli.catalogue.directions import DIRECTIONS
from bncli.catalogue.option_kinds import ClassNumbers, Number, Real, Switch, Whole, Word
from bncli.catalogue.scores import ACLL

_SEARCH = tuple(flag for flag in OPTIMIZATION if flag not in ("--early-stop", "--restarts"))
_ARCS = ("--arcs",)
"""Which arcs help is asked with the penalty, of networks that stay networks of the same kind without some of them."""
_CENTERED = (("--penalty-center", "0"),)
"""Only the weighted parameters may shrink towards something else than 0."""

PARAMETERS = Choice(
    "--param",
    "weighted",
    (
        Method(
            "map", "smoothed relative frequencies, in closed form", ("--smoothing",), probabilities=True, counted=True
        ),
        Method(
            "acll",
            "highest approximate conditional log-likelihood, in closed form",
            ACLL,
            probabilities=True,
            counted=True,
        ),
        Method(
            "acll-uniform",
            "the same with the uniform assumption",
            ("--pseudo-counts",),
            probabilities=True,
            counted=True,
        ),
        Method(
            "weighted",
            "log frequencies times weights that are learnt discriminatively",
            ("--smoothing", "--level", *_SEARCH, *DIRECTIONS),
            joint=_ARCS,
        ),
        Method(
            "discriminative",
            "free log-linear parameters (logistic regression on the cells)",
            ("--smoothing", "--theta", "--coding", "--lower-orders", *_SEARCH, *DIRECTIONS),
            fixed=_CENTERED,
            start=("--smoothing", "--theta"),
            joint=("--lower-orders", *_ARCS),
        ),
        Method(
            "extended",
            "conditional probabilities, learnt discriminatively (ELR)",
            ("--smoothing", *OPTIMIZATION),
            fixed=_CENTERED,
            probabilities=True,
            start=("--smoothing",),
            joint=_ARCS,
        ),
        Method(
            "lr",
            "logistic regression with the fewest parameters; perfect graphs only",
            ("--smoothing", *(flag for flag in _SEARCH if flag not in _ARCS), *DIRECTIONS),
            fixed=_CENTERED,
            start=("--smoothing",),
        ),
        Method(
            "lr-roos",
            "discriminative with the first class fixed at 0",
            ("--smoothing", "--theta", *_SEARCH, *DIRECTIONS),
            fixed=_CENTERED,
            start=("--smoothing", "--theta"),
            joint=_ARCS,
        ),
        Method(
            "em",
            "most likely probabilities given rows with missing values (expectation maximisation)",
            ("--smoothing", "--restarts", "--tolerance", "--max-iterations", "--trace"),
            probabilities=True,
            incomplete=True,
        ),
        Method(
            "apn",
            "the same by gradients (adaptive probabilistic networks)",
            ("--smoothing", "--restarts", "--optimizer", "--tolerance", "--max-iterations", "--trace"),
            defaults=(("--optimizer", "cg"),),
            probabilities=True,
            incomplete=True,
        ),
        Method(
            "kbma",
            "regions: the models on the path of the search, averaged by their posterior; kikuchi's default",
            ("--theta", "--degrees-of-freedom"),
            networks=False,
        ),
        Method(
            "kmap",
            "regions: the model of highest posterior alone",
            ("--theta", "--degrees-of-freedom"),
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
    "How the numbers are learnt; kikuchi takes kbma, interactions take discriminative, auto takes auto.",
    room="parameter_learners",
    everyday=True,
)

MARGINALIZED = tuple(method.word for method in PARAMETERS.methods if method.probabilities)
"""Parameters that are the probabilities of a network, so that a missing value can be marginalized."""

CLASS_WEIGHTS = Option(
    "--class-weights",
    ClassNumbers(("balanced",)),
    "",
    PARAMETER,
    "What a row of each class weighs, times its own weight: LABEL=NUMBER,... or a FILE of such lines, 1 for a label "
    "left out; balanced: classes weigh alike. It moves probabilities: score --prior training moves them back.",
    stands_for="rows weigh alike",
    tacit=True,
)
"""An option of all methods: it makes the rows that they learn from."""

CALIBRATE = Option(
    "--calibrate",
    Word(("temperature", "isotonic", "per-class")),
    "",
    PARAMETER,
    "Correct the probabilities by those of rows held out, five folds of the rows learnt anew: bncli help calibration.",
    stands_for="as learnt",
    tacit=True,
)
"""An option of all methods: a map of what they say."""

OPTIONS: tuple[Option, ...] = (
    CLASS_WEIGHTS,
    CALIBRATE,
    Option(
        "--level",
        Number(("1", "2", "3", "4")),
        "4",
        PARAMETER,
        "What shares a weight: 1 attribute, 2 its value, 3 value and class, 4 nothing.",
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
        Number(("1", "2", "3", "4", "5")),
        "",
        PARAMETER,
        "How much auto tries: 1 about half a second on small tables, 5 whatever helps.",
        stands_for="3, or what fits into the time limit",
        tacit=True,
    ),
    Option(
        "--time-limit",
        Real(above=True),
        "",
        PARAMETER,
        "auto tries no more after this time; unless an effort is typed, it uses the time.",
        "SECONDS",
    ),
    Option(
        "--init",
        Word(("zero", "generative")),
        "",
        PARAMETER,
        "Where the optimizer starts.",
        stands_for="zero where the penalty shrinks towards 0",
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
        Number(("0", "1"), float),
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
        stands_for="all where --structure is typed, else cv",
    ),
    Option(
        "--early-stop",
        Word(("cv", "none")),
        "",
        PARAMETER,
        "cv: extended stops after as many iterations as serve held-out rows.",
        stands_for="cv with marginalize, else none",
    ),
    Option(
        "--restarts",
        Whole(0, 1000),
        "0",
        PARAMETER,
        "Random starts beside the usual one in extended, em and apn, which have local optima; the best end is kept.",
        "N",
        tacit=True,
    ),
)
