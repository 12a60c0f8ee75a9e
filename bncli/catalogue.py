"""Every name a user may type: commands, methods, and the learning options that each method takes. Strings only.

The choices of the command line, its help, the refusal of options that would have no effect, the tables of the README
and the conformance tests all follow from here. A new method is a module and one entry in this file. Nothing heavy
may be imported here: `bncli --help` reads this file and little else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bncli.choices import Choice, Command, Method, Option
from bncli.errors import UsageError

COMMANDS = (
    Command("discretize", "Learn cut points; write the binned table or a cuts file."),
    Command("learn-structure", "Learn which attributes depend on which; write a structure file."),
    Command("fit", "Learn a classifier from a table; write a model file."),
    Command("score", "Stream a table through a model; write one row of predictions a row."),
    Command("evaluate", "Cross-validate the learning options, or test a model on a table."),
    Command("compare", "Compare several learners over several tables, with tests of significance."),
    Command("inspect", "Describe a model, structure or cuts file."),
    Command("export", "Write a model in another format."),
    Command("simulate", "Draw rows from a model or from a random network."),
    Command("help", "Show a topic of the manual."),
)

DISCRETIZERS = Choice(
    "--discretize",
    "mdl",
    (
        Method("mdl", "entropy cuts with the MDL stop of Fayyad & Irani", "bncli.engine.discretizers.mdl"),
        Method(
            "equal-width",
            "intervals of equal length between minimum and maximum",
            "bncli.engine.discretizers.equal_width",
            ("--bins",),
        ),
        Method(
            "equal-frequency",
            "intervals with about equally many rows",
            "bncli.engine.discretizers.equal_frequency",
            ("--bins",),
        ),
    ),
)

STRUCTURES = Choice(
    "--structure",
    "tan",
    (
        Method("nb", "naive Bayes: the class is the only parent", "bncli.engine.structure_learners.nb"),
        Method(
            "tan",
            "a tree over the attributes, below the class",
            "bncli.engine.structure_learners.tan",
            ("--structure-score", "--forest"),
        ),
        Method(
            "kdb",
            "up to k attribute parents each, by mutual information",
            "bncli.engine.structure_learners.kdb",
            ("--k",),
        ),
        Method(
            "skdb",
            "kdb with k and the number of attributes chosen by leave-one-out",
            "bncli.engine.structure_learners.skdb",
            ("--k", "--loss"),
        ),
        Method(
            "hill-climb",
            "naive Bayes, then the best arcs one at a time by a score",
            "bncli.engine.structure_learners.hill_climb",
            ("--structure-score", "--max-parents", "--perfect"),
        ),
        Method(
            "gbn",
            "a general network found by tests of independence",
            "bncli.engine.structure_learners.gbn",
            ("--epsilon",),
        ),
        Method(
            "kikuchi",
            "overlapping regions with the class, grown one at a time by their posterior",
            "bncli.engine.structure_learners.kikuchi",
            ("--max-order", "--theta", "--max-seconds", "--max-candidates"),
        ),
        Method(
            "interactions",
            "every attribute alone, then the pairs and triples that explain most of what is left",
            "bncli.engine.structure_learners.interactions",
            ("--max-order",),
        ),
        Method("auto", "a blend of several kinds, weighted by rows held out; cuts and parameters included", ""),
    ),
)

SCORES = Choice(
    "--structure-score",
    "cmi",
    (
        Method("cmi", "mutual information given the class (tan only)", ""),
        Method("ll", "log-likelihood", "bncli.engine.scores.ll"),
        Method("bic", "log-likelihood less ln(N)/2 a parameter; hill-climb's default", "bncli.engine.scores.bic"),
        Method("aic", "log-likelihood less 1 a parameter", "bncli.engine.scores.aic"),
        Method("k2", "marginal likelihood, 1 added to every count", "bncli.engine.scores.k2"),
        Method("bdeu", "marginal likelihood, NUMBER [1] rows over the table", "bncli.engine.scores.bdeu"),
        Method(
            "acll",
            "approximate conditional log-likelihood, Dirichlet assumption",
            "bncli.engine.scores.acll",
            ("--pseudo-counts",),
        ),
        Method(
            "acll-uniform",
            "approximate conditional log-likelihood, uniform assumption",
            "bncli.engine.scores.acll_uniform",
            ("--pseudo-counts",),
        ),
    ),
)
SCORE_NUMBERS = {"bdeu": "1"}

_ASCENT = ("--init", "--penalty", "--penalty-center", "--optimizer", "--tolerance", "--max-iterations", "--trace")

PARAMETERS = Choice(
    "--param",
    "weighted",
    (
        Method(
            "map",
            "smoothed relative frequencies, in closed form",
            "bncli.engine.parameter_learners.map",
            ("--smoothing",),
        ),
        Method(
            "acll",
            "highest approximate conditional log-likelihood, in closed form",
            "bncli.engine.parameter_learners.acll",
            ("--pseudo-counts",),
        ),
        Method(
            "acll-uniform",
            "the same with the uniform assumption",
            "bncli.engine.parameter_learners.acll_uniform",
            ("--pseudo-counts",),
        ),
        Method(
            "weighted",
            "log frequencies times weights that are learnt discriminatively",
            "bncli.engine.parameter_learners.weighted",
            ("--smoothing", "--level", *_ASCENT),
        ),
        Method(
            "discriminative",
            "free log-linear parameters (logistic regression on the cells)",
            "bncli.engine.parameter_learners.discriminative",
            ("--smoothing", "--theta", "--coding", "--lower-orders", *_ASCENT),
        ),
        Method(
            "extended",
            "conditional probabilities, learnt discriminatively (ELR)",
            "bncli.engine.parameter_learners.extended",
            ("--smoothing", "--early-stop", *_ASCENT),
        ),
        Method(
            "lr",
            "logistic regression with the fewest parameters; perfect graphs only",
            "bncli.engine.parameter_learners.lr",
            ("--smoothing", *_ASCENT),
        ),
        Method(
            "em",
            "most likely probabilities given rows with holes (expectation maximisation)",
            "bncli.engine.parameter_learners.em",
            ("--smoothing", "--tolerance", "--max-iterations", "--trace"),
        ),
        Method(
            "apn",
            "the same by gradients (adaptive probabilistic networks)",
            "bncli.engine.parameter_learners.apn",
            ("--smoothing", "--optimizer", "--tolerance", "--max-iterations", "--trace"),
        ),
        Method(
            "kbma",
            "regions: the models on the path of the search, averaged by their posterior; kikuchi's default",
            "bncli.engine.parameter_learners.kbma",
            ("--theta",),
        ),
        Method(
            "kmap",
            "regions: the model of highest posterior alone",
            "bncli.engine.parameter_learners.kmap",
            ("--theta",),
        ),
        Method("auto", "those of --structure auto", "", ("--metric", "--time-limit")),
    ),
)
FITTING = {
    "kikuchi": ("kbma", "kmap", "discriminative"),
    "interactions": ("discriminative",),
    "auto": ("auto",),
}
"""Structures that are no network, and the parameters that go with them, the default first."""
ELSEWHERE = ("kbma", "kmap", "auto")
"""Parameters that go with no network."""

SMOOTHINGS = Choice(
    "--smoothing",
    "m-estimate",
    (
        Method("mle", "relative frequencies as they are", ""),
        Method("laplace", "NUMBER [1] is added to every count", ""),
        Method("m-estimate", "NUMBER [1] rows spread evenly over the values", ""),
        Method("fgg", "NUMBER [5] rows spread like the attribute's own frequencies", ""),
        Method("bdeu", "NUMBER [1] rows spread evenly over the table", ""),
        Method("hdp", "towards fewer parents, as far as the data ask for (hierarchical Dirichlet)", ""),
    ),
)
SMOOTHING_NUMBERS = {"laplace": "1", "m-estimate": "1", "fgg": "5", "bdeu": "1"}

OPTIMIZERS = Choice(
    "--optimizer",
    "newton",
    (
        Method("newton", "lbfgs, then truncated Newton steps where it is slow", "bncli.engine.optimizers.newton"),
        Method("lbfgs", "limited-memory BFGS, conditioned by cell counts", "bncli.engine.optimizers.lbfgs"),
        Method("bfgs", "BFGS as Nash published it; memory: parameters squared", "bncli.engine.optimizers.bfgs"),
        Method("cg", "conjugate gradients as Nash published them", "bncli.engine.optimizers.cg"),
        Method("cgb", "conjugate gradients with Brent's line search", "bncli.engine.optimizers.cgb"),
    ),
)

MARGINALIZED = ("map", "acll", "acll-uniform", "extended", "em", "apn")
"""Parameters that are the probabilities of a network, so that a missing value can be summed out."""
MISSING_POLICIES = Choice(
    "--missing-policy",
    "level",
    (
        Method("level", "a missing value is one more value of its attribute", ""),
        Method(
            "marginalize",
            "what is missing is summed out, in learning and in scoring; it goes with --param "
            + ", ".join(MARGINALIZED),
            "",
        ),
    ),
)
INCOMPLETE = ("em", "apn")
"""Of these, those that are meant for rows with holes and imply `marginalize`."""

CHOICES = (DISCRETIZERS, STRUCTURES, SCORES, PARAMETERS, SMOOTHINGS, OPTIMIZERS, MISSING_POLICIES)
"""Every option that chooses a method."""

OPTIONS = (
    Option("--bins", "N", "10", "Number of intervals of equal-width and equal-frequency; interactions take 20."),
    Option("--k", "N", "1", "Attribute parents of an attribute in kdb; in skdb the most that are tried [5]."),
    Option("--loss", "rmse|error|log-loss", "rmse", "What skdb holds down."),
    Option("--max-parents", "N", "2", "Most attribute parents of an attribute in hill-climb."),
    Option("--perfect", "", "", "Only moves that keep the graph perfect (hill-climb)."),
    Option("--forest", "", "", "Leave out arcs of the tree that gain nothing (tan)."),
    Option("--epsilon", "BITS", "0.01", "Mutual information from which gbn takes two attributes as dependent."),
    Option("--max-order", "N", "4", "Most variables of a region of kikuchi and interactions, the class among them."),
    Option("--theta", "NUMBER", "1", "Rows that are spread evenly over the cells of every region."),
    Option("--max-seconds", "SECONDS", "", "kikuchi goes no further after this time."),
    Option("--max-candidates", "N", "100000", "Regions that kikuchi tries in one step."),
    Option("--pseudo-counts", "N", "5", "The least that a cell counts in acll and acll-uniform."),
    Option("--level", "1|2|3|4", "4", "What shares a weight: 1 attribute, 2 its value, 3 value and class, 4 nothing."),
    Option(
        "--coding",
        "cells|thermometer",
        "cells",
        "What is free in discriminative: every cell, or a step at every cut, which smooths along numeric attributes; "
        "interactions take that.",
    ),
    Option("--lower-orders", "", "", "Tables for each subset of a family's attributes too; good with thermometer."),
    Option("--metric", "NAME", "log-loss", "What auto chooses by: log-loss, error or rmse."),
    Option("--time-limit", "SECONDS", "", "auto tries no more after this time."),
    Option("--init", "zero|generative", "zero where the penalty pulls to 0", "Where the optimizer starts."),
    Option(
        "--penalty",
        "LAMBDA|cv",
        "cv",
        "Weight of half the squared parameters against the summed log-likelihood; cv: chosen on rows held out. "
        "Unless typed, 0 with --early-stop cv.",
    ),
    Option("--penalty-center", "0|1", "0", "Where the penalty pulls to; 1, the generative model, only with weighted."),
    Option(
        "--early-stop",
        "cv|none",
        "cv with marginalize, else none",
        "cv: extended stops after as many iterations as serve rows held out.",
    ),
    Option("--tolerance", "NUMBER", "1e-10", "Stop when the objective improves by less than this share."),
    Option("--max-iterations", "N", "500", "Stop after so many iterations."),
)
"""The other learning options; `--trace` writes a file and changes nothing."""


_SIZE = ("--attributes", "--values", "--classes")

NETWORKS = Choice(
    "--network",
    "",
    (
        Method("nb", "attributes depend on the class alone", "", _SIZE),
        Method("tan", "a random tree over the attributes, below the class", "", _SIZE),
        Method("kdb", "k random attribute parents each, and the class", "", (*_SIZE, "--k")),
        Method("conditioning", "three inputs whose influence differs by powers of ten", "", ("--exponent",)),
    ),
)
"""What `simulate` draws from besides models and the networks named P.N.D.ROWS; no learning option."""


OTHER_DEFAULTS = {
    ("hill-climb", "--structure-score"): "bic",
    ("skdb", "--k"): "5",
    ("apn", "--optimizer"): "cg",
    ("interactions", "--discretize"): "equal-frequency",
    ("interactions", "--bins"): "20",
    ("interactions", "--coding"): "thermometer",
}
"""Where a method's default is not the usual one."""


def refuse_idle(typed: Collection[str], chosen: Mapping[str, str], choices: Collection[Choice] = CHOICES) -> None:
    """UsageError for an option among `typed` that the methods chosen do not take.

    `chosen` maps flags of choices to words; a word that is no method's (a file) takes no options. `choices` are those
    that the command has; one without a word has no part in what is done.
    """
    for flag in typed:
        governors = [choice for choice in choices if flag in choice.governed]
        concerned = [choice for choice in governors if choice.flag in chosen]
        if governors and not any(flag in choice.options_of(chosen[choice.flag]) for choice in concerned):
            idle = " and ".join(f"{choice.flag} {chosen[choice.flag]}" for choice in concerned)
            takers = [f"{choice.flag} {m.word}" for choice in governors for m in choice.methods if flag in m.options]
            what = f"{flag} has no effect with {idle}" if concerned else f"{flag} has no effect here"
            raise UsageError(what, hint=f"it goes with {', '.join(takers)}")


def structure_options(word: str) -> tuple[str, ...]:
    """The fields of a recipe that the structure learner `word` takes."""
    return tuple(flag.removeprefix("--").replace("-", "_") for flag in STRUCTURES.options_of(word))
