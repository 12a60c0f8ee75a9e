"""Logistic regression on the cells, the first class being the reference: its column of every table is fixed at 0.

    ln P(y | x) / P(0 | x) = p[y, 0] + sum over families f of p[y, cell_f(x)],    y = 1, ..., K - 1

The mapping of Roos, Wettig, Grünwald, Myllymäki & Tirri 2005 (Machine Learning 59) as Feelders & Ivanovs 2006 count it:
LR_Roos. It says what the K free columns of `discriminative` say, on any structure, with K - 1; where the class has
parents, the table over these takes the place of p[y, 0].

The penalty is on these K - 1 columns. It is not the penalty on free tables: which class is the first matters.
"""

from __future__ import annotations

from collections.abc import Sequence

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.coordinates import CellPredictors, Contrasts
from bncli.engine.parameters.flops import Costs, logistic
from bncli.engine.parameters.generative import generative_start
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, optimize
from bncli.engine.structures.structure import Family, Regions, Structure
from bncli.watch import Watch, silent


def learn(
    counts: Counts,
    structure: Structure,
    *,
    settings: OptimizerSettings,
    smoothing: str | None = None,
    theta: float | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return tables of highest penalised conditional likelihood."""
    return optimize(space(counts, structure, smoothing=smoothing, theta=theta), settings, watch)


def space(
    counts: Counts, structure: Structure, *, smoothing: str | None = None, theta: float | None = None
) -> ParameterSpace:
    """Contrasts with the first class: of a network, which needs `smoothing`, or of regions, which may have `theta`."""
    tables = generative_start(counts, structure, smoothing, theta)
    likelihood = conditional_likelihood(counts.data, tables.families)
    cells = CellPredictors(likelihood.n_cells, _of_class(structure, tables.families))
    contrasts = Contrasts(likelihood.flatten(tables), cells)
    return ParameterSpace.directed(likelihood, contrasts, _costs(likelihood, contrasts))


def _of_class(structure: Structure, families: Sequence[Family]) -> tuple[int, int] | None:
    """Return the first cell and the end of the table over the class's parents, the last of a network's."""
    if isinstance(structure, Regions) or not structure.class_parents:
        return None
    end = 1 + sum(family.n_cells for family in families)
    return end - families[-1].n_cells, end


def _costs(likelihood: ConditionalLikelihood, contrasts: Contrasts) -> Costs:
    """Return a one a row for each table, and for the bias where it is free."""
    data = likelihood.data
    biased = contrasts.predictors.n_predictors == likelihood.n_cells
    n_ones = (len(likelihood.families) + biased) * data.n_rows
    return logistic(contrasts.n_parameters, n_ones, data.n_rows, data.n_labels)
