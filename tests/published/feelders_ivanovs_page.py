"""What the experiment of Feelders & Ivanovs gave, as a page to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.published import feelders_ivanovs_figures as figures
from tests.published.feelders_ivanovs import (
    DRAWS,
    MACHINE,
    MDL,
    OWN,
    PAGE,
    SETS,
    SHARES,
    WAYS,
    Row,
    Trial,
    published,
    scaled,
)
from tests.published.pages import read_csv, short, table

Trials = Mapping[str, Sequence[Trial]]
ALL = (*WAYS, OWN)


def rows(trials: Trials, figure: str) -> dict[str, Row]:
    """A line of Table 2 for each data set; `figure` is `iterations` or `flops`."""
    return {name: scaled([[getattr(t, figure)(way) for way in ALL] for t in each]) for name, each in trials.items()}


def in_paper(name: str) -> bool:
    return name in published("flops")


def mean(lines: Mapping[str, Row]) -> NDArray[np.float64]:
    """Over the data sets that are in the paper too, as the last line of its table."""
    return np.asarray(np.mean([row.mean for name, row in lines.items() if in_paper(name)], axis=0))


def mean_published(names: Sequence[str], figure: str) -> NDArray[np.float64]:
    """Of the paper's figures, over the same data sets."""
    return np.asarray(np.mean([published(figure)[name] for name in names if in_paper(name)], axis=0))


def within(lines: Mapping[str, Row], figure: str) -> tuple[int, int]:
    """How many figures of the paper lie between our lowest and highest (give or take its rounding), and of how many."""
    inside = [
        row.least[i] - 0.05 <= number <= row.most[i] + 0.05
        for name, row in lines.items()
        if name in DRAWS
        for i, number in enumerate(published(figure)[name])
    ]
    return sum(inside), len(inside)


def seconds(trials: Trials, share: float) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.int64]]]:
    """Processor time by way over that of `ours`, and how many runs arrived; the others count with all they spent."""
    ratios, arrived = {}, {}
    for name, each in trials.items():
        spent = np.array([[trial.seconds(way, share) for way in ALL] for trial in each])
        total = spent[:, :, 0].sum(axis=0)
        ratios[name] = total / total[ALL.index(OWN)]
        arrived[name] = spent[:, :, 1].sum(axis=0).astype(np.int64)
    return ratios, arrived


def dearer(trials: Trials, spent: Callable[[Trial, str], float]) -> float:
    """What an iteration of CG costs in BN, over what it costs in LR; geometric mean over the data sets."""
    ratios = []
    for each in trials.values():
        bn, lr = (sum(spent(t, way) for t in each) / sum(t.iterations(way) for t in each) for way in ("BN CG", "LR CG"))
        ratios.append(bn / lr)
    return float(np.exp(np.mean(np.log(ratios))))


def page(trials: Trials) -> str:
    """The whole page."""
    iterations, flops = rows(trials, "iterations"), rows(trials, "flops")
    inside = [within(lines, figure) for lines, figure in ((iterations, "iterations"), (flops, "flops"))]
    of_iterations, of_flops = (f"{a} of {b}" for a, b in inside)
    return (
        "\n\n".join(
            (
                INTRODUCTION,
                MACHINE.read_text().strip(),
                "## Table 1: the data sets, ours / the paper's",
                _sets(),
                "## Figure 2: the structure fitted to pima",
                FIGURE_2,
                f"![The structure fitted to pima]({figures.STRUCTURE.name})",
                "## Figure 3: nine curves on pima",
                FIGURE_3,
                f"![Iterations on pima]({figures.ITERATIONS.name})",
                f"![Flops on pima]({figures.FLOPS.name})",
                "## Table 2, upper half: iterations to the 5 % threshold: ours / the paper's",
                _beside(trials, iterations, "iterations"),
                "## Table 2, lower half: flops to the 5 % threshold: ours / the paper's",
                _beside(trials, flops, "flops"),
                FLOPS_OF_OURS,
                "## Processor time to the threshold, over that of `ours`",
                _timing(trials),
                TIMES,
                "## satimage with all its MDL cuts",
                MDL_CUTS,
                _mdl_cuts(),
                "## What holds, and what does not",
                VERDICT.format(
                    iterations=of_iterations,
                    flops=of_flops,
                    threshold=f"{figures.threshold():.1f}",
                    bn_flops=short(dearer(trials, Trial.flops)),
                    bn_time=short(dearer(trials, lambda trial, way: trial.seconds(way, SHARES[0])[0])),
                ),
            )
        )
        + "\n"
    )


def write(trials: Trials) -> None:
    """The page and its drawings."""
    PAGE.write_text(page(trials))
    for name, text in figures.drawings().items():
        PAGE.with_name(name).write_text(text)


def _sets() -> str:
    header, *lines = read_csv(SETS)
    cells = [
        [name, *(a if a == b else f"{a} / {b}" for a, b in zip(ours, TABLE_1[name], strict=True))]
        for name, *ours in lines
    ]
    return table(header, cells)


def _mdl_cuts() -> str:
    header, *lines = read_csv(MDL)
    return table(header, [[figure, *map(short, map(float, numbers))] for figure, *numbers in lines])


TABLE_1 = {
    "glass": ("214", "9", "6", "4"),
    "pima": ("768", "8", "2", "4"),
    "satimage": ("4435", "36", "7", "2"),
    "tic-tac-toe": ("958", "9", "2", "3"),
    "voting": ("435", "16", "2", "3"),
}
"""As the paper prints it: rows, attributes, classes, most values of an attribute."""


def _beside(trials: Trials, lines: Mapping[str, Row], figure: str) -> str:
    paper = published(figure)
    body = []
    for name, row in lines.items():
        theirs = [f" / {short(number)}" for number in paper[name]] if name in paper else [""] * len(WAYS)
        draws = f" ({len(trials[name])} draws)" if name in DRAWS else ""
        body.append([name + draws, *_cells(row.mean, theirs)])
    theirs = [f" / {short(number)}" for number in mean_published(list(lines), figure)]
    body.append(["mean of those in the paper", *_cells(mean(lines), theirs)])
    return table(("data set", *ALL), body)


def _cells(ours: Sequence[float] | NDArray[np.float64], theirs: Sequence[str]) -> list[str]:
    return [short(number) + suffix for number, suffix in zip(ours, [*theirs, ""], strict=True)]


def _timing(trials: Trials) -> str:
    """At both thresholds, by data set and in the geometric mean."""
    body = []
    for share in SHARES:
        ratios, arrived = seconds(trials, share)
        body += [[f"{name}, {share:.1%}", *map(short, row)] for name, row in ratios.items()]
        geometric = np.exp(np.mean(np.log(list(ratios.values())), axis=0))
        body.append([f"geometric mean, {share:.1%}", *map(short, geometric)])
        n_runs = sum(map(len, trials.values()))
        total = np.sum(list(arrived.values()), axis=0)
        body.append([f"arrived, {share:.1%} (of {n_runs})", *map(str, total)])
    return table(("data set, threshold", *ALL), body)


INTRODUCTION = """# The tables and figures of Feelders & Ivanovs (2006)

Made of feelders_ivanovs.csv and the files beside it, which `BNCLI_DATA=FOLDER python -m
tests.published.feelders_ivanovs` completes (it runs what they lack), by `BNCLI_UPDATE=1 pytest
tests/published/test_feelders_ivanovs.py`. The paper's table 2 is in feelders_ivanovs_table2.csv. Figure 1 is a drawn
example without data: the network of section 3.3 with its 9 parameters in LR and 14 in LR_Roos, which the tests of the
program count (`tests/engine/parameters`).

A. Feelders & J. Ivanovs, "Discriminative scoring of Bayesian network classifiers: a comparative study", Third European
Workshop on Probabilistic Graphical Models, 2006. Three parameter spaces (LR: `--param lr`; BN: `--param extended`;
LR_Roos: `--param lr-roos`) by three optimisers (`--optimizer cg`, `cgb`, `bfgs`), no penalty, from the generative model
with Laplace's rule: the learners of `bncli compare --preset feelders`. Counted is what it takes until the conditional
log-likelihood (CLL) is within 5 % of its whole rise, from the start to the highest value that any of the nine finds in
200 iterations. Every line is divided by its smallest number among the nine. Flops follow the paper's cost model
(`bncli/engine/parameters/costs.py`).

What differs from the paper:

- The artificial sets are ours: of the same kind, but other networks and other rows. A line is the mean of the scaled
  numbers of several draws, so its smallest may be above 1. The number of classes of these sets is drawn like the
  number of an attribute's values (the paper does not say).
- satimage: the first 4,435 rows, naive Bayes, 6 classes (the paper says 7; one has no rows). The paper's Table 1 says
  that no attribute has more than two values, so only the best cut of each is kept; a table of its own
  keeps all.
- glass, pima, tic-tac-toe and voting: structures by `--structure hill-climb --perfect`, that is, by the best moves from
  naive Bayes under BIC. The paper says "a hill climber on the (penalized) generative likelihood" and neither which
  penalty nor which arcs. That all its structures "happened to be perfect graphs" fits BIC: without `--perfect` the
  same graphs are found here. Under AIC and K2 those of tic-tac-toe and voting are not perfect. In voting a hole is a
  value of its own, as in the paper.
- Runs stop where five iterations together gain less than 1e-8, R's tolerance.

`ours` is the default optimiser (`newton`) on free tables (`--param discriminative`). It has no part in the scaling."""

MDL_CUTS = """One earlier run, of which ratios were kept (feelders_ivanovs_mdl.csv): each line over the smallest of the
nine, times over `ours`. It is not part of the means above."""

FIGURE_2 = """`--structure hill-climb --structure-score bic --max-parents 2 --perfect`. The class is a parent of every
attribute; blue arrows are the arcs that the search adds. The paper has a drawing only, and neither its cuts nor its
penalty are told."""

FIGURE_3 = """CLL of the nine ways on pima, as a share of its whole rise from the generative start to the best that any
of them finds; the dashed line is the threshold of 5 %, and beside each name is what it took to get there. A curve that
ends before the right edge is that of a run that stopped. `fit --trace FILE.csv` writes such a curve, with iterations,
CLL and flops."""

FLOPS_OF_OURS = """`ours` is outside the paper's cost model. Its column counts passes over the rows (evaluations of
the CLL, each with its gradient, and products with the Hessian) at the prices of LR_Roos and leaves its preconditioner
out: a lower bound. The table of times leaves nothing out."""

TIMES = """Processor time of one run a draw, preconditioner included; above 1 is slower than `ours`. 5 % is the
paper's threshold; at 0.1 % the highest CLL is the best of all ten. Runs that stopped or made 200 iterations before the
threshold count with all the time that they took, which favours them."""

VERDICT = """Holds here, and is asserted by the tests on these figures:

- Every way reaches the 5 % threshold within 200 iterations and before it stops.
- In iterations the spaces with more parameters are faster: BN before LR_Roos before LR, for each optimiser. Exact line
  searches (CGB) need fewer than plain CG, and BFGS about as few as CGB or fewer.
- In flops CGB loses to CG in every space, BN is never the cheapest, LR with BFGS wins on simple structures and
  LR_Roos with CG on the most complex ones, where BFGS costs a hundred times as much: its 12 r^2 flops an iteration.
- As the one method to choose, LR_Roos with CG has the smallest mean in flops, and LR with CG follows.
- The means over the data sets are the paper's within a quarter, for all nine ways, iterations and flops.

Of the paper's numbers for artificial sets, {iterations} (iterations) and {flops} (flops) lie between the lowest and
the highest that we drew. Each of them comes from a single draw, so not all can.

Does not hold, or not everywhere:

- satimage, CG: 8.2, 3.3 and 3.0 in the paper in LR, LR_Roos and BN, and 2.8, 2.0 and 1.4 here, while CGB and BFGS
  agree. So it lies in CG's line search. Later versions of R's `optim` have a slip in the parabola that halves every
  accepted step; with it in our CG (tried, not kept) the three are 4.9, 3.2 and 1.6, but then CG does not arrive within
  200 iterations on some artificial sets where the paper has 2.2 to 6.7. So the slip is not the explanation, or not
  all of it. A seventh, empty class and other cuts (at the median, at half the range) change little for CG. The rest is
  open.
- "Our LR parameterization was the best on 4 out of 5 UCI data sets": on 3 of the 5 here. On tic-tac-toe, where the
  paper has LR with BFGS, LR_Roos with CG is the cheapest; our tree separates its classes, as voting's: CLL_max is 0.
- The structures are not the paper's. On pima the threshold is {threshold} here and -337.0 in the paper. On glass BIC
  adds no arc, and BFGS costs half of what the paper has: theirs had more parameters.
- satimage with all its MDL cuts is another problem: BFGS in LR, the paper's winner in flops, becomes ten times as dear
  as CG. The paper's result for this set hangs on its two values an attribute.
- "The number of flops provides a fair comparison" is not so here. By flops an iteration of CG in BN costs
  {bn_flops} times one in LR, in processor time {bn_time} times: the model prices a gradient in BN at 2 + 2d times a
  CLL, but by the chain rule all spaces take the same pass, which gives the CLL as well. And BFGS's updates of its
  matrix (12 r^2 flops) are swift beside a pass over the rows with its look-ups and exponentials, up to some hundred
  parameters. So by processor time BFGS in LR or LR_Roos is the fastest of the nine where parameters are few, CG in
  LR_Roos where they are many, and CGB is the slowest.
- 5 % flatters CG: at 0.1 % BFGS arrives everywhere, plain CG in LR in little more than half of the runs.
- `ours` is not faster than the best of the nine everywhere: not on sets of 100 rows or with 30 attributes of two or
  three values, where a handful of iterations does and a preconditioner is not worth making, and not on voting and, at
  0.1 %, on satimage with all its cuts, whose classes are separable or almost."""
