"""Effects of a model and the path of a region search, with the names of columns, for reports.

An effect is the contribution of a set of attributes to the log-odds of the classes
(`bncli.engine.prediction.effects`): a curve for one attribute, a table for two, and so on. A path is the sequence of
models of regions that a search has visited.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.kikuchi.model_paths import posterior_weights
from bncli.engine.model import Model, Path
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.effects import LeftOut, effects_of
from bncli.engine.prediction.probability_intervals import effect_margins
from bncli.engine.structures.named_structure import NamedRegions
from bncli.engine.structures.regrouping import join_equal_intervals, regroup_attribute
from bncli.engine.structures.structure import Regions, maximal
from bncli.files.artifacts.cuts import attribute_json
from bncli.files.exports.structure_json import posterior_json

CLASS_REFERENCE = "log-odds of each class against the geometric mean of the other classes"


class NamedEffect(NamedTuple):
    """The effect of a set of attributes on the log-odds of every class.

    attributes: their names. share: the fraction of the variance of the score that is due to this effect. values:
    values[x_1, x_2, ..., y], with mean 0 along each axis. axis_attributes: for each attribute its values along the
    axis, as it was cut or in a coarser binning. merged: for each attribute its coarser binning, or None if it has none.
    averaged: whether the values are averages, because the model distinguishes more values than the axes have. margins:
    half the width of the 90 % interval of each value, or None if the model has no intervals or very many tables.
    """

    attributes: tuple[str, ...]
    share: float
    values: Array
    axis_attributes: tuple[Attribute, ...]
    merged: tuple[Attribute | None, ...]
    averaged: bool = False
    margins: Array | None = None

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the values along each axis except the last one (the class)."""
        return tuple(value_names(attribute)[:-1] for attribute in self.axis_attributes)

    def with_equal_intervals_joined(self) -> NamedEffect:
        """Return the effect with neighbouring intervals of equal values and margins joined, for one numeric attribute.

        This shortens the effects of a card and of attributes with monotonicity constraints, which have few steps.
        The effect of a categorical attribute or of several attributes is returned unchanged.
        """
        compared_values = self.values if self.margins is None else np.concatenate((self.values, self.margins), axis=-1)
        grouping = (
            join_equal_intervals(self.axis_attributes[0], compared_values) if len(self.axis_attributes) == 1 else None
        )
        if grouping is None:
            return self
        firsts = np.unique(grouping, return_index=True)[1]
        return self._replace(
            values=self.values[firsts],
            axis_attributes=(regroup_attribute(self.axis_attributes[0], grouping),),
            margins=None if self.margins is None else self.margins[firsts],
        )

    def as_json(self) -> dict[str, Any]:
        """Return the effect as JSON; the keys `merges`, `averaged` and `margins` are present only if they apply."""
        merges = [None if a is None else attribute_with_missing(a) for a in self.merged]
        return {
            "attributes": list(self.attributes),
            "share": self.share,
            "shape": list(self.values.shape),
            **({"merges": merges} if any(merges) else {}),
            **({"averaged": True} if self.averaged else {}),
            "values": self.values.tolist(),
            **({} if self.margins is None else {"margins": self.margins.tolist()}),
        }


def attribute_with_missing(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute as in the cuts file, with a key `missing` if it has a level for missing values."""
    return attribute_json(attribute) | ({"missing": True} if attribute.missing else {})


@dataclass(frozen=True)
class EffectsReport:
    """The effects of a model, in decreasing order of their fraction of the variance.

    base: log-odds (K,) of the average row.
    models: number of models whose scores are averaged.
    left_out: the number of effects beyond the first 1,000, which are not listed, and their fraction of the variance;
        None if all are listed.
    """

    base: Array
    effects: tuple[NamedEffect, ...]
    models: int
    left_out: LeftOut | None = None

    def with_equal_intervals_joined(self) -> EffectsReport:
        """Return the report with `NamedEffect.with_equal_intervals_joined` applied to each effect, for display."""
        return replace(self, effects=tuple(effect.with_equal_intervals_joined() for effect in self.effects))

    def as_json(self) -> dict[str, Any]:
        """Return the keys about effects in the JSON of a model; `effects_left_out` only if some are left out."""
        report = {
            "class_reference": CLASS_REFERENCE,
            "effects_base": self.base.tolist(),
            "effects": [effect.as_json() for effect in self.effects],
            "averaged_models": self.models,
        }
        if self.left_out is not None:
            report["effects_left_out"] = {"count": self.left_out.n_effects, "share": self.left_out.share}
        return report


def effects_report(model: Model) -> EffectsReport:
    """Return the effects of a model, with the names of attributes and with margins if they can be computed."""
    result = effects_of(model)
    margins: Sequence[Array | None] = effect_margins(model, result) or [None] * len(result.effects)
    effects = []
    for effect, its_margins in zip(result.effects, margins, strict=True):
        attributes = [model.schema.attributes[a] for a in effect.tensor.attributes]
        regrouped = zip(attributes, effect.tensor.groupings, strict=True)
        merged = tuple(
            None if grouping is None else regroup_attribute(attribute, grouping) for attribute, grouping in regrouped
        )
        axis_attributes = tuple(coarser or attribute for coarser, attribute in zip(merged, attributes, strict=True))
        names = tuple(attribute.name for attribute in attributes)
        effects.append(
            NamedEffect(names, effect.share, effect.tensor.shown, axis_attributes, merged, effect.averaged, its_margins)
        )
    return EffectsReport(result.constant, tuple(effects), result.models, result.left_out)


def effects_csv(report: EffectsReport, labels: Sequence[str]) -> str:
    """Format the effects as CSV, with one row per label and value (or combination of values).

    The base comes first, with an empty attribute. The names of several attributes, and their values, are joined by
    ` & `, as in a scorecard.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("attribute", "value", "share", "label", "log_odds"))
    writer.writerows(("", "", "", label, repr(float(base))) for label, base in zip(labels, report.base, strict=True))
    for effect in report.effects:
        attributes = " & ".join(effect.attributes)
        for values, numbers in zip(product(*effect.names), effect.values.reshape(-1, len(labels)), strict=True):
            for label, number in zip(labels, numbers, strict=True):
                writer.writerow((attributes, " & ".join(values), repr(effect.share), label, repr(float(number))))
    return text.getvalue()


class NamedStep(NamedTuple):
    """A model on a path, with the region that it adds to the preceding model (empty for step 0, the class alone).

    log_likelihood, log_posterior: in nats. weight: its weight in the average over the path. bootstrap_log_loss: an
    estimate of the log-loss on new rows, in nats per row, or None if not requested.
    """

    region: tuple[str, ...]
    df: int
    log_likelihood: float
    log_posterior: float
    weight: float
    bootstrap_log_loss: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, without a bootstrap log-loss that was not requested."""
        fields = self._asdict() | {"region": list(self.region), "log_posterior": posterior_json(self.log_posterior)}
        return {name: value for name, value in fields.items() if name != "bootstrap_log_loss" or value is not None}


def path_steps(path: Path, schema: Schema) -> tuple[NamedStep, ...]:
    """Return the steps of a model's path, with the names of attributes."""
    names = [attribute.name for attribute in schema.attributes]
    return tuple(
        NamedStep(tuple(names[i] for i in s.region), s.df, s.log_likelihood, s.log_posterior, s.weight)
        for s in path.steps
    )


def search_steps(regions: NamedRegions) -> tuple[NamedStep, ...] | None:
    """Return the steps of the search that found the regions, weighted by posterior, or None if they are not stored."""
    trace = regions.trace
    if trace is None:
        return None
    weights = posterior_weights(trace.log_posterior)
    losses = trace.bootstrap_log_loss or (None,) * len(weights)
    steps = ((), *regions.regions)
    fields = zip(steps, trace.df, trace.log_likelihood, trace.log_posterior, weights, losses, strict=True)
    return tuple(NamedStep(*values) for values in fields)


@dataclass(frozen=True)
class RegionsReport:
    """The regions of the best model on a path, or of the only model.

    orders: number of regions by order, which is the number of their attributes plus one for the class.
    steps, best_step, weight: the number of steps without step 0, the best step, and its weight in the average over the
    path; None without a path.
    """

    orders: dict[str, int]
    steps: int | None = None
    best_step: int | None = None
    weight: float | None = None


def regions_report(model: Model) -> RegionsReport | None:
    """Return the report on a model of regions, or None for a network."""
    if not isinstance(model.structure, Regions):
        return None
    path = model.predictor
    if not isinstance(path, Path):
        return RegionsReport(_count_orders(model.structure.chosen))
    best = path.best
    chosen = maximal(step.region for step in path.steps[1 : best + 1])
    return RegionsReport(_count_orders(chosen), len(path.steps) - 1, best, path.steps[best].weight)


def search_report(regions: NamedRegions) -> RegionsReport:
    """Return the report on the regions found by a search, before parameters are learned."""
    orders, steps = _count_orders(regions.chosen), search_steps(regions)
    if steps is None or regions.trace is None:
        return RegionsReport(orders)
    best = regions.trace.map_step
    return RegionsReport(orders, len(regions.regions), best, steps[best].weight)


def _count_orders(regions: Sequence[tuple[object, ...]]) -> dict[str, int]:
    counts = Counter(len(region) + 1 for region in regions)
    return {str(order): counts[order] for order in sorted(counts)}
