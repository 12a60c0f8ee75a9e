"""What a model's attributes do, by the names of columns: curves, tables of pairs, and how much each of them matters.

Models of regions as a report tells them: the steps of a path by the names of columns, and the best of them.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from bncli.engine.data.schema import Attribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.kikuchi.model_paths import posterior_weights
from bncli.engine.model import Model, Path
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.effects import Effect, LeftOut, effects_of
from bncli.engine.structures.named_structure import NamedRegions
from bncli.engine.structures.region_graph import maximal
from bncli.engine.structures.regrouping import regroup_attribute
from bncli.engine.structures.structure import Regions
from bncli.files.artifacts.cuts import attribute_json
from bncli.files.exports.structure_json import posterior_json

CLASS_REFERENCE = "log-odds of each class against the geometric mean of the other classes"


class NamedEffect(NamedTuple):
    """What a set of attributes does to the log-odds of every class: values[x_1, x_2, ..., y], each axis with mean 0.

    `seen`: the attributes, as cut or regrouped; `merged` has those that are regrouped to a coarser binning, else None.
    `share` of the score's variance. `averaged`: the values are averages, the model sees the attributes more finely.
    """

    attributes: tuple[str, ...]
    share: float
    values: Array
    seen: tuple[Attribute, ...]
    merged: tuple[Attribute | None, ...]
    averaged: bool = False

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """For every axis but the last what its values stand for."""
        return tuple(value_names(attribute)[:-1] for attribute in self.seen)

    def as_json(self) -> dict[str, Any]:
        """Return the key `merges` is there only where an attribute is regrouped, `averaged` only where values are."""
        merges = [None if a is None else described(a) for a in self.merged]
        return {
            "attributes": list(self.attributes),
            "share": self.share,
            "shape": list(self.values.shape),
            **({"merges": merges} if any(merges) else {}),
            **({"averaged": True} if self.averaged else {}),
            "values": self.values.tolist(),
        }


@dataclass(frozen=True)
class EffectsReport:
    """The effects by falling share; `base` (K,): the log-odds of the average row; `models`: how many are averaged.

    `left_out`: how many effects of a model of very many are not among them, and their share.
    """

    base: Array
    effects: tuple[NamedEffect, ...]
    models: int
    left_out: LeftOut | None = None

    def as_json(self) -> dict[str, Any]:
        """Keys of the report on the model; `effects_left_out` only where some are."""
        report = {
            "class_reference": CLASS_REFERENCE,
            "effects_base": self.base.tolist(),
            "effects": [effect.as_json() for effect in self.effects],
            "averaged_models": self.models,
        }
        if self.left_out is not None:
            report["effects_left_out"] = {"count": self.left_out.n_effects, "share": self.left_out.share}
        return report


class NamedStep(NamedTuple):
    """One model of a path and the region that it adds to those before it (none in step 0, the class alone).

    It has its degrees of freedom, log-likelihood and log posterior in nats, and its share in the average over the
    path; where it was asked for, the bootstrap estimate of its log-loss on new rows, in nats.
    """

    region: tuple[str, ...]
    df: int
    log_likelihood: float
    log_posterior: float
    weight: float
    bootstrap_log_loss: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return every field by name, those that nobody asked for left out."""
        fields = self._asdict() | {"region": list(self.region), "log_posterior": posterior_json(self.log_posterior)}
        return {name: value for name, value in fields.items() if name != "bootstrap_log_loss" or value is not None}


@dataclass(frozen=True)
class RegionsReport:
    """The regions of the best model, counted by order, which is the number of their attributes and one for the class.

    Where the model has a path: how many steps it has besides the class alone, which of them is the best, and its share
    in the average; else None.
    """

    orders: dict[str, int]
    steps: int | None = None
    best_step: int | None = None
    weight: float | None = None


def effects_csv(report: EffectsReport, labels: Sequence[str]) -> str:
    """Return the tables as they are, a line per value (or several together) and label.

    The base comes first, of no attribute.

    Names of several attributes, and their values, are joined by ` & `, as in a scorecard.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("attribute", "value", "share", "label", "log_odds"))
    writer.writerows(("", "", "", label, repr(float(base))) for label, base in zip(labels, report.base, strict=True))
    for effect in report.effects:
        attributes = " & ".join(effect.attributes)
        for values, numbers in zip(product(*effect.names), effect.values.reshape(-1, len(labels)), strict=True):
            told = (attributes, " & ".join(values), repr(effect.share))
            writer.writerows((*told, label, repr(float(n))) for label, n in zip(labels, numbers, strict=True))
    return text.getvalue()


def described(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute as in the cuts file, and whether it has a missing level."""
    return attribute_json(attribute) | ({"missing": True} if attribute.missing else {})


def effects_report(model: Model) -> EffectsReport:
    """Return the effects of a model."""
    found = effects_of(model)
    effects = tuple(_named(effect, model.schema) for effect in found.effects)
    return EffectsReport(found.constant, effects, found.models, found.left_out)


def _named(effect: Effect, schema: Schema) -> NamedEffect:
    attributes = [schema.attributes[a] for a in effect.tensor.attributes]
    regrouped = list(zip(attributes, effect.tensor.groupings, strict=True))
    return NamedEffect(
        tuple(attribute.name for attribute in attributes),
        effect.share,
        effect.tensor.shown,
        tuple(attribute if merge is None else regroup_attribute(attribute, merge) for attribute, merge in regrouped),
        tuple(None if merge is None else regroup_attribute(attribute, merge) for attribute, merge in regrouped),
        effect.averaged,
    )


def steps_of_path(path: Path, schema: Schema) -> tuple[NamedStep, ...]:
    """Return the steps of a model's path."""
    names = [attribute.name for attribute in schema.attributes]
    return tuple(
        NamedStep(tuple(names[i] for i in s.region), s.df, s.log_likelihood, s.log_posterior, s.weight)
        for s in path.steps
    )


def steps_of_search(regions: NamedRegions) -> tuple[NamedStep, ...] | None:
    """Return the steps of the search that found the regions, weighted by posterior.

    None where nothing is said of them.
    """
    trace = regions.trace
    if trace is None:
        return None
    weights = posterior_weights(trace.log_posterior)
    losses = trace.bootstrap_log_loss or (None,) * len(weights)
    steps = ((), *regions.regions)
    each = zip(steps, trace.df, trace.log_likelihood, trace.log_posterior, weights, losses, strict=True)
    return tuple(NamedStep(*values) for values in each)


def regions_report(model: Model) -> RegionsReport | None:
    """Return what there is to tell of a model of regions; None for a network."""
    if not isinstance(model.structure, Regions):
        return None
    path = model.predictor
    if not isinstance(path, Path):
        return RegionsReport(_orders(model.structure.chosen))
    best = path.best
    chosen = maximal(step.region for step in path.steps[1 : best + 1])
    return RegionsReport(_orders(chosen), len(path.steps) - 1, best, path.steps[best].weight)


def _orders(regions: Sequence[tuple[object, ...]]) -> dict[str, int]:
    counts = Counter(len(region) + 1 for region in regions)
    return {str(order): counts[order] for order in sorted(counts)}


def report_of_search(regions: NamedRegions) -> RegionsReport:
    """Return the same of a structure that was found, before there is a model."""
    orders, steps = _orders(regions.chosen), steps_of_search(regions)
    if steps is None or regions.trace is None:
        return RegionsReport(orders)
    best = regions.trace.map_step
    return RegionsReport(orders, len(regions.regions), best, steps[best].weight)
