"""Learning a model together with its rule for decisions: what a rule takes from rows comes from rows held out.

For prediction sets a fifth of the rows, stratified, is held out for good: the model is learnt from the others, so that
what is promised of the sets holds. A threshold alone is chosen by five stratified folds, every row predicted by the
model that has not seen it, and the model is learnt from all rows.

Conventions: rows have the weights of the data there, never those of class weights. At most MOST_KEPT of them are kept
with the model, a random sample of more. Cost: of a threshold five more fits.

Calibrates a model by rows that others like it have not seen: those of each fold, by what the other folds teach.

The map is learnt from the predictions of all rows, each by the model of the four other folds, and goes to the model of
all rows. That one has learnt from a quarter more, so it may be a little bolder or surer than the map supposes.

Conventions: stratified folds, drawn by the seed of the recipe; weights of rows (and of classes) count. Cost: FOLDS
fits.
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
from bncli.engine.prediction.decision_rules import DecisionOptions, bars, check, rule_of
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError
from bncli.watch import Note, Progress, Stage, Watch, silent

FOLDS = 5
MOST_KEPT = 10_000


class _Learnt(Protocol):
    @property
    def model(self) -> Model: ...


T = TypeVar("T", bound=_Learnt)
OUT_OF_FOLD_FOLDS = 5
_DRAW = 5
"""With the seed: other folds than those of any other choice."""


def learn_with_rule(
    columns: Columns, wanted: DecisionOptions, fit: Callable[[Columns, Watch], T], *, seed: int, watch: Watch
) -> tuple[T, DecisionRule | None]:
    """Return what `fit` learns from the rows, or most of them, and the rule that is wanted."""
    if columns.label is None or wanted == DecisionOptions():
        return fit(columns, watch), None
    labels = columns.label.levels
    check(wanted, labels, columns.class_name)
    stored = None
    if wanted.learns and columns.n_rows < FOLDS:
        raise BncliError(f"{columns.n_rows} rows are too few to hold some out", hint=f"it takes {FOLDS} at least")
    if wanted.sets is not None:
        fold_of = stratified_folds(columns.label.codes, FOLDS, (seed, 0))
        held_out = np.flatnonzero(fold_of == 0)
        # whether they are enough is known, and told, before the model is learnt
        bars(
            PredictionSets(wanted.sets, wanted.sets_by == "class"),
            _kept(columns, held_out, np.zeros(len(held_out)), seed),
            labels,
        )
        learnt = fit(columns.take(np.flatnonzero(fold_of != 0)), watch)
        log_true = _log_true(learnt.model, columns.take(held_out))
        watch(Note(f"{len(held_out):,} of {columns.n_rows:,} rows are held out for prediction sets"))
        stored = DecisionRule(held_out=_kept(columns, held_out, log_true, seed))
    elif wanted.learns:
        log_true = _out_of_fold(columns, fit, seed, watch)
        learnt = fit(columns, watch)
        stored = DecisionRule(held_out=_kept(columns, np.arange(columns.n_rows), log_true, seed, split=False))
    else:
        learnt = fit(columns, watch)
    return learnt, rule_of(wanted, labels, columns.class_name, stored)


def _kept(columns: Columns, rows: Index, log_true: Array, seed: int, *, split: bool = True) -> HeldOutScores:
    """Return what a model keeps of these rows."""
    assert columns.label is not None
    chosen = np.arange(len(rows))
    if len(rows) > MOST_KEPT:
        chosen = np.sort(np.random.default_rng((seed, 1)).choice(len(rows), MOST_KEPT, replace=False))
    codes, p = columns.label.codes[rows][chosen], np.exp(log_true[chosen])
    weights = None if columns.weights is None else columns.weights[rows][chosen]
    by_label = [np.flatnonzero(codes == k) for k in range(len(columns.label.levels))]
    ordered = [own[np.argsort(p[own], kind="stable")] for own in by_label]
    return HeldOutScores(
        tuple(tuple(p[own].tolist()) for own in ordered),
        None if weights is None else tuple(tuple(weights[own].tolist()) for own in ordered),
        split,
    )


def _log_true(model: Model, columns: Columns) -> Array:
    """Return ln P(y_t | x_t) of rows (N,)."""
    assert columns.label is not None
    scorer = compile_scorer(model)
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    predictions = log_probabilities(scorer, codes, columns.n_rows)
    found: Array = predictions[columns.label.codes.astype(np.intp), np.arange(columns.n_rows)]
    return found


def _out_of_fold(columns: Columns, fit: Callable[[Columns, Watch], T], seed: int, watch: Watch) -> Array:
    """Return ln P(y_t | x_t) of every row (N,), by the model that has not seen it."""
    assert columns.label is not None
    watch(Stage("decisions"))
    fold_of = stratified_folds(columns.label.codes, FOLDS, (seed, 0))
    found = np.empty(columns.n_rows)
    for fold in range(FOLDS):
        watch(Progress(fold, FOLDS))
        rows = np.flatnonzero(fold_of == fold)
        model = fit(columns.take(np.flatnonzero(fold_of != fold)), silent).model
        found[rows] = _log_true(model, columns.take(rows))
    return found


def calibrated_out_of_fold(
    model: Model, columns: Columns, learn_from: Callable[[Columns], Model], watch: Watch
) -> Model:
    """Return the model with the map that its recipe asks for; BncliError for rows that do not suffice."""
    method, labels = model.recipe.calibrate, encode_labels(columns, model.schema)
    if columns.n_rows < OUT_OF_FOLD_FOLDS:
        what = f"--calibrate holds out a fifth of the rows, and there are {columns.n_rows}"
        raise BncliError(what, hint="learn without it")
    refuse_few(method, model.schema.labels, labels)
    watch(Stage("calibrate"))
    folds = stratified_folds(labels, OUT_OF_FOLD_FOLDS, (model.recipe.seed or 0, _DRAW))
    log_p = np.empty((len(model.schema.labels), columns.n_rows))
    for fold in range(OUT_OF_FOLD_FOLDS):
        watch(Progress(fold, OUT_OF_FOLD_FOLDS, f"fold {fold + 1} of {OUT_OF_FOLD_FOLDS}"))
        held_out = folds == fold
        learnt = learn_from(columns.take(np.flatnonzero(~held_out)))
        log_p[:, held_out] = _predicted(learnt, columns.take(np.flatnonzero(held_out)))
    return replace(model, calibration=fit_calibration(method, log_p, labels, columns.weights))


def _predicted(model: Model, columns: Columns) -> Array:
    scorer = compile_scorer(model)
    encoded = encode_attributes(columns, model.schema, scorer.used)
    return log_probabilities(scorer, encoded.codes, columns.n_rows)
