"""Decision rules and calibration maps, learned from predictions for rows that the predicting model has not seen.

Decision rules. For prediction sets a stratified fifth of the rows is held out, and the model is learned only from the
others, as the guarantee of the sets requires. A threshold alone is chosen by cross-validation, and the model is learned
from all rows. If learning itself has held out rows, to choose a penalty or to combine models, the threshold is chosen
by the predictions of these rows: all rows or, if there are many, a fifth or a tenth of them. Otherwise there are five
stratified folds. Rows have the weights of the data, never class weights. The model stores the probabilities of at most
MOST_KEPT held-out rows, a random sample if there are more.

Calibration. The map is fitted to the predictions of all rows, each by a model learned from the four other folds, and is
applied to the model learned from all rows. As that model has seen a quarter more rows, it may be slightly more
confident than the map assumes. Weights of rows and of classes are used.

Rows of one group are on the same side of every split. If the rows have times, the last fifth is held out once, and
there are no folds.

Cost: a threshold takes five more fits, with the settings already chosen, unless learning has held out rows. Calibration
takes five complete fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from bncli.engine.calibration import fit_calibration, refuse_few
from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import encode_attributes, encode_labels
from bncli.engine.data.splits import RowSplit, count_units, inner_splits
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.model import DecisionRule, HeldOutPredictions, HeldOutScores, Model, Parameters, PredictionSets
from bncli.engine.prediction.decision_rules import DecisionOptions, check_options, make_rule, set_thresholds
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError
from bncli.watch import Note, Progress, Stage, Watch

FOLDS = 5
MOST_KEPT = 10_000
_CALIBRATION_DRAW = 5
"""A number appended to the seed, so that the folds differ from the folds for all other choices."""


class _Fitted(Protocol):
    @property
    def model(self) -> Model: ...

    @property
    def parameters(self) -> Parameters: ...


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
    """Learn a model with `fit`, and make the decision rule requested by the options, from held-out rows if needed.

    For prediction sets the model is learned from four fifths of the rows. If only a threshold must be chosen, a model
    per fold is learned with `fit_fold`, unless `fit` returns held-out predictions. The rule is None if no option about
    decisions is given, or if the table has no class. Raises BncliError if too few rows can be held out or no threshold
    meets the criterion, and UsageError for options that do not fit the labels.
    """
    if columns.label is None:
        return fit(columns), None
    labels = columns.label.levels
    check_options(options, labels, columns.class_name)
    stored = None
    if not options.need_held_out_rows:
        fitted = fit(columns)
        return fitted, make_rule(options, labels, columns.class_name, stored)
    if columns.n_rows < FOLDS:
        raise BncliError(f"{columns.n_rows} rows are too few to hold out any", hint=f"at least {FOLDS} rows are needed")
    splits = _splits(columns, (seed, 0))
    if options.sets is not None:
        others, held_out = splits[0]
        # raises an error for too few rows before the model is learned
        unknown = _held_out_scores_of_rows(columns, held_out, np.zeros(len(held_out)), seed, split=True)
        set_thresholds(PredictionSets(options.sets, options.sets_by == "class"), unknown, labels)
        fitted = fit(columns.take(others))
        rows = columns.take(held_out)
        log_p_true = log_p_of_true_labels(predict(fitted.model, rows), rows)
        watch(Note(f"{len(held_out):,} of {columns.n_rows:,} rows are held out for prediction sets"))
        stored = DecisionRule(held_out=_held_out_scores_of_rows(columns, held_out, log_p_true, seed, split=True))
    else:
        fitted = fit(columns)
        if (kept := fitted.parameters.held_out_predictions) is not None:
            log_p_true = kept.log_probabilities[kept.codes, np.arange(len(kept.codes))]
            scores = _held_out_scores(log_p_true, kept.codes, kept.weights, len(labels), seed, split=False)
            return fitted, make_rule(options, labels, columns.class_name, DecisionRule(held_out=scores))
        watch(Stage("decisions"))
        log_p_true = np.empty(columns.n_rows)
        for fold, (others, held_out) in enumerate(splits):
            watch(Progress(fold, len(splits)))
            rows = columns.take(held_out)
            log_p_true[held_out] = log_p_of_true_labels(predict(fit_fold(columns.take(others)).model, rows), rows)
        every = _all_held_out(splits)
        stored = DecisionRule(held_out=_held_out_scores_of_rows(columns, every, log_p_true[every], seed, split=False))
    return fitted, make_rule(options, labels, columns.class_name, stored)


def _splits(columns: Columns, seed: tuple[int, int]) -> list[RowSplit]:
    """Return the splits, each of which holds out about a fifth of the rows; raise BncliError if there are none."""
    assert columns.label is not None
    splits = inner_splits(columns.label.codes, FOLDS, seed, columns.split_by)
    if not splits:
        is_one = count_units(columns.n_rows, columns.split_by) == 1
        what = "all rows belong to one group" if is_one else "no rows are later than the others"
        raise BncliError(
            f"{what}, so none can be held out",
            hint="leave out the options that need held-out rows, such as --calibrate or --sets",
        )
    return splits


def _all_held_out(splits: list[RowSplit]) -> Index:
    """Return the rows that are held out in some split, ascending."""
    return np.sort(np.concatenate([rows for _, rows in splits]))


def log_p_of_true_labels(log_p: Array, columns: Columns) -> Array:
    """Return ln P(y_t | x_t) (N,) from ln P(y | x_t) (K, N)."""
    assert columns.label is not None
    return np.asarray(log_p[columns.label.codes.astype(np.intp), np.arange(columns.n_rows)])


def _held_out_scores_of_rows(
    columns: Columns, rows: Index, log_p_true: Array, seed: int, *, split: bool
) -> HeldOutScores:
    """Return the scores that a model stores for the held-out rows `rows` of a table.

    log_p_true (len(rows),): their ln P(y_t | x_t). split: whether the model was learned without these rows.
    """
    assert columns.label is not None
    weights = None if columns.weights is None else columns.weights[rows]
    n_labels = len(columns.label.levels)
    return _held_out_scores(log_p_true, columns.label.codes[rows], weights, n_labels, seed, split=split)


def _held_out_scores(
    log_p_true: Array, codes: Integers, weights: Array | None, n_labels: int, seed: int, *, split: bool
) -> HeldOutScores:
    """Return the scores that a model stores for held-out rows, from ln P(y_t | x_t), label codes and weights (N,).

    If there are more than MOST_KEPT rows, a random sample of them is stored.
    """
    if len(codes) > MOST_KEPT:
        kept = np.sort(np.random.default_rng((seed, 1)).choice(len(codes), MOST_KEPT, replace=False))
        log_p_true, codes, weights = log_p_true[kept], codes[kept], None if weights is None else weights[kept]
    p = np.exp(log_p_true)
    of_labels = [np.flatnonzero(codes == k) for k in range(n_labels)]
    ascending = [own[np.argsort(p[own], kind="stable")] for own in of_labels]
    return HeldOutScores(
        tuple(tuple(p[own].tolist()) for own in ascending),
        None if weights is None else tuple(tuple(weights[own].tolist()) for own in ascending),
        split,
    )


def calibrate_out_of_fold(
    model: Model, columns: Columns, learn: Callable[[Columns], Model], watch: Watch
) -> tuple[Model, float, list[tuple[Array, Array]], list[RowSplit], HeldOutPredictions]:
    """Calibrate a model by predictions of rows that it was not learned from.

    Returns, in this order:

    - the calibrated model
    - the held-out log-loss per row in nats
    - for each split, the weights of the rows of each class, (K,), among the other rows and among the held-out ones
    - the splits
    - the calibrated held-out predictions

    For the log-loss and these predictions, the map for a fold is fitted to the predictions of the other folds. If there
    is a single split, by time, the map is fitted to the earlier half of the held-out rows and tested on the later half.
    If these rows all have the same time, it is fitted to and tested on the same rows, with a warning. Raises BncliError
    if too few rows can be held out.
    """
    method, labels = model.recipe.calibrate, encode_labels(columns, model.schema)
    if columns.n_rows < FOLDS:
        what = f"--calibrate holds out a fifth of the rows, but there are only {columns.n_rows}"
        raise BncliError(what, hint="leave --calibrate out")
    refuse_few(method, model.schema.labels, labels, None if columns.split_by is None else columns.split_by.units)
    watch(Stage("calibrate"))
    seed = (model.recipe.seed or 0, _CALIBRATION_DRAW)
    splits = _splits(columns, seed)
    log_p = np.empty((len(model.schema.labels), columns.n_rows))
    for fold, (others, rows) in enumerate(splits):
        watch(Progress(fold, len(splits), f"fold {fold + 1} of {len(splits)}"))
        log_p[:, rows] = predict(learn(columns.take(others)), columns.take(rows))
    kept = _all_held_out(splits)
    measured_splits = splits
    if len(splits) == 1:  # to be measured, the map is fitted to the earlier half of these rows, and tested on the later
        of_kept = inner_splits(labels[kept], 2, seed, None if columns.split_by is None else columns.split_by.take(kept))
        measured_splits = [(kept[others], kept[rows]) for others, rows in of_kept]
        if not measured_splits:
            measured_splits = [(kept, kept)]
            warning = "the held-out log-loss is too low: the calibration was fitted to these rows, all of one time"
            watch(Note(f"{warning}; test the model on newer rows (bncli evaluate FILE --model MODEL)", warning=True))
    weights = np.ones(columns.n_rows) if columns.weights is None else columns.weights
    loss, class_weights, maps = 0.0, [], list[Array]()
    for others, rows in measured_splits:
        calibration = fit_calibration(method, log_p[:, others], labels[others], weights[others])
        mapped = calibration.map.apply(log_p[:, rows])
        maps.append(mapped)
        loss -= float(weights[rows] @ mapped[labels[rows], np.arange(len(rows))])
        of_others, own = (np.bincount(labels[i], weights[i], len(log_p)).astype(np.float64) for i in (others, rows))
        class_weights.append((of_others, own))
    kept_weights = None if columns.weights is None else columns.weights[kept]
    calibrated = replace(model, calibration=fit_calibration(method, log_p[:, kept], labels[kept], kept_weights))
    weight = float(weights[_all_held_out(measured_splits)].sum())
    measured = np.concatenate([rows for _, rows in measured_splits])
    predictions = HeldOutPredictions(
        np.concatenate(maps, axis=1),
        labels[measured],
        None if columns.weights is None else columns.weights[measured],
        None if columns.split_by is None or columns.split_by.units is None else columns.split_by.units[measured],
    )
    return calibrated, loss / weight, class_weights, measured_splits, predictions


def predict(model: Model, columns: Columns) -> Array:
    """Return ln P(y | x_t), shape (K, N), for the N rows of a table."""
    scorer = compile_scorer(model)
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    return log_probabilities(scorer, codes, columns.n_rows)
