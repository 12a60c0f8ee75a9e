"""Logistic regression with as few parameters as the network's graph allows; the graph must be perfect.

    ln P(y | x) / P(0 | x) = p[y, 0] + sum over complete sets C of p[y, x_C],    y = 1, ..., K - 1

The complete sets are the non-empty sets of attributes that are joined two by two in the canonical form of the graph:
in a perfect graph, the subsets of the families. Each attribute's most frequent value is its reference; where x_C
contains a reference there is no term. (Feelders & Ivanovs 2006, "Discriminative scoring of Bayesian network
classifiers: a comparative study", Third European Workshop on Probabilistic Graphical Models.) On perfect graphs these
are the distributions of free tables; the likelihood is strictly concave but for values that no row has.

The penalty is on these parameters. It is not the penalty on free tables: which value is the reference matters.

Conventions: of equally frequent values the first is the reference. Cost: that of free tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.coordinates import Contrasts, predictors_of
from bncli.engine.parameters.flops import Costs, logistic
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.parameters.likelihood import ConditionalLikelihood, conditional_likelihood
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, optimize
from bncli.engine.structures.structure import Regions, Structure
from bncli.errors import BncliError
from bncli.watch import Watch, silent


def learn(
    counts: Counts, structure: Structure, *, smoothing: str, settings: OptimizerSettings, watch: Watch = silent
) -> Parameters:
    """Return tables of highest penalised conditional likelihood; BncliError where the graph is not perfect."""
    return optimize(space(counts, structure, smoothing=smoothing), settings, watch)


def space(counts: Counts, structure: Structure, *, smoothing: str) -> ParameterSpace:
    """Contrasts with the references; BncliError where the graph is not perfect."""
    _refuse_imperfect(counts, structure)
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    contrasts = Contrasts(likelihood.flatten(tables), predictors_of(tables.families, _references(counts, structure)))
    return ParameterSpace.directed(likelihood, contrasts, _costs(likelihood, contrasts))


def _refuse_imperfect(counts: Counts, structure: Structure) -> None:
    if isinstance(structure, Regions):
        raise BncliError("--param lr needs a graph, not regions", hint="use --param discriminative, which takes both")
    found = structure.unmarried
    if found is None:
        return
    names = [counts.data.schema.class_name if i is None else counts.data.schema.attributes[i].name for i in found]
    child, one, other = (repr(name) for name in names)
    raise BncliError(
        f"--param lr needs a perfect graph, but no arc joins {one} and {other}, both parents of {child}",
        hint="join them, or use --param discriminative, which takes any graph",
    )


def _references(counts: Counts, structure: Structure) -> list[int]:
    """Return the most frequent value of every attribute of the network, 0 for the others."""
    used = structure.attributes
    heaviest = [int(table.sum(axis=1).argmax()) for table in counts.tables([(i,) for i in used])]
    by_attribute = dict(zip(used, heaviest, strict=True))
    return [by_attribute.get(i, 0) for i in range(len(counts.data.codes))]


def _costs(likelihood: ConditionalLikelihood, contrasts: Contrasts) -> Costs:
    """|Z| is counted on the rows, whatever they weigh."""
    data = likelihood.data
    rows = replace(likelihood, data=replace(data, weights=None)).cell_weights()
    n_ones = int(contrasts.predictors.sums(rows[np.newaxis]).sum())
    return logistic(contrasts.n_parameters, n_ones, data.n_rows, data.n_labels)
