"""`--structure`: the methods of `bncli/engine/structure_learners/`, and their options."""

from __future__ import annotations

from bncli.catalogue.choices import STRUCTURE, Choice, Method, Option
from bncli.catalogue.option_kinds import Prior, Real, Switch, Whole, Word

STRUCTURES = Choice(
    "--structure",
    "tan",
    (
        Method("nb", "naive Bayes: the class is the only parent", alone=("", 0), counted=True),
        Method("tan", "a tree over the attributes, below the class", ("--structure-score", "--forest"), counted=True),
        Method(
            "kdb", "up to k attribute parents each, by mutual information", ("--k",), alone=("--k", 0), counted=True
        ),
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
            alone=("--max-order", 2),
            needs=(("--max-order", "--max-candidates", 1),),
            idle=(("--smoothing",), "with regions, which are smoothed by --theta"),
        ),
        Method(
            "interactions",
            "every attribute alone, then the pairs and triples that explain most of what is left",
            ("--max-order",),
            defaults=(("--discretize", "equal-frequency"), ("--bins", "255"), ("--coding", "thermometer")),
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
    everyday=True,
)

OPTIONS: tuple[Option, ...] = (
    Option(
        "--k",
        Whole(0, 1000),
        "1",
        STRUCTURE,
        "Attribute parents of an attribute in kdb; in skdb the most that are tried [5].",
        everyday=True,
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
        "--class-pair-prior",
        Prior(),
        "",
        STRUCTURE,
        "acll takes the joint probabilities of a row and each class for Dirichlet(A, ..., A, B), or (A, B, ...); with "
        ":DRAWS by simulation, as beta,A,B:DRAWS (independent) must be.",
        stands_for="1 and the number of rows",
        tacit=True,
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
    Option(
        "--degrees-of-freedom",
        Word(("conditional", "joint", "structural-zeros")),
        "conditional",
        STRUCTURE,
        "What kikuchi's prior counts: the free numbers of the class given the attributes, of both jointly, or of the "
        "class given the attributes over the cells that occur.",
        tacit=True,
    ),
    Option("--max-seconds", Real(above=True), "", STRUCTURE, "kikuchi goes no further after this time.", "SECONDS"),
    Option("--max-candidates", Whole(1), "100000", STRUCTURE, "Regions that kikuchi tries in one step."),
)
