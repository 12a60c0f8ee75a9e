"""Changes to a learned model: one effect edited by hand, or the two labels swapped.

An edit changes one effect by adding to one table, and records what was replaced.

An effect g_T of a set of attributes T is the purified term of the score over T (`prediction.purification`). It is a
linear function of the tables W_f of the families f that contain T:

    g_T = sum over f of R_f contrasts(W_f),    R_f = product over the axes i of f of   I - 1 q_i   if i is in T
                                                                                      q_i         otherwise

with the training frequencies q_i. An edit adds D[x_T] to one table, the host: the table over the fewest attributes
among those that contain T in the effect's binning, or a new table if there is none. Rows in cells with D = 0 keep their
scores. The effect becomes g_T + P D, where P = product over i in T of (I - 1 q_i), since an effect has mean 0 along
each axis; the remainder of D goes to the effects of subsets of T and to the constant.

- set: D makes the effect of each given cell equal to the given value, if a mean of 0 along each axis permits it.
- flatten: the effect becomes 0.
- smooth: each interval gets the mean of itself and its neighbours, weighted by frequencies, with neighbours at half
  weight. The curve is then shifted so that its mean stays the same.
- monotone: the isotonic regression of the curve, weighted by frequencies.

Values are log-odds of a label against the geometric mean of the others, as `inspect --effects` shows them. With more
than two labels, a change for one label changes the scores of all others equally.

Thresholds, rates, effects and points of a scorecard refer to the second of two labels, the positive one. If another
label is to be positive, the two are swapped throughout the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bncli.engine.calibration import Isotonic, Knots, PerClass, Temperature
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    Ensemble,
    Model,
    Path,
    Pool,
    Predictor,
    Tables,
    Threshold,
)
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.purification import common_refinement, contrasts
from bncli.engine.structures.regrouping import regroup_attribute, relative_frequencies
from bncli.engine.structures.structure import Family, Grouping
from bncli.errors import ModelError, UsageError

_MOST_LISTED = 12
ROUNDING = 1e-9
"""The relative difference up to which an effect counts as equal to the value that was given for it."""
_MOST_LABELS_LISTED = 8


@dataclass(frozen=True)
class TablePart:
    """The part of an effect in one table: R_f applied to a parameter array of the predictor, times `weight`.

    array: the index of the parameter array in `parameter_arrays`. maps[i]: the factor of R_f for axis i of the family,
    (values of the effect on this axis, codes), or (1, codes) if the effect lacks the attribute.
    """

    array: int
    weight: float
    family: Family
    maps: tuple[Array, ...]


@dataclass(frozen=True)
class EditableEffect:
    """An effect as a linear function of the tables.

    attributes: their indices, ascending. axis_attributes: the attribute on each axis, as the effect bins it.
    frequencies: for each axis, the relative training frequencies of its values. host: the table to which edits are
    added. temperature: the temperature by which displayed effects are divided, 1 if there is none.
    """

    attributes: tuple[int, ...]
    axis_attributes: tuple[Attribute, ...]
    frequencies: tuple[Array, ...]
    parts: tuple[TablePart, ...]
    host: TablePart
    n_labels: int
    temperature: float

    @property
    def name(self) -> str:
        return " & ".join(attribute.name for attribute in self.axis_attributes)

    @property
    def cells(self) -> dict[str, tuple[int, ...]]:
        """The indices of the values of each cell, keyed by the name of the cell, such as `red & <=3`."""
        names = [value_names(attribute)[: attribute.cardinality] for attribute in self.axis_attributes]
        return {" & ".join(cell): where for cell, where in zip(product(*names), np.ndindex(*self.shape), strict=True)}

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(attribute.cardinality for attribute in self.axis_attributes)

    def read(self, arrays: Sequence[Array]) -> Array:
        """Compute the effect (n_1, ..., K) from the arrays of a predictor; missing arrays at the end count as 0."""
        total = np.zeros((*self.shape, self.n_labels))
        for part in self.parts:
            if part.array < len(arrays):
                total += part.weight * self.extract(part, contrasts(arrays[part.array]))
        return total / self.temperature

    def extract(self, part: TablePart, table: Array) -> Array:
        """Apply R_f to a table (cells of f, K); the result has the shape of the effect, (n_1, ..., K)."""
        values = table.reshape(*part.family.shape, -1)
        for axis, factor in enumerate(part.maps):
            # the factor replaces the axis: sum over codes u of factor[v, u] values[..., u, ...]
            values = np.moveaxis(np.tensordot(factor, values, axes=(1, axis)), 0, axis)
        axes = [part.family.attributes.index(a) for a in self.attributes]
        # axes that the effect lacks have length 1 now, and vanish in the shape of the effect
        others = [axis for axis in range(len(part.maps)) if axis not in axes]
        return values.transpose(*axes, *others, len(part.maps)).reshape(*self.shape, -1)

    def spread(self, part: TablePart, values: Array) -> Array:
        """Apply the transpose of `extract` to values (n_1, ..., K); the result has shape (cells of f, K)."""
        axes = [part.family.attributes.index(a) for a in self.attributes]
        # axes in the order of the family, with length 1 on those that the effect lacks
        values = values.transpose(*np.argsort(axes), values.ndim - 1)
        kept = sorted(axes)
        whole = values.reshape(*(values.shape[kept.index(i)] if i in kept else 1 for i in range(len(part.maps))), -1)
        for axis, factor in enumerate(part.maps):
            whole = np.moveaxis(np.tensordot(factor.T, whole, axes=(1, axis)), 0, axis)
        return whole.reshape(part.family.n_cells, -1)

    def embed(self, values: Array) -> Array:
        """Return values (n_1, ..., K) as entries of the host's table (cells, K), repeated along its other axes."""
        family = self.host.family
        axes = [family.attributes.index(a) for a in self.attributes]
        values = values.transpose(*np.argsort(axes), values.ndim - 1)
        kept = sorted(axes)
        sizes = [family.shape[i] if i in kept else 1 for i in range(len(family.shape))]
        whole = np.broadcast_to(values.reshape(*sizes, -1), (*family.shape, values.shape[-1]))
        return whole.reshape(family.n_cells, -1)

    def sum_host(self, table: Array) -> Array:
        """Apply the transpose of `embed` to entries (cells, K) of the host's table; return values (n_1, ..., K)."""
        family = self.host.family
        others = tuple(i for i, a in enumerate(family.attributes) if a not in self.attributes)
        values: Array = table.reshape(*family.shape, -1).sum(axis=others)
        order = [a for a in family.attributes if a in self.attributes]
        return values.transpose(*(order.index(a) for a in self.attributes), values.ndim - 1)

    def scores(self, change: Array) -> Array:
        """Return the change of the host's table, (n_1, ..., K), that adds `change` to the displayed contrasts."""
        factor = (self.n_labels - 1) / self.n_labels * self.temperature / self.host.weight
        return factor * change


def editable_effect(model: Model, names: Sequence[str]) -> EditableEffect:
    """Return the effect of the attributes with these names.

    Raises UsageError if an attribute is unknown or named twice, or if no table contains them all. Raises ModelError if
    the model is not a sum of tables, or has a single label.
    """
    schema = model.schema
    known = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    for name in names:
        if name not in known:
            raise UsageError(f"--effect {name}: the model has no such attribute", hint=f"it has {_listed([*known])}")
    if len(set(names)) < len(names):
        raise UsageError(f"--effect {','.join(names)} names an attribute twice")
    if len(schema.labels) < 2:
        raise ModelError("a model with a single label has no effects")
    attributes = tuple(sorted(known[name] for name in names))
    tables = [
        (array, weight, family)
        for array, weight, family in _weighted_families(model)
        if family.by_class and set(attributes) <= set(family.attributes)
    ]
    if not tables:
        what = f"--effect {','.join(names)}: no table of the model contains " + (
            "this attribute" if len(names) == 1 else "these attributes together"
        )
        raise UsageError(what, hint="to list the effects, type bncli inspect MODEL --effects")
    groupings = tuple(
        common_refinement([dict(family.binned_attributes)[a] for *_, family in tables], schema.cardinalities[a])
        for a in attributes
    )
    of_attribute = dict(zip(attributes, groupings, strict=True))
    parts, hosts = list[TablePart](), list[TablePart]()
    for array, weight, family in tables:
        own_groupings = dict(family.binned_attributes)
        maps = tuple(_axis_map(schema, a, own, of_attribute) for a, own in own_groupings.items())
        parts.append(TablePart(array, weight, family, maps))
        if all(own_groupings[a] == of_attribute[a] for a in attributes):
            # the table can take the edit as it is
            hosts.append(parts[-1])
    if hosts:
        host = min(hosts, key=lambda part: len(part.family.attributes))
    else:
        # no table has the binning of the effect: an edit adds one
        family = Family.over(attributes, schema.cardinalities, groupings=groupings)
        maps = tuple(_axis_map(schema, a, own, of_attribute) for a, own in family.binned_attributes)
        last = _weighted_families(model)[-1]
        host = TablePart(last[0] + 1, last[1], family, maps)
        parts.append(host)
    axis_attributes = tuple(
        schema.attributes[a] if grouping is None else regroup_attribute(schema.attributes[a], grouping)
        for a, grouping in of_attribute.items()
    )
    frequencies = tuple(relative_frequencies(schema.attributes[a], grouping) for a, grouping in of_attribute.items())
    fitted = None if model.calibration is None else model.calibration.map
    temperature = fitted.temperature if isinstance(fitted, Temperature) else 1.0
    return EditableEffect(attributes, axis_attributes, frequencies, tuple(parts), host, len(schema.labels), temperature)


def _weighted_families(model: Model) -> list[tuple[int, float, Family]]:
    """Return (index of its parameter array, weight of its component, family) for each table.

    Raises ModelError if missing values are marginalized, or if the probabilities of several models are averaged.
    """
    predictor = model.predictor
    if model.schema.marginalizes:
        what = "this model marginalizes missing values, so its tables are probabilities, not effects"
        raise ModelError(what, hint="to edit effects, fit with --missing-policy level")
    if isinstance(predictor, Path) or (isinstance(predictor, Ensemble) and predictor.pool is Pool.LINEAR):
        what = "this model averages the probabilities of several models, so its tables are not effects"
        raise ModelError(what, hint="fit a model with --structure nb, tan or interactions")
    if isinstance(predictor, Tables):
        return [(i, 1.0, family) for i, family in enumerate(predictor.families, 1)]
    families = [(c.weight, family) for c in predictor.components for family in c.tables.families]
    return [(i, weight, family) for i, (weight, family) in enumerate(families, 1)]


def _axis_map(schema: Schema, a: int, own: Grouping | None, groupings: Mapping[int, Grouping | None]) -> Array:
    """Return the factor of R_f for attribute `a`, which the table bins as `own` and the effect as groupings[a].

    Its shape is (values of the effect, codes of the table), or (1, codes) for an attribute that the effect lacks.
    """
    frequencies = relative_frequencies(schema.attributes[a], own)
    if a not in groupings:
        return frequencies[np.newaxis]
    n_codes = schema.cardinalities[a]
    codes = np.arange(n_codes) if own is None else np.array(own)
    values = np.arange(n_codes) if groupings[a] is None else np.array(groupings[a])
    chosen = np.zeros((int(values.max()) + 1, len(frequencies)))
    # The effect's binning refines the table's, so each of its values lies in one code of the table. The result is
    # I - 1 q with one row per value of the effect.
    chosen[values, codes] = 1.0
    return np.asarray(chosen - frequencies)


def parameter_arrays(predictor: Predictor) -> list[Array]:
    """Return the parameter arrays: the bias, (K,) or (components, K) for an ensemble, then all tables (cells, K).

    The tables of an ensemble are listed component by component.
    """
    if isinstance(predictor, Tables):
        return [predictor.bias, *predictor.weights]
    assert isinstance(predictor, Ensemble)
    biases = np.stack([component.tables.bias for component in predictor.components])
    return [biases, *(table for component in predictor.components for table in component.tables.weights)]


def with_arrays(predictor: Predictor, arrays: Sequence[Array]) -> Predictor:
    """Return a copy of the predictor with these arrays, given in the order of `parameter_arrays`."""
    bias, *tables = arrays
    if isinstance(predictor, Tables):
        return replace(predictor, bias=bias, weights=tuple(tables))
    assert isinstance(predictor, Ensemble)
    components, start = [], 0
    for own_bias, component in zip(bias, predictor.components, strict=True):
        stop = start + len(component.tables.families)
        own = replace(component.tables, bias=own_bias.copy(), weights=tuple(tables[start:stop]))
        components.append(component._replace(tables=own))
        start = stop
    return replace(predictor, components=tuple(components))


def with_added_family(predictor: Predictor, family: Family) -> Predictor:
    """Return the predictor with a table of zeros appended; an ensemble gets it in its last component."""
    if isinstance(predictor, Tables):
        table = np.zeros((family.n_cells, len(predictor.bias)))
        return replace(predictor, families=(*predictor.families, family), weights=(*predictor.weights, table))
    assert isinstance(predictor, Ensemble)
    *others, last = predictor.components
    tables = with_added_family(last.tables, family)
    assert isinstance(tables, Tables)
    return replace(predictor, components=(*others, last._replace(tables=tables)))


def _without_last_family(predictor: Predictor) -> Predictor:
    if isinstance(predictor, Tables):
        return replace(predictor, families=predictor.families[:-1], weights=predictor.weights[:-1])
    assert isinstance(predictor, Ensemble)
    *others, last = predictor.components
    tables = _without_last_family(last.tables)
    assert isinstance(tables, Tables)
    return replace(predictor, components=(*others, last._replace(tables=tables)))


def change_by_set(
    effect: EditableEffect, now: Array, typed: Sequence[str], label: int
) -> tuple[Array, dict[str, float]]:
    """Return the change D (n_1, ..., K) for `VALUE=LOG_ODDS` strings, and a map from cell names to the log-odds.

    now (n_1, ..., K): the effect before the change. label: the index of the label to which the log-odds refer. If the
    log-odds are incompatible with a mean of 0 along each axis, the new effect has them up to a constant, or for several
    attributes up to terms of fewer attributes.

    Raises UsageError for a value that the effect does not have, a value given twice, and log-odds that are missing or
    not finite.
    """
    cells = effect.cells
    by_comma = {name.replace(" & ", ","): name for name in cells}
    targets: dict[str, float] = {}
    for text in typed:
        value, equals, number = text.rpartition("=")
        name = value if value in cells else by_comma.get(value, "")
        hint = f"write VALUE=LOG_ODDS, where VALUE is one of {_listed([*cells])}"
        if not equals:
            raise UsageError(f"--set {text}: the log-odds are missing", hint=hint)
        if not name:
            raise UsageError(f"--set {text}: {effect.name} has no value '{value}'", hint=hint)
        try:
            log_odds = float(number)
        except ValueError:
            log_odds = math.nan
        if not math.isfinite(log_odds):
            raise UsageError(f"--set {text}: '{number}' is not a finite number", hint="write VALUE=LOG_ODDS")
        if name in targets:
            raise UsageError(f"--set names the value '{name}' twice")
        targets[name] = log_odds
    cells_to_set = [cells[name] for name in targets]
    gaps = np.array([number - now[(*cells[name], label)] for name, number in targets.items()])
    # moves[i, j]: how much the effect of cell i rises if 1 is added at cell j
    moves = np.ones((len(cells_to_set), len(cells_to_set)))
    for axis, frequencies in enumerate(effect.frequencies):
        codes = np.array([place[axis] for place in cells_to_set])
        # the factor (I - 1 q)[c_i, c_j] of each axis
        moves *= (codes[:, np.newaxis] == codes) - frequencies[codes]
    steps = np.linalg.lstsq(moves, gaps, rcond=None)[0]
    if np.abs(moves @ steps - gaps).max() > ROUNDING * (1 + np.abs(gaps).max()):
        steps = gaps  # the numbers lack mean 0 along some axis: they hold up to terms of fewer attributes
    change = np.zeros(now.shape)
    for place, step in zip(cells_to_set, steps, strict=True):
        change[place] = step * _one_against_others(label, now.shape[-1])
    return change, targets


def _one_against_others(label: int, n_labels: int) -> Array:
    """Return the contrast (K,) of one label: 1 for this label, and -1 / (K - 1) for each of the others."""
    contrast = np.full(n_labels, -1 / (n_labels - 1))
    contrast[label] = 1.0
    return contrast


def change_by_smoothing(effect: EditableEffect, now: Array) -> Array:
    """Return the change D that smooths a curve over neighbouring intervals; D is 0 for the missing level.

    Raises UsageError unless the effect is that of a single numeric attribute.
    """
    attribute = _only_numeric_attribute(effect, "--smooth")
    n, frequencies = attribute.n_values, effect.frequencies[0][: attribute.n_values] + 1e-12
    distance = np.abs(np.arange(n)[:, np.newaxis] - np.arange(n))
    # weights (interval, neighbour): 1 for itself, 1/2 for a neighbour, times the frequency
    kernel = np.where(distance > 1, 0.0, np.where(distance == 1, 0.5, 1.0)) * frequencies
    change = np.zeros(now.shape)
    change[:n] = (kernel / kernel.sum(axis=1, keepdims=True)) @ now[:n] - now[:n]
    # keeps the mean, so that the effect still has mean 0
    change[:n] -= frequencies @ change[:n] / frequencies.sum()
    return change


def change_to_monotone(effect: EditableEffect, now: Array, label: int, *, rising: bool) -> Array:
    """Return the change D that makes a label's curve monotone, `rising` or falling; D is 0 for the missing level.

    Raises UsageError unless the effect is that of a single numeric attribute.
    """
    from scipy.optimize import isotonic_regression  # takes longer to import than a small edit

    attribute = _only_numeric_attribute(effect, "--monotone")
    n, weights = attribute.n_values, effect.frequencies[0][: attribute.n_values] + 1e-12
    curve = now[:n, label]
    fitted = isotonic_regression(curve, weights=weights, increasing=rising).x
    change = np.zeros(now.shape)
    change[:n] = (fitted - curve)[:, np.newaxis] * _one_against_others(label, now.shape[-1])
    return change


def _only_numeric_attribute(effect: EditableEffect, option: str) -> NumericAttribute:
    """Return the attribute of the effect; raise UsageError unless there is exactly one and it is numeric."""
    attribute = effect.axis_attributes[0]
    if len(effect.axis_attributes) > 1 or not isinstance(attribute, NumericAttribute):
        what = f"{option} needs the effect of a single numeric attribute, but {effect.name} is not one"
        raise UsageError(what, hint="use --set or --flatten")
    return attribute


def undo_edit(model: Model) -> Model:
    """Return the model as it was before its last edit; raise UsageError if it has no edits."""
    if not model.edits:
        raise UsageError("there is no edit to undo")
    last = model.edits[-1]
    predictor = _without_last_family(model.predictor) if last.added else model.predictor
    arrays = parameter_arrays(predictor)
    for place, array in last.previous.items():
        arrays[place] = array
    test = model.self_test
    if test is not None and last.previous_test is not None:
        test = test._replace(probabilities=last.previous_test)
    return replace(model, predictor=with_arrays(predictor, arrays), self_test=test, edits=model.edits[:-1])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")


def check_positive(positive: str, class_name: str, labels: tuple[str, ...]) -> None:
    """Raise UsageError if `positive` is not a label, or if there are not exactly two labels."""
    if positive not in labels:
        listed = ", ".join(map(repr, labels[:_MOST_LABELS_LISTED]))
        listed += ", ..." if len(labels) > _MOST_LABELS_LISTED else ""
        raise UsageError(f"--positive {positive}: '{class_name}' has no such label", hint=f"its labels are {listed}")
    if len(labels) != 2:
        what = f"--positive needs a class with two labels, but '{class_name}' has {len(labels)}"
        raise UsageError(what, hint="leave --positive out")


def with_positive_label(model: Model, positive: str | None) -> Model:
    """Return the model with `positive` as the second of its two labels; if it is None, return the model unchanged.

    P(y | x) and the costs of each label stay the same; a threshold t for the old second label becomes 1 - t for the new
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
    rule = model.rule
    if rule is not None:
        held_out = rule.held_out
        if held_out is not None:
            weights = None if held_out.weights is None else held_out.weights[::-1]
            held_out = replace(held_out, probabilities=held_out.probabilities[::-1], weights=weights)
        threshold = None if rule.threshold is None else Threshold(1 - rule.threshold.value, rule.threshold.chosen)
        costs = None if rule.costs is None else tuple(row[::-1] for row in rule.costs[::-1])
        rule = replace(rule, costs=costs, threshold=threshold, held_out=held_out)
    calibration = model.calibration
    if calibration is not None:
        fitted = calibration.map
        if isinstance(fitted, PerClass):
            fitted = PerClass(fitted.scales[::-1], fitted.shifts[::-1])
        elif isinstance(fitted, Isotonic):
            (knots,) = fitted.knots  # the second label has the only line; the first gets the remainder
            at, values = (tuple(1 - number for number in reversed(numbers)) for numbers in knots)
            fitted = Isotonic((Knots(at, values),))
        calibration = calibration._replace(map=fitted, frequencies=calibration.frequencies[::-1])
    edits = tuple(
        replace(
            edit,
            values=tuple(row[::-1] for row in edit.values),
            before=tuple(row[::-1] for row in edit.before),
            previous={place: _reverse(array) for place, array in edit.previous.items()},
            previous_test=None if edit.previous_test is None else _reverse(edit.previous_test, axis=0),
        )
        for edit in model.edits
    )
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
        rule=rule,
        calibration=calibration,
        edits=edits,
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
