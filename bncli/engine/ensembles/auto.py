"""Tables of several kinds, tried on rows held out and pooled in an ensemble: what `--structure auto` learns.

    P(y | x) = softmax_y (sum over components m of w_m S_m[x, y])

1. Attributes are cut finely, once (`grids`). 2. Candidates are tried one after the other: the tables of each are found
in every fold, and their penalty by rows held out (`candidates`, `choice`), as long as the `budget` allows.
3. The weights w maximise what the pool gives to the rows held out; the class frequencies are in
it too (`ensemble`). 4. The candidates that have a weight
are fitted with their penalties on all rows: found again where each row was held out once, else as they were in the
first fold, from the optimum there. Of very many rows some are drawn for the choice; but boosted trees, which gain most
by more rows, learn from all that are not held out, and so does, before 3., what comes close to them.

Conventions: the folds are drawn by the seed. The weights minimise the log-loss unless the metric is `rmse`, then they
minimise that; by `error` only the penalties are chosen, for the weights of a pool are too many for so rough a measure.

Weights of a logarithmic pool of models, from the probabilities that they gave to the classes of rows held out.

    maximise  sum over rows t of r_t ln P_w(y_t | x_t)  -  s / 2 * sum over models m of (w_m - v_m)^2,    w >= 0
    P_w(y | x)  proportional to  exp(sum over models m of w_m ln P_m(y | x))

by L-BFGS-B: a logistic regression on the models' log-probabilities, concave in w (by squared errors it is not). Its
weights need not sum to 1: models that are too timid together are made bolder, and too bold ones milder. The centre v
are the weights of the linear pool,

    maximise  sum over rows t of r_t ln sum over models m of v_m P_m(y_t | x_t),    v on the simplex

by L-BFGS-B from equal weights, the constraint sum over m of v_m = 1 met by its multiplier, which is the sum of r. (EM,
where v_m becomes the mean over rows of model m's share, has not come to its end after 2,000 steps, and they took a
twentieth of the time of a fit of few rows.) Models of little weight are then dropped, and the weights of the others
found again: stacking in the manner of Breiman (1996, Machine Learning 24); the pools are those of Genest & Zidek (1986,
Statistical Science 1).

The pull s is STRENGTH, where MANY rows are held out STRENGTH_OF_MANY. Where they tell much it changes little; on tables
without noise the few that are in doubt, which told trees when to stop, would make the pool too bold. (Measured,
log-loss in units of that with STRENGTH: 0.97 and 0.67 on two folds of shuttle, 0.98 on a simulated tree, 0.998 to 1.000
on six tables with noise.)

Of a handful of rows the weights are what these rows happen to like. So of n rows the class frequencies get the share

    1 / (1 + (n / HANDFUL)^2)

of all weights beside their own, and the others what is left; a share below LEAST is none. Chosen on draws of 25 and 70
rows from 14 tables, for which it lowers the log-loss by 2 % and raises it by 0.3 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from bncli import __version__
from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.monotone_directions import set_directions
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.ensembles import grids
from bncli.engine.ensembles.boosted_candidate import MOST_MEMBERS, NAME, Bag, bagged, n_members
from bncli.engine.ensembles.boosted_trees import Boosted, tables_of
from bncli.engine.ensembles.budget import FOLDS, ComputeBudget, Effort, effort_of, fit_seconds, memory_of
from bncli.engine.ensembles.candidate_selection import (
    FREQUENCIES,
    HeldOutEvaluation,
    Losses,
    PenaltyPath,
    fused_log_probabilities,
    held_out_weights,
    judge_frequencies,
    losses_of,
    settings_of,
    space_of,
)
from bncli.engine.ensembles.candidate_selection import PRUNING_SLACK as SLACK
from bncli.engine.ensembles.candidate_trials import Fold, TrialPlan, Trials
from bncli.engine.ensembles.candidates import BELOW, Candidate, Fit, Rows, candidate, capacity
from bncli.engine.kernels.arrays import Array, Integers, log_softmax
from bncli.engine.model import (
    Component,
    Ensemble,
    HeldOutLoss,
    Model,
    Optimum,
    Parameters,
    Pool,
    StoppedBy,
    Tables,
    TriedCandidate,
)
from bncli.engine.parameters.effect_coding import Effects
from bncli.engine.parameters.few_rows import few_rows
from bncli.engine.parameters.memory_estimate import needed_and_free
from bncli.engine.parameters.nested_samples import Growth
from bncli.engine.parameters.optimization import OptimizerSettings, ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.parameters.penalty_cv import base_log_loss, log_frequencies
from bncli.engine.prediction.scoring import log_probabilities_of
from bncli.engine.structures.structure import Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Note, Progress, Run, Stage, Watch

ENSEMBLE_TOLERANCE = 1e-7
"""Of the weights of the linear pool: of the slope in each, in nats a row."""
NOTHING = 1e-300
"""The least that a mixture says in the search for its weights: a logarithm of 0 would end it."""
STRENGTH, STRENGTH_OF_MANY = 1.0, 10.0
"""Of the pull towards the weights of the linear pool, nats; the latter where MANY rows are held out."""
HANDFUL = 20.0
"""Rows of which the class frequencies get half of the weight."""
LEAST, LEAST_OF_MANY, MOST = 0.01, 0.05, 1e3
"""A smaller weight is none: what has one is fitted again, on MANY rows at a cost. There is no larger one."""
MANY = 1_000
TOLERANCE, MAX_ITERATIONS = 1e-3, 200
"""Of the fits on all rows."""
MORE = 1.1
"""Times the rows of candidates that boosted trees have learnt from, from which on others are fitted to as many."""
_UNTRIED = HeldOutEvaluation(FREQUENCIES, 1.0, Losses(math.nan, math.nan, math.nan), np.zeros((0, 0)), (), None)
"""Where there is nothing to hold out."""


class _HeldOutRows(NamedTuple):
    """Labels and weights (None: 1 each) of all rows held out."""

    labels: Integers
    weights: Array | None

    @classmethod
    def of(cls, folds: Sequence[Fold]) -> _HeldOutRows:
        held_out = [fold.held_out for fold in folds]
        return cls(np.concatenate([rows.labels for rows in held_out]), held_out_weights(held_out))


@dataclass(frozen=True)
class _Fitted:
    """A component, what it was found to be, and how its tables were reached."""

    component: Component
    candidate: Candidate
    optimum: Optimum
    n_parameters: int


def pool_weights(
    logs: Sequence[Array] | Array, labels: Integers, weights: Array | None = None, metric: str = ""
) -> Array:
    """Return w (M,) of ln P_m(y | x_t), M arrays (K, rows).

    Labels (rows,); `weights` (rows,) of the rows, None: 1 each.

    By the metric `rmse`, sum over rows of r_t (1 - P_w(y_t | x_t))^2 is minimised in place of the log-loss.
    """
    of_models = np.asarray(logs)
    own = of_models[:, labels, np.arange(len(labels))]
    of_rows = np.ones(len(labels)) if weights is None else weights
    kept, least = np.arange(len(own)), LEAST_OF_MANY if len(labels) >= MANY else LEAST
    while True:
        centre = mixture_weights(own[kept], weights)
        found = _optimum(of_models[kept], labels, of_rows, centre, metric)
        heavy = found >= least
        if heavy.all() or not heavy.any():
            break
        kept = kept[heavy]
    w = np.zeros(len(own))
    # where nothing that any model says helps, the likeliest is kept: there has to be one
    w[kept] = found if heavy.all() else np.where(centre == centre.max(), least, 0.0)
    return w


def _optimum(logs: Array, labels: Integers, of_rows: Array, centre: Array, metric: str) -> Array:
    rows = np.arange(len(labels))
    own = logs[:, labels, rows]
    strength = STRENGTH_OF_MANY if len(labels) >= MANY else STRENGTH

    def objective(w: Array) -> tuple[float, Array]:
        pooled = pool_logs(logs, w)
        # d ln P_w(y_t | x_t) / d w_m
        slopes = own - np.einsum("kt,mkt->mt", np.exp(pooled), logs)
        said = pooled[labels, rows]
        pull = w - centre
        if metric == "rmse":
            error = -np.expm1(said)
            value, gradient = float(of_rows @ error**2), slopes @ (-2.0 * of_rows * error * np.exp(said))
        else:
            value, gradient = -float(of_rows @ said), -(slopes @ of_rows)
        return value + 0.5 * strength * float(pull @ pull), gradient + strength * pull

    found = minimize(objective, centre, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)] * len(centre))
    return np.asarray(found.x)


def shrink_to_last(w: Array, n_rows: float) -> Array:
    """Towards the last of the models, the class frequencies."""
    share = 1.0 / (1.0 + (n_rows / HANDFUL) ** 2)
    if share < LEAST:
        return w
    return np.append((1 - share) * w[:-1], (1 - share) * w[-1] + share)


def pool_logs(logs: Sequence[Array] | Array, w: Array) -> Array:
    """Return ln P_w(y | x_t) (K, rows) from ln P_m(y | x_t), M arrays (K, rows)."""
    return log_softmax(np.tensordot(w, np.asarray(logs), axes=1), axis=0)


def mixture_weights(log_probabilities: Array, weights: Array | None = None) -> Array:
    """Return v (M,) of ln P_m(y_t | x_t), shape (M, rows); `weights` (rows,) of the rows, None: 1 each."""
    # each row's factor cancels in its shares, and nothing underflows for all components at once
    shares = np.exp(log_probabilities - log_probabilities.max(axis=0))
    of_rows = np.full(shares.shape[1], 1.0 / shares.shape[1]) if weights is None else weights / weights.sum()

    def objective(v: Array) -> tuple[float, Array]:
        mixed = np.maximum(v @ shares, NOTHING)
        # the sum of v is the multiplier of the constraint: at the optimum it is 1
        return float(v.sum() - of_rows @ np.log(mixed)), 1.0 - shares @ (of_rows / mixed)

    start = np.full(len(shares), 1.0 / len(shares))
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"gtol": ENSEMBLE_TOLERANCE, "ftol": ENSEMBLE_TOLERANCE**2},
    )
    return np.asarray(found.x / found.x.sum())


def learn_auto(columns: Columns, recipe: Recipe, reading: ReadingRules, run: Run) -> tuple[Model, Parameters]:
    """Return the ensemble, and how its components were reached."""
    budget, watch = ComputeBudget.of(recipe.time_limit, run.clock), run.watch
    watch(Stage("discretize"))
    if columns.origin is not None and columns.origin.file:
        watch(
            Note("--structure auto takes the cuts of the codes, which are coarser than its own: a table may do better")
        )
    data = grids.fine_dataset(columns, reading, run, recipe.group_levels)
    del columns  # codes are all that is needed from here
    if data.n_rows == 0:
        raise BncliError("there are no rows to learn from", hint="every row is unlabelled, of weight 0, or skipped")
    data = set_directions(data, recipe.increasing or (), recipe.decreasing or (), recipe.towards)
    effort = effort_of(recipe.effort, recipe.time_limit, data)
    # BncliError where not even the first candidate can be tried in `memory` bytes (None: not known).
    memory = run.memory
    needed = memory_of("singles", data, effort)
    if memory is not None and needed > memory:
        what = f"--structure auto tries models of {len(data.schema.informative):,} attributes on {data.n_rows:,} rows"
        hint = "take --structure nb --param map, or leave columns out with --ignore"
        raise BncliError(f"{what}: {needed_and_free(needed, memory)}", hint=hint)
    watch(Stage("candidates"))
    folds = _folds(data, effort, recipe.seed or 0)
    # With a limit and no effort it grows as long as there is time.
    as_long = recipe.time_limit is not None and recipe.effort is None
    wanted = MOST_MEMBERS if as_long else n_members(effort, data.n_rows)
    bag = Bag(wanted, effort.member_rows, effort.trees, recipe.seed or 0, budget)
    judged = Trials(data, folds, recipe, TrialPlan(effort, budget, bag, run.memory), watch).run() if folds else []
    judged.append(judge_frequencies([(fold.rows.data, fold.held_out) for fold in folds]) if folds else _UNTRIED)
    judged, weights = _weighted(folds, judged, recipe.metric or "", budget)
    watch(Stage("parameters"))
    fitted = _fit_components(data, folds, judged, weights, watch, bag)
    heaviest = fitted[0]
    trials = tuple(
        TriedCandidate(one.name, one.penalty, one.losses.log_loss, one.losses.error, float(weight))
        for one, weight in zip(judged, weights, strict=True)
        if one.tried
    )
    ensemble = Ensemble(tuple(one.component for one in fitted), trials, Pool.LOGARITHMIC)
    logs = log_probabilities_of(ensemble, data)[data.labels, np.arange(data.n_rows)]
    cll = float(logs.sum() if data.weights is None else logs @ data.weights)
    parameters = Parameters(
        ensemble,
        sum(one.n_parameters for one in fitted),
        0.0 - data.total_weight * math.log(data.n_labels),
        cll,
        sum(one.optimum.iterations for one in fitted),
        sum(one.optimum.evaluations for one in fitted),
        heaviest.optimum.stopped_by,
        products=sum(one.optimum.products for one in fitted),
    )
    model, parameters = (
        Model(data.schema, heaviest.candidate.structure, ensemble, recipe, data.n_rows, __version__),
        parameters,
    )
    return model, replace(parameters, held_out=_held_out(folds, judged, weights) if folds else None)


def _folds(data: Dataset, effort: Effort, seed: int) -> list[Fold]:
    """Return those that are tried; none where no row can be held out."""
    if data.n_rows < 2:
        return []
    size, tried = capacity(data.n_rows), effort.folds(data.n_rows)
    data = data.take(stratified_sample(data.labels, max(effort.most_rows, effort.member_rows), seed))
    fold_of = stratified_folds(data.labels, min(FOLDS, data.n_rows), seed)
    folds = []
    for fold in range(min(tried, int(fold_of.max()) + 1)):
        others, held_out = (data.take(np.flatnonzero(wanted)) for wanted in (fold_of != fold, fold_of == fold))
        some = stratified_sample(others.labels, effort.most_rows - effort.most_rows // FOLDS, seed)
        rows = others if len(some) == others.n_rows else others.take(some)
        folds.append(Fold(Rows(rows, capacity=size), others, held_out))
    return folds


def _weighted(
    folds: Sequence[Fold], judged: list[HeldOutEvaluation], metric: str, budget: ComputeBudget
) -> tuple[list[HeldOutEvaluation], Array]:
    """Return the weights, and the candidates by which they were found.

    Boosted trees have learnt from all rows but those held out. Where other candidates have seen fewer, those that
    matter are fitted to as many first, or trees would get more weight than they deserve.
    """
    if not folds:
        return judged, np.ones(1)
    outside = _HeldOutRows.of(folds)
    weights = pool_weights([one.logs for one in judged], *outside, metric)
    wanted = _close(folds[0], judged, weights)
    if wanted and budget.has_time(0.0, _seconds_of(folds[0], [one for one in judged if one.name in wanted])):
        judged = [_refitted(folds[0], one, one.path) if one.path and one.name in wanted else one for one in judged]
        weights = pool_weights([one.logs for one in judged], *outside, metric)
    return judged, shrink_to_last(weights, len(outside.labels))


def _close(fold: Fold, judged: Sequence[HeldOutEvaluation], weights: Array) -> set[str]:
    """Beside trees of more rows: what has a weight, and the best of the others where it loses little more."""
    losses = {one.name: one.losses.log_loss for one in judged if one.path is not None}
    if fold.others.n_rows <= MORE * fold.rows.data.n_rows or not any(one.members for one in judged) or not losses:
        return set()
    weighty = {one.name for one, weight in zip(judged, weights, strict=True) if weight > 0 and one.name in losses}
    best, least = min(losses, key=losses.__getitem__), min(one.losses.log_loss for one in judged)
    return weighty | ({best} if losses[best] <= (1 + SLACK) * least else set())


def _seconds_of(fold: Fold, judged: Sequence[HeldOutEvaluation]) -> float:
    """Return that their fits to all rows of the fold are expected to take."""
    likelihoods = [one.path.space.likelihood for one in judged if one.path is not None]
    return sum(fit_seconds(likelihood, fold.others.n_rows) for likelihood in likelihoods)


def _refitted(fold: Fold, judged: HeldOutEvaluation, path: PenaltyPath) -> HeldOutEvaluation:
    """On all rows of the fold, from the optimum of those that were drawn."""
    space = _space_like(fold.others, path)
    point = find_optimum_from(space, _settings(judged.penalty), path.parameters).point
    logs = fused_log_probabilities(fold.held_out, path.fusion, space.cells(point))
    losses = losses_of(logs, fold.held_out.labels, fold.held_out.weights)
    found = replace(path, space=space, best=point)
    found.searched = space  # where its optimum lies, however few the rows
    return replace(judged, logs=logs, losses=losses, path=found)


def _space_like(data: Dataset, path: PenaltyPath) -> ParameterSpace:
    """Return the parameters of the path, on other rows."""
    effects = path.space.coordinates.sharing
    return space_of(data, path.candidate, effects if isinstance(effects, Effects) else None)


def _settings(penalty: float) -> OptimizerSettings:
    """Of the fits on all rows."""
    return replace(settings_of(penalty, TOLERANCE, MAX_ITERATIONS), growth=Growth())


def _fit_components(
    data: Dataset,
    folds: Sequence[Fold],
    judged: Sequence[HeldOutEvaluation],
    weights: Array,
    watch: Watch,
    bag: Bag,
) -> list[_Fitted]:
    """Return those with a weight, fitted on all rows, the heaviest first (ties: the one tried first).

    Where every row was held out, their tables are found again; so what others are found on is fitted too.
    """
    rows = Rows(data, below=folds[0].rows.below if folds else dict(BELOW), capacity=capacity(data.n_rows))
    again = len(folds) in (0, FOLDS) or data.n_rows < FOLDS
    wanted = {one.name for one, weight in zip(judged, weights, strict=True) if weight > 0}
    needed = {below for name in wanted for below in _all_below(name, rows.below)} if again else set()
    fitted = []
    for done, (one, weight) in enumerate(zip(judged, weights, strict=True)):
        watch(Progress(done, len(judged), one.name))
        if one.members and one.name in wanted:
            fitted.append(_bagged(data, bagged(data, one.members, bag), float(weight)))
        elif one.name == FREQUENCIES and one.name in wanted:
            fitted.append(_without_tables(data, float(weight)))
        elif one.name in wanted | needed:
            fit = _fit(rows, one, float(weight)) if again or one.path is None else _refit(data, one, one.path, weight)
            fitted.append(fit)
        rows.penalties[one.name] = one.penalty  # as in the folds, what is found later hears of it
    return sorted((fit for fit in fitted if fit.component.weight > 0), key=lambda fit: -fit.component.weight)


def _all_below(name: str, builds_on: Mapping[str, str]) -> Iterator[str]:
    while name in builds_on:
        name = builds_on[name]
        yield name


def _bagged(data: Dataset, members: Sequence[Boosted], weight: float) -> _Fitted:
    """Return the bag as a component: nothing is fitted again."""
    tables = tables_of(members, data.schema)
    sets = sorted({family.attributes for family in tables.families}, key=lambda s: (len(s), s))
    found = Candidate(NAME, Regions(tuple(sets), method="auto"), tables.families)
    trees = sum(len(member.trees) for member in members)
    stopped_by = StoppedBy.CROSS_TUNING if all(member.ended for member in members) else StoppedBy.MAX_ITERATIONS
    optimum = Optimum(np.zeros(0), 0.0, 0.0, trees, trees, stopped_by)
    return _Fitted(Component(weight, tables, NAME), found, optimum, tables.n_parameters)


def _without_tables(data: Dataset, weight: float) -> _Fitted:
    """Return the class frequencies as a component."""
    bias = log_frequencies(data.class_counts)
    found = Candidate(FREQUENCIES, Regions((), method="auto"), ())
    optimum = Optimum(np.zeros(0), 0.0, 0.0, 0, 0, StoppedBy.CLOSED_FORM)
    return _Fitted(Component(weight, Tables(bias, (), ()), FREQUENCIES), found, optimum, len(bias))


def _fit(rows: Rows, judged: HeldOutEvaluation, weight: float) -> _Fitted:
    """Found on these rows and fitted from the beginning."""
    found = candidate(rows, judged.name)
    space = space_of(rows.data, found)
    searched = few_rows(space) or space
    optimum = find_optimum(searched, _settings(judged.penalty), lambda step, p: None)
    cells = searched.cells(optimum.point)
    rows.fits[judged.name] = Fit(space.likelihood, cells)
    return _fitted(judged.name, weight, found, space, optimum, cells)


def _fitted(
    name: str, weight: float, found: Candidate, space: ParameterSpace, optimum: Optimum, cells: Array
) -> _Fitted:
    tables = space.likelihood.tables(cells)
    return _Fitted(Component(float(weight), tables, name), found, optimum, space.coordinates.n_parameters)


def _refit(data: Dataset, judged: HeldOutEvaluation, path: PenaltyPath, weight: float) -> _Fitted:
    """Return what was found in the first fold, from its optimum there."""
    space = _space_like(data, path)
    optimum = find_optimum_from(space, _settings(judged.penalty), path.parameters)
    return _fitted(judged.name, weight, path.candidate, space, optimum, space.cells(optimum.point))


def _held_out(folds: Sequence[Fold], judged: Sequence[HeldOutEvaluation], weights: Array) -> HeldOutLoss:
    """Return the log-loss of the whole ensemble on the rows by which its weights were chosen."""
    outside = _HeldOutRows.of(folds)
    losses = losses_of(pool_logs([one.logs for one in judged], weights), *outside)
    counts = [(fold.rows.data.class_counts, fold.held_out.class_counts) for fold in folds]
    return HeldOutLoss(losses.log_loss, base_log_loss(counts))
