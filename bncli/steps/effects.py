"""What a model's attributes do, by the names of columns: curves, tables of pairs, and how much each of them matters."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from bncli.engine.data.schema import Attribute, Schema
from bncli.engine.explanation.effects import Effect, LeftOut, effects_of
from bncli.engine.explanation.wording import value_names
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.structures.binning import coarse
from bncli.files.attributes import attribute_json

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
        """The key `merges` is there only where an attribute is regrouped, `averaged` only where values are."""
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


def effects_csv(report: EffectsReport, labels: Sequence[str]) -> str:
    """The tables as they are, a line a value (or several together) and label; the base comes first, of no attribute.

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
    """An attribute as in the cuts file, and whether it has a missing level."""
    return attribute_json(attribute) | ({"missing": True} if attribute.missing else {})


def effects_report(model: Model) -> EffectsReport:
    """The effects of a model."""
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
        tuple(attribute if merge is None else coarse(attribute, merge) for attribute, merge in regrouped),
        tuple(None if merge is None else coarse(attribute, merge) for attribute, merge in regrouped),
        effect.averaged,
    )
