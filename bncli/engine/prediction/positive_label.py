"""The event of a model of two labels: the same model with its two labels the other way round.

Whatever is said of the second label (thresholds, rates, effects, points of a scorecard) is then said of the other one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bncli.engine.calibration import Calibration, Isotonic, Knots, PerClass
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import DecisionRule, Ensemble, Model, Path, Predictor, Tables, Threshold
from bncli.errors import UsageError

_MOST_SHOWN = 8


def check_positive(positive: str, class_name: str, labels: tuple[str, ...]) -> None:
    """Raise UsageError for a label that cannot be the event."""
    if positive not in labels:
        shown = ", ".join(map(repr, labels[:_MOST_SHOWN])) + (", ..." if len(labels) > _MOST_SHOWN else "")
        raise UsageError(f"--positive {positive}: '{class_name}' has no such label", hint=f"its labels are {shown}")
    if len(labels) != 2:
        what = f"--positive names the event of a class of two labels, and '{class_name}' has {len(labels)}"
        raise UsageError(what, hint="leave it out")


def with_positive_label(model: Model, positive: str | None) -> Model:
    """Return the model with `positive` as the second of its two labels; None: as it is.

    P(y | x) of each label stays the same, and so do costs; a threshold t of the old second label becomes 1 - t of the
    new one. UsageError for a label that the model does not have, and for more than two labels.
    """
    if positive is None:
        return model
    schema = model.schema
    check_positive(positive, schema.class_name, schema.labels)
    if schema.labels[1] == positive:
        return model
    towards = schema.towards or (schema.labels[1] if schema.directed else None)
    test = model.self_test
    return replace(
        model,
        schema=replace(
            schema,
            labels=schema.labels[::-1],
            label_frequencies=schema.label_frequencies[::-1],
            towards=None if towards == positive else towards,
        ),
        predictor=_predictor(model.predictor),
        self_test=None if test is None else test._replace(probabilities=_reversed(test.probabilities, axis=0)),
        class_weights=None if model.class_weights is None else model.class_weights[::-1],
        rule=None if model.rule is None else _rule(model.rule),
        calibration=None if model.calibration is None else _calibration(model.calibration),
    )


def _reversed(values: Array, axis: int = -1) -> Array:
    return np.ascontiguousarray(np.flip(values, axis=axis))


def _predictor(predictor: Predictor) -> Predictor:
    if isinstance(predictor, Tables):
        return _tables(predictor)
    if isinstance(predictor, Path):
        logs = tuple(map(_reversed, predictor.logs))
        return replace(predictor, class_logs=_reversed(predictor.class_logs), logs=logs)
    assert isinstance(predictor, Ensemble)
    components = tuple(one._replace(tables=_tables(one.tables)) for one in predictor.components)
    return replace(predictor, components=components)


def _tables(tables: Tables) -> Tables:
    return replace(tables, bias=_reversed(tables.bias), weights=tuple(map(_reversed, tables.weights)))


def _rule(rule: DecisionRule) -> DecisionRule:
    held_out = rule.held_out
    if held_out is not None:
        weights = None if held_out.weights is None else held_out.weights[::-1]
        held_out = replace(held_out, probabilities=held_out.probabilities[::-1], weights=weights)
    threshold = None if rule.threshold is None else Threshold(1 - rule.threshold.value, rule.threshold.chosen)
    costs = None if rule.costs is None else tuple(row[::-1] for row in rule.costs[::-1])
    return replace(rule, costs=costs, threshold=threshold, held_out=held_out)


def _calibration(found: Calibration) -> Calibration:
    how = found.map
    if isinstance(how, PerClass):
        how = PerClass(how.scales[::-1], how.shifts[::-1])
    elif isinstance(how, Isotonic):  # of two labels the map of the second alone; that of the first is what is left
        (knots,) = how.knots
        at, values = (tuple(1 - value for value in reversed(one)) for one in knots)
        how = Isotonic((Knots(at, values),))
    return found._replace(map=how, frequencies=found.frequencies[::-1])
