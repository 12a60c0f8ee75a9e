"""`--structure` and `--structure-score`: structure learners, scores of structures, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import STRUCTURE, Choice, Method, Option
from bncli.catalogue.option_kinds import ClassPairPrior, DomainKnowledge, Integer, Real, Switch, Word

STRUCTURES = Choice(
    "--structure",
    "tan",
    (
        Method("nb", "naive Bayes: the class is the only parent", single_attribute_limit=("", 0), from_counts=True),
        Method(
            "tan", "a tree over the attributes, below the class", ("--structure-score", "--forest"), from_counts=True
        ),
        Method(
            "kdb",
            "up to k attribute parents each, by mutual information",
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
            "naive Bayes, then the best arcs one at a time by a score",
            ("--structure-score", "--max-parents", "--perfect"),
            defaults=(("--structure-score", "bic"),),
            single_attribute_limit=("--max-parents", 0),
            requires=(("--structure-score", "--max-parents", 0), ("--perfect", "--max-parents", 1)),
        ),
        Method(
            "gbn",
            "a general network found by tests of independence",
            ("--epsilon",),
        ),
        Method(
            "kikuchi",
            "overlapping regions with the class, grown one at a time by their posterior",
            ("--max-order", "--theta", "--degrees-of-freedom", "--max-seconds", "--max-candidates"),
            defaults=(("--theta", "1"),),
            params=("kbma", "kmap", "discriminative", "lr-roos"),
            single_attribute_limit=("--max-order", 2),
            requires=(("--max-order", "--max-candidates", 1), ("--knowledge", "--max-candidates", 1)),
            without_effect=(("--smoothing",), "with regions, which are smoothed by --theta"),
        ),
        Method(
            "interactions",
            "every attribute alone, then the pairs and triples that explain most of what is left",
            ("--max-order",),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "255"), ("--coding", "thermometer")),
            fixed=(("--init", "zero"),),
            single_attribute_limit=("--max-order", 2),
            params=("discriminative",),
            without_effect=(("--smoothing", "--theta"), "with --structure interactions, where nothing is smoothed"),
        ),
        Method(
            "card",
            "few columns, each with a short table of whole points",
            ("--columns", "--rows", "--pairs"),
            # a column takes at least two rows, a pair two columns
            requires=(("--columns", "--rows", 3), ("--pairs", "--columns", 1), ("--pairs", "--rows", 2)),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "20")),
            single_attribute_limit=("--pairs", 0),
            params=("points",),
            without_effect=(("--smoothing", "--theta"), "with --structure card, where nothing is smoothed"),
        ),
        Method(
            "auto",
            "an ensemble of several kinds, weighted by held-out rows; cuts and parameters included",
            has_module=False,
            params=("auto",),
            without_effect=(("--discretize", "--bins", "--cuts"), "with --structure auto, which makes its own cuts"),
        ),
    ),
    STRUCTURE,
    "METHOD",
    "Which attributes depend on which; where none is typed, fit and evaluate compare tan with interactions.",
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

OPTIONS: tuple[Option, ...] = (
    Option(
        "--max-attributes",
        Integer(1),
        "",
        STRUCTURE,
        "Learn from the N attributes that held-out rows need most, by forward selection in each training part.",
        "N",
        default_words="all columns",
        none_if_default=True,
    ),
    Option(
        "--knowledge",
        DomainKnowledge(),
        "",
        STRUCTURE,
        "Obey the forbidden and required arcs, tiers, root and pairs in this TOML file (bncli help knowledge).",
        "FILE",
        default_words="none",
        none_if_default=True,
    ),
    Option(
        "--k",
        Integer(0, 1000),
        "1",
        STRUCTURE,
        "Attribute parents in kdb; the most in skdb [5].",
        everyday=True,
    ),
    Option("--loss", Word(("rmse", "error", "log-loss")), "rmse", STRUCTURE, "The loss that skdb minimizes."),
    Option("--max-parents", Integer(0, 1000), "2", STRUCTURE, "Most attribute parents of an attribute in hill-climb."),
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
        "--class-pair-prior",
        ClassPairPrior(),
        "",
        STRUCTURE,
        "acll takes the joint probabilities of a row and each class for Dirichlet(A, ..., A, B), or (A, B, ...); with "
        ":DRAWS by simulation, as beta,A,B:DRAWS (independent) must be.",
        default_words="1 and the number of rows",
        none_if_default=True,
    ),
    Option(
        "--max-order",
        Integer(2, 16),
        "4",
        STRUCTURE,
        "Most variables of a region of kikuchi and interactions, the class among them.",
    ),
    Option("--columns", Integer(1, 1000), "8", STRUCTURE, "Most columns of a card."),
    Option("--rows", Integer(2, 100_000), "40", STRUCTURE, "Most rows of a card, over all its tables."),
    Option(
        "--pairs",
        Integer(0, 1000),
        "0",
        STRUCTURE,
        "Most tables of a card over two columns.",
        none_if_default=True,
    ),
    Option(
        "--theta",
        Real(above=True),
        "",
        STRUCTURE,
        "Rows that are spread evenly over the cells of every region.",
        default_words="1",
    ),
    Option(
        "--degrees-of-freedom",
        Word(("conditional", "joint", "structural-zeros")),
        "conditional",
        STRUCTURE,
        "What kikuchi's prior counts: the free numbers of the class given the attributes, of both jointly, or of the "
        "class given the attributes over the cells that occur.",
        none_if_default=True,
    ),
    Option("--max-seconds", Real(above=True), "", STRUCTURE, "kikuchi stops its search after this time.", "SECONDS"),
    Option("--max-candidates", Integer(1), "100000", STRUCTURE, "Regions that kikuchi tries in one step."),
)
