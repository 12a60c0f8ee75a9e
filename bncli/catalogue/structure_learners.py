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

OPTIONS: tuple[Option, ...] = (
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
