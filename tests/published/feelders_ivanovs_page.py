"""What the experiment of Feelders & Ivanovs gave, as a page to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.performance.results import machine
from tests.published.feelders_ivanovs import DRAWS, OWN, SHARES, WAYS, Row, Trial, published, scaled
from tests.published.pages import short, table

Trials = Mapping[str, Sequence[Trial]]
ALL = (*WAYS, OWN)


def rows(trials: Trials, figure: str) -> dict[str, Row]:
    """A line of Table 2 for each data set; `figure` is `iterations` or `flops`."""
    return {name: scaled([[getattr(t, figure)(way) for way in ALL] for t in each]) for name, each in trials.items()}


def in_paper(name: str) -> bool:
    return name in published("flops")


def mean(lines: Mapping[str, Row]) -> NDArray[np.float64]:
    """Over the data sets that are in the paper too, as the last line of its table."""
    return np.mean([row.mean for name, row in lines.items() if in_paper(name)], axis=0)


def mean_published(names: Sequence[str], figure: str) -> NDArray[np.float64]:
    """Of the paper's figures, over the same data sets."""
    return np.mean([published(figure)[name] for name in names if in_paper(name)], axis=0)


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
    """Processor time by way, over that of `ours`, and how many runs arrived; those that did not count all they spent."""
    ratios, arrived = {}, {}
    for name, each in trials.items():
        spent = np.array([[trial.seconds(way, share) for way in ALL] for trial in each])
        total = spent[:, :, 0].sum(axis=0)
        ratios[name] = total / total[ALL.index(OWN)]
        arrived[name] = spent[:, :, 1].sum(axis=0).astype(np.int64)
    return ratios, arrived


def page(trials: Trials) -> str:
    """The whole page."""
    iterations, flops = rows(trials, "iterations"), rows(trials, "flops")
    inside = [within(lines, figure) for lines, figure in ((iterations, "iterations"), (flops, "flops"))]
    of_iterations, of_flops = (f"{a} of {b}" for a, b in inside)
    return (
        "\n\n".join(
            (
                INTRODUCTION,
                f"{machine()}",
                "## Iterations to the 5 % threshold: ours / the paper's",
                _beside(iterations, "iterations"),
                "## Flops to the 5 % threshold: ours / the paper's",
                _beside(flops, "flops"),
                FLOPS_OF_OURS,
                "## Processor time to the threshold, over that of `ours`",
                _timing(trials),
                TIMES,
                "## What holds, and what does not",
                VERDICT.format(iterations=of_iterations, flops=of_flops),
            )
        )
        + "\n"
    )


def _beside(lines: Mapping[str, Row], figure: str) -> str:
    paper = published(figure)
    body = []
    for name, row in lines.items():
        theirs = [f" / {short(number)}" for number in paper[name]] if name in paper else [""] * len(WAYS)
        draws = f" ({DRAWS[name]} draws)" if name in DRAWS else ""
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


INTRODUCTION = """# Table 2 of Feelders & Ivanovs (2006)

Written by `BNCLI_UPDATE=1 BNCLI_DATA=FOLDER pytest -m slow tests/published/test_feelders_ivanovs.py`.

A. Feelders & J. Ivanovs, "Discriminative scoring of Bayesian network classifiers: a comparative study", Third European
Workshop on Probabilistic Graphical Models, 2006. Three parameter spaces (LR: `--param lr`; BN: `--param extended`;
LR_Roos: free tables with class 0 fixed to 0) by three optimisers (`--optimizer cg`, `cgb`, `bfgs`), no penalty, from the
generative model with Laplace's rule. Counted is what it takes until the conditional log-likelihood is within 5 % of its
whole rise, start to highest; the highest is the best of the nine within 200 iterations. Every line is divided by
its smallest number among the nine. Flops follow the paper's cost model (`bncli/engine/flops.py`).

What differs from the paper. The artificial sets are ours: same kind, other networks, other rows; with several draws a
line is the mean of the scaled numbers, so its smallest may be above 1. The number of classes of the artificial sets is
drawn like that of an attribute's values (the paper does not say). satimage: the first 4,435 rows, naive
Bayes; the paper's Table 1 says that no attribute had more than two values, so only the best cut of each is kept (the line "MDL
cuts" keeps all, 10 to 15 values). glass, pima, tic-tac-toe and voting are left out: the paper fitted structures from a
greedy search that it does not describe well enough to repeat. `ours` is the default optimiser (`newton`) on free tables
(`--param discriminative`); it takes no part in the scaling. Runs stop where five iterations together gain less than
1e-8, R's tolerance."""

FLOPS_OF_OURS = """`ours` is outside the paper's cost model. Its column counts passes over the rows (evaluations of the
CLL, each with its gradient, and products with the Hessian) at the prices of LR_Roos, and leaves its preconditioner out: a lower
bound. The table of times leaves nothing out."""

TIMES = """Seconds of the process from start to threshold, preconditioner included, one run a draw; a number above 1 is
slower than `ours`. 5 % is the paper's threshold. At 0.1 % the highest CLL is the best of all ten; runs that stopped
or reached 200 iterations before it count with all the time that they took, which favours them."""

VERDICT = """Holds here, and is asserted by the test:

- Every way reaches the 5 % threshold within 200 iterations, and before it stops.
- In iterations the overparametrised spaces are faster: BN before LR_Roos before LR, for each optimiser; BFGS needs the fewest in LR and
  LR_Roos, and exact line searches (CGB) fewer than plain CG.
- In flops CGB loses to CG in every space, by about the paper's factor; BN is never the cheapest; LR with BFGS wins on the
  simplest structures, LR_Roos with CG on the most complex ones, where BFGS costs about a hundred times as much
  (12 r^2 flops an iteration for r parameters).
- As the one method to choose by flops, LR_Roos with CG has the smallest mean, LR with CG follows.

Of the paper's numbers for artificial sets, {iterations} (iterations) and {flops} (flops) lie between the lowest and the
highest that we drew. Its numbers are of one draw each, ours of 3 to 10, so not all can.

Does not hold, or only in part:

- satimage, LR with CG: 8.2 in the paper, 2.8 here; LR_Roos and BN with CG are off in the same direction, while CGB and BFGS
  agree. So it is CG's line search. Later versions of R's `optim` have a slip in the parabola (it uses the new value twice, which
  halves the accepted step). With that slip put into our CG the three numbers become 4.9, 3.2 and 1.6 against the paper's
  8.2, 3.3 and 3.0; but then CG fails to arrive within 200 iterations on several artificial sets, where the paper has
  2.2 to 6.7. The slip explains the sign, not the size, and we could not find the rest.
- satimage with all MDL cuts is another problem: BFGS, the paper's winner there, costs ten times the flops of LR with CG. The paper's
  result depends on its two values an attribute.
- "The number of flops provides a fair comparison": not on today's machines. A gradient in BN space is priced at
  2 + 2d times a CLL; by the chain rule it takes one pass for all spaces, the same that gives the CLL. BFGS's 12 r^2 flops run at the speed of
  a matrix product, passes over rows at that of memory look-ups. In processor time BN costs about as much an iteration as the others, BFGS in
  LR_Roos is the fastest of the nine on most sets, CGB remains the slowest.
- 5 % flatters CG. At 0.1 % plain CG in LR has arrived in little more than half of the runs within 200 iterations; BFGS has in
  all."""
