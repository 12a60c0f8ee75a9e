"""Another class prior: predictions for a population with other class frequencies, without learning again.

    P'(y | x) = P(y | x) pi'(y) / pi(y), normalised over the classes

pi is the prior under which the model was learned: the class frequencies of its rows, with class weights. For a model
calibrated by a map per class these are the frequencies of the calibration rows, to which such a map adapts (a
temperature does not). This is Bayes' rule if P(x | y) stays the same (Saerens, Latinne & Decaestecker
2002, Neural Computation 14), for every kind of model. ln pi'(y) - ln pi(y) is one number per class. Cost: an addition
and a sum per row and class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from bncli.engine.data.class_weights import unknown_label_error
from bncli.engine.kernels.arrays import Array, log_softmax
from bncli.engine.model import Model
from bncli.errors import ModelError, UsageError

TRAINING = "training"
"""The prior of the training rows, without class weights."""
_SUM_TOLERANCE = 1e-6


def prior_shift(model: Model, prior: Mapping[str, float] | str) -> Array:
    """Return ln pi'(y) - ln pi(y), (K,), for the prior `training` or a probability for every label.

    Raises UsageError if `prior` is not a distribution over the labels, and ModelError if the model does not store its
    class frequencies.
    """
    labels = model.schema.labels
    if isinstance(prior, str):
        if prior != TRAINING:
            raise UsageError(f"{prior!r} is not a prior", hint=f"give {TRAINING}, or a probability for every label")
        # ln pi_training - ln pi: class weights multiplied the frequencies, so their logarithms are subtracted
        undone = np.zeros(len(labels)) if model.class_weights is None else -np.log(model.class_weights)
        return np.asarray(undone + _shift_to_training(model))
    for label, share in prior.items():
        if label not in labels:
            error = unknown_label_error(label, labels, "--prior", model.schema.class_name)
            raise UsageError(error.what, hint=error.hint)
        if not 0 < share < math.inf:
            what = f"--prior gives {label!r} the probability {share:g}"
            raise UsageError(what, hint="every label needs a probability above 0")
    for label in labels:
        if label not in prior:
            what = f"--prior has no probability for the label {label!r}"
            raise UsageError(what, hint="give a probability for every label")
    total = math.fsum(prior.values())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise UsageError(f"the probabilities of --prior sum to {total:g}", hint="they must sum to 1")
    other = np.array([prior[label] for label in labels]) / total
    own = _class_frequencies(model)
    return np.asarray(np.log(other) - np.log(own / own.sum()) + _shift_to_training(model))


def _shift_to_training(model: Model) -> Array | float:
    """Return ln pi_training(y) - ln pi_calibration(y), (K,), or 0 if the model stores no calibration frequencies."""
    if model.calibration is None or not model.calibration.frequencies:
        return 0.0
    own, calibrated = _class_frequencies(model), np.array(model.calibration.frequencies)
    return np.asarray(np.log(own / own.sum()) - np.log(calibrated / calibrated.sum()))


def _class_frequencies(model: Model) -> Array:
    """Return the class frequencies of training; raise ModelError if they are not known, or one of them is 0."""
    frequencies = model.schema.label_frequencies
    if not frequencies or min(frequencies) <= 0:
        what = "the model does not record its class frequencies, so its prior cannot be replaced"
        raise ModelError(what, hint="fit the model again: files of format 7 and later contain the frequencies")
    return np.array(frequencies)


def shift_log_probabilities(log_probabilities: Array, shift: Array | None) -> Array:
    """Return ln P'(y | x_t), shape (K, N), from ln P(y | x_t); a shift of None leaves them as they are."""
    if shift is None:
        return log_probabilities
    return log_softmax(log_probabilities + shift[:, np.newaxis], axis=0)
