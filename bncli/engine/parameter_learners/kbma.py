"""Kikuchi-Bayes, averaged over the path of the search: every step predicts, weighted by its posterior.

    P(y | x) = sum over steps s of weight_s P(y | x, M_s),    weight_s = posterior_s / sum of the posteriors

Submodels are smoothed relative frequencies (`bncli.engine.kikuchi.model_paths`). Likelihoods and posteriors are those
of the training rows at hand, so that regions out of a file are weighed by the same evidence as regions just
found (Jakulin & Rish 2006, section 7).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kikuchi.model_paths import make_path, posterior_weights, require_regions
from bncli.engine.kikuchi.search_trace import follow
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.prediction.scoring import Scorer, compile_path, log_probabilities
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    structure: Structure,
    *,
    theta: float,
    degrees_of_freedom: str = "conditional",
    watch: Watch = silent,
) -> Parameters:
    """Return the average over all steps of the path, the class alone among them."""
    regions = require_regions(structure).regions
    trace = follow(counts, regions, theta, watch, degrees_of_freedom=degrees_of_freedom)
    path = make_path(counts, regions, trace, posterior_weights(trace.log_posterior), theta)
    cll = counts.data.reduce(_log_likelihood, compile_path(path))
    return Parameters(path, trace.df[-1], cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def _log_likelihood(block: RowBlock, scorer: Scorer) -> float:
    log_p = log_probabilities(scorer, [block.codes[i] for i in scorer.used], block.n_rows)
    true = log_p[block.labels, np.arange(block.n_rows)]
    return float(true.sum() if block.weights is None else block.weights @ true)
