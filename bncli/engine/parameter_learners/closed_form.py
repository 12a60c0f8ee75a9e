"""Parameters in closed form: `--param map`, `acll` and `acll-uniform` of networks, `kmap` and `kbma` of regions.

map            logarithms of smoothed relative frequencies (`bncli.engine.parameters.generative`)
acll           the maximum of the approximate conditional log-likelihood (`bncli.engine.structures.scores`),
               if joint probabilities follow Dirichlet(1, ..., 1, N) or another prior
acll-uniform   the same, if joint probabilities are independent and uniform

Source of the last two: Carvalho, Adao & Mateus 2013, Entropy 15, theorem 3.8.

Kikuchi-Bayes models belong to the regions on the path of a search. Each step s of the path is a model M_s with one more
region,

    ln Phi(v) = sum over regions R of c_R ln P(v_R),    P(y | x) = Phi(x, y) / sum over classes c of Phi(x, c)

where the submodels P(v_R) are smoothed relative frequencies (`bncli.engine.kikuchi.model_paths`) and the c_R are the
counting numbers.

kmap    the step of highest posterior; the path is kept up to it
kbma    the average of all steps, P(y | x) = sum over s of weight_s P(y | x, M_s), weight_s = posterior_s / sum of them

Likelihoods and posteriors are always computed from the present training rows, so that regions from a file are weighted
like regions just found (Jakulin & Rish 2006, section 7).
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import RowBlock
from bncli.engine.kikuchi.model_paths import make_path, posterior_weights, require_regions
from bncli.engine.kikuchi.search_trace import follow
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.parameters.generative import acll_tables, closed_form, generative_tables
from bncli.engine.prediction.scoring import Scorer, compile_path, log_probabilities
from bncli.engine.structures.scores import (
    dirichlet_approximation,
    prior_approximation,
    uniform_approximation,
)
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn_map(counts: Counts, structure: Structure, *, smoothing: str, watch: Watch = silent) -> Parameters:
    """Return tables of the logarithms of smoothed relative frequencies; raise BncliError for regions.

    Computing their conditional log-likelihood takes a pass over the rows.
    """
    return closed_form(counts, generative_tables(counts, structure, smoothing))


def learn_acll(
    counts: Counts,
    structure: Structure,
    *,
    pseudo_counts: float,
    class_pair_prior: str | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return the parameters that maximise aCLL, with `pseudo_counts` N' > 0.

    `class_pair_prior` replaces the prior Dirichlet(1, ..., 1, N) (`prior_approximation`). Raise BncliError for regions.
    """
    k, n = len(counts.schema.labels), counts.class_counts().sum()
    line = dirichlet_approximation(k, n) if class_pair_prior is None else prior_approximation(class_pair_prior, k)
    return closed_form(counts, acll_tables(counts, structure, line.beta, pseudo_counts))


def learn_acll_uniform(
    counts: Counts, structure: Structure, *, pseudo_counts: float, watch: Watch = silent
) -> Parameters:
    """Return the parameters that maximise aCLL under independent uniform priors, with `pseudo_counts` N' > 0."""
    beta = uniform_approximation(len(counts.schema.labels)).beta
    return closed_form(counts, acll_tables(counts, structure, beta, pseudo_counts))


def learn_kmap(
    counts: Counts,
    structure: Structure,
    *,
    theta: float,
    degrees_of_freedom: str = "conditional",
    watch: Watch = silent,
) -> Parameters:
    """Return the Kikuchi-Bayes model of the step with the highest posterior.

    `theta` is the number of prior rows per region, spread evenly over its cells. Raise BncliError for a network, and
    for regions with coarser binnings.
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
    """Return the posterior-weighted average over all steps of the path, from the class alone to all regions.

    `theta` and the errors are as in `learn_kmap`.
    """
    regions = require_regions(structure).regions
    trace = follow(counts, regions, theta, watch, degrees_of_freedom=degrees_of_freedom)
    path = make_path(counts, regions, trace, posterior_weights(trace.log_posterior), theta)
    cll = counts.data.reduce(_log_likelihood, compile_path(path))
    return Parameters(path, trace.df[-1], cll, cll, 0, 1, StoppedBy.CLOSED_FORM)


def _log_likelihood(block: RowBlock, scorer: Scorer) -> float:
    log_p = log_probabilities(scorer, [block.codes[i] for i in scorer.used], block.n_rows)
    own = log_p[block.labels, np.arange(block.n_rows)]
    return float(own.sum() if block.weights is None else block.weights @ own)
