"""`--structure auto`: an ensemble of tables of several kinds, weighted by held-out rows.

    P(y | x) = softmax_y (sum over components m of w_m S_m[x, y])

1. Numeric attributes are cut finely, once (`candidates`).
2. Candidates are tried one after the other, as long as the budget allows (`trials`, `budget`). Their tables are chosen
   again in every fold, and their penalty is chosen by the held-out rows (`held_out_evaluation`). Boosted trees are one
   candidate (`boosted_bag`).
3. The weights w maximise the likelihood of the held-out rows (`pool_weights`). The class frequencies are a candidate
   too.
4. The candidates with a positive weight are fitted to all rows at their penalty. If each row was held out once, their
   tables are chosen again on all rows. Otherwise the tables of the first fold are kept, and the fit starts from their
   optimum there. Boosted trees are not refitted: their bag gets more members (`complete_bag`).

With very many rows, candidates are compared on a sample. Boosted trees, which gain most from more rows, learn from a
larger sample or from all rows that are not held out. If there is time, the most important of the other candidates are
then refitted to the same rows, and the weights are optimised again.

The seed determines the folds and all random draws. The weights minimise the log-loss, or `rmse` if that is the metric.
The metric `error` is only used to choose penalties, because it is too coarse for the many weights of a pool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli import __version__
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import set_directions
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import count_units, inner_splits, stratified_sample
from bncli.engine.ensembles.boosted_bag import BOOSTED, MOST_MEMBERS, BagPlan, bag_size, complete_bag
from bncli.engine.ensembles.boosted_trees import tables_of
from bncli.engine.ensembles.budget import FOLDS, ComputeBudget, Effort, choose_effort, fit_seconds, memory_of
from bncli.engine.ensembles.candidates import (
    BUILDS_ON,
    Candidate,
    CandidateFinder,
    Fit,
    capacity_for,
    fine_dataset,
)
from bncli.engine.ensembles.held_out_evaluation import (
    FREQUENCIES,
    NEGLIGIBLE,
    HeldOutEvaluation,
    Losses,
    PenaltyPath,
    evaluate_frequencies,
    fused_log_probabilities,
    held_out_weights,
    measure_losses,
    parameter_space,
)
from bncli.engine.ensembles.pooling import (
    FittedComponent,
    pool_log_probabilities,
    pool_weights,
    shrink_to_frequencies,
    spread,
)
from bncli.engine.ensembles.trials import PRUNING_SLACK, Fold, Trials
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.model import (
    Component,
    Ensemble,
    HeldOutLoss,
    HeldOutPredictions,
    Model,
    Optimum,
    Parameters,
    Pool,
    StoppedBy,
    Tables,
    TriedCandidate,
)
from bncli.engine.parameters.costs import needed_and_free
from bncli.engine.parameters.effect_coding import EffectCoordinates
from bncli.engine.parameters.few_rows import FewRows, few_rows
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.parameters.penalty_choice import base_log_loss, log_frequencies
from bncli.engine.parameters.weighted_samples import Growth
from bncli.engine.prediction.scoring import log_probabilities_of
from bncli.engine.structures.structure import Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Note, Progress, Run, Stage, Watch

TOLERANCE, MAX_ITERATIONS = 1e-3, 200
"""The tolerance and the maximum number of iterations of the fits to all rows."""
STANDARD_ERRORS = 2.0
"""With units of several rows, an ensemble's gain over the class frequencies must exceed this many standard errors."""
MORE_ROWS = 1.1
"""Candidates are refitted if boosted trees learned from more rows than they did by more than this factor."""
_NOT_EVALUATED = HeldOutEvaluation(FREQUENCIES, 1.0, Losses(math.nan, math.nan, math.nan), np.zeros((0, 0)), (), None)
"""Replaces the evaluation of the class frequencies if no row can be held out."""


@dataclass(frozen=True)
class _Fit:
    fitted: FittedComponent
    candidate: Candidate
    optimum: Optimum
    n_parameters: int


def learn_auto(columns: Columns, recipe: Recipe, reading_rules: ReadingRules, run: Run) -> tuple[Model, Parameters]:
    """Learn the ensemble; return the model, and the parameters with the iterations and evaluations of the final fits.

    Raises BncliError if there are no rows, or if `run.memory` bytes do not suffice for the first candidate.
    """
    budget, watch = ComputeBudget.start(recipe.time_limit, run.clock), run.watch
    watch(Stage("discretize"))
    if columns.origin is not None and columns.origin.file:
        what = "--structure auto uses the cuts of the codes file, which are coarser than its own"
        watch(Note(f"{what}; learning from the table itself may give a better model"))
    data = fine_dataset(columns, reading_rules, run, recipe.group_levels)
    del columns  # the codes are enough from here on
    if data.n_rows == 0:
        raise BncliError(
            "there are no rows to learn from", hint="every row is unlabelled, has weight 0, or was skipped"
        )
    data = set_directions(data, recipe.increasing or (), recipe.decreasing or (), recipe.towards)
    effort, seed = choose_effort(recipe.effort, recipe.time_limit, data), recipe.seed or 0
    needed = memory_of("singles", data, effort)
    if run.memory is not None and needed > run.memory:
        what = f"--structure auto tries models of {len(data.schema.informative):,} attributes on {data.n_rows:,} rows"
        hint = "use --structure nb --param map, or leave columns out with --ignore"
        raise BncliError(f"{what}: {needed_and_free(needed, run.memory)}", hint=hint)
    watch(Stage("candidates"))
    folds = _make_folds(data, effort, seed)
    # With a time limit and no effort, members are added to the bag as long as there is time.
    by_clock = recipe.time_limit is not None and recipe.effort is None
    n_members = MOST_MEMBERS if by_clock else bag_size(effort, data.n_rows)
    bag = BagPlan(n_members, effort.member_rows, effort.trees, seed, budget)
    held_out = predictions = None
    if folds:
        evaluations = Trials(data, folds, recipe.metric or "log-loss", effort, bag, run.memory, watch).run()
        evaluations.append(evaluate_frequencies([(fold.finder.data, fold.held_out) for fold in folds]))
        evaluations, weights = _weigh_candidates(folds, evaluations, recipe.metric or "", budget)
        pooled = _pool_held_out(folds, evaluations, weights, recipe.metric or "")
        if not _beats_frequencies(folds, pooled, evaluations[-1].log_p):
            pooled, weights = evaluations[-1].log_p, np.append(np.zeros(len(weights) - 1), 1.0)
        rows = _held_out_rows(folds)
        losses = measure_losses(pooled, rows.labels, rows.weights)
        counts = [(fold.finder.data.class_counts, fold.held_out.class_counts) for fold in folds]
        held_out = HeldOutLoss(losses.log_loss, base_log_loss(counts), rows.n_rows, rows.n_units)
        if run.keep_predictions:
            predictions = HeldOutPredictions(pooled, rows.labels, rows.weights, rows.units)
    else:
        evaluations, weights = [_NOT_EVALUATED], np.ones(1)
    watch(Stage("parameters"))
    fitted = _fit_components(data, folds, evaluations, weights, watch, bag)
    trials = tuple(
        TriedCandidate(
            evaluation.name, evaluation.penalty, evaluation.losses.log_loss, evaluation.losses.error, float(weight)
        )
        for evaluation, weight in zip(evaluations, weights, strict=True)
        if evaluation.tried
    )
    ensemble = Ensemble(tuple(fit.fitted.component for fit in fitted), trials, Pool.LOGARITHMIC)
    log_p_true = log_probabilities_of(ensemble, data)[data.labels, np.arange(data.n_rows)]
    cll = float(log_p_true.sum() if data.weights is None else log_p_true @ data.weights)
    parameters = Parameters(
        ensemble,
        sum(fit.n_parameters for fit in fitted),
        0.0 - data.total_weight * math.log(data.n_labels),
        cll,
        sum(fit.optimum.iterations for fit in fitted),
        sum(fit.optimum.evaluations for fit in fitted),
        fitted[0].optimum.stopped_by,
        held_out=held_out,
        held_out_predictions=predictions,
        products=sum(fit.optimum.products for fit in fitted),
    )
    uncertainty = None
    if run.intervals:
        watch(Stage("intervals"))
        uncertainty = spread([fit.fitted for fit in fitted], data.schema, seed, run.class_weights)
    model = Model(data.schema, fitted[0].candidate.structure, ensemble, recipe, data.n_rows, __version__)
    return replace(model, held_out=held_out, uncertainty=uncertainty), parameters


def _make_folds(data: Dataset, effort: Effort, seed: int) -> list[Fold]:
    """Return the folds on which candidates are tried, or an empty list if no row can be held out."""
    if data.n_rows < 2:
        return []
    capacity, n_folds = capacity_for(data.n_rows), effort.folds(data.n_rows)
    data = data.take(stratified_sample(data.labels, max(effort.most_rows, effort.member_rows), seed, data.split_by))
    folds = []
    for split in inner_splits(data.labels, FOLDS, seed, data.split_by)[:n_folds]:
        others, held_out = map(data.take, split)
        sample = stratified_sample(others.labels, effort.most_rows - effort.most_rows // FOLDS, seed, others.split_by)
        rows = others if len(sample) == others.n_rows else others.take(sample)
        folds.append(Fold(CandidateFinder(rows, capacity=capacity), others, held_out))
    return folds


class _HeldOutRows(NamedTuple):
    """The held-out rows of all folds, with the number of rows and the number of units.

    `weights` is None if all are 1, and `units` is None if rows do not belong together. `unit_weights` are the weights
    multiplied by n_units / n_rows, so that each unit counts as about one row; None if all are 1.
    """

    labels: Integers
    weights: Array | None
    units: Integers | None
    n_rows: int
    n_units: int
    unit_weights: Array | None


def _held_out_rows(folds: Sequence[Fold]) -> _HeldOutRows:
    parts = [fold.held_out for fold in folds]
    labels, weights = np.concatenate([part.labels for part in parts]), held_out_weights(parts)
    by = [part.split_by for part in parts]
    units = [each.units for each in by if each is not None and each.units is not None]
    n_rows = sum(part.n_rows for part in parts)
    n_units = sum(count_units(part.n_rows, part.split_by) for part in parts)
    unit_weights = weights
    if n_units != n_rows:
        unit_weights = (np.ones(n_rows) if weights is None else weights) * (n_units / n_rows)
    return _HeldOutRows(labels, weights, np.concatenate(units) if units else None, n_rows, n_units, unit_weights)


def _beats_frequencies(folds: Sequence[Fold], pooled: Array, frequencies: Array) -> bool:
    """Return whether a pool (K, rows) predicts held-out units significantly better than the class frequencies.

    The mean gain per unit must exceed STANDARD_ERRORS standard errors, because rows of one unit are similar and a few
    units may look predictable by chance. If every unit is one row, return True: then the weights of the pool decide.
    If there is only one unit, return False.
    """
    rows = _held_out_rows(folds)
    if rows.n_units == rows.n_rows:
        return True
    own = rows.labels, np.arange(rows.n_rows)
    gain = pooled[own] - frequencies[own]
    assert rows.units is not None
    _, unit_of = np.unique(rows.units, return_inverse=True)
    # rows of one unit are summed, and units count as independent
    gains = np.bincount(unit_of, gain if rows.weights is None else gain * rows.weights)
    # one unit shows no spread
    return len(gains) > 1 and bool(gains.mean() > STANDARD_ERRORS * gains.std(ddof=1) / math.sqrt(len(gains)))


def _weigh_candidates(
    folds: Sequence[Fold], evaluations: list[HeldOutEvaluation], metric: str, budget: ComputeBudget
) -> tuple[list[HeldOutEvaluation], Array]:
    """Return the evaluations on which the weights of the candidates are based, and the weights.

    If boosted trees were tried and the other candidates learned from a sample, important candidates are first refitted
    to all rows that are not held out, so that the comparison with the trees is fair. This is done only if there is
    time. A candidate is important if its weight is positive. So is the best candidate apart from the trees, unless its
    loss is much higher than the lowest of all.
    """
    rows, fold = _held_out_rows(folds), folds[0]
    weights = pool_weights([evaluation.log_p for evaluation in evaluations], rows.labels, rows.unit_weights, metric)
    losses = {evaluation.name: evaluation.losses.log_loss for evaluation in evaluations if evaluation.path is not None}
    # with a sample, the other candidates learned from fewer rows than the trees
    saw_less = fold.others.n_rows > MORE_ROWS * fold.finder.data.n_rows
    if saw_less and losses and any(evaluation.members for evaluation in evaluations):
        weighted = zip(evaluations, weights, strict=True)
        to_refit = {evaluation.name for evaluation, weight in weighted if weight > 0} & losses.keys()
        best = min(losses, key=losses.__getitem__)
        if losses[best] <= (1 + PRUNING_SLACK) * min(evaluation.losses.log_loss for evaluation in evaluations):
            to_refit.add(best)
        paths = {one.name: one.path for one in evaluations if one.path is not None and one.name in to_refit}
        seconds = sum(fit_seconds(path.space.likelihood, fold.others.n_rows) for path in paths.values())
        if paths and budget.has_time(0.0, seconds):
            evaluations = [
                _refit_in_fold(fold, evaluation, paths[evaluation.name]) if evaluation.name in paths else evaluation
                for evaluation in evaluations
            ]
            log_p = [evaluation.log_p for evaluation in evaluations]
            weights = pool_weights(log_p, rows.labels, rows.unit_weights, metric)
    return evaluations, shrink_to_frequencies(weights, rows.n_units)


def _pool_held_out(
    folds: Sequence[Fold], evaluations: Sequence[HeldOutEvaluation], weights: Array, metric: str
) -> Array:
    """Pool the predictions ln P(y | x_t), (K, rows), for each fold's held-out rows with weights from other folds.

    With a single fold (many rows, or rows with times), use the `weights` found on the same rows.
    """
    log_p = [evaluation.log_p for evaluation in evaluations]
    if len(folds) == 1:
        return pool_log_probabilities(log_p, weights)
    rows = _held_out_rows(folds)
    fold_of = np.repeat(np.arange(len(folds)), [fold.held_out.n_rows for fold in folds])
    pooled = np.empty_like(log_p[0])
    for fold in range(len(folds)):
        # weights for a fold's rows come from the other folds
        others, own = fold_of != fold, fold_of == fold
        weights_of_others = None if rows.unit_weights is None else rows.unit_weights[others]
        found = pool_weights([each[:, others] for each in log_p], rows.labels[others], weights_of_others, metric)
        found = shrink_to_frequencies(found, int(others.sum()) * rows.n_units / rows.n_rows)
        pooled[:, own] = pool_log_probabilities([each[:, own] for each in log_p], found)
    return pooled


def _refit_in_fold(fold: Fold, evaluation: HeldOutEvaluation, path: PenaltyPath) -> HeldOutEvaluation:
    """Refit a candidate to all training rows of a fold, from the optimum on the sample, and evaluate it again."""
    space = _same_space_on(fold.others, path)
    point = find_optimum_from(space, _final_settings(evaluation.penalty), path.parameters).point
    log_p = fused_log_probabilities(fold.held_out, path.fusion, space.cells(point))
    losses = measure_losses(log_p, fold.held_out.labels, fold.held_out.weights)
    refitted = replace(path, space=space, best=point)
    refitted.searched = space  # overrides the default for few rows, because the optimum was found in this space
    return replace(evaluation, log_p=log_p, losses=losses, path=refitted)


def _same_space_on(data: Dataset, path: PenaltyPath) -> ParameterSpace:
    """Return the parameter space of a path on other rows, with the same effects."""
    coordinates = path.space.coordinates
    effects = coordinates.effects if isinstance(coordinates, EffectCoordinates) else None
    return parameter_space(data, path.candidate, effects)


def _final_settings(penalty: float) -> OptimizerSettings:
    return OptimizerSettings(
        "zero", penalty, 0.0, "lbfgs", TOLERANCE, MAX_ITERATIONS, negligible=NEGLIGIBLE, growth=Growth()
    )


def _fit_components(
    data: Dataset,
    folds: Sequence[Fold],
    evaluations: Sequence[HeldOutEvaluation],
    weights: Array,
    watch: Watch,
    bag: BagPlan,
) -> list[_Fit]:
    """Fit the candidates with a positive weight to all rows; return them by decreasing weight.

    Candidates with equal weights stay in the order in which they were tried.
    """
    builds_on = folds[0].finder.builds_on if folds else dict(BUILDS_ON)
    finder = CandidateFinder(data, builds_on=builds_on, capacity=capacity_for(data.n_rows))
    # If every row was held out, tables are chosen again, so candidates on which others build must be fitted too.
    finds_anew = sum(fold.held_out.n_rows for fold in folds) in (0, data.n_rows)
    weighty = {evaluation.name for evaluation, weight in zip(evaluations, weights, strict=True) if weight > 0}
    needed = set(weighty)
    for name in weighty if finds_anew else ():
        while name in builds_on:
            name = builds_on[name]
            needed.add(name)
    fitted = []
    for n_done, (evaluation, weight) in enumerate(zip(evaluations, weights.tolist(), strict=True)):
        watch(Progress(n_done, len(evaluations), evaluation.name))
        if evaluation.name in needed:
            if evaluation.name == FREQUENCIES:
                component = Component(weight, Tables(log_frequencies(data.class_counts), (), ()), FREQUENCIES)
                candidate = Candidate(FREQUENCIES, Regions((), method="auto"), ())
                optimum = Optimum(np.zeros(0), 0.0, 0.0, 0, 0, StoppedBy.CLOSED_FORM)
                frequencies = FittedComponent(component, class_counts=data.class_counts)
                fitted.append(_Fit(frequencies, candidate, optimum, data.n_labels))
            elif evaluation.members:
                fitted.append(_bag_component(data, evaluation, weight, bag))
            elif finds_anew or evaluation.path is None:
                fitted.append(_component_of_candidate(finder, evaluation, weight))
            else:
                space = _same_space_on(data, evaluation.path)
                optimum = find_optimum_from(space, _final_settings(evaluation.penalty), evaluation.path.parameters)
                tables = Tables.of_cells(space.cells(optimum.point), space.likelihood.families)
                component = Component(weight, tables, evaluation.name)
                found = FittedComponent(component, space, optimum.point, evaluation.penalty)
                n_parameters = space.coordinates.n_parameters
                fitted.append(_Fit(found, evaluation.path.candidate, optimum, n_parameters))
        # Later candidates use this penalty, as in the folds.
        finder.penalties[evaluation.name] = evaluation.penalty
    with_weight = [fit for fit in fitted if fit.fitted.component.weight > 0]
    return sorted(with_weight, key=lambda fit: -fit.fitted.component.weight)


def _bag_component(data: Dataset, evaluation: HeldOutEvaluation, weight: float, bag: BagPlan) -> _Fit:
    members = complete_bag(data, evaluation.members, bag)
    tables = tables_of(members, data.schema)
    sets = sorted({family.attributes for family in tables.families}, key=lambda s: (len(s), s))
    candidate = Candidate(BOOSTED, Regions(tuple(sets), method="auto"), tables.families)
    n_trees = sum(len(member.trees) for member in members)
    stopped_by = StoppedBy.CROSS_TUNING if all(member.ended for member in members) else StoppedBy.MAX_ITERATIONS
    optimum = Optimum(np.zeros(0), 0.0, 0.0, n_trees, n_trees, stopped_by)
    component = FittedComponent(Component(weight, tables, BOOSTED), members=members)
    return _Fit(component, candidate, optimum, tables.n_parameters)


def _component_of_candidate(finder: CandidateFinder, evaluation: HeldOutEvaluation, weight: float) -> _Fit:
    """Choose the candidate's tables on all rows, and fit them from zero."""
    candidate = finder.find(evaluation.name)
    space = parameter_space(finder.data, candidate)
    searched = few_rows(space) or space
    optimum = find_optimum(searched, _final_settings(evaluation.penalty), lambda step, p: None)
    cells = searched.cells(optimum.point)
    finder.fits[evaluation.name] = Fit(space.likelihood, cells)
    tables = Tables.of_cells(cells, space.likelihood.families)
    point = searched.effects(optimum.point) if isinstance(searched, FewRows) else optimum.point
    found = FittedComponent(Component(weight, tables, evaluation.name), space, point, evaluation.penalty)
    return _Fit(found, candidate, optimum, space.coordinates.n_parameters)
