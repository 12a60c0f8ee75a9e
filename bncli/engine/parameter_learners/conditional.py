"""Parameters that maximise the penalised conditional likelihood, found by an optimizer.

The methods are `--param weighted`, `discriminative`, `extended`, `lr` and `lr-roos`. Each method is a parameter space
(`build_space_...`), in which `bncli.engine.parameters.optimization` finds the optimum.

**discriminative.** Every table entry is free (called d by Zaidi et al. 2017):

    W_f[c, y] = beta_f,c,y

This is multinomial logistic regression on the indicators of the families' cells; the penalised objective is strictly
concave (Roos, Wettig, Grünwald, Myllymäki & Tirri 2005, Machine Learning 59). Families are those of a network, or
regions, with one table for each region that no other contains. On regions the generative start is the Kikuchi-Bayes
model, and the optimum is a maximum-entropy model over the same regions. Tables may also be sums of effects, which are
then penalised in place of the entries (`bncli.engine.parameters.effect_coding`): with the coding `thermometer` a
numeric attribute has one step per cut, and with lower orders every subset of a family's attributes has effects of its
own. The bias is penalised too.

**weighted.** The generative log probabilities, each multiplied by a weight that is learned discriminatively:

    W_f[c, y] = w_q(f, c, y) ln theta_f[c, y],    b[y] = w_y ln theta[y]

with theta fixed. The level determines which entries share a weight (Zaidi et al. 2017, Machine Learning 106):

    1  all of a family                     one weight per attribute
    2  cells with the same child value     one per attribute value
    3  the same, per class                 one per attribute value and class
    4  none                                one per cell and class: as rich as free tables

The term of the class has one weight per class at every level, and so has the table over the class's attribute parents
at levels 1 to 3. w = 1 is the generative model, w = 0 the uniform distribution.

**extended.** Tables that remain log probabilities of a network:

    W_f[k j, y] = beta_kjy - ln sum over k' of exp(beta_k'jy),    b[y] = beta_y - ln sum over y' of exp(beta_y')

for child value k and parent configuration j (Greiner, Su, Shen & Zhou 2005, Machine Learning 59: ELR). The table over
the class's attribute parents, if it has any, is normalised over the class. The generative start is beta = ln theta. On
perfect graphs the optimum equals the optimum of free tables; on others it may be lower. If missing values are
marginalized, the nodes that do not have the class as a parent have tables too, since they help to infer the missing
values. The likelihood then has many local maxima, and the start decides which one is found.

**lr.** Logistic regression with as few parameters as the network's graph allows; the graph must be perfect.

    ln P(y | x) / P(0 | x) = p[y, 0] + sum over complete sets C of p[y, x_C],    y = 1, ..., K - 1

The complete sets are the non-empty sets of attributes that are pairwise joined in the canonical form of the graph: in a
perfect graph, the subsets of the families. Each attribute's most frequent value is its reference (ties: the first); if
x_C contains a reference there is no term (Feelders & Ivanovs 2006, "Discriminative scoring of Bayesian network
classifiers: a comparative study", Third European Workshop on Probabilistic Graphical Models). On perfect graphs these
models have the same distributions as free tables; the likelihood is strictly concave except for values that no row has.

**lr-roos.** Logistic regression on the cells with the first class as reference: its column of every table is fixed at
0.

    ln P(y | x) / P(0 | x) = p[y, 0] + sum over families f of p[y, cell_f(x)],    y = 1, ..., K - 1

This is the mapping of Roos et al. 2005, called LR_Roos by Feelders & Ivanovs 2006. On any structure it has the same
distributions as `discriminative`, with K - 1 free columns instead of K. If the class has parents, the table over these
replaces p[y, 0].

The penalties of `lr` and `lr-roos` apply to these parameters, not to free tables, so the choice of references matters.

**Early stopping** (only `extended`): the number of iterations is tuned within the training rows, by FOLDS stratified
folds. The optimizer runs on the rows outside each fold as it would on all rows, with a start computed from these rows,
and after every iteration i the rows of the fold are scored:

    H_i = sum over folds f of CLL(rows of f; parameters after i iterations outside f)

The i of highest H_i is chosen (ties, up to the fraction TIE: the lowest i); then the optimizer runs on all rows for
that number of iterations (Greiner et al. 2005, section 4). A fold whose optimizer has stopped keeps its last score.
Random starts are tuned one by one, each from the same point in all folds, and the start with the highest H_i is kept.
Conventions: runs first end after FIRST iterations. While the best i lies in their last third and some fold has not
converged, they are repeated with twice the number of iterations. So a run ends once the held-out likelihood has been
falling for half as long as it rose, and all repetitions together cost no more than twice the last. Structure, cuts and
levels come from all rows. If no row can be held out, the optimizer runs to its end. If the chosen i is the maximum
number of iterations, the run is reported as stopped by that maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.splits import inner_splits
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.optimizers.objective import Step
from bncli.engine.parameters.coordinates import (
    CellPredictors,
    Contrasts,
    EntryCoordinates,
    SharedWeights,
    Softmax,
    predictors_of,
)
from bncli.engine.parameters.costs import free_table_flops, logistic_flops, network_flops
from bncli.engine.parameters.effect_coding import EffectCoordinates, effects_of
from bncli.engine.parameters.generative import generative_start, generative_tables, is_regrouped
from bncli.engine.parameters.level_effects import level_scales
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.parameters.optimization import (
    Likelihood,
    OptimizerSettings,
    ParameterSpace,
    Space,
    best_start,
    find_optimum,
    optimize,
)
from bncli.engine.structures.structure import Regions, Structure
from bncli.errors import BncliError
from bncli.watch import Progress, Watch, silent

FOLDS = 5
FIRST = 8
TIE = 1e-12


def learn_weighted(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    level: int,
    settings: OptimizerSettings,
    watch: Watch = silent,
) -> Parameters:
    """Return the weighted generative tables that maximise the penalised likelihood; raise BncliError for regions."""
    return optimize(build_space_weighted(counts, structure, smoothing=smoothing, level=level), settings, watch)


def build_space_weighted(counts: Counts, structure: Structure, *, smoothing: str, level: int) -> ParameterSpace:
    """Return the space of weights on the generative tables; `level` decides which entries share a weight.

    Raise BncliError for regions.
    """
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.fitted_rows, tables.families)
    log_theta = tables.cells
    if level == 4:
        return ParameterSpace.directed(likelihood, EntryCoordinates(np.ones(log_theta.shape), log_theta))
    n_labels = len(log_theta)
    classes = np.arange(n_labels)[:, np.newaxis]
    # the number of each entry's weight, table after table
    index, used = [classes], n_labels
    for family in tables.families:
        if family.child is None:
            index.append(used + np.broadcast_to(classes, (n_labels, family.n_cells)))
            used += n_labels
            continue
        n_values = family.shape[0] if level > 1 else 1
        values = np.arange(family.n_cells) // (family.n_cells // n_values)
        if level == 3:
            index.append(used + values + n_values * classes)
        else:
            index.append(used + np.broadcast_to(values, (n_labels, family.n_cells)))
        used += n_values * (n_labels if level == 3 else 1)
    return ParameterSpace.directed(likelihood, SharedWeights(log_theta, np.concatenate(index, axis=1), used))


def learn_discriminative(
    counts: Counts,
    structure: Structure,
    *,
    settings: OptimizerSettings,
    smoothing: str | None = None,
    theta: float | None = None,
    coding: str = "cells",
    lower_orders: bool = False,
    watch: Watch = silent,
) -> Parameters:
    """Return the tables that maximise the penalised conditional likelihood."""
    space = build_space_discriminative(
        counts, structure, smoothing=smoothing, theta=theta, coding=coding, lower_orders=lower_orders
    )
    return optimize(space, settings, watch)


def build_space_discriminative(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str | None = None,
    theta: float | None = None,
    coding: str = "cells",
    lower_orders: bool = False,
) -> ParameterSpace:
    """Return the space of free tables, or of effects if the coding, lower orders or regrouped regions require them.

    The generative start of a network needs `smoothing`; regions may have a `theta`.
    """
    data = counts.fitted_rows
    if coding == "cells" and not lower_orders and not is_regrouped(structure):
        tables = generative_start(counts, structure, smoothing, theta)
        likelihood = conditional_likelihood(data, tables.families)
        flops = free_table_flops(tables.families, data.n_rows, data.n_labels)
        return ParameterSpace.directed(likelihood, EntryCoordinates(tables.cells), flops)
    likelihood = conditional_likelihood(data, structure.families(data.schema.cardinalities))
    weights = likelihood.cell_weights()
    effects = effects_of(
        likelihood.families,
        data.schema,
        weights,
        coding=coding,
        lower_orders=lower_orders,
        scales=level_scales(data, coding) if structure.method == "interactions" else {},
    )
    generative_cells = partial(_generative_cells, counts, structure, smoothing, theta)
    return ParameterSpace.directed(likelihood, EffectCoordinates(effects, data.n_labels, generative_cells))


def _generative_cells(counts: Counts, structure: Structure, smoothing: str | None, theta: float | None) -> Array:
    return generative_start(counts, structure, smoothing, theta).cells


def learn_lr(
    counts: Counts, structure: Structure, *, smoothing: str, settings: OptimizerSettings, watch: Watch = silent
) -> Parameters:
    """Return the logistic-regression tables that maximise the penalised conditional likelihood.

    Raise BncliError as `build_space_lr` does.
    """
    return optimize(build_space_lr(counts, structure, smoothing=smoothing), settings, watch)


def build_space_lr(counts: Counts, structure: Structure, *, smoothing: str) -> ParameterSpace:
    """Return the space of log-odds against the first class, with the predictors of complete sets.

    Raise BncliError for regions, and for graphs that are not perfect.
    """
    data = counts.fitted_rows
    if isinstance(structure, Regions):
        raise BncliError(
            "--param lr needs a graph, not regions", hint="use --param discriminative, which works for both"
        )
    unmarried = structure.unmarried
    if unmarried is not None:
        names = [data.schema.class_name if i is None else data.schema.attributes[i].name for i in unmarried]
        child, one, other = (repr(name) for name in names)
        raise BncliError(
            f"--param lr needs a perfect graph, but no arc joins {one} and {other}, both parents of {child}",
            hint="add an arc between them, or use --param discriminative, which works for any graph",
        )
    tables = generative_tables(counts, structure, smoothing)
    references = [0] * len(data.codes)
    for i, table in zip(structure.attributes, counts.tables([(i,) for i in structure.attributes]), strict=True):
        references[i] = int(table.sum(axis=1).argmax())
    likelihood = conditional_likelihood(data, tables.families)
    contrasts = Contrasts(tables.cells, predictors_of(tables.families, references))
    # |Z| counts rows, regardless of their weights
    rows = replace(likelihood, data=replace(data, weights=None)).cell_weights()
    n_ones = int(contrasts.predictors.sums(rows[np.newaxis]).sum())
    flops = logistic_flops(contrasts.n_parameters, n_ones, data.n_rows, data.n_labels)
    return ParameterSpace.directed(likelihood, contrasts, flops)


def learn_lr_roos(
    counts: Counts,
    structure: Structure,
    *,
    settings: OptimizerSettings,
    smoothing: str | None = None,
    theta: float | None = None,
    watch: Watch = silent,
) -> Parameters:
    """Return the tables, 0 for the first class, that maximise the penalised conditional likelihood."""
    return optimize(build_space_lr_roos(counts, structure, smoothing=smoothing, theta=theta), settings, watch)


def build_space_lr_roos(
    counts: Counts, structure: Structure, *, smoothing: str | None = None, theta: float | None = None
) -> ParameterSpace:
    """Return the space of log-odds against the first class, with one predictor per cell.

    The generative start of a network needs `smoothing`; regions may have a `theta`.
    """
    tables, data = generative_start(counts, structure, smoothing, theta), counts.fitted_rows
    likelihood = conditional_likelihood(data, tables.families)
    of_class = None
    if not isinstance(structure, Regions) and structure.class_parents:
        # the table over the class's parents is the last of a network
        of_class = (likelihood.n_cells - tables.families[-1].n_cells, likelihood.n_cells)
    contrasts = Contrasts(tables.cells, CellPredictors(likelihood.n_cells, of_class))
    # one 1 per row for each table, and for the bias if it is free
    n_ones = (len(tables.families) + (of_class is None)) * data.n_rows
    flops = logistic_flops(contrasts.n_parameters, n_ones, data.n_rows, data.n_labels)
    return ParameterSpace.directed(likelihood, contrasts, flops)


def learn_extended(
    counts: Counts,
    structure: Structure,
    *,
    smoothing: str,
    settings: OptimizerSettings,
    watch: Watch = silent,
) -> Parameters:
    """Return network tables that maximise the penalised conditional likelihood.

    With `early_stop` "cv" in the settings, the number of iterations is tuned instead. Raise BncliError for regions.
    """
    if counts.data.schema.marginalizes:
        # complete rows do not need these
        from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood
        from bncli.engine.parameter_learners.missing_values import report_work

        families = structure.families(counts.data.schema.cardinalities, all_factors=True)
        report_work(IncompleteLikelihood(counts.data, families).work, counts.data.schema, watch)
    space_of = partial(build_space_extended, structure=structure, smoothing=smoothing)
    if settings.early_stop == "cv":
        return optimize_with_early_stopping(counts, space_of, settings, watch)
    return optimize(space_of(counts), settings, watch)


def build_space_extended(counts: Counts, structure: Structure, *, smoothing: str) -> Space:
    """Return the space of log probabilities, for rows with missing values if these are marginalized.

    Raise BncliError for regions.
    """
    if counts.data.schema.marginalizes:
        from bncli.engine.parameter_learners.missing_values import incomplete_space  # complete rows do not need it

        return incomplete_space(counts, structure, smoothing)
    tables = generative_tables(counts, structure, smoothing)
    data = counts.fitted_rows
    likelihood = conditional_likelihood(data, tables.families)
    flops = network_flops(tables.families, data.n_rows, data.n_labels)
    return ParameterSpace(likelihood, Softmax(tables.cells, tables.families), flops)


@dataclass(frozen=True)
class TuningFold:
    """A fold of early stopping: the parameter space of its training rows, and the likelihood of its held-out rows."""

    space: Space
    held_out: Likelihood

    def follow(self, settings: OptimizerSettings) -> tuple[list[float], bool]:
        """Return the held-out log-likelihood at the start and after each iteration, and whether the fit ended.

        A fit has ended if it stopped for a reason other than the maximum number of iterations.
        """
        path: list[float] = []

        def score(step: Step, p: Array) -> None:
            path.append(self.held_out.value_and_gradient(self.space.coordinates.tables(p))[0])

        optimum = find_optimum(self.space, settings, score)
        return path, optimum.stopped_by is not StoppedBy.MAX_ITERATIONS


def optimize_with_early_stopping(
    counts: Counts, space_of: Callable[[Counts], Space], settings: OptimizerSettings, watch: Watch
) -> Parameters:
    """Optimize for the number of iterations with the highest likelihood of held-out rows; return the parameters.

    With `restarts`, return the parameters of the start with the highest held-out likelihood. If no row can be held out,
    return the result of `optimize`.
    """
    folds, space = tuning_folds(counts, space_of, settings.seed), space_of(counts)
    if not folds:
        return optimize(space, settings, watch)

    def attempt(start: int) -> tuple[float, Parameters]:
        of_start = replace(settings, start=start, restarts=0)
        n, held_out = best_iterations(folds, of_start, watch)
        parameters = optimize(space, replace(of_start, max_iterations=n), watch)
        if parameters.stopped_by is StoppedBy.MAX_ITERATIONS and n < settings.max_iterations:
            parameters = replace(parameters, stopped_by=StoppedBy.CROSS_TUNING)
        return held_out, parameters

    if not settings.restarts:
        return attempt(0)[1]
    return best_start(attempt, settings.restarts, watch, held_out=True)


def tuning_folds(counts: Counts, space_of: Callable[[Counts], Space], seed: int) -> list[TuningFold]:
    """Return the folds of early stopping, or an empty list if no row can be held out."""
    folds, data = [], counts.data
    for others, rows in inner_splits(data.labels, FOLDS, seed, data.split_by):
        space = space_of(Counts(data.take(others), counts.prior))
        folds.append(TuningFold(space, space.on(data.take(rows))))
    return folds


def best_iterations(folds: Sequence[TuningFold], settings: OptimizerSettings, watch: Watch) -> tuple[int, float]:
    """Return the number of iterations with the highest held-out log-likelihood (ties: the lowest), and its value.

    The iterations begin at the start given in the settings; the log-likelihood is the weighted sum over all held-out
    rows, in nats. A fold whose fit has ended keeps its last value.
    """
    cap = min(FIRST, settings.max_iterations)
    while True:
        paths, converged = [], []
        for f, fold in enumerate(folds):
            watch(Progress(f, len(folds), f"up to {cap} iterations, fold {f + 1} of {len(folds)}"))
            path, is_converged = fold.follow(replace(settings, max_iterations=cap))
            paths.append(path)
            converged.append(is_converged)
        longest = max(map(len, paths))
        total = np.sum([[*path, *[path[-1]] * (longest - len(path))] for path in paths], axis=0)
        held_out = float(total.max())
        # the first of those that tie: fewer iterations
        n_iterations = int(np.argmax(total >= held_out - TIE * abs(held_out)))
        # a peak in the first two thirds has been followed for half as long again as it took to rise
        if cap == settings.max_iterations or 3 * n_iterations <= 2 * cap or all(converged):
            return n_iterations, held_out
        cap = min(2 * cap, settings.max_iterations)
