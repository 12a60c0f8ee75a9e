"""Another prior: what a model says where its classes are as frequent as somebody states, without learning again.

    P'(y | x) = P(y | x) pi'(y) / pi(y), over its sum over the classes

pi is the prior that the model was learnt under: the class frequencies of its rows, class weights heeded; of a model
calibrated by a map a class, those of the calibration rows, whose frequencies such a map makes its probabilities have
(a temperature cannot move them). This is Bayes' rule where P(x | y) stays what it was (Saerens, Latinne & Decaestecker
2002, Neural Computation 14), for every kind of model; the logarithm ln pi'(y) - ln pi(y) is one number per class. Cost:
an addition and a sum a row and class.
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
"""The prior of the data: class weights undone."""
_SUM_TOLERANCE = 1e-6


def prior_shift(model: Model, prior: Mapping[str, float] | str) -> Array:
    """Return what is added to ln P(y | x) before it is normalised again, (K,): `training`, or a probability a label.

    UsageError for what is no distribution over the labels, ModelError where the model does not know its own prior.
    """
    if isinstance(prior, str):
        if prior != TRAINING:
            raise UsageError(f"{prior!r} is no prior", hint=f"say {TRAINING}, or a probability for every label")
        undone = np.zeros(len(model.schema.labels)) if model.class_weights is None else -np.log(model.class_weights)
        return np.asarray(undone + _back_to_training(model))
    labels = model.schema.labels
    for label, share in prior.items():
        if label not in labels:
            error = unknown_label_error(label, labels, "--prior", model.schema.class_name)
            raise UsageError(error.what, hint=error.hint)
        if not 0 < share < math.inf:
            what = f"--prior gives {label!r} the probability {share:g}"
            raise UsageError(what, hint="every label needs one above 0: a class of 0 could never be predicted")
    for label in labels:
        if label not in prior:
            raise UsageError(f"--prior has no probability for the label {label!r}", hint="every label needs one")
    total = math.fsum(prior.values())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise UsageError(f"the probabilities of --prior sum to {total:g}", hint="they should sum to 1")
    wanted = np.array([prior[label] for label in labels]) / total
    own = _known_frequencies(model.schema.label_frequencies)
    return np.asarray(np.log(wanted) - np.log(own / own.sum()) + _back_to_training(model))


def _back_to_training(model: Model) -> Array | float:
    """From the class frequencies of the calibration rows to those of training, ln of their ratio."""
    if model.calibration is None or not model.calibration.frequencies:
        return 0.0
    own, calibrated = _known_frequencies(model.schema.label_frequencies), np.array(model.calibration.frequencies)
    return np.asarray(np.log(own / own.sum()) - np.log(calibrated / calibrated.sum()))


def _known_frequencies(frequencies: tuple[float, ...]) -> Array:
    """As an array; ModelError where nobody counted them, or a label had no rows."""
    if not frequencies or min(frequencies) <= 0:
        what = "the model does not say how frequent its classes were, so its prior cannot be exchanged"
        raise ModelError(what, hint="fit it again: models keep that since format 7")
    return np.array(frequencies)


def shifted(log_probabilities: Array, shift: Array | None) -> Array:
    """Return ln P'(y | x_t), shape (K, N), from ln P(y | x_t); None: as they are."""
    if shift is None:
        return log_probabilities
    return log_softmax(log_probabilities + shift[:, np.newaxis], axis=0)
