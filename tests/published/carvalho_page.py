"""What the experiment of Carvalho, Adao & Mateus gave, as figures by set and as a page to read."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bncli.engine.evaluation.significance import SignedRanks, signed_ranks, win_draw_loss
from tests.published.carvalho import FIGURES, WAYS, Case
from tests.published.carvalho_errors import LineError
from tests.published.pages import table

HEADER = ("set", "classes", "rows", "figure", *WAYS)
CLAIMS = (("acll", "ll"), ("uniform", "ll"), ("acll", "uniform"))
"""The paper compares these, the one that it finds better first (with three classes, the last the other way)."""
OTHERS = (
    ("uniform/acll", "uniform"),
    ("acll", "ll/acll"),
    ("ll/acll", "ll"),
    ("acll/fgg", "ll"),
    ("uniform/fgg", "ll"),
    ("acll/fgg", "uniform/fgg"),
)
GROUPS = {
    "two classes": (False, (2,)),
    "three classes": (False, (3,)),
    "all": (False, (2, 3)),
    "artificial, two classes": (True, (2,)),
    "artificial, three classes": (True, (3,)),
    "artificial": (True, (2, 3)),
}
"""Whether the sets are artificial, and how many classes they have."""


def lines(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """The file of figures, three lines a set."""
    return [
        (
            case.name,
            str(case.n_labels),
            str(case.n_rows),
            figure,
            *(f"{case.nats[figure, way]:.9f}" for way in WAYS),
        )
        for case in cases
        for figure in FIGURES
    ]


def read(written: Sequence[Sequence[str]]) -> list[Case]:
    """The cases of a file of figures, header included."""
    header, *body = written
    assert tuple(header) == HEADER
    cases = []
    for lines_of_one in zip(*(body[k :: len(FIGURES)] for k in range(len(FIGURES))), strict=True):
        name, n_labels, n_rows = lines_of_one[0][:3]
        nats = {
            (figure, way): float(number)
            for figure, line in zip(FIGURES, lines_of_one, strict=True)
            for way, number in zip(WAYS, line[4:], strict=True)
        }
        cases.append(Case(name, int(n_labels), int(n_rows), nats))
    return cases


def compared(
    cases: Sequence[Case], figure: str, pair: tuple[str, str], group: str, *, sums: bool = False
) -> SignedRanks:
    """Wilcoxon's test of the two ways over the sets of a group: of nats a row, or of the rows' sums."""
    return signed_ranks(*_columns(cases, figure, pair, group, sums=sums))


def _columns(
    cases: Sequence[Case], figure: str, pair: tuple[str, str], group: str, *, sums: bool = False
) -> list[list[float]]:
    artificial, sizes = GROUPS[group]
    chosen = [case for case in cases if case.artificial == artificial and case.n_labels in sizes]
    return [[case.nats[figure, way] * (case.n_rows if sums else 1) for case in chosen] for way in pair]


def page(cases: Sequence[Case], errors: Sequence[LineError]) -> str:
    parts = (
        INTRODUCTION,
        "## Wilcoxon's test: rows learned from",
        _tests(cases, "training"),
        "## Wilcoxon's test: rows held out (5 folds)",
        _tests(cases, "held out"),
        TESTS,
        "## Nats a row",
        _figures(cases),
        NATS,
        "## The relative error of the approximation",
        RELATIVE_ERROR,
        _line_errors(errors),
        OF_LINES,
        _relative_errors(cases),
        OF_SETS,
        "## What holds, and what does not",
        VERDICT,
    )
    return "\n\n".join(parts) + "\n"


def _tests(cases: Sequence[Case], figure: str) -> str:
    header = ("first, second", "sets", "wins-draws-losses", "sign test p", "z", "p", "z of sums", "p of sums")
    asked = [(pair, group) for pair in CLAIMS for group in GROUPS if "classes" in group]
    asked += [(pair, group) for pair in OTHERS for group in ("all", "artificial")]
    return table(header, [_test(cases, figure, pair, group) for pair, group in asked])


def _test(cases: Sequence[Case], figure: str, pair: tuple[str, str], group: str) -> tuple[str, ...]:
    counted = win_draw_loss(*_columns(cases, figure, pair, group))
    by_row, by_sum = (compared(cases, figure, pair, group, sums=sums) for sums in (False, True))
    return (
        f"{pair[0]}, {pair[1]}",
        group,
        f"{counted.wins}-{counted.draws}-{counted.losses}",
        f"{counted.p:.2g}",
        f"{by_row.z:+.2f}",
        f"{by_row.p:.2g}",
        f"{by_sum.z:+.2f}",
        f"{by_sum.p:.2g}",
    )


def _figures(cases: Sequence[Case]) -> str:
    header = ["set", "classes", "rows", *(f"{figure}: {way}" for figure, way in SHOWN)]
    return table(
        header,
        [
            [case.name, str(case.n_labels), f"{case.n_rows:,}", *(f"{case.nats[key]:.3f}" for key in SHOWN)]
            for case in cases
            if not case.artificial
        ],
    )


def _line_errors(errors: Sequence[LineError]) -> str:
    header = ("assumption", "classes", "mean square error", "mean", "MSE / mean^2", "RMSE / mean", "the paper")
    printed = {("Dirichlet", 2): "13.92 %", ("uniform", 2): '"twice" that'}
    return table(
        header,
        [
            [
                error.distribution,
                str(error.n_labels),
                f"{error.square:.4f}",
                f"{error.mean:.4f}",
                f"{100 * error.by_square:.2f} %",
                f"{100 * error.by_root:.2f} %",
                printed.get((error.distribution, error.n_labels), ""),
            ]
            for error in errors
        ],
    )


ON_TABLES = ("acll", "acll/fgg", "ll")


def relative_error(case: Case, way: str) -> float:
    """|aCLL - CLL| / |CLL| of the same tables on the rows learned from."""
    exact = case.nats["training", way]
    return abs(case.nats["approximation", way] - exact) / abs(exact)


def _relative_errors(cases: Sequence[Case]) -> str:
    body = [
        [case.name, str(case.n_labels), f"{case.n_rows:,}", *(_percent(relative_error(case, w)) for w in ON_TABLES)]
        for case in cases
        if not case.artificial
    ]
    for title, artificial in (("median of these", False), ("median of the artificial ones", True)):
        chosen = [case for case in cases if case.artificial == artificial]
        medians = [_percent(median(relative_error(case, way) for case in chosen)) for way in ON_TABLES]
        body.append([title, "", "", *medians])
    return table(("set", "classes", "rows", *ON_TABLES), body)


def _percent(share: float) -> str:
    return f"{100 * share:,.1f} %"


RELATIVE_ERROR = """The paper: "We numerically computed the standard relative error of the approximation under the
Dirichlet assumption and obtained 13.92%, which is half of the relative error for the uniform case". Under the
assumptions themselves ln P(c | x) is off by the error of the straight line; its mean square (MSE) and the root of that
(RMSE) can be written down (`carvalho_errors.py`; b = 1,000):"""

OF_LINES = """13.92 % is the mean square error of the Dirichlet line over the squared mean, to the last digit
printed. Twice that (1.98 times) is the figure of the uniform line only if the root is taken there. By one measure for
both, the Dirichlet line has the larger error, not half of it.

On data, |aCLL - CLL| / |CLL| of the rows learned from, aCLL by the Dirichlet assumption with b = 1,000, both at the
same tables (`learn-structure --scores` has it for the tables of highest aCLL):"""

OF_SETS = """With the tables of aCLL the approximation is off by 35 % at the least, in the median by more than 200 %.
The assumption is about the scale of one row's probabilities; products of many table entries lie far from it. Where
nearly all rows are certain, as in `mushroom` with smoothed frequencies, the CLL to divide by is almost 0."""

SHOWN = (
    *(("training", way) for way in ("acll", "uniform", "ll")),
    *(("held out", way) for way in ("acll", "uniform", "ll")),
    *(("approximation", way) for way in ("acll", "ll")),
)

INTRODUCTION = """# Trees by aCLL and by likelihood (Carvalho, Adao & Mateus 2013)

Written by `BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -m slow tests/published/test_carvalho.py`; the figures in full are
in carvalho.csv and carvalho_errors.csv.

A. M. Carvalho, P. Adao & P. Mateus, "Efficient approximation of the conditional relative entropy with applications to
discriminative learning of Bayesian network classifiers", Entropy 15 (2013). Their claim, from 89 sets of DNA sequences
with two classes and 89 made of them with three, about 1,000 rows each: optimal trees (TAN) by aCLL reach a higher
conditional log-likelihood (CLL) of the rows learned from than optimal trees by the likelihood. Wilcoxon's z there:

| the better one, the other | two classes | three classes |
| --- | ---: | ---: |
| aCLL (Dirichlet), likelihood | 7.08 | 6.91 |
| aCLL (uniform), likelihood | 3.52 | 7.44 |
| aCLL (Dirichlet), aCLL (uniform) | 6.84 | -4.07 |

Those sets are not at hand. Here are 21 sets with two classes and 10 with three, with MDL cuts; a stratified sample of
20,000 rows of the larger ones. Every source of rows counts once: of `crx` and `australian`, of the `heart` sets and of
the `monks` and their training parts one each. Beside them 20 artificial sets with two and 20 with three classes, made
to be like the paper's: 1,000 rows, classes of equal size, 12 positions of 4 letters, one class background, the others
sites of a motif each. acll, uniform and ll are the learners of `bncli compare --preset carvalho`: N' = 5 throughout,
and the Dirichlet assumption with b = 1,000, as in the paper.

| name here | tree | tables |
| --- | --- | --- |
| acll | `--structure-score acll` | `--param acll` |
| uniform | `--structure-score acll-uniform` | `--param acll-uniform` |
| ll | `--structure-score ll` | `--param map --smoothing fgg:5` |
| uniform/acll | `--structure-score acll-uniform` | `--param acll` |
| ll/acll | `--structure-score ll` | `--param acll` |
| acll/fgg | `--structure-score acll` | `--param map --smoothing fgg:5` |
| uniform/fgg | `--structure-score acll-uniform` | `--param map --smoothing fgg:5` |

The paper says that only the score varies and that all estimates are smoothed; so its experiment may as well have had
smoothed relative frequencies on all trees: acll/fgg and uniform/fgg beside ll."""

TESTS = """z > 0 speaks for the first. Figures are nats a row, so that large sets do not have the large ranks; "of sums"
is the test of the sums over rows. p is two-sided."""

NATS = """"approximation" is aCLL (Dirichlet) of the rows learned from, constants included: what stands for the CLL in
"training". The CLL itself cannot be above 0; uniform probabilities have -0.693 with two classes, -1.099 with three."""

VERDICT = """Holds here, and is asserted by the test:

- With three classes the uniform assumption gives a higher CLL than the Dirichlet one, on the rows learned from.

Does not hold:

- aCLL above the likelihood. Tree and tables by aCLL have the lower CLL on every one of the 71 sets, under both
  assumptions, on the rows learned from as on rows held out. On 17 of the 31 real sets that of the rows learned from is
  below that of uniform probabilities.
- The Dirichlet assumption above the uniform one with two classes: no difference that the tests would see.

The tables are the main reason, not the trees. On the trees of the likelihood, too, the tables of highest aCLL have the
lower CLL on every set (ll/acll beside ll). With smoothed relative frequencies on all trees, which the paper may have
meant, trees by aCLL are close to those by the likelihood: on the rows learned from mostly behind; held out behind on
the real sets, ahead on the artificial ones (28 of 40 sets, p = 0.015 for the Dirichlet assumption).

Why, as far as we can see. The learners do what is asked of them: with the tables of aCLL, aCLL itself is higher on 24
of the 31 real sets (the other seven have 432 rows or fewer, and N' decides much). But aCLL is not close to the CLL.
It is linear in the ln U_c: what the true class gains by its competitors' falling probabilities never ends, while the
CLL ends at 0 (on 22 of the 31 sets aCLL is above 0, where no CLL can be). So a cell of a class less frequent in it than
beta is pushed down to the floor N', and products of many such cells are sure and often wrong. Nor are classes of
unequal size provided for: with two classes, one that has less than 39 % of the rows counts as N' rows only. And the
line is fitted where the U_c are of the order of 1/1,000; those of a row of many attributes are far below.

Tried on all but the largest sets: N' = 0.1, 0.5 and 50, and the paper's formula with the plus as it is printed and beta
above 0. On the rows learned from only `labor` and `lenses`, of 57 and 24 rows, then have the higher CLL by aCLL (N' of
0.1 and 0.5); held out a few more (four of 27 with N' = 50, six of 26 with the plus, by the Dirichlet assumption)."""
