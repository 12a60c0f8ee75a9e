"""Learn decision rules and calibration maps from rows that the model predicting them has not seen.

Decision rules. For prediction sets a fifth of the rows, stratified, is held out for good, and the model is learned from
the others: the guarantee of the sets needs that. A threshold alone is chosen by cross-validation with five stratified
folds, and the model is learned from all rows. Rows have the weights of the data, never class weights. At most MOST_KEPT
of them are kept with the model, a random sample of more.

Calibration. The map is fitted to the predictions of all rows, each by a model learned from the four other folds, and is
applied to the model learned from all rows. That one has seen a quarter more rows, so it may be slightly bolder than the
map assumes. Weights of rows and of classes count.

Cost: five more fits for a threshold, and five for calibration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from bncli.engine.calibration import fit_calibration, refuse_few
from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_attributes, encode_labels
from bncli.engine.data.splits import stratified_folds
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import DecisionRule, HeldOutScores, Model, PredictionSets
from bncli.engine.prediction.decision_rules import DecisionOptions, check_options, make_rule, set_thresholds
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError
from bncli.watch import Note, Progress, Stage, Watch

FOLDS = 5
MOST_KEPT = 10_000
_CALIBRATION_DRAW = 5
"""Drawn with the seed, so that the folds differ from those of all other choices."""


class _Fitted(Protocol):
    @property
    def model(self) -> Model: ...


T = TypeVar("T", bound=_Fitted)


def learn_with_rule(
    columns: Columns,
    options: DecisionOptions,
    fit: Callable[[Columns], T],
    fit_fold: Callable[[Columns], T],
    *,
    seed: int,
    watch: Watch,
) -> tuple[T, DecisionRule | None]:
    """Learn a model with `fit`, and make the decision rule of the options by models of folds, learned with `fit_fold`.

    For prediction sets the model is learned from four fifths of the rows.
    """
    if columns.label is None:
        return fit(columns), None
    labels = columns.label.levels
    check_options(options, labels, columns.class_name)
    if options.need_held_out_rows and columns.n_rows < FOLDS:
        raise BncliError(f"{columns.n_rows} rows are too few to hold some out", hint=f"it takes {FOLDS} at least")
    stored = None
    fold_of = stratified_folds(columns.label.codes, FOLDS, (seed, 0)) if options.need_held_out_rows else None
    if fold_of is None:
        fitted = fit(columns)
    elif options.sets is not None:
        held_out = np.flatnonzero(fold_of == 0)
        # raises an error for too few rows before the model is learned
        unknown = _held_out_scores(columns, held_out, np.zeros(len(held_out)), seed)
        set_thresholds(PredictionSets(options.sets, options.sets_by == "class"), unknown, labels)
        fitted = fit(columns.take(np.flatnonzero(fold_of != 0)))
        rows = columns.take(held_out)
        log_p_true = log_p_of_true_labels(predict(fitted.model, rows), rows)
        watch(Note(f"{len(held_out):,} of {columns.n_rows:,} rows are held out for prediction sets"))
        stored = DecisionRule(held_out=_held_out_scores(columns, held_out, log_p_true, seed))
    else:
        watch(Stage("decisions"))
        log_p_true = np.empty(columns.n_rows)
        for fold in range(FOLDS):
            watch(Progress(fold, FOLDS))
            rows = columns.take(np.flatnonzero(fold_of == fold))
            model = fit_fold(columns.take(np.flatnonzero(fold_of != fold))).model
            log_p_true[fold_of == fold] = log_p_of_true_labels(predict(model, rows), rows)
        fitted = fit(columns)
        every = np.arange(columns.n_rows)
        stored = DecisionRule(held_out=_held_out_scores(columns, every, log_p_true, seed, split=False))
    return fitted, make_rule(options, labels, columns.class_name, stored)


def log_p_of_true_labels(log_p: Array, columns: Columns) -> Array:
    """Return ln P(y_t | x_t) (N,) from ln P(y | x_t) (K, N)."""
    assert columns.label is not None
    return np.asarray(log_p[columns.label.codes.astype(np.intp), np.arange(columns.n_rows)])


def _held_out_scores(
    columns: Columns, rows: Index, log_p_true: Array, seed: int, *, split: bool = True
) -> HeldOutScores:
    """Return what a model keeps of these rows, whose ln P(y_t | x_t) is `log_p_true`."""
    assert columns.label is not None
    kept = np.arange(len(rows))
    if len(rows) > MOST_KEPT:
        kept = np.sort(np.random.default_rng((seed, 1)).choice(len(rows), MOST_KEPT, replace=False))
    codes, p = columns.label.codes[rows][kept], np.exp(log_p_true[kept])
    weights = None if columns.weights is None else columns.weights[rows][kept]
    of_labels = [np.flatnonzero(codes == k) for k in range(len(columns.label.levels))]
    ascending = [own[np.argsort(p[own], kind="stable")] for own in of_labels]
    return HeldOutScores(
        tuple(tuple(p[own].tolist()) for own in ascending),
        None if weights is None else tuple(tuple(weights[own].tolist()) for own in ascending),
        split,
    )


def calibrate_out_of_fold(
    model: Model, columns: Columns, learn: Callable[[Columns], Model], watch: Watch
) -> tuple[Model, float, list[tuple[Array, Array]]]:
    """Return the model with the calibration map of its recipe, and how well calibrated models predict held-out rows.

    That is their log-loss per row, where the rows of a fold are mapped as the predictions of the other folds say, and
    per fold the weights of the classes (K,) among the other rows and among its own. Raises BncliError if there are too
    few rows.
    """
    method, labels = model.recipe.calibrate, encode_labels(columns, model.schema)
    if columns.n_rows < FOLDS:
        what = f"--calibrate holds out a fifth of the rows, and there are {columns.n_rows}"
        raise BncliError(what, hint="learn without it")
    refuse_few(method, model.schema.labels, labels)
    watch(Stage("calibrate"))
    folds = stratified_folds(labels, FOLDS, (model.recipe.seed or 0, _CALIBRATION_DRAW))
    log_p = np.empty((len(model.schema.labels), columns.n_rows))
    for fold in range(FOLDS):
        watch(Progress(fold, FOLDS, f"fold {fold + 1} of {FOLDS}"))
        held_out = folds == fold
        fold_model = learn(columns.take(np.flatnonzero(~held_out)))
        log_p[:, held_out] = predict(fold_model, columns.take(np.flatnonzero(held_out)))
    weights = np.ones(columns.n_rows) if columns.weights is None else columns.weights
    loss, class_weights = 0.0, []
    for fold in range(FOLDS):
        others, rows = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        calibration = fit_calibration(method, log_p[:, others], labels[others], weights[others])
        mapped = calibration.map.apply(log_p[:, rows])
        loss -= float(weights[rows] @ mapped[labels[rows], np.arange(len(rows))])
        of_others, own = (np.bincount(labels[i], weights[i], len(log_p)).astype(np.float64) for i in (others, rows))
        class_weights.append((of_others, own))
    calibrated = replace(model, calibration=fit_calibration(method, log_p, labels, columns.weights))
    return calibrated, loss / float(weights.sum()), class_weights


def predict(model: Model, columns: Columns) -> Array:
    """Return ln P(y | x_t) of rows, shape (K, N)."""
    scorer = compile_scorer(model)
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    return log_probabilities(scorer, codes, columns.n_rows)
