"""Calibrates a model by rows that others like it have not seen: those of each fold, by what the other folds teach.

The map is learnt from the predictions of all rows, each by the model of the four other folds, and goes to the model of
all rows. That one has learnt from a quarter more, so it may be a little bolder or surer than the map supposes.

Conventions: stratified folds, drawn by the seed of the recipe; weights of rows (and of classes) count. Cost: FOLDS
fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bncli.engine.calibration.fitting import fit_calibration, refuse_few
from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_attributes, label_codes
from bncli.engine.data.folds import stratified_folds
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import BncliError
from bncli.watch import Progress, Stage, Watch

FOLDS = 5
_DRAW = 5
"""With the seed: other folds than those of any other choice."""


def calibrated_out_of_fold(
    model: Model, columns: Columns, learn_from: Callable[[Columns], Model], watch: Watch
) -> Model:
    """The model with the map that its recipe asks for; BncliError for rows that do not suffice."""
    method, labels = model.recipe.calibrate, label_codes(columns, model.schema)
    if columns.n_rows < FOLDS:
        what = f"--calibrate holds out a fifth of the rows, and there are {columns.n_rows}"
        raise BncliError(what, hint="learn without it")
    refuse_few(method, model.schema.labels, labels)
    watch(Stage("calibrate"))
    folds = stratified_folds(labels, FOLDS, (model.recipe.seed or 0, _DRAW))
    log_p = np.empty((len(model.schema.labels), columns.n_rows))
    for fold in range(FOLDS):
        watch(Progress(fold, FOLDS, f"fold {fold + 1} of {FOLDS}"))
        held_out = folds == fold
        learnt = learn_from(columns.take(np.flatnonzero(~held_out)))
        log_p[:, held_out] = _predicted(learnt, columns.take(np.flatnonzero(held_out)))
    return replace(model, calibration=fit_calibration(method, log_p, labels, columns.weights))


def _predicted(model: Model, columns: Columns) -> Array:
    scorer = compile_scorer(model)
    encoded = encode_attributes(columns, model.schema, scorer.used)
    return log_probabilities(scorer, encoded.codes, columns.n_rows)
