"""The methods of `--structure` and `--param`, and those that they use: structure scores, smoothing and optimizers.

Each choice is followed by the options of its methods.
"""

from __future__ import annotations

from bncli.catalogue.choices import DIRECTIONS, OPTIMIZATION, PARAMETER, STRUCTURE, Choice, Method, Option
from bncli.catalogue.option_kinds import (
    ClassPairPrior,
    ClassWeights,
    ColumnNames,
    DomainKnowledge,
    Integer,
    Label,
    NetworkFile,
    NumberChoice,
    Real,
    Switch,
    Word,
)

STRUCTURES = Choice(
    "--structure",
    "tan",
    (
        Method("nb", "naive Bayes: the class is the only parent", single_attribute_limit=("", 0), from_counts=True),
        Method(
            "tan",
            "a tree over the attributes; the class is a parent of each",
            ("--structure-score", "--forest"),
            from_counts=True,
        ),
        Method(
            "kdb",
            "each attribute has up to k attributes as parents, chosen by mutual information",
            ("--k",),
            single_attribute_limit=("--k", 0),
            from_counts=True,
        ),
        Method(
            "skdb",
            "kdb with k and the number of attributes chosen by leave-one-out",
            ("--k", "--loss"),
            defaults=(("--k", "5"),),
            single_attribute_limit=("--k", 0),
        ),
        Method(
            "hill-climb",
            "starts from naive Bayes and repeatedly adds the arc that improves a score most",
            ("--structure-score", "--max-parents", "--perfect"),
            defaults=(("--structure-score", "bic"),),
            single_attribute_limit=("--max-parents", 0),
            requires=(("--structure-score", "--max-parents", 0), ("--perfect", "--max-parents", 1)),
        ),
        Method(
            "gbn",
            "a general network, found by tests of independence",
            ("--epsilon",),
        ),
        Method(
            "kikuchi",
            "overlapping sets of attributes (regions), added one at a time by posterior probability",
            ("--max-order", "--theta", "--degrees-of-freedom", "--max-seconds", "--max-candidates"),
            defaults=(("--theta", "1"),),
            params=("kbma", "kmap", "discriminative", "lr-roos"),
            single_attribute_limit=("--max-order", 2),
            requires=(("--max-order", "--max-candidates", 1), ("--knowledge", "--max-candidates", 1)),
            without_effect=(("--smoothing",), "with regions, which --theta smooths"),
        ),
        Method(
            "interactions",
            "an effect of each attribute, then effects of the pairs and triples that explain most of the rest",
            ("--max-order",),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "255"), ("--coding", "thermometer")),
            fixed=(("--init", "zero"),),
            single_attribute_limit=("--max-order", 2),
            params=("discriminative",),
            without_effect=(("--smoothing", "--theta"), "with --structure interactions, which has no smoothing"),
        ),
        Method(
            "card",
            "a score card: few columns, each with a short table of integer points",
            ("--columns", "--rows", "--pairs"),
            # a column takes at least two rows, a pair two columns
            requires=(("--columns", "--rows", 3), ("--pairs", "--columns", 1), ("--pairs", "--rows", 2)),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "20")),
            single_attribute_limit=("--pairs", 0),
            params=("points",),
            without_effect=(("--smoothing", "--theta"), "with --structure card, which has no smoothing"),
        ),
        Method(
            "auto",
            "an ensemble of several kinds of models, weighted by held-out loss; it chooses cuts and parameters too",
            has_module=False,
            params=("auto",),
            without_effect=(("--discretize", "--bins", "--cuts"), "with --structure auto, which chooses its own cuts"),
        ),
    ),
    STRUCTURE,
    "METHOD",
    "The structure learner. Without it, fit and evaluate compare tan with interactions.",
    folder="structure_learners",
    everyday=True,
)

ACLL = ("--pseudo-counts", "--class-pair-prior")
"""Options of `acll`, which is a structure score and a parameter learner."""

SCORES = Choice(
    "--structure-score",
    "cmi",
    (
        Method("cmi", "mutual information given the class (tan only)", has_module=False),
        Method("ll", "log-likelihood"),
        Method("bic", "log-likelihood minus ln(N)/2 per parameter; hill-climb's default"),
        Method("aic", "log-likelihood minus 1 per parameter"),
        Method("k2", "marginal likelihood with 1 added to every count"),
        Method("bdeu", "marginal likelihood with NUMBER [1] rows spread over the table", number="1"),
        Method("acll", "approximate conditional log-likelihood, Dirichlet assumption", ACLL),
        Method("acll-uniform", "approximate conditional log-likelihood, uniform assumption", ("--pseudo-counts",)),
    ),
    STRUCTURE,
    "NAME[:NUMBER]",
    "The score that tan and hill-climb maximize.",
)

STRUCTURE_OPTIONS: tuple[Option, ...] = (
    Option(
        "--max-attributes",
        Integer(1),
        "",
        STRUCTURE,
        "Use the N attributes that lower the held-out log-loss most, found by forward selection (repeated in each "
        "fold).",
        "N",
        default_words="all columns",
        none_if_default=True,
    ),
    Option(
        "--knowledge",
        DomainKnowledge(),
        "",
        STRUCTURE,
        "A TOML file with expert knowledge: forbidden and required arcs, tiers, a root, pairs without an interaction "
        "(bncli help knowledge).",
        "FILE",
        default_words="none",
        none_if_default=True,
    ),
    Option(
        "--k",
        Integer(0, 1000),
        "1",
        STRUCTURE,
        "Number of attribute parents in kdb; the largest number in skdb [5].",
        everyday=True,
    ),
    Option("--loss", Word(("rmse", "error", "log-loss")), "rmse", STRUCTURE, "The loss that skdb minimizes."),
    Option("--max-parents", Integer(0, 1000), "2", STRUCTURE, "Largest number of attribute parents in hill-climb."),
    Option("--perfect", Switch(), "", STRUCTURE, "hill-climb: allow only arcs that keep the graph perfect."),
    Option("--forest", Switch(), "", STRUCTURE, "tan: leave out arcs that do not improve the score."),
    Option(
        "--epsilon",
        Real(),
        "0.01",
        STRUCTURE,
        "gbn: treat two attributes as dependent if their mutual information is at least this.",
        "BITS",
    ),
    Option(
        "--pseudo-counts",
        Real(above=True),
        "5",
        STRUCTURE,
        "acll and acll-uniform: count every cell as at least this many rows.",
    ),
    Option(
        "--class-pair-prior",
        ClassPairPrior(),
        "",
        STRUCTURE,
        "acll: assume that the joint probabilities of a row and each class follow Dirichlet(A, ..., A, B), or (A, B, "
        "...). :DRAWS simulates with that many draws; beta,A,B:DRAWS assumes independent beta distributions.",
        default_words="1 and the number of rows",
        none_if_default=True,
    ),
    Option(
        "--max-order",
        Integer(2, 16),
        "4",
        STRUCTURE,
        "kikuchi and interactions: largest number of variables in a region, including the class.",
    ),
    Option("--columns", Integer(1, 1000), "8", STRUCTURE, "Largest number of columns in a card."),
    Option("--rows", Integer(2, 100_000), "40", STRUCTURE, "Largest total number of rows in the tables of a card."),
    Option(
        "--pairs",
        Integer(0, 1000),
        "0",
        STRUCTURE,
        "Largest number of tables of two columns in a card.",
        none_if_default=True,
    ),
    Option(
        "--theta",
        Real(above=True),
        "",
        STRUCTURE,
        "Prior of a region: this many rows, spread evenly over its cells.",
        default_words="1",
    ),
    Option(
        "--degrees-of-freedom",
        Word(("conditional", "joint", "structural-zeros")),
        "conditional",
        STRUCTURE,
        "How kikuchi's prior counts free parameters: of the class given the attributes, of the joint distribution, "
        "or of the class given those attribute values that occur.",
        none_if_default=True,
    ),
    Option("--max-seconds", Real(above=True), "", STRUCTURE, "kikuchi: stop the search after this time.", "SECONDS"),
    Option(
        "--max-candidates", Integer(1), "100000", STRUCTURE, "kikuchi: largest number of regions tried in one step."
    ),
)


_SEARCH = tuple(flag for flag in OPTIMIZATION if flag not in ("--early-stop", "--restarts"))
_ARCS = ("--arcs",)
"""The option of methods that can be fitted with fewer arcs; the arcs are then chosen on held-out rows."""
_CENTERED = (("--penalty-center", "0"),)
"""The fixed penalty center of all methods with a penalty except `weighted`, which can also shrink towards 1."""

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
            "maximum of the approximate conditional log-likelihood, in closed form",
            ACLL,
            probabilities=True,
            from_counts=True,
            module="closed_form",
        ),
        Method(
            "acll-uniform",
            "acll under the uniform assumption, in closed form",
            ("--pseudo-counts",),
            probabilities=True,
            from_counts=True,
            module="closed_form",
        ),
        Method(
            "weighted",
            "log frequencies times weights that are learned discriminatively",
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
            "conditional probabilities, learned discriminatively (ELR)",
            ("--smoothing", *OPTIMIZATION),
            fixed=_CENTERED,
            probabilities=True,
            start_options=("--smoothing",),
            joint_options=_ARCS,
            module="conditional",
        ),
        Method(
            "lr",
            "logistic regression with the smallest number of parameters; perfect graphs only",
            ("--smoothing", *(flag for flag in _SEARCH if flag not in _ARCS), *DIRECTIONS),
            fixed=_CENTERED,
            start_options=("--smoothing",),
            module="conditional",
        ),
        Method(
            "lr-roos",
            "like discriminative, with the parameters of the first class fixed at 0",
            ("--smoothing", "--theta", *_SEARCH, *DIRECTIONS),
            fixed=_CENTERED,
            start_options=("--smoothing", "--theta"),
            joint_options=_ARCS,
            module="conditional",
        ),
        Method(
            "em",
            "maximum likelihood with missing values, by expectation maximization",
            ("--smoothing", "--restarts", "--tolerance", "--max-iterations", "--trace"),
            probabilities=True,
            for_missing_values=True,
            module="missing_values",
        ),
        Method(
            "apn",
            "like em, but by gradient ascent (adaptive probabilistic networks)",
            ("--smoothing", "--restarts", "--optimizer", "--tolerance", "--max-iterations", "--trace"),
            defaults=(("--optimizer", "cg"),),
            probabilities=True,
            for_missing_values=True,
            module="missing_values",
        ),
        Method(
            "kbma",
            "kikuchi: average of the models of all search steps, weighted by posterior probability (its default)",
            ("--theta", "--degrees-of-freedom"),
            networks=False,
            module="closed_form",
        ),
        Method(
            "kmap",
            "kikuchi: the model of highest posterior probability",
            ("--theta", "--degrees-of-freedom"),
            networks=False,
            module="closed_form",
        ),
        Method(
            "points",
            "integer points: the parameters of --structure card",
            ("--rows", "--points", *DIRECTIONS),
            networks=False,
        ),
        Method(
            "auto",
            "the parameters of --structure auto",
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
        Method("mle", "none: relative frequencies (maximum likelihood)"),
        Method("laplace", "add NUMBER [1] to every count", number="1"),
        Method("m-estimate", "add NUMBER [1] rows, spread evenly over the values", number="1"),
        Method("fgg", "add NUMBER [5] rows, spread like the attribute's overall frequencies", number="5"),
        Method("bdeu", "add NUMBER [1] rows, spread evenly over the whole table", number="1"),
        Method("hdp", "hierarchical Dirichlet process: shrink towards the table with fewer parents"),
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
        Method(
            "newton",
            "lbfgs, followed by truncated Newton steps when it becomes slow",
            _CONDITIONED,
            module="quasi_newton",
        ),
        Method("lbfgs", "limited-memory BFGS, preconditioned by cell counts", _CONDITIONED, module="quasi_newton"),
        Method(
            "bfgs", "BFGS as published by Nash; memory grows with the squared number of parameters", module="classical"
        ),
        Method("cg", "conjugate gradients as published by Nash", module="classical"),
        Method("cgb", "conjugate gradients with Brent's line search", module="classical"),
    ),
    PARAMETER,
    "METHOD",
    "The optimizer.",
    folder="optimizers",
)

PARAMETER_OPTIONS: tuple[Option, ...] = (
    # Every method takes these two: the first weighs the rows, the second corrects the predicted probabilities.
    Option(
        "--class-weights",
        ClassWeights(("balanced",)),
        "",
        PARAMETER,
        "Multiply the weight of each row by the weight of its class: LABEL=NUMBER,... or a FILE of such lines (1 for "
        "labels left out); balanced gives all classes the same total weight. This changes the probabilities; score "
        "--prior training corrects them.",
        default_words="all weights 1",
        none_if_default=True,
    ),
    Option(
        "--calibrate",
        Word(("temperature", "isotonic", "per-class")),
        "",
        PARAMETER,
        "Calibrate the probabilities with the out-of-fold predictions of five folds (bncli help calibration).",
        default_words="no calibration",
        none_if_default=True,
    ),
    Option(
        "--prior-network",
        NetworkFile(),
        "",
        PARAMETER,
        "Use the probabilities of this network, a model file of bncli import or fit, as a prior that counts for "
        "--prior-rows rows (bncli help knowledge).",
        "MODEL",
        default_words="no prior",
        none_if_default=True,
    ),
    Option(
        "--prior-rows",
        Real(below=1e15),
        "",
        PARAMETER,
        "Number of rows that --prior-network counts for.",
        "N",
        default_words="no prior",
        none_if_default=True,
    ),
    Option(
        "--level",
        NumberChoice(("1", "2", "3", "4")),
        "4",
        PARAMETER,
        "weighted: one weight per attribute (1), per value (2), per value and class (3), or per cell (4).",
    ),
    Option(
        "--points",
        Integer(1, 1_000_000, ("off",)),
        "100",
        PARAMETER,
        "Largest number of points in a card; off leaves the fitted numbers unrounded.",
    ),
    Option(
        "--coding",
        Word(("cells", "thermometer")),
        "cells",
        PARAMETER,
        "discriminative: one parameter per cell, or (thermometer) one step per cut, which smooths along numeric "
        "attributes; interactions always use thermometer.",
    ),
    Option(
        "--lower-orders",
        Switch(),
        "",
        PARAMETER,
        "discriminative: add a table for each subset of a family's attributes; useful with thermometer.",
    ),
    Option(
        "--metric",
        Word(("log-loss", "error", "rmse")),
        "log-loss",
        PARAMETER,
        "The held-out loss that auto minimizes.",
        "NAME",
    ),
    Option(
        "--effort",
        NumberChoice(("1", "2", "3", "4", "5")),
        "",
        PARAMETER,
        "How much auto tries: from 1 (about half a second on small tables) to 5 (everything that may help).",
        default_words="3, or as much as the time limit allows",
        none_if_default=True,
    ),
    Option(
        "--time-limit",
        Real(above=True),
        "",
        PARAMETER,
        "auto: start no new candidate after this time. Without --effort, all of the time is used.",
        "SECONDS",
    ),
    Option(
        "--init",
        Word(("zero", "generative")),
        "",
        PARAMETER,
        "Starting point of the optimizer.",
        default_words="zero if the penalty shrinks towards 0",
    ),
    Option(
        "--penalty",
        Real(words=("cv",)),
        "cv",
        PARAMETER,
        "Ridge penalty: LAMBDA/2 times the sum of squared parameters, subtracted from the summed log-likelihood; cv "
        "chooses "
        "it by cross-validation. With --early-stop cv the default is 0.",
        "LAMBDA|cv",
    ),
    Option(
        "--penalty-center",
        NumberChoice(("0", "1"), float),
        "0",
        PARAMETER,
        "The value that the penalty shrinks parameters towards: 0, or with weighted also 1 (the generative model).",
    ),
    Option(
        "--arcs",
        Word(("cv", "all")),
        "cv",
        PARAMETER,
        "all keeps the arcs of the structure; cv chooses between all arcs, those that BIC supports, and none by "
        "held-out log-loss.",
        default_words="all if --structure is given, else cv",
    ),
    Option(
        "--early-stop",
        Word(("cv", "none")),
        "",
        PARAMETER,
        "extended: stop after the number of iterations that is best on held-out rows (cv).",
        default_words="cv with --missing-policy marginalize, else none",
    ),
    Option(
        "--restarts",
        Integer(0, 1000),
        "0",
        PARAMETER,
        "extended, em and apn: also optimize from N random points, and keep the best result (they have local optima).",
        "N",
        none_if_default=True,
    ),
    Option(
        "--increasing",
        ColumnNames(),
        "",
        PARAMETER,
        "Require that the log-odds of the second of two labels, or of the label --towards, never fall as this "
        "numeric column rises and all others stay the same. May be repeated.",
        "COLUMN",
        none_if_default=True,
    ),
    Option(
        "--decreasing",
        ColumnNames(),
        "",
        PARAMETER,
        "Require that these log-odds never rise as this numeric column rises. May be repeated.",
        "COLUMN",
        none_if_default=True,
    ),
    Option(
        "--towards",
        Label(),
        "",
        PARAMETER,
        "The label that --increasing and --decreasing refer to; required with more than two labels. The direction "
        "applies to its log-odds against each other label.",
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
        "off: run the optimizer as published, without the preconditioner computed from cell counts.",
        none_if_default=True,
    ),
    Option(
        "--tolerance",
        Real(words=("auto",)),
        "auto",
        PARAMETER,
        "Stop when an iteration improves the objective by less than this fraction; auto: 1e-10, or with a penalty and "
        "10,000 rows or more (1,000 with --coding thermometer) a small part of the statistical error, at most 1e-4.",
        "NUMBER|auto",
    ),
    Option("--max-iterations", Integer(), "500", PARAMETER, "Largest number of iterations."),
)
