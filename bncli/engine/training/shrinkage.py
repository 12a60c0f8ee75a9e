"""Tables shrunk towards the class frequencies, by as much as the rows held out ask for: a guard on few rows.

With S the scores of the tables of the chosen penalty, f the class frequencies and 0 < a <= 1 the factor,

    S_a[x, y] = a S[x, y] + (1 - a) ln f[y],    f[y] = (n[y] + 1) / (N + K)

so the log-odds of the class are drawn towards those of the frequencies, and what is learnt stays one set of tables. The
factor is the one of FACTORS of highest

    sum over folds of CLL(rows held out; S_a) - d a,    d = DOUBT up to DOUBT_ROWS rows, DOUBT DOUBT_ROWS / N beyond

with scores and frequencies learnt from the other rows of each fold (ties: the largest factor). The last term is the log
of a prior that prefers the frequencies. It stands against the luck of the penalty, which is the best of many on the
same rows: without it, factors are too large. Where the tables tell the classes apart all but surely it would weigh more
than what is at stake, so no factor may raise the loss above the lowest by more than a share RISE.

Conventions: of more than FEW_ROWS rows nothing is shrunk, for the penalty is then chosen well enough; nor are
parameters that are probabilities of a network, which shrunk tables are not. The smallest factor is above 0: what is
learnt still tells rows apart. Cost: a pass over the rows held out for each factor and penalty tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.chosen_penalty import Shrinkage
from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, Tables
from bncli.engine.training.likelihood import conditional_likelihood

FACTORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FEW_ROWS = 300
DOUBT, DOUBT_ROWS = 2.0, 50
RISE = 0.25


def log_frequencies(class_counts: Array) -> Array:
    """ln f (K,) of class counts (K,); the 1 keeps it finite where a class has no row."""
    return np.asarray(np.log((class_counts + 1.0) / (class_counts.sum() + len(class_counts))))


def shrunk_cells(cells: Array, class_counts: Array, factor: float) -> Array:
    """Tables as one array (K, n_cells), the bias first, shrunk; as they are for a factor of 1."""
    if factor == 1.0:
        return cells
    shrunk = factor * cells
    shrunk[:, 0] += (1.0 - factor) * log_frequencies(class_counts)
    return shrunk


def choose_factor(log_likelihoods: Sequence[float], n_rows: int, weight: float) -> Shrinkage | None:
    """The factor by the CLL of so many held-out rows, of so much weight, under each of FACTORS; None for 1."""
    doubt = DOUBT * min(1.0, DOUBT_ROWS / n_rows)
    least = (1.0 + RISE) * max(log_likelihoods)
    worth = {factor: cll - doubt * factor for factor, cll in zip(FACTORS, log_likelihoods, strict=True) if cll >= least}
    best = max(worth, key=lambda factor: (worth[factor], factor))
    return None if best == 1.0 else Shrinkage(best, 0.0 - log_likelihoods[FACTORS.index(best)] / weight)


def shrunk(parameters: Parameters, counts: Counts, shrinkage: Shrinkage) -> Parameters:
    """Parameters with their tables shrunk, and the CLL of the training rows under these."""
    assert isinstance(parameters.predictor, Tables)
    likelihood = conditional_likelihood(counts.data, parameters.predictor.families)
    cells = shrunk_cells(likelihood.flatten(parameters.predictor), counts.class_counts(), shrinkage.factor)
    cll = likelihood.value_and_gradient(cells)[0]
    return replace(parameters, predictor=likelihood.tables(cells), cll=cll)
