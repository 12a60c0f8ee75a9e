"""Every name a user may type: commands, methods, and the learning options that each method takes. Strings only.

The choices of the command line, its help, the refusal of options that would have no effect, the tables of the README
and the conformance tests all follow from here. A new method is a module and one entry in this file. Nothing heavy
may be imported here: `bncli --help` reads this file and little else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bncli.choices import OPTIMIZATION, Choice, Command, Method, Number, Option, Real, Switch, Whole, Word, key_of
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
    Command("config", "Show every option as a configuration file, or the schema of a JSON output."),
    Command("completion", "Print the script that completes commands in bash, zsh or fish."),
)

CUTTING, STRUCTURE, PARAMETER, DATA = "Cut points", "Structure", "Parameters", "Data"
"""The groups of learning options."""

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
)

STRUCTURES = Choice(
    "--structure",
    "tan",
    (
        Method("nb", "naive Bayes: the class is the only parent", alone=("", 0)),
        Method("tan", "a tree over the attributes, below the class", ("--structure-score", "--forest")),
        Method("kdb", "up to k attribute parents each, by mutual information", ("--k",), alone=("--k", 0)),
        Method(
            "skdb",
            "kdb with k and the number of attributes chosen by leave-one-out",
            ("--k", "--loss"),
            defaults=(("--k", "5"),),
            alone=("--k", 0),
        ),
        Method(
            "hill-climb",
            "naive Bayes, then the best arcs one at a time by a score",
            ("--structure-score", "--max-parents", "--perfect"),
            defaults=(("--structure-score", "bic"),),
            alone=("--max-parents", 0),
            needs=(("--structure-score", "--max-parents", 0), ("--perfect", "--max-parents", 1)),
        ),
        Method("gbn", "a general network found by tests of independence", ("--epsilon",)),
        Method(
            "kikuchi",
            "overlapping regions with the class, grown one at a time by their posterior",
            ("--max-order", "--theta", "--max-seconds", "--max-candidates"),
            defaults=(("--theta", "1"),),
            params=("kbma", "kmap", "discriminative"),
            clock=True,
            alone=("--max-order", 2),
            needs=(("--max-order", "--max-candidates", 1),),
            idle=(("--smoothing",), "with regions, which are smoothed by --theta"),
        ),
        Method(
            "interactions",
            "every attribute alone, then the pairs and triples that explain most of what is left",
            ("--max-order",),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "20"), ("--coding", "thermometer")),
            fixed=(("--init", "zero"),),
            alone=("--max-order", 2),
            params=("discriminative",),
            idle=(("--smoothing", "--theta"), "with --structure interactions, where nothing is smoothed"),
        ),
        Method(
            "auto",
            "an ensemble of several kinds, weighted by held-out rows; cuts and parameters included",
            has_module=False,
            params=("auto",),
            idle=(("--discretize", "--bins", "--cuts"), "with --structure auto, which makes its own cuts"),
        ),
    ),
    STRUCTURE,
    "METHOD",
    "Which attributes depend on which.",
    room="structure_learners",
)

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
        Method("acll", "approximate conditional log-likelihood, Dirichlet assumption", ("--pseudo-counts",)),
        Method("acll-uniform", "approximate conditional log-likelihood, uniform assumption", ("--pseudo-counts",)),
    ),
    STRUCTURE,
    "NAME[:NUMBER]",
    "What tan and hill-climb maximise.",
    room="scores",
)

_SEARCH = tuple(flag for flag in OPTIMIZATION if flag != "--early-stop")
_CENTERED = (("--penalty-center", "0"),)
"""Only the weighted parameters may shrink towards something else than 0."""

PARAMETERS = Choice(
    "--param",
    "weighted",
    (
        Method("map", "smoothed relative frequencies, in closed form", ("--smoothing",), probabilities=True),
        Method(
            "acll",
            "highest approximate conditional log-likelihood, in closed form",
            ("--pseudo-counts",),
            probabilities=True,
        ),
        Method("acll-uniform", "the same with the uniform assumption", ("--pseudo-counts",), probabilities=True),
        Method(
            "weighted",
            "log frequencies times weights that are learnt discriminatively",
            ("--smoothing", "--level", *_SEARCH),
        ),
        Method(
            "discriminative",
            "free log-linear parameters (logistic regression on the cells)",
            ("--smoothing", "--theta", "--coding", "--lower-orders", *_SEARCH),
            fixed=_CENTERED,
            start=("--smoothing", "--theta"),
            joint=("--lower-orders",),
        ),
        Method(
            "extended",
            "conditional probabilities, learnt discriminatively (ELR)",
            ("--smoothing", *OPTIMIZATION),
            fixed=_CENTERED,
            probabilities=True,
            start=("--smoothing",),
        ),
        Method(
            "lr",
            "logistic regression with the fewest parameters; perfect graphs only",
            ("--smoothing", *_SEARCH),
            fixed=_CENTERED,
            start=("--smoothing",),
        ),
        Method(
            "em",
            "most likely probabilities given rows with missing values (expectation maximisation)",
            ("--smoothing", "--tolerance", "--max-iterations", "--trace"),
            probabilities=True,
            incomplete=True,
        ),
        Method(
            "apn",
            "the same by gradients (adaptive probabilistic networks)",
            ("--smoothing", "--optimizer", "--tolerance", "--max-iterations", "--trace"),
            defaults=(("--optimizer", "cg"),),
            probabilities=True,
            incomplete=True,
        ),
        Method(
            "kbma",
            "regions: the models on the path of the search, averaged by their posterior; kikuchi's default",
            ("--theta",),
            networks=False,
        ),
        Method("kmap", "regions: the model of highest posterior alone", ("--theta",), networks=False),
        Method("auto", "those of --structure auto", ("--metric", "--time-limit"), has_module=False, networks=False),
    ),
    PARAMETER,
    "METHOD",
    "How the numbers are learnt; kikuchi takes kbma, interactions take discriminative, auto takes auto.",
    room="parameter_learners",
)

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

OPTIMIZERS = Choice(
    "--optimizer",
    "newton",
    (
        Method("newton", "lbfgs, then truncated Newton steps where it is slow"),
        Method("lbfgs", "limited-memory BFGS, conditioned by cell counts"),
        Method("bfgs", "BFGS as Nash published it; memory: parameters squared"),
        Method("cg", "conjugate gradients as Nash published them"),
        Method("cgb", "conjugate gradients with Brent's line search"),
    ),
    PARAMETER,
    "METHOD",
    "How the optimum is searched.",
    room="optimizers",
)

MARGINALIZED = tuple(method.word for method in PARAMETERS.methods if method.probabilities)
"""Parameters that are the probabilities of a network, so that a missing value can be marginalized."""

MISSING_POLICIES = Choice(
    "--missing-policy",
    "level",
    (
        Method("level", "a missing value is one more value of its attribute"),
        Method(
            "marginalize",
            "what is missing is marginalized, in learning and in scoring; it goes with --param "
            + ", ".join(MARGINALIZED),
        ),
    ),
    DATA,
    "POLICY",
    "What a missing value is.",
)

_SEARCHING = (
    Option(
        "--k",
        Whole(0, 1000),
        "1",
        STRUCTURE,
        "Attribute parents of an attribute in kdb; in skdb the most that are tried [5].",
    ),
    Option("--loss", Word(("rmse", "error", "log-loss")), "rmse", STRUCTURE, "What skdb holds down."),
    Option("--max-parents", Whole(0, 1000), "2", STRUCTURE, "Most attribute parents of an attribute in hill-climb."),
    Option("--perfect", Switch(), "", STRUCTURE, "Only moves that keep the graph perfect (hill-climb)."),
    Option("--forest", Switch(), "", STRUCTURE, "Leave out arcs of the tree that gain nothing (tan)."),
    Option(
        "--epsilon",
        Real(),
        "0.01",
        STRUCTURE,
        "Mutual information from which gbn takes two attributes as dependent.",
        "BITS",
    ),
    Option(
        "--pseudo-counts", Real(above=True), "5", STRUCTURE, "The least that a cell counts in acll and acll-uniform."
    ),
    Option(
        "--max-order",
        Whole(2, 16),
        "4",
        STRUCTURE,
        "Most variables of a region of kikuchi and interactions, the class among them.",
    ),
    Option(
        "--theta",
        Real(above=True),
        "",
        STRUCTURE,
        "Rows that are spread evenly over the cells of every region.",
        stands_for="1",
    ),
    Option("--max-seconds", Real(above=True), "", STRUCTURE, "kikuchi goes no further after this time.", "SECONDS"),
    Option("--max-candidates", Whole(1), "100000", STRUCTURE, "Regions that kikuchi tries in one step."),
)

_FITTING = (
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
    Option("--time-limit", Real(above=True), "", PARAMETER, "auto tries no more after this time.", "SECONDS"),
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
        "--early-stop",
        Word(("cv", "none")),
        "",
        PARAMETER,
        "cv: extended stops after as many iterations as serve held-out rows.",
        stands_for="cv with marginalize, else none",
    ),
)

LEARNING: tuple[Choice | Option, ...] = (
    DISCRETIZERS,
    Option(
        "--bins",
        Whole(2, 10_000),
        "10",
        CUTTING,
        "Number of intervals of equal-width and equal-frequency; interactions take 20.",
    ),
    STRUCTURES,
    MISSING_POLICIES,
    SCORES,
    *_SEARCHING,
    PARAMETERS,
    SMOOTHINGS,
    *_FITTING,
    OPTIMIZERS,
    Option("--tolerance", Real(), "1e-10", PARAMETER, "Stop when the objective improves by less than this share."),
    Option("--max-iterations", Whole(), "500", PARAMETER, "Stop after so many iterations."),
)
"""The learning options in the order in which the help shows them; `--trace` writes a file and changes nothing."""

CHOICES = tuple(entry for entry in LEARNING if isinstance(entry, Choice))
"""Every learning option that chooses a method."""

OPTIONS = tuple(entry for entry in LEARNING if isinstance(entry, Option))
"""The others."""

KEYS = (*(key_of(entry.flag) for entry in LEARNING), "seed")
"""What a recipe says: a value for each learning option, and the seed where anything is random."""


_SIZE = ("--attributes", "--values", "--classes")

NETWORKS = Choice(
    "--network",
    "",
    (
        Method("nb", "attributes depend on the class alone", _SIZE),
        Method("tan", "a random tree over the attributes, below the class", _SIZE),
        Method("kdb", "k random attribute parents each, and the class", (*_SIZE, "--k")),
        Method("conditioning", "three inputs whose influence differs by powers of ten", ("--exponent",)),
    ),
    "Network",
    "METHOD",
    "What is drawn from besides models and the networks named P.N.D.ROWS.",
)
"""What `simulate` draws from; no learning option."""


def refuse_idle(typed: Collection[str], chosen: Mapping[str, str], choices: Collection[Choice] = CHOICES) -> None:
    """UsageError for an option among `typed` that the methods chosen do not take.

    `chosen` maps flags of choices to words; a word that is no method's (a file) takes no options. `choices` are those
    that the command has; one without a word has no part in what is done.
    """
    for flag in typed:
        governors = [choice for choice in choices if flag in choice.governed]
        concerned = [choice for choice in governors if choice.flag in chosen]
        if governors and not any(_takes(choice, chosen[choice.flag], flag) for choice in concerned):
            idle = " and ".join(f"{choice.flag} {chosen[choice.flag]}" for choice in concerned)
            takers = [f"{choice.flag} {m.word}" for choice in governors for m in choice.methods if _typeable(m, flag)]
            what = f"{flag} has no effect with {idle}" if concerned else f"{flag} has no effect here"
            raise UsageError(what, hint=f"it goes with {', '.join(takers)}")


def _takes(choice: Choice, word: str, flag: str) -> bool:
    method = choice.method(word)
    return method is not None and _typeable(method, flag)


def _typeable(method: Method, flag: str) -> bool:
    return flag in method.options and flag not in dict(method.fixed)
