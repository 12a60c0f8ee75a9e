"""The positive label of a model with two labels, made the second one by swapping them.

Thresholds, rates, effects and points of a scorecard refer to the second label.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.engine.calibration import Calibration, Isotonic, Knots, PerClass
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    DecisionRule,
    Ensemble,
    Model,
    Path,
    Predictor,
    Tables,
    Threshold,
)
from bncli.engine.prediction.edits import reverse_edit
from bncli.errors import UsageError

_MOST_LISTED = 8


def check_positive(positive: str, class_name: str, labels: tuple[str, ...]) -> None:
    """Raise UsageError for an unknown label, and if there are not two labels."""
    if positive not in labels:
        listed = ", ".join(map(repr, labels[:_MOST_LISTED])) + (", ..." if len(labels) > _MOST_LISTED else "")
        raise UsageError(f"--positive {positive}: '{class_name}' has no such label", hint=f"its labels are {listed}")
    if len(labels) != 2:
        what = f"--positive needs a class with two labels, but '{class_name}' has {len(labels)}"
        raise UsageError(what, hint="leave --positive out")


def with_positive_label(model: Model, positive: str | None) -> Model:
    """Return the model with `positive` as the second of its two labels; with None, the model as it is.

    P(y | x) of each label and the costs stay the same; a threshold t for the old second label becomes 1 - t for the new
    one. Raises UsageError for an unknown label, and for a model that does not have two labels.
    """
    if positive is None:
        return model
    schema = model.schema
    check_positive(positive, schema.class_name, schema.labels)
    if schema.labels[1] == positive:
        return model
    towards = schema.towards or (schema.labels[1] if schema.directed else None)
    test = model.self_test
    uncertainty = model.uncertainty
    if uncertainty is not None:
        entries = uncertainty.entries
        # one variance per label, or deviations of the second label's scores from the first one's
        reversed_entries = _reverse(entries, axis=0) if uncertainty.method.is_diagonal else -entries
        uncertainty = replace(uncertainty, entries=reversed_entries)
    return replace(
        model,
        schema=replace(
            schema,
            labels=schema.labels[::-1],
            label_frequencies=schema.label_frequencies[::-1],
            towards=None if towards == positive else towards,
        ),
        predictor=_reverse_predictor(model.predictor),
        self_test=None if test is None else test._replace(probabilities=_reverse(test.probabilities, axis=0)),
        class_weights=None if model.class_weights is None else model.class_weights[::-1],
        rule=None if model.rule is None else _reverse_rule(model.rule),
        calibration=None if model.calibration is None else _reverse_calibration(model.calibration),
        edits=tuple(map(reverse_edit, model.edits)),
        uncertainty=uncertainty,
    )


def _reverse(values: Array, axis: int = -1) -> Array:
    return np.ascontiguousarray(np.flip(values, axis=axis))


def _reverse_predictor(predictor: Predictor) -> Predictor:
    if isinstance(predictor, Tables):
        return replace(predictor, bias=_reverse(predictor.bias), weights=tuple(map(_reverse, predictor.weights)))
    if isinstance(predictor, Path):
        logs = tuple(map(_reverse, predictor.logs))
        return replace(predictor, class_logs=_reverse(predictor.class_logs), logs=logs)
    assert isinstance(predictor, Ensemble)
    components = []
    for component in predictor.components:
        tables = component.tables
        reversed_tables = replace(tables, bias=_reverse(tables.bias), weights=tuple(map(_reverse, tables.weights)))
        components.append(component._replace(tables=reversed_tables))
    return replace(predictor, components=tuple(components))


def _reverse_rule(rule: DecisionRule) -> DecisionRule:
    held_out = rule.held_out
    if held_out is not None:
        weights = None if held_out.weights is None else held_out.weights[::-1]
        held_out = replace(held_out, probabilities=held_out.probabilities[::-1], weights=weights)
    threshold = None if rule.threshold is None else Threshold(1 - rule.threshold.value, rule.threshold.chosen)
    costs = None if rule.costs is None else tuple(row[::-1] for row in rule.costs[::-1])
    return replace(rule, costs=costs, threshold=threshold, held_out=held_out)


def _reverse_calibration(calibration: Calibration) -> Calibration:
    fitted = calibration.map
    if isinstance(fitted, PerClass):
        fitted = PerClass(fitted.scales[::-1], fitted.shifts[::-1])
    elif isinstance(fitted, Isotonic):
        (knots,) = fitted.knots  # that of the second label alone; the first one gets the remainder
        at, values = (tuple(1 - number for number in reversed(numbers)) for numbers in knots)
        fitted = Isotonic((Knots(at, values),))
    return calibration._replace(map=fitted, frequencies=calibration.frequencies[::-1])
