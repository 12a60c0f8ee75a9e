"""The card of a fitted model of `--structure card`: its points, and the probabilities of some totals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import FittedModel
from bncli.engine.parameters.card_tables import equal_rows, n_ordered_groups
from bncli.engine.structures.structure import Family

WIDEST = 60
"""The largest total width of the columns of points, in characters; above it, each label has a line of its own."""
TOTALS = 11
"""The number of totals whose probability is listed, from the lowest to the highest."""


def card_json(fitted: FittedModel) -> dict[str, Any] | None:
    """Return the part of `fit --json` about a card, or None for other models.

    Keys: columns and rows (their numbers), points (one entry per row of the card, and per label if there are more than
    two), totals (for two classes: the probability of the second label), log_loss and log_loss_unlimited (on held-out
    rows, None if there were none), alternatives (columns, rows and log_loss of other cards with about that loss).
    """
    model = fitted.model
    if model.recipe.param != "points":
        return None
    schema, tables = model.schema, model.tables
    two = len(schema.labels) == 2
    own = [w[:, 1:] - w[:, :1] if two else w for w in tables.weights]
    unit, most = 1.0, model.recipe.points
    if most != "off" and any(np.any(v) for v in own):
        unit = max(float(np.abs(v).max()) for v in own) / int(most)
    points: list[dict[str, Any]] = []
    ends, n_rows = [], 0
    for family, entries in zip(tables.families, own, strict=True):
        name = " & ".join(schema.attributes[i].name for i in family.attributes)
        numbers = entries / unit if most == "off" else np.rint(entries / unit).astype(int)
        ends.append((numbers.min(axis=0), numbers.max(axis=0)))
        for value, row in _rows(schema, family, numbers):
            n_rows += 1
            for y, number in enumerate(row.tolist()):
                label = {} if two else {"label": schema.labels[y]}
                points.append({"attribute": name, "value": value, **label, "points": number})
    totals: list[dict[str, Any]] = []
    if two:
        low, high = (float(sum(end[side][0] for end in ends)) for side in (0, 1))
        listed = np.linspace(low, high, TOTALS)
        offset = float(tables.bias[1] - tables.bias[0])
        rounded = dict.fromkeys(listed.tolist() if most == "off" else np.rint(listed).astype(int).tolist())
        totals = [{"total": each, "p": 0.5 * (1 + math.tanh((offset + unit * each) / 2))} for each in rounded]
    held_out = fitted.parameters.held_out
    alternatives = []
    for other in fitted.alternatives:
        card = card_json(other)
        assert card is not None
        names = [schema.attributes[i].name for i in _columns(other)]
        alternatives.append({"columns": names, "rows": card["rows"], "log_loss": card["log_loss"]})
    return {
        "columns": len(_columns(fitted)),
        "rows": n_rows,
        "points": points,
        "totals": totals,
        "log_loss": None if held_out is None else held_out.log_loss,
        "log_loss_unlimited": fitted.parameters.log_loss_unlimited,
        "alternatives": alternatives,
    }


def card_lines(card: dict[str, Any], label: str) -> list[str]:
    """Return the printed lines of a card: its rows, then P(`label`) for some totals, then the alternatives."""
    lines = [f"card        {card['columns']:,} columns, {card['rows']:,} rows"]
    if card["log_loss"] is not None and card["log_loss_unlimited"] is not None:
        losses = f"{card['log_loss']:.4g}, without the limits of the card {card['log_loss_unlimited']:.4g}"
        lines[0] += f"; held-out log-loss {losses}"
    for name, entries in itertools.groupby(card["points"], key=lambda one: one["attribute"]):
        listed = list(entries)
        labels = list(dict.fromkeys(one["label"] for one in listed if "label" in one))
        widths = [max(8, len(text) + 2) for text in labels] or [8]
        if sum(widths) > WIDEST:  # a line per label
            widths, of_labels = [8], [f" for {one['label']}" for one in listed]
        else:  # a column per label
            of_labels = [""] * len(listed)
        lines.append(f"            {name}")
        if len(widths) > 1:
            lines.append("            " + "".join(f"{text:>{w}}" for text, w in zip(labels, widths, strict=True)))
        for start in range(0, len(listed), len(widths)):
            row = listed[start : start + len(widths)]
            texts = [f"{p:.4g}" if isinstance(p, float) else str(p) for p in (one["points"] for one in row)]
            numbers = "".join(f"{text:>{w}}" for text, w in zip(texts, widths, strict=True))
            lines.append(f"            {numbers}{of_labels[start]}  {row[0]['value']}")
    if card["totals"]:
        pairs = ", ".join(f"{one['total']:.4g}: {one['p']:.3f}" for one in card["totals"])
        lines.append(f"totals      P({label}) by total: {pairs}")
    for other in card["alternatives"]:
        size = f"a card of {other['rows']:,} rows, log-loss {other['log_loss']:.4g}"
        lines.append(f"alternative {', '.join(other['columns'])}: {size}")
    return lines


def _columns(fitted: FittedModel) -> list[int]:
    """Return the positions of a card's attributes, in the order of its tables."""
    return list(dict.fromkeys(i for family in fitted.model.tables.families for i in family.attributes))


def _rows(schema: Schema, family: Family, numbers: Array) -> list[tuple[str, Array]]:
    """Return (values as text, points) for every row of a table; numbers: points of its cells, (cells, 1) or (cells, K).

    Neighbouring intervals with equal points share a row, and so do all levels with equal points. A row of several
    attributes is a box: some values of each.
    """
    attributes = [schema.attributes[i] for i in family.attributes]
    boxes = equal_rows(numbers, family.shape, n_ordered_groups(attributes, family))
    rows = []
    for box in range(int(boxes.max()) + 1):
        cells = np.flatnonzero(boxes == box)
        axes = [set(axis.tolist()) for axis in np.unravel_index(cells, family.shape)]
        texts = []
        for (i, grouping), axis in zip(family.binned_attributes, axes, strict=True):
            attribute = schema.attributes[i]
            codes = [c for c in range(attribute.cardinality) if (c if grouping is None else grouping[c]) in axis]
            texts.append(_value_text(attribute, codes))
        rows.append((" & ".join(texts), numbers[cells[0]]))
    return rows


def _value_text(attribute: Attribute, codes: list[int]) -> str:
    """Return some values of an attribute as text; codes of intervals are neighbours."""
    own = [c for c in codes if c < attribute.n_values]
    texts = []
    if own and isinstance(attribute, NumericAttribute):
        bounds = [-math.inf, *attribute.cuts, math.inf]
        close = ")" if bounds[own[-1] + 1] == math.inf else "]"
        texts.append(f"({bounds[own[0]]!r}, {bounds[own[-1] + 1]!r}{close}")
    elif isinstance(attribute, CategoricalAttribute):
        texts += [attribute.levels[c] for c in own]
    return " | ".join([*texts, *(["(missing)"] if len(own) < len(codes) else [])])
