"""Adaptive probabilistic networks: the likelihood of rows with missing values, raised by gradients.

    LL = sum over rows t of w_t ln P(y_t, e_t),    dLL/dbeta_kj = E_kj - theta_kj sum over k' of E_k'j

e_t is what is known of row t; theta = softmax beta are the probabilities of child value k given parent configuration j;
E are counts expected given e_t and y_t, from exact inference (Binder, Koller, Russell & Kanazawa 1997, Machine Learning
29; in these coordinates Greiner, Su, Shen & Zhou 2005). It maximises what `em` maximises, along other ways: both end in
a local maximum, not always the same one. The start is the smoothed relative frequencies of the rows that have a node
and all its parents; from there nothing is smoothed. Without missing values the maximum is the relative frequencies.

Each iteration is told with its LL. Cost: a pass of exact inference an evaluation.
"""

from __future__ import annotations

from dataclasses import replace

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.incomplete_space import conditional_value, incomplete_space, report_work
from bncli.engine.parameters.optimization import OptimizerSettings, optimize
from bncli.engine.structures.structure import Structure
from bncli.watch import Iteration, Watch, silent


def learn(
    counts: Counts, structure: Structure, *, smoothing: str, settings: OptimizerSettings, watch: Watch = silent
) -> Parameters:
    """Return probabilities of highest joint likelihood near the start.

    Of `settings`, the optimiser and its limits count.
    """
    space = incomplete_space(counts, structure, smoothing, joint=True)
    report_work(space.incomplete.joint_work, counts.data.schema, watch)
    likelihood_alone = replace(settings, init="generative", penalty=0.0, penalty_center=0.0)
    learnt = optimize(
        space,
        likelihood_alone,
        lambda event: watch(event._replace(cll=None, ll=event.cll) if isinstance(event, Iteration) else event),
    )
    end = space.incomplete.flatten(learnt.tables)
    cll_start, cll = (conditional_value(space.incomplete, c) for c in (space.coordinates.softmax.log_theta, end))
    return replace(learnt, cll_start=cll_start, cll=cll)
