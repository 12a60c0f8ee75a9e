"""Kikuchi-Bayes with one model: the step of highest posterior on the path of the search.

    ln Phi(v) = sum over regions R of c_R ln P(v_R),    P(y | x) = Phi(x, y) / sum over classes c of Phi(x, c)

Submodels are smoothed relative frequencies (`bncli.engine.kikuchi.model_paths`), c_R the counting numbers. Which step
is best is taken again from the training rows at hand; the path is kept up to it (Jakulin & Rish 2006, section 7).
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.kikuchi.model_paths import make_path, require_regions
from bncli.engine.kikuchi.search_trace import follow
from bncli.engine.model import Parameters, StoppedBy
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
    """Return the model of the best step."""
    regions = require_regions(structure).regions
    trace = follow(counts, regions, theta, watch, degrees_of_freedom=degrees_of_freedom)
    best = trace.map_step
    path = make_path(counts, regions[:best], trace, (*[0.0] * best, 1.0), theta)
    cll = trace.log_likelihood[best]
    return Parameters(path, trace.df[best], cll, cll, 0, 1, StoppedBy.CLOSED_FORM)
