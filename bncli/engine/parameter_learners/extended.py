"""Extended parameters: tables that stay log probabilities of a proper network while the conditional likelihood rises.

    W_f[k j, y] = beta_kjy - ln sum over k' of exp(beta_k'jy),    b[y] = beta_y - ln sum over y' of exp(beta_y')

for child value k and parent configuration j (Greiner, Su, Shen & Zhou 2005, Machine Learning 59: ELR). The table over
the class's attribute parents, if it has any, is normalised over the class. The generative start is beta = ln theta.
On perfect graphs the optimum equals that of free tables; on others, proper networks may be unable to reach it.

Where unknown attributes are marginalized, the nodes without the class as a parent have tables too: they tell of the
unknown ones. The likelihood then has many local maxima, and the start decides which is found. How many iterations to
make can be left to rows held out (see `bncli.engine.parameters.early_stopping`).
"""

from __future__ import annotations

from functools import partial

from bncli.engine.counting.counts import Counts
from bncli.engine.inference.row_blocks import incomplete_likelihood
from bncli.engine.model import Parameters
from bncli.engine.parameters.coordinates import Softmax
from bncli.engine.parameters.early_stopping import optimize_with_early_stopping
from bncli.engine.parameters.flops import of_networks
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.incomplete_space import incomplete_space, report_work
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, Space, optimize
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    settings: OptimizerSettings,
    watch: Watch = silent,
) -> Parameters:
    """Network tables of highest penalised conditional likelihood; with early stopping, of the iterations that serve."""
    if counts.data.schema.marginalizes:
        families = structure.families(counts.data.schema.cardinalities, whole=True)
        report_work(incomplete_likelihood(counts.data, families).work, counts.data.schema, watch)
    space_of = partial(space, structure=structure, smoothing=smoothing)
    if settings.early_stop == "cv":
        return optimize_with_early_stopping(counts, space_of, settings, seed=settings.seed, watch=watch)
    return optimize(space_of(counts), settings, watch)


def space(counts: Counts, structure: Structure, *, smoothing: str) -> Space:
    """Return tables of log probabilities."""
    if counts.data.schema.marginalizes:
        return incomplete_space(counts, structure, smoothing)
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    costs = of_networks(tables.families, counts.data.n_rows, counts.data.n_labels)
    return ParameterSpace(likelihood, Softmax(likelihood.flatten(tables), tables.families), costs)
