"""Random starts beside the usual one, for objectives with more than one optimum: the best end is kept.

Log probabilities of a network make the conditional likelihood, and missing values make every likelihood, a function
with several local maxima (or with plateaus on which an optimiser gives up), and the start decides which is found. A
random start draws every distribution of the network uniformly from all that there are, Dirichlet(1, ..., 1):

    beta_q = ln e_q,    e_q ~ Exp(1) independent for every free parameter q,    theta = softmax beta

Start 0 is the usual one. Number s > 0 is drawn by a generator of its own, from (seed, s): more starts never change
those before them, nor does anything else that is random. Of equal ends, rounding aside, the first is kept.

Cost: every start is an optimization of its own, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, Restarts
from bncli.watch import Note, Progress, SelectedRun, Watch

LEAST = float(np.finfo(np.float64).tiny)
"""Stands for an exponential number of 0, whose logarithm is not finite."""


class Starts(NamedTuple):
    """How many starts are random, beside the usual one, and the seed that draws them."""

    random: int = 0
    seed: int = 0


Attempt = Callable[[int], tuple[float, Parameters]]
"""From the number of a start to the objective where it ends, to be maximised, and the parameters there."""


def random_point(n_parameters: int, seed: int, start: int) -> Array:
    """Return beta (P,) of a start: logarithms of independent exponential numbers."""
    rng = np.random.default_rng([seed, start])
    return np.log(np.maximum(rng.standard_exponential(n_parameters), LEAST))


def best_start(attempt: Attempt, restarts: int, watch: Watch, *, held_out: bool = False) -> Parameters:
    """Return the parameters of the best of `restarts` random starts and the usual one, and what all of them came to.

    The watch hears the iterations of every start, then which one is kept. `held_out`: of which rows objectives are.
    """
    objective, best = attempt(0)
    objectives = [objective]
    for start in range(1, restarts + 1):
        watch(Progress(start, restarts + 1, f"start {start + 1} of {restarts + 1}"))
        objective, learnt = attempt(start)
        objectives.append(objective)
        best = learnt if Restarts(tuple(objectives)).best_start == start else best
    found = Restarts(tuple(objectives), held_out)
    watch(SelectedRun(found.best_start))
    watch(Note(_report_spread(found)))
    return replace(best, restarts=found)


def _report_spread(found: Restarts) -> str:
    """Return one line: how far apart the starts ended, and whether a random one was better."""
    of = "held-out likelihoods" if found.held_out else "objectives"
    n = len(found.objectives) - 1
    starts = f"the usual start and {n:,} random one{'' if n == 1 else 's'}"
    gain = found.objectives[found.best_start] - found.objectives[0]
    which = f"random start {found.best_start}, {gain:.4g} above the usual one," if found.best_start else "the usual one"
    return f"{starts} have {of} from {min(found.objectives):.7g} to {max(found.objectives):.7g} nats; {which} is kept"
