"""Kikuchi-Bayes models of the regions on the path of a search: `--param kmap` and `kbma`.

Each step s of the path is a model M_s with one more region,

    ln Phi(v) = sum over regions R of c_R ln P(v_R),    P(y | x) = Phi(x, y) / sum over classes c of Phi(x, c)

where submodels P(v_R) are smoothed relative frequencies (`bncli.engine.kikuchi.model_paths`) and c_R are the counting
numbers.

kmap    the step of highest posterior; the path is kept up to it
kbma    the average of all steps, P(y | x) = sum over s of weight_s P(y | x, M_s), weight_s = posterior_s / sum of them

Likelihoods and posteriors are always computed from the present training rows, so that regions from a file are weighed
like regions just found (Jakulin & Rish 2006, section 7).
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


def learn_kmap(
    counts: Counts,
    structure: Structure,
    *,
    theta: float,
    degrees_of_freedom: str = "conditional",
    watch: Watch = silent,
) -> Parameters:
    """Return the model of the step of highest posterior.

    `theta` is the number of prior rows per region, spread evenly over its cells.
    """
    regions = require_regions(structure).regions
    trace = follow(counts, regions, theta, watch, degrees_of_freedom=degrees_of_freedom)
    best = trace.map_step
    path = make_path(counts, regions[:best], trace, (*[0.0] * best, 1.0), theta)
    cll = trace.log_likelihood[best]
    return Parameters(path, trace.df[best], cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def learn_kbma(
    counts: Counts,
    structure: Structure,
    *,
    theta: float,
    degrees_of_freedom: str = "conditional",
    watch: Watch = silent,
) -> Parameters:
    """Return the average over all steps of the path, including the class alone."""
    regions = require_regions(structure).regions
    trace = follow(counts, regions, theta, watch, degrees_of_freedom=degrees_of_freedom)
    path = make_path(counts, regions, trace, posterior_weights(trace.log_posterior), theta)
    cll = counts.data.reduce(_log_likelihood, compile_path(path))
    return Parameters(path, trace.df[-1], cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def _log_likelihood(block: RowBlock, scorer: Scorer) -> float:
    log_p = log_probabilities(scorer, [block.codes[i] for i in scorer.used], block.n_rows)
    own = log_p[block.labels, np.arange(block.n_rows)]
    return float(own.sum() if block.weights is None else block.weights @ own)
