"""The card of a fitted model of `--structure card`: its points, and the probability of each total."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import FittedModel

TOTALS = 11
"""Totals whose probability is listed, from the lowest to the highest."""


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
        attribute = schema.attributes[family.attributes[0]]
        numbers = entries / unit if most == "off" else np.rint(entries / unit).astype(int)
        ends.append((numbers.min(axis=0), numbers.max(axis=0)))
        for value, row in _rows(attribute, numbers):
            n_rows += 1
            for y, number in enumerate(row.tolist()):
                label = {} if two else {"label": schema.labels[y]}
                points.append({"attribute": attribute.name, "value": value, **label, "points": number})
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
        names = list(dict.fromkeys(entry["attribute"] for entry in card["points"]))
        alternatives.append({"columns": names, "rows": card["rows"], "log_loss": card["log_loss"]})
    return {
        "columns": len(tables.families),
        "rows": n_rows,
        "points": points,
        "totals": totals,
        "log_loss": None if held_out is None else held_out.log_loss,
        "log_loss_unlimited": fitted.parameters.log_loss_unlimited,
        "alternatives": alternatives,
    }


def card_lines(card: dict[str, Any], label: str) -> list[str]:
    """Return the card as it is printed: a line per row, then the probability of `label` for some totals."""
    lines = [f"card        {card['columns']:,} columns, {card['rows']:,} rows"]
    if card["log_loss"] is not None and card["log_loss_unlimited"] is not None:
        lines[0] += f"; log-loss {card['log_loss']:.4g}; without limits {card['log_loss_unlimited']:.4g}"
    for name, entries in itertools.groupby(card["points"], key=lambda one: one["attribute"]):
        lines.append(f"            {name}")
        for one in entries:
            of = f" for {one['label']}" if "label" in one else ""
            number = f"{one['points']:.4g}" if isinstance(one["points"], float) else str(one["points"])
            lines.append(f"            {number:>8}{of}  {one['value']}")
    if card["totals"]:
        pairs = ", ".join(f"{one['total']:.4g}: {one['p']:.3f}" for one in card["totals"])
        lines.append(f"totals      P({label}) by total: {pairs}")
    for other in card["alternatives"]:
        size = f"log-loss {other['log_loss']:.4g}, {other['rows']:,} rows"
        lines.append(f"alternative {size}: {', '.join(other['columns'])}")
    return lines


def _rows(attribute: NumericAttribute | CategoricalAttribute, numbers: Array) -> list[tuple[str, Array]]:
    """Return (values as text, points) for every row of the card.

    Neighbouring intervals with equal points share a row, and so do all levels with equal points.
    """
    n = len(numbers) - attribute.missing
    if isinstance(attribute, NumericAttribute):
        bounds = [-math.inf, *attribute.cuts, math.inf]
        rows = []
        for _, run in itertools.groupby(range(n), key=lambda c: tuple(numbers[c].tolist())):
            codes = list(run)
            close = ")" if bounds[codes[-1] + 1] == math.inf else "]"
            rows.append((f"({bounds[codes[0]]!r}, {bounds[codes[-1] + 1]!r}{close}", numbers[codes[0]]))
        return [*rows, ("(missing)", numbers[-1])] if attribute.missing else rows
    members: dict[tuple[float, ...], list[str]] = {}
    for level, row in zip((*attribute.levels, "(missing)"), numbers, strict=False):
        members.setdefault(tuple(row.tolist()), []).append(level)
    return [(" | ".join(levels), np.array(row)) for row, levels in members.items()]
